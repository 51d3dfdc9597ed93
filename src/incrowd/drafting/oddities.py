"""What looks odd about a column, so that a person must answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from incrowd.core.numbers import number, percent
from incrowd.drafting.conventions import Unclear
from incrowd.sources.profile import COMMON, ColumnProfile

DIGITAL = ("digits", "binary", "natural")  # written with digits and nothing else
WHOLE = ("binary", "natural", "integer")
NUMERIC = ("digits", *WHOLE, "number")
INTEGER = re.compile(r"\s*[+-]?\d{1,18}(\.0*)?\s*", re.ASCII)

_WITH_UNIT = re.compile(r"\s*([$€£]\s*-?\d[\d.,]*|-?\d[\d.,]*\s*([$€£%]|EUR|USD|kg|cm))\s*")
_SENTINELS = {9, 99, 999, 9999, 99999, -1, -9, -99, -999}
_MANY = 0.1  # of the records, for which one name is poor
_OFTEN = 0.05  # of the records, more than which a text for "missing" is asked about
_WORD = re.compile(r"\S*\w\S*")
_NAMES = {".": "points", ",": "commas"}


def sentinel(column: ColumnProfile) -> list[str]:
    """Asks about a 99 that may mean "not known"."""
    text = sentinel_value(column, _SENTINELS)
    return [] if text is None else [_not_known(round(float(text)))]


def _not_known(code: int) -> str:
    question = f"Does {number(code)} mean 'not known'? Then take it out of the domain and write other: not known"
    return f"{question}. (Among the missing_values of data it would count for every column.)"


def sentinel_value(column: ColumnProfile, wanted: Collection[int]) -> str | None:
    """One of these numbers, as it is written, at an end, and alone there or more frequent than its neighbour."""
    counts = {float(text): (n, text) for text, n in column.common if INTEGER.fullmatch(text)}
    for end in (column.ends or ())[::-1]:
        if end not in wanted or end not in counts:
            continue
        frequent, text = counts[end]
        neighbours = [pair for pair in column.numbers if abs(pair[0] - end) > 0.005 * abs(end)]
        near, records = min(neighbours, key=lambda pair: abs(pair[0] - end), default=(end, frequent))
        if abs(near - end) > max(1, 0.02 * abs(end)) or frequent > 5 * records:
            return text
    return None


def codes(found: Sequence[str]) -> str:
    """Asks what codes among numbers mean."""
    listed = ", ".join(text if _WORD.fullmatch(text) else ascii(text) for text in found)
    verb, them = ("is", "it") if len(found) == 1 else ("are", "them")
    return (
        f"{listed} {verb} taken for something else than a number, in codes. What does the code book call {them}? What "
        "is a number after all, take out there."
    )


def missing(column: ColumnProfile, found: Collection[str]) -> list[str]:
    """Asks about each text that is taken as missing and may be a value: a - beside a +.

    Args:
        column: where they are.
        found: those that were told apart only beside other values.
    """
    asked = []
    for text, records in column.absent if column.kind == "text" else ():
        many = records > _OFTEN * column.records or (text in found and records >= COMMON)
        if not text.strip() or not (many or column.distinct <= 1):
            continue
        taken = f"{text if _WORD.fullmatch(text) else ascii(text)} is taken as missing"
        if text == "NA" and column.common and all(len(code) == 2 and code.isupper() for code, _ in column.common):
            asked.append(f"{taken}, but among codes of two letters it may be one (Namibia, North America).")
        else:
            asked.append(
                f"{taken}, in the missing_values of data. Is that right? If it is a value here, take it out there and "
                "put it into the domain."
            )
    return asked


def thousands(found: Unclear | None, shape: str, points: bool) -> tuple[str, ...]:
    """Asks what the points or commas of a column stand for, if it is numbers because of them.

    Args:
        found: what is unclear about them.
        shape: what the column is.
        points: whether other columns have decimal points, beside which a comma needs a format.
    """
    if found is None or shape not in (("integer", "number") if found.sign == "." or found.read else ("comma",)):
        return ()
    signs = _NAMES[found.sign]
    question = f"Is 1{found.sign}234 one thousand two hundred and thirty-four, or a little more than one?"
    first = f"In the first case, format: '1{found.sign}234'"
    if found.read:
        return (f"{question} It is read as the latter. {first} says so.",)
    second = "no format"
    if found.sign == ",":
        second = "format: '1234,5'" if points else "decimal: ',' under data"
    bins = "beside bins, {type: number, domain: {cuts: [0, 50, .inf]}}"
    said = f"Left out: its {signs} may stand between thousands. {question}"
    return (f"{said} {first}; in the second, {second}; {bins}.",)


def oddities(column: ColumnProfile, shape: str) -> list[str]:
    """What else looks odd."""
    found = []
    texts = [text for text, _ in column.common]
    if shape in ("text", "mark"):
        if column.blanks:
            found.append(
                f"{_records(column.blanks)} blanks around the value, which are taken as part of it. Is that right?"
            )
        if len({text.strip().lower() for text in texts}) < len(texts):
            found.append("Some values differ only in capitals or blanks. Are they the same?")
        written = {text: round(float(text)) for text in texts if INTEGER.fullmatch(text)}
        if 2 * len(written) < len(texts):  # a code among words
            found += [_not_known(code) for code in written.values() if code in _SENTINELS]
        if texts and all(map(_WITH_UNIT.fullmatch, texts)):
            found.append(
                "Numbers with a unit are taken as texts. Write them without, in a copy of the file, to have ranges."
            )
    fitting = {"boolean": ("flag", "binary"), "date": ("date",), "digits": DIGITAL}
    fitting |= {"integer": NUMERIC, "number": NUMERIC}
    rest = column.present - column.written(*fitting.get(shape, column.writings))
    if shape in ("integer", "number") and (parted := column.written("thousands", "comma")):
        found.append(
            f"{_records(parted)} a number like 1,234 or 1.234,50, which would become 'other'. "
            "format: '1,234.5' or '1.234,5' reads them, and the others too."
        )
        rest -= parted
    if rest:
        found.append(f"{_records(rest)} something else than the type says, and would become 'other'. Mistakes?")
    return found


def too_rare(column: ColumnProfile, outside: int, rare: int) -> list[str]:
    """Asks about a column of which so many values are not listed that their bucket says too little."""
    if not rare or outside <= _MANY * column.present:
        return []
    share = f"{percent(outside / column.present)} of the records hold values too rare to be listed and become 'other'"
    return [f"{share}. Say in a file which values belong together (hierarchy: {{file: ...}}), or drop it."]


def _records(number: int) -> str:
    return "1 record has" if number == 1 else f"{number:,} records have"
