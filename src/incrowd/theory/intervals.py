"""Intervals for numbers of people, of which some were sampled and some of those are not shown.

All that is used of a sample is monotone: P[Bin(n, p) ≥ x] rises with n and P[Bin(n, p) ≤ x] falls. So if the number of
sampled records X is known only to lie between a and b, the lower end for a and the upper end for b hold whenever those
for X itself would: of what is missing nothing else needs to be assumed.

    low(a)   the least n with P[Bin(n, p) ≥ a] > 2.5%
    high(b)  the largest n with P[Bin(n, p) ≤ b] > 2.5%

P[n < low(a)] ≤ P[n < low(X)] ≤ 2.5%, and likewise above (Clopper, Pearson).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CONFIDENCE = 0.95
SURPRISE = 0.5 * (1.0 - CONFIDENCE)
"""What is less likely than this is taken not to have happened: on either side."""
OWN = 0.8 * SURPRISE
"""The part of it for a cell's own interval where there is a second one, from what the rest of a total leaves …"""
REST = SURPRISE - OWN
"""… and for that one: either may be the wrong one, and what may be missing usually decides the second."""
NORMAL_95 = 1.959963984540054

ANY = 1 << 62
"""No table has more records: as an upper end it says nothing."""

_NUMERICS = 1e-9  # more than the relative error of a tail
_FAR = 1e9  # from so many records on, an end is ten standard deviations away
_NORMAL_FROM = 30  # records, from which a mean is taken to be normal


def sampled_between(
    least: Ints, most: Ints, rate: float, *, surprise: float = SURPRISE, occurring: bool = False
) -> tuple[Ints, Ints]:
    """The ends of an interval for n, of which between `least` and `most` records were sampled at a rate.

    Args:
        least: for each cell, so many were sampled at the least.
        most: and at the most.
        rate: the probability with which each record was sampled.
        surprise: the probability with which either end may be wrong.
        occurring: take the lower end given that something was sampled: for cells that are shown only then.
    """
    high = _high(np.minimum(most, ANY).astype(np.int64), rate, surprise)
    return np.minimum(_low(np.minimum(least, ANY).astype(np.int64), rate, surprise, occurring=occurring), high), high


def _low(x: Ints, rate: float, surprise: float, *, occurring: bool) -> Ints:
    from scipy.special import betainc

    seen = np.maximum(x, 1)

    def enough(n: Ints) -> NDArray[np.bool_]:
        occurs = -np.expm1(n * math.log1p(-rate)) if occurring else 1.0
        likely = betainc(seen, n - seen + 1.0, rate) >= surprise * (1.0 - _NUMERICS) * occurs
        return np.asarray(likely | (occurring & (x == 1)))

    return np.where(x > 0, _first(enough, seen, _reach(seen, rate)), 0)


def _high(x: Ints, rate: float, surprise: float) -> Ints:
    from scipy.special import betainc

    reach = _reach(x, rate)
    near = np.where(x < _FAR, x, 0)

    def too_many(n: Ints) -> NDArray[np.bool_]:
        fewer = betainc(np.maximum(n - near, 0.5), near + 1.0, 1.0 - rate)
        return np.asarray(fewer <= surprise * (1.0 - _NUMERICS)) & (n > near)

    found = _first(too_many, near, _reach(near, rate)) - 1
    absent = absent_at_most(rate, surprise)
    return np.where(x == 0, absent, np.where(x < _FAR, found, reach)).astype(np.int64)


def _reach(x: Ints, rate: float) -> Ints:
    """Further than either end: ten standard deviations away."""
    with np.errstate(over="ignore"):
        reach: Ints = np.minimum(np.ceil((x + 10.0 + 10.0 * np.sqrt(x + 10.0)) / rate), float(ANY)).astype(np.int64)
    return reach


def _first(holds: Any, low: Ints, high: Ints) -> Ints:
    """For each cell the first number from `low` to `high` at which something holds that goes on holding."""
    low, high = low.copy(), high.copy()
    while bool((low < high).any()):
        middle = low + (high - low) // 2  # the sum may not fit 64 bits
        found = holds(middle)
        high = np.where(found, middle, high)
        low = np.where(found, low, middle + 1)
    return low


def noisy_between(counts: Ints, reach: int | Ints) -> tuple[Ints, Ints]:
    """The ends of an interval for numbers of people from noisy counts that are further off on neither side, as a rule.

    Nobody has fewer than none, so a count below zero is taken for zero: its interval would else end at zero too, and
    claim of a rare draw of the noise that the cell is certainly empty. No interval is shorter for it.
    """
    far = np.asarray(reach, dtype=np.int64)
    return np.maximum(counts - far, 0), np.maximum(counts, 0) + far


def absent_at_most(rate: float, surprise: float = SURPRISE) -> int:
    """The largest n of which no record is sampled with a probability above `surprise`, (1−p)^n, rounded up."""
    return math.floor(min(float(ANY), math.log(surprise) / math.log1p(-rate) * (1.0 + _NUMERICS)))


