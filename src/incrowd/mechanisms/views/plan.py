"""Planning a set of views: how many of what size a promise carries."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from incrowd.core.display import Showable
from incrowd.core.errors import ParameterError
from incrowd.core.numbers import number
from incrowd.mechanisms.planner import Planned, PlanTable
from incrowd.mechanisms.views.section import Choose
from incrowd.mechanisms.views.settle import SINGLE_SHARE, SINGLE_SHARE_OF_CROWDS, rounds_of
from incrowd.theory._numbers import require_between, require_count
from incrowd.theory.views import (
    CrowdStep,
    Step,
    ViewsPlan,
    plan_crowds,
    plan_noise,
    plan_noise_of_sample,
    quick_crowds,
)

_SMALL = 100
"""A set of views is carried if groups of one in so many people show."""
_MOST = 1 << 12


@dataclass(frozen=True)
class ViewsStep:
    """How views are drawn: k and β, or the standard deviation of their counts.

    Attributes:
        people: about how many people a cell must have to be shown; of noisy counts, two standard deviations.
        cells: how many cells of that size so many rows have: about as many as a view can carry.
    """

    k: int | None
    beta: float | None
    standard_deviation: float | None
    people: float
    cells: int


@dataclass(frozen=True)
class ViewsOption:
    """A set of views: a way of choosing them, how many there are, and how they and the one-way tables are drawn."""

    choose: Choose
    views: int
    single: ViewsStep
    view: ViewsStep
    delta: float


@dataclass(frozen=True, repr=False)
class ViewsBudget(Showable):
    """What a promise carries.

    Attributes:
        columns: how many there are; each has a one-way table.
        k: of the views along a tree of pairs; nothing for noise.
        beta: their sampling rate; nothing for noise.
        views: how many further views there are along a tree of pairs.
        carried: the most pairs, chosen along with the one-way tables, in which groups of one in 100 people show.
        options: other ways of choosing views, at the same promise.
        rows_per_person: how many rows one person has at most; the promise is about all of them.
        sample_rate: of a table that is itself a sample, the rate; the promise is to all who could have been in it.
    """

    columns: int
    rows: int
    epsilon: float
    delta: float
    by: str
    views: int
    k: int | None
    beta: float | None
    standard_deviation: float | None
    carried: int
    options: tuple[ViewsOption, ...]
    rows_per_person: int = 1
    sample_rate: float | None = None


def plan_views(
    *,
    columns: int,
    rows: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    by: Literal["crowd", "noise"] = "crowd",
    share: float = 0.1,
    rows_per_person: int = 1,
    sample_rate: float | None = None,
) -> ViewsBudget:
    """How many views of what size a promise carries, for each way of choosing them."""
    if sample_rate is not None and (by == "crowd" or rows_per_person > 1):
        raise ParameterError(
            "Of a table that is itself a sample, views are noisy counts of people with one row each.",
            code="parameter-combination",
            remedy="Plan by noise and for one row a person, or leave out the sample's rate.",
        )
    require_count("columns", columns, least=2)
    require_count("rows", rows)
    require_between("share", share, 0.0, 0.9)
    ways = [Choose(), *([Choose(columns=3)] if columns > 2 else []), Choose(how="adaptive")]
    options = []
    for way in ways:
        plan = _plan(by, epsilon, delta, columns, rounds_of(way, columns), share, rows_per_person, sample_rate)
        single, view = _step(plan.single, rows), _step(plan.view, rows)
        options.append(ViewsOption(way, plan.views, single, view, plan.exact_delta))
    tree = options[0]
    carried = _carried(by, epsilon, delta, columns, share, rows, rows_per_person, sample_rate)
    return ViewsBudget(
        columns,
        rows,
        epsilon,
        delta,
        by,
        tree.views,
        tree.view.k,
        tree.view.beta,
        tree.view.standard_deviation,
        carried,
        tuple(options),
        rows_per_person,
        sample_rate,
    )


def _plan(
    by: str, epsilon: float, delta: float, columns: int, views: int, share: float, each: int, rate: float | None
) -> ViewsPlan:
    if rate is not None:
        return plan_noise_of_sample(
            epsilon, delta, rate, columns, views, views, single_share=SINGLE_SHARE, choice_share=share
        )
    if by == "crowd":
        return plan_crowds(
            epsilon,
            delta,
            columns,
            views,
            views,
            single_share=SINGLE_SHARE_OF_CROWDS,
            choice_share=share,
            rows=each,
        )
    return plan_noise(epsilon, delta, columns, views, views, single_share=SINGLE_SHARE, choice_share=share, rows=each)


def _step(step: Step, rows: int) -> ViewsStep:
    if isinstance(step, CrowdStep):
        return ViewsStep(step.k, step.beta, None, step.threshold, int(rows // step.threshold))
    people = 2 * step.deviation
    return ViewsStep(None, None, step.deviation, people, int(rows // people))


def _carried(
    by: str, epsilon: float, delta: float, columns: int, share: float, rows: int, each: int, rate: float | None
) -> int:
    """By bisection: more views need larger crowds, or more noise. It is a guide, so crowds are not proved here."""

    def enough(views: int) -> bool:
        if by == "crowd":
            plan = quick_crowds(
                epsilon,
                delta,
                columns,
                views,
                views,
                single_share=SINGLE_SHARE_OF_CROWDS,
                choice_share=share,
                rows=each,
            )
        else:
            plan = _plan(by, epsilon, delta, columns, views, share, each, rate)
        return plan is not None and _step(plan.view, rows).people * _SMALL <= rows

    low, high = 0, 1
    while high < _MOST and enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def planned_views(**given: Any) -> Planned:
    """What `plan_views` finds, for people."""
    plan = plan_views(**given)
    payload = asdict(plan)
    for written, option in zip(payload["options"], plan.options, strict=True):
        written["choose"] = option.choose.model_dump()
    crowds = plan.by == "crowd"
    rows: list[tuple[str, ...]] = []
    for place, option in enumerate(plan.options):
        if place == 0:
            rows.append(_row("one-way tables", plan.columns, option.single))
        what = f"{'pairs' if option.choose.columns == 2 else 'triples'}, {option.choose.how}"
        rows.append(_row(what, option.views, option.view))
    groups = "cells" if crowds else "counts, by two standard deviations,"
    return Planned(
        plan,
        payload,
        f"{number(plan.columns)} one-way tables and {number(plan.views)} pairs along a tree keep "
        f"ε = {number(plan.epsilon)}, δ = {number(plan.delta)}",
        tables=(PlanTable(("views", "drawn as", "how many", "people of a cell", "cells of a view"), rows, words=2),),
        closing=f"Up to {number(plan.carried)} pairs are carried, in which {groups} of one in 100 of "
        f"{number(plan.rows)} people show. A view with more cells than the last column says shows its larger ones.",
        section={"mechanism": "views", "epsilon": plan.epsilon, "delta": plan.delta, "by": plan.by}
        | ({} if plan.sample_rate is None else {"already_sampled": True, "beta": plan.sample_rate}),
    )


def _row(what: str, times: int, step: ViewsStep) -> tuple[str, ...]:
    if step.k is not None and step.beta is not None:
        drawn = f"crowds, k = {number(step.k)}, β = {number(step.beta)}"
    else:
        drawn = f"noise, σ = {number(step.standard_deviation or 0.0, 3)}"
    return (what, drawn, number(times), number(round(step.people)), number(step.cells))
