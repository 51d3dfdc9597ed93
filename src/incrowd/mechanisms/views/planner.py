"""What can be planned of a set of views."""

from __future__ import annotations

from typing import Any

from incrowd.mechanisms.planner import ROWS_PER_PERSON, Planned, Planner, PlanOption


def _views(**given: Any) -> Planned:
    from incrowd.mechanisms.views.plan import planned_views

    return planned_views(**given)


PLANNERS = (
    Planner(
        "views",
        "Views",
        "Many columns: how many views of what size a promise carries, and their k and β or their noise.",
        (
            PlanOption("columns", "How many columns the table has.", "count", required=True, least=2, start="10"),
            PlanOption("rows", "About how many people it has.", "count", required=True, least=1, start="27000"),
            PlanOption("epsilon", "ε of all views together.", default=1.0, start="1"),
            PlanOption("delta", "δ of all views together.", default=1e-6, start="1e-6"),
            PlanOption("by", "Kind of view.", "choice", default="crowd", choices=("crowd", "noise")),
            PlanOption("share", "The part that pays for choosing views.", default=0.1),
            ROWS_PER_PERSON,
            PlanOption(
                "sample_rate", "Of a table that is itself a random sample: its rate. Less noise is needed then."
            ),
        ),
        _views,
        draws=False,
        examples=(
            "incrowd plan views --columns 10 --rows 27000",
            "incrowd plan views --columns 20 --rows 27000 --epsilon 2 --by noise",
            "incrowd plan views --columns 10 --rows 90000 --epsilon 2 --delta 1e-6 --by noise --rows-per-person 3",
            "incrowd plan views --columns 10 --rows 27000 --epsilon 1 --delta 1e-6 --by noise --sample-rate 0.05",
        ),
    ),
)
