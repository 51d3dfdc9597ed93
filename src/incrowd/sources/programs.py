"""Files of other programs: statistics packages, spreadsheets, Arrow, ORC and DuckDB databases.

Each is read by a library that is made for it and handed over as Arrow. A file's format is told by its name, which must
agree with its first bytes. Value labels stay where they are: the table holds the codes, also those by which SPSS, Stata
and SAS tell kinds of missing values apart (-9, .a), and `file_labels` has what they mean.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.errors import DataError
from incrowd.core.machine import library
from incrowd.core.numbers import count
from incrowd.sources.databases import quoted_name, the_table
from incrowd.sources.files import damaged, empty

if TYPE_CHECKING:
    import pyarrow as pa

_SAV, _OLE = b"$FL", b"\xd0\xcf\x11\xe0"
_ZIP = b"PK\x03\x04"
_SHORT_RANGE = 20  # codes of a range that are all listed
_SAS = b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xc2\xea\x81\x60"


@dataclass(frozen=True)
class Program:
    """A kind of file.

    Attributes:
        name: what a file of it is called.
        starts: how such a file may start; any way if there are none.
        read: reads the table that is named, or the only one.
        tables: whether a file may hold several tables.
        offset: where in the file `starts` stands.
    """

    name: str
    starts: tuple[bytes, ...]
    read: Callable[[Path, str | None], Any]
    tables: bool = False
    offset: int = 0


def program_of(path: Path) -> Program | None:
    """The program whose file this is by its name; None if it is none of them.

    Raises:
        DataError: the file starts otherwise than its name says.
    """
    program = PROGRAMS.get(path.suffix.lower())
    if program is None or not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(64)
    if not start:
        raise empty(path)
    if program.starts and not any(start.startswith(mark, program.offset) for mark in program.starts):
        raise DataError(
            f"{path} is not what its name says: it is not {program.name}.",
            code="data-format",
            remedy="Rename it, or give the right file.",
        )
    return program


def read_program(path: Path, table: str | None) -> Any:
    """The table in a file of another program, as Arrow or pandas has it."""
    program = program_of(path)
    if program is None:
        raise DataError(f"{path} is of a kind that is not read.", code="data-format")
    if table is not None and not program.tables:
        raise DataError(
            f"A table is named, but {program.name} is one table.",
            code="data-format",
            remedy="Leave out --table.",
        )
    try:
        return program.read(path, table)
    except (DataError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - each library has errors of its own, whose messages may hold values
        raise DataError(
            f"{path} cannot be read as {program.name}: it is damaged or of a version that is not known.",
            code="data-unreadable",
            remedy="Save it again, or as CSV or Parquet.",
        ) from None


@dataclass(frozen=True)
class FileLabels:
    """What a statistics package's file says of its columns; all of it may be empty.

    Attributes:
        variables: what columns are called, by their names.
        values: what codes mean, by column: the codes as they are written in the table.
        missing: the codes that its author declared to mean that a value is missing, by column; a range is spelt out if
            it is short.
        origin: where that stands.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    origin: str = "the labels in the table’s file"


def file_labels(path: Path) -> FileLabels:
    """What a file says of its columns, without reading its table."""
    if path.suffix.lower() not in _STATISTICS:
        return FileLabels()
    _, meta = statistics(path, metadataonly=True)
    return FileLabels(
        {name: label for name, label in zip(meta.column_names, meta.column_labels, strict=True) if label},
        {
            name: {_code(code): str(label) for code, label in labels.items()}
            for name, labels in meta.variable_value_labels.items()
        },
        {
            name: tuple(code for part in ranges for code in _codes(part["lo"], part["hi"]))
            for name, ranges in meta.missing_ranges.items()
        },
    )


def _codes(low: Any, high: Any) -> list[str]:
    """Codes from one to another."""
    if low == high:
        return [_code(low)]
    if isinstance(low, float) and low.is_integer() and high - low < _SHORT_RANGE:
        return [_code(low + i) for i in range(int(high - low) + 1)]
    return []


