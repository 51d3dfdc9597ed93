"""How much more likely an output is for a record than under the blanket: one law that covers every pair of records.

A matrix A redraws a value. Every row contains the *blanket*, the column minima m with total γ, so ω = m/γ is contained
in every row with weight γ. The likelihood f_x(w) = A[x,w]/ω(w) of a value x has mean 1 under ω. `shuffling` needs the
joint law of (f_x, f_x') for the worst pair x, x', and of their products over several attributes.

**No pair has to be searched for.** Let F be larger than every f_x in the convex order, and couple two copies F, S of it
in opposite order: the largest values of one meet the smallest of the other. For all r, t ≥ 0 the difference rF − tS is
then larger in the convex order than r·f_x − t·f_x' for *every* pair. For given c let a and b, a + b = c, be the
values of rF and −tS at the quantile where rF − tS passes c. Then (r·f_x − t·f_x' − c)₊ ≤ (r·f_x − a)₊ + (−t·f_x' − b)₊,
whose mean is at most that of (rF − a)₊ + (−tS − b)₊, which is (rF − tS − c)₊ as both signs change at one quantile. With
independent attributes take r and t as what the others contribute, and replace one attribute after the other.

The smallest F there is has E(F − c)₊ = max_x E(f_x − c)₊, a convex function of c. It is computed in exact fractions on
a grid of c, and joined by straight lines, which raises it. For retention-replacement F is f_x itself and the coupling
that of two different values: nothing is lost. docs/proofs.md has the proofs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.theory._excess import Vector
from incrowd.theory.randomisation import TransitionMatrix

_MOST_LEVELS = 200
"""Grid points for one matrix; with more different likelihoods than these the law is a little larger than needed."""

_MOST_BITS, _SPARE_BITS = 512, 64
"""Column minima have one denominator of up to so many bits, or are rounded down by a share of 2⁻⁶⁴ at most."""

MOST_TRIED = 256
"""Up to here each pair of records is looked at: at a few milliseconds each, in about a second."""


@dataclass(frozen=True)
class Likelihoods:
    """The likelihoods of two values relative to a blanket that every row of their matrix contains, in exact numbers.

    Attributes:
        mass: γ, the weight of the blanket.
        shares: the probability under the blanket, the likelihood of x and that of x'.
    """

    mass: Fraction
    shares: tuple[tuple[Fraction, Fraction, Fraction], ...]


def worst_of(matrices: Sequence[TransitionMatrix]) -> list[tuple[Likelihoods, ...]]:
    """For each pair of records the law of each matrix if there are few pairs, else one that is as bad as any of them.

    Their local ε are finite.
    """
    if math.prod(matrix.size**2 for matrix in matrices) > MOST_TRIED:
        return [tuple(_covering(matrix) for matrix in matrices)]
    return list(itertools.product(*(_pairs(matrix) for matrix in matrices)))


def _pairs(matrix: TransitionMatrix) -> list[Likelihoods]:
    """Of all pairs of values, equal ones among them: in a record other attributes may differ."""
    possible = [column for column in zip(*matrix.rows, strict=True) if any(column)]
    lowest = [min(column) for column in possible]
    mass = sum(lowest, Fraction(0))
    blanket = [entry / mass for entry in lowest]
    rows = [[e / w for e, w in zip(row, blanket, strict=True)] for row in zip(*possible, strict=True)]
    return [
        Likelihoods(mass, tuple(zip(blanket, first, second, strict=True)))
        for first, second in itertools.product(rows, repeat=2)
    ]


def _covering(matrix: TransitionMatrix) -> Likelihoods:
    """A law larger than that of every pair, in the order that the bounds on shuffling need."""
    levels, chances = _envelope(matrix)
    mass = sum(chances, Fraction(0))
    values = [mass * Fraction(level) for level in levels]
    return Likelihoods(mass, tuple((share / mass, values[high], values[low]) for share, high, low in _opposed(chances)))


def _envelope(matrix: TransitionMatrix) -> tuple[list[float], list[Fraction]]:
    """The law of F/γ: its values, and their exact probabilities times γ."""
    possible = [column for column in zip(*matrix.rows, strict=True) if any(column)]
    lowest = [min(column) for column in possible]
    unit = math.lcm(*(entry.denominator for entry in lowest))
    if unit.bit_length() > _MOST_BITS:  # rounded down: a smaller blanket is contained as well
        unit = 1 << (_SPARE_BITS + max(entry.denominator.bit_length() for entry in lowest))
    floors = [entry.numerator * unit // entry.denominator for entry in lowest]
    rows = [_Row(row, floors, unit) for row in zip(*possible, strict=True)]
    grid = _grid(np.concatenate([row.ratios for row in rows]))
    excess = [max(values) for values in zip(*(row.excesses(grid) for row in rows), strict=True)]
    exact = [Fraction(level) for level in grid]
    slopes = [Fraction(-sum(floors), unit)]
    slopes += [
        (e - d) / (t - s) for (s, t), (d, e) in zip(itertools.pairwise(exact), itertools.pairwise(excess), strict=True)
    ]
    slopes += [Fraction(0)]
    return grid, [after - before for before, after in itertools.pairwise(slopes)]


class _Row:
    """A row of a matrix over the blanket, in whole numbers."""

    def __init__(self, row: tuple[Fraction, ...], floors: list[int], unit: int) -> None:
        self._scale = math.lcm(*(entry.denominator for entry in row))
        self._entries = [entry.numerator * (self._scale // entry.denominator) for entry in row]
        self._floors, self._unit = floors, unit
        self.ratios = np.array(
            [_up(entry * unit, self._scale * floor) for entry, floor in zip(self._entries, floors, strict=True)]
        )

    def excesses(self, grid: list[float]) -> list[Fraction]:
        """Σ_w (A[x,w] − c·m_w)₊ at each c of the grid, which is γ·E(f_x/γ − c)₊.

        As ratios are rounded up, a ratio is above a grid point exactly if the float is.
        """
        entries, floors = [0] * (len(grid) + 1), [0] * (len(grid) + 1)
        places = np.searchsorted(grid, self.ratios, side="left").tolist()
        for place, entry, floor in zip(places, self._entries, self._floors, strict=True):
            entries[place] += entry
            floors[place] += floor
        found, above, below = [], 0, 0
        for place in range(len(grid) - 1, -1, -1):
            above, below = above + entries[place + 1], below + floors[place + 1]
            level, parts = grid[place].as_integer_ratio()
            whole = self._scale * parts * self._unit
            found.append(Fraction(above * parts * self._unit - level * below * self._scale, whole))
        return found[::-1]


def _up(numerator: int, denominator: int) -> float:
    """The smallest float that is not below the quotient."""
    value = numerator / denominator
    top, bottom = value.as_integer_ratio()
    return math.nextafter(value, math.inf) if top * denominator < numerator * bottom else value


def _grid(ratios: Vector) -> list[float]:
    """Points from 1, below which no ratio is, to the largest ratio."""
    levels = np.union1d([1.0], ratios)
    if len(levels) > _MOST_LEVELS:
        levels = np.unique(np.geomspace(1.0, levels[-1], _MOST_LEVELS).clip(max=levels[-1]))
        levels[-1] = float(ratios.max())
    found: list[float] = levels.tolist()
    return found


def _opposed(chances: list[Fraction]) -> list[tuple[Fraction, int, int]]:
    """Two copies of a law coupled in opposite order: probability, place in the first, place in the second."""
    pieces = []
    high, low = len(chances) - 1, 0
    left, right = chances[high], chances[low]
    while True:
        share = min(left, right)
        if share:
            pieces.append((share, high, low))
        left, right = left - share, right - share
        if not left:
            high -= 1
            left = chances[high] if high >= 0 else Fraction(0)
        if not right:
            low += 1
            right = chances[low] if low < len(chances) else Fraction(0)
        if high < 0 or low >= len(chances):
            return pieces
