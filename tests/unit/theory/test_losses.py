"""Composed privacy losses: never below the truth, which tiny mechanisms let one enumerate; and broken twins are."""

import itertools
import math
import random
from fractions import Fraction

import mpmath
import pytest

from incrowd.theory import losses as module
from incrowd.theory.crowd import CrowdProfile
from incrowd.theory.losses import ONE, Losses
from incrowd.theory.profile import ApproximateDP, Relation, compose


def growth(epsilon):
    """A fraction at or a little above e^ε: divergences for it are at most those for e^ε."""
    with mpmath.workdps(60):
        value = mpmath.exp(mpmath.mpf(epsilon)) * (1 + mpmath.mpf(10) ** -50)
        return Fraction(int(mpmath.ceil(value * mpmath.mpf(10) ** 55)), 10**55)


def divergence(p, q, factor):
    return sum(max(Fraction(0), a - factor * b) for a, b in zip(p, q, strict=True))


def law(generator, size, denominator=24):
    """A rational law on a few outcomes, zeros included: infinite losses occur."""
    cuts = sorted(generator.randrange(denominator + 1) for _ in range(size - 1))
    return [Fraction(b - a, denominator) for a, b in itertools.pairwise([0, *cuts, denominator])]


def profile_of(p, q, step, points):
    """δ on the grid, rounded up: the divergence for a growth a little below e^ε."""

    def upper(a, b, epsilon):
        exact = divergence(a, b, growth(epsilon) * (1 - Fraction(1, 10**40)))
        number = float(exact)
        return number if Fraction(number) >= exact else math.nextafter(number, 1.0)

    grid = [math.nextafter(j * step, 0.0) for j in range(points)]
    return [upper(p, q, e) for e in grid], [upper(q, p, e) for e in grid]


def product(laws):
    return [math.prod(outcome) for outcome in itertools.product(*laws)]


@pytest.mark.parametrize("seed", range(12))
def test_composition_is_never_below_the_truth_and_close_to_it(seed):
    generator = random.Random(seed)
    step, points = 0.02, 180
    pairs = [(law(generator, size), law(generator, size)) for size in (2, 3, 4, 3)]
    covering = [Losses.covering(*profile_of(p, q, step, points), step) for p, q in pairs]
    together = covering[0]
    for part in covering[1:]:
        together = together.compose(part)
    p, q = product(p for p, _ in pairs), product(q for _, q in pairs)
    for epsilon in (0.0, 0.013, 0.5, 1.0, 2.2, 3.0):
        truth = divergence(p, q, growth(epsilon))
        found = together.delta(epsilon)
        assert Fraction(found) >= truth
        assert found <= float(truth) + 0.01


@pytest.mark.parametrize("seed", range(6))
def test_the_second_mechanism_may_depend_on_the_output_of_the_first(seed):
    """Each output is followed by a mechanism of its own; what covers all of these covers the choice."""
    generator = random.Random(100 + seed)
    step, points = 0.02, 180
    p, q = law(generator, 3), law(generator, 3)
    followers = [(law(generator, 3), law(generator, 3)) for _ in range(3)]
    profiles = [profile_of(a, b, step, points) for a, b in followers]
    worst = [[max(column) for column in zip(*side, strict=True)] for side in zip(*profiles, strict=True)]
    together = Losses.covering(*profile_of(p, q, step, points), step).compose(Losses.covering(*worst, step))
    first = [p[o] * x for o in range(3) for x in followers[o][0]]
    second = [q[o] * x for o in range(3) for x in followers[o][1]]
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        assert Fraction(together.delta(epsilon)) >= divergence(first, second, growth(epsilon))


def test_a_single_mechanism_is_covered_at_every_epsilon():
    """Between the grid points too, where only convexity in e^ε helps; and a wiggle in δ does no harm."""
    generator = random.Random(5)
    step = 0.25
    for _ in range(20):
        p, q = law(generator, 4), law(generator, 4)
        forward, backward = profile_of(p, q, step, 16)
        forward = [min(1.0, delta * (1 + generator.random() * 1e-9)) for delta in forward]
        covering = Losses.covering(forward, backward, step)
        for epsilon in (0.0, 0.1, 0.25, 0.6, 1.99, 3.7, 8.0):
            assert Fraction(covering.delta(epsilon)) >= divergence(p, q, growth(epsilon))


def height(losses, epsilon):
    """H as it is defined, for any real ε, to 50 digits."""
    with mpmath.workdps(50):
        total = mpmath.mpf(losses.infinite)
        for place, mass in enumerate(losses.masses, losses.low):
            loss = place * mpmath.mpf(losses.step)
            if loss > epsilon:
                total += mass * -mpmath.expm1(epsilon - loss)
        return total / ONE


