"""The full-domain lattice: one level for each column; and a table folded up so that its nodes can be gone through.

A node is a tuple of levels. Counting the table anew for each of them would be hopeless; a node's cells come from those
of a node one level finer in one column, so the work shrinks with the cells.

How a table is folded. Columns are put in some order and codes are renumbered so that, along each hierarchy, a coarser
code never falls when a finer one rises. At depth j the columns before j have their levels and the rest are raw. A cell
is a pair (prefix, suffix) of small integers: the prefix stands for the recoded columns, the suffix for the raw rest.
Raising column j by one level merges cells with equal prefix, code and remaining suffix. For the last column there is
no rest, and by the renumbering cells to be merged already stand next to each other: no sorting at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import UnreachableError

Codes = NDArray[np.int64]
Node = tuple[int, ...]

_ROOM, _SMALL = 8, 1 << 17


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

    @property
    def levels(self) -> list[Codes]:
        """The level of each column in every node, in the order of `nodes`."""
        place: Codes = np.arange(self.size)
        found: list[Codes] = []
        for ladder in reversed(self.ladders):
            place, level = np.divmod(place, ladder.height + 1)
            found.insert(0, level)
        return found

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

    def cells(self, node: Node, columns: Sequence[Codes], counts: Codes) -> tuple[Codes, Codes]:
        """The counts and weights of one node's cells."""
        cells = Prefixes.empty(len(counts))
        for ladder, level, column in zip(self.ladders, node, columns, strict=True):
            cells = cells.lengthened(column, ladder.maps[level], ladder.weights[level])
        records = np.bincount(cells.of, weights=counts, minlength=cells.number).astype(np.int64)
        present = np.flatnonzero(records)
        return records[present], cells.weight(present)


