"""The true counts that views are drawn from: of a table that is here, or of one that stays in its engine.

Nothing of this may be published.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.histogram import Column, Histogram
from incrowd.sources.kept import KeptTable

Integers = NDArray[np.int64]
Places = tuple[int, ...]

_ROOM = 1 << 25
"""Cells of all cross-tabulations that are kept at once."""


class Truth:
    """Cross-tabulations of a table, each counted once as long as there is room for it.

    Attributes:
        columns: the table's columns with their labels, at the levels at which they are counted; without any codes.
        sizes: how many labels each has.
        total: the number of records.
        table: the table itself.
    """

    def __init__(self, table: Histogram | KeptTable) -> None:
        none = np.zeros(0, dtype=np.uint8)
        if isinstance(table, Histogram):
            labels = [(c.name, c.labels) for c in table.columns]
        else:
            labels = [(c.column, c.labels) for c in table.codings]
        self.columns = tuple(Column(name, shown, none) for name, shown in labels)
        self.sizes = [len(column.labels) for column in self.columns]
        self.total = table.total
        self.table = table
        self._known: dict[Places, Integers] = {}
        self._room = _ROOM

    def by(self, places: Sequence[int]) -> Integers:
        """The counts by the columns at these places, one axis for each."""
        wanted = tuple(places)
        if (known := self._known.get(wanted)) is not None:
            return known
        if isinstance(self.table, Histogram):
            found = cross([self.table.columns[place] for place in wanted], self.table.counts)
        else:
            [found] = self.table.tables([wanted])
        self._keep(wanted, found)
        return found

    def look(self, sets: Iterable[Sequence[int]]) -> None:
        """Sets of columns that are going to be asked for: an engine counts them together."""
        if isinstance(self.table, Histogram):
            return
        wanted: list[Places] = []
        room = self._room
        for places in sets:
            size = math.prod(self.sizes[place] for place in places)
            if tuple(places) not in self._known and size <= room:
                wanted.append(tuple(places))
                room -= size
        for places, found in zip(wanted, self.table.tables(wanted), strict=True):
            self._keep(places, found)

    def _keep(self, places: Places, found: Integers) -> None:
        if self._room >= found.size:
            self._room -= found.size
            self._known[places] = found


def cross(columns: Sequence[Column], counts: Integers) -> Integers:
    """A cross-tabulation with an axis for each column."""
    shape = tuple(len(column.labels) for column in columns)
    key = np.zeros(len(counts), dtype=np.int64)
    for column in columns:
        key = key * len(column.labels) + column.codes
    # Sums of whole numbers below 2**53 are exact.
    return np.bincount(key, weights=counts, minlength=math.prod(shape)).astype(np.int64).reshape(shape)
