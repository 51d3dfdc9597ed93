"""A first draft of a policy, from a look at the table: what a person must decide is said, not decided."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from incrowd.core.display import INTERNAL, Showable, Shown, ShownTable
from incrowd.core.errors import DataError, InputError, InternalError
from incrowd.core.files import named, require_absent, write_whole
from incrowd.core.numbers import number
from incrowd.core.progress import Progress, drawing, teller
from incrowd.domain import Coding, DateRange, read_date_format
from incrowd.drafting import oddities
from incrowd.drafting.beside import Companions, companions, from_files, numbers_beside
from incrowd.drafting.capacity import Fitting, chosen, fitting, nearly_constant
from incrowd.drafting.codes import found_codes, label_for, leave_out
from incrowd.drafting.conventions import Conventions, understand
from incrowd.drafting.design import Design, recognise
from incrowd.drafting.guess import ColumnDraft, DraftLine, bucket, guess
from incrowd.drafting.people import PeopleDraft, whose
from incrowd.drafting.text import write
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.policy import Policy, without_password
from incrowd.policy.labels import read_labels, values_of
from incrowd.policy.texts import MARK
from incrowd.policy.values import Kind
from incrowd.sources import Source, open_source
from incrowd.sources.datapackage import DATAPACKAGE, described_table
from incrowd.sources.duckdb import DuckDBSource
from incrowd.sources.files import find_files
from incrowd.sources.profile import ColumnProfile, TableProfile, profile
from incrowd.sources.spark_session import without_token

_LONGEST_CALLED = 80  # characters of what a column is called in full
_NAMED = 6  # columns that a question names
_LEAST_EXPONENT = 6  # delta is never proposed larger than this says
_NUMBER_OR_DATE = re.compile(r"\s*[+-]?[0-9]+([.,:/-][0-9]+)*\s*")
_YEAR = re.compile(r"(18|19|20|21)[0-9]{2}")
_CONFIRM = (
    f"Confirm what is marked {MARK}: say, from what you know of the survey and not of the people in it, which values "
    "there can be. Widen ranges to what is possible, take lists from the questionnaire or the code book. Then remove "
    "the mark."
)
_ROLES = "quasi: others may know it of a person; sensitive: others want to know it; drop: never published."
_PART = "Lists may lack values that few have, and ranges their ends."
_FEW_VALUES, _PER_VALUE = 100, 30  # values of a column that views always tell; people for each value if there are more
_VIEWS = (
    "this size carries about {} of them. So tables of a few columns each are proposed, and a synthetic table made of "
    "these, whose rows are nobody's. If users need records of people, drop columns until so many are left, and take "
    "mechanism: sampled_crowd with recoding: tree."
)
_CROWDS = (
    "Every further column makes the crowds smaller: columns are then hidden, or people left out. Fix how fine a column "
    "must stay with level: (0 is as it is), otherwise it may be hidden for the sake of others."
)


@dataclass(frozen=True)
class Decision:
    """What a person has to decide, about a column or (None) about the whole."""

    column: str | None
    question: str


@dataclass(frozen=True, repr=False)
class Draft(Showable):
    """A draft of a policy.

    Attributes:
        text: the policy file.
        path: where it was written, if it was.
        columns: what is proposed for each column, and why.
        decisions: what a person has to decide.
        profiles: what each column holds. For the publisher's eyes only.
        engine: the Spark cluster that reads the table, without a token that its address may hold.
        people: whose the rows seem to be, if a column seems to say so.
    """

    text: str = field(repr=False)
    path: Path | None
    columns: tuple[ColumnDraft, ...] = field(repr=False)
    decisions: tuple[Decision, ...]
    profiles: tuple[ColumnProfile, ...] = field(default=(), repr=False)
    engine: str | None = None
    people: PeopleDraft | None = field(default=None, repr=False)

    def shown(self) -> Shown:
        """What is proposed, and what a person has to decide."""
        return Shown(
            "A draft of a policy" + ("" if self.path is None else f" in {self.path}"),
            (f"{len(self.decisions)} decisions are left to a person (CONFIRM).",),
            (ShownTable(("column", "role", "why"), [(one.name, one.role, one.why) for one in self.columns], words=3),),
            tuple(f"{one.column}: {one.question}" if one.column else one.question for one in self.decisions),
            internal=INTERNAL,
            listing=self.text,
        )


@drawing
def draft(
    data: Any,
    output: str | Path | None = None,
    *,
    overwrite: bool = False,
    delimiter: str | None = None,
    quote: str = '"',
    encoding: str | None = None,
    table: str | None = None,
    engine: str | None = None,
    codebook: str | Path | None = None,
    progress: Progress | bool | None = None,
) -> Draft:
    """Look at a table and draft a policy for it, saying what a person must decide.

    What is read off the data is marked in the draft: no guarantee covers it until a person has confirmed it.

    Args:
        data: a table as in `release`, or a description of one (datapackage.json); None for one of Spark's catalogue,
            which `engine` and `table` name.
        output: where to write the policy, ``-`` for nowhere. By default beside the file, under its name with .yaml;
            for a table that is in no file here, under its own name in the current folder; nowhere for an object.
        overwrite: whether a file that is there may be replaced.
        delimiter: what separates the fields of a text file; found out if not given.
        quote: what surrounds fields of a text file.
        encoding: of a text file; UTF-8 if not given.
        table: the table that is meant, in a database that holds several, or in Spark's catalogue.
        engine: the Spark cluster that reads the table. Of a large one, only a part is looked at.
        codebook: a file that says what codes mean (CSV or JSON). By default one that lies beside the table, if its name
            ends in codebook.csv or codebook.json. Hierarchies that lie there are used too (adult_hierarchy_age.csv).
        progress: True for a bar; or a function, called with what is being done and the part of it that is done.

    Raises:
        DataError: the table cannot be read, its first line seems to be a record, or no column seems fit to publish.
        InputError: the file that would be written exists, or cannot be written.
    """
    data, name, table, reading = _given(data, table, {"delimiter": delimiter, "quote": quote, "encoding": encoding})
    title = _title(name, table)
    target = _target(name, title, output)
    if target is not None and not overwrite:
        require_absent(target)
    source = open_source(data, **reading, table=table, engine=engine)
    delimiter, quote, encoding = reading["delimiter"], reading["quote"], reading["encoding"]
    missing = reading.pop("missing_values")
    tell = teller(progress)
    found = profile(source, lambda part: tell("reading", part))
    if type(source) is DuckDBSource:  # elsewhere, names are names
        _require_header(found.columns)
    here = _file_here(name, engine)
    beside = companions(here, codebook, encoding)
    known = {column.name: from_files(column, beside, source, target) for column in found.columns}
    prepared = [_prepared(column, known[column.name], beside) for column in found.columns]
    read = understand([column for column, _ in prepared], beside.labelled())
    design = recognise(source, read.columns) if isinstance(source, DuckDBSource) else Design()
    columns = tuple(
        _propose(column, read, design, known[column.name], dict(labels))
        for column, (_, labels) in zip(read.columns, prepared, strict=True)
    )
    columns = tuple(_called(_with_others(column, source), beside.variables) for column in columns)
    whose_rows = whose(source, columns, found.columns, design.keys)
    people = found.drawn_from or found.rows
    if whose_rows is not None and whose_rows.people is not None:
        people = min(people, whose_rows.people)
    columns, fit = _fitted(columns, {column.name: column for column in read.columns}, people)
    published = [column for column in columns if column.role != "drop"]
    if not published:
        raise DataError(
            f"None of the {len(columns)} columns seems fit to be published.",
            code="draft-empty",
            remedy="They are constant, free text, point at one person, or cannot be read (numbers "
            "like 1.234). If that is wrong, write the policy by hand.",
            details={"columns": {column.name: column.why for column in columns}},
        )
    decisions = _decisions(columns, published, found, fit)
    if whose_rows is not None and whose_rows.question:
        decisions += (Decision(whose_rows.column, whose_rows.question),)
    reading |= {"delimiter": "tab" if delimiter == "\t" else delimiter, "quote": None if quote == '"' else quote}
    reading["encoding"] = encoding or (None if here is None else _marked_encoding(here))
    where = ({} if name is None else {"path": _relative(name, target)}) | ({} if table is None else {"table": table})
    kept = {column.name for column in columns if column.role != "drop" or column.instead}
    reading["decimal"] = "," if read.decimal == "," and kept & read.commas else None
    spellings = {text for c in read.columns if c.kind == "text" and c.name in kept for text in c.spellings}
    shown = None if engine is None else without_token(engine)

    def written_with(columns: Sequence[ColumnDraft]) -> str:
        return write(
            columns,
            [(decision.column, decision.question) for decision in decisions],
            title=title,
            data=where | {key: value for key, value in reading.items() if value is not None},
            missing_values=sorted({"", *missing, *spellings}),
            delta_exponent=max(_LEAST_EXPONENT, len(str(people)) + 1),
            people=whose_rows,
            engine=shown,
            way=fit.way,
        )

    base = Path() if target is None else target.parent
    text = written_with(columns)
    coded = _usable(text, base)
    if fit.way == "views":
        columns = tuple(_at_level(column, coded.get(column.name), people) for column in columns)
        text = written_with(columns)
        _usable(text, base)
    written = None if target is None else write_whole(target, text.encode())
    return Draft(text, written, columns, decisions, read.columns, shown, whose_rows)


def _given(data: Any, table: str | None, reading: dict[str, Any]) -> tuple[Any, str | None, str | None, dict[str, Any]]:
    """The table, its name, which of several it is, and how it is to be read, where a description says more of it."""
    name = os.fspath(data) if isinstance(data, str | os.PathLike) else None
    missing: tuple[str, ...] = ("",)
    if name is not None and Path(name).name == DATAPACKAGE:
        said = described_table(Path(name), table)
        data, name, table, missing = said.path, str(said.path), None, said.missing_values
        quote = said.quote or reading["quote"]
        more = {"delimiter": said.delimiter, "encoding": said.encoding}
        reading = {key: value or more.get(key) for key, value in reading.items()} | {"quote": quote}
    delimiter = {"tab": "\t", "\\t": "\t"}.get(reading["delimiter"] or "", reading["delimiter"])
    return data, name, table, reading | {"delimiter": delimiter, "missing_values": missing}


def _prepared(
    column: ColumnProfile, known: ColumnDraft | list[str] | None, beside: Companions
) -> tuple[ColumnProfile, Mapping[str, str]]:
    """A column as it is drafted, without codes beside its numbers, and what a code book says of some of its values."""
    labels = beside.labels_of(column.name)
    if isinstance(known, ColumnDraft) or not labels:
        return column, {}
    return numbers_beside(column, labels)


def _propose(
    column: ColumnProfile,
    read: Conventions,
    design: Design,
    known: ColumnDraft | list[str] | None,
    labelled: dict[str, str],
) -> ColumnDraft:
    """What is proposed for a column of a table that is read so.

    Args:
        column: what is in it.
        read: how the table is read.
        design: which columns number households, and which are weights.
        known: what files say about it; or why they are not used.
        labelled: what the code book says of some of its values.
    """
    if isinstance(known, ColumnDraft):
        return known
    dropped = _by_design(column, design)
    if dropped is not None:
        return dropped
    proposed = _with_codes(column, read, labelled)
    if known:
        proposed = replace(proposed, questions=(*proposed.questions, *known))
    # A text that means "missing" where many hold it does so too where it is too rare to be seen.
    words = column.kind == "text" and column.written("text", "mark") > 0
    unseen = bool(read.absent) and words and (column.rare_records > 0 or not column.counted)
    if proposed.role == "drop" or not unseen or any(line.key == "missing" for line in proposed.lines):
        return proposed
    keep = DraftLine("missing", "keep", "should there be any: data says which texts mean that")
    return replace(proposed, lines=tuple(sorted((*proposed.lines, keep), key=lambda line: line.key == "hierarchy")))


def _with_codes(column: ColumnProfile, read: Conventions, labelled: dict[str, str]) -> ColumnDraft:
    """The proposal for a column, with the codes that stand among its numbers if it is proposed as a range of them."""
    found = found_codes(column, [*read.absent, *column.spellings])
    codes = labelled | {code: label_for(code) for code in found}
    if not codes:
        return guess(column, read)
    rest = leave_out(column, found)
    proposed = guess(rest, read)
    if proposed.role == "drop" and guess(column, read).role != "drop":
        # Numbers beside a code that many share are amounts, even if no two records have the same.
        proposed = guess(rest, read, amounts=True)
    domain = next((line.value for line in proposed.lines if line.key == "domain"), None)
    if proposed.role == "drop" or proposed.type not in ("integer", "number") or not isinstance(domain, dict):
        return _with_labels(guess(column, read), labelled)
    taken = set(codes.values())
    lines = [
        replace(line, value=bucket(taken)) if line.key == "other" and line.value in taken else line
        for line in proposed.lines
    ]
    lines.append(DraftLine("codes", codes, "what do they mean?" if found else "", confirm=bool(found)))
    questions = (*proposed.questions, *([oddities.codes(found)] if found else []))
    ordered = tuple(sorted(lines, key=lambda line: line.key == "hierarchy"))
    return replace(proposed, lines=ordered, questions=questions)


def _with_labels(proposed: ColumnDraft, labels: Mapping[str, str]) -> ColumnDraft:
    """The proposal for a column whose values are listed, with those that a code book labels."""
    kind: Kind = "integer" if proposed.type == "integer" else "text"
    listed = next((line.value for line in proposed.lines if line.key == "domain"), None)
    if not labels or not isinstance(listed, list) or proposed.type != kind:
        return proposed
    try:
        labels = read_labels(kind, labels)
        values = list(values_of(kind, {*map(str, listed), *labels}))
    except ValueError:  # a label of what cannot stand here
        return proposed
    lines = [replace(line, value=values) if line.key == "domain" else line for line in proposed.lines]
    lines.append(DraftLine("labels", labels))
    return replace(proposed, lines=tuple(sorted(lines, key=lambda line: line.key == "hierarchy")))


def _with_others(column: ColumnDraft, source: Source) -> ColumnDraft:
    """A proposal with a bucket for what is written like a date and is none: a format is told from most of a column."""
    said = {line.key: line.value for line in column.lines}
    if column.type != "date" or "format" not in said or "other" in said:
        return column
    if isinstance(source, DuckDBSource):
        days = DateRange(said["domain"]["from"], said["domain"]["to"])
        coding = Coding(column.name, days, "keep", "something else", format=read_date_format(said["format"]))
        counted = source.count_by([coding])[column.name]
        if len(days.labels) not in counted.codes:
            return column
    line = DraftLine("other", "other", "for what is no date, or outside the domain", confirm=True)
    return replace(column, lines=(*column.lines, line))


def _called(column: ColumnDraft, variables: Mapping[str, str]) -> ColumnDraft:
    """A proposal that says what the column is called in full, if the table's file says so."""
    called = " ".join(variables.get(column.name, "").split())[:_LONGEST_CALLED]
    return replace(column, why=f"{called}: {column.why}") if called and called.isprintable() else column


