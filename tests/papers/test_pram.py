"""Values printed by Ikarashi, Kikuchi, Chida, Takahashi, and by the papers on shuffling, for the same tables."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from incrowd.theory.randomisation import (
    RetentionReplacement,
    TransitionMatrix,
    local_epsilon,
    pk,
    retention_for_both,
    retention_for_epsilon,
    retention_for_k,
)
from incrowd.theory.shuffling import BLANKET, CLONES, CLOSED_FORM, central_delta, central_epsilon

CENSUS_RECORDS = 2_458_285
CENSUS_SIZES = (2, 18, 12, 3, 3, 18, 20)  # Table 1


def randomised_response(epsilon: float, size: int) -> RetentionReplacement:
    return RetentionReplacement(math.expm1(epsilon) / (math.expm1(epsilon) + size), size)


def same(rho: float, sizes: tuple[int, ...]) -> list[RetentionReplacement]:
    return [RetentionReplacement(rho, size) for size in sizes]


class TestIkarashi:
    def test_the_matrix_of_section_2_3(self) -> None:
        assert RetentionReplacement(0.5, 2).matrix().tolist() == [[0.75, 0.25], [0.25, 0.75]]

    def test_the_example_after_algorithm_1(self) -> None:
        rho = retention_for_k(100, 100_000, (2, 5, 10))
        assert rho == pytest.approx(0.30320, abs=5e-6)
        assert local_epsilon(same(rho, (2, 5, 10))) == pytest.approx(3.459, abs=5e-4)
        assert pk(same(rho, (2, 5, 10)), 100_000) == pytest.approx(100, rel=1e-12)

    def test_the_census_with_four_attributes(self) -> None:
        sizes = CENSUS_SIZES[:4]
        rho = retention_for_k(2, CENSUS_RECORDS, sizes)
        assert rho == pytest.approx(0.45092, abs=5e-6)
        assert local_epsilon(same(rho, sizes)) == pytest.approx(7.357, abs=5e-4)

    def test_for_retention_replacement_k_is_a_function_of_epsilon(self) -> None:
        attributes = [RetentionReplacement(0.2, 3), RetentionReplacement(0.6, 7)]
        assert pk(attributes, 1000) == pytest.approx(1 + 999 * math.exp(-2 * local_epsilon(attributes)), rel=1e-12)

    @pytest.mark.parametrize("count", range(1, 8))
    def test_figure_3_epsilon_does_not_depend_on_the_number_of_attributes(self, count: int) -> None:
        sizes = CENSUS_SIZES[:count]
        rho = retention_for_k(2, CENSUS_RECORDS, sizes)
        assert local_epsilon(same(rho, sizes)) == pytest.approx(math.log(CENSUS_RECORDS - 1) / 2, rel=1e-9)

    def test_figure_2_more_records_allow_more_retention(self) -> None:
        retentions = [retention_for_k(2, records, CENSUS_SIZES[:4]) for records in (245, 2458, 24_582, 245_828)]
        assert retentions == sorted(retentions)
        assert len(set(retentions)) == 4

    def test_figure_4_a_larger_crowd_allows_less_retention(self) -> None:
        retentions = [retention_for_k(k, CENSUS_RECORDS, CENSUS_SIZES[:4]) for k in (2, 10, 100, 1.5)]
        assert retentions[3] > retentions[0] > retentions[1] > retentions[2]

    def test_algorithm_3_takes_the_smaller(self) -> None:
        sizes = (2, 5, 10)
        by_k, by_epsilon = retention_for_k(100, 100_000, sizes), retention_for_epsilon(2.0, sizes)
        assert retention_for_both(100, 2.0, 100_000, sizes) == by_epsilon < by_k
        assert retention_for_both(100, 9.0, 100_000, sizes) == by_k

    def test_a_certain_value_gives_no_crowd(self) -> None:
        assert pk([TransitionMatrix([[1.0, 0.0], [0.5, 0.5]])], 1000) == 1.0


def likeliest_link(rows: list[list[Fraction]], records: int) -> Fraction:
    """Definition 6 by brute force: the most probable link of a person to a record, over all tables and releases.

    Whoever knows the private table x and sees the shuffled release y weighs every permutation by Π A[x_i, y_π(i)].
    """
    best = Fraction(0)
    orders = list(itertools.permutations(range(records)))
    for private in itertools.combinations_with_replacement(range(len(rows)), records):
        for released in itertools.combinations_with_replacement(range(len(rows)), records):
            weights = [math.prod(rows[x][released[o]] for x, o in zip(private, order, strict=True)) for order in orders]
            total = sum(weights)
            for person, record in itertools.product(range(records), repeat=2):
                linked = sum(w for w, order in zip(weights, orders, strict=True) if order[person] == record)
                best = max(best, Fraction(linked) / total)
    return best


class TestTheorem3:
    """k = 1 + (R−1)·AR for any matrix, with the AR of the theorem, and the bound is attained."""

    MATRICES = (
        [[6, 3, 1], [1, 7, 2], [2, 2, 6]],
        [[5, 4, 1], [1, 5, 4], [4, 1, 5]],
        [[8, 1, 1], [1, 8, 1], [1, 1, 8]],
        [[7, 3], [1, 9]],
        [[1, 2, 3, 4], [4, 3, 2, 1], [1, 1, 1, 7], [3, 3, 3, 1]],
    )

    @pytest.mark.parametrize("tenths", MATRICES)
    def test_ar_is_the_theorems(self, tenths: list[list[int]]) -> None:
        rows = [[Fraction(entry, 10) for entry in row] for row in tenths]
        values = range(len(rows))
        ratio = min(
            rows[u][w] * rows[v][x] / (rows[u][x] * rows[v][w]) for u, v, w, x in itertools.product(values, repeat=4)
        )
        assert 0 < ratio < 1
        assert TransitionMatrix(rows).ratio == pytest.approx(float(ratio), rel=1e-12)
        assert pk([TransitionMatrix(rows), RetentionReplacement(0.5, 2)], 1000) == pytest.approx(
            float(1 + 999 * ratio / 9), rel=1e-12
        )

    def test_a_value_that_nothing_becomes_links_nobody_but_one_that_some_become_links_them(self) -> None:
        never = [[Fraction(a, 10) for a in row] for row in ([6, 4, 0], [3, 7, 0], [5, 5, 0])]
        assert TransitionMatrix(never).ratio == pytest.approx(3 * 4 / (6 * 7), rel=1e-12)
        some = [[Fraction(a, 10) for a in row] for row in ([6, 4, 0], [3, 6, 1], [5, 5, 0])]
        assert TransitionMatrix(some).ratio == 0

    @pytest.mark.parametrize("tenths", MATRICES[:4])
    @pytest.mark.parametrize("records", [2, 3])
    def test_nobody_is_linked_more_surely_than_one_in_k(self, tenths: list[list[int]], records: int) -> None:
        rows = [[Fraction(entry, 10) for entry in row] for row in tenths]
        promised = pk([TransitionMatrix(rows)], records)
        assert 1 / promised == pytest.approx(float(likeliest_link(rows, records)), rel=1e-12)


class TestShuffling:
    def test_the_census_by_clones(self) -> None:
        sizes = CENSUS_SIZES[:4]
        promise = central_epsilon(same(0.45092, sizes), CENSUS_RECORDS, 1e-6)
        assert promise.by_bound[CLONES] == pytest.approx(0.192, abs=5e-4)
        assert promise.by_bound[CLOSED_FORM] == pytest.approx(0.583, abs=5e-4)
        assert promise.bound == BLANKET
        assert promise.epsilon == promise.by_bound[BLANKET] == pytest.approx(0.0508, abs=1e-4)

    @pytest.mark.parametrize(("records", "size", "local", "printed"), [(10**4, 10, 2, 0.080), (10**5, 100, 4, 0.069)])
    def test_one_attribute_by_the_blanket(self, records: int, size: int, local: float, printed: float) -> None:
        promise = central_epsilon([randomised_response(local, size)], records, 1e-6)
        assert promise.bound == BLANKET
        assert math.ceil(promise.epsilon * 1000) / 1000 == printed

    def test_four_values_and_four_records_by_brute_force(self) -> None:
        """The true δ of shuffled randomised response exceeds what counting two outputs alone would promise."""
        size, records, local, epsilon = 4, 4, 1.5, 0.4
        r = 1 / (math.exp(local) + size - 1)
        matrix = np.full((size, size), r) + (math.exp(local) - 1) * r * np.eye(size)

        def histogram_law(table: tuple[int, ...]) -> dict[tuple[int, ...], float]:
            law: Counter[tuple[int, ...]] = Counter()
            for outputs in itertools.product(range(size), repeat=records):
                law[tuple(sorted(outputs))] += math.prod(matrix[x, w] for x, w in zip(table, outputs, strict=True))
            return law

        true = 0.0
        for others in itertools.combinations_with_replacement(range(size), records - 1):
            laws = [histogram_law((x, *others)) for x in range(size)]
            for p, q in itertools.permutations(laws, 2):
                true = max(true, sum(max(0.0, p[o] - math.exp(epsilon) * q[o]) for o in p))
        assert true == pytest.approx(0.227908, abs=5e-7)

        promise = central_delta([randomised_response(local, size)], records, epsilon)
        assert true <= promise.delta < 0.2282
        assert two_counts(records, r, local, epsilon) < true
        # One record more would promise less than the truth: n counts the replaced record.
        assert central_delta([randomised_response(local, size)], records + 1, epsilon).delta < true


def two_counts(records: int, r: float, local: float, epsilon: float) -> float:
    """The divergence of the two counts (of x, of x') when the outputs elsewhere are ignored."""

    def convolved(law: np.ndarray, x: float, y: float) -> np.ndarray:
        out = law * (1 - x - y)
        out[1:, :] += x * law[:-1, :]
        out[:, 1:] += y * law[:, :-1]
        return out

    others = np.zeros((records + 1, records + 1))
    others[0, 0] = 1.0
    for _ in range(records - 1):
        others = convolved(others, r, r)
    likely = math.exp(local) * r
    gap = convolved(others, likely, r) - math.exp(epsilon) * convolved(others, r, likely)
    return float(np.maximum(gap, 0).sum())
