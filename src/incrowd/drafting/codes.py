"""What stands among numbers and is none: N, -9, 99, not applicable.

A code is told from a number by what is beside it: a word among numbers; a few numbers below zero with gaps between
them, where all others are above; a 99 far above all others, or far more frequent than its neighbours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from incrowd.drafting.conventions import ENOUGH, MOST_WORDS, SCALE, without, words_among
from incrowd.drafting.oddities import INTEGER, NUMERIC, sentinel_value
from incrowd.sources.profile import ColumnProfile

_NEARLY_ALL = 0.9
_ABOVE = (9, 99, 999, 9999, 99999)
_BEFORE = (1, 2, 3, 11, 22)  # a 98, 97, 96, 88 or 77 beside a 99
_BELOW = {-1, -2, -3, -4, -5, -6, -7, -8, -9, *(-d * n for d in (11, 111, 1111) for n in (6, 7, 8, 9)), -96, -97, -98}
_TELLING = -7  # the least of them is this or less


def found_codes(column: ColumnProfile, known: Collection[str]) -> list[str]:
    """The codes among the numbers of a column, as they are written; none in a column of something else.

    Args:
        column: what is in it.
        known: texts that mean that a value is missing.
    """
    words = [text for text, _ in words_among(column) if text not in known]
    if len(words) > MOST_WORDS or column.written("digits"):
        return []
    rest = leave_out(column, words)
    numbers = rest.written(*NUMERIC)
    values = sum(way.values for name, way in rest.writings.items() if name in NUMERIC)
    if numbers < max(ENOUGH, _NEARLY_ALL * rest.present) or values <= SCALE:
        return []
    return [*words, *_below(rest), *_above(rest)]


def leave_out(column: ColumnProfile, texts: Iterable[str]) -> ColumnProfile:
    """The column without the records that hold one of these texts."""
    less = without(column, {text: [] for text in texts})
    gone = less.missing - column.missing
    return replace(less, records=column.records - gone, missing=column.missing, absent=column.absent)


def label_for(code: str) -> str:
    """What a code is published as until somebody says what it means."""
    return f"code {code}" if INTEGER.fullmatch(code) else code


def _below(column: ColumnProfile) -> list[str]:
    shared = {float(text): text for text, _ in column.common if INTEGER.fullmatch(text)}
    below = [number for number, _ in column.numbers if number < 0]
    if not below or not set(below) <= _BELOW & shared.keys() or min(below) > _TELLING or min(below) == -len(below):
        return []
    return [shared[number] for number in below]


def _above(column: ColumnProfile) -> list[str]:
    found: list[str] = []
    wanted: Collection[int] = _ABOVE
    while (text := sentinel_value(column, wanted)) is not None and len(found) < MOST_WORDS:
        found.append(text)
        top = int(float(found[0]))
        wanted = [top - less for less in _BEFORE if top > _ABOVE[0]]
        column = leave_out(column, [text])
    return found
