"""How much a published table can move an adversary's belief about one person.

After Machanavajjhala, Gehrke and Götz, "Data Publishing against Realistic Adversaries" (VLDB 2009). The adversary holds
a Dirichlet prior σ(·) over the sensitive values, with total σ (her *stubbornness*), and knows b records of the table.
She believes a predicate φ about a person of group q with probability

    p_in  = n(q,φ) / (n(q) − b)                       when the person is in the table,
    p_out = (n(q,φ) − 1 + σ(φ)) / (n(q) − 1 + σ)      when the person is left out (a person who satisfies φ).

The table is ε-private when p_in ≤ ε·p_out and 1 − p_out ≤ ε·(1 − p_in) for every group and predicate (Definition 4).
Here ε ≥ 1 is a ratio of beliefs, not the ε of differential privacy, and is called the *belief ratio*. The smallest one
that a table satisfies has a closed form, which `belief_ratio` computes.

Which adversary. Both inequalities get harder as p_out falls, so a class of adversaries is as bad as its member with the
smallest p_out, for "s" and for "not s" alike:

- class I, the prior is known: p_out as above;
- class II, only σ is known: σ(φ) is smallest when nothing in φ was ever observed, that is one per value, σ(φ) = |S_φ|
  (a prior starts from one per value, and 1 per value of the complement fits because σ ≥ |S|);
- class III, only the shape is known and she never revises it, σ → ∞: p_out = σ(φ)/σ;
- class IV, nothing is known: p_out can be as small as we like, no table is ε-private for any ε (Theorem 4).

The edges. If n(q,φ) = 0 then p_in = 0 and both inequalities hold for every prior: nothing is disclosed. If
n(q,φ) > 0 and b ≥ n(q) − n(q,φ), she may know every record of the group that is not φ; then p_in = 1, and the
ratio is infinite unless p_out = 1 too, which only a class III shape that is certain of φ beforehand can give (and
then nothing is learned).

Merging groups never raises the largest ratio, so a lattice of generalizations may be pruned. With m = n(q) − b,
Σ = σ + b and x = n(q,φ)/m the two inequalities read

    x·(Σ − 1 − (ε−1)m) ≤ ε(σ(φ) − 1)    and    (1−x)·(ε(Σ−1) + (ε−1)m) ≥ Σ − σ(φ).

A union has a larger m than its parts, and an x no larger than the larger of theirs (its m is at least the sum of
theirs; a part without φ only adds to m). So the second inequality is preserved, and the first too if σ(φ) ≥ 1. If
σ(φ) < 1, write the first ratio as n_φ/(n_φ − 1 + σ(φ)) · (n − 1 + σ)/(n − b): neither factor rises as a group
grows, because σ + b ≥ 1. That is why a prior needs σ ≥ 1 here; below it merging can raise the ratio. For class III, x
alone decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.core.numbers import as_given
from incrowd.theory._groups import (
    SCORE_ERROR,
    Clue,
    Flags,
    Floats,
    GroupTable,
    Integers,
    Scores,
    as_written,
    float_above,
    group_table,
    written_as,
)
from incrowd.theory._numbers import require_count
from incrowd.theory.adversaries import Adversary, AdversaryClass, DirichletPrior

__all__ = [
    "Adversary",
    "AdversaryClass",
    "BeliefAudit",
    "DirichletPrior",
    "Predicate",
    "Predicates",
    "belief_ratio",
]


@dataclass(frozen=True)
class Predicate:
    """A sensitive statement about a person: "the value is one of these" (columns of the table)."""

    values: tuple[int, ...]
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        columns = tuple(sorted({require_count("a value's column", value, least=0) for value in self.values}))
        object.__setattr__(self, "values", columns)

    def negation(self, size: int) -> Predicate:
        """ "None of these", in a domain of that size."""
        named = set(self.values)
        others = tuple(value for value in range(size) if value not in named)
        return Predicate(others, f"not {self.name}" if self.name else "")


Predicates = Literal["values", "negations", "subsets"] | Sequence[Predicate]


@dataclass(frozen=True)
class BeliefAudit:
    """The smallest belief ratio that a table satisfies, and where it is attained.

    Attributes:
        ratio: the smallest ε, rounded up; infinity if there is none.
        group: the row of the worst group.
        predicate: the statement about its members that is given away most.
        p_in: her belief in it when the person is in the table.
        p_out: her belief in it when the person is left out.
        exact: the ratio before rounding; None for infinity.
        by_group: on request, an upper bound of every group's ratio (above it by less than 1e-13 of itself; nan for
            a row without records).
    """

    ratio: float
    group: int
    predicate: Predicate
    p_in: float
    p_out: float
    exact: Fraction | None
    by_group: Floats | None = field(default=None, compare=False, repr=False)

    def satisfies(self, limit: float | Fraction) -> bool:
        """Whether the table is `limit`-private. Decided on fractions; 2.3 means 23/10."""
        return self.exact is not None and self.exact <= written_as("the belief ratio", limit)[1]


def belief_ratio(
    counts: npt.ArrayLike, adversary: Adversary, predicates: Predicates = "values", *, per_group: bool = False
) -> BeliefAudit:
    """The smallest ε ≥ 1 for which a generalized table is ε-private, in closed form.

    Precondition: `counts` has one row per group and one column per value of the declared domain. The promise is
    about this table as published; that the *choice* of the generalization may depend on the data (minimality attacks)
    is outside the notion.

    Args:
        counts: records by group and sensitive value; rows without records are left out.
        adversary: against whom.
        predicates: what is sensitive: every single value, every "not this value", every subset, or a list of one's own.
            The paper asks that the ratio be bounded for each of them.
        per_group: also return every group's ratio.

    "subsets" examines the 2K predicates "s" and "not s" only, which is enough for all 2^K − 2. Write c_s, σ_s for one
    value's records and parameter, C for the complement of φ. The first ratio grows with n_φ/(n_φ − 1 + σ_φ), so it is
    largest where (σ_φ − 1)/n_φ is smallest; leaving out of φ what does not occur only lowers that, and
    (σ_φ − 1)/n_φ ≥ Σ(σ_s − 1)/Σc_s ≥ min (σ_s − 1)/c_s, a single value. The second is proportional to
    1 + (σ_C + b)/(n_C − b); if some n_C ≤ b then so is some c_s, s ∈ C, and "not s" is infinite; else
    (σ_C + b)/(n_C − b) ≤ Σ(σ_s + b)/Σ(c_s − b) ≤ max (σ_s + b)/(c_s − b), the complement of a single value. The same
    for class II (σ_φ = |φ|, σ_C = σ − K + |C|, where σ − K ≥ 0 may be repeated in the sum) and class III, where the
    ratio is p_C(n − b)/(n_C − b) and a value of weight 0 may be left out of C, which only raises it.

    Raises:
        UnreachableError: against class IV (Theorem 4).
    """
    table = group_table(counts)
    worst = belief_scores(table, adversary, predicates).worst()
    chosen, (hits, size), known = Statements.of(predicates, table.values), worst.evidence, adversary.known_records
    outlooks = outlooks_of(adversary, chosen)
    return BeliefAudit(
        ratio=math.inf if worst.exact is None else float_above(worst.exact),
        group=worst.group,
        predicate=chosen.predicates[worst.column],
        p_in=float(p_in(hits, size, known)),
        p_out=float(min(outlook.p_out(worst.column, hits, size) for outlook in outlooks)),
        exact=worst.exact,
        by_group=table.spread(worst.by_group * (1 + 2 * SCORE_ERROR)) if per_group else None,
    )


def belief_scores(table: GroupTable, adversary: Adversary, predicates: Predicates) -> Scores:
    """The belief ratio of every group and predicate; see `belief_ratio`."""
    if adversary.kind is AdversaryClass.ANYONE:
        raise UnreachableError(
            "No generalized table keeps any belief ratio against an adversary with any prior whatsoever "
            "(Machanavajjhala, Gehrke, Götz, Theorem 4).",
            code="any-adversary",
            remedy="Bound her stubbornness (class II), fix her shape (class III) or her prior (class I); or choose a "
            "mechanism with differential privacy instead of a generalization.",
        )
    chosen = Statements.of(predicates, table.values)
    outlooks, known = outlooks_of(adversary, chosen), adversary.known_records

    def rough(cells: Integers, sizes: Integers) -> tuple[Floats, tuple[Integers, ...]]:
        hits = chosen.hits(cells, sizes)
        scores = outlooks[0].ratios(hits, sizes, known)
        for outlook in outlooks[1:]:
            np.maximum(scores, outlook.ratios(hits, sizes, known), out=scores)
        return scores, (hits, sizes)

    def exact(column: int, clue: Clue) -> Fraction | None:
        values = [exact_ratio(outlook, column, clue[0], clue[1], known) for outlook in outlooks]
        return None if None in values else max(value for value in values if value is not None)

    return Scores(table, rough, exact, len(chosen.predicates))


@dataclass(frozen=True, eq=False)
class Statements:
    """The predicates of one question, over a domain of `size` values."""

    predicates: tuple[Predicate, ...]
    size: int

    @classmethod
    def of(cls, predicates: Predicates, size: int) -> Statements:
        """Spell out a named family, or check a list of one's own."""
        if size < 2:
            raise ParameterError(
                "A sensitive domain needs at least two values, else there is nothing to learn.",
                code="predicate-invalid",
                remedy="Declare the whole domain, including the values that do not occur.",
            )
        if isinstance(predicates, str):
            return _spelled_out(predicates, size, ())
        return _spelled_out(tuple(predicates), size, tuple(predicate.name for predicate in predicates))

    @cached_property
    def sides(self) -> tuple[tuple[bool, tuple[int, ...]], ...]:
        """Each predicate by the fewer values: those that satisfy it, or (True) those that do not."""
        return tuple(
            (True, p.negation(self.size).values) if 2 * len(p.values) > self.size else (False, p.values)
            for p in self.predicates
        )

    def hits(self, cells: Integers, sizes: Integers) -> Integers:
        """n(q,φ): records of each group that satisfy each predicate."""
        if self._single is None:
            found = np.stack([cells[:, side].sum(axis=1) for _, side in self.sides], axis=1)
        else:
            found = cells if self._single == tuple(range(self.size)) else cells[:, self._single]
        return np.where(self._negated, sizes - found, found) if self._negated.any() else found

    @cached_property
    def _single(self) -> tuple[int, ...] | None:
        """The value that each predicate is about, if each is about one."""
        return tuple(side[0] for _, side in self.sides) if all(len(side) == 1 for _, side in self.sides) else None

    @cached_property
    def _negated(self) -> Flags:
        return np.array([flip for flip, _ in self.sides])

    def weigh(self, weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """What the values of each predicate weigh together."""
        whole = sum(weights, Fraction(0))
        found = ((flip, sum((weights[value] for value in side), Fraction(0))) for flip, side in self.sides)
        return tuple(whole - weight if flip else weight for flip, weight in found)


@lru_cache(maxsize=8)
def _spelled_out(predicates: str | tuple[Predicate, ...], size: int, _names: tuple[str, ...]) -> Statements:
    """Made once, and not again for every table that is looked at. Equal predicates may have different names."""
    if isinstance(predicates, str):
        families = ("values", "negations", "subsets")
        if predicates not in families:
            raise ParameterError(
                f"Unknown family of predicates; choose one of {', '.join(families)}.", code="predicate-invalid"
            )
        single = [Predicate((value,)) for value in range(size)]
        # Each of these names all values but one, so they are made only where they are wanted.
        negated = [] if predicates == "values" else [predicate.negation(size) for predicate in single]
        return Statements((*(() if predicates == "negations" else single), *negated), size)
    if not predicates:
        raise ParameterError("At least one predicate is needed.", code="predicate-invalid")
    for number, predicate in enumerate(predicates):
        if not 0 < len(predicate.values) < size or predicate.values[-1] >= size:
            raise ParameterError(
                f"Predicate {number} must name some but not all of the {size} columns, by their numbers from 0.",
                code="predicate-invalid",
                details={"predicate": number, "columns": size},
            )
    return Statements(predicates, size)


@dataclass(frozen=True, eq=False)
class Outlook:
    """What one adversary adds to a group's records: p_out = (r(n_φ − 1) + σ(φ)) / (r(n − 1) + σ).

    r is 1 for one who revises her belief by the table and 0 for one who never does (class III). Everything that is
    added up is non-negative, so nothing cancels in floating point.
    """

    revises: int
    inside: tuple[Fraction, ...]  # σ(φ), by predicate
    total: Fraction  # σ

    def ratios(self, hits: Integers, sizes: Integers, known: int) -> Floats:
        """The belief ratio of every group and predicate, to within `SCORE_ERROR`."""
        inside, outside = self._floats
        there, size = hits.astype(np.float64), sizes.astype(np.float64)
        others, strangers = size - there, size - known
        total = self.revises * (size - 1) + float(self.total)
        doubt = others + outside if self.revises else np.broadcast_to(outside, others.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = there * total
            below = there - 1 if self.revises else np.zeros(there.shape)
            below += inside
            below *= strangers
            ratio /= below
            np.multiply(others - known if known else others, total, out=below)
            np.maximum(ratio, np.divide(doubt * strangers, below, out=below), out=ratio)
        np.maximum(ratio, 1.0, out=ratio)
        cornered: Flags = others <= known
        if cornered.any():
            ratio[cornered] = np.where(doubt[cornered] > 0, np.inf, 1.0)
        np.copyto(ratio, 1.0, where=there == 0)
        return ratio

    @cached_property
    def _floats(self) -> tuple[Floats, Floats]:
        """σ(φ) and σ − σ(φ), by predicate."""
        outside = [float(self.total - weight) for weight in self.inside]
        return np.array([float(weight) for weight in self.inside]), np.array(outside)

    def p_out(self, column: int, hits: int, size: int) -> Fraction:
        """Her belief without the person: one who satisfies the predicate, if the group has any."""
        left = hits - 1 if hits else 0
        return (self.revises * left + self.inside[column]) / (self.revises * (size - 1) + self.total)


@lru_cache(maxsize=1 << 16)
def exact_ratio(outlook: Outlook, column: int, hits: int, size: int, known: int) -> Fraction | None:
    """The belief ratio of one group and predicate; None for infinity."""
    inside, outside = p_in(hits, size, known), outlook.p_out(column, hits, size)
    if inside <= outside:
        return Fraction(1)
    if inside == 1 or outside == 0:
        return None
    return max(inside / outside, (1 - outside) / (1 - inside))


def p_in(hits: int, size: int, known: int) -> Fraction:
    """Her belief with the person, when the records she knows are as many of the others as there are."""
    if hits == 0:
        return Fraction(0)
    return Fraction(1) if size - hits <= known else Fraction(hits, size - known)


@lru_cache(maxsize=8)
def outlooks_of(adversary: Adversary, statements: Statements) -> tuple[Outlook, ...]:
    """The members of a class of adversaries among whom the worst is, for each predicate."""
    size = statements.size
    if adversary.weights is None:
        strength = adversary.stubbornness or 0.0
        if strength < size:
            raise ParameterError(
                f"A stubbornness of {as_given(strength)} leaves less than 1 for each of the {size} values.",
                code="parameter-combination",
                remedy=f"Use at least {size}.",
                details={"stubbornness": strength, "values": size},
            )
        fewest = tuple(Fraction(len(predicate.values)) for predicate in statements.predicates)
        return (Outlook(1, fewest, as_written(strength)),)
    if len(adversary.weights) != size:
        raise ParameterError(
            f"The adversary's prior has {len(adversary.weights)} values and the table {size}.",
            code="parameter-combination",
            remedy="Both must list the declared sensitive domain, in the same order.",
            details={"prior": len(adversary.weights), "table": size},
        )
    weights = [as_written(weight) for weight in adversary.weights]
    inside = statements.weigh(weights)
    revises = 0 if adversary.kind is AdversaryClass.KNOWN_SHAPE else 1
    outlooks = [Outlook(revises, inside, sum(weights, Fraction(0)))]
    if adversary.or_less_stubborn:
        least = min(weight for weight in weights if weight)
        outlooks.append(Outlook(1, tuple(weight / least for weight in inside), outlooks[0].total / least))
    return tuple(outlooks)
