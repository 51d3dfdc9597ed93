"""A sampled crowd as a release: what it promises, how that is checked, and what can be estimated from it.

A cell of n people shows X·1(X ≥ k) records, X ~ Bin(n, β). A published count x therefore stands for about x/β people,
the value of n under which it is likeliest. Its standard error is the standard deviation of X·1(X ≥ k)/β at that n: far
above the threshold it is the binomial √(x(1−β))/β; near it the chance of not being published at all is part of it.

Cells that were not published may be empty or merely too small. Estimates speak of the published cells; how many were
not published, and how large they could be, stands beside them.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InternalError, PolicyError
from incrowd.guarantees._groups import float_above
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms import sampled_crowd
from incrowd.mechanisms.sampled_crowd import CrowdSettings
from incrowd.policy import Attribute, Policy
from incrowd.policy import SampledCrowd as Section
from incrowd.randomness import RandomSource
from incrowd.recoding.choice import reach_of, require_scorable
from incrowd.releases.declared import are_levels, check_labels, held_columns
from incrowd.releases.entries import SampledCrowd
from incrowd.releases.kinds import (
    Check,
    Estimates,
    Made,
    Statement,
    Tell,
    all_columns,
    fixed_levels,
    published_attributes,
    section_of,
)

Floats = NDArray[np.float64]

CLAIMED = (
    "that the table published was drawn from the publisher's data as described",
    "that each record was sampled independently with probability beta, from unpredictable bits",
    "that chosen levels were chosen on the full table with no more than selection_epsilon",
)
POLICY_NOTE = """\
# The policy as it was carried out, with every level fixed: to be reviewed, and to be used again on another table, such
# as next year's. Nothing is then left to choose, so all of epsilon goes to the crowd.
"""


@dataclass(frozen=True, eq=False)
class Settled:
    """The settings, and the columns with the levels that nobody has to choose."""

    crowd: CrowdSettings
    attributes: Sequence[CodedAttribute]
    fixed: Mapping[str, int]

    @property
    def chosen(self) -> list[str]:
        """The columns whose levels are chosen privately."""
        return [a.name for a in self.attributes if a.name not in self.fixed]


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that is needed to draw."""

    settings: Settled
    table: Histogram


