"""Matrices, ε, Pk and the algorithms that choose a retention, against enumeration in exact fractions."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.theory.randomisation import (
    Attribute,
    RetentionReplacement,
    TransitionMatrix,
    local_epsilon,
    pk,
    retention_for_both,
    retention_for_epsilon,
    retention_for_k,
    retentions_by_weight,
)

Rows = Sequence[Sequence[Fraction]]


def fractions(rows: Sequence[Sequence[int]]) -> Rows:
    return [[Fraction(entry, sum(row)) for entry in row] for row in rows]


def exact_rows(attribute: RetentionReplacement) -> Rows:
    rho, size = Fraction(attribute.retention), attribute.size
    return [[(1 - rho) / size + (rho if u == w else 0) for w in range(size)] for u in range(size)]


def kronecker(first: Rows, second: Rows) -> Rows:
    return [[a * b for a in row for b in other] for row in first for other in second]


def exact_odds(rows: Rows) -> Fraction:
    """e^ε by enumeration."""
    columns = range(len(rows[0]))
    return max(rows[u][w] / rows[v][w] for u in range(len(rows)) for v in range(len(rows)) for w in columns)


def exact_crowd(rows: Rows, records: int) -> Fraction:
    """1 / the largest posterior P[record r is released as r' | released table] over all tables (Definition 6).

    An adversary who is certain of the private table is the worst (Lemma 3), so only those are enumerated.
    """
    largest = Fraction(0)
    values = range(len(rows))
    for private in itertools.product(values, repeat=records):
        for released in itertools.product(values, repeat=records):
            weights = {
                order: math.prod(rows[private[s]][released[order[s]]] for s in range(records))
                for order in itertools.permutations(range(records))
            }
            total = sum(weights.values())
            if total:
                largest = max(largest, sum(w for order, w in weights.items() if order[0] == 0) / total)
    return 1 / largest


GENERAL = [fractions([[5, 1, 2], [1, 7, 3], [2, 2, 9]]), fractions([[3, 1], [2, 5]]), fractions([[9, 1], [1, 9]])]


class TestRetentionReplacement:
    @pytest.mark.parametrize(("rho", "size"), [(0.25, 2), (0.5, 3), (0.9, 7), (1e-9, 4), (1 - 1e-12, 2)])
    def test_promises_against_exact_fractions(self, rho: float, size: int) -> None:
        attribute = RetentionReplacement(rho, size)
        rows = exact_rows(attribute)
        odds = exact_odds(rows)
        excess = float(odds - 1)  # correctly rounded
        assert math.log1p(excess) <= attribute.epsilon <= math.log1p(excess) * (1 + 1e-14)
        exact = 1 / odds**2
        assert Fraction(attribute.ratio) < exact
        assert attribute.ratio == pytest.approx(float(exact), rel=1e-14)

    def test_the_two_ends(self) -> None:
        nothing, everything = RetentionReplacement(0, 5), RetentionReplacement(1, 5)
        assert (nothing.epsilon, nothing.ratio) == (0.0, 1.0)
        assert (everything.epsilon, everything.ratio) == (math.inf, 0.0)
        assert everything.matrix().tolist() == np.eye(5).tolist()

    def test_matrix_and_inverse(self) -> None:
        attribute = RetentionReplacement(0.3, 6)
        assert np.allclose(attribute.matrix(), np.array(exact_rows(attribute), dtype=float), atol=1e-16)
        assert np.allclose(attribute.matrix() @ attribute.inverse(), np.eye(6), atol=1e-14)

    def test_retentions_multiply_so_a_smaller_one_is_a_larger_one_followed_by_another(self) -> None:
        first, second, both = (RetentionReplacement(rho, 4).matrix() for rho in (0.5, 0.25, 0.125))
        assert np.allclose(first @ second, both, atol=1e-16)

    def test_nothing_retained_cannot_be_inverted(self) -> None:
        with pytest.raises(ParameterError):
            RetentionReplacement(0, 3).inverse()

    @pytest.mark.parametrize(("rho", "size"), [(-0.1, 2), (1.1, 2), (math.nan, 2), (0.5, 1), (0.5, 2.5), (True, 2)])
    def test_bad_parameters(self, rho: float, size: int) -> None:
        with pytest.raises(ParameterError):
            RetentionReplacement(rho, size)


class TestTransitionMatrix:
    @pytest.mark.parametrize("rows", GENERAL)
    def test_promises_against_enumeration(self, rows: Rows) -> None:
        matrix = TransitionMatrix(rows)
        size = range(len(rows))
        ratio = min(
            rows[u][w] * rows[v][x] / (rows[u][x] * rows[v][w]) for u, v, w, x in itertools.product(size, repeat=4)
        )
        assert matrix.epsilon >= math.log(exact_odds(rows))
        assert matrix.epsilon == pytest.approx(math.log(exact_odds(rows)), rel=1e-13)
        assert Fraction(matrix.ratio) <= ratio
        assert matrix.ratio == pytest.approx(float(ratio), rel=1e-13)

    def test_agrees_with_retention_replacement(self) -> None:
        special = RetentionReplacement(0.375, 5)
        general = TransitionMatrix(exact_rows(special))
        assert general.epsilon == pytest.approx(special.epsilon, rel=1e-13)
        assert general.ratio == pytest.approx(special.ratio, rel=1e-13)
        assert np.allclose(general.inverse(), special.inverse(), atol=1e-12)

    def test_a_nearly_uniform_matrix_keeps_its_small_epsilon(self) -> None:
        rows = [[Fraction(1, 2) + Fraction(1, 10**14), Fraction(1, 2) - Fraction(1, 10**14)], [Fraction(1, 2)] * 2]
        assert TransitionMatrix(rows).epsilon == pytest.approx(2e-14, rel=1e-6)

    def test_rows_are_exact_fractions_that_sum_to_one(self) -> None:
        matrix = TransitionMatrix([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [1 / 3, 1 / 3, 1 / 3]])
        assert all(sum(row) == 1 for row in matrix.rows)
        assert matrix == TransitionMatrix(np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [1 / 3, 1 / 3, 1 / 3]]))

    def test_one_zero_destroys_both_promises(self) -> None:
        matrix = TransitionMatrix([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
        assert matrix.epsilon == math.inf
        assert matrix.ratio == 0.0
        assert exact_crowd(matrix.rows, 2) == pk([matrix], 2) == 1

    def test_a_value_that_is_never_released_does_not_count(self) -> None:
        matrix = TransitionMatrix([[0.75, 0.25, 0], [0.25, 0.75, 0], [0.5, 0.5, 0]])
        assert matrix.epsilon == pytest.approx(math.log(3), rel=1e-13)
        assert matrix.ratio == pytest.approx(1 / 9, rel=1e-13)
        with pytest.raises(ParameterError):
            matrix.inverse()

    def test_equal_rows_reveal_nothing(self) -> None:
        matrix = TransitionMatrix([[0.3, 0.7], [0.3, 0.7]])
        assert (matrix.epsilon, matrix.ratio, pk([matrix], 9)) == (0.0, 1.0, 9.0)

    @pytest.mark.parametrize(
        "rows",
        [
            [[0.5, 0.5], [0.5, 0.4]],
            [[1.5, -0.5], [0.5, 0.5]],
            [[0.5, 0.5]],
            [[1.0]],
            [],
            [[0.5, math.nan], [0.5, 0.5]],
        ],
    )
    def test_bad_matrices(self, rows: list[list[float]]) -> None:
        with pytest.raises(ParameterError):
            TransitionMatrix(rows)


class TestProducts:
    def test_epsilon_over_the_product_domain(self) -> None:
        attributes: list[Attribute] = [RetentionReplacement(0.5, 3), TransitionMatrix(GENERAL[1])]
        product = kronecker(exact_rows(RetentionReplacement(0.5, 3)), GENERAL[1])
        assert local_epsilon(attributes) >= math.log(exact_odds(product))
        assert local_epsilon(attributes) == pytest.approx(math.log(exact_odds(product)), rel=1e-13)

    @pytest.mark.parametrize(("rows", "records"), [(GENERAL[0], 2), (GENERAL[0], 3), (GENERAL[1], 4), (GENERAL[2], 4)])
    def test_pk_is_attained(self, rows: Rows, records: int) -> None:
        true = exact_crowd(rows, records)
        promised = pk([TransitionMatrix(rows)], records)
        assert Fraction(promised) <= true
        assert promised == pytest.approx(float(true), rel=1e-13)

    def test_pk_of_two_attributes_is_attained(self) -> None:
        attributes = [RetentionReplacement(0.25, 2), TransitionMatrix(GENERAL[1])]
        true = exact_crowd(kronecker(exact_rows(RetentionReplacement(0.25, 2)), GENERAL[1]), 3)
        assert Fraction(pk(attributes, 3)) <= true
        assert pk(attributes, 3) == pytest.approx(float(true), rel=1e-13)

    def test_fewer_records_mean_a_smaller_crowd(self) -> None:
        attributes = [RetentionReplacement(0.1, 4)]
        assert pk(attributes, 1) == 1.0
        assert pk(attributes, 10) < pk(attributes, 11)

    def test_no_attributes(self) -> None:
        with pytest.raises(ParameterError):
            local_epsilon([])
        with pytest.raises(ParameterError):
            pk([], 10)


class TestAlgorithms:
    SIZES = (2, 5, 10)

    def attributes(self, rho: float) -> list[RetentionReplacement]:
        return [RetentionReplacement(rho, size) for size in self.SIZES]

    @pytest.mark.parametrize("k", [1.5, 2, 100, 99_999])
    def test_the_largest_retention_for_k(self, k: float) -> None:
        rho = retention_for_k(k, 100_000, self.SIZES)
        assert pk(self.attributes(rho), 100_000) >= k
        assert pk(self.attributes(rho + 1e-12), 100_000) < k

    @pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 10])
    def test_the_largest_retention_for_epsilon(self, epsilon: float) -> None:
        rho = retention_for_epsilon(epsilon, self.SIZES)
        assert local_epsilon(self.attributes(rho)) <= epsilon
        assert local_epsilon(self.attributes(rho + 1e-14)) > epsilon

    def test_the_ends(self) -> None:
        assert retention_for_k(50, 50, self.SIZES) == 0.0
        assert retention_for_epsilon(0, self.SIZES) == 0.0
        assert retention_for_k(1, 50, self.SIZES) == math.nextafter(1, 0)

    def test_both_keep_both(self) -> None:
        rho = retention_for_both(100, 3.0, 100_000, self.SIZES)
        assert pk(self.attributes(rho), 100_000) >= 100
        assert local_epsilon(self.attributes(rho)) <= 3.0

    def test_more_than_there_are(self) -> None:
        with pytest.raises(UnreachableError):
            retention_for_k(51, 50, self.SIZES)

    @pytest.mark.parametrize("rho", [retention_for_k(7, 1000, (2, 3)), *retentions_by_weight(1e-6, (2, 9), (1, 3))])
    def test_retentions_are_64_bit_fractions(self, rho: float) -> None:
        assert rho > 0
        assert (Fraction(rho) * 2**64).denominator == 1

    def test_bad_parameters(self) -> None:
        for call in (
            lambda: retention_for_k(0.5, 10, (2,)),
            lambda: retention_for_k(2, 0, (2,)),
            lambda: retention_for_k(2, 10, ()),
            lambda: retention_for_k(2, 10, (1,)),
            lambda: retention_for_epsilon(-1, (2,)),
            lambda: retention_for_epsilon(math.inf, (2,)),
            lambda: retentions_by_weight(1, (2, 3), (1,)),
            lambda: retentions_by_weight(1, (2, 3), (0, 0)),
            lambda: retentions_by_weight(1, (2, 3), (1, -1)),
        ):
            with pytest.raises(ParameterError):
                call()


class TestWeights:
    def test_each_attribute_gets_its_share(self) -> None:
        sizes, weights = (2, 5, 10), (1.0, 2.0, 5.0)
        retentions = retentions_by_weight(4.0, sizes, weights)
        spent = [RetentionReplacement(rho, size).epsilon for rho, size in zip(retentions, sizes, strict=True)]
        assert spent == pytest.approx([0.5, 1.0, 2.5], rel=1e-12)
        assert local_epsilon([RetentionReplacement(r, s) for r, s in zip(retentions, sizes, strict=True)]) <= 4.0

    def test_an_attribute_without_weight_is_replaced_entirely(self) -> None:
        assert retentions_by_weight(1.0, (3, 3), (0, 1))[0] == 0.0

    def test_a_huge_budget_still_does_not_publish(self) -> None:
        assert max(retentions_by_weight(5000.0, (2, 3), (1, 1))) < 1.0
