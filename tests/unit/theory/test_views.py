"""What a set of views promises together: known answers, plans that use up their budget, and brute force."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from incrowd.core.errors import ParameterError
from incrowd.theory.crowd import CrowdProfile
from incrowd.theory.profile import ApproximateDP, Relation, compose
from incrowd.theory.views import (
    CrowdStep,
    LaplaceStep,
    NoiseStep,
    ViewsPlan,
    _quick_delta,
    plan_crowds,
    plan_noise,
    plan_noise_of_sample,
)


@pytest.mark.parametrize(("views", "beta", "k"), [(4, 0.2, 15), (9, 0.2, 18), (19, 0.1, 11), (40, 0.05, 7)])
def test_known_answers(views, beta, k):
    """ε = 1 and δ = 1e-6, of which a tenth of ε pays for a choice."""
    choice = ApproximateDP(0.1, 0.0, Relation.ADD_REMOVE)
    enough, short = (compose([CrowdProfile(n, beta)] * views + [choice]).delta(1.0) for n in (k, k - 1))
    assert enough <= 1e-6 < short
    # What is really known of a choice, its bounded range, costs no more than what is known of every ε-DP mechanism.
    ranged = ViewsPlan(1.0, 1e-6, views, CrowdStep(k, beta), 0, CrowdStep(k, beta), 1, 0.1)
    assert ranged.exact_delta <= enough


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 10.0])
def test_a_plan_of_crowds_keeps_its_promise_and_no_smaller_k_would(epsilon):
    plan = plan_crowds(epsilon, 1e-6, 10, 9, 9, single_share=0.1, choice_share=0.1)
    assert plan.kept
    smaller = replace(plan, view=CrowdStep(plan.view.k - 1, plan.view.beta))
    assert plan.exact_delta <= 1e-6
    assert smaller.exact_delta > plan.exact_delta
    assert _quick_delta(plan) == pytest.approx(plan.exact_delta, rel=0.05)
    assert 10 / plan.single.variance == pytest.approx((0.1 * epsilon) ** 2, rel=0.1)
    assert 10 / plan.single.variance <= (0.1 * epsilon) ** 2


def test_where_there_are_only_one_way_tables_they_are_crowds():
    plan = plan_crowds(1.0, 1e-6, 10, 0, 0, single_share=0.1, choice_share=0.1)
    assert plan.single == plan.view
    assert isinstance(plan.single, CrowdStep)
    assert 0.5e-6 < plan.exact_delta <= 1e-6


def test_more_views_need_larger_crowds():
    plans = [plan_crowds(1.0, 1e-6, 10, n, 0, single_share=0.1, choice_share=0.1) for n in (2, 9, 40)]
    found = [plan.view.threshold for plan in plans]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_a_plan_of_noise_uses_its_budget_up():
    plan = plan_noise(1.0, 1e-6, 10, 9, 9, single_share=0.1, choice_share=0.1)
    assert 0.95e-6 < plan.exact_delta <= 1e-6
    rho = 10 / (2 * plan.single.variance) + 9 / (2 * plan.view.variance) + 9 * plan.exponent**2 / 8
    assert rho == pytest.approx(0.02436, rel=0.01)


def test_few_listed_views_have_laplace_noise_and_many_gaussian():
    one = plan_noise(1.0, 1e-6, 0, 1, 0, single_share=0.1, choice_share=0.1)
    assert isinstance(one.view, LaplaceStep)
    assert one.view.decay == pytest.approx(1.0)
    assert one.exact_delta == 0.0
    x = np.arange(-2000, 2001)
    law = np.exp(-one.view.decay * abs(x))
    assert one.view.variance == pytest.approx((law * x**2).sum() / law.sum())
    many = plan_noise(1.0, 1e-6, 0, 30, 0, single_share=0.1, choice_share=0.1)
    assert isinstance(many.view, NoiseStep)
    assert many.view.deviation < LaplaceStep(1 / 30).deviation


def test_a_plan_without_views_is_refused():
    with pytest.raises(ParameterError):
        plan_crowds(1.0, 1e-6, 0, 0, 0, single_share=0.1, choice_share=0.1)


# --- brute force on tiny tables --------------------------------------------------------------------------------------

K, BETA = 2, 0.5
STEP = CrowdStep(K, BETA)


def thinned(n):
    """The law of a cell's published count."""
    law = Counter()
    for x in range(n + 1):
        law[x if x >= K else 0] += math.comb(n, x) * BETA**x * (1 - BETA) ** (n - x)
    return law


