"""Cells that stay in DuckDB: in a database of this process, in a folder that is gone afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from incrowd.core.errors import IncrowdError
from incrowd.histogram import arrow_integers
from incrowd.sources.options import Options
from incrowd.sources.workspace import workspace


class DuckDBKeeper:
    """What `incrowd.sources.kept.Keeper` says, with DuckDB."""

    def __init__(
        self,
        options: Options,
        connect: Callable[[Options, Path], duckdb.DuckDBPyConnection],
        translated: Callable[[Exception], IncrowdError],
    ) -> None:
        self._translated = translated
        self._end = ExitStack()
        self._work = self._end.enter_context(workspace(options.temp_directory))
        self._connection = connect(options, self._work)
        self._end.callback(self._connection.close)
        with self.reading():
            # On the disk from the beginning, and compressed: tables in memory are neither.
            self._connection.execute(f"ATTACH '{self._work / 'kept.duckdb'}' AS kept")
            self._connection.execute("SET checkpoint_threshold = '256MB'")

    @contextmanager
    def reading(self) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
        """The connection and its folder. What the engine finds wrong meanwhile becomes an error of ours."""
        try:
            yield self._connection, self._work
        except (duckdb.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from None

    def keep(self, name: str, query: str) -> None:
        """Keep what a query finds."""
        with self.reading() as (connection, _):
            connection.execute(f"CREATE TABLE kept.made AS {query}")
            connection.execute(f"DROP VIEW IF EXISTS {name}")
            connection.execute(f"DROP TABLE IF EXISTS kept.{name}")
            connection.execute(f"ALTER TABLE kept.made RENAME TO {name}")
            connection.execute(f"CREATE TEMP VIEW {name} AS FROM kept.{name}")

    def put(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """A small table."""
        arrays = [arrow_integers(np.ascontiguousarray(numbers, dtype=np.int64)) for numbers in columns.values()]
        with self.reading() as (connection, _):
            connection.register("incoming", pa.Table.from_arrays(arrays, names=list(columns)))
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM incoming")
            connection.unregister("incoming")

    def ask(self, query: str) -> pa.Table:
        with self.reading() as (connection, _):
            return connection.sql(query).to_arrow_table()

    def close(self) -> None:
        """The folder is removed."""
        self._end.close()
