"""What must hold for the groups of a node, and which groups are left out so that it does.

**Suppression.** With t, β and δ a group is compared with the whole table, and whoever reads a release sees only what
was published of it. So groups that fail are left out, the rest is compared with itself, and so on until nothing fails:
`suppress` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import DataError, ParameterError, UnreachableError
from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Column as HistogramColumn
from incrowd.histogram import Histogram
from incrowd.recoding.apart import Column, Concerned, Look, leave_out
from incrowd.recoding.lattice import Codes, ranked
from incrowd.sources.people import WHOSE
from incrowd.theory._groups import Flags, Floats, GroupTable, as_written
from incrowd.theory._numbers import require_between
from incrowd.theory.requirements import BeliefRatio, KAnonymity, Requirement

Cells = tuple[Codes, Codes, Codes]
"""Of each cell: its group, its records, and its combination of sensitive values."""

MOST_CELLS = 1 << 26
"""Groups times sensitive values that are counted at once: half a gigabyte."""

_SPARSE = 4
"""Groups that are left out are counted with the others, unless the table has so many times as many places as cells."""

Shown = Mapping[str, Column]
"""Columns of a table at the levels of a node."""

LeftOut = tuple[Flags, int]
"""Which groups are left out, and how many records these hold."""


@dataclass(frozen=True)
class Demand:
    """A requirement, and how it looks at the table.

    Attributes:
        requirement: what must hold.
        sensitive: the sensitive column that it is about, if it is about one; or what the combinations are called.
        by: the quasi-identifiers whose values make a group; all of them if not given.
        knowing: sensitive columns by which groups are split besides.
        of: the columns whose combinations are looked at, if these are several, or some values only; without a
            sensitive column, those whose different values are counted.
        possible: of those values, the ones that are looked at; all of them if not given.
        people: whom it is about: groups in which none of them can be are not looked at.
    """

    requirement: Requirement
    sensitive: str | None = None
    by: tuple[str, ...] | None = None
    of: tuple[str, ...] = ()
    knowing: tuple[str, ...] = ()
    possible: tuple[int, ...] | None = None
    people: Concerned | None = None

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
    def apart(self) -> bool:
        """Whether it looks at the table in a way of its own; see `apart`."""
        return self.by is not None or bool(self.of or self.knowing) or self.people is not None

    @property
    def counts_people(self) -> bool:
        """Whether it is about the number of people in each group, of whom one may have several records."""
        return self.of == (WHOSE,) and self.by is None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return self.of or (() if self.sensitive is None else (self.sensitive,))

    @property
    def name(self) -> str:
        """What is demanded, in plain words."""
        name = self.requirement.name if self.sensitive is None else f"{self.requirement.name} ({self.sensitive})"
        name += f", by {' and '.join(self.by)}" if self.by is not None else ""
        name += f", knowing {' and '.join(self.knowing)}" if self.knowing else ""
        return name if self.people is None else f"{name}, for {self.people.text}"

    def parts(self, quasi: Iterable[str]) -> tuple[str, ...]:
        """All columns whose values make a group, the table having these quasi-identifiers."""
        return (*(quasi if self.by is None else self.by), *self.knowing)


@dataclass(frozen=True, eq=False)
class Groups:
    """Records that share all values that others may know.

    Attributes:
        shown: the groups, in order, with their sizes.
        cells: for each sensitive column, records by group and value.
        records: the table that they are of.
        people: how many people each has, where that is known though the table does not say whose a record is.
    """

    shown: Histogram
    cells: Mapping[str, Codes]
    records: Histogram
    people: Codes | None = None

    def of(self, demand: Demand) -> Codes:
        """What a demand is decided on."""
        if demand.counts_people and self.people is not None:
            return self.people[:, None]
        if demand.apart:
            return self.seen_by(demand).of(replace(demand, by=None, of=(), knowing=(), possible=None, people=None))
        return self.shown.counts[:, None] if demand.sensitive is None else self.cells[demand.sensitive]

    def seen_by(self, demand: Demand) -> Groups:
        """The groups as a demand looks at them."""
        if not demand.apart:
            return self
        if demand.counts_people and self.people is not None:
            return replace(self, shown=self.shown.with_counts(self.people))
        by = demand.parts(self.shown.names)
        table = self.records.project([*by, *demand.columns])
        table = table.where(_looked_at(demand, table))
        group, shown = _grouped(table, by)
        of = map(_column, (table[name] for name in demand.columns))
        look = replace(Look.at(demand.requirement, (), of, len(table), demand.possible), part=group, parts=len(shown))
        cells = {}
        if demand.sensitive is not None:
            cells[demand.sensitive] = look.table(table.counts, _tabulated)
        elif look.distinct:
            shown = shown.with_counts(look.table(table.counts, _tabulated)[:, 0])
        return Groups(shown, cells, table)

    def failing(self, demand: Demand) -> int:
        """How many groups do not keep a demand; where it looks at nobody, none."""
        counts = self.of(demand)
        return int(demand.requirement.failing(counts).sum()) if counts.any() else 0

    def only(self, stays: Flags) -> Groups:
        """These groups alone."""
        group, _ = _grouped(self.records, self.shown.names)
        cells = {name: counts[stays] for name, counts in self.cells.items()}
        people = None if self.people is None else self.people[stays]
        return Groups(self.shown.where(stays), cells, self.records.where(stays.take(group)), people)

    def left_out(self, demands: Sequence[Demand], most: int | None = None) -> Flags | None:
        """Which groups are left out so that all demands hold for the rest; None if that is more than `most` records."""
        plain = [(demand.requirement, self.of(demand)) for demand in demands if not demand.apart]
        sizes = self.shown.counts
        out = suppress(plain, most) if plain else np.zeros(len(sizes), dtype=np.bool_)
        if out is None or not any(demand.apart for demand in demands):
            return out
        group, _ = _grouped(self.records, self.shown.names)
        looks = [
            Look.at(
                demand.requirement,
                (_column(self.records[name]) for name in demand.parts(self.shown.names)),
                (_column(self.records[name]) for name in demand.columns),
                len(self.records),
                demand.possible,
                None if demand.people is None else demand.people.among(_columns(self.records), len(self.records)),
            )
            for demand in demands
            if demand.apart or demand.requirement.about_whole
        ]
        out = leave_out(looks, group, self.records.counts, out, _tabulated)
        return None if most is not None and int(sizes[out].sum()) > most else out


def groups_of(
    table: Histogram, quasi: Sequence[str], sensitive: Sequence[str], people: Histogram | None = None
) -> Groups:
    """The groups of a table, by the columns that others may know.

    Plain demands are decided on them alone: who wants to know one sensitive column is not taken to know another.

    Args:
        table: a table of records, perhaps with whose each is (`WHOSE`).
        quasi: the columns that others may know.
        sensitive: those that they want to know.
        people: how many people each group has, if that is known otherwise: the same groups, in the same order.
    """
    ordered = table.project([*quasi, *sensitive, *(name for name in table.names if name == WHOSE)])
    group, shown = _grouped(ordered, quasi)
    cells = {
        c.name: _tabulated(len(shown), group, ordered.counts, c.codes, len(c.labels))
        for c in ordered.columns
        if c.name in sensitive
    }
    return Groups(shown, cells, ordered, None if people is None else people.counts)


def _grouped(ordered: Histogram, by: Sequence[str]) -> tuple[Codes, Histogram]:
    """The group of each cell, and the groups: of a table that is in the order of these columns."""
    first = np.zeros(len(ordered), dtype=np.bool_)
    first[:1] = True
    for name in by:
        codes = ordered[name].codes
        first[1:] |= codes[1:] != codes[:-1]
    return np.cumsum(first) - 1, ordered.project(by)


def _column(column: HistogramColumn) -> Column:
    return column.codes.astype(np.int64), column.labels


def _columns(table: Histogram) -> dict[str, Column]:
    return {column.name: _column(column) for column in table.columns}


def _looked_at(demand: Demand, table: Histogram) -> Flags:
    """The cells that a demand looks at."""
    columns = _columns(table)
    of = (columns[name] for name in demand.columns)
    concerned = None if demand.people is None else demand.people.among(columns, len(table))
    flags: Flags = Look.at(demand.requirement, (), of, len(table), demand.possible, concerned).value >= 0
    return flags


def suppress(
    demands: Sequence[tuple[Requirement, NDArray[np.integer]]], most: int | None = None, sizes: Codes | None = None
) -> Flags | None:
    """Which groups are left out so that all requirements hold for the rest; None if it takes more than `most` records.

    Groups that fail are left out; then those that fail a requirement about the whole in what is left, again and again
    until none does. The result does not depend on the order of groups or requirements. It may be that everything is
    left out: an empty table keeps every requirement.

    Args:
        demands: requirements, each with the same groups' counts by the values that it is about.
        most: how many records may be left out.
        sizes: records by group, if they are known.
    """
    if sizes is None:
        sizes = np.asarray(demands[0][1]).sum(axis=1, dtype=np.int64)
    out = np.zeros(len(sizes), dtype=np.bool_)
    once = [demand for demand in demands if not demand[0].about_whole]
    again = [demand for demand in demands if demand[0].about_whole]
    asked = once or again
    while asked:
        left = ((sizes > 0) & ~out).nonzero()[0]
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
    where the bracket is below 1. The values that have more than their share are a good set. (To take those that have
    more than their share of what is left then spares a search three nodes in a hundred, and takes longer.)

    Args:
        requirement: what parts must keep.
        cells: records by group and value.
        sizes: records by group.
        whole: the largest share that each value can have of what is published.
    """
    kept, records = sizes.astype(np.float64), cells.astype(np.float64)
    for shares, more, kind in requirement.bounds(sizes[:, None], whole):
        there = records if kind is None else records @ np.eye(len(shares))[kind]
        over = (there > shares * kept[:, None]).astype(np.float64)
        slope = over @ shares if shares.ndim == 1 else np.einsum("gs,gs->g", over, shares)
        slope = (slope + more) * (1 + 1e-9)
        rest = sizes - np.einsum("gs,gs->g", over, there)
        np.minimum(kept, rest / np.maximum(1 - slope, 1e-9), out=kept, where=slope < 1)
    return np.maximum(np.ceil(sizes - kept * (1 + 1e-9) - 1e-6), 0).astype(np.int64)


