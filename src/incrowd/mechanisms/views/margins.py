"""Sums of one table by several sets of its columns at once, and the reverse: what such sets say, for all of its cells.

A column that several sets lack is summed away once for all of them, from the table itself; what is left is small. The
reverse goes the same way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Columns = tuple[int, ...]
Shape = tuple[int, ...]


class Margins:
    """How tables of some columns are summed up by sets of them.

    Args:
        columns: of the table, in the order of its axes.
        shape: of the table.
        sets: of columns, each in this order.
    """

    def __init__(self, columns: Columns, shape: Shape, sets: Sequence[Columns]) -> None:
        self._sizes = dict(zip(columns, shape, strict=True))
        self._places = {columns: 0}
        self._steps: list[tuple[int, int]] = []
        """For every table after the first: of which one it is a sum, and over which axis."""
        self._divide(columns, set(sets) - {columns})
        self._wanted = [self._places[wanted] for wanted in sets]
        self._table = np.empty(shape)

    def _divide(self, columns: Columns, sets: set[Columns]) -> None:
        """Sets within these columns: those that lack one column are sums of the table without it."""
        while sets:
            gone = max(columns, key=lambda c: sum(c not in wanted for wanted in sets) / (1 + 1 / self._sizes[c]))
            fewer = tuple(c for c in columns if c != gone)
            lacking = {wanted for wanted in sets if gone not in wanted}
            self._steps.append((self._places[columns], columns.index(gone)))
            self._places[fewer] = len(self._steps)
            self._divide(fewer, lacking - {fewer})
            sets = sets - lacking

    def of(self, table: Array) -> list[Array]:
        """The sums of a table by each set."""
        found = [table]
        for place, axis in self._steps:
            found.append(np.add.reduce(found[place], axis))
        return [found[place] for place in self._wanted]

    def spread(self, parts: Sequence[Array]) -> Array:
        """For each cell of the table, the sum of what the sets say of it; the array is used again by the next call."""
        said: list[list[Array]] = [[] for _ in range(len(self._steps) + 1)]
        for place, part in zip(self._wanted, parts, strict=True):
            said[place].append(part)
        for number in range(len(self._steps), 0, -1):
            place, axis = self._steps[number - 1]
            first, *others = said[number]
            for part in others:
                first = first + part
            said[place].append(first[(slice(None),) * axis + (None,)])
        table, own = self._table, said[0]
        if len(own) < 2:
            table[...] = own[0] if own else 0.0
            return table
        np.add(own[0], own[1], out=table)
        for part in own[2:]:
            table += part
        return table
