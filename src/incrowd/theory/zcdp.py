"""Zero-concentrated differential privacy (Bun, Steinke): what noisy counts and noisy choices cost, and what that means.

A mechanism is ρ-zCDP if for neighbours in either order, and every α > 1, the Rényi divergence of its outputs of order α
is at most αρ. Costs add up, also where a later step depends on the outputs of earlier ones, as long as each step's cost
was fixed beforehand.

- Counts of disjoint cells, each with independent discrete Gaussian noise of variance σ²: one record more or less moves
  one cell by one, so ρ = 1/(2σ²) (Canonne, Kamath, Steinke, Theorem 4).
- A choice with probabilities proportional to e^{e·s/2}, where one record moves no score s by more than one: the
  logarithms of the weights move within a range of e, so ρ = e²/8 (Cesar, Rogers), and it is e-DP.

From ρ to (ε,δ), for every α > 1 (Canonne, Kamath, Steinke, Proposition 12):

    δ ≤ e^{(α−1)(αρ−ε)} / (α−1) · (1 − 1/α)^α.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from incrowd.core.errors import UnreachableError
from incrowd.theory._balls import above, precision
from incrowd.theory._numbers import require_between, require_count, require_non_negative, require_positive, round_up
from incrowd.theory.profile import PrivacyProfile, Relation

if TYPE_CHECKING:
    from flint import arb

LARGEST_RHO = 1000.0
_NO_TAIL = 1e-60
_LARGEST_LISTED = 10**10


def counts_cost(variance: int) -> Fraction:
    """The ρ of a table of disjoint counts with discrete Gaussian noise of this variance."""
    return Fraction(1, 2 * variance)


def choice_cost(exponent: Fraction) -> Fraction:
    """The ρ of a choice by the exponential mechanism that is `exponent`-DP."""
    return exponent * exponent / 8


@dataclass(frozen=True)
class ZeroConcentrated(PrivacyProfile):
    """What is known of the privacy profile of any ρ-zCDP mechanism."""

    rho: Fraction
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        require_between("rho", float(self.rho), 0.0, LARGEST_RHO, open_low=False, open_high=False)

    def removal(self, epsilon: float) -> float:
        """The bound at the best order found; every order gives a valid one, and so does Pinsker's inequality."""
        epsilon = require_non_negative("epsilon", epsilon)
        if self.rho == 0:
            return 0.0
        from flint import arb

        rho = float(self.rho)
        order = _best_order(rho, epsilon)
        with precision():
            a, r = arb(order), arb(self.rho.numerator) / self.rho.denominator
            exponent = (a - 1) * (a * r - arb(epsilon)) + a * (1 - 1 / a).log() - (a - 1).log()
            found = above(exponent.exp())
        return min(1.0, found, round_up(math.sqrt(rho / 2), 1e-12))

    addition = removal


@dataclass(frozen=True)
class BoundedRange(PrivacyProfile):
    """The exact privacy profile of all choices whose privacy loss lies in some interval of length e = `exponent`.

    Let the loss lie in [t − e, t]. (1 − e^{ε−L})₊ is convex in e^{−L}, whose mean is at most 1, so it is largest in the
    mean if the loss is at the ends: (1 − e^{t−e})/(1 − e^{−e}) · (1 − e^{ε−t}), and t = (e + ε)/2 is the worst
    (Dong, Durfee, Rogers). Unlike a sum of ρ's, it composes step by step with whatever comes between the choices.
    """

    exponent: Fraction
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        require_positive("exponent", float(self.exponent))

    def removal(self, epsilon: float) -> float:
        """(1 − e^{−(e−ε)/2})² / (1 − e^{−e}) below e, else nothing; the same in both directions."""
        epsilon = require_non_negative("epsilon", epsilon)
        if Fraction(epsilon) >= self.exponent:
            return 0.0
        from flint import arb

        with precision():
            e = arb(self.exponent.numerator) / self.exponent.denominator
            half = -((arb(epsilon) - e) / 2).expm1()
            return min(1.0, above(half * half / -(-e).expm1()))

    addition = removal


