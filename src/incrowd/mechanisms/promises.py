"""Releases and budgets as the ledger keeps them: frozen values that say what happened.

A promise is kept in a form from which its privacy profile can be computed again (`parts`). None of these values holds
anything read off the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

from incrowd.core.errors import BudgetError, ParameterError
from incrowd.core.numbers import as_given
from incrowd.theory._numbers import require_between, require_count
from incrowd.theory.concentrated import ChosenCrowd
from incrowd.theory.crowd import CrowdProfile, require_rows
from incrowd.theory.profile import ApproximateDP, PrivacyProfile, Relation, compose, to_replace_one
from incrowd.theory.zcdp import BoundedRange, GaussianCounts, ZeroConcentrated

NamedT = TypeVar("NamedT", bound=StrEnum)

LARGEST_EPSILON = 100.0
"""No single promise or budget lies above this: e^100 promises nothing."""

MOST_COPIES = 10_000

ONE_SAMPLE_ONE_RELEASE = (
    "Promises about one and the same sample do not add up (Li, Qardaji, Su, sections 2.2 and 2.6). "
    "Draw a fresh sample for each release."
)

Parts = tuple[PrivacyProfile, ...]


@dataclass(frozen=True)
class CrowdPromise:
    """A crowd of k on a sample of rate β; the mapping fixed, or chosen on the full table with ε₁ (add/remove).

    `delta` is the one that the release states, at which sums count it; ledgers of earlier versions did not keep it.
    Neighbours differ by a person, who has `rows_per_person` rows at most.
    """

    k: int
    beta: float
    selection_epsilon: float = 0.0
    delta: float | None = None
    rows_per_person: int = 1
    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(
            self,
            k=require_count("k", self.k),
            beta=require_between("beta", self.beta, 0.0, 1.0),
            selection_epsilon=_epsilon("selection_epsilon", self.selection_epsilon),
            delta=None if self.delta is None else require_between("delta", self.delta, 0.0, 1.0),
            rows_per_person=require_rows(self.rows_per_person),
        )

    def parts(self, relation: Relation) -> Parts:
        """The profiles that compose to this promise."""
        crowd = CrowdProfile(self.k, self.beta, rows=self.rows_per_person)
        replacing = relation is Relation.REPLACE_ONE
        sampled: Parts = (ChangedCell(crowd, loses=True), ChangedCell(crowd, loses=False)) if replacing else (crowd,)
        return sampled + Point(self.selection_epsilon, 0.0, Relation.ADD_REMOVE).parts(relation)


@dataclass(frozen=True)
class Point:
    """(ε,δ)-differential privacy of which nothing more is known."""

    epsilon: float
    delta: float
    relation: Relation

    def __post_init__(self) -> None:
        _set(
            self,
            epsilon=_epsilon("epsilon", self.epsilon),
            delta=require_between("delta", self.delta, 0.0, 1.0, open_low=False),
            relation=as_relation(self.relation),
        )

    def parts(self, relation: Relation) -> Parts:
        """The profile of this promise; none if it reveals nothing."""
        if self.epsilon == self.delta == 0.0:
            return ()
        profile = ApproximateDP(self.epsilon, self.delta, self.relation)
        return (to_replace_one(profile) if relation is Relation.REPLACE_ONE else profile,)


@dataclass(frozen=True)
class ViewsPromise:
    """Crowds of k, each on a fresh sample of rate β, noisy tables and private choices, all declared together.

    `delta` is the one that the release states. Each choice is `exponent`-DP, with a bounded range. Each of the noisy
    tables is one of disjoint counts, with Laplace noise that is `decay`-DP (add/remove), or with discrete Gaussian
    noise of this variance.
    """

    k: int
    beta: float
    samples: int
    choices: int
    exponent: float
    delta: float
    tables: int = 0
    decay: float = 0.0
    variance: int = 0
    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        if self.decay and self.variance:
            raise ParameterError("noise is Laplace or Gaussian", code="parameter-combination")
        _set(
            self,
            variance=require_count("variance", self.variance, least=0),
            tables=require_count("tables", self.tables, least=0),
            decay=_epsilon("decay", self.decay),
            k=require_count("k", self.k),
            beta=require_between("beta", self.beta, 0.0, 1.0),
            samples=require_count("samples", self.samples),
            choices=require_count("choices", self.choices, least=0),
            exponent=_epsilon("exponent", self.exponent),
            delta=require_between("delta", self.delta, 0.0, 1.0),
        )

    @property
    def whole(self) -> PrivacyProfile:
        """All steps composed."""
        return compose(self.parts(self.relation))

    def parts(self, relation: Relation) -> Parts:
        """The profiles of the steps. Replacing a record moves a choice within twice its range, and two counts."""
        found = CrowdPromise(self.k, self.beta).parts(relation) * self.samples
        twice = 2 if relation is Relation.REPLACE_ONE else 1
        if self.tables and self.decay:
            found += (ApproximateDP(twice * self.decay, 0.0, relation),) * self.tables
        if self.tables and self.variance:  # the counts that a record leaves and joins have noise of their own
            found += (GaussianCounts(self.variance, relation),) * (twice * self.tables)
        if self.choices and self.exponent:
            found += (BoundedRange(twice * Fraction(self.exponent), relation),) * self.choices
        return found


@dataclass(frozen=True)
class ConcentratedPromise:
    """ρ-zCDP, such as of noisy counts and choices, followed by a crowd of k on a sample of rate β where there is one.

    `delta` is the one that the release states (add/remove a person with so many rows).
    """

    rho: float
    delta: float
    k: int | None = None
    beta: float | None = None
    rows_per_person: int = 1
    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        _set(
            self,
            rho=require_between("rho", self.rho, 0.0, LARGEST_EPSILON),
            delta=require_between("delta", self.delta, 0.0, 1.0),
            k=None if self.k is None else require_count("k", self.k),
            beta=None if self.beta is None else require_between("beta", self.beta, 0.0, 1.0),
            rows_per_person=require_rows(self.rows_per_person),
        )

    @property
    def whole(self) -> PrivacyProfile:
        """Choice and crowd joined, which is sharper than their profiles composed."""
        if self.k is None or self.beta is None:
            return ZeroConcentrated(Fraction(self.rho))
        return ChosenCrowd(self.k, self.beta, self.rho, rows=self.rows_per_person)

    def parts(self, relation: Relation) -> Parts:
        """The profiles of the steps. Replacing a record is two steps, for which ρ grows by 2² (Bun, Steinke)."""
        rho = Fraction(self.rho) * (4 if relation is Relation.REPLACE_ONE else 1)
        noisy: Parts = (ZeroConcentrated(rho, relation),)
        if self.k is None or self.beta is None:
            return noisy
        return noisy + CrowdPromise(self.k, self.beta, rows_per_person=self.rows_per_person).parts(relation)


@dataclass(frozen=True)
class Uncomposable:
    """A promise that says nothing about several releases together: a belief ratio, a plain sample, ...

    It is recorded and listed, and never added up.
    """

    notion: str
    relation: ClassVar[None] = None

    def __post_init__(self) -> None:
        require_text("notion", self.notion)

    def parts(self, relation: Relation) -> Parts:  # noqa: ARG002
        """Nothing that could be added."""
        return ()


Promise = CrowdPromise | Point | ViewsPromise | ConcentratedPromise | Uncomposable
_KINDS: dict[str, type[Promise]] = {
    "sampled-crowd": CrowdPromise,
    "point": Point,
    "views": ViewsPromise,
    "concentrated": ConcentratedPromise,
    "does-not-compose": Uncomposable,
}


_UNSAID = {("rows_per_person", 1), ("tables", 0), ("decay", 0.0), ("variance", 0)}


def promise_to_dict(promise: Promise) -> dict[str, Any]:
    """A promise for JSON. What came later is said where there is something only: old entries stay as they are."""
    said = {name: value for name, value in asdict(promise).items() if (name, value) not in _UNSAID}
    return {"kind": next(name for name, cls in _KINDS.items() if isinstance(promise, cls)), **said}


def parameters_of(promise: Promise) -> str:
    """The parameters of a promise as a budget's unit is written: k = 17, beta = 0.3."""
    said = {name: value for name, value in promise_to_dict(promise).items() if name != "kind" and value}
    return ", ".join(
        f"{name} = {as_given(value) if isinstance(value, int | float) else value}" for name, value in said.items()
    )


