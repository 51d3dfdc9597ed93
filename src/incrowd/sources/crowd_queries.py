"""Cells that stay in the engine: how they are counted there, for `incrowd.sources.at_least`."""

# ruff: noqa: S608 - queries are put together here from names of our own and quoted literals

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def columns_query(rows: str, keys: Sequence[str], weight: str | None, count: str) -> str:
    """How many records have each key, for each column by itself, in one scan."""
    names = [f"k{i}" for i in range(len(keys))]
    coded = [f"CAST({key} AS INTEGER) AS {name}" for key, name in zip(keys, names, strict=True)]
    coded += [] if weight is None else [weight]
    sets = ", ".join(f"({name})" for name in names)
    return (
        f"SELECT {', '.join(names)}, {count} AS n FROM (SELECT {', '.join(coded)} FROM {rows}) "
        f"GROUP BY GROUPING SETS ({sets})"
    )


def columns_found(answer: pa.Table) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each column, its keys that occur and how many records have them.

    No key is null, so in each group the one that is not is the one that was grouped by.
    """
    counts = answer.column("n").to_numpy()
    keys = [answer.column(name) for name in answer.column_names[:-1]]
    return [(key.drop_null().to_numpy(), counts[key.is_valid().to_numpy()]) for key in keys]


def crowds_query(rows: str, words: Sequence[str], count: str, dropped: str, at_least: int) -> str:
    """Cells with so many records, and of smaller ones how many there are of each size.

    Of each: how many there are, its words (zeros, if it is small), and how many records it has.
    """
    names = [f"w{i}" for i in range(len(words))]
    named = ", ".join(f"{word} AS {name}" for word, name in zip(words, names, strict=True))
    places = ", ".join(str(i + 1) for i in range(len(words)))
    cells = f"SELECT {named}, {count} AS n FROM {rows} WHERE NOT ({dropped}) GROUP BY {places}"
    kept = ", ".join(f"CASE WHEN n >= {at_least} THEN {name} ELSE 0 END" for name in names)
    return f"SELECT count(*), {kept}, n FROM ({cells}) GROUP BY ALL"
