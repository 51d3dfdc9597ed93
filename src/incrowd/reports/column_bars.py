"""What a column of a table holds, as bars: for the publisher, while a policy is being written."""

from __future__ import annotations

import math
from itertools import pairwise

from incrowd.core.numbers import count, number, percent
from incrowd.reports.bars import MOST, Row, bars
from incrowd.reports.page import Html, label
from incrowd.sources.profile import COMMON, ColumnProfile

_BINS = 14


def column_bars(column: ColumnProfile) -> Html:
    """How often its values occur; numbers in ranges, and texts that few records share only as a sum."""
    parts = [count(column.distinct, "value", "values") if column.counted else f"about {column.distinct:,} values"]
    if column.days is not None:
        parts.append(f"from {column.days[0]} to {column.days[1]}")
    many = column.distinct > MOST and bool(column.numbers)
    found = _ranges(column) if many else [(label(text), size) for text, size in column.common[:MOST]]
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


def _ranges(column: ColumnProfile) -> list[tuple[Html, int]]:
    """The numbers in up to `_BINS` ranges of a round width."""
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
    return [
        (label(f"{number(a)} to {number(b)}" if width > 1 or width != int(width) else number(a)), size)
        for (a, b), size in zip(pairwise(edges), sizes, strict=True)
    ]
