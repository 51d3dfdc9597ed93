"""Privacy losses on a grid, composed in whole numbers, so that nothing but stated roundings upwards happens to them.

A `Losses` is a measure, not a probability law: a mass p_j at every loss j·h of a grid, and a mass at infinity. What it
says about δ is

    H(ε) = p_∞ + Σ_j p_j (1 − e^{ε − jh})₊.

It *covers* a mechanism (dominates it, in the words of the literature) if H(ε) is at least the mechanism's δ for every
real ε, negative ones included. docs/proofs.md (Numerical composition) proves what is used here: the product of two
measures covers the composition of what they cover, and raising a mass, moving it to a larger loss, or spreading it to
both sides of its place so that Σp and Σp·e^{−loss} stay the same, only raises H. Masses are whole numbers of 2⁻¹²⁸;
products of them are exact (FLINT multiplies the polynomials), and are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from incrowd.theory._balls import above, precision, whole_above

if TYPE_CHECKING:
    from flint import arb

BITS = 128
ONE = 1 << BITS

_NEGLIGIBLE = 1 << (BITS - 100)  # what one end may lose to infinity, or to the other end's neighbour, in a composition
_LONGEST = 1 << 17  # grid points; a longer distribution is moved to a grid twice as coarse


@dataclass(frozen=True)
class Losses:
    """Masses at the losses (low + i)·step, and one at infinity, in units of 2⁻¹²⁸."""

    step: float
    low: int
    masses: tuple[int, ...]
    infinite: int

    @classmethod
    def covering(cls, forward: Sequence[float], backward: Sequence[float], step: float) -> Losses:
        """Losses that cover a mechanism, from bounds on its δ at the grid points 0, h, 2h, … in both directions.

        As a function of e^ε the true δ is convex, so it lies below every chord between points above it. Any choice of
        points will do; those of the lower convex hull waste nothing. The left half follows from the other direction,
        H_{−ε}(P‖Q) = 1 − e^{−ε}(1 − H_ε(Q‖P)), and where e^ε = 0 the value is 1.
        """
        from flint import arb

        with precision():
            shrinks = _shrinks(step, len(backward))
            left = [
                min(ONE, whole_above(1 - shrink * (1 - arb(delta)), BITS))
                for shrink, delta in zip(shrinks, backward, strict=True)
            ]
            right = [min(ONE, _in_units(delta)) for delta in forward]
            heights = left[:0:-1] + right
            corners = _hull(heights, step)
            masses = [0] * (corners[-1] + 1)
            growth = {gap: (arb(gap) * arb(step)).expm1() for gap in {b - a for a, b in pairwise(corners)}}
            for before, here, after in zip([None, *corners], corners, [*corners[1:], None], strict=False):
                # p = α·(slope after − slope before); before the first corner lies the point (0, 1).
                mass = arb(ONE - heights[here])
                if before is not None:
                    mass = (heights[before] - heights[here]) * (1 + 1 / growth[here - before])
                if after is not None:
                    mass -= (heights[here] - heights[after]) / growth[after - here]
                masses[here] = max(0, whole_above(mass))
        return cls(step, 1 - len(backward), tuple(masses), heights[corners[-1]]).trimmed()

    def compose(self, other: Losses) -> Losses:
        """Losses that cover both mechanisms together, the second of which may depend on the output of the first."""
        from flint import fmpz_poly

        if self.step < other.step:
            return self.coarser().compose(other)
        if other.step < self.step:
            return self.compose(other.coarser())
        product = fmpz_poly(list(self.masses)) * fmpz_poly(list(other.masses))
        mine, theirs = sum(self.masses), sum(other.masses)
        infinite = mine * other.infinite + theirs * self.infinite + self.infinite * other.infinite
        masses = tuple(_unit(int(mass)) for mass in product.coeffs()) or (0,)  # all may be infinite
        return Losses(self.step, self.low + other.low, masses, _unit(infinite)).trimmed()

    def times(self, count: int) -> Losses:
        """Losses that cover `count` such mechanisms together."""
        together = self
        for digit in f"{count:b}"[1:]:
            together = together.compose(together)
            if digit == "1":
                together = together.compose(self)
        return together

    def delta(self, epsilon: float) -> float:
        """H(ε) for ε ≥ 0, rounded up."""
        from flint import arb

        at = self._at_grid
        j = int(Fraction(epsilon) // Fraction(self.step))
        with precision():
            if j + 1 >= len(at):
                return above(arb(self.infinite) / ONE)
            # Between grid points H is linear in e^ε.
            share = (arb(epsilon) - arb(j) * arb(self.step)).expm1() / arb(self.step).expm1()
            return above((at[j] - share * (at[j] - at[j + 1])) / ONE)

    @cached_property
    def _at_grid(self) -> list[int]:
        """H at the losses 0, h, 2h, … up to the largest, rounded up."""
        from flint import arb

        with precision():
            decay = ONE - whole_above(-(-arb(self.step)).expm1(), BITS)
        high = self.low + len(self.masses) - 1
        values = [self.infinite]
        more = discounted = 0  # Σ p_i and Σ p_i e^{(j−i)h} over i > j; the second rounded down
        for j in range(high, 0, -1):
            mass = self.masses[j - self.low] if j >= self.low else 0
            more += mass
            discounted = ((discounted + mass) * decay) >> BITS
            values.append(more - discounted + self.infinite)
        return values[::-1]

    def trimmed(self) -> Losses:
        """Without ends that weigh next to nothing: what was above goes to infinity, what was below to the new end."""
        first, last = 0, len(self.masses)
        lost = gained = 0
        while last - first > 1 and lost + self.masses[last - 1] <= _NEGLIGIBLE:
            last -= 1
            lost += self.masses[last]
        while last - first > 1 and gained + self.masses[first] <= _NEGLIGIBLE:
            gained += self.masses[first]
            first += 1
        masses = (self.masses[first] + gained, *self.masses[first + 1 : last])
        trimmed = Losses(self.step, self.low + first, masses, self.infinite + lost)
        return trimmed if len(masses) <= _LONGEST else trimmed.coarser()

    def coarser(self) -> Losses:
        """On a grid twice as coarse: a mass between two of its points is spread to both.

        With r = e^h, shares of 1/(1+r) below and r/(1+r) above keep both Σp and Σp·e^{−loss}.
        """
        from flint import arb

        with precision():
            down = whole_above(1 / (1 + arb(self.step).exp()), BITS)
            up = whole_above(1 / (1 + (-arb(self.step)).exp()), BITS)
        low, high = self.low // 2, (self.low + len(self.masses)) // 2
        masses = [0] * (high - low + 1)
        for loss, mass in enumerate(self.masses, self.low):
            place = loss // 2 - low
            if loss % 2:
                masses[place] += _unit(mass * down)
                masses[place + 1] += _unit(mass * up)
            else:
                masses[place] += mass
        return Losses(2 * self.step, low, tuple(masses), self.infinite)


def _unit(product: int) -> int:
    """A product of two masses as a mass, rounded up."""
    return -(-product >> BITS)


def _in_units(delta: float) -> int:
    """Rounded up."""
    part, whole = delta.as_integer_ratio()
    return -(-part * ONE // whole)


@lru_cache(2)
def _shrinks(step: float, points: int) -> tuple[arb, ...]:
    """e^{−j·step}, which is the same for all that is composed."""
    from flint import arb

    with precision():
        return tuple((-(arb(j) * arb(step))).exp() for j in range(points))


def _hull(heights: Sequence[int], step: float) -> list[int]:
    """Points of the lower convex hull of (e^{i·step}, height), about: which points they are need not be exact.

    They are those of (e^{(i−last)·step}, height) as well, which no number of points takes beyond what floats hold.
    """
    corners: list[int] = []
    x = [math.exp((j + 1 - len(heights)) * step) for j in range(len(heights))]
    y = [height / ONE for height in heights]
    for c in range(len(y)):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (y[b] - y[a]) * (x[c] - x[a]) < (y[c] - y[a]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(c)
    return corners
