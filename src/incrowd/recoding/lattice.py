"""The full-domain lattice: one level for each column, and a walk that counts the cells of every node.

A node is a tuple of levels. Walking all of them would be hopeless if each recounted the table; here a node's cells
come from those of a node one level finer in one column, so the work shrinks with the cells.

How the walk is laid out. Columns are put in some order and codes are renumbered so that, along each hierarchy, a
coarser code never falls when a finer one rises. At depth j the columns before j have their levels and the rest are
raw. A cell is a pair (prefix, suffix) of small integers: the prefix stands for the recoded columns, the suffix for
the raw rest. Raising column j by one level merges cells with equal prefix, code and remaining suffix. For the last
column there is no rest, and by the renumbering cells to be merged already stand next to each other: no sorting at
all. So the column with most levels goes last, where most nodes are.

Cells of few records are often of no interest, as where only crowds of k will be shown. Then a prefix of fewer records
is not followed any further, whatever stands behind it. Columns of many values go first, which makes prefixes small
soonest.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Semaphore
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import UnreachableError

Codes = NDArray[np.int64]
Node = tuple[int, ...]

_MANY_CELLS = 1 << 17  # from here on the work under each prefix outweighs what handing it to another thread costs
_SHARED_DEPTH = 2
_BYTES_PER_CELL = 80  # what one thread's part of a walk takes, about
_THREADS_MEMORY = 1 << 29


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

    def walk(
        self,
        columns: Sequence[Codes],
        counts: Codes,
        visit: Callable[[Node, Codes, Codes], None],
        *,
        least: int = 0,
    ) -> None:
        """Call `visit(node, counts, weights)` once for every node, with one entry for every non-empty cell.

        Args:
            columns: the raw codes of each cell, column by column.
            counts: how many records each cell holds.
            visit: must not keep or change the arrays that it is given; several threads may call it at once.
            least: cells of fewer records are of no interest: they may be left out, and so may nodes without others.
        """
        if len(counts) == 0:
            nothing = np.zeros(0, dtype=np.int64)
            for node in self.nodes():
                visit(node, nothing, nothing)
            return
        _Walk(self.ladders, columns, counts, visit, least).descend()

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
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
        at = np.flatnonzero(starts(keys))
        return keys.take(at), totals(counts, at)


class _Cells(NamedTuple):
    """The cells of a table whose first columns have their levels, sorted by prefix and suffix.

    Attributes:
        prefix: what stands for the first columns.
        weight: the weight of each prefix.
        suffix: what stands for the other columns, raw.
        counts: the records.
    """

    prefix: Codes
    weight: Codes
    suffix: Codes
    counts: Codes


class _Walk(Fold):
    """The state of one walk over all nodes."""

    def __init__(
        self,
        ladders: tuple[Ladder, ...],
        columns: Sequence[Codes],
        counts: Codes,
        visit: Callable[[Node, Codes, Codes], None],
        least: int,
    ) -> None:
        self.visit = visit
        self.least = least
        # Columns of many values first: they split the table soonest into prefixes of too few records.
        self.order = sorted(range(len(ladders)), key=lambda i: -len(ladders[i].maps[0]))
        if least <= 1:  # no prefix has too few
            last = max(self.order, key=lambda i: (ladders[i].height, -len(ladders[i].maps[0])))
            self.order.remove(last)
            self.order.append(last)
        super().__init__(ladders, self.order, columns, counts)
        self._workers: Workers | None = None
        # What is held at every depth is held in half the space, wherever it fits.
        self._small = np.int32 if self.total < 1 << 31 else np.int64
        self.heads = [self._held(table) for table in self.heads]
        self.tails = [self._held(table) for table in self.tails]
        self.cells = self._held(self.cells)

    def _held(self, values: Codes) -> Codes:
        return values.astype(self._small, copy=False)

    def descend(self) -> None:
        """Visit every node."""
        size = len(self.cells)
        top = _Cells(np.zeros(size, np.int64), np.zeros(1, np.int64), self._held(np.arange(size)), self.cells)
        threads = min(os.cpu_count() or 1, _THREADS_MEMORY // (_BYTES_PER_CELL * size))
        if threads <= 1 or size < _MANY_CELLS or len(self.order) <= _SHARED_DEPTH:
            self._descend(top, ())
            return
        with Workers(threads) as self._workers:
            self._descend(top, ())

    def _descend(self, cells: _Cells, levels: Node) -> None:
        """Visit every node that begins with these levels."""
        depth = len(levels)
        prefix, weight, suffix, counts = cells
        if len(prefix) == 0:
            return
        code = self.heads[depth].take(suffix)
        if depth == len(self.order) - 1:
            self._last(prefix, weight, code, counts, levels)
            return
        rest, rests = self.tails[depth].take(suffix), self.suffixes[depth + 1]
        longer = prefix * len(self.weights[depth][0]) + code
        del cells, prefix, code, suffix  # what is held at every depth adds up
        for level, (step, weights) in enumerate(zip(self.steps[depth], self.weights[depth], strict=True)):
            if level:
                prefix = longer // len(step)
                longer = prefix * len(weights) + step.take(longer - prefix * len(step))
                merged, counts = self.merge(longer * rests + rest, counts, len(weight) * len(weights) * rests)
                longer = merged // rests
                rest, counts = self._held(merged - longer * rests), self._held(counts)
                del prefix, merged
            if self._workers is not None and depth + 1 == _SHARED_DEPTH:
                below = self._below(longer, rest, counts, weight, weights)
                self._workers.do(partial(self._descend, below, (*levels, level)))
                del below
            else:
                self._descend(self._below(longer, rest, counts, weight, weights), (*levels, level))

    def _below(self, longer: Codes, rest: Codes, counts: Codes, weight: Codes, weights: Codes) -> _Cells:
        """The cells one column deeper, without those under prefixes of too few records."""
        first = starts(longer)
        at = np.flatnonzero(first)
        prefix = np.cumsum(first, dtype=np.int64) - 1
        # No cell under a prefix holds more records than the prefix does.
        enough = totals(counts, at) >= self.least
        if not enough.all():
            chosen = np.flatnonzero(enough.take(prefix))
            prefix = (np.cumsum(enough) - 1).take(prefix.take(chosen))
            rest, counts = rest.take(chosen), counts.take(chosen)
            at = at[enough]
        kept = longer.take(at)
        return _Cells(prefix, weight.take(kept // len(weights)) + weights.take(kept % len(weights)), rest, counts)

    def _last(self, prefix: Codes, weight: Codes, code: Codes, counts: Codes, levels: Node) -> None:
        """All levels of the last column: cells that merge stand next to each other."""
        counts = counts.astype(np.int64, copy=False)  # to be reckoned with
        for level, (step, weights) in enumerate(zip(self.steps[-1], self.weights[-1], strict=True)):
            code = step.take(code)
            if level:
                first = starts(prefix)
                first[1:] |= code[1:] != code[:-1]
                at = np.flatnonzero(first)
                counts = totals(counts, at)
                prefix, code = prefix.take(at), code.take(at)
            cell_weights = weight.take(prefix)
            cell_weights += weights.take(code)
            node = [0] * len(self.order)
            for place, chosen in zip(self.order, (*levels, level), strict=True):
                node[place] = chosen
            self.visit(tuple(node), counts, cell_weights)


class Workers:
    """Some threads, and no more work waiting for them than they can begin: what waits holds memory.

    NumPy lets other threads run while it works on arrays.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads)
        self._free = Semaphore(threads)
        self._given: list[Future[None]] = []

    def do(self, work: Callable[[], None]) -> None:
        """Have something done, as soon as a thread is free."""
        self._free.acquire()
        given = self._pool.submit(work)
        given.add_done_callback(lambda _: self._free.release())
        self._given.append(given)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Wait until all is done; what went wrong there is raised here."""
        self._pool.shutdown(cancel_futures=kind is not None)
        if kind is None:
            for given in self._given:
                given.result()


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
    if space <= 8 * len(keys):
        present = np.zeros(space, dtype=np.bool_)
        present[keys] = True
        rank = np.cumsum(present, dtype=np.int64)
        rank -= 1
        return np.flatnonzero(present), rank.take(keys)
    distinct, ranks = np.unique(keys, return_inverse=True)
    return distinct, ranks
