"""What must hold for the groups of a node, and which groups are left out so that it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import DataError, ParameterError
from incrowd.guarantees._groups import Flags, as_written
from incrowd.guarantees._numbers import require_between
from incrowd.guarantees.requirements import KAnonymity, Requirement, suppress
from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Histogram
from incrowd.recoding.lattice import Codes, ranked

Cells = tuple[Codes, Codes, Codes]
"""Of each cell: its group, its records, and its combination of sensitive values."""

MOST_CELLS = 1 << 26
"""Groups times sensitive values that are counted at once: half a gigabyte."""

LeftOut = tuple[Flags, int]
"""Which groups are left out, and how many records these hold."""


@dataclass(frozen=True)
class Demand:
    """A requirement, and the sensitive column that it is about, if it is about one."""

    requirement: Requirement
    sensitive: str | None = None

    def __post_init__(self) -> None:
        if self.requirement.about_values and self.sensitive is None:
            raise ParameterError(
                f"Which sensitive column is this about: {self.requirement.name}?", code="parameter-combination"
            )

    @property
    def name(self) -> str:
        """What is demanded, in plain words."""
        return self.requirement.name if self.sensitive is None else f"{self.requirement.name} ({self.sensitive})"


class Demands:
    """All that a table must keep, prepared for one table and a share of records that may be left out.

    Attributes:
        k: the least number of records of a group.
        room: how many records may be left out.
        combination: of each cell, its combination of sensitive values; None if none is asked about.
        predictive: what satisfies does so after any merge, so every node above a satisfying one satisfies.
    """

    def __init__(self, demands: Sequence[Demand], table: Histogram, suppression: float) -> None:
        share = as_written(require_between("suppression", suppression, 0, 1, open_low=False, open_high=False))
        self.room = int(share * Fraction(table.total))
        self.k = max([d.requirement.k for d in demands if isinstance(d.requirement, KAnonymity)], default=1)
        about = [d for d in demands if d.requirement.about_values]
        names = sorted({str(d.sensitive) for d in about})
        self._values = [(d.requirement, names.index(str(d.sensitive))) for d in about]
        self._sizes = [len(table[name].labels) for name in names]
        self._codes: list[Codes] = []
        self.combination: Codes | None = None
        if names:
            self._codes, self.combination = _combinations(table, names)
        self._whole = [
            np.bincount(table[name].codes, weights=table.counts, minlength=size).astype(np.int64)
            for name, size in zip(names, self._sizes, strict=True)
        ]
        # With nothing left out, what is monotone rules out all that is finer; else only what is lost for good does.
        self._pruning = [
            (requirement, place)
            for requirement, place in self._values
            if requirement.survives_any_merge or (self.room == 0 and requirement.monotone)
        ]
        self.predictive = len(self._pruning) == len(self._values)

    def left_out(self, sizes: Codes, cells: Callable[[], Cells], room: int) -> LeftOut | None:
        """Which groups must be left out; None if these are all of them, or more than `room` records."""
        return self._left_out(sizes, cells, room, self._values)

    def surely_left_out(self, sizes: Codes, cells: Callable[[], Cells], room: int) -> LeftOut | None:
        """The same of groups that will be split: which are lost however they are; None if no split satisfies."""
        return self._left_out(sizes, cells, room, self._pruning)

    def _left_out(
        self, sizes: Codes, cells: Callable[[], Cells], room: int, values: Sequence[tuple[Requirement, int]]
    ) -> LeftOut | None:
        out: Flags = sizes < self.k
        small = np.count_nonzero(out)
        lost = int(sizes[out].sum()) if small else 0
        if lost > room or small == len(sizes):
            return None
        if not values:
            return out, lost
        left = np.flatnonzero(~out)
        group, counts, combination = cells()
        if small:
            inside = ~out.take(group)
            group = (np.cumsum(~out) - 1).take(group[inside])
            counts, combination = counts[inside], combination[inside]
        tables = {place: self._tabulated(len(left), group, counts, combination, place) for _, place in values}
        more = suppress([(requirement, tables[place]) for requirement, place in values], room - lost)
        if more is None or more.all():
            return None
        out[left[more]] = True
        return out, int(sizes[out].sum())

    def kept_by_parts(self, sizes: Codes, cells: Callable[[], Cells]) -> bool:
        """Whether these groups keep everything as part of a whole table, nothing being left out."""
        if int(sizes.min()) < self.k:
            return False
        if not self._values:
            return True
        group, counts, combination = cells()
        for requirement, place in self._values:
            table = self._tabulated(len(sizes), group, counts, combination, place)
            if requirement.about_whole:
                others = self._whole[place] - table.sum(axis=0)
                table = np.concatenate((table, others[None, :]))
            if requirement.failing(table)[: len(sizes)].any():
                return False
        return True

    def _tabulated(self, groups: int, group: Codes, counts: Codes, combination: Codes, place: int) -> Codes:
        """Records by group and value of one sensitive column."""
        values = self._sizes[place]
        require_room(groups, values)
        cells = group * values + self._codes[place].take(combination)
        records = np.bincount(cells, weights=counts, minlength=groups * values)
        return records.astype(np.int64).reshape(groups, values)

    def ends(self, cells: int) -> Codes:
        """The combination of each cell; where none is asked about, all are the same."""
        return np.zeros(cells, dtype=np.int64) if self.combination is None else self.combination

    def failing_alone(self, counts: Codes) -> Requirement | None:
        """The first requirement that no node can keep, because the whole table, taken as one group, does not.

        Where records may be left out, what remains of a table may keep what the whole does not; so only requirements
        that rule out all that is finer are asked.
        """
        if int(counts.sum()) < self.k:
            return KAnonymity(self.k)
        one = np.zeros_like(counts)
        for requirement, place in self._pruning:
            if not requirement.holds(self._tabulated(1, one, counts, self.ends(len(counts)), place)):
                return requirement
        return None


def require_room(groups: int, values: int) -> None:
    """Refuse a table of groups by sensitive values that would not fit in memory."""
    if groups * values > MOST_CELLS:
        raise DataError(
            f"The groups of the table by the {values:,} values of a sensitive column would not fit in memory.",
            code="domain-large",
            remedy="Publish the sensitive column at a coarser level, or fix coarser levels of the other columns.",
            details={"values": values, "most_cells": MOST_CELLS},
        )


def require_task(table: Histogram, hierarchies: Mapping[str, Hierarchy], demands: Sequence[Demand]) -> None:
    """Refuse what cannot be a task of generalizing: nothing to recode, nothing demanded, or nobody in the table.

    A hierarchy must start with the column's values as they are: everything here counts on different codes at level 0
    being different values.
    """
    if not hierarchies or not demands or any(d.sensitive in hierarchies for d in demands):
        raise ParameterError(
            "Generalizing needs quasi-identifiers, and demands about columns that are not among them.",
            code="parameter-combination",
        )
    for name, hierarchy in hierarchies.items():
        if not len(table[name].labels) == len(hierarchy.levels[0].to) == len(hierarchy.levels[0].labels):
            raise ParameterError(
                f"The hierarchy of {name!r} does not start with the values of the column.", code="parameter-combination"
            )
    if not table.total:
        raise DataError("A table without records cannot be generalized.", code="data-empty")


def _combinations(table: Histogram, names: Sequence[str]) -> tuple[list[Codes], NDArray[np.int64]]:
    """For each combination of sensitive values that occurs the code of each column; and each cell's combination."""
    combination, known = np.zeros(len(table), dtype=np.int64), np.zeros(1, dtype=np.int64)
    codes: list[Codes] = []
    for name in names:
        size = len(table[name].labels)
        distinct, combination = ranked(combination * size + table[name].codes, len(known) * size)
        known = distinct
        codes = [*(column.take(distinct // size) for column in codes), distinct % size]
    return codes, combination
