"""What makes the rate of a plain sample small, and what each of several recodings would make of it.

Every number here is found by recoding the table and computing its largest rate anew. It is all read off the raw table:
for the publisher's eyes only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, zip_longest
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError
from incrowd.core.numbers import count, number, percent
from incrowd.domain import Categories, Recode
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms.planner import Planned, PlanTable
from incrowd.mechanisms.sample.plan import SamplePlan
from incrowd.sources.observed import natural_order
from incrowd.theory import sampling

Action = Literal["level", "top", "bottom", "threshold", "drop"]
Floats = NDArray[np.float64]

_SHARES = (0.001, 0.01, 0.05, 0.1)  # of the records that top-coding takes together, about
_THRESHOLDS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
_THRESHOLDS_EACH = 3
_WORK, _FEWEST, _MOST = 30_000_000, 8, 240  # cells weighed in all (times c²), and evaluations at least and at most
_LONGEST_PATH = 8
_ENOUGH = 0.5  # a rate at which nobody asks for more
_NAMED = 10
_CODE = 5  # digits
_GAIN = 1.001  # a rate has to rise by more than this to be worth a line
_GROUP = "a group for them, in its hierarchy"


@dataclass(frozen=True, eq=False)
class Scale:
    """How a column may become coarser than it is shown.

    Attributes:
        coarser: for each higher level, its number and how the present codes are taken together there.
        ordered: how many of its first labels are in order; 0 if they are not. The rest are missing values and such.
        raw: whether it is shown as it is.
        limits: whether its hierarchy may have the keys `top` and `bottom`.
        other: the code of the bucket for values outside the domain, if there is one.
    """

    coarser: Sequence[tuple[int, Recode]] = ()
    ordered: int = 0
    raw: bool = True
    limits: bool = False
    other: int | None = None


@dataclass(frozen=True)
class Step:
    """One thing to do, and the rate that it leads to.

    Attributes:
        action: the kind of recoding.
        column: which column is recoded.
        what: what to do, in words.
        how: what to write in the policy.
        labels: how many values the column would have.
        distinct: how many distinct rows the table would have.
        rate: the largest rate that is then safe.
    """

    action: Action
    column: str
    what: str
    how: str
    labels: int
    distinct: int
    rate: float


@dataclass(frozen=True)
class Blame:
    """Rows that share something, and their part in the probability of a sample that is not private.

    Attributes:
        values: what they share, by column; nothing if that is only how many records a row stands for.
        low: the fewest records that one of the distinct rows stands for.
        high: the most records that one of them stands for.
        rows: how many distinct rows they are.
        records: how many records.
        share: their part in the risk, all parts adding up to 1.
    """

    values: Mapping[str, str | None]
    low: int
    high: int
    rows: int
    records: int
    share: float


@dataclass(frozen=True)
class Advice:
    """Where a small rate comes from, and what would help. For the publisher's eyes only.

    Attributes:
        rate: the largest that is safe as things are.
        distinct: the number of distinct rows.
        by_size: blame by how many records share all their values.
        by_value: the values of single columns that are most to blame.
        rarest: the distinct rows that are most to blame.
        steps: single steps, the best first.
        path: steps that build on each other, dropping no column; each rate is that of all steps up to it.
        left_out: how many steps were not tried for want of time.
    """

    rate: float
    distinct: int
    by_size: tuple[Blame, ...]
    by_value: tuple[Blame, ...]
    rarest: tuple[Blame, ...]
    steps: tuple[Step, ...]
    path: tuple[Step, ...]
    left_out: int


@dataclass(frozen=True, eq=False)
class _Way:
    action: Action
    column: str
    what: str
    how: str
    recode: Recode | None  # None: without the column
    rank: int = field(default=0)  # of a level, so that the next one up is known


def scales(attributes: Sequence[CodedAttribute], levels: Mapping[str, int]) -> dict[str, Scale]:
    """How the columns of a policy may become coarser than the levels at which they are shown."""
    found = {}
    for a in attributes:
        level, hierarchy = levels[a.name], a.hierarchy
        beyond = len(a.coding.base_labels) - len(a.coding.domain.labels)
        coarser = [(up, hierarchy.coarsen(level, up)) for up in range(level + 1, hierarchy.height)]
        labels = hierarchy.recode(level).labels
        declared = len(labels) - beyond if level < hierarchy.height else 0
        limits = not isinstance(a.coding.domain, Categories)
        ordered = declared if limits else in_order(labels[:declared])
        other = declared if a.coding.other is not None and level < hierarchy.height else None
        found[a.name] = Scale(coarser, ordered, level == 0, limits, other)
    return found


def observed_scales(table: Histogram) -> dict[str, Scale]:
    """The same for a table that no policy describes: numbers and dates are in order."""
    return {c.name: Scale((), in_order(c.labels[: len(c.labels) - (None in c.labels)])) for c in table.columns}


def in_order(labels: Sequence[str | None]) -> int:
    """How many labels there are, if they are numbers or dates in their order; else 0.

    Digits that all have one length of 5 or more, or begin with a 0, are codes: their order means nothing.
    """
    digits = [text for text in labels if text is not None and text.isdecimal()]
    lengths = set(map(len, digits))
    codes = len(digits) > 1 and ((len(lengths) == 1 and min(lengths) >= _CODE) or any(t[0] == "0" < t for t in digits))
    return 0 if codes or natural_order(labels) != list(labels) else len(labels)


def advise(
    table: Histogram,
    columns: Mapping[str, Scale],
    *,
    epsilon: float,
    delta: float,
    rows_unknown: int = 1,
    most: int | None = None,
) -> Advice:
    """Look for the reasons of a small rate, and try what would raise it.

    Args:
        table: the table as it would be sampled.
        columns: how its columns may become coarser; a column that is not there may be dropped only.
        epsilon: the promise.
        delta: the probability with which it may fail.
        rows_unknown: c.
        most: how many recodings to try; fewer for larger tables, if not given.
    """
    tries = _Tries(table, epsilon, delta, rows_unknown)
    left = max(_FEWEST, min(_MOST, _WORK // (len(table) * rows_unknown**2))) if most is None else most
    ways = list(_ways(table, columns))
    chosen = [way for way in ways if way.action != "level" or way.rank == 0]
    now = tries.rate(table)
    tried = [tries.step({}, way) for way in chosen[:left]]
    steps = sorted((step for step in tried if step.rate > now * _GAIN), key=lambda step: -step.rate)
    path = tries.path(ways, left - len(tried), now)
    risks = -np.log1p(-np.minimum(sampling.tuple_risks(table.counts, now, epsilon, rows_unknown), 1 - 1e-15))
    shares = risks / risks.sum()
    return Advice(
        rate=now,
        distinct=len(table),
        by_size=_by_size(table, shares),
        by_value=_by_value(table, shares),
        rarest=_rarest(table, shares),
        steps=tuple(steps),
        path=tuple(path),
        left_out=max(0, len(chosen) - left),
    )


class _Tries:
    """Recodings of one table, each with its largest rate."""

    def __init__(self, table: Histogram, epsilon: float, delta: float, rows_unknown: int) -> None:
        self._table = table
        self._promise = (epsilon, delta, rows_unknown)

    def rate(self, table: Histogram) -> float:
        return sampling.largest_rate(table.counts, *self._promise).rate

    def step(self, done: Mapping[str, _Way], way: _Way) -> Step:
        """What a way leads to, on top of what is done to other columns."""
        all_ways = {**done, way.column: way}
        kept = [name for name in self._table.names if name not in all_ways or all_ways[name].recode is not None]
        table = self._table.project(kept) if len(kept) < len(self._table.names) else self._table
        recodes = {w.column: w.recode for w in all_ways.values() if w.recode is not None}
        table = table.recode(recodes) if recodes else table
        labels = 0 if way.recode is None else len(way.recode.labels)
        return Step(way.action, way.column, way.what, way.how, labels, len(table), self.rate(table))

    def path(self, ways: Sequence[_Way], left: int, now: float) -> list[Step]:
        """The best step, then the best on top of it, and so on, as far as that is affordable."""
        done: dict[str, _Way] = {}
        taken: list[Step] = []
        while len(taken) < _LONGEST_PATH and now < _ENOUGH:
            open_ways = [way for way in ways if way.action != "drop" and _follows(way, done)]
            if not open_ways or len(open_ways) > left:
                break
            left -= len(open_ways)
            tried = [(self.step(done, way), way) for way in open_ways]
            best, way = max(tried, key=lambda pair: pair[0].rate)
            if best.rate <= now * _GAIN:
                break
            now = best.rate
            taken.append(best)
            done[way.column] = way
        return taken


def _follows(way: _Way, done: Mapping[str, _Way]) -> bool:
    """Whether a way is the next one for its column: one level up, or the first thing done to it."""
    before = done.get(way.column)
    if before is None:
        return way.rank == 0
    return way.action == before.action == "level" and way.rank == before.rank + 1


def _ways(table: Histogram, columns: Mapping[str, Scale]) -> Iterator[_Way]:
    """Everything that can be done to one column; what costs least of each kind first, the columns taking turns."""
    each = [list(_ways_of(table, name, columns.get(name, Scale()))) for name in table.names]
    for way in chain.from_iterable(zip_longest(*each)):
        if way is not None:
            yield way


def _ways_of(table: Histogram, name: str, scale: Scale) -> Iterator[_Way]:
    column = table[name]
    counts = np.bincount(column.codes, weights=table.counts, minlength=len(column.labels)).astype(np.float64)
    if np.count_nonzero(counts) < 2:
        return
    for rank, (level, recode) in enumerate(scale.coarser):
        what = f"show it one level coarser ({len(column.labels):,} → {len(recode.labels):,} values)"
        if rank:
            what = f"show it at level {level} ({len(column.labels):,} → {len(recode.labels):,} values)"
        yield _Way("level", name, what, f"level: {level}", recode, rank)
    if scale.ordered:
        yield from _coded(name, column.labels, counts, scale)
    else:
        yield from _merged(name, column.labels, counts, scale)
    if len(table.names) > 1:
        yield _Way("drop", name, "leave the column out", "role: drop", None)


def _coded(name: str, labels: Sequence[str | None], counts: Floats, scale: Scale) -> Iterator[_Way]:
    """Top- and bottom-coding, at round numbers near the ends of the distribution."""
    size, total = scale.ordered, counts[: scale.ordered].sum()
    upto = np.cumsum(counts[:size])
    step = _round_step(labels[:size])
    where = _GROUP
    if scale.limits:
        where = "hierarchy: {{{key}: {value}}}, level: 1" if scale.raw else "{key}: {value}, in its hierarchy"
    seen: set[tuple[str, int]] = set()
    for share in _SHARES:
        # The last position from which on at least that share of the records lies, then down to a round number.
        high = _round_position(labels, int(np.searchsorted(upto, total * (1 - share), side="right")), -1, step, size)
        low = _round_position(labels, int(np.searchsorted(upto, total * share, side="left")), 1, step, size)
        for action, at in (("top", high), ("bottom", low)):
            if (action, at) in seen or not 0 < at < size - 1:
                continue
            seen.add((action, at))
            codes = np.arange(len(labels))
            if action == "top":
                to = np.where(codes >= size, codes - (size - at) + 1, np.minimum(codes, at))
                named = (*labels[:at], f"≥ {labels[at]}", *labels[size:])
                key, end = "top", _end(labels[at], last=False)
                what = f"take everything from {end} on together"
            else:
                to = np.maximum(codes - at, 0)
                named = (f"≤ {labels[at]}", *labels[at + 1 :])
                key, end = "bottom", _end(labels[at], last=True)
                what = f"take everything up to {end} together"
            how = where.format(key=key, value=end)
            yield _Way("top" if action == "top" else "bottom", name, what, how, Recode(to, tuple(named)))


def _merged(name: str, labels: Sequence[str | None], counts: Floats, scale: Scale) -> Iterator[_Way]:
    """Values that few records have, taken together: a population threshold.

    Missing values stay what they are. A value that leaves the domain joins the bucket for others, if there is one.
    """
    merged = 0
    offered = 0
    value = np.array([text is not None and code != scale.other for code, text in enumerate(labels)])
    bucket = scale.other if scale.raw else None
    how = "other: other, and a domain without them" if bucket is None else "a domain without them"
    for least in _THRESHOLDS:
        rest = value & (counts < least)
        few = int((rest & (counts > 0)).sum())
        if few < (2 if bucket is None else 1) or few == merged or offered == _THRESHOLDS_EACH:
            continue
        if few == int((value & (counts > 0)).sum()):
            break
        merged, offered = few, offered + 1
        to = np.cumsum(~rest) - 1
        kept = tuple(text for text, gone in zip(labels, rest, strict=True) if not gone)
        to[rest] = len(kept) if bucket is None else to[bucket]
        yield _Way(
            "threshold",
            name,
            f"take the {few:,} values with fewer than {least:,} records together",
            how if scale.raw else _GROUP,
            Recode(to, (*kept, "\0other") if bucket is None else kept),
        )


def _end(text: str | None, *, last: bool) -> str:
    """One end of what a label covers: of "55 to 59", of "[50, 60)", or of a single value."""
    ends = (text or "").strip("[]()").replace(", ", " to ").split(" to ")
    return ends[-1] if last else ends[0]


def _round_step(labels: Sequence[str | None]) -> int:
    """The distance between numbers that are round for a column of whole numbers; 1 for other labels."""
    numbers = [int(text) for text in (labels[0], labels[-1]) if text is not None and text.lstrip("-").isdecimal()]
    if len(numbers) < 2 or abs(numbers[1] - numbers[0]) < 20:
        return 1
    return int(10 ** math.floor(math.log10(abs(numbers[1] - numbers[0]) / 20)) * 5)


def _round_position(labels: Sequence[str | None], at: int, way: int, step: int, size: int) -> int:
    """The position of the next round number in a direction, if there is one."""
    at = min(max(at, 0), size - 1)
    place = at
    while step > 1 and 0 <= place < size:
        text = labels[place]
        if text is not None and text.lstrip("-").isdecimal() and int(text) % step == 0:
            return place
        place += way
    return at


# --- blame ------------------------------------------------------------------------------------------------------------


def _by_size(table: Histogram, shares: Floats) -> tuple[Blame, ...]:
    edges = [1, 2, 3, 5, 10, 30, 100, 300, 1000]
    bins = np.searchsorted(edges, table.counts, side="right") - 1
    found = []
    for place in np.unique(bins):
        here = bins == place
        counts = table.counts[here]
        found.append(
            Blame({}, int(counts.min()), int(counts.max()), len(counts), int(counts.sum()), float(shares[here].sum()))
        )
    return tuple(found)


def _by_value(table: Histogram, shares: Floats) -> tuple[Blame, ...]:
    found = []
    for column in table.columns:
        parts = np.bincount(column.codes, weights=shares, minlength=len(column.labels))
        records = np.bincount(column.codes, weights=table.counts, minlength=len(column.labels))
        # Blame beyond its part of the records: a value that everyone has explains nothing.
        excess = parts - records / table.total
        for code in np.argsort(-excess, kind="stable")[:_NAMED]:
            if excess[code] > 0.05:
                here = table.counts[column.codes == code]
                values = {column.name: column.labels[code]}
                found.append(
                    (
                        float(excess[code]),
                        Blame(values, int(here.min()), int(here.max()), len(here), int(here.sum()), float(parts[code])),
                    )
                )
    return tuple(blame for _, blame in sorted(found, key=lambda pair: -pair[0])[:_NAMED])


def _rarest(table: Histogram, shares: Floats) -> tuple[Blame, ...]:
    order = np.lexsort((np.arange(len(table)), table.counts, -shares))[:_NAMED]
    return tuple(
        Blame(
            {c.name: c.labels[int(c.codes[i])] for c in table.columns},
            int(table.counts[i]),
            int(table.counts[i]),
            1,
            int(table.counts[i]),
            float(shares[i]),
        )
        for i in order
    )


_SHOWN = 14  # steps


def advised(table: Histogram, scales: Mapping[str, Scale], answer: Planned) -> Planned:
    """Advice about a plan, for people. For the publisher's eyes only."""
    plan = answer.answer
    if not isinstance(plan, SamplePlan):
        raise InternalError("advice was asked about another mechanism's plan")
    found = advise(table, scales, epsilon=plan.epsilon, delta=plan.delta, rows_unknown=plan.rows_unknown)
    lines = []
    for blame in found.by_size:
        if blame.share >= 0.001:
            alike = number(blame.low) if blame.low == blame.high else f"{number(blame.low)} to {number(blame.high)}"
            which = "one record has alone" if blame.high == 1 else f"{alike} records share"
            rows = count(blame.rows, "distinct row", "distinct rows")
            lines.append(f"{rows} that {which}: {percent(blame.share)} of the risk")
    for blame in found.by_value:
        ((column, value),) = blame.values.items()
        what = "missing" if value is None else f"'{value}'"
        lines.append(
            f"{column} {what} ({count(blame.records, 'record', 'records')}): {percent(blame.share)} of the risk"
        )
    tables = [
        PlanTable(
            ("column", "do this", "in the policy", "distinct rows", "rate", "gain"),
            [
                (
                    step.column,
                    step.what,
                    step.how,
                    number(step.distinct),
                    number(step.rate, 3),
                    f"× {number(step.rate / found.rate, 3)}",
                )
                for step in steps
            ],
            title,
            words=3,
        )
        for title, steps in (
            ("do this, and the rate becomes", found.steps[:_SHOWN]),
            ("one after the other, dropping no column", found.path if len(found.path) > 1 else ()),
        )
        if steps
    ]
    closing = f"{number(found.left_out)} more were not tried, for want of time." if found.left_out else ""
    if not found.steps:
        closing = "Nothing that was tried would raise it."
    title = "For your eyes only: what makes the rate small"
    return Planned(found, {"advice": asdict(found)}, title, tuple(lines), tuple(tables), closing)
