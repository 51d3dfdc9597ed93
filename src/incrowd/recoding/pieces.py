"""The nodes of a lattice, scored on a table whose cells do not fit into memory: piece by piece.

A score is a sum over a node's cells, so it is the sum over pieces of the table that no node of interest brings
together. Let every column have a range of levels, and take the table apart by a column's codes at the upper end of its
range: whatever the level within the range, a cell lies in one piece. At the top there is one code alone, so the range
is split first: the nodes in which the column is at the top, of which the engine counts the cells without that column;
and the others, for which the table falls apart by the codes of one level below. This goes on until pieces fit, and each
of them is scored in memory as a whole table is. A table is read once or twice for each column and piece, whatever the
number of nodes, and the scores are the same whole numbers.

A piece that cannot be taken apart is scored however large it is, for a refusal would come after the choice was paid for
and tell about the table. It has one code at most in each column but those that a quality wants whole, so the declared
values of these bound its cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from incrowd.recoding.lattice import Codes, Ladder, Lattice, Node
from incrowd.recoding.quality import Quality
from incrowd.sources.kept import KeptTable, Where


class Range(NamedTuple):
    """The levels of a column from `low` to `high`."""

    low: int
    high: int


class Piece(NamedTuple):
    """Some cells, and the nodes that are scored on them.

    Attributes:
        ranges: of each column.
        lattice: these nodes.
        columns: the codes of the cells, at the lower ends of the ranges.
        counts: how many records they have.
    """

    ranges: tuple[Range, ...]
    lattice: Lattice
    columns: list[Codes]
    counts: Codes


def kept_scores(table: KeptTable, lattice: Lattice, quality: Quality) -> Codes:
    """As `Quality.scores`."""
    shape = [ladder.height + 1 for ladder in lattice.ladders]
    found = np.zeros(shape, dtype=np.int64)
    for piece in pieces(table, lattice, [Range(0, height - 1) for height in shape], quality.whole):
        added = quality.added(piece.lattice, piece.columns, piece.counts, table.total)
        inside = tuple(slice(r.low, r.high + 1) for r in piece.ranges)
        found[inside] += added.reshape([r.high - r.low + 1 for r in piece.ranges])
    return quality.concluded(lattice, lattice.levels, found.ravel(), table.total)


def kept_score(table: KeptTable, lattice: Lattice, node: Node, quality: Quality) -> int:
    """As `Quality.score`."""
    only: Node = tuple(0 for _ in node)
    found = sum(
        quality.one(piece.lattice, only, piece.columns, piece.counts, table.total)
        for piece in pieces(table, lattice, [Range(level, level) for level in node], quality.whole)
    )
    levels = [np.array([level]) for level in node]
    return int(quality.concluded(lattice, levels, np.array([found], dtype=np.int64), table.total)[0])


def pieces(
    table: KeptTable, lattice: Lattice, ranges: Sequence[Range], whole: frozenset[int] = frozenset()
) -> Iterator[Piece]:
    """The table in pieces that fit into memory, for the nodes within some ranges of levels.

    Every node within the ranges has each of its cells in one piece; no piece is taken apart by a column of `whole`.
    """
    yield from _Division(table, lattice, whole).pieces(tuple(ranges), {})


class _Division:
    def __init__(self, table: KeptTable, lattice: Lattice, whole: frozenset[int]) -> None:
        self.table, self.lattice, self.whole = table, lattice, whole

    def pieces(self, ranges: tuple[Range, ...], where: Where) -> Iterator[Piece]:
        if self._may_fit(ranges, where):
            found = self.table.counted_if_few(self._maps(ranges), where)
            if found is not None:
                yield self._piece(ranges, *found)
                return
        parts = self._parts(ranges, where)
        if parts is not None:
            column, codes = parts
            for some in codes:
                yield from self.pieces(ranges, {**where, column: some})
            return
        # The column with the most codes first: without it, the most cells become alike.
        open_ones = [i for i, r in enumerate(ranges) if r.low < r.high]
        if not open_ones:
            yield self._piece(ranges, *self.table.counted(self._maps(ranges), where))
            return
        column = max(open_ones, key=lambda i: len(self.lattice.ladders[i].maps[0]))
        low, high = ranges[column]
        for part in (Range(high, high), Range(low, high - 1)):
            yield from self.pieces((*ranges[:column], part, *ranges[column + 1 :]), where)

    def _may_fit(self, ranges: Sequence[Range], where: Where) -> bool:
        """Whether it is worth trying: all cells of the table do not fit."""
        return bool(where) or any(r.low > 0 for r in ranges) or self.table.cells <= self.table.most

    def _parts(self, ranges: Sequence[Range], where: Where) -> tuple[int, list[Codes]] | None:
        """A column with several codes at the upper end of its range, and its base codes in heaps that may fit."""
        for column in sorted(range(len(ranges)), key=lambda i: -len(self.lattice.ladders[i].weights[ranges[i].high])):
            to = self.lattice.ladders[column].maps[ranges[column].high]
            inside = where.get(column, np.arange(len(to)))
            if column in self.whole or len(np.unique(to[inside])) == 1:
                continue
            cells = self.table.sizes(column, where)
            by_code = np.bincount(to, weights=cells, minlength=int(to.max()) + 1)
            if np.count_nonzero(by_code) > 1:
                heap = self._heaps(by_code)[to]
                there = cells > 0  # and nothing that was left out before
                return column, [np.flatnonzero(there & (heap == number)) for number in np.unique(heap[there])]
        return None

    def _heaps(self, cells: np.ndarray) -> Codes:
        """A number for each code: as many in a heap as fit together, one at least; two heaps at least."""
        most = min(self.table.most, float(cells.sum()) / 2)
        number, filled, found = 0, 0.0, np.zeros(len(cells), dtype=np.int64)
        for code, size in enumerate(cells.tolist()):
            if filled and size and filled + size > most:
                number, filled = number + 1, 0.0
            found[code] = number
            filled += size
        return found

    def _piece(self, ranges: tuple[Range, ...], columns: list[Codes], counts: Codes) -> Piece:
        return Piece(ranges, Lattice([self._ladder(i, r) for i, r in enumerate(ranges)]), columns, counts)

    def _maps(self, ranges: Sequence[Range]) -> list[Codes | None]:
        return [self._map(i, r) for i, r in enumerate(ranges)]

    def _map(self, column: int, levels: Range) -> Codes | None:
        """What becomes of a column's codes; nothing is left of them at a level with one label."""
        ladder = self.lattice.ladders[column]
        return None if len(ladder.weights[levels.low]) == 1 else ladder.maps[levels.low]

    def _ladder(self, column: int, levels: Range) -> Ladder:
        """The levels of a range, for codes at its lower end."""
        ladder = self.lattice.ladders[column]
        first = ladder.maps[levels.low]
        maps = []
        for to in ladder.maps[levels.low : levels.high + 1]:
            step = np.zeros(len(ladder.weights[levels.low]), dtype=np.int64)
            step[first] = to
            maps.append(step)
        return Ladder(tuple(maps), ladder.weights[levels.low : levels.high + 1])