def product_law(laws):
    joint = {(): 1.0}
    for law in laws:
        joint = {(*key, x): p * q for key, p in joint.items() for x, q in law.items()}
    return joint


def two_views(table):
    """Two one-way views of a table of two columns of two values, each from a sample of its own."""
    (a, b), (c, d) = table
    return product_law([thinned(n) for n in (a + b, c + d, a + c, b + d)])


def one_sample(table):
    """The broken twin: both views from one and the same sample."""
    law = Counter()
    cells = [n for row in table for n in row]
    for kept in itertools.product(*(range(n + 1) for n in cells)):
        p = math.prod(math.comb(n, x) * BETA**x * (1 - BETA) ** (n - x) for n, x in zip(cells, kept, strict=True))
        a, b, c, d = kept
        law[tuple(x if x >= K else 0 for x in (a + b, c + d, a + c, b + d))] += p
    return law


def hockey_stick(p, q, epsilon):
    return sum(max(0.0, p[key] - math.exp(epsilon) * q.get(key, 0.0)) for key in p)


def neighbours(most):
    for cells in itertools.product(range(most + 1), repeat=4):
        for place in range(4):
            less = list(cells)
            if less[place]:
                less[place] -= 1
                yield (cells[:2], cells[2:]), (tuple(less[:2]), tuple(less[2:]))


DECAY = 1.5
WHOLE = math.fsum(math.exp(-(x**2) / 2) for x in range(-40, 41))
GRID = (0.0, 0.3, 0.7, 1.1, 1.6)


@pytest.mark.parametrize("single", [LaplaceStep(DECAY), NoiseStep(1)])
def test_a_noisy_one_way_table_beside_a_crowd_view_keeps_the_promise(single):
    """The law of both together, for every tiny table; without the charge for the noise it is broken."""
    reach = np.arange(-12, 16)
    noise = []
    for lag in (reach - n for n in range(9)):
        laplace = np.exp(-DECAY * abs(lag)) * math.tanh(DECAY / 2)
        noise.append(laplace if isinstance(single, LaplaceStep) else np.exp(-(lag**2) / 2) / WHOLE)

    def law(table):
        (a, b), (c, d) = table
        crowd = product_law([thinned(n) for n in (a, b, c, d)])
        return np.multiply.outer(np.multiply.outer(noise[a + b], noise[c + d]), [crowd.get(k, 0.0) for k in shown])

    shown = list(itertools.product((0, 2), repeat=4))
    plan = ViewsPlan(1.0, 0.5, 1, single, 1, STEP)
    promised = [plan.profile.delta(epsilon) for epsilon in GRID]
    uncharged = [CrowdProfile(K, BETA).delta(epsilon) for epsilon in GRID]
    laws, worst = {}, np.zeros(len(GRID))
    for pair in neighbours(2):
        p, q = (laws[t] if t in laws else laws.setdefault(t, law(t)) for t in pair)
        for place, epsilon in enumerate(GRID):
            for one, other in ((p, q), (q, p)):
                worst[place] = max(worst[place], np.maximum(one - math.exp(epsilon) * other, 0.0).sum())
    assert (worst <= np.array(promised) + 1e-12).all()
    assert (worst > np.array(uncharged) + 0.01).any()


PROMISE = ViewsPlan(1.0, 0.5, 2, STEP, 0, STEP).profile


def test_two_views_of_every_tiny_table_keep_the_promise():
    promised = {epsilon: PROMISE.delta(epsilon) for epsilon in GRID}
    laws = {}
    for pair in neighbours(3):
        p, q = (laws.setdefault(table, two_views(table)) for table in pair)
        for epsilon in GRID:
            assert hockey_stick(p, q, epsilon) <= promised[epsilon] + 1e-12
            assert hockey_stick(q, p, epsilon) <= promised[epsilon] + 1e-12


