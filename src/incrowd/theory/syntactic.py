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
from typing import Literal

import numpy as np
import numpy.typing as npt

from incrowd.core.errors import ParameterError
from incrowd.theory._groups import (
    SCORE_ERROR,
    Clue,
    Flags,
    Floats,
    GroupTable,
    Integers,
    Scores,
    group_table,
    written_as,
)
from incrowd.theory._numbers import EPSILON_MACHINE, require_count
from incrowd.theory.transport import Distance, transport_sets


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
    by_group, error = entropies(table), entropy_error(table.values)
    lowest = float(by_group.min())
    close = np.flatnonzero(by_group <= lowest * (1 + 2 * error))
    exact = (
        Fraction(int(np.count_nonzero(table.cells[close], axis=1).min())) if even(table.cells[close]).all() else None
    )
    return Measure(
        value=float(exact) if exact is not None else lowest,
        group=int(table.rows[close[0] if exact is not None else by_group.argmin()]),
        column=None,
        rule="at least",
        exact=exact,
        error=2 * error,
        by_group=table.spread(by_group) if per_group else None,
    )


def entropies(table: GroupTable) -> Floats:
    """exp of the entropy of every group."""
    found = np.empty(len(table.sizes))
    for part, cells, sizes in table.blocks():
        shares = cells / sizes
        logs = np.log(shares, out=np.zeros_like(shares), where=cells > 0)
        logs *= shares
        found[part] = np.exp(-logs.sum(axis=1))
    return found


def entropy_error(values: int) -> float:
    """A bound of the relative error of exp of the entropy of a group.

    Each term is off by a few roundings of itself and one of its share; adding K of them, K more; exp carries the
    absolute error of the entropy, at most ln K times that, over.
    """
    return (values + 8) * (1 + math.log(values)) * EPSILON_MACHINE


def even(cells: npt.NDArray[np.integer]) -> Flags:
    """Which groups have the same number of records of every value that they have."""
    flags: Flags = ((cells == cells.max(axis=1, keepdims=True)) | (cells == 0)).all(axis=1)
    return flags


def recursive_l_diversity(counts: npt.ArrayLike, l: int, *, per_group: bool = False) -> Measure:  # noqa: E741
    """Recursive (c,ℓ)-diversity: the c that must be *exceeded*.

    A group with ordered counts r_1 ≥ r_2 ≥ … is (c,ℓ)-diverse if r_1 < c·(r_ℓ + r_{ℓ+1} + …). The value is the largest
    r_1/(r_ℓ + …), infinite where a group has fewer than ℓ values.
    """
    table = group_table(counts)
    return _largest(recursion_scores(table, require_count("l", l, least=2)), "below", per_group, names_a_value=False)