def _code(value: Any) -> str:
    """A code as a table shows it: numbers of these files are floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# --- readers ----------------------------------------------------------------------------------------------------------


_STATISTICS: Mapping[str, str] = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
_WITH_KINDS_OF_MISSING = {".sav", ".zsav", ".dta", ".sas7bdat"}
_CARD = 80  # bytes of a record, of which a transport file has a whole number
_OBSERVATIONS = re.compile(rb"HEADER RECORD\*{7}OBSV8   HEADER RECORD!{7} *(\d+) ")


def statistics(path: Path, **options: Any) -> Any:
    """The frame and what the file says of it, as pyreadstat has them."""
    pyreadstat = library("pyreadstat", "stat")
    read = getattr(pyreadstat, _STATISTICS[path.suffix.lower()])
    if path.suffix.lower() in _WITH_KINDS_OF_MISSING:  # "refused" and "does not apply" differ: none of them is lost
        options["user_missing"] = True
    return read(str(path), **options)


def _read_statistics(path: Path, _: str | None) -> Any:
    frame, meta = statistics(path)
    for name in meta.missing_user_values:  # letters among numbers: .a and .b of Stata and SAS
        frame[name] = frame[name].map(_code, na_action="ignore")
    return frame


def _read_transport(path: Path, _: str | None) -> Any:
    """SAS transport, which nobody notices to be cut short unless it is counted."""
    frame, _meta = statistics(path)
    stated = _OBSERVATIONS.search(path.read_bytes())
    if path.stat().st_size % _CARD or (stated is not None and int(stated[1]) not in (0, len(frame))):
        raise damaged(path)
    return frame


def _read_arrow(path: Path, _: str | None) -> pa.Table:
    import pyarrow as pa
    from pyarrow import feather

    with path.open("rb") as file:
        streamed = file.read(4) == b"\xff\xff\xff\xff"
    if streamed:
        return pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
    return feather.read_table(path, memory_map=True)


def _read_orc(path: Path, _: str | None) -> pa.Table:
    from pyarrow import orc

    return orc.ORCFile(path).read()


def _read_sheet(path: Path, table: str | None) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    logging.getLogger("fastexcel").addHandler(logging.NullHandler())  # what it says of empty columns is not for users
    book = library("fastexcel", "stat").read_excel(path)
    name = the_table(book.sheet_names, table, str(path))
    heads = book.load_sheet(name, header_row=None, n_rows=1, dtypes="string").to_arrow()
    names = [column[0].as_py() for column in heads.columns] if heads.num_rows else []
    if None in names or len(set(names)) < len(names):
        raise DataError(
            f"The first row of sheet {name!r} must name every column, each by a name of its own.",
            code="data-format",
            remedy="Give the columns names, and delete what stands above or beside the table.",
        )
    whole: dict[str, Any] = {"schema_sample_rows": None, "skip_whitespace_tail_rows": True}
    # Types are those of all rows: with a few looked at, what does not fit further below would become missing.
    rows, failed = book.load_sheet(name, **whole).to_arrow_with_errors()
    if failed is not None and failed.errors:  # texts such as n/a among numbers: all of the column as texts
        texts = {names[error.offset_position[1]]: "string" for error in failed.errors}
        rows, failed = book.load_sheet(name, dtypes=texts, **whole).to_arrow_with_errors()
    if failed is not None and failed.errors:
        raise DataError(
            f"Sheet {name!r} has errors in {count(len(failed.errors), 'cell', 'cells')}.",
            code="data-unreadable",
            remedy="Correct cells like #DIV/0! and #N/A, or empty them.",
        )
    blank = reduce(pc.and_, [column.is_null() for column in rows.columns]).true_count
    if blank and len(names) > 1:
        raise DataError(
            f"Sheet {name!r} has blank rows ({blank:,}), which would count as people of whom nothing is known.",
            code="data-format",
            remedy="Delete them.",
        )
    return pa.Table.from_batches([rows])


def _read_duckdb(path: Path, table: str | None) -> Any:
    import duckdb

    connection = duckdb.connect(str(path), read_only=True)
    listed = connection.execute("SELECT table_name FROM information_schema.tables ORDER BY ALL").fetchall()
    name = the_table([row[0] for row in listed], table, str(path))
    return connection.table(quoted_name(name))


_SPSS = Program("an SPSS file", (_SAV,), _read_statistics)
_ARROW = Program("an Arrow file", (b"ARROW1", b"FEA1", b"\xff\xff\xff\xff"), _read_arrow)
_EXCEL = Program("an Excel workbook", (_ZIP, _OLE), _read_sheet, tables=True)

PROGRAMS: Mapping[str, Program] = {
    ".sav": _SPSS,
    ".zsav": _SPSS,
    ".por": Program("an SPSS portable file", (), _read_statistics),
    ".dta": Program("a Stata file", (b"<stata_dta>", b"\x6c", b"\x6e", b"\x71", b"\x72", b"\x73"), _read_statistics),
    ".sas7bdat": Program("a SAS file", (_SAS,), _read_statistics),
    ".xpt": Program("a SAS transport file", (b"HEADER RECORD",), _read_transport),
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".ipc": _ARROW,
    ".orc": Program("an ORC file", (b"ORC",), _read_orc),
    ".xlsx": _EXCEL,
    ".xlsm": _EXCEL,
    ".xlsb": _EXCEL,
    ".xls": _EXCEL,
    ".ods": Program("an OpenDocument sheet", (_ZIP,), _read_sheet, tables=True),
    ".duckdb": Program("a DuckDB database", (b"DUCK",), _read_duckdb, tables=True, offset=8),
}