def settle(policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> Settled:
    """The promise, found from the policy alone."""
    release = policy.release
    if not isinstance(release, Section):
        raise InternalError("a sampled crowd was asked for by another mechanism's policy")
    if release.already_sampled and (copies > 1 or policy.ledger is None):
        raise PolicyError(
            "A table that is itself a sample may serve one release only.",
            code="sample-reused",
            remedy="Make one release, and name a ledger in the policy, which sees to it that there is no second.",
        )
    fixed = fixed_levels(policy, attributes)
    if not release.selection_epsilon:
        fixed = {a.name: 0 for a in attributes} | fixed
    settled = Settled(sampled_crowd.settle(release), attributes, fixed)
    if settled.chosen:
        reach_of(settled.crowd.k, settled.crowd.beta)  # what cannot be chosen privately is refused before all else
    return settled


def prepare(settings: Settled, table: Histogram, tell: Tell) -> Prepared:  # noqa: ARG001
    """A table that is too large for a private choice is refused here, before the budget is charged."""
    if settings.chosen:
        require_scorable(table.total)
    return Prepared(settings, table)


def spending(settings: Settled) -> SampledCrowd:
    """One sampled crowd, with what the choice of levels costs."""
    crowd = settings.crowd
    return SampledCrowd(crowd.k, crowd.beta, crowd.selection_epsilon, crowd.delta)


def draw(prepared: Prepared, source: RandomSource) -> Made:
    """Choose, sample and suppress; then derive the promise once more from what came out."""
    settings = prepared.settings
    outcome = sampled_crowd.run(prepared.table, settings.attributes, settings.fixed, settings.crowd, source)
    smallest = int(outcome.published.counts.min()) if len(outcome.published) else settings.crowd.k
    if not settings.crowd.kept or smallest < settings.crowd.k:
        raise InternalError("the release is not what the policy promises")
    return Made(outcome.published, outcome.levels, state(settings.crowd, outcome.levels, settings.chosen), outcome)


# --- what it says ---------------------------------------------------------------------------------------------------


def state(settings: CrowdSettings, levels: Mapping[str, int], chosen: Sequence[str]) -> Statement:
    """The whole statement; all of it follows from the settings and the levels."""
    promise = {
        "notion": "(epsilon, delta)-differential privacy",
        "epsilon": settings.epsilon,
        "delta": settings.delta,
        "relation": "add/remove",
        "in_words": in_words(settings),
        "grounds": grounds(chosen=bool(chosen)),
    }
    mechanism = {
        "name": "sampled_crowd",
        "k": settings.k,
        "beta": settings.beta,
        "selection_epsilon": settings.selection_epsilon,
        "exact_delta": settings.exact_delta,
        "already_sampled": settings.already_sampled,
        "levels": dict(levels),
        "levels_chosen": list(chosen),
    }
    return Statement(promise, mechanism, assumptions(settings))


def together(settings: Settled, copies: int) -> dict[str, Any] | None:
    """Promises about fresh samples add up."""
    return _together(settings.crowd, copies)


def _together(settings: CrowdSettings, copies: int) -> dict[str, Any] | None:
    if copies == 1:
        return None
    return {
        "copies": copies,
        "epsilon": float_above(copies * Fraction(settings.epsilon)),
        "delta": min(1.0, float_above(copies * Fraction(settings.delta))),
        "in_words": (
            f"This is one of {copies} independent releases of the same table. Who has all of them has this "
            "promise with the epsilon and delta given here."
        ),
    }


def grounds(*, chosen: bool) -> str:
    """What the promise rests on."""
    return (
        "Exact delta of a sampled crowd (incrowd, docs/proofs.md), sharpening Theorem 5 of Li, Qardaji and Su, "
        "'On sampling, anonymization, and differential privacy'; levels "
        + (
            "chosen with selection_epsilon on the full table, before and independently of the sampling: adaptive "
            "composition."
            if chosen
            else "fixed in the policy."
        )
    )


def assumptions(settings: CrowdSettings) -> list[str]:
    """The premises of the theorem that nobody can check from outside."""
    if settings.already_sampled:
        sampled = (
            "The table is itself a random sample: each person of the population came into it independently, with "
            f"probability {settings.beta!r}, and who did is secret. No other release is made from it."
        )
    else:
        sampled = "The sample was drawn for this release and was used for no other."
    return [
        "Each person is one record of the table.",
        sampled,
        (
            "Domains, hierarchies and the levels that the policy fixes were declared, not read off this table (but "
            "for levels that an earlier release, charged for it, has chosen privately)."
        ),
        "Every record fits the declarations; whether a run was refused for the sake of a record is not published.",
        (
            "Neither the size of the sample nor the number of suppressed records is published anywhere: with either "
            f"of them delta would be at least beta = {settings.beta:g}."
        ),
        "The random bits were unpredictable, and have been forgotten.",
    ]


def in_words(settings: CrowdSettings) -> str:
    """The promise as a sentence."""
    # Rounded up to three digits: a sentence may not promise more than the numbers do.
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_CEILING)):
        factor = +decimal.Decimal(math.nextafter(math.exp(settings.epsilon) * (1 + 1e-15), math.inf))
    return (
        "Whatever anyone might conclude from this table, the probability of that with any one person in the data is at "
        f"most e^ε = {factor} times the probability without that person, plus δ = {settings.delta!r}; and the other "
        "way round."
    )


# --- checking it ----------------------------------------------------------------------------------------------------


def check_promise(certificate: Mapping[str, Any]) -> Iterator[Check]:
    """The promise is the policy's, and follows from k and beta."""
    mechanism, release = certificate["mechanism"], section_of(certificate)
    attributes = {
        name: Attribute.model_construct(hierarchy=a["hierarchy"], level=a["level"], role=a["role"])
        for name, a in published_attributes(certificate).items()
    }
    settings = settled_again(certificate).crowd
    given = all(getattr(release, key) in (None, mechanism[key]) for key in ("k", "beta"))
    sound = not release.unfit(attributes)
    yield Check("the policy's parameters go together", given and sound, "they contradict each other")
    yield Check(
        "epsilon and delta follow from k and beta",
        settings.kept,
        f"they give delta = {settings.exact_delta:.3g}, more than the {settings.delta:g} promised",
    )
    chosen = [name for name, a in attributes.items() if a.level is None and release.selection_epsilon]
    levels = mechanism["levels"]
    held = held_columns(certificate)
    sound = are_levels(levels, held)
    yield Check("levels are levels", sound, "one is no whole number, or above its hierarchy's top")
    if sound:
        yield check_labels(certificate, held)
    same = set(levels) == set(attributes) and sorted(mechanism["levels_chosen"]) == sorted(chosen)
    for name, attribute in attributes.items():
        fixed = 0 if attribute.level is None else attribute.level
        same = same and (name in chosen or levels[name] == fixed)
    yield Check("the levels are the policy's, where it fixes them", same, "a level differs from the policy's")
    together = certificate["promise"]["together"]
    stated = state(settings, levels, mechanism["levels_chosen"]).is_in(certificate)
    stated = stated and together == _together(settings, together["copies"] if together else 1)
    yield Check("the promise says what the parameters mean", stated, "its words or numbers are others")


