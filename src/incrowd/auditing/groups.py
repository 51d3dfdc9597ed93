"""Records that look alike: the groups of a histogram, and how often each sensitive value occurs in them.

A table of a million groups by a thousand values does not fit in memory, and need not: most groups are small, and
groups with the same records of each value have the same measures. So each *kind* of group is looked at once, some
kinds at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.histogram import Column, Histogram
from incrowd.sources.observed import run_starts

Integers = NDArray[np.int64]

_BLOCK_CELLS = 2**21
_DEPTH = 32  # groups with more different values than this are taken to be of a kind of their own


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of a table by some columns, with the values of one more column in them.

    Groups stand in the order of their labels; their number is their position, from 0.

    Attributes:
        by: the columns, one code for each entry.
        values: how many values the sensitive domain has.
        starts: where the entries of each group begin.
        value: the sensitive value of each entry.
        count: its records.
    """

    by: tuple[Column, ...]
    values: int
    starts: Integers
    value: Integers
    count: Integers

    @classmethod
    def of(cls, histogram: Histogram, by: Sequence[str], sensitive: str) -> Grouping:
        table = histogram.project([*by, sensitive])
        columns = table.columns[:-1]
        starts = np.flatnonzero(run_starts([column.codes for column in columns]))
        last = table.columns[-1]
        return cls(columns, len(last.labels), starts, last.codes.astype(np.int64), table.counts)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def sizes(self) -> Integers:
        """The records of each group."""
        return np.add.reduceat(self.count, self.starts)

    @property
    def distinct(self) -> Integers:
        """How many different values each group has."""
        return np.diff(self.starts, append=len(self.value))

    @property
    def totals(self) -> list[int]:
        """The records of each value in the whole table."""
        sums = np.zeros(self.values, dtype=np.int64)
        np.add.at(sums, self.value, self.count)
        return [int(total) for total in sums]

    def labels(self, group: int) -> dict[str, str | None]:
        """What the records of a group have in common."""
        entry = int(self.starts[group])
        return {column.name: column.labels[int(column.codes[entry])] for column in self.by}

    def commonest(self, group: int) -> int:
        """The (first) most frequent value of a group."""
        entries = slice(int(self.starts[group]), int(self.starts[group] + self.distinct[group]))
        return int(self.value[entries][self.count[entries].argmax()])

    def kinds(self) -> Kinds:
        """The groups that have different records of some value.

        Two groups are of one kind if they agree in all their entries (value and count). That is found out entry by
        entry: what agreed so far has one identifier, and the next entry splits it. So the answer is exact, no hash.
        """
        distinct = self.distinct
        entry = _ranks(self.value * (int(self.count.max()) + 1) + self.count)
        width = int(entry.max()) + 1
        found, used = np.zeros(len(self), dtype=np.int64), 1
        for depth in range(min(int(distinct.max()), _DEPTH)):
            longer = np.flatnonzero(distinct > depth)
            ranks = _ranks(found[longer] * width + entry[self.starts[longer] + depth])
            found[longer] = used + ranks
            used += int(ranks.max()) + 1
        many = np.flatnonzero(distinct > _DEPTH)
        found[many] = used + np.arange(len(many))
        _, first, kind_of = np.unique(found, return_index=True, return_inverse=True)
        order = np.argsort(first)  # kinds in the order of their first groups
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return Kinds(self, first[order], rank[kind_of])


@dataclass(frozen=True, eq=False)
class Kinds:
    """One group of each kind.

    Attributes:
        groups: all groups.
        first: the first group of each kind, ascending.
        of: the kind of each group.
    """

    groups: Grouping
    first: Integers
    of: Integers

    def blocks(self) -> Iterator[tuple[Integers, NDArray[np.int64]]]:
        """Groups, one of each kind, and their records by value, as many at a time as fit in little memory."""
        groups = self.groups
        step = max(1, _BLOCK_CELLS // groups.values)
        for start in range(0, len(self.first), step):
            chosen = self.first[start : start + step]
            lengths = groups.distinct[chosen]
            rows = np.repeat(np.arange(len(chosen)), lengths)
            ends = np.cumsum(lengths)
            entries = np.arange(ends[-1]) + np.repeat(groups.starts[chosen] - (ends - lengths), lengths)
            cells = np.zeros((len(chosen), groups.values), dtype=np.int64)
            cells[rows, groups.value[entries]] = groups.count[entries]
            yield chosen, cells


def _ranks(keys: Integers) -> Integers:
    ranks: Integers = np.unique(keys, return_inverse=True)[1].astype(np.int64, copy=False)
    return ranks
