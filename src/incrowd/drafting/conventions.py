"""How a table writes what is missing, and its decimals: found for all columns at once, as a policy says it once.

A profile knows the texts that mean "missing" everywhere. Here are those that can be told only beside the other values:
words of one language, and a -9 where no other number is below zero. Numbers with a decimal comma are read as numbers
if no column has them with a point. Whether 1.234 is more than a thousand no column says of itself: it is read as a
number only if all other columns agree on what stands before decimals, and even then it is asked about.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from incrowd.sources.profile import COMMON, ColumnProfile, writing_of

_ABSENT = {
    *("k.a.", "k. a.", "k.a", "keine angabe", "keine angaben", "s/d", "n/d", "n.d.", "n.r.", "n/r", "n.k.", "n. a."),
    *("not stated", "not specified", "not available", "no answer", "sin dato", "sin datos", "non renseigné"),
}
_ABSENT_AMONG_NUMBERS = {
    *("unknown", "missing", "none", "not known", "unbekannt", "inconnu", "desconocido", "sconosciuto", "onbekend"),
}
_ABSENT_NUMBERS = {-9, -99, -999, -9999}
_NUMERIC = ("digits", "binary", "natural", "integer", "number", "comma")
_WITH = {".": ("integer", "number"), ",": ("comma",)}  # how numbers are written that may have this sign
_MOSTLY = 0.5  # of the records must hold numbers for a word among them to stand for none
_NEARLY = 0.9  # of the records must hold numbers for a column to be read as numbers
_GROUPED = 0.95  # of the signs must have three digits behind them to be taken for thousands; of decimals, nine in ten
MOST_WORDS = 8  # different ones, among numbers
SCALE = 12  # with no more numbers than this, all may be codes, and are listed
ENOUGH = 100  # records that hold numbers
_LONGEST_WORD = 40  # letters
_EXACT = 1000  # numbers below are known exactly if they are whole, others to three digits


@dataclass(frozen=True)
class Unclear:
    """That the points or the commas of a column may stand between thousands.

    Attributes:
        sign: which of the two.
        read: whether they are read as what stands before decimals.
    """

    sign: str
    read: bool


@dataclass(frozen=True)
class Conventions:
    """How a table is to be read.

    Attributes:
        columns: what the columns hold if it is read so.
        decimal: what stands before the decimals of numbers.
        absent: further texts that seem to mean that a value is missing, with the columns where many records hold them.
        commas: columns that are numbers with a decimal comma.
        unclear: columns in which 1.234 may be more than a thousand.
        points: whether numbers have decimal points for certain.
    """

    columns: tuple[ColumnProfile, ...]
    decimal: str
    absent: dict[str, tuple[str, ...]]
    commas: frozenset[str]
    unclear: dict[str, Unclear]
    points: bool


def understand(columns: Sequence[ColumnProfile], labelled: Collection[str] = ()) -> Conventions:
    """The conventions of a table, from what its columns hold.

    Args:
        columns: of the table.
        labelled: texts of which a code book says what they mean.
    """
    absent: dict[str, list[str]] = {}
    for column in columns:
        for text in _absent_texts(column):
            if text not in labelled:
                absent.setdefault(text, []).append(column.name)
    absent = {
        text: where
        for text, where in absent.items()
        if not any(_may_mean_it(column, text) for column in columns if column.name not in where)
    }
    read = [without(column, absent) if column.kind == "text" else column for column in columns]
    signs = {column.name: sign for column in read if (sign := _unclear_sign(column))}
    certain = [column for column in read if column.kind == "text" and column.name not in signs]
    commas = any(column.written("comma") >= _MOSTLY * column.present > 0 for column in certain)
    points = any(_has_points(column) and not _may_part_thousands(column, ".") for column in certain)
    # The slips of a few are not worth a column.
    slips = {column.name for column in read if _signed(column, ".")[0] < COMMON}
    decimal, with_commas = "," if commas and not points else ".", set()
    for place, column in enumerate(read):
        # Beside points, commas are read in a column alone, if they are certain.
        if decimal == "," or column.name not in signs:
            read[place] = _with_points(column)
        if read[place] != column:
            with_commas.add(column.name)
    unclear = {
        name: Unclear(sign, (points or name in slips) and not commas if sign == "." else name in with_commas)
        for name, sign in signs.items()
    }
    found = {text: tuple(names) for text, names in sorted(absent.items())}
    return Conventions(tuple(read), decimal, found, frozenset(with_commas), unclear, points)


def _unclear_sign(column: ColumnProfile) -> str:
    """The sign of a column of numbers that nearly always has three digits behind it, and may part thousands."""
    if column.kind != "text" or column.written(*_NUMERIC, "thousands") < _NEARLY * column.present:
        return ""
    sign = max(_WITH, key=lambda sign: _signed(column, sign))
    return sign if _may_part_thousands(column, sign) else ""


def _may_part_thousands(column: ColumnProfile, sign: str) -> bool:
    signed, grouped = _signed(column, sign)
    return 0 < _GROUPED * signed <= grouped


def _has_points(column: ColumnProfile) -> bool:
    """Whether some numbers could not be read any more if commas stood before decimals."""
    return column.written("number") > 0 or _signed(column, ".")[0] > 0


def _signed(column: ColumnProfile, sign: str) -> tuple[int, int]:
    """How many records hold a number with this sign, and in how many it may stand between thousands."""
    ways = [column.writings[way] for way in _WITH[sign] if way in column.writings]
    return sum(way.signed for way in ways), sum(way.grouped for way in ways)


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


def without(column: ColumnProfile, absent: Mapping[str, Sequence[str]]) -> ColumnProfile:
    """A column in which these texts are missing values."""
    shared = dict(column.common)
    for text in absent:
        records = shared.get(text) or dict(column.numbers).get(float(_number(text) or math.nan), 0)
        way = writing_of(text)
        if not records or way not in column.writings:
            continue
        old, common = column.writings[way], text in shared
        less = replace(
            old,
            records=old.records - records,
            values=old.values - 1,
            common=old.common - common,
            common_records=old.common_records - records * common,
            letters=old.letters - len(text) * records,
            signed=old.signed - records * ("." in text or "," in text),
        )
        numbers = _fewer(column.numbers, text, records)
        column = replace(
            column,
            missing=column.missing + records,
            absent=tuple(sorted({**dict(column.absent), text: records}.items())),
            distinct=column.distinct - 1,
            writings={
                one: less if one == way else found
                for one, found in column.writings.items()
                if one != way or less.records > 0
            },
            common=tuple(pair for pair in column.common if pair[0] != text),
            blanks=column.blanks - records * (text != text.strip()),
            numbers=numbers,
            ends=column.ends if numbers == column.numbers else _ends(numbers, column.ends, float(_number(text) or 0)),
        )
    return column


def _fewer(numbers: tuple[tuple[float, int], ...], text: str, records: int) -> tuple[tuple[float, int], ...]:
    """Numbers, which are known to three digits, without the records that hold this one."""
    said = _number(text)
    gone = math.nan if said is None else float(said)
    near = min((number for number, _ in numbers), key=lambda number: abs(number - gone), default=math.nan)
    if not math.isfinite(gone) or not abs(near - gone) <= _unknown(gone):
        return numbers
    less = ((number, n - records if number == near else n) for number, n in numbers)
    return tuple((number, n) for number, n in less if n > 0)


def _ends(
    numbers: Sequence[tuple[float, int]], before: tuple[float, float] | None, gone: float
) -> tuple[float, float] | None:
    """The ends once one has gone: the next number is known to three digits, and is taken at its farthest."""
    if not numbers or before is None:
        return None
    least, most = numbers[0][0], numbers[-1][0]
    return (
        least - _unknown(least) if gone <= before[0] else before[0],
        most + _unknown(most) if gone >= before[1] else before[1],
    )


def _unknown(number: float) -> float:
    """How far a number may be from one that it is known as."""
    if not number or (abs(number) < _EXACT and number == math.trunc(number)):
        return 0.0
    return 0.5 * 10.0 ** (math.floor(math.log10(abs(number))) - 2)


def _with_points(column: ColumnProfile) -> ColumnProfile:
    """A column as it would be with points for commas; as it is if too many hold something else, or points too."""
    commas = column.writings.get("comma")
    if column.kind != "text" or commas is None or column.comma_ends is None or _has_points(column):
        return column
    if column.written(*_NUMERIC) < _NEARLY * (column.present - _in_words(column)):
        return column
    numbers = dict(column.numbers)
    for number, records in column.commas:
        numbers[number] = numbers.get(number, 0) + records
    ends = [*column.comma_ends, *(column.ends or ())]
    return replace(
        column,
        writings={way: found for way, found in column.writings.items() if way != "comma"} | {"number": commas},
        common=tuple((_with_point(text), n) for text, n in column.common),
        numbers=tuple(sorted(numbers.items())),
        ends=(min(ends), max(ends)),
        commas=(),
        comma_ends=None,
    )


def _in_words(column: ColumnProfile) -> int:
    """How many records hold a word that may be a code among numbers: not applicable, say."""
    words = words_among(column)
    values = sum(way.values for name, way in column.writings.items() if name in _NUMERIC)
    enough = column.written(*_NUMERIC) >= ENOUGH and values > SCALE and len(words) <= MOST_WORDS
    return sum(records for _, records in words) if enough else 0


def words_among(column: ColumnProfile) -> list[tuple[str, int]]:
    """The short words that many records of a column hold, with the number of these."""
    ways = ("text", "mark", "flag")
    return [
        (text, n) for text, n in column.common if writing_of(text) in ways and 0 < len(text.strip()) <= _LONGEST_WORD
    ]


def _with_point(text: str) -> str:
    pointed = text.replace(",", ".")
    return pointed if "," in text and _number(pointed) is not None else text


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
