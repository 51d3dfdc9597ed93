"""Tables in an SQLite file, streamed to the engine a batch at a time.

SQLite lets a column hold values of any type, so every value is read as the text that it prints as, and matched as the
fields of a CSV file are.
"""

# ruff: noqa: S608 - names are quoted

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.errors import DataError
from incrowd.sources.memory import ArrowTable, check_names

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"SQLite format 3\x00"
_BATCH = 50_000


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database. Only ordinary files are opened: a pipe would keep its reader waiting."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def open_sqlite(path: Path, table: str | None) -> ArrowTable:
    """A table or view of a database; it need not be named if there is only one."""
    with _reading(path), closing(_connect(path)) as database:
        kinds = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        known = [name for (name,) in database.execute(kinds)]
        if table is None and len(known) != 1:
            raise DataError(
                f"{path} holds {len(known)} tables.",
                code="data-format",
                remedy="Say which is meant: 'table' in the policy's section 'data'.",
            )
        name = known[0] if table is None else table
        if name not in known:
            raise DataError(f"{path} has no table of the name given.", code="data-not-found", remedy="Check 'table'.")
        columns = [column for _, column, *_ in database.execute(f"PRAGMA table_info({_quoted(name)})")]
        ((rows,),) = database.execute(f"SELECT count(*) FROM {_quoted(name)}")
    check_names(columns)
    return ArrowTable(tuple(columns), rows, lambda at: _stream(path, name, columns, at))


def _stream(path: Path, table: str, columns: Sequence[str], positions: Sequence[int]) -> pa.RecordBatchReader:
    import pyarrow as pa

    schema = pa.schema([(f"c{i}", pa.string()) for i in positions])

    def batches() -> Iterator[pa.RecordBatch]:
        fields = ", ".join(f"CAST({_quoted(columns[i])} AS TEXT)" for i in positions) or "NULL"
        with _reading(path), closing(_connect(path)) as database:
            cursor = database.execute(f"SELECT {fields} FROM {_quoted(table)}")
            while rows := cursor.fetchmany(_BATCH):
                arrays = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)][: len(positions)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)


class _reading:  # noqa: N801 - used like a function
    """What SQLite finds wrong becomes an error of ours, without its words."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise DataError(
                f"{self.path} cannot be read as a database.",
                code="data-unreadable",
                remedy="Check that it is complete and not in use.",
            ) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
