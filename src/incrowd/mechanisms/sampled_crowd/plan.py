"""Planning a sampled crowd: what amplification gives, and pictures of what one has for what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.core.numbers import number
from incrowd.reports.svg import Axis, Line, Mark, line_chart
from incrowd.theory.crowd import CrowdPlan, CrowdProfile, FrontierPoint, left_after, paper_delta
from incrowd.theory.profile import Relation, amplify


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
        f"A crowd of {plan.k:,} at sampling rate {plan.beta:.4g}",
        Axis("ε" if spent == 0 else f"ε, of which {spent:g} is spent beside the crowd", low=0.0),
        Axis("δ", log=True, high=1.0),
        lines,
        [Mark(plan.epsilon, plan.delta, f"ε = {plan.epsilon:.4g}, δ = {number(plan.delta)}")],
    )


def draw_frontier(points: Sequence[FrontierPoint], plan: CrowdPlan) -> str:
    """The smallest crowd at each sampling rate for the same promise, with the chosen one on it."""
    rates = [point.beta for point in points]
    return line_chart(
        f"Crowds that keep ε = {plan.epsilon:.4g}, δ = {number(plan.delta)}",
        Axis("β, the sampling rate", low=0.0, high=1.0),
        Axis("k, the smallest crowd", log=True),
        [
            Line("exact", rates, [None if p.k is None else float(p.k) for p in points]),
            Line("Theorem 5", rates, [None if p.paper_k is None else float(p.paper_k) for p in points], dashed=True),
        ],
        [Mark(plan.beta, float(plan.k), f"k = {plan.k:,}")],
    )


def draw_amplification(plan: Amplification) -> str:
    rates = np.geomspace(min(plan.to_beta, plan.from_beta) / 10, plan.from_beta, 60)
    curve = [amplify(plan.from_epsilon, plan.from_delta, plan.from_beta, float(r))[0] for r in rates]
    return line_chart(
        f"ε = {plan.from_epsilon:.4g} at rate {plan.from_beta:.4g}, sampled further",
        Axis("sampling rate", log=True),
        Axis("ε", log=True),
        [Line("Theorem 1", [float(r) for r in rates], curve)],
        [Mark(plan.to_beta, plan.epsilon, f"ε = {plan.epsilon:.4g}")],
    )