def calibrated(
    ends: tuple[Ints, Ints], rest: tuple[Ints, Ints], total: tuple[int | Ints, int | Ints]
) -> tuple[Ints, Ints]:
    """Intervals made narrower by a total: a cell has what the rest of the table leaves of it.

    Args:
        ends: of each cell, with the surprise `OWN`.
        rest: of all that is not in the cell, with the surprise `REST`.
        total: an interval for all of them; for each cell its own, if they are not parts of the same whole.
    """
    (low, high), (rest_low, rest_high) = ends, rest
    high = np.clip(np.minimum(high, total[1] - rest_low), 0, None)
    return np.minimum(np.maximum(low, total[0] - rest_high), high), high


def sum_between(values: Floats, counts: Floats, rate: float, surprise: float = SURPRISE) -> tuple[float, float]:
    """Ends for the sum of a number over the people of a group, of whom so many with each value were sampled.

    Let all numbers lie in [0, R], as far as they are declared. The sampled sum X, in units of R, is a sum of
    independent parts in [0, 1] with mean μ = p·S/R, so P[X ≥ x] and P[X ≤ x], on their side of μ, are at most
    e^{−μφ(x/μ)} with φ(u) = u·ln u − u + 1 (Chernoff). Only a group that occurs is seen. As no number is above R, it
    has μ/p people or more, and occurs with a probability of 1 − e^{−μ} at least, by which the first is divided; that it
    occurs makes small X no likelier. Numbers of both signs are two such sums, which share what may go wrong.
    """
    signs = [sign for sign in (1.0, -1.0) if (sign * values > 0).any()]
    low = high = 0.0
    for sign in signs:
        parts = np.maximum(sign * values, 0.0)
        most = float(parts.max())
        ends = _mean_between(float(counts @ parts) / most, surprise / len(signs))
        least, largest = (end * most / rate for end in ends)
        low, high = (low + least, high + largest) if sign > 0 else (low - largest, high - least)
    return low, high


def _mean_between(x: float, surprise: float) -> tuple[float, float]:
    """The μ that are not ruled out: on a grid, one step further out."""
    limit = math.log(surprise)
    step = 1e-3
    ends = x if x else 1e-9
    below = ends * np.exp(-step * np.arange(40_000))
    ruled = -below * _phi(x / below) - np.log(-np.expm1(-below)) <= limit
    possible = np.flatnonzero(~ruled)
    low = 0.0 if not len(possible) or possible[-1] == len(below) - 1 else float(below[possible[-1] + 1])
    above = ends - limit + np.sqrt(-2 * limit * ends - limit) * 2  # beyond every μ that is possible
    wide = np.linspace(ends, above, 20_000)
    possible = np.flatnonzero(-wide * _phi(x / wide) > limit)
    return min(low, x), float(wide[min(int(possible[-1]) + 1, len(wide) - 1)]) if len(possible) else above


def _phi(u: Floats) -> Floats:
    return np.asarray(np.where(u > 0, u * np.log(np.where(u > 0, u, 1.0)), 0.0) - u + 1.0)


def mean_margin(records: float, squares: float | None, width: float, rate: float) -> float:
    """How far the mean of people may be from that of those among them who were sampled, with 95%.

    Given how many were sampled, they are a simple random sample. Of few, Hoeffding's bound is used, which holds for
    sampling without replacement (Hoeffding 1963, Section 6). Of more, the normal law, with a deviation that is raised
    by what it may be above the one seen (Maurer, Pontil 2009, Theorem 10) and is never above half the width.

    Args:
        records: how many were sampled at the least.
        squares: the sum of their squared distances from their mean; None if not all are known.
        width: between the least and the largest value that there could be.
        rate: the probability with which each was sampled.
    """
    if records < _NORMAL_FROM:
        return width * math.sqrt(math.log(1.0 / SURPRISE) / (2.0 * max(records, 1.0)))
    spread = width / 2
    if squares is not None:
        seen = math.sqrt(squares / (records - 1.0))
        spread = min(spread, seen + width * math.sqrt(2.0 * math.log(1.0 / SURPRISE) / (records - 1.0)))
    return NORMAL_95 * spread * math.sqrt((1.0 - rate) / records)


def extreme_mean(values: Floats, counts: Floats, more: Floats, *, largest: bool) -> float:
    """The least or largest mean of values, each of which so many have, and up to so many `more`.

    A further person raises the mean exactly if above it, so the extreme takes in all that may be of the values beyond
    some point: these points are tried.
    """
    order = np.argsort(-values if largest else values, kind="stable")
    people = counts.sum() + np.concatenate([[0.0], np.cumsum(more[order])])
    sums = counts @ values + np.concatenate([[0.0], np.cumsum((more * values)[order])])
    means = sums[people > 0] / people[people > 0]
    return float(means.max() if largest else means.min())
