"""The reports on a set of views: `report.html`, which is published with it, and the publisher's own.

The public one is made of the policy, the settings and what is published, and of nothing else.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from incrowd.core.numbers import count, number, number_up, percent
from incrowd.mechanisms.base import Made, Publication
from incrowd.mechanisms.views.certificate import ViewsStatement
from incrowd.mechanisms.views.charts import carried_graph, heat_map
from incrowd.mechanisms.views.choose import coarse
from incrowd.mechanisms.views.draw import ViewsOutcome
from incrowd.mechanisms.views.model_fit import LIMIT, carried
from incrowd.mechanisms.views.settle import MOST_CELLS, ViewsSettled, components
from incrowd.mechanisms.views.state import read_views
from incrowd.mechanisms.views.view import View
from incrowd.policy import Policy
from incrowd.reports.bars import before_and_after, distribution
from incrowd.reports.frame import (
    ERRORS_GIVE_AWAY,
    Use,
    cards,
    internal_page,
    level_in_words,
    levels_in_words,
    public_page,
)
from incrowd.reports.page import (
    Content,
    Fact,
    PageSection,
    figure,
    heading,
    label,
    listing,
    paragraph,
    points,
    table,
    tag,
)
from incrowd.theory.views import CrowdStep, NoiseStep, Step, ViewsPlan

_TITLE = "Many columns, published in views"


def public_report(
    policy: Policy, settings: ViewsSettled, published: Publication, statement: ViewsStatement, *, void: str | None
) -> bytes:
    """The report that is published beside the views."""
    plan, labels = settings.plan, {c.name: c.labels for c in published.table.columns}
    views = read_views(statement.mechanism, labels, published.beside)
    files = [view.file for view in statement.mechanism.views]
    facts = [
        Fact("columns", number(len(labels)), "in all"),
        Fact("views", number(len(views)), f"of which {plan.singles} are one-way tables"),
        Fact("ε", number(plan.epsilon), f"how much {settings.persons.one} can matter"),
        Fact("δ", number(plan.delta), "a probability on top of that"),
        *_step_facts(plan),
        *([] if plan.rate == 1 else [Fact("β", number(plan.rate), "the rate at which people came into the table")]),
    ]
    lead = (
        f"This release has {count(len(labels), 'column', 'columns')}, published as "
        f"{count(len(views), 'view', 'views')}: small tables of a few columns each. "
        + (
            "Its synthetic table was made from these alone, and its rows are nobody's records. "
            if settings.combine
            else ""
        )
    )
    return public_page(
        policy,
        _TITLE,
        lead.rstrip(),
        facts,
        data=[
            PageSection("columns", "The columns one by one", tuple(_singles(settings, views))),
            PageSection("views", "Which columns are carried together", tuple(_carried(settings, labels, views, files))),
        ],
        promise=[paragraph(statement.promise.in_words)],
        use=_use(settings, views),
        why=_why(settings),
        grounds=statement.promise.grounds,
        assumptions=statement.assumptions,
        void=void,
    )


def _step_facts(plan: ViewsPlan) -> list[Fact]:
    step = plan.view if plan.views else plan.single
    if isinstance(step, CrowdStep):
        return [
            Fact("k", number(step.k), "the smallest crowd of a view"),
            Fact("β", number(step.beta), "the sampling rate of a view"),
        ]
    kind = "Gaussian" if isinstance(step, NoiseStep) else "Laplace"
    single = plan.single if plan.singles else step
    if isinstance(single, CrowdStep) or single.deviation == step.deviation:
        return [Fact("σ", number(step.deviation), f"standard deviation of each count, {kind}")]
    one = f"{number(single.deviation)} of one column"
    return [Fact("σ", number(step.deviation), f"standard deviation of counts of several columns, {kind}; {one}")]


def _why(settings: ViewsSettled) -> list[Content]:
    plan = settings.plan
    return [
        points(
            [
                (
                    f"{_drawn(plan.singles, plan.single)} as one-way tables, {_drawn(plan.views, plan.view)} of "
                    "several columns."
                ),
                (
                    f"{count(plan.choices, 'private choice', 'private choices')} of columns, each "
                    f"{number(plan.exponent)}-differentially private by itself."
                    if plan.choices
                    else "The policy lists the views: nothing was chosen by looking at the data."
                ),
                f"All of these together have δ = {number(plan.exact_delta)} at ε = {number(plan.epsilon)}.",
                *_known(plan),
            ]
        ),
    ]


def _known(plan: ViewsPlan) -> list[str]:
    """What a sample promises to those of whom it is known that they are in it."""
    if plan.rate == 1:
        return []
    epsilon, delta = number_up(plan.inside, 3), number_up(plan.delta / plan.rate, 3)
    known = f"To somebody of whom it is known that they are in it, ε is {epsilon} and δ is {delta}."
    return [f"The table is itself a random sample. {known}"]


def _drawn(times: int, step: Step) -> str:
    views = count(times, "view", "views")
    if isinstance(step, CrowdStep):
        return f"{views} (k = {number(step.k)}, β = {number(step.beta)}, a fresh sample for each)"
    return f"{views} (standard deviation {number(step.deviation)})"


def _left_out(labels: Mapping[str, Sequence[str | None]], views: Sequence[View]) -> list[View]:
    """The views that would make the model's tables too large."""
    kept = carried([len(shown) for shown in labels.values()], [view.places for view in views], LIMIT)
    return [view for number, view in enumerate(views) if number not in kept]


