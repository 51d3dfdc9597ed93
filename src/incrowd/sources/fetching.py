"""Values as they are, wherever the table is: what audits, comparisons and drafts of policies look at."""

from __future__ import annotations

from collections.abc import Iterable

from incrowd.core.errors import DataError
from incrowd.sources import Source
from incrowd.sources.duckdb import DuckDBSource


def fetching(source: Source) -> DuckDBSource:
    """The same table, so that the engine here can ask for its values.

    Raises:
        DataError: it is in an engine that hands over counts and nothing else.
    """
    if isinstance(source, DuckDBSource):
        return source
    # Engines of others need not have it, nor is Spark installed everywhere.
    fetched = getattr(source, "fetched", None)
    if fetched is None:
        raise DataError(
            "This engine only counts by declared values; it does not hand over those that occur.",
            code="data-kind",
            remedy="Fetch the columns that are needed to a file first.",
        )
    found: DuckDBSource = fetched()
    return found


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
