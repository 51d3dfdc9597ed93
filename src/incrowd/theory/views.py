"""Many small tables of the same people: what all of them promise together, and which parameters keep a promise.

A set of views is planned before anything is drawn: so many one-way tables, so many further views, so many private
choices in between, each with parameters that are fixed. *Which* columns a view has may depend on everything drawn
before. docs/proofs.md (Views) proves that the composition of the steps' profiles covers that.

- Crowds: every view thins the full table afresh, and the one-way tables beside views of several columns have discrete
  Laplace noise: crowds of single values would cost more, and hide more. Step by step, V copies of one
  crowd's exact profile, d pure ones, and a choice's bounded range for each choice, composed in whole numbers
  (`Composition`).
- Noise: discrete Gaussian counts and choices, whose costs in zCDP add up.

A person with up to m records moves the counts of a table by at most m in all, so m in the Euclidean norm too, and a
choice's score by m: Gaussian noise costs m² times as much, Laplace noise and the exponent of a choice m times. Each
view by crowds has the profile of m records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.theory._groups import float_above
from incrowd.theory._numbers import require_between, require_count, require_positive, round_down
from incrowd.theory.crowd import CrowdProfile, require_rows
from incrowd.theory.profile import ApproximateDP, OfSample, PrivacyProfile, Relation, before_sampling, compose
from incrowd.theory.zcdp import (
    BoundedRange,
    GaussianCounts,
    ZeroConcentrated,
    choice_cost,
    counts_cost,
    largest_rho,
)

Floats = NDArray[np.float64]

RATES = (0.0125, 0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""The rates that crowds are tried with."""

LARGEST_CROWD = 1_000
"""A view is not worth its cost if crowds of so many people stay hidden in it, as a rule: k/β."""

LARGEST_DEVIATION = 500
"""A view is not worth its cost if its counts have a larger standard deviation."""

_LARGEST_K = 4_000
_WITHIN = 1.1


@dataclass(frozen=True)
class CrowdStep:
    """A view by crowds: each record sampled with probability β, cells of fewer than k sampled records withheld."""

    k: int
    beta: float

    @property
    def threshold(self) -> float:
        """About how many people a cell must have to be shown."""
        return self.k / self.beta


@dataclass(frozen=True)
class NoiseStep:
    """A view by noise: every cell's count with discrete Gaussian noise of this variance."""

    variance: int

    @property
    def deviation(self) -> float:
        """The standard deviation of a count (that of a continuous Gaussian, which is a little larger)."""
        return math.sqrt(self.variance)


@dataclass(frozen=True)
class LaplaceStep:
    """A view by noise: every cell's count with discrete Laplace noise, so that the view alone is `decay`-DP.

    Where there are few views and δ is small this noise is less than Gaussian noise that promises the same.
    """

    decay: float

    @property
    def variance(self) -> float:
        """Of the noise: 2e^{−a}/(1 − e^{−a})²."""
        return 2 * math.exp(-self.decay) / math.expm1(-self.decay) ** 2

    @property
    def deviation(self) -> float:
        """The standard deviation of a count."""
        return math.sqrt(self.variance)


Step = CrowdStep | NoiseStep | LaplaceStep


