"""Planning a randomised table: how much may be kept, and what that promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.core.numbers import number
from incrowd.reports.svg import COLOURS, Axis, Line, Mark, line_chart
from incrowd.theory.profile import Relation
from incrowd.theory.randomisation import RetentionReplacement, local_epsilon
from incrowd.theory.shuffling import central_epsilon


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
    from incrowd.theory import randomisation
    from incrowd.theory.shuffling import central_epsilon

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


@lru_cache(maxsize=32)  # they stay the same while ρ is being looked for
def _pram_curves(
    records: int, domain: tuple[int, ...], delta: float, top: float
) -> tuple[list[float], list[float], list[float]]:
    grid = [float(r) for r in np.linspace(0.02, top, 17)]
    local, central = [], []
    for rho in grid:
        attributes = [RetentionReplacement(rho, size) for size in domain]
        local.append(local_epsilon(attributes))
        try:
            central.append(central_epsilon(attributes, records, delta).epsilon)
        except UnreachableError:
            central.append(math.nan)
    return grid, local, central


def draw_pram(plan: PramPlan) -> str:
    top = next(top for top in (0.5, 0.75, 0.98, 1.0) if plan.rho <= top)
    grid, local, central = _pram_curves(plan.records, plan.domain, plan.central.delta, min(top, 0.98))
    return line_chart(
        f"Randomising {plan.records:,} records over domains of {', '.join(map(str, plan.domain))}",
        Axis("ρ, the share of values kept", low=0.0),
        Axis("ε (replace-one)", log=True),
        [
            Line("one record (local)", grid, local, colour=COLOURS[1]),
            Line(f"the shuffled table, δ = {number(plan.central.delta)}", grid, central, colour=COLOURS[0]),
        ],
        [
            Mark(plan.rho, plan.epsilon_local, f"ρ = {plan.rho:.4g}"),
            Mark(plan.rho, plan.central.epsilon, f"ε = {plan.central.epsilon:.4g}"),
        ],
    )
