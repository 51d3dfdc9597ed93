"""Estimates from crowds with noisy one-way tables beside them.

**Estimates.** The published crowds, scaled up; what is missing of the noisy total is spread as if columns were
independent; and the whole is fitted to the one-way tables of the columns asked for (raking).

**Intervals** assume none of that. A cell (a, b) has its own interval from the crowds. Besides, its row a has as many
people as the one-way table says, up to noise of a known law, less those of the row's other cells, for whom the crowds
have an interval, too; and so for b. Each of these ends may be wrong with a part of 2.5% on its side; all parts together
are 2.5%, so the narrowest of them holds with 95% (`theory.intervals.calibrated`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.histogram import Histogram
from incrowd.mechanisms.sampled_crowd.one_way import Floats, OneWay, independent, raked
from incrowd.theory.intervals import ANY, SURPRISE, calibrated, noisy_between, sampled_between

Ints = NDArray[np.int64]


def people_by(one_way: OneWay, published: Histogram, by: Sequence[str], beta: float) -> Floats:
    """The estimated table of some columns, an axis for each."""
    margins = [one_way.spread(name) for name in by]
    table = _by(published, by, published.counts) / beta
    missing = 1 - float(table.sum()) / max(one_way.total, 1)
    return raked(table + max(missing, 1e-4) * independent(max(one_way.total, 1.0), margins), margins)


def ends_by(one_way: OneWay, published: Histogram, by: Sequence[str], k: int, beta: float) -> tuple[Ints, Ints]:
    """An interval for each cell of the table of some columns."""
    shown = _by(published, by, published.counts)
    hidden = published.domain_size // shown.size - _by(published, by, np.ones(len(published), dtype=np.int64))

    def between(least: Ints, withheld: Ints, surprise: float) -> tuple[Ints, Ints]:
        most = np.minimum(least.astype(object) + withheld.astype(object) * (k - 1), ANY).astype(np.int64)
        low, high = sampled_between(least.ravel(), most.ravel(), beta, surprise=surprise)
        return low.reshape(least.shape), high.reshape(least.shape)

    ends = between(shown, hidden, SURPRISE / 2)
    part = SURPRISE / 2 / len(by)
    for axis, name in enumerate(by):
        others = tuple(i for i in range(len(by)) if i != axis)
        beyond = [cells.sum(axis=others, keepdims=True) - cells for cells in (shown, hidden)]
        nobody = np.zeros_like(shown)
        # Half of this column's part is for what the noise may be, half for the people in the row's other cells.
        rest = between(beyond[0], beyond[1], part / 2) if others else (nobody, nobody)
        reach = one_way.margin(part / 2 if others else part)
        counts = one_way.counts[name].reshape([-1 if i == axis else 1 for i in range(len(by))])
        ends = calibrated(ends, rest, noisy_between(counts, reach))
    return ends


def _by(table: Histogram, by: Sequence[str], weights: Ints) -> Ints:
    shape = tuple(len(table[name].labels) for name in by)
    found = np.zeros(shape, dtype=np.int64)
    np.add.at(found, tuple(table[name].codes.astype(np.int64) for name in by), weights)
    return found
