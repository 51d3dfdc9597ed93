"""What a tree's release says on the columns' own values: boxes spread by the one-way tables, and raked to them.

Within a box, records are spread over the values of its sets in proportion to the one-way tables, column by column; the
table that results is then fitted to the one-way tables (raking), of which each holds more records than any box. Where
the mapping was given, its boxes are spread by the one-way tables of the release that it comes from, which it carries as
weights, and nothing is raked: that was another table. Without any, boxes are spread evenly. All of it uses what is
published, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.histogram import Histogram
from incrowd.mechanisms.sampled_crowd.one_way import OneWay, independent, raked
from incrowd.recoding.mapping import Tree, TreeColumn

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spreading:
    """A release under a tree, ready to be spread.

    Attributes:
        tree: its mapping.
        one_way: its one-way tables, if it has them.
        shown: how many records are published in each box.
        k: the least crowd that is shown.
        beta: the sampling rate.
    """

    tree: Tree
    one_way: OneWay | None
    shown: NDArray[np.int64]
    k: int
    beta: float

    @classmethod
    def of(cls, tree: Tree, one_way: OneWay | None, table: Histogram, k: int, beta: float) -> Spreading:
        """From a published table."""
        shown = np.zeros(len(tree.boxes), dtype=np.int64)
        shown[tree.places(table)] = table.counts
        return cls(tree, one_way, shown, k, beta)

    @cached_property
    def people(self) -> Floats:
        """For each leaf, how many people it stands for; of one that is not published, its noisy size as far as it can
        be, and of the boxes that are split, nothing."""
        found = self.shown / self.beta
        for n in self.tree.leaves:
            size = self.tree.boxes[n].size
            if not self.shown[n] and size is not None:
                found[n] = min(size, self.k / self.beta) / 2
        return np.asarray(found, dtype=np.float64)

    def places(self, names: Sequence[str]) -> list[int]:
        """Where these columns are in the tree."""
        order = [c.name for c in self.tree.columns]
        return [order.index(name) for name in names]

    def shares(self, place: int) -> Floats:
        """By set and base code, the share of a set's records that has the code."""
        column = self.tree.columns[place]
        mass = self._mass(column)
        found = np.zeros((len(column.sets), len(column.base)))
        for number, values in enumerate(column.sets):
            within = mass[list(values)]
            found[number, list(values)] = within / within.sum() if within.sum() > 0 else 1 / len(values)
        return found

    def _mass(self, column: TreeColumn) -> Floats:
        if self.one_way is not None:
            return self.one_way.spread(column.name)
        return np.array(column.weights or [1] * len(column.base), dtype=np.float64)

    def spread(self, names: Sequence[str]) -> Floats:
        """The table of some columns, one axis for each, by spreading alone."""
        places = self.places(names)
        leaves = [n for n in self.tree.leaves if self.people[n] > 0]
        sizes = [len(self.tree.columns[p].sets) for p in places]
        # First by sets, of which boxes share many, and then axis by axis.
        table = np.zeros(sizes)
        at = tuple(np.array([self.tree.boxes[n].sets[p] for n in leaves], dtype=np.int64) for p in places)
        np.add.at(table, at, self.people[leaves])
        for axis, p in enumerate(places):
            table = np.moveaxis(np.tensordot(table, self.shares(p), axes=([axis], [0])), -1, axis)
        return table

    def table(self, names: Sequence[str]) -> Floats:
        """The table of some columns, spread and raked to the one-way tables."""
        table = self.spread(names)
        if self.one_way is None:
            return table
        margins = [self.one_way.spread(name) for name in names]
        # A little everywhere, so that no margin meets an empty row.
        return raked(table + 1e-4 * independent(max(self.one_way.total, 1.0), margins), margins)
