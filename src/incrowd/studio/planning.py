"""The page on plans: numbers, curves, and what they mean in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from incrowd import api
from incrowd.core.errors import IncrowdError, ParameterError
from incrowd.studio.pages import markup, render

_MOST_SIZES = 200_000  # different counts of a table's rows


def crowd(asked: Mapping[str, str]) -> str:
    """Three of ε, δ, k and β give the fourth."""
    given: dict[str, Any] = {name: _number(asked, name) for name in ("epsilon", "delta", "beta")}
    k = _number(asked, "k")
    selection = _number(asked, "selection_epsilon") or 0.0
    plan = api.plan_crowd(**given, k=None if k is None else round(k), selection_epsilon=selection)
    points = api.frontier(max(0.0, plan.epsilon - selection), plan.delta)
    odds = math.exp(plan.epsilon)
    usual = max(2, math.ceil(plan.k / plan.beta))
    sizes = sorted({plan.k, math.ceil(usual / 2), usual, math.ceil(1.5 * usual), 2 * usual})
    return render(
        "crowd_plan",
        plan=plan,
        points=points,
        chart=markup(api.draw_plan(plan)),
        frontier=markup(api.draw_frontier(points, plan)),
        odds=odds,
        after=odds / (1 + odds),
        one_in=1 / plan.delta if plan.delta > 0 else math.inf,
        survival=[(size, api.survival(size, plan.k, plan.beta)) for size in sizes],
    )


def pram(asked: Mapping[str, str]) -> str:
    """How much of each value may be kept, and what that promises."""
    plan = _pram_plan(asked)
    odds = math.exp(min(700.0, plan.central.epsilon))
    return render("pram_plan", plan=plan, odds=odds, after=odds / (1 + odds))


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
    except (KeyError, TypeError, ValueError):
        raise _malformed() from None
    if not sizes or len(sizes) > _MOST_SIZES or any(size < 1 or many < 1 for size, many in sizes):
        raise _malformed()
    counts = np.repeat(*np.array(sizes, dtype=np.int64).T)
    plan = api.plan_sample(counts, **numbers, rows_unknown=unknown, curve_points=30)
    return render("sample_plan", plan=plan, chart=markup(api.draw_plan(plan)), records=int(counts.sum()))


def _pram_plan(asked: Mapping[str, str]) -> api.PramPlan:
    try:
        domain = [int(part) for part in asked["domain"].replace(" ", ",").split(",") if part]
        records = round(float(asked["records"]))
    except (KeyError, ValueError):
        raise ParameterError(
            "The number of values of each column is written with commas between: 2, 5, 10.", code="parameter-type"
        ) from None
    wanted = {name: _number(asked, name) for name in ("k", "epsilon", "rho")}
    delta = _number(asked, "delta") or 1e-6
    return api.plan_pram(
        records=records, domain=domain, delta=delta, k=wanted["k"], epsilon=wanted["epsilon"], rho=wanted["rho"]
    )


def _number(asked: Mapping[str, str], name: str) -> float | None:
    text = asked.get(name, "").strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{name} must be a number.", code="parameter-type") from None


def _malformed() -> IncrowdError:
    return ParameterError("The counts of rows are not whole numbers above 0.", code="parameter-type")
