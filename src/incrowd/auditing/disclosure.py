"""What a table gives away about one sensitive attribute, without anybody being found in it.

Every measure of `incrowd.theory.syntactic`, and the belief ratio against each adversary, with the group that
decides it. Figures are facts about this table, except that a belief ratio is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from incrowd.auditing.groups import Grouping, Kinds
from incrowd.auditing.suspects import Suspect
from incrowd.core.errors import InternalError, ParameterError
from incrowd.histogram import Histogram
from incrowd.sources.observed import run_starts
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.beliefs import BeliefAudit, Predicate, belief_ratio
from incrowd.theory.requirements import MOST_NEGATED, MOST_VALUES
from incrowd.theory.syntactic import (
    Measure,
    beta_likeness,
    delta_disclosure,
    distinct_l_diversity,
    entropy_l_diversity,
    largest_share,
    recursive_l_diversity,
    t_closeness,
)

_RECURSIVE = (2, 3)
_SIGMAS = tuple(float(f"{10 ** (i / 3):.2g}") for i in range(1, 19))  # to a million
_CURVE_CELLS = 2**20
_M = TypeVar("_M", Measure, BeliefAudit)
T = TypeVar("T")


def alike(items: Sequence[T], key: Callable[[T], object]) -> list[tuple[T, int]]:
    """Runs of items that look alike, each by its first one and how many they are."""
    return [(first, 1 + len(rest)) for _, (first, *rest) in groupby(items, key)]


@dataclass(frozen=True)
class AuditFigure:
    """A measure of the table, and the group that decides it.

    Attributes:
        value: the measure, possibly infinite.
        group: the number of the (first) group that attains it, from 1.
        size: how many records that group has.
    """

    value: float
    group: int
    size: int


@dataclass(frozen=True)
class Belief:
    """How far one adversary's belief about a member of the table can be moved.

    Attributes:
        adversary: who, as spelled.
        ratio: the smallest belief ratio that the table keeps against her, rounded up; infinity if it keeps none.
        p_in: her belief in the statement given away most, about a member of the worst group.
        p_out: her belief in it if that person were not in the table.
        group: the number of that group, from 1.
        size: how many records it has; of those whom the adversary tells apart in it, if she knows more.
        negated: whether the statement is "not this value".
        statement: the value that it is about, or the name of a group of values; only if values may be shown.
        exact: the ratio before rounding; None for infinity.
    """

    adversary: str
    ratio: float
    p_in: float
    p_out: float
    group: int
    size: int
    negated: bool
    statement: str | None = None
    exact: Fraction | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """The ratio in a few digits, still rounded up."""
        return "∞" if self.exact is None else _written(self.exact)


@dataclass(frozen=True)
class StubbornnessPoint:
    """The belief ratio against adversaries of one stubbornness, about single values.

    Attributes:
        sigma: the stubbornness.
        any_shape: against anyone with it (class II).
        table_shape: against the one who believed in the whole table's shares (class I); None if a share is 0.
    """

    sigma: float
    any_shape: float
    table_shape: float | None


@dataclass(frozen=True)
class WorstGroup:
    """A group whose members' value is given away more than others'.

    Attributes:
        group: its number, from 1.
        size: its records.
        distinct: how many values they have.
        largest_share: the share of the most frequent of these.
        t: its distance from the whole table, equal distance.
        ratios: the belief ratio of this group by itself, in the order of the adversaries.
        labels: what its members have in common; only if values may be shown.
        commonest: their most frequent value; only if values may be shown (None may also be a missing value).
    """

    group: int
    size: int
    distinct: int
    largest_share: float
    t: float
    ratios: tuple[float, ...]
    labels: dict[str, str | None] | None = None
    commonest: str | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        """The ratios in a few digits, rounded up unless they are above a round number by less than 1e-13 of it."""
        return tuple("∞" if math.isinf(r) else _written(Fraction(r) * (1 - Fraction(1, 10**13))) for r in self.ratios)


@dataclass(frozen=True)
class Disclosure:
    """What the table gives away about one sensitive attribute.

    Attributes:
        name: of the attribute.
        values: how many values its domain has.
        declared: whether that domain was declared; otherwise it is the values that occur.
        missing: how many records have no value, which counts as a value of its own.
        groups: how many groups there are.
        k: the size of the smallest.
        homogeneous_groups: groups whose members all have the same value.
        homogeneous_records: how many records those are.
        distinct_l: the smallest number of different values in a group.
        entropy_l: exp of the smallest entropy.
        recursive_c: for ℓ = 2 and 3 the c that must be exceeded for recursive (c,ℓ)-diversity.
        t: the largest distance of a group from the table, two different values being 1 apart.
        t_ordered: the same for values in an order, the first and the last being 1 apart; None if they have none.
        largest_share: α, the largest share of a value in a group.
        beta: β of basic β-likeness.
        beta_enhanced: β of enhanced β-likeness.
        delta: δ of δ-disclosure, to be exceeded.
        beliefs: against each adversary; none if the domain has a single value.
        worst: the worst groups first: by the ratio against the first adversary, then the others, then the smaller,
            then those farther from the whole table.
        stubbornness: how the belief ratio depends on how firm a belief is; empty where a group has a single value,
            which no firmness helps against, or where there is too much to compute.
    """

    name: str
    values: int
    declared: bool
    missing: int
    groups: int
    k: int
    homogeneous_groups: int
    homogeneous_records: int
    distinct_l: AuditFigure
    entropy_l: AuditFigure
    recursive_c: dict[int, AuditFigure]
    t: AuditFigure
    t_ordered: AuditFigure | None
    largest_share: AuditFigure
    beta: AuditFigure
    beta_enhanced: AuditFigure
    delta: AuditFigure
    beliefs: tuple[Belief, ...]
    worst: tuple[WorstGroup, ...]
    stubbornness: tuple[StubbornnessPoint, ...]

    @property
    def worst_alike(self) -> list[tuple[WorstGroup, int]]:
        """The worst groups, those that look alike by the first of them and their number."""
        return alike(self.worst, lambda group: replace(group, group=0))


def disclosure(
    histogram: Histogram,
    by: Sequence[str],
    sensitive: str,
    suspects: Sequence[Suspect],
    *,
    declared: bool = False,
    ordered: bool = False,
    worst: int = 10,
    show_values: bool = False,
) -> Disclosure:
    """Audits one sensitive attribute.

    Args:
        histogram: the table; the labels of the sensitive column are its domain.
        by: the columns that somebody may know of a person.
        sensitive: the attribute.
        suspects: against whom belief ratios are computed.
        declared: whether the domain was declared; only reported.
        ordered: whether the domain's values are in their order.
        worst: how many of the worst groups to list.
        show_values: whether the result may hold values from the table.
    """
    labels = histogram[sensitive].labels
    if len(labels) > MOST_VALUES:
        raise ParameterError(
            f"The sensitive column {sensitive!r} has {len(labels):,} different values, more than {MOST_VALUES:,}.",
            code="domain-large",
            remedy="Group its values first (amounts into ranges, say), or treat it as a quasi-identifier.",
            details={"column": sensitive, "values": len(labels)},
        )
    groups = Grouping.of(histogram, by, sensitive)
    kinds, sizes, totals = groups.kinds(), groups.sizes, groups.totals

    def figure(
        measure: Callable[[NDArray[np.int64]], Measure], *, low: bool = False
    ) -> tuple[AuditFigure, NDArray[np.float64]]:
        best, by_kind = _over_blocks(kinds, measure, low=low)
        return AuditFigure(best.value, best.group + 1, int(sizes[best.group])), by_kind

    def recursive(l: int) -> AuditFigure:  # noqa: E741
        return figure(lambda cells: recursive_l_diversity(cells, l))[0]

    share, shares = figure(lambda cells: largest_share(cells, per_group=True))
    t, distances = figure(lambda cells: t_closeness(cells, reference=totals, per_group=True))
    beliefs, ratios = [], []
    for suspect in (s.for_values(len(labels)) for s in suspects if len(labels) > 1):
        if suspect.about in (None, sensitive) and sensitive not in suspect.knowing:
            hers, within = _as_she_sees(histogram, by, sensitive, suspect, groups)
            seen = kinds if hers is groups else hers.kinds()
            audit, by_kind = _over_blocks(seen, _beliefs_of(suspect, labels, totals))
            thinkable = [labels[number] for number in suspect.possible(labels)]
            size = int(hers.sizes[audit.group])
            audit = replace(audit, group=int(within[audit.group]))
            beliefs.append(_belief(suspect, audit, size, thinkable, show_values=show_values))
            by_group = np.ones(len(groups))
            np.maximum.at(by_group, within, by_kind[seen.of])
            ratios.append(by_group)
    same = groups.distinct == 1
    absent = labels.index(None) if None in labels else None
    return Disclosure(
        name=sensitive,
        values=len(labels),
        declared=declared,
        missing=0 if absent is None else totals[absent],
        groups=len(groups),
        k=int(sizes.min()),
        homogeneous_groups=int(same.sum()),
        homogeneous_records=int(sizes[same].sum()),
        distinct_l=figure(distinct_l_diversity, low=True)[0],
        entropy_l=figure(entropy_l_diversity, low=True)[0],
        recursive_c={l: recursive(l) for l in _RECURSIVE},  # noqa: E741
        t=t,
        t_ordered=figure(lambda cells: t_closeness(cells, "ordered", reference=totals))[0] if ordered else None,
        largest_share=share,
        beta=figure(lambda cells: beta_likeness(cells, reference=totals))[0],
        beta_enhanced=figure(lambda cells: beta_likeness(cells, enhanced=True, reference=totals))[0],
        delta=figure(lambda cells: delta_disclosure(cells, reference=totals))[0],
        beliefs=tuple(beliefs),
        worst=_worst(kinds, shares, distances, ratios, labels if show_values else None, worst),
        stubbornness=() if same.any() else _stubbornness(kinds, totals),
    )


def _as_she_sees(
    histogram: Histogram, by: Sequence[str], sensitive: str, suspect: Suspect, groups: Grouping
) -> tuple[Grouping, NDArray[np.int64]]:
    """The groups in which an adversary finds people, and for each the number of the audit's group that it lies in."""
    if not suspect.knowing and not suspect.whom:
        return groups, np.arange(len(groups))
    meant = {name: np.array(suspect.meant(name, histogram[name].labels)) for name, _ in suspect.whom}
    about = np.logical_and.reduce([meant[name][histogram[name].codes] for name in meant] or [np.True_])
    table = histogram.where(np.broadcast_to(about, len(histogram)))
    if not len(table):
        raise ParameterError(
            f"The adversary {suspect.name!r} is about nobody in the table.",
            code="parameter-combination",
            remedy="Write the values of 'for' as in the table.",
        )
    found = Grouping.of(table, [*by, *(name for name in suspect.knowing if name not in by)], sensitive)
    # Both stand in the order of their labels, and what she knows besides comes last.
    first = run_starts([column.codes[found.starts] for column in found.by[: len(by)]])
    columns = {column.name: column.codes[groups.starts] for column in groups.by}
    there = np.logical_and.reduce([meant[name][columns[name]] for name in meant] or [np.ones(len(groups), np.bool_)])
    return found, np.flatnonzero(there)[np.cumsum(first) - 1]