@dataclass(frozen=True)
class ViewsPlan:
    """A set of views, as far as the promise depends on it (add/remove).

    Attributes:
        epsilon: what is promised.
        delta: what is promised.
        singles: how many one-way tables there are.
        single: how each is drawn.
        views: how many further views there are.
        view: how each is drawn.
        choices: how many private choices are made.
        exponent: each of them is so much differentially private, for one record; a whole number of 2⁻⁵³ or so, as
            floats are.
        rows: how many records one person has at most. Neighbours differ by all of them.
        rate: the probability with which each of those to whom it is promised is in the table; 1 if the table is no
            sample.
    """

    epsilon: float
    delta: float
    singles: int
    single: Step
    views: int
    view: Step
    choices: int = 0
    exponent: float = 0.0
    rows: int = 1
    rate: float = 1.0

    def __post_init__(self) -> None:
        if min(self.singles, self.views, self.choices, self.exponent) < 0 or self.rows < 1:
            raise ParameterError("A set of views has no negative parts.", code="parameter-range")
        if self.rate != 1 and self.rows > 1:
            raise ParameterError("the rows of a person are not sampled together", code="parameter-combination")

    @cached_property
    def profile(self) -> PrivacyProfile:
        """What all steps promise together."""
        return self._steps if self.rate == 1 else OfSample(self._steps, self.rate)

    @cached_property
    def _steps(self) -> PrivacyProfile:
        """The same to those who are in the table."""
        steps = ((self.single, self.singles), (self.view, self.views))
        e = self.rows * Fraction(self.exponent)
        if all(isinstance(step, NoiseStep) for step, _ in steps):
            rho = sum((n * counts_cost(step.variance) for step, n in steps if isinstance(step, NoiseStep)), Fraction(0))
            return ZeroConcentrated(self.rows**2 * rho + self.choices * choice_cost(e))
        if all(isinstance(step, LaplaceStep) for step, _ in steps):
            pure = sum((n * Fraction(step.decay) for step, n in steps if isinstance(step, LaplaceStep)), Fraction(0))
            return ApproximateDP(float_above(self.rows * pure + self.choices * e), 0.0, Relation.ADD_REMOVE)
        parts: list[PrivacyProfile] = []
        for step, times in steps:
            if isinstance(step, CrowdStep):
                parts += [CrowdProfile(step.k, step.beta, rows=self.rows)] * times
            elif isinstance(step, LaplaceStep):
                alone = float_above(self.rows * Fraction(step.decay))
                parts += [ApproximateDP(alone, 0.0, Relation.ADD_REMOVE)] * times
            elif self.rows == 1:
                parts += [GaussianCounts(step.variance)] * times
            elif times:
                parts.append(ZeroConcentrated(self.rows**2 * times * counts_cost(step.variance)))
        if self.choices:
            parts += [BoundedRange(e)] * self.choices
        return compose(parts)

    @property
    def inside(self) -> float:
        """The ε of somebody who is known to be in the table, with δ/β."""
        return before_sampling(self.epsilon, self.rate)

    @cached_property
    def exact_delta(self) -> float:
        """The δ at ε that the steps have together, rounded up."""
        return self.profile.delta(self.epsilon)

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        return self.exact_delta <= self.delta


@lru_cache(maxsize=64)
def plan_noise(
    epsilon: float,
    delta: float,
    singles: int,
    views: int,
    choices: int,
    *,
    single_share: float,
    choice_share: float,
    rows: int = 1,
) -> ViewsPlan:
    """Noisy counts: ρ is divided into three shares, which variances and exponent use up, rounded to the safe side.

    Where nothing is chosen all tables have the same noise: Gaussian, or Laplace if that is less.
    """
    _require(epsilon, delta, singles, views, choices)
    rho = largest_rho(epsilon, delta) / require_rows(rows) ** 2  # what is left for one record
    for_choice = rho * Fraction(choice_share) if choices else Fraction(0)
    exponent = math.nextafter(math.sqrt(8 * float(for_choice) / choices), 0.0) * (1 - 1e-12) if choices else 0.0
    for_single = (rho - for_choice) * (Fraction(single_share) if views else 1)
    for_view = rho - for_choice - for_single
    if not choices:
        pure = LaplaceStep(float(math.nextafter(epsilon / (rows * (singles + views)), 0.0)))
        even = NoiseStep(_variance(singles + views, rho))
        step: Step = pure if pure.variance <= even.variance else even
        return _checked(ViewsPlan(epsilon, delta, singles, step, views, step, rows=rows))
    single = NoiseStep(_variance(singles, for_single) if singles else 1)
    view = NoiseStep(_variance(views, for_view)) if views else single
    return _checked(ViewsPlan(epsilon, delta, singles, single, views, view, choices, exponent, rows))


def plan_noise_of_sample(
    epsilon: float,
    delta: float,
    rate: float,
    singles: int,
    views: int,
    choices: int,
    *,
    single_share: float,
    choice_share: float,
) -> ViewsPlan:
    """Noisy counts of a table that is itself a sample, for a promise to all who could have been in it."""
    _require(epsilon, delta, singles, views, choices)
    plan = plan_noise(
        before_sampling(epsilon, rate),
        round_down(require_between("delta / rate", delta / rate, 0.0, 1.0), 1e-14),
        singles,
        views,
        choices,
        single_share=single_share,
        choice_share=choice_share,
    )
    return _checked(replace(plan, epsilon=epsilon, delta=delta, rate=rate))


