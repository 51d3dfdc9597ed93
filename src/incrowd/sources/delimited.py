"""Text files of separated fields: CSV and its relatives, as publishers really have them.

The dialect is found from the first mebibyte by a few fixed rules, and then given to the engine in full, with its
strict checks on: it guesses nothing. Every field is read as text; what it means is decided by the declared domain.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from incrowd.core.errors import DataError
from incrowd.sources.duckdb_codes import quoted
from incrowd.sources.files import HEAD_BYTES, UNPACKED, parts_differ, read_blocks, read_head, recognise_file, sql_paths
from incrowd.sources.memory import check_names
from incrowd.sources.options import OTHER_ENCODING, Options
from incrowd.sources.record_scan import RecordScan

if TYPE_CHECKING:
    import duckdb

_DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_RECORDS = 1000
_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class TextDialect:
    """How a text file is written.

    Attributes:
        names: the columns' names: the fields of its first record, unless they are given.
        delimiter: what separates fields.
        encoding: the encoding, as Python calls it.
        header: whether the first record names the columns.
    """

    names: tuple[str, ...]
    delimiter: str
    encoding: str
    header: bool = True


@dataclass(frozen=True)
class TextPart:
    """One text file, and its first record as it is written there if that is a header, else nothing."""

    path: Path
    header: str

    @property
    def line_end(self) -> str:
        """What ends the first record."""
        return self.header[len(self.header.rstrip("\r\n")) :]

    @property
    def has_simple_header(self) -> bool:
        """Whether the first record is one line."""
        return not any(end in self.header.removesuffix(self.line_end) for end in "\r\n")


@dataclass
class DelimitedFiles:
    """Text files of the same columns in the same dialect."""

    parts: tuple[TextPart, ...]
    dialect: TextDialect
    quote: str
    compression: str | None
    rows: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.dialect.names

    def attach(self, _connection: duckdb.DuckDBPyConnection, workdir: Path, positions: Sequence[int]) -> str:
        """Reads the files where they are, or a copy if the engine cannot read them as they are.

        It reads only UTF-8, and loses records below a header of several lines. It is not told what the line ends are,
        as it then loses records that end otherwise; left alone, it refuses them. And it is left to take empty fields
        for null (put right here), as it otherwise loses them in tables of one column.
        """
        paths, compression = [part.path for part in self.parts], self.compression
        copied = self.dialect.encoding != "utf-8" or compression in UNPACKED
        if copied or not all(part.has_simple_header for part in self.parts):
            paths = [self._copy(part, workdir / f"{i}.csv") for i, part in enumerate(self.parts)]
            compression = None
        chosen = ", ".join(f"coalesce(c{i}, '') AS c{i}" for i in positions) or "1"
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(self.names)))
        return (
            f"(SELECT {chosen} FROM read_csv({sql_paths(paths)}, auto_detect = false, "  # noqa: S608
            f"header = {'true' if self.dialect.header else 'false'}, "
            f"columns = {{{columns}}}, delim = {quoted(self.dialect.delimiter)}, quote = {quoted(self.quote)}, "
            f"escape = {quoted(self.quote)}, compression = {quoted(compression or 'none')}, "
            "strict_mode = true, null_padding = false, ignore_errors = false))"
        )

    def verify(self, given_up: Event) -> None:
        """Counts the records; compressed files must be whole."""
        self.rows = sum(self._count(part.path, given_up) for part in self.parts)

    def _count(self, path: Path, given_up: Event) -> int:
        blocks = read_blocks(path, self.compression, given_up)
        if self.dialect.encoding != "utf-8":
            blocks = (text.encode() for text in _decoded(path, blocks, self.dialect.encoding))
        scan = RecordScan(path, self.quote, self.dialect.delimiter, empty_lines=len(self.names) == 1)
        return scan.count(blocks) - self.dialect.header

    def _copy(self, part: TextPart, target: Path) -> Path:
        """Writes the file again in UTF-8, under a header of one line."""
        names = self.dialect.delimiter.join(f"c{i}" for i in range(len(self.names))) if self.dialect.header else ""
        # As much as was looked at to find the dialect.
        blocks = read_blocks(part.path, self.compression, size=HEAD_BYTES + 1)
        texts = _decoded(part.path, blocks, self.dialect.encoding)
        try:
            with target.open("w", encoding="utf-8", newline="") as copy:
                # The first block holds the first record and more, or everything.
                copy.write(names + part.line_end + next(texts).removeprefix("\ufeff").removeprefix(part.header))
                copy.writelines(texts)
        except OSError:
            raise DataError(
                f"There is no room for a copy of {part.path} in UTF-8.",
                code="data-memory",
                remedy="Let TMPDIR name a place with more room for temporary files, or save the file in UTF-8.",
            ) from None
        return target


def open_delimited(paths: Sequence[Path], compression: str | None, options: Options) -> DelimitedFiles:
    """The table in these text files."""
    sniffed = [_sniff(path, compression, options) for path in paths]
    dialects = [dialect for dialect, _ in sniffed]
    if any(dialect.names != dialects[0].names for dialect in dialects):
        raise parts_differ("do not have the same header")
    if any(dialect != dialects[0] for dialect in dialects):
        raise parts_differ("are not written in the same way (delimiter or encoding)")
    return DelimitedFiles(tuple(part for _, part in sniffed), dialects[0], options.quote, compression)


def _sniff(path: Path, compression: str | None, options: Options) -> tuple[TextDialect, TextPart]:
    head = read_head(path, compression)
    whole = len(head) <= HEAD_BYTES
    text, encoding = decode_head(path, head, options.encoding)
    if not text.strip():
        raise DataError(
            f"{path} holds nothing but blanks.", code="data-empty", remedy="Check that it is the right file."
        )
    if not re.split("[\r\n]", text, maxsplit=1)[0].strip():
        raise DataError(
            f"The first line of {path} is blank.",
            code="data-malformed",
            remedy="Remove blank lines above the line of column names.",
        )
    if not whole and not any(end in text for end in "\r\n"):
        raise too_long(path)
    delimiter = options.delimiter or _delimiter(path, text, options.quote, whole)
    first, header = _first_record(path, text, delimiter, options.quote, whole)
    if options.columns is None:
        _check_header(path, first)
        return TextDialect(tuple(first), delimiter, encoding), TextPart(path, header)
    check_names(options.columns)
    if len(first) != len(options.columns):
        raise DataError(
            f"The first line of {path} has {len(first)} fields, but {len(options.columns)} columns are named.",
            code="data-malformed",
            remedy="Name each column of the file, in order, also those that are not used.",
        )
    return TextDialect(options.columns, delimiter, encoding, header=False), TextPart(path, "")


def decode_head(path: Path, head: bytes, encoding: str | None) -> tuple[str, str]:
    """The first bytes as text without byte-order mark, and the encoding; refuses what is not text."""
    marked = next((name for mark, name in _BOMS.items() if head.startswith(mark)), None)
    name = codecs.lookup(encoding or marked or "utf-8").name
    if name == "utf-8-sig":
        name = "utf-8"
    if name.startswith("utf-16") and marked == "utf-16":
        name = "utf-16"
    # Zero bytes are in no text; only the wide encodings are full of them.
    if not name.startswith(("utf-16", "utf-32")) and b"\0" in head:
        raise DataError(
            f"{path} is not a text file.",
            code="data-format",
            remedy="Give a CSV or Parquet file. If it is text in UTF-16, say so (encoding).",
        )
    try:
        text = codecs.getincrementaldecoder(name)(errors="strict").decode(head, final=len(head) <= HEAD_BYTES)
    except UnicodeError:
        raise _wrong_encoding(path, name) from None
    return text.removeprefix("\ufeff"), name


def first_lines(path: Path, options: Options, most: int = 8) -> tuple[str, str, list[list[str]]]:
    """The encoding and the delimiter of a text file, and its first lines as they would be cut into fields.

    Raises:
        DataError: it is not text, or not in this encoding.
    """
    content, compression = recognise_file(path)
    if content == "parquet":
        raise DataError(f"{path} is a Parquet file.", code="data-format", remedy="Leave out how it would be read.")
    head = read_head(path, compression)
    text, encoding = decode_head(path, head, options.encoding)
    delimiter = options.delimiter or _delimiter(path, text, options.quote, len(head) <= HEAD_BYTES)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=options.quote)
    try:
        return encoding, delimiter, list(islice(rows, most))
    except csv.Error:
        return encoding, delimiter, [[line] for line in text.splitlines()[:most]]


def too_long(path: Path) -> DataError:
    """The error for a first line that does not end."""
    return DataError(
        f"The first line of {path} is longer than {HEAD_BYTES} bytes.",
        code="data-line-too-long",
        remedy="Give a text file with one record a line, below a line of column names.",
    )


def _decoded(path: Path, blocks: Iterable[bytes], encoding: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="strict")
    try:
        for block in blocks:
            yield decoder.decode(block)
        yield decoder.decode(b"", final=True)
    except UnicodeError:
        raise _wrong_encoding(path, encoding) from None


def _wrong_encoding(path: Path, encoding: str) -> DataError:
    return DataError(
        f"{path} is not text in {encoding}.",
        code="data-encoding",
        remedy=OTHER_ENCODING,
    )


def _delimiter(path: Path, text: str, quote: str, whole: bool) -> str:
    """The candidate that cuts every record into the same number of fields, the largest number above one.

    If none does, the one that cuts most records as it cuts the header: the engine then says which line is wrong.
    """
    agreeing: dict[str, int] = {}
    fitting: dict[str, tuple[int, int]] = {}
    for delimiter in _DELIMITERS:
        widths = [len(record) for record in _records(text, delimiter, quote, whole) if record]
        if not widths or widths[0] == 1:
            continue
        if set(widths) == {widths[0]}:
            agreeing[delimiter] = widths[0]
        fitting[delimiter] = (widths.count(widths[0]), widths[0])
    if agreeing:
        best = [delimiter for delimiter, width in agreeing.items() if width == max(agreeing.values())]
        if len(best) == 1:
            return best[0]
        raise DataError(
            f"The fields of {path} could be separated by {' or '.join(map(repr, best))}.",
            code="data-malformed",
            remedy="Say which it is (delimiter).",
        )
    return max(fitting, key=lambda delimiter: fitting[delimiter]) if fitting else _DELIMITERS[0]


def _records(text: str, delimiter: str, quote: str, whole: bool) -> list[list[str]]:
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote):
            records.append(record)
            if len(records) > _SNIFFED_RECORDS:
                break
        else:
            # The last record of a head that is not the whole file is probably cut off.
            del records[-1 if not whole and len(records) > 1 else len(records) :]
    except csv.Error:
        pass
    return records


def _first_record(path: Path, text: str, delimiter: str, quote: str, whole: bool) -> tuple[list[str], str]:
    """The fields of the first record, and how it is written."""
    stream = io.StringIO(text, newline="")
    try:
        fields = next(csv.reader(stream, delimiter=delimiter, quotechar=quote, strict=True))
    except csv.Error:
        if not whole:
            raise too_long(path) from None
        raise DataError(
            f"The first line of {path} has a quote that is not closed properly.",
            code="data-malformed",
            remedy="Close it, or say which character quotes fields (quote).",
        ) from None
    return fields, text[: stream.tell()]


def _check_header(path: Path, names: Sequence[str]) -> None:
    if not any(name.strip() for name in names):
        raise DataError(
            f"The first line of {path} names no column.",
            code="data-malformed",
            remedy="Put a line of column names at the top.",
        )
    check_names(names)
