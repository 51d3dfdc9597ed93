"""When a plain random sample is private (Chaudhuri and Mishra, "When random sampling preserves privacy").

The promise, (c, ε, δ)-privacy of one table T: with probability at least 1−δ over the sample S, for any c rows
of T and any two ways V, V′ of overwriting them, Pr[S|T→V] ≤ (1+ε)·Pr[S|T→V′]. Neighbours have the same number of
rows (replace-c). It is a statement about *this* table: the rate is chosen by looking at it, and the notion is
weaker than differential privacy. All of it depends on the table only through how often each tuple occurs.

The paper's Theorems 3 and 7 give rates that suffice; `largest_rate` computes the largest there is. For c = 1 a
sample is private iff every s_v ≤ n_v·ε/(1+ε), so δ(p) = 1 − Π_v P[Bin(n_v, p) ≤ ⌊n_v·ε/(1+ε)⌋]. For c > 1 the
cells interact; `_sampling_events` has the criterion and its proof. The answer is exact for c = 1, for c = 2, and
for larger c on many tables. Where it is not, or a table has too many fragile cells to weigh one by one, δ is
an upper bound, and the results say so.

ε is read as the decimal number it prints (0.3 is 3/10), and a ratio of exactly 1+ε is private.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incrowd.core.errors import InternalError, UnreachableError
from incrowd.core.numbers import as_given, number
from incrowd.theory._numbers import SMALLEST, require_between, require_positive, round_up
from incrowd.theory._sampling_events import (
    LEAST_DELTA,
    EventCells,
    UnsafeSamples,
    as_counts,
    as_printed,
    paired,
    require_changed_rows,
    spent,
    tail,
    thresholds,
)
from incrowd.theory._sampling_theorems import (
    GoodSample,
    TheoremRate,
    ValueClasses,
    classify,
    good_sample,
    observation_6_table,
    theorem_promise,
    theorem_rate,
)

__all__ = [
    "GoodSample",
    "SampleDelta",
    "SampleEpsilon",
    "SampleRate",
    "TheoremRate",
    "ValueClasses",
    "classify",
    "good_sample",
    "is_private",
    "largest_rate",
    "observation_6_table",
    "sample_delta",
    "sample_epsilon",
    "sample_ratio",
    "theorem_promise",
    "theorem_rate",
    "tuple_risks",
]


@dataclass(frozen=True)
class SampleDelta:
    """How likely a sample at some rate is to break the promise.

    Attributes:
        delta: never too small.
        delta_at_least: never too large.
        exact: whether the two differ by rounding alone.
    """

    delta: float
    delta_at_least: float
    exact: bool


@dataclass(frozen=True)
class SampleRate:
    """The largest rate that keeps a promise.

    Attributes:
        rate: p, safe: `delta` was computed at this very number.
        rate_at_most: at this rate the promise is broken, so no rate is safe from here on.
        epsilon: the promise asked for.
        delta: what the rate achieves; at most the δ asked for.
        changed_rows: c.
        exact: whether `rate` and `rate_at_most` differ by rounding alone.
    """

    rate: float
    rate_at_most: float
    epsilon: float
    delta: float
    changed_rows: int
    exact: bool


@dataclass(frozen=True)
class SampleEpsilon:
    """What a planned sample promises.

    Attributes:
        epsilon: the smallest float whose δ is at most the one asked for.
        delta: the probability of breaking it.
        rate: the planned rate.
        changed_rows: c.
        exact: whether no smaller ε would do; otherwise one might, and this one is safe.
    """

    epsilon: float
    delta: float
    rate: float
    changed_rows: int
    exact: bool


def sample_delta(counts: ArrayLike, rate: float, epsilon: float, changed_rows: int = 1) -> SampleDelta:
    """The probability that a sample at this rate is not (c, ε)-private.

    Args:
        counts: how many rows hold each distinct tuple, in any order.
        rate: the probability p with which each row is kept.
        epsilon: the ratio of likelihoods may be up to 1+ε.
        changed_rows: c, how many rows may change together.
    """
    p = require_between("rate", rate, 0.0, 1.0, open_high=False)
    unsafe = _unsafe(EventCells.of(counts), require_positive("epsilon", epsilon), changed_rows)
    low, high = unsafe.probability(p)
    return SampleDelta(delta=high, delta_at_least=low, exact=unsafe.exact)


def largest_rate(counts: ArrayLike, epsilon: float, delta: float, changed_rows: int = 1) -> SampleRate:
    """The largest rate at which a sample is (c, ε, δ)-private.

    δ(p) is increasing, so a bracket around the δ asked for is a bracket around the rate: couple samples at p < p′ by
    comparing one uniform number per row with p and with p′. The first sample is part of the second, and the
    unsafe samples are closed under adding rows. A rate of δ/n for n rows is always safe, as the empty sample is.

    Args:
        counts: how many rows hold each distinct tuple, in any order.
        epsilon: the ratio of likelihoods may be up to 1+ε.
        delta: the probability of failure that is accepted.
        changed_rows: c, how many rows may change together.

    Raises:
        UnreachableError: δ is so small (below 1e-260) that floats cannot show it to be kept.
    """
    table = EventCells.of(counts)
    promise = require_positive("epsilon", epsilon)
    target = _require_delta(delta)
    unsafe = _unsafe(table, promise, changed_rows)
    weigh = cache(unsafe.probability)
    rate, above = _bracket(lambda p: weigh(p)[1], target, 0.5 * target / table.total, 1.0)
    # Rounding δ up shortened the rate by a hair; the limit above it must hold for δ rounded down.
    step = 1e-12
    while weigh(above)[0] <= target:
        step *= 30.0
        above = min(1.0, rate * (1.0 + step))
    if not unsafe.exact:
        _, above = _bracket(lambda p: weigh(p)[0], target, rate, above)
    return SampleRate(rate, above, promise, weigh(rate)[1], int(changed_rows), unsafe.exact)


def sample_epsilon(counts: ArrayLike, rate: float, delta: float, changed_rows: int = 1) -> SampleEpsilon:
    """The smallest ε that a planned sample at this rate promises with probability 1−δ.

    δ(ε) is a falling step function with its steps at rational numbers. Halving down to neighbouring floats ends at
    the first float on or above the step, and that float was checked to keep the promise.

    Raises:
        UnreachableError: all rows of some cell, or all but fewer than c, are sampled with probability
            above δ, so that no ε whatsoever is promised; or δ is below 1e-260.
    """
    table = EventCells.of(counts)
    p = require_between("rate", rate, 0.0, 1.0, open_high=False)
    target = _require_delta(delta)
    require_changed_rows(changed_rows, table.total)

    def keeps(epsilon: float) -> tuple[bool, float, bool]:
        unsafe = _unsafe(table, epsilon, changed_rows)
        reached = unsafe.probability(p)[1]
        return reached <= target, reached, unsafe.exact

    low = 0.5 / float(table.rows[-1])  # below 1/n no row of n may be sampled
    found = keeps(low)
    if found[0]:
        return SampleEpsilon(0.0, found[1], p, int(changed_rows), exact=True)
    sharp, high = found[2], max(1.0, 2.0 * low)
    while not (found := keeps(high))[0]:
        if high > 1e150:
            raise UnreachableError(
                f"A sample at rate {as_given(p)} promises no ε at all with δ = {as_given(target)}: the "
                "probability that too many "
                f"rows of a rare tuple are sampled is {number(found[1], 3)}.",
                code="unreachable",
                remedy="Lower the rate, accept a larger δ, or recode so that tuples are held by more rows.",
                details={"rate": p, "delta": target, "delta_for_any_epsilon": found[1]},
            )
        low, sharp, high = high, found[2], high * max(high, 2.0)
    while low < (middle := math.sqrt(low * high) if high > 2.0 * low else 0.5 * (low + high)) < high:
        trial = keeps(middle)
        if trial[0]:
            high, found = middle, trial
        else:
            low, sharp = middle, trial[2]
    return SampleEpsilon(high, found[1], p, int(changed_rows), exact=found[2] and sharp)


def sample_ratio(counts: ArrayLike, sample_counts: ArrayLike, changed_rows: int = 1) -> float:
    """The ε that one given sample realises: its worst ratio of likelihoods, minus 1, rounded up.

    Args:
        counts: how many rows of the table hold each distinct tuple.
        sample_counts: how many of them are in the sample, in the same order.
        changed_rows: c, how many rows may change together.

    Returns:
        ε; infinite if some tables that differ in c rows cannot have produced the sample at all.
    """
    n, s = paired(counts, sample_counts)
    c = require_changed_rows(changed_rows, int(n.sum(dtype=np.float64)))
    kept = s > 0
    n, s = n[kept], s[kept]
    if not n.size:
        return 0.0
    if bool((n - s < c).any()):
        return math.inf
    additions: list[float] = []
    for extra in range(1, c):
        terms = np.log1p(s / (n + extra - s))
        additions += np.partition(terms, -min(c - 1, n.size))[-(c - 1) :].tolist()
    additions.sort(reverse=True)
    worst = 0.0
    own = np.zeros(n.shape)
    for j in range(1, c + 1):
        own += np.log1p(s / (n - c + j - s))
        worst = max(worst, float(own.max()) + math.fsum(additions[: c - j]))
    # Relative error of the logarithm, a few units per term, and of its exponential.
    ratio = math.expm1(worst) if worst < 700 else math.inf
    return round_up(ratio, 1e-15 * (c + 4) * (1.0 + worst))


def is_private(counts: ArrayLike, sample_counts: ArrayLike, epsilon: float, changed_rows: int = 1) -> bool:
    """Whether one given sample is (c, ε)-private, exactly: a ratio of 1+ε is, whatever it looks like in floats."""
    n, s = paired(counts, sample_counts)
    c = require_changed_rows(changed_rows, int(n.sum(dtype=np.float64)))
    promise = as_printed(require_positive("epsilon", epsilon))
    if c == 1:
        return bool((s <= thresholds(n, promise, 1)).all())
    ratio = sample_ratio(n, s, c)
    if ratio <= epsilon or ratio > epsilon * (1.0 + 1e-9):
        return ratio <= epsilon
    pairs = np.unique(np.stack([n, s])[:, s > 0], axis=1, return_counts=True)
    cells = [(int(rows), int(kept), int(times)) for (rows, kept), times in zip(pairs[0].T, pairs[1], strict=True)]
    added = sorted(
        (
            Fraction(rows + more, rows + more - kept)
            for rows, kept, times in cells
            for more in range(1, c)
            for _ in range(min(times, c - 1))
        ),
        reverse=True,
    )
    return all(
        spent(rows, kept, c, j) * math.prod(added[: c - j]) <= 1 + promise
        for rows, kept, _ in cells
        for j in range(1, c + 1)
    )


def tuple_risks(counts: ArrayLike, rate: float, epsilon: float, changed_rows: int = 1) -> NDArray[np.float64]:
    """For each tuple the probability that too many of its own rows are sampled: where the δ of a table comes from.

    For c = 1 the sample is private iff this happens to no tuple, so that 1 − δ is the product of the complements. For
    c > 1 it leaves out what several tuples do together. A figure to compare tuples by, not a bound.
    """
    p = require_between("rate", rate, 0.0, 1.0)
    promise = as_printed(require_positive("epsilon", epsilon))
    rows, place = np.unique(as_counts("counts", counts, least=1), return_inverse=True)
    c = require_changed_rows(changed_rows, int(np.sum(rows[place], dtype=np.float64)))
    risks: NDArray[np.float64] = tail(rows, thresholds(rows, promise, c), p)[place]
    return risks


def _unsafe(table: EventCells, epsilon: float, changed_rows: int) -> UnsafeSamples:
    return UnsafeSamples(table, as_printed(epsilon), require_changed_rows(changed_rows, table.total))


def _require_delta(delta: float) -> float:
    """A probability of failure that floats can show to be kept."""
    target = require_between("delta", delta, 0.0, 1.0)
    if target < LEAST_DELTA:
        raise _too_small(target)
    return target


def _too_small(delta: float) -> UnreachableError:
    return UnreachableError(
        f"No rate can be shown to keep δ = {as_given(delta)}: floats cannot tell so small a probability from 0.",
        code="unreachable",
        remedy="Accept a larger δ.",
    )


def _bracket(probability: Callable[[float], float], target: float, low: float, high: float) -> tuple[float, float]:
    """Neighbouring rates with probability(low) ≤ target < probability(high), for an increasing function.

    Chandrupatla's method on logarithms, in which the function is nearly a straight line: inverse quadratic
    interpolation where that is safe, halving where it is not. Both ends are always checked values.
    """

    def excess(x: float) -> float:
        value = probability(math.exp(x))
        distance = math.log(max(value, SMALLEST) / target)
        return max(distance, SMALLEST) if value > target else min(distance, 0.0)

    a, b = math.log(high), math.log(low)
    fa, fb = excess(a), excess(b)
    if fb > 0.0 or fa <= 0.0:
        raise _too_small(target)
    t = 0.5
    for _ in range(200):
        x = a + t * (b - a)
        fx = excess(x)
        if (fx > 0.0) == (fa > 0.0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        width = abs(b - a)
        if width <= 1e-12:
            below, beyond = (a, b) if fa <= 0.0 else (b, a)
            return math.exp(below), math.exp(beyond)
        edge = 0.25e-12 / width
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        if 1.0 - math.sqrt(1.0 - xi) < phi < math.sqrt(xi):
            t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        else:
            t = 0.5
        t = min(1.0 - edge, max(edge, t))
    raise InternalError("the search for the largest rate did not end")
