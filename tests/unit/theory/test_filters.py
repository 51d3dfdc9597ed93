"""The order filter: its numbers against closed forms and the pairs themselves."""

import math

import numpy as np
import pytest

from incrowd.theory.crowd import CrowdProfile
from incrowd.theory.filters import OrderFilter, _integral, _kappa, _kappa_of_point
from incrowd.theory.profile import ApproximateDP, PrivacyProfile, Relation

ADD = Relation.ADD_REMOVE


def moment(pair, order):
    """E_P[e^{λL}], outcome by outcome."""
    return sum(p * (p / q) ** order for p, q in pair if p > 0)


def divergence(pair, epsilon):
    return sum(max(0.0, p - math.exp(epsilon) * q) for p, q in pair)


def grid(pair, reach, points=4000):
    step = reach / points
    forward = np.array([divergence(pair, i * step) for i in range(points + 1)])
    backward = np.array([divergence([(q, p) for p, q in pair], i * step) for i in range(points + 1)])
    return forward, backward, step


@pytest.mark.parametrize("order", [0.5, 1.0, 3.0, 20.0])
@pytest.mark.parametrize(
    "pair", [[(0.7, 0.3), (0.3, 0.7)], [(0.5, 0.4), (0.3, 0.35), (0.2, 0.25)], [(1.0, 0.5), (0.0, 0.5)]]
)
def test_kappa_is_that_of_the_pair(pair, order):
    """Without a cut: from above, and close."""
    reach = 1.01 * max(math.log(p / q) for p, q in pair if p)
    forward, backward, step = grid(pair, reach)
    found, exact = _kappa(order, forward, backward, 0.0, step), math.log(moment(pair, order))
    assert exact <= found <= exact * (1 + 1e-3) + 1e-9


@pytest.mark.parametrize("order", [0.5, 2.0, 8.0])
def test_kappa_of_a_point_is_that_of_randomised_response(order):
    for epsilon in (0.01, 0.5, 2.0):
        yes = 1 / (1 + math.exp(-epsilon))
        exact = math.log(moment([(yes, 1 - yes), (1 - yes, yes)], order))
        assert exact <= _kappa_of_point(order, epsilon) <= exact + 1e-14 * (1 + order * epsilon)
    assert _kappa_of_point(order, 0.0) == 0.0


def test_integrals_of_chords_are_exact():
    """A line in e^ε is its own chord: ∫ e^{aε}(c − e^ε)⁺ dε has a closed form."""
    top, points = 2.0, 50
    step = math.log(top) / points
    line = np.array([max(0.0, top - math.exp(i * step)) for i in range(points + 1)])
    for rate in (3.0, 0.5, -1.5, -4.0):
        exact = top * (top**rate - 1) / rate - (top ** (rate + 1) - 1) / (rate + 1)
        assert _integral(line, 0.0, rate, step) == pytest.approx(exact, rel=1e-9)
    flat = np.full(3, 0.25)
    assert _integral(flat, 0.0, -2.0, 0.1) == pytest.approx(0.125, rel=1e-9)  # and beyond the last point
    assert _integral(flat, 0.25, 60.0, 10.0) == 0.0


def test_a_cut_crowd_costs_at_least_its_moments():
    """Every pair of neighbouring cells of a small crowd, cut as the filter cuts it."""
    k, beta = 3, 0.2
    found = OrderFilter.within(2.0, 1e-2)
    costs = found.costs(CrowdProfile(k, beta))

    def law(n):
        once = np.array([math.comb(n, j) * beta**j * (1 - beta) ** (n - j) for j in range(41)])
        once[0], once[1:k] = once[:k].sum(), 0.0
        return once

    for n in range(1, 40):
        larger, smaller = law(n), law(n - 1)
        for (p, q), cost in zip(((larger, smaller), (smaller, larger)), costs, strict=True):
            aside = np.maximum(0.0, p - q * _cut_ratio(p, q, cost.delta))
            assert aside.sum() <= cost.delta * (1 + 1e-9)
            kept = p - aside
            some = kept > 0
            assert math.log(float(np.sum(kept[some] * (kept[some] / q[some]) ** found.order))) <= cost.kappa + 1e-9


def _cut_ratio(p, q, eta):
    """The ratio at which to cut so that the mass η is set aside."""
    low, high = 1.0, 1e12
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if np.maximum(0.0, p - q * middle).sum() <= eta else (middle, high)
    return high


def test_the_bound_is_the_budget():
    """At its limits the filter promises just the declared ε, rounded outwards."""
    for epsilon, delta in ((1.0, 1e-5), (0.1, 1e-9), (20.0, 0.01)):
        found = OrderFilter.within(epsilon, delta)
        constant = found.order**found.order / (1 + found.order) ** (1 + found.order) if found.order < 100 else None
        if constant is not None:
            assert found.delta + constant * math.exp(found.kappa - found.order * epsilon) <= delta
        assert found.epsilon(found.kappa, found.delta, delta) == pytest.approx(epsilon, rel=1e-9)
        assert found.epsilon(found.kappa / 2, found.delta, delta) < epsilon
        assert found.epsilon(found.kappa, delta, delta) == math.inf


def test_both_directions_are_counted():
    """A crowd is not symmetric: what a removal costs is not what an addition costs."""
    removal, addition = OrderFilter.within(2.0, 1e-5).costs(CrowdProfile(17, 0.3))
    assert removal.kappa != addition.kappa
    assert removal.delta > addition.delta

    class Turned(PrivacyProfile):
        relation = ADD
        removal = staticmethod(CrowdProfile(17, 0.3).addition)
        addition = staticmethod(CrowdProfile(17, 0.3).removal)

    assert OrderFilter.within(2.0, 1e-5).costs(Turned()) == (addition, removal)


def test_points_cost_their_delta():
    removal, addition = OrderFilter.within(2.0, 1e-5).costs(ApproximateDP(0.5, 1e-7, ADD))
    assert removal == addition
    assert removal.delta == 1e-7
