"""A statement of account: what was released from a dataset, what that has spent, and what is left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from incrowd.core.display import Showable, Shown, ShownTable
from incrowd.core.numbers import as_given, few_digits, number_down
from incrowd.mechanisms.promises import Budget, CrowdPromise, Entry, Rule, Uncomposable, promise_to_dict
from incrowd.releases.accounts import Account, costs_of
from incrowd.releases.costs import counted, finite
from incrowd.releases.rules import Counting, counting, sums
from incrowd.theory.profile import Relation


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
    """What the releases of a dataset come to under one relation, by the rule of its budget.

    Attributes:
        epsilon: what they have spent at this delta; infinite if no ε reaches it.
        delta: by the rule `sum` what they have spent, else the budget's.
        releases: how many are counted, each copy as one.
        left_out: how many promises about replacing a record an add/remove total leaves out.
    """

    relation: Relation
    epsilon: float
    delta: float
    releases: int
    left_out: int

    def __str__(self) -> str:
        return f"epsilon = {_rounded_up(self.epsilon)} at delta = {_rounded_up(self.delta)} ({self.relation})"

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
class StatementLine:
    """One release in a statement.

    Attributes:
        epsilon: what each copy promises at its own δ, under its own relation; None if the promise does not compose,
            infinite if no ε reaches that δ.
        promise: the same in words.
        cost: what it was charged with, all copies together, in the numbers of the budget's rule.
    """

    recorded: Recorded
    epsilon: float | None
    delta: float | None
    promise: str
    cost: Mapping[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
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
            "cost": None if self.cost is None else {k: finite(v) for k, v in self.cost.items() if _is_number(v)},
            "already_a_sample": entry.already_a_sample,
            "sample_id": entry.sample_id,
            "policy_digest": entry.policy_digest,
            "release_digest": self.recorded.release_digest,
        }


@dataclass(frozen=True, repr=False)
class AccountStatement(Showable):
    """What was released from a dataset, what that has spent, and what is left.

    Attributes:
        budget: the budget in force, if any.
        totals: one for the budget's relation; without a budget one for each relation that occurs.
        remaining: the ε left of the budget; None without a budget.
        left: the same with all else that is left, in the numbers of the rule.
        releases: everything recorded, oldest first.
        budgets: every budget ever set, oldest first.
        notes: what the numbers do not say.
    """

    dataset: str
    budget: Budget | None
    totals: tuple[Total, ...]
    remaining: float | None
    left: Mapping[str, float] | None
    releases: tuple[StatementLine, ...]
    budgets: tuple[BudgetChange, ...]
    notes: tuple[str, ...]

    @property
    def spent(self) -> Total:
        """The total that counts: the budget's, or else the one that leaves nothing out that composes."""
        return self.totals[-1]

    def shown(self) -> Shown:
        """What was released, what that has spent, and what is left."""
        budget = "no budget is set" if self.budget is None else f"of {_rounded_up(self.budget.epsilon)} in all"
        left = "" if self.remaining is None else f"; {number_down(self.remaining)} is left"
        rows = [
            (one.recorded.time[:10], one.recorded.entry.description, one.promise, str(one.recorded.state))
            for one in self.releases
        ]
        return Shown(
            f"{self.dataset}: {len(self.releases)} releases",
            (f"Spent: {self.spent}, {budget}{left}.",),
            (ShownTable(("date", "release", "promise", "state"), rows, words=4),),
            self.notes,
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `incrowd ledger show`."""
        return {
            "dataset": self.dataset,
            "rule": str(Rule.SUM if self.budget is None else self.budget.rule),
            "budget": _budget(self.budget),
            "spent": self.spent.to_dict(),
            "remaining": None
            if self.budget is None or self.left is None
            else {**self.left, "relation": str(self.budget.relation)},
            "totals": [total.to_dict() for total in self.totals],
            "releases": [line.to_dict() for line in self.releases],
            "budgets": [{"time": change.time, **(_budget(change.budget) or {})} for change in self.budgets],
            "notes": list(self.notes),
        }


def make_statement(
    dataset: str,
    records: tuple[Recorded, ...],
    budgets: tuple[BudgetChange, ...],
    notes: tuple[str, ...] = (),
) -> AccountStatement:
    """Add everything up by the rule of the budget, and without one each release at its own δ."""
    account = Account(dataset, budgets[-1].budget if budgets else None, tuple(r.entry for r in records))
    budget = account.budget
    rules = tuple(counting(budget) if budget is not None else sums(relation) for relation in _relations(account))
    totals = tuple(_total(account.entries, rule) for rule in rules)
    left = None
    if budget is not None:
        left = rules[-1].left(costs_of(rules[-1], account.entries))
        left = {**left, "epsilon": 0.0} if account.is_used_sample else left
    return AccountStatement(
        dataset=dataset,
        budget=budget,
        totals=totals,
        remaining=None if left is None else left["epsilon"],
        left=left,
        releases=tuple(_line(record, rules[-1]) for record in records),
        budgets=budgets,
        notes=(*_notes(account, totals), *notes),
    )


def _relations(account: Account) -> tuple[Relation, ...]:
    """The relations to add up under. Replace-one, which covers both, comes last."""
    if account.budget is not None:
        return (account.budget.relation,)
    present = {entry.relation for entry in account.entries}
    return tuple(r for r in Relation if r in present) or (Relation.ADD_REMOVE,)


def _total(entries: tuple[Entry, ...], rule: Counting) -> Total:
    relation = rule.budget.relation
    epsilon, delta = rule.spent(costs_of(rule, entries))
    releases = sum(entry.copies for entry in counted(entries, relation))
    return Total(
        relation=relation,
        epsilon=epsilon,
        delta=delta,
        releases=releases,
        left_out=sum(entry.copies for entry in entries if entry.composes) - releases,
    )


def _line(recorded: Recorded, rule: Counting) -> StatementLine:
    entry = recorded.entry
    if isinstance(entry.promise, Uncomposable):
        return StatementLine(recorded, None, None, f"{entry.promise.notion}: does not compose", None)
    relation = entry.promise.relation
    alone = sums(relation).price(replace(entry, copies=1))
    known = "no epsilon" if math.isinf(alone["epsilon"]) else f"epsilon = {as_given(alone['epsilon'])}"
    said = f"{known} at delta = {as_given(alone['delta'])} ({relation})"
    cost = rule.cost(entry) if counted((entry,), rule.budget.relation) else None
    return StatementLine(recorded, alone["epsilon"], alone["delta"], said, cost)


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
        f"No epsilon reaches delta = {as_given(total.delta)} under {total.relation}."
        for total in totals
        if math.isinf(total.epsilon)
    )
    rows = {entry.promise.rows_per_person for entry in account.entries if isinstance(entry.promise, CrowdPromise)}
    if len(rows) > 1:
        notes.append(
            "The releases count different numbers of rows per person. Their total is about people only if every "
            "release knew whose the rows were, or its table had one row for each person."
        )
    if account.is_used_sample:
        notes.append("The table is itself a sample and has served its one release: no other is allowed.")
    return tuple(notes)


def _budget(budget: Budget | None) -> dict[str, Any] | None:
    if budget is None:
        return None
    said: dict[str, Any] = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "relation": str(budget.relation),
        "rule": str(budget.rule),
    }
    unit = (
        {}
        if budget.unit is None
        else {"unit": {k: v for k, v in promise_to_dict(budget.unit).items() if v is not None and k != "kind"}}
    )
    return {**said, **unit, **({"terms": dict(budget.terms)} if budget.terms else {})}


def _rounded_up(value: float) -> str:
    """Few digits that can be typed again, and do not say less than was spent."""
    return repr(float(few_digits(Decimal(repr(value)), 6, up=True))).removesuffix(".0")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
