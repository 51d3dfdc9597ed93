"""The page on plans: numbers, curves, and what they mean in plain words.

Three planners have pages of their own here. Any other one of the registry has a form made from its options.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from incrowd import api
from incrowd.core.errors import IncrowdError, ParameterError
from incrowd.studio.pages import OWN_PLANS, markup, render

_MOST_SIZES = 200_000  # different counts of a table's rows
_MOST_ROWS = 10**9  # distinct ones of a table
_LARGEST_SIZE = 10**15  # of a domain, or of a group of equal rows


def crowd(asked: Mapping[str, str]) -> str:
    """Three of ε, δ, k and β give the fourth."""
    given: dict[str, Any] = {name: _number(asked, name) for name in ("epsilon", "delta", "beta")}
    k = _number(asked, "k")
    selection = _number(asked, "selection_epsilon") or 0.0
    planned = api.planners()["crowd"].solve(**given, k=None if k is None else round(k), selection_epsilon=selection)
    plan = planned.answer
    if not isinstance(plan, api.CrowdPlan):
        raise _malformed()
    points = api.frontier(max(0.0, plan.epsilon - selection), plan.delta)
    usual = max(2, math.ceil(plan.k / plan.beta))
    sizes = sorted({plan.k, math.ceil(usual / 2), usual, math.ceil(1.5 * usual), 2 * usual})
    return render(
        "crowd_plan",
        plan=plan,
        section=_section(planned),
        points=points,
        chart=markup(api.draw_plan(plan)),
        frontier=markup(api.draw_frontier(points, plan)),
        odds=api.odds_at_most(plan.epsilon),
        after=api.belief_at_most(plan.epsilon),
        one_in=1 / plan.delta if plan.delta > 0 else math.inf,
        survival=[(size, api.survival(size, plan.k, plan.beta)) for size in sizes],
    )


def pram(asked: Mapping[str, str]) -> str:
    """How much of each value may be kept, and what that promises."""
    planned = _pram_plan(asked)
    plan = planned.answer
    if not isinstance(plan, api.PramPlan):
        raise _malformed()
    return render("pram_plan", plan=plan, section=_section(planned), after=api.belief_at_most(plan.central.epsilon))


def pram_picture(asked: Mapping[str, str]) -> str:
    """The curve behind it, which takes a while."""
    return api.draw_plan(_pram_plan(asked))


def sample(asked: Mapping[str, Any]) -> str:
    """The largest safe rate of a plain sample of a table whose rows occur so often."""
    import numpy as np

    try:
        sizes = [(int(size), int(many)) for size, many in asked["sizes"]]
        numbers = {name: float(asked[name]) for name in ("epsilon", "delta")}
        unknown = int(asked.get("rows_unknown") or 1)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _malformed() from None
    if not sizes or len(sizes) > _MOST_SIZES or any(not 1 <= size <= _LARGEST_SIZE or many < 1 for size, many in sizes):
        raise _malformed()
    if sum(many for _, many in sizes) > _MOST_ROWS:
        raise ParameterError("The table has too many distinct rows to be planned for here.", code="parameter-range")
    counts = np.repeat(*np.array(sizes, dtype=np.int64).T)
    planned = api.planners()["sample"].solve(counts=counts, **numbers, rows_unknown=unknown, curve_points=30)
    return render(
        "sample_plan",
        plan=planned.answer,
        section=_section(planned),
        chart=markup(api.draw_plan(planned)),
        records=int(counts.sum()),
    )


def solved(asked: Mapping[str, str]) -> str:
    """The answer of a planner that has no page of its own; its name is asked for as `planner`."""
    planner = api.planners().get(asked.get("planner", ""))
    if planner is None or planner.of_table or planner.name in OWN_PLANS:
        raise ParameterError("There is no such planner.", code="parameter-range")
    given = {option.name: value for option in planner.options if (value := _value(asked, option)) is not None}
    for option in planner.options:
        if option.required and option.name not in given:
            raise ParameterError(f"{option.name} must be given.", code="parameter-type")
    planned = planner.solve(**given)
    chart = None if planned.draw is None else markup(api.draw_plan(planned))
    return render("any_plan", planned=planned, section=_section(planned), chart=chart)


def _value(asked: Mapping[str, str], option: api.PlanOption) -> Any:
    text = asked.get(option.name, "").strip()
    if option.kind == "flag":
        return text == "on"
    if not text or option.kind == "choice":
        return text or None
    if option.kind == "sizes":
        return _sizes(text)
    number = _number(asked, option.name)
    return round(number) if number is not None and option.kind == "count" else number


def _section(planned: api.Planned) -> dict[str, str]:
    """What the policy would say, to the last digit: what is rounded might not keep its promise."""
    return {key: str(value) for key, value in planned.section.items()}


def _pram_plan(asked: Mapping[str, str]) -> api.Planned:
    records = _number(asked, "records")
    if records is None:
        raise ParameterError("The number of records must be given.", code="parameter-type")
    wanted = {name: _number(asked, name) for name in ("k", "epsilon", "rho")}
    domain, delta = _sizes(asked.get("domain", "")), _number(asked, "delta") or 1e-6
    return api.planners()["pram"].solve(records=round(records), domain=domain, delta=delta, **wanted)


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.replace(" ", ",").split(",") if part]
    except ValueError:
        sizes = [0]
    if any(not 1 <= size <= _LARGEST_SIZE for size in sizes):
        raise ParameterError(
            "The number of values of each column is written with commas between: 2, 5, 10.", code="parameter-type"
        )
    return sizes


def _number(asked: Mapping[str, str], name: str) -> float | None:
    text = asked.get(name, "").strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be a number.", code="parameter-type")
    return number


def _malformed() -> IncrowdError:
    return ParameterError("The counts of rows are not whole numbers above 0.", code="parameter-type")
