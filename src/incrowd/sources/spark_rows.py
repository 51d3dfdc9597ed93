"""A Spark table as the engine here sees it: its distinct rows, which Spark counts, or some of its rows.

Audits and comparisons take values as they are, so they need every distinct row; not more of them come to the driver
than it allows. A draft of a policy only looks at a table, and nothing in it stands until a person has confirmed it: a
part of the rows serves that, however large the table is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as fn

from incrowd.domain import Coding
from incrowd.sources.databases import Answer, Ask, DatabaseSource, Elsewhere
from incrowd.sources.duckdb import Scan
from incrowd.sources.options import Options
from incrowd.sources.spark import handed_over, reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from incrowd.sources.spark import SparkSource

_MOST_ROWS, _MOST_VALUES = 1_000_000, 20_000_000  # that a draft looks at
_SEED = 1


@dataclass(frozen=True)
class SparkRows(Elsewhere):
    """Values of a DataFrame.

    Attributes:
        frame: its columns, called c0, c1, …; texts without collations, nothing in columns that cannot be published.
    """

    frame: DataFrame

    @cached_property
    def total(self) -> int:
        """How many rows there are."""
        with reading():
            return self.frame.count()

    @property
    def part(self) -> float:
        """The part of the rows that is looked at."""
        return min(1.0, min(_MOST_ROWS, _MOST_VALUES / len(self.fields)) / max(self.total, 1))

    @cached_property
    def _looked_at(self) -> pa.Table:
        with reading():
            # No promise rests on this draw: it only spares the driver.
            frame = self.frame if self.part == 1 else self.frame.sample(fraction=self.part, seed=_SEED)
            return frame.toArrow()

    @contextmanager
    def asking(self, options: Options) -> Iterator[Ask]:
        """Spark reads the frame anew for each question: the same rows, unless something in the frame is random."""

        def ask(wanted: Mapping[int, Coding | None], grouped: bool) -> Answer:
            names = [f"c{i}" for i in wanted]
            if grouped:
                table = self._groups(names, options.most_cells)
                return Answer(table.schema, [*names, "n"], table.to_batches)
            table = self._looked_at.select(names or ["c0"])
            return Answer(table.schema, names or ["c0"], table.to_batches)

        yield ask

    def _groups(self, names: list[str], most: int) -> pa.Table:
        with reading():
            return handed_over(self.frame.groupBy(*names).agg(fn.expr("count(1) AS n")), most)


class FetchedFromSpark(DatabaseSource):
    """A Spark table, for whatever takes values as they are."""

    def __init__(self, table: SparkRows, options: Options, origin: SparkSource) -> None:
        super().__init__(table, options)
        self._spark = table
        self._origin = origin  # with which the session would end

    @contextmanager
    def recounting(self, scan: Scan) -> Iterator[Callable[[int], None]]:  # noqa: ARG002 - Spark is not asked twice
        """As `DuckDBSource.recounting`, by what the files say if they could be opened."""
        yield lambda counted: self._origin.require_whole(counted) if self.drawn_from is None else None

    @property
    def drawn_from(self) -> int | None:
        """How many records the table has, if only some are looked at."""
        return None if self._spark.part == 1 else self._spark.total