def _by_design(column: ColumnProfile, design: Design) -> ColumnDraft | None:
    """Numbers of households and weights, which are not published."""
    if column.name in design.weights:
        why = f"it seems to be a survey weight: it {design.weights[column.name]}"
        return ColumnDraft(column.name, "number", "drop", why, questions=(f"Left out: {why}. Is that right?",))
    if column.name not in design.keys:
        return None
    several = f"about {number(design.keys[column.name], 2)} records"
    why = f"it seems to number households or people, of {several} each"
    return ColumnDraft(column.name, "text", "drop", why)


def _fitted(
    columns: tuple[ColumnDraft, ...], profiles: Mapping[str, ColumnProfile], people: int
) -> tuple[tuple[ColumnDraft, ...], Fitting]:
    """The columns, those that are too much for so many people being left out, with what could be said of them."""
    published = [column for column in columns if column.role != "drop"]
    fit = fitting(people, len(published))
    kept = chosen(published, profiles, fit)
    size = (
        f"more than {fit.proposed} columns would be too many"
        if fit.way == "views"
        else f"{people:,} records carry about {fit.columns} columns"
    )

    def fitted(column: ColumnDraft) -> ColumnDraft:
        if column.role == "drop" or column.name in kept:
            return column
        little = "nearly every record says the same; " if nearly_constant(profiles[column.name]) else ""
        return replace(column, role="drop", why=f"{little}{size}: {column.why}", instead=column.role, questions=())

    return tuple(map(fitted, columns)), fit


