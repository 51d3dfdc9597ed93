"""Binomial probabilities to more digits than a float holds.

A probability mass is computed once with 60 decimal digits and neighbouring masses follow by exact ratios, so a
sum of positive terms keeps its relative accuracy however far out in the tail it lies and however large n is.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from functools import lru_cache

import numpy as np

from incrowd.errors import InternalError
from incrowd.guarantees._numbers import EPSILON_MACHINE

DIGITS = 60
# An explicit context: the caller's own decimal settings must not change a promise.
CONTEXT = decimal.Context(prec=DIGITS, rounding=decimal.ROUND_HALF_EVEN, Emin=-(10**12), Emax=10**12)
_FIRST_CHUNK = 256
_NEGLIGIBLE = 1e-18


def log_pmf(successes: int, trials: int, probability: Decimal) -> Decimal:
    """ln P[Bin(trials, probability) = successes], for 0 < probability < 1."""
    with decimal.localcontext(CONTEXT):
        failures = trials - successes
        choose = _log_factorial(trials) - _log_factorial(successes) - _log_factorial(failures)
        return choose + successes * probability.ln() + failures * (1 - probability).ln()


@lru_cache(maxsize=4096)
def _log_factorial(n: int) -> Decimal:
    with decimal.localcontext(CONTEXT):
        if n < 64:
            return Decimal(math.factorial(n)).ln()
        # Stirling's series for ln Γ(n+1): the error is below the first omitted term, under 1e-40 for n ≥ 64.
        x = Decimal(n)
        series = (x + Decimal("0.5")) * x.ln() - x + _HALF_LOG_TWO_PI
        power = x
        for numerator, denominator in _STIRLING:
            series += Decimal(numerator) / (denominator * power)
            power *= x * x
        return series


# B_2m / (2m(2m−1)) for m = 1, 2, ...
_STIRLING = (
    (1, 12),
    (-1, 360),
    (1, 1260),
    (-1, 1680),
    (1, 1188),
    (-691, 360360),
    (1, 156),
    (-3617, 122400),
    (43867, 244188),
    (-174611, 125400),
    (77683, 5796),
    (-236364091, 1506960),
)
_HALF_LOG_TWO_PI = Decimal("0.91893853320467274178032973640561763986139747363778341281715154")


def weighted_tail(start: int, trials: int, odds: float, offset: float, *, upwards: bool) -> tuple[float, float]:
    """Σ f(j)/f(start) · (offset + |j − start|), from `start` to the end of the support.

    f is the mass function of Bin(trials, p) with odds = p/(1−p). The sum runs up to `trials` or down to 0; every
    term is non-negative. What is cut off is bounded by a geometric series and added, so the sum is never too
    small by truncation.

    Returns:
        the sum, and a bound on its relative rounding error.
    """
    total = 0.0
    weight = 1.0  # f(j)/f(start) at the first j of the chunk
    done = 0
    length = trials - start if upwards else start  # how many further terms exist
    chunk = _FIRST_CHUNK
    while True:
        size = min(chunk, length - done + 1)
        distance = done + np.arange(size, dtype=np.float64)
        if upwards:
            j = start + distance
            ratio = (trials - j) * odds / (j + 1.0)
        else:
            j = start - distance
            ratio = j / ((trials - j + 1.0) * odds)
        weights = weight * np.concatenate(([1.0], np.cumprod(ratio[:-1])))
        total += float(np.dot(weights, offset + distance))
        done += size
        if done > length:
            break
        weight = float(weights[-1] * ratio[-1])
        # Ratios of consecutive masses fall along the tail, and so do ratios of consecutive distances: from
        # here on each term is at most `shrink` times the one before it.
        shrink = float(ratio[-1]) * (offset + done) / (offset + done - 1.0)
        if shrink < 1.0:
            rest = weight * (offset + done) / (1.0 - shrink)
            if rest <= _NEGLIGIBLE * total:
                total += rest
                break
        elif weight > 1e300:
            raise InternalError("a binomial tail was summed through its mode")
        chunk *= 2
    return total, 8.0 * EPSILON_MACHINE * (min(done, length) + 16)