class Prefixes(NamedTuple):
    """What stands for the codes that cells have in some columns.

    Attributes:
        of: the prefix of each cell, a number.
        number: how many prefixes there could be; not many more than cells.
        weight: the weights of some of them.
    """

    of: Codes
    number: int
    weight: Callable[[Codes], Codes]

    @classmethod
    def empty(cls, cells: int) -> Prefixes:
        """Of no columns: the same for all cells, and without weight."""
        return cls(np.zeros(cells, dtype=np.int64), 1, np.zeros(1, dtype=np.int64).take)

    def lengthened(self, raw: Codes, to: Codes, weights: Codes) -> Prefixes:
        """With one more column, at some level.

        Args:
            raw: the raw code of each cell.
            to: the code of each raw code at the level.
            weights: the weight of each code at the level.
        """
        size = len(weights)
        if size == 1:
            return Prefixes(self.of, self.number, lambda some: self.weight(some) + weights[0])
        longer = self.of * size
        longer += to.take(raw)
        number = self.number * size
        if number <= room_for(len(longer)):
            return Prefixes(longer, number, lambda some: self.weight(some // size) + weights.take(some % size))
        found, longer = ranked(longer, number)
        weight = self.weight(found // size) + weights.take(found % size)
        return Prefixes(longer, len(found), weight.take)

    def chosen(self, some: Codes) -> tuple[Prefixes, Codes]:
        """Some prefixes, in order and numbered anew; and which cells have one of them."""
        number = np.full(self.number, -1, dtype=narrow(self.number))
        number[some] = np.arange(len(some), dtype=number.dtype)
        of = number.take(self.of)
        at = np.flatnonzero(of >= 0)
        return Prefixes(of.take(at).astype(np.int64), len(some), self.weight(some).take), at


class Fold:
    """A table folded up for a descent through the columns in some order; see the module's text.

    Attributes:
        steps: per column of the order and level, the step from the level below.
        weights: per column of the order and level, the weights of the codes.
        heads, tails: suffix s at depth j starts with code ``heads[j][s]`` and goes on with suffix ``tails[j][s]``.
        suffixes: how many suffixes there are at each depth; at the last one, the values of `rest`.
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
            raise UnreachableError(
                "Levels cannot be looked for on a table of 2**52 records or more.",
                code="unreachable",
                remedy="Fix the levels in the policy.",
            )
        self.steps = [ladders[i].in_order[1] for i in order]
        self.weights = [ladders[i].in_order[2] for i in order]
        suffix = np.zeros(len(counts), dtype=np.int64) if rest is None else rest
        self.suffixes = [1 if rest is None else int(rest.max()) + 1]
        self.heads: list[Codes] = []
        self.tails: list[Codes] = []
        for i in reversed(order):
            code = ladders[i].in_order[0][columns[i]]
            tails = self.suffixes[-1]
            distinct, suffix = ranked(code * tails + suffix, len(ladders[i].maps[0]) * tails)
            self.heads.append(distinct // tails)
            self.tails.append(distinct % tails)
            self.suffixes.append(len(distinct))
        for table in (self.heads, self.tails, self.suffixes):
            table.reverse()
        self.cells = np.bincount(suffix, weights=counts).astype(np.int64)
        self._count_bits = self.total.bit_length()

    @cached_property
    def ends(self) -> list[Codes]:
        """Which value of `rest` a suffix ends with, by depth."""
        found = [np.arange(self.suffixes[-1])]
        for tails in reversed(self.tails):
            found.append(found[-1].take(tails))
        return found[::-1]

    def merge(self, keys: Codes, counts: Codes, space: int) -> tuple[Codes, Codes]:
        """Equal keys brought together, their counts added; keys come out sorted."""
        if space >= 1 << 63:
            raise UnreachableError(
                "The table has too many different combinations of values for its levels to be looked for.",
                code="unreachable",
                remedy="Fix the levels in the policy, leave out columns or declare coarser domains.",
            )
        if space.bit_length() + self._count_bits <= 63:
            # Key and count in one word: sorting words that consist of sorted runs is several times faster than
            # sorting an index.
            packed = (keys << self._count_bits) | counts
            packed.sort(kind="stable")
            keys = packed >> self._count_bits
            counts = packed & ((1 << self._count_bits) - 1)
        else:
            keys, order = in_order(keys, space)
            counts = counts.take(order)
        at = np.flatnonzero(starts(keys))
        return keys.take(at), totals(counts, at)


def room_for(cells: int) -> int:
    """An array is used instead of sorting if it has at most so many places: some for each cell, or few anyway."""
    return max(_ROOM * cells, _SMALL)


def narrow(size: int) -> type[Any]:
    """Numbers up to this size take half the space, wherever they fit."""
    return np.int32 if size < 1 << 31 else np.int64


def starts(values: Codes) -> NDArray[np.bool_]:
    """Where a run of equal values starts; there is at least one value."""
    first = np.empty(len(values), dtype=np.bool_)
    first[0] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def totals(counts: Codes, at: Codes) -> Codes:
    """The sums of runs that start at the places given; several times faster than `reduceat` where runs are short."""
    upto = np.cumsum(counts)
    ends = np.empty(len(at), dtype=np.int64)
    upto.take(at[1:] - 1, out=ends[:-1])
    ends[-1] = upto[-1]
    ends[1:] -= ends[:-1].copy()
    return ends


def ranked(keys: Codes, space: int) -> tuple[Codes, Codes]:
    """The different keys, all below `space`, in order, and the rank of each key among them."""
    if space <= room_for(len(keys)):
        present = np.zeros(space, dtype=np.bool_)
        present[keys] = True
        rank = np.cumsum(present, dtype=np.int64)
        rank -= 1
        return np.flatnonzero(present), rank.take(keys)
    if len(keys) == 0:
        return keys, keys
    along, order = in_order(keys, space)
    first = starts(along)
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[order] = np.cumsum(first) - 1
    return along[first], ranks


def in_order(keys: Codes, space: int) -> tuple[Codes, Codes]:
    """The keys, all below `space`, sorted; and where they come from."""
    bits = len(keys).bit_length()
    if space.bit_length() + bits > 63:
        order = np.argsort(keys)
        return keys.take(order), order
    # A key and its place in one word: sorting words is several times faster than sorting places. Some of them often
    # are in order already, of which a stable sort makes use.
    packed = keys.astype(np.int64)
    packed <<= bits
    packed |= np.arange(len(keys))
    packed.sort(kind="stable")
    return packed >> bits, packed & ((1 << bits) - 1)
