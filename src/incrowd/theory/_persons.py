"""δ of a sampled crowd for adding or removing a person, whose rows may lie in any cells.

A person with at most m rows puts a₁, a₂, … of them into different cells, which are sampled independently. Her δ is
that of the composition of cells with exact profiles D_{a₁}, D_{a₂}, …, and D_a rises with a. So it is at most the
largest over all partitions of m (docs/proofs.md, "A person with several rows"). Two bounds are proved, and the smaller
one counts:

- *over partitions*: D_m itself for all rows in one cell, for every other partition a composition through privacy losses
  on a grid. In every case seen D_m is the largest, and then the bound is the exact δ; that it always is, is not proved.
- *a chain*: take the rows out one after the other, each at ε/m: Σ_{i<m} e^{iε/m} D_1(ε/m).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from incrowd.theory._balls import above, precision
from incrowd.theory._cells import group_addition, group_removal
from incrowd.theory.losses import Losses
from incrowd.theory.profile import PrivacyProfile, Relation, reach_of

if TYPE_CHECKING:
    from flint import arb

MOST_COMPOSED = 12
"""Up to so many rows all partitions are composed, 77 of them for 12; beyond, the chain alone counts."""

_POINTS = 128  # of the grid on which cells are composed: coarse, as these compositions lie far below D_m
_SHORTER = 0.8  # a chain of shorter steps is tried as long as it improves

Direction = Callable[[int, float, float, int], "list[arb]"]


@dataclass(frozen=True)
class CellProfile(PrivacyProfile):
    """The exact profile of one cell that gains or loses so many rows at once."""

    k: int
    beta: float
    rows: int
    relation: Relation = Relation.ADD_REMOVE

    def removal(self, epsilon: float) -> float:
        """δ when the table with the rows is the true one."""
        return _highest(group_removal(self.k, self.beta, epsilon, self.rows))

    def addition(self, epsilon: float) -> float:
        return _highest(group_addition(self.k, self.beta, epsilon, self.rows))


def removal(k: int, beta: float, epsilon: float, rows: int) -> float:
    """A bound on δ when the table with the person is the true one."""
    return _bound(group_removal, 0, k, beta, epsilon, rows)


def addition(k: int, beta: float, epsilon: float, rows: int) -> float:
    """A bound on δ when the table without the person is."""
    return _bound(group_addition, 1, k, beta, epsilon, rows)


def in_one_cell(k: int, beta: float, epsilon: float, rows: int) -> float:
    """δ if all rows of the person lie in one cell: never more than what has to be promised."""
    cell = CellProfile(k, beta, rows)
    return max(cell.removal(epsilon), cell.addition(epsilon))


def _bound(of_cell: Direction, direction: int, k: int, beta: float, epsilon: float, rows: int) -> float:
    together = _highest(of_cell(k, beta, epsilon, rows))
    if together == 0.0:
        return 0.0  # an addition whose likelihood ratio e^ε covers, wherever the rows lie
    if rows <= MOST_COMPOSED:
        apart = max(cover.delta(epsilon) for cover in _apart(k, beta, rows)[direction])
        if apart <= together:
            return together
        return min(apart, _chain(of_cell, k, beta, epsilon, rows))
    return _chain(of_cell, k, beta, epsilon, rows)


def _chain(of_cell: Direction, k: int, beta: float, epsilon: float, rows: int) -> float:
    """Σ_{i<m} e^{iε'/m} D_1(ε'/m) for some ε' ≤ ε: far out D_1 no longer falls, and the sum rises."""
    from flint import arb

    best, tried = math.inf, epsilon
    while True:
        step = math.nextafter(tried / rows, 0.0)
        with precision():
            factor = sum((arb(step) * i).exp() for i in range(rows))
            found = max((above(delta * factor) for delta in of_cell(k, beta, step, 1)), default=0.0)
        if (found >= best and math.isfinite(found)) or tried == 0.0:
            return min(1.0, best, found)
        best, tried = found, tried * _SHORTER


@lru_cache(maxsize=8)
def _apart(k: int, beta: float, rows: int) -> tuple[tuple[Losses, ...], tuple[Losses, ...]]:
    """For every partition of the rows over several cells, what covers it: removals and additions."""
    cells = [CellProfile(k, beta, a) for a in range(1, rows)]
    reaches = [reach_of(cell) for cell in cells]
    step = max(reaches) / _POINTS
    covers = [_covering(cell, step, reach) for cell, reach in zip(cells, reaches, strict=True)]
    both: tuple[list[Losses], list[Losses]] = ([], [])
    for partition in partitions(rows):
        if len(partition) > 1:
            for direction, found in enumerate(both):
                first, *others = (covers[a - 1][direction] for a in partition)
                for other in others:
                    first = first.compose(other)
                found.append(first)
    return tuple(both[0]), tuple(both[1])


def _covering(cell: CellProfile, step: float, reach: float) -> tuple[Losses, Losses]:
    last = math.ceil(reach / step) + 1
    grid = [math.nextafter(j * step, 0.0) for j in range(last + 1)]
    removals, additions = ([delta(epsilon) for epsilon in grid] for delta in (cell.removal, cell.addition))
    return Losses.covering(removals, additions, step), Losses.covering(additions, removals, step)


def partitions(total: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a sum, larger parts first."""
    if total == 0:
        yield ()
    for part in range(min(total, largest or total), 0, -1):
        for rest in partitions(total - part, part):
            yield (part, *rest)


def _highest(found: list[arb]) -> float:
    return min(1.0, max((above(delta) for delta in found), default=0.0))
