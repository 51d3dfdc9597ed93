"""The counts that are asked for: of every column and of every pair of columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import ParameterError
from incrowd.histogram import Histogram
from incrowd.recoding.fidelity import Names, dense
from incrowd.recoding.utility import SANITY

Floats = NDArray[np.float64]
Marginals = Mapping[Names, Floats]
"""For some columns an array with an axis for each, of all their values."""

MOST_CELLS = 1 << 22


@dataclass(frozen=True)
class Errors:
    """Errors of estimated counts, averaged over marginals: see `Figure`."""

    absolute: float
    per_cell: float
    relative: float


@dataclass(frozen=True, eq=False)
class Workload:
    """The true counts.

    Attributes:
        truth: by columns.
        records: in the table.
    """

    truth: Marginals
    records: int

    @classmethod
    def of(cls, table: Histogram) -> Workload:
        """All counts of one or two columns of a table, on the values that there could be."""
        names = [*((n,) for n in table.names), *combinations(table.names, 2)]
        cells = sum(math.prod(len(table[n].labels) for n in chosen) for chosen in names)
        if cells > MOST_CELLS:
            raise ParameterError(
                f"The counts of one and two columns have {cells:,} cells together, more than {MOST_CELLS:,}.",
                code="domain-large",
                remedy="Show columns with many values at a coarser level.",
            )
        return cls({chosen: dense(table, chosen) for chosen in names}, table.total)

    @property
    def cells(self) -> int:
        """How many counts there are in all."""
        return sum(array.size for array in self.truth.values())

    def errors(self, estimates: Marginals) -> Errors:
        """How far estimates are from the truth; those below 0 are taken as 0."""
        absolute, per_cell, relative = [], [], []
        for names, truth in self.truth.items():
            off = np.abs(np.maximum(estimates[names], 0.0) - truth)
            absolute.append(float(off.sum()) / self.records)
            per_cell.append(absolute[-1] / truth.size)
            there = truth > 0
            relative.append(float((off[there] / np.maximum(truth[there], SANITY * self.records)).mean()))
        return Errors(*(math.fsum(values) / len(values) for values in (absolute, per_cell, relative)))
