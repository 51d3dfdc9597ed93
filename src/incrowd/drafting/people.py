"""Whose the rows seem to be: a section `people` for a draft, where an identifier repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from incrowd.drafting.guessing import LONGEST_NAME, ColumnDraft, DraftLine
from incrowd.sources import Source, SourceColumn
from incrowd.sources.profile import ColumnProfile
from incrowd.sources.repeats import Repeats, identifying, repeats

_QUESTION = (
    "{found}: it seems to say whose a row is, and some people have several rows. Is that right? Then decide how many "
    "of each count ('at_most'). If each row is a person all the same, write rows_are_people: true instead of 'people'."
)


@dataclass(frozen=True)
class PeopleDraft:
    """What is proposed about whose the rows are.

    Attributes:
        column: the column that seems to say so.
        found: how often its values repeat.
        lines: what the section says; none if the values do not repeat.
        question: what a person has to answer, if anything.
    """

    column: str
    found: str
    lines: tuple[DraftLine, ...] = ()
    question: str = ""


def whose(source: Source, columns: Sequence[ColumnDraft], profiles: Sequence[ColumnProfile]) -> PeopleDraft | None:
    """What a policy could say about whose the rows are; None where no column that is left out could tell."""
    left_out = [column.name for column in columns if column.role == "drop" and not column.instead]
    dropped = {name for name in left_out if 0 < len(name) <= LONGEST_NAME}
    held = {profile.name: profile for profile in profiles if profile.name in dropped and profile.present}
    names = identifying([SourceColumn(profile.name, profile.kind) for profile in held.values()])
    if not names:
        return None
    found = repeats(source, names)
    several = next((repeated for repeated in found if repeated.of_people), None)
    if several is not None:
        return _proposed(several, _ranking(profiles))
    single = next((one for one in found if one.values == one.rows > 1), None)
    return None if single is None else PeopleDraft(single.column, f"{single.column} has one row for each value")


def _proposed(found: Repeats, ranking: str | None) -> PeopleDraft:
    lines = [
        DraftLine("column", found.column, f"{found.in_words}: whose each row is; the promise is made to these", True),
        DraftLine("at_most", 1, "rows of each that count; one costs nothing, more keep more rows for a larger k", True),
    ]
    if ranking is not None:
        lines.append(DraftLine("keep", f"latest by {ranking}", "or earliest by, largest by, smallest by; or any"))
    if found.missing:
        lines.append(DraftLine("missing", "own", f"{found.missing:,} rows lack it: each would be a person", True))
    return PeopleDraft(found.column, found.in_words, tuple(lines), _QUESTION.format(found=found.in_words))


def _ranking(profiles: Sequence[ColumnProfile]) -> str | None:
    """The first column that holds a date or a moment in every row that has a value, if there is one."""
    for profile in profiles:
        if profile.present and (
            profile.kind in ("date", "timestamp")
            or (profile.kind == "text" and profile.written("date") == profile.present)
        ):
            return profile.name
    return None
