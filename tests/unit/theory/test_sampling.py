"""The exact rate of a plain sample, against brute force from the definition."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.theory import _sampling_events as events
from incrowd.theory.sampling import (
    classify,
    good_sample,
    is_private,
    largest_rate,
    observation_6_table,
    sample_delta,
    sample_epsilon,
    sample_ratio,
    theorem_promise,
    theorem_rate,
)

Table = tuple[int, ...]


def spread(total: int, places: int) -> Iterator[Table]:
    """All ways to put `total` rows into `places` cells."""
    if places == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in spread(total - first, places - 1):
            yield (first, *rest)


def ratio_by_definition(table: Table, sample: Table, c: int) -> Fraction | float:
    """max over P, V, V′ of Pr[S|T→V]/Pr[S|T→V′]; rows may also take one value that the table lacks."""
    n, s = (*table, 0), (*sample, 0)
    worst: Fraction | float = Fraction(1)
    for taken in spread(c, len(n)):
        if any(t > m for t, m in zip(taken, n, strict=True)):
            continue
        left = [m - t for m, t in zip(n, taken, strict=True)]
        likelihoods = [
            math.prod(math.comb(m + a, x) for m, a, x in zip(left, given, s, strict=True))
            for given in spread(c, len(n))
        ]
        if max(likelihoods) == 0:
            continue  # neither table can have produced the sample, whatever is written
        if min(likelihoods) == 0:
            return math.inf
        worst = max(worst, Fraction(max(likelihoods), min(likelihoods)))
    return worst


def ratio_within_cells(table: Table, sample: Table, c: int) -> Fraction | float:
    """The worst ratio if all c rows had to be moved from one cell and given back to it."""
    worst = Fraction(1)
    for n, s in zip(table, sample, strict=True):
        if s and s > n - c:
            return math.inf
        if s:
            worst = max(worst, math.prod((Fraction(n - i, n - i - s) for i in range(c)), start=Fraction(1)))
    return worst


def samples_of(table: Table) -> list[Table]:
    return list(itertools.product(*(range(n + 1) for n in table)))


def mass(table: Table, sample: Table, p: float) -> float:
    return math.prod(math.comb(n, s) * p**s * (1 - p) ** (n - s) for n, s in zip(table, sample, strict=True))


def delta_by_definition(ratios: dict[Table, Fraction | float], table: Table, p: float, epsilon: float) -> float:
    limit = 1 + Fraction(repr(epsilon))
    return math.fsum(mass(table, s, p) for s, ratio in ratios.items() if ratio > limit)


TINY = {
    1: [(1,), (2,), (5,), (1, 1, 1), (2, 3), (4, 1, 6), (3, 3, 5), (7, 2, 1, 1)],
    2: [(2,), (5,), (1, 1), (1, 2, 4), (2, 3), (4, 6), (3, 3, 5), (8, 1, 1)],
    3: [(3,), (6,), (1, 1, 1), (1, 2, 4), (4, 6), (3, 5, 2), (7, 4)],
}
# Tables on which the cells interact: c rows moved within one cell are not the worst case.
MIXING = {2: [(3, 10), (3, 12, 3), (4, 14), (3, 40), (5, 6, 17)], 3: [(4, 9), (4, 4, 9), (5, 11)]}


def cases(tables: dict[int, list[Table]]) -> list[tuple[int, Table]]:
    return [(c, table) for c, chosen in tables.items() for table in chosen]


@pytest.mark.parametrize(("c", "table"), cases(TINY) + cases(MIXING))
def test_delta_equals_the_definition(c: int, table: Table) -> None:
    ratios = {s: ratio_by_definition(table, s, c) for s in samples_of(table)}
    steps = sorted({float(r - 1) for r in ratios.values() if 1 < r < math.inf})
    epsilons = [e * tilt for e in steps for tilt in (1 - 1e-9, 1 + 1e-9)] + [0.25, 0.5, 1.0, 2.0, 3.0]
    for epsilon, p in itertools.product(epsilons, (0.03, 0.4)):
        truth = delta_by_definition(ratios, table, p, epsilon)
        found = sample_delta(table, p, epsilon, c)
        assert found.exact
        assert found.delta_at_least <= truth * (1 + 1e-13)
        assert found.delta >= truth * (1 - 1e-13)
        assert found.delta == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize(("c", "table"), cases(TINY) + cases(MIXING))
def test_ratio_equals_the_definition(c: int, table: Table) -> None:
    for sample in samples_of(table):
        truth = ratio_by_definition(table, sample, c)
        found = sample_ratio(table, sample, c)
        assert found >= truth - 1
        assert found == pytest.approx(float(truth - 1), rel=1e-12, abs=1e-300)


def test_moving_rows_within_one_cell_is_not_always_the_worst() -> None:
    table, sample = (3, 10), (1, 4)
    assert ratio_within_cells(table, sample, 2) == 3
    assert ratio_by_definition(table, sample, 2) == Fraction(22, 7)
    assert sample_ratio(table, sample, 2) == pytest.approx(22 / 7 - 1)
    # A criterion that looked at one cell at a time would promise too small a δ.
    naive = math.fsum(mass(table, s, 0.2) for s in samples_of(table) if ratio_within_cells(table, s, 2) > 3)
    assert sample_delta(table, 0.2, 2.0, 2).delta > 1.01 * naive


def test_within_one_cell_is_the_worst_if_one_table_is_the_true_one() -> None:
    for c, table in ((2, (3, 10)), (3, (4, 9))):
        n = (*table, 0)
        for sample in samples_of(table):
            s = (*sample, 0)
            true = math.prod(math.comb(m, x) for m, x in zip(n, s, strict=True))
            worst: Fraction | float = Fraction(1)
            for taken, given in itertools.product(spread(c, len(n)), repeat=2):
                other = [m - t + g for m, t, g in zip(n, taken, given, strict=True)]
                if any(t > m for t, m in zip(taken, n, strict=True)):
                    continue
                likelihood = math.prod(math.comb(m, x) for m, x in zip(other, s, strict=True))
                ratios = (Fraction(likelihood, true), Fraction(true, likelihood) if likelihood else math.inf)
                worst = max(worst, *ratios)
            assert worst == ratio_within_cells(table, sample, c)


@pytest.mark.parametrize(
    ("c", "table", "work"),
    [(3, (4, 30), 1000), (4, (5, 28), 1000), (5, (6, 30), 1000), (2, (3, 40), 0), (2, (4, 7, 60), 3)],
)
def test_where_delta_is_only_a_bound_it_says_so(
    c: int, table: Table, work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MIXTURE_WORK", work)
    ratios = {s: ratio_by_definition(table, s, c) for s in samples_of(table)}
    steps = sorted({float(r - 1) for r in ratios.values() if 1.9 < r < 7.2})
    bounds = 0
    for epsilon in (e * tilt for e in steps for tilt in (1 - 1e-9, 1 + 1e-9)):
        found = sample_delta(table, 0.15, epsilon, c)
        truth = delta_by_definition(ratios, table, 0.15, epsilon)
        assert found.delta_at_least <= truth * (1 + 1e-13)
        assert truth * (1 - 1e-13) <= found.delta
        bounds += not found.exact
        assert not found.exact or found.delta == pytest.approx(truth, rel=1e-10)
    assert bounds > 0


def test_ties_between_cells_are_private() -> None:
    # At ε = 5 the worst mixture of these two cells is 3·(20/14)·(21/15) = 6 exactly.
    table, c, p = (5, 19), 4, 0.15
    ratios = {s: ratio_by_definition(table, s, c) for s in samples_of(table)}
    assert Fraction(6) in ratios.values()
    found = sample_delta(table, p, 5.0, c)
    assert found.exact
    assert found.delta == pytest.approx(delta_by_definition(ratios, table, p, 5.0), rel=1e-10)


# A table with a long tail of small counts: 32 of its 323 distinct counts have fragile states at ε = 0.5.
LONG_TAIL = np.maximum(1, np.floor(1e6 / (2.6 * np.arange(1, 1001) ** 1.5))).astype(np.int64)


@pytest.mark.parametrize(("pools", "looser"), [(0, 1.05), (1, 1.0), (4, 1.0), (100, 1.0)])
def test_pooled_fragile_states_are_on_the_safe_side(pools: int, looser: float, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = sample_delta(LONG_TAIL, 0.008, 0.5, 2)
    assert exact.exact
    monkeypatch.setattr(events, "MIXTURE_WORK", pools * np.unique(LONG_TAIL).size)
    pooled = sample_delta(LONG_TAIL, 0.008, 0.5, 2)
    assert pooled.exact == (pools == 100)
    assert pooled.delta >= exact.delta * looser * (1 - 1e-9)
    assert pooled.delta_at_least <= exact.delta


@pytest.mark.parametrize(("epsilon", "p"), [(1.54, 0.2), (4.04, 0.3), (4.2, 0.3)])
def test_a_pool_is_as_unsafe_as_its_most_fragile_state(
    epsilon: float, p: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = [*range(6, 30), *[100] * 10]
    exact = sample_delta(counts, p, epsilon, 2)
    monkeypatch.setattr(events, "MIXTURE_WORK", 25)  # one pool
    pooled = sample_delta(counts, p, epsilon, 2)
    assert (exact.exact, pooled.exact) == (True, False)
    assert pooled.delta > exact.delta


def test_an_inexact_rate_still_has_both_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = largest_rate(LONG_TAIL, 0.2, 0.05, 2)
    monkeypatch.setattr(events, "MIXTURE_WORK", 0)
    pooled = largest_rate(LONG_TAIL, 0.2, 0.05, 2)
    assert (exact.exact, pooled.exact) == (True, False)
    assert pooled.rate < 0.2 * exact.rate  # what weighing the fragile states one by one is worth here
    assert exact.rate < pooled.rate_at_most * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1 / 3, 0.5, 0.7, 1.0, 2.0, 1e-3, 12.345])
@pytest.mark.parametrize("c", [1, 2, 3, 7])
def test_thresholds_are_exact_on_ties(epsilon: float, c: int) -> None:
    limit = 1 + Fraction(repr(epsilon))
    n = np.arange(1, 400)
    found = events.thresholds(n, limit - 1, c)
    for rows, cap in zip(n.tolist(), found.tolist(), strict=True):
        allowed = [s for s in (cap, cap + 1) if ratio_within_cells((rows,), (s,), c) <= limit]
        assert allowed == [cap]


def test_the_promise_is_the_printed_number() -> None:
    # 3 of 13 rows give a ratio of exactly 1.3; the float 0.3 is a hair below 3/10.
    assert Fraction(0.3) < Fraction(3, 10)
    assert sample_delta([13], 0.1, 0.3).delta == pytest.approx(
        math.fsum(mass((13,), (s,), 0.1) for s in range(4, 14)), rel=1e-12
    )


def test_floors_stay_exact_beyond_64_bits() -> None:
    n = np.array([1, 3, 999_999_999_999, 10**12])
    for share in (Fraction(1, 3), Fraction(10**40 - 1, 10**40), Fraction(repr(0.12345678901234567))):
        assert events.floor_times(n, share).tolist() == [int(x) * share.numerator // share.denominator for x in n]


@pytest.mark.parametrize(
    ("n", "cap", "p"),
    [
        (7, 0, 1e-9),
        (50, 12, 1e-4),
        (1000, 333, 0.2775),
        (1000, 333, 0.01),
        (10**6, 333_333, 0.331),
        (10**7, 3, 1e-8),
        (10**7, 38, 3.9e-6),
        (10**9, 10, 1.1e-8),
        (10**12, 500, 3e-10),
    ],
)
def test_tails_keep_their_relative_error(n: int, cap: int, p: float) -> None:
    with mpmath.workdps(50):
        term = mpmath.binomial(n, cap + 1) * mpmath.mpf(p) ** (cap + 1) * (1 - mpmath.mpf(p)) ** (n - cap - 1)
        truth, j = mpmath.mpf(0), cap + 1
        while j <= n and term > truth * mpmath.mpf(10) ** -30:
            truth += term
            term *= mpmath.mpf(n - j) / (j + 1) * p / (1 - mpmath.mpf(p))
            j += 1
        found = float(events.tail(np.array([n]), np.array([cap]), p)[0])
        if truth < events.LEAST_TAIL:
            assert found == events.LEAST_TAIL
        else:
            assert abs(found / truth - 1) <= 1e-13 * math.sqrt(n) + 2e-16 * n


def test_cells_left_out_as_negligible_do_not_matter() -> None:
    # Counts over nine orders of magnitude: only the small ones can go wrong.
    from scipy.special import betainc

    counts = np.unique(np.geomspace(20, 10**9, 400).astype(np.int64))
    for p in (1e-6, 1e-3, 0.05, 0.3):
        caps = counts // 3
        tails = betainc(caps + 1.0, counts - caps.astype(float), p)
        with np.errstate(divide="ignore"):
            truth = -math.expm1(np.log1p(-tails).sum())
        assert sample_delta(counts, p, 0.5).delta == pytest.approx(truth, rel=1e-6)
        assert sample_delta(counts, p, 0.5).delta >= truth


def test_tiny_deltas_are_not_lost_to_cancellation() -> None:
    # P[Bin(100, 1e-6) > 33], ten cells.
    truth = 10 * mpmath.binomial(100, 34) * mpmath.mpf("1e-6") ** 34
    assert sample_delta([100] * 10, 1e-6, 0.5).delta == pytest.approx(float(truth), rel=1e-3)


def test_rates_far_too_high_are_certain_to_fail() -> None:
    assert sample_delta([1000] * 100, 0.9, 0.5).delta == 1.0
    assert sample_delta([1000] * 100, 0.9, 0.5).delta_at_least > 0.999999
    assert sample_delta([5, 5], 1.0, 0.5).delta == 1.0


@pytest.mark.parametrize("c", [1, 2, 3])
@pytest.mark.parametrize("table", [(40, 60, 60), (1, 5, 100), (3, 10, 25, 25), (500,) * 7])
def test_the_largest_rate_is_safe_and_no_larger_one_is(c: int, table: Table) -> None:
    found = largest_rate(table, 0.8, 0.01, c)
    assert found.delta == sample_delta(table, found.rate, 0.8, c).delta <= 0.01
    assert found.rate < found.rate_at_most <= found.rate * (1 + 1e-8)
    assert sample_delta(table, found.rate_at_most, 0.8, c).delta_at_least > 0.01
    assert found.exact


def test_unique_rows_leave_almost_no_rate() -> None:
    # Every row is unique: any sampled row gives it away, so 1 − (1−p)^n ≤ δ.
    found = largest_rate([1] * 50, 0.5, 0.05)
    assert found.rate == pytest.approx(-math.expm1(math.log1p(-0.05) / 50), rel=1e-9)


@pytest.mark.parametrize("c", [1, 2])
def test_epsilon_of_a_planned_sample(c: int) -> None:
    table, p, delta = (6, 9, 14), 0.1, 0.05
    ratios = {s: ratio_by_definition(table, s, c) for s in samples_of(table)}
    steps = sorted({r - 1 for r in ratios.values() if r < math.inf})
    smallest = next(e for e in steps if math.fsum(mass(table, s, p) for s, r in ratios.items() if r > 1 + e) <= delta)
    found = sample_epsilon(table, p, delta, c)
    assert found.exact
    assert Fraction(repr(found.epsilon)) >= smallest
    assert Fraction(repr(math.nextafter(found.epsilon, 0.0))) < smallest
    assert found.delta == sample_delta(table, p, found.epsilon, c).delta <= delta


def test_a_sample_that_is_probably_empty_promises_everything() -> None:
    found = sample_epsilon([30, 40], 1e-6, 0.01)
    assert (found.epsilon, found.exact) == (0.0, True)
    assert found.delta == pytest.approx(7e-5, rel=1e-3)


def test_a_sample_of_unique_rows_promises_nothing() -> None:
    with pytest.raises(UnreachableError) as caught:
        sample_epsilon([1] * 1000 + [10**6], 0.01, 0.05)
    assert caught.value.code == "unreachable"
    assert caught.value.details["delta_for_any_epsilon"] == pytest.approx(1 - 0.99**1000, rel=1e-6)


def test_unbounded_and_trivial_ratios() -> None:
    assert sample_ratio([5, 4], [0, 0]) == 0.0
    assert sample_ratio([5, 4], [5, 0]) == math.inf
    assert sample_ratio([5, 4], [4, 0], 2) == math.inf
    assert sample_ratio([2, 40], [0, 1], 3) < math.inf  # a cell smaller than c that is not in the sample


def test_theorems_count_classes_of_cells() -> None:
    counts = [5, 50, 500, 100_000]
    log_term = math.log(4 / 0.025)
    classes = classify(counts, 0.01, 0.1, 0.05)
    assert 2 * log_term / 0.1 == pytest.approx(101.5, abs=0.1)
    assert 12 * log_term / 0.01 == pytest.approx(6090, abs=1)
    assert (classes.rare, classes.infrequent, classes.common) == (2, 1, 1)
    borderline = [math.floor(2 * log_term / 0.1), math.floor(2 * log_term / 0.1) + 2, 500, 100_000]
    assert classify(borderline, 0.01, 0.1, 0.05).rare == 1
    assert classify(borderline, 0.01, 0.1, 0.05, changed_rows=2).rare == 2


def test_good_samples() -> None:
    counts = [5, 500, 100_000]
    log_term = math.log(3 / 0.025)
    most_infrequent = math.floor(500 * 0.01 + 2 * log_term)
    most_common = math.floor(1000 + math.sqrt(3 * 1000 * log_term))
    good = good_sample(counts, [0, most_infrequent, most_common], 0.01, 0.1, 0.05)
    assert good.good
    assert good.epsilon == pytest.approx(2 * (0.01 + 0.1))
    assert good.epsilon >= sample_ratio(counts, [0, most_infrequent, most_common])
    bad = good_sample(counts, [1, most_infrequent + 1, most_common + 1], 0.01, 0.1, 0.05)
    assert (bad.good, bad.rare, bad.infrequent, bad.common) == (False, 1, 1, 1)
    assert good_sample(counts, [0, 0, 0], 0.3, 0.3, 0.05).epsilon is None  # p + ε ≥ ½: Lemma 1 says nothing


def test_theorem_rates_never_promise_more_than_asked() -> None:
    for counts, c, epsilon in itertools.product(([1000] * 50, [3, 40, 90, 5000]), (1, 2, 10), (0.05, 0.5, 3.0)):
        found = theorem_rate(counts, epsilon, 0.05, c)
        assert 0 < found.rate < 0.5
        assert found.epsilon <= epsilon
        assert found.epsilon_printed <= found.epsilon
        assert found.rate <= largest_rate(counts, epsilon, 0.05, c).rate


def test_a_theorem_that_does_not_apply_says_so() -> None:
    with pytest.raises(UnreachableError, match="Theorem 3 needs"):
        theorem_promise([1000] * 10, 0.5, 0.05)
    with pytest.raises(UnreachableError, match="Theorem 7 needs"):
        theorem_promise([1000] * 10, 0.49, 0.05, 2)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: largest_rate([], 0.5, 0.05), "parameter-range"),
        (lambda: largest_rate([3, 0], 0.5, 0.05), "parameter-range"),
        (lambda: largest_rate([10**13], 0.5, 0.05), "parameter-range"),
        (lambda: largest_rate([1.5, 2.0], 0.5, 0.05), "parameter-type"),
        (lambda: largest_rate([[1, 2]], 0.5, 0.05), "parameter-type"),
        (lambda: largest_rate([True, True], 0.5, 0.05), "parameter-type"),
        (lambda: largest_rate([4, 5], 0.0, 0.05), "parameter-range"),
        (lambda: largest_rate([4, 5], 0.5, 1.0), "parameter-range"),
        (lambda: largest_rate([4, 5], 0.5, 0.05, 0), "parameter-range"),
        (lambda: largest_rate([4, 5], 0.5, 0.05, 10), "parameter-combination"),
        (lambda: sample_delta([4, 5], 0.0, 0.5), "parameter-range"),
        (lambda: sample_epsilon([4, 5], 1.1, 0.5), "parameter-range"),
        (lambda: sample_ratio([4, 5], [1]), "parameter-combination"),
        (lambda: sample_ratio([4, 5], [1, 6]), "parameter-combination"),
        (lambda: sample_ratio([4, 5], [1, -1]), "parameter-range"),
        (lambda: observation_6_table(1, 3, 10), "parameter-range"),
    ],
)
def test_bad_input_is_one_clear_error(call: object, code: str) -> None:
    assert callable(call)
    with pytest.raises(ParameterError) as caught:
        call()
    assert caught.value.code == code


def test_a_rate_without_proof_is_refused() -> None:
    with pytest.raises(UnreachableError, match="larger δ"):
        largest_rate([4, 5], 0.5, 1e-305)
    assert largest_rate([4, 5], 0.5, 1e-250).delta <= 1e-250


@pytest.mark.parametrize("delta", [1e-261, 1e-286, 1e-290, 1e-300, 5e-324])
def test_a_delta_that_floats_cannot_tell_is_refused_on_any_table(delta: float) -> None:
    for counts in ([4, 5], [1], [10**6] * 3, [3000, 70, 12]):
        with pytest.raises(UnreachableError):
            largest_rate(counts, 0.5, delta)
        with pytest.raises(UnreachableError):
            sample_epsilon(counts, 1e-9, delta)


@pytest.mark.parametrize("n", [10, 1000, 30_000])
def test_tails_that_lose_their_digits_are_not_used(n: int) -> None:
    """Down to 1e-310, where scipy's own tails are wrong by up to everything: a tail is never too small."""
    cap = n // 3
    for power in range(-310, -250, 4):
        with mpmath.workdps(40):
            log = (power * mpmath.log(10) - mpmath.log(mpmath.binomial(n, cap + 1))) / (cap + 1)
            p = float(mpmath.exp(log))
            term = mpmath.binomial(n, cap + 1) * mpmath.mpf(p) ** (cap + 1) * (1 - mpmath.mpf(p)) ** (n - cap - 1)
            truth, j = mpmath.mpf(0), cap + 1
            while j <= n and term > truth * mpmath.mpf(10) ** -30:
                truth += term
                term *= mpmath.mpf(n - j) / (j + 1) * p / (1 - mpmath.mpf(p))
                j += 1
            found = float(events.tail(np.array([n]), np.array([cap]), p)[0])
            assert found * (1 + 1e-13 * math.sqrt(n) + 2e-16 * n) >= truth


