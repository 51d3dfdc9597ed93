"""Noisy one-way tables, as they are published beside a tree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.core.signing import canonical
from incrowd.histogram import Labels

FORMAT = "incrowd-one-way/1"


@dataclass(frozen=True, eq=False)
class OneWay:
    """How many records have each value, with discrete Gaussian noise.

    Attributes:
        variance: of the noise in each count.
        labels: by column, those of its base codes.
        counts: by column, the noisy count of each.
    """

    variance: int
    labels: Mapping[str, Labels]
    counts: Mapping[str, NDArray[np.int64]]

    @cached_property
    def total(self) -> int:
        """How many records there are: the tables' sums, those of fewer values counting more."""
        weights = np.array([1 / len(counts) for counts in self.counts.values()])
        sums = np.array([float(counts.sum()) for counts in self.counts.values()])
        return max(0, round(float(weights @ sums / weights.sum())))

    def spread(self, name: str) -> NDArray[np.float64]:
        """A column's counts, nothing below zero, that add up to the total."""
        counts = np.maximum(self.counts[name], 0).astype(np.float64)
        whole = counts.sum()
        return np.asarray(
            counts * (self.total / whole) if whole > 0 else np.full(len(counts), self.total / len(counts))
        )

    def to_bytes(self) -> bytes:
        """As it is published."""
        columns = [
            {"name": name, "values": list(self.labels[name]), "counts": self.counts[name].tolist()}
            for name in self.labels
        ]
        return canonical({"format": FORMAT, "variance": self.variance, "columns": columns})


def read_one_way(content: bytes) -> OneWay:
    """The tables that a file holds.

    Raises:
        ValueError: it holds something else.
    """
    document = json.loads(content)
    labels = {column["name"]: tuple(column["values"]) for column in document["columns"]}
    counts = {column["name"]: np.array(column["counts"], dtype=np.int64) for column in document["columns"]}
    found = OneWay(document["variance"], labels, counts)
    if any(len(labels[name]) != len(counts[name]) for name in labels) or found.to_bytes() != content:
        raise ValueError("these are not one-way tables")
    return found
