"""Making estimates of overlapping tables agree: what two of them say about the columns they share is averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from incrowd.mechanisms.views.junction import onto, spread
from incrowd.mechanisms.views.measurements import Measurement

Array = np.ndarray[Any, Any]


def in_base_order(m: Measurement) -> Measurement:
    """The same with every axis that has as many codes as its column has base codes in the order of the base codes."""
    for axis, (recode, length) in enumerate(zip(m.recodes, m.shape, strict=True)):
        if len(recode) == length and not np.array_equal(recode, np.arange(length)):
            m = replace(
                m,
                recodes=(*m.recodes[:axis], np.arange(length), *m.recodes[axis + 1 :]),
                estimate=m.estimate.take(recode, axis),
                variance=m.variance.take(recode, axis),
                low=m.low.take(recode, axis),
                high=m.high.take(recode, axis),
                published=m.published.take(recode, axis),
            )
    return m


def reconciled(sizes: Sequence[int], measurements: Sequence[Measurement], total: float) -> list[Measurement]:
    """The measurements with the same total and the same sums by every set of columns that two of them share.

    Sums are averaged by the inverse of their variances, for no column, then single columns, then pairs and so on: what
    a set of columns needs does not disturb the smaller ones where a table's cells have one variance. Tables in
    which a cell is withheld or that are coarser than the columns' own values have no sums to compare and stay as they
    are.
    """
    found = [in_base_order(m) for m in measurements]
    whole = [i for i, m in enumerate(found) if m.published.all() and m.shape == tuple(sizes[c] for c in m.columns)]
    shared = {
        part
        for i in whole
        for length in range(len(found[i].columns) + 1)
        for part in combinations(found[i].columns, length)
    }
    for part in sorted(shared, key=lambda columns: (len(columns), columns)):
        having = [i for i in whole if set(part) <= set(found[i].columns)]
        sums = {i: _sums(found[i], part) for i in having}
        if part and len(having) < 2:
            continue
        weight = sum(1 / variance for _, variance in sums.values())
        mean = sum(estimate / variance for estimate, variance in sums.values()) / weight if part else np.array(total)
        for i in having:
            m, (estimate, variance) = found[i], sums[i]
            moved = spread((mean - estimate) / variance, part, m.columns) * m.variance
            found[i] = replace(m, estimate=m.estimate + moved)
    return found


def _sums(m: Measurement, part: Sequence[int]) -> tuple[Array, Array]:
    return onto(m.estimate, m.columns, part), onto(m.variance, m.columns, part)