@dataclass(frozen=True)
class GaussianCounts(PrivacyProfile):
    """The exact privacy profile of a table of disjoint counts with discrete Gaussian noise, for one record.

    Neighbours differ in one cell by one. With X the noise, P[X + 1 = x]/P[X = x] = e^{(2x − 1)/(2σ²)} rises with x, so
    the worst event at ε is x ≥ s, with s the least x at which it is above e^ε: δ = P[X ≥ s − 1] − e^ε·P[X ≥ s]
    (Canonne, Kamath, Steinke, Theorem 7). Both directions are alike, since X is symmetric. Of very wide noise, whose
    tails would be a long list, it is what zCDP says of it, which is no less.
    """

    variance: int
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        require_count("variance", self.variance)

    def removal(self, epsilon: float) -> float:
        """δ at ε; the same in both directions."""
        epsilon = require_non_negative("epsilon", epsilon)
        if self.variance > _LARGEST_LISTED:
            return ZeroConcentrated(counts_cost(self.variance)).delta(epsilon)
        least = math.floor(Fraction(epsilon) * self.variance + Fraction(1, 2)) + 1
        tails = _gaussian_tails(self.variance)
        if least >= len(tails):
            return _NO_TAIL
        from flint import arb

        with precision():
            return min(1.0, max(0.0, above(tails[least - 1] - arb(epsilon).exp() * tails[least])))

    addition = removal


@lru_cache(maxsize=16)
def _gaussian_tails(variance: int) -> list[arb]:
    """P[X ≥ s] of the discrete Gaussian for s = 0, 1, 2, …, in balls; from the length of the list on, below 1e-60."""
    from flint import arb

    last = math.isqrt(288 * variance) + 2  # e^{−x²/(2σ²)} < e^{−144}
    with precision():
        weights = [(-arb(x * x) / (2 * variance)).exp() for x in range(last + 1)]
        # Beyond the last, weights fall at least by the factor between it and the next: a geometric series.
        beyond = weights[last] / -(-arb(2 * last + 1) / (2 * variance)).expm1()
        rest = arb(mid=beyond / 2, rad=beyond / 2)
        sums = list(accumulate(reversed(weights[:-1]), initial=rest))[::-1]
        whole = 2 * sums[0] - 1
        return [tail / whole for tail in sums]


def largest_rho(epsilon: float, delta: float) -> Fraction:
    """A ρ, as large as can be, with which every ρ-zCDP mechanism is (ε,δ)-DP; a multiple of 2⁻⁶⁴."""
    require_positive("epsilon", epsilon)
    require_between("delta", delta, 0.0, 1.0)
    low, high = 0, math.ceil(Fraction(min(epsilon, LARGEST_RHO)) * 2**64)
    while high - low > max(1, low >> 40):
        middle = (low + high) // 2
        if ZeroConcentrated(Fraction(middle, 2**64)).delta(epsilon) <= delta:
            low = middle
        else:
            high = middle
    if not low:
        raise UnreachableError(
            "With this epsilon and delta nothing can be spent on noisy counts.",
            code="unreachable",
            remedy="Raise epsilon or delta.",
        )
    return Fraction(low, 2**64)


def _best_order(rho: float, epsilon: float) -> float:
    """About the α at which the bound is least: its logarithm is convex."""

    def logarithm(step: float) -> float:
        a = 1 + step
        return step * (a * rho - epsilon) + a * math.log1p(-1 / a) - math.log(step)

    low, high = 1e-3, 1e9
    for _ in range(120):
        left, right = low * (high / low) ** 0.4, low * (high / low) ** 0.6
        if logarithm(left) < logarithm(right):
            high = right
        else:
            low = left
    return 1 + low
