"""What is estimated from a release: a cross-tabulation with intervals, for people, for programs and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.display import Picture, Showable, Shown, ShownTable, picture
from incrowd.core.numbers import number

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_MOST_SHOWN = 60
_NO_BOUND = 1 << 53
"""An upper end from here on says nothing."""

HEADINGS = {"standard_error": "± standard error", "crowds_possible": "of possible"}
"""What columns are called, where not by their field's name."""


@dataclass(frozen=True)
class EstimateOptions:
    """What else an estimate is asked for. `Mechanism.estimate_options` names those that a mechanism has.

    Attributes:
        mean: a column whose mean is wanted in each group.
        sum_of: a column whose sum is wanted in each group.
        total: an interval for the number of people of all cells, if it is known.
        method: how to undo a randomisation.
    """

    mean: str | None = None
    total: tuple[int, int] | None = None
    method: str | None = None
    sum_of: str | None = None

    @property
    def given(self) -> list[str]:
        """The names of those that are given."""
        return [name for name, value in vars(self).items() if value is not None]


NO_OPTIONS = EstimateOptions()


@dataclass(frozen=True)
class EstimatedCell:
    """One cell of a cross-tabulation.

    Attributes:
        values: the labels of the columns asked for, None for missing.
        estimate: people of this cell, as far as they are published; None if nothing of it is.
        standard_error: of that number; None where something may be missing, which no standard error speaks of.
        low: with `high` an interval that holds the true number with a probability of at least 95%.
        high: see `low`.
    """

    values: tuple[str | None, ...]
    estimate: float | None
    standard_error: float | None
    low: float
    high: float


@dataclass(frozen=True)
class GroupMean:
    """The mean of a column in one group: its standard error, a 95% interval, and the number of people it is over."""

    values: tuple[str | None, ...]
    mean: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    people: float


@dataclass(frozen=True)
class GroupSum:
    """The sum of a column over the people of one group, its standard error, and a 95% interval."""

    values: tuple[str | None, ...]
    sum: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Estimates(Showable):
    """A cross-tabulation of the population.

    Attributes:
        by: the columns.
        rows: its cells, each with at least what an `EstimatedCell` has.
        notes: what to keep in mind when reading it.
        means: of a column in each group, if asked for.
        sums: the same.
        unit: what is counted: people, or rows where a person may have several.
    """

    by: tuple[str, ...]
    rows: tuple[EstimatedCell, ...]
    notes: tuple[str, ...]
    means: tuple[GroupMean, ...] = ()
    sums: tuple[GroupSum, ...] = ()
    unit: str = field(default="people", kw_only=True)

    def to_pandas(self) -> pd.DataFrame:
        """The cells as a pandas table: a column for each of `by`, the numbers, then means and sums, if asked for."""
        import pandas as pd

        return pd.DataFrame(self._columns())

    def to_polars(self) -> pl.DataFrame:
        """The cells as a Polars table: a column for each of `by`, the numbers, then means and sums, if asked for."""
        import polars as pl

        return pl.DataFrame(self._columns(), strict=False)

    def plot(self, path: str | Path | None = None) -> Picture:
        """Each cell's estimate and interval as a picture, which a notebook shows; with a path, saved as SVG."""
        from incrowd.reports.intervals import Whisker, interval_chart

        spans = [
            Whisker(
                ", ".join("(missing)" if value is None else value for value in row.values),
                row.low,
                row.estimate,
                row.high if row.high < _NO_BOUND else None,
            )
            for row in self.rows[:_MOST_SHOWN]
        ]
        title = f"{self.unit.capitalize()} by {', '.join(self.by)}, with 95% intervals"
        return picture(interval_chart(title, spans), path)

    def _columns(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {
            name: [row.values[place] for row in self.rows] for place, name in enumerate(self.by)
        }
        for name in [one.name for one in fields(self.rows[0])][1:] if self.rows else []:
            columns[name if name not in columns else f"{name}_"] = [getattr(row, name) for row in self.rows]
        for what, groups in (("mean", self.means), ("sum", self.sums)):
            found = {group.values: group for group in groups}
            for name in (what, "standard_error", "low", "high") if groups else ():
                heading = what if name == what else f"{what}_{name}"
                values = [getattr(found.get(row.values), name, None) for row in self.rows]
                columns[heading if heading not in columns else f"{heading}_"] = values
        return columns

    def tables(self, most: int | None = None) -> list[tuple[list[str], list[list[str]]]]:
        """Cells, then means and sums as a person reads them: headings and texts, of so many rows at most."""
        return [_shown(self.by, rows[:most], self.unit) for rows in (self.rows, self.means, self.sums) if rows]

    def shown(self) -> Shown:
        """Its tables and how to read them."""
        tables = tuple(ShownTable(*table, words=len(self.by)) for table in self.tables(_MOST_SHOWN))
        return Shown(tables=tables, notes=(*self._more(), *self.remarks(), *self.notes))

    def remarks(self) -> list[str]:
        """What else was found, in sentences."""
        return []

    def _more(self) -> list[str]:
        return [f"and {len(self.rows) - _MOST_SHOWN:,} more rows"] if len(self.rows) > _MOST_SHOWN else []


def _shown(
    by: Sequence[str], rows: Sequence[EstimatedCell | GroupMean | GroupSum], unit: str
) -> tuple[list[str], list[list[str]]]:
    """Headings and texts; columns that say nothing are left out."""
    names = [one.name for one in fields(rows[0])][1:] if rows else []
    numbers = [name for name in names if name == "estimate" or any(getattr(row, name) is not None for row in rows)]
    called = {**HEADINGS, "estimate": unit, "people": unit}
    headings = [*by, *(called.get(name, name.replace("_", " ")) for name in numbers)]
    return headings, [
        [
            *("(missing)" if value is None else value for value in row.values),
            *(_figure(row, name) for name in numbers),
        ]
        for row in rows
    ]


def _figure(row: EstimatedCell | GroupMean | GroupSum, name: str) -> str:
    value = getattr(row, name)
    if isinstance(row, EstimatedCell) and name == "estimate" and value is None:
        return range_text(row.low, row.high)
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(row, EstimatedCell) and name != "people":
        return number(float(value))
    return "no bound" if name == "high" and value >= _NO_BOUND else f"{number(round(value))}"


def range_text(low: float, high: float) -> str:
    """Two ends in words."""
    return "any number" if high >= _NO_BOUND else f"{number(round(low))} to {number(round(high))}"
