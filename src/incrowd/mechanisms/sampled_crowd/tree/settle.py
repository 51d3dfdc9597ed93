"""What a crowd under a tree promises, found from the policy alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from incrowd.core.errors import GuaranteeError, InputError, InternalError, PolicyError, UnreachableError
from incrowd.core.files import read_ordinary
from incrowd.core.numbers import as_given, number
from incrowd.hierarchy import CodedAttribute
from incrowd.hierarchy.tree import parents
from incrowd.marginals import Counted
from incrowd.mechanisms import promises
from incrowd.mechanisms.already_sampled import require_one_use
from incrowd.mechanisms.base import Concern
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.settle import (
    CrowdSettings,
    solve,
)
from incrowd.policy import Policy
from incrowd.recoding.boxes import ordered_columns
from incrowd.recoding.cuts import Cutting
from incrowd.recoding.growth import Growth
from incrowd.recoding.mapping import Tree, read_tree
from incrowd.theory import concentrated
from incrowd.theory.crowd import RATES, CrowdProfile, require_rows
from incrowd.theory.profile import PrivacyProfile

ONE_WAY_SHARE = Fraction(3, 20)  # of ρ
_WEIGHT = 100  # importance 1
_LOST = {"hierarchy": 25, "binary": 12}
"""A split may lose one of so many records: splits into many children leave many small parts, and lose more in all."""
LARGEST_TABLE = 10**7
_FEWEST_CUTS, _MOST_CUTS = 12, 30
_MOST_SIDE_BY_SIDE = 1 << 14  # groups
_LARGEST_MAPPING = 1 << 28
_VOID_MAPPING = ".void.json"


@dataclass(frozen=True)
class TreeCrowd(CrowdSettings):
    """The settings of a crowd whose mapping was chosen with ρ, which is what a person pays; 0 if it is fixed."""

    rho: float = 0.0

    @cached_property
    def delta_at(self) -> Callable[[float], float]:
        rows = self.persons.at_most
        profile: PrivacyProfile = CrowdProfile(self.k, self.beta, rows=rows)
        if self.rho:
            profile = concentrated.ChosenCrowd(self.k, self.beta, self.rho, rows=rows)
        return cache(profile.delta)

    @property
    def row_rho(self) -> Fraction:
        """What a row may pay on its path: a person with m rows pays m² times as much at most."""
        return Fraction(self.rho) / self.persons.at_most**2


@dataclass(frozen=True, eq=False)
class TreeSettled:
    """The settings, and how the tree is grown.

    Attributes:
        crowd: what is promised.
        release: the policy's section.
        attributes: the columns.
        ordered: those whose values have an order.
        columns: how many columns there are.
        fixed: the mapping, if the policy gives one.
        by_budget: as in `Growth`.
    """

    crowd: TreeCrowd
    release: SampledCrowd
    attributes: Sequence[CodedAttribute]
    ordered: frozenset[str]
    columns: int
    fixed: Tree | None = None
    by_budget: bool = True

    @property
    def chosen(self) -> bool:
        """Whether the tree is chosen privately."""
        return self.release.mapping is None

    @property
    def one_way_variance(self) -> int:
        """σ² of each one-way table: d tables at 1/(2σ²) each."""
        return math.ceil(self.columns / (2 * ONE_WAY_SHARE * self.crowd.row_rho))

    @property
    def budget(self) -> int:
        """What is left of a row's ρ for its path in the tree, in units of 2⁻⁶⁴."""
        whole = math.floor(self.crowd.row_rho * concentrated.UNITS)
        return whole - self.columns * concentrated.counts_charge(self.one_way_variance)

    @property
    def threshold(self) -> int:
        """τ: what a box should hold to be published in most cases."""
        return threshold(self.crowd.k, self.crowd.beta)

    @property
    def flat(self) -> bool:
        """Whether the table is cut as a whole, so that a column has one set of labels."""
        return self.chosen and self.release.flat

    @property
    def cuts(self) -> int:
        """How many cuts are chosen: two for each column make three labels each, on average."""
        return min(max(2 * self.columns, _FEWEST_CUTS), _MOST_CUTS)

    def growth(self, names: Sequence[str]) -> Growth:
        """How the tree over some columns is grown."""
        lost = _LOST[self.release.splits]
        return Growth(self.budget, self.threshold, self.release.score, self._weights(names), lost, self.by_budget)

    def cutting(self, names: Sequence[str]) -> Cutting:
        """How cuts through some columns are chosen."""
        return Cutting(self.budget, self.threshold, self._weights(names), self.cuts)

    def least(self, names: Sequence[str]) -> int | None:
        """About how many records it takes to choose anything; None if no usual table has so many."""
        if not self.flat:
            return self.growth(names).least_split(LARGEST_TABLE)
        least = self.cutting(names).least
        return None if least is None or least > LARGEST_TABLE else least

    def _weights(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(max(1, round(_WEIGHT * self.release.importance.get(name, 1.0))) for name in names)


def threshold(k: int, beta: float) -> int:
    """τ: so many people make a box that is published in most cases."""
    return math.ceil(1.15 * k / beta)


def settle_tree(
    release: SampledCrowd, policy: Policy, attributes: Sequence[CodedAttribute], copies: int
) -> TreeSettled:
    """The promise, found from the policy alone."""
    if release.already_sampled:
        require_one_use(policy, copies)
    fixed = None if release.mapping is None else _mapping(policy, release.mapping.file, attributes)
    crowd, ordered = solve_tree(release, Persons.in_policy(policy)), ordered_columns(policy, attributes)
    settled = TreeSettled(crowd, release, attributes, ordered, len(attributes), fixed)
    if fixed is None:
        _require_few_side_by_side(settled)
        _require_splits(settled)
    return settled


def solve_tree(release: SampledCrowd, persons: Persons) -> TreeCrowd:
    """k, β and ρ, as far as the policy leaves them open."""
    epsilon, delta = release.epsilon, release.delta
    if release.mapping is not None:
        plain = solve(release, persons)
        return TreeCrowd(epsilon, delta, 0.0, plain.k, plain.beta, release.already_sampled, persons)
    if epsilon > promises.LARGEST_EPSILON:
        raise UnreachableError(
            f"epsilon must be {as_given(promises.LARGEST_EPSILON)} at most: beyond, nothing is promised.",
            code="unreachable",
        )
    rho = release.choice_rho or concentrated.usual_rho(epsilon, delta)
    k, beta, rows = release.k, release.beta, require_rows(persons.at_most)
    if k is None and beta is None:
        k, beta = concentrated.usual_crowd(epsilon, delta, rho, rows)
    elif k is None and beta is not None:
        k = concentrated.smallest_k(epsilon, delta, beta, rho, rows)
    elif beta is None and k is not None:
        beta = _largest_rate(epsilon, delta, k, rho, rows)
    if k is None or beta is None:
        raise InternalError("a release was left without k or beta")
    settings = TreeCrowd(epsilon, delta, 0.0, k, beta, already_sampled=False, persons=persons, rho=rho)
    if not settings.kept:
        raise GuaranteeError(
            f"k = {k} and beta = {as_given(beta)} beside a choice with rho = {as_given(rho)} give delta = "
            f"{number(settings.exact_delta, 3)} "
            f"at epsilon = {as_given(epsilon)}, more than the {as_given(delta)} promised.",
            code="promise-not-kept",
            remedy="Leave k out and it will be found, or lower choice_rho.",
            details={"delta": settings.exact_delta},
        )
    return settings


def _largest_rate(epsilon: float, delta: float, k: int, rho: float, rows: int) -> float:
    low, high = 0, len(RATES)
    while high - low > 1:
        middle = (low + high) // 2
        kept = concentrated.ChosenCrowd(k, RATES[middle], rho, rows=rows).delta(epsilon) <= delta
        low, high = (middle, high) if kept else (low, middle)
    return RATES[low]  # if that is too much, the caller says so


def concerns(settled: TreeSettled, table: Counted) -> Iterator[Concern]:
    """A table that is too small to be split: it is looked at, so this is for the publisher alone."""
    if not settled.chosen:
        return
    least = settled.least([a.name for a in settled.attributes])
    if least is None or table.total < least:
        few = "more than there ever are" if least is None else f"about {least:,}"
        yield Concern(
            "one-box",
            None,
            f"With this promise a tree needs {few} records for its first split; here, all will stay in one box, and "
            "every column will be hidden. Raise epsilon, delta or choice_rho, or name the 'mapping' of an earlier "
            "release; `incrowd plan crowd --tree` says how many records a split takes.",
        )


def _require_few_side_by_side(settled: TreeSettled) -> None:
    """Refuse columns whose sets would be unions of so many groups that neither names nor mapping could be read, and in
    a flat tree those of which either nothing is shown or as many groups in every record."""
    release = settled.release
    binary = release.splits == "binary"
    for attribute in settled.attributes if binary or release.flat else ():
        steps = list(pairwise(attribute.hierarchy.levels))[0 if binary else -1 :]  # what is wide further down may stay
        widest = max(int(np.bincount(parents(low.to, high.to)).max()) for low, high in steps)
        if widest > _MOST_SIDE_BY_SIDE and not (binary and attribute.name in settled.ordered):
            becomes = "make unions of them" if binary else "take them apart in every record"
            instead = "" if release.flat else "choose 'splits: hierarchy', "
            raise PolicyError(
                f"Attribute {attribute.name}: {widest:,} of its values or groups stand side by side, and a tree with "
                f"'splits: {release.splits}' would {becomes}; {_MOST_SIDE_BY_SIDE:,} may.",
                code="policy-invalid",
                remedy=f"Give it a hierarchy that joins them in steps, {instead}or drop it.",
            )


def _require_splits(settled: TreeSettled) -> None:
    """Refuse a share with which no table of a usual size would be split at all: that is known without the table."""
    if settled.budget <= 0 or settled.least([a.name for a in settled.attributes]) is None:
        raise UnreachableError(
            f"With rho = {as_given(settled.crowd.rho)} for the choice, all records would stay in one box, "
            "unless there are "
            f"more than {LARGEST_TABLE:,}.",
            code="unreachable",
            remedy="Raise epsilon, delta or choice_rho.",
        )


def _mapping(policy: Policy, name: str, attributes: Sequence[CodedAttribute]) -> Tree:
    path = policy.resolve(name)
    if path.name.endswith(_VOID_MAPPING):
        raise PolicyError(
            f"{name} was chosen in a rehearsal, which no ledger was charged for: it tells of the table, unpaid.",
            code="policy-invalid",
            remedy="Name the mapping.json of a release, or leave 'mapping' out and have a tree chosen.",
        )
    try:
        content = read_ordinary(path, _LARGEST_MAPPING)
        tree = read_tree(content)
    except OSError as error:
        raise InputError(
            f"The mapping {name} cannot be read: {error.strerror or type(error).__name__}.", code="policy-file"
        ) from None
    except (ValueError, KeyError, TypeError, LookupError, RecursionError, AttributeError):
        raise PolicyError(
            f"{name} is not a mapping of boxes that are disjoint and cover everything.",
            code="policy-invalid",
            remedy="Name the mapping.json of an earlier release.",
        ) from None
    if [(c.name, c.base) for c in tree.columns] != [(a.name, a.coding.base_labels) for a in attributes]:
        raise PolicyError(
            f"{name} is a mapping for other columns, or for other values of them.",
            code="policy-invalid",
            remedy="Columns, their order and their domains must be those of the release that it comes from.",
        )
    return tree.without_sizes()


def spending(settled: TreeSettled) -> promises.CrowdPromise | promises.ConcentratedPromise:
    """With a fixed mapping a plain crowd; otherwise one after a ρ-zCDP choice."""
    crowd = settled.crowd
    if not crowd.rho:
        return promises.CrowdPromise(crowd.k, crowd.beta, 0.0, crowd.delta, crowd.persons.at_most)
    return promises.ConcentratedPromise(crowd.rho, crowd.delta, crowd.k, crowd.beta, crowd.persons.at_most)
