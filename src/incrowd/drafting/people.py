"""Whose the rows seem to be: a section `people` for a draft, where an identifier repeats."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from incrowd.drafting.guess import LONGEST_NAME, ColumnDraft, DraftLine
from incrowd.sources import Source, SourceColumn
from incrowd.sources.column_names import numbers_people, says, says_household, words_of
from incrowd.sources.profile import ColumnProfile
from incrowd.sources.repeats import Repeats, identifying, repeats

_QUESTION = (
    "{found}: it seems to say whose a row is, and some people have several rows. Is that right? Then decide how many "
    "of each count ('at_most'). If each row is nevertheless a person, write rows_are_people: true instead of 'people'."
)
_OF_HOUSEHOLDS = (
    "{found}: it seems to number households. If rows are people and the promise is for each of them, write "
    "rows_are_people: true instead of 'people'. If the promise is to cover a household as a whole, decide how many of "
    "its rows count ('at_most')."
)
_HOUSEHOLD_TOO = (
    " {found}: that seems to number households; name it instead if the promise is to cover a household as a whole."
)


@dataclass(frozen=True)
class PeopleDraft:
    """What is proposed about whose the rows are.

    Attributes:
        column: the column that seems to say so.
        found: how often its values repeat.
        lines: what the section says; none if the values do not repeat.
        question: what a person has to answer, if anything.
        people: how many there are if the section stays; None where nothing is proposed.
        against: a column that seems to say otherwise, and how often its values repeat; then a person has to confirm.
    """

    column: str
    found: str
    lines: tuple[DraftLine, ...] = ()
    question: str = ""
    people: int | None = None
    against: str = ""


def whose(
    source: Source, columns: Sequence[ColumnDraft], profiles: Sequence[ColumnProfile], keys: Collection[str] = ()
) -> PeopleDraft | None:
    """What a policy could say about whose the rows are; None where no column that is left out could tell.

    Args:
        source: the table.
        columns: what is proposed for each column.
        profiles: what is in them.
        keys: the columns that number households or people by what they do, whatever they are called.
    """
    left_out = [column.name for column in columns if column.role == "drop" and not column.instead]
    dropped = {name for name in left_out if 0 < len(name) <= LONGEST_NAME}
    held = {profile.name: profile for profile in profiles if profile.name in dropped and profile.present}
    names = identifying([SourceColumn(profile.name, profile.kind) for profile in held.values()])
    names += [name for name in held if name in keys and name not in names]
    found = repeats(source, names) if names else []
    several = sorted((one for one in found if one.of_people), key=lambda one: (not one.usual, _rank(one, keys)))
    singles = sorted((one for one in found if one.values == one.rows > 1), key=lambda one: not _is_persons(one))
    if several and not (singles and _is_persons(singles[0]) and not any(map(_is_persons, several))):
        first = several[0]
        coarser = (one for one in several[1:] if _says_household(one) and one.usual and one.values < first.values)
        return _proposed(first, _ranking(columns, profiles), None if _says_household(first) else next(coarser, None))
    if not singles:
        return None
    against = f"{several[0].column} repeats" if several else ""
    return PeopleDraft(singles[0].column, f"{singles[0].column} has one row for each value", against=against)


def _is_persons(found: Repeats) -> bool:
    """Whether its name says that it numbers people, and not households."""
    return numbers_people(words_of(found.column)) and not _says_household(found)


def _says_household(found: Repeats) -> bool:
    return says_household(words_of(found.column))


def _rank(found: Repeats, keys: Collection[str]) -> int:
    """What numbers people goes before what numbers households, and these before what only may number either."""
    if _says_household(found):
        return 2
    return 0 if _is_persons(found) else 1 if found.column in keys else 3


def _proposed(found: Repeats, ranking: str | None, household: Repeats | None) -> PeopleDraft:
    """The section for a column, beside which another may number households."""
    lines = [
        DraftLine("column", found.column, f"{found.in_words}: whose each row is; the promise is made to these", True),
        DraftLine("at_most", 1, "rows of each that count; one costs nothing, more keep more rows for a larger k", True),
    ]
    if ranking is not None:
        lines.append(DraftLine("keep", f"latest by {ranking}", "or earliest by, largest by, smallest by; or any"))
    if found.missing:
        lines.append(DraftLine("missing", "own", f"{found.missing:,} rows lack it: each would be a person", True))
    question = (_OF_HOUSEHOLDS if _says_household(found) else _QUESTION).format(found=found.in_words)
    if household is not None:
        question += _HOUSEHOLD_TOO.format(found=f"{household.column}, {household.in_words}")
    return PeopleDraft(found.column, found.in_words, tuple(lines), question, found.values + found.missing)


def _ranking(columns: Sequence[ColumnDraft], profiles: Sequence[ColumnProfile]) -> str | None:
    """The first column that holds a date or a moment in every row that has a value, if there is one.

    A date of birth is the same in all rows of a person, and tells none of them from another.
    """
    formats = {column.name for column in columns if any(line.key == "format" for line in column.lines)}
    for profile in profiles:
        if says("birth", words_of(profile.name)):
            continue
        if profile.present and (
            profile.kind in ("date", "timestamp")
            or (profile.kind == "text" and profile.written("date") == profile.present)
            or (profile.name in formats and profile.written("local date") == profile.present)
        ):
            return profile.name
    return None
