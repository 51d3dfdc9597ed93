"""What a column of a table holds, as bars: for the publisher, while a policy is being written."""

from __future__ import annotations

import math
from itertools import pairwise

from incrowd.core.numbers import count, number, percent
from incrowd.reports.bars import MOST, Row, bars
from incrowd.reports.page import Html, label
from incrowd.sources.profile import COMMON, ColumnProfile

_BINS = 14
_SHAPE = 16  # bars of the small picture


def column_bars(column: ColumnProfile) -> Html:
    """How often its values occur; numbers in ranges, and texts that few records share only as a sum."""
    parts = [count(column.distinct, "value", "values") if column.counted else f"about {column.distinct:,} values"]
    if column.days is not None:
        parts.append(f"from {column.days[0]} to {column.days[1]}")
    many = column.distinct > MOST and bool(column.numbers)
    found = _named_ranges(column) if many else [(label(text), size) for text, size in column.common[:MOST]]
    shown = sum(size for _, size in found)
    if column.present > shown:
        rest = "rarer values" if len(column.common) <= MOST else "other values"
        found.append((Html(f"<i>{rest}</i>"), column.present - shown))
    if column.missing:
        found.append((label(None), column.missing))
    top = max((size for _, size in found), default=1) or 1
    records = column.records or 1
    rows = [Row(name, [size / top], [f"{size:,}", percent(size / records)]) for name, size in found]
    note = ", ".join(parts)
    if not many and column.common and column.present > shown:
        note += f"; those that fewer than {COMMON} records share are not listed"
    return bars(label(column.name), note, ("records", "share"), rows)


def column_shape(column: ColumnProfile) -> Html:
    """The shape of what a column holds: small, and without a word."""
    sizes = [size for _, _, size in ranges(column)] if column.numbers and column.distinct > MOST else []
    sizes = sizes or sorted((size for _, size in column.common), reverse=True)[:_SHAPE]
    top = max(sizes, default=0)
    if not top:
        return Html("")
    width = 96 / max(len(sizes), 6)
    parts = [
        f'<rect x="{i * width:.1f}" y="{28 - max(1, 28 * size / top):.1f}" width="{width - 1:.1f}" '
        f'height="{max(1, 28 * size / top):.1f}"/>'
        for i, size in enumerate(sizes)
    ]
    return Html(f'<svg class="shape" viewBox="0 0 96 28" aria-hidden="true">{"".join(parts)}</svg>')


def ranges(column: ColumnProfile) -> list[tuple[float, float, int]]:
    """The numbers in up to `_BINS` ranges of a round width: from, to, and how many records."""
    values = [value for value, _ in column.numbers]
    low, high = min(values), max(values)
    rough = (high - low) / (_BINS - 2) or 1.0
    magnitude = 10.0 ** math.floor(math.log10(rough))
    width = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= rough)
    if all(value == int(value) for value in values):
        width = max(1.0, float(math.ceil(width)))
    first = math.floor(low / width)
    edges = [(first + i) * width for i in range(math.floor(high / width) - first + 2)]
    sizes = [0] * (len(edges) - 1)
    for value, size in column.numbers:
        sizes[min(len(sizes) - 1, int((value - edges[0]) // width))] += size
    return [(a, b, size) for (a, b), size in zip(pairwise(edges), sizes, strict=True)]


def _named_ranges(column: ColumnProfile) -> list[tuple[Html, int]]:
    last = 1 if all(value == int(value) for value, _ in column.numbers) else 0  # whole numbers: 0 to 9, 10 to 19

    def name(a: float, b: float) -> str:
        return number(a) if b - a == 1 else f"{number(a)} to {number(b - last)}"

    return [(label(name(a, b)), size) for a, b, size in ranges(column)]
