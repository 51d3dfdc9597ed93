"""Cuts through a whole table, chosen privately one after the other: each column has one set of labels.

The table begins as one cell, everything. A cut takes a set of one column apart, in all records: in two, or a node of a
hierarchy into its children. So after some cuts the table is a grid, and a value of a column has the same label wherever
it occurs. How many cuts there are is public. Which cuts are offered follows from the policy, the noisy one-way tables
and the cuts before.

**One cut.** The worth of a grid is U = Σ_cells κ·φ(n): n records share a cell, κ is what its sets tell of them, a whole
number in proportion to the mean over the columns of (values of the domain − values covered)/(values of the domain − 1),
and φ(n) = n − min(n, (τ − n)₊) is about how many of them are published, τ being what a cell should hold. For each cut
that is offered there is a grid; so there is for none, as it may be best to stay. A record lies in one cell of every
grid, and φ rises by 0, 1 or 2 with each record; so with one record more all worths move within 0 and R = 2·max κ, over
all cells of all grids that are offered. One is chosen with probability proportional to e^{e·U/R}: that is
e-bounded-range, hence (e²/8)-zCDP.

**Every record pays for every cut**, so the charges simply add up: t cuts cost t·e²/8, whatever is drawn. (A tree asks
less of a record, as only its own path pays; what it publishes has other labels in every branch.)

All counts, worths and charges are whole numbers, all draws exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.histogram import Histogram
from incrowd.recoding.boxes import Sets
from incrowd.recoding.growth import Draws
from incrowd.recoding.mapping import MOST_CELLS, Cut, Tree, TreeColumn, grid
from incrowd.sources.kept import KeptTable
from incrowd.theory.concentrated import UNITS, selection_charge

Integers = NDArray[np.int64]
ByCode = tuple[Integers, Integers, Integers]

_SCALE = 1 << 16
_SHOWN = 8
"""A published record is worth an eighth of _SCALE, even if it tells nothing."""
_EXPONENT_BITS = 24
_STEEPEST = 2
"""φ rises by so much at most with one record."""


@dataclass(frozen=True)
class Cutting:
    """How cuts are to be chosen: public, and decided before any data is seen.

    Attributes:
        budget: the most that all of them may cost, in units of 2⁻⁶⁴.
        threshold: τ.
        weights: the importance of each column, as whole numbers.
        times: how many cuts are chosen.
    """

    budget: int
    threshold: int
    weights: tuple[int, ...]
    times: int

    @property
    def exponent(self) -> Fraction:
        """e: the largest number of so many bits for which all choices together cost what they may."""
        squared = 8 * max(self.budget, 0) * 4**_EXPONENT_BITS // (self.times * UNITS)
        return Fraction(math.isqrt(squared), 2**_EXPONENT_BITS)

    @property
    def cost(self) -> int:
        """What all choices cost, in units of 2⁻⁶⁴."""
        return self.times * selection_charge(self.exponent)

    @property
    def least(self) -> int | None:
        """About how many records a table must have for cuts to be told apart; None if no number is enough."""
        return max(2 * self.threshold, math.ceil(32 / self.exponent)) if self.exponent else None


class CellCounts(Protocol):
    """A table that knows which cell of the grid each record is in, and so gives the same grid from the same bits."""

    def by_code(self) -> Iterable[ByCode]:
        """For each column: cells, codes and how many records have both."""
        ...

    def part(self, place: int, parts: Sequence[Integers], cells: Integers, becomes: Sequence[Integers]) -> None:
        """Records of some cells are in other cells from now on, for each part of a column's codes in others."""
        ...


