"""The full-domain lattice: one level for each column, and a walk that counts the cells of every node.

A node is a tuple of levels. Walking all of them would be hopeless if each recounted the table; here a node's cells
come from those of a node one level finer in one column, so the work shrinks with the cells.

How the walk is laid out. Columns are put in some order and codes are renumbered so that, along each hierarchy, a
coarser code never falls when a finer one rises. At depth j the columns before j have their levels and the rest are
raw. A cell is a pair (prefix, suffix) of small integers: the prefix stands for the recoded columns, the suffix for
the raw rest. Raising column j by one level merges cells with equal prefix, code and remaining suffix. For the last
column there is no rest, and by the renumbering cells to be merged already stand next to each other: no sorting at
all. So the column with most levels goes last, where most nodes are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InternalError

Codes = NDArray[np.int64]
Node = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Ladder:
    """One column's levels.

    Attributes:
        maps: for each level, the code at that level of every raw code; level 0 is raw.
        weights: for each level, a whole number for every code at that level; a cell's weight is the sum over columns.
    """

    maps: tuple[Codes, ...]
    weights: tuple[Codes, ...]

    @property
    def height(self) -> int:
        """The number of the top level."""
        return len(self.maps) - 1

    @cached_property
    def in_order(self) -> tuple[Codes, tuple[Codes, ...], tuple[Codes, ...]]:
        """New number of each raw code; then per level the step from the level below, and the weights, renumbered.

        Raw codes are sorted by their code at the top, then one below, and so on: all of a tree's leaves stand together.
        """
        order = np.lexsort(self.maps)
        renumbered = np.empty(len(order), dtype=np.int64)
        renumbered[order] = np.arange(len(order))
        steps, weights, below = [], [], np.arange(len(order))
        for level_map, level_weights in zip(self.maps, self.weights, strict=True):
            along = level_map[order]
            first = starts(along)
            at_level = np.cumsum(first) - 1
            step = np.empty(below[-1] + 1, dtype=np.int64)
            step[below] = at_level
            steps.append(step)
            weights.append(np.ascontiguousarray(level_weights[along[first]]))
            below = at_level
        return renumbered, tuple(steps), tuple(weights)


class Lattice:
    """All combinations of levels of some columns."""

    def __init__(self, ladders: Sequence[Ladder]) -> None:
        self.ladders = tuple(ladders)

    @property
    def size(self) -> int:
        """The number of nodes."""
        return math.prod(ladder.height + 1 for ladder in self.ladders)

    def nodes(self) -> Iterator[Node]:
        """Every node, in counting order: the same for every table."""
        return (
            tuple(int(level) for level in node) for node in np.ndindex(*(ladder.height + 1 for ladder in self.ladders))
        )

    def number(self, node: Node) -> int:
        """A node's place in `nodes`."""
        place = 0
        for level, ladder in zip(node, self.ladders, strict=True):
            place = place * (ladder.height + 1) + level
        return place

    def node_at(self, place: int) -> Node:
        """The node at a place in `nodes`."""
        levels = []
        for ladder in reversed(self.ladders):
            place, level = divmod(place, ladder.height + 1)
            levels.append(level)
        return tuple(reversed(levels))

    def walk(self, columns: Sequence[Codes], counts: Codes, visit: Callable[[Node, Codes, Codes], None]) -> None:
        """Call `visit(node, counts, weights)` once for every node, with one entry for every non-empty cell.

        Args:
            columns: the raw codes of each cell, column by column.
            counts: how many records each cell holds.
            visit: must not keep or change the arrays that it is given.
        """
        if len(counts) == 0:
            nothing = np.zeros(0, dtype=np.int64)
            for node in self.nodes():
                visit(node, nothing, nothing)
            return
        _Walk(self.ladders, columns, counts, visit).descend()

    def cells(self, node: Node, columns: Sequence[Codes], counts: Codes) -> tuple[Codes, Codes]:
        """One node's counts and weights, counted from scratch."""
        ladders, recoded, same = [], [], 0
        for ladder, level, column in zip(self.ladders, node, columns, strict=True):
            weights = ladder.weights[level]
            if len(weights) == 1:
                same += int(weights[0])  # everything looks alike here: nothing to group by
            else:
                ladders.append(Ladder((np.arange(len(weights)),), (weights,)))
                recoded.append(ladder.maps[level][column])
        if not ladders:
            return np.array([counts.sum()]), np.array([same])
        found: list[tuple[Codes, Codes]] = []
        Lattice(ladders).walk(recoded, counts, lambda _, c, w: found.append((c.copy(), w + same)))
        return found[0]


