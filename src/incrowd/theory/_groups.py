"""A table of groups against sensitive values, and the worst group in it.

One row per group of the quasi-identifiers, one column per value of the *declared* sensitive domain, whole numbers
of records in the cells. A column may be all zero: a declared value that does not occur. A row of zeros is no group
(nobody is in it), so it is left out of every measure; rows keep their number, and an array per group holds ``nan``
there. A table without a single record is an error, because every promise about it would be empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.core.errors import DataError, InternalError, ParameterError
from incrowd.theory._numbers import EPSILON_MACHINE

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# A score of ours is a quotient of sums and products without cancellation: fewer than 16 roundings.
SCORE_ERROR = 16 * EPSILON_MACHINE
_BLOCK_CELLS = 1 << 20
_EXACT_IN_FLOAT = 1 << 53
_FEW = 64  # so many are told apart faster one by one


@dataclass(frozen=True, eq=False)
class GroupTable:
    """The groups that hold records, in the order given.

    Attributes:
        cells: records by group and sensitive value, without the empty groups.
        sizes: records by group.
        rows: where each group stands in the array that was given.
        given: how many rows that array had.
    """

    cells: npt.NDArray[np.integer[Any]]
    sizes: Integers
    rows: Integers
    given: int

    @property
    def values(self) -> int:
        """How many sensitive values the domain declares."""
        return int(self.cells.shape[1])

    @property
    def totals(self) -> list[int]:
        """Records by sensitive value, over all groups."""
        return [int(total) for total in self.cells.sum(axis=0, dtype=np.int64)]

    def blocks(self, width: int = 0) -> Iterator[tuple[slice, Integers, Integers]]:
        """Pieces small enough that a handful of temporary arrays of them fits in the cache of a processor."""
        step = max(1, _BLOCK_CELLS // max(self.values, width))
        for start in range(0, len(self.sizes), step):
            part = slice(start, min(start + step, len(self.sizes)))
            yield part, self.cells[part].astype(np.int64, copy=False), self.sizes[part, None]

    def spread(self, by_group: Floats) -> Floats:
        """An array over the groups with records, laid out over all rows that were given."""
        laid_out = np.full(self.given, np.nan)
        laid_out[self.rows] = by_group
        return laid_out


def group_table(counts: npt.ArrayLike) -> GroupTable:
    """Check a group × value array of counts and drop its empty rows."""
    cells = np.asarray(counts)
    if cells.ndim != 2 or cells.shape[1] == 0:
        raise _bad_counts("must have two dimensions: one row per group, one column per sensitive value")
    if not np.issubdtype(cells.dtype, np.integer):
        raise _bad_counts("must hold whole numbers")
    if cells.size and int(cells.min()) < 0:
        raise _bad_counts("must not hold negative numbers")
    if float(cells.sum(dtype=np.float64)) >= _EXACT_IN_FLOAT:
        raise _bad_counts(f"must add up to less than {_EXACT_IN_FLOAT} records")
    sizes = cells.sum(axis=1, dtype=np.int64)
    rows = np.flatnonzero(sizes)
    if len(rows) == 0:
        raise DataError(
            "The table holds no records.",
            code="counts-invalid",
            remedy="Nothing can be said about an empty table; check how it was read or filtered.",
        )
    if len(rows) < len(sizes):
        cells, sizes = cells[rows], sizes[rows]
    return GroupTable(cells, sizes, rows, int(np.asarray(counts).shape[0]))


def _bad_counts(problem: str) -> DataError:
    return DataError(f"The table of counts {problem}.", code="counts-invalid")


@dataclass(frozen=True, eq=False)
class Worst:
    """The cell with the largest score: its group (a row as given), its column, and the score as a fraction.

    `exact` is None when the score is infinite. `by_group` is the largest score of each group, in floating point.
    """

    group: int
    column: int
    evidence: tuple[int, ...]
    exact: Fraction | None
    by_group: Floats


Clue = tuple[int, ...]
"""The whole numbers that a score follows from."""


@dataclass(frozen=True, eq=False)
class Scores:
    """A score for every group and column of a table, the larger the worse: roughly for all at once, exactly for one.

    Floating point finds the few that matter and fractions decide about them, so that nothing depends on rounding.

    Attributes:
        table: the groups.
        rough: from a block of cells and its sizes, the score of every group and column (accurate to `SCORE_ERROR`,
            infinity allowed) and the whole numbers that determine each score.
        exact: the score of a column from those whole numbers; None for infinity.
        width: how many columns `rough` returns.
    """

    table: GroupTable
    rough: Callable[[Integers, Integers], tuple[Floats, tuple[Integers, ...]]]
    exact: Callable[[int, Clue], Fraction | None]
    width: int

    def worst(self) -> Worst:
        """The largest score over all groups and columns; of several worst cells the first one is named."""
        table = self.table
        best = np.empty(len(table.sizes))
        for part, cells, sizes in table.blocks(self.width):
            best[part] = self.rough(cells, sizes)[0].max(axis=1)
        top = float(best.max())
        cutoff = top if math.isinf(top) else top * (1 - 4 * SCORE_ERROR)
        close = np.flatnonzero(best >= cutoff)
        if math.isinf(top):
            close = close[:1]  # nothing is worse than infinite, so the first will do
        candidates = GroupTable(table.cells[close], table.sizes[close], table.rows[close], table.given)
        found: Worst | None = None
        for part, cells, sizes in candidates.blocks(self.width):
            scores, evidence = self.rough(cells, sizes)
            for row, column, clue, _ in _alike(scores >= cutoff, evidence):
                value = self.exact(column, clue)
                if found is None or (found.exact is not None and (value is None or value > found.exact)):
                    found = Worst(int(candidates.rows[part][row]), column, clue, value, best)
        if found is None:
            raise InternalError("The worst group vanished between two passes.")
        return found

    def beyond(self, limit: float | Floats, allows: Callable[[int, Clue], bool], error: float = 0.0) -> Flags:
        """Which groups have a score beyond a limit.

        Args:
            limit: what scores are held against, one number or one for each column; up to rounding.
            allows: whether a score that is near the limit is allowed, from its column and whole numbers.
            error: how far the limit may be off, relative to itself, besides a rounding or two.
        """
        low, high = limit * (1 - 4 * SCORE_ERROR - error), limit * (1 + 4 * SCORE_ERROR + error)
        flags = np.empty(len(self.table.sizes), dtype=np.bool_)
        for part, cells, sizes in self.table.blocks(self.width):
            scores, evidence = self.rough(cells, sizes)
            fails: Flags = np.any(scores > high, axis=1)
            near: Flags = np.logical_and(scores >= low, ~fails[:, None])
            if near.any():
                for _, column, clue, rows in _alike(near, evidence):
                    if not allows(column, clue):
                        fails[rows] = True
            flags[part] = fails
        return flags


def _alike(marked: Flags, evidence: tuple[Integers, ...]) -> list[tuple[int, int, Clue, Integers]]:
    """Marked cells with the same column and whole numbers: the first row, the column, the numbers and all rows.

    They come in the order in which they first occur.
    """
    row, column = marked.nonzero()
    keys = [column, *(numbers[row, column if numbers.shape[1] > 1 else 0] for numbers in evidence)]
    if len(row) <= _FEW:
        found: dict[Clue, list[int]] = {}
        for one, *key in zip(row.tolist(), *(key.tolist() for key in keys), strict=True):
            found.setdefault(tuple(key), []).append(one)
        return [(rows[0], key[0], key[1:], np.array(rows)) for key, rows in found.items()]
    places = keys
    if math.prod(int(key.max()) + 1 for key in keys) >= 1 << 62:
        places = [np.unique(key, return_inverse=True)[1] for key in keys]  # as few as a block has cells
    packed = np.zeros(len(row), dtype=np.int64)
    for place in places:
        packed = packed * (int(place.max()) + 1) + place
    order = np.argsort(packed, kind="stable")
    kinds = np.split(order, np.flatnonzero(np.diff(packed[order])) + 1)
    return [
        (int(row[kind[0]]), int(column[kind[0]]), tuple(int(key[kind[0]]) for key in keys[1:]), row[kind])
        for kind in sorted(kinds, key=lambda kind: int(kind[0]))
    ]


def as_written(number: float | Fraction) -> Fraction:
    """The decimal that a person wrote: 0.3 is 3/10, though the float that holds it is a little less."""
    return number if isinstance(number, Fraction) else Fraction(repr(float(number)))


def written_as(name: str, limit: float | Fraction) -> tuple[Fraction, Fraction]:
    """The lower and upper reading of a limit, as its float and as the decimal it was written as.

    A table that reaches exactly 3/10 satisfies "at most 0.3", and one that reaches exactly the float of 0.3 does
    too. The two readings differ by less than one rounding.
    """
    if isinstance(limit, Fraction):
        return limit, limit
    if isinstance(limit, bool) or not isinstance(limit, int | float | np.integer):
        raise ParameterError(f"{name} must be a number.", code="parameter-type", details={"parameter": name})
    if not math.isfinite(limit):
        raise ParameterError(f"{name} must be finite.", code="parameter-range", details={"parameter": name})
    if isinstance(limit, int | np.integer):
        return Fraction(int(limit)), Fraction(int(limit))
    readings = Fraction(limit), as_written(limit)
    return min(readings), max(readings)


def float_above(value: Fraction) -> float:
    """The smallest float that is not below a fraction."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
