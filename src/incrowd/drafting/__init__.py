"""A first draft of a policy, from a look at the table: what a person must decide is said, not decided."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.drafting.guessing import ColumnDraft, guess
from incrowd.drafting.writing import MARK, write
from incrowd.errors import DataError, InputError, InternalError
from incrowd.files import write_whole
from incrowd.hierarchy import codings
from incrowd.policy import Policy
from incrowd.sources import open_source
from incrowd.sources.files import find_files
from incrowd.sources.profile import ColumnProfile, profile

_MANY_COLUMNS = 8
_LEAST_EXPONENT = 6  # delta is never proposed larger than this says
_NUMBER_OR_DATE = re.compile(r"\s*[+-]?[0-9]+([.,:/-][0-9]+)*\s*")
_YEAR = re.compile(r"(18|19|20|21)[0-9]{2}")
_CONFIRM = (
    f"Confirm what is marked {MARK}: say, from what you know of the survey and not of the people in it, which values "
    "there can be. Widen ranges to what is possible, take lists from the questionnaire or the code book. Then remove "
    "the mark."
)
_ROLES = "quasi: others may know it of a person; sensitive: others want to know it; drop: never published."
_CROWDS = "Every further column makes the crowds smaller, and with many of them little is left to publish."


@dataclass(frozen=True)
class Decision:
    """What a person has to decide, about a column or (None) about the whole."""

    column: str | None
    question: str


@dataclass(frozen=True)
class Draft:
    """A draft of a policy.

    Attributes:
        text: the policy file.
        path: where it was written, if it was.
        columns: what is proposed for each column, and why.
        decisions: what a person has to decide.
        profiles: what each column holds. For the publisher's eyes only.
    """

    text: str
    path: Path | None
    columns: tuple[ColumnDraft, ...]
    decisions: tuple[Decision, ...]
    profiles: tuple[ColumnProfile, ...] = ()


def draft(
    data: Any,
    output: str | Path | None = None,
    *,
    overwrite: bool = False,
    delimiter: str | None = None,
    quote: str = '"',
    encoding: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Draft:
    """Looks at a table and drafts a policy for it.

    Args:
        data: a file name or pattern, a pandas, Polars or Arrow table, or a DuckDB relation.
        output: where to write the policy, ``-`` for nowhere. By default beside the file, under its name with .yaml;
            nowhere if there is no file.
        overwrite: whether a file that is there may be replaced.
        delimiter: what separates the fields of a text file; found out if not given.
        quote: what surrounds fields of a text file.
        encoding: of a text file; UTF-8 if not given.
        progress: called now and then with the part done.

    Raises:
        DataError: the table cannot be read, its first line seems to be a record, or no column seems fit to publish.
        InputError: the file that would be written exists, or cannot be written.
    """
    named = isinstance(data, str | os.PathLike)
    target = _target(os.fspath(data) if named else None, output)
    if target is not None and target.exists() and not overwrite:
        raise InputError(
            f"{target} exists already.",
            code="output-exists",
            remedy="Choose another name, or say that it may be overwritten.",
        )
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    table = profile(open_source(data, delimiter=delimiter, quote=quote, encoding=encoding), progress)
    _require_header(table.columns)
    columns = tuple(map(guess, table.columns))
    published = [column for column in columns if column.role != "drop"]
    if not published:
        raise DataError(
            f"None of the {len(columns)} columns seems fit to be published.",
            code="draft-empty",
            remedy="They are constant, free text, or point at one person. If that is wrong, write the policy by hand.",
            details={"columns": {column.name: column.why for column in columns}},
        )
    decisions = _decisions(columns, published)
    reading = {"delimiter": "tab" if delimiter == "\t" else delimiter, "quote": None if quote == '"' else quote}
    reading["encoding"] = encoding or (_marked_encoding(data) if named else None)
    where = {"path": _relative(os.fspath(data), target)} if named else {}
    kept = {column.name for column in published}
    spellings = {text for c in table.columns if c.kind == "text" and c.name in kept for text in c.spellings}
    text = write(
        columns,
        [(decision.column, decision.question) for decision in decisions],
        title=_name(Path(data)) if named else None,
        data=where | {key: value for key, value in reading.items() if value is not None},
        missing_values=sorted({"", *spellings}),
        delta_exponent=max(_LEAST_EXPONENT, len(str(table.rows)) + 1),
    )
    _require_usable(text)
    written = None if target is None else write_whole(target, text.encode())
    return Draft(text, written, columns, decisions, tuple(table.columns))


def _target(data: str | None, output: str | Path | None) -> Path | None:
    if output is not None:
        return None if str(output) == "-" else Path(output)
    if data is None:
        return None
    path = Path(data)
    return path.with_name(f"{_name(path)}.yaml")


def _name(path: Path) -> str:
    """What a file is called, without its endings; for a pattern, what its folder is called."""
    if glob.has_magic(path.name):
        return path.parent.resolve().name or "policy"
    name = path.name
    for endings in ({".gz", ".zst"}, None):
        suffix = Path(name).suffix
        if suffix and (endings is None or suffix.lower() in endings):
            name = name.removesuffix(suffix)
    return name


def _relative(data: str, target: Path | None) -> str:
    """The way to the data from the policy's folder."""
    if target is None:
        return data
    try:
        return Path(os.path.relpath(data, target.parent)).as_posix()
    except ValueError:  # from one drive to another there is none
        return str(Path(data).absolute())


def _marked_encoding(data: str | os.PathLike[str]) -> str | None:
    """UTF-16 tells itself apart by its first bytes when a table is looked at; a policy says it in so many words."""
    with find_files([data])[0].open("rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else None


def _require_header(columns: Sequence[ColumnProfile]) -> None:
    """Refuses a table whose first line seems to be a record: its values would be written down as names."""
    signs = sum(
        bool(_NUMBER_OR_DATE.fullmatch(c.name) and not _YEAR.fullmatch(c.name)) or c.name in dict(c.common)
        for c in columns
    )
    if 2 * signs > len(columns):
        raise DataError(
            f"The first line seems to be a record and not the names of the columns: {signs} of {len(columns)} look so.",
            code="data-malformed",
            remedy="Put a line of column names at the top.",
        )


def _decisions(columns: Sequence[ColumnDraft], published: Sequence[ColumnDraft]) -> tuple[Decision, ...]:
    kept, dropped = len(published), len(columns) - len(published)
    whole = [_CONFIRM, f"Check the roles: {kept} published, {dropped} dropped. {_ROLES}"]
    if kept > _MANY_COLUMNS:
        whole.append(f"Drop what the release does not need. {_CROWDS}")
    whole.append("Choose epsilon and delta: what is promised to each person in the table.")
    special = [Decision(column.name, question) for column in columns for question in column.questions]
    return (*(Decision(None, question) for question in whole), *special)


def _require_usable(text: str) -> None:
    """A draft that is no policy would be a bug."""
    try:
        codings(Policy.from_text(text))
    except InputError as error:
        raise InternalError(f"A draft was made that is no policy ({error.code}).") from None


__all__ = ["ColumnDraft", "Decision", "Draft", "draft"]
