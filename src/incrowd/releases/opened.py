"""A release that was read once and passed its checks: looked through, estimated from, written in other formats.

Everything here is public: it is what anyone can do who has the folder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from incrowd.core.errors import InputError, ParameterError
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.base import Mechanism
from incrowd.mechanisms.declared import policy_of
from incrowd.mechanisms.estimates import EstimateOptions, Estimates
from incrowd.mechanisms.packages import require_labels, require_rows
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.tables import table_name, write_table
from incrowd.policy.fields import OUTPUTS
from incrowd.releases.estimate import estimate_from
from incrowd.releases.names import void_name
from incrowd.releases.verify import read_release
from incrowd.theory._numbers import require_count

MOST_ROWS = 500
"""In one page."""
MOST_GROUPS = 20_000
"""Possible groups that are estimated at once."""
MISSING = "(missing)"
"""How a filter names what is missing."""


@dataclass(frozen=True)
class ReleasedRow:
    """Values, and how many records of the release have them, with an estimate of the people if there is one."""

    values: tuple[str | None, ...]
    records: int
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ReleasedRows:
    """A page of rows or of groups.

    Attributes:
        columns: whose values they are.
        rows: of this page.
        offset: how many come before them.
        of: how many there are in all.
        records: that pass the filters.
        estimated: whether groups come with estimates.
    """

    columns: tuple[str, ...]
    rows: tuple[ReleasedRow, ...]
    offset: int
    of: int
    records: int
    estimated: bool = False


class OpenedRelease:
    """A published folder.

    Args:
        folder: which must pass its own checks; a void promise is told, and no hindrance.

    Raises:
        InputError: it does not pass them.
    """

    def __init__(self, folder: str | Path) -> None:
        self.certificate, self.publication = read_release(folder)
        self.mechanism = mechanism_named(self.certificate.mechanism.name)
        self._remembered: tuple[object, tuple[Column, ...], np.ndarray] | None = None

    @property
    def unit(self) -> str:
        """What is estimated: people, or rows where a person may have several."""
        return Persons.in_certificate(self.certificate).estimated

    @property
    def draws_again(self) -> bool:
        """Whether another synthetic table can be drawn from what is published."""
        return type(self.mechanism).drawn_again is not Mechanism.drawn_again

    @property
    def table(self) -> Histogram:
        """Its cells."""
        return self.publication.table

    def rows(
        self,
        *,
        filters: Mapping[str, str] | None = None,
        order: str | None = None,
        descending: bool = False,
        offset: int = 0,
        limit: int = 50,
    ) -> ReleasedRows:
        """Records one by one, in canonical order or by a column.

        Args:
            filters: for columns, a text that their values hold; =text for the value itself, =(missing) for none.
            order: the column to sort by.
            descending: the last first.
            offset: how many to leave out.
            limit: how many to show.
        """
        self._require_page(offset, limit)
        columns, ends = self._sorted(filters or {}, order, descending=descending)
        total = int(ends[-1]) if len(ends) else 0
        stop = min(offset + limit, total)
        found: list[ReleasedRow] = []
        place = int(np.searchsorted(ends, offset, side="right"))
        at = offset
        while at < stop:
            values = _values(columns, place)
            again = min(int(ends[place]), stop) - at
            found += [ReleasedRow(values, 1)] * again
            at += again
            place += 1
        return ReleasedRows(self.table.names, tuple(found), offset, total, total)

    def groups(
        self,
        by: Sequence[str],
        *,
        filters: Mapping[str, str] | None = None,
        order: str | None = None,
        descending: bool = False,
        offset: int = 0,
        limit: int = 50,
    ) -> ReleasedRows:
        """How many records there are of each combination, and how many people that may stand for.

        Args:
            by: the columns.
            filters: as for `rows`; groups are estimated if no other column is filtered.
            order: one of these columns; by the number of records if not given.
            descending: the last or largest first.
            offset: how many to leave out.
            limit: how many to show.
        """
        self._require_page(offset, limit)
        names = list(dict.fromkeys(by))
        self._require_columns(names)
        matching = self._matching(filters or {}).project(names)
        places = _order(matching, order, descending=descending)
        shown = places[offset : offset + limit]
        possible = math.prod(len(self.table[name].labels) for name in names)
        known = {}
        if set(filters or {}) <= set(names) and possible <= MOST_GROUPS:
            known = {row.values: row for row in self.estimate(names).rows}
        found = []
        for place in shown.tolist():
            values = _values(matching.columns, place)
            told = known.get(values)
            numbers = (None, None, None) if told is None else (told.estimate, told.low, told.high)
            found.append(ReleasedRow(values, int(matching.counts[place]), *numbers))
        return ReleasedRows(tuple(names), tuple(found), offset, len(matching), matching.total, bool(known))

    def estimate(
        self,
        by: Sequence[str],
        *,
        method: str | None = None,
        mean: str | None = None,
        sum_of: str | None = None,
        total: int | None = None,
    ) -> Estimates:
        """A cross-tabulation of the population, as `incrowd.estimate` makes it."""
        ends = None if total is None else (require_count("total", total, 0),) * 2
        return estimate_from(self.certificate, self.publication, by, EstimateOptions(mean, ends, method, sum_of))

    def write(self, output: str, folder: Path) -> Path:
        """The table in a format, in a folder; refused, with the reason, where the format cannot hold it exactly.

        Without its certificate beside it, a void table says by its name that it is void.
        """
        if not self.table.columns:
            raise InputError("This release has no table of records.", code="parameter-combination")
        return self._written(self.table, table_name(output), output, folder)

    def write_again(self, output: str, folder: Path, *, rows: int | None = None, seed: int | None = None) -> Path:
        """Another synthetic table from published views, as `incrowd combine` makes it, in a folder."""
        if rows is not None:
            require_count("rows", rows)
        if seed is not None:
            require_count("seed", seed, least=0)
        table = self.mechanism.drawn_again(self.certificate, self.publication, rows, seed)
        return self._written(table, table_name(output, "combined-synthetic"), output, folder)

    def _written(self, table: Histogram, name: str, output: str, folder: Path) -> Path:
        if output not in OUTPUTS:
            raise ParameterError(
                "Tables are not written in this format.",
                code="output-format",
                remedy=f"Choose one of {', '.join(OUTPUTS)}.",
            )
        attributes = policy_of(self.certificate).attributes
        require_rows(output, table.total)
        require_labels(table, output, attributes)
        # It leaves its certificate.
        path = folder / (name if self.certificate.promise.void is None else void_name(name))
        with path.open("xb") as file:
            write_table(table, output, file, self.mechanism.table_notes, attributes)
        return path

    def _sorted(
        self, filters: Mapping[str, str], order: str | None, *, descending: bool
    ) -> tuple[tuple[Column, ...], np.ndarray]:
        """Cells in an order, and where the records of each end; the last one is remembered, for the next page."""
        wanted = (tuple(sorted(filters.items())), order, descending)
        if self._remembered is None or self._remembered[0] != wanted:
            matching = self._matching(filters)
            places = np.arange(len(matching)) if order is None else _order(matching, order, descending=descending)
            columns = tuple(Column(c.name, c.labels, c.codes[places]) for c in matching.columns)
            self._remembered = wanted, columns, np.cumsum(matching.counts[places])
        return self._remembered[1:]

    def _matching(self, filters: Mapping[str, str]) -> Histogram:
        self._require_columns(list(filters))
        mask = np.ones(len(self.table), dtype=bool)
        for name, text in filters.items():
            labels = self.table[name].labels
            mask &= np.array([_matches(label, text) for label in labels], dtype=bool)[self.table[name].codes]
        return self.table.where(mask)

    def _require_columns(self, names: Sequence[str]) -> None:
        unknown = [name for name in names if name not in self.table.names]
        if unknown:
            raise ParameterError("The release has no such column.", code="column-unknown")

    @staticmethod
    def _require_page(offset: int, limit: int) -> None:
        require_count("offset", offset, 0)
        if require_count("limit", limit) > MOST_ROWS:
            raise ParameterError(f"A page has at most {MOST_ROWS} rows.", code="parameter-range")


def _values(columns: Sequence[Column], place: int) -> tuple[str | None, ...]:
    return tuple(column.labels[column.codes[place]] for column in columns)


def _matches(label: str | None, text: str) -> bool:
    if text.startswith("="):
        return (MISSING if label is None else label) == text[1:]
    return text.casefold() in (MISSING if label is None else label).casefold()


def _order(cells: Histogram, name: str | None, *, descending: bool) -> np.ndarray:
    """Places of cells by a column, as its values are declared, or by counts; equal ones in canonical order."""
    if name is None:
        keys = cells.counts.astype(np.int64)
    elif name in cells.names:
        keys = cells[name].codes.astype(np.int64)
    else:
        raise ParameterError("Sort by a column that is shown.", code="column-unknown")
    return np.argsort(-keys if descending else keys, kind="stable")
