"""Planning a randomised table: how much may be kept, and what that promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from incrowd.core.display import Showable
from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.core.numbers import few_digits, number, number_down, number_up
from incrowd.mechanisms.planner import Planned
from incrowd.mechanisms.pram.blocks import as_drawn
from incrowd.reports.svg import COLOURS, Axis, Line, Mark, line_chart
from incrowd.theory._numbers import require_between, round_up
from incrowd.theory.crowd import require_rows
from incrowd.theory.profile import Relation
from incrowd.theory.randomisation import RetentionReplacement, local_epsilon
from incrowd.theory.shuffling import central_delta, central_epsilon, group_epsilon


@dataclass(frozen=True)
class CentralPromise:
    """What shuffling makes of the local promise, for whoever sees only the shuffled table."""

    epsilon: float
    delta: float
    bound: str


@dataclass(frozen=True, repr=False)
class PramPlan(Showable):
    """Retention-replacement of every attribute: what is kept, and what that promises.

    Attributes:
        rho: the probability with which each value is kept; one for all attributes.
        epsilon_local: ε for whoever sees one randomised record (replace-one).
        k: nobody is linked to a record with probability above 1/k (Pk-anonymity).
        central: the promise for whoever sees the shuffled table (replace-one).
        records: the number of records that the promises about the whole table need, at least.
        domain: the number of declared values of each attribute.
        rows_per_person: how many records one person has at most. Both ε are about all of them, k about each.
        beta: the probability with which each record is redrawn and published; k is then that of as many as expected.
    """

    rho: float
    epsilon_local: float
    k: float
    central: CentralPromise
    records: int
    domain: tuple[int, ...]
    relation: Relation = Relation.REPLACE_ONE
    rows_per_person: int = 1
    beta: float = 1.0

    def chart(self) -> str:
        """Its trade-off as an SVG document."""
        return draw_pram(self)


def plan_pram(
    *,
    records: int,
    domain: Sequence[int],
    k: float | None = None,
    epsilon: float | None = None,
    rho: float | None = None,
    delta: float = 1e-6,
    rows_per_person: int = 1,
    beta: float | None = None,
) -> PramPlan:
    """Randomise every record: ρ from Pk, from ε, from both, or given (Ikarashi et al., Algorithms 1-3).

    With beta, every record of a random sample. k is then not to be had: it depends on how many records are drawn.
    """
    from incrowd.theory import randomisation

    sizes, rows = tuple(domain), require_rows(rows_per_person)
    epsilon = epsilon if epsilon is None or rows == 1 else math.nextafter(epsilon / rows, 0.0)
    if beta is not None and k is not None:
        raise ParameterError(
            "k depends on how many records are drawn.",
            code="parameter-combination",
            remedy="Give epsilon or rho with beta.",
        )
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
    rate = 1.0 if beta is None else as_drawn(require_between("beta", beta, 0.0, 1.0, open_high=False))
    central = group_epsilon(attributes, records, delta, rows, rate)
    local = randomisation.local_epsilon(attributes)
    return PramPlan(
        rho=rho,
        epsilon_local=local if rows == 1 else round_up(rows * local),
        k=randomisation.pk(attributes, records if rate == 1 else max(1, int(rate * records))),
        central=CentralPromise(central.epsilon, central.delta, central.bound),
        records=records,
        domain=sizes,
        rows_per_person=rows,
        beta=rate,
    )


@lru_cache(maxsize=32)  # they stay the same while ρ is being looked for
def _pram_curves(
    records: int, domain: tuple[int, ...], delta: float, top: float, rows: int, rate: float
) -> tuple[list[float], list[float], list[float]]:
    grid = [float(r) for r in np.linspace(0.02, top, 17)]
    local, central = [], []
    for rho in grid:
        attributes = [RetentionReplacement(rho, size) for size in domain]
        local.append(rows * local_epsilon(attributes))
        try:
            central.append(group_epsilon(attributes, records, delta, rows, rate).epsilon)
        except UnreachableError:
            central.append(math.nan)
    return grid, local, central


def draw_pram(plan: PramPlan) -> str:
    top = next(top for top in (0.5, 0.75, 0.98, 1.0) if plan.rho <= top)
    grid, local, central = _pram_curves(
        plan.records, plan.domain, plan.central.delta, min(top, 0.98), plan.rows_per_person, plan.beta
    )
    return line_chart(
        f"Randomising {plan.records:,} records over domains of {', '.join(map(str, plan.domain))}",
        Axis("ρ, the share of values kept", low=0.0),
        Axis("ε (replace-one)", log=True),
        [
            Line(
                "one record (local)" if plan.rows_per_person == 1 else "one person (local)",
                grid,
                local,
                colour=COLOURS[1],
            ),
            Line(f"the shuffled table, δ = {number(plan.central.delta)}", grid, central, colour=COLOURS[0]),
        ],
        [
            Mark(plan.rho, plan.epsilon_local, f"ρ = {number(plan.rho)}"),
            Mark(plan.rho, plan.central.epsilon, f"ε = {number(plan.central.epsilon)}"),
        ],
    )


_HALVINGS = 30


def largest_retention(sizes: Sequence[int], records: int, epsilon: float, delta: float) -> float:
    """The largest ρ, one for all columns, whose shuffled table is (ε,δ)-DP for replacing one record.

    Args:
        sizes: how many values each column has.
        records: how many there are.
        epsilon: of the shuffled table.
        delta: of the shuffled table.

    Raises:
        UnreachableError: no ρ above 0 was found.
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = as_drawn((low + high) / 2)
        laws = [RetentionReplacement(middle, size) for size in sizes]
        kept = central_delta(laws, records, epsilon).delta <= delta
        low, high = (middle, high) if kept else (low, middle)
    # What a release states is rounded up, so the very largest ρ may state a little more than ε.
    for less in (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
        rho = as_drawn(low * (1 - less))
        laws = [RetentionReplacement(rho, size) for size in sizes]
        if rho and few_digits(central_epsilon(laws, records, delta).epsilon, 6, up=True) <= epsilon:
            return rho
    raise UnreachableError("No retention above 0 was found to keep the promise.", code="unreachable")


def planned_pram(**given: Any) -> Planned:
    """What `plan_pram` finds, for people."""
    plan = plan_pram(**given)
    rows = plan.rows_per_person
    whose = "one record, randomised by its owner" if rows == 1 else f"all records of a person, up to {number(rows)}"
    whom = "one record by another" if rows == 1 else f"{whose}; k is about each record"
    sampled = [f"of a random sample: each record with probability β = {number(plan.beta, 6)}"] if plan.beta < 1 else []
    return Planned(
        plan,
        asdict(plan),
        f"Keep each value with probability ρ = {number(plan.rho, 6)}, else draw one of its domain",
        (
            *sampled,
            f"{whose}: ε = {number_up(plan.epsilon_local)}",
            f"linking a person to a record: at most 1 in k = {number_down(plan.k)}",
            (
                f"the shuffled table of {number(plan.records)}: ε = {number_up(plan.central.epsilon)}, "
                f"δ = {number(plan.central.delta)} ({plan.central.bound})"
            ),
            f"all for replacing {whom}",
        ),
        draw=lambda: draw_pram(plan),
        section={"mechanism": "pram", "rho": plan.rho, "delta": plan.central.delta},
    )
