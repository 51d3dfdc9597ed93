"""What a sampled crowd promises, found from the policy alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from incrowd.core.errors import GuaranteeError, InternalError, ParameterError, UnreachableError
from incrowd.core.numbers import as_given, count, number
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.marginals import Counted
from incrowd.mechanisms import promises
from incrowd.mechanisms.already_sampled import require_one_use
from incrowd.mechanisms.base import Concern, Tell, fixed_levels
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.sampled_crowd.section import Minimised, SampledCrowd
from incrowd.policy import Policy
from incrowd.recoding.quality import Apart, Asked, Classified, CrowdCount, Detail, Quality, reach_of
from incrowd.sources.at_least import CrowdsAsked
from incrowd.theory import crowd
from incrowd.theory._groups import float_above
from incrowd.theory.views import LaplaceStep

SMALLEST_BETA = 2.0**-64
_FEWEST_OF = 20  # one of so many sampled records, at least, should be in a crowd that is published
_WIDEST_NOISE = 1 << 40  # records: of noise beyond, sums of counts would not fit 64 bits
_FORETOLD = 1 << 17  # cells; to recode many more would take long beside the release itself


@dataclass(frozen=True)
class LevelChoice:
    """What the private choice of levels looks for, as the policy says.

    Attributes:
        minimise: what it keeps low.
        importance: of columns, if the policy gives it; the others have 1.
        workload: sets of columns that will be tabulated.
        target: the column that the others are to predict.
    """

    minimise: Minimised = "loss"
    importance: Mapping[str, float] = field(default_factory=dict)
    workload: tuple[tuple[str, ...], ...] = ()
    target: str | None = None

    @classmethod
    def of(cls, release: SampledCrowd) -> LevelChoice:
        """That of a policy."""
        return cls(release.minimise, release.importance, release.workload, release.target)

    @property
    def needs_tables(self) -> bool:
        """Whether it needs one-way tables, to be paid for."""
        return self.minimise == "entropy" or (self.minimise == "loss" and not self.importance)


def parts_of_one(counted: Mapping[str, float]) -> dict[str, float]:
    """What each column counts, in parts of the whole, rounded down to what the certificate says."""
    whole = math.fsum(counted.values())
    return {name: math.floor(one / whole * 10_000) / 10_000 for name, one in counted.items()}


@dataclass(frozen=True)
class CrowdSettings:
    """Everything that decides what is promised: found from the policy alone, without looking at any data."""

    epsilon: float
    delta: float
    selection_epsilon: float
    k: int
    beta: float
    already_sampled: bool
    persons: Persons = field(default_factory=Persons)
    totals_epsilon: float = 0.0
    choice: LevelChoice = field(default_factory=LevelChoice)
    policy_epsilon: float = 0.0

    @property
    def tables_epsilon(self) -> float:
        """The part of ε₁ that pays for one-way tables, from which columns get their weights."""
        return self.selection_epsilon / 8 if self.choice.needs_tables else 0.0

    def tables_scale(self, columns: int) -> int:
        """t, that of the noise in these tables: a person changes the counts of each column by m rows at most."""
        return math.ceil(Fraction(columns * self.persons.at_most) / Fraction(self.tables_epsilon))

    @property
    def choice_epsilon(self) -> float:
        """The rest of it, which pays for the choice itself; rounded down."""
        return crowd.left_after(self.selection_epsilon, self.tables_epsilon)

    def quality(self, names: Sequence[str]) -> Quality:
        """What the choice looks for in a table of these columns."""
        choice, (k, beta) = self.choice, (self.k, self.beta)
        if choice.minimise == "class_size":
            return CrowdCount(k, beta)
        if choice.minimise == "discernibility":
            return Apart(k, beta)
        if choice.minimise == "workload":
            return Asked(k, beta, [[names.index(name) for name in one] for one in choice.workload])
        if choice.minimise == "misclassified" and choice.target is not None:
            return Classified(k, beta, names.index(choice.target))
        return Detail(k, beta)

    @property
    def crowd_epsilon(self) -> float:
        """ε₂: what is left for the crowd after the choices and the one-way tables, rounded down."""
        return left_for_crowd(self.epsilon, (self.policy_epsilon, self.selection_epsilon, self.totals_epsilon))

    @property
    def charged_epsilon(self) -> float:
        """What the release spends on its choice and its one-way tables, rounded up."""
        return float_above(Fraction(self.selection_epsilon) + Fraction(self.totals_epsilon))

    @property
    def beside_epsilon(self) -> float:
        """The same with what the choice of the policy has cost before."""
        return float_above(
            Fraction(self.policy_epsilon) + Fraction(self.selection_epsilon) + Fraction(self.totals_epsilon)
        )

    def totals_noise(self, columns: int) -> LaplaceStep:
        """The noise in the counts of so many one-way tables: a person changes each of them by m rows at most."""
        shares = columns * self.persons.at_most
        decay = self.totals_epsilon / shares
        while Fraction(decay) * shares > Fraction(self.totals_epsilon):
            decay = math.nextafter(decay, 0.0)
        return LaplaceStep(decay)

    @cached_property
    def delta_at(self) -> Callable[[float], float]:
        """The δ of the crowd at any ε. A release asks for some of them several times, so they are kept."""
        return cache(crowd.CrowdProfile(self.k, self.beta, rows=self.persons.at_most).delta)

    @property
    def exact_delta(self) -> float:
        """The δ that these settings really have; at most the one promised."""
        return self.delta_at(self.crowd_epsilon)

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        return self.exact_delta <= self.delta


def left_for_crowd(epsilon: float, beside: Sequence[float]) -> float:
    """What is left of ε when these parts are spent, rounded down."""
    for part in beside:
        epsilon = crowd.left_after(epsilon, part)
    return epsilon


def solve(release: SampledCrowd, persons: Persons | None = None) -> CrowdSettings:
    """Fill in what the policy leaves open: k, β or both.

    With neither given, `crowd.choose_rate` takes them; if the policy names a crowd of interest, the rate among
    0.01, 0.02, ... 0.99 that publishes most of a crowd of that size, at the smallest k that keeps the promise. Both
    look at the policy only, so they cost nothing.

    Raises:
        GuaranteeError: k and β are given and do not keep the promise.
        UnreachableError: no k or β does.
    """
    if release.epsilon > promises.LARGEST_EPSILON or (release.beta is not None and release.beta < SMALLEST_BETA):
        raise ParameterError(
            f"epsilon must be {as_given(promises.LARGEST_EPSILON)} at most (beyond, nothing is promised), and beta "
            "2**-64 at least.",
            code="parameter-range",
        )
    policy, spent, totals = release.beside
    left = left_for_crowd(release.epsilon, release.beside)
    k, beta, persons = release.k, release.beta, persons or Persons()
    rows = crowd.require_rows(persons.at_most)
    if k is None and beta is None and release.crowd_of_interest is not None:
        k, beta = _best_for(release.crowd_of_interest, left, release.delta, rows)
    elif k is None and beta is None:
        k, beta = crowd.choose_crowd(left, release.delta, rows)
    elif k is None and beta is not None:
        k = crowd.smallest_k(left, release.delta, beta, rows)
    elif beta is None and k is not None:
        beta = crowd.largest_beta(left, release.delta, k, rows)
    if k is None or beta is None:
        raise InternalError("a release was left without k or beta")
    settings = CrowdSettings(release.epsilon, release.delta, spent, k, beta, release.already_sampled, persons, totals)
    settings = replace(settings, choice=LevelChoice.of(release), policy_epsilon=policy)
    if not settings.kept:
        needed = crowd.smallest_k(left, release.delta, beta, rows)
        raise GuaranteeError(
            f"k = {k} and beta = {as_given(beta)} give delta = {number(settings.exact_delta, 3)} at epsilon = "
            f"{as_given(release.epsilon)}, "
            f"more than the {as_given(release.delta)} promised.",
            code="promise-not-kept",
            remedy=f"At this beta the promise needs k = {needed}; or leave k out and it will be found.",
            details={"delta": settings.exact_delta, "k_needed": needed},
        )
    return settings


def _best_for(size: int, epsilon: float, delta: float, rows: int) -> tuple[int, float]:
    best: tuple[float, int, float] | None = None
    for beta in crowd.RATES:
        try:
            k = crowd.least_k(epsilon, delta, beta, rows)
        except UnreachableError:
            continue
        kept = crowd.survival(size, k, beta)
        if best is None or kept > best[0]:
            best = (kept, k, beta)
    if best is None or best[0] == 0.0:
        raise UnreachableError(
            f"With this epsilon and delta no crowd of {size} would ever be published.",
            code="unreachable",
            remedy="Raise epsilon, delta or crowd_of_interest.",
        )
    return crowd.smallest_k(epsilon, delta, best[2], rows), best[2]


@dataclass(frozen=True, eq=False)
class CrowdSettled:
    """The settings, and the columns with the levels that nobody has to choose."""

    crowd: CrowdSettings
    attributes: Sequence[CodedAttribute]
    fixed: Mapping[str, int]

    @property
    def chosen(self) -> list[str]:
        """The columns whose levels are chosen privately."""
        return [a.name for a in self.attributes if a.name not in self.fixed]


def settle(release: SampledCrowd, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> CrowdSettled:
    """The promise, found from the policy alone."""
    if release.already_sampled:
        require_one_use(policy, copies)
    fixed = fixed_levels(policy, attributes)
    if release.target is not None:
        fixed = {release.target: 0, **fixed}
    if not release.selection_epsilon:
        fixed = {a.name: 0 for a in attributes} | fixed
    settled = CrowdSettled(solve(release, Persons.in_policy(policy)), attributes, fixed)
    if settled.chosen and settled.crowd.tables_epsilon and settled.crowd.tables_scale(len(attributes)) > _WIDEST_NOISE:
        raise ParameterError(
            "selection_epsilon is so small that the counts by which columns are weighed would be noise alone.",
            code="parameter-range",
            remedy="Raise it; a tenth of epsilon is usual.",
        )
    if settled.chosen:
        reach_of(settled.crowd.k, settled.crowd.beta)  # what cannot be chosen privately is refused before all else
    return settled


def prepare(settings: CrowdSettled, table: Histogram, tell: Tell) -> tuple[CrowdSettled, Histogram]:  # noqa: ARG001
    """Nothing is left to be settled."""
    require_choosable(settings, table.total)
    return settings, table


def require_choosable(settings: CrowdSettled, records: int) -> None:
    """Refuse a table that is too large for a private choice, before the budget is charged."""
    if settings.chosen:
        settings.crowd.quality([a.name for a in settings.attributes]).require_scorable(records)


def crowds_asked(settings: CrowdSettled) -> CrowdsAsked:
    """The cells of k records or more, at the levels that the policy fixes, if nothing is left to be chosen."""
    fixed = settings.fixed
    recodes = {a.name: a.hierarchy.recode(fixed[a.name]) for a in settings.attributes if a.name in fixed}
    return CrowdsAsked(recodes, None if settings.chosen else settings.crowd.k)


def spending(settings: CrowdSettled) -> promises.CrowdPromise:
    """One sampled crowd, with what the choice of levels and the one-way tables cost; that of the policy was charged."""
    crowd = settings.crowd
    return promises.CrowdPromise(
        crowd.k, crowd.beta, crowd.charged_epsilon, crowd.delta, rows_per_person=crowd.persons.at_most
    )


def concerns(settings: CrowdSettled, table: Counted) -> Iterator[Concern]:
    """Fixed levels at which hardly any group is large enough to be published."""
    as_it_is = not any(settings.fixed.values())
    if settings.chosen or not isinstance(table, Histogram) or (len(table) > _FORETOLD and not as_it_is):
        return
    k, beta = settings.crowd.k, settings.crowd.beta
    recodes = {a.name: a.hierarchy.recode(level) for a in settings.attributes if (level := settings.fixed[a.name])}
    coarse = table.recode(recodes)
    sizes, often = np.unique(coarse.counts[coarse.counts >= k], return_counts=True)
    expected, sampled = 0.0, table.total if settings.crowd.already_sampled else beta * table.total
    for size, cells in zip(sizes[::-1].tolist(), often[::-1].tolist(), strict=True):
        expected += size * cells * (1.0 if settings.crowd.already_sampled else crowd.survival(size, k, beta))
        if expected * _FEWEST_OF >= sampled:  # the largest are looked at first, and mostly enough
            break
    if expected * _FEWEST_OF < sampled:
        about = "none" if expected < 1 else f"about {count(round(expected), 'record', 'records')}"
        yield Concern(
            "few-people",
            None,
            f"Of about {count(round(sampled), 'record', 'records')} in the sample {about} would be published: groups "
            f"of fewer than k = {k} are not. Show columns more coarsely, leave some out, or set selection_epsilon to "
            "have levels chosen; `incrowd advise POLICY` says what would help.",
        )