@pytest.mark.parametrize("c", [201, 1800, 10**9])
def test_no_more_rows_at_once_than_can_be_weighed(c: int) -> None:
    for call in (
        lambda: largest_rate([10**6] * 100, 0.5, 0.05, c),
        lambda: sample_delta([10**6] * 100, 0.01, 0.5, c),
        lambda: sample_epsilon([10**6] * 100, 0.01, 0.05, c),
        lambda: sample_ratio([10**6], [1], c),
    ):
        with pytest.raises(ParameterError, match="rows_unknown") as caught:
            call()
        assert caught.value.code == "parameter-range"
    assert largest_rate([10**6] * 100, 0.5, 0.05, 200).rate > 0


def test_more_rows_at_once_than_there_are_tells_no_numbers() -> None:
    with pytest.raises(ParameterError) as caught:
        largest_rate([1], 0.5, 0.05, 2)
    assert caught.value.code == "parameter-combination"
    assert "rows_unknown" in caught.value.message
    assert not any(digit in str(caught.value) for digit in "0123456789")
    assert "fewer rows" not in str(caught.value)


@pytest.mark.parametrize("c", [1, 2, 3])
def test_a_given_sample_is_private_iff_no_ratio_exceeds_the_promise(c: int) -> None:
    counts = (3, 5, 4)
    seen = set()
    for drawn in itertools.product(*(range(n + 1) for n in counts)):
        worst = ratio_by_definition(counts, drawn, c)
        for epsilon in (0.5, 1.0, 2.0, 3.0):
            expected = worst <= 1 + Fraction(repr(epsilon))
            seen.add((expected, worst == 1 + Fraction(repr(epsilon))))
            assert is_private(counts, drawn, epsilon, c) == expected
    assert seen >= {(True, True), (True, False), (False, False)}  # some are private by a hair
