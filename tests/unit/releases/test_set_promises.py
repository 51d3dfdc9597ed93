"""Sets of views, and crowds after a noisy choice, as a ledger counts them: with the profile of the whole."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.errors import BudgetError
from incrowd.mechanisms.promises import (
    Budget,
    ConcentratedPromise,
    CrowdPromise,
    Entry,
    Point,
    Rule,
    ViewsPromise,
    as_unit,
)
from incrowd.releases.rules import counting, settled, units_for
from incrowd.theory.filters import OrderFilter
from incrowd.theory.profile import ApproximateDP, Relation, compose
from incrowd.theory.zcdp import BoundedRange, ZeroConcentrated

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
VIEWS = ViewsPromise(16, 0.15, 17, 8, 0.035, 1e-6)  # (1, 1e-6)-DP
NOISE = ConcentratedPromise(0.024, 1e-6)  # (1, 1e-6)-DP
TREE = ConcentratedPromise(0.008, 1e-6, 23, 0.35)  # (1, 1e-6)-DP
BESIDE = ViewsPromise(16, 0.125, 14, 14, 0.0267, 1e-6, 7, 0.0529)  # (1, 1e-6)-DP
GAUSSIAN = ViewsPromise(16, 0.125, 14, 14, 0.0267, 1e-6, 7, variance=370)  # (1, 1e-6)-DP
SETS = [VIEWS, NOISE, TREE, BESIDE, GAUSSIAN]


@pytest.mark.parametrize("promise", SETS)
def test_an_entry_comes_back_as_it_was(promise):
    entry = Entry("views", promise)
    assert Entry.from_dict(json.loads(json.dumps(entry.to_dict()))) == entry


def test_a_set_without_noisy_tables_is_written_as_it_was_before_there_were_any():
    assert Entry("views", VIEWS).to_dict()["promise"] == {
        "kind": "views",
        "k": 16,
        "beta": 0.15,
        "samples": 17,
        "choices": 8,
        "exponent": 0.035,
        "delta": 1e-6,
    }


@pytest.mark.parametrize("promise", SETS)
def test_a_sum_counts_the_epsilon_of_the_whole_at_its_delta(promise):
    cost = counting(settled(Budget(3, 1e-5, ADD))).cost(Entry("views", promise))
    assert 0.9 < cost["epsilon"] <= 1.0
    assert cost["delta"] == 1e-6
    assert promise.whole.delta(cost["epsilon"]) <= 1e-6
    twice = counting(settled(Budget(3, 1e-5, ADD))).cost(Entry("views", promise, copies=2))
    assert cost["epsilon"] < twice["epsilon"] < 1.7 * cost["epsilon"]
    assert twice["delta"] == 2e-6
    # By replacing: twice the point, at the most, whose delta is larger.
    replaced = counting(settled(Budget(9, 1e-4, REPLACE))).cost(Entry("views", promise))
    assert cost["epsilon"] < replaced["epsilon"] < 2.2


@pytest.mark.parametrize("promise", SETS)
def test_an_order_counts_a_set_as_far_less_than_its_point(promise):
    rule = counting(settled(Budget(3, 1e-5, ADD, Rule.ORDER)))
    found, point = (rule.cost(Entry("views", p)) for p in (promise, Point(1.0, 1e-6, ADD)))
    for name in ("removal_kappa", "addition_kappa"):
        assert found[name] < 0.4 * point[name]
    assert all(found[name] <= 0.5 * point[name] for name in ("removal_delta", "addition_delta"))
    assert rule.fits([found] * 4)
    assert not rule.fits([point] * 3)


def test_the_order_cost_of_zcdp_is_that_of_a_gaussian():
    """E[e^{λL}] of a Gaussian with μ²/2 = ρ, by quadrature."""
    order, rho = 3.0, 0.05
    found = OrderFilter(order, 10.0, 1e-6).costs(ZeroConcentrated(Fraction(rho)))
    z, weights = np.polynomial.hermite_e.hermegauss(60)
    loss = rho + math.sqrt(2 * rho) * z
    assert found[0].kappa == pytest.approx(math.log(weights @ np.exp(order * loss) / weights.sum()), rel=1e-9)
    assert found[0].delta == found[1].delta == 0.0


def test_replacing_moves_a_choice_within_twice_its_range():
    """The exponential mechanism on three candidates, whose scores a removal lowers and an addition raises by 0 to 1."""
    e = 0.6
    worst = 0.0
    for gone in np.ndindex(2, 2, 2):
        for new in np.ndindex(2, 2, 2):
            weights = [np.exp(e * s) for s in (np.array([1.0, 2.0, 0.5]), np.array([1.0, 2.0, 0.5]) - gone + new)]
            p, q = (w / w.sum() for w in weights)
            for epsilon in (0.0, 0.2, 0.5, 0.9):
                found = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
                stated = BoundedRange(Fraction(2 * e), REPLACE).delta(epsilon)
                assert found <= stated + 1e-12
                worst = max(worst, found / stated if stated else 0.0)
    assert worst > 0.7
    part = ViewsPromise(16, 0.15, 1, 1, e, 1e-6).parts(REPLACE)[-1]
    assert part == BoundedRange(2 * Fraction(e), REPLACE)


def test_replacing_a_record_of_a_table_with_gaussian_noise_moves_two_counts():
    alone = [promise.parts(REPLACE) for promise in (GAUSSIAN, ViewsPromise(16, 0.125, 14, 14, 0.0267, 1e-6))]
    assert len(alone[0]) - len(alone[1]) == 14
    [part] = set(alone[0]) - set(alone[1])
    together, x = compose([part] * 2), np.arange(-400, 401)
    law = np.exp(-(x**2) / (2 * 370))
    law /= law.sum()
    for epsilon in (0.0, 0.1, 0.3):
        p, q = np.outer(np.roll(law, 1), law), np.outer(law, np.roll(law, 1))
        found = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
        assert found <= together.delta(epsilon) < 1.02 * found + 1e-9


def test_units_are_the_crowds_of_a_set():
    def units(unit, promise):
        return units_for(as_unit(unit, ADD), promise)

    assert units("k=16,beta=0.15,selection_epsilon=0.04", VIEWS) == 17
    assert units("k=16,beta=0.15", ViewsPromise(16, 0.15, 4, 0, 0.0, 1e-6)) == 4
    assert units("k=16,beta=0.15", VIEWS) is None  # whose choices a unit does not allow for
    assert units("k=17,beta=0.15,selection_epsilon=0.04", VIEWS) is None
    assert units("k=16,beta=0.15,selection_epsilon=0.04", NOISE) is None
    assert units("epsilon=1,delta=1e-6", VIEWS) is None
    rule = counting(Budget(9, 1e-4, ADD, Rule.UNIT, as_unit("k=16,beta=0.15", ADD), {"units": 100}))
    assert rule.cost(Entry("views", ViewsPromise(16, 0.15, 4, 0, 0.0, 1e-6), copies=2))["units"] == 8
    assert units("k=16,beta=0.125,selection_epsilon=0.06", BESIDE) == 21  # a table is paid for as a choice is
    assert units("k=16,beta=0.125,selection_epsilon=0.05", BESIDE) is None
    assert units("k=16,beta=0.125,selection_epsilon=0.06", GAUSSIAN) is None  # whose δ is never nothing
    with pytest.raises(BudgetError, match="cannot be measured"):
        rule.cost(Entry("views", VIEWS))
    # What is charged covers it.
    units = compose(as_unit("k=16,beta=0.15,selection_epsilon=0.04", ADD).parts(ADD) * 17)
    for epsilon in (0.3, 0.8, 1.5):
        assert VIEWS.whole.delta(epsilon) <= units.delta(epsilon)


def test_a_crowd_after_a_choice_is_within_its_parts_and_above_the_crowd():
    parts = compose(TREE.parts(ADD))
    for epsilon in (0.5, 1.0):
        joined = TREE.whole.delta(epsilon)
        assert CrowdPromise(23, 0.35).parts(ADD)[0].delta(epsilon) < joined < parts.delta(epsilon) * 1.01


def test_laplace_counts_are_pure():
    from incrowd.mechanisms.views.section import Views
    from incrowd.mechanisms.views.settle import ViewsSettled, planned, spending

    section = Views(mechanism="views", epsilon=1, delta=1e-6, by="noise", views=[["a"]], combine="none")
    plan = planned(section, 1, 0)
    found = spending(ViewsSettled(plan, "noise", None, ("a",), (), (), {}, False, None))
    assert isinstance(found, Point)
    assert found.delta == 0.0
    assert 0.999 < found.epsilon <= 1.0
    assert isinstance(plan.profile, ApproximateDP)
