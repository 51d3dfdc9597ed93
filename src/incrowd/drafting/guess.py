"""From what a column holds to what a policy could say about it.

Nothing here decides: each proposal says why it was made, and what a person has to answer. A text gets into a proposal
only if enough records share it; the ends of numbers and dates are rounded away (`ranges`).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from incrowd.domain import natural_key
from incrowd.drafting import oddities, ranges
from incrowd.drafting.conventions import Conventions
from incrowd.drafting.oddities import DIGITAL, INTEGER, NUMERIC, WHOLE
from incrowd.sources import column_names
from incrowd.sources.profile import COMMON, ColumnProfile

LONGEST_NAME = 200  # letters of a column's name; YAML allows keys of a thousand

_MOST = 0.9  # of the records must hold what is guessed; the others are taken for mistakes
_IN_RANGE = 0.95  # must lie in a usual range
_NEARLY_ALL = 0.9
_FEW_RECORDS = 20  # among which it says nothing that all values differ
_NUMBERED = 50  # more values than this in a column called number or id point at people
_FEW_NUMBERS = 12  # whole numbers that may be codes
_EXACT = 10**9  # numbers below are known to the unit
_SPAN = 200  # whole numbers that are listed one by one
_MOST_LISTED = 200
_LONGEST = 100  # letters of a text that is listed
_LONGEST_CODE = 12
_FREE_TEXT = 40  # letters on average
_GROUPED = 5  # values that are worth to be grouped
_DIGITS = 5  # the longest codes of which all are declared
_GAPS = 3  # numbers left out of a list that is nearly a range
_PREFIX = re.compile(r"(\w+)[-./: ]\w+")
_DECIMAL = re.compile(r"\s*[+-]?\d{1,15}(\.\d{0,9})?\s*", re.ASCII)

_FLAGS = "0 is published as false, 1 as true. If they are codes: type: integer and domain: [0, 1]"
_CODES = "If they are amounts and no codes: domain: {from: ..., to: ...} and hierarchy: {widths: [...]}"
_UNEVEN = "Codes of different lengths are better grouped by a file: hierarchy: {file: ...}"
_GROUPS = "To group them instead of hiding all: hierarchy: {taxonomy: {one group: [...], another group: [...]}}"
_CONVERT = {
    "comma": "numbers with a decimal comma, and some with a point",
    "thousands": "numbers with points or commas between thousands",
    "moment": "moments tell nearly every record apart",
    "local date": "dates from which it cannot be told what is the day and what the month",
    "two digits": "dates whose years have two digits, so that the century cannot be told",
}
_UNCLEAR = "its points or commas may stand between thousands"
_REMEDY = {
    _CONVERT["comma"]: "To publish it: {type: number, format: '1234,5', domain: {cuts: [0, 50, .inf]}, other: other}.",
    _CONVERT[
        "thousands"
    ]: "To publish it: {type: number, format: '1.234,5', domain: {cuts: [0, 50, .inf]}}, the format "
    "being 1234.5 as it is written there.",
    _CONVERT["moment"]: "Convert it to days, in a copy of the file, if you need it.",
    _CONVERT["two digits"]: "If you need it, convert its years to four digits, in a copy of the file.",
    _CONVERT["local date"]: "To publish it: {type: date, format: dd/mm/yyyy, domain: {from: 2020-01-01, to: "
    "2029-12-31}}, or convert it in a copy of the file.",
}


@dataclass(frozen=True)
class DraftLine:
    """A key of an attribute, its value, why it is so, and whether a person must confirm it."""

    key: str
    value: Any
    note: str = ""
    confirm: bool = False


@dataclass(frozen=True)
class ColumnDraft:
    """What is proposed for a column.

    Attributes:
        name: the column's name, exactly.
        type: what its values seem to be.
        role: quasi, sensitive or drop.
        why: what led to this.
        lines: what else the policy says about it.
        hint: how it could be said better, if there is such a way.
        questions: what a person has to answer.
        instead: the role it would have if it were not too much for the table.
        coarser: whether there are levels between its values and none.
    """

    name: str
    type: str
    role: str
    why: str
    lines: tuple[DraftLine, ...] = ()
    hint: str = ""
    questions: tuple[str, ...] = ()
    instead: str = ""
    coarser: bool = False


@dataclass(frozen=True)
class _Values:
    """What the values are: the domain, and how to go on from there."""

    type: str
    why: str
    lines: Sequence[DraftLine]
    outside: int  # records that hold something else
    rare: int = 0  # values that are not listed because too few records hold them
    hint: str = ""
    questions: Sequence[str] = ()
    taken: Iterable[str] = ()  # names that the bucket for others cannot have


def guess(column: ColumnProfile, read: Conventions, *, amounts: bool = False) -> ColumnDraft:
    """A proposal for a column of a table that is read so.

    Args:
        column: what is in it.
        read: how the table is read.
        amounts: whether its numbers are known to be amounts, and name nobody.
    """
    if not 0 < len(column.name) <= LONGEST_NAME:
        return ColumnDraft(column.name, "text", "drop", "its name is empty, or too long to stand in a policy")
    words = column_names.words_of(column.name)
    shape = _shape(column, words) if column.present else "text"
    said = shape if shape in ("boolean", "integer", "number", "date") else "text"
    reason = _reason_to_drop(column, shape, words, amounts=amounts)
    if reason:
        return ColumnDraft(column.name, said, "drop", reason)
    unclear = read.unclear.get(column.name)
    thousands = oddities.thousands(unclear, shape, read.points)
    if unclear and thousands and not unclear.read:
        return ColumnDraft(column.name, said, "drop", _UNCLEAR, questions=thousands)
    values = _values(column, shape, words)
    if isinstance(values, str):
        remedy = _REMEDY.get(values)
        questions = [f"Left out: {values}. {remedy}"] if remedy else []
        return ColumnDraft(column.name, said, "drop", values, questions=tuple(questions))
    sensitive, lines = column_names.says_sensitive(words), list(values.lines)
    if read.decimal == "." and column.name in read.commas and values.type in ("integer", "number"):
        lines.insert(0, DraftLine("format", "1234,5", "commas begin decimals here, and points elsewhere", confirm=True))
    if column.missing:
        lines.append(DraftLine("missing", "keep", "published as missing, if enough people share it"))
    if values.outside:
        lines.append(DraftLine("other", bucket(values.taken), _outside_note(values), confirm=True))
    return ColumnDraft(
        column.name,
        values.type,
        "sensitive" if sensitive else "quasi",
        f"{values.why}; its name sounds sensitive" if sensitive else values.why,
        tuple(sorted(lines, key=lambda line: line.key == "hierarchy")),
        values.hint,
        (
            *oddities.missing(column, read.absent),
            *thousands,
            *values.questions,
            *oddities.oddities(column, shape),
            *oddities.too_rare(column, values.outside, values.rare),
        ),
        coarser=any(line.key == "hierarchy" for line in lines),
    )


def _shape(column: ColumnProfile, words: frozenset[str]) -> str:
    """How nearly all values are written."""

    def are(*ways: str) -> bool:
        return column.written(*ways) >= _MOST * column.present

    zeros = column.written("digits")
    if (
        column.kind != "decimal"
        and _is_boolean(column)
        and not (column.written("binary") and column_names.says("sex", words))
    ):
        return "boolean"
    if zeros and are(*DIGITAL) and (_one_length(column) or zeros > (1 - _MOST) / 2 * column.present):
        return "digits"
    if are(*NUMERIC):
        return "number" if column.written("number") else "integer"
    for shape, ways in {
        "comma": ("comma", *WHOLE),
        "thousands": ("thousands", "comma", *NUMERIC),
        "date": ("date",),
        "moment": ("moment", "date"),
        "local date": ("local date",),
        "mark": ("mark",),
    }.items():
        if column.written(shape) and are(*ways):
            return shape
    return "text"


def _is_boolean(column: ColumnProfile) -> bool:
    flags = column.writings.get("flag")
    words = flags is not None and flags.lengths[0] >= len("true")
    if column.written("flag", "binary") == column.present:
        return words or column.distinct > 1  # an F alone may stand for female
    return words and column.written("flag") >= _MOST * column.present


def _one_length(column: ColumnProfile) -> int | None:
    """The length of all values written as digits, if it is one."""
    lengths = {n for way in DIGITAL if way in column.writings for n in column.writings[way].lengths}
    return lengths.pop() if len(lengths) == 1 and not column.blanks else None


def _reason_to_drop(column: ColumnProfile, shape: str, words: frozenset[str], *, amounts: bool) -> str:
    """Why a column should not be published, whatever its values are."""
    alike = column.present >= _FEW_RECORDS and column.distinct >= _NEARLY_ALL * column.present
    if column.kind == "other":
        return "values of this kind cannot be published"
    if not column.present:
        return "it holds no value"
    if column.distinct == 1 and not column.missing:
        return "the same in every record"
    if column_names.says_person(words):
        return "its name says that it points at one person"
    counting = shape in ("text", "mark", "digits", "integer")
    if column_names.says_number(words) and counting and (alike or column.distinct > _NUMBERED):
        return "its name says that it numbers people or names them"
    usual = (
        amounts
        or any(column_names.says(topic, words) for topic in (*ranges.USUAL, "year", "zip"))
        or column_names.says_quantity(words)
    )
    if alike and counting and not (usual and shape in ("integer", "digits")):
        return "nearly every record has a value of its own"
    return ""


def _values(column: ColumnProfile, shape: str, words: frozenset[str]) -> _Values | str:
    """The domain of a column and what goes with it, or why none can be proposed."""
    match shape:
        case "boolean":
            outside = column.present - column.written("flag", "binary")
            hint = _FLAGS if column.written("binary") else ""
            return _Values("boolean", "true or false", (), outside, hint=hint, taken=("true", "false"))
        case "integer" if column_names.says("date", words) and _are_days(column):
            return _days_without_signs(column)
        case "integer" | "number":
            return _number(column, shape, words)
        case "date":
            return _date(column)
        case "local date" if (written := _date_format(column)) is not None:
            return _local_date(column, written)
        case "digits":
            return _digits(column)
        case _:
            return _listed(column, shape)


def _number(column: ColumnProfile, kind: str, words: frozenset[str]) -> _Values | str:
    if column.ends is None:
        return "its numbers are all infinite"
    rest = column.present - column.written(*NUMERIC)
    if column_names.says("zip", words) and kind == "integer":
        found = _zip(column, rest)
        if found:
            return found
    for topic, usual in ranges.USUAL.items():
        if column_names.says(topic, words):
            inside = sum(records for value, records in column.numbers if usual.low <= value <= usual.high)
            if inside >= _IN_RANGE * column.present:
                return _range(column, kind, usual, rest, f"its name says {topic}, and the values fit")
    low, high = column.ends
    if kind == "integer" and low >= (1800 if column_names.says("year", words) else 1900) and high < 2200:
        return _range(column, kind, ranges.decades(int(low), int(high)), rest, "they look like years")
    if kind == "integer":
        whole = [writing for way, writing in column.writings.items() if way in WHOLE]
        few = sum(writing.values for writing in whole) if column.counted else _FEW_NUMBERS + 1
        common = sum(writing.common for writing in whole)
        alone = common == 1 < few <= _FEW_NUMBERS  # one number beside rare ones is no scale
        if few <= _FEW_NUMBERS and common and not alone:
            return _numbers(column, few)
        if high - low <= _SPAN and max(-low, high) < _EXACT and not alone:
            return _range(column, kind, ranges.span(int(low), int(high)), rest, "whole numbers")
    if kind == "number" and (found := _few_decimals(column)) is not None:
        return found
    endless = column.written(*NUMERIC) - sum(records for _, records in column.numbers)
    points = ranges.cuts(column.numbers, negative=low < 0 or endless > 0, whole=kind == "integer")
    levels = ranges.coarser(points)
    lines = [DraftLine("domain", {"cuts": points}, "round numbers; which do others use?", confirm=True)]
    if levels:
        lines.append(DraftLine("hierarchy", {"cuts": levels}))
    why = "many whole numbers" if kind == "integer" else "numbers"
    return _Values(kind, why, lines, rest + endless, questions=oddities.sentinel(column))


def _few_decimals(column: ColumnProfile) -> _Values | None:
    """A few numbers, not all of them whole, each of which many records hold."""
    numeric = [writing for way, writing in column.writings.items() if way in NUMERIC]
    if not column.counted or sum(writing.values for writing in numeric) > _FEW_NUMBERS or column.rare_records:
        return None
    listed = sorted({Decimal(text.strip()).normalize() for text, _ in column.common if _DECIMAL.fullmatch(text)})
    if sum(n for text, n in column.common if _DECIMAL.fullmatch(text)) < column.written(*NUMERIC):
        return None
    lines = [DraftLine("domain", listed, "take the list from the code book", confirm=True)]
    rest, asked = column.present - column.written(*NUMERIC), oddities.sentinel(column)
    return _Values("number", f"{len(listed)} different numbers", lines, rest, questions=asked)


def _range(column: ColumnProfile, kind: str, usual: ranges.Usual, rest: int, why: str) -> _Values:
    """Every number of a range, or bins of one where there are others in between."""
    low, high = column.ends or (0.0, 0.0)
    domain: dict[str, Any] = {"from": usual.low, "to": usual.high} | ({} if kind == "integer" else {"step": 1})
    hierarchy: dict[str, Any] = {"widths": list(usual.widths)}
    if usual.start is not None:
        hierarchy["start"] = usual.start
    if usual.top is not None:
        hierarchy["top"] = usual.top
    beyond = sum(records for value, records in column.numbers if not usual.low <= value <= usual.high)
    # Numbers are known to three digits only; whether any is beyond is known exactly.
    outside = rest + (max(beyond, 1) if low < usual.low or high > usual.high else 0)
    outside += column.written(*NUMERIC) - sum(records for _, records in column.numbers)
    lines = [DraftLine("domain", domain, "rounded; what can occur?", confirm=True)]
    if usual.widths:
        lines.append(DraftLine("hierarchy", hierarchy))
    return _Values(kind, why, lines, outside, questions=oddities.sentinel(column))


def _numbers(column: ColumnProfile, few: int) -> _Values:
    """A few whole numbers, which may be codes.

    If hardly any is left out between them, all are declared: a gap would tell which one is rare.
    """
    listed = sorted({int(Decimal(text.strip())) for text, _ in column.common if INTEGER.fullmatch(text)})
    low, high = column.ends or (0.0, 0.0)
    first, last = listed[0], listed[-1]
    domain: Any = listed
    outside, rare = column.rare_records + column.present - column.written(*WHOLE), max(0, few - len(listed))
    if len(listed) < few and last - first < len(listed) + _GAPS:
        domain, rare = {"from": first, "to": last}, 0
        outside = column.present - column.written(*WHOLE) + (low < first) + (high > last)
    return _Values(
        "integer",
        f"{few} different whole numbers",
        [DraftLine("domain", domain, "codes? take them from the code book", confirm=True)],
        outside,
        rare,
        hint=_CODES,
        questions=oddities.sentinel(column),
    )


def _zip(column: ColumnProfile, rest: int) -> _Values | None:
    length = _one_length(column)
    longest = max(writing.lengths[1] for way, writing in column.writings.items() if way in NUMERIC)
    low, _ = column.ends or (0.0, 0.0)
    if column.kind in ("text", "integer") and length and 3 <= length <= _DIGITS:
        return _all_digits(length, rest + column.written("integer"))
    if longest <= _DIGITS and low >= 0 and not column.blanks:
        return _range(column, "integer", ranges.codes(longest), rest, "codes written without leading zeros")
    return None


def _digits(column: ColumnProfile) -> _Values | str:
    length = _one_length(column)
    if length and length <= _DIGITS:
        return _all_digits(length, column.present - column.written(*DIGITAL))
    return _listed(column, "mark")


def _all_digits(length: int, outside: int) -> _Values:
    why = f"codes of {length} digits, leading zeros included"
    lines = [
        DraftLine("domain", {"digits": length}, "or the list of those that exist, from an official file", confirm=True),
        DraftLine("hierarchy", {"mask": length}, "hides one digit more at each level"),
    ]
    return _Values("text", why, lines, outside)


def _date(column: ColumnProfile) -> _Values:
    return _dates(column.days or (), column.present - column.written("date"))


def _date_format(column: ColumnProfile) -> str | None:
    """How local dates are written, if that can be told: a 31 is a day, and a point comes behind a day."""
    local = column.local
    if local is None or len(local.signs) != 1 or local.years is None:
        return None
    [sign] = local.signs
    first, second, third = local.most
    if first > ranges.DAYS:
        ordered = ["yyyy", "mm", "dd"] if second <= ranges.MONTHS and third <= ranges.DAYS else []
    elif second <= ranges.MONTHS and (first > ranges.MONTHS or sign == "."):
        ordered = ["dd", "mm", "yyyy"]
    else:
        ordered = ["mm", "dd", "yyyy"] if first <= ranges.MONTHS < second <= ranges.DAYS else []
    return sign.join(ordered) or None


def _local_date(column: ColumnProfile, written: str) -> _Values:
    assert column.local is not None  # noqa: S101 - by its format
    assert column.local.years is not None  # noqa: S101 - by its format
    years = [dt.date(year, 1, 1) for year in column.local.years]
    return _dates(years, column.present - column.written("local date"), written)


def _are_days(column: ColumnProfile) -> bool:
    """Whether numbers may be days like 20260131."""
    low, high = column.ends or (0, 0)
    return _one_length(column) == len("20260131") and low >= 18000101 and high <= 21991231


def _days_without_signs(column: ColumnProfile) -> _Values:
    years = [dt.date(int(end // 10_000), 1, 1) for end in column.ends or ()]
    return _dates(years, column.present - column.written(*DIGITAL), "yyyymmdd")


def _dates(ends: Sequence[dt.date], outside: int, written: str | None = None) -> _Values:
    first, last, periods = ranges.calendar(ends[0], ends[-1])
    lines = [
        DraftLine("domain", {"from": first, "to": last}, "rounded; what can occur?", confirm=True),
        DraftLine("hierarchy", {"dates": periods}),
    ]
    if written is not None:
        lines.insert(0, DraftLine("format", written, "as they are written", confirm=True))
    return _Values("date", "dates" if written is None else f"dates like {written}", lines, outside)


def _prefixes(texts: Sequence[str]) -> dict[str, list[str]] | None:
    """Codes by what stands before a sign in them (01-01301 in 01), if that takes several together."""
    parted = [_PREFIX.fullmatch(text) for text in texts]
    groups: dict[str, list[str]] = {}
    for text, found in zip(texts, parted, strict=True):
        if found is None:
            return None
        groups.setdefault(found[1], []).append(text)
    return groups if 1 < len(groups) <= 2 / 3 * len(texts) and not groups.keys() & set(texts) else None


def _listed(column: ColumnProfile, shape: str) -> _Values | str:
    """The texts that enough records share."""
    if shape in ("moment", "local date") or column.kind in ("float", "timestamp"):
        if column.local is not None and column.local.years is None:
            shape = "two digits"
        return _CONVERT.get(shape, "values of this kind cannot be listed")
    common = {text: records for text, records in column.common if len(text) <= _LONGEST}
    covered = sum(common.values())
    letters = sum(writing.letters for writing in column.writings.values())
    if shape in ("comma", "thousands") and column.distinct > _FEW_NUMBERS:
        return _CONVERT["thousands" if column.written("thousands", "number") else "comma"]
    if covered < column.present / 2:
        if letters >= _FREE_TEXT * column.present:
            return "free text"
        return f"most records hold a value that fewer than {COMMON} share"
    if column.common_values > _MOST_LISTED:
        return f"more than {_MOST_LISTED} different texts; if you need it, list them in a file: domain: {{file: ...}}"
    texts = sorted(common, key=natural_key)
    rare = column.distinct - len(texts)
    why = f"{len(texts)} different texts" + (f", {rare:,} more too rare to be listed" if rare else "")
    lines = [DraftLine("domain", texts, "take the list from the code book", confirm=True)]
    hint = ""
    longest = max(map(len, texts))
    if (groups := _prefixes(texts)) is not None and len(texts) >= _GROUPED:
        lines.append(DraftLine("hierarchy", {"taxonomy": groups}, "by what stands before the sign"))
    elif shape == "mark" and len(texts) >= _GROUPED and longest <= _LONGEST_CODE:
        why = why.replace("texts", "codes")
        lines.append(DraftLine("hierarchy", {"mask": longest}, "hides one character more at each level"))
        hint = _UNEVEN if min(map(len, texts)) < longest else ""
    elif len(texts) >= _GROUPED:
        hint = _GROUPS
    return _Values("text", why, lines, column.present - covered, rare, hint, taken=texts)


def bucket(taken: Iterable[str]) -> str:
    """A name for other values that none of these is."""
    used = set(taken)
    return next(
        name for name in ("other", "other values", *(f"other {i}" for i in range(len(used) + 1))) if name not in used
    )


def _outside_note(values: _Values) -> str:
    if values.rare:
        verb = "value is" if values.rare == 1 else "values are"
        return f"{values.rare:,} {verb} not listed: fewer than {COMMON} records share each"
    return "for what is outside the domain"