class Fold:
    """A table folded up for a descent through the columns in some order; see the module's text.

    Attributes:
        steps: per column of the order and level, the step from the level below.
        weights: per column of the order and level, the weights of the codes.
        heads, tails: suffix s at depth j starts with code ``heads[j][s]`` and goes on with suffix ``tails[j][s]``.
        suffixes: how many suffixes there are at each depth; at the last one, the values of `rest`.
        ends: which value of `rest` a suffix ends with, by depth.
        cells: at depth 0, where the prefix is the same for all, the suffixes that occur are all of them: their counts.
    """

    def __init__(
        self,
        ladders: Sequence[Ladder],
        order: Sequence[int],
        columns: Sequence[Codes],
        counts: Codes,
        rest: Codes | None = None,
    ) -> None:
        """Fold cells given in any order, any number of times; `rest` is a column behind all others, never recoded."""
        self.total = int(counts.sum())
        if self.total >= 1 << 52:
            raise InternalError("a table of 2**52 records or more cannot be walked")
        self.steps = [ladders[i].in_order[1] for i in order]
        self.weights = [ladders[i].in_order[2] for i in order]
        suffix = np.zeros(len(counts), dtype=np.int64) if rest is None else rest
        self.suffixes = [1 if rest is None else int(rest.max()) + 1]
        self.heads: list[Codes] = []
        self.tails: list[Codes] = []
        self.ends = [np.arange(self.suffixes[0])]
        for i in reversed(order):
            code = ladders[i].in_order[0][np.asarray(columns[i], dtype=np.int64)]
            tails = self.suffixes[-1]
            distinct, suffix = ranked(code * tails + suffix, len(ladders[i].maps[0]) * tails)
            self.heads.append(distinct // tails)
            self.tails.append(distinct % tails)
            self.suffixes.append(len(distinct))
            self.ends.append(self.ends[-1].take(self.tails[-1]))
        for table in (self.heads, self.tails, self.suffixes, self.ends):
            table.reverse()
        self.cells = np.bincount(suffix, weights=counts).astype(np.int64)
        self._count_bits = self.total.bit_length()

    def merge(self, keys: Codes, counts: Codes, space: int) -> tuple[Codes, Codes]:
        """Equal keys brought together, their counts added; keys come out sorted."""
        if space >= 1 << 63:
            raise InternalError("the keys of a lattice walk outgrew 63 bits")
        if space.bit_length() + self._count_bits <= 63:
            # Key and count in one word: sorting words that consist of sorted runs is several times faster than
            # sorting an index.
            packed = (keys << self._count_bits) | counts
            packed.sort(kind="stable")
            keys = packed >> self._count_bits
            counts = packed & ((1 << self._count_bits) - 1)
        else:
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
        at = np.flatnonzero(starts(keys))
        return keys[at], np.add.reduceat(counts, at)


class _Walk(Fold):
    """The state of one walk over all nodes."""

    def __init__(
        self,
        ladders: tuple[Ladder, ...],
        columns: Sequence[Codes],
        counts: Codes,
        visit: Callable[[Node, Codes, Codes], None],
    ) -> None:
        self.visit = visit
        places = sorted(range(len(ladders)), key=lambda i: -len(ladders[i].maps[0]))
        last = max(places, key=lambda i: (ladders[i].height, -len(ladders[i].maps[0])))
        places.remove(last)
        self.order = [*places, last]
        super().__init__(ladders, self.order, columns, counts)

    def descend(self) -> None:
        """Visit every node."""
        everything = np.arange(len(self.cells))
        nothing = np.zeros(len(self.cells), dtype=np.int64)
        self._descend(0, nothing, np.zeros(1, dtype=np.int64), everything, self.cells, ())

    def _descend(self, depth: int, prefix: Codes, weight: Codes, suffix: Codes, counts: Codes, levels: Node) -> None:
        """Cells are sorted by (prefix, suffix); `weight` belongs to prefixes."""
        code, rest = self.heads[depth].take(suffix), self.tails[depth].take(suffix)
        if depth == len(self.order) - 1:
            self._last(prefix, weight, code, counts, levels)
            return
        rests = self.suffixes[depth + 1]
        for level, (step, weights) in enumerate(zip(self.steps[depth], self.weights[depth], strict=True)):
            size = len(weights)
            code = step.take(code)
            longer = prefix * size + code
            if level:
                merged, counts = self.merge(longer * rests + rest, counts, (len(weight) * size) * rests)
                longer = merged // rests
                rest = merged - longer * rests
                prefix = longer // size
                code = longer - prefix * size
            first = starts(longer)
            kept = longer[first]
            self._descend(
                depth + 1,
                np.cumsum(first) - 1,
                weight.take(kept // size) + weights.take(kept % size),
                rest,
                counts,
                (*levels, level),
            )

    def _last(self, prefix: Codes, weight: Codes, code: Codes, counts: Codes, levels: Node) -> None:
        """All levels of the last column: cells that merge stand next to each other."""
        for level, (step, weights) in enumerate(zip(self.steps[-1], self.weights[-1], strict=True)):
            code = step.take(code)
            if level:
                first = starts(prefix)
                first[1:] |= code[1:] != code[:-1]
                at = np.flatnonzero(first)
                counts = np.add.reduceat(counts, at)
                prefix, code = prefix.take(at), code.take(at)
            cell_weights = weight.take(prefix)
            cell_weights += weights.take(code)
            node = [0] * len(self.order)
            for place, chosen in zip(self.order, (*levels, level), strict=True):
                node[place] = chosen
            self.visit(tuple(node), counts, cell_weights)


def starts(values: Codes) -> NDArray[np.bool_]:
    """Where a run of equal values starts; there is at least one value."""
    first = np.empty(len(values), dtype=np.bool_)
    first[0] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def ranked(keys: Codes, space: int) -> tuple[Codes, Codes]:
    """The different keys, all below `space`, in order, and the rank of each key among them."""
    if space <= 8 * len(keys):
        present = np.zeros(space, dtype=np.bool_)
        present[keys] = True
        rank = np.cumsum(present, dtype=np.int64)
        rank -= 1
        return np.flatnonzero(present), rank.take(keys)
    distinct, ranks = np.unique(keys, return_inverse=True)
    return distinct, ranks
