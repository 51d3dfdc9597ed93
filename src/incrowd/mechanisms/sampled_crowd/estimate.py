"""What can be estimated from a sampled crowd.

**Intervals.** A cell of a cross-tabulation is made of crowds, of which some are published, with s sampled records
together, and u are not. Each of these has fewer than k sampled records. So between s and s + (k − 1)·u records of the
cell were sampled, each with probability β, and `theory.intervals` says how many people there are. Nothing is assumed
of what is missing; where u is large, the upper end is far away, because nothing in the release rules it out. Whoever
knows how many people there are in all gives that: what the rest of the table has at the least is then taken off.

Where noisy one-way tables stand beside the crowds, estimates are those of `calibrated`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from incrowd.core.numbers import number
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.estimates import EstimatedCell, Estimates, GroupMean, range_text
from incrowd.mechanisms.grid import MIDDLES, MOST_LISTED, Grid, NumberSpread, sampled_mean
from incrowd.mechanisms.sampled_crowd.calibrated import CrowdAxis, crowds_along, ends_along, people_along, summed_by
from incrowd.mechanisms.sampled_crowd.certificate import CrowdCertificate
from incrowd.mechanisms.sampled_crowd.one_way import ONE_WAY, VALUES, OneWay, read_one_way
from incrowd.theory._binomial import tail
from incrowd.theory.intervals import (
    ANY,
    OWN,
    REST,
    SURPRISE,
    calibrated,
    sampled_between,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CrowdEstimate(EstimatedCell):
    """One cell of a cross-tabulation.

    Attributes:
        values: the labels of the columns asked for, None for missing.
        estimate: people of the population in the published crowds of this cell; None if there is none.
        standard_error: of that number, from the sampling and the threshold; None if crowds are missing.
        low: with `high` an interval that holds the number of people of the cell with a probability of at least 95%,
            those in crowds that were not published included.
        high: see `low`.
        crowds: how many crowds were published here.
        crowds_possible: how many there could be; each of the others hides fewer than `hidden_at_most` people.
    """

    crowds: int
    crowds_possible: int


@dataclass(frozen=True, kw_only=True, repr=False)
class CrowdEstimates(Estimates):
    """Estimates from a sampled crowd.

    Attributes:
        hidden_at_most: a crowd of this size would be published with probability 95% or more: whatever was not
            published is, as likely, smaller.
    """

    hidden_at_most: int


def estimate(
    certificate: CrowdCertificate,
    published: Publication,
    by: Sequence[str],
    *,
    mean: str | None = None,
    total: tuple[int, int] | None = None,
) -> CrowdEstimates:
    """A cross-tabulation by some columns.

    Args:
        certificate: of the release.
        published: its crowds and, if it has them, the one-way tables.
        by: the columns; they are there.
        mean: a column whose mean is wanted in each group.
        total: an interval for the number of people of all cells, if it is known.
    """
    table = published.table
    k, beta = certificate.mechanism.k, certificate.mechanism.beta
    people, errors = people_behind(table.counts.astype(np.float64), k, beta)
    grid = Grid.of(table, by)
    totals, values = _beside(published, ONE_WAY), _beside(published, VALUES) if mean is None else None
    axes = [CrowdAxis.of_column(table[name].labels, name, totals, values) for name in by]
    few = math.prod(len(axis.labels) for axis in axes) <= MOST_LISTED
    if few and any(axis.one_way is not None for axis in axes):
        found = _calibrated(certificate, table, axes, totals, total)
        if mean is None:
            return found
        return replace(found, notes=(*found.notes, MIDDLES, _MEANS), means=_means(certificate, table, by, mean))
    possible = table.domain_size // grid.possible
    crowds, shown = grid.summed().astype(np.int64), grid.summed(table.counts).astype(np.int64)
    low, high = _ends(shown, crowds, possible, table, k, beta, total)
    sums, variances = grid.summed(people), grid.summed(errors**2)
    rows = [
        CrowdEstimate(
            values,
            float(sums[i]) if crowds[i] else None,
            float(np.sqrt(variances[i])) if crowds[i] == possible else None,
            int(low[i]),
            int(high[i]),
            int(crowds[i]),
            possible,
        )
        for i, values in enumerate(grid.values())
    ]
    notes = [_INTERVALS, *_of_missing(certificate, table, grid.unlisted, possible, known=total is not None)]
    means: tuple[GroupMean, ...] = ()
    if mean is not None:
        means = _means(certificate, table, by, mean)
        notes += [MIDDLES, _MEANS]
    return CrowdEstimates(
        by=tuple(by), rows=tuple(rows), notes=tuple(notes), means=means, hidden_at_most=hidden_at_most(k, beta)
    )


def _beside(published: Publication, name: str) -> OneWay | None:
    return read_one_way(published.beside[name]) if name in published.beside else None


def _calibrated(
    certificate: CrowdCertificate,
    table: Histogram,
    axes: Sequence[CrowdAxis],
    totals: OneWay | None,
    total: tuple[int, int] | None,
) -> CrowdEstimates:
    """The same from one-way tables, too."""
    hidden = [axis.name for axis in axes if axis.hidden]
    k, beta, by = certificate.mechanism.k, certificate.mechanism.beta, [axis.name for axis in axes]
    people, crowds = people_along(axes, totals, table, beta), crowds_along(axes, table)
    low, high = ends_along(axes, table, k, beta, total)
    possible = table.domain_size // math.prod(len(table[name].labels) for name in by)
    noisy = len(axes) == 1 and (totals is not None or bool(hidden))  # then the estimates are noisy counts
    whole = totals is None and not hidden  # then they are those of the crowds, which have an error if none is missing
    errors = np.sqrt(summed_by(table, by, people_behind(table.counts.astype(np.float64), k, beta)[1] ** 2))
    cells = zip(
        product(*(axis.labels for axis in axes)),
        *(np.broadcast_to(one, people.shape).ravel() for one in (people, errors, low, high, crowds)),
        strict=True,
    )
    rows = [
        CrowdEstimate(
            values,
            float(min(max(n, a), b)) if noisy or shown or totals is not None else None,
            axes[0].deviation if noisy else float(error) if whole and shown == possible else None,
            int(a),
            int(b),
            int(shown),
            possible,
        )
        for values, n, error, a, b, shown in cells
    ]
    notes = [_INTERVALS]
    if totals is not None:
        notes.append(_FITTED)
    elif not noisy:
        notes += _of_missing(certificate, table, 0, possible, known=True)
    if hidden:
        notes.append(_hidden_note(hidden))
    return CrowdEstimates(by=tuple(by), rows=tuple(rows), notes=tuple(notes), hidden_at_most=hidden_at_most(k, beta))


def _hidden_note(hidden: Sequence[str]) -> str:
    return (
        f"The crowds show nothing of {', '.join(hidden)}: that comes from the noisy counts in {VALUES}, and estimates "
        "take it to have nothing to do with other columns. Low and high assume nothing of the kind."
    )


_FITTED = (
    "Estimates are fitted to the noisy one-way tables of the release: what these count beyond the published crowds is "
    "spread as if columns were independent. Low and high assume nothing of the kind."
)
_INTERVALS = (
    "Low and high: the number of people lies between them with a probability of at least 95%, those included whose "
    "crowds were not published."
)
_MEANS = (
    "Low and high of a mean allow for the people of unpublished crowds, whatever their values are; without crowds that "
    "are missing, for the sampling alone."
)


def _ends(
    shown: NDArray[np.int64],
    crowds: NDArray[np.int64],
    possible: int,
    table: Histogram,
    k: int,
    beta: float,
    total: tuple[int, int] | None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An interval for each cell of which so many records are shown, in so many crowds of those possible."""
    surprise = SURPRISE if total is None else OWN
    ends = sampled_between(shown, _at_most(shown, possible - crowds.astype(object), k), beta, surprise=surprise)
    if total is None:
        return ends
    others = table.domain_size - possible - (len(table) - crowds.astype(object))
    rest = table.total - shown
    return calibrated(ends, sampled_between(rest, _at_most(rest, others, k), beta, surprise=REST), total)


