"""What may be spent on a dataset: all that a decision depends on, and the decision."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from incrowd.core.errors import BudgetError, RelationError
from incrowd.core.numbers import as_given
from incrowd.mechanisms.promises import ONE_SAMPLE_ONE_RELEASE, Budget, Entry, Rule
from incrowd.releases.costs import at_least, counted, finite, meaning
from incrowd.releases.rules import Costs, Counting, counting
from incrowd.theory.profile import Relation


@dataclass(frozen=True)
class Account:
    """A dataset's budget and its releases.

    Attributes:
        lost: what had been spent when an earlier ledger was given up, which the entries may lack.
    """

    dataset: str
    budget: Budget | None
    entries: tuple[Entry, ...]
    lost: str | None = None

    @property
    def is_used_sample(self) -> bool:
        """The table is itself a sample and has served its one release."""
        return any(e.already_a_sample for e in self.entries)

    def admit(self, entry: Entry) -> Entry:
        """The entry with what it costs, if it may be added.

        Raises:
            BudgetError: it would overspend the budget or use a sample again.
            RelationError: it is about replacing a record, the budget about adding or removing one.
        """
        self._check_samples(entry)
        if self.budget is None or not entry.composes:
            return entry
        self._check_lost(self.budget)
        self._check_relation(self.budget, (entry,))
        rule = counting(self.budget)
        before, cost = costs_of(rule, self.entries), rule.cost(entry)
        if not rule.fits((*before, cost)):
            raise self._overspent(rule, before, cost)
        return replace(entry, cost=cost)

    def admit_budget(self, budget: Budget) -> None:
        """Return if the budget may be set; raise otherwise.

        Raises:
            BudgetError: more was spent already, or the rule would change after the first release.
            RelationError: releases about replacing a record cannot be counted under adding or removing one.
        """
        self._check_relation(budget, self.entries)
        self._check_lost(budget)
        self._check_fixed(budget)
        rule = counting(budget)
        costs = costs_of(rule, self.entries)
        if not rule.fits(costs):
            epsilon, delta = rule.spent(costs)
            known = "" if epsilon == math.inf else f": epsilon = {as_given(epsilon)}, delta = {as_given(delta)}"
            raise BudgetError(
                f"A budget of {budget} is less than what the releases of {self.dataset!r} have spent{known}.",
                code="budget-below-spent",
                remedy="What was published cannot be taken back. Set a budget of at least what was spent.",
                details={"spent": finite(epsilon), "budget": budget.epsilon, "delta": budget.delta},
            )

    def _check_lost(self, budget: Budget) -> None:
        """What a lost ledger has spent is known as an ε and a δ, and no rule but the sum can count those."""
        if self.lost is not None and budget.rule is not Rule.SUM:
            raise BudgetError(
                f"A ledger with releases of {self.dataset!r} was given up, and what they spent, {self.lost}, cannot be "
                f"counted by the rule '{budget.rule}'.",
                code="budget-fixed",
                remedy="Set a budget by the rule 'sum', and record what was spent with `incrowd ledger add`.",
            )

    def _check_fixed(self, budget: Budget) -> None:
        """A rule, and a budget that is not a plain sum, were chosen before the first release or not at all."""
        if not any(e.composes for e in self.entries):
            return
        before = Rule.SUM if self.budget is None else self.budget.rule
        if budget == self.budget or (budget.rule is Rule.SUM and (before is Rule.SUM or self.lost is not None)):
            return
        raise BudgetError(
            f"The releases of {self.dataset!r} are counted by the rule '{before}', which was fixed before the first.",
            code="budget-fixed",
            remedy="A rule that is chosen after a release is not proved, and a budget can be changed later under the "
            "rule 'sum' alone.",
        )

    def _check_samples(self, entry: Entry) -> None:
        if entry.sample_id is not None and any(e.sample_id == entry.sample_id for e in self.entries):
            raise BudgetError(
                f"A release of {self.dataset!r} was made from the sample {entry.sample_id!r} before.",
                code="sample-reused",
                remedy=ONE_SAMPLE_ONE_RELEASE,
                details={"sample_id": entry.sample_id},
            )
        if self.is_used_sample:
            raise BudgetError(
                f"The table of {self.dataset!r} was taken to be a sample itself, and has served its one release.",
                code="sample-reused",
                remedy="Promises about one and the same sample do not add up. Use a table that is not this sample.",
            )
        if entry.already_a_sample and self.entries:
            raise BudgetError(
                f"The table of {self.dataset!r} cannot be taken to be a sample: it has served "
                f"{len(self.entries)} release(s) before.",
                code="sample-reused",
                remedy="Draw a fresh sample from it instead.",
            )

    def _check_relation(self, budget: Budget, entries: Iterable[Entry]) -> None:
        if budget.relation is Relation.ADD_REMOVE and any(e.relation is Relation.REPLACE_ONE for e in entries):
            raise RelationError(
                f"A promise about replacing a record cannot be counted against a budget about adding or removing one "
                f"(dataset {self.dataset!r}).",
                code="relation-mismatch",
                remedy="Set a replace-one budget: add/remove promises can be converted to it, not the other way round.",
            )

    def _overspent(self, rule: Counting, before: Costs, cost: Any) -> BudgetError:
        budget = rule.budget
        (requested, delta), (spent, _), (after, delta_after) = (
            rule.spent(costs) for costs in ((cost,), before, (*before, cost))
        )
        left = rule.left(before)
        details = {"requested": requested, "remaining": left["epsilon"], "before": spent, "after": after}
        if math.isinf(after):
            message = (
                f"No epsilon covers this release at delta = {as_given(delta)}; {as_given(left['epsilon'])} "
                "remains of the budget of "
                f"{self.dataset!r}, {budget}."
            )
        elif after <= budget.epsilon and delta_after > budget.delta:
            details["requested_delta"], details["remaining_delta"] = delta, left["delta"]
            message = (
                f"The release asks for delta = {as_given(delta)}, and {as_given(left['delta'])} remains of the "
                f"budget of {self.dataset!r}, {budget}."
            )
        else:
            excess = details["excess"] = max(0.0, at_least(meaning(after) - meaning(budget.epsilon)))
            message = (
                f"The release asks for epsilon = {as_given(requested)}, and {as_given(left['epsilon'])} remains of the "
                f"budget of {self.dataset!r}, {budget}. It would raise what is spent from "
                f"{as_given(spent)} to {as_given(after)}{f': {as_given(excess)} too much' if excess else ''}."
            )
        return BudgetError(
            message,
            code="budget-overspent",
            remedy="Ask for less, or raise the budget. Nothing was recorded."
            if budget.rule is Rule.SUM
            else "Ask for less. Nothing was recorded.",
            details={
                **{name: finite(value) for name, value in details.items()},
                "budget": budget.epsilon,
                "delta": budget.delta,
                "relation": str(budget.relation),
                "rule": str(budget.rule),
            },
        )


def costs_of(rule: Counting, entries: Iterable[Entry]) -> Costs:
    """What these entries cost by a rule, those that it counts."""
    return [rule.cost(entry) for entry in counted(entries, rule.budget.relation)]