def _stubbornness(kinds: Kinds, totals: Sequence[int]) -> tuple[StubbornnessPoint, ...]:
    values = len(totals)
    if values == 1 or len(kinds.first) * values > _CURVE_CELLS:
        return ()

    def ratio(adversary: Adversary) -> float:
        return _over_blocks(kinds, lambda cells: belief_ratio(cells, adversary))[0].ratio

    return tuple(
        StubbornnessPoint(
            sigma,
            ratio(Adversary.with_stubbornness(sigma)),
            ratio(Adversary.with_prior(DirichletPrior.from_shape(totals, sigma))) if all(totals) else None,
        )
        for sigma in sorted({float(values), *(s for s in _SIGMAS if s > values)})
    )


def _beliefs_of(
    suspect: Suspect, labels: Sequence[str | None], totals: Sequence[int]
) -> Callable[[NDArray[np.int64]], BeliefAudit]:
    possible = suspect.possible(labels)
    predicates = suspect.statements([labels[number] for number in possible])
    adversary = suspect.adversary(labels, totals)
    if suspect.knows_not:
        adversary = adversary.excluding(possible, len(labels))
    if predicates in ("negations", "subsets") and len(labels) > MOST_NEGATED:
        raise ParameterError(
            f"Statements such as “not this value” are examined for at most {MOST_NEGATED:,} values; there are "
            f"{len(labels):,}.",
            code="domain-large",
            remedy="Ask for predicates=values, or group the values first.",
        )

    def measured(cells: NDArray[np.int64]) -> BeliefAudit:
        if not suspect.knows_not:
            return belief_ratio(cells, adversary, predicates, per_group=True)
        left = cells[:, possible]
        if not left.any():  # of nobody here she thinks that it can be
            return BeliefAudit(1.0, 0, Predicate((0,)), 0.0, 0.0, Fraction(1), by_group=np.ones(len(cells)))
        audit = belief_ratio(left, adversary, predicates, per_group=True)
        ratios = audit.by_group if audit.by_group is not None else np.ones(len(cells))
        return replace(audit, by_group=np.where(np.isnan(ratios), 1.0, ratios))

    return measured


