"""Bars: distributions, before and after, and sizes of crowds, as tables that can also be read aloud."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from incrowd.core.numbers import count, percent
from incrowd.reports.page import Content, Html, label, tag

MOST = 20
"""A column with more labels than this shows its most frequent ones."""

Counts = NDArray[np.int64]


def largest(counts: Counts, most: int) -> NDArray[np.intp]:
    """The places of the largest counts, at least one, largest first; of those that are the same, the first ones."""
    places = np.arange(len(counts))
    if most < len(counts):
        least = np.partition(counts, len(counts) - most)[len(counts) - most]
        above = np.flatnonzero(counts > least)
        places = np.concatenate([above, np.flatnonzero(counts == least)[: most - len(above)]])
    return places[np.lexsort((places, -counts[places]))]


class Row(NamedTuple):
    """One bar: its name, its lengths between 0 and 1 (the last one in colour), and the numbers beside it."""

    name: Content
    lengths: Sequence[float]
    numbers: Sequence[str]
    rest: bool = False


def distribution(title: Content, note: Content, labels: Sequence[str | None], counts: Counts) -> Html:
    """How often each label occurs: in the order of the labels if they are few, else the most frequent ones."""
    total = float(counts.sum()) or 1.0
    shown, rest = _most(counts)
    top = float(counts.max(initial=0)) or 1.0
    rows = [Row(label(labels[i]), [counts[i] / top], [f"{counts[i]:,}", percent(counts[i] / total)]) for i in shown]
    if len(rest):
        more = int(counts[rest].sum())
        rows.append(Row(_more(counts[rest]), [], [f"{more:,}", percent(more / total)], rest=True))
    return bars(title, note, ("records", "share"), rows)


def before_and_after(
    title: Content, note: Content, labels: Sequence[str | None], before: Counts, after: Counts
) -> Html:
    """The share of each label in the table and in the release, chosen as in `distribution` by the table."""
    was, now = (counts / (float(counts.sum()) or 1.0) for counts in (before, after))
    shown, rest = _most(before)
    top = max(float(was.max(initial=0.0)), float(now.max(initial=0.0))) or 1.0
    rows = [Row(label(labels[i]), [was[i] / top, now[i] / top], [percent(was[i]), percent(now[i])]) for i in shown]
    if len(rest):
        sums = [percent(float(shares[rest].sum())) for shares in (was, now)]
        rows.append(Row(_more(before[rest]), [], sums, rest=True))
    return bars(title, note, ("table", "release"), rows)


def crowd_sizes(title: Content, note: Content, sizes: NDArray[np.integer], *, called: str = "crowds") -> Html:
    """How many crowds (or whatever they are called) have which size."""
    rows = []
    total = int(sizes.sum()) or 1
    bins = size_bins(sizes)
    found = [sizes[(sizes >= low) & (sizes <= high)] for low, high in bins]
    top = max((len(part) for part in found), default=1) or 1
    for (low, high), part in zip(bins, found, strict=True):
        rows.append(
            Row(
                count(low, "record", "records") if low == high else f"{low:,} to {high:,} records",
                [len(part) / top],
                [f"{len(part):,}", percent(int(part.sum()) / total)],
            )
        )
    return bars(title, note, (called, "of records"), rows)


def size_bins(sizes: NDArray[np.integer], most: int = 10) -> list[tuple[int, int]]:
    """Ranges of whole numbers that cover all sizes, each about as many times wider than the one before."""
    if not len(sizes):
        return []
    low, high = int(sizes.min()), int(sizes.max())
    steps = min(most, max(1, math.ceil(4 * math.log2((high + 1) / low))), high - low + 1)
    edges = sorted({low, *(_round(low * ((high + 1) / low) ** (i / steps)) for i in range(1, steps)), high + 1})
    edges = [edge for edge in edges if low <= edge <= high + 1]
    return [(a, b - 1) for a, b in pairwise(edges)]


def _round(value: float) -> int:
    """A whole number with two digits that are not zero."""
    unit: int = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return round(value / unit) * unit


def bars(title: Content, note: Content, units: Sequence[str], rows: Iterable[Row]) -> Html:
    """A table of bars.

    Args:
        title: what is shown.
        note: more about it, small.
        units: what the numbers beside the bars are.
        rows: the bars.
    """
    columns = tag("colgroup", tag("col", class_="name"), tag("col"), *(tag("col", class_="value") for _ in units))
    head = tag(
        "tr", tag("td"), tag("td"), (tag("th", unit, scope="col", class_="number") for unit in units), class_="units"
    )
    body = (
        tag(
            "tr",
            tag("th", row.name, scope="row", colspan="2" if row.rest else None),
            None if row.rest else tag("td", _bar(row.lengths), class_="two" if len(row.lengths) > 1 else None),
            (tag("td", text, class_="number") for text in row.numbers),
            class_="rest" if row.rest else None,
        )
        for row in rows
    )
    caption = tag("caption", title, tag("small", note) if note else None)
    return tag(
        "div", tag("table", caption, columns, tag("thead", head), tag("tbody", body), class_="bars"), class_="chart"
    )


def _bar(lengths: Sequence[float]) -> Html:
    height = 100 / len(lengths) - (6 if len(lengths) > 1 else 0)
    parts = [
        tag(
            "rect",
            class_="is" if i == len(lengths) - 1 else "was",
            y=f"{i * 100 / len(lengths) + (3 if len(lengths) > 1 else 0):.3g}%",
            # What is there at all can be seen.
            width=f"{max(100 * length, 0.5):.3g}%" if length > 0 else "0",
            height=f"{height:.3g}%",
            rx="2",
        )
        for i, length in enumerate(lengths)
    ]
    return tag("svg", parts, aria_hidden="true")


def _most(counts: Counts) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """The labels to be shown, and the others."""
    if len(counts) <= MOST:
        return np.arange(len(counts)), np.arange(0)
    order = np.argsort(-counts, kind="stable")
    shown = min(MOST, int(np.count_nonzero(counts)))
    return order[:shown], order[shown:]


def _more(counts: Counts) -> str:
    absent = int((counts == 0).sum())
    if absent == len(counts):
        return f"and {count(absent, 'more value that does', 'more values that do')} not occur"
    return f"and {count(len(counts), 'more value', 'more values')}" + (f", {absent:,} of them never" if absent else "")
