"""Randomise every record (Ikarashi, Kikuchi, Chida, Takahashi).

The post-randomisation method (PRAM) redraws every attribute of every record through a row-stochastic matrix and then
shuffles the table: A[u,w] is the probability that u becomes w. This module says what that promises when one record
is replaced by another (ε), how well a person hides among the others (Pk), and which matrices reach a given promise.
What shuffling adds to ε is in `shuffling`.

**ε** (Theorem 1, Corollary 1). The release is ε-DP for replacing one record with ε = Σ_a ln max A_a[u,w]/A_a[v,w].

**Pk** (Definition 6, Theorem 3, Corollary 4). Whoever knows anything about the private table, even all of it, links a
person to a released record with probability at most 1/k, where k = 1 + (R−1)·Π_a AR_a for R records and
AR_a = min A_a[u,w]·A_a[v,x] / (A_a[u,x]·A_a[v,w]). The bound is attained. It grows with R, so the promise needs at
least R records. The paper adds that it survives when fewer arrive than expected; that is so only as long as the
missing ones may still come, for a table of one record hides nobody.

**Rounding.** A promised ε is rounded up. A *promised* k is rounded down, because claiming a larger crowd than there is
would be the unsafe side; a *required* k is met by lowering ρ until the promised k reaches it. A smaller ρ is always at
least as private, for retention ρσ is retention ρ followed by retention σ. So whoever draws with 64-bit binary
fractions uses ⌊ρ·2⁶⁴⌋/2⁶⁴ and keeps every promise made for ρ. The searches here return such fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError, ParameterError, UnreachableError
from incrowd.core.numbers import as_given
from incrowd.theory._numbers import (
    EPSILON_MACHINE,
    require_between,
    require_count,
    require_non_negative,
    require_number,
    round_down,
    round_up,
)

Matrix: TypeAlias = NDArray[np.float64]

ROW_SUM_TOLERANCE = 1e-9
"""A row of probabilities may miss 1 by this much; it is then divided by its exact sum."""

_ROUNDING = 8 * EPSILON_MACHINE
"""More than the handful of operations behind one attribute's ε or AR can lose, relatively."""

_BITS = 64


@dataclass(frozen=True)
class RetentionReplacement:
    """Keep the value with probability ρ, else draw one uniformly from the declared domain.

    Args:
        retention: ρ in [0, 1].
        size: the number of values of the domain, 2 or more. The domain is declared, never read off the data.
    """

    retention: float
    size: int

    def __post_init__(self) -> None:
        require_between("retention", self.retention, 0.0, 1.0, open_low=False, open_high=False)
        require_count("size", self.size, least=2)

    @property
    def epsilon(self) -> float:
        """ln((1+(|V|−1)ρ)/(1−ρ)), rounded up (Corollary 2); infinite if ρ = 1."""
        if self.retention == 0:
            return 0.0
        if self.retention == 1:
            return math.inf
        return round_up(math.log1p(self.size * self.retention / (1 - self.retention)), _ROUNDING)

    @property
    def ratio(self) -> float:
        """AR = ((1−ρ)/(1+(|V|−1)ρ))², rounded down (Corollary 5)."""
        if self.retention == 0:
            return 1.0
        return round_down(((1 - self.retention) / (1 + (self.size - 1) * self.retention)) ** 2, _ROUNDING)

    def matrix(self) -> Matrix:
        """ρ + (1−ρ)/|V| on the diagonal, (1−ρ)/|V| elsewhere."""
        elsewhere = (1 - self.retention) / self.size
        return np.full((self.size, self.size), elsewhere) + self.retention * np.eye(self.size)

    def inverse(self) -> Matrix:
        """(I − (1−ρ)J/|V|)/ρ with J all ones, which undoes the matrix on expected counts."""
        if self.retention == 0:
            raise _not_invertible()
        elsewhere = (1 - self.retention) / self.size
        return (np.eye(self.size) - elsewhere) / self.retention


