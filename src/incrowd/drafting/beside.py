"""Files that lie beside a table and say what is in it: hierarchies of its columns, and a code book.

What such a file lists was declared by somebody, and is not read off the table. Still it may have been made from the
table, so that a person is asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from incrowd.core.errors import InputError
from incrowd.domain import Categories, Coding, Value
from incrowd.drafting.codes import label_for, leave_out
from incrowd.drafting.conventions import SCALE
from incrowd.drafting.guess import ColumnDraft, DraftLine, bucket
from incrowd.drafting.oddities import INTEGER, NUMERIC
from incrowd.hierarchy import HierarchyTable, build, load
from incrowd.hierarchy.codebook import CodeBook, read_codebook
from incrowd.hierarchy.table import Origin
from incrowd.policy import Kind, LabelFile, TreeFile
from incrowd.policy.labels import names as named
from incrowd.policy.labels import read_labels, unfit_labels, values_of
from incrowd.sources import Source, column_names
from incrowd.sources.datapackage import all_labels
from incrowd.sources.profile import ColumnProfile
from incrowd.sources.programs import FileLabels

_HIERARCHY = re.compile(r"(?:(?P<table>.*)_)?hierarchy_(?P<column>.+)\.csv", re.IGNORECASE)
_CODEBOOK = re.compile(r"(?:(?P<table>.*)[_-])?codebook\.(csv|tsv|json)", re.IGNORECASE)
_MANY = 0.1  # of the records, which a file that fits a column does not leave out
_PLAIN = re.compile(r"-?(0|[1-9][0-9]*)")
_ASKED = "is in a file beside the table. See that it lists what can occur, and not only what does."


@dataclass(frozen=True)
class Companions:
    """The files beside a table.

    Attributes:
        folder: where they are.
        hierarchies: the files of hierarchies, by the columns' names in small letters.
        codebook: the file of the code book, if there is one.
        encoding: of files beside the table that are not in UTF-8: the table's.
        book: what it says, or what the labels in the table's own file say.
        variables: what columns are called in full, by their names, as the table's own file says.
        origin: where labels are from.
    """

    folder: Path
    hierarchies: Mapping[str, Path] = field(default_factory=dict)
    codebook: Path | None = None
    encoding: str = "utf-8"
    book: CodeBook | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""

    def labels_of(self, column: str) -> Mapping[str, str]:
        """What the code book says of a column."""
        return {} if self.book is None else self.book.of(column)

    def labelled(self) -> set[str]:
        """Every code that the code book knows, of whatever column."""
        books = [] if self.book is None else [*self.book.labels.values(), self.book.general]
        return {code for book in books for code in book}


def companions(data: Path | None, codebook: str | Path | None = None, encoding: str | None = None) -> Companions:
    """The files beside a table: named like it, or like the beginning of its name (adult_hierarchy_age.csv).

    Args:
        data: the table's file, if it is in one.
        codebook: the code book, if it is not to be found.
        encoding: of the table. Files beside it have the same, or UTF-8.

    Raises:
        PolicyError: a code book that was asked for cannot be read.
    """
    folder = Path() if data is None else data.parent
    found: dict[str, tuple[int, Path]] = {}
    book = None if codebook is None else Path(codebook)
    for path in [] if data is None else sorted(folder.iterdir()):
        hierarchy, codes = _HIERARCHY.fullmatch(path.name), _CODEBOOK.fullmatch(path.name)
        match = hierarchy or codes
        if match is None or data is None or not path.is_file():
            continue
        if path.resolve().parent != folder.resolve():  # a link leads to what was not shown
            continue
        table = (match["table"] or "").lower()
        if not data.name.lower().startswith(table):
            continue
        if hierarchy is None:
            book = book or path
            continue
        column = hierarchy["column"].lower()
        found[column] = max(found.get(column, (-1, path)), (len(table), path))
    hierarchies = {column: path for column, (_, path) in found.items()}
    own = FileLabels() if data is None else all_labels(data)
    encoding = encoding or "utf-8"
    if book is None:
        return Companions(folder, hierarchies, None, encoding, _book_of(own, data), own.variables, own.origin)
    read = read_codebook(LabelFile(file=str(book), encoding=_encoding(book, encoding)))
    return Companions(folder, hierarchies, book, encoding, read, own.variables, book.name)


def _encoding(path: Path, otherwise: str) -> str:
    """UTF-8 if the file can be read so, else the table's."""
    try:
        with path.open(encoding="utf-8") as file:
            for _ in file:
                pass
    except (OSError, UnicodeDecodeError):  # whoever reads it says what is wrong
        return otherwise
    return "utf-8"


def _book_of(own: FileLabels, data: Path | None) -> CodeBook | None:
    """The labels of a table's own file as a code book; codes that mean "missing" have one in any case."""
    labels = {name: dict(values) for name, values in own.values.items()}
    for name, codes in own.missing.items():
        for code in codes:
            labels.setdefault(name, {}).setdefault(code, label_for(code))
    return CodeBook(labels, {}, Origin(str(data))) if labels else None


