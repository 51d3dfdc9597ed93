"""What a published view says about the population, in the form in which views are combined.

Everything here is computed from what is published, so it is post-processing: plain floats, and no promise rests on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Measurement:
    """Estimates of one cross-tabulation of the population.

    Attributes:
        columns: the view's columns, as places in the table, ascending.
        recodes: for each of these columns, the code in the view of each base code: a view may be coarser.
        estimate: people in each cell, one axis for each column.
        variance: of each estimate.
        low: bounds on the number of people of each cell; a cell that was withheld lies between 0 and k/β, about.
        high: see `low`.
        published: whether the cell was published; where it was not, only the bounds say something.
    """

    columns: tuple[int, ...]
    recodes: tuple[Codes, ...]
    estimate: Floats
    variance: Floats
    low: Floats
    high: Floats
    published: NDArray[np.bool_]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many codes each column has in the view."""
        return self.estimate.shape