@dataclass(frozen=True, init=False)
class TransitionMatrix:
    """Any square row-stochastic matrix, kept as exact fractions.

    Args:
        rows: probabilities, as fractions or floating-point numbers. A row that misses 1 by at most
            `ROW_SUM_TOLERANCE` is divided by its exact sum. The promises are about the resulting fractions, so draw
            from them and from nothing else.
    """

    rows: tuple[tuple[Fraction, ...], ...]

    def __init__(self, rows: Sequence[Sequence[float | Fraction]] | Matrix) -> None:
        object.__setattr__(
            self, "rows", tuple(_exact_row(number, row, len(rows)) for number, row in enumerate(rows, 1))
        )
        require_count("size", len(self.rows), least=2)

    @property
    def size(self) -> int:
        """The number of values of the domain."""
        return len(self.rows)

    @cached_property
    def epsilon(self) -> float:
        """ln max A[u,w]/A[v,w], rounded up (Theorem 1); infinite if a value can come from some values only."""
        columns = [(min(column), max(column)) for column in zip(*self.rows, strict=True) if any(column)]
        if any(lowest == 0 for lowest, _ in columns):
            return math.inf
        excess = max(highest / lowest - 1 for lowest, highest in columns)
        return round_up(math.log1p(float(excess)), _ROUNDING) if excess else 0.0

    @cached_property
    def ratio(self) -> float:
        """AR = min A[u,w]A[v,x] / (A[u,x]A[v,w]), rounded down (Theorem 3); zero if a value comes from some only."""
        matrix = self.matrix()
        # A value that nothing turns into is never released and reveals nothing.
        possible = matrix[:, matrix.max(axis=0) > 0]
        if (possible == 0).any():
            return 0.0
        if all(row == self.rows[0] for row in self.rows):
            return 1.0
        lowest = 1.0
        for row in possible:
            quotients = row / possible  # for every v at once: A[u,·]/A[v,·]
            lowest = min(lowest, float((quotients.min(axis=1) / quotients.max(axis=1)).min()))
        return round_down(lowest, _ROUNDING)

    def matrix(self) -> Matrix:
        """The probabilities as floating-point numbers."""
        return np.array([[float(entry) for entry in row] for row in self.rows])

    def inverse(self) -> Matrix:
        """The inverse matrix, which undoes the matrix on expected counts."""
        matrix = self.matrix()
        if np.linalg.cond(matrix) > 1 / math.sqrt(EPSILON_MACHINE):
            raise _not_invertible()
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


Attribute: TypeAlias = RetentionReplacement | TransitionMatrix


def local_epsilon(attributes: Sequence[Attribute]) -> float:
    """ε of independently randomised attributes, replace-one (Corollary 1): the sum, rounded up.

    It needs no shuffling, so it also holds when every respondent randomises their own record.
    """
    _require_attributes(attributes)
    total = math.fsum(attribute.epsilon for attribute in attributes)
    return round_up(total, EPSILON_MACHINE) if total else 0.0


def pk(attributes: Sequence[Attribute], records: int) -> float:
    """The largest k for which a shuffled table of at least `records` records is Pk-anonymous, rounded down.

    Theorem 3 and Corollary 4: k = 1 + (R−1)·Π AR_a. It is 1, no promise at all, as soon as some matrix has a zero.
    """
    _require_attributes(attributes)
    records = require_count("records", records)
    ratio = math.prod(attribute.ratio for attribute in attributes)
    if ratio == 1.0:
        return float(records)
    return max(1.0, round_down(1 + (records - 1) * ratio, (len(attributes) + 4) * EPSILON_MACHINE))


def retention_for_k(k: float, records: int, sizes: Sequence[int]) -> float:
    """Algorithm 1: the largest ρ, the same for all attributes, with which `records` records are Pk-anonymous."""
    sizes = _require_sizes(sizes)
    records = require_count("records", records)
    if require_number("k", k) < 1:
        raise ParameterError("k must be 1 or above.", code="parameter-range", details={"parameter": "k"})
    if k > records:
        raise UnreachableError(
            f"{records} records cannot hide a person among {as_given(k)}.",
            code="unreachable",
            remedy="Ask for a k of at most the number of records.",
        )
    return _largest_retention(lambda rho: pk(_same(rho, sizes), records) >= k)


def retention_for_epsilon(epsilon: float, sizes: Sequence[int]) -> float:
    """Algorithm 2: the largest ρ, the same for all attributes, that is ε-DP for replacing one record."""
    sizes = _require_sizes(sizes)
    require_non_negative("epsilon", epsilon)
    return _largest_retention(lambda rho: local_epsilon(_same(rho, sizes)) <= epsilon)