def from_files(
    column: ColumnProfile, beside: Companions, source: Source, target: Path | None
) -> ColumnDraft | list[str] | None:
    """What the files say of a column; or, where they cannot be used, why; or None where there are none.

    Args:
        column: what is in it.
        beside: the files.
        source: the table, in which values are counted that are in no file.
        target: where the policy will be.
    """
    tree, labels = beside.hierarchies.get(column.name.lower()), beside.labels_of(column.name)
    if (tree is None and not labels) or not column.present or column.kind in ("other", "timestamp"):
        return None
    try:
        return _draft(column, tree, labels, beside, source, target)
    except (InputError, ValueError) as error:
        said = error.message if isinstance(error, InputError) else "its codes and labels do not fit"
        return [f"{beside.origin if tree is None else tree.name} is not used: {said.rstrip('.')}."]


def numbers_beside(column: ColumnProfile, labels: Mapping[str, str]) -> tuple[ColumnProfile, dict[str, str]]:
    """A column and what a code book says of some of its values; without these, if too many others are left."""
    there = dict(column.common)
    seen = {code: label for code, label in labels.items() if code in there}
    rest = leave_out(column, seen)
    if not rest.present:
        return column, {}
    return (rest if rest.distinct > SCALE else column), dict(labels)


def _draft(
    column: ColumnProfile,
    tree: Path | None,
    labels: Mapping[str, str],
    beside: Companions,
    source: Source,
    target: Path | None,
) -> ColumnDraft | list[str] | None:
    lines: list[DraftLine] = []
    table = None if tree is None else load(TreeFile(file=str(tree), encoding=_encoding(tree, beside.encoding)))
    if tree is not None and not isinstance(table, HierarchyTable):
        return [f"{tree.name} holds ranges, which say nothing about the values in them."]
    codes = table.columns[0] if isinstance(table, HierarchyTable) else tuple(labels)
    kind: Kind = "integer" if _are_whole(column, codes) else "text"
    missing = {"", *column.spellings}
    if isinstance(table, HierarchyTable):
        values = table.values(kind, missing)
        build(table, Coding(column.name, Categories(values)), kind=kind)
        lines.append(DraftLine("hierarchy", _file(tree, beside, target)))
        why = f"{len(values):,} values and their groups, from {tree.name if tree else ''}"
    else:
        values = values_of(
            kind, read_labels(kind, {code: label for code, label in labels.items() if code not in missing})
        )
        why = f"{len(values):,} codes, from {beside.origin}"
    outside = _outside(source, column, values)
    if outside > _MANY * column.present:
        return None if tree is None else [f"{tree.name} is not used: it lacks what {outside:,} records hold."]
    known = Categories(values).labels
    own = {code: label for code, label in read_labels(kind, labels).items() if code in set(known)} if labels else {}
    if own and not unfit_labels(known, own, ()):
        inside = beside.codebook is None
        if inside and all(code == label for code, label in own.items()):
            lines += [] if tree else [DraftLine("domain", list(values))]
        else:
            lines.insert(0, DraftLine("labels", own if inside else _file(beside.codebook, beside, target)))
    if column.missing:
        lines.append(DraftLine("missing", "keep", "published as missing, if enough people share it"))
    if outside:
        lines.append(DraftLine("other", bucket(named(known, own)), "for what is outside the domain", confirm=True))
    sensitive = column_names.says_sensitive(column_names.words_of(column.name))
    return ColumnDraft(
        column.name,
        kind,
        "sensitive" if sensitive else "quasi",
        f"{why}; its name sounds sensitive" if sensitive else why,
        tuple(sorted(lines, key=lambda line: line.key == "hierarchy")),
        questions=(
            f"What it may hold {_ASKED}"
            if tree or beside.codebook
            else f"What it may hold is what {beside.origin} list. See that they list what can occur.",
        ),
        coarser=isinstance(table, HierarchyTable) and len(table.columns) > len(("value", "all")),
    )


def _are_whole(column: ColumnProfile, codes: tuple[str, ...]) -> bool:
    plain = all(_PLAIN.fullmatch(code) for code in codes)
    return plain and not column.written("digits") and column.written(*NUMERIC) == column.present


def _outside(source: Source, column: ColumnProfile, values: tuple[Value, ...]) -> int:
    """How many records hold something else than these values."""
    listed = set(Categories(values).labels)
    if column.counted and not column.rare_records:
        return sum(records for text, records in column.common if _printed(text, values) not in listed)
    coding = Coding(column.name, Categories(values), "keep", "something else")
    table = source.count_by([coding])
    counts = dict(
        zip((table[column.name].labels[code] for code in table[column.name].codes), table.counts, strict=True)
    )
    absent = sum(records for text, records in column.absent if text and text not in listed)
    return max(0, int(counts.get("something else", 0)) - absent)


def _printed(text: str, values: tuple[Value, ...]) -> str:
    return str(int(float(text))) if isinstance(values[0], int) and INTEGER.fullmatch(text) else text


def _file(path: Path | None, beside: Companions, target: Path | None) -> dict[str, str]:
    """How a policy names a file."""
    assert path is not None  # noqa: S101 - it was read
    encoding = _encoding(path, beside.encoding)
    return {"file": _relative(path, target)} | ({} if encoding == "utf-8" else {"encoding": encoding})


def _relative(path: Path, target: Path | None) -> str:
    """The way to a file from the policy's folder."""
    try:
        return Path(os.path.relpath(path, Path() if target is None else target.parent)).as_posix()
    except ValueError:  # from one drive to another there is none
        return str(path.absolute())
