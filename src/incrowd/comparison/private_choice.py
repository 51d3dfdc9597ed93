"""One of several policies, chosen on the table within a promise.

**Candidates** come from the policy alone: it as it is; without one of its columns; with a column one level finer or
coarser; with another β or k at the same ε and δ. All of them are sampled crowds whose levels are fixed.

**The score** of a candidate is the information expected to be published under it, Σ w(c)·h(n_c) over its cells, as in
`recoding.quality`: h is that of its own k and β, divided by β, so that all scores are in people. A column that it
leaves out has weight 0 and joins cells, as at the top of its hierarchy.

**Its sensitivity.** One record more raises one cell of each candidate by one: no score falls, and none rises by more
than its own table's largest step times the largest weight. The largest of these over all candidates, times the rows
that one person may have, is used for all. So a noisy maximum is ε₁-DP for adding or removing a person. The chosen
release is (ε₂, δ)-DP whichever it is, and ε₁ + ε₂ is the policy's ε: adaptive composition gives the policy's promise
for both. The chosen policy keeps that ε and says ε₁ (`policy_epsilon`), so that the certificate promises the sum; the
ledger is charged with ε₁ now and with the rest by the release.

Of other mechanisms no score is known here whose sensitivity is proved and that ranks them: they are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.comparison.advice import Change, Places
from incrowd.core.display import Showable
from incrowd.core.errors import IncrowdError, ParameterError, PolicyError, UnreachableError
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.promises import Point
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.mechanisms.sampled_crowd.levels import information
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled
from incrowd.policy import Policy
from incrowd.recoding.choice import noisy_max
from incrowd.recoding.quality import WEIGHT_ONE, SurvivalTable, require_scorable
from incrowd.releases.purse import Purse
from incrowd.theory._groups import float_above
from incrowd.theory._numbers import require_between
from incrowd.theory.crowd import left_after
from incrowd.theory.profile import Relation


@dataclass(frozen=True, repr=False)
class PrivateChoice(Showable):
    """A policy that was chosen privately among several. All of it may be published.

    Attributes:
        change: what differs from the policy as it was, in words.
        lines: what to write into the policy: the change, and what of ε it has cost.
        candidates: what there was to choose from, in words.
        epsilon: what the choice has cost.
        left: what is left of ε for the release.
    """

    change: str
    lines: str
    candidates: tuple[str, ...]
    epsilon: float
    left: float


@dataclass(frozen=True, eq=False)
class CandidatePolicy:
    """A policy that could be chosen: what it changes, the level of each column (None: left out), its k and β."""

    change: Change
    levels: Mapping[str, int | None]
    k: int
    beta: float


def choose_policy(
    policy: Policy,
    count: Callable[[Policy, Sequence[CodedAttribute]], Histogram],
    share: float,
) -> PrivateChoice:
    """Choose among what lies around a policy, with a share of its ε, which is charged to its ledger.

    Args:
        policy: a sampled crowd with fixed levels and a ledger.
        count: counts the table that the policy is about.
        share: the part of ε that pays for the choice.

    Raises:
        PolicyError: parts of the policy are to be confirmed.
        ParameterError: the policy is one of which there is no proved score.
        UnreachableError: with what is left of ε, no candidate keeps the promise.
        BudgetError: the ledger does not know the data set yet, or its budget does not bear the choice.
    """
    require_between("share", share, 0.0, 1.0)
    policy.require_confirmed()  # of a draft, what can be chosen was read off the table
    section = _section(policy)
    epsilon = share * section.epsilon
    spent = float_above(Fraction(section.policy_epsilon) + Fraction(epsilon))  # with what was chosen before
    left = left_after(section.epsilon, spent)
    paid: Places = {("release", "policy_epsilon"): spent}
    if math.fsum(section.beside) + epsilon >= section.epsilon:
        raise _nothing_left()
    purse = Purse(policy, new_ledger=False, rehearse=False)
    attributes = codings(policy)
    found = candidates(policy.changed(paid), attributes)
    if not found:
        raise _nothing_left()
    table = count(policy, attributes)
    require_scorable(table.total)
    ranked, sensitivity = scored(found, attributes, table, policy.rows_per_person)
    charged = purse.charge(Point(epsilon, 0.0, Relation.ADD_REMOVE), 1, "a private choice of the policy")
    with charged.explained():
        chosen = found[noisy_max(ranked, sensitivity, epsilon)].change
        places = {**chosen.places, **paid}
        lines = policy.lines(places)
        if charged.ledger is not None:
            charged.ledger.settle(charged.entry_id, policy.changed(places).digest())
    return PrivateChoice(chosen.words, lines, tuple(one.change.words for one in found), epsilon, left)


def _nothing_left() -> UnreachableError:
    return UnreachableError(
        "With what is left of ε, none of the policies to choose from keeps its promise.",
        code="unreachable",
        remedy="Give the choice a smaller share.",
    )


def _section(policy: Policy) -> SampledCrowd:
    """The policy's section, if a choice can be made within its promise."""
    section = policy.release
    if not isinstance(section, SampledCrowd) or section.recoding != "lattice" or section.already_sampled:
        raise ParameterError(
            "A policy is chosen privately among sampled crowds alone, with recoding: lattice and a sample of their "
            "own: for others there is no score here whose sensitivity is proved.",
            code="parameter-combination",
            remedy="Trees and views choose privately by themselves, out of their ε; other mechanisms must be decided "
            "without the table.",
        )
    if section.selection_epsilon:
        raise ParameterError(
            "The levels of this policy are chosen privately by the release itself (selection_epsilon).",
            code="parameter-combination",
            remedy="Fix every level and leave selection_epsilon out, to choose among policies instead.",
        )
    if policy.ledger is None:
        raise PolicyError(
            "A private choice costs a part of ε, and the policy names no ledger to charge.",
            code="policy-invalid",
            remedy="Give it a section 'ledger'.",
        )
    return section


