"""People with several rows: so many rows of each count, and every engine keeps the same ones.

Which rows of a person count is decided by that person's rows alone, so that the rows of somebody else can neither
bring one in nor push one out. Rows are put into this order, and the first `RowBound.at_most` count:

1. Rows that a coding leaves out anyway (``missing: drop``) come last: they take no place from others.
2. By the ranking column, as a floating-point number: numbers as they are, dates and moments in microseconds since 1970
   (without a time zone: as in UTC). Rows that have no value there come behind those that have one.
3. By the MD5, in hexadecimal, of ``key|number|words|identifiers``. The words are the codes of the published columns as
   `incrowd.sources.tally` packs them; rows are numbered from 1 within their person, by the ranking column and by the
   words. It is an order as good as any, another for every person, in which nothing is more likely to come first; it is
   no secret.

Rows that are alike in all this are interchangeable, and so are their numbers. Identifiers are equal if
they print alike. No collation, no order of reading and no partition has a say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from incrowd.core.errors import DataError
from incrowd.domain import Categories, Coding, DateFormat
from incrowd.histogram import Histogram
from incrowd.sources import Progress, Source
from incrowd.sources.positions import require_fitting
from incrowd.sources.tally import Examples, conclude

if TYPE_CHECKING:
    from incrowd.policy import Policy

_KEY_DIGITS = 16  # short enough for one block of the MD5

# A moment in a text; its group is what is left without blanks and without a zone, which must be UTC.
MOMENT = (
    r"\s*(\d{4}-\d{1,2}-\d{1,2}([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?)?)"
    r"(Z|[+-]00(:?00)?)?\s*"
)

WHOSE = "\0whose"
"""A column that says whose each row is, by numbers without a meaning; it is never published."""

COUNTS, LEFT_OUT, NOBODYS, UNRANKED = range(4)
"""What becomes of a row: it counts, is left out, says not whose it is though it must, or cannot be put in order."""


@dataclass(frozen=True)
class RowBound:
    """How many rows of a person count, and which.

    Attributes:
        columns: the columns that together say whose a row is.
        at_most: how many rows of a person count.
        ranked_by: the column that puts a person's rows in order, and whether the largest come first.
        own: whether each row that lacks an identifier is a person of its own, and no error.
        key: what the order of rows that are ranked alike depends on, besides the rows.
        format: how dates are written in the column to rank by, if that is text; None for numbers, and for 2026-01-31.
    """

    columns: tuple[str, ...]
    at_most: int
    ranked_by: tuple[str, bool] | None = None
    own: bool = False
    key: str = ""
    format: DateFormat | None = None

    @property
    def names(self) -> list[str]:
        """The columns that are looked at, the one to rank by last."""
        return [*self.columns, *(() if self.ranked_by is None else self.ranked_by[:1])]


@dataclass(frozen=True)
class BoundedRows:
    """The rows that count. For the publisher's eyes only.

    Attributes:
        table: their histogram.
        rows: how many rows the table has.
        people: how many people have one.
        left_out: how many rows do not count because their person has others.
        linked: the histogram with a column more, `WHOSE`, if that was asked for and the engine can.
    """

    table: Histogram
    rows: int
    people: int
    left_out: int
    linked: Histogram | None = None

    @property
    def telling(self) -> Histogram:
        """The histogram that tells most: with whose each row is, where that is known."""
        return self.table if self.linked is None else self.linked


@runtime_checkable
class CountsPeople(Protocol):
    """An engine that has a better way to bound the rows of people than to hand over the rows; none needs one."""

    def count_people(
        self, codings: Sequence[Coding], bound: RowBound, *, progress: Progress | None = None
    ) -> BoundedRows:
        """As `Source.count_by`, of the rows that count."""
        ...


def bound_of(policy: Policy) -> RowBound | None:
    """How many rows of a person count, and which, by a policy; None if rows are people."""
    from incrowd.policy import digest

    people = policy.people
    if people is None:
        return None
    key = digest(people.model_dump(mode="json"))[:_KEY_DIGITS]
    ranking = None if people.ranked_by is None else policy.attributes.get(people.ranked_by[0])
    written = None if ranking is None else ranking.written()
    dates = written if isinstance(written, DateFormat) else None
    return RowBound(people.column, people.at_most, people.ranked_by, people.missing == "own", key, dates)


def count_people(
    source: Source,
    codings: Sequence[Coding],
    bound: RowBound,
    *,
    whose: bool = False,
    progress: Progress | None = None,
) -> BoundedRows:
    """The rows of a table that count, whatever engine holds it.

    An engine that only groups and counts is asked for its distinct rows, which are then bounded here. With `whose` the
    result also says which rows are of one person, where rows are bounded here.

    Raises:
        DataError: as `Source.count_by`; or a row that must say whose it is does not, or one cannot be put in order.
    """
    from incrowd.sources.duckdb import DuckDBSource
    from incrowd.sources.values import fetching

    if isinstance(source, DuckDBSource):
        return source.count_people(codings, bound, whose=whose, progress=progress)
    if isinstance(source, CountsPeople):
        return source.count_people(codings, bound, progress=progress)
    kinds = {column.name: column.kind for column in source.columns()}
    known = [coding for coding in codings if coding.column in kinds]  # others are complained about when they are read
    require_fitting(known, [kinds[coding.column] for coding in known])
    return fetching(source).count_people(codings, bound, whose=whose, progress=progress)


def require_identifying(bound: RowBound, kinds: Sequence[str]) -> None:
    """Refuses columns that cannot say whose a row is, or put rows in order, by their kinds (see `SourceColumn`).

    Raises:
        DataError: one cannot.
    """
    for name, kind in zip(bound.columns, kinds, strict=False):
        if kind == "other":
            raise DataError(
                f"The column {name!r} holds lists, structures, bytes or the like, and cannot say whose a row is.",
                code="column-type",
                remedy="Convert it to texts or whole numbers first.",
            )
    if bound.ranked_by is not None and kinds[-1] in {"boolean", "other"}:
        raise _unranked(bound, f"is of kind {kinds[-1]}")


def bounded(
    bound: RowBound,
    codings: Sequence[Coding],
    what: np.ndarray,
    people: np.ndarray,
    codes: Sequence[np.ndarray],
    counts: np.ndarray,
    examples: Examples | None,
    whose: np.ndarray | None = None,
) -> BoundedRows:
    """The rows that count, or the error that says why they could not be found.

    Args:
        bound: what was asked.
        codings: how columns were coded.
        what: what becomes of the rows of each group.
        people: how many of them are the first of their person.
        codes: their codes, column by column; without meaning where rows do not count.
        counts: how many they are.
        examples: as in `incrowd.sources.tally.conclude`.
        whose: whose they are, by any number but 0; 0 if they have no identifier, and each is a person of its own.

    Raises:
        DataError: see `count_people`.
    """
    number = {kind: int(counts[what == kind].sum()) for kind in (LEFT_OUT, NOBODYS, UNRANKED)}
    if number[NOBODYS]:
        columns = ", ".join(map(repr, bound.columns))
        raise DataError(
            f"{_rows(number[NOBODYS])} without a value in {columns}: nobody knows whose they are.",
            code="values-missing",
            remedy="Correct the data, or say in the policy that each is a person of its own (people: missing: own).",
            details={"columns": {name: {"missing": number[NOBODYS]} for name in bound.columns}},
        )
    if number[UNRANKED]:
        raise _unranked(bound, f"has {_rows(number[UNRANKED])} with a value that is neither", number[UNRANKED])
    count = what == COUNTS
    found, persons = int(counts.sum()), int(people.sum())
    codes, counts = [code[count] for code in codes], counts[count]
    if whose is None:
        return BoundedRows(conclude(codings, codes, counts, examples), found, persons, number[LEFT_OUT])
    linked = _linked(codings, codes, counts, whose[count], examples)
    return BoundedRows(linked.marginalise([WHOSE]), found, persons, number[LEFT_OUT], linked)


def _linked(
    codings: Sequence[Coding],
    codes: Sequence[np.ndarray],
    counts: np.ndarray,
    whose: np.ndarray,
    examples: Examples | None,
) -> Histogram:
    """The histogram with whose each row is, people being numbered."""
    own = np.where(whose == 0, counts, 1)
    codes = [np.repeat(code, own) for code in codes]
    _, person = np.unique(whose[whose != 0], return_inverse=True)
    numbers = np.zeros(int(own.sum()), dtype=np.int64)
    known = np.repeat(whose != 0, own)
    numbers[known] = person
    known_people = int(person.max()) + 1 if len(person) else 0
    numbers[~known] = known_people + np.arange(np.count_nonzero(~known))
    everybody = tuple(map(str, range(known_people + int(np.count_nonzero(~known)))))
    counts = np.where(known, np.repeat(counts, own), 1)
    return conclude([*codings, Coding(WHOSE, Categories(everybody))], [*codes, numbers], counts, examples)


def _unranked(bound: RowBound, why: str, rows: int | None = None) -> DataError:
    assert bound.ranked_by is not None  # noqa: S101 - or nothing was to be ranked
    name = bound.ranked_by[0]
    return DataError(
        f"Rows are to be kept by {name!r}, which must hold numbers, dates or moments (2026-01-31 12:00, or as the "
        f"'format' of its attribute says), and {why}.",
        code="column-type" if rows is None else "values-outside-domain",
        remedy="Say how its dates are written (role: drop, type: date, format: dd.mm.yyyy), correct the column, or "
        "keep rows by another one ('keep' under 'people'), or any.",
        details={} if rows is None else {"columns": {name: {"outside": rows}}},
    )


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"