def promise_from_dict(value: Mapping[str, Any]) -> Promise:
    """The promise that `promise_to_dict` was called on."""
    given = dict(value)
    return _KINDS[given.pop("kind")](**given)


@dataclass(frozen=True)
class ChangedCell(PrivacyProfile):
    """What changes when a person in a sampled crowd is replaced: rows are removed from some cells, added to others.

    Their composition covers the replacement, and costs less than converting the crowd's profile would (docs/proofs.md,
    "Replacing a record of a sampled crowd").
    """

    crowd: CrowdProfile
    loses: bool
    relation: Relation = field(default=Relation.REPLACE_ONE, init=False)

    def removal(self, epsilon: float) -> float:
        """δ when the table before the replacement is the true one."""
        return self.crowd.removal(epsilon) if self.loses else self.crowd.addition(epsilon)

    def addition(self, epsilon: float) -> float:
        """δ when the table after the replacement is the true one."""
        return self.crowd.addition(epsilon) if self.loses else self.crowd.removal(epsilon)


@dataclass(frozen=True)
class Entry:
    """A release, as the ledger keeps it. It holds no value from the data.

    Attributes:
        mechanism: what made the release.
        promise: what it promises, in a form from which its profile can be computed again.
        description: for people.
        policy_digest: the policy it followed, if any.
        sample_id: names the sample it was made from, if that was not drawn afresh and thrown away.
        already_a_sample: the table itself is taken to be the sample ("implicit sampling").
        copies: how many independent releases of this kind are made at once.
        cost: what it was charged with, fixed at the charge: the rule, the relation, and the numbers of that rule.
    """

    mechanism: str
    promise: Promise
    description: str = ""
    policy_digest: str = ""
    sample_id: str | None = None
    already_a_sample: bool = False
    copies: int = 1
    cost: Mapping[str, Any] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        require_text("mechanism", self.mechanism)
        if self.sample_id is not None:
            require_text("sample_id", self.sample_id)
        _set(self, copies=require_copies(self.copies))
        if self.copies > 1 and (self.already_a_sample or self.sample_id is not None):
            raise BudgetError(
                f"{self.copies} releases would be made from one and the same sample.",
                code="sample-reused",
                remedy=ONE_SAMPLE_ONE_RELEASE,
            )
        if self.already_a_sample and isinstance(self.promise, CrowdPromise) and self.promise.selection_epsilon:
            raise ParameterError(
                "A table that is itself the sample leaves no full table on which the mapping could be chosen.",
                code="parameter-combination",
                remedy="Use fixed levels.",
            )

    @property
    def relation(self) -> Relation | None:
        """The neighbours that the promise is about; None if it does not compose."""
        return self.promise.relation

    @property
    def composes(self) -> bool:
        """Whether the promise can be added to others."""
        return self.relation is not None

    def to_dict(self) -> dict[str, Any]:
        """A value for JSON, from which `from_dict` makes the entry again."""
        return {**asdict(self), "promise": promise_to_dict(self.promise)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Entry:
        """The entry that `to_dict` was called on."""
        return cls(**{**value, "promise": promise_from_dict(value["promise"])})


class Rule(StrEnum):
    """How releases are counted against a budget, each of which may be chosen in view of the earlier ones.

    `releases/rules.py` says what each does, `docs/proofs.md` why it holds.
    """

    SUM = "sum"
    ORDER = "order"
    UNIT = "unit"


@dataclass(frozen=True)
class Budget:
    """The most that may be spent on a dataset: all its releases together must be (ε,δ)-DP.

    Attributes:
        rule: how releases are counted. It is fixed with the first release.
        unit: what releases are measured in, for the rule `unit`.
        terms: the numbers that the rule derives from the rest, kept as they were when the budget was set.
    """

    epsilon: float
    delta: float
    relation: Relation
    rule: Rule = Rule.SUM
    unit: CrowdPromise | Point | None = None
    terms: Mapping[str, float] = field(default_factory=dict, compare=False, hash=False)

    def __post_init__(self) -> None:
        _set(
            self,
            epsilon=_epsilon("The epsilon of a ledger's budget", self.epsilon),
            delta=require_between("The delta of a ledger's budget", self.delta, 0.0, 1.0, open_low=False),
            relation=as_relation(self.relation),
            rule=as_rule(self.rule),
        )
        if (self.unit is None) != (self.rule is not Rule.UNIT):
            raise ParameterError(
                "The rule 'unit' needs a unit, and no other rule has one.",
                code="parameter-combination",
                remedy="Name the release that is to be the unit: k=17,beta=0.3, or epsilon=0.1,delta=0.",
            )

    def __str__(self) -> str:
        rule = "" if self.rule is Rule.SUM else f", rule {self.rule}"
        return f"epsilon = {as_given(self.epsilon)} at delta = {as_given(self.delta)} ({self.relation}{rule})"

    def to_dict(self) -> dict[str, Any]:
        """A value for JSON, from which `from_dict` makes the budget again."""
        return {**asdict(self), "unit": None if self.unit is None else promise_to_dict(self.unit)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Budget:
        """The budget that `to_dict` was called on; one of an earlier version, which knew no rules, is a sum."""
        unit = value.get("unit")
        found = None if unit is None else promise_from_dict(unit)
        if not isinstance(found, CrowdPromise | Point | None):
            raise ParameterError("A unit is a crowd or a point.", code="parameter-range")
        return cls(**{**value, "unit": found})


# --- small checks -----------------------------------------------------------------------------------------------


def require_text(name: str, value: str, longest: int = 200) -> str:
    """One line of text that says something."""
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be text.", code="parameter-type", details={"parameter": name})
    if not value.strip() or len(value) > longest or not value.isprintable():
        raise ParameterError(
            f"{name} must be one line of 1 to {longest} characters.",
            code="parameter-range",
            details={"parameter": name},
        )
    return value


def require_copies(copies: int) -> int:
    """As many releases as may be made at once."""
    copies = require_count("copies", copies)
    if copies > MOST_COPIES:
        raise ParameterError(
            f"copies must be {MOST_COPIES} or less; it is {copies}.",
            code="parameter-range",
            remedy="Make fewer releases at once.",
            details={"parameter": "copies"},
        )
    return copies


def _epsilon(name: str, value: float) -> float:
    return require_between(name, value, 0.0, LARGEST_EPSILON, open_low=False, open_high=False)


def as_relation(value: Relation | str) -> Relation:
    """The relation, also from its name."""
    return _named(Relation, "relation", value)


def as_rule(value: Rule | str) -> Rule:
    """The rule, also from its name."""
    return _named(Rule, "rule", value)


def _named(kind: type[NamedT], parameter: str, value: str) -> NamedT:
    try:
        return kind(value)
    except ValueError:
        raise ParameterError(
            f"{parameter} must be one of {', '.join(kind)}.", code="parameter-range", details={"parameter": parameter}
        ) from None


def as_unit(text: str, relation: Relation | str) -> CrowdPromise | Point:
    """A unit as it is written: k=17,beta=0.3 (also selection_epsilon, rows_per_person), or epsilon=0.1,delta=0."""
    try:
        given = {name.strip(): float(number) for name, _, number in (part.partition("=") for part in text.split(","))}
        if "k" in given:
            return CrowdPromise(**given)  # type: ignore[arg-type]
        return Point(**given, relation=as_relation(relation))
    except (TypeError, ValueError):
        raise ParameterError(
            "A unit is written k=17,beta=0.3 (also selection_epsilon=0.1, rows_per_person=3), or epsilon=0.1,delta=0.",
            code="parameter-range",
            details={"parameter": "unit"},
        ) from None


def _set(value: Any, **fields: Any) -> None:
    """Fields of a frozen value in their plain form, while it is being made."""
    for name, plain in fields.items():
        object.__setattr__(value, name, plain)