class GridCells:
    """The full table in memory, with the cell of the grid that each of its own cells is in."""

    def __init__(self, table: Histogram, columns: Sequence[Sets]) -> None:
        self._codes = [table[sets.name].codes for sets in columns]
        self._sizes = [sets.size for sets in columns]
        self._counts = table.counts.astype(np.float64)  # sums of whole numbers below 2**53 are exact
        self._cell, self._cells = np.zeros(len(table), dtype=np.int64), 1

    def by_code(self) -> Iterator[ByCode]:
        for codes, size in zip(self._codes, self._sizes, strict=True):
            keys, length = self._cell * size + codes, self._cells * size
            if length <= max(1 << 20, 4 * len(keys)):
                sums = np.bincount(keys, weights=self._counts, minlength=length)
                found = np.flatnonzero(sums)
                sums = sums[found]
            else:
                found, back = np.unique(keys, return_inverse=True)
                sums = np.bincount(back, weights=self._counts, minlength=len(found))
            yield found // size, found % size, sums.astype(np.int64)

    def part(self, place: int, parts: Sequence[Integers], cells: Integers, becomes: Sequence[Integers]) -> None:
        part_of = np.full(self._sizes[place], -1, dtype=np.int64)
        for number, codes in enumerate(parts):
            part_of[codes] = number
        at = np.full(self._cells, -1, dtype=np.int64)
        at[cells] = np.arange(len(cells))
        here = np.flatnonzero((part_of[self._codes[place]] >= 0) & (at[self._cell] >= 0))
        self._cell[here] = np.stack(becomes)[part_of[self._codes[place][here]], at[self._cell[here]]]
        self._cells += len(cells) * len(parts)


@dataclass(frozen=True)
class _Offer:
    """A cut that could be made, and how much the worth of the grid grows with it."""

    place: int
    number: int
    parts: tuple[int, ...]
    gained: int