def candidates(policy: Policy, attributes: Sequence[CodedAttribute]) -> list[CandidatePolicy]:
    """Everything that can be chosen, by the policy alone; what cannot keep its promise is left out."""
    levels = {a.name: policy.attributes[a.name].level or 0 for a in attributes}
    found = []
    for change, other in _changes(policy, attributes, levels):
        try:
            settled = MECHANISMS["sampled_crowd"].settle(policy.changed(change.places), attributes, 1)
            SurvivalTable.of(settled.crowd.k, settled.crowd.beta)
        except IncrowdError:
            continue
        if isinstance(settled, CrowdSettled):
            found.append(CandidatePolicy(change, other, settled.crowd.k, settled.crowd.beta))
    return found


def _changes(
    policy: Policy, attributes: Sequence[CodedAttribute], levels: Mapping[str, int]
) -> Iterator[tuple[Change, Mapping[str, int | None]]]:
    section = policy.release
    assert section is not None  # noqa: S101 - asked before
    yield Change("as it is", {}), levels
    for a in attributes:
        if len(attributes) > 1:
            gone: Places = {("attributes", a.name): {"role": "drop"}}
            yield Change(f"drop {a.name}", gone), {**levels, a.name: None}
        for level, word in ((levels[a.name] - 1, "finer"), (levels[a.name] + 1, "coarser")):
            if 0 <= level < a.hierarchy.height:  # at the top it is hidden, as if left out
                there: Places = {("attributes", a.name, "level"): level}
                yield Change(f"{a.name} {word}, at level {level}", there), {**levels, a.name: level}
    for keys in MECHANISMS["sampled_crowd"].variations(section):
        words = ", ".join(f"{key} = {value}" for key, value in keys.items() if value is not None)
        yield Change(words, {("release", key): value for key, value in keys.items()}), levels


def scored(
    found: Sequence[CandidatePolicy], attributes: Sequence[CodedAttribute], table: Histogram, rows: int
) -> tuple[np.ndarray, int]:
    """The score of each candidate, and by how much a person may change any of them."""
    share = WEIGHT_ONE // len(attributes)
    scores, steps = [], []
    for one in found:
        survival = SurvivalTable.of(one.k, one.beta)
        steps.append(survival.largest_step)
        recodes = {a.name: a.hierarchy.recode(level) for a in attributes if (level := one.levels[a.name]) is not None}
        shown = table.project(list(recodes)).recode(recodes)
        weights = np.zeros(len(shown), dtype=np.int64)
        for a in attributes:
            level = one.levels[a.name]
            if level is not None:
                weights += information(a, level, share)[shown[a.name].codes]
        scores.append(int(np.dot(survival.values(shown.counts), weights)))
    return np.array(scores, dtype=np.int64), max(steps) * share * len(attributes) * rows
