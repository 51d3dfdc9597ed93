"""What looks odd about a column, so that a person must answer."""

from __future__ import annotations

import re

from incrowd.sources.profile import ColumnProfile

DIGITAL = ("digits", "binary", "natural")  # written with digits and nothing else
WHOLE = ("binary", "natural", "integer")
NUMERIC = ("digits", *WHOLE, "number")
INTEGER = re.compile(r"\s*[+-]?\d{1,18}(\.0*)?\s*", re.ASCII)

_WITH_UNIT = re.compile(r"\s*([$€£]\s*-?\d[\d.,]*|-?\d[\d.,]*\s*([$€£%]|EUR|USD|kg|cm))\s*")
_SENTINELS = {9, 99, 999, 9999, 99999, -1, -9, -99, -999}
_MANY = 0.1  # of the records, for which one name is poor


def sentinel(column: ColumnProfile) -> list[str]:
    """Asks about a 99 that may mean "not known": at an end, and alone there or more frequent than its neighbour."""
    counts = {float(text): n for text, n in column.common if INTEGER.fullmatch(text)}
    for end in (column.ends or ())[::-1]:
        if end not in _SENTINELS or end not in counts:
            continue
        neighbours = [pair for pair in column.numbers if abs(pair[0] - end) > 0.005 * abs(end)]
        near, records = min(neighbours, key=lambda pair: abs(pair[0] - end), default=(end, counts[end]))
        if abs(near - end) > max(1, 0.02 * abs(end)) or counts[end] > 5 * records:
            question = f"Does {end:.0f} mean 'not known'? Then take it out of the domain and write other: not known"
            return [f"{question}. (Among the missing_values of data it would count for every column.)"]
    return []


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
        if "NA" in column.spellings and texts and all(len(text) == 2 and text.isupper() for text in texts):
            found.append(
                "NA is taken as missing, but among codes of two letters it may be one (Namibia, North America)."
            )
        if texts and all(map(_WITH_UNIT.fullmatch, texts)):
            found.append(
                "Numbers with a unit are taken as texts. Write them without, in a copy of the file, to have ranges."
            )
    fitting = {"boolean": ("flag", "binary"), "date": ("date",), "digits": DIGITAL}
    fitting |= {"integer": NUMERIC, "number": NUMERIC}
    if shape in fitting and (rest := column.present - column.written(*fitting[shape])):
        found.append(f"{_records(rest)} something else than the type says, and would become 'other'. Mistakes?")
    return found


def too_rare(column: ColumnProfile, outside: int, rare: int) -> list[str]:
    """Asks about a column of which so many values are not listed that their bucket says too little."""
    if not rare or outside <= _MANY * column.present:
        return []
    share = f"{outside / column.present:.0%} of the records hold values too rare to be listed and become 'other'"
    return [f"{share}. Say in a file which values belong together (hierarchy: {{file: ...}}), or drop it."]


def _records(number: int) -> str:
    return "1 record has" if number == 1 else f"{number:,} records have"
