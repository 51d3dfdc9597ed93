"""Planning a crowd under a tree: what the choice costs, and how many records it takes to choose anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from incrowd.core.display import Showable
from incrowd.mechanisms.sampled_crowd.tree.settle import LARGEST_TABLE, ONE_WAY_SHARE, threshold
from incrowd.recoding.growth import Growth
from incrowd.theory import concentrated
from incrowd.theory._numbers import require_positive
from incrowd.theory.crowd import require_rows, smallest_k


@dataclass(frozen=True, repr=False)
class TreePlan(Showable):
    """Parameters that go together: a ρ-zCDP choice, then a crowd of k at rate β, are (ε,δ)-DP (add/remove a person).

    Attributes:
        epsilon: the whole ε.
        delta: the δ promised.
        rho: what the choice costs a person, with all rows.
        k: the crowd threshold.
        beta: the sampling rate.
        k_without: the threshold that the same rate would need without a choice.
        box: how many rows a box should have.
        least_records: about how many records it takes for a single split; None if that is more than any usual table.
        rows_per_person: how many rows of a person count.
    """

    epsilon: float
    delta: float
    rho: float
    k: int
    beta: float
    k_without: int
    box: int
    least_records: int | None
    rows_per_person: int = 1


def plan_tree(
    *,
    epsilon: float,
    delta: float,
    beta: float | None = None,
    rho: float | None = None,
    rows_per_person: int = 1,
) -> TreePlan:
    """What the choice of a tree costs in k, and for how many records it is worth making."""
    rows = require_rows(rows_per_person)
    rho = concentrated.usual_rho(epsilon, delta) if rho is None else require_positive("rho", rho)
    if beta is None:
        k, beta = concentrated.usual_crowd(epsilon, delta, rho, rows)
    else:
        k = concentrated.smallest_k(epsilon, delta, beta, rho, rows)
    box = threshold(k, beta)
    budget = math.floor((1 - ONE_WAY_SHARE) * Fraction(rho) / rows**2 * concentrated.UNITS)
    least = Growth(budget, box, "information", ()).least_split(LARGEST_TABLE)
    return TreePlan(epsilon, delta, rho, k, beta, smallest_k(epsilon, delta, beta, rows), box, least, rows)
