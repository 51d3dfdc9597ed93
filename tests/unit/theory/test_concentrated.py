"""A concentrated choice before a crowd: the certified program against quadrature and exact laws."""

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.errors import ParameterError
from incrowd.mechanisms.sampled_crowd.tree.plan import plan_tree
from incrowd.theory import concentrated, crowd
from incrowd.theory._persons import CellProfile
from incrowd.theory.concentrated import ChosenCrowd, charge, smallest_k, usual_crowd, usual_rho
from incrowd.theory.crowd import CrowdProfile


def real_profile(profile, t, direction):
    """δ of the crowd at any real t."""
    forward, backward = (profile.removal, profile.addition)[:: 1 if direction == "removal" else -1]
    return forward(t) if t >= 0 else 1 - math.exp(t) + math.exp(t) * backward(-t)


def after_gaussian(k, beta, rho, epsilon, direction):
    """E[δ₂(ε − L)] for the privacy loss of a Gaussian choice, L ~ N(ρ, 2ρ), by quadrature."""
    z, weights = np.polynomial.hermite_e.hermegauss(60)
    profile = CrowdProfile(k, beta)
    values = [real_profile(profile, epsilon - rho - math.sqrt(2 * rho) * x, direction) for x in z]
    return float(weights @ values / weights.sum())


@pytest.mark.parametrize(
    ("epsilon", "delta", "beta", "rho", "program", "gaussian", "alone"),
    [(1, 1e-6, 0.35, 0.008, 23, 22, 20), (2, 1e-5, 0.5, 0.04, 20, 19, 18)],
)
def test_the_choice_costs_two_or_three_of_k(epsilon, delta, beta, rho, program, gaussian, alone):
    """A coarser program gave `program`; no bound can beat the Gaussian choice, which is one of those allowed."""
    found = smallest_k(epsilon, delta, beta, rho)
    assert gaussian <= found <= program
    assert crowd.smallest_k(epsilon, delta, beta) == alone
    assert after_gaussian(gaussian, beta, rho, epsilon, "removal") <= delta
    assert after_gaussian(gaussian - 1, beta, rho, epsilon, "removal") > delta


@pytest.mark.parametrize("direction", ["removal", "addition"])
@pytest.mark.parametrize(
    ("k", "beta", "rho", "epsilon"),
    [(23, 0.35, 0.008, 1.0), (20, 0.5, 0.04, 2.0), (8, 0.1, 0.02, 0.3), (40, 0.6, 0.001, 0.0), (15, 0.4, 0.3, 4.0)],
)
def test_the_bound_lies_just_above_a_gaussian_choice(k, beta, rho, epsilon, direction):
    found = getattr(ChosenCrowd(k, beta, rho), direction)(epsilon)
    exact = after_gaussian(k, beta, rho, epsilon, direction)
    assert exact * (1 - 1e-6) <= found
    assert found <= max(3 * exact, 1e-2 * ChosenCrowd(k, beta, rho).removal(epsilon)) or direction == "addition"


@pytest.mark.parametrize("gap", [0.05, 0.12])
def test_the_bound_covers_randomised_response(gap):
    """A coin of (ε₀, 0)-DP is (ε₀²/2)-zCDP; its two losses are ±ε₀."""
    rho, k, beta, epsilon = gap**2 / 2, 20, 0.35, 0.8
    likely = 1 / (1 + math.exp(-gap))
    profile = CrowdProfile(k, beta)
    exact = likely * real_profile(profile, epsilon - gap, "removal") + (1 - likely) * real_profile(
        profile, epsilon + gap, "removal"
    )
    assert exact <= ChosenCrowd(k, beta, rho).removal(epsilon)


def test_a_bad_solution_of_the_program_is_put_right(monkeypatch):
    """Whatever the solver says, the inequalities are checked and what is missing is added."""
    honest = ChosenCrowd(21, 0.35, 0.008).removal(1.0)
    for wrong in (lambda orders, *_: [0.0] * len(orders), lambda orders, *_: [1e-9] * len(orders)):
        concentrated._joined.cache_clear()
        monkeypatch.setattr(concentrated, "_program", wrong)
        assert ChosenCrowd(21, 0.35, 0.008).removal(1.0) >= honest
    concentrated._joined.cache_clear()


