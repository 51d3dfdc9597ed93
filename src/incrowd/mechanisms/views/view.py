"""One published view: its counts, what they say about the population, and its file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.domain import Recode
from incrowd.mechanisms.views.measurements import Measurement
from incrowd.theory.views import CrowdStep, LaplaceStep, NoiseStep, Step

Integers = NDArray[np.int64]

COUNT, DEVIATION = "count", "standard_deviation"
LARGEST_COUNT = 1 << 53


@dataclass(frozen=True, eq=False)
class View:
    """Counts of sampled people by crowds, or noisy counts of all people, by a few columns.

    Attributes:
        columns: their names, in the table's order.
        places: their places in the table.
        levels: the level at which each is shown.
        recodes: for each column, from the codes of the table to those of the view, with their labels.
        step: how it was drawn.
        counts: one axis for each column; in a view by crowds a zero is a cell that was withheld.
    """

    columns: tuple[str, ...]
    places: tuple[int, ...]
    levels: tuple[int, ...]
    recodes: tuple[Recode, ...]
    step: Step
    counts: Integers

    @cached_property
    def measurement(self) -> Measurement:
        """What it says about the population."""
        codes = tuple(np.asarray(recode.to, dtype=np.int64) for recode in self.recodes)
        counts = self.counts.astype(np.float64)
        everywhere = np.ones(counts.shape, dtype=np.bool_)
        if isinstance(self.step, CrowdStep):
            beta, shown, most = self.step.beta, self.counts > 0, np.full(counts.shape, self.step.threshold)
            estimate = counts / beta
            variance = np.where(shown, estimate, most) * (1 - beta) / beta
            low, high = np.where(shown, -np.inf, 0.0), np.where(shown, np.inf, most)
            return Measurement(self.places, codes, estimate, variance, low, high, shown)
        infinite = np.full(counts.shape, np.inf)
        variance = np.full(counts.shape, float(self.step.variance))
        return Measurement(self.places, codes, counts, variance, -infinite, infinite, everywhere)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the noise; None for crowds."""
        return None if isinstance(self.step, CrowdStep) else self.step.deviation

    def to_bytes(self) -> bytes:
        """A Parquet file: a line for each cell, or for each that is shown; its columns and its count."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        shown = np.flatnonzero(self.counts.ravel() > 0) if self.deviation is None else np.arange(self.counts.size)
        codes = np.unravel_index(shown, self.counts.shape)
        data: dict[str, Any] = {}
        for name, recode, of in zip(self.columns, self.recodes, codes, strict=True):
            data[name] = pa.array([recode.labels[i] for i in of], pa.string())
        count, deviation = field_names(self.columns)
        data[count] = pa.array(self.counts.ravel()[shown], pa.int64())
        if self.deviation is not None:
            data[deviation] = pa.array(np.full(len(shown), self.deviation), pa.float64())
        sink = io.BytesIO()
        pq.write_table(pa.table(data), sink, compression="zstd", store_schema=False, write_statistics=False)
        return sink.getvalue()

    @classmethod
    def from_bytes(
        cls,
        content: bytes,
        columns: Sequence[str],
        places: Sequence[int],
        levels: Sequence[int],
        recodes: Sequence[Recode],
        step: Step,
    ) -> View:
        """The view that a file holds, which may have been made by anyone.

        Raises:
            ValueError: it is not the file of such a view.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(io.BytesIO(content))
        except pa.ArrowException:
            raise ValueError("a view cannot be read") from None
        shape = tuple(len(recode.labels) for recode in recodes)
        count, deviation = field_names(columns)
        fields = [*columns, count] + ([] if isinstance(step, CrowdStep) else [deviation])
        if table.column_names != fields or table.num_rows > int(np.prod(shape, dtype=object)):
            raise ValueError("a view has other columns or rows")
        codes = []
        for name, recode in zip(columns, recodes, strict=True):
            place = {label: code for code, label in enumerate(recode.labels)}
            codes.append(np.array([place[value] for value in table[name].to_pylist()], dtype=np.int64))
        cells = np.ravel_multi_index(codes, shape) if table.num_rows else np.zeros(0, dtype=np.int64)
        if np.any(np.diff(cells) <= 0):
            raise ValueError("the cells of a view come in another order")
        values = table[count].to_numpy()
        if values.dtype != np.int64 or np.any(np.abs(values) > LARGEST_COUNT):
            raise ValueError("the counts of a view are not whole numbers")
        counts = np.zeros(shape, dtype=np.int64)
        counts.ravel()[cells] = values
        view = cls(tuple(columns), tuple(places), tuple(levels), tuple(recodes), step, counts)
        if view.to_bytes() != content and not view._says_the_same(table):
            raise ValueError("a view says something else")
        return view

    def _says_the_same(self, table: Any) -> bool:
        """Whether a file of another version of Arrow holds the same."""
        import pyarrow.parquet as pq

        return bool(pq.read_table(io.BytesIO(self.to_bytes())).equals(table))


def field_names(columns: Sequence[str]) -> tuple[str, str]:
    """What the columns of counts and of their standard deviations are called: not as one of the view's columns."""
    count, deviation = COUNT, DEVIATION
    while count in columns:
        count += "_"
    while deviation in columns:
        deviation += "_"
    return count, deviation


def file_names(views: Sequence[Sequence[str]]) -> list[str]:
    """What the files of views are called: by their columns, or by numbers where a name would not do."""
    plain = all(name.replace("_", "").replace("-", "").isalnum() and name.isascii() for view in views for name in view)
    if plain and all(len(".".join(view)) <= 120 for view in views):
        return [f"views/{'.'.join(view)}.parquet" for view in views]
    return [f"views/{number:03d}.parquet" for number in range(1, len(views) + 1)]


__all__ = ["LaplaceStep", "NoiseStep", "View", "field_names", "file_names"]
