"""The rules by which releases are counted against a budget.

A ledger is used one release after another, and each may be chosen in view of all earlier outputs. Adding up privacy
profiles numerically is not proved for that, and would be wrong. A budget names one of three rules that are
(`docs/proofs.md`), before its first release; taking the best of them afterwards would not be:

- `sum`: every release has its own ε and δ, fixed when it is charged. They add up.
- `order`: an order filter (`guarantees/filters.py`), whose numbers follow from the budget.
- `unit`: releases are measured in units of one release that is named beforehand. The budget is worth N units: as many
  as composed numerically stay within it. A release costs one unit if the unit dominates it.

The copies of one release are declared at once: they are one plan, and one entry.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from incrowd.core.errors import BudgetError, InputError, UnreachableError
from incrowd.mechanisms.promises import (
    LARGEST_EPSILON,
    MOST_COPIES,
    Budget,
    ConcentratedPromise,
    CrowdPromise,
    Entry,
    Parts,
    Point,
    Promise,
    Rule,
    ViewsPromise,
    parameters_of,
)
from incrowd.releases.costs import added_parts, at_least, meaning, parts_of, planned_parts, remaining
from incrowd.theory.filters import OrderFilter
from incrowd.theory.profile import ApproximateDP, Relation

DELTA_FOR_CROWDS = 1e-6
"""The δ of a sampled crowd that states none; at most that of the budget."""

Costs = Sequence[Mapping[str, Any]]


class Counting(ABC):
    """A budget's rule at work. Costs are plain numbers by name, as a ledger keeps them."""

    numbers: ClassVar[tuple[str, ...]]
    """The names of what a cost holds, beside rule and relation."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def cost(self, entry: Entry) -> Mapping[str, Any]:
        """What an entry costs: as it was fixed when it was charged, else computed."""
        budget, kept = self.budget, entry.cost
        if kept is not None and (kept["rule"], kept["relation"]) == (budget.rule, budget.relation):
            return self.still_valid(kept)
        return {"rule": str(budget.rule), "relation": str(budget.relation), **self.price(entry)}

    def still_valid(self, cost: Mapping[str, Any]) -> Mapping[str, Any]:
        """A cost that was fixed by this rule, if it was by the same numbers."""
        return cost

    @abstractmethod
    def price(self, entry: Entry) -> dict[str, float]:
        """The numbers of this rule for an entry that composes."""

    @abstractmethod
    def fits(self, costs: Costs) -> bool:
        """Whether all of this may be spent."""

    @abstractmethod
    def spent(self, costs: Costs) -> tuple[float, float]:
        """What that comes to, as an ε and a δ."""

    def left(self, costs: Costs) -> dict[str, float]:
        """What may still be spent."""
        return {"epsilon": remaining(self.budget.epsilon, self.spent(costs)[0]), "delta": self.budget.delta}


class SumRule(Counting):
    """Plain sums, which hold whatever the next ε and δ are made to depend on."""

    numbers = ("epsilon", "delta")

    def price(self, entry: Entry) -> dict[str, float]:
        """The ε at the release's own δ, that of all its copies together."""
        if isinstance(entry.promise, ViewsPromise | ConcentratedPromise):
            return self._price_of_set(entry, entry.promise)
        relation = self.budget.relation
        parts = parts_of((entry,), relation)
        delta = at_least(self._own_delta(entry.promise, entry.copies))
        alone = entry.copies == 1 and relation is entry.relation
        return {"epsilon": added_parts(parts, delta) if alone else planned_parts(parts, delta), "delta": delta}

    def _price_of_set(self, entry: Entry, promise: ViewsPromise | ConcentratedPromise) -> dict[str, float]:
        """The ε of the whole at its own δ, which is known better than its parts added up."""
        relation, copies = self.budget.relation, entry.copies
        one = added_parts((promise.whole,), promise.delta)
        if not one <= LARGEST_EPSILON:
            return {"epsilon": math.inf, "delta": promise.delta}
        (point,) = (
            p for p in Point(one, promise.delta, promise.relation).parts(relation) if isinstance(p, ApproximateDP)
        )
        delta = at_least(min(copies * meaning(point.at_delta), Fraction(math.nextafter(1.0, 0.0))))
        epsilon = at_least(copies * meaning(point.at_epsilon))
        if copies > 1 or relation is not promise.relation:
            epsilon = min(epsilon, planned_parts(parts_of((entry,), relation), delta))
        return {"epsilon": epsilon, "delta": delta}

    def _own_delta(self, promise: Promise, copies: int) -> Fraction:
        if isinstance(promise, CrowdPromise):
            if promise.delta is None:
                return min(meaning(DELTA_FOR_CROWDS), meaning(self.budget.delta))
            own = meaning(promise.delta)
        else:
            points = (p for p in promise.parts(self.budget.relation) if isinstance(p, ApproximateDP))
            own = sum((meaning(p.at_delta) for p in points), Fraction(0))
        return min(copies * own, Fraction(math.nextafter(1.0, 0.0)))

    def fits(self, costs: Costs) -> bool:
        epsilon, delta = self.spent(costs)
        return epsilon <= self.budget.epsilon and delta <= self.budget.delta

    def spent(self, costs: Costs) -> tuple[float, float]:
        if any(math.isinf(cost["epsilon"]) for cost in costs):
            return math.inf, at_least(_total(costs, "delta"))
        return at_least(_total(costs, "epsilon")), at_least(_total(costs, "delta"))

    def left(self, costs: Costs) -> dict[str, float]:
        epsilon, delta = self.spent(costs)
        return {"epsilon": remaining(self.budget.epsilon, epsilon), "delta": remaining(self.budget.delta, delta)}