def _title(data: str | None, table: str | None) -> str | None:
    if data is None or _is_elsewhere(data):
        # Of an address only its last part: the rest is nobody's business.
        return table or (None if data is None else Path(urlsplit(data).path).stem or None)
    return _name(Path(data)) if table is None else f"{_name(Path(data))}-{table}"


def _target(data: str | None, title: str | None, output: str | Path | None) -> Path | None:
    if output is not None:
        return None if str(output) == "-" else named(output)
    if data is None and title is None:
        return None
    file = "".join(sign if sign.isalnum() or sign in "_-. +" else "_" for sign in title or "policy") + ".yaml"
    return Path(file) if data is None or _is_elsewhere(data) else Path(data).parent / file


def _is_elsewhere(data: str, engine: str | None = None) -> bool:
    """Whether a table is in no file that could be opened here."""
    return "://" in data or engine is not None


def _file_here(data: str | None, engine: str | None) -> Path | None:
    """The file that a table is in, or the first of several; None for what is elsewhere or is a folder."""
    if data is None or _is_elsewhere(data, engine):
        return None
    first = find_files([data])[0]
    return first if first.is_file() else None


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
    """The way to the data from the policy's folder; an address as it is, but for a password."""
    if _is_elsewhere(data):
        return without_password(data)
    if target is None:
        return data
    try:
        return Path(os.path.relpath(data, target.parent)).as_posix()
    except ValueError:  # from one drive to another there is none
        return str(Path(data).absolute())