def settled_again(certificate: Mapping[str, Any]) -> Settled:
    """The settings, from the policy and what was found for it."""
    mechanism, release = certificate["mechanism"], section_of(certificate)
    return Settled(
        CrowdSettings(
            release.epsilon,
            release.delta,
            release.selection_epsilon,
            mechanism["k"],
            mechanism["beta"],
            release.already_sampled,
        ),
        (),
        {},
    )


def columns_needed(certificate: Mapping[str, Any], by: Sequence[str] = (), **_: Any) -> list[str]:  # noqa: ARG001
    """Crowds are made of all columns."""
    return all_columns(certificate)


def check_table(certificate: Mapping[str, Any], table: Histogram) -> Iterator[Check]:
    """Only crowds of k."""
    k = certificate["mechanism"]["k"]
    small = int((table.counts < k).sum())
    yield Check(f"every crowd has k = {k} records or more", small == 0, f"{small} crowds are smaller")


# --- estimates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CrowdEstimate:
    """One cell of a cross-tabulation.

    Attributes:
        values: the labels of the columns asked for, None for missing.
        estimate: people of the population in the published crowds of this cell.
        standard_error: of that number, from the sampling and the threshold.
        crowds: how many crowds were published here.
        crowds_possible: how many there could be; each of the others hides fewer than `hidden_at_most` people.
    """

    values: tuple[str | None, ...]
    estimate: float
    standard_error: float
    crowds: int
    crowds_possible: int


@dataclass(frozen=True)
class CrowdEstimates(Estimates):
    """Estimates from a sampled crowd.

    Attributes:
        hidden_at_most: a crowd of this size would be published with probability 95% or more: whatever was not
            published is, as likely, smaller.
    """

    hidden_at_most: int


def estimate(certificate: Mapping[str, Any], table: Histogram, by: Sequence[str]) -> CrowdEstimates:
    """A cross-tabulation by some columns."""
    k, beta = int(certificate["mechanism"]["k"]), float(certificate["mechanism"]["beta"])
    people, errors = people_behind(table.counts.astype(np.float64), k, beta)
    groups = table.project(by)
    sizes = [len(table[name].labels) for name in by]
    codes = [table[name].codes.astype(np.int64) for name in by]
    keys = np.ravel_multi_index(codes, sizes) if len(table) else np.zeros(0, dtype=np.int64)
    # Groups come in the order of their codes, as the cells of the projection do.
    place_of = np.unique(keys, return_inverse=True)[1]
    totals = np.bincount(place_of, weights=people, minlength=len(groups))
    variances = np.bincount(place_of, weights=errors**2, minlength=len(groups))
    crowds = np.bincount(place_of, minlength=len(groups))
    possible = table.domain_size // int(np.prod(sizes, dtype=object))
    rows = [
        CrowdEstimate(
            tuple(groups[name].labels[int(groups[name].codes[i])] for name in by),
            float(totals[i]),
            float(np.sqrt(variances[i])),
            int(crowds[i]),
            possible,
        )
        for i in range(len(groups))
    ]
    hidden = hidden_at_most(k, beta)
    note = f"A crowd that was not published has, with probability 95%, fewer than {hidden:,} people."
    return CrowdEstimates(tuple(by), tuple(rows), (note,), hidden)


def people_behind(shown: Floats, k: int, beta: float) -> tuple[Floats, Floats]:
    """For each published count the number of people that it stands for, and the standard error of that."""
    n = shown / beta
    mean = n * beta * _tail(n - 1, k - 1, beta)
    pairs = n * (n - 1) * beta**2 * _tail(n - 2, k - 2, beta)  # E[X(X−1)·1(X ≥ k)]
    return n, np.sqrt(np.maximum(pairs + mean - mean**2, 0.0)) / beta


def _tail(n: Floats, at_least: int, beta: float) -> Floats:
    """P[Bin(n, β) ≥ at_least], for real n."""
    from scipy.special import betainc

    if at_least <= 0:
        return np.ones_like(n)
    return np.asarray(betainc(at_least, np.maximum(n - at_least + 1, 1e-12), beta), dtype=np.float64)


def hidden_at_most(k: int, beta: float) -> int:
    """The smallest crowd that is published with probability 95% or more."""
    size = k
    while float(_tail(np.array([float(size)]), k, beta)[0]) < 0.95:
        size = max(size + 1, int(size * 1.02))
    return size
