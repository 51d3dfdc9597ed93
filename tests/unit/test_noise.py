"""Exact noise: its law against sums in fractions of e, its rare path, and broken twins that the test rejects."""

import decimal
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from incrowd import noise
from incrowd.core.errors import ParameterError
from incrowd.noise import DiscreteGaussian, DiscreteLaplace, draw
from incrowd.randomness import RandomSource

LAWS = [DiscreteGaussian(1), DiscreteGaussian(9), DiscreteLaplace(Fraction(1, 2)), DiscreteLaplace(Fraction(1))]


def probabilities(law, reach):
    x = np.arange(-60, 61)
    weights = (
        np.exp(-(x**2) / (2 * law.variance))
        if isinstance(law, DiscreteGaussian)
        else np.exp(-float(law.decay) * abs(x))
    )
    weights /= weights.sum()
    return {int(v): w for v, w in zip(x, weights, strict=True) if abs(v) <= reach}


def chi_square(drawn, law):
    """The statistic over the values within three deviations, and its degrees of freedom."""
    reach = 3 if law == DiscreteGaussian(1) else 8
    expected = probabilities(law, reach)
    found = [int((drawn == v).sum()) for v in expected]
    means = [len(drawn) * p for p in expected.values()]
    rest, rest_mean = len(drawn) - sum(found), len(drawn) - sum(means)
    total = sum((f - m) ** 2 / m for f, m in zip(found, means, strict=True)) + (rest - rest_mean) ** 2 / rest_mean
    return total, len(found)


@pytest.mark.parametrize("law", LAWS)
def test_the_law_is_the_stated_one_and_another_is_noticed(law):
    """Beyond degrees + 6·√(2·degrees), a statistic comes about once in 10⁶ runs; the seed is fixed."""
    drawn = draw(RandomSource.seeded(3), law, 200_000)
    statistic, degrees = chi_square(drawn, law)
    limit = degrees + 6 * math.sqrt(2 * degrees)
    assert statistic < limit
    other = DiscreteGaussian(10) if law == DiscreteGaussian(9) else DiscreteGaussian(4)
    assert chi_square(draw(RandomSource.seeded(3), other, 200_000), law)[0] > limit


@pytest.mark.parametrize("law", LAWS)
def test_bounds_enclose_the_distribution(law):
    middle, bounds = noise._bounds(law, 192)
    below, above = bounds[middle]  # P[X ≤ 0]
    weights = probabilities(law, 60)
    exact = sum(w for v, w in weights.items() if v <= 0)
    assert below <= above
    assert above - below < 2**40
    assert below / 2**192 == pytest.approx(exact, rel=1e-12)


class Scripted:
    """A source whose first words are given."""

    def __init__(self, words):
        self.given = list(words)

    def words(self, size):
        taken, self.given = self.given[:size], self.given[size:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("law", LAWS)
def test_digits_that_are_those_of_a_bound_are_settled_by_more_of_them(law):
    middle, bounds = noise._bounds(law, 192)
    place = middle + 1
    leading = bounds[place][0] >> 128
    following = (bounds[place][0] >> 64) & (2**64 - 1)
    just_below, just_above = (
        noise._by_inversion(Scripted([leading, word, 7]), law, 1)[0] for word in (following - 1, following + 1)
    )
    assert (just_below, just_above) == (place - middle, place - middle + 1)


def test_a_seed_gives_the_same_noise_and_sources_differ():
    one, two, other = (draw(RandomSource.seeded(s), DiscreteGaussian(100), 50) for s in (1, 1, 2))
    assert (one == two).all()
    assert (one != other).any()


def test_noise_beyond_all_tables_is_refused(monkeypatch):
    monkeypatch.setattr(noise, "_LONGEST", 100)
    with pytest.raises(ParameterError):
        draw(RandomSource.seeded(1), DiscreteGaussian(10**8), 40_000)


def far(observed: dict[int, int], law: dict[int, float]) -> float:
    """How far counts are from a law: χ² over its degrees of freedom, cells of fewer than 10 left out."""
    size = sum(observed.values())
    cells = [(observed.get(x, 0), size * p) for x, p in law.items() if size * p >= 10]
    return sum((o - e) ** 2 / e for o, e in cells) / (len(cells) - 1)


def gaussian_law(variance: Fraction) -> dict[int, float]:
    weights = {x: math.exp(-x * x / (2 * float(variance))) for x in range(-200, 201)}
    return {x: w / sum(weights.values()) for x, w in weights.items()}


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(2), Fraction(361, 4)])
def test_the_discrete_gaussian_has_its_law_and_no_other(variance):
    drawn = noise._one_by_one(RandomSource.seeded(11), variance, 20_000)
    observed = dict(zip(*np.unique(drawn, return_counts=True), strict=True))
    assert far(observed, gaussian_law(variance)) < 1.8
    assert far(observed, gaussian_law(variance * Fraction(6, 5))) > 1.8


