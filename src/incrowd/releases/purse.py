"""Between a policy and its ledger: what is checked before a table is read, charged before it is drawn, and said after.

A first use is an explicit act. A ledger that is not there, or does not know the dataset, is never started in passing:
it may have been moved away, and what was spent with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from incrowd.core.errors import BudgetError, IncrowdError, InternalError, ParameterError, PolicyError
from incrowd.mechanisms.promises import Budget, Entry, Promise, as_unit
from incrowd.policy import Policy
from incrowd.releases.accounts import Account, costs_of
from incrowd.releases.costs import counted
from incrowd.releases.folders import Stage, writing
from incrowd.releases.ledger import UNPUBLISHED, Ledger
from incrowd.releases.memory import Memory
from incrowd.releases.rules import counting, settled


@dataclass
class Charged:
    """A release that was charged, or one that no ledger counts.

    Attributes:
        stages: what was published, or was to be.
        foreseen: what would have been charged, of a rehearsal.
    """

    ledger: Ledger | None = None
    dataset: str = ""
    entry_id: int = 0
    said: str = ""
    stages: list[Stage] = field(default_factory=list)
    foreseen: Foreseen | None = None

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Whatever stops the block, also Ctrl-C, has a note on what was charged and what has been published."""
        try:
            yield
        except BaseException as error:
            if self.ledger is not None:
                places = ", ".join(str(folder) for stage in self.stages if stage.appeared for folder in stage.folders)
                error.add_note(f"{self.said} {f'It was published: {places}.' if places else UNPUBLISHED}")
            raise

    def publish(self, stage: Stage, digest: str) -> None:
        """Give all folders their names, and tell the ledger if they have them: also if a signal came meanwhile."""
        self.stages.append(stage)
        try:
            with writing(stage.folders[0]):
                stage.appear()
        finally:
            if self.ledger is not None and stage.appeared:
                self.ledger.settle(self.entry_id, digest)

    def account(self) -> dict[str, Any] | None:
        """What is spent and left now; None if no ledger counts."""
        if self.ledger is None:
            return None
        statement = self.ledger.statement(self.dataset).to_dict()
        kept = ("dataset", "rule", "budget", "spent", "remaining", "notes")
        return {"path": str(self.ledger.path), **{name: statement[name] for name in kept}}


@dataclass(frozen=True)
class Foreseen:
    """What a release would do to its ledger, which a rehearsal leaves as it is. Each amount is an ε and a δ.

    Attributes:
        dataset: its name in the ledger.
        budget: all that may be spent.
        first: whether it would be the first release, and set that budget.
        before: what is spent.
        cost: what it would cost by itself; none if its promise does not compose.
        after: what would be spent then.
        left: what would be left of ε.
        refused: why the ledger would not bear it.
    """

    dataset: str
    budget: tuple[float, float]
    first: bool = False
    before: tuple[float, float] = (0.0, 0.0)
    cost: tuple[float, float] | None = None
    after: tuple[float, float] | None = None
    left: float | None = None
    refused: str | None = None


def foresee(policy: Policy, promise: Promise, copies: int) -> Foreseen | None:
    """What publishing would be charged with, and what would be left; None if the policy names no ledger."""
    wanted = policy.ledger
    if wanted is None:
        return None
    seen = Foreseen(wanted.dataset, (wanted.epsilon, wanted.delta))
    try:
        purse = Purse.of(policy)
        ledger = None if purse.new else Ledger(purse.path, create=False)
        lost = Memory().lost(purse.path, purse.dataset)
        account = Account(purse.dataset, purse.budget, (), lost) if ledger is None else ledger.account(purse.dataset)
        budget = account.budget or purse.budget  # as it was fixed, if it was
        rule, entry = counting(budget), purse.entry(promise, copies, "release")
        before = costs_of(rule, account.entries)
        seen = replace(seen, first=purse.new, before=rule.spent(before), left=rule.left(before)["epsilon"])
        if entry.composes and counted((entry,), budget.relation):
            cost = rule.cost(entry)
            then = (*before, cost)
            left = rule.left(then)["epsilon"]
            seen = replace(seen, cost=rule.spent((cost,)), after=rule.spent(then), left=left)
        account.admit(entry)
    except IncrowdError as error:
        return replace(seen, refused=f"{error.message} {error.remedy}".strip())
    return seen


