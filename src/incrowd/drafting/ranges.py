"""Round numbers: ranges and cut points that follow conventions and orders of magnitude.

The least and the greatest value of a table belong to somebody. A range that is closed ends beyond them, at a round
number: a ten, a decade, a year. Cuts leave the ends open, and a few records cannot draw them away from the others.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain

from incrowd.sources.profile import COMMON

INFINITY = Decimal("Infinity")

MONTHS, DAYS = 12, 31  # of a year, of a month

_ROUND = (1, 2, 5)
_PARTS = 15  # intervals at most, in the middle
_MANY_CUTS = 15
_OFTEN_ZERO = 0.1
_ENOUGH = 10 * COMMON  # records other than zeros, for them to be cut
_END = 0.05  # of the records, at either end, have no say
_SKEWED = 3.0
_FEW_YEARS = 5


@dataclass(frozen=True)
class Usual:
    """A range that everybody would declare.

    Attributes:
        low: its least value.
        high: its greatest value.
        widths: of intervals in it.
        start: where an interval begins, if not at 0.
        top: from where on values are taken together, if anywhere.
    """

    low: int
    high: int
    widths: tuple[int, ...]
    start: int | None = None
    top: int | None = None


USUAL = {
    "age": Usual(0, 120, (5, 10, 20, 40), top=90),
    "percent": Usual(0, 100, (5, 10, 20)),
    "month": Usual(1, 12, (3, 6), start=1),
    "day": Usual(1, 31, (5, 10), start=1),
    "hour": Usual(0, 23, (3, 6, 12)),
}


def span(low: int, high: int) -> Usual:
    """A range of tens that goes beyond both ends; it begins at 0 if that is not far away."""
    top = (high // 10 + 1) * 10
    bottom = 0 if 0 <= low <= high - low else (math.ceil(low / 10) - 1) * 10
    return Usual(bottom, top, _widths(top - bottom))


def decades(low: int, high: int) -> Usual:
    """A range of whole decades."""
    first, last = low // 10 * 10, high // 10 * 10 + 9
    return Usual(first, last, tuple(width for width in (5, 10, 20, 100) if width <= last - first))


def codes(length: int) -> Usual:
    """All numbers of so many digits, of which the last are left out one after the other."""
    return Usual(0, 10**length - 1, tuple(10**i for i in range(1, length)))


def calendar(first: dt.date, last: dt.date) -> tuple[dt.date, dt.date, list[str]]:
    """Whole years around two dates, or whole decades if they are far apart, and the periods to take days together."""
    a, b = first.year, last.year
    if b - a < _FEW_YEARS:
        return dt.date(a, 1, 1), dt.date(b, 12, 31), ["month", "quarter", "year"]
    return dt.date(a // 10 * 10, 1, 1), dt.date(b // 10 * 10 + 9, 12, 31), ["month", "quarter", "year", "decade"]


def cuts(numbers: Sequence[tuple[float, int]], *, negative: bool, whole: bool) -> list[Decimal]:
    """Where to cut numbers into a dozen intervals or so, with open ends.

    Where most are small and few are large, each cut is about twice the one before; otherwise they are equally far
    apart. Only the numbers between the twentieth from below and the twentieth from above have a say; if these are the
    same, those beyond which `COMMON` records lie. Too few numbers are told from zero only.

    So fewer than `COMMON` records, whatever they hold, cannot draw the cuts away from the others: `low` and `high`
    below have `COMMON` records at or beyond them, of which one at least is another's. Rounding adds a step, at most
    a sixth of what is cut, or goes to the next of 1, 2, 5, 10: no finite cut is more than 1 + 2.5 |x| from 0, where x
    is the number that is farthest from 0 among the others.

    Args:
        numbers: what numbers there are and how many records hold each, in order.
        negative: whether some are below 0; otherwise the first interval begins there.
        whole: whether all are whole.
    """
    zeros = sum(records for number, records in numbers if number == 0)
    often_zero = not negative and zeros >= _OFTEN_ZERO * sum(records for _, records in numbers)
    body = [(number, records) for number, records in numbers if number or not often_zero]
    people = sum(records for _, records in body)
    if people < (_ENOUGH if often_zero else 2 * COMMON):
        return [-INFINITY, Decimal(0), INFINITY] if negative else [Decimal(0), Decimal(1), INFINITY]
    low, high = _between(body, max(COMMON, _END * people))
    if low >= high:
        low, high = _between(body, COMMON)
    middle = _ranked(body, people / 2)
    if not negative and low > 0 and high - middle > _SKEWED * (middle - low):
        inner = _powers(Decimal(low), Decimal(high))
    else:
        inner = _steps(low, high, whole=whole)
    if whole:
        inner = [cut for cut in inner if cut == cut.to_integral_value()]
    if negative:
        return [-INFINITY, *inner, INFINITY]
    least = [Decimal(0), Decimal(1)] if often_zero and whole else [Decimal(0)]
    return [*least, *(cut for cut in inner if cut > least[-1]), INFINITY]


def coarser(points: Sequence[Decimal]) -> list[list[Decimal]]:
    """Coarser and coarser cuts: each leaves out every other one of the one before, the ends excepted."""
    levels: list[list[Decimal]] = []
    inner = list(points[1:-1])
    while len(inner) > 1:
        inner = inner[1::2]
        levels.append([points[0], *inner, points[-1]])
    return levels


def _widths(length: int) -> tuple[int, ...]:
    return tuple(width for width in (5, 10, 20, 40) if width < length)


def _between(numbers: Sequence[tuple[float, int]], records: float) -> tuple[float, float]:
    """The first number from below, and from above, at or beyond which so many records lie."""
    return _ranked(numbers, records), _ranked(numbers[::-1], records)


def _ranked(numbers: Sequence[tuple[float, int]], wanted: float) -> float:
    """The number that the record of this rank holds."""
    for number, records in numbers:
        wanted -= records
        if wanted <= 0:
            return number
    return numbers[-1][0]


def _powers(low: Decimal, high: Decimal) -> list[Decimal]:
    """1, 2, 5, 10, 20, 50, … from the last that is not above `low` to the first that is not below `high`."""
    exponents = range(low.adjusted(), high.adjusted() + 2)
    series = list(chain.from_iterable((Decimal(digit).scaleb(e) for digit in _ROUND) for e in exponents))
    first = max(i for i, number in enumerate(series) if number <= low)
    last = min(i for i, number in enumerate(series) if number >= high)
    found = series[first : last + 1]
    if len(found) > _MANY_CUTS:
        found = [number for number in found if number.as_tuple().digits == (1,)]
    return found[-_MANY_CUTS:]


def _steps(low: float, high: float, *, whole: bool) -> list[Decimal]:
    """Multiples of a round number, from one at or below `low` to one at or above `high`."""
    wanted = Decimal((high - low or abs(high) or 1) / _PARTS)
    exponent = wanted.adjusted()
    step = next(s for d in (*_ROUND, 10) if (s := Decimal(d).scaleb(exponent)) >= wanted)
    step = max(step, Decimal(1)) if whole else step
    first, last = math.floor(Decimal(low) / step), math.ceil(Decimal(high) / step)
    return [step * i for i in range(first, last + 1)]
