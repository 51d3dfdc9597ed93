"""Rows that follow a model by pairs and triples of columns that lie in none of its tables.

Rows are drawn column by column, each given the columns beside it in a table of the tree. Which of the rows that agree
in those get which code is left open: so by all other columns, counts would scatter about the model like those of a
sample. Here two such rows swap their codes wherever this brings the counts nearer to the model, over and over. Counts
by the columns of the table stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_THINNED = 1 << 12
"""Of tables with more cells than this, few swaps at a time concern the same cell."""


@dataclass(frozen=True, eq=False)
class Target:
    """A table that rows are to follow.

    Attributes:
        place: for each row, the first of the cells that it could lie in, one for each code of the column.
        surplus: for each cell, how many rows more lie there than should.
    """

    place: Array
    surplus: Array

    def gain(self, i: Array, j: Array, mine: Array, yours: Array) -> Array:
        """Half of what the sum of squares of the surplus would lose if rows i and j swapped their codes."""
        here, there, surplus = self.place.take(i), self.place.take(j), self.surplus
        lost: Array = surplus.take(here + mine)
        lost += surplus.take(there + yours)
        lost -= surplus.take(here + yours)
        lost -= surplus.take(there + mine)
        lost -= 2
        lost[here == there] = 0.0
        return lost

    def room(self, i: Array, j: Array, mine: Array, yours: Array) -> Array:
        """The part of these swaps that may be made at once, for no cell to be overfilled instead of filled."""
        there, gone = self._moves(i, j, mine, yours)
        moved = np.bincount(there, minlength=self.surplus.size) - np.bincount(gone, minlength=self.surplus.size)
        size = np.maximum(np.abs(moved), 1)
        mended = np.minimum(np.maximum(np.abs(self.surplus), 0.5) / size, 1)
        part = np.where(moved * self.surplus < 0, mended, 1 / (1 + np.abs(moved)))
        both = np.minimum(part[there], part[gone])
        return np.asarray(np.minimum(both[: len(i)], both[len(i) :]))

    def swap(self, i: Array, j: Array, mine: Array, yours: Array) -> None:
        """Count rows as they are after these swaps."""
        there, gone = self._moves(i, j, mine, yours)
        np.add.at(self.surplus, there, 1.0)
        np.subtract.at(self.surplus, gone, 1.0)

    def _moves(self, i: Array, j: Array, mine: Array, yours: Array) -> tuple[Array, Array]:
        """The cells that swaps put a row into, and those that they take one from."""
        here, there = self.place.take(i), self.place.take(j)
        return np.concatenate([here + yours, there + mine]), np.concatenate([here + mine, there + yours])


def swap(codes: Array, group: Array, targets: Sequence[Target], passes: int, rng: np.random.Generator) -> None:
    """Swap codes between rows of one group, for counts to follow the targets: in each pass, between random pairs."""
    if passes:
        labels, group = np.unique(group, return_inverse=True)
        if len(labels) <= 1 << 16:
            group = group.astype(np.uint16)  # which NumPy sorts in one pass
    for _ in range(passes):
        order = rng.permutation(len(codes))
        order = order[np.argsort(group[order], kind="stable")]
        i, j = order[: len(order) // 2 * 2].reshape(-1, 2).T
        fit = (group[i] == group[j]) & (codes[i] != codes[j])
        i, j = i[fit], j[fit]
        mine, yours = codes[i], codes[j]
        gain = np.zeros(len(i))
        for target in targets:
            gain += target.gain(i, j, mine, yours)
        good = gain > 0
        i, j, mine, yours = i[good], j[good], mine[good], yours[good]
        part = np.ones(len(i))
        for target in targets:
            if target.surplus.size <= _THINNED:
                part = np.minimum(part, target.room(i, j, mine, yours))
        taken = rng.random(len(i)) < part
        if not taken.any():
            break
        i, j, mine, yours = i[taken], j[taken], mine[taken], yours[taken]
        codes[i], codes[j] = yours, mine
        for target in targets:
            target.swap(i, j, mine, yours)
