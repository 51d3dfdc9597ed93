"""Noisy one-way tables, as they are published beside crowds.

`one-way.json` has those of a tree, or of crowds that are calibrated to them (`totals`). `values.json` has those by
which a private choice of levels has weighed the columns: their noise is wide, but they show how a column is distributed
that the crowds hide.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError
from incrowd.core.signing import canonical
from incrowd.histogram import Labels
from incrowd.theory.intervals import NORMAL_95, SURPRISE
from incrowd.theory.views import LaplaceStep, NoiseStep

ONE_WAY, VALUES, FORMAT = "one-way.json", "values.json", "incrowd-one-way/1"


@dataclass(frozen=True, eq=False)
class OneWay:
    """How many records have each value, with discrete Gaussian or Laplace noise.

    Attributes:
        noise: that of each count.
        labels: by column, those that are counted.
        counts: by column, the noisy count of each.
        shown: by column, the label that a release shows each of them as; nothing where these are the labels themselves.
    """

    noise: NoiseStep | LaplaceStep
    labels: Mapping[str, Labels]
    counts: Mapping[str, NDArray[np.int64]]
    shown: Mapping[str, Labels] = field(default_factory=dict)

    @cached_property
    def total(self) -> int:
        """How many records there are: the tables' sums, those of fewer values counting more."""
        weights = np.array([1 / len(counts) for counts in self.counts.values()])
        sums = np.array([float(counts.sum()) for counts in self.counts.values()])
        return max(0, round(float(weights @ sums / weights.sum())))

    def spread(self, name: str) -> NDArray[np.float64]:
        """A column's counts, none below zero, that add up to the total: the nearest to the noisy ones (least squares).

        As much is taken off every count; so values that nobody has do not keep the noise that happened to be positive.
        """
        counts, total = self.counts[name].astype(np.float64), float(self.total)
        falling = np.sort(counts)[::-1]
        over = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
        above = np.flatnonzero(falling > over)
        if not len(above):  # there is nobody
            return np.zeros(len(counts))
        return np.asarray(np.maximum(counts - over[above[-1]], 0.0))

    def likely(self, name: str) -> NDArray[np.float64]:
        """The same, where noise may be as large as the counts.

        Of how far they are from being even, noise may account for a part, by its variance; by that part they are
        brought nearer to it.
        """
        counts, even = self.counts[name].astype(np.float64), self.total / len(self.counts[name])
        signal = max(0.0, float(((counts - even) ** 2).mean()) - self.noise.variance)
        return np.asarray(even + (self.spread(name) - even) * signal / (signal + self.noise.variance))

    def weights(self) -> dict[str, list[int]]:
        """What `spread` says of each column, in whole numbers."""
        return {name: np.rint(self.spread(name)).astype(np.int64).tolist() for name in self.counts}

    def margin(self, surprise: float = SURPRISE, together: int = 1) -> int:
        """A count is further than that from the true number with a probability of `surprise` at most, on either side.

        P[X > t] = e^{−a(t+1)}/(1 + e^{−a}) for Laplace noise. For a sum of n counts `together` it is Chernoff's bound,
        P[ΣX ≥ t] ≤ E[e^{sX}]^n·e^{−st} for every s below a. Gaussian noise is discrete, too: one more covers that.
        """
        if isinstance(self.noise, LaplaceStep):
            a = self.noise.decay
            if together > 1:
                s = a * np.arange(1, 1000) / 1000
                grown = 2 * np.log(-np.expm1(-a)) - np.log(-np.expm1(s - a)) - np.log(-np.expm1(-s - a))
                return math.ceil(float(((together * grown - math.log(surprise)) / s).min()) * (1 + 1e-9))
            return max(0, math.ceil((-math.log(surprise) - math.log1p(math.exp(-a))) / a * (1 + 1e-9)))
        if surprise != SURPRISE or together > 1:
            raise InternalError("the quantile of Gaussian noise is kept for 95% and one count alone")
        return math.ceil(NORMAL_95 * self.noise.deviation) + 1

    def to_bytes(self) -> bytes:
        """As it is published."""
        columns = [
            {
                "name": name,
                "values": list(self.labels[name]),
                "counts": self.counts[name].tolist(),
                **({"shown": list(self.shown[name])} if name in self.shown else {}),
            }
            for name in self.labels
        ]
        noise = (
            {"decay": self.noise.decay} if isinstance(self.noise, LaplaceStep) else {"variance": self.noise.variance}
        )
        return canonical({"format": FORMAT, **noise, "columns": columns})


def read_one_way(content: bytes) -> OneWay:
    """The tables that a file holds.

    Raises:
        ValueError: it holds something else.
    """
    document = json.loads(content)
    labels = {column["name"]: tuple(column["values"]) for column in document["columns"]}
    counts = {column["name"]: np.array(column["counts"], dtype=np.int64) for column in document["columns"]}
    shown = {column["name"]: tuple(column["shown"]) for column in document["columns"] if "shown" in column}
    noise = LaplaceStep(document["decay"]) if "decay" in document else NoiseStep(document["variance"])
    found = OneWay(noise, labels, counts, shown)
    sizes = [(len(labels[name]), len(counts[name]), len(shown.get(name, counts[name]))) for name in labels]
    if any(len(set(one)) > 1 for one in sizes) or found.to_bytes() != content:
        raise ValueError("these are not one-way tables")
    return found


Floats = NDArray[np.float64]

_ROUNDS = 25


def raked(table: Floats, margins: Sequence[Floats]) -> Floats:
    """A table fitted to the counts of each of its columns, which all have the same sum (raking)."""
    table = table.copy()
    for _ in range(_ROUNDS if table.ndim > 1 else 1):
        for axis, margin in enumerate(margins):
            others = tuple(i for i in range(table.ndim) if i != axis)
            sums = table.sum(axis=others)
            factor = np.divide(margin, sums, out=np.zeros_like(sums), where=sums > 0)
            table *= factor.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
    return table


def independent(total: float, margins: Sequence[Floats]) -> Floats:
    """So many records, if columns with these counts had nothing to do with each other."""
    table = np.array(total)
    for margin in margins:
        table = np.multiply.outer(table, margin / max(float(margin.sum()), 1e-9))
    return np.asarray(table)
