"""An empirical audit: run a mechanism many times on two neighbouring tables and see how far apart the outputs are.

An audit can refute a promise, never prove it. It finds an event on half of the runs and measures its probabilities on
the other half, so that looking for the worst event does not bias the measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incrowd.theory._numbers import require_between, require_non_negative


@dataclass(frozen=True)
class PowerAudit:
    """What the runs show about one direction of a pair of neighbours.

    Attributes:
        delta_at_least: the true δ(ε) is at least this, but for the stated probability of error; often 0.
        estimate: the same without allowance for chance.
    """

    delta_at_least: float
    estimate: float


def audit(first: ArrayLike, second: ArrayLike, epsilon: float, error: float = 1e-6) -> PowerAudit:
    """Bounds Σ max(0, P − e^ε Q) from below, where `first` and `second` are outcomes of runs under P and under Q.

    Args:
        first: one whole number per run on the table taken to be the true one.
        second: likewise on its neighbour.
        epsilon: the ε promised.
        error: the probability with which the bound may be too large.
    """
    growth = math.exp(require_non_negative("epsilon", epsilon))
    require_between("error", error, 0.0, 1.0)
    p_runs, q_runs = _halves(np.asarray(first)), _halves(np.asarray(second))
    outcomes = np.unique(np.concatenate((p_runs[0], q_runs[0])))
    p, q = (_shares(outcomes, runs[0]) for runs in (p_runs, q_runs))
    event = outcomes[p > growth * q]
    hits = [int(np.isin(runs[1], event).sum()) for runs in (p_runs, q_runs)]
    sizes = [len(runs[1]) for runs in (p_runs, q_runs)]
    low = _lower(hits[0], sizes[0], error / 2)
    high = 1.0 - _lower(sizes[1] - hits[1], sizes[1], error / 2)
    return PowerAudit(max(0.0, low - growth * high), max(0.0, hits[0] / sizes[0] - growth * hits[1] / sizes[1]))


def _halves(runs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    middle = len(runs) // 2
    return runs[:middle], runs[middle:]


def _shares(outcomes: NDArray[np.int64], runs: NDArray[np.int64]) -> NDArray[np.float64]:
    places = np.searchsorted(outcomes, runs)
    return np.bincount(places, minlength=len(outcomes)) / len(runs)


def _lower(hits: int, size: int, error: float) -> float:
    """The exact (Clopper-Pearson) lower confidence bound of a probability."""
    from scipy.special import betaincinv

    return 0.0 if hits == 0 else float(betaincinv(hits, size - hits + 1, error))
