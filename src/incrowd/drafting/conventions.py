"""How a table writes what is missing, and its decimals: found for all columns at once, as a policy says it once.

A profile knows the texts that mean "missing" everywhere. Here are those that can be told only beside the other values:
words of one language, and a -9 where no other number is below zero. Numbers with a decimal comma are read as numbers
if no column has them with a point.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from incrowd.sources.profile import ColumnProfile, Writing

_ABSENT = {
    *("k.a.", "k. a.", "k.a", "keine angabe", "keine angaben", "s/d", "n/d", "n.d.", "n.r.", "n/r", "n.k.", "n. a."),
    *("not stated", "not specified", "not available", "no answer", "sin dato", "sin datos", "non renseigné"),
}
_ABSENT_AMONG_NUMBERS = {
    *("unknown", "missing", "none", "not known", "unbekannt", "inconnu", "desconocido", "sconosciuto", "onbekend"),
}
_ABSENT_NUMBERS = {-9, -99, -999, -9999}
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_NUMERIC = ("digits", "binary", "natural", "integer", "number", "comma")
_MOSTLY = 0.5  # of the records must hold numbers for a word among them to stand for none
_EXACT = 1000  # numbers below are known exactly if they are whole, others to three digits


@dataclass(frozen=True)
class Conventions:
    """How a table is to be read.

    Attributes:
        columns: what the columns hold if it is read so.
        decimal: what stands before the decimals of numbers.
        absent: further texts that seem to mean that a value is missing, with the columns where many records hold them.
        unseen: how many records of a column with commas hold a number that is not known, because few share it.
    """

    columns: tuple[ColumnProfile, ...]
    decimal: str
    absent: dict[str, tuple[str, ...]]
    unseen: dict[str, int]


def understand(columns: Sequence[ColumnProfile]) -> Conventions:
    """The conventions of a table, from what its columns hold."""
    absent: dict[str, list[str]] = {}
    for column in columns:
        for text in _absent_texts(column):
            absent.setdefault(text, []).append(column.name)
    absent = {
        text: where
        for text, where in absent.items()
        if not any(_may_mean_it(column, text) for column in columns if column.name not in where)
    }
    read = [_without(column, absent) for column in columns]
    decimal, unseen = "," if _has_commas(read) else ".", {}
    for place, column in enumerate(read if decimal == "," else ()):
        read[place] = _with_points(column)
        if read[place] != column:
            unseen[column.name] = _rare(column, "comma")
    return Conventions(tuple(read), decimal, {text: tuple(names) for text, names in sorted(absent.items())}, unseen)


def _absent_texts(column: ColumnProfile) -> list[str]:
    """Texts of a column that many records hold and that seem to mean that a value is missing."""
    if column.kind != "text":
        return []
    among_numbers = column.written(*_NUMERIC, "date") >= _MOSTLY * column.present
    found = []
    for text, _ in column.common:
        bare = text.strip().lower()
        word = bare in _ABSENT or (among_numbers and bare in _ABSENT_AMONG_NUMBERS)
        if word or (_number(text) in _ABSENT_NUMBERS and _is_alone_below_zero(column, text)):
            found.append(text)
    return found


def _is_alone_below_zero(column: ColumnProfile, text: str) -> bool:
    number = _number(text)
    others = [other for other, _ in column.numbers if other != number]
    return bool(others) and min(others) >= 0 and not column.written("comma")


def _may_mean_it(column: ColumnProfile, text: str) -> bool:
    """Whether such a text may mean what it says in a column: a number below zero, or a word among words."""
    if _number(text) is None:
        return column.kind == "text" and text in dict(column.common)
    return column.kind == "text" and any(other < 0 and other != _number(text) for other, _ in column.numbers)


def _without(column: ColumnProfile, absent: dict[str, list[str]]) -> ColumnProfile:
    """A column in which these texts are missing values."""
    shared = dict(column.common)
    for text in absent if column.kind == "text" else ():
        records = shared.get(text) or dict(column.numbers).get(float(_number(text) or math.nan), 0)
        way = next((way for way in ("integer", "number", "text", "mark") if _fits(column, way, text)), None)
        if not records or way is None:
            continue
        old, common = column.writings[way], text in shared
        less = Writing(
            old.records - records,
            old.values - 1,
            old.common - common,
            old.common_records - records * common,
            old.lengths,
            old.letters - len(text) * records,
        )
        numbers = tuple((number, n) for number, n in column.numbers if number != _number(text))
        column = replace(
            column,
            missing=column.missing + records,
            spellings=tuple(sorted({*column.spellings, text})),
            distinct=column.distinct - 1,
            writings={
                one: less if one == way else found
                for one, found in column.writings.items()
                if one != way or less.records > 0
            },
            common=tuple(pair for pair in column.common if pair[0] != text),
            blanks=column.blanks - records * (text != text.strip()),
            numbers=numbers,
            ends=column.ends if numbers == column.numbers else _ends(numbers, column.ends),
        )
    return column


def _fits(column: ColumnProfile, way: str, text: str) -> bool:
    """Whether a text may have been counted as written in this way."""
    return way in column.writings and (way in ("integer", "number")) == (_number(text) is not None)


def _ends(numbers: Sequence[tuple[float, int]], before: tuple[float, float] | None) -> tuple[float, float] | None:
    """The ends once the least number has gone: the next one is known to three digits, and is taken at its least."""
    if not numbers or before is None:
        return None
    least = numbers[0][0]
    if least >= _EXACT or least != math.trunc(least):
        least -= 0.5 * 10.0 ** (math.floor(math.log10(least)) - 2)
    return least, before[1]


def _has_commas(columns: Sequence[ColumnProfile]) -> bool:
    texts = [column for column in columns if column.kind == "text" and not has_thousands(column)]
    commas = any(column.written("comma") >= _MOSTLY * column.present > 0 for column in texts)
    # A whole number may be written 7.0, which could not be read any more; of rare ones it is not known.
    points = any(
        column.written("number")
        or _rare(column, "integer")
        or any("." in text and _number(text) is not None for text, _ in column.common)
        for column in texts
    )
    return commas and not points


def _rare(column: ColumnProfile, way: str) -> int:
    """How many records hold a value so written that is not known, because few share it."""
    found = column.writings.get(way)
    return 0 if found is None else found.records - found.common_records if column.counted else found.records


def has_thousands(column: ColumnProfile) -> bool:
    """Whether commas or points seem to stand between thousands: 1.234,50, or three digits after every comma."""
    commas = [text.strip() for text, _ in column.common if "," in text and column.written("comma")]
    return any("." in text for text in commas) or (bool(commas) and all(map(_THOUSANDS.fullmatch, commas)))


def _with_points(column: ColumnProfile) -> ColumnProfile:
    """A column as it would be with points for commas.

    Only numbers that many records hold are known of one with commas, which is enough for cuts between round numbers.
    A column is left as it is if too few are known, or if points stand between its thousands.
    """
    commas = column.writings.get("comma")
    known = {
        text: (number, records)
        for text, records in column.common
        if "," in text and (number := _number(text.replace(",", "."))) is not None
    }
    if column.kind != "text" or commas is None or not known or not column.counted:
        return column
    if has_thousands(column) or 2 * commas.common_records < commas.records:
        return column
    numbers: dict[float, int] = dict(column.numbers)
    for number, records in known.values():
        numbers[float(number)] = numbers.get(float(number), 0) + records
    writings = {way: found for way, found in column.writings.items() if way != "comma"}
    return replace(
        column,
        writings=writings | {"number": commas},
        common=tuple((text.replace(",", ".") if text in known else text, n) for text, n in column.common),
        numbers=tuple(sorted(numbers.items())),
        ends=(
            min([*numbers, *(column.ends or ())]),
            max([*numbers, *(column.ends or ())]),
        ),
    )


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
