"""Masses and tails of binomial distributions, against fractions."""

import math
from fractions import Fraction

import pytest
from flint import arb, fmpq

from incrowd.theory._balls import precision
from incrowd.theory._binomial import mass, weighted_tail


def ball(number):
    return arb(fmpq(number.numerator, number.denominator))


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (3, 10), (40, 200), (0, 200), (200, 200)])
def test_a_mass_encloses_the_formula_tightly(successes, trials):
    p = Fraction(3, 16)
    true = math.comb(trials, successes) * p**successes * (1 - p) ** (trials - successes)
    with precision():
        found = mass(successes, trials, float(p))
        assert found.overlaps(ball(true))
        assert found.rel_accuracy_bits() > 200


def exact_tail(start, trials, odds, offset, *, upwards, terms):
    """The sum in whole numbers, as many terms of it as matter."""
    weight, total = Fraction(1), Fraction(0)
    unit = 1 << 400
    scaled = unit
    for distance in range(min(terms, (trials - start if upwards else start) + 1)):
        total += Fraction(scaled, unit) * (offset + distance)
        j = start + distance if upwards else start - distance
        weight = Fraction(trials - j, j + 1) * odds if upwards else Fraction(j, trials - j + 1) / odds
        scaled = scaled * weight.numerator // weight.denominator
    return total


@pytest.mark.parametrize("upwards", [True, False])
@pytest.mark.parametrize("offset", [Fraction(0), Fraction(1, 4), Fraction(3)])
@pytest.mark.parametrize(
    ("trials", "p", "away"),
    [
        (3, Fraction(1, 2), 1),
        (40, Fraction(1, 8), 3),
        (2000, Fraction(1, 8), 150),  # most of the support is cut off
        (40_000, Fraction(1, 2), 10),  # close to the mean, where hundreds of terms matter
        (40_000, Fraction(1, 2), 400),
    ],
)
def test_a_tail_is_never_too_small_and_hardly_too_large(trials, p, away, offset, upwards):
    mean = math.ceil(trials * p) if upwards else math.floor(trials * p)
    start = min(trials, mean + away) if upwards else max(0, mean - away)
    true = exact_tail(start, trials, p / (1 - p), offset, upwards=upwards, terms=20 * math.isqrt(trials))
    with precision():
        found = weighted_tail(start, trials, float(p), ball(offset), upwards=upwards) / mass(start, trials, float(p))
        assert found.upper() >= ball(true).lower()
        assert found.upper() <= ball(true).upper() * (1 + arb(2) ** -60) + arb(2) ** -200