def _at_most(shown: NDArray[np.int64], hidden: NDArray[np.object_], k: int) -> NDArray[np.int64]:
    """How many records were sampled at the most, if so many crowds are hidden: perhaps more than 64 bits hold."""
    most: NDArray[np.int64] = np.minimum(shown + hidden * (k - 1), ANY).astype(np.int64)
    return most


def _of_missing(
    certificate: CrowdCertificate, table: Histogram, unlisted: int, possible: int, *, known: bool
) -> list[str]:
    """What is to be said of crowds that were not published, where it is known or not how many people there are."""
    k, beta = certificate.mechanism.k, certificate.mechanism.beta
    missing = table.domain_size - len(table)
    if not missing:
        return []
    notes = [
        (
            f"{number(missing)} of the {number(table.domain_size)} crowds that there could be were not published: each "
            f"has fewer than k = {k} sampled records, so with probability 95% fewer than {hidden_at_most(k, beta):,} "
            "people. The estimates count people of published crowds alone; the upper ends allow for all others."
        )
    ]
    if not known:
        notes.append(
            "Nothing published says how many people there are in all. If you know it, give it as the total: upper ends "
            "then leave to the other cells what these surely have."
        )
    if unlisted:
        one = sampled_between(np.array([0]), np.array([min(possible * (k - 1), ANY)]), beta)[1][0]
        notes.append(
            f"{number(unlisted)} declared cells without a published crowd are not listed; each has "
            f"{range_text(0, int(one))} people."
        )
    return notes


def _means(certificate: CrowdCertificate, table: Histogram, by: Sequence[str], column: str) -> tuple[GroupMean, ...]:
    k, beta = certificate.mechanism.k, certificate.mechanism.beta
    spread = NumberSpread.of(certificate, table, by, column)
    values = spread.numbers
    possible = table.domain_size // (spread.groups.possible * len(table[column].labels))
    hidden = (k - 1.0) * np.array(possible - spread.cells.astype(object), dtype=np.float64)
    return tuple(
        sampled_mean(group, values, spread.counts[i], hidden[i], beta) for i, group in enumerate(spread.groups.values())
    )


def people_behind(shown: Floats, k: int, beta: float) -> tuple[Floats, Floats]:
    """For each published count the number of people that it stands for, and the standard error of that."""
    n = shown / beta
    mean = n * beta * _tail(n - 1, k - 1, beta)
    pairs = n * (n - 1) * beta**2 * _tail(n - 2, k - 2, beta)  # E[X(X−1)·1(X ≥ k)]
    return n, np.sqrt(np.maximum(pairs + mean - mean**2, 0.0)) / beta


def _tail(n: Floats, at_least: int, beta: float) -> Floats:
    """P[Bin(n, β) ≥ at_least], for real n."""
    from scipy.special import betainc

    if at_least <= 0:
        return np.ones_like(n)
    return np.asarray(betainc(at_least, np.maximum(n - at_least + 1, 1e-12), beta), dtype=np.float64)


def hidden_at_most(k: int, beta: float) -> int:
    """The smallest crowd that is published with probability 95% or more."""
    size = k
    while tail(k, size, beta) < 0.95:
        size = max(size + 1, int(size * 1.02))
    return size