class Demands:
    """All that a table must keep, prepared for one table and a share of records that may be left out.

    Attributes:
        k: the least number of records of a group.
        room: how many records may be left out.
        combination: of each cell, its combination of sensitive values; None if none is asked about.
        predictive: what satisfies does so after any merge, so every node above a satisfying one satisfies.
        apart: the demands that `left_out_apart` decides, and no other method.
    """

    def __init__(self, demands: Sequence[Demand], table: Histogram, suppression: float) -> None:
        share = as_written(require_between("suppression", suppression, 0, 1, open_low=False, open_high=False))
        self._total = table.total
        self.room = int(share * Fraction(table.total))
        plain = [d for d in demands if not d.apart]
        # So many people have at least as many records.
        sized = [d.requirement for d in demands if not d.apart or d.counts_people]
        self.k = max([size.k for size in sized if isinstance(size, KAnonymity)], default=1)
        about = [d for d in plain if d.requirement.about_values]
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
        self.apart = [d for d in demands if d.apart]
        self._looks = [d for d in demands if d.apart or (self.apart and d.requirement.about_whole)]
        self._sensitive = {name: _column(table[name]) for d in self._looks for name in (*d.columns, *d.knowing)}
        self.predictive = len(self._pruning) == len(self._values) and all(map(self._predicts, self.apart))
        # The others still tell how much is lost at least, whatever share of the rest each value comes to have.
        self._bounding = [demand for demand in self._values if demand not in self._pruning]
        self._asked = self._bounded = self._helped = 0
        self._most = [np.minimum(1.0, whole / max(1, table.total - self.room)) for whole in self._whole]

    def left_out(self, sizes: Codes, cells: Callable[[], Cells], room: int) -> LeftOut | None:
        """Which groups must be left out; None if these are all of them, or more than `room` records."""
        return self._left_out(sizes, cells, room, self._values, [])

    def left_out_apart(self, sizes: Codes, group: Codes, counts: Codes, out: Flags, shown: Shown) -> Flags | None:
        """Which groups must be left out for demands that look at the table in ways of their own, too.

        Args:
            sizes: records by group.
            group: of each cell of the table.
            counts: of each cell.
            out: the groups that are left out for the sake of the others.
            shown: the columns at the node that is looked at: those of the quasi-identifiers, by name.
        """
        looks = []
        for demand in self._looks:
            by = [shown.get(name) or self._sensitive[name] for name in demand.parts(shown)]
            of = (self._sensitive[name] for name in demand.columns)
            concerned = None if demand.people is None else demand.people.among(shown, len(group))
            looks.append(Look.at(demand.requirement, by, of, len(group), demand.possible, concerned))
        out = leave_out(looks, group, counts, out, _tabulated)
        return None if out.all() or int(sizes[out].sum()) > self.room else out

    def _predicts(self, demand: Demand) -> bool:
        """Whether a coarser node still keeps a demand that looks at the table in a way of its own."""
        if demand.people is not None:
            return False
        requirement = demand.requirement
        return (requirement.survives_any_merge and not demand.knowing) or (self.room == 0 and requirement.monotone)

    def lost_for_good(self, sizes: Codes, cells: Callable[[], Cells], room: int) -> LeftOut | None:
        """The same of groups that will be split: which are lost however they are; None if that is too much."""
        return self._left_out(sizes, cells, room, self._pruning, [])

    def surely_left_out(self, sizes: Codes, cells: Callable[[], Cells], room: int) -> tuple[LeftOut | None, bool]:
        """The same; None also if their parts, however they are split, lose too much; and whether that was looked at."""
        # Where it seldom helps, it is tried now and then only.
        self._asked += 1
        worth = 8 * self._helped >= self._bounded - 32 or self._asked % 8 == 0
        return self._left_out(sizes, cells, room, self._pruning, self._bounding if worth else []), worth

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
        left = (~out).nonzero()[0]
        kept, there, places = sizes.take(left), cells(), {place for _, place in (*values, *bounding)}
        tables = {place: self._table(len(sizes), left, there, place) for place in places}
        if values:
            more = suppress([(requirement, tables[place]) for requirement, place in values], room - lost, kept)
            if more is None or more.all():
                return None
            out[left[more]] = True
            lost = int(sizes[out].sum())
        if bounding:
            least = [least_lost(demand, tables[place], kept, self._most[place]) for demand, place in bounding]
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
            table = self._table(len(sizes), np.arange(len(sizes)), cells(), place)
            if requirement.about_whole:
                others = self._whole[place] - table.sum(axis=0)
                table = np.concatenate((table, others[None, :]))
            if requirement.failing(table)[: len(sizes)].any():
                return False
        return True

    def _table(self, groups: int, left: Codes, cells: Cells, place: int) -> Codes:
        """Records by group and value of one sensitive column, of the groups that are left."""
        group, counts, combination = cells
        size = self._sizes[place]
        if len(left) < groups and groups * size > min(_SPARSE * len(group), MOST_CELLS):
            number = np.full(groups, -1, dtype=np.int64)
            number[left] = np.arange(len(left))
            group = number.take(group)
            inside = (group >= 0).nonzero()[0]
            group, counts, combination = group.take(inside), counts.take(inside), combination.take(inside)
            groups = len(left)
        table = _tabulated(groups, group, counts, self._codes[place].take(combination), size)
        return table if groups == len(left) else table.take(left, axis=0)

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
    if not hierarchies or not demands or any(name in hierarchies for d in demands for name in d.columns):
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
