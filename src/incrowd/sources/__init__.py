"""Where tables come from: one small protocol, one module per engine.

An engine does one thing: recode the columns of a table and count how many records fall into each cell. It draws
nothing at random, so that no task run twice and no cached column can break a promise.

**What matches what**, in every engine and every file format:

- A declared *text* matches that text exactly: nothing is trimmed, folded or normalised. Whole numbers, decimals,
  dates and booleans are compared as they print; floating-point numbers and timestamps have no one printed form, so
  such a column cannot have a domain of texts.
- A declared *whole number* matches its value: ``07``, ``7``, ``+7``, ``7.0`` and a floating-point 7 are all 7;
  ``7.5`` is outside. Blanks around a number are ignored. 64-bit integers are exact.
- A declared *decimal* matches its exact decimal value: ``1.50`` is 1.5.
- *Cut points* compare the nearest floating-point number.
- A declared *date* matches ``2024-02-29``, with or without a time of midnight; any other time is outside.
- What a coding lists under `codes` comes before its domain: one that is a number, among numbers, matches that value,
  any other the very text. A `format` says what texts are read as numbers or dates, and no other are.
- A declared *boolean* matches true, t and 1 or false, f and 0, in capitals or not.
- *Missing* are nulls, not-a-numbers, and the texts the caller lists (``missing_values``, by default the empty text),
  unless the domain declares that very text.

Anything else is outside the domain. Every record is read, and every one is counted, refused or dropped on purpose.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard
from urllib.parse import unquote

from incrowd.core.errors import DataError, ParameterError
from incrowd.core.machine import require_address_space
from incrowd.domain import Coding
from incrowd.histogram import Histogram

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.sources.spark import SparkSource

ENTRY_POINTS = "incrowd.sources"

Progress = Callable[[float], None]

_TABLES = {"pandas", "polars", "pyarrow", "duckdb", "_duckdb", "ibis", "pyspark", "deltalake", "pyiceberg"}


@dataclass(frozen=True)
class SourceColumn:
    """A column of a source, and the kind of values its type can hold.

    Attributes:
        name: the column's name, exactly.
        kind: text, integer, decimal, float, boolean, date, timestamp, null (no values at all) or other.
    """

    name: str
    kind: str


Wanted = Sequence[Coding] | Sequence[str]
"""What to count by: how columns are coded; or their bare names, for the values that occur."""


class Source(Protocol):
    """A table that can be counted. An engine needs these two methods and nothing else."""

    def columns(self) -> list[SourceColumn]:
        """The columns, in order."""
        ...

    def count_by(self, codings: Wanted, *, progress: Progress | None = None) -> Histogram:
        """Codes the columns named by `codings` and counts each combination, in one scan.

        Args:
            codings: how each column becomes integers; the histogram has these columns in this order. Audits,
                comparisons and drafts of policies, which look at what no policy describes, give bare names of columns
                instead: then the labels are the values that occur, as they print, and None for missing ones.
            progress: called now and then, from any thread, with the part done, between 0 and 1.

        Raises:
            DataError: the table cannot be read, lacks a column, holds no record, or holds records that a coding
                refuses; then one error names every column concerned and counts the records.
        """
        ...


def told_apart(codings: Wanted) -> tuple[list[Coding], list[str]]:
    """The codings and the bare names: one of the two is empty."""
    coded = [coding for coding in codings if isinstance(coding, Coding)]
    names = [name for name in codings if isinstance(name, str)]
    if coded and names:
        raise ParameterError("A table is counted by codings or by bare names, not both.", code="parameter-type")
    return coded, names


def wanted_names(codings: Wanted, columns: Sequence[SourceColumn]) -> list[str]:
    """The names of the columns to count by.

    Raises:
        DataError: the table, which has these `columns`, lacks one of them.
    """
    from incrowd.sources.positions import positions

    names = [wanted if isinstance(wanted, str) else wanted.column for wanted in codings]
    positions(names, [column.name for column in columns])
    return names


def count_groups(rows: pa.Table, counts: Iterable[int], codings: Wanted, **options: Any) -> Histogram:
    """`Source.count_by` for an engine that can group rows by their values: what these mean is decided here.

    Args:
        rows: rows with at least the columns that `codings` names; the same row may stand there more than once.
        counts: how many records each of them stands for.
        codings: as `Source.count_by` gets them.
        options: those with which the source was opened; see `incrowd.sources.options.Options`.
    """
    from incrowd.sources.groups import GroupedSource, groups_of
    from incrowd.sources.options import Options

    return GroupedSource(groups_of(rows, counts), Options(**options)).count_by(codings)


def open_source(thing: Any, **options: Any) -> Source:
    """Opens whatever holds a table.

    Args:
        thing: the name of a CSV, TSV, Parquet, JSON-lines or SQLite file (texts also as .gz, .zst, .bz2, .xz or .zip),
            of a file of SPSS, Stata, SAS, Excel, Arrow, ORC or DuckDB, a pattern such as ``parts/*.parquet``, a list
            of names, or the same as ``file://``; a pandas or Polars table, an Arrow table, reader or data set, a
            DuckDB relation, a Spark DataFrame; ``postgresql://user@host/database``, ``sqlite:///file.db``, an ADBC
            connection or cursor, a connection of sqlite3, psycopg or SQLAlchemy, an Ibis table; a Delta or Iceberg
            table, by its folder (``census@12`` for a version) or as an object, a folder of partitions, Parquet in an
            object store (``s3://bucket/table``); or anything
            that an installed entry point of the group ``incrowd.sources`` recognises. An entry point names a function
            that is called as this one is and returns a source, or None.
        options: how to read it; see `incrowd.sources.options.Options`.
    """
    if _is_source(thing):
        return thing
    require_address_space()
    if options.get("table") is not None and not holds_tables(thing, options.get("engine")):
        raise DataError(
            "A table is named, but what is given is one table already.",
            code="data-format",
            remedy="Leave out --table: it is for databases, and, without files, for Spark's catalogue.",
        )
    source = _open_on_spark(thing, options) or _open_builtin(thing, options)
    if source is not None:
        return source
    for entry in entry_points(group=ENTRY_POINTS):
        found = entry.load()(thing, **options)
        if _is_source(found):
            return found
    if isinstance(thing, str):
        raise DataError(
            "The table is given as an address that no installed engine reads.",
            code="data-format",
            remedy="Give the name of a local file, or install the engine for it.",
        )
    raise DataError(
        f"An object of type {type(thing).__qualname__} is not a table that can be read.",
        code="data-kind",
        remedy="Give a file name, the address of a database (sqlite:///file.db, say), a pandas, Polars or Arrow table, "
        "or a DuckDB relation.",
    )


def holds_tables(thing: Any, engine: str | None = None) -> bool:
    """Whether there can be several tables in a thing, so that one may have to be named. True of what is not known."""
    from incrowd.sources.files import find_files
    from incrowd.sources.sqlite import is_sqlite

    if thing is None or engine is not None:
        return thing is None
    names = _local(thing)
    if names is not None:
        if any("://" in os.fspath(name) for name in names):
            return True
        return any(is_sqlite(path) or _has_tables(path) for path in find_files(names))
    # By its class: to ask some tables for more makes them work, and streams can be asked once.
    return type(thing).__module__.partition(".")[0] not in _TABLES


def _has_tables(path: Path) -> bool:
    from incrowd.sources.programs import program_of

    program = program_of(path)
    return program is not None and program.tables


def _local(thing: Any) -> list[str | os.PathLike[str]] | None:
    """The names in what was given, those of local files without ``file://``; None if it is something else."""
    names = list(thing) if isinstance(thing, list | tuple) else [thing]
    if not names or not all(isinstance(name, str | os.PathLike) for name in names):
        return None
    return [_path_of(name) if isinstance(name, str) and name.startswith("file://") else name for name in names]


def _path_of(address: str) -> str:
    host, slash, path = address.removeprefix("file://").partition("/")
    if host not in ("", "localhost"):
        raise DataError(
            "The address of the file names another machine.",
            code="data-format",
            remedy="Give file:///path/to/file, or the name of the file.",
        )
    return unquote(slash + path)


def require_spark(source: Source) -> SparkSource:
    """A table that is on a cluster.

    Raises:
        ParameterError: it is elsewhere.
    """
    if "incrowd.sources.spark" in sys.modules:  # which whoever has opened a table on a cluster has imported
        from incrowd.sources.spark import SparkSource

        if isinstance(source, SparkSource):
            return source
    raise ParameterError(
        "Executors write tables that Spark reads (a Spark DataFrame, or files and tables with --engine).",
        code="parameter-combination",
        remedy="Leave out --write-with: then the table is drawn and written here.",
    )


def _is_source(thing: object) -> TypeGuard[Source]:
    # By its class: to ask some tables for an attribute makes them work.
    return callable(getattr(type(thing), "count_by", None))


def _open_on_spark(thing: Any, options: dict[str, Any]) -> Source | None:
    from incrowd.sources.options import Options
    from incrowd.sources.spark_session import is_spark_frame, open_spark

    wanted = options.get("engine") is not None or is_spark_frame(thing)
    return open_spark(thing, Options(**options)) if wanted else None


def _open_builtin(thing: Any, options: dict[str, Any]) -> Source | None:
    from incrowd.sources.adbc import is_address, open_adbc, open_address, open_connection
    from incrowd.sources.databases import DatabaseSource
    from incrowd.sources.duckdb import DuckDBSource
    from incrowd.sources.files import find_files, open_files
    from incrowd.sources.ibis import open_ibis
    from incrowd.sources.lakes import open_lake
    from incrowd.sources.memory import open_memory
    from incrowd.sources.options import Options
    from incrowd.sources.programs import program_of, read_program
    from incrowd.sources.sqlite import is_sqlite, open_sqlite

    names = _local(thing)
    if (lake := open_lake(names[0] if names is not None and len(names) == 1 else thing)) is not None:
        return DuckDBSource(lake, Options(**options))
    if names is not None:
        if isinstance(thing, str) and is_address(thing):
            return open_address(thing, Options(**options))
        if any("://" in os.fspath(name) for name in names):
            return None
        reading = Options(**options)
        paths = find_files(names)
        if len(paths) == 1 and is_sqlite(paths[0]):
            return DatabaseSource(open_sqlite(paths[0], reading.table), reading)
        if len(paths) == 1 and program_of(paths[0]) is not None:
            return _open_builtin(read_program(paths[0], reading.table), options | {"table": None})
        return DuckDBSource(open_files(paths, reading), reading)
    for open_elsewhere in (open_adbc, open_connection, open_ibis):
        if (source := open_elsewhere(thing, options)) is not None:
            return source
    table = open_memory(thing)
    return None if table is None else DuckDBSource(table, Options(**options))
