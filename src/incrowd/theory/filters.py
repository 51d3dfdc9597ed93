"""Composition that stays proved when each release is chosen after looking at the earlier ones: the order filter.

Fix an order λ > 0, a budget κ* and a budget Δ. A release whose pair of outputs (P, Q) has the privacy loss L costs

    η = H_c(P‖Q) for any cut c,    κ = ln( (1−η) · E[e^{λL'}] ),

where L' is the loss of the pair that is left when the mass η is set aside. Whatever is chosen adaptively, as long as
Σκ ≤ κ* and Ση ≤ Δ in both directions, the whole is (ε, δ)-DP for every ε with

    δ = Δ + e^{κ* − λε} · λ^λ / (1+λ)^{1+λ}.

`docs/proofs.md` has the proof. The profile of the pair that is left is (H − η)⁺/(1−η) in both directions, and

    (1−η) E[e^{λL'}] = 1 − η + λ(λ+1) ( ∫₀^∞ e^{λε} (H_ε − η)⁺ dε + ∫₀^∞ e^{−(λ+1)ε} (H_ε^{reverse} − η)⁺ dε ).

Profiles are convex in e^ε, so a chord between two points lies above them: integrating chords bounds from above.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import UnreachableError
from incrowd.core.numbers import as_given
from incrowd.theory._groups import float_above
from incrowd.theory._numbers import round_down, round_up
from incrowd.theory.profile import ApproximateDP, PrivacyProfile, reach_of
from incrowd.theory.zcdp import ZeroConcentrated

_SHARE_CUT = 0.25
"""Of δ, what is kept for the parts of releases that are set aside."""
_ORDERS = tuple(2.0 ** (i / 8) for i in range(-16, 97))
_POINTS = 2000
_ERROR = 1e-9  # of the sums below, generously


@dataclass(frozen=True)
class OrderCost:
    """What a release costs in one direction."""

    kappa: float
    delta: float


@dataclass(frozen=True)
class OrderFilter:
    """What an order filter may spend. The numbers follow from a declared (ε,δ) alone."""

    order: float
    kappa: float
    delta: float

    @classmethod
    def within(cls, epsilon: float, delta: float) -> OrderFilter:
        """The filter that is (ε,δ)-DP and lets most Gaussian releases through, whose κ is λ(λ+1)μ²/2.

        Raises:
            UnreachableError: δ is zero, or ε so small that no order leaves anything to spend.
        """
        kept = round_down(_SHARE_CUT * delta, 1e-15)
        most = {order: _most_kappa(order, epsilon, delta - kept) for order in _ORDERS} if delta > 0 else {}
        best = max(most, key=lambda order: most[order] / (order * (order + 1)), default=0.0)
        if not most or most[best] <= 0:
            raise UnreachableError(
                f"An order filter has nothing to spend at epsilon = {as_given(epsilon)} and delta = {as_given(delta)}.",
                code="unreachable",
                remedy="Use the rule 'sum', or raise the budget.",
            )
        return cls(best, most[best], kept)

    def epsilon(self, kappa: float, cut: float, delta: float) -> float:
        """The ε at this δ if so much is spent, rounded up; infinite where there is none."""
        left = round_down(delta - cut, 1e-15)
        if left <= 0:
            return math.inf
        return max(0.0, round_up((kappa + _log_constant(self.order) - math.log(left)) / self.order, 1e-12) + 1e-12)

    def costs(self, part: PrivacyProfile) -> tuple[OrderCost, OrderCost]:
        """What one release with this profile costs: in the direction of a removal, and of an addition."""
        if isinstance(part, ApproximateDP):
            alike = OrderCost(_kappa_of_point(self.order, part.at_epsilon), part.at_delta)
            return alike, alike
        if isinstance(part, ZeroConcentrated):
            # E[e^{λL}] ≤ e^{λ(λ+1)ρ} is what zCDP says: nothing needs to be set aside.
            alike = OrderCost(_kappa_of_rho(self.order, part.rho), 0.0)
            return alike, alike
        removal, addition, step = _sampled(part)
        return self._cut(removal, addition, step), self._cut(addition, removal, step)

    def _cut(self, forward: NDArray[np.float64], backward: NDArray[np.float64], step: float) -> OrderCost:
        """With the cut at which the two budgets would run out together, if all releases were like this one.

        A later cut sets less aside and costs more κ, hence the bisection. Every cut is valid.
        """

        def at(index: int) -> OrderCost:
            eta = float(forward[index])
            return OrderCost(_kappa(self.order, forward, backward, eta, step), eta)

        low, high = 0, len(forward) - 1
        while low < high:
            middle = (low + high) // 2
            cost = at(middle)
            low, high = (middle + 1, high) if cost.delta * self.kappa > cost.kappa * self.delta else (low, middle)
        return at(low)


def _log_constant(order: float) -> float:
    """ln of λ^λ/(1+λ)^(1+λ), the greatest (1 − e^ε)e^{λε}."""
    return order * math.log(order) - (1 + order) * math.log1p(order)


def _most_kappa(order: float, epsilon: float, delta: float) -> float:
    gained, lost = order * epsilon - _log_constant(order), math.log(delta)
    return gained + lost - 1e-12 * (abs(gained) + abs(lost))


def _kappa_of_point(order: float, epsilon: float) -> float:
    """ln[(e^{(λ+1)ε} + e^{−λε})/(1 + e^ε)], of randomised response; rounded up."""
    value = order * epsilon + math.log1p(math.exp(-(2 * order + 1) * epsilon)) - math.log1p(math.exp(-epsilon))
    return max(0.0, value) + 1e-15 * (1 + order * epsilon) if epsilon else 0.0


def _kappa_of_rho(order: float, rho: Fraction) -> float:
    """λ(λ+1)ρ, rounded up."""
    return float_above(Fraction(order) * (Fraction(order) + 1) * rho)


def _kappa(order: float, forward: NDArray[np.float64], backward: NDArray[np.float64], eta: float, step: float) -> float:
    mass = (
        1
        - eta
        + order * (order + 1) * (_integral(forward, eta, order, step) + _integral(backward, eta, -(order + 1), step))
    )
    if not math.isfinite(mass):
        return math.inf
    return max(0.0, round_up(math.log(mass), _ERROR)) + _ERROR * max(0.0, mass - 1 + eta) / mass + 1e-15


def _integral(profile: NDArray[np.float64], eta: float, rate: float, step: float) -> float:
    """∫₀^∞ e^{rate·ε} (H_ε − η)⁺ dε from above: chords in e^ε between the points, and a constant beyond the last."""
    above = np.maximum(0.0, profile - eta)
    above = above[
        : 1 + int(np.count_nonzero(above))
    ]  # profiles fall: the rest is zero, and its weights may be infinite
    whole = math.expm1(rate * step) / rate
    right = (math.expm1((rate + 1) * step) / (rate + 1) - whole) / math.expm1(step)
    with np.errstate(over="ignore"):
        weights = np.exp(rate * step * np.arange(len(above)))
    cells = float(np.sum(weights[:-1] * (above[:-1] * (whole - right) + above[1:] * right)))
    beyond = 0.0 if above[-1] == 0.0 else float(above[-1] * weights[-1] / -rate) if rate < 0 else math.inf
    return cells + beyond


@lru_cache(maxsize=64)
def _sampled(part: PrivacyProfile) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Both directions of a profile on a grid from zero to where nothing is left to gain."""
    step = reach_of(part) / _POINTS

    def values(direction: Callable[[float], float]) -> NDArray[np.float64]:
        found = np.array([direction(i * step) for i in range(_POINTS + 1)])
        # δ may wiggle in its last digits; the running maximum from the right restores the order on the safe side.
        return np.maximum.accumulate(found[::-1])[::-1]

    return values(part.removal), values(part.addition), step