@lru_cache(maxsize=64)
def plan_crowds(
    epsilon: float,
    delta: float,
    singles: int,
    views: int,
    choices: int,
    *,
    single_share: float,
    choice_share: float,
    rows: int = 1,
) -> ViewsPlan:
    """Crowds whose k/β is about the least, and of those the largest β.

    One-way tables beside them have noise; the privacy losses of all of them together have a standard deviation of
    `single_share` times ε. Where there is nothing but one-way tables, these are crowds.
    """
    best = quick_crowds(
        epsilon,
        delta,
        singles,
        views,
        choices,
        single_share=single_share,
        choice_share=choice_share,
        rows=require_rows(rows),
    )
    if best is None:
        raise UnreachableError(
            "With this epsilon and delta the views would show no crowd of any size.",
            code="unreachable",
            remedy="Raise epsilon or delta, or ask for fewer views.",
        )
    while not best.kept:  # the quick search is a guess; what is promised is computed in whole numbers
        best = _with_k(best, _k(best) + 1)
    return _checked(best)


def quick_crowds(
    epsilon: float,
    delta: float,
    singles: int,
    views: int,
    choices: int,
    *,
    single_share: float,
    choice_share: float,
    rows: int = 1,
) -> ViewsPlan | None:
    """About the plan that `plan_crowds` makes, in floating-point arithmetic; None if there is none."""
    _require(epsilon, delta, singles, views, choices)
    exponent = choice_share * epsilon / math.sqrt(choices) / rows if choices else 0.0
    noisy: Step | None = None
    if singles and views:
        decay = single_share * epsilon / math.sqrt(singles) / rows
        noisy = NoiseStep(math.ceil(1 / decay**2)) if rows == 1 else LaplaceStep(decay)
    found: dict[float, ViewsPlan] = {}
    least = float(_LARGEST_K)
    for beta in RATES:
        step = CrowdStep(1, beta)
        blank = ViewsPlan(epsilon, delta, singles, noisy or step, views, step, choices, exponent, rows)
        k = _quick_k(blank, min(_LARGEST_K, math.floor(_WITHIN * least * beta)))
        if k is not None:
            found[beta] = _with_k(blank, k)
            least = min(least, k / beta)
    near = [beta for beta, plan in found.items() if _k(plan) / beta <= _WITHIN * least]
    return found[max(near)] if near else None


def _k(plan: ViewsPlan) -> int:
    step = plan.view if plan.views else plan.single
    return step.k if isinstance(step, CrowdStep) else 0


def _with_k(plan: ViewsPlan, k: int) -> ViewsPlan:
    """The same rates with another k."""
    step = plan.view if plan.views else plan.single
    crowd = CrowdStep(k, step.beta if isinstance(step, CrowdStep) else 1.0)
    return replace(plan, single=crowd if isinstance(plan.single, CrowdStep) else plan.single, view=crowd)


def _quick_k(plan: ViewsPlan, most: int) -> int | None:
    """About the smallest k up to `most` that keeps the promise, in floating-point arithmetic; None if there is none."""
    if _quick_delta(_with_k(plan, most)) > plan.delta:
        return None
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _quick_delta(_with_k(plan, middle)) <= plan.delta else (middle, high)
    return high


