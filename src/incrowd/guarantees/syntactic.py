"""What can be counted on a table of groups × sensitive values: k, ℓ, t, α, β, δ.

These are facts about one table, not promises against an adversary. A fact is computed accurately and not rounded to
either side: rational measures are found as fractions (`Measure.exact`), and a check compares fractions, so that a
table which reaches a limit exactly is not refused because of a rounding, nor one just beyond it admitted. Measures
with a logarithm (entropy-ℓ, δ-disclosure) carry the bound of their numerical error, and a check within that bound of
the limit fails.

All take an array of counts with one row per group and one column per value of the declared domain. Rows without records
are no groups and are left out. Logarithms are natural.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from incrowd.errors import ParameterError
from incrowd.guarantees._groups import (
    SCORE_ERROR,
    Floats,
    GroupTable,
    Integers,
    Worst,
    find_worst,
    group_table,
    written_as,
)
from incrowd.guarantees._numbers import EPSILON_MACHINE, require_count
from incrowd.guarantees.transport import Distance, transport_sets

_Clue = tuple[int, ...]


@dataclass(frozen=True)
class Measure:
    """The value of a measure on a table, and the group that decides it.

    Attributes:
        value: the measure, possibly infinite.
        group: the row of the (first) group that attains it.
        column: the sensitive value concerned, where there is one.
        rule: how a limit is met: the value must be "at least", "at most" or (strictly) "below" it.
        exact: the value as a fraction, where it is one.
        error: a bound of the relative error of `value` where `exact` is None.
        by_group: on request, the measure of every group on its own (nan for a row without records).
    """

    value: float
    group: int
    column: int | None
    rule: Literal["at least", "at most", "below"]
    exact: Fraction | None = None
    error: float = 0.0
    by_group: Floats | None = field(default=None, compare=False, repr=False)

    def satisfies(self, limit: float | Fraction) -> bool:
        """Whether the limit is met for certain. A limit of 0.3 means 3/10."""
        low, high = written_as("the limit", limit)
        if math.isinf(self.value):
            return False
        if self.exact is not None:
            if self.rule == "at least":
                return self.exact >= low
            return self.exact <= high if self.rule == "at most" else self.exact < low
        margin = abs(Fraction(self.value)) * Fraction(self.error)
        if self.rule == "at least":
            return Fraction(self.value) - margin >= low
        return Fraction(self.value) + margin < low


def k_anonymity(counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
    """k: the number of records in the smallest group (Samarati and Sweeney)."""
    table = group_table(counts)
    return _smallest_count(table, table.sizes, per_group)


def distinct_l_diversity(counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
    """Distinct ℓ: the smallest number of different values in a group (Machanavajjhala et al.)."""
    table = group_table(counts)
    distinct = np.concatenate([np.count_nonzero(cells, axis=1) for _, cells, _ in table.blocks()])
    return _smallest_count(table, distinct, per_group)


def entropy_l_diversity(counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
    """Entropy ℓ: exp of the smallest entropy of a group, the number of equally frequent values with that entropy.

    Where the smallest entropy belongs to groups of equally frequent values it is that number exactly.
    """
    table = group_table(counts)
    parts = []
    for _, cells, sizes in table.blocks():
        shares = cells / sizes
        logs = np.log(shares, out=np.zeros_like(shares), where=cells > 0)
        parts.append(np.exp(-(shares * logs).sum(axis=1)))
    by_group = np.concatenate(parts)
    # Each term is off by a few roundings of itself and one of its share; adding K of them, K more; exp carries
    # the absolute error of the entropy, at most ln K times that, over.
    error = (table.values + 8) * (1 + math.log(table.values)) * EPSILON_MACHINE
    lowest = float(by_group.min())
    close = np.flatnonzero(by_group <= lowest * (1 + 2 * error))
    candidates = table.cells[close]
    distinct = np.count_nonzero(candidates, axis=1)
    even = (candidates.max(axis=1) * distinct == table.sizes[close]).all()
    exact = Fraction(int(distinct.min())) if even else None
    return Measure(
        value=float(exact) if exact is not None else lowest,
        group=int(table.rows[close[0] if exact is not None else by_group.argmin()]),
        column=None,
        rule="at least",
        exact=exact,
        error=2 * error,
        by_group=table.spread(by_group) if per_group else None,
    )


def recursive_l_diversity(counts: npt.ArrayLike, l: int, *, per_group: bool = False) -> Measure:  # noqa: E741
    """Recursive (c,ℓ)-diversity: the c that must be *exceeded*.

    A group with ordered counts r_1 ≥ r_2 ≥ … is (c,ℓ)-diverse if r_1 < c·(r_ℓ + r_{ℓ+1} + …). The value is the largest
    r_1/(r_ℓ + …), infinite where a group has fewer than ℓ values.
    """
    wanted = require_count("l", l, least=2)
    table = group_table(counts)

    def score(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        top = cells.max(axis=1, keepdims=True)
        if wanted > table.values:
            rest = np.zeros_like(sizes)
        else:
            start = table.values - wanted + 1  # the ℓ − 1 largest stand from here on
            rest = sizes - np.partition(cells, start, axis=1)[:, start:].sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            return top / rest, (top, rest)

    def exact(_: int, clue: _Clue) -> Fraction | None:
        return Fraction(clue[0], clue[1]) if clue[1] else None

    return _largest(table, find_worst(table, score, exact, 1), "below", per_group, names_a_value=False)


def largest_share(counts: npt.ArrayLike, values: Sequence[int] | None = None, *, per_group: bool = False) -> Measure:
    """α: the largest share that a sensitive value has of a group (Wong et al.), of those columns or of all."""
    table = group_table(counts)
    columns = list(range(table.values)) if values is None else _columns(values, table.values)

    def score(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        chosen = cells[:, columns]
        return chosen / sizes, (chosen, sizes)

    worst = find_worst(table, score, lambda _, clue: Fraction(clue[0], clue[1]), len(columns))
    found = _largest(table, worst, "at most", per_group)
    return replace(found, column=columns[worst.column])


def is_alpha_k_anonymous(
    counts: npt.ArrayLike, alpha: float | Fraction, k: int, values: Sequence[int] | None = None
) -> bool:
    """(α,k)-anonymity: groups of at least k, in which no sensitive value has a share above α."""
    return k_anonymity(counts).satisfies(k) and largest_share(counts, values).satisfies(alpha)


def t_closeness(
    counts: npt.ArrayLike,
    distance: Distance = "equal",
    *,
    reference: Sequence[int] | None = None,
    per_group: bool = False,
) -> Measure:
    """t: the largest earth mover's distance of a group from the whole table (Li, Li, Venkatasubramanian).

    Args:
        counts: records by group and value.
        distance: between two values: "equal", "ordered" (columns in their order), or the levels of a tree; see
            `transport.Distance`.
        reference: whole-number weights of another distribution to be close to, instead of the table's own.
        per_group: also return every group's distance.
    """
    table = group_table(counts)
    weights = _reference(reference, table)
    total = sum(weights)
    sets, divisor = transport_sets(distance, table.values)
    overall = sets(np.array([weights], dtype=np.int64))
    # Numerators stay below divisor·size·total; beyond 64 bits they are computed on Python's integers.
    roomy = (1 << 62) // (divisor * total)

    def score(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        flow = np.empty((len(cells), 1), dtype=object if sizes.max() > roomy else np.int64)
        if flow.dtype == np.int64:
            flow[:, 0] = np.abs(sets(cells) * total - overall * sizes).sum(axis=1)
        else:
            gap = sets(cells).astype(object) * total - overall.astype(object) * sizes.astype(object)
            flow[:, 0] = np.abs(gap).sum(axis=1)
        return flow.astype(np.float64) / (sizes * float(divisor * total)), (flow, sizes)

    def exact(_: int, clue: _Clue) -> Fraction:
        return Fraction(clue[0], clue[1] * divisor * total)

    return _largest(table, find_worst(table, score, exact, 1), "at most", per_group, names_a_value=False)


def beta_likeness(
    counts: npt.ArrayLike,
    *,
    enhanced: bool = False,
    reference: Sequence[int] | None = None,
    per_group: bool = False,
) -> Measure:
    """β: the largest relative gain (q_s − p_s)/p_s of a value's share in a group over its share p_s in the table.

    Basic β-likeness (Cao and Karras) bounds it by β. The enhanced one bounds it by min(β, −ln p_s), so that frequent
    values do not become certain; where a gain exceeds −ln p_s, or is too near to tell, no β helps: infinite.
    """
    table = group_table(counts)
    weights = _reference(reference, table)
    total = sum(weights)
    caps = np.array([1 - math.log(weight / total) if weight else 1.0 for weight in weights])

    def too_much(ratio: Any, cap: Any, slack: float) -> Any:
        return enhanced & (ratio > 1) & (ratio * (1 + slack) >= cap)

    def score(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        ratios = _share_ratios(cells, sizes, weights)
        ratios[too_much(ratios, caps, 2 * SCORE_ERROR)] = np.inf
        return ratios, (cells, sizes)

    def exact(column: int, clue: _Clue) -> Fraction | None:
        ratio = _exact_share_ratio(clue, weights[column], total)
        # A wider slack than the score's, so that what looks infinite to the search is infinite here too.
        return None if ratio is None or too_much(float(ratio), caps[column], 4 * SCORE_ERROR) else ratio

    worst = find_worst(table, score, exact, table.values)
    return _largest(table, worst, "at most", per_group, gain_over=1)


def delta_disclosure(
    counts: npt.ArrayLike, *, reference: Sequence[int] | None = None, per_group: bool = False
) -> Measure:
    """δ: the largest |ln(q_s/p_s)| of a group's share of a value against the table's (Brickell and Shmatikov).

    Infinite as soon as a group lacks a value that the table has. A declared value that nobody has is not counted.
    The rule is strict: the table is δ-disclosure private for every δ above the value.
    """
    table = group_table(counts)
    weights = _reference(reference, table)
    total = sum(weights)

    def score(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        ratios = _share_ratios(cells, sizes, weights)
        with np.errstate(divide="ignore"):
            return np.maximum(ratios, 1 / ratios), (cells, sizes)

    def exact(column: int, clue: _Clue) -> Fraction | None:
        ratio = _exact_share_ratio(clue, weights[column], total)
        return None if not ratio else max(ratio, 1 / ratio)

    worst = find_worst(table, score, exact, table.values)
    by_group = table.spread(np.log(worst.by_group)) if per_group else None
    if worst.exact is None:
        return Measure(math.inf, worst.group, worst.column, "below", None, 0.0, by_group)
    if worst.exact == 1:
        return Measure(0.0, worst.group, worst.column, "below", Fraction(0), 0.0, by_group)
    value = math.log1p(float(worst.exact - 1))
    return Measure(value, worst.group, worst.column, "below", None, 8 * EPSILON_MACHINE, by_group)


@dataclass(frozen=True)
class SyntacticProfile:
    """The usual measures of one table, by name."""

    k: Measure
    distinct_l: Measure
    entropy_l: Measure
    t: Measure
    alpha: Measure
    beta: Measure
    delta: Measure


def syntactic_profile(counts: npt.ArrayLike, distance: Distance = "equal") -> SyntacticProfile:
    """Every measure that needs no parameter but the distance of t-closeness."""
    return SyntacticProfile(
        k=k_anonymity(counts),
        distinct_l=distinct_l_diversity(counts),
        entropy_l=entropy_l_diversity(counts),
        t=t_closeness(counts, distance),
        alpha=largest_share(counts),
        beta=beta_likeness(counts),
        delta=delta_disclosure(counts),
    )


def _smallest_count(table: GroupTable, numbers: npt.NDArray[Any], per_group: bool) -> Measure:
    least = int(numbers.argmin())
    return Measure(
        value=float(numbers[least]),
        group=int(table.rows[least]),
        column=None,
        rule="at least",
        exact=Fraction(int(numbers[least])),
        by_group=table.spread(numbers.astype(np.float64)) if per_group else None,
    )


def _largest(
    table: GroupTable,
    worst: Worst,
    rule: Literal["at most", "below"],
    per_group: bool,
    *,
    names_a_value: bool = True,
    gain_over: int = 0,
) -> Measure:
    exact = None if worst.exact is None else max(worst.exact - gain_over, Fraction(0))
    return Measure(
        value=math.inf if exact is None else float(exact),
        group=worst.group,
        column=worst.column if names_a_value else None,
        rule=rule,
        exact=exact,
        by_group=table.spread(np.maximum(worst.by_group - gain_over, 0.0)) if per_group else None,
    )


def _share_ratios(cells: Integers, sizes: Integers, weights: Sequence[int]) -> Floats:
    """q_s/p_s for every group and value: infinite where only p_s is 0, and 1 where both are."""
    expected = sizes * (np.array(weights, dtype=np.float64) / float(sum(weights)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Floats = cells / expected
    unused = [column for column, weight in enumerate(weights) if weight == 0]
    ratios[:, unused] = np.where(cells[:, unused] > 0, np.inf, 1.0)
    return ratios


def _exact_share_ratio(clue: _Clue, weight: int, total: int) -> Fraction | None:
    """The same of one group and value, from its count and the group's size; None for infinity."""
    if weight == 0:
        return None if clue[0] else Fraction(1)
    return Fraction(clue[0] * total, clue[1] * weight)


def _reference(reference: Sequence[int] | None, table: GroupTable) -> list[int]:
    if reference is None:
        return table.totals
    weights = [require_count("a weight of the reference", weight, least=0) for weight in reference]
    if len(weights) != table.values or not 0 < sum(weights) < 1 << 53:
        raise ParameterError(
            f"The reference must have one whole-number weight for each of the {table.values} columns, not all 0.",
            code="parameter-combination",
            remedy="Give counts, or multiply proportions by a common denominator.",
        )
    return weights


def _columns(values: Sequence[int], size: int) -> list[int]:
    columns = sorted({require_count("a value's column", value, least=0) for value in values})
    if not columns or columns[-1] >= size:
        raise ParameterError(f"Name at least one of the {size} columns, from 0.", code="predicate-invalid")
    return columns
