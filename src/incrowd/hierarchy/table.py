"""Hierarchies written out: a line for each value, a column for each level. What ARX reads and writes.

The first column is the value, the last is the same in every line. There is no header.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import HierarchyError, InputError
from incrowd.core.files import read_ordinary, write_whole
from incrowd.domain import Domain, Value, label_of
from incrowd.hierarchy.tree import Grouping, Hierarchy, in_order
from incrowd.policy import Kind, read_value

V = TypeVar("V", bound=Hashable)

DELIMITERS = ";,\t"
_LARGEST_FILE = 1 << 30
_TRIED = 200  # rows by which a delimiter is recognised


@dataclass(frozen=True)
class Origin:
    """Where something was read, and how it is complained about.

    Attributes:
        name: of the file.
        show_values: whether a message may contain the value concerned.
        error: the kind of error.
        code: its code, where nothing more special is known.
    """

    name: str
    show_values: bool = False
    error: type[InputError] = HierarchyError
    code: str = "hierarchy-file"

    def wrong(
        self,
        text: str,
        *,
        line: int | None = None,
        value: str | None = None,
        code: str = "",
        remedy: str = "",
        **more: Any,
    ) -> InputError:
        """The error: something is wrong, in a line."""
        where = f"{self.name}, line {line}" if line else self.name
        shown = f" The value is {value!r}." if self.show_values and value is not None else ""
        details = {"file": self.name, "line": line, **more}
        return self.error(f"{where}: {text}.{shown}", code=code or self.code, remedy=remedy, details=details)

    def read(self, path: Path, encoding: str = "utf-8") -> str:
        """The text of a file, a byte-order mark removed."""
        try:
            raw = read_ordinary(path, _LARGEST_FILE)
        except OSError as error:
            raise self.wrong(f"the file cannot be read: {error.strerror or type(error).__name__}") from None
        if len(raw) > _LARGEST_FILE:
            raise self.wrong("the file is larger than 1 GB")
        if b"\0" in raw and "16" not in encoding and "32" not in encoding:
            raise self.wrong("this is not a text file", line=raw.count(b"\n", 0, raw.index(b"\0")) + 1)
        try:
            return raw.decode("utf-8-sig" if encoding == "utf-8" else encoding)
        except UnicodeDecodeError as error:
            raise self.wrong(
                f"this is not text in the encoding {encoding}",
                line=raw.count(b"\n", 0, error.start) + 1,
                remedy="Give the file's 'encoding', latin-1 perhaps, or save it as UTF-8.",
            ) from None


@dataclass(frozen=True)
class HierarchyTable:
    """A hierarchy written out.

    Attributes:
        columns: the values, then their names at each level, the last of which is always the same.
        lines: the line of each value, if there is a file.
        origin: where it was read.
    """

    columns: tuple[tuple[str, ...], ...]
    lines: Sequence[int | None]
    origin: Origin

    @property
    def root(self) -> str:
        """The name of everything."""
        return self.columns[-1][0]

    def values(self, kind: Kind, missing: set[str]) -> tuple[Value, ...]:
        """The values in the first column, except texts that mean that a value is missing."""
        values, lines = read_column(kind, self.columns[0], self.lines, self.origin, missing)
        return require_once(values, lines, self.origin, "hierarchy-duplicate")

    def groupings(self, domain: Domain, kind: Kind) -> Iterator[Grouping]:
        """The groups of the values of a domain at each level; lines for other values are not needed and not used."""
        rows = self._rows(domain, kind)
        whole = len(rows) == len(self.lines) and bool(np.all(rows == np.arange(len(rows))))
        below: NDArray[np.integer] | None = None
        for number, column in enumerate(self.columns[1:], 1):
            names = {name: code for code, name in enumerate(dict.fromkeys(column))}
            codes = np.fromiter(map(names.__getitem__, column), np.int64, len(column))
            if below is not None:
                self._require_nested(number, below, codes)
            below = codes
            yield (codes, tuple(names)) if whole else in_order(codes[rows], tuple(names))

    def _rows(self, domain: Domain, kind: Kind) -> NDArray[np.int64]:
        """The row of each value of a domain."""
        known = set(domain.labels)
        texts = self.columns[0]
        names = texts if known.issuperset(texts) else [t if t in known else _canonical(kind, t) for t in texts]
        require_once(names, self.lines, self.origin, "hierarchy-duplicate")
        found = {name: row for row, name in enumerate(names)}
        absent = [number for number, name in enumerate(domain.labels, 1) if name not in found]
        if absent:
            raise self.origin.wrong(
                f"{len(absent)} of the {len(domain.labels)} values of the domain are missing here, the first being its "
                f"value number {absent[0]}",
                value=domain.labels[absent[0] - 1],
                code="hierarchy-uncovered",
                remedy="Add a line for each, or take them out of the domain.",
                absent=len(absent),
                first=absent[0],
            )
        return np.fromiter(map(found.__getitem__, domain.labels), np.int64, len(domain.labels))

    def _require_nested(self, number: int, below: NDArray[np.integer], above: NDArray[np.integer]) -> None:
        first = np.full(int(below.max()) + 1, len(below))
        np.minimum.at(first, below, np.arange(len(below)))
        wrong = np.flatnonzero(above[first[below]] != above)
        if wrong.size:
            row, other = int(wrong[0]), int(first[below[wrong[0]]])
            raise self.origin.wrong(
                f"like line {self.lines[other]} at level {number - 1}, but not at level {number}",
                line=self.lines[row],
                value=self.columns[0][row],
                code="hierarchy-nesting",
                remedy="Values that are alike at one level must be alike at every higher level.",
                level=number,
                lines=int(wrong.size),
            )


def read_column(
    kind: Kind, texts: Sequence[str], lines: Sequence[int | None], origin: Origin, missing: set[str]
) -> tuple[tuple[Value, ...], Sequence[int | None]]:
    """Values of an attribute's type with their lines, those texts left out that mean that a value is missing."""
    if missing.intersection(texts):
        kept = [number for number, text in enumerate(texts) if text not in missing]
        texts, lines = [texts[number] for number in kept], [lines[number] for number in kept]
    if kind == "text":
        return tuple(texts), lines
    if kind == "integer" and all(text.isascii() and text.isdigit() for text in texts):
        return tuple(map(int, texts)), lines
    values = []
    for text, line in zip(texts, lines, strict=True):
        try:
            values.append(read_value(kind, text))
        except ValueError as error:
            raise origin.wrong(f"the value {error}", line=line, value=text) from None
    return tuple(values), lines