def _over_blocks(
    kinds: Kinds, measure: Callable[[NDArray[np.int64]], _M], *, low: bool = False
) -> tuple[_M, NDArray[np.float64]]:
    """The worst of all blocks, and the figures of each kind of group if the measure gives them.

    What a block's figures are relative to must not depend on the block: the measure knows the whole table's totals.
    """
    found: _M | None = None
    parts = []
    for chosen, cells in kinds.blocks():
        here = measure(cells)
        if here.by_group is not None:
            parts.append(here.by_group)
        if found is None or (_level(here) < _level(found) if low else _level(here) > _level(found)):
            found = replace(here, group=int(chosen[here.group]))
    if found is None:
        raise InternalError("A table without groups was audited.")
    return found, np.concatenate(parts) if parts else np.zeros(0)


def _level(figure: Measure | BeliefAudit) -> Fraction | float:
    if figure.exact is not None:
        return figure.exact
    return figure.value if isinstance(figure, Measure) else figure.ratio


def _belief(
    suspect: Suspect, audit: BeliefAudit, size: int, labels: Sequence[str | None], *, show_values: bool
) -> Belief:
    columns, statement = audit.predicate.values, audit.predicate.name
    negated = not statement and (suspect.predicates == "negations" or len(columns) > 1)
    if not statement:
        statement = _shown(labels[min(set(range(len(labels))) - set(columns)) if negated else columns[0]])
    return Belief(
        adversary=suspect.name,
        ratio=audit.ratio,
        p_in=audit.p_in,
        p_out=audit.p_out,
        group=audit.group + 1,
        size=size,
        negated=negated,
        statement=statement if show_values else None,
        exact=audit.exact,
    )