def test_charges_are_rounded_up():
    assert charge(Fraction(1, 2)) == 2**63
    assert charge(Fraction(1, 3)) == 2**64 // 3 + 1
    assert concentrated.selection_charge(Fraction(1, 10)) == math.ceil(Fraction(2**64, 800))
    assert concentrated.counts_charge(361) == math.ceil(Fraction(2**64, 722))


def test_usual_shares_and_crowds():
    assert (usual_rho(1, 1e-6), usual_rho(2, 1e-5)) == (0.008, 0.04)
    assert usual_rho(0.1, 1e-6) < usual_rho(1, 1e-6) < usual_rho(5, 1e-6)
    k, beta = usual_crowd(1, 1e-6, 0.008)
    assert ChosenCrowd(k, beta, 0.008).delta(1) <= 1e-6 < ChosenCrowd(k - 1, beta, 0.008).delta(1)
    assert k / beta <= 1.2 * min(smallest_k(1, 1e-6, b, 0.008) / b for b in (0.2, 0.25, 0.3))


def test_parameters_are_checked():
    with pytest.raises(ParameterError):
        ChosenCrowd(10, 0.3, 0.0)
    with pytest.raises(ParameterError):
        ChosenCrowd(10, 1.3, 0.1)


def test_a_plan_says_what_the_choice_costs():
    plan = plan_tree(epsilon=1, delta=1e-6, beta=0.35)
    assert (plan.rho, plan.k_without) == (0.008, 20)
    assert 22 <= plan.k <= 23
    assert plan.box == math.ceil(1.15 * plan.k / 0.35)
    assert plan.least_records == math.ceil(1.8 * plan.box)
    assert plan_tree(epsilon=1, delta=1e-6, rho=1e-6).least_records > 10_000
    assert plan_tree(epsilon=1, delta=1e-6, rho=1e-13).least_records is None
    free = plan_tree(epsilon=2, delta=1e-5, rho=0.01)
    assert free.k < plan_tree(epsilon=2, delta=1e-5, rho=0.05, beta=free.beta).k


DIRECTIONS = ("removal", "addition")


@pytest.mark.parametrize("rows", [2, 3])
def test_people_with_several_rows_are_covered_by_their_own_profile(rows):
    """No smaller than a tight Gaussian choice before a crowd that finds all rows in one cell; hardly larger."""
    k, beta, rho, epsilon = 40, 0.3, 0.01, 1.0
    bound = ChosenCrowd(k, beta, rho, rows=rows)
    cell = CellProfile(k, beta, rows)
    z = np.linspace(-9, 9, 3001)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    for direction in DIRECTIONS:
        ours, other = (getattr(cell, d) for d in DIRECTIONS[:: 1 if direction == "removal" else -1])

        def at(t, ours=ours, other=other):
            return ours(t) if t >= 0 else 1 - math.exp(t) + math.exp(t) * other(-t)

        grid = np.linspace(epsilon - rho - 1.3, epsilon - rho + 1.3, 200)
        heights = np.array([at(t) for t in grid])
        least = density @ np.interp(epsilon - rho - math.sqrt(2 * rho) * z, grid, heights)
        found = getattr(bound, direction)(epsilon)
        assert found >= 0.98 * least
        assert direction == "addition" or found <= 3 * least
    assert ChosenCrowd(k, beta, rho).delta(epsilon) < bound.delta(epsilon)


def test_a_plan_covers_people_with_several_rows():
    one, three = (plan_tree(epsilon=2, delta=1e-5, beta=0.3, rows_per_person=m) for m in (1, 3))
    assert one.k_without < one.k < three.k_without < three.k
    assert three.rho == one.rho
    assert three.least_records > one.least_records
    assert ChosenCrowd(three.k, 0.3, three.rho, rows=3).delta(2) <= 1e-5
    assert ChosenCrowd(three.k - 1, 0.3, three.rho, rows=3).delta(2) > 1e-5
