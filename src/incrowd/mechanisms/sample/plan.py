"""Planning a plain sample: the largest safe rate."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from incrowd.core.display import Showable, Shown
from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.core.numbers import as_given, number, number_down, number_up
from incrowd.mechanisms.planner import Planned
from incrowd.reports.svg import Axis, Line, Mark, line_chart
from incrowd.theory.profile import Relation
from incrowd.theory.sampling import ValueClasses

INTERNAL = "For the publisher's eyes only: every number here was found by looking at the table, and none is covered."


@dataclass(frozen=True)
class SampleTheorem:
    """What Theorem 3 or 7 of the paper allows: a rate, the ε it promises there, and how many values it calls rare."""

    rate: float
    epsilon: float
    rare: int


@dataclass(frozen=True, repr=False)
class SamplePlan(Showable):
    """A rate of a plain sample of one table, and what it promises (Chaudhuri, Mishra).

    Attributes:
        rate: each row is sampled with this probability.
        epsilon: what changing rows can do to the likelihood of the sample, less 1.
        delta: the probability of a sample of which that is not true.
        rows_unknown: c, how many rows may be changed.
        exact: whether no larger rate, or for a planned one no smaller promise, would do; if not, the true largest
            rate is at most `rate_at_most`.
        rate_at_most: an upper bound on the largest rate; a planned rate itself.
        theorem: the paper's own rate, or None where its theorem gives none.
        classes: how many distinct rows are rare, infrequent and common at this rate.
        distinct: the number of distinct rows.
        curve: pairs of a rate and its δ, for drawing; empty unless asked for.
    """

    rate: float
    epsilon: float
    delta: float
    rows_unknown: int
    exact: bool
    rate_at_most: float
    theorem: SampleTheorem | None
    classes: ValueClasses
    distinct: int
    curve: tuple[tuple[float, float], ...] = field(default=(), repr=False)

    def shown(self) -> Shown:
        """Its numbers, all found by looking at the table."""
        return replace(super().shown(), internal=INTERNAL)

    @property
    def relation(self) -> str:
        """Tables of the same size that differ in `rows_unknown` rows."""
        return Relation.REPLACE_ONE.value if self.rows_unknown == 1 else f"replace-{self.rows_unknown}"

    def chart(self) -> str:
        return draw_sample(self)


def plan_sample(
    counts: ArrayLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rate: float | None = None,
    rows_unknown: int = 1,
    curve_points: int = 0,
) -> SamplePlan:
    """A plain sample of a table given by the counts of its distinct rows: two of ε, δ and the rate give the third.

    The largest safe rate for an ε and a δ; or the δ or the ε that a planned rate promises.
    """
    from incrowd.theory import sampling

    if sum(given is None for given in (epsilon, delta, rate)) != 1:
        raise ParameterError(
            "Give two of epsilon, delta and rate; the third follows.",
            code="parameter-combination",
            remedy="Epsilon and delta give the largest safe rate; a rate with one of them gives what it promises.",
        )
    if rate is None and epsilon is not None and delta is not None:
        best = sampling.largest_rate(counts, epsilon, delta, rows_unknown)
        rate, at_most, exact = best.rate, best.rate_at_most, best.exact
    else:
        epsilon, delta, exact = _promised(counts, epsilon, delta, rate or 0.0, rows_unknown)
        rate = at_most = rate or 0.0
    try:
        found = sampling.theorem_rate(counts, epsilon, delta, rows_unknown)
        theorem, inner = SampleTheorem(found.rate, found.epsilon, found.rare), found.inner_epsilon
    except UnreachableError:
        theorem, inner = None, epsilon
    rates = np.geomspace(rate / 4, min(1.0, rate * 2), curve_points)
    return SamplePlan(
        rate=rate,
        epsilon=epsilon,
        delta=delta,
        rows_unknown=rows_unknown,
        exact=exact,
        rate_at_most=at_most,
        theorem=theorem,
        classes=sampling.classify(counts, rate, inner, delta, rows_unknown),
        distinct=int(np.size(np.asarray(counts))),
        curve=tuple((float(r), sampling.sample_delta(counts, float(r), epsilon, rows_unknown).delta) for r in rates),
    )


def _promised(
    counts: ArrayLike, epsilon: float | None, delta: float | None, rate: float, rows_unknown: int
) -> tuple[float, float, bool]:
    """The ε and δ of a planned rate, one of them given."""
    from incrowd.theory import sampling

    if epsilon is None:
        least = sampling.sample_epsilon(counts, rate, delta or 0.0, rows_unknown)
        if least.epsilon == 0.0:
            raise UnreachableError(
                f"At rate {as_given(rate)} nothing is sampled, but for a probability of {number(least.delta, 3)}.",
                code="unreachable",
                remedy="Plan a higher rate, or accept a smaller delta.",
            )
        return least.epsilon, delta or 0.0, least.exact
    reached = sampling.sample_delta(counts, rate, epsilon, rows_unknown)
    if reached.delta >= 1.0:
        raise UnreachableError(
            f"At rate {as_given(rate)} practically no sample keeps epsilon = {as_given(epsilon)}.",
            code="unreachable",
            remedy="Lower the rate, or accept a larger epsilon.",
        )
    return epsilon, reached.delta, reached.exact


def draw_sample(plan: SamplePlan) -> str:
    rates, deltas = zip(*plan.curve, strict=True) if plan.curve else ((plan.rate,), (plan.delta,))
    marks = [Mark(plan.rate, plan.delta, f"p = {number(plan.rate, 3)}")]
    if plan.theorem is not None:
        marks.append(Mark(plan.theorem.rate, plan.delta, f"the paper's theorem: {number(plan.theorem.rate, 2)}"))
    return line_chart(
        f"INTERNAL: a plain sample of a table with {plan.distinct:,} distinct rows",
        Axis("sampling rate", log=True),
        Axis("δ, the probability of a telling sample", log=True, low=plan.delta / 100, high=1.0),
        [Line("exact", rates, deltas)],
        marks,
    )


def planned_sample(
    counts: ArrayLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rate: float | None = None,
    planned_rate: float | None = None,
    rows_unknown: int | None = None,
    curve_points: int = 40,
) -> Planned:
    """What `plan_sample` finds, for people. A planned rate beside ε and δ is held against the largest."""
    plan = plan_sample(
        counts,
        epsilon=epsilon,
        delta=delta,
        rate=rate,
        rows_unknown=1 if rows_unknown is None else rows_unknown,
        curve_points=curve_points,
    )
    payload = asdict(plan) | {"relation": plan.relation, "internal": INTERNAL}
    rows = "one row" if plan.rows_unknown == 1 else f"any {number(plan.rows_unknown)} rows"
    lines = [
        (
            f"then, but for a probability of δ = {number_up(plan.delta)}, changing {rows} changes the sample's "
            f"likelihood at most {number_up(1 + plan.epsilon)}-fold"
        )
    ]
    if not plan.exact and rate is None:
        lines.append(f"the largest rate lies between this and {number_up(plan.rate_at_most)}")
    if plan.theorem is None:
        lines.append("by the paper's theorem: no rate")
    else:
        lines.append(
            f"by the paper's theorem: {number_down(plan.theorem.rate, 3)}, with {number(plan.theorem.rare)} rare rows"
        )
    lines.append(
        f"of {number(plan.distinct)} distinct rows {number(plan.classes.rare)} are rare, "
        f"{number(plan.classes.infrequent)} infrequent, {number(plan.classes.common)} common"
    )
    lines.append("a statement about this table alone, for replacing rows; weaker than differential privacy")
    if planned_rate is not None:
        kept = planned_rate <= plan.rate
        payload["planned"] = {"rate": planned_rate, "kept": kept}
        verdict = "keeps the promise" if kept else "does not keep it: the release will be refused"
        lines.append(f"the planned rate, {number(planned_rate)}, {verdict}")
    return Planned(
        plan,
        payload,
        f"Sample each row with probability {number_down(plan.rate)}",
        tuple(lines),
        draw=lambda: draw_sample(plan),
        section={"mechanism": "sample", "epsilon": plan.epsilon, "delta": plan.delta},
        internal=INTERNAL,
    )
