"""The published sufficient checks for a belief ratio, group by group.

Machanavajjhala, Gehrke and Götz state conditions that are easy to explain: a group must be *large enough* for the
adversary to revise her prior, or *close enough* to that prior, and *doubt must remain*. They imply the ratio and
drop a "−1" here and there, so the closed form of `beliefs.belief_ratio` may pass a table that they refuse, never
the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.theory._groups import SCORE_ERROR, Integers, group_table, written_as
from incrowd.theory.adversaries import Adversary, AdversaryClass
from incrowd.theory.beliefs import (
    Outlook,
    Predicates,
    Statements,
    outlooks_of,
)

Booleans = npt.NDArray[np.bool_]
_LARGEST_RATIO = 10**100  # so that no product leaves the range of a float


@dataclass(frozen=True)
class TheoremCheck:
    """What the paper's theorem says of every group (rows as given; a row without records passes).

    Attributes:
        holds: the theorem promises the ratio for the whole table.
        group: the first group that fails, if any.
        large_enough: R1(a), the group outweighs her prior. Never, for class III.
        close_enough: R1(b), its values are distributed like her prior, for every predicate.
        doubt_remains: R2, no predicate is too near certainty.
    """

    holds: bool
    group: int | None
    large_enough: Booleans = field(compare=False, repr=False)
    close_enough: Booleans = field(compare=False, repr=False)
    doubt_remains: Booleans = field(compare=False, repr=False)


def theorem_check(
    counts: npt.ArrayLike, adversary: Adversary, ratio: float | Fraction, predicates: Predicates = "values"
) -> TheoremCheck:
    """The sufficient conditions of Theorems 1, 2 and 3 for a belief ratio ε.

    With m = n(q) − b, Σ = σ + b, δ = (ε−1)m/Σ and ε' = ε(1 − 1/Σ), for every group and predicate with n(q,φ) > 0:

    - R1(a)  m ≥ Σ/(ε−1), or  R1(b)  n(q,φ)/m ≤ ε/(1−δ) · (σ(φ)−1)/Σ;
    - R2  n(q,φ)/m ≤ 1 − 1/(ε'+δ) + 1/(ε'+δ) · (σ(φ)−1)/Σ.

    Class II (Theorem 2) is the case σ(φ) = |S_φ|, where for single values R1(b) says no more than R1(a). Class III
    (Theorem 3) has R1: n(q,φ)/m ≤ ε·σ(φ)/σ and R2: n(q,φ)/m ≤ 1 − (1 − σ(φ)/σ)/ε. A group with m ≤ n(q,φ) fails R2
    always: she may know all the others (unless a class III shape was certain of φ beforehand).

    Why they imply the ratio: p_in/p_out ≤ ε is (n_φ/m)(1 − 1/Σ − δ) ≤ ε(σ(φ)−1)/Σ, and R1(b) is the same without
    1/Σ, while under R1(a) the left side is negative and σ(φ) ≥ 1; the second inequality is R2 with σ(φ) in place of
    σ(φ)−1. That is also why every prior parameter must be at least 1 here. Boundaries are decided on fractions.
    """
    if adversary.kind is AdversaryClass.ANYONE:
        raise UnreachableError(
            "No check can promise a belief ratio against an adversary with any prior (Theorem 4).",
            code="any-adversary",
            remedy="Bound her stubbornness, or fix her shape or her prior.",
        )
    limit = written_as("the belief ratio", ratio)[1]
    if not 1 <= limit <= _LARGEST_RATIO:
        raise ParameterError("The belief ratio must be 1 or above.", code="parameter-range")
    if adversary.kind is AdversaryClass.KNOWN_PRIOR and min(adversary.weights or ()) < 1:
        raise ParameterError(
            "Theorem 1 needs every prior parameter to be at least 1.",
            code="parameter-range",
            remedy="Use belief_ratio, which computes the ratio itself for any prior.",
        )
    table = group_table(counts)
    chosen = Statements.of(predicates, table.values)
    outlooks = outlooks_of(adversary, chosen)
    passed = np.ones((4, table.given), dtype=np.bool_)
    for part, cells, sizes in table.blocks(len(chosen.predicates)):
        hits = chosen.hits(cells, sizes)
        rows = table.rows[part]
        for outlook in outlooks:
            large, close, doubt = _conditions_hold(hits, sizes, outlook, adversary.known_records, limit)
            found = large, close, doubt, (large | close) & doubt
            for verdict, condition in zip(passed, found, strict=True):
                verdict[rows] &= condition.all(axis=1)
    large, close, doubt, both = passed
    failed = np.flatnonzero(~both)
    return TheoremCheck(len(failed) == 0, int(failed[0]) if len(failed) else None, large, close, doubt)


class _Constants(NamedTuple):
    """The numbers of the conditions for one predicate, as fractions, or for all of them, as floats."""

    ratio: Any  # ε
    excess: Any  # ε − 1
    sigma: Any  # Σ = σ + b, or the shape's total
    sigma_less_one: Any  # Σ − 1
    inside: Any  # σ(φ)
    inside_less_one: Any  # σ(φ) − 1
    outside: Any  # Σ − σ(φ)


def _constants(outlook: Outlook, column: int, known: int, limit: Fraction) -> _Constants:
    sigma = outlook.total + known * outlook.revises
    inside = outlook.inside[column]
    return _Constants(limit, limit - 1, sigma, sigma - 1, inside, inside - 1, sigma - inside)


def _conditions(hits: Any, m: Any, revises: int, c: _Constants) -> tuple[tuple[Any, Any], ...]:
    """R1(a), R1(b), R2 as pairs whose first must not exceed the second, cleared of fractions.

    Written with sums of non-negative terms only, so that floats keep their relative precision; the same text is run on
    arrays of floats and, near equality, on fractions.
    """
    if revises:
        return (
            (c.sigma, c.excess * m),
            (hits * c.sigma, c.ratio * m * c.inside_less_one + hits * m * c.excess),
            (m * (c.outside + 1), (m - hits) * (c.ratio * c.sigma_less_one + c.excess * m)),
        )
    return (
        (1, 0 * m),
        (hits * c.sigma, c.ratio * m * c.inside),
        (m * c.outside, (m - hits) * c.ratio * c.sigma),
    )


def _conditions_hold(hits: Integers, sizes: Integers, outlook: Outlook, known: int, limit: Fraction) -> list[Booleans]:
    exact = [_constants(outlook, column, known, limit) for column in range(hits.shape[1])]
    floats = _Constants(*(np.array([float(part) for part in parts]) for parts in zip(*exact, strict=True)))
    m = sizes - known
    verdicts = []
    for number, sides in enumerate(_conditions(hits, m, outlook.revises, floats)):
        small, large = (np.broadcast_to(side, hits.shape) for side in sides)
        holds: Booleans = small <= large
        unsure = np.abs(large - small) <= 4 * SCORE_ERROR * (np.abs(small) + np.abs(large))
        known_answers: dict[tuple[int, int, int], bool] = {}
        for row, column in zip(*np.nonzero(unsure & (hits > 0)), strict=True):
            question = int(column), int(hits[row, column]), int(m[row, 0])
            if question not in known_answers:
                left, right = _conditions(question[1], question[2], outlook.revises, exact[column])[number]
                known_answers[question] = bool(left <= right)
            holds[row, column] = known_answers[question]
        verdicts.append(holds)
    certain = hits >= m
    beforehand = certain & np.array([inside == outlook.total for inside in outlook.inside])
    if outlook.revises:
        beforehand &= hits == sizes  # else the table makes her doubt
    absent = hits == 0
    verdicts[1] = verdicts[1] | absent | beforehand
    verdicts[2] = (verdicts[2] & ~certain) | absent | beforehand
    return verdicts