def require_once(values: Sequence[V], lines: Sequence[int | None], origin: Origin, code: str) -> tuple[V, ...]:
    """The values, if none of them comes twice."""
    if len(set(values)) < len(values):
        seen: dict[V, int | None] = {}
        for value, line in zip(values, lines, strict=True):
            if value in seen:
                where = f"in line {seen[value]}" if seen[value] else "above"
                raise origin.wrong(
                    f"this value stands {where} already",
                    line=line,
                    value=str(value),
                    code=code,
                    remedy="Keep one of the two.",
                )
            seen[value] = line
    return tuple(values)


def read_table(text: str, origin: Origin, delimiter: str | None = None) -> HierarchyTable:
    """A hierarchy from the text of a file."""
    rows, lines = read_rows(text, origin, delimiter)
    if not rows:
        raise origin.wrong("the file is empty")
    width = len(rows[0])
    if width < 2:
        raise origin.wrong(
            "there is one column only",
            line=lines[0],
            remedy="The first column is the value, the others are its names at each level; check the delimiter.",
        )
    ragged = next((number for number, row in enumerate(rows) if len(row) != width), None)
    if ragged is not None:
        raise origin.wrong(
            f"{len(rows[ragged])} columns, where line {lines[0]} has {width}",
            line=lines[ragged],
            value=rows[ragged][0],
            code="hierarchy-ragged",
        )
    columns = tuple(tuple(map(itemgetter(level), rows)) for level in range(width))
    for level, column in enumerate(columns[1:], 1):
        if "" in column:
            row_number = column.index("")
            raise origin.wrong(
                f"level {level} is empty",
                line=lines[row_number],
                value=columns[0][row_number],
                code="hierarchy-ragged",
                remedy="Repeat the name of the level below where a value has no name at some level.",
                level=level,
            )
    roots = columns[-1]
    if roots.count(roots[0]) < len(roots):
        number = next(number for number, name in enumerate(roots) if name != roots[0])
        raise origin.wrong(
            f"the last column is not the same as in line {lines[0]}",
            line=lines[number],
            value=columns[0][number],
            code="hierarchy-root",
            remedy="At the highest level all values are one group; add a column that says '*' in every line.",
        )
    return HierarchyTable(columns, lines, origin)


def read_rows(text: str, origin: Origin, delimiter: str | None = None) -> tuple[list[list[str]], list[int]]:
    """Rows of a delimited text with their lines, empty lines left out."""
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter or _delimiter(text), strict=True)
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)  # a quoted text may span lines: rows and lines are not the same
    except csv.Error as error:
        raise origin.wrong(f"this line cannot be read: {error}", line=reader.line_num) from None
    return rows, lines


def to_csv(hierarchy: Hierarchy) -> str:
    """The declared values and their names at each level, as ARX reads them."""
    columns = [[level.labels[code] for code in level.to[: hierarchy.declared].tolist()] for level in hierarchy.levels]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=";", lineterminator="\r\n").writerows(zip(*columns, strict=True))
    return out.getvalue()


def write_csv(hierarchy: Hierarchy, path: str | Path) -> Path:
    """Write a hierarchy in the layout of ARX: semicolons, no header, UTF-8."""
    return write_whole(path, to_csv(hierarchy).encode())


def _delimiter(text: str) -> str:
    """The delimiter that gives all rows the same number of columns, at least two; else the first that occurs."""
    for candidate in DELIMITERS:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=candidate, strict=True)
        try:
            widths = {len(row) for row, _ in zip(reader, range(_TRIED), strict=False) if row}
        except csv.Error:
            continue
        if len(widths) == 1 and widths.pop() > 1:
            return candidate
    return next((candidate for candidate in DELIMITERS if candidate in text), ";")


def _canonical(kind: Kind, text: str) -> str:
    try:
        return label_of(read_value(kind, text))
    except ValueError:
        return text
