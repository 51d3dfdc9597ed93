"""What can be planned of a sampled crowd."""

from __future__ import annotations

from typing import Any

from incrowd.mechanisms.planner import ROWS_PER_PERSON, Planned, Planner, PlanOption


def _crowd(**given: Any) -> Planned:
    from incrowd.mechanisms.sampled_crowd.plan import planned_crowd

    return planned_crowd(**given)


def _amplify(**given: Any) -> Planned:
    from incrowd.mechanisms.sampled_crowd.plan import planned_amplification

    return planned_amplification(**given)


PLANNERS = (
    Planner(
        "crowd",
        "Sampled crowds",
        """Sample, then publish only crowds of k: give three of --epsilon --delta --k --beta, get the fourth.

With --epsilon and --delta alone, the largest β is taken whose k/β is within 15% of the least: about k/β people make a
crowd that is published as often as not, so smaller groups show, and a larger β samples more of everyone.

The promise is (ε,δ)-differential privacy for adding or removing one person (Li, Qardaji, Su). δ is exact if each person
is one row; what Theorem 5 of the paper would say stands beside it. With --rows-per-person it covers people with so many
rows, wherever they lie.

With --tree, the mapping is chosen as a tree of boxes: give --epsilon and --delta, and see what that costs in k.""",
        (
            PlanOption("epsilon", "ε, the bound on what a release reveals about one person.", start="1"),
            PlanOption("delta", "δ, the probability with which that bound may fail.", start="1e-6"),
            PlanOption("k", "The smallest crowd that is published.", "count"),
            PlanOption("beta", "The probability with which each record is sampled."),
            PlanOption(
                "selection_epsilon",
                "ε₁, the part of ε spent on choosing the mapping on the full table.",
                default=0.0,
            ),
            ROWS_PER_PERSON,
            PlanOption("tree", "The mapping is a tree of boxes, chosen on the full table.", "flag", default=False),
            PlanOption("choice_rho", "With --tree: what the choice costs, in zCDP; found if not given."),
        ),
        _crowd,
        examples=(
            "incrowd plan crowd --epsilon 0.5 --delta 1e-6 --beta 0.2",
            "incrowd plan crowd --epsilon 1 --delta 1e-6 --k 50 --plot crowd.svg",
            "incrowd plan crowd --epsilon 1 --delta 1e-6 --beta 0.2 --rows-per-person 3",
            "incrowd plan crowd --epsilon 1 --delta 1e-6 --tree",
        ),
    ),
    Planner(
        "amplify",
        "Amplification",
        "What a promise becomes when the data are sampled at a lower rate first (Theorem 1).",
        (
            PlanOption("epsilon", "ε at the rate you start from.", required=True, start="1"),
            PlanOption("delta", "δ at the rate you start from.", required=True, start="1e-5"),
            PlanOption("from_beta", "The sampling rate you start from (1: no sampling).", required=True, start="1"),
            PlanOption("to_beta", "The lower sampling rate.", required=True, start="0.1"),
        ),
        _amplify,
        examples=("incrowd plan amplify --epsilon 1 --delta 1e-5 --from-beta 1 --to-beta 0.1",),
    ),
)
