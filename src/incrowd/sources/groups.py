"""Groups of equal rows, as an engine elsewhere hands them over: what values mean is decided here, as for files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import duckdb
import numpy as np
import pyarrow as pa

from incrowd.core.errors import DataError, ParameterError
from incrowd.histogram import Column, arrow_integers
from incrowd.sources import Source, SourceColumn
from incrowd.sources.duckdb import DuckDBSource, Scan
from incrowd.sources.memory import plain
from incrowd.sources.options import Options
from incrowd.sources.tally import not_as_asked


@dataclass
class CountedGroups:
    """Groups of rows that DuckDB can scan; the column ``n`` says how many rows are in each.

    Attributes:
        names: the columns' names, in order.
        read: gives the columns at these positions, and the number of rows in each group.
        rows: how many rows there were when they were last read.
    """

    names: tuple[str, ...]
    read: Callable[[list[int]], tuple[pa.Table, np.ndarray]]
    rows: int | None = None

    def attach(self, connection: duckdb.DuckDBPyConnection, _workdir: Path, positions: Sequence[int]) -> str:
        """Registers the columns at these positions; column i is called ``c<i>``."""
        table, counts = self.read(list(positions))
        self.rows = int(counts.sum())
        arrays = plain(table, [f"c{i}" for i in positions])
        held = dict(zip(arrays.column_names, arrays.columns, strict=True))
        connection.register("incoming", pa.table(held | {"n": arrow_integers(counts)}))
        return "incoming"

    def verify(self, given_up: Event) -> None:
        """Nothing can be cut short here."""


class GroupedSource(DuckDBSource):
    """A table of which groups of rows are known, and how many rows are in each."""

    def held(self, scan: Scan, positions: Sequence[int]) -> tuple[str, str | None]:
        return scan(positions), "n"


class FetchedByCounting(GroupedSource):
    """The table of an engine that does what `Source` says and nothing else."""

    def __init__(self, origin: Source) -> None:
        self._columns = origin.columns()

        def read(positions: list[int]) -> tuple[pa.Table, np.ndarray]:
            found = origin.count_by([self._columns[i].name for i in positions])
            if found.names != tuple(self._columns[i].name for i in positions):
                raise not_as_asked()
            arrays = [
                _values(column, self._columns[i].kind) for i, column in zip(positions, found.columns, strict=True)
            ]
            return pa.table(dict(zip(map(str, positions), arrays, strict=True))), found.counts

        # What stands for a missing value is one already: the engine was told when it was opened.
        super().__init__(CountedGroups(tuple(c.name for c in self._columns), read), Options(missing_values=()))

    def columns(self) -> list[SourceColumn]:
        return list(self._columns)


def groups_of(rows: pa.Table, counts: Iterable[int]) -> CountedGroups:
    """Rows that are held already, and how often each occurs.

    Raises:
        ParameterError: there are not as many counts as rows, or one is no whole number from 0 on.
    """
    numbers = np.asarray(counts if isinstance(counts, Sequence | np.ndarray) else list(counts))
    if len(numbers) == 0:
        numbers = numbers.astype(np.int64)
    rows_told = (rows.num_rows,) if rows.num_columns else (len(numbers),)  # rows without columns are not counted
    if numbers.shape != rows_told or numbers.dtype.kind not in "iu" or (numbers < 0).any():
        raise ParameterError(
            "Each row needs a count, a whole number from 0 on.",
            code="parameter-combination",
            remedy="Give as many counts as rows.",
        )
    return CountedGroups(tuple(rows.column_names), lambda at: (rows.select(at), numbers.astype(np.int64)))


def _values(column: Column, kind: str) -> pa.Array:
    """What an engine printed; numbers with a floating point again as such, so that they print alike everywhere."""
    labels: Iterable[str | float | None] = column.labels
    if kind == "float":
        try:
            labels = [None if label is None else float(label) for label in column.labels]
        except ValueError:
            raise DataError(
                f"The engine printed a value of the column {column.name!r}, which holds numbers, that is not a number.",
                code="data-unreadable",
                remedy="The engine must print numbers as Python reads them.",
            ) from None
    values = pa.array(labels, pa.float64() if kind == "float" else pa.string())
    return values.take(arrow_integers(column.codes))
