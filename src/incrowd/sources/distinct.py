"""How often each distinct row of a table occurs: what a plain sample's rate depends on."""

# ruff: noqa: S608 - the query is put together from names of our own

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import DataError
from incrowd.sources import Source
from incrowd.sources.values import fetching, require_comparable


def distinct_counts(source: Source, columns: Sequence[str] | None = None) -> NDArray[np.int64]:
    """The counts of the distinct rows, in no order; `columns` restricts what counts as a row.

    Raises:
        DataError: the table cannot be read, lacks a column, holds no record, or rows cannot be told apart by a column.
    """
    source = fetching(source)
    names = [column.name for column in source.columns()]
    unknown = [name for name in columns or () if name not in names]
    if unknown:
        raise DataError(
            f"The table has no column {unknown[0]!r}.",
            code="column-unknown",
            # Not which it has: in a file without a header the names would be somebody's record.
            remedy=f"Look at its header; it has {len(names)} columns.",
        )
    positions = range(len(names)) if columns is None else [names.index(name) for name in columns]
    require_comparable(source, positions)
    with source.connect() as (connection, scan):
        fields = ", ".join(f"c{i}" for i in positions)
        relation, n = source.gather(scan, dict.fromkeys(positions))
        query = f"SELECT {'count(*)' if n is None else f'sum({n})'}::BIGINT AS n FROM {relation} GROUP BY {fields}"
        with source.recounting(scan) as require_whole:
            counts: NDArray[np.int64] = connection.sql(query).to_arrow_table()["n"].to_numpy()
            require_whole(int(counts.sum()))
    if len(counts) == 0:
        raise DataError("The table holds no record.", code="data-empty")
    return counts