def _carried(
    settings: ViewsSettled, labels: Mapping[str, Sequence[str | None]], views: Sequence[View], files: Sequence[str]
) -> list[Content]:
    names = list(labels)
    graph = carried_graph("Columns that a view carries together", names, [view.columns for view in views])
    apart = components(names, [view.columns for view in views])
    parts: list[Content] = [
        figure(graph, "A line joins two columns that some view carries together; a thicker one, if several do."),
    ]
    if len(apart) > 1 and settings.combine:
        parts.append(
            paragraph(
                f"The views leave {count(len(apart), 'group', 'groups')} of columns unconnected. In the synthetic "
                "table these are independent of each other: " + "; ".join(", ".join(group) for group in apart) + "."
            )
        )
    if settings.combine and (left := _left_out(labels, views)):
        parts.append(
            paragraph(
                f"The model behind the synthetic table has no room for {count(len(left), 'view', 'views')}, which it "
                "does not follow: " + "; ".join(" × ".join(view.columns) for view in left) + "."
            )
        )
    rows = [
        [
            label(" × ".join(view.columns)),
            levels_in_words(
                [
                    level_in_words(level, len(recode.labels))
                    for level, recode in zip(view.levels, view.recodes, strict=True)
                ]
            ),
            number(view.counts.size),
            number(int((view.counts != 0).sum()) if isinstance(view.step, CrowdStep) else view.counts.size),
        ]
        for view in views
    ]
    heads = ["columns", "how they are shown", "cells", "cells shown"]
    if any(file != f"views/{'.'.join(view.columns)}.parquet" for file, view in zip(files, views, strict=True)):
        heads, rows = [*heads, "file"], [[*row, file] for row, file in zip(rows, files, strict=True)]
    return [*parts, table("The views", heads, rows, numbers=(2, 3))]


def _singles(settings: ViewsSettled, views: Sequence[View]) -> list[Content]:
    charts = [
        distribution(
            label(view.columns[0]),
            settings.persons.worded(_kind(view, settings.plan.rate)),
            view.recodes[0].labels,
            np.maximum(view.counts, 0),
        )
        for view in views
        if len(view.columns) == 1 and view.counts.size > 1
    ]
    return [cards(charts)] if charts else [paragraph("The views have no one-way tables.")]


def _kind(view: View, rate: float) -> str:
    if isinstance(view.step, CrowdStep):
        return f"sampled people, of one in {number(1 / view.step.beta)}"
    people = "people" if rate == 1 else "sampled people"
    return f"{people}, each count with a standard deviation of {number(view.step.deviation)}"