def test_views_of_one_and_the_same_sample_would_break_it():
    worst = max(
        max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) - PROMISE.delta(epsilon)
        for pair in neighbours(2)
        for p, q in [[one_sample(table) for table in pair]]
        for epsilon in GRID
    )
    assert worst > 0.01


def chosen_view(table, exponent):
    """One of two one-way views, chosen by how unequal its counts are, and published from a fresh sample."""
    (a, b), (c, d) = table
    views = ((a + b, c + d), (a + c, b + d))
    scores = [abs(x - 2) + abs(y - 2) for x, y in views]
    weights = [math.exp(exponent * s / 2) for s in scores]
    law = {}
    for number, (view, weight) in enumerate(zip(views, weights, strict=True)):
        for key, p in product_law([thinned(n) for n in view]).items():
            law[number, key] = p * weight / sum(weights)
    return law


def test_a_choice_and_a_view_keep_the_promise_and_an_uncharged_choice_would_not():
    exponent = 1.0
    charged = ViewsPlan(1.0, 0.5, 1, STEP, 0, STEP, 1, exponent).profile
    uncharged = ViewsPlan(1.0, 0.5, 1, STEP, 0, STEP).profile
    broken = 0.0
    for pair in neighbours(2):
        p, q = (chosen_view(table, exponent) for table in pair)
        for epsilon in GRID:
            found = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
            assert found <= charged.delta(epsilon) + 1e-12
            broken = max(broken, found - uncharged.delta(epsilon))
    assert broken > 0.001


# --- a table that is itself a sample ----------------------------------------------------------------------------------

NOISY = np.arange(-10, 15)
RATE = 0.3


def chosen_noisy_view(table):
    """One of two one-way views, chosen by how unequal its counts are, with Laplace noise in both counts."""
    (a, b), (c, d) = table
    views = ((a + b, c + d), (a + c, b + d))
    weights = np.array([math.exp((abs(x - 2) + abs(y - 2)) / 2) for x, y in views])
    noise = {n: np.exp(-DECAY * abs(NOISY - n)) * math.tanh(DECAY / 2) for view in views for n in view}
    laws = [np.multiply.outer(noise[x], noise[y]) * w for (x, y), w in zip(views, weights / weights.sum(), strict=True)]
    return np.stack(laws)


def of_a_sample(table, laws, rate):
    """The law of what is published from a sample of the table."""
    cells = [n for row in table for n in row]
    return sum(
        math.prod(math.comb(n, x) * rate**x * (1 - rate) ** (n - x) for n, x in zip(cells, kept, strict=True))
        * laws[kept[:2], kept[2:]]
        for kept in itertools.product(*(range(n + 1) for n in cells))
    )


def test_views_of_a_sample_keep_the_promise_to_all_who_could_be_in_it():
    """A choice and a noisy view, for every tiny population; half the rate would be too much to claim."""
    plan = ViewsPlan(1.0, 0.5, 1, LaplaceStep(DECAY), 0, LaplaceStep(DECAY), 1, 1.0)
    promised, too_much = (replace(plan, rate=rate).profile for rate in (RATE, RATE / 2))
    tables = [(cells[:2], cells[2:]) for cells in itertools.product(range(3), repeat=4)]
    laws = {table: chosen_noisy_view(table) for table in tables}
    population = {table: of_a_sample(table, laws, RATE) for table in tables}
    grid, broken, sharp = (0.0, 0.2, 0.4, 0.8), 0.0, 0.0
    for pair in neighbours(2):
        p, q = (population[table] for table in pair)
        for epsilon in grid:
            found = max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in ((p, q), (q, p)))
            assert found <= promised.delta(epsilon) + 1e-9
            broken = max(broken, found - too_much.delta(epsilon))
            sharp = max(sharp, found / promised.delta(epsilon))
    assert broken > 0.01
    assert sharp > 0.5