class _Grid:
    """The grid so far: by cell, the number of its set in each column; all cells that there could be."""

    def __init__(self, columns: Sequence[Sets], cutting: Cutting) -> None:
        self.columns, self.cutting = columns, cutting
        self.cells = np.zeros((1, len(columns)), dtype=np.int64)
        self.cuts: list[Cut] = []

    def told(self, place: int, number: int) -> int:
        """What a set of a column tells, in parts of _SCALE."""
        sets = self.columns[place]
        weight = Fraction(self.cutting.weights[place], sum(self.cutting.weights))
        return math.floor(_SCALE * weight * (sets.size - len(sets.values[number])) / max(sets.size - 1, 1))

    def most_told(self, place: int) -> int:
        """The most that a set of a column tells now."""
        return max(self.told(place, number) for number in set(self.cells[:, place].tolist()))

    def worths(self) -> Integers:
        """κ of each cell."""
        found = np.full(len(self.cells), _SCALE // _SHOWN, dtype=np.int64)
        for place in range(len(self.columns)):
            numbers, back = np.unique(self.cells[:, place], return_inverse=True)
            found += np.array([self.told(place, number) for number in numbers.tolist()], dtype=np.int64)[back]
        return found

    def offers(self, counted: Sequence[ByCode]) -> Iterator[_Offer]:
        """Every cut that is offered: none that would give the grid more cells than it may have."""
        kappa, rows = self.worths(), len(self.cells)
        for place, (cell, code, count) in enumerate(counted):
            sets, numbers = self.columns[place], sorted(set(self.cells[:, place].tolist()))
            if rows // len(numbers) * (len(numbers) + 1) > MOST_CELLS:
                continue  # whatever it is cut into
            total = np.bincount(cell, weights=count, minlength=rows).astype(np.int64)
            for number in numbers:
                if not (cuts := sets.cuts(number)):
                    continue
                affected = np.flatnonzero(self.cells[:, place] == number)
                position = np.full(rows, -1, dtype=np.int64)
                position[affected] = np.arange(len(affected))
                at = position[cell]
                here = np.flatnonzero(at >= 0)
                own = kappa[affected] - self.told(place, number)
                now = int(kappa[affected] @ self.likely(total[affected]))
                for parts in cuts:
                    many = len(parts)
                    if rows // len(numbers) * (len(numbers) + many - 1) > MOST_CELLS:
                        continue
                    part_of = np.zeros(sets.size, dtype=np.int64)
                    for j, part in enumerate(parts):
                        part_of[list(sets.values[part])] = j
                    keys = many * at[here] + part_of[code[here]]
                    n = np.bincount(keys, weights=count[here], minlength=many * len(affected)).astype(np.int64)
                    then = sum(
                        int((own + self.told(place, part)) @ self.likely(n[j::many])) for j, part in enumerate(parts)
                    )
                    yield _Offer(place, number, parts, then - now)

    def likely(self, counts: Integers) -> Integers:
        """φ."""
        missing = np.maximum(self.cutting.threshold - counts, 0)
        return np.asarray(counts - np.minimum(counts, missing), dtype=np.int64)

    def reach(self, offers: Sequence[_Offer]) -> int:
        """R: within which all worths move with one record more. It follows from what is offered alone."""
        most = [self.most_told(place) for place in range(len(self.columns))]
        more = [max(self.told(o.place, part) for part in o.parts) - most[o.place] for o in offers]
        return _STEEPEST * (_SCALE // _SHOWN + sum(most) + max(0, *more))

    def take(self, offer: _Offer, table: CellCounts) -> None:
        """Make a cut."""
        first, *others = offer.parts
        affected = np.flatnonzero(self.cells[:, offer.place] == offer.number)
        becomes = len(self.cells) + np.arange(len(others) * len(affected)).reshape(len(others), -1)
        added = np.tile(self.cells[affected], (len(others), 1))
        added[:, offer.place] = np.repeat(others, len(affected))
        self.cells[affected, offer.place] = first
        self.cells = np.concatenate([self.cells, added])
        self.cuts.append(Cut(offer.place, offer.number, offer.parts))
        codes = [np.array(self.columns[offer.place].values[part], dtype=np.int64) for part in others]
        table.part(offer.place, codes, affected, list(becomes))

    def finished(self) -> Tree:
        """The mapping that is published: the sets numbered anew and named."""
        shown, numbers = [], []
        for place, sets in enumerate(self.columns):
            used = [0, *(part for cut in self.cuts if cut.column == place for part in cut.parts)]
            numbers.append({n: i for i, n in enumerate(used)})
            values, labels = tuple(sets.values[n] for n in used), tuple(sets.labels(used))
            shown.append(TreeColumn(sets.name, sets.base, values, labels))
        cuts = tuple(
            Cut(made.column, anew[made.number], tuple(anew[part] for part in made.parts))
            for made in self.cuts
            for anew in [numbers[made.column]]
        )
        sets_of = [[anew[n] for n in at] for anew, at in zip(numbers, self.cells.T.tolist(), strict=True)]
        self.cells = np.stack(sets_of, axis=1)
        return grid(tuple(shown), cuts)


def cut(table: CellCounts, columns: Sequence[Sets], cutting: Cutting, draws: Draws) -> tuple[Tree, Integers]:
    """The grid, and how many records each box of its tree has: those are for the publisher's eyes only.

    Args:
        table: the full table.
        columns: the sets of each column, with its noisy one-way table.
        cutting: how cuts are chosen.
        draws: what is drawn.
    """
    found, exponent = _Grid(columns, cutting), cutting.exponent
    for _ in range(cutting.times if exponent else 0):
        offers = list(found.offers(list(table.by_code())))
        if not offers:
            break
        step = exponent / found.reach(offers)
        # Less the worth of the grid as it is, which changes no probability; and that is the last one.
        chosen = draws.choose([*(offer.gained * step for offer in offers), Fraction(0)])
        if chosen < len(offers):
            found.take(offers[chosen], table)
    cell, _, count = next(iter(table.by_code()))
    held = np.bincount(cell, weights=count, minlength=len(found.cells)).astype(np.int64)
    tree = found.finished()
    leaves = {tree.boxes[n].sets: n for n in tree.leaves}
    records = np.zeros(len(tree.boxes), dtype=np.int64)
    records[[leaves[tuple(sets)] for sets in found.cells.tolist()]] = held
    return tree, records


def cells_of(table: Histogram | KeptTable, columns: Sequence[Sets]) -> CellCounts:
    """A table, in memory or in an engine."""
    return table.boxes() if isinstance(table, KeptTable) else GridCells(table, columns)
