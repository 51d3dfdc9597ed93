"""The trade-off behind each plan as a picture, with the chosen point on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np

from incrowd.errors import UnreachableError
from incrowd.guarantees.crowd import CrowdProfile, FrontierPoint, left_after, paper_delta
from incrowd.guarantees.profile import amplify
from incrowd.guarantees.randomisation import RetentionReplacement, local_epsilon
from incrowd.guarantees.shuffling import central_epsilon
from incrowd.plans import Amplification, CrowdPlan, PramPlan, SamplePlan
from incrowd.reports.svg import COLOURS, Axis, Line, Mark, line_chart, print_number

_POINTS = 48  # those of the first half are those at which a release says in numbers what it promises


@singledispatch
def draw(plan: Any) -> str:
    """A plan's trade-off as an SVG document."""
    raise TypeError(f"no chart for {type(plan).__name__}")


@draw.register
def _(plan: CrowdPlan) -> str:
    return draw_crowd(plan, CrowdProfile(plan.k, plan.beta).delta)


def draw_crowd(plan: CrowdPlan, delta_at: Callable[[float], float]) -> str:
    """The same, from an exact curve of which some points may be known already."""
    spent = plan.selection_epsilon
    top = max(2 * left_after(plan.epsilon, spent), 0.5)
    grid = [top * i / _POINTS for i in range(1, _POINTS + 1)]
    exact = [delta_at(e) for e in grid]
    paper = [paper_delta(plan.k, plan.beta, e) for e in grid]
    total = [e + spent for e in grid]
    return line_chart(
        f"A crowd of {plan.k:,} at sampling rate {plan.beta:.4g}",
        Axis("ε" if spent == 0 else f"ε, of which {spent:g} chooses the mapping", low=0.0),
        Axis("δ", log=True, high=1.0),
        [Line("exact", total, exact), Line("Theorem 5", total, paper, dashed=True)],
        [Mark(plan.epsilon, plan.delta, f"ε = {plan.epsilon:.4g}, δ = {print_number(plan.delta)}")],
    )


def draw_frontier(points: Sequence[FrontierPoint], plan: CrowdPlan) -> str:
    """The smallest crowd at each sampling rate for the same promise, with the chosen one on it."""
    rates = [point.beta for point in points]
    return line_chart(
        f"Crowds that keep ε = {plan.epsilon:.4g}, δ = {print_number(plan.delta)}",
        Axis("β, the sampling rate", low=0.0, high=1.0),
        Axis("k, the smallest crowd", log=True),
        [
            Line("exact", rates, [None if p.k is None else float(p.k) for p in points]),
            Line("Theorem 5", rates, [None if p.paper_k is None else float(p.paper_k) for p in points], dashed=True),
        ],
        [Mark(plan.beta, float(plan.k), f"k = {plan.k:,}")],
    )


@draw.register
def _(plan: Amplification) -> str:
    rates = np.geomspace(min(plan.to_beta, plan.from_beta) / 10, plan.from_beta, 60)
    curve = [amplify(plan.from_epsilon, plan.from_delta, plan.from_beta, float(r))[0] for r in rates]
    return line_chart(
        f"ε = {plan.from_epsilon:.4g} at rate {plan.from_beta:.4g}, sampled further",
        Axis("sampling rate", log=True),
        Axis("ε", log=True),
        [Line("Theorem 1", [float(r) for r in rates], curve)],
        [Mark(plan.to_beta, plan.epsilon, f"ε = {plan.epsilon:.4g}")],
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


@draw.register
def _(plan: PramPlan) -> str:
    top = next(top for top in (0.5, 0.75, 0.98, 1.0) if plan.rho <= top)
    grid, local, central = _pram_curves(plan.records, plan.domain, plan.central.delta, min(top, 0.98))
    return line_chart(
        f"Randomising {plan.records:,} records over domains of {', '.join(map(str, plan.domain))}",
        Axis("ρ, the share of values kept", low=0.0),
        Axis("ε (replace-one)", log=True),
        [
            Line("one record (local)", grid, local, colour=COLOURS[1]),
            Line(f"the shuffled table, δ = {print_number(plan.central.delta)}", grid, central, colour=COLOURS[0]),
        ],
        [
            Mark(plan.rho, plan.epsilon_local, f"ρ = {plan.rho:.4g}"),
            Mark(plan.rho, plan.central.epsilon, f"ε = {plan.central.epsilon:.4g}"),
        ],
    )


@draw.register
def _(plan: SamplePlan) -> str:
    rates, deltas = zip(*plan.curve, strict=True) if plan.curve else ((plan.rate,), (plan.delta,))
    marks = [Mark(plan.rate, plan.delta, f"p = {plan.rate:.3g}")]
    if plan.theorem is not None:
        marks.append(Mark(plan.theorem.rate, plan.delta, f"the paper's theorem: {plan.theorem.rate:.2g}"))
    return line_chart(
        f"INTERNAL: a plain sample of a table with {plan.distinct:,} distinct rows",
        Axis("sampling rate", log=True),
        Axis("δ, the probability of a telling sample", log=True, low=plan.delta / 100, high=1.0),
        [Line("exact", rates, deltas)],
        marks,
    )
