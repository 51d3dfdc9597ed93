"""Sample, recode, and publish only crowds of k (Li, Qardaji, Su).

*Precondition.* The histogram counts the full table on its declared domains, one record per person. The levels are
fixed in the policy, or chosen here on the full table with their own share of ε; they are never chosen on the sample.

*Promise.* (ε,δ)-DP for adding or removing one record, with ε = ε₁ + ε₂ and δ the exact δ(k, β, ε₂) of
`incrowd.guarantees.crowd`: an ε₁-DP choice of the mapping followed by a sampled crowd under it, by adaptive
composition.

*What must not be published* for this to hold: the size of the sample and the number of suppressed records. They leave
this module only inside `Outcome`, for the publisher's internal report.

If the table itself is a β-sample of the population ("already sampled"), nothing is sampled here, levels must be
fixed, and the promise is about the population that it was drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from incrowd.errors import GuaranteeError, InternalError, ParameterError, UnreachableError
from incrowd.guarantees import crowd
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.policy import SampledCrowd
from incrowd.randomness import RandomSource
from incrowd.recoding.choice import WEIGHT_ONE, choose
from incrowd.recoding.lattice import Ladder, Lattice

DEFAULT_CROWD_OF_INTEREST = 100
LARGEST_EPSILON, SMALLEST_BETA = 100.0, 2.0**-64
_RATES = tuple(i / 100 for i in range(1, 100))


@dataclass(frozen=True)
class CrowdSettings:
    """Everything that decides what is promised: found from the policy alone, without looking at any data."""

    epsilon: float
    delta: float
    selection_epsilon: float
    k: int
    beta: float
    already_sampled: bool

    @property
    def crowd_epsilon(self) -> float:
        """ε₂: what is left for the crowd after the choice, rounded down."""
        return crowd.left_after(self.epsilon, self.selection_epsilon)

    @cached_property
    def delta_at(self) -> Callable[[float], float]:
        """The exact δ of the crowd at any ε. A release asks for some of them several times, so they are kept."""
        return cache(crowd.CrowdProfile(self.k, self.beta).delta)

    @property
    def exact_delta(self) -> float:
        """The δ that these settings really have; at most the one promised."""
        return self.delta_at(self.crowd_epsilon)

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        return self.exact_delta <= self.delta


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out.

    Attributes:
        published: the release: every cell holds k records or more.
        levels: the level at which each column is shown.
        sample: the recoded sample before suppression. For the publisher's eyes only.
        recoded: the full table that the sample was drawn from, as the release shows it. For the publisher's eyes only.
    """

    published: Histogram
    levels: Mapping[str, int]
    sample: Histogram
    recoded: Histogram


def settle(release: SampledCrowd) -> CrowdSettings:
    """Fill in what the policy leaves open: k, β or both.

    With neither given, the rate is taken from 0.01, 0.02, ... 0.99 that publishes most of a crowd of the size of
    interest, at the smallest k that keeps the promise. That looks at the policy only, so it costs nothing.

    Raises:
        GuaranteeError: k and β are given and do not keep the promise.
        UnreachableError: no k or β does.
    """
    if release.epsilon > LARGEST_EPSILON or (release.beta is not None and release.beta < SMALLEST_BETA):
        raise ParameterError(
            f"epsilon must be {LARGEST_EPSILON:g} at most (beyond, nothing is promised), and beta 2**-64 at least.",
            code="parameter-range",
        )
    spent = release.selection_epsilon
    left = crowd.left_after(release.epsilon, spent)
    k, beta = release.k, release.beta
    if k is None and beta is None:
        k, beta = _best_for(release.crowd_of_interest or DEFAULT_CROWD_OF_INTEREST, left, release.delta)
    elif k is None and beta is not None:
        k = crowd.smallest_k(left, release.delta, beta)
    elif beta is None and k is not None:
        beta = crowd.largest_beta(left, release.delta, k)
    if k is None or beta is None:
        raise InternalError("a release was left without k or beta")
    settings = CrowdSettings(release.epsilon, release.delta, spent, k, beta, release.already_sampled)
    if not settings.kept:
        needed = crowd.smallest_k(left, release.delta, beta)
        raise GuaranteeError(
            f"k = {k} and beta = {beta:g} give delta = {settings.exact_delta:.3g} at epsilon = {release.epsilon:g}, "
            f"more than the {release.delta:g} promised.",
            code="promise-not-kept",
            remedy=f"At this beta the promise needs k = {needed}; or leave k out and it will be found.",
            details={"delta": settings.exact_delta, "k_needed": needed},
        )
    return settings


