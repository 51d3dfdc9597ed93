"""Which values a database may count as one.

A database groups the rows of a table and counts them; what the values mean is decided afterwards, by the same rules
as for every other table (`incrowd.sources.duckdb_codes`). Where a coding makes few codes of many values (cut points, a
bucket for other values, a coarsening), the database first puts one value in the place of all those that are coded
alike, so that few groups come out of it. A fold says which. It changes no code: whatever is not surely coded alike
stays as it is, and travels.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.domain import Bins, Categories, Coding, DateRange, IntegerRange
from incrowd.sources.duckdb_codes import INT64, domain_kind
from incrowd.sources.tally import value_codes

Ordered = float | int | dt.date

_MOST_STEPS = 2000
_MOST_LISTS = 100
_MOST_TEXT = 2**18


@dataclass(frozen=True)
class Steps:
    """Values that have an order.

    Attributes:
        below: what stands for those below the first start; None lets them stand for themselves.
        starts: where something else begins, in increasing order.
        stand_ins: what stands for the values from each start to the next; None lets them stand for themselves.
    """

    below: Ordered | None
    starts: tuple[Ordered, ...]
    stand_ins: tuple[Ordered | None, ...]


@dataclass(frozen=True)
class Listing:
    """Texts.

    Attributes:
        lists: the declared texts that are coded alike, and what stands for them; None lets them stand for themselves.
        missing: the texts that mean that a value is missing; null stands for them.
        outside: what stands for every other text.
    """

    lists: tuple[tuple[tuple[str, ...], str | None], ...]
    missing: tuple[str, ...]
    outside: str


Fold = Steps | Listing


def fold(coding: Coding, kind: str, missing_values: Sequence[str]) -> Fold | None:
    """What a database may do to a column of this kind before it groups; None where values have to travel as they are.

    That is so where it would gain nothing (every declared value has a code of its own, and there should be no others),
    where values must be read before they can be compared (numbers written as text), where some stand among them that
    mean something else, and where the lists to be sent would be long.
    """
    if coding.codes or coding.format is not None:
        return None
    domain, wanted = coding.domain, domain_kind(coding.domain)
    if isinstance(domain, Bins):
        return _bins(domain.cuts, value_codes(coding)) if kind in {"integer", "float", "decimal"} else None
    if (coding.recode is None and coding.other is None) or wanted != kind:
        return None
    if kind == "text":
        return _listing(coding, missing_values)
    if kind == "integer":
        return _numbers(coding)
    return _days(coding) if kind == "date" else None


def _bins(cuts: Sequence[float], codes: np.ndarray) -> Steps | None:
    """One number for each code; no infinite one among them, as not every engine can write it."""
    open_below, open_above = math.isinf(cuts[0]), math.isinf(cuts[-1])
    beyond = math.nextafter(cuts[-1], math.inf)
    firsts = [math.nextafter(cuts[1], -math.inf) if open_below else cuts[0], *cuts[1:-1]]
    outside = beyond if open_below else math.nextafter(cuts[0], -math.inf)
    known: dict[int, float] = {}
    stands = [known.setdefault(int(code), first) for code, first in zip(codes, firsts, strict=True)]
    steps = list(zip([-math.inf if open_below else cuts[0], *cuts[1:-1]], stands, strict=True))
    if not open_above:
        steps.append((beyond, outside))
    below = steps.pop(0)[1] if open_below else outside
    if not all(map(math.isfinite, (below, *(number for step in steps for number in step)))):
        return None
    return _steps(below, *zip(*steps, strict=True)) if steps else Steps(below, (), ())


def _numbers(coding: Coding) -> Steps | None:
    domain = coding.domain
    values: Sequence[int] = (
        range(domain.low, domain.high + 1) if isinstance(domain, IntegerRange) else _categories(domain)
    )
    return _whole(coding, values, INT64, int)


def _days(coding: Coding) -> Steps | None:
    domain = coding.domain
    values: Sequence[int] = (
        range(domain.first.toordinal(), domain.last.toordinal() + 1)
        if isinstance(domain, DateRange)
        else [day.toordinal() for day in _categories(domain)]
    )
    return _whole(coding, values, (dt.date.min.toordinal(), dt.date.max.toordinal()), dt.date.fromordinal)


def _whole(coding: Coding, values: Sequence[int], ends: tuple[int, int], made: Any) -> Steps | None:
    """Runs of whole numbers; `made` turns one into a value."""
    if min(values) < ends[0] or max(values) > ends[1]:
        return None
    numbers = np.array(values, dtype=np.int64)
    order = np.argsort(numbers)
    numbers = numbers[order]
    itself = coding.recode is None
    codes = np.zeros(len(numbers), dtype=np.int64) if itself else np.asarray(value_codes(coding))[order]
    low, high = int(numbers[0]), int(numbers[-1])
    if low > ends[0]:
        outside = low - 1
    elif high < ends[1]:
        outside = high + 1
    else:
        return None
    known: dict[int, int] = {}
    begins = np.flatnonzero(np.r_[True, (numbers[1:] != numbers[:-1] + 1) | (codes[1:] != codes[:-1])])
    if len(begins) > _MOST_STEPS:
        return None
    starts: list[int] = []
    stands: list[int | None] = []
    for begin, last in zip(begins, np.r_[begins[1:] - 1, len(numbers) - 1], strict=True):
        first = int(numbers[begin])
        starts.append(first)
        stands.append(None if itself else known.setdefault(int(codes[begin]), first))
        end = int(numbers[last])
        if end < ends[1] and (last + 1 == len(numbers) or int(numbers[last + 1]) != end + 1):
            starts.append(end + 1)
            stands.append(outside)
    return _steps(made(outside), list(map(made, starts)), [None if stand is None else made(stand) for stand in stands])


def _steps(below: Ordered, starts: Sequence[Ordered], stands: Sequence[Ordered | None]) -> Steps | None:
    """Neighbouring steps with the same stand-in become one."""
    kept: list[tuple[Ordered, Ordered | None]] = []
    before: Ordered | None = below
    for start, stand in zip(starts, stands, strict=True):
        if stand is None or stand != before:
            kept.append((start, stand))
        before = stand
    if len(kept) > _MOST_STEPS:
        return None
    return Steps(below, tuple(start for start, _ in kept), tuple(stand for _, stand in kept))


def _listing(coding: Coding, missing_values: Sequence[str]) -> Listing | None:
    texts: list[str] = _categories(coding.domain)
    if sum(map(len, texts)) + 3 * len(texts) > _MOST_TEXT or any("\0" in text for text in (*texts, *missing_values)):
        return None
    declared = set(texts)
    missing = tuple(text for text in dict.fromkeys(missing_values) if text not in declared)
    outside = "other values"
    while outside in declared or outside in missing:
        outside += "'"
    if coding.recode is None:
        return Listing(((tuple(texts), None),), missing, outside)
    alike: dict[int, list[str]] = {}
    for text, code in zip(texts, value_codes(coding).tolist(), strict=True):
        alike.setdefault(code, []).append(text)
    if len(alike) > _MOST_LISTS:
        return None
    return Listing(tuple((tuple(group), group[0]) for group in alike.values()), missing, outside)


def _categories(domain: Any) -> list[Any]:
    assert isinstance(domain, Categories)  # noqa: S101 - by its kind
    return list(domain.values)
