"""Plans: parameters that keep a promise, found before any data is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from incrowd.errors import ParameterError, UnreachableError
from incrowd.guarantees import crowd
from incrowd.guarantees.crowd import CrowdPlan, FrontierPoint
from incrowd.guarantees.profile import Relation, amplify
from incrowd.guarantees.sampling import ValueClasses

__all__ = [
    "Amplification",
    "CentralPromise",
    "CrowdPlan",
    "FrontierPoint",
    "PramPlan",
    "Relation",
    "SamplePlan",
    "SampleTheorem",
    "frontier",
    "plan_amplify",
    "plan_crowd",
    "plan_pram",
    "plan_sample",
]

frontier = crowd.frontier
plan_crowd = crowd.plan


@dataclass(frozen=True)
class Amplification:
    """What an (ε,δ) promise at one sampling rate becomes at a lower one (add/remove)."""

    epsilon: float
    delta: float
    from_epsilon: float
    from_delta: float
    from_beta: float
    to_beta: float
    relation: Relation = Relation.ADD_REMOVE


def plan_amplify(*, epsilon: float, delta: float, from_beta: float, to_beta: float) -> Amplification:
    """Privacy amplification by sampling (Li, Qardaji, Su, Theorem 1)."""
    amplified_epsilon, amplified_delta = amplify(epsilon, delta, from_beta, to_beta)
    return Amplification(amplified_epsilon, amplified_delta, epsilon, delta, from_beta, to_beta)


@dataclass(frozen=True)
class CentralPromise:
    """What shuffling makes of the local promise, for whoever sees only the shuffled table."""

    epsilon: float
    delta: float
    bound: str


@dataclass(frozen=True)
class PramPlan:
    """Retention-replacement of every attribute: what is kept, and what that promises.

    Attributes:
        rho: the probability with which each value is kept; one for all attributes.
        epsilon_local: ε for whoever sees one randomised record (replace-one).
        k: nobody is linked to a record with probability above 1/k (Pk-anonymity).
        central: the promise for whoever sees the shuffled table (replace-one).
        records: the number of records that the promises about the whole table need, at least.
        domain: the number of declared values of each attribute.
    """

    rho: float
    epsilon_local: float
    k: float
    central: CentralPromise
    records: int
    domain: tuple[int, ...]
    relation: Relation = Relation.REPLACE_ONE


def plan_pram(
    *,
    records: int,
    domain: Sequence[int],
    k: float | None = None,
    epsilon: float | None = None,
    rho: float | None = None,
    delta: float = 1e-6,
) -> PramPlan:
    """Randomise every record: ρ from Pk, from ε, from both, or given (Ikarashi et al., Algorithms 1-3)."""
    from incrowd.guarantees import randomisation
    from incrowd.guarantees.shuffling import central_epsilon

    sizes = tuple(domain)
    if rho is not None:
        if k is not None or epsilon is not None:
            raise ParameterError(
                "Give rho, or what it should reach (k, epsilon), not both.", code="parameter-combination"
            )
    elif k is not None and epsilon is not None:
        rho = randomisation.retention_for_both(k, epsilon, records, sizes)
    elif k is not None:
        rho = randomisation.retention_for_k(k, records, sizes)
    elif epsilon is not None:
        rho = randomisation.retention_for_epsilon(epsilon, sizes)
    else:
        raise ParameterError(
            "A randomised release needs k, epsilon, both, or rho.",
            code="parameter-combination",
            remedy="Give k and/or epsilon to find rho, or rho to see what it promises.",
        )
    attributes = [randomisation.RetentionReplacement(rho, size) for size in sizes]
    central = central_epsilon(attributes, records, delta)
    return PramPlan(
        rho=rho,
        epsilon_local=randomisation.local_epsilon(attributes),
        k=randomisation.pk(attributes, records),
        central=CentralPromise(central.epsilon, central.delta, central.bound),
        records=records,
        domain=sizes,
    )


@dataclass(frozen=True)
class SampleTheorem:
    """What Theorem 3 or 7 of the paper allows: a rate, the ε it promises there, and how many values it calls rare."""

    rate: float
    epsilon: float
    rare: int


@dataclass(frozen=True)
class SamplePlan:
    """A rate of a plain sample of one table, and what it promises (Chaudhuri, Mishra).

    Attributes:
        rate: each row is sampled with this probability.
        epsilon: what changing rows can do to the likelihood of the sample, less 1.
        delta: the probability of a sample of which that is not true.
        rows_unknown: c, how many rows may be changed.
        exact: whether no larger rate, or for a planned one no smaller promise, would do; if not, the true largest
            rate is at most `rate_at_most`.
        rate_at_most: an upper bound on the largest rate; a planned rate itself.
        theorem: the paper's own rate, or None where its theorem gives none.
        classes: how many distinct rows are rare, infrequent and common at this rate.
        distinct: the number of distinct rows.
        curve: pairs of a rate and its δ, for drawing; empty unless asked for.
    """

    rate: float
    epsilon: float
    delta: float
    rows_unknown: int
    exact: bool
    rate_at_most: float
    theorem: SampleTheorem | None
    classes: ValueClasses
    distinct: int
    curve: tuple[tuple[float, float], ...] = ()

    @property
    def relation(self) -> str:
        """Tables of the same size that differ in `rows_unknown` rows."""
        return Relation.REPLACE_ONE.value if self.rows_unknown == 1 else f"replace-{self.rows_unknown}"


def plan_sample(
    counts: ArrayLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rate: float | None = None,
    rows_unknown: int = 1,
    curve_points: int = 0,
) -> SamplePlan:
    """A plain sample of a table given by the counts of its distinct rows: two of ε, δ and the rate give the third.

    The largest safe rate for an ε and a δ; or the δ or the ε that a planned rate promises.
    """
    from incrowd.guarantees import sampling

    if sum(given is None for given in (epsilon, delta, rate)) != 1:
        raise ParameterError(
            "Give two of epsilon, delta and rate; the third follows.",
            code="parameter-combination",
            remedy="Epsilon and delta give the largest safe rate; a rate with one of them gives what it promises.",
        )
    if rate is None and epsilon is not None and delta is not None:
        best = sampling.largest_rate(counts, epsilon, delta, rows_unknown)
        rate, at_most, exact = best.rate, best.rate_at_most, best.exact
    else:
        epsilon, delta, exact = _promised(counts, epsilon, delta, rate or 0.0, rows_unknown)
        rate = at_most = rate or 0.0
    try:
        found = sampling.theorem_rate(counts, epsilon, delta, rows_unknown)
        theorem, inner = SampleTheorem(found.rate, found.epsilon, found.rare), found.inner_epsilon
    except UnreachableError:
        theorem, inner = None, epsilon
    rates = np.geomspace(rate / 4, min(1.0, rate * 2), curve_points)
    return SamplePlan(
        rate=rate,
        epsilon=epsilon,
        delta=delta,
        rows_unknown=rows_unknown,
        exact=exact,
        rate_at_most=at_most,
        theorem=theorem,
        classes=sampling.classify(counts, rate, inner, delta, rows_unknown),
        distinct=int(np.size(np.asarray(counts))),
        curve=tuple((float(r), sampling.sample_delta(counts, float(r), epsilon, rows_unknown).delta) for r in rates),
    )


def _promised(
    counts: ArrayLike, epsilon: float | None, delta: float | None, rate: float, rows_unknown: int
) -> tuple[float, float, bool]:
    """The ε and δ of a planned rate, one of them given."""
    from incrowd.guarantees import sampling

    if epsilon is None:
        least = sampling.sample_epsilon(counts, rate, delta or 0.0, rows_unknown)
        if least.epsilon == 0.0:
            raise UnreachableError(
                f"At rate {rate:g} nothing is sampled, but for a probability of {least.delta:.3g}.",
                code="unreachable",
                remedy="Plan a higher rate, or accept a smaller delta.",
            )
        return least.epsilon, delta or 0.0, least.exact
    reached = sampling.sample_delta(counts, rate, epsilon, rows_unknown)
    if reached.delta >= 1.0:
        raise UnreachableError(
            f"At rate {rate:g} practically no sample keeps epsilon = {epsilon:g}.",
            code="unreachable",
            remedy="Lower the rate, or accept a larger epsilon.",
        )
    return epsilon, reached.delta, reached.exact
