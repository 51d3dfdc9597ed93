"""What releases cost together.

What happened is a frozen value (`Entry`); what it costs is computed from such values and never stored, so a sharper
composition helps old ledgers too. Nothing here knows about files.

**Relations.** Totals under add/remove count add/remove promises only. Totals under replace-one count all that compose:
add/remove promises are converted, which is always possible; the other way is not.

**Adaptivity.** A release may depend on the outputs of earlier ones; the numbers in its promise may not. Plain sums hold
even if those were chosen after looking at earlier outputs, the sharper composition is proved for numbers fixed before.

**What a number means.** Whoever writes 0.02 means two hundredths, not the binary number just above them, and expects
fifty such releases to fit a budget of 1. So a number that has at most 15 digits in its shortest decimal form is read
as that decimal: it is what was typed, and what a certificate prints. Every other number was computed, and is read as
its exact binary value. Readings are added as fractions, without rounding, and a total becomes the least number whose
reading is not below it. Readings keep the order of the numbers, hence a sum of readings is within the reading of the
budget exactly if the number made from it is at most the budget. All that is not a plain sum (a sampled crowd, the
sharper composition of points at δ > 0) comes rounded up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from incrowd.errors import BudgetError, RelationError, UnreachableError
from incrowd.guarantees.profile import ApproximateDP, PrivacyProfile, Relation, compose
from incrowd.releases.entries import LARGEST_EPSILON, ONE_SAMPLE_ONE_RELEASE, Budget, Entry, Parts

DELTA_FOR_CROWDS = 1e-6
"""The δ at which sampled crowds are added up if neither a budget nor the caller names one."""

# --- numbers as they are meant ----------------------------------------------------------------------------------


def meaning(number: float) -> Fraction:
    """The number as it is read: a short decimal as written, any other as the binary fraction it is."""
    written = Decimal(repr(number))
    return Fraction(written) if len(written.normalize().as_tuple().digits) <= 15 else Fraction(number)


def at_least(total: Fraction) -> float:
    """The least number whose meaning is not below `total`."""
    number = float(total)
    return number if meaning(number) >= total else math.nextafter(number, math.inf)


def at_most(total: Fraction) -> float:
    """The greatest number whose meaning is not above `total`."""
    number = float(total)
    return number if meaning(number) <= total else math.nextafter(number, -math.inf)


def remaining(budget: float, spent: float) -> float:
    """What is left, rounded down; nothing if more was spent."""
    return 0.0 if spent >= budget else at_most(meaning(budget) - meaning(spent))


# --- what releases cost -----------------------------------------------------------------------------------------


def spent(entries: Iterable[Entry], relation: Relation, delta: float) -> float:
    """The least ε known with which all these entries together are (ε,δ)-DP, rounded up; infinite if there is none.

    Promises that do not compose are left out, and so are, under add/remove, those about replacing a record.
    """
    parts = _parts(entries, relation)
    return min(_added(parts, delta), _composed(parts, delta))


def counted(entries: Iterable[Entry], relation: Relation) -> tuple[Entry, ...]:
    """Those that a total under this relation counts."""
    return tuple(e for e in entries if e.composes and relation in (e.relation, Relation.REPLACE_ONE))


def natural_delta(entries: Iterable[Entry], relation: Relation) -> float:
    """A δ to add up at if none is given: that of the points together, and a little for sampled crowds."""
    parts = _parts(entries, relation)
    points = sum((meaning(p.at_delta) for p in parts if isinstance(p, ApproximateDP)), Fraction(0))
    crowds = meaning(DELTA_FOR_CROWDS) if any(not isinstance(p, ApproximateDP) for p in parts) else 0
    return min(at_least(points + crowds), math.nextafter(1.0, 0.0))


def _parts(entries: Iterable[Entry], relation: Relation) -> Parts:
    """The profiles to compose, in an order that does not depend on that of the entries."""
    found = Counter[PrivacyProfile]()
    for entry in counted(entries, relation):
        for part in entry.promise.parts(relation):
            found[part] += entry.copies
    return tuple(part for part in sorted(found, key=repr) for _ in range(found[part]))


def _added(parts: Parts, delta: float) -> float:
    """ε's and δ's added. Points bring their own δ, crowds share evenly what is left of it."""
    times = Counter(parts)
    points = {p: n for p, n in times.items() if isinstance(p, ApproximateDP)}
    crowds = {p: n for p, n in times.items() if p not in points}
    left = meaning(delta) - sum(n * meaning(p.at_delta) for p, n in points.items())
    if left < 0:
        return math.inf
    total = sum((n * meaning(p.at_epsilon) for p, n in points.items()), Fraction(0))
    if crowds:
        share = math.nextafter(float(left / sum(crowds.values())), 0.0)
        try:
            total += sum(n * Fraction(p.epsilon(share)) for p, n in crowds.items())
        except UnreachableError:
            return math.inf
    return at_least(total)


@lru_cache(maxsize=64)
def _composed(parts: Parts, delta: float) -> float:
    """The same through privacy profiles: slower, and often less. A pure function, so its values may be kept.

    It only ever improves on adding up. Where it has nothing to say, be it that its numerical library fails, the sum
    stands.
    """
    if delta == 0.0 and parts:
        return math.inf  # adding up is exact there
    try:
        return parts[0].epsilon(delta) if len(parts) == 1 else compose(parts).epsilon(delta, LARGEST_EPSILON)
    except (UnreachableError, ArithmeticError, LookupError, ValueError):
        return math.inf


# --- what may be spent ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Account:
    """All that a decision about a dataset depends on."""

    dataset: str
    budget: Budget | None
    entries: tuple[Entry, ...]

    @property
    def is_used_sample(self) -> bool:
        """The table is itself a sample and has served its one release."""
        return any(e.already_a_sample for e in self.entries)

    def admit(self, entry: Entry) -> None:
        """Return if the entry may be added; raise otherwise.

        Raises:
            BudgetError: it would overspend the budget or use a sample again.
            RelationError: it is about replacing a record, the budget about adding or removing one.
        """
        self._check_samples(entry)
        if self.budget is None or not entry.composes:
            return
        self._check_relation(self.budget, (entry,))
        if not _fits((*self.entries, entry), self.budget):
            raise self._overspent(entry, self.budget)

    def admit_budget(self, budget: Budget) -> None:
        """Return if the budget covers what was spent already; raise otherwise.

        Raises:
            BudgetError: more was spent.
            RelationError: releases about replacing a record cannot be counted under adding or removing one.
        """
        self._check_relation(budget, self.entries)
        if not _fits(self.entries, budget):
            before = spent(self.entries, budget.relation, budget.delta)
            raise BudgetError(
                f"A budget of {budget} is less than what the releases of {self.dataset!r} have spent"
                f"{'' if before == math.inf else f': {before:g}'}.",
                code="budget-below-spent",
                remedy="What was published cannot be taken back. Set a budget of at least what was spent.",
                details={"spent": finite(before), "budget": budget.epsilon, "delta": budget.delta},
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

    def _overspent(self, entry: Entry, budget: Budget) -> BudgetError:
        requested, before, after = (
            spent(entries, budget.relation, budget.delta)
            for entries in ((entry,), self.entries, (*self.entries, entry))
        )
        left = remaining(budget.epsilon, before)
        details = {"requested": requested, "remaining": left, "before": before, "after": after}
        if after == math.inf:
            message = (
                f"At the delta of the budget of {self.dataset!r}, {budget}, no epsilon covers this release"
                f"{'' if requested == math.inf else ' together with the earlier ones'}; {left:g} remains."
            )
        else:
            excess = details["excess"] = at_least(meaning(after) - meaning(budget.epsilon))
            message = (
                f"The release asks for epsilon = {requested:g}, and {left:g} remains of the budget of "
                f"{self.dataset!r}, {budget}. It would raise what is spent from {before:g} to {after:g}: "
                f"{excess:g} too much."
            )
        return BudgetError(
            message,
            code="budget-overspent",
            remedy="Ask for less, or raise the budget. Nothing was recorded.",
            details={
                **{name: finite(value) for name, value in details.items()},
                "budget": budget.epsilon,
                "delta": budget.delta,
                "relation": str(budget.relation),
            },
        )


def _fits(entries: Iterable[Entry], budget: Budget) -> bool:
    """Plain addition first: it is quick, and if it fits there is no need for more."""
    parts = _parts(entries, budget.relation)
    return _added(parts, budget.delta) <= budget.epsilon or _composed(parts, budget.delta) <= budget.epsilon


def finite(number: float) -> float | None:
    """The number as JSON can hold it: there is none for infinity."""
    return number if math.isfinite(number) else None
