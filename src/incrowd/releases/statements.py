"""A statement of account: what was released from a dataset, what that has spent, and what is left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from incrowd.guarantees.profile import Relation
from incrowd.releases.entries import Budget, Entry, Point, SampledCrowd, Uncomposable
from incrowd.releases.spending import Account, counted, finite, natural_delta, remaining, spent


class State(StrEnum):
    """How far a release has come. Both states count: a crash in between may waste budget, never hide a release."""

    CHARGED = "charged"
    PUBLISHED = "published"


@dataclass(frozen=True)
class Recorded:
    """An entry with what the ledger knows beside it. Times are UTC in ISO 8601."""

    id: int
    time: str
    entry: Entry
    published: str | None = None
    release_digest: str | None = None

    @property
    def state(self) -> State:
        """Charged until its files are known to have appeared."""
        return State.CHARGED if self.published is None else State.PUBLISHED


@dataclass(frozen=True)
class BudgetChange:
    """A budget and when it was set."""

    time: str
    budget: Budget


@dataclass(frozen=True)
class Total:
    """What the releases of a dataset come to under one relation.

    Attributes:
        epsilon: together they are (epsilon, delta)-DP; infinite if no ε reaches that δ.
        releases: how many are counted, each copy as one.
        left_out: how many promises about replacing a record an add/remove total leaves out.
    """

    relation: Relation
    epsilon: float
    delta: float
    releases: int
    left_out: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "epsilon": finite(self.epsilon),
            "delta": self.delta,
            "relation": str(self.relation),
            "releases": self.releases,
            "left_out": self.left_out,
        }


@dataclass(frozen=True)
class Line:
    """One release in a statement, at the δ of the statement.

    Attributes:
        epsilon: what each copy promises, under its own relation; None if the promise does not compose, infinite if no
            ε reaches that δ.
        promise: the same in words.
    """

    recorded: Recorded
    epsilon: float | None
    delta: float | None
    promise: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        entry = self.recorded.entry
        return {
            "id": self.recorded.id,
            "time": self.recorded.time,
            "state": str(self.recorded.state),
            "mechanism": entry.mechanism,
            "description": entry.description,
            "composes": entry.composes,
            "promise": self.promise,
            "epsilon": None if self.epsilon is None else finite(self.epsilon),
            "delta": self.delta,
            "relation": None if entry.relation is None else str(entry.relation),
            "copies": entry.copies,
            "already_a_sample": entry.already_a_sample,
            "sample_id": entry.sample_id,
            "policy_digest": entry.policy_digest,
            "release_digest": self.recorded.release_digest,
        }


@dataclass(frozen=True)
class Statement:
    """What was released from a dataset, what that has spent, and what is left.

    Attributes:
        budget: the budget in force, if any.
        totals: one for the budget's relation; without a budget one for each relation that occurs.
        remaining: the ε left of the budget, at the budget's δ; None without a budget.
        releases: everything recorded, oldest first.
        budgets: every budget ever set, oldest first.
        notes: what the numbers do not say.
    """

    dataset: str
    budget: Budget | None
    totals: tuple[Total, ...]
    remaining: float | None
    releases: tuple[Line, ...]
    budgets: tuple[BudgetChange, ...]
    notes: tuple[str, ...]

    @property
    def spent(self) -> Total:
        """The total that counts: the budget's, or else the one that leaves nothing out that composes."""
        return self.totals[-1]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `incrowd ledger show`."""
        return {
            "dataset": self.dataset,
            "budget": _budget(self.budget),
            "spent": self.spent.to_dict(),
            "remaining": _budget(self.budget, self.remaining),
            "totals": [total.to_dict() for total in self.totals],
            "releases": [line.to_dict() for line in self.releases],
            "budgets": [{"time": change.time, **(_budget(change.budget) or {})} for change in self.budgets],
            "notes": list(self.notes),
        }


def make_statement(
    dataset: str, records: tuple[Recorded, ...], budgets: tuple[BudgetChange, ...], delta: float | None = None
) -> Statement:
    """Add everything up, at the given δ, else at the budget's, else at one that suits the releases."""
    account = Account(dataset, budgets[-1].budget if budgets else None, tuple(r.entry for r in records))
    budget = account.budget
    if delta is None and budget is not None:
        delta = budget.delta
    totals = tuple(_total(account.entries, relation, delta) for relation in _relations(account))
    left = None
    if budget is not None:
        before = totals[-1].epsilon if delta == budget.delta else spent(account.entries, budget.relation, budget.delta)
        left = 0.0 if account.is_used_sample else remaining(budget.epsilon, before)
    at_delta = totals[-1].delta
    return Statement(
        dataset=dataset,
        budget=budget,
        totals=totals,
        remaining=left,
        releases=tuple(_line(record, at_delta) for record in records),
        budgets=budgets,
        notes=_notes(account, totals),
    )


def _relations(account: Account) -> tuple[Relation, ...]:
    """The relations to add up under. Replace-one, which covers both, comes last."""
    if account.budget is not None:
        return (account.budget.relation,)
    present = {entry.relation for entry in account.entries}
    return tuple(r for r in Relation if r in present) or (Relation.ADD_REMOVE,)


def _total(entries: tuple[Entry, ...], relation: Relation, delta: float | None) -> Total:
    at_delta = natural_delta(entries, relation) if delta is None else delta
    among = counted(entries, relation)
    releases = sum(entry.copies for entry in among)
    return Total(
        relation=relation,
        epsilon=spent(among, relation, at_delta),
        delta=at_delta,
        releases=releases,
        left_out=sum(entry.copies for entry in entries if entry.composes) - releases,
    )


def _line(recorded: Recorded, delta: float) -> Line:
    match promise := recorded.entry.promise:
        case Uncomposable(notion):
            return Line(recorded, None, None, f"{notion}: does not compose")
        case Point(epsilon, delta, _):
            pass
        case SampledCrowd():
            epsilon = promise.epsilon(delta)
    known = "no epsilon" if math.isinf(epsilon) else f"epsilon = {epsilon:g}"
    return Line(recorded, epsilon, delta, f"{known} at delta = {delta:g} ({promise.relation})")


def _notes(account: Account, totals: tuple[Total, ...]) -> tuple[str, ...]:
    notes = []
    alone = sum(entry.copies for entry in account.entries if not entry.composes)
    if alone:
        notes.append(
            f"{alone} release(s) make promises that do not compose. They are in no total, and nothing is promised "
            "about them together with the others."
        )
    notes.extend(
        f"The {total.relation} total leaves out {total.left_out} release(s) that promise something only about "
        "replacing a record."
        for total in totals
        if total.left_out
    )
    notes.extend(
        f"No epsilon reaches delta = {total.delta:g} under {total.relation}; ask for a larger delta."
        for total in totals
        if math.isinf(total.epsilon)
    )
    if account.is_used_sample:
        notes.append("The table is itself a sample and has served its one release: no other is allowed.")
    return tuple(notes)


def _budget(budget: Budget | None, epsilon: float | None = None) -> dict[str, Any] | None:
    if budget is None:
        return None
    epsilon = budget.epsilon if epsilon is None else epsilon
    return {"epsilon": epsilon, "delta": budget.delta, "relation": str(budget.relation)}
