"""The draws of the real source against SciPy's laws, and broken twins against the same tests.

Each comparison is a chi-square test at `FALSE_ALARM` = 10⁻⁹, with at least 50 expected in every bin; together they
raise a false alarm with probability below 10⁻⁷. A twin is wrong by so much that a test would miss it still more rarely.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from incrowd import randomness
from incrowd.randomness import RandomSource

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-9


def chi_square(observed: np.ndarray, probabilities: np.ndarray) -> float:
    """The p-value, with neighbouring bins joined until each expects 50."""
    total = int(observed.sum())
    assert abs(probabilities.sum() - 1) < 1e-9
    seen: list[float] = []
    expected: list[float] = []
    for count, probability in zip(observed, probabilities, strict=True):
        if expected and expected[-1] < 50:
            seen[-1] += count
            expected[-1] += total * probability
        else:
            seen.append(count)
            expected.append(total * probability)
    if expected[-1] < 50:
        last, rest = seen.pop(), expected.pop()
        seen[-1] += last
        expected[-1] += rest
    statistic = sum((a - b) ** 2 / b for a, b in zip(seen, expected, strict=True))
    return float(scipy.stats.chi2.sf(statistic, len(seen) - 1))


def accepted(p_value: float) -> bool:
    return p_value >= FALSE_ALARM


def binomial_p_value(source: RandomSource, n: int, beta: float, cells: int, true_beta: float | None = None) -> float:
    drawn = source.binomial(np.full(cells, n), beta)
    law = scipy.stats.binom.pmf(np.arange(n + 1), n, beta if true_beta is None else true_beta)
    return chi_square(np.bincount(drawn, minlength=n + 1), law)


class Repeating:
    """Broken bits: every digit of U is the same."""

    kind = "broken"

    def __init__(self) -> None:
        self.words = RandomSource().words(1 << 16)

    def fill(self, words: np.ndarray) -> None:
        words[:] = self.words[: len(words)]


class Doubled:
    """Broken bits: each comes twice."""

    kind = "broken"

    def fill(self, words: np.ndarray) -> None:
        even = RandomSource().words(len(words)) & np.uint64(0x5555_5555_5555_5555)
        words[:] = even | even << np.uint64(1)


CASES = [(1, 0.3, 400_000), (5, 0.3, 200_000), (100, 0.1, 100_000), (64, 0.5, 100_000), (1000, 0.05, 20_000)]


@pytest.mark.parametrize(("n", "beta", "cells"), CASES)
def test_binomial(n, beta, cells):
    assert accepted(binomial_p_value(RandomSource(), n, beta, cells))


@pytest.mark.parametrize(("n", "beta", "cells"), CASES)
def test_binomial_with_a_rate_five_percent_larger_is_rejected(n, beta, cells):
    assert not accepted(binomial_p_value(RandomSource(), n, 1.05 * beta, cells, true_beta=beta))


def test_binomial_with_too_few_digits_is_rejected(monkeypatch):
    whole = randomness._binary_digits
    monkeypatch.setattr(randomness, "_binary_digits", lambda p: itertools.islice(whole(p), 6))
    assert not accepted(binomial_p_value(RandomSource(), 100, 0.1, 100_000))


def test_binomial_without_the_last_partial_word_is_rejected(monkeypatch):
    whole = randomness._ones_between
    monkeypatch.setattr(randomness, "_ones_between", lambda words, ends: whole(words, ends // 64 * 64))
    assert not accepted(binomial_p_value(RandomSource(), 100, 0.1, 100_000))


def test_binomial_cut_one_record_short_is_rejected(monkeypatch):
    whole = RandomSource._trials

    def short(self, size, p):
        words = whole(self, size, p)
        words[: size // 64] &= np.uint64(2**63 - 1)  # the last trial of every word is lost
        return words

    monkeypatch.setattr(RandomSource, "_trials", short)
    assert not accepted(binomial_p_value(RandomSource(), 64, 0.5, 100_000))


def test_binomial_from_repeating_bits_is_rejected():
    assert not accepted(binomial_p_value(RandomSource(_bits=Repeating()), 5, 0.3, 200_000))


def large_cells_p_value(beta: float, true_beta: float) -> float:
    """Through the distribution function into ten bins of nearly equal weight."""
    n, cells = (1 << 18) + 5, 1000
    drawn = RandomSource().binomial(np.full(cells, n), beta)
    edges = scipy.stats.binom.ppf(np.arange(1, 10) / 10, n, true_beta)
    law = np.diff(scipy.stats.binom.cdf(edges, n, true_beta), prepend=0, append=1)
    return chi_square(np.bincount(np.searchsorted(edges, drawn), minlength=10), law)


def test_large_cells():
    assert accepted(large_cells_p_value(0.2, 0.2))


def test_large_cells_with_a_rate_one_percent_larger_are_rejected():
    assert not accepted(large_cells_p_value(0.202, 0.2))


def test_large_cells_by_counting(monkeypatch):
    monkeypatch.setattr(randomness, "_LARGE", 1)
    assert accepted(binomial_p_value(RandomSource(), 100, 0.1, 10_000))
    monkeypatch.setattr(RandomSource, "_ones", lambda self, size: int(self.integers(size + 1, 1)[0]))
    assert not accepted(binomial_p_value(RandomSource(), 100, 0.1, 10_000))


def neighbours_p_value(source: RandomSource, beta: float) -> float:
    trials = source.bernoulli(beta, 400_000).reshape(-1, 2)
    seen = np.bincount(trials @ np.array([2, 1]), minlength=4)
    return chi_square(seen, np.array([(1 - beta) ** 2, beta * (1 - beta), beta * (1 - beta), beta**2]))


@pytest.mark.parametrize("beta", [0.3, 0.5, 0.999, 0.01])
def test_neighbouring_trials_are_independent(beta):
    assert accepted(neighbours_p_value(RandomSource(), beta))


def test_neighbouring_trials_from_doubled_bits_are_rejected():
    assert not accepted(neighbours_p_value(RandomSource(_bits=Doubled()), 0.3))


def test_bytes_are_uniform():
    uniform = np.full(256, 1 / 256)
    words = RandomSource().words(200_000)
    assert accepted(chi_square(np.bincount(words.view(np.uint8), minlength=256), uniform))
    words[::2] &= np.uint64(2**63 - 1)
    assert not accepted(chi_square(np.bincount(words.view(np.uint8), minlength=256), uniform))


@pytest.mark.parametrize("bound", [7, 3 * 2**61])
def test_integers(bound):
    bins = min(bound, 12)
    seen = np.bincount(RandomSource().integers(bound, 200_000) // (bound // bins), minlength=bins)
    assert accepted(chi_square(seen, np.full(bins, 1 / bins)))


def test_integers_without_rejection_are_rejected():
    bound = 3 * 2**61
    remainders = (RandomSource().words(200_000) % np.uint64(bound)).astype(np.int64)
    assert not accepted(chi_square(np.bincount(remainders // (bound // 12), minlength=12), np.full(12, 1 / 12)))


def orders_p_value(draw: Callable[[], tuple[int, ...]]) -> float:
    seen = Counter(draw() for _ in range(24_000))
    return chi_square(np.array([seen[order] for order in itertools.permutations(range(4))]), np.full(24, 1 / 24))


def test_permutations():
    source = RandomSource()
    assert accepted(orders_p_value(lambda: tuple(source.permutation(4).tolist())))


def test_permutations_by_swapping_with_anyone_are_rejected():
    partners = iter(RandomSource().integers(4, 4 * 24_000).tolist())

    def naive() -> tuple[int, ...]:
        order = [0, 1, 2, 3]
        for i in range(4):
            j = next(partners)
            order[i], order[j] = order[j], order[i]
        return tuple(order)

    assert not accepted(orders_p_value(naive))


WEIGHTS = [Fraction(1, 3), Fraction(1, 7), Fraction(2, 7), Fraction(5, 21)]


def spread_p_value(table: np.ndarray) -> float:
    n = int(table[0].sum())
    outcomes = [x for x in itertools.product(range(n + 1), repeat=len(WEIGHTS)) if sum(x) == n]
    law = scipy.stats.multinomial.pmf(outcomes, n, [float(w) for w in WEIGHTS])
    seen = Counter(map(tuple, table.tolist()))
    return chi_square(np.array([seen[x] for x in outcomes]), law)


def test_multinomial():
    assert accepted(spread_p_value(RandomSource().multinomial(np.full(100_000, 3), WEIGHTS)))


def test_multinomial_without_conditioning_is_rejected():
    """One category after the other, but with its share of the whole instead of its share of what is left."""
    source = RandomSource()
    left = np.full(100_000, 3)
    columns = []
    for weight in WEIGHTS[:-1]:
        columns.append(source.binomial(left, weight))
        left = left - columns[-1]
    assert not accepted(spread_p_value(np.column_stack([*columns, left])))


def test_categories():
    law = np.array([float(w) for w in WEIGHTS])
    source = RandomSource()
    assert accepted(chi_square(np.bincount(source.categorical(WEIGHTS, 1_000_000), minlength=4), law))
    twin = [WEIGHTS[0] * Fraction(21, 20), *WEIGHTS[1:]]
    assert not accepted(chi_square(np.bincount(source.categorical(twin, 1_000_000), minlength=4), law))


def without_replacement_p_value(draw: Callable[[], np.ndarray]) -> float:
    counts, size = [3, 4, 5], 5
    outcomes = [x for x in itertools.product(range(size + 1), repeat=3) if sum(x) == size]
    possible = [x for x in outcomes if all(a <= b for a, b in zip(x, counts, strict=True))]
    law = scipy.stats.multivariate_hypergeom.pmf(possible, counts, size)
    seen = Counter(tuple(draw().tolist()) for _ in range(6_000))
    if set(seen) - set(possible):
        return 0.0
    return chi_square(np.array([seen[x] for x in possible]), law)


def test_samples_without_replacement(monkeypatch):
    source = RandomSource()
    assert accepted(without_replacement_p_value(lambda: source.sample_without_replacement([3, 4, 5], 5)))

    def from_the_front(self, cells, size):
        upto = np.minimum(np.cumsum(cells), size)
        return np.diff(upto, prepend=0)

    monkeypatch.setattr(RandomSource, "_distinct", from_the_front)
    assert not accepted(without_replacement_p_value(lambda: source.sample_without_replacement([3, 4, 5], 5)))
