"""How SQLite is spoken to, and its files, which need nothing but Python.

SQLite lets a column hold values of any type, so every value is read as the text that it prints as, and matched as the
fields of a CSV file are. Numbers with decimals travel as numbers: SQLite would print only some of their digits.
"""

# ruff: noqa: S608 - names are quoted

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd.core.errors import DataError
from incrowd.domain import Bins, Coding
from incrowd.sources.databases import (
    Database,
    Field,
    Run,
    folded_listing,
    folded_steps,
    quoted_name,
    the_table,
)
from incrowd.sources.duckdb_codes import domain_kind, quoted
from incrowd.sources.files import damaged
from incrowd.sources.folds import Listing, fold
from incrowd.sources.options import Options

MAGIC = b"SQLite format 3\x00"
_BATCH = 50_000
_POWER = 60
_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


class SQLite:
    """SQLite's dialect."""

    def folded(self, field: Field, coding: Coding, options: Options) -> tuple[str, pa.DataType] | None:
        """A column's value, folded where it is stored as what the domain declares; otherwise it stays as it is."""
        kind = "float" if isinstance(coding.domain, Bins) else domain_kind(coding.domain)
        numeric = kind != "text"
        if kind not in {"float", "integer", "text"} or (numeric and any(map(_may_be_number, options.missing_values))):
            return None
        how = fold(coding, kind, options.missing_values)
        if how is None:
            return None
        if isinstance(how, Listing):
            stored, value = "('text', 'integer')", f"CAST({field.value} AS TEXT) COLLATE BINARY"
            folded = folded_listing(value, how, literal)
        else:
            stored, value = "('integer')", field.value
            if kind == "float":
                stored, value = "('integer', 'real')", f"CAST({field.value} AS REAL)"
            folded = folded_steps(value, how, literal)
        return f"CASE WHEN typeof({field.value}) IN {stored} THEN {folded} ELSE {field.value} END", field.type

    def fetched(self, name: str) -> list[str]:
        """A text that tells null, number and text apart, and the number: the driver takes types from the first rows."""
        text = f"CASE typeof({name}) WHEN 'null' THEN 'n' WHEN 'real' THEN 'r' ELSE 't' || CAST({name} AS TEXT) END"
        return [text, f"CASE WHEN typeof({name}) = 'real' THEN {name} ELSE 0.0 END"]

    def keys(self, name: str, coding: Coding | None, options: Options) -> list[str]:
        """To SQLite 1 and 1.0 are equal, which they are only as numbers, and texts may be so by their collation."""
        numeric = coding is not None and domain_kind(coding.domain) in {"integer", "decimal", "number"}
        if numeric and not any(map(_may_be_number, options.missing_values)):
            return [f"{name} COLLATE BINARY"]
        return [f"{name} COLLATE BINARY", f"typeof({name})"]

    def types(self, _type: pa.DataType) -> list[pa.DataType]:
        """A text and a number."""
        return [pa.string(), pa.float64()]

    def restored(self, fetched: Sequence[str], options: Options) -> str:
        """The text; numbers in print, with the comma or point that the reader expects."""
        text, number = fetched
        printed = f"CAST({number} AS VARCHAR)"
        if options.decimal == ",":
            printed = f"replace({printed}, '.', ',')"
        return f"CASE substr({text}, 1, 1) WHEN 't' THEN substr({text}, 2) WHEN 'r' THEN {printed} END"


def literal(value: Any) -> str:
    """A value in SQLite's SQL."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        # The least integer cannot be written with a minus: its absolute value is none.
        return f"CAST('{value}' AS INTEGER)"
    # SQLite may read the last digits of a decimal wrongly; whole numbers and powers of two are exact.
    fraction, exponent = math.frexp(value)
    exponent -= 53
    steps = [min(abs(exponent) - done, _POWER) for done in range(0, abs(exponent), _POWER)]
    sign = "/" if exponent < 0 else "*"
    return f"(CAST({int(fraction * 2**53)} AS REAL){''.join(f' {sign} {2**step}' for step in steps)})"


def find_table(run: Run, wanted: str | None, where: str) -> tuple[str, tuple[Field, ...]]:
    """The name of the table or view that is meant, in SQL, and its columns."""
    known = [name for batch in run(_TABLES) for name in batch.column(0).to_pylist()]
    table = the_table(known, wanted, where)
    info = f"SELECT name FROM pragma_table_xinfo({quoted(table)}) WHERE hidden <> 1 ORDER BY cid"
    columns = [name for batch in run(info) for name in batch.column(0).to_pylist()]
    return quoted_name(table), tuple(Field(name, "text", quoted_name(name), pa.string()) for name in columns)


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database. Only ordinary files are opened: a pipe would keep its reader waiting.

    Raises:
        DataError: it ends within a page. SQLite would read zeros from there on, and say nothing.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            header = file.read(len(MAGIC) + 2)
    except OSError:
        return False
    if not header.startswith(MAGIC):
        return False
    page = int.from_bytes(header[len(MAGIC) :], "big")
    if page and path.stat().st_size % (1 << 16 if page == 1 else page):
        raise damaged(path)
    return True


def open_sqlite(path: Path, table: str | None) -> Database:
    """A table or view in a file; it need not be named if there is only one."""

    @contextmanager
    def session() -> Iterator[Run]:
        with _reading(path), closing(sqlite3.connect(uri(path), uri=True, check_same_thread=False)) as database:
            # Within a transaction, everything is read from one state of the file.
            database.execute("BEGIN")
            yield lambda statement: _batches(database, path, statement)

    with session() as run:
        relation, fields = find_table(run, table, str(path))
    return Database(fields, SQLite(), relation, session)


def open_connection(given: sqlite3.Connection, table: str | None) -> Database:
    """A table that an open connection sees: what is committed, read by a connection of our own.

    A database in memory has no file that another connection could open, so it is copied.
    """
    [file] = [row[2] for row in given.execute("PRAGMA database_list") if row[1] == "main"]
    if file:
        return open_sqlite(Path(file), table)
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    given.backup(copy)

    @contextmanager
    def session() -> Iterator[Run]:
        yield lambda statement: _batches(copy, Path("The database"), statement)

    with session() as run:
        relation, fields = find_table(run, table, "The database")
    return Database(fields, SQLite(), relation, session)


def uri(path: Path) -> str:
    """The address by which SQLite opens a file for reading only."""
    return f"{path.absolute().as_uri()}?mode=ro"


def _batches(database: sqlite3.Connection, path: Path, statement: str) -> Iterator[pa.RecordBatch]:
    with _reading(path), closing(database.execute(statement)) as cursor:
        names = [column for column, *_ in cursor.description]
        while rows := cursor.fetchmany(_BATCH):
            yield pa.RecordBatch.from_arrays([pa.array(values) for values in zip(*rows, strict=True)], names=names)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What SQLite finds wrong becomes an error of ours, without its words."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError):
        raise DataError(
            f"{path} cannot be read as a database.",
            code="data-unreadable",
            remedy="Check that it is complete and not in use.",
        ) from None


def _may_be_number(text: str) -> bool:
    return any(sign.isdigit() for sign in text) or "inf" in text.lower()
