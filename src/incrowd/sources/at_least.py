"""Cells that stay where the table is: only those that can be published come here.

A mechanism whose levels are fixed publishes no cell with fewer than k records, whatever it draws. So it is enough to
count at these levels and to fetch the cells with k or more; of the others, the engine tells how many there are of each
size. A mechanism that has levels or boxes to choose asks the engine for sums over cells (`incrowd.sources.kept`).
What is lost is what the publisher's own report says of combinations of columns, so all cells are fetched as long as
there are not more than `incrowd.sources.options.Options.most_cells`.
"""

# ruff: noqa: S608 - queries are put together from names of our own and quoted literals

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from incrowd.domain import Coding, Recode
from incrowd.histogram import Histogram
from incrowd.marginals import Crowds
from incrowd.sources import Progress, Source
from incrowd.sources.kept import KeptTable

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_ROWS = 1 << 13
"""How many rows show whether a table has very many cells."""


@dataclass(frozen=True)
class CrowdsAsked:
    """Which cells can be published.

    Attributes:
        recodes: how coarse each column is published, by its name; those that are not here are not settled yet.
        at_least: how many records a cell must have; None if not all columns are settled.
    """

    recodes: dict[str, Recode]
    at_least: int | None

    def coarse(self, codings: Sequence[Coding]) -> list[Coding]:
        """How the columns are coded as they are published."""
        return [
            coding if recode is None or recode.labels == coding.labels else replace(coding, recode=recode)
            for coding in codings
            for recode in [self.recodes.get(coding.column)]
        ]


@runtime_checkable
class CountsCrowds(Protocol):
    """An engine that can keep small cells to itself; none needs to."""

    def count_crowds(
        self, codings: Sequence[Coding], asked: CrowdsAsked, *, progress: Progress | None = None
    ) -> Histogram | Crowds | KeptTable:
        """As `Source.count_by`; where there are too many cells to be fetched, only those that can be published.

        If it is not settled yet which these are, all of them stay where they are.
        """
        ...


def count_crowds(
    source: Source, codings: Sequence[Coding], asked: CrowdsAsked, *, progress: Progress | None = None
) -> Histogram | Crowds | KeptTable:
    """The table, or what of it can be published or asked, whatever engine holds it.

    Raises:
        DataError: as `Source.count_by`.
    """
    if codings and isinstance(source, CountsCrowds):
        return source.count_crowds(codings, asked, progress=progress)
    return source.count_by(codings, progress=progress)


def seem_more(counts: Iterable[int], most: int) -> bool:
    """Whether there seem to be more cells than that, by how often some of the first rows occur.

    From those that were seen once and those that were seen twice follows how many different ones there are at least,
    with those that were not seen (A. Chao, 1984, corrected for its bias). It decides nothing but whether fetching all
    cells is tried.
    """
    times = Counter(counts)
    return times.total() + times[1] * (times[1] - 1) / (2 * (times[2] + 1)) > most


# --- what is asked in SQL ---------------------------------------------------------------------------------------------


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
