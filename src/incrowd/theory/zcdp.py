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

from incrowd.core.errors import UnreachableError
from incrowd.theory._balls import above, precision
from incrowd.theory._numbers import require_between, require_non_negative, require_positive, round_up
from incrowd.theory.profile import PrivacyProfile, Relation

LARGEST_RHO = 1000.0


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
