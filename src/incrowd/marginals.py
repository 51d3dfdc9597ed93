"""A table of which only some marginal counts are known: what is left to look at if no machine can hold its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.core.errors import InternalError
from incrowd.histogram import Column, Histogram


@dataclass(frozen=True, eq=False)
class Marginals:
    """Counts by several sets of columns of one table.

    Attributes:
        columns: all of the table's, with their labels; the codes are not known.
        parts: the counts, each by some of the columns; at least one.
    """

    columns: tuple[Column, ...]
    parts: tuple[Histogram, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def total(self) -> int:
        return self.parts[0].total

    @cached_property
    def tallies(self) -> dict[str, np.ndarray]:
        return {name: self.project([name]).tallies[name] for name in self.names}

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def project(self, names: Sequence[str]) -> Histogram:
        """Counts by these columns, in this order, from the smallest part that has them."""
        fitting = [part for part in self.parts if set(names) <= set(part.names)]
        if not fitting:
            raise InternalError("a table was not counted by columns that are looked at", columns=len(names))
        return min(fitting, key=len).project(names)


Counted = Histogram | Marginals
"""A table that can be counted by some of its columns."""


@dataclass(frozen=True, eq=False)
class Crowds:
    """A table of which only large cells are known, as it is published, and the counts of each column.

    Attributes:
        cells: those with `at_least` so many records, at the levels that are published.
        at_least: so many.
        smaller: how many cells have 0, 1, … `at_least` − 1 records; the first number is 0.
        whole: the whole table by each of its columns, base codes.
    """

    cells: Histogram
    at_least: int
    smaller: np.ndarray
    whole: Marginals

    def __post_init__(self) -> None:
        small = int(self.smaller @ np.arange(len(self.smaller)))
        if (
            len(self.smaller) != self.at_least
            or self.smaller[0]
            or (len(self.cells) and int(self.cells.counts.min()) < self.at_least)
            or self.cells.total + small != self.whole.total
            or self.cells.names != self.whole.names
        ):
            raise InternalError("a table was counted in two ways that do not agree")

    @property
    def total(self) -> int:
        return self.whole.total

    @property
    def cells_in_all(self) -> int:
        """The number of cells at the levels that are published, small ones among them."""
        return len(self.cells) + int(self.smaller.sum())


class Tally:
    """Counts by several sets of columns at once, a batch of records at a time.

    Args:
        sizes: how many codes each column has.
        wanted: the sets, as positions of columns.
    """

    def __init__(self, sizes: Sequence[int], wanted: Sequence[Sequence[int]]) -> None:
        self._wanted = [(list(columns), [sizes[column] for column in columns]) for columns in wanted]
        self.counts = [np.zeros(int(np.prod(lengths, dtype=np.int64)), dtype=np.int64) for _, lengths in self._wanted]
        """For each set the counts of all its combinations of codes, the last column varying fastest."""

    def add(self, codes: Sequence[np.ndarray], counts: np.ndarray) -> None:
        """Records of these codes, so many of each."""
        for (columns, lengths), sums in zip(self._wanted, self.counts, strict=True):
            cells = np.zeros(len(counts), dtype=np.int64)
            for column, length in zip(columns, lengths, strict=True):
                cells *= length
                cells += codes[column]
            # Sums of floating-point whole numbers are exact below 2^53.
            np.add(sums, np.bincount(cells, weights=counts, minlength=len(sums)).astype(np.int64), out=sums)
