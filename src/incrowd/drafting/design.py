"""How a survey was made, by what columns do: which number households or people, which are weights.

A number of a household comes with several records, and these agree in much. A weight is the same for all of a
household, is never zero, and has more decimals than anybody would ask for.
"""

# ruff: noqa: S608 - queries are put together here from positions of columns

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from incrowd.drafting.oddities import NUMERIC, WHOLE
from incrowd.sources import Source, column_names
from incrowd.sources.profile import COMMON, ColumnProfile

_RARE = 0.9  # of the records hold a value that few share
_LARGEST = 20  # records of a household, on average
_SEVERAL = 1.2  # records of a household, on average, at the least
_SCALE = 400  # values of a scale at most: ages, years, the days of a year
_DENSE = 0.5  # of the numbers from the least to the greatest occur
_AGREE = 0.98  # of the households with several records are of one mind about a column that is theirs
_TESTED = 12  # columns
_LONG = 6  # signs of a number, on average, that has more decimals than anybody asks for
_MANY = 50  # different weights, at the least
_SHORT, _LONGEST = 12, 64  # letters of a key at most, and of one whose values are all as long
_LEAST = 30  # records
_UNEVEN = 10  # times the average: no household or person has more records


@dataclass(frozen=True)
class Design:
    """What columns do in a survey.

    Attributes:
        keys: columns that number households or people of several records, and how many records one has on average.
        weights: columns that say how many people a record stands for, and what shows it.
    """

    keys: dict[str, float] = field(default_factory=dict)
    weights: dict[str, str] = field(default_factory=dict)


def recognise(source: Source, columns: Sequence[ColumnProfile]) -> Design:
    """Looks at what columns do.

    Args:
        source: the table, which is asked at most once for each column that may number households.
        columns: what is in them.
    """
    may_weigh = [column for column in columns if _may_weigh(column)]
    keys, constant = {}, set()
    for column in columns:
        if not _may_number(column):
            continue
        tested = [c for c in columns if 2 * c.distinct < column.distinct and _is_telling(c)][:_TESTED]
        asked = list(dict.fromkeys([*(c.name for c in tested), *(c.name for c in may_weigh if c is not column)]))
        agreeing = _agreeing(source, columns, column.name, asked)
        if (_is_rare(column) and _is_dense(column)) or any(c.name in agreeing for c in tested):
            keys[column.name] = column.present / column.distinct
            constant |= agreeing
    weights = {}
    for column in may_weigh:
        if column.name not in keys and (
            column.name in constant or column_names.says_weight(column_names.words_of(column.name))
        ):
            how = "is the same for all of a household and " if column.name in constant else ""
            weights[column.name] = f"{how}is never zero"
    return Design(keys, weights)


def _may_number(column: ColumnProfile) -> bool:
    whole = column.written(*WHOLE, "digits", "mark", "text") == column.present and column.kind not in ("float", "date")
    shared = column.present / max(column.distinct, 1)
    if column.present < _LEAST or not whole or not _SEVERAL <= shared <= _LARGEST:
        return False
    shortest = min(writing.lengths[0] for writing in column.writings.values())
    longest = max(writing.lengths[1] for writing in column.writings.values())
    fits = longest <= (_LONGEST if shortest == longest else _SHORT)
    most = max((records for _, records in column.common), default=0)
    words = column_names.words_of(column.name)
    usual = any(column_names.says(topic, words) for topic in column_names.TOPICS) or column_names.says_quantity(words)
    even = _is_rare(column) or most <= _UNEVEN * shared
    return fits and even and column.distinct >= COMMON and not usual


def _is_rare(column: ColumnProfile) -> bool:
    """Whether nearly all records hold a value that few share."""
    return not column.counted or column.rare_records >= _RARE * column.present


def _is_dense(column: ColumnProfile) -> bool:
    """Whether hardly any number is left out between the first and the last, of more than a scale has."""
    if column.ends is None or column.written(*WHOLE) < column.present or column.distinct <= _SCALE:
        return False
    low, high = column.ends
    return column.distinct >= _DENSE * (high - low + 1)


def _is_telling(column: ColumnProfile) -> bool:
    """Whether it would be no accident if two records agreed: no value has half of the records."""
    most = max((records for _, records in column.common), default=0)
    return column.kind != "other" and column.distinct >= 3 and most <= column.records / 2


def _may_weigh(column: ColumnProfile) -> bool:
    if column.ends is None or column.ends[0] <= 0 or column.distinct <= _MANY or column.missing:
        return False
    words = column_names.words_of(column.name)
    if column.written(*NUMERIC) < column.present or column_names.says_sensitive(words):
        return False
    numbers = column.writings.get("number")
    long = numbers is not None and numbers.letters >= _LONG * numbers.records and numbers.records >= column.present / 2
    return column_names.says_weight(words) or column_names.may_weigh(words) or long


def _agreeing(source: Source, columns: Sequence[ColumnProfile], key: str, asked: Sequence[str]) -> set[str]:
    """The columns that are the same in all records of nearly every key that has several."""
    from incrowd.sources.values import fetching

    place = {column.name: position for position, column in enumerate(columns)}
    if not asked:
        return set()
    source = fetching(source)
    number, others = place[key], [place[name] for name in asked]
    with source.connect() as (connection, scan):
        relation, n = source.held(scan, [number, *others])
        same = ", ".join(f"min(c{i}) IS NOT DISTINCT FROM max(c{i}) AS s{i}" for i in others)
        groups = f"SELECT {same} FROM {relation} WHERE c{number} IS NOT NULL GROUP BY c{number} HAVING {_several(n)}"
        sums = ", ".join(f"count(*) FILTER (s{i})" for i in others)
        [row] = connection.sql(f"SELECT count(*), {sums} FROM ({groups})").fetchall()
    total = int(row[0])
    return {name for name, agreed in zip(asked, row[1:], strict=True) if total and agreed >= _AGREE * total}


def _several(n: str | None) -> str:
    return "count(*) > 1" if n is None else f"sum({n}) > 1"