def _marked_encoding(path: Path) -> str | None:
    """UTF-16 tells itself apart by its first bytes when a table is looked at; a policy says it in so many words."""
    with path.open("rb") as file:
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


def _decisions(
    columns: Sequence[ColumnDraft], published: Sequence[ColumnDraft], table: TableProfile, fit: Fitting
) -> tuple[Decision, ...]:
    kept, dropped = len(published), len(columns) - len(published)
    whole = [_CONFIRM, f"Check the roles: {kept} published, {dropped} dropped. {_ROLES}"]
    if table.drawn_from is not None:
        whole.insert(1, f"Only {table.rows:,} of {table.drawn_from:,} records were looked at. {_PART}")
    spare = [column.name for column in columns if column.instead]
    if fit.way == "views":
        others = f" More than {kept} columns would be too many even so ({_listed(spare)})." if spare else ""
        whole.append(
            f"One table of {kept + len(spare)} columns would be too thin: {_VIEWS.format(fit.columns)}{others}"
        )
    elif spare or kept > fit.columns:
        about = f"a table of this size carries about {fit.columns} of the {kept + len(spare)} columns"
        others = f" Those that seem to tell least are left out ({_listed(spare)}): swap as you need." if spare else ""
        whole.append(f"Drop what users do not need: {about}.{others} {_CROWDS}")
    whole.append("Choose epsilon and delta: what is promised to each person in the table.")
    asked: dict[str, list[str]] = {}
    for column in columns:
        for question in column.questions:
            asked.setdefault(question, []).append(column.name)
    special = [
        Decision(where[0], question) if len(where) == 1 else Decision(None, f"{_listed(where)}: {question}")
        for question, where in asked.items()
    ]
    return (*(Decision(None, question) for question in whole), *special)