class Purse:
    """The budget that a policy names, and none for a rehearsal. Nothing is made or changed before `charge`.

    Raises:
        BudgetError: the ledger is missing, or does not know the dataset, and no first use was declared.
        PolicyError: its budget is not the policy's.
        ParameterError: a first use was declared, and it is none.
    """

    def __init__(self, policy: Policy, *, new_ledger: bool, rehearse: bool) -> None:
        self.policy = policy
        self.new, self.rehearse = new_ledger, rehearse
        if rehearse:
            return
        if policy.ledger is None:
            if new_ledger:
                raise ParameterError(
                    "A new ledger is declared, but the policy names no ledger.",
                    code="parameter-combination",
                    remedy="Give the policy a section 'ledger', or leave out --new-ledger.",
                )
            return
        wanted = policy.ledger
        self.path, self.dataset = policy.resolve(wanted.path).absolute(), wanted.dataset
        self.budget = Budget(
            wanted.epsilon,
            wanted.delta,
            wanted.relation,  # type: ignore[arg-type]
            wanted.rule,  # type: ignore[arg-type]
            None if wanted.unit is None else as_unit(wanted.unit, wanted.relation),
        )
        ledger = Ledger.at(self.path)  # one that is gone is an error of its own
        known = None if ledger is None else ledger.budget(self.dataset)
        self._compare(known)
        if known is None:
            self.budget = settled(self.budget)

    @classmethod
    def of(cls, policy: Policy) -> Purse:
        """That of a policy, whose release may be the first of its dataset."""
        try:
            return cls(policy, new_ledger=False, rehearse=False)
        except BudgetError as error:
            if error.code != "ledger-new":
                raise
            return cls(policy, new_ledger=True, rehearse=False)

    def entry(self, promise: Promise, copies: int, description: str) -> Entry:
        """What the ledger is given to count."""
        policy = self.policy
        if policy.release is None:
            raise InternalError("a release was charged without being asked for")
        return Entry(
            mechanism=policy.release.mechanism,
            promise=promise,
            description=policy.title or description,
            policy_digest=policy.digest(),
            already_a_sample=getattr(policy.release, "already_sampled", False),
            copies=copies,
        )

    def _compare(self, known: Budget | None) -> None:
        if known is None and not self.new:
            raise BudgetError(
                f"No budget was ever set for {self.dataset!r} in the ledger {self.path}.",
                code="ledger-new",
                remedy="If nothing was released from this dataset before, say so: `incrowd ledger budget`, or "
                "--new-ledger with the first release. Otherwise name the ledger that counted it.",
            )
        if known is not None and self.new:
            raise ParameterError(
                f"The ledger {self.path} knows {self.dataset!r} already.",
                code="parameter-combination",
                remedy="Leave out --new-ledger: it is for the first release alone.",
            )
        if known is not None and known != self.budget:
            raise PolicyError(
                f"The policy's budget for {self.dataset!r} is not the one in the ledger, {known}.",
                code="ledger-budget-differs",
                remedy="Write the ledger's budget into the policy, or change the ledger's with "
                "`incrowd ledger budget`.",
            )

    def charge(self, promise: Promise, copies: int, description: str = "release") -> Charged:
        """Spend the budget, on disk, before anything is drawn."""
        if self.rehearse:
            return Charged(foreseen=foresee(self.policy, promise, copies))
        if self.policy.ledger is None or self.policy.release is None:
            return Charged()
        entry = self.entry(promise, copies, description)
        if self.new:  # what a new budget could not bear must not leave a new ledger behind
            Account(self.dataset, self.budget, (), Memory().lost(self.path, self.dataset)).admit(entry)
        ledger = Ledger(self.path, create=self.new)
        if self.new:
            budget = self.budget
            ledger.set_budget(self.dataset, budget.epsilon, budget.delta, budget.relation, budget.rule, budget.unit)
        receipt = ledger.charge(self.dataset, entry)
        return Charged(ledger, self.dataset, receipt.entry_id, receipt.said)
