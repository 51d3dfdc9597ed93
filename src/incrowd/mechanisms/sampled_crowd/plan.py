"""Planning a sampled crowd: what amplification gives, and pictures of what one has for what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from incrowd.core.display import Showable
from incrowd.core.errors import ParameterError
from incrowd.core.numbers import as_given, number, number_up
from incrowd.mechanisms.planner import Planned, PlanTable
from incrowd.reports.svg import Axis, Line, Mark, line_chart
from incrowd.theory.crowd import CrowdPlan, CrowdProfile, FrontierPoint, frontier, left_after, paper_delta
from incrowd.theory.crowd import plan as plan_crowd
from incrowd.theory.profile import Relation, amplify

if TYPE_CHECKING:
    from incrowd.mechanisms.sampled_crowd.tree.plan import TreePlan


@dataclass(frozen=True, repr=False)
class Amplification(Showable):
    """What an (ε,δ) promise at one sampling rate becomes at a lower one (add/remove)."""

    epsilon: float
    delta: float
    from_epsilon: float
    from_delta: float
    from_beta: float
    to_beta: float
    relation: Relation = Relation.ADD_REMOVE

    def chart(self) -> str:
        return draw_amplification(self)


def plan_amplify(*, epsilon: float, delta: float, from_beta: float, to_beta: float) -> Amplification:
    """Privacy amplification by sampling (Li, Qardaji, Su, Theorem 1)."""
    amplified_epsilon, amplified_delta = amplify(epsilon, delta, from_beta, to_beta)
    return Amplification(amplified_epsilon, amplified_delta, epsilon, delta, from_beta, to_beta)


_POINTS = 48  # those of the first half are those at which a release says in numbers what it promises


def draw_crowd_plan(plan: CrowdPlan) -> str:
    return draw_crowd(plan, CrowdProfile(plan.k, plan.beta, rows=plan.rows_per_person).delta)


def draw_crowd(plan: CrowdPlan, delta_at: Callable[[float], float]) -> str:
    """The same, from an exact curve of which some points may be known already."""
    spent = plan.selection_epsilon
    top = max(2 * left_after(plan.epsilon, spent), 0.5)
    grid = [top * i / _POINTS for i in range(1, _POINTS + 1)]
    exact = [delta_at(e) for e in grid]
    total = [e + spent for e in grid]
    lines = [Line("exact" if plan.rows_per_person == 1 else "proved", total, exact)]
    if plan.rows_per_person == 1:
        paper = [paper_delta(plan.k, plan.beta, e) for e in grid]
        lines.append(Line("Theorem 5", total, paper, dashed=True))
    return line_chart(
        f"A crowd of {plan.k:,} at sampling rate {number(plan.beta)}",
        Axis("ε" if spent == 0 else f"ε, of which {as_given(spent)} is spent beside the crowd", low=0.0),
        Axis("δ", log=True, high=1.0),
        lines,
        [Mark(plan.epsilon, plan.delta, f"ε = {number(plan.epsilon)}, δ = {number(plan.delta)}")],
    )


def draw_frontier(points: Sequence[FrontierPoint], plan: CrowdPlan) -> str:
    """The smallest crowd at each sampling rate for the same promise, with the chosen one on it."""
    rates = [point.beta for point in points]
    return line_chart(
        f"Crowds that keep ε = {number(plan.epsilon)}, δ = {number(plan.delta)}",
        Axis("β, the sampling rate", low=0.0, high=1.0),
        Axis("k, the smallest crowd", log=True),
        [
            Line("exact", rates, [None if p.k is None else float(p.k) for p in points]),
            Line("Theorem 5", rates, [None if p.paper_k is None else float(p.paper_k) for p in points], dashed=True),
        ],
        [Mark(plan.beta, float(plan.k), f"k = {plan.k:,}")],
    )


def draw_amplification(plan: Amplification) -> str:
    import numpy as np

    rates = np.geomspace(min(plan.to_beta, plan.from_beta) / 10, plan.from_beta, 60)
    curve = [amplify(plan.from_epsilon, plan.from_delta, plan.from_beta, float(r))[0] for r in rates]
    return line_chart(
        f"ε = {number(plan.from_epsilon)} at rate {number(plan.from_beta)}, sampled further",
        Axis("sampling rate", log=True),
        Axis("ε", log=True),
        [Line("Theorem 1", [float(r) for r in rates], curve)],
        [Mark(plan.to_beta, plan.epsilon, f"ε = {number(plan.epsilon)}")],
    )


# --- for people -------------------------------------------------------------------------------------------------------


def planned_crowd(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    k: int | None = None,
    beta: float | None = None,
    selection_epsilon: float = 0.0,
    rows_per_person: int = 1,
    tree: bool = False,
    choice_rho: float | None = None,
) -> Planned:
    """Three of ε, δ, k and β give the fourth; or what a tree costs."""
    if tree or choice_rho is not None:
        if epsilon is None or delta is None or k is not None or selection_epsilon:
            raise ParameterError(
                "A tree goes with epsilon and delta, and with beta, choice_rho and rows per person, no other.",
                code="parameter-combination",
                remedy="Leave the other options out.",
            )
        from incrowd.mechanisms.sampled_crowd.tree.plan import plan_tree

        rows = rows_per_person
        return _tree(plan_tree(epsilon=epsilon, delta=delta, beta=beta, rho=choice_rho, rows_per_person=rows))
    plan = plan_crowd(
        epsilon=epsilon,
        delta=delta,
        k=k,
        beta=beta,
        selection_epsilon=selection_epsilon,
        rows_per_person=rows_per_person,
    )
    points = frontier(max(0.0, plan.epsilon - selection_epsilon), plan.delta, rows_per_person=rows_per_person)
    rows = plan.rows_per_person
    whom = "one record" if rows == 1 else f"a person with at most {number(rows)} rows"
    return Planned(
        plan,
        asdict(plan) | {"relation": Relation.ADD_REMOVE.value, "frontier": [asdict(point) for point in points]},
        f"Sample each record with probability {number(plan.beta, 6)}, publish crowds of {number(plan.k)} or more",
        (
            f"promises ε = {number_up(plan.epsilon, 6)}, δ = {number_up(plan.delta, 3)} for adding or removing {whom}",
            *(
                [f"of which ε₁ = {number(plan.selection_epsilon)} pays for choosing the mapping on the full table"]
                if plan.selection_epsilon
                else []
            ),
            _by_the_paper(plan),
        ),
        (
            PlanTable(
                ("β", "k", "k/β", "k by Theorem 5"),
                [
                    (
                        number(point.beta),
                        _count(point.k),
                        _count(None if point.k is None else round(point.k / point.beta)),
                        _count(point.paper_k),
                    )
                    for point in points
                ],
                "the same promise at other rates",
            ),
        ),
        f"About k/β {'people' if rows == 1 else 'rows'} make a crowd that is published as often as not: the least k/β "
        "shows the smallest groups, a larger β more of everyone in them.",
        lambda: draw_crowd_plan(plan),
        {"mechanism": "sampled_crowd", "epsilon": plan.epsilon, "delta": plan.delta, "k": plan.k, "beta": plan.beta}
        | ({"selection_epsilon": selection_epsilon} if selection_epsilon else {}),
    )


def _by_the_paper(plan: CrowdPlan) -> str:
    if plan.rows_per_person > 1:
        return "Theorem 5 of the paper speaks of people with one row"
    if plan.paper is None:
        return "Theorem 5 of the paper does not cover this rate: it needs ε ≥ −ln(1−β)"
    needed = "no k up to the limit" if plan.paper.k is None else f"k = {number(plan.paper.k)}"
    return f"by Theorem 5 of the paper: δ = {number_up(plan.paper.delta, 3)} at this k, or {needed} for this δ"


def _tree(plan: TreePlan) -> Planned:
    return Planned(
        plan,
        asdict(plan) | {"paper": None, "relation": Relation.ADD_REMOVE.value},
        f"Choose a tree with ρ = {number(plan.rho)}, sample each record with probability {number(plan.beta, 6)}, "
        f"publish crowds of {number(plan.k)} or more",
        (
            (
                f"promises ε = {number_up(plan.epsilon, 6)}, δ = {number_up(plan.delta, 3)} for adding or removing one "
                "record"
            ),
            f"without a choice, crowds of {number(plan.k_without)} would be enough at this rate",
        ),
        closing=f"About {number(round(plan.k / plan.beta))} people make a box that is published as often as not; the "
        f"tree aims at {number(plan.box)} or more. {_first_split(plan)}",
        section={
            "mechanism": "sampled_crowd",
            "recoding": "tree",
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "beta": plan.beta,
            "choice_rho": plan.rho,
        },
    )


def _first_split(plan: TreePlan) -> str:
    if plan.least_records is None:
        return "No table of a usual size has enough records for a single split: raise ε, δ or ρ."
    return f"The first split needs about {number(plan.least_records)} records."


def planned_amplification(*, epsilon: float, delta: float, from_beta: float, to_beta: float) -> Planned:
    """What a promise becomes at a lower rate."""
    plan = plan_amplify(epsilon=epsilon, delta=delta, from_beta=from_beta, to_beta=to_beta)
    return Planned(
        plan,
        asdict(plan),
        f"At sampling rate {number(plan.to_beta)}: ε = {number_up(plan.epsilon, 6)}, δ = {number_up(plan.delta, 3)}",
        (
            (
                f"from ε = {number(plan.from_epsilon)}, δ = {number(plan.from_delta)} at rate "
                f"{number(plan.from_beta)}, for adding or removing one record (Theorem 1)"
            ),
        ),
        draw=lambda: draw_amplification(plan),
    )


def _count(value: int | None) -> str:
    return "—" if value is None else number(value)
