"""What a set of views promises, found from the policy alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb, prod

from incrowd.core.errors import PolicyError, UnreachableError
from incrowd.core.numbers import count
from incrowd.domain import Recode
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms import promises
from incrowd.mechanisms.already_sampled import require_one_use
from incrowd.mechanisms.base import Concern, Tell, fixed_levels
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.views.section import Choose, Views
from incrowd.policy import Policy
from incrowd.theory._groups import float_above
from incrowd.theory.profile import ApproximateDP, Relation
from incrowd.theory.views import (
    LARGEST_CROWD,
    LARGEST_DEVIATION,
    CrowdStep,
    LaplaceStep,
    NoiseStep,
    ViewsPlan,
    plan_crowds,
    plan_noise,
    plan_noise_of_sample,
)
from incrowd.theory.zcdp import ZeroConcentrated

SINGLE_SHARE = 0.2
"""Of ρ that is left after the choice, for the one-way tables where all is noise."""

SINGLE_SHARE_OF_CROWDS = 0.11
"""Of ε, for the noise of one-way tables beside crowds; see `plan_crowds`."""

ADAPTIVE_ROUNDS = 2
"""Views that an adaptive choice takes, for each column."""

MOST_CELLS = 1 << 20
"""Of one view: what can be drawn, written and combined at ease."""


@dataclass(frozen=True, eq=False)
class ViewsSettled:
    """The plan, the views that nobody has to choose, and the columns.

    Attributes:
        plan: what the promise depends on.
        by: crowd or noise.
        choice: what is chosen, or None.
        singles: the columns that have a one-way table.
        listed: the views of several columns that the policy lists.
        attributes: the columns.
        base: the level at which each column is counted: 0, or the one that the policy fixes.
        combine: whether a synthetic table is made.
        rows: how many rows it has; None for about as many as people.
        persons: whose the rows of the table are.
    """

    plan: ViewsPlan
    by: str
    choice: Choose | None
    singles: tuple[str, ...]
    listed: tuple[tuple[str, ...], ...]
    attributes: Sequence[CodedAttribute]
    base: Mapping[str, int]
    combine: bool
    rows: int | None
    persons: Persons = field(default_factory=Persons)

    @property
    def names(self) -> list[str]:
        """The columns' names, in the table's order."""
        return [a.name for a in self.attributes]

    def labels(self, name: str) -> tuple[str | None, ...]:
        """All that a column could show in the synthetic table."""
        return self.recode(name).labels

    def recode(self, name: str) -> Recode:
        """From the codes of the table as it was read to those that are counted."""
        return self._attribute(name).hierarchy.recode(self.base[name])

    def levels(self, name: str) -> range:
        """The levels at which a crowd may show a column; the top, where all are alike, only if there is no other."""
        return range(self.base[name], max(self.base[name] + 1, self._attribute(name).hierarchy.height))

    def coarser(self, name: str, level: int) -> Recode:
        """From the codes that are counted to those of a level."""
        return self._attribute(name).hierarchy.coarsen(self.base[name], level)

    def _attribute(self, name: str) -> CodedAttribute:
        return next(a for a in self.attributes if a.name == name)


def rounds_of(choice: Choose, columns: int) -> int:
    """How many views are chosen among so many columns: a tree of pairs, a junction tree of triples, or more.

    An adaptive choice takes two for each column, as long as there are so many.
    """
    if columns < 2:
        return 0
    if choice.how == "tree":
        return max(1, columns - (choice.columns - 1))
    return min(ADAPTIVE_ROUNDS * columns, sum(comb(columns, size) for size in range(2, choice.columns + 1)))


def single_columns(section: Views, names: Sequence[str]) -> list[str]:
    """The columns that have a one-way table: all, but for those of which a listed view with noise tells as much."""
    if section.by == "crowd" or section.views is None:
        return list(names)
    covered = {name for view in section.views if len(view) > 1 for name in view}
    return [name for name in names if name not in covered or (name,) in section.views]


def planned(section: Views, singles: int, views: int, rows: int = 1) -> ViewsPlan:
    """The parameters for so many one-way tables and further views, of people with so many rows at most."""
    choices = views if section.chosen is not None else 0
    if section.by == "crowd":
        return plan_crowds(
            section.epsilon,
            section.delta,
            singles,
            views,
            choices,
            single_share=SINGLE_SHARE_OF_CROWDS,
            choice_share=section.share,
            rows=rows,
        )
    if section.already_sampled:
        return plan_noise_of_sample(
            section.epsilon,
            section.delta,
            section.rate,
            singles,
            views,
            choices,
            single_share=SINGLE_SHARE,
            choice_share=section.share,
        )
    return plan_noise(
        section.epsilon,
        section.delta,
        singles,
        views,
        choices,
        single_share=SINGLE_SHARE,
        choice_share=section.share,
        rows=rows,
    )


def settle(section: Views, policy: Policy, attributes: Sequence[CodedAttribute], copies: int = 1) -> ViewsSettled:
    """The promise, found from the policy alone."""
    if section.already_sampled:
        require_one_use(policy, copies)
    if not attributes:
        raise PolicyError("There is no column to publish.", code="policy-invalid", remedy="Give one the role 'quasi'.")
    base = {a.name: 0 for a in attributes} | fixed_levels(policy, attributes)
    return _settled(section, attributes, base, Persons.in_policy(policy))


def _settled(
    section: Views, attributes: Sequence[CodedAttribute], base: Mapping[str, int], persons: Persons
) -> ViewsSettled:
    names = [a.name for a in attributes]
    listed, singles = section.listed(names), single_columns(section, names)
    choice = section.chosen
    views = len(listed) if choice is None else rounds_of(choice, len(names))
    settled = ViewsSettled(
        _carried(section, len(singles), views, persons.at_most),
        section.by,
        choice if views else None,
        tuple(singles),
        tuple(listed),
        attributes,
        base,
        section.combine == "table",
        section.rows,
        persons,
    )
    for view in listed:
        if prod(len(settled.labels(name)) for name in view) > MOST_CELLS:
            raise PolicyError(
                f"The view of {', '.join(view)} has more than {MOST_CELLS:,} cells.",
                code="views-too-large",
                remedy="List fewer columns, or fix coarser levels for them.",
            )
    return settled


def _carried(section: Views, singles: int, views: int, rows: int) -> ViewsPlan:
    """The plan, refused if its views would say next to nothing."""
    plan = _worthwhile(section, singles, views, rows)
    if plan is not None:
        return plan
    low, high = -1 if singles else 0, views  # low is carried, or not even the one-way tables are
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _worthwhile(section, singles, middle, rows) is not None else (low, middle)
    if low >= 0:
        beside = " beside the one-way tables" if singles else ""
        remedy = f"It carries {low}{beside}; list fewer, or raise epsilon or delta."
    else:
        remedy = "It does not even carry the one-way tables; publish fewer columns, or raise epsilon or delta."
    raise UnreachableError(
        f"The budget does not carry {singles} one-way tables and {views} further views: they would show "
        + (f"crowds of {LARGEST_CROWD:,} and more only." if section.by == "crowd" else "next to nothing but noise."),
        code="views-too-many",
        remedy=remedy,
        details={"views": views, "carried": max(low, 0)},
    )


def _worthwhile(section: Views, singles: int, views: int, rows: int) -> ViewsPlan | None:
    """The plan, if its views would show more than the largest groups."""
    try:
        plan = planned(section, singles, views, rows)
    except UnreachableError:
        return None
    step = plan.view if plan.views else plan.single
    small = step.threshold <= LARGEST_CROWD if isinstance(step, CrowdStep) else step.deviation <= LARGEST_DEVIATION
    return plan if small else None


def prepare(settings: ViewsSettled, table: Histogram, tell: Tell) -> tuple[ViewsSettled, Histogram]:  # noqa: ARG001
    """The full table at the levels at which it is counted."""
    fixed = {name: settings.recode(name) for name, level in settings.base.items() if level}
    return settings, table.recode(fixed)


def spending(settings: ViewsSettled) -> promises.Promise:
    """All views together, with every choice, in a form that keeps their profile."""
    plan, profile = settings.plan, settings.plan.profile
    step = plan.view if plan.views else plan.single
    if plan.rows == 1 and isinstance(step, CrowdStep):
        noisy = not isinstance(plan.single, CrowdStep)
        if noisy or plan.single == step:
            return promises.ViewsPromise(
                step.k,
                step.beta,
                plan.views if noisy else plan.singles + plan.views,
                plan.choices,
                plan.exponent,
                plan.delta,
                plan.singles if noisy else 0,
                plan.single.decay if isinstance(plan.single, LaplaceStep) else 0.0,
                plan.single.variance if isinstance(plan.single, NoiseStep) else 0,
            )
    if isinstance(profile, ZeroConcentrated):
        return promises.ConcentratedPromise(float_above(profile.rho), plan.delta)
    if isinstance(profile, ApproximateDP):
        return promises.Point(profile.at_epsilon, profile.at_delta, Relation.ADD_REMOVE)
    return promises.Point(plan.epsilon, plan.delta, Relation.ADD_REMOVE)


def concerns(settings: ViewsSettled) -> Iterator[Concern]:
    """Listed views that leave columns unconnected, of which the synthetic table is asked nevertheless."""
    apart = components(settings.names, settings.listed)
    if settings.combine and settings.choice is None and len(apart) > 1:
        groups = "; ".join(", ".join(group) for group in apart)
        yield Concern(
            "unconnected",
            None,
            f"The views leave {count(len(apart), 'group', 'groups')} of columns unconnected, and in the synthetic "
            f"table these are independent of each other: {groups}. List views that have columns of two groups, let "
            "views be chosen, or make no such table (combine: none).",
        )


def components(names: Sequence[str], views: Sequence[Sequence[str]]) -> list[list[str]]:
    """The columns in groups that views connect."""
    group = {name: {name} for name in names}
    for view in views:
        joined = set().union(*(group[name] for name in view))
        for name in joined:
            group[name] = joined
    found: list[list[str]] = []
    for name in names:
        if not any(name in one for one in found):
            found.append([other for other in names if other in group[name]])
    return found