def recursion_scores(table: GroupTable, l: int) -> Scores:  # noqa: E741
    """r_1/(r_ℓ + …) of every group; see `recursive_l_diversity`."""

    def rough(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        top = cells.max(axis=1, keepdims=True)
        if l > table.values:
            rest = np.zeros_like(sizes)
        elif l == 2:
            rest = sizes - top
        else:
            start = table.values - l + 1  # the ℓ − 1 largest stand from here on
            rest = sizes - np.partition(cells, start, axis=1)[:, start:].sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            return top / rest, (top, rest)

    def exact(_: int, clue: Clue) -> Fraction | None:
        return Fraction(clue[0], clue[1]) if clue[1] else None

    return Scores(table, rough, exact, 1)


def largest_share(counts: npt.ArrayLike, values: Sequence[int] | None = None, *, per_group: bool = False) -> Measure:
    """α: the largest share that a sensitive value has of a group (Wong et al.), of those columns or of all."""
    table = group_table(counts)
    found = _largest(share_scores(table, values), "at most", per_group)
    return found if values is None else replace(found, column=_columns(values, table.values)[found.column or 0])


def share_scores(table: GroupTable, values: Sequence[int] | None) -> Scores:
    """c_s/n of every group and those values; see `largest_share`."""
    columns = None if values is None else _columns(values, table.values)

    def rough(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        top = cells if columns is None else cells[:, columns]
        return top / sizes, (top, sizes)

    return Scores(table, rough, lambda _, clue: Fraction(clue[0], clue[1]), len(columns or range(table.values)))


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
    scores = distance_scores(table, distance, _reference(reference, table))
    return _largest(scores, "at most", per_group, names_a_value=False)


def distance_scores(table: GroupTable, distance: Distance, weights: Sequence[int]) -> Scores:
    """The distance of every group from a distribution with these weights; see `t_closeness`."""
    total = sum(weights)
    sets, divisor = transport_sets(distance, table.values)
    overall = sets(np.array([weights], dtype=np.int64))
    # Numerators stay below divisor·size·total; beyond 64 bits they are computed on Python's integers.
    roomy = (1 << 62) // (divisor * total)

    def rough(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        if sizes.max() <= roomy:
            flow = np.abs(sets(cells) * total - overall * sizes).sum(axis=1, keepdims=True)
        else:
            gap = sets(cells).astype(object) * total - overall.astype(object) * sizes.astype(object)
            flow = np.abs(gap).sum(axis=1, keepdims=True)
        return flow.astype(np.float64) / (sizes * float(divisor * total)), (flow, sizes)

    def exact(_: int, clue: Clue) -> Fraction:
        return Fraction(clue[0], clue[1] * divisor * total)

    return Scores(table, rough, exact, 1)


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
    ratios = ratio_scores(table, weights)
    if not enhanced:
        return _largest(ratios, "at most", per_group, gain_over=1)
    caps = gain_caps(weights)

    def rough(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        found, evidence = ratios.rough(cells, sizes)
        found[(found > 1) & (found * (1 + 2 * SCORE_ERROR) >= caps)] = np.inf
        return found, evidence

    def exact(column: int, clue: Clue) -> Fraction | None:
        ratio = ratios.exact(column, clue)
        return None if ratio is None or beyond_cap(ratio, caps[column]) else ratio

    return _largest(replace(ratios, rough=rough, exact=exact), "at most", per_group, gain_over=1)


def gain_caps(weights: Sequence[int]) -> Floats:
    """1 − ln p_s for every value: what enhanced β-likeness lets its share be multiplied by at most."""
    total = sum(weights)
    return np.array([1 - math.log(weight / total) if weight else 1.0 for weight in weights])


def beyond_cap(ratio: Fraction, cap: float) -> bool:
    """Whether a share grew by more than the cap, or is too near to tell.

    The slack is wider than that of a score, so that what looks too much to a search is too much here.
    """
    return ratio > 1 and float(ratio) * (1 + 4 * SCORE_ERROR) >= cap


def delta_disclosure(
    counts: npt.ArrayLike, *, reference: Sequence[int] | None = None, per_group: bool = False
) -> Measure:
    """δ: the largest |ln(q_s/p_s)| of a group's share of a value against the table's (Brickell and Shmatikov).

    Infinite as soon as a group lacks a value that the table has. A declared value that nobody has is not counted.
    The rule is strict: the table is δ-disclosure private for every δ above the value.
    """
    table = group_table(counts)
    worst = change_scores(table, _reference(reference, table)).worst()
    by_group = table.spread(np.log(worst.by_group)) if per_group else None
    return replace(log_of(worst.exact), group=worst.group, column=worst.column, by_group=by_group)


def change_scores(table: GroupTable, weights: Sequence[int]) -> Scores:
    """max(q_s/p_s, p_s/q_s) of every group and value; see `delta_disclosure`."""
    ratios = ratio_scores(table, weights)

    def rough(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        found, evidence = ratios.rough(cells, sizes)
        with np.errstate(divide="ignore"):
            return np.maximum(found, 1 / found), evidence

    def exact(column: int, clue: Clue) -> Fraction | None:
        ratio = ratios.exact(column, clue)
        return None if not ratio else max(ratio, 1 / ratio)

    return replace(ratios, rough=rough, exact=exact)


def log_of(change: Fraction | None) -> Measure:
    """The logarithm of a change of at least 1, or of an infinite one, as a measure of δ-disclosure."""
    if change is None:
        return Measure(math.inf, 0, None, "below")
    if change == 1:
        return Measure(0.0, 0, None, "below", Fraction(0))
    return Measure(math.log1p(float(change - 1)), 0, None, "below", error=8 * EPSILON_MACHINE)


def _smallest_count(table: GroupTable, numbers: npt.NDArray[np.integer], per_group: bool) -> Measure:
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
    scores: Scores,
    rule: Literal["at most", "below"],
    per_group: bool,
    *,
    names_a_value: bool = True,
    gain_over: int = 0,
) -> Measure:
    worst = scores.worst()
    exact = None if worst.exact is None else max(worst.exact - gain_over, Fraction(0))
    return Measure(
        value=math.inf if exact is None else float(exact),
        group=worst.group,
        column=worst.column if names_a_value else None,
        rule=rule,
        exact=exact,
        by_group=scores.table.spread(np.maximum(worst.by_group - gain_over, 0.0)) if per_group else None,
    )


def ratio_scores(table: GroupTable, weights: Sequence[int]) -> Scores:
    """q_s/p_s of every group and value: infinite where only p_s is 0, and 1 where both are."""
    total = sum(weights)
    shares = np.array(weights, dtype=np.float64) / float(total)
    unused = np.flatnonzero(shares == 0)

    def rough(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios: Floats = cells / (sizes * shares)
        if len(unused):
            ratios[:, unused] = np.where(cells[:, unused] > 0, np.inf, 1.0)
        return ratios, (cells, sizes)

    def exact(column: int, clue: Clue) -> Fraction | None:
        if weights[column] == 0:
            return None if clue[0] else Fraction(1)
        return Fraction(clue[0] * total, clue[1] * weights[column])

    return Scores(table, rough, exact, table.values)


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
