"""What can be estimated from a plain sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.numbers import percent
from incrowd.histogram import Histogram
from incrowd.mechanisms.estimates import NO_OPTIONS, EstimatedCell, EstimateOptions, Estimates, GroupMean, GroupSum
from incrowd.mechanisms.grid import MIDDLES, Grid, NumberSpread, sampled_mean
from incrowd.mechanisms.sample.certificate import SampleCertificate
from incrowd.theory.intervals import (
    ANY,
    CONFIDENCE,
    OWN,
    REST,
    SURPRISE,
    absent_at_most,
    calibrated,
    sampled_between,
    sum_between,
)

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, repr=False)
class SampleEstimates(Estimates):
    """Estimates from a plain sample.

    Attributes:
        absent_at_most: a cell of more people than this would be absent from the sample with a probability of 2.5% at
            most.
    """

    absent_at_most: int


def estimate(
    certificate: SampleCertificate,
    table: Histogram,
    by: Sequence[str],
    options: EstimateOptions = NO_OPTIONS,
) -> SampleEstimates:
    """A cross-tabulation by some columns.

    Args:
        certificate: of the release.
        table: the sample.
        by: the columns; they are there.
        options: a column whose mean or sum is wanted in each group, and the number of people of all cells, if it is
            known.
    """
    mean, total = options.mean, options.total
    rate = certificate.mechanism.rate
    grid = Grid.of(table, by)
    sampled = grid.summed(table.counts).astype(np.int64)
    with np.errstate(over="ignore"):  # at a rate at which nobody is ever drawn
        people = np.minimum(sampled / rate, float(ANY))
        errors = np.minimum(np.sqrt(sampled * (1.0 - rate)) / rate, float(ANY))
    low, high = interval(sampled, rate) if total is None else _within(sampled, rate, table.total, total)
    rows = [
        EstimatedCell(
            values,
            float(people[i]) if sampled[i] else None,
            float(errors[i]) if sampled[i] else None,
            int(low[i]),
            int(high[i]),
        )
        for i, values in enumerate(grid.values())
    ]
    absent = absent_at_most(rate)
    notes = [
        (
            "Low and high: given that a cell occurs in the sample, its true number lies between them with a "
            f"probability of at least {percent(CONFIDENCE)}."
        ),
        (
            f"What more than {absent:,} people have would be absent from the sample with a probability of "
            f"{percent(SURPRISE)} at most."
        ),
    ]
    if grid.unlisted:
        notes.append(f"{grid.unlisted:,} declared cells that do not occur in the sample are not listed.")
    rounded = [name for name in (*by, mean, options.sum_of) if name in certificate.mechanism.rounded]
    if rounded:
        notes.append(f"Numbers were rounded at random before sampling: {', '.join(rounded)}. Their sums have no bias.")
    means: tuple[GroupMean, ...] = ()
    if mean is not None:
        means = _means(certificate, table, by, mean)
        notes += [MIDDLES, "Of groups that do not occur in the sample nothing is known of a mean."]
    sums: tuple[GroupSum, ...] = ()
    if options.sum_of is not None:
        sums = _sums(certificate, table, by, options.sum_of)
        notes += [*([] if mean else [MIDDLES]), _SUMS]
    return SampleEstimates(
        by=tuple(by), rows=tuple(rows), notes=tuple(notes), means=means, sums=sums, absent_at_most=absent
    )


def interval(sampled: Ints, rate: float) -> tuple[Ints, Ints]:
    """For each number of sampled records the least and the largest n that do not make it a surprise.

    The lower end is taken given that something was sampled, because only then a cell is seen.
    """
    return sampled_between(sampled, sampled, rate, occurring=True)


def _within(sampled: Ints, rate: float, all_sampled: int, total: tuple[int, int]) -> tuple[Ints, Ints]:
    """The same if the number of people in all is known."""
    ends = sampled_between(sampled, sampled, rate, surprise=OWN, occurring=True)
    rest = all_sampled - sampled
    return calibrated(ends, sampled_between(rest, rest, rate, surprise=REST), total)


_SUMS = (
    "A sum is that of the sampled numbers over the rate. Its interval holds with at least 95% however they are spread, "
    "as long as they are declared ones."
)


def _sums(certificate: SampleCertificate, table: Histogram, by: Sequence[str], column: str) -> tuple[GroupSum, ...]:
    rate = certificate.mechanism.rate
    spread = NumberSpread.of(certificate, table, by, column)
    found = []
    for group, counts in zip(spread.groups.values(), spread.counts, strict=True):
        low, high = sum_between(spread.numbers, counts, rate)
        error = math.sqrt((1.0 - rate) * float(counts @ spread.numbers**2)) / rate
        found.append(GroupSum(group, float(counts @ spread.numbers) / rate, error, low, high))
    return tuple(found)


def _means(certificate: SampleCertificate, table: Histogram, by: Sequence[str], column: str) -> tuple[GroupMean, ...]:
    rate = certificate.mechanism.rate
    spread = NumberSpread.of(certificate, table, by, column)
    nothing = np.zeros(len(spread.numbers))
    return tuple(
        sampled_mean(group, spread.numbers, counts, nothing, rate)
        for group, counts in zip(spread.groups.values(), spread.counts, strict=True)
    )
