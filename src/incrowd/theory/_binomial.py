"""Binomial probabilities with proved errors, however far out in the tail and however large n is.

One mass is a ball. Neighbouring masses follow by exact ratios, in whole numbers that are rounded up; a sum of positive
terms therefore keeps its relative accuracy, and is never too small.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from incrowd.core.errors import InternalError
from incrowd.theory._balls import precision

if TYPE_CHECKING:
    from flint import arb

_BITS = 256
_ONE = 1 << _BITS
_STRIDE = 32  # terms between two looks at whether the rest may be cut off
_NEGLIGIBLE = 64  # bits: the rest is cut off, and its bound added, when that is 2⁻⁶⁴ of the sum,
_LEAST = 1 << 32  # or 2⁻²²⁴ of the first mass
_LEAST_SHARE = 200  # bits: a term of a sum that is rounded down, below which the rest does not matter
_CERTAIN = 60.0  # by Chernoff, P[Bin < k] ≤ exp(−(mean − k)²/(2 mean)): below 10⁻¹³ beyond this


def mass(successes: int, trials: int, probability: float) -> arb:
    """P[Bin(trials, probability) = successes], for 0 < probability < 1."""
    from flint import arb

    p, failures = arb(probability), trials - successes
    choose = arb(trials + 1).lgamma() - arb(successes + 1).lgamma() - arb(failures + 1).lgamma()
    return (choose + successes * p.log() + failures * (-p).log1p()).exp()


def weighted_tail(start: int, trials: int, probability: float, offset: arb, *, upwards: bool) -> arb:
    """Σ f(j) · (offset + |j − start|), from `start` to the end of the support; only its upper end is meant.

    f is the mass function of Bin(trials, probability), and `start` is on the far side of its mode: masses fall. The sum
    runs up to `trials` or down to 0. The offset is not negative.
    """
    first, plain, moved = tail_sums(start, trials, probability, upwards)
    return first * (offset * plain + moved) / _ONE


@lru_cache(1 << 12)
def tail_sums(start: int, trials: int, probability: float, upwards: bool) -> tuple[arb, int, int]:
    """f(start), and the sums of f(j)/f(start) and of |j − start| times it, in units of 2⁻²⁵⁶ and never too small.

    What is cut off is bounded by a geometric series and added. A profile asks for the same sums at many ε.
    """
    with precision():
        first = mass(start, trials, probability)
    success, whole = probability.as_integer_ratio()
    failure = whole - success
    weight, plain, moved = _ONE, 0, 0
    for distance in range((trials - start if upwards else start) + 1):
        plain += weight
        moved += distance * weight
        if upwards:
            numerator, denominator = (trials - start - distance) * success, (start + distance + 1) * failure
        else:
            numerator, denominator = (start - distance) * failure, (trials - start + distance + 1) * success
        weight = -(-weight * numerator // denominator)
        if distance % _STRIDE == _STRIDE - 1:
            # Ratios of consecutive masses fall along the tail, and so do ratios of consecutive distances: from here on
            # each term is at most numerator/denominator · (distance+1)/distance times the one before it.
            numerator, denominator = numerator * (distance + 1), denominator * distance
            if numerator < denominator:
                rest = -(-weight * denominator // (denominator - numerator))
                if rest * (distance + 1) <= max(moved >> _NEGLIGIBLE, _LEAST):
                    plain, moved = plain + rest, moved + rest * (distance + 1)
                    break
            elif weight > _ONE:
                raise InternalError("a binomial tail was summed through its mode")
    return first, plain, moved


def tail_below(start: int, trials: int, probability: float, *, upwards: bool) -> arb:
    """Σ f(j)/f(start), from `start` to the end of the support, or a little less.

    Every term is rounded down, and terms that add less than 2⁻²⁰⁰ to the sum end it.
    """
    from flint import arb

    success, whole = probability.as_integer_ratio()
    failure = whole - success
    weight, total = _ONE, 0
    for distance in range((trials - start if upwards else start) + 1):
        total += weight
        if upwards:
            weight = weight * (trials - start - distance) * success // ((start + distance + 1) * failure)
        else:
            weight = weight * (start - distance) * failure // ((trials - start + distance + 1) * success)
        if weight <= total >> _LEAST_SHARE:
            break
    return arb(total) / _ONE


def tail(at_least: int, trials: int, probability: float) -> float:
    """P[Bin(trials, probability) ≥ at_least] to a dozen digits, for pictures and rules of thumb.

    To import SciPy takes longer than hundreds of these.
    """
    mean = trials * probability
    if at_least > trials:
        return 0.0
    if at_least <= 0 or probability == 1 or (at_least < mean and (mean - at_least) ** 2 > _CERTAIN * mean):
        return 1.0
    upwards = at_least > mean
    start = at_least if upwards else at_least - 1
    with precision():
        share = mass(start, trials, probability) * tail_below(start, trials, probability, upwards=upwards)
    beyond = float(share.mid())
    return beyond if upwards else 1.0 - beyond
