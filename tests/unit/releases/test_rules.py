"""Rules that hold for releases that are chosen one after another, and what they cost."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.errors import BudgetError, InputError, ParameterError, UnreachableError
from incrowd.mechanisms.promises import Budget, CrowdPromise, Entry, Point, Rule, Uncomposable, as_unit
from incrowd.releases import ledger as ledger_module
from incrowd.releases import rules
from incrowd.releases.accounts import Account
from incrowd.releases.costs import meaning
from incrowd.releases.ledger import Ledger
from incrowd.releases.rules import _most_units, counting, dominates, settled
from incrowd.theory.crowd import CrowdProfile
from incrowd.theory.filters import OrderCost, OrderFilter
from incrowd.theory.profile import Relation
from spending import spent

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def point(epsilon, delta=0.0, relation=ADD, **more):
    return Entry("m", Point(epsilon, delta, relation), **more)


def crowd(k=17, beta=0.3, selection_epsilon=0.0, delta=1e-6, **more):
    return Entry("m", CrowdPromise(k, beta, selection_epsilon, delta), **more)


def by(rule, epsilon, delta, relation=ADD, unit=None):
    return settled(Budget(epsilon, delta, relation, rule, None if unit is None else as_unit(unit, relation)))


# --- strategies -------------------------------------------------------------------------------------------------


def worst(admits, menu, epsilon, steps, taken=()):
    """The most that any strategy spends which takes up to so many releases, each admitted: δ at this ε, exactly.

    Each release is the worst of its kind: randomised response that fails with probability δ₀.
    """
    best = max(0.0, 1 - math.exp(epsilon))
    if steps == 0:
        return best
    for entry in menu:
        if not admits((*taken, entry)):
            continue
        e, d = entry.promise.epsilon, entry.promise.delta
        yes = 1 / (1 + math.exp(-e))
        after = [worst(admits, menu, epsilon - loss, steps - 1, (*taken, entry)) for loss in (e, -e)]
        best = max(best, d + (1 - d) * (yes * after[0] + (1 - yes) * after[1]))
    return best


def admitting(budget):
    def admits(entries):
        account = Account("d", budget, ())
        try:
            for entry in entries:
                account = Account("d", budget, (*account.entries, account.admit(entry)))
        except BudgetError:
            return False
        return True

    return admits


MENU = (point(0.8), point(0.0, 0.2189))


def test_the_old_rule_would_have_spent_more_than_the_budget():
    """What numerical composition admits, one after another, overspends: 0.2827 of 0.2191."""

    def composed(entries):
        return spent(entries, ADD, 0.2191) <= 1

    assert all(composed((MENU[0], second)) for second in MENU)
    assert worst(composed, MENU, 1.0, 2) == pytest.approx(0.2827, abs=5e-5)


def test_the_ledger_admits_neither_path_of_the_example(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("d", 1, 0.2191, ADD)
    ledger.charge("d", MENU[0])
    with pytest.raises(BudgetError):
        ledger.charge("d", MENU[0])
    ledger.charge("d", MENU[1])  # a sum of 0.8 and 0.2189, which fits whatever is chosen
    with pytest.raises(BudgetError):
        ledger.charge("d", MENU[1])


@pytest.mark.parametrize(
    ("budget", "menu"),
    [
        (by("sum", 1, 0.2191), MENU),
        (by("sum", 1, 0.3), (point(0.5, 0.1), point(0.25), point(0.0, 0.15))),
        (by("order", 2, 0.2191), (*MENU, point(0.3), point(0.5, 0.01))),
        (by("order", 3, 0.05), (point(0.8), point(0.2, 0.005), point(0.0, 0.01))),
        (by("unit", 1.2, 0.2, unit="epsilon=0.5,delta=0.02"), (point(0.5, 0.02), point(0.3), point(0.0, 0.02))),
    ],
)
def test_no_strategy_of_points_beats_a_rule(budget, menu):
    spent = worst(admitting(budget), menu, budget.epsilon, 3)
    assert 0 < spent <= budget.delta
    twice = Budget(budget.epsilon, budget.delta, ADD, budget.rule, budget.unit, dict(budget.terms))
    object.__setattr__(twice, "delta", 2.5 * budget.delta)  # a rule that lets too much through is noticed
    if budget.rule is Rule.SUM:
        assert worst(admitting(twice), menu, budget.epsilon, 3) > budget.delta


# --- what they cost ---------------------------------------------------------------------------------------------


def literal_order(number, delta):
    """The order filter as it is usually stated, with P[L > c] set aside, at the best λ and cut for so many."""
    profile, step = CrowdProfile(17, 0.3), 4e-3
    grid = np.arange(0, 8, step)
    right, left = (np.array([f(float(e)) for e in grid]) for f in (profile.removal, profile.addition))
    best = math.inf

    def masses(forward, backward):
        """Loss by loss, from chords in e^ε over the whole line."""
        curve = np.concatenate(((1 - np.exp(-grid[1:]) * (1 - backward[1:]))[::-1], forward))
        losses = np.concatenate((-grid[1:][::-1], grid))
        x = np.exp(losses)
        slope = np.diff(curve, append=curve[-1]) / np.diff(x, append=x[-1] + 1)
        weight = np.diff(slope, prepend=-1.0)  # of Q at each x
        return losses, np.maximum(0.0, weight * x)

    pairs = [masses(right, left), masses(left, right)]
    for order in (5.5, 6.5, 7.5, 9.0, 10.5, 12.5):
        for cut in np.linspace(0.4, 2.4, 26):
            kappa = aside = 0.0
            for losses, mass in pairs:
                below = losses <= cut
                kappa = max(kappa, math.log(float(np.sum(mass[below] * np.exp(order * losses[below])))))
                aside = max(aside, 1 - float(np.sum(mass[below])))
            if number * aside < delta:
                constant = order * math.log(order) - (1 + order) * math.log1p(order)
                best = min(best, (number * kappa + constant - math.log(delta - number * aside)) / order)
    return best


@pytest.mark.parametrize(
    ("number", "sums", "static", "order", "derived"),
    [
        (2, 1.56, 0.847, 1.04, 1.075),
        (5, 4.47, 1.137, 1.39, 1.55),
        (10, 9.82, 1.481, 1.76, 1.90),
        (20, 21.4, 1.998, 2.31, 2.44),
    ],
)
def test_what_n_crowds_need_by_each_rule(number, sums, static, order, derived):
    """At δ = 1e-5, k = 17, β = 0.3; the last column is what a budget must be, with all numbers derived from it."""
    plain = CrowdProfile(17, 0.3).epsilon(1e-5 / number)
    assert number * plain == pytest.approx(sums, rel=5e-3)
    composed = spent([crowd(delta=None)] * number, ADD, 1e-5)
    assert composed == pytest.approx(static, abs=1e-3)
    if number in (2, 20):
        assert literal_order(number, 1e-5) == pytest.approx(order, rel=0.02)
    unit = "k=17,beta=0.3"
    assert by("unit", round(composed + 1e-3, 3), 1e-5, unit=unit).terms["units"] == number
    with pytest.raises(UnreachableError) if number == 2 else pytest.raises(AssertionError):
        assert by("unit", 0.55 if number == 2 else composed - 1e-3, 1e-5, unit=unit).terms["units"] >= number
    for epsilon, fits in ((derived + 0.01, True), (derived - 0.01, False)):
        rule = counting(by("order", epsilon, 1e-5))
        costs = [rule.cost(crowd())] * number
        assert rule.fits(costs) is fits
        assert (rule.spent(costs)[0] <= epsilon) is fits
    rule = counting(by("order", derived + 0.01, 1e-5))
    together = rule.cost(crowd(copies=number))
    assert together["removal_kappa"] == pytest.approx(number * rule.cost(crowd())["removal_kappa"])
    assert together["addition_delta"] == pytest.approx(number * rule.cost(crowd())["addition_delta"])


def test_a_release_that_uses_the_whole_budget_fits(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    for name, entry, budget in (
        ("point", point(1.0, 1e-6), (1, 1e-6)),
        ("choice", crowd(18, 0.2, 0.1, 1e-6), (0.6, 1e-6)),
        ("copies", point(0.02, 1e-8, copies=50), (1, 5e-7)),
    ):
        ledger.set_budget(name, *budget, ADD)
        ledger.charge(name, entry)
        assert ledger.statement(name).spent.delta == budget[1]
        with pytest.raises(BudgetError):
            ledger.charge(name, entry)


@pytest.mark.parametrize(("k", "beta"), [(18, 0.2), (13, 0.3), (17, 0.3), (8, 0.1)])
def test_a_crowd_fits_a_budget_of_just_what_it_states(k, beta):
    for epsilon in (0.3, 0.5, 0.75, 1.0):
        delta = CrowdProfile(k, beta).delta(epsilon)
        price = counting(by("sum", epsilon, delta)).price(crowd(k, beta, delta=delta))
        assert price["epsilon"] <= epsilon


def test_copies_are_one_plan_and_are_charged_as_so_many():
    rule = counting(by("sum", 10, 1e-3))
    one, four, alone = (rule.price(crowd(copies=n)) for n in (1, 4, 1))
    assert one == alone
    assert four["delta"] == 4e-6
    assert one["epsilon"] < four["epsilon"] < 4 * one["epsilon"]
    assert four["epsilon"] == spent([crowd(copies=4)], ADD, 4e-6)
    assert counting(by("unit", 2, 1e-5, unit="k=17,beta=0.3")).price(crowd(copies=4)) == {"units": 4}


def test_every_rule_counts_under_replace_one():
    entries = (crowd(), point(0.1), point(0.2, 1e-7, REPLACE))
    for budget in (by("sum", 5, 1e-5, REPLACE), by("order", 5, 1e-5, REPLACE)):
        account = Account("d", budget, ())
        for entry in entries:
            account = Account("d", budget, (*account.entries, account.admit(entry)))
        other = counting(by(budget.rule, 5, 1e-5, ADD))
        for mine, theirs in (
            (account.entries[0].cost, other.cost(crowd())),
            (account.entries[1].cost, other.cost(point(0.1))),
        ):
            for name in mine:
                if name.endswith(("epsilon", "kappa")):
                    assert mine[name] > theirs[name]
    units = by("unit", 3, 1e-5, REPLACE, "k=17,beta=0.3")
    assert 1 <= units.terms["units"] < by("unit", 3, 1e-5, ADD, "k=17,beta=0.3").terms["units"]


# --- units ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "promise", "fits"),
    [
        ("k=17,beta=0.3", CrowdPromise(17, 0.3), True),
        ("k=17,beta=0.3", CrowdPromise(18, 0.29), True),
        ("k=17,beta=0.3", CrowdPromise(16, 0.1), False),
        ("k=17,beta=0.3", CrowdPromise(30, 0.31), False),
        ("k=17,beta=0.3", CrowdPromise(17, 0.3, 0.1), False),
        ("k=17,beta=0.3,selection_epsilon=0.1", CrowdPromise(17, 0.3, 0.1), True),
        ("k=17,beta=0.3,selection_epsilon=0.1", Point(0.1, 0.0, ADD), True),
        ("k=17,beta=0.3,selection_epsilon=0.1", Point(0.2, 0.0, ADD), False),
        ("k=17,beta=0.3,selection_epsilon=0.1", Point(0.1, 1e-9, ADD), False),
        ("k=17,beta=0.3", Point(0.1, 0.0, ADD), False),
        ("epsilon=0.1,delta=1e-6", Point(0.1, 1e-6, ADD), True),
        ("epsilon=0.1,delta=1e-6", Point(0.1, 2e-6, ADD), False),
        ("epsilon=0.1,delta=1e-6", Point(0.2, 0.0, ADD), False),
        ("epsilon=0.1,delta=1e-6", Point(0.1, 0.0, REPLACE), False),
        ("epsilon=0.1,delta=1e-6", CrowdPromise(50, 0.01), False),
        ("epsilon=0.1,delta=1e-6", Uncomposable("x"), False),
    ],
)
def test_a_unit_dominates_what_is_proved_and_nothing_else(unit, promise, fits):
    named = as_unit(unit, ADD)
    assert dominates(named, promise) is fits
    if fits and not isinstance(promise, Uncomposable):
        for epsilon in (0.0, 0.05, 0.3, 1.0, 3.0):
            for direction in ("removal", "addition"):
                worst_part = max(getattr(part, direction)(epsilon) for part in named.parts(ADD))
                for part in promise.parts(ADD):
                    assert getattr(part, direction)(epsilon) <= worst_part


def test_units_are_counted_and_what_is_none_is_refused(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    budget = ledger.set_budget("d", 1.2, 1e-5, ADD, "unit", as_unit("k=17,beta=0.3", ADD))
    number = budget.terms["units"]
    assert number == 5
    ledger.charge("d", crowd(20, 0.25, copies=2))
    with pytest.raises(BudgetError) as refused:
        ledger.charge("d", point(0.01))
    assert refused.value.code == "budget-unit"
    assert "the unit of the budget (k = 17, beta = 0.3)" in refused.value.message
    ledger.charge("d", crowd(copies=3))
    statement = ledger.statement("d").to_dict()
    assert (statement["rule"], statement["remaining"]["units"]) == ("unit", 0)
    assert statement["spent"]["epsilon"] == spent([crowd(copies=5)], ADD, 1e-5)
    assert [line["cost"] for line in statement["releases"]] == [{"units": 2}, {"units": 3}]
    with pytest.raises(BudgetError) as refused:
        ledger.charge("d", crowd())
    assert refused.value.code == "budget-overspent"


def test_so_many_units_as_fit_and_not_one_more(monkeypatch):
    unit = as_unit("epsilon=0.02,delta=0", ADD)
    assert _most_units(Budget(1, 0, ADD, Rule.UNIT, unit)) == 50
    assert _most_units(Budget(0.99, 0, ADD, Rule.UNIT, unit)) == 49
    with monkeypatch.context() as patch:
        patch.setattr(rules, "MOST_COPIES", 37)
        assert _most_units(Budget(1, 0, ADD, Rule.UNIT, unit)) == 37
    for nothing in ("epsilon=0,delta=0", "epsilon=2,delta=0"):
        with pytest.raises(UnreachableError):
            _most_units(Budget(1, 0, ADD, Rule.UNIT, as_unit(nothing, ADD)))


@pytest.mark.parametrize(
    "text", ["", "k=17", "k=x,beta=0.3", "beta=0.3", "epsilon=0.1", "k=17,beta=2", "k=17;beta=0.3"]
)
def test_units_that_are_none(text):
    with pytest.raises(ParameterError):
        as_unit(text, ADD)


def test_a_unit_goes_with_its_rule():
    for rule, unit in (("unit", None), ("sum", "k=17,beta=0.3"), ("order", "k=17,beta=0.3")):
        with pytest.raises(ParameterError):
            by(rule, 1, 1e-5, unit=unit)
    with pytest.raises(ParameterError):
        Budget(1, 0, ADD, "best")


# --- rules are fixed --------------------------------------------------------------------------------------------


def test_a_rule_is_fixed_with_the_first_release(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("d", 1, 1e-5, ADD)
    ledger.set_budget("d", 2, 1e-5, ADD, "order")  # nothing was released yet
    ledger.charge("d", Entry("m", Uncomposable("belief ratio of 3")))
    terms = ledger.set_budget("d", 3, 1e-5, ADD, "order").terms
    ledger.charge("d", crowd())
    ledger.set_budget("d", 3, 1e-5, ADD, "order")
    for change in (
        (3, 1e-5, ADD, "sum"),
        (4, 1e-5, ADD, "order"),
        (3, 2e-5, ADD, "order"),
        (3, 1e-5, REPLACE, "order"),
    ):
        with pytest.raises(BudgetError) as refused:
            ledger.set_budget("d", *change)
        assert refused.value.code == "budget-fixed"
    assert dict(ledger.budget("d").terms) == dict(terms)
    ledger.charge("e", point(0.1))
    with pytest.raises(BudgetError) as refused:  # counted as a sum so far
        ledger.set_budget("e", 3, 1e-5, ADD, "order")
    assert refused.value.code == "budget-fixed"
    ledger.set_budget("e", 3, 1e-5, ADD)
    ledger.set_budget("e", 4, 1e-5, ADD)


def test_an_order_budget_is_spent_and_then_refused(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("d", 1.56, 1e-5, ADD, "order")
    for _ in range(5):
        ledger.charge("d", crowd())
    with pytest.raises(BudgetError) as refused:
        ledger.charge("d", crowd())
    assert refused.value.code == "budget-overspent"
    assert refused.value.details["rule"] == "order"
    statement = ledger.statement("d")
    assert statement.spent.releases == 5
    assert 0 < statement.spent.epsilon <= 1.56
    assert statement.remaining == pytest.approx(1.56 - statement.spent.epsilon)
    with pytest.raises(BudgetError):
        ledger.charge("d", point(50.0))
    with pytest.raises(BudgetError):
        ledger.charge("d", point(0.0, 1e-5))


@pytest.mark.parametrize("rule", [{"rule": "order"}, {"rule": "unit", "unit": CrowdPromise(17, 0.3)}])
def test_a_budget_that_is_set_again_keeps_its_numbers(tmp_path, monkeypatch, rule):
    """Another version may derive others from the same budget; those of a budget in use are fixed."""
    ledger = Ledger(tmp_path / "ledger.db")
    before = ledger.set_budget("d", 2, 1e-5, ADD, **rule)
    ledger.charge("d", crowd())
    monkeypatch.setattr(ledger_module, "settled", lambda budget: replace(budget, terms={"other": 1}))
    again = ledger.set_budget("d", 2, 1e-5, ADD, **rule)
    assert again.terms == before.terms == ledger.budget("d").terms
    assert len(ledger.statement("d").budgets) == 1


def test_a_cost_by_another_order_is_not_counted():
    rule = counting(settled(Budget(2.0, 1e-5, ADD, Rule.ORDER)))
    cost = rule.cost(crowd())
    assert rule.cost(replace(crowd(), cost=cost)) == cost
    with pytest.raises(InputError) as caught:
        rule.cost(replace(crowd(), cost={**cost, "order": cost["order"] * 2}))
    assert caught.value.code == "ledger-invalid"


@pytest.mark.parametrize("rule", [{"rule": "sum"}, {"rule": "order"}, {"rule": "unit", "unit": CrowdPromise(17, 0.3)}])
def test_a_cost_that_cannot_be_counted_makes_a_ledger_invalid(tmp_path, rule):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("d", 2, 1e-5, ADD, **rule)
    entry = ledger.account("d").admit(crowd(delta=1e-6))
    spoiled = [{k: v for k, v in entry.cost.items() if k != name} for name in entry.cost]
    spoiled += [{**entry.cost, name: value} for name in entry.cost for value in (None, "x", -1, True, [])]
    for cost in spoiled:
        text = ledger_module._to_json(replace(entry, cost=cost).to_dict())
        with pytest.raises(InputError) as caught:
            ledger_module._from_json(ledger.path, text, ledger_module._entry)
        assert caught.value.code == "ledger-invalid"


def test_a_computed_part_that_is_set_aside_is_not_read_as_less(monkeypatch):
    """This number was computed, though its shortest decimal is short, and lies below it."""
    eta = next(x for x in (i / 1e9 for i in range(1, 99)) if Fraction(x) > meaning(x))
    rule = counting(settled(Budget(2.0, 1e-5, ADD, Rule.ORDER)))
    monkeypatch.setattr(OrderFilter, "costs", lambda *_: (OrderCost(0.1, eta),) * 2)
    price = rule.price(crowd(copies=3))
    assert meaning(price["removal_delta"]) >= 3 * Fraction(eta)
    assert meaning(price["addition_delta"]) >= 3 * Fraction(eta)


def test_sums_of_order_costs_are_exact():
    budget = by("order", 2, 1e-5)
    rule = counting(budget)
    whole = {f"{d}_{what}": 0.0 for d in ("removal", "addition") for what in ("kappa", "delta")}
    for name, most in (("kappa", budget.terms["kappa"]), ("delta", budget.terms["delta"])):
        for direction in ("removal", "addition"):
            full = {**whole, f"{direction}_{name}": most}
            assert rule.fits([full])
            assert not rule.fits([full, {**whole, f"{direction}_{name}": 1e-300}])
    assert Fraction(budget.terms["delta"]) <= Fraction(1e-5) / 4


def test_an_order_needs_a_delta_and_some_epsilon():
    for epsilon, delta in ((1, 0), (0, 1e-5)):
        with pytest.raises(UnreachableError):
            OrderFilter.within(epsilon, delta)
    assert OrderFilter.within(0.01, 1e-5).kappa > 0
