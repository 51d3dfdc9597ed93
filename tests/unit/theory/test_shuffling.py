"""The central (ε,δ) against the true divergence of tiny shuffled tables and against independent formulas."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.theory import _blanket, _excess, shuffling
from incrowd.theory._excess import mean_excess
from incrowd.theory.profile import Relation
from incrowd.theory.randomisation import Attribute, RetentionReplacement, TransitionMatrix, local_epsilon
from incrowd.theory.shuffling import (
    BLANKET,
    CLONES,
    CLOSED_FORM,
    LOCAL,
    central_delta,
    central_epsilon,
    clones_closed_form,
)


def randomised_response(epsilon: float, size: int) -> RetentionReplacement:
    return RetentionReplacement(math.expm1(epsilon) / (math.expm1(epsilon) + size), size)


# --- the truth, by enumeration ----------------------------------------------------------------------------------


def true_delta(matrix: np.ndarray, records: int, epsilon: float) -> float:
    """The largest hockey-stick divergence between shuffled neighbouring tables: every table, every pair."""
    inputs, size = matrix.shape
    outputs = list(itertools.combinations_with_replacement(range(size), records))
    index = {output: i for i, output in enumerate(outputs)}
    smaller = list(itertools.combinations_with_replacement(range(size), records - 1))
    tables = itertools.combinations_with_replacement(range(inputs), records - 1)
    # joined[i, w]: which multiset arises when w joins the i-th smaller one
    joined = np.array([[index[tuple(sorted((*s, w)))] for w in range(size)] for s in smaller])
    largest = 0.0
    for others in tables:
        law = others_law(matrix, others, smaller)
        laws = np.zeros((inputs, len(outputs)))
        for x in range(inputs):
            np.add.at(laws[x], joined, law[:, None] * matrix[x])
        for p, q in itertools.permutations(laws, 2):
            largest = max(largest, float(np.maximum(0, p - math.exp(epsilon) * q).sum()))
    return largest


def others_law(matrix: np.ndarray, others: tuple[int, ...], shapes: list[tuple[int, ...]]) -> np.ndarray:
    law = dict.fromkeys(shapes, 0.0)
    for outputs in itertools.product(range(matrix.shape[1]), repeat=len(others)):
        law[tuple(sorted(outputs))] += math.prod(matrix[x, w] for x, w in zip(others, outputs, strict=True))
    return np.array(list(law.values()))


def product_matrix(attributes: list[Attribute]) -> np.ndarray:
    matrix = np.ones((1, 1))
    for attribute in attributes:
        matrix = np.kron(matrix, attribute.matrix())
    return matrix


def exact_excess(n: int, mass: float, probabilities: np.ndarray, values: np.ndarray) -> float:
    """E[(L₁+…+L_M)₊]/(n·mass) by enumerating how often each value occurs."""

    def outcomes(kind: int, left: int, weight: float, total: float) -> Iterator[float]:
        if kind == len(values):
            yield weight * (1 - mass) ** left * max(0.0, total)
            return
        for times in range(left + 1):
            chance = math.comb(left, times) * (mass * probabilities[kind]) ** times
            yield from outcomes(kind + 1, left - times, weight * chance, total + times * values[kind])

    return math.fsum(outcomes(0, n, 1.0, 0.0)) / (n * mass)


def likelihood_law(
    attributes: list[RetentionReplacement], epsilon: float, differs: tuple[bool, ...]
) -> tuple[float, np.ndarray, np.ndarray]:
    """γ and the law of L for a pair that differs in the given attributes, from the matrices themselves."""
    matrices = [attribute.matrix() for attribute in attributes]
    domain = list(itertools.product(*(range(a.size) for a in attributes)))
    mass = math.prod(1 - a.retention for a in attributes)
    values = []
    for w in domain:
        first = math.prod(m[0, v] for m, v in zip(matrices, w, strict=True))
        second = math.prod(m[int(d), v] for m, v, d in zip(matrices, w, differs, strict=True))
        values.append((first - math.exp(epsilon) * second) * len(domain))
    rounded, counts = np.unique(np.round(values, 12), return_counts=True)
    return mass, counts / len(domain), rounded


# --- soundness --------------------------------------------------------------------------------------------------


class TestNeverBelowTheTruth:
    @pytest.mark.parametrize("records", [1, 2, 3, 4])
    @pytest.mark.parametrize(("size", "local"), [(2, 0.5), (2, 2.0), (3, 1.0), (4, 1.5), (4, 3.0)])
    def test_one_attribute(self, size: int, local: float, records: int) -> None:
        attribute = randomised_response(local, size)
        for share in (0.0, 0.1, 0.4, 0.8, 0.99):
            true = true_delta(attribute.matrix(), records, share * local)
            promise = central_delta([attribute], records, share * local)
            assert set(promise.by_bound) == {LOCAL, CLONES, BLANKET}
            assert true <= min(promise.by_bound.values()) == promise.delta

    @pytest.mark.parametrize("records", [1, 2, 3])
    @pytest.mark.parametrize(
        "attributes",
        [
            [RetentionReplacement(0.3, 2), RetentionReplacement(0.6, 2)],
            [RetentionReplacement(0.5, 2), RetentionReplacement(0.2, 3)],
            [RetentionReplacement(0.2, 2), RetentionReplacement(0.0, 2)],
        ],
    )
    def test_two_attributes(self, attributes: list[RetentionReplacement], records: int) -> None:
        local = local_epsilon(attributes)
        for share in (0.0, 0.2, 0.6, 0.95):
            true = true_delta(product_matrix(attributes), records, share * local)
            assert true <= central_delta(attributes, records, share * local).delta

    @pytest.mark.parametrize("records", [1, 2, 3])
    @pytest.mark.parametrize("seed", range(3))
    def test_any_matrix(self, seed: int, records: int, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = np.random.default_rng(seed).dirichlet(np.ones(3), size=3) * 0.9 + 0.1 / 3
        matrix = TransitionMatrix(rows)
        for share in (0.0, 0.3, 0.7):
            epsilon = share * matrix.epsilon
            promise = central_delta([matrix], records, epsilon)
            true = true_delta(matrix.matrix(), records, epsilon)
            assert set(promise.by_bound) == {LOCAL, CLONES, BLANKET}
            assert true <= min(promise.by_bound.values()) == promise.delta
            monkeypatch.setattr(_blanket, "MOST_TRIED", 0)
            assert promise.by_bound[BLANKET] <= central_delta([matrix], records, epsilon).by_bound[BLANKET] * (1 + 1e-6)
            monkeypatch.undo()

    @pytest.mark.parametrize("tried", [0, 256])
    @pytest.mark.parametrize("seed", range(3))
    def test_two_matrices(self, seed: int, tried: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_blanket, "MOST_TRIED", tried)
        rng = np.random.default_rng(seed)
        attributes = [TransitionMatrix(rng.dirichlet(np.ones(2), size=2) * 0.9 + 0.05), RetentionReplacement(0.4, 2)]
        attributes.append(TransitionMatrix(rng.dirichlet(np.ones(2), size=2) * 0.8 + 0.1))
        local = local_epsilon(attributes)
        for records, share in itertools.product((1, 2), (0.0, 0.3, 0.7)):
            true = true_delta(product_matrix(attributes), records, share * local)
            assert true <= central_delta(attributes, records, share * local).by_bound[BLANKET]

    def test_a_single_record_is_promised_what_it_has(self) -> None:
        """With one record there is nothing to hide among, and (*) is an equality."""
        attributes = [RetentionReplacement(0.5, 2), RetentionReplacement(0.2, 3)]
        true = true_delta(product_matrix(attributes), 1, 0.3)
        assert true <= central_delta(attributes, 1, 0.3).delta <= (1 + 1e-6) * true

    def test_the_number_of_records_includes_the_replaced_one(self) -> None:
        """The convention off by one would promise less than the truth."""
        attribute = randomised_response(1.5, 4)
        for records in (2, 3, 4):
            true = true_delta(attribute.matrix(), records, 0.4)
            assert (
                central_delta([attribute], records + 1, 0.4).delta
                < true
                <= central_delta([attribute], records, 0.4).delta
            )


def with_absence(matrix: np.ndarray, rate: float) -> np.ndarray:
    """What becomes of a record that is in the table with this probability only; the last output is to be left out."""
    return np.column_stack((rate * matrix, np.full(len(matrix), 1 - rate)))


class TestSampled:
    """Each record is in the table with probability β; tables of n records, of which one is replaced."""

    @pytest.mark.parametrize("records", [1, 2, 3])
    @pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
    def test_never_below_the_truth(self, rate: float, records: int) -> None:
        for law in (randomised_response(1.5, 3), TransitionMatrix([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.4, 0.5]])):
            for share in (0.0, 0.05, 0.3, 0.8):
                epsilon = share * local_epsilon([law])
                true = true_delta(with_absence(law.matrix(), rate), records, epsilon)
                promise = central_delta([law], records, epsilon, rate)
                assert true <= min(promise.by_bound.values()) == promise.delta

    def test_of_one_record_it_is_exact(self) -> None:
        law = randomised_response(1.5, 3)
        true = true_delta(with_absence(law.matrix(), 0.25), 1, 0.3)
        assert true <= central_delta([law], 1, 0.3, 0.25).by_bound[BLANKET] <= (1 + 1e-6) * true

    def test_it_is_no_worse_than_the_theorem_on_samples_of_a_given_size(self) -> None:
        """Balle, Barthe, Gaboardi 2018 for replace-one: m of n records, (ε,δ) gives (ln(1 + (e^ε−1)m/n), δm/n).

        Given how many records are in it, such a table is a sample without replacement of that size.
        """
        laws, n, rate = [RetentionReplacement(0.4, 5)], 20_000, 0.1
        m = int(n * rate * 1.05)
        shuffled = central_epsilon(laws, m, 1e-6 * n / m).epsilon
        theorem = math.log1p(math.expm1(shuffled) * m / n)
        assert 0.5 * theorem < central_epsilon(laws, n, 1e-6, rate).epsilon < theorem

    def test_more_is_promised_of_less(self) -> None:
        laws = [RetentionReplacement(0.6, 4), TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])]
        found = [central_epsilon(laws, 10**5, 1e-6, rate).epsilon for rate in (1.0, 0.5, 0.1, 0.01)]
        assert found == sorted(found, reverse=True)
        assert found[2] < found[0] / 2
        assert central_delta(laws, 10**5, found[2], 0.1).delta <= 1e-6

    def test_the_rate_itself_counts(self) -> None:
        """A bound that forgot that the rate was higher would be below the truth."""
        law, records, epsilon = randomised_response(2.0, 3), 3, 0.2
        true = true_delta(with_absence(law.matrix(), 0.5), records, epsilon)
        assert central_delta([law], records, epsilon, 0.2).delta < true

    def test_bad_rates(self) -> None:
        for rate in (0.0, -0.1, 1.5):
            with pytest.raises(ParameterError):
                central_epsilon([RetentionReplacement(0.5, 2)], 10, 1e-6, rate)


class TestWorstPair:
    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
    def test_no_pair_exceeds_the_one_that_differs_everywhere(self, epsilon: float) -> None:
        attributes = [RetentionReplacement(0.5, 2), RetentionReplacement(0.2, 3), RetentionReplacement(0.4, 2)]
        for records in (1, 2, 3):
            by_pattern = {
                differs: exact_excess(records, *likelihood_law(attributes, epsilon, differs))
                for differs in itertools.product((False, True), repeat=3)
            }
            everywhere = by_pattern[True, True, True]
            assert max(by_pattern.values()) <= everywhere * (1 + 1e-12)
            assert by_pattern[True, True, False] < everywhere
            promised = central_delta(attributes, records, epsilon).by_bound[BLANKET]
            assert everywhere <= promised <= 1.1 * everywhere


# --- sharpness: the numbers are those of the formulas -----------------------------------------------------------


class TestAgainstFormulas:
    @pytest.mark.parametrize("records", [10, 30, 60])
    @pytest.mark.parametrize(
        ("size", "local", "epsilon"), [(3, 1.0, 0.1), (3, 1.0, 0.8), (10, 2.0, 0.5), (5, 0.5, 0.45)]
    )
    def test_the_blanket_as_a_multinomial_sum(self, size: int, local: float, epsilon: float, records: int) -> None:
        """δ ≤ E[((e^ε₀−e^ε)N₀ − (e^(ε₀+ε)−1)N₁ − (e^ε−1)N₂)₊]/n with multinomial N, down to about 1e-18."""
        r = 1 / (math.exp(local) + size - 1)
        counts = np.array([c for c in itertools.product(range(records + 1), repeat=3) if sum(c) <= records])
        all_counts = np.column_stack((counts, records - counts.sum(axis=1)))
        chances = stats.multinomial.pmf(all_counts, records, [r, r, (size - 2) * r, 1 - size * r])
        gains = counts @ [math.exp(local) - math.exp(epsilon), 1 - math.exp(local + epsilon), 1 - math.exp(epsilon)]
        exact = float(chances @ np.maximum(0, gains)) / records
        promised = central_delta([randomised_response(local, size)], records, epsilon).by_bound[BLANKET]
        assert exact <= promised <= 1.02 * exact

    @pytest.mark.parametrize(("records", "local", "epsilon"), [(50, 1.0, 0.5), (400, 2.0, 0.3), (300, 3.0, 1.5)])
    def test_clones_as_stated_by_their_authors(self, records: int, local: float, epsilon: float) -> None:
        """The divergence between (A+Δ, C−A+1−Δ) and (A+1−Δ, C−A+Δ), both directions."""
        keep = math.exp(local) / (math.exp(local) + 1)
        total, heads = np.meshgrid(np.arange(records), np.arange(records), indexing="ij")
        law = stats.binom.pmf(total, records - 1, math.exp(-local)) * stats.binom.pmf(heads, total, 0.5)
        first, second = np.zeros((2, records, records + 1))
        first[:, 1:] += keep * law  # the count of heads, given the total
        first[:, :-1] += (1 - keep) * law
        second[:, 1:] += (1 - keep) * law
        second[:, :-1] += keep * law
        exact = float(np.maximum(0, first - math.exp(epsilon) * second).sum())
        promised = central_delta([randomised_response(local, 3)], records, epsilon).by_bound[CLONES]
        assert exact <= promised <= 1.01 * exact

    @pytest.mark.parametrize(("records", "epsilon"), [(10**6, 0.1), (10**6, 0.3), (10**8, 0.01), (10**8, 0.02)])
    def test_clones_in_large_tables(self, records: int, epsilon: float) -> None:
        """Given M, the sum is a binomial; its tail expectation is two binomial tails."""
        local = 5.0
        gain, loss = math.exp(local) - math.exp(epsilon), math.exp(local + epsilon) - 1
        mean = records * math.exp(-local)
        m = np.arange(int(mean - 14 * math.sqrt(mean)), int(mean + 14 * math.sqrt(mean)))
        least = np.floor(m * loss / (gain + loss)) + 1
        won = m / 2 * stats.binom.sf(least - 2, m - 1, 0.5)  # E[B; B ≥ least] for B ~ Bin(m, ½)
        tail = (gain + loss) * won - loss * m * stats.binom.sf(least - 1, m, 0.5)
        exact = float(stats.binom.pmf(m, records, math.exp(-local)) @ tail) * 2 / (math.exp(local) + 1) / mean
        promised = central_delta([randomised_response(local, 2)], records, epsilon).by_bound[CLONES]
        assert exact <= promised <= 1.03 * exact  # from 1e-2 down to 1e-38

    def test_a_product_in_a_large_table_stays_below_the_chernoff_bound(self) -> None:
        """x₊ ≤ e^{λx−1}/λ gives another proved bound; ours must lie below it and within its known distance."""
        attributes = [RetentionReplacement(0.4, size) for size in (2, 5, 7)]
        for records, epsilon in ((10**5, 0.05), (10**7, 0.005), (10**7, 0.02)):
            mass, probabilities, values = likelihood_law(attributes, epsilon, (True, True, True))
            lambdas = np.exp(np.linspace(-20, 0, 4000))
            growth = mass * np.expm1(np.outer(lambdas, values)) @ probabilities
            chernoff = math.exp((records * np.log1p(growth) - 1 - np.log(lambdas)).min()) / (records * mass)
            promised = central_delta(attributes, records, epsilon).by_bound[BLANKET]
            assert chernoff / 100 < promised < chernoff

    @pytest.mark.parametrize("records", [10**3, 10**5, 10**7])
    @pytest.mark.parametrize("local", [0.5, 2.0, 4.0])
    def test_the_closed_form_only_rounds_off(self, local: float, records: int) -> None:
        promise = central_epsilon([randomised_response(local, 6)], records, 1e-6)
        if CLOSED_FORM in promise.by_bound:
            assert promise.by_bound[CLONES] < promise.by_bound[CLOSED_FORM]
        assert promise.by_bound[BLANKET] <= promise.by_bound[CLONES]

    def test_the_closed_form_has_a_range(self) -> None:
        assert clones_closed_form(5.0, 1000, 1e-6) is None
        assert clones_closed_form(5.0, 10**6, 1e-6) is not None


class TestMeanExcess:
    """The expectation behind both bounds, for laws that have nothing to do with privacy."""

    @pytest.mark.parametrize("seed", range(40))
    def test_random_laws(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        kinds, n = int(rng.integers(1, 4)), int(rng.integers(1, 9))
        mass = float(rng.choice([1.0, 0.9, 0.3, 0.01]))
        probabilities, values = rng.dirichlet(np.ones(kinds)), rng.normal(size=kinds) * 10.0 ** rng.integers(-2, 3)
        values[0] = abs(values[0])
        values *= 0.9 / exact_excess(1, mass, probabilities, np.abs(values))  # so that the bound of 1 does not cut in
        exact = exact_excess(n, mass, probabilities, values)
        assert exact <= mean_excess(n, mass, probabilities, values) <= 1.2 * exact + 1e-9

    def test_nothing_positive(self) -> None:
        assert mean_excess(10, 0.5, np.array([0.5, 0.5]), np.array([0.0, -1.0])) == 0.0

    def test_tiny_results_stay_above_zero(self) -> None:
        assert mean_excess(10**9, 0.5, np.array([0.5, 0.5]), np.array([1.0, -2.0])) == _excess.FLOOR

    def test_merging_values_raises_the_bound_a_little(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(7)
        probabilities, values = rng.dirichlet(np.ones(300)), rng.normal(size=300) - 0.05
        values[:5] *= 30
        whole = mean_excess(2000, 0.3, probabilities, values)
        monkeypatch.setattr(_excess, "_MOST_VALUES", 100)
        merged = mean_excess(2000, 0.3, probabilities, values)
        assert whole * (1 - 1e-6) < merged < 1.01 * whole

    def test_thinning_out_pairs_raises_the_bound_a_little(self, monkeypatch: pytest.MonkeyPatch) -> None:
        attributes = [RetentionReplacement(0.4, size) for size in (2, 3, 5, 7, 4, 3)]
        whole = central_epsilon(attributes, 10**5, 1e-6).epsilon
        monkeypatch.setattr(shuffling, "_MOST_PAIRS", 30)
        monkeypatch.setattr(shuffling, "_POINTS", 60)
        thinned = central_epsilon(attributes, 10**5, 1e-6).epsilon
        assert whole * (1 - 1e-3) < thinned < 1.05 * whole

    @pytest.mark.parametrize("rare", [1e-12, 1e-20, 1e-40])
    def test_a_rare_huge_value_costs_no_more_than_its_mean(self, rare: float) -> None:
        """Tilting by it would be hopeless; capping it costs at most E[(L−c)₊]."""
        probabilities, values = np.array([0.45, 0.55 - rare, rare]), np.array([0.5, -1.0, 1e6])
        exact = exact_excess(25, 0.8, probabilities, values)
        assert exact <= mean_excess(25, 0.8, probabilities, values) <= 1.02 * exact + 2 * rare * 1e6

    def test_what_is_cut_off_is_charged(self) -> None:
        rng = np.random.default_rng(3)
        probabilities = np.append(rng.dirichlet(np.ones(20)), 10.0 ** np.arange(-30, -4))
        values = np.append(rng.normal(size=20) - 0.5, 10.0 ** np.linspace(8, 2, 26))
        capped, lost = _excess.cap(10**5, 0.5, probabilities, values, 1.0)
        assert capped.max() < values.max()
        assert np.array_equal(capped, np.minimum(values, capped.max()))
        assert 0 < float(probabilities @ (values - capped)) <= lost

    def test_many_large_domains_are_still_amplified(self) -> None:
        promise = central_epsilon([RetentionReplacement(0.02, 100)] * 16, 10**6, 1e-8)
        assert local_epsilon([RetentionReplacement(0.02, 100)] * 16) > 17
        assert promise.epsilon < 0.008  # a normal approximation says 0.0062

    def test_spreading_out_keeps_the_mean(self) -> None:
        grid, values = np.array([-2.0, 0.0, 1.0, 5.0]), np.array([-2.0, -0.5, 0.0, 0.25, 4.0, 5.0])
        lower, share = _excess.spread_out(grid, values)
        assert np.allclose(grid[lower] * (1 - share) + grid[lower + 1] * share, values)


# --- the interface ----------------------------------------------------------------------------------------------


class TestCentral:
    ATTRIBUTES = (RetentionReplacement(0.3, 4), RetentionReplacement(0.5, 2))

    def test_epsilon_and_delta_belong_together(self) -> None:
        promise = central_epsilon(self.ATTRIBUTES, 5000, 1e-7)
        assert central_delta(self.ATTRIBUTES, 5000, promise.epsilon).delta <= 1e-7
        assert central_delta(self.ATTRIBUTES, 5000, 0.999 * promise.epsilon).delta > 1e-7
        assert (promise.delta, promise.records, promise.relation) == (1e-7, 5000, Relation.REPLACE_ONE)
        assert promise.by_bound[promise.bound] == promise.epsilon
        assert hash(promise) == hash(promise)

    def test_beyond_the_local_epsilon_nothing_is_left(self) -> None:
        local = local_epsilon(self.ATTRIBUTES)
        assert central_delta(self.ATTRIBUTES, 10, local).delta == 0.0
        assert central_delta(self.ATTRIBUTES, 10, math.nextafter(local, 0)).delta > 0.0

    def test_a_large_delta_needs_no_epsilon(self) -> None:
        assert central_epsilon(self.ATTRIBUTES, 10**6, 0.5).epsilon == 0.0

    def test_uniform_noise_promises_everything(self) -> None:
        promise = central_epsilon([RetentionReplacement(0, 4)], 1, 1e-9)
        assert (promise.epsilon, promise.bound) == (0.0, LOCAL)
        assert central_delta([RetentionReplacement(0, 4)], 1, 0.0).delta == 0.0

    def test_an_attribute_without_retention_changes_nothing(self) -> None:
        with_it = central_epsilon([*self.ATTRIBUTES, RetentionReplacement(0, 9)], 5000, 1e-7)
        assert with_it.epsilon == central_epsilon(self.ATTRIBUTES, 5000, 1e-7).epsilon

    def test_one_record_is_not_amplified(self) -> None:
        promise = central_epsilon(self.ATTRIBUTES, 1, 1e-9)
        assert promise.epsilon == pytest.approx(local_epsilon(self.ATTRIBUTES), rel=1e-3)

    def test_a_mixture_of_matrices_has_a_blanket(self) -> None:
        attributes = [self.ATTRIBUTES[0], TransitionMatrix([[0.6, 0.4], [0.3, 0.7]])]
        promise = central_epsilon(attributes, 10**5, 1e-6)
        assert promise.bound == BLANKET
        assert promise.epsilon < promise.by_bound[CLONES] / 2

    def test_a_written_out_retention_promises_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for tried in (0, 256):
            monkeypatch.setattr(_blanket, "MOST_TRIED", tried)
            written = [TransitionMatrix(attribute.matrix()) for attribute in self.ATTRIBUTES]
            assert central_epsilon(written, 10**5, 1e-6).epsilon == pytest.approx(
                central_epsilon(self.ATTRIBUTES, 10**5, 1e-6).epsilon, rel=2e-4
            )

    def test_large_matrices_promise_more_than_clones(self) -> None:
        """Two attributes of 20 and 8 values that turn into near ones; a million records."""
        near = [
            TransitionMatrix(weights / weights.sum(axis=1, keepdims=True))
            for size in (20, 8)
            for weights in [0.5 ** np.abs(np.subtract.outer(np.arange(size), np.arange(size))) + 0.05]
        ]
        promise = central_epsilon(near, 10**6, 1e-6)
        assert promise.bound == BLANKET
        assert promise.epsilon < 0.4 * promise.by_bound[CLONES]

    def test_many_attributes(self) -> None:
        promise = central_epsilon([RetentionReplacement(0.1, size) for size in (2, 3, 5, 7) * 4], 10**6, 1e-6)
        assert promise.bound == BLANKET
        assert promise.epsilon < promise.by_bound[CLONES] / 2

    def test_a_hopeless_local_epsilon_is_promised_as_it_is(self) -> None:
        attributes = [RetentionReplacement(1 - 1e-15, 2)] * 10
        assert central_epsilon(attributes, 10**6, 1e-6).bound == LOCAL
        assert central_delta(attributes, 10**6, 1.0).delta == 1.0

    def test_certainty_cannot_be_shuffled_away(self) -> None:
        for attribute in (RetentionReplacement(1, 3), TransitionMatrix([[1, 0], [0.5, 0.5]])):
            with pytest.raises(UnreachableError):
                central_epsilon([attribute], 1000, 1e-6)
            with pytest.raises(UnreachableError):
                central_delta([attribute], 1000, 1.0)

    def test_bad_parameters(self) -> None:
        for call in (
            lambda: central_epsilon(self.ATTRIBUTES, 0, 1e-6),
            lambda: central_epsilon(self.ATTRIBUTES, 10, 0.0),
            lambda: central_epsilon(self.ATTRIBUTES, 10, 1.0),
            lambda: central_epsilon([], 10, 1e-6),
            lambda: central_delta(self.ATTRIBUTES, 10, -1.0),
        ):
            with pytest.raises(ParameterError):
                call()
