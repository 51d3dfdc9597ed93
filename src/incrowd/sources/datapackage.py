"""Frictionless Data Packages: the table that one describes, and what it says of the table's columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from incrowd.core.errors import DataError
from incrowd.core.files import read_ordinary
from incrowd.sources.programs import FileLabels, file_labels

DATAPACKAGE = "datapackage.json"
_LARGEST = 1 << 26
_ORIGIN = f"the descriptions in {DATAPACKAGE}"


@dataclass(frozen=True)
class DescribedTable:
    """A table that a package describes: its file, and how a text file is to be read where the package says so."""

    path: Path
    delimiter: str | None
    quote: str | None
    encoding: str | None
    missing_values: tuple[str, ...]


def described_table(package: Path, table: str | None) -> DescribedTable:
    """The table of a package: the only one, or the one of that name.

    Raises:
        DataError: there is none, or several, or its file is not beside the package.
    """
    tables = [one for one in _resources(package) if table in (None, one.get("name"))]
    if len(tables) != 1:
        said = "no table" if not tables else f"{len(tables)} tables"
        raise _wrong(
            package,
            f"it describes {said}{'' if table is None else ' of that name'}, as a file beside it",
            "Name one: --table NAME." if tables else "Name the table's file itself.",
        )
    found = tables[0]
    dialect: dict[str, Any] = found["dialect"] if isinstance(found.get("dialect"), dict) else {}
    return DescribedTable(
        package.parent / found["path"],
        _text(dialect.get("delimiter")),
        _text(dialect.get("quoteChar")),
        _text(found.get("encoding")),
        _missing(found["schema"].get("missingValues")),
    )


def _missing(said: Any) -> tuple[str, ...]:
    """The texts for missing values; some versions of the standard let each be labelled."""
    listed = [one.get("value") if isinstance(one, dict) else one for one in said] if isinstance(said, list) else []
    return tuple(dict.fromkeys(("", *(one for one in listed if isinstance(one, str)))))


def _text(said: Any) -> str | None:
    return said if isinstance(said, str) else None


def all_labels(data: Path) -> FileLabels:
    """What a table's own file says of its columns; or else a package beside it."""
    own, package = file_labels(data), data.parent / DATAPACKAGE
    if own != FileLabels() or not package.is_file():
        return own
    fields = [
        field
        for one in _resources(package)
        if PurePosixPath(one["path"]) == PurePosixPath(data.name)
        for field in one["fields"]
        if isinstance(field, dict) and isinstance(field.get("name"), str)
    ]
    return FileLabels(
        {field["name"]: field["title"] for field in fields if isinstance(field.get("title"), str)},
        {field["name"]: values for field in fields if (values := _values(field))},
        origin=_ORIGIN,
    )


def _values(field: Mapping[str, Any]) -> dict[str, str]:
    """What a field could hold, with labels: each by itself, if there is none."""
    constraints = field.get("constraints")
    listed = field.get("categories") or (constraints.get("enum") if isinstance(constraints, dict) else None)
    found: dict[str, str] = {}
    for one in listed if isinstance(listed, list) else ():
        value, label = (one.get("value"), one.get("label")) if isinstance(one, dict) else (one, None)
        if not isinstance(value, str | int) or isinstance(value, bool):
            return {}
        found[str(value)] = label if isinstance(label, str) else str(value)
    return found


def _resources(package: Path) -> Iterator[dict[str, Any]]:
    """The tables that are one file beside the package, each with a list of its fields."""
    try:
        content = json.loads(read_ordinary(package, _LARGEST))
        listed = content["resources"]
        for one in listed:
            schema, path = one.get("schema"), one.get("path")
            if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list) or not isinstance(path, str):
                continue
            parts = PurePosixPath(path).parts
            if "://" not in path and parts and not path.startswith("/") and ".." not in parts and "\\" not in path:
                yield {**one, "fields": schema["fields"]}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError):
        raise _wrong(
            package, "it is not a Data Package", "Correct it, or put it elsewhere and name the table itself."
        ) from None


def _wrong(package: Path, why: str, remedy: str) -> DataError:
    return DataError(f"{package}: {why}.", code="data-format", remedy=remedy)