class Orders(Counting):
    """An order filter in each direction."""

    numbers = ("order", "removal_kappa", "removal_delta", "addition_kappa", "addition_delta")

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        self.filter = OrderFilter(**budget.terms)

    def price(self, entry: Entry) -> dict[str, float]:
        """κ and the mass set aside, of all parts and copies, in both directions."""
        total = dict.fromkeys(self.numbers[1:], Fraction(0))
        for part in entry.promise.parts(self.budget.relation):
            for direction, cost in zip(("removal", "addition"), self.filter.costs(part), strict=True):
                if math.isinf(cost.kappa):
                    raise self._beyond()
                total[f"{direction}_kappa"] += entry.copies * Fraction(cost.kappa)
                # That of a point was written down, that of a crowd computed: neither reading is fallen short of.
                total[f"{direction}_delta"] += entry.copies * max(Fraction(cost.delta), meaning(cost.delta))
        return {"order": self.filter.order, **{name: at_least(value) for name, value in total.items()}}

    def still_valid(self, cost: Mapping[str, Any]) -> Mapping[str, Any]:
        """κ of another order says nothing about this one."""
        if cost["order"] != self.filter.order:
            raise InputError(
                "A release was counted by another order than that of the budget in force.",
                code="ledger-invalid",
                remedy="Bring back the latest copy of the ledger: incrowd never changes the order of a budget in use.",
            )
        return cost

    def _beyond(self) -> BudgetError:
        return BudgetError(
            f"The release is beyond what a budget of {self.budget} can count.",
            code="budget-overspent",
            remedy="Ask for less. Nothing was recorded.",
        )

    def fits(self, costs: Costs) -> bool:
        """In both directions, neither budget of the filter is exceeded."""
        return all(
            _total(costs, f"{direction}_kappa") <= Fraction(self.filter.kappa)
            and _total(costs, f"{direction}_delta") <= Fraction(self.filter.delta)
            for direction in ("removal", "addition")
        )

    def spent(self, costs: Costs) -> tuple[float, float]:
        """The ε at the budget's δ that the filter would have promised, had just that been its budget."""
        at = self.budget.delta
        if not costs:
            return 0.0, at
        kappa, cut = (
            max(at_least(_total(costs, f"{direction}_{what}")) for direction in ("removal", "addition"))
            for what in ("kappa", "delta")
        )
        return self.filter.epsilon(kappa, cut, at), at


class Units(Counting):
    """Releases measured in units of one named beforehand."""

    numbers = ("units",)

    def price(self, entry: Entry) -> dict[str, float]:
        """One unit for each copy, or for each crowd of a set of views.

        Raises:
            BudgetError: it is not proved that so many units dominate the release.
        """
        unit = self.budget.unit
        each = None if unit is None else units_for(unit, entry.promise)
        if each is None:
            raise BudgetError(
                f"The release cannot be measured in the unit of the budget{_named(unit)}.",
                code="budget-unit",
                remedy="A release fits the unit if it is of the same kind, and no parameter promises less: a crowd of "
                "at least k at a rate of at most beta, with at most rows_per_person, chosen with at most "
                "selection_epsilon. Nothing was recorded.",
            )
        return {"units": each * entry.copies}

    def fits(self, costs: Costs) -> bool:
        return self._used(costs) <= self.budget.terms["units"]

    def spent(self, costs: Costs) -> tuple[float, float]:
        budget = self.budget
        return planned_parts(_units(budget, self._used(costs)), budget.delta), budget.delta

    def left(self, costs: Costs) -> dict[str, float]:
        return {**super().left(costs), "units": self.budget.terms["units"] - self._used(costs)}

    @staticmethod
    def _used(costs: Costs) -> int:
        return sum(int(cost["units"]) for cost in costs)