def _listed(names: Sequence[str]) -> str:
    """Names of columns in one line, whatever is in them."""
    shown = [name if name.isprintable() and name == name.strip() else ascii(name) for name in names[:_NAMED]]
    return ", ".join(shown) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _usable(text: str, base: Path) -> dict[str, CodedAttribute]:
    """The published columns of a draft; one that is no policy would be a bug."""
    try:
        return {attribute.name: attribute for attribute in codings(Policy.from_text(text, base))}
    except InputError as error:
        raise InternalError(f"A draft was made that is no policy ({error.code}).") from None


def _at_level(column: ColumnDraft, coded: CodedAttribute | None, people: int) -> ColumnDraft:
    """A column of views at the finest level whose values are not lost in noise; as it is if it has no such level."""
    if coded is None:
        return column
    sizes = [len(level.labels) for level in coded.hierarchy.levels]
    level = next((number for number, size in enumerate(sizes) if size <= max(_FEW_VALUES, people / _PER_VALUE)), 0)
    if level == 0 or sizes[level] == 1:
        return column
    note = f"{sizes[level]:,} groups: its {sizes[0]:,} values would be lost in noise"
    return replace(column, lines=(*column.lines, DraftLine("level", level, note)))


__all__ = ["ColumnDraft", "Decision", "Draft", "draft"]
