"""What can be estimated from a plain sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.histogram import Histogram
from incrowd.mechanisms.base import (
    Estimates,
)
from incrowd.mechanisms.sample.stated import SampleCertificate

Floats = NDArray[np.float64]


Ints = NDArray[np.int64]


CONFIDENCE = 0.95


SURPRISE = 0.5 * (1.0 - CONFIDENCE)
"""What is less likely than this is taken not to have happened: on either side."""


_MOST = 1 << 62  # no table has more records


_NUMERICS = 1e-9  # more than the relative error of a tail


@dataclass(frozen=True)
class SampleEstimate:
    """One cell of a cross-tabulation.

    Attributes:
        values: the labels of the columns asked for, None for missing.
        estimate: people of the population in this cell.
        standard_error: of that number.
        low: with `high` an interval that holds the true number with a probability of at least 95%, given that the cell
            occurs in the sample.
        high: see `low`.
    """

    values: tuple[str | None, ...]
    estimate: float
    standard_error: float
    low: int
    high: int


@dataclass(frozen=True)
class SampleEstimates(Estimates):
    """Estimates from a plain sample.

    Attributes:
        absent_at_most: a cell of more people than this would be absent from the sample with a probability of 2.5% at
            most.
    """

    absent_at_most: int


def estimate(certificate: SampleCertificate, table: Histogram, by: Sequence[str]) -> SampleEstimates:
    """A cross-tabulation by some columns."""
    rate = certificate.mechanism.rate
    groups = table.project(by)
    with np.errstate(over="ignore"):  # at a rate at which nobody is ever drawn
        people = np.minimum(groups.counts / rate, float(_MOST))
        errors = np.minimum(np.sqrt(groups.counts * (1.0 - rate)) / rate, float(_MOST))
    low, high = interval(groups.counts, rate)
    rows = [
        SampleEstimate(
            tuple(groups[name].labels[int(groups[name].codes[i])] for name in by),
            float(people[i]),
            float(errors[i]),
            int(low[i]),
            int(high[i]),
        )
        for i in range(len(groups))
    ]
    absent = absent_at_most(rate)
    notes = [
        (
            "Low and high: given that a cell occurs in the sample, its true number lies between them with a "
            f"probability of at least {CONFIDENCE:.0%}."
        ),
        (
            f"What more than {absent:,} people have would be absent from the sample with a probability of "
            f"{SURPRISE:.1%} at most."
        ),
    ]
    rounded = [name for name in by if name in certificate.mechanism.rounded]
    if rounded:
        notes.append(f"Numbers were rounded at random before sampling: {', '.join(rounded)}. Their sums have no bias.")
    return SampleEstimates(tuple(by), tuple(rows), tuple(notes), absent)


def absent_at_most(rate: float) -> int:
    """The largest n of which no record is sampled with a probability above 2.5%, (1−p)^n, rounded up."""
    return math.floor(min(float(_MOST), math.log(SURPRISE) / math.log1p(-rate) * (1.0 + _NUMERICS)))


def interval(sampled: Ints, rate: float) -> tuple[Ints, Ints]:
    """For each number of sampled records x ≥ 1 the least and the largest n that do not make it a surprise.

    P[X ≥ x | X ≥ 1] rises with n and P[X ≤ x] falls, so both ends are found by halving.
    """
    from scipy.special import betainc

    x = sampled.astype(np.int64)

    def enough(n: Ints) -> NDArray[np.bool_]:
        occurs = -np.expm1(n * math.log1p(-rate))
        likely = betainc(x, n - x + 1.0, rate) >= SURPRISE * (1.0 - _NUMERICS) * occurs
        return np.asarray(likely | (x == 1))

    def too_many(n: Ints) -> NDArray[np.bool_]:
        fewer = betainc(np.maximum(n - x, 0.5), x + 1.0, 1.0 - rate)
        return np.asarray(fewer <= SURPRISE * (1.0 - _NUMERICS)) & (n > x)

    with np.errstate(over="ignore"):
        reach = np.minimum(np.ceil((x + 10.0 + 10.0 * np.sqrt(x + 10.0)) / rate), float(_MOST)).astype(np.int64)
    high = _first(too_many, x, reach) - 1
    return np.minimum(_first(enough, x, reach), high), high


def _first(holds: Any, low: Ints, high: Ints) -> Ints:
    """For each cell the first number from `low` to `high` at which something holds that goes on holding."""
    low, high = low.copy(), high.copy()
    while bool((low < high).any()):
        middle = low + (high - low) // 2  # the sum may not fit 64 bits
        found = holds(middle)
        high = np.where(found, middle, high)
        low = np.where(found, low, middle + 1)
    return low
