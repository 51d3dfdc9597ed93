"""What every node of a lattice is worth: the sum over its cells of weight times value, the value of a cell going by
its number of records. Exact, and for all nodes at once.

Counting the table anew for each node would be hopeless. Here columns are taken one after the other. At depth j the
columns before j have their levels and the others are raw; a cell is a pair of whole numbers, its *prefix* for the
columns that have their levels and its *suffix* for the raw rest. Five things keep the work small:

- Cells of equal prefix and suffix may stay apart, so nothing is sorted: records are added up under prefixes only.
- Where most of the cells could be brought together, they are: that is found out from a few of them.
- A prefix of so few records that no cell under it can have any value is not followed, and neither are codes of so few.
  Columns of many values go first, which makes prefixes small soonest.
- A cell that is alone under its prefix stays alone however the other columns are shown. What it adds to every node
  from here on is a sum over columns, and is added to all of them at once.
- Where there is not much more room behind the prefixes than there are cells, a plain array of counts takes over:
  adding up along an axis, and looking for crowds there, is many times faster than grouping.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from threading import Lock, Semaphore
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from incrowd.histogram import smallest_type
from incrowd.recoding.lattice import Codes, Ladder, Lattice, Node, Prefixes, in_order, narrow, ranked, room_for, starts
from incrowd.recoding.pairs import Floats, totals

_PLACES = 1 << 21  # of one array; where more are needed, prefixes take turns
_LOOSE = 4  # up to so many cells for each prefix, it is worth looking for some that are alone
_FEW_CELLS = 1 << 12  # not worth bringing together
_MIXER = np.uint64(0x9E3779B97F4A7C15)
_SAMPLED = np.uint64(1 << 58)  # one in 64
_MOST_NUMBERS = 1 << 31  # of suffixes: with those of prefixes, which are not many more than cells, below 2**63
_MANY_GROUPS = 64
_MANY_CELLS = 1 << 17  # from here on the work under each prefix outweighs what handing it to another thread costs
_SHARED_DEPTH = 2
_BYTES_PER_CELL = 200  # what one thread's part takes, about
_THREADS_MEMORY = 1 << 30


class Values(Protocol):
    """What a cell is worth before its weight, by its number of records."""

    @property
    def least(self) -> int:
        """The smallest number of records with any value; at least 1."""

    def values(self, counts: Codes) -> Codes:
        """The value of each cell."""


def scores(lattice: Lattice, columns: Sequence[Codes], counts: Codes, worth: Values) -> Codes:
    """The score of every node, in the order of `Lattice.nodes`.

    Args:
        lattice: the ladders' weights are those of the cells.
        columns: the raw codes of each cell of the table, column by column.
        counts: how many records each holds, fewer than 2**52 together.
        worth: the values of cells; no score may reach 2**63.
    """
    if len(counts) == 0:
        return np.zeros(lattice.size, dtype=np.int64)
    return _Scoring(lattice, columns, counts, worth).run()


class _ScoredCells(NamedTuple):
    """Some cells of a table whose first columns have their levels.

    Attributes:
        prefixes: what stands for the first columns.
        rows: for each, a cell of the table that has its raw codes.
        counts: their records; floating-point numbers, since they are to be added up, and exact.
    """

    prefixes: Prefixes
    rows: Codes
    counts: Floats


class _Scoring:
    """The state of one descent.

    Attributes:
        order: the columns, as they are taken.
        codes: per depth, the raw code of every cell of the table; only codes that occur have a number.
        steps: per depth and level, the code of each code of the level below.
        weights: per depth and level, the weight of each code.
        same: per depth and level, the weight of all codes, if it is the same.
        maps: per depth and level, the code of each raw code.
        common: per depth and level, the same for codes of enough records only, which are numbered anew, with their
            weights; −1 for the others.
        room: per depth, how many different raw codes there could be from there on.
        suffixes: per depth, a number below `numbers` for those of each cell. They are as many as there is room, and
            stand for the codes one after the other, unless that would be far too many.
        below: how many nodes there are below each depth.
        scores: of all nodes, the level of the last column varying fastest.
    """

    def __init__(self, lattice: Lattice, columns: Sequence[Codes], counts: Codes, worth: Values) -> None:
        self.order = sorted(range(len(columns)), key=lambda i: -len(lattice.ladders[i].maps[0]))
        self.worth, self.least = worth, worth.least
        self.narrow = narrow(int(counts.sum()))
        size = len(counts)
        self._top = _ScoredCells(Prefixes.empty(size), np.arange(size, dtype=narrow(size)), counts.astype(np.float64))
        self.codes, self.steps, self.weights = [], [], []
        for i in self.order:
            ladder = lattice.ladders[i]
            occurring = np.flatnonzero(np.bincount(columns[i], minlength=len(ladder.maps[0])))
            number, steps, weights = Ladder(tuple(to[occurring] for to in ladder.maps), ladder.weights).in_order
            codes = np.zeros(len(ladder.maps[0]), dtype=smallest_type(len(number)))
            codes[occurring] = number
            self.codes.append(codes.take(columns[i]))
            self.steps.append(steps)
            self.weights.append(weights)
        self.same = [[int(w[0]) if (w == w[0]).all() else None for w in weights] for weights in self.weights]
        self.maps = [_composed(steps) for steps in self.steps]
        self.common = [self._common(depth) for depth in range(len(self.order))]
        sizes = [len(weights[0]) for weights in self.weights]
        self.room = [math.prod(sizes[depth:]) for depth in range(len(sizes) + 1)]
        self.suffixes, self.numbers = self._numbered(sizes)
        levels = [len(steps) for steps in self.steps]
        self.below = [math.prod(levels[depth:]) for depth in range(len(levels) + 1)]
        self.scores = np.zeros(lattice.size, dtype=np.int64)
        self._adding = Lock()
        self._workers: Workers | None = None

    def _common(self, depth: int) -> list[tuple[Codes, Codes]]:
        """By level; what is rare there can be left out, but not what is rare before it is brought together."""
        found = []
        by_code = totals(self.codes[depth], self._top.counts, len(self.maps[depth][0]))
        for to, weights in zip(self.maps[depth], self.weights[depth], strict=True):
            enough = totals(to, by_code, len(weights)) >= self.least
            number = np.where(enough, np.cumsum(enough) - 1, -1)
            found.append((number.take(to), weights[enough]))
        return found

    def _numbered(self, sizes: Sequence[int]) -> tuple[list[Codes], list[int]]:
        """The suffixes and how many numbers they take, by depth."""
        cells = len(self._top.rows)
        suffixes: list[Codes] = [np.zeros(cells, dtype=np.int64)]
        numbers = [1]
        for depth, (codes, size) in reversed(list(enumerate(zip(self.codes, sizes, strict=True)))):
            # Before the first column there is nothing to be merged with: only arrays would need the numbers.
            if depth == 0 and self.room[0] > room_for(cells):
                suffixes.append(suffixes[-1][:0])
                numbers.append(0)
                break
            suffix = codes.astype(np.int64)
            suffix *= numbers[-1]
            suffix += suffixes[-1]
            many = size * numbers[-1]
            if many > max(_MOST_NUMBERS, room_for(cells)):
                found, suffix = ranked(suffix, many)
                many = len(found)
            suffixes.append(suffix.astype(smallest_type(many)))
            numbers.append(many)
        return suffixes[::-1], numbers[::-1]

    def run(self) -> Codes:
        """The scores, in the lattice's own order."""
        size = len(self._top.rows)
        threads = min(os.cpu_count() or 1, _THREADS_MEMORY // (_BYTES_PER_CELL * size))
        if threads <= 1 or size < _MANY_CELLS or len(self.order) <= _SHARED_DEPTH:
            self._descend(self._top, ())
        else:
            with Workers(threads) as self._workers:
                self._descend(self._top, ())
        # Columns of one level have no axis: there may be more of them than an array can have.
        choices = [(i, len(steps)) for i, steps in zip(self.order, self.steps, strict=True) if len(steps) > 1]
        axes = np.argsort([i for i, _ in choices])
        return self.scores.reshape([levels for _, levels in choices]).transpose(axes).ravel()

    def _descend(self, cells: _ScoredCells, levels: Node) -> None:
        """Score every node that begins with these levels."""
        depth = len(levels)
        if levels and levels[-1]:
            cells = self._merged(cells, depth)
        prefixes, rows, counts = cells
        if len(rows) == 0:
            return
        if prefixes.number * self.room[depth] <= room_for(len(rows)):
            self._unfold(cells, levels)
            return
        raw = self.codes[depth].take(rows)
        for level, (to, weights) in enumerate(self.common[depth]):
            here, (longer, rows, counts) = (*levels, level), self._lengthened(cells, raw, to, weights)
            records = totals(longer.of, counts, longer.number)
            crowds = np.flatnonzero(records >= self.least)
            if depth == len(self.order) - 1:
                values = self.worth.values(records.take(crowds).astype(np.int64))
                self._add(here, _dot(values, longer.weight(crowds)))
                continue
            del records
            below = self._followed(_ScoredCells(longer, rows, counts), crowds, here)
            del longer, crowds
            if self._workers is not None and depth + 1 == _SHARED_DEPTH:
                self._workers.do(partial(self._descend, below, here))
            else:
                self._descend(below, here)
            del below

    def _lengthened(self, cells: _ScoredCells, raw: Codes, to: Codes, weights: Codes) -> _ScoredCells:
        """With one more column, at some level; without cells whose code is −1 there, or hardly shared by others."""
        if int(to.min()) < 0:
            at = np.flatnonzero(to.take(raw) >= 0)
            cells, raw = _some(cells, at), raw.take(at)
        prefixes, _, counts = cells
        if prefixes.number * len(weights) > room_for(len(raw)):
            # Before sorting so many: cells of equal prefix and code fall into the same heap, perhaps with others. In a
            # heap of too few records there is nothing to be found.
            bits = len(raw).bit_length() + 1
            heap = (_scattered(prefixes.of * len(weights) + to.take(raw)) >> np.uint64(64 - bits)).view(np.int64)
            at = np.flatnonzero(totals(heap, counts, 1 << bits).take(heap) >= self.least)
            cells, raw = _some(cells, at), raw.take(at)
        return cells._replace(prefixes=cells.prefixes.lengthened(raw, to, weights))

    def _followed(self, cells: _ScoredCells, crowds: Codes, levels: Node) -> _ScoredCells:
        """The cells under these prefixes, except those alone under theirs, which are scored."""
        prefixes = cells.prefixes
        if prefixes.number * _LOOSE > len(cells.rows):
            alone = np.bincount(prefixes.of, minlength=prefixes.number).take(crowds) == 1
            if alone.any():
                self._score_alone(_under(cells, crowds[alone]), levels)
                crowds = crowds[~alone]
        return cells if len(crowds) == prefixes.number else _under(cells, crowds)

    def _score_alone(self, cells: _ScoredCells, levels: Node) -> None:
        """Add what these cells, each alone under its prefix, add to every node that begins with these levels."""
        prefixes, rows, counts = cells
        values = self.worth.values(counts.astype(np.int64))
        total = int(values.sum())
        found = np.array([_dot(values, prefixes.weight(prefixes.of))])
        for depth in range(len(levels), len(self.order)):
            by_level = [
                total * same if same is not None else _dot(values, weights.take(to).take(self.codes[depth].take(rows)))
                for same, to, weights in zip(self.same[depth], self.maps[depth], self.weights[depth], strict=True)
            ]
            found = np.add.outer(found, np.array(by_level, dtype=np.int64)).ravel()
        self._add(levels, found)

    def _unfold(self, cells: _ScoredCells, levels: Node) -> None:
        """Score every node that begins with these levels from arrays of all that could stand behind some prefixes."""
        depth = len(levels)
        share = max(1, _PLACES // self.room[depth])
        for first in range(0, cells.prefixes.number, share):
            some = cells
            if share < cells.prefixes.number:
                some = _under(cells, np.arange(first, min(first + share, cells.prefixes.number)))
            place = self.suffixes[depth].take(some.rows).astype(np.int64)
            place *= some.prefixes.number
            place += some.prefixes.of
            array = totals(place, some.counts, some.prefixes.number * self.room[depth]).astype(self.narrow)
            weight = some.prefixes.weight(np.arange(some.prefixes.number))
            del some, place
            self._add(levels, self._array_scores(array, 1, weight, depth, ()))

    def _merged(self, cells: _ScoredCells, depth: int) -> _ScoredCells:
        """The same cells, those of equal prefix and suffix brought together if there are many such."""
        prefixes, rows, counts = cells
        if len(rows) < _FEW_CELLS or prefixes.number * self.room[depth] <= room_for(len(rows)):
            return cells
        keys = prefixes.of * self.numbers[depth]
        keys += self.suffixes[depth].take(rows)
        some = keys[_scattered(keys) < _SAMPLED]
        if 2 * len(np.unique(some)) > len(some):
            return cells
        along, order = in_order(keys, prefixes.number * self.numbers[depth])
        at = np.flatnonzero(starts(along))
        first = order.take(at)
        counts = np.add.reduceat(counts.take(order), at)
        return _ScoredCells(prefixes._replace(of=prefixes.of.take(first)), rows.take(first), counts)

    def _array_scores(self, array: Codes, before: int, weight: Codes, depth: int, levels: Node) -> Codes:
        """The scores of all nodes, given the levels of some columns; the others are raw along the axes of an array.

        Its axes are those of columns that have their levels, `before` places in all; of the others; and of prefixes.
        """
        if depth == len(self.order):
            return self._array_score(array, weight, levels)
        found = []
        for level, step in enumerate(self.steps[depth]):
            if level:
                array = _summed(array.reshape(before, len(step), -1), step)
            size = len(self.weights[depth][level])
            found.append(self._array_scores(array, before * size, weight, depth + 1, (*levels, level)))
        return np.concatenate(found)

    def _array_score(self, array: Codes, weight: Codes, levels: Node) -> Codes:
        """The score of one node whose cells are the places of an array."""
        array = array.ravel()
        at = np.flatnonzero(array >= self.least)
        values = self.worth.values(array.take(at))
        weights, inside, same = weight.take(at % len(weight)), len(weight), 0
        for depth, level in reversed(list(enumerate(levels, len(self.order) - len(levels)))):
            of_codes, of_all = self.weights[depth][level], self.same[depth][level]
            if of_all is None:
                weights += of_codes.take(at // inside % len(of_codes))
            else:
                same += of_all
            inside *= len(of_codes)
        weights += same
        return np.array([_dot(values, weights)])

    def _add(self, levels: Node, found: Codes | int) -> None:
        """To the scores of all nodes that begin with these levels."""
        first = sum(level * self.below[depth + 1] for depth, level in enumerate(levels))
        with self._adding:
            self.scores[first : first + self.below[len(levels)]] += found


def _summed(array: Codes, step: Codes) -> Codes:
    """Its middle axis added up in groups; for a few of them, `einsum` is much faster than `reduceat`."""
    first = np.flatnonzero(np.diff(step, prepend=-1))
    if len(first) == len(step):
        return array
    before, _, after = array.shape
    if len(first) > _MANY_GROUPS:
        return np.asarray(np.add.reduceat(array, first, axis=1, dtype=array.dtype))
    found = np.empty((before, len(first), after), dtype=array.dtype)
    for group, (start, end) in enumerate(pairwise([*first.tolist(), len(step)])):
        np.einsum("ijk->ik", array[:, start:end], out=found[:, group])
    return found


def _composed(steps: Sequence[Codes]) -> list[Codes]:
    """The code at each level of every raw code, from the steps between the levels."""
    maps = [steps[0]]
    for step in steps[1:]:
        maps.append(step.take(maps[-1]))
    return maps


def _under(cells: _ScoredCells, some: Codes) -> _ScoredCells:
    """The cells under some prefixes, which are numbered anew."""
    prefixes, at = cells.prefixes.chosen(some)
    return _ScoredCells(prefixes, cells.rows.take(at), cells.counts.take(at))


def _some(cells: _ScoredCells, at: Codes) -> _ScoredCells:
    """The cells at these places, whatever their prefixes."""
    prefixes, rows, counts = cells
    return _ScoredCells(prefixes._replace(of=prefixes.of.take(at)), rows.take(at), counts.take(at))


def _scattered(keys: Codes) -> NDArray[np.uint64]:
    """A number of 64 bits for each key, the same for equal keys, its upper bits evenly spread."""
    return keys.view(np.uint64) * _MIXER


def _dot(values: Codes, weights: Codes) -> int:
    return int(np.dot(values, weights))


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