def test_a_choice_has_probabilities_in_proportion_to_powers_of_e():
    source, exponents = RandomSource.seeded(12), [Fraction(0), Fraction(5, 2), Fraction(-1, 3), Fraction(2)]
    observed = Counter(noise.choose(source, exponents) for _ in range(8000))
    weights = [math.exp(e) for e in exponents]
    law = {i: w / sum(weights) for i, w in enumerate(weights)}
    assert far(observed, law) < 4
    assert far(observed, {i: law[(i + 1) % 4] for i in law}) > 4


class Words:
    """A source of words that are given."""

    def __init__(self, *words):
        self.given = list(words)

    def words(self, number):
        return np.array([self.given.pop(0) for _ in range(number)], dtype=np.uint64)


def test_a_choice_is_the_one_that_its_bits_say():
    """The digits around each bound, from sums of powers of e to 60 decimal places."""
    exponents = [Fraction(0), Fraction(3, 2), Fraction(-1, 3), Fraction(-200), Fraction(1)]
    with decimal.localcontext() as context:
        context.prec = 60
        weights = [(decimal.Decimal(e.numerator) / e.denominator).exp() for e in exponents]
        bounds = [int(sum(weights[: i + 1]) / sum(weights) * 2**64) for i in range(4)]
    for index, bound in enumerate(bounds[:3]):
        assert noise.choose(Words(bound - 1), exponents) == index
        # Beyond the bound; the fourth has next to no room.
        assert noise.choose(Words(bound + 1), exponents) == (index + 1 if index < 2 else 4)
        # On it, further digits decide.
        assert noise.choose(Words(bound, 0), exponents) == index
        assert noise.choose(Words(bound, 2**64 - 1), exponents) == (index + 1 if index < 2 else 4)
    assert noise.choose(Words(0), exponents) == 0
    assert noise.choose(Words(2**64 - 1), exponents) == 4
    assert [noise.choose(Words(word), [Fraction(7)] * 2) for word in (2**63 - 1, 2**63)] == [0, 1]
    assert noise.choose(Words(5), [Fraction(-9)]) == 0


def test_powers_of_e():
    for numerator in (1, 3):
        drawn = [noise._Dice(RandomSource.seeded(seed)).decayed(numerator, 2) for seed in range(4000)]
        assert abs(sum(drawn) / 4000 - math.exp(-numerator / 2)) < 0.03


@pytest.mark.parametrize("variance", [0, -1, Fraction(2**100)])
def test_a_variance_out_of_range_is_refused(variance):
    with pytest.raises(ParameterError):
        DiscreteGaussian(variance)


def test_nothing_to_choose_from_is_refused():
    with pytest.raises(ParameterError):
        noise.choose(RandomSource(), [])


def test_few_numbers_of_a_wide_law_are_drawn_one_by_one_and_have_the_same_law():
    """Both ways, from the same seed, on either side of the limit."""
    few, many = (draw(RandomSource.seeded(5), DiscreteGaussian(10_000), size) for size in (399, 4000))
    assert abs(float(few.std()) - 100) < 15
    assert abs(float(many.std()) - 100) < 5
