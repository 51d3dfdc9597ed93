"""Groups of neighbours: a level is where its groups begin.

A domain in order (whole numbers, days, bins, or a list that is meant to be in order) is cut into runs. A level is given
by the positions at which its runs start, and it is coarser than another exactly if these are among the other's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import HierarchyError
from incrowd.domain import Bins, Categories, DateRange, Domain, IntegerRange, label_of
from incrowd.hierarchy.tree import Grouping
from incrowd.policy import Intervals, Mask, Ordinal
from incrowd.policy.values import is_whole

Starts = NDArray[np.int64]
Names = Callable[[Starts], Sequence[str]]


def intervals(spec: Intervals, domain: Domain) -> Iterator[Grouping]:
    """Intervals of fixed widths, between cut points, or of the calendar; all beyond a limit being one group."""
    if isinstance(domain, Categories):
        raise unfit("intervals need a domain of whole numbers, bins or dates in order")
    size = len(domain.labels)
    low, high = _limits(spec, domain, size)

    def limited(names: Names) -> Names:
        def labels(starts: Starts) -> list[str]:
            found = list(names(starts))
            if spec.bottom is not None:
                found[0] = f"{'<' if isinstance(domain, Bins) else '≤'} {label_of(spec.bottom)}"
            if spec.top is not None:
                found[-1] = f"≥ {label_of(spec.top)}"
            return found

        return labels

    levels = []
    for starts, names in _levels(spec, domain):
        inner = starts[(starts > low) & (starts < high)]
        levels.append((np.concatenate([[low], inner, [high]]), limited(names)))
    yield from nested(levels, size)


def ordinal(spec: Ordinal, domain: Domain, labels: Sequence[str]) -> Iterator[Grouping]:
    """Runs of so many neighbours, named by what the first and the last are published as."""
    size = len(domain.labels)
    starts = [np.array(range(0, size, length), np.int64) for length in spec.ordinal]  # which may exceed 64 bits
    yield from nested([(level, run_names(domain, labels)) for level in starts], size)


def mask(spec: Mask, domain: Domain) -> Iterator[Grouping]:
    """Codes with their last characters hidden.

    What is left of a code at one level decides what is left at the next, so the levels are nested, whatever the
    lengths of the codes.
    """
    labels: Sequence[str] = domain.labels
    if spec.mask[-1] > max(map(len, labels)):
        raise unfit("more characters are masked than the longest code has")
    codes: NDArray[np.int64] = np.arange(len(labels))
    for count in spec.mask:
        names: dict[str, int] = {}
        # It is enough to mask each group of the level below.
        step = np.array([names.setdefault(_masked(label, count, spec.character), len(names)) for label in labels])
        codes, labels = step[codes], tuple(names)
        yield codes, labels


def nested(levels: Iterable[tuple[NDArray[np.integer], Names]], size: int) -> Iterator[Grouping]:
    """Groupings from the starts of runs at each level, if each level only leaves out starts of the one below."""
    before: NDArray[np.integer] = np.arange(size)
    for number, (starts, names) in enumerate(levels, 1):
        kept = np.union1d([0], starts[starts < size]).astype(np.int64)
        cutting = np.flatnonzero(~np.isin(kept, before))
        if cutting.size:
            raise HierarchyError(
                f"A group at level {number} begins inside a group of level {number - 1}: {names(kept)[cutting[0]]}.",
                code="hierarchy-nesting",
                remedy="A level can only join whole groups of the level below it, and begin where one of them does.",
                details={"level": number},
            )
        before = kept
        yield np.repeat(np.arange(len(kept)), np.diff(np.append(kept, size))), names(kept)


def run_names(domain: Domain, published: Sequence[str] | None = None) -> Names:
    """Names for runs by their first and last values, as these print unless given; for bins, by their edges."""

    def names(starts: Starts) -> Sequence[str]:
        if isinstance(domain, Bins):
            return Bins(tuple(domain.cuts[i] for i in [*starts.tolist(), len(domain.cuts) - 1])).labels
        labels, ends = published or domain.labels, [*(starts[1:] - 1).tolist(), len(domain.labels) - 1]
        return [
            labels[a] if a == b else f"{labels[a]} to {labels[b]}" for a, b in zip(starts.tolist(), ends, strict=True)
        ]

    return names


def positions(domain: Domain, edges: Sequence[Any]) -> Starts:
    """How many values of the domain lie below each edge; for bins an edge must be one of their cuts."""
    size = len(domain.labels)
    if isinstance(domain, DateRange):
        return np.clip(np.array([(edge - domain.first).days for edge in edges], np.int64), 0, size)
    if isinstance(domain, IntegerRange):
        if any(edge.is_finite() and not is_whole(edge) for edge in edges):
            raise unfit("an edge between whole numbers must be a whole number")
        return np.array([int(min(max(edge - domain.low, Decimal(0)), Decimal(size))) for edge in edges], np.int64)
    if isinstance(domain, Categories):
        raise unfit("a list of values has no edges")
    cuts = np.array(domain.cuts)
    wanted = np.array([float(edge) for edge in edges])
    found = np.searchsorted(cuts, wanted)
    if np.any(found > size) or np.any(cuts[np.minimum(found, size)] != wanted):
        raise unfit("an edge must be one of the cut points of the domain, or an interval would begin inside a bin")
    return found


def unfit(text: str) -> HierarchyError:
    """The error of a hierarchy that its domain does not allow."""
    return HierarchyError(f"The hierarchy does not fit its domain: {text}.", code="hierarchy-domain")


def _levels(spec: Intervals, domain: Domain) -> Iterator[tuple[Starts, Names]]:
    if spec.widths is not None:
        origin = 0 if spec.start is None else spec.start
        for width in spec.widths:
            yield _every(width, Decimal(origin), domain), run_names(domain)  # type: ignore[arg-type]
    elif spec.cuts is not None:
        for cuts in spec.cuts:
            yield _between(cuts, domain), run_names(domain)
    elif spec.dates is not None:
        for period in spec.dates:
            yield _periods(period, domain)
    else:
        yield np.arange(len(domain.labels)), run_names(domain)


def _every(width: Decimal, origin: Decimal, domain: Domain) -> Starts:
    """The positions of `origin` and of all that is multiples of the width away from it."""
    if isinstance(domain, IntegerRange):
        if not (is_whole(width) and is_whole(origin)):
            raise unfit("intervals of whole numbers must begin and end at whole numbers")
        first = (int(origin) - domain.low) % int(width)
        return np.array(range(first, len(domain.labels), int(width)), np.int64)  # a width may exceed 64 bits
    if not isinstance(domain, Bins):
        raise unfit("'widths' need a domain of numbers")
    finite = [Decimal(cut) for cut in domain.cuts if np.isfinite(cut)]
    if not finite:
        raise unfit("a single bin without ends cannot be cut into intervals")
    least = ((finite[0] - origin) / width).to_integral_value(ROUND_FLOOR) + 1
    most = ((finite[-1] - origin) / width).to_integral_value(ROUND_FLOOR)
    if most - least > len(domain.labels):
        raise unfit("intervals are narrower than the domain's bins")
    edges = [origin + width * (least + i) for i in range(int(most - least) + 1)]
    # A bin without an end fits into no interval of finite width: it stays alone.
    return positions(domain, [finite[0], *edges, finite[-1]])


def _between(cuts: Sequence[Any], domain: Domain) -> Starts:
    low, high = _ends(domain)
    if any(not low <= cut <= high and not (isinstance(cut, Decimal) and cut.is_infinite()) for cut in cuts):
        raise unfit("a cut point lies outside the domain")
    # The last interval includes its upper end, as the last bin of a domain does: a cut there changes nothing.
    return positions(domain, [cut for cut in cuts if low <= cut < high])


def _ends(domain: Domain) -> tuple[Any, Any]:
    match domain:
        case IntegerRange():
            return Decimal(domain.low), Decimal(domain.high)
        case DateRange():
            return domain.first, domain.last
        case Bins():
            return Decimal(domain.cuts[0]), Decimal(domain.cuts[-1])
        case _:
            raise unfit("a list of values has no ends")


def _limits(spec: Intervals, domain: Domain, size: int) -> tuple[int, int]:
    """The positions up to which everything is one group, and from which on."""
    least, most = _ends(domain)
    bottom, top = (Decimal(limit) if isinstance(limit, int | Decimal) else limit for limit in (spec.bottom, spec.top))
    if (bottom is not None and not least <= bottom < most) or (top is not None and not least < top <= most):
        raise unfit("'top' and 'bottom' must lie inside it, and leave something between")
    low = 0 if bottom is None else int(positions(domain, [bottom])[0]) + (0 if isinstance(domain, Bins) else 1)
    high = size if top is None else int(positions(domain, [top])[0])
    if low > high or (bottom is not None and low == 0) or (top is not None and high == size):
        raise unfit("'bottom' must lie below 'top', and a group must not be empty")
    return low, high


def _periods(period: str, domain: Domain) -> tuple[Starts, Names]:
    if not isinstance(domain, DateRange):
        raise unfit("periods of the calendar need a domain of dates")
    days = np.datetime64(domain.first, "D") + np.arange(len(domain.labels))
    months = days.astype("M8[M]").astype(np.int64)
    key = {
        "week": (days.astype(np.int64) + 3) // 7,  # 1 January 1970 was a Thursday
        "month": months,
        "quarter": months // 3,
        "year": months // 12,
        "decade": (months // 12 + 1970) // 10,
    }[period]

    def names(starts: Starts) -> list[str]:
        return [_period_name(period, domain.first + dt.timedelta(days=start)) for start in starts.tolist()]

    return np.flatnonzero(np.diff(key, prepend=key[0] - 1)), names


def _period_name(period: str, day: dt.date) -> str:
    match period:
        case "week":
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        case "month":
            return f"{day.year:04}-{day.month:02}"
        case "quarter":
            return f"{day.year:04}-Q{(day.month + 2) // 3}"
        case "year":
            return f"{day.year:04}"
        case _:
            return f"{day.year // 10 * 10:04}s"


def _masked(label: str, count: int, character: str) -> str:
    kept = max(0, len(label) - count)
    return label[:kept] + character * (len(label) - kept)
