"""Code books: what the codes of a table's columns mean.

However it is written, a book comes down to one value, `CodeBook`; a further format needs a function that makes one of
a text and a line in `_READERS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.core.errors import PolicyError
from incrowd.hierarchy.table import Origin, read_rows
from incrowd.policy import LabelFile

_VARIABLE = ("variable", "column", "name", "field")
_VALUE = ("value", "code")
_LABEL = ("label", "meaning", "description", "text")


@dataclass(frozen=True)
class CodeBook:
    """What codes mean.

    Attributes:
        labels: for each column, its codes as they are written there, with their labels.
        general: codes and labels of a book that names no column.
        origin: where it was read.
    """

    labels: Mapping[str, Mapping[str, str]]
    general: Mapping[str, str]
    origin: Origin

    def of(self, column: str) -> Mapping[str, str]:
        """The codes of a column and their labels, none if the book says nothing about it."""
        return self.labels.get(column, {}) or self.general


def read_codebook(spec: LabelFile, base: str | Path = "", *, show_values: bool = False) -> CodeBook:
    """The code book that a policy names.

    Raises:
        PolicyError: it cannot be read as one.
    """
    origin = Origin(spec.file, show_values, PolicyError, "labels-file")
    text = origin.read(Path(base) / spec.file, spec.encoding)
    reader = _READERS.get(Path(spec.file).suffix.lower(), _table)
    return reader(text, origin, spec.delimiter)


def _table(text: str, origin: Origin, delimiter: str | None) -> CodeBook:
    """Lines of variable, value and label, named so in the first line; without a variable, about any column."""
    rows, lines = read_rows(text, origin, delimiter)
    if not rows:
        raise origin.wrong("the file is empty")
    header = [name.strip().lower() for name in rows[0]]
    variable, value, label = (
        next((header.index(name) for name in known if name in header), None) for known in (_VARIABLE, _VALUE, _LABEL)
    )
    if value is None or label is None:
        raise origin.wrong(
            "there is no column of codes, or none of labels",
            line=lines[0],
            remedy="Its first line names the columns: variable, value and label; variable may be left out.",
        )
    found: dict[str | None, dict[str, str]] = {}
    named = None
    for row, line in zip(rows[1:], lines[1:], strict=True):
        if len(row) != len(header):
            raise origin.wrong(f"{len(row)} columns, where the first line has {len(header)}", line=line)
        if variable is not None:
            named = row[variable] or named  # some books name a variable once, in the first of its lines
        if variable is None or named is not None:
            _add(found.setdefault(named, {}), row[value], row[label], origin, line)
    general = found.pop(None, {})
    return CodeBook({str(name): codes for name, codes in found.items()}, general, origin)


def _json(text: str, origin: Origin, _: str | None) -> CodeBook:
    """Names of columns, below each its codes with their labels; or codes with their labels alone."""
    try:
        content = json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, origin))
    except (json.JSONDecodeError, RecursionError):
        raise origin.wrong("this is not JSON") from None
    if not isinstance(content, Mapping) or not content:
        raise origin.wrong("there are no names of columns with their codes")
    if all(isinstance(label, str) for label in content.values()):
        return CodeBook({}, _codes(content, origin), origin)
    return CodeBook({str(name): _codes(codes, origin) for name, codes in content.items()}, {}, origin)


def _once(pairs: list[tuple[str, Any]], origin: Origin) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise origin.wrong("a name or a code is there twice", remedy="Keep one of the two.")
    return found


def _codes(content: Any, origin: Origin) -> dict[str, str]:
    if not isinstance(content, Mapping):
        raise origin.wrong("below a column's name there are no codes with their labels")
    found: dict[str, str] = {}
    for code, label in content.items():
        if not isinstance(label, str):
            raise origin.wrong("a label is not a text", value=str(code))
        _add(found, code, label, origin, None)
    return found


def _add(found: dict[str, str], code: str, label: str, origin: Origin, line: int | None) -> None:
    if not label.strip():
        raise origin.wrong("there is no label", line=line, value=code)
    if code in found:
        raise origin.wrong(
            "this code has a label already",
            line=line,
            value=code,
            remedy="Keep one of the two.",
        )
    found[code] = label.strip()


_READERS: Mapping[str, Callable[[str, Origin, str | None], CodeBook]] = {".json": _json}
