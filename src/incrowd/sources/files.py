"""Finding files, and telling what is really in them.

A file must be what its name says: a Parquet file that is called .csv is more likely a mistake than a wish. Only the
first mebibyte is ever looked at here.
"""

from __future__ import annotations

import glob
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO, TYPE_CHECKING, Protocol

from incrowd.core.errors import DataError
from incrowd.core.files import named
from incrowd.sources.lakes import partitioned, refuse_lakes, refuse_partitions
from incrowd.sources.memory import check_names
from incrowd.sources.options import Options

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

HEAD_BYTES = 2**20
_TORN = (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)
"""What a file that is cut short or damaged raises as it is unpacked."""

_FORMATS = {
    "text": {".csv", ".tsv", ".tab", ".psv", ".txt", ".dat", ".data", ".asc"},
    "parquet": {".parquet", ".parq", ".pq"},
    "jsonl": {".jsonl", ".ndjson"},
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
UNPACKED = {"bz2", "xz", "zip"}
"""Compressions that the engine does not know: text files are unpacked for it."""
_NAMES = {"text": "a text file", "parquet": "a Parquet file", "jsonl": "a file of JSON lines"}
_COMPRESSION_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip",
}
# What else people hand over, by its first bytes.
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3\x00": "an SQLite database among other files",
    b"7z\xbc\xaf": "a 7z archive",
    b"ARROW1": "an Arrow file",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"$FL2": "an SPSS file",
    b"<stata_dta>": "a Stata file",
    b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xc2\xea\x81\x60": "a SAS file",
    b"%PDF": "a PDF document",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"GIF8": "an image",
    b"\x7fELF": "a program",
}
_HYPERTEXT = (b"<!doctype html", b"<html", b"<?xml")


class FileTable(Protocol):
    """Something that the engine can scan."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        ...

    @property
    def rows(self) -> int | None:
        """The number of rows as it is known without the engine; of some tables only once they are verified or read."""
        ...

    def attach(self, connection: duckdb.DuckDBPyConnection, workdir: Path, positions: Sequence[int]) -> str:
        """Makes the columns at these positions known; the result can follow FROM, column i being called ``c<i>``."""
        ...

    def verify(self, given_up: Event) -> None:
        """Checks what the engine does not check while scanning, beside the scan; ends early if it is given up."""
        ...


def find_files(names: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The files of these names and patterns, each once, in order of their names."""
    found: set[Path] = set()
    for given in names:
        name = os.fspath(given)
        path = named(name)
        if glob.has_magic(name) and not path.exists():
            matches = [Path(match) for match in glob.glob(name, recursive=True)]  # noqa: PTH207 - patterns may be absolute
            matches = [match for match in matches if not match.is_dir()]
            if not matches:
                raise DataError(f"No file matches {name}.", code="data-not-found", remedy="Check the pattern.")
            found.update(matches)
        else:
            found.add(path)
    return sorted(found)


def open_files(paths: Sequence[Path], options: Options) -> FileTable:
    """The table in these files, which must all be parts of one table."""
    from incrowd.sources.delimited import open_delimited
    from incrowd.sources.jsonlines import open_jsonlines

    formats = {recognise_file(path) for path in paths}
    if len(formats) > 1:
        raise parts_differ("are not of the same kind")
    form, compression = formats.pop()
    if options.columns is not None and form != "text":
        raise DataError(
            f"{_NAMES[form].capitalize()} names its columns itself.",
            code="data-format",
            remedy="Leave out 'columns' and 'header': they are for text files.",
        )
    table: FileTable
    if form == "parquet":
        refuse_lakes(paths)
        table = open_parquet(paths)
    elif form == "jsonl":
        table = open_jsonlines(paths, compression)
    else:
        table = open_delimited(paths, compression, options)
    refuse_partitions(paths, table.names)
    return table


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files of the same columns."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    rows: int

    def attach(self, _connection: duckdb.DuckDBPyConnection, _workdir: Path, _positions: Sequence[int]) -> str:
        """Reads the files where they are."""
        columns = ", ".join(f"c{i}" for i in range(len(self.names)))
        return f"read_parquet({sql_paths(self.paths)}, hive_partitioning = false) AS parquet({columns})"

    def verify(self, given_up: Event) -> None:
        """The files say themselves how many rows they have."""


def open_parquet(paths: Sequence[Path]) -> ParquetFiles:
    """The table in these Parquet files, which must have the same columns of the same types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas: list[pa.Schema] = []
    rows = 0
    for path in paths:
        try:
            metadata = pq.read_metadata(path)
            schemas.append(metadata.schema.to_arrow_schema().remove_metadata())
        except (pa.ArrowException, OSError, ValueError):
            raise damaged(path) from None
        rows += metadata.num_rows
    if any(not schema.equals(schemas[0]) for schema in schemas):
        raise parts_differ("do not have the same columns of the same types")
    check_names(schemas[0].names)
    return ParquetFiles(tuple(paths), tuple(schemas[0].names), rows)


def sql_paths(paths: Iterable[Path]) -> str:
    """File names as an SQL list in which no character is taken for a pattern."""
    return "[" + ", ".join("'" + glob.escape(str(path)).replace("'", "''") + "'" for path in paths) + "]"


def read_blocks(
    path: Path, compression: str | None, given_up: Event | None = None, *, size: int = 2**16
) -> Iterator[bytes]:
    """The file's bytes, decompressed, to the end: the engine notices neither a cut-off zstd file nor a wrong gzip check
    sum."""
    with open_plain(path, compression) as stream:
        try:
            while (block := stream.read(size)) and not (given_up and given_up.is_set()):
                yield block
        except _TORN:
            raise damaged(path) from None


def open_plain(path: Path, compression: str | None) -> pa.NativeFile | IO[bytes]:
    """The file's bytes, decompressed."""
    import pyarrow as pa

    if compression == "xz":
        return lzma.open(path)
    if compression == "zip":
        return _open_zipped(path)
    file = pa.OSFile(str(path))
    return file if compression is None else pa.CompressedInputStream(file, compression)


