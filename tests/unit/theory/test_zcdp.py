"""Zero-concentrated differential privacy and bounded range, against direct computation."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.errors import UnreachableError
from incrowd.theory.profile import compose
from incrowd.theory.zcdp import BoundedRange, GaussianCounts, ZeroConcentrated, choice_cost, counts_cost, largest_rho


def gaussian_delta(rho, epsilon):
    """The exact δ of the Gaussian mechanism with this ρ (Balle, Wang)."""
    mu = math.sqrt(2 * rho)

    def phi(x):
        return 0.5 * math.erfc(-x / math.sqrt(2))

    return phi(-epsilon / mu + mu / 2) - math.exp(epsilon) * phi(-epsilon / mu - mu / 2)


@pytest.mark.parametrize("rho", [0.001, 0.02, 0.5, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
def test_the_conversion_lies_above_the_gaussian_mechanism_and_not_far(rho, epsilon):
    bound = ZeroConcentrated(Fraction(rho)).delta(epsilon)
    exact = gaussian_delta(rho, epsilon)
    assert bound >= exact
    if exact > 1e-12:
        assert bound < 12 * exact


def test_the_conversion_is_the_best_of_all_orders():
    rho, epsilon = 0.02, 1.0
    orders = 1 + np.geomspace(1e-2, 1e4, 20001)
    logs = (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
    assert ZeroConcentrated(Fraction(rho)).delta(epsilon) == pytest.approx(math.exp(logs.min()), rel=1e-6)


def test_the_largest_rho_is_used_up():
    rho = largest_rho(1.0, 1e-6)
    assert float(rho) == pytest.approx(0.0243560, rel=1e-5)
    assert ZeroConcentrated(rho).delta(1.0) <= 1e-6 < ZeroConcentrated(rho * Fraction(1001, 1000)).delta(1.0)
    with pytest.raises(UnreachableError):
        largest_rho(1e-300, 1e-300)


def counts(variance, reach):
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * variance))
    return weights / weights.sum()


@pytest.mark.parametrize("variance", [1, 2, 7, 511])
def test_the_profile_of_gaussian_counts_is_that_of_a_count_that_moves_by_one(variance):
    profile, law = GaussianCounts(variance), counts(variance, 40 * math.isqrt(variance + 3))
    # At (2x − 1)/(2σ²) the worst event changes.
    grid = [0.0, 1e-3, 0.05, 0.3, 1.1, *((2 * x - 1) / (2 * variance) for x in (1, 2, 5))]
    for epsilon in grid:
        found = np.maximum(np.roll(law, 1) - math.exp(epsilon) * law, 0).sum()
        assert found - 1e-15 <= profile.delta(epsilon) <= found + 1e-13
        assert profile.delta(epsilon) <= max(1e-60, ZeroConcentrated(counts_cost(variance)).delta(epsilon))
    assert profile.removal(0.2) == profile.addition(0.2)


def test_the_profile_of_gaussian_counts_is_never_nothing_and_never_below_the_truth():
    profile = GaussianCounts(3)
    assert profile.delta(60.0) > 0.0
    for epsilon in (4.0, 6.0, 9.0):  # P[X ≥ s − 1] − e^ε P[X ≥ s], by its first terms in logarithms
        least = math.floor(3 * epsilon + 0.5) + 1
        total = counts(3, 200).max()
        first = total * math.exp(-((least - 1) ** 2) / 6) * (1 - math.exp(epsilon - (2 * least - 1) / 6))
        assert first <= profile.delta(epsilon) < 2 * first


def test_gaussian_counts_composed_keep_to_the_exact_profile_of_all_together():
    """The loss of several depends on the sum of their outcomes alone, so their exact δ is that of a sum."""
    together, law = compose([GaussianCounts(20)] * 4), counts(20, 120)
    none, one = law, np.roll(law, 1)
    for _ in range(2):
        none, one = np.convolve(none, none), np.convolve(one, one)
    for epsilon in (0.1, 0.7, 1.5):
        found = np.maximum(one - math.exp(epsilon) * none, 0).sum()
        assert found <= together.delta(epsilon) < 1.02 * found


def test_very_wide_noise_is_taken_as_zcdp_has_it_and_lists_nothing(monkeypatch):
    """A forged certificate may state any variance: no memory is given to it."""
    monkeypatch.setattr("incrowd.theory.zcdp._gaussian_tails", None)
    for variance in (10**11, 10**30, 10**300):
        for epsilon in (1e-6, 1.0):
            assert 0.0 < GaussianCounts(variance).delta(epsilon) <= 1e-4
        assert compose([GaussianCounts(variance)] * 3).delta(1.0) < 1e-20


def test_where_tails_are_listed_no_more_the_profile_does_not_fall(monkeypatch):
    listed = [GaussianCounts(10_000).delta(epsilon) for epsilon in (0.0, 0.005, 0.02)]
    monkeypatch.setattr("incrowd.theory.zcdp._LARGEST_LISTED", 9_999)
    assert all(exact <= GaussianCounts(10_000).delta(e) for exact, e in zip(listed, (0.0, 0.005, 0.02), strict=True))


def exponential(scores, exponent):
    weights = np.exp(exponent * np.array(scores) / 2)
    return weights / weights.sum()


@pytest.mark.parametrize("exponent", [0.3, 1.0, 2.5])
def test_every_choice_keeps_to_the_profile_and_some_choice_reaches_it(exponent):
    profile, worst = BoundedRange(Fraction(exponent)), {}
    grid = [0.0, exponent / 3, 0.9 * exponent, exponent]
    for scores in itertools.product((0, 4), repeat=3):
        for moves in itertools.product((-1, 0, 1), repeat=3):
            p = exponential(scores, exponent)
            q = exponential([s + m for s, m in zip(scores, moves, strict=True)], exponent)
            for epsilon in grid:
                found = np.maximum(p - math.exp(epsilon) * q, 0).sum()
                assert found <= profile.delta(epsilon) + 1e-15
                worst[epsilon] = max(worst.get(epsilon, 0.0), found)
    # A mechanism with two outputs whose odds move by e reaches the profile at its own ε.
    epsilon = exponent / 3
    t = (exponent + epsilon) / 2
    p1 = (1 - math.exp(t - exponent)) / (1 - math.exp(-exponent))
    assert p1 * (1 - math.exp(epsilon - t)) == pytest.approx(profile.delta(epsilon), rel=1e-12)
    assert profile.delta(exponent) == 0.0


def test_costs():
    assert counts_cost(50) == Fraction(1, 100)
    assert choice_cost(Fraction(1, 2)) == Fraction(1, 32)
    # The Rényi divergence of a choice never exceeds α·e²/8.
    p, q = exponential((0, 3, 1), 0.8), exponential((1, 2, 1), 0.8)
    for order in (1.5, 2.0, 8.0):
        divergence = math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)
        assert divergence <= order * float(choice_cost(Fraction(8, 10)))
