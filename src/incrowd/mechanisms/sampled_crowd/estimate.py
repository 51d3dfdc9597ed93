"""What can be estimated from a sampled crowd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.histogram import Histogram
from incrowd.mechanisms.base import (
    Estimates,
)
from incrowd.mechanisms.sampled_crowd.stated import CrowdCertificate

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CrowdEstimate:
    """One cell of a cross-tabulation.

    Attributes:
        values: the labels of the columns asked for, None for missing.
        estimate: people of the population in the published crowds of this cell.
        standard_error: of that number, from the sampling and the threshold.
        crowds: how many crowds were published here.
        crowds_possible: how many there could be; each of the others hides fewer than `hidden_at_most` people.
    """

    values: tuple[str | None, ...]
    estimate: float
    standard_error: float
    crowds: int
    crowds_possible: int


@dataclass(frozen=True)
class CrowdEstimates(Estimates):
    """Estimates from a sampled crowd.

    Attributes:
        hidden_at_most: a crowd of this size would be published with probability 95% or more: whatever was not
            published is, as likely, smaller.
    """

    hidden_at_most: int


def estimate(certificate: CrowdCertificate, table: Histogram, by: Sequence[str]) -> CrowdEstimates:
    """A cross-tabulation by some columns."""
    k, beta = certificate.mechanism.k, certificate.mechanism.beta
    people, errors = people_behind(table.counts.astype(np.float64), k, beta)
    groups = table.project(by)
    sizes = [len(table[name].labels) for name in by]
    codes = [table[name].codes.astype(np.int64) for name in by]
    keys = np.ravel_multi_index(codes, sizes) if len(table) else np.zeros(0, dtype=np.int64)
    # Groups come in the order of their codes, as the cells of the projection do.
    place_of = np.unique(keys, return_inverse=True)[1]
    totals = np.bincount(place_of, weights=people, minlength=len(groups))
    variances = np.bincount(place_of, weights=errors**2, minlength=len(groups))
    crowds = np.bincount(place_of, minlength=len(groups))
    possible = table.domain_size // int(np.prod(sizes, dtype=object))
    rows = [
        CrowdEstimate(
            tuple(groups[name].labels[int(groups[name].codes[i])] for name in by),
            float(totals[i]),
            float(np.sqrt(variances[i])),
            int(crowds[i]),
            possible,
        )
        for i in range(len(groups))
    ]
    hidden = hidden_at_most(k, beta)
    note = f"A crowd that was not published has, with probability 95%, fewer than {hidden:,} people."
    return CrowdEstimates(tuple(by), tuple(rows), (note,), hidden)


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
    while float(_tail(np.array([float(size)]), k, beta)[0]) < 0.95:
        size = max(size + 1, int(size * 1.02))
    return size