def _worst(
    kinds: Kinds,
    shares: NDArray[np.float64],
    distances: NDArray[np.float64],
    ratios: Sequence[NDArray[np.float64]],
    labels: Sequence[str | None] | None,
    most: int,
) -> tuple[WorstGroup, ...]:
    groups, sizes, distinct = kinds.groups, kinds.groups.sizes, kinds.groups.distinct
    keys = ratios or [shares[kinds.of]]
    order = np.lexsort([-distances[kinds.of], sizes, *(-each for each in reversed(keys))])[:most]
    found = []
    for group in map(int, order):
        kind = kinds.of[group]
        found.append(
            WorstGroup(
                group=group + 1,
                size=int(sizes[group]),
                distinct=int(distinct[group]),
                largest_share=float(shares[kind]),
                t=float(distances[kind]),
                ratios=tuple(float(by_group[group]) for by_group in ratios),
                labels=None if labels is None else groups.labels(group),
                commonest=None if labels is None else _shown(labels[groups.commonest(group)]),
            )
        )
    return tuple(found)


def _written(ratio: Fraction) -> str:
    digits = max(0, 3 - math.floor(math.log10(max(float(ratio), 1.0))))
    return f"{(Decimal(math.ceil(ratio * 10**digits)) / 10**digits).normalize():,f}"


def _shown(label: str | None) -> str:
    return "(missing)" if label is None else label