@pytest.mark.parametrize(("epsilon", "delta", "rate"), [(1.0, 1e-6, 0.05), (0.1, 1e-9, 0.001), (3.0, 1e-5, 0.9)])
def test_a_plan_for_a_sample_keeps_its_promise_with_less_noise(epsilon, delta, rate):
    shares = {"single_share": 0.2, "choice_share": 0.1}
    plan = plan_noise_of_sample(epsilon, delta, rate, 5, 4, 4, **shares)
    assert plan.kept
    assert (plan.epsilon, plan.delta, plan.rate) == (epsilon, delta, rate)
    assert plan.view.deviation < plan_noise(epsilon, delta, 5, 4, 4, **shares).view.deviation
    # Divided by the rate, the noise is more than that of the whole table: a sample is worth it only to who has no more.
    assert plan.view.deviation / rate > plan_noise(epsilon, delta, 5, 4, 4, **shares).view.deviation
    assert not replace(plan, rate=min(0.99, 1.5 * rate)).kept
    with pytest.raises(ParameterError):
        replace(plan, rows=2)


# --- people with several records --------------------------------------------------------------------------------------


def persons(most, rows):
    """Tables of two cells in either view, with and without a person of so many records, wherever these are."""
    for cells in itertools.product(range(most + 1), repeat=4):
        for own in itertools.combinations_with_replacement(range(4), rows):
            more = [n + own.count(place) for place, n in enumerate(cells)]
            yield (tuple(more[:2]), tuple(more[2:])), (cells[:2], cells[2:])


def test_views_of_people_with_two_records_keep_the_promise_and_that_of_one_record_would_not():
    plans = [ViewsPlan(1.0, 0.5, 2, STEP, 0, STEP, rows=rows).profile for rows in (1, 2)]
    one, two = ({epsilon: plan.delta(epsilon) for epsilon in GRID} for plan in plans)
    laws, broken = {}, 0.0
    for pair in persons(2, 2):
        p, q = (laws.setdefault(table, two_views(table)) for table in pair)
        for epsilon in GRID:
            found = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
            assert found <= two[epsilon] + 1e-12
            broken = max(broken, found - one[epsilon])
    assert broken > 0.01


def test_a_choice_of_people_with_two_records_is_charged_for_both():
    charged, single = (ViewsPlan(1.0, 0.5, 1, STEP, 0, STEP, 1, 1.0, rows).profile for rows in (2, 1))
    broken = 0.0
    for pair in persons(1, 2):
        p, q = (chosen_view(table, 1.0) for table in pair)
        for epsilon in GRID:
            found = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
            assert found <= charged.delta(epsilon) + 1e-12
            broken = max(broken, found - single.delta(epsilon))
    assert broken > 0.001


def gaussian(variance, shift, reach=60):
    weights = {x: math.exp(-((x - shift) ** 2) / (2 * variance)) for x in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


def test_gaussian_noise_beside_crowds_is_charged_for_all_records_of_a_person():
    plans = [ViewsPlan(1.0, 0.5, 3, NoiseStep(9), 1, CrowdStep(9, 1e-6), rows=rows).profile for rows in (1, 2)]
    p, q = (gaussian(9, shift) for shift in (2, 0))
    p, q = (summed(summed(law, law), law) for law in (p, q))
    for epsilon in GRID:
        found = sum(max(0.0, p[x] - math.exp(epsilon) * q[x]) for x in p)
        assert plans[0].delta(epsilon) < found <= plans[1].delta(epsilon)


@pytest.mark.parametrize("delta", [1e-2, 1e-9])
def test_noise_covers_all_records_of_a_person(delta):
    """Of Gaussian and of Laplace noise the exact δ, all records being in one cell of each of three tables."""
    for rows in (1, 3):
        plan = plan_noise(4.0, delta, 0, 3, 0, single_share=0.1, choice_share=0.1, rows=rows)
        for moved in (rows, rows + 2):
            if isinstance(plan.view, LaplaceStep):
                assert (3 * moved * plan.view.decay <= 4.0) == (moved <= rows)
                continue
            p, q = (gaussian(plan.view.variance, shift) for shift in (moved, 0))
            # The likelihood ratio depends on the sum of the outcomes alone.
            p, q = (summed(summed(law, law), law) for law in (p, q))
            found = sum(max(0.0, p[x] - math.exp(4.0) * q[x]) for x in p)
            assert (found <= delta) == (moved <= rows)


def summed(law, one):
    found = {}
    for x, p in law.items():
        for y, q in one.items():
            found[x + y] = found.get(x + y, 0.0) + p * q
    return found
