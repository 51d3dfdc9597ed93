"""Files of JSON lines: one object a line, its keys being the columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from incrowd.core.errors import DataError
from incrowd.sources.delimited import decode_head, too_long
from incrowd.sources.duckdb_codes import quoted
from incrowd.sources.files import HEAD_BYTES, read_blocks, read_head, sql_paths
from incrowd.sources.record_scan import RecordScan

if TYPE_CHECKING:
    import duckdb

_LONGEST = 2**24  # bytes of an object; the engine's own limit, which it does not always keep


@dataclass
class JsonLines:
    """Files of JSON lines. A key that an object lacks is a missing value; numbers and booleans are read as text."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    compression: str | None
    rows: int | None = None

    def attach(self, _connection: duckdb.DuckDBPyConnection, _workdir: Path, _positions: Sequence[int]) -> str:
        keys = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in self.names)
        columns = ", ".join(f"c{i}" for i in range(len(self.names)))
        return (
            f"read_json({sql_paths(self.paths)}, format = 'newline_delimited', auto_detect = false, "
            f"columns = {{{keys}}}, compression = {quoted(self.compression or 'none')}) AS objects({columns})"
        )

    def verify(self, given_up: Event) -> None:
        self.rows = sum(
            RecordScan(path, longest=_LONGEST, blank_lines=False).count(read_blocks(path, self.compression, given_up))
            for path in self.paths
        )


def open_jsonlines(paths: Sequence[Path], compression: str | None) -> JsonLines:
    """The table in these files; its columns are the keys of the objects in each file's first mebibyte."""
    names: dict[str, None] = {}
    for path in paths:
        for record in _objects(path, compression):
            names.update(dict.fromkeys(record))
    if not names:
        raise DataError("The objects have no keys.", code="data-empty", remedy="Check that it is the right file.")
    if len({name.lower() for name in names}) < len(names):
        raise DataError(
            "Two keys differ only in capital letters, which cannot be told apart here.",
            code="data-columns",
            remedy="Rename one of them, or save the table as CSV or Parquet.",
        )
    return JsonLines(tuple(paths), tuple(names), compression)


def _objects(path: Path, compression: str | None) -> list[dict[str, object]]:
    head = read_head(path, compression)
    text, _ = decode_head(path, head, "utf-8")
    lines = text.split("\n")
    if len(head) > HEAD_BYTES and len(lines) == 1:
        raise too_long(path)
    if len(head) > HEAD_BYTES:
        lines.pop()
    records = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise DataError(
                f"Line {number} of {path} is not a JSON object.",
                code="data-malformed",
                remedy="Put one object on each line.",
            )
        records.append(record)
    if not records:
        raise DataError(f"{path} holds no object.", code="data-empty", remedy="Check that it is the right file.")
    return records
