"""A concentrated choice before a sampled crowd: what the two promise together.

A mechanism is ρ-zCDP (zero-concentrated differential privacy, Bun and Steinke) if for both orders of any two neighbours
its privacy loss L has E_P[e^{aL}] ≤ e^{a(a+1)ρ} for every a > 0. Here it chooses a mapping on the full table; then a
sampled crowd is drawn under that mapping.

**The filter.** Charges that the transcript so far decides may be added up as they come: if every draw is ρᵢ-zCDP given
what was drawn before and Σρᵢ ≤ ρ on every path, the whole is ρ-zCDP (by induction from the last draw backwards).
Charges are whole numbers of 2⁻⁶⁴, rounded up, so that their sum is exact.

**The join.** Let δ₂(t) be the crowd's exact profile in the same direction at any real t; for t < 0 it is 1 − e^t +
e^t·δ₂'(−t), δ₂' being the other direction. Conditioning on the choice gives δ(ε) ≤ E_P[δ₂(ε − L)], whatever the mapping
is. δ₂ never rises with t. Take a grid t₀ < t₁ < … < t_m and numbers xᵢ ≥ 0 with orders aᵢ ≥ 0, a₀ = 0, such that

    Σᵢ xᵢ e^{−aᵢ(t_{j+1} − ε)} ≥ δ₂(t_j)  for all j < m,      x₀ ≥ δ₂(t_m).                                  (1)

Then Σᵢ xᵢ e^{aᵢL} ≥ δ₂(ε − L) wherever L ≤ ε − t₀: the left side rises with L. So

    δ(ε) ≤ Σᵢ xᵢ e^{aᵢ(aᵢ+1)ρ} + P[L > ε − t₀],      P[L > E] ≤ e^{−(E−ρ)²/(4ρ)} for E ≥ ρ.                      (2)

**People with several rows.** Charges are those of one row on its path. A person with m rows pays m² times as much at
most (docs/proofs.md), and δ₂ is the crowd's profile for m rows: ρ here is what a person pays.

The xᵢ that make (2) least solve a small linear program. Its solution comes from floating-point arithmetic and is not
trusted: (1) is checked in balls, x₀ is raised by whatever is missing, and (2) is evaluated upwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from incrowd.theory._balls import above, precision
from incrowd.theory._numbers import require_between, require_non_negative, require_positive
from incrowd.theory._persons import CellProfile
from incrowd.theory.crowd import CrowdProfile, choose_rate, least_k, smallest_k_with
from incrowd.theory.profile import PrivacyProfile, Relation
from incrowd.theory.zcdp import choice_cost, counts_cost

if TYPE_CHECKING:
    from flint import arb

UNITS = 1 << 64
"""Charges are whole numbers of 1/UNITS."""

_ORDERS, _FINENESS = 28, 8
_TAIL = 1e-3  # of δ: what is given to losses beyond the grid
_SHARE = 0.48


def charge(rho: Fraction) -> int:
    """A cost in zCDP as a whole number of 2⁻⁶⁴, rounded up."""
    return -(-rho.numerator * UNITS // rho.denominator)


def selection_charge(exponent: Fraction) -> int:
    """A choice by the exponential mechanism whose log-probabilities move within a range of `exponent`: e²/8."""
    return charge(choice_cost(exponent))


def counts_charge(variance: int) -> int:
    """Counts of disjoint parts with discrete Gaussian noise, of which one record moves one by one: 1/(2σ²)."""
    return charge(counts_cost(variance))


def usual_rho(epsilon: float, delta: float) -> float:
    """The share for a choice that has proved good: about half of the ρ that (ε,δ) alone would allow, one digit of it.

    ρ-zCDP is (ρ + 2√(ρ ln(1/δ)), δ)-DP, so the whole would be (√(ln(1/δ) + ε) − √ln(1/δ))².
    """
    require_positive("epsilon", epsilon)
    require_between("delta", delta, 0.0, 1.0)
    length = math.log(1 / delta)
    whole = (epsilon / (math.sqrt(length + epsilon) + math.sqrt(length))) ** 2
    return float(f"{_SHARE * whole:.0e}")


@dataclass(frozen=True)
class ChosenCrowd(PrivacyProfile):
    """The profile of a ρ-zCDP choice of a mapping on the full table, followed by a sampled crowd under it.

    Both hold for a person with all rows, `rows` at most.
    """

    k: int
    beta: float
    rho: float
    relation: Relation = Relation.ADD_REMOVE
    rows: int = 1

    def __post_init__(self) -> None:
        CrowdProfile(self.k, self.beta, rows=self.rows)
        require_between("rho", self.rho, 0.0, 100.0)

    def removal(self, epsilon: float) -> float:
        crowd = CrowdProfile(self.k, self.beta, rows=self.rows)
        return _joined(crowd, self.rho, require_non_negative("epsilon", epsilon), "removal")

    def addition(self, epsilon: float) -> float:
        crowd = CrowdProfile(self.k, self.beta, rows=self.rows)
        return _joined(crowd, self.rho, require_non_negative("epsilon", epsilon), "addition")


def smallest_k(epsilon: float, delta: float, beta: float, rho: float, rows: int = 1) -> int:
    """The smallest k found for which a ρ-zCDP choice and a crowd of k at rate β are (ε,δ)-DP together."""
    if rows == 1:
        return smallest_k_with(lambda k: ChosenCrowd(k, beta, rho).delta(epsilon), delta)
    # A person with all rows in one cell is looked at first: that is quick, and what is proved is seldom more.
    quick = smallest_k_with(lambda k: _in_one_cell(k, beta, rho, epsilon, rows), delta)
    return smallest_k_with(lambda k: ChosenCrowd(k, beta, rho, rows=rows).delta(epsilon), delta, quick - 1)


def _in_one_cell(k: int, beta: float, rho: float, epsilon: float, rows: int) -> float:
    """About the δ of a person with all rows in one cell."""
    cell = CellProfile(k, beta, rows)
    return max(_joined(cell, rho, epsilon, direction) for direction in ("removal", "addition"))


@lru_cache(maxsize=4096)
def _joined(crowd: CrowdProfile | CellProfile, rho: float, epsilon: float, direction: str) -> float:
    """(2) for a grid and orders that look good; any would be safe."""
    # The crowd alone is a bound from below: what is lost beyond the grid should not matter beside it.
    rest = max(_TAIL * crowd.delta(max(0.0, epsilon - rho)), 1e-40)
    farthest = rho + 2 * math.sqrt(rho * math.log(1 / rest))
    # Steps are powers of two, so that the grids for different ε share their points.
    step = 2.0 ** math.floor(math.log2(math.sqrt(rho) / _FINENESS))
    first = math.floor((epsilon - farthest) / step)
    last = math.ceil((epsilon + 2 * math.sqrt(rho * math.log(1 / _TAIL)) + rho) / step)
    grid = [j * step for j in range(first, last + 1)]
    heights = [_at(t, crowd, direction) for t in grid]
    top = max(1.0, math.sqrt(math.log(1 / rest) / rho))
    orders = [0.0, *np.geomspace(top / 200, 1.5 * top, _ORDERS).tolist()]
    weights = _program(orders, grid, [max(height, rest) for height in heights], epsilon, rho)
    return _certified(orders, weights, grid, heights, epsilon, rho)


@lru_cache(maxsize=1 << 14)
def _at(t: float, crowd: CrowdProfile | CellProfile, direction: str) -> float:
    """δ₂(t) for any real t, rounded up."""
    removed = direction == "removal"
    if t >= 0:
        return crowd.removal(t) if removed else crowd.addition(t)
    from flint import arb

    with precision():
        shrunk = arb(t).exp()
        return min(1.0, above(1 - shrunk + shrunk * (crowd.addition(-t) if removed else crowd.removal(-t))))


def _program(
    orders: Sequence[float], grid: Sequence[float], heights: Sequence[float], epsilon: float, rho: float
) -> list[float]:
    """Weights that nearly solve the linear program; what is wrong with them is put right later."""
    from scipy.optimize import linprog

    a, t, y = np.array(orders), np.array(grid), np.array(heights)
    # Each order in units in which its bound is 1, each inequality in units of its right side.
    scaled = -a[None, :] * (t[1:, None] - epsilon) - (a * (a + 1) * rho)[None, :]
    matrix = np.exp(np.minimum(scaled - np.log(y[:-1, None]), 600.0))
    matrix = np.vstack([matrix, [1 / y[-1]] + [0.0] * (len(a) - 1)])
    size = matrix.max(axis=0)
    with np.errstate(all="ignore"):
        found = linprog(1 / size, A_ub=-(matrix / size), b_ub=-np.ones(len(y)), method="highs")
    if found.x is None:
        return [1.0] + [0.0] * (len(a) - 1)
    weights = np.maximum(found.x, 0.0) / size * np.exp(-a * (a + 1) * rho)
    return [float(w) for w in weights]


def _certified(
    orders: Sequence[float],
    weights: Sequence[float],
    grid: Sequence[float],
    heights: Sequence[float],
    epsilon: float,
    rho: float,
) -> float:
    from flint import arb

    with precision():
        used = [(arb(a), arb(w)) for a, w in zip(orders, weights, strict=True) if w > 0 and a > 0]
        least = arb(max(weights[0], heights[-1]))
        for upper, height in zip(grid[1:], heights, strict=False):
            reached = sum((w * (-a * (arb(upper) - epsilon)).exp() for a, w in used), start=arb(0))
            missing = arb(height) - reached
            least = _larger(least, missing)
        total = least + sum((w * (a * (a + 1) * arb(rho)).exp() for a, w in used), start=arb(0))
        farthest = epsilon - arb(grid[0])
        if farthest < rho:
            return 1.0
        tail = (-((farthest - rho) ** 2) / (4 * arb(rho))).exp()
        return min(1.0, above(total + tail))


def _larger(one: arb, other: arb) -> arb:
    """The larger of two upper ends."""
    return other.upper() if other.upper() > one.upper() else one


# --- β and k ------------------------------------------------------------------------------------------------------


def usual_crowd(epsilon: float, delta: float, rho: float, rows: int = 1) -> tuple[int, float]:
    """k and β where both are open, by the rule of `choose_rate`.

    Rates are compared at the k that a Gaussian choice of the same ρ would need, which is nearly the proved one and
    fast, or, where a person may have several rows, at the k of a crowd without a choice; the k returned is proved.

    Raises:
        UnreachableError: no crowd keeps the promise beside such a choice.
    """
    if rows == 1:
        _, beta = choose_rate(lambda rate: _gaussian_k(epsilon, delta, rate, rho))
    else:
        _, beta = choose_rate(lambda rate: least_k(epsilon, delta, rate, rows))
    return smallest_k(epsilon, delta, beta, rho, rows), beta


def _gaussian_k(epsilon: float, delta: float, beta: float, rho: float) -> int:
    """About the k needed after a Gaussian choice."""
    z, weights = np.polynomial.hermite_e.hermegauss(40)
    t = epsilon - rho - math.sqrt(2 * rho) * z
    weights = weights / weights.sum()
    return smallest_k_with(lambda k: float(weights @ _estimated(k, beta, t)), delta)


def _estimated(k: int, beta: float, t: np.ndarray) -> np.ndarray:
    """The crowd's δ for removal at any t, in floating-point arithmetic."""
    from scipy.special import betainc

    gamma = 1 - (1 - beta) * np.exp(-t)
    n = np.where(gamma > 0, np.ceil((k - 1) / np.maximum(gamma, 1e-9)), np.inf)
    n = np.clip(n, k, 1e9)
    upper = betainc(k, n - k + 1, beta)
    lower = np.where(n > k, betainc(k, np.maximum(n - k, 1e-9), beta), 0.0)
    found = np.maximum(upper - np.exp(t) * lower, 0.0)
    return np.asarray(np.where(gamma > 0, found, 1 - np.exp(t)))