def _use(settings: ViewsSettled, views: Sequence[View]) -> Use:
    widest = max((view.columns for view in views), key=len)
    by = f"--by {shlex.quote(','.join(widest))}"
    plan = settings.plan
    step = plan.view if plan.views else plan.single
    if isinstance(step, CrowdStep):
        counts = (
            f" A count of x in a view of crowds stands for about x/β people, β being {number(step.beta)}. "
            f"A cell that is not listed has probably fewer than {number(step.threshold)} people."
            + (
                f" One-way tables count everybody, each count with a standard deviation of "
                f"{number(plan.single.deviation)}."
                if not isinstance(plan.single, CrowdStep)
                else ""
            )
        )
        counts = settings.persons.worded(counts)
    else:
        counts = (
            " Every declared cell is listed; a count may be below zero, and every one has the standard deviation given."
        )
        if plan.rate != 1:
            counts += f" Counts are of the sample: x stands for about x/β people, β being {number(plan.rate)}."
    told = [(tag("b", "Use a view where one has your columns."), counts)]
    if settings.combine:
        told.append(
            (
                tag("b", "Use the synthetic table for the rest."),
                (
                    " It agrees with the views as well as one table can. What no view carries, it does not know: "
                    "columns depend on each other there through the views alone. Its rows are nobody's records."
                ),
            )
        )
    more = [heading("More synthetic rows"), listing("incrowd combine FOLDER --rows 100000 --seed 1 -o more.parquet")]
    verifying = (
        "It derives ε and δ once more from the steps that the certificate lists, reads every view, and compares every "
        "file, this page included, with the certificate. How chance was drawn is taken on the publisher’s word."
    )
    return Use(told, by, verifying, more=more if settings.combine else ())


# --- the publisher's own ---------------------------------------------------------------------------------------------


def internal_report(policy: Policy, made: Made[ViewsOutcome, ViewsStatement], *, void: str | None) -> bytes:
    """The report that only the publisher may see: how far the views and the synthetic table are from the truth."""
    outcome = made.outcome
    true = outcome.truth
    names = [column.name for column in true.columns]
    model = outcome.model
    errors: dict[tuple[str, str], float] = {}
    pairs = [(a, b) for a, b in combinations(range(len(names)), 2) if true.sizes[a] * true.sizes[b] <= MOST_CELLS]
    true.look([*((place,) for place in range(len(names))), *pairs])
    for a, b in pairs:
        errors[names[a], names[b]] = _distance(true.by((a, b)), model.marginal((a, b)))
    carried = {pair for view in outcome.views for pair in combinations(view.columns, 2)}
    mean = float(np.mean(list(errors.values()))) if errors else 0.0
    worst = sorted(errors, key=lambda pair: -errors[pair])[:10]
    bars = [
        before_and_after(
            label(c.name),
            "share in the table and in what the release tells",
            c.labels,
            true.by((place,)),
            np.rint(model.marginal((place,))).astype(np.int64),
        )
        for place, c in enumerate(true.columns)
        if len(c.labels) > 1
    ]
    sections = [
        PageSection(
            "pairs",
            "How far each pair of columns is off",
            (
                paragraph(
                    "The total variation distance between the true counts of two columns and what the release tells of "
                    "them, of 1000: so many of a thousand people would have to move to another cell."
                ),
                figure(heat_map("Error of each pair of columns", names, errors), "The darker, the further off."),
                table(
                    "The pairs that are furthest off",
                    ["columns", "off, of 1000", "carried by a view"],
                    [
                        [label(" × ".join(pair)), number(1000 * errors[pair], 3), "yes" if pair in carried else "no"]
                        for pair in worst
                    ],
                    numbers=(1,),
                ),
            ),
        ),
        PageSection("columns", "The columns one by one", (cards(bars),)),
    ]
    facts = [
        Fact("records", number(true.total), "in the table"),
        Fact("views", number(len(outcome.views)), "published"),
        Fact("pairs", number(1000 * (1 - mean), 4), "score of 1000, the mean over all pairs"),
        Fact("rows", number(outcome.combined.total), "of the synthetic table"),
    ]
    hidden = _hidden(outcome)
    if hidden is not None:
        facts.append(Fact("withheld", percent(hidden), "of people are in cells withheld, in a view of several columns"))
    return internal_page(policy, _TITLE, facts, sections, gives_away=ERRORS_GIVE_AWAY, void=void)


def _distance(truth: np.ndarray, told: np.ndarray) -> float:
    total = float(told.sum())
    if not total or not truth.sum():
        return 1.0
    return float(np.abs(truth / truth.sum() - told / total).sum() / 2)


def _hidden(outcome: ViewsOutcome) -> float | None:
    """The share of people in cells that were withheld, in the mean over the views of several columns."""
    shares = []
    for view in outcome.views:
        if isinstance(view.step, CrowdStep) and len(view.columns) > 1 and outcome.truth.total:
            counts = coarse(outcome.truth.by(view.places), view.recodes)
            shares.append(float(counts[view.counts == 0].sum() / outcome.truth.total))
    return float(np.mean(shares)) if shares else None