def some_losses(generator, size=40):
    masses = tuple(generator.randrange(ONE // size) for _ in range(size))
    return Losses(0.1, generator.randrange(-25, -10), masses, generator.randrange(ONE // 1000))


@pytest.mark.parametrize("seed", range(5))
def test_a_coarser_grid_and_shorter_ends_only_raise_delta(seed, monkeypatch):
    losses = some_losses(random.Random(seed))
    monkeypatch.setattr(module, "_NEGLIGIBLE", ONE // 50)
    for changed in (losses.coarser(), losses.trimmed()):
        assert changed != losses
        for epsilon in (-5.0, -1.1, -0.31, 0.0, 0.05, 0.17, 0.8, 1.5, 3.0):
            assert height(changed, epsilon) >= height(losses, epsilon)


def test_delta_is_what_the_definition_says():
    losses = some_losses(random.Random(9))
    for epsilon in (0.0, 0.05, 0.1, 0.17, 0.8, 1.4, 3.0):
        found, wanted = losses.delta(epsilon), height(losses, epsilon)
        assert wanted <= found <= wanted * (1 + 1e-15)
    assert Losses(0.1, -5, (ONE // 2, ONE // 4), ONE // 4).delta(0.3) == 0.25  # all losses are below


def randomised_response(times):
    """Losses of exactly ±ε₀, which the grid holds: nothing is lost but by rounding."""
    local = 0.5
    with mpmath.workdps(60):
        yes = 1 / (1 + mpmath.exp(-mpmath.mpf(local)))
        truth = {}
        for epsilon in (0.0, 0.4, 1.3):
            terms = (
                mpmath.binomial(times, j) * yes**j * (1 - yes) ** (times - j) * -mpmath.expm1(epsilon - loss)
                for j in range(times + 1)
                if (loss := (2 * j - times) * mpmath.mpf(local)) > epsilon
            )
            truth[epsilon] = mpmath.fsum(terms)
        first = mpmath.ceil(mpmath.tanh(mpmath.mpf(local) / 2) * 2**53) / 2**53
    return truth, [float(first), 0.0, 0.0], local


def falls_short(times=9):
    """Whether the composed δ is below the truth somewhere. A little is given away at first: δ(0) was rounded."""
    truth, values, step = randomised_response(times)
    together = Losses.covering(values, values, step).times(times)
    return any(mpmath.mpf(together.delta(epsilon)) < delta for epsilon, delta in truth.items())


def with_few_bits(monkeypatch):
    """So few that a rounding the wrong way shows."""
    monkeypatch.setattr(module, "BITS", 24)
    monkeypatch.setattr(module, "ONE", 1 << 24)
    monkeypatch.setattr(module, "_NEGLIGIBLE", 0)


def test_rounding_never_falls_short_even_with_few_bits(monkeypatch):
    assert not falls_short()
    with_few_bits(monkeypatch)
    assert not falls_short()
    assert not falls_short(times=1000)


def test_a_twin_that_rounds_down_is_caught(monkeypatch):
    with_few_bits(monkeypatch)
    monkeypatch.setattr(module, "_unit", lambda product: product >> 24)
    assert falls_short(times=1000)


def test_a_twin_that_drops_what_it_cuts_off_is_caught(monkeypatch):
    monkeypatch.setattr(module, "_NEGLIGIBLE", ONE // 1000)
    assert not falls_short(times=30)
    trimmed = Losses.trimmed

    def forgetful(self):
        kept = trimmed(self)
        return Losses(kept.step, kept.low, kept.masses, self.infinite)

    monkeypatch.setattr(Losses, "trimmed", forgetful)
    assert falls_short(times=30)


def test_losses_beyond_what_e_to_the_loss_holds_are_covered():
    """ε of 400, both ways: e^{2ε} is no float."""
    covering = Losses.covering([1.0, 0.5, 0.0], [1.0, 0.5, 0.0], 400.0)
    assert 0.5 <= covering.delta(400.0) <= 0.5 + 1e-12
    assert covering.times(2).delta(400.0) >= 0.5


def test_a_twin_with_chords_below_the_profile_is_caught(monkeypatch):
    """Leaving the largest loss out of the corners puts the last chord below the profile."""
    hull = module._hull
    monkeypatch.setattr(module, "_hull", lambda heights, step: hull(heights, step)[:-2] or [0])
    truth, values, step = randomised_response(1)
    covering = Losses.covering(values, values, step)
    broken = Losses(covering.step, covering.low, covering.masses, 0)
    assert mpmath.mpf(broken.delta(0.4)) < truth[0.4]


@pytest.mark.parametrize(
    "parts",
    [
        [CrowdProfile(17, 0.3)] * 10,
        [CrowdProfile(18, 0.2)] * 2 + [ApproximateDP(0.3, 1e-9, Relation.ADD_REMOVE)] * 3,
    ],
)
def test_agrees_with_dp_accounting(parts):
    """Google's library composes the same profiles by Fourier transforms, pessimistically but for its rounding."""
    import numpy as np
    from dp_accounting.pld import pld_pmf

    step, top = 2e-3, 2000
    grid = np.arange(top + 1) * step
    singles = []
    for part in set(parts):
        right = np.array([part.removal(e) for e in grid])
        left = np.array([1 - math.exp(-e) * (1 - part.addition(e)) for e in grid[1:]])
        deltas = np.maximum.accumulate(np.minimum(1.0, np.concatenate((left[::-1], right)))[::-1])[::-1]
        one = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -top, top, deltas).to_dense_pmf()
        singles.append(one.self_compose(parts.count(part), 1e-15))
    composed = singles[0] if len(singles) == 1 else singles[0].compose(singles[1], 1e-15)
    ours = compose(parts)
    for epsilon in (0.2, 0.7, 1.5):
        assert ours.removal(epsilon) == pytest.approx(composed.get_delta_for_epsilon(epsilon), rel=1e-3)


def test_losses_that_spread_far_are_thinned_out(monkeypatch):
    """The grid becomes coarser when there are too many points, and little is lost by it."""
    monkeypatch.setattr(module, "_LONGEST", 1 << 12)
    times, each = 2_000, 0.05
    found = compose([ApproximateDP(each, 0.0, Relation.ADD_REMOVE)] * times)
    removal = found._losses["removal"]
    assert len(removal.masses) <= module._LONGEST
    assert removal.step >= 16e-4
    mean, spread = times * each**2 / 2, math.sqrt(times) * each
    epsilon = mean + 4 * spread
    # The losses are nearly Gaussian with mean μ²/2 and standard deviation μ.
    above, below = (math.erfc((epsilon / spread + sign * spread / 2) / math.sqrt(2)) / 2 for sign in (-1, 1))
    assert found.removal(epsilon) == pytest.approx(above - math.exp(epsilon) * below, rel=0.05)