def _best_for(size: int, epsilon: float, delta: float) -> tuple[int, float]:
    best: tuple[float, int, float] | None = None
    for beta in _RATES:
        try:
            k = crowd.smallest_k(epsilon, delta, beta)
        except UnreachableError:
            continue
        kept = crowd.survival(size, k, beta)
        if best is None or kept > best[0]:
            best = (kept, k, beta)
    if best is None or best[0] == 0.0:
        raise UnreachableError(
            f"With this epsilon and delta no crowd of {size} would ever be published.",
            code="unreachable",
            remedy="Raise epsilon, delta or crowd_of_interest.",
        )
    return best[1], best[2]


def run(
    table: Histogram,
    attributes: Sequence[CodedAttribute],
    fixed: Mapping[str, int],
    settings: CrowdSettings,
    source: RandomSource,
) -> Outcome:
    """Choose what is left to choose, sample, recode, suppress.

    Args:
        table: the full table, raw codes, one column for each attribute.
        attributes: the attributes in the order of the table's columns.
        fixed: the levels that the policy fixes.
        settings: what is promised; checked once more before anything is drawn.
        source: the random bits.
    """
    if not settings.kept:
        raise InternalError("a sampled crowd was started with settings that do not keep its promise")
    open_ones = [a.name for a in attributes if a.name not in fixed]
    if settings.already_sampled and open_ones:
        raise GuaranteeError(
            "The table is declared to be a sample already, so its levels cannot be chosen by looking at it.",
            code="choice-on-sample",
            remedy="Give every attribute its 'level' in the policy.",
            details={"without_level": open_ones},
        )
    levels = dict(fixed)
    if open_ones:
        levels |= choose_levels(table, attributes, fixed, settings)
    recoded = table.recode({a.name: a.hierarchy.recode(levels[a.name]) for a in attributes})
    # Sampling commutes with recoding: thinning a recoded cell is sampling its records one by one.
    counts = recoded.counts if settings.already_sampled else source.binomial(recoded.counts, settings.beta)
    sample = recoded.with_counts(counts)
    return Outcome(sample.where(sample.counts >= settings.k), levels, sample, recoded)


def choose_levels(
    table: Histogram, attributes: Sequence[CodedAttribute], fixed: Mapping[str, int], settings: CrowdSettings
) -> dict[str, int]:
    """The ε₁-DP choice of the open levels, on the full table and before any sampling."""
    # Fixed columns take part as they will be published: they split cells, but offer no choice.
    known = table.recode({a.name: a.hierarchy.recode(fixed[a.name]) for a in attributes if a.name in fixed})
    share = WEIGHT_ONE // len(attributes)
    ladders = []
    for a in attributes:
        levels = [fixed[a.name]] if a.name in fixed else range(a.hierarchy.height + 1)
        weights = tuple(information(a, level, share) for level in levels)
        if a.name in fixed:
            maps: tuple[np.ndarray, ...] = (np.arange(len(weights[0]), dtype=np.int64),)
        else:
            maps = tuple(a.hierarchy.recode(level).to.astype(np.int64) for level in levels)
        ladders.append(Ladder(maps, weights))
    node = choose(
        Lattice(ladders),
        [known[a.name].codes for a in attributes],
        known.counts,
        k=settings.k,
        beta=settings.beta,
        epsilon=settings.selection_epsilon,
    )
    return {a.name: level for a, level in zip(attributes, node, strict=True) if a.name not in fixed}


def information(attribute: CodedAttribute, level: int, whole: int) -> np.ndarray:
    """What each label at a level still tells, in parts of `whole`: 1 − (values covered − 1)/(values in all − 1)."""
    covered = attribute.hierarchy.covered(level)
    total = int(covered.sum())
    if total == 1:
        return np.full(len(covered), whole, dtype=np.int64)
    return (total - covered) * whole // (total - 1)