def _quick_delta(plan: ViewsPlan) -> float:
    """δ at ε for the removal of a record: the losses of all steps on a grid, composed by Fourier transform."""
    from scipy.special import ndtr

    steps = [(step, n) for step, n in ((plan.single, plan.singles), (plan.view, plan.views)) if n]
    reach, points = 4 * plan.epsilon + 1, 1 << 13
    h = reach / (points // 4)
    grid: Floats = np.arange(points // 2) * np.float64(h)
    spectrum = np.ones(points // 2 + 1, dtype=np.complex128)
    certain = 1.0
    for step, n in steps:
        if isinstance(step, CrowdStep):
            masses, infinite = _masses(*_quick_crowd(step.k, step.beta, grid, plan.rows), h, points)
            spectrum *= np.fft.rfft(masses) ** n
            certain *= (1 - infinite) ** n
        elif isinstance(step, LaplaceStep):
            pure = plan.rows * step.decay
            one = -np.expm1(np.minimum(grid - pure, 0.0)) / (1 + math.exp(-pure))
            masses, _ = _masses(one, one, h, points)
            spectrum *= np.fft.rfft(masses) ** n
        else:
            mu = math.sqrt(n) / step.deviation  # of all of them, as if noise were continuous
            one = ndtr(mu / 2 - grid / mu) - np.exp(grid) * ndtr(-mu / 2 - grid / mu)
            masses, _ = _masses(one, one, h, points)
            spectrum *= np.fft.rfft(masses)
    if plan.choices:
        e = plan.rows * plan.exponent
        one = np.where(grid < e, np.expm1(-(e - grid).clip(0) / 2) ** 2 / -math.expm1(-e), 0.0)
        masses, _ = _masses(one, one, h, points)
        spectrum *= np.fft.rfft(masses) ** plan.choices
    composed = np.fft.irfft(spectrum, points)
    losses = np.where(np.arange(points) < points // 2, np.arange(points), np.arange(points) - points) * h
    gain = -np.expm1(np.minimum(plan.epsilon - losses, 0.0))
    return float(composed @ gain) + 1 - certain


def _masses(forward: Floats, backward: Floats, h: float, points: int) -> tuple[Floats, float]:
    """The masses at losses …, −h, 0, h, … (in the order of a Fourier transform) of which δ(ε) is made."""
    grid = np.arange(len(forward)) * h
    left = 1 - np.exp(-grid) * (1 - backward)
    heights = np.concatenate([left[:0:-1], forward])
    x = np.exp(np.concatenate([-grid[:0:-1], grid]))
    slopes = np.diff(heights) / np.diff(x)
    # Before the first point lies (0, 1); beyond the last the line is flat.
    slopes = np.concatenate([[(heights[0] - 1) / x[0]], slopes, [0.0]])
    masses = np.maximum(np.diff(slopes) * x, 0.0)
    out = np.zeros(points)
    places = np.arange(-(len(forward) - 1), len(forward))
    out[places % points] = masses
    return out, float(forward[-1])


def _quick_crowd(k: int, beta: float, epsilon: Floats, rows: int) -> tuple[Floats, Floats]:
    """δ of one crowd for removal and addition of a person whose records are in one cell, in floating-point arithmetic.

    The worst number of others is one of so many candidates (docs/proofs.md, "A person with several rows").
    """
    from scipy.special import betainc

    def tail(n: Floats) -> Floats:
        return np.where(n >= k, betainc(k, np.maximum(n - k + 1, 1e-9), beta), 0.0)

    growth, steps = np.exp(epsilon), range(1, rows + 1, max(1, rows // 12))
    gamma = 1 - (1 - beta) * np.exp(-epsilon / rows)
    others = [np.maximum(np.ceil((k - 1) / gamma) - a, k - 1) for a in steps]
    removal = np.max([tail(n + rows) - growth * tail(n) for n in others], axis=0)
    under = 1 - (1 - beta) * np.exp(epsilon / rows)
    safe = np.where(under > 1e-12, under, 1.0)
    others = [np.maximum(np.ceil((k - 1) / safe) - a, 0) for a in steps]
    addition = np.max([1 - tail(n) - growth * (1 - tail(n + rows)) for n in others], axis=0)
    return np.clip(removal, beta**k, 1.0), np.where(under > 1e-12, np.maximum(addition, 0.0), 0.0)


def _variance(times: int, rho: Fraction) -> int:
    """The least whole variance with which so many tables cost at most ρ."""
    return max(1, math.ceil(times / (2 * rho)))


def _checked(plan: ViewsPlan) -> ViewsPlan:
    if not plan.kept:
        raise UnreachableError("The views would not keep the promise.", code="unreachable", remedy="Raise epsilon.")
    return plan


def _require(epsilon: float, delta: float, singles: int, views: int, choices: int) -> None:
    require_positive("epsilon", epsilon)
    require_between("delta", delta, 0.0, 1.0)
    require_count("singles", singles, least=0)
    require_count("views", views, least=0)
    require_count("choices", choices, least=0)
    require_count("singles and views together", singles + views)
