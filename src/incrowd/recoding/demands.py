"""What must hold for the groups of a node, and which groups are left out so that it does.

**Suppression.** With t, β and δ a group is compared with the whole table, and whoever reads a release sees only what
was published of it. So groups that fail are left out, the rest is compared with itself, and so on until nothing fails:
`suppress` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import DataError, ParameterError, UnreachableError
from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Histogram
from incrowd.recoding.lattice import Codes, ranked
from incrowd.theory._groups import Flags, Floats, GroupTable, as_written
from incrowd.theory._numbers import require_between
from incrowd.theory.requirements import BeliefRatio, KAnonymity, Requirement

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
    def belief(self) -> BeliefRatio | None:
        """The requirement, if it is about an adversary's belief."""
        return self.requirement if isinstance(self.requirement, BeliefRatio) else None

    @property
    def name(self) -> str:
        """What is demanded, in plain words."""
        return self.requirement.name if self.sensitive is None else f"{self.requirement.name} ({self.sensitive})"


@dataclass(frozen=True, eq=False)
class Groups:
    """Records that share all values that others may know.

    Attributes:
        shown: the groups, in order, with their sizes.
        cells: for each sensitive column, records by group and value.
    """

    shown: Histogram
    cells: Mapping[str, Codes]

    def of(self, demand: Demand) -> Codes:
        """What a demand is decided on."""
        return self.shown.counts[:, None] if demand.sensitive is None else self.cells[demand.sensitive]


def groups_of(table: Histogram, quasi: Sequence[str], sensitive: Sequence[str]) -> Groups:
    """The groups of a table, by the columns that others may know.

    Every demand is decided on them alone: who wants to know one sensitive column is not taken to know another.
    """
    ordered = table.project([*quasi, *sensitive])
    first = np.zeros(len(ordered), dtype=np.bool_)
    first[:1] = True
    for name in quasi:
        codes = ordered[name].codes
        first[1:] |= codes[1:] != codes[:-1]
    group, number = np.cumsum(first) - 1, int(first.sum())
    cells = {
        c.name: _tabulated(number, group, ordered.counts, c.codes, len(c.labels))
        for c in ordered.columns
        if c.name in sensitive
    }
    return Groups(ordered.project(quasi), cells)


def suppress(demands: Sequence[tuple[Requirement, NDArray[np.integer]]], most: int | None = None) -> Flags | None:
    """Which groups are left out so that all requirements hold for the rest; None if it takes more than `most` records.

    Groups that fail are left out; then those that fail a requirement about the whole in what is left, again and again
    until none does. The result does not depend on the order of groups or requirements. It may be that everything is
    left out: an empty table keeps every requirement.

    Args:
        demands: requirements, each with the same groups' counts by the values that it is about.
        most: how many records may be left out.
    """
    sizes = np.asarray(demands[0][1]).sum(axis=1, dtype=np.int64)
    out = np.zeros(len(sizes), dtype=np.bool_)
    once = [demand for demand in demands if not demand[0].about_whole]
    again = [demand for demand in demands if demand[0].about_whole]
    asked = once or again
    while asked:
        left = np.flatnonzero((sizes > 0) & ~out)
        if not len(left):
            break
        fails = np.zeros(len(left), dtype=np.bool_)
        for requirement, counts in asked:
            there = counts if len(left) == len(counts) else counts[left]
            fails |= requirement.fails(GroupTable(there, sizes[left], left, len(sizes)))
        out[left[fails]] = True
        if most is not None and int(sizes[out].sum()) > most:
            return None
        asked = again if asked is once or fails.any() else []
    return out