def retention_for_both(k: float, epsilon: float, records: int, sizes: Sequence[int]) -> float:
    """Algorithm 3: the smaller of the retentions for k and for ε, which therefore keeps both promises."""
    return min(retention_for_k(k, records, sizes), retention_for_epsilon(epsilon, sizes))


def retentions_by_weight(epsilon: float, sizes: Sequence[int], weights: Sequence[float]) -> tuple[float, ...]:
    """One ρ for each attribute, splitting ε in proportion to how much each attribute matters.

    Attribute a gets ε_a = ε·w_a/Σw, and ρ_a = (e^ε_a − 1)/(e^ε_a − 1 + |V_a|) spends exactly that. Rounded down so that
    `local_epsilon` of the result is at most ε. Weights are 0 or above and not all 0.
    """
    sizes = _require_sizes(sizes)
    require_non_negative("epsilon", epsilon)
    for weight in weights:
        require_non_negative("weight", weight)
    total = math.fsum(weights)
    if len(weights) != len(sizes) or total == 0:
        raise ParameterError(
            "There must be one weight for each attribute, and one of them above 0.", code="parameter-combination"
        )
    kept = 1 - (len(sizes) + 16) * _ROUNDING  # what the roundings up in local_epsilon may need
    retentions = tuple(
        _spending(epsilon * kept * (weight / total), size) for size, weight in zip(sizes, weights, strict=True)
    )
    spent = local_epsilon([RetentionReplacement(rho, size) for rho, size in zip(retentions, sizes, strict=True)])
    if spent > epsilon:
        raise InternalError("The retentions spend more than was given.", epsilon=epsilon, spent=spent)
    return retentions


def _exact_row(number: int, row: Sequence[float | Fraction] | Matrix, size: int) -> tuple[Fraction, ...]:
    if len(row) != size:
        raise ParameterError(
            f"Row {number} has {len(row)} entries; a matrix of {size} rows needs {size}.", code="parameter-combination"
        )
    exact = [e if isinstance(e, Fraction) else Fraction(require_number("probability", float(e))) for e in row]
    total = sum(exact, start=Fraction(0))
    if min(exact) < 0 or abs(total - 1) > ROW_SUM_TOLERANCE:
        raise ParameterError(
            f"Row {number} is not a row of probabilities: its entries must be 0 or above and sum to 1.",
            code="parameter-range",
            details={"row": number, "sum": float(total)},
        )
    return tuple(entry / total for entry in exact)


def _require_attributes(attributes: Sequence[Attribute]) -> None:
    if not attributes:
        raise ParameterError("At least one attribute is needed.", code="parameter-combination")


def _require_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    if not sizes:
        raise ParameterError("At least one attribute is needed.", code="parameter-combination")
    return tuple(require_count("size", size, least=2) for size in sizes)


def _same(retention: float, sizes: Sequence[int]) -> list[Attribute]:
    return [RetentionReplacement(retention, size) for size in sizes]


def _largest_retention(keeps: Callable[[float], bool]) -> float:
    """The largest 64-bit fraction found by bisection to keep a promise that ρ = 0 keeps and that larger ρ weaken.

    Every ρ that is returned was itself tested with the rounded promise.
    """
    low, high = 0.0, 1.0
    if not keeps(low):
        raise InternalError("A table drawn uniformly at random fails the promise.")
    for _ in range(_BITS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if keeps(middle):
            low = middle
        else:
            high = middle
    return low


def _spending(epsilon: float, size: int) -> float:
    """ρ whose ε is at most this, as a 64-bit fraction."""
    if epsilon == 0:
        return 0.0
    odds = math.expm1(min(epsilon, 700.0)) / size  # ρ/(1−ρ)
    rho = round_down(1 / (1 + 1 / odds) if odds > 1 else odds / (1 + odds), _ROUNDING)
    return math.ldexp(math.floor(math.ldexp(rho, _BITS)), -_BITS)


def _not_invertible() -> ParameterError:
    return ParameterError(
        "This randomisation cannot be undone: its matrix has no usable inverse.",
        code="parameter-range",
        remedy="Raise the retention.",
    )
