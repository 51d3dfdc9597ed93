"""Values as they are, wherever the table is: what audits, comparisons and drafts of policies look at."""

# ruff: noqa: S608 - the query is put together from names of our own

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import DataError
from incrowd.sources import Source
from incrowd.sources.duckdb import DuckDBSource
from incrowd.sources.groups import FetchedByCounting
from incrowd.sources.positions import positions


@runtime_checkable
class Fetched(Protocol):
    """An engine that has a better way to hand over values than to count by them; none needs one."""

    def fetched(self) -> DuckDBSource:
        """The same table."""
        ...


def fetching(source: Source) -> DuckDBSource:
    """The same table, so that the engine here can ask for its values."""
    if isinstance(source, DuckDBSource):
        return source
    if isinstance(source, Fetched):
        return source.fetched()
    return FetchedByCounting(source)


def require_comparable(source: DuckDBSource, at: Iterable[int]) -> None:
    """Refuses columns that rows cannot be told apart by: engines elsewhere do not hand over their values, so that rows
    that differ would count as equal.

    Args:
        source: the table.
        at: where the columns stand.

    Raises:
        DataError: a column is of kind other (see `SourceColumn`).
    """
    columns = source.columns()
    odd = [repr(columns[i].name) for i in at if columns[i].kind == "other"]
    if odd:
        raise DataError(
            f"Rows cannot be told apart by columns of lists, structures, bytes and the like: {', '.join(odd)}.",
            code="column-type",
            remedy="Leave them out (--columns names those that count), or convert them to texts first.",
        )


def distinct_counts(source: Source, columns: Sequence[str] | None = None) -> NDArray[np.int64]:
    """The counts of the distinct rows, in no order; `columns` restricts what counts as a row.

    Raises:
        DataError: the table cannot be read, lacks a column, holds no record, or rows cannot be told apart by a column.
    """
    source = fetching(source)
    names = [column.name for column in source.columns()]
    at = list(range(len(names))) if columns is None else positions(columns, names)
    require_comparable(source, at)
    with source.connect() as (connection, scan):
        fields = ", ".join(f"c{i}" for i in at)
        relation, n = source.gather(scan, dict.fromkeys(at))
        query = f"SELECT {'count(*)' if n is None else f'sum({n})'}::BIGINT AS n FROM {relation} GROUP BY {fields}"
        with source.recounting(scan) as require_whole:
            counts: NDArray[np.int64] = connection.sql(query).to_arrow_table()["n"].to_numpy()
            require_whole(int(counts.sum()))
    if len(counts) == 0:
        raise DataError("The table holds no record.", code="data-empty")
    return counts
