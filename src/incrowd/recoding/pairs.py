"""How many records each combination of the values of two columns has, for every pair of columns, in few passes.

A pass over many cells costs more than adding up what it counted. So columns with few values are counted together, two
groups of them at a time, and the pairs among them are sums over the other columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from incrowd.histogram import Histogram, smallest_type

Floats = NDArray[np.float64]
Group = tuple[str, ...]
Pair = tuple[str, str]

_DENSE = 2**20  # tables of possible cells up to this size are filled directly
_FEWEST = 2**12  # a table of so many is nothing


class Sums(NamedTuple):
    """Counts by some columns; a combination of their codes is one number, the last column varying fastest.

    Attributes:
        counts: the number of records of each combination.
        keys: the combinations, in order, if they are not all that there could be.
    """

    counts: Floats
    keys: NDArray[np.int64] | None = None

    def occurring(self) -> tuple[NDArray[np.int64], Floats]:
        """The combinations that occur, and their counts."""
        if self.keys is not None:
            return self.keys, self.counts
        keys = np.flatnonzero(self.counts)
        return keys.astype(np.int64, copy=False), self.counts[keys]

    def at(self, sought: NDArray[np.int64]) -> Floats:
        """The count of each combination; 0 for one that is not there."""
        if self.keys is None:
            return self.counts[sought]
        if not len(self.keys):
            return np.zeros(len(sought))
        place = np.minimum(np.searchsorted(self.keys, sought), len(self.keys) - 1)
        return np.where(self.keys[place] == sought, self.counts[place], 0.0)


def paired_sums(table: Histogram, other: Histogram) -> Iterator[tuple[Pair, Sums, Sums]]:
    """For every pair of columns, in some order, the sums of a table and of another with no more labels anywhere."""
    one, two = _PairCount(table), _PairCount(other)
    sizes = {column.name: len(column.labels) for column in table.columns}
    left = set(combinations(table.names, 2))
    for first, second in _blocks(sizes, min(_DENSE, max(len(table), _FEWEST))):
        inside = [pair for pair in combinations(table.names, 2) if pair in left and {*pair} <= {*first, *second}]
        left -= set(inside)
        if not inside:
            continue
        yield from zip(inside, one.sums(first, second, inside), two.sums(first, second, inside), strict=True)
    for pair in sorted(left):
        yield pair, one.pair(pair), two.pair(pair)


def _blocks(sizes: Mapping[str, int], most: int) -> Iterator[tuple[Group, Group]]:
    """Pairs of groups of columns that have at most so many combinations together."""
    groups: list[Group] = []
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        fitting = (i for i, group in enumerate(groups) if _space(sizes, (*group, name)) <= math.isqrt(most))
        place = next(fitting, None)
        if place is None:
            groups.append((name,))
        else:
            groups[place] = (*groups[place], name)
    found = combinations(groups, 2) if len(groups) > 1 else [(group[:1], group[1:]) for group in groups]
    yield from ((a, b) for a, b in found if _space(sizes, (*a, *b)) <= most)


def _space(sizes: Mapping[str, int], names: Sequence[str]) -> int:
    return math.prod(sizes[name] for name in names)


class _PairCount:
    """A table that is counted several times. Sums of floating-point whole numbers are exact below 2^53."""

    def __init__(self, table: Histogram) -> None:
        self._table = table
        self._sizes = {column.name: len(column.labels) for column in table.columns}
        self._weights = table.counts.astype(np.float64)
        self._keys: dict[Group, NDArray[np.unsignedinteger]] = {}

    def sums(self, first: Group, second: Group, wanted: Sequence[Pair]) -> list[Sums]:
        """Of the wanted pairs of columns among two groups."""
        names = (*first, *second)
        counts = self._counted(first, second).reshape([self._sizes[name] for name in names])
        return [Sums(_summed(counts, [names.index(name) for name in pair])) for pair in wanted]

    def pair(self, pair: Pair) -> Sums:
        """Of one pair of columns, however many values they have."""
        first, second = ((name,) for name in pair)
        if _space(self._sizes, pair) <= _DENSE:
            return Sums(self._counted(first, second))
        keys, inverse = np.unique(self._both(first, second), return_inverse=True)
        return Sums(totals(inverse, self._weights, len(keys)), keys)

    def _counted(self, first: Group, second: Group) -> Floats:
        return totals(self._both(first, second), self._weights, _space(self._sizes, (*first, *second)))

    def _both(self, first: Group, second: Group) -> NDArray[np.int64]:
        keys = self._key(first).astype(np.int64)
        keys *= _space(self._sizes, second)
        keys += self._key(second)
        return keys

    def _key(self, group: Group) -> NDArray[np.unsignedinteger]:
        """The combination of a group in each cell, kept in as few bytes as it needs."""
        if group not in self._keys:
            keys = self._table[group[0]].codes if group else np.zeros(len(self._table), dtype=np.uint8)
            if len(group) > 1:
                keys = keys.astype(smallest_type(_space(self._sizes, group)))
                for name in group[1:]:
                    keys *= keys.dtype.type(self._sizes[name])
                    keys += self._table[name].codes
            self._keys[group] = keys
        return self._keys[group]


def totals(places: NDArray[np.integer], weights: NDArray[np.integer] | Floats, size: int) -> Floats:
    """The sum of the weights at each place."""
    return np.asarray(np.bincount(places, weights=weights, minlength=size), dtype=np.float64)


def _summed(counts: Floats, axes: Sequence[int]) -> Floats:
    """The sums over all axes but two, which are flattened in the order given."""
    summed: Floats = counts.sum(axis=tuple(axis for axis in range(counts.ndim) if axis not in axes))
    return np.ravel(summed if axes[0] < axes[1] else summed.T)
