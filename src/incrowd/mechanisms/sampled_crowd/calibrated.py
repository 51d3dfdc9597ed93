"""Estimates from crowds with noisy one-way tables beside them.

Two kinds of tables may stand there. Those of `totals` count each column as the crowds show it. Those by which levels
were chosen count its own values, with wide noise.

**Estimates.** The published crowds, scaled up. With `totals`, what is missing of the noisy total is spread as if
columns were independent, and the whole is fitted to the tables of the columns asked for (raking). A column of which
crowds show nothing is spread over its values by its own table (`OneWay.likely`), as if it had nothing to do with the
others.

**Intervals** assume none of that. A cell (a, b) has its own interval from the crowds: of a hidden column's value b, it
may be any part of what they have with a. Besides, its row a has as many people as the one-way table says (or several
of its counts together), up to noise of a known law, less those of the row's other cells, for whom the crowds have an
interval, too; and so for b. A known total is one more such row, of all cells. Each of these ends may be wrong with a
part of 2.5% on its side; all parts together are 2.5%, so the narrowest of them holds with 95%
(`theory.intervals.calibrated`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError
from incrowd.histogram import Histogram, Labels
from incrowd.mechanisms.sampled_crowd.one_way import Floats, OneWay, independent, raked
from incrowd.theory.intervals import ANY, SURPRISE, calibrated, noisy_between, sampled_between

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CrowdAxis:
    """A column of a cross-tabulation.

    Attributes:
        name: of the column.
        labels: what it is counted by: as crowds show it or, if these show nothing of it, its own values.
        one_way: noisy counts of it; None if there are none.
        of: for each of these counts, which label it belongs to.
        hidden: whether crowds show nothing of it.
        picked: whether the noisy counts had a part in what labels there are.
    """

    name: str
    labels: Labels
    one_way: OneWay | None
    of: Ints
    hidden: bool
    picked: bool = False

    @classmethod
    def of_column(cls, shown: Labels, name: str, totals: OneWay | None, values: OneWay | None) -> CrowdAxis:
        """A column that the table shows so."""
        own = () if values is None else values.labels[name]
        if len(shown) == 1 < len(own):
            return cls(name, own, values, np.arange(len(own)), hidden=True, picked=True)
        if totals is not None or values is None:
            return cls(name, shown, totals, np.arange(len(shown)), hidden=False)
        place = {label: code for code, label in enumerate(shown)}
        of = np.array([place[label] for label in values.shown.get(name, own)])
        return cls(name, shown, values, of, hidden=False, picked=True)

    def along(self, place: int, axes: int) -> tuple[int, ...]:
        """The shape of its counts among so many axes."""
        return tuple(len(self.labels) if i == place else 1 for i in range(axes))

    @property
    def deviation(self) -> float | None:
        """The standard deviation of a noisy count."""
        return None if self.one_way is None else self.one_way.noise.deviation

    def between(self, surprise: float) -> tuple[Ints, Ints]:
        """An interval for how many people have each label, from the noisy counts, which are there.

        Where these had a part in the choice of labels, a value's label could have been another of those that nest
        around it. These have different numbers n of counts, so shares of 1/n(n + 1) are enough for all of them.
        """
        if self.one_way is None:
            raise InternalError("a column without noisy counts was asked for them")
        counts = np.zeros(len(self.labels), dtype=np.int64)
        np.add.at(counts, self.of, self.one_way.counts[self.name])
        together = np.bincount(self.of, minlength=len(self.labels)).tolist()
        parts = {n: surprise / (n * (n + 1)) if self.picked else surprise for n in set(together)}
        reach = {n: self.one_way.margin(part, n) for n, part in parts.items()}
        return noisy_between(counts, np.array([reach[n] for n in together], dtype=np.int64))


def people_by(one_way: OneWay, published: Histogram, by: Sequence[str], beta: float) -> Floats:
    """The estimated table of some columns, as crowds show them, an axis for each."""
    margins = [one_way.spread(name) for name in by]
    table = summed_by(published, by, published.counts) / beta
    missing = 1 - float(table.sum()) / max(one_way.total, 1)
    return raked(table + max(missing, 1e-4) * independent(max(one_way.total, 1.0), margins), margins)


def people_along(axes: Sequence[CrowdAxis], totals: OneWay | None, published: Histogram, beta: float) -> Floats:
    """The estimated table of these columns."""
    by = [axis.name for axis in axes]
    if len(axes) == 1 and axes[0].hidden and axes[0].one_way is not None:
        return axes[0].one_way.likely(by[0])
    if totals is not None:
        table = people_by(totals, published, by, beta)
    else:
        table = summed_by(published, by, published.counts) / beta
    for place, axis in enumerate(axes):
        if axis.hidden and axis.one_way is not None:
            likely = axis.one_way.likely(axis.name)
            table = table * (likely / max(float(likely.sum()), 1e-9)).reshape(axis.along(place, len(axes)))
    return table


def crowds_along(axes: Sequence[CrowdAxis], published: Histogram) -> Ints:
    """How many crowds were published with what a cell has of the columns that they show."""
    crowds = summed_by(published, [axis.name for axis in axes], np.ones(len(published), dtype=np.int64))
    return np.broadcast_to(crowds, [len(axis.labels) for axis in axes])


def ends_along(
    axes: Sequence[CrowdAxis], published: Histogram, k: int, beta: float, total: tuple[int, int] | None = None
) -> tuple[Ints, Ints]:
    """An interval for each cell of the table of these columns."""
    shape, by = tuple(len(axis.labels) for axis in axes), [axis.name for axis in axes]
    if len(axes) == 1 and axes[0].hidden and total is None:  # of which the crowds tell nothing
        return axes[0].between(SURPRISE)
    shown = summed_by(published, by, published.counts)
    hidden = published.domain_size // shown.size - summed_by(published, by, np.ones(len(published), dtype=np.int64))
    most = np.minimum(shown.astype(object) + hidden.astype(object) * (k - 1), ANY).astype(np.int64)
    # What crowds have of a cell may all have the value of a hidden column that is looked at, or none of it.
    least = np.broadcast_to(np.zeros_like(shown) if any(axis.hidden for axis in axes) else shown, shape)
    most = np.broadcast_to(most, shape)

    def between(surprise: float, least: Ints, most: Ints) -> tuple[Ints, Ints]:
        low, high = sampled_between(least.ravel(), most.ravel(), beta, surprise=surprise)
        return low.reshape(shape), high.reshape(shape)

    def of_others(surprise: float, along: tuple[int, ...]) -> tuple[Ints, Ints]:
        """Of the other cells that have the same in all but these axes."""
        sums = (cells.astype(object).sum(axis=along, keepdims=True) - cells for cells in (least, most))
        return between(surprise, *(np.minimum(cells, ANY).astype(np.int64) for cells in sums))

    ends, everywhere = between(SURPRISE / 2, least, most), tuple(range(len(axes)))
    counted = [(place, axis) for place, axis in enumerate(axes) if axis.one_way is not None]
    part = SURPRISE / 2 / max(1, len(counted) + (total is not None))
    if total is not None:
        ends = calibrated(ends, of_others(part, everywhere), total)
    nobody = np.zeros(shape, dtype=np.int64)
    for place, axis in counted:
        others = everywhere[:place] + everywhere[place + 1 :]
        # Half of this column's part is for what the noise may be, half for the people in the row's other cells.
        rest = of_others(part / 2, others) if others else (nobody, nobody)
        low, high = (end.reshape(axis.along(place, len(axes))) for end in axis.between(part / 2 if others else part))
        ends = calibrated(ends, rest, (low, high))
    return ends


def summed_by(table: Histogram, by: Sequence[str], weights: NDArray[Any]) -> NDArray[Any]:
    """What a table's cells weigh, by some of its columns."""
    shape = tuple(len(table[name].labels) for name in by)
    found = np.zeros(shape, dtype=weights.dtype)
    np.add.at(found, tuple(table[name].codes.astype(np.int64) for name in by), weights)
    return found
