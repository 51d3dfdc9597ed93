"""Values as they are, wherever the table is: what audits, comparisons and drafts of policies look at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from incrowd.core.errors import DataError
from incrowd.sources import Source
from incrowd.sources.duckdb import DuckDBSource
from incrowd.sources.groups import FetchedByCounting


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