_COUNTING: dict[Rule, type[Counting]] = {Rule.SUM: SumRule, Rule.ORDER: Orders, Rule.UNIT: Units}


def counting(budget: Budget) -> Counting:
    """The budget's rule."""
    return _COUNTING[budget.rule](budget)


def require_cost(cost: Mapping[str, Any]) -> None:
    """A cost that can be counted, or a ValueError (or KeyError): one read from a file may hold anything."""
    Relation(cost["relation"])
    for name in _COUNTING[Rule(cost["rule"])].numbers:
        if not (type(cost[name]) in (int, float) and 0 <= cost[name] < math.inf):
            raise ValueError(name)


def sums(relation: Relation) -> Counting:
    """How releases are counted where no budget says it: each at its own δ."""
    return SumRule(Budget(0.0, 0.999, relation))


def settled(budget: Budget) -> Budget:
    """The budget with the numbers that its rule derives from it.

    Raises:
        UnreachableError: the rule has nothing to spend.
    """
    if budget.rule is Rule.ORDER:
        found = OrderFilter.within(budget.epsilon, budget.delta)
        return replace(budget, terms={"order": found.order, "kappa": found.kappa, "delta": found.delta})
    return replace(budget, terms={"units": _most_units(budget)} if budget.rule is Rule.UNIT else {})


def dominates(unit: CrowdPromise | Point, promise: Promise) -> bool:
    """Whether it is proved that the promise's profile is at most the unit's, everywhere and in both directions.

    δ falls with k, rises with β and with the rows of a person, in each direction (`theory/crowd.py`); the profile
    of a point rises with both its numbers; a choice and a crowd are a product, and dominated if both factors are.
    """
    if isinstance(unit, CrowdPromise):
        if isinstance(promise, CrowdPromise):
            choice = promise.selection_epsilon <= unit.selection_epsilon
            fewer = promise.rows_per_person <= unit.rows_per_person
            return promise.k >= unit.k and promise.beta <= unit.beta and fewer and choice
        chosen = Point(unit.selection_epsilon, 0.0, Relation.ADD_REMOVE)
        return dominates(chosen, promise)
    return (
        isinstance(promise, Point)
        and promise.relation is unit.relation
        and promise.epsilon <= unit.epsilon
        and promise.delta <= unit.delta
    )


def units_for(unit: CrowdPromise | Point, promise: Promise) -> int | None:
    """With how many units it is proved that they dominate the promise; None if with none.

    A set of views is one crowd after another, with noisy tables and choices beside them: each crowd is dominated by a
    unit's, and each table and choice, whose profile is at most that of a point, by what a unit allows for choosing.
    Of tables with Gaussian noise that is not so: their δ is never nothing.
    """
    if not isinstance(promise, ViewsPromise):
        return 1 if dominates(unit, promise) else None
    if promise.tables and promise.variance:
        return None
    beside = max(promise.exponent if promise.choices else 0.0, promise.decay if promise.tables else 0.0)
    crowd = CrowdPromise(promise.k, promise.beta, beside)
    if not isinstance(unit, CrowdPromise) or not dominates(unit, crowd):
        return None
    return max(promise.samples, promise.choices + promise.tables)


def _units(budget: Budget, number: int) -> Parts:
    return () if budget.unit is None else budget.unit.parts(budget.relation) * number


def _most_units(budget: Budget) -> int:
    """As many units as composed stay within the budget."""

    def fits(number: int) -> bool:
        parts = _units(budget, number)
        added = added_parts(parts, budget.delta) <= budget.epsilon  # quick, and if it fits there is no need for more
        return added or planned_parts(parts, budget.delta) <= budget.epsilon

    if not _units(budget, 1) or not fits(1):
        raise UnreachableError(
            f"A budget of {budget} is not worth a single unit{_named(budget.unit)}.",
            code="unreachable",
            remedy="Name a unit that promises more, or raise the budget.",
        )
    low, high = 1, 2
    while high <= MOST_COPIES and fits(high):
        low, high = high, 2 * high
    high = min(high, MOST_COPIES + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _total(costs: Costs, name: str) -> Fraction:
    return sum((meaning(cost[name]) for cost in costs), Fraction(0))


def _named(unit: Promise | None) -> str:
    return "" if unit is None else f" ({parameters_of(unit)})"