def _open_zipped(path: Path) -> IO[bytes]:
    """The only file in an archive, but for what macOS puts beside each."""
    try:
        archive = zipfile.ZipFile(path)
        inside = [
            entry for entry in archive.infolist() if not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
        ]
        if len(inside) == 1:
            return archive.open(inside[0])
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError):
        raise damaged(path) from None
    raise DataError(
        f"{path} holds {len(inside)} files.",
        code="data-format",
        remedy="Unpack it, and give the file that holds the table.",
    )


def read_head(path: Path, compression: str | None) -> bytes:
    """The first bytes, decompressed: at most `HEAD_BYTES` and one more, so that one sees whether there are more."""
    with open_plain(path, compression) as stream:
        try:
            head: bytes = stream.read(HEAD_BYTES + 1)
        except _TORN:
            raise damaged(path) from None
    return head


def damaged(path: Path) -> DataError:
    """The error for a file that does not go on as it began."""
    return DataError(
        f"{path} is damaged or cut short.", code="data-unreadable", remedy="Get a complete copy of the file."
    )


def empty(path: Path) -> DataError:
    """The error for a file without a byte in it."""
    return DataError(f"{path} is empty.", code="data-empty", remedy="Check that it is the right file.")


def parts_differ(how: str) -> DataError:
    """The error for parts that cannot be of one table."""
    return DataError(
        f"The parts of the table {how}.",
        code="data-parts-differ",
        remedy="Give only files that belong to one table and were written alike.",
    )


def recognise_file(path: Path) -> tuple[str, str | None]:
    """The file's format and compression, from its name and its first bytes, which must agree."""
    start = _first_bytes(path)
    compression = next((name for magic, name in _COMPRESSION_MAGIC.items() if start.startswith(magic)), None)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    named_compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if named_compression:
        suffixes.pop()
    if compression != named_compression:
        said = (
            f"is not compressed with {named_compression}" if named_compression else f"is compressed with {compression}"
        )
        raise _not_as_named(path, said)
    if compression:
        start = read_head(path, compression)[:64]
    suffix = suffixes[-1] if suffixes else ""
    named = next((form for form, endings in _FORMATS.items() if suffix in endings), None)
    foreign = next((what for magic, what in _FOREIGN.items() if start.startswith(magic)), None)
    if start.lower().lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_HYPERTEXT):
        foreign = "a web page or an XML document"
    if foreign:
        raise DataError(
            f"{path} is {foreign}.", code="data-format", remedy="Save the table as CSV or Parquet and give that file."
        )
    content = "parquet" if start.startswith(b"PAR1") else named if named in {"text", "jsonl"} else "text"
    if named is not None and named != content:
        raise _not_as_named(path, f"is {_NAMES[content]}" if content == "parquet" else "is not a Parquet file")
    if named is None and suffix in {".json", ".xml", ".yaml", ".yml", ".html"}:
        raise DataError(
            f"{path} is of a kind that is not read ({suffix}).",
            code="data-format",
            remedy="Save the table as CSV, Parquet or JSON lines (.jsonl) and give that file.",
        )
    if (content == "parquet" and compression) or (content == "jsonl" and compression in UNPACKED):
        raise DataError(
            f"{path} is {_NAMES[content]} that is compressed with {compression}.",
            code="data-format",
            remedy="Unpack it. Parquet compresses by itself; JSON lines may be compressed with gzip or zstd.",
        )
    return content, compression


def _first_bytes(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            refuse_lakes([path])
            if any(path.glob("*=*/")):
                raise partitioned(path)
            raise DataError(
                f"{path} is a directory.",
                code="data-unreadable",
                remedy=f"Name the files in it, with a pattern such as {path}/*.parquet.",
            )
        if not stat.S_ISREG(mode):
            raise DataError(
                f"{path} is not a regular file.", code="data-unreadable", remedy="Save the table as a file."
            )
        with path.open("rb") as file:
            start = file.read(64)
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.", code="data-not-found", remedy="Check its name.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not the name of a file"
        raise DataError(f"{path} cannot be read: {reason}.", code="data-unreadable") from None
    if not start:
        raise empty(path)
    return start


def _not_as_named(path: Path, truth: str) -> DataError:
    return DataError(
        f"{path} is not what its name says: it {truth}.",
        code="data-format",
        remedy="Rename it, or give the right file.",
    )