def least_lost(requirement: Requirement, cells: Codes, sizes: Codes, whole: Floats) -> Codes:
    """How many records of each group are lost at least, however it is split and its failing parts are left out.

    What is kept of a group, m records, has no more than c_s of each value s, and of any set S of values no more than
    m·(Σ_S a_s + e); see `Requirement.bounds`. So m ≤ m·(Σ_S a_s + e) + Σ_{not S} c_s, which bounds m
    where the bracket is below 1. Taking the values that have more than their share, a few times over, finds a good set.

    Args:
        requirement: what parts must keep.
        cells: records by group and value.
        sizes: records by group.
        whole: the largest share that each value can have of what is published.
    """
    kept = sizes.astype(np.float64)
    for shares, more, kind in requirement.bounds(sizes[:, None], whole):
        there = cells if kind is None else cells @ np.eye(len(shares), dtype=np.int64)[kind]
        for _ in range(3):
            over = there > shares * kept[:, None]
            slope, rest = ((shares * over).sum(axis=1) + more) * (1 + 1e-9), (there * ~over).sum(axis=1)
            np.minimum(kept, rest / np.maximum(1 - slope, 1e-9), out=kept, where=slope < 1)
    return np.maximum(np.ceil(sizes - kept * (1 + 1e-9) - 1e-6), 0).astype(np.int64)


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
        self._total = table.total
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
        # The others still tell how much is lost at least, whatever share of the rest each value comes to have.
        self._bounding = [demand for demand in self._values if demand not in self._pruning]
        self._asked = self._bounded = self._helped = 0
        self._most = [np.minimum(1.0, whole / max(1, table.total - self.room)) for whole in self._whole]

    def left_out(self, sizes: Codes, cells: Callable[[], Cells], room: int) -> LeftOut | None:
        """Which groups must be left out; None if these are all of them, or more than `room` records."""
        return self._left_out(sizes, cells, room, self._values, [])

    def surely_left_out(self, sizes: Codes, cells: Callable[[], Cells], room: int) -> LeftOut | None:
        """The same of groups that will be split: which are lost however they are; None if no split satisfies."""
        # Where it seldom helps, it is tried now and then only.
        self._asked += 1
        worth = 8 * self._helped >= self._bounded - 32 or self._asked % 8 == 0
        return self._left_out(sizes, cells, room, self._pruning, self._bounding if worth else [])

    def _left_out(
        self,
        sizes: Codes,
        cells: Callable[[], Cells],
        room: int,
        values: Sequence[tuple[Requirement, int]],
        bounding: Sequence[tuple[Requirement, int]],
    ) -> LeftOut | None:
        out: Flags = sizes < self.k
        small = np.count_nonzero(out)
        lost = int(sizes[out].sum()) if small else 0
        if lost > room or small == len(sizes):
            return None
        bounding = [(demand, place) for demand, place in bounding if len(sizes) * self._sizes[place] <= MOST_CELLS]
        if not values and not bounding:
            return out, lost
        left = np.flatnonzero(~out)
        group, counts, combination = cells()
        if small:
            inside = ~out.take(group)
            group = (np.cumsum(~out) - 1).take(group[inside])
            counts, combination = counts[inside], combination[inside]
        tables = {
            place: self._table(len(left), (group, counts, combination), place) for _, place in (*values, *bounding)
        }
        if values:
            more = suppress([(requirement, tables[place]) for requirement, place in values], room - lost)
            if more is None or more.all():
                return None
            out[left[more]] = True
            lost = int(sizes[out].sum())
        if bounding:
            there = sizes[left]
            least = [least_lost(demand, tables[place], there, self._most[place]) for demand, place in bounding]
            self._bounded += 1
            if lost + int((np.max(least, axis=0) * ~out[left]).sum()) > room:
                self._helped += 1
                return None
        return out, lost

    def kept_by_parts(self, sizes: Codes, cells: Callable[[], Cells]) -> bool:
        """Whether these groups keep everything as part of a whole table, nothing being left out."""
        if int(sizes.min()) < self.k:
            return False
        for requirement, place in self._values:
            table = self._table(len(sizes), cells(), place)
            if requirement.about_whole:
                others = self._whole[place] - table.sum(axis=0)
                table = np.concatenate((table, others[None, :]))
            if requirement.failing(table)[: len(sizes)].any():
                return False
        return True

    def _table(self, groups: int, cells: Cells, place: int) -> Codes:
        """Records by group and value of one sensitive column."""
        group, counts, combination = cells
        return _tabulated(groups, group, counts, self._codes[place].take(combination), self._sizes[place])

    def ends(self, cells: int) -> Codes:
        """The combination of each cell; where none is asked about, all are the same."""
        return np.zeros(cells, dtype=np.int64) if self.combination is None else self.combination

    def failing_alone(self) -> Requirement | None:
        """The first requirement that no node can keep, because the whole table, taken as one group, does not.

        Where records may be left out, what remains of a table may keep what the whole does not; so only requirements
        that rule out all that is finer are asked.
        """
        if self._total < self.k:
            return KAnonymity(self.k)
        for requirement, place in self._pruning:
            whole = self._whole[place].tolist()
            if not requirement.keeps(whole, whole):
                return requirement
        return None


def _tabulated(groups: int, group: Codes, counts: Codes, codes: Codes, values: int) -> Codes:
    require_room(groups, values)
    records = np.bincount(group * values + codes, weights=counts, minlength=groups * values)
    return records.astype(np.int64).reshape(groups, values)


def unreachable(requirement: Requirement) -> UnreachableError:
    """Not even a table of one group keeps a requirement."""
    return UnreachableError(
        f"Even with every column suppressed the table does not keep this requirement: {requirement.name}.",
        code="unreachable",
        remedy="Relax this requirement; no generalization of these columns can meet it.",
        details={"requirement": requirement.name},
    )


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
