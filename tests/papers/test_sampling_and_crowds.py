"""Values printed by Li, Qardaji and Su, and exact values computed independently beside them."""

import itertools
import math
from fractions import Fraction

import pytest

from incrowd.theory import crowd_figures
from incrowd.theory.crowd import CrowdProfile, exact_delta, paper_delta, plan, smallest_k
from incrowd.theory.profile import ApproximateDP, OfSample, Relation, amplify, before_sampling, compose

TABLE_2 = {
    0.05: (6.83e-10, 2.50e-14, 3.19e-17, 1.76e-19, 3.97e-22, 2.00e-24),
    0.1: (4.19e-06, 1.61e-09, 3.44e-12, 4.07e-14, 3.22e-16, 1.89e-18),
    0.2: (2.16e-03, 8.02e-06, 1.89e-07, 6.03e-09, 4.79e-11, 1.59e-12),
}


@pytest.mark.parametrize("beta", TABLE_2)
def test_table_2_to_all_printed_digits(beta):
    (curve,) = [c for c in crowd_figures.table_2() if c.label == f"β = {beta:g}"]
    assert [f"{value:.2e}" for value in curve.paper] == [f"{value:.2e}" for value in TABLE_2[beta]]
    assert all(exact < paper for exact, paper in zip(curve.exact, curve.paper, strict=True))


def test_table_1():
    rows = crowd_figures.table_1()
    assert [r["epsilon"] for r in rows[:3]] == pytest.approx([math.log(11), math.log(2), math.log(1.1)])
    assert [r["delta"] for r in rows[:3]] == pytest.approx([1e-5, 1e-6, 1e-7])
    assert [round(r["epsilon"], 3) for r in rows[3:]] == [1.0, 0.159, 0.017]
    assert [r["delta"] for r in rows[3:]] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("rate", "epsilon", "delta"), [(0.1, math.log(2), 1e-6), (0.01, math.log(1.1), 1e-7)])
def test_table_1_as_a_way_to_publish(rate: float, epsilon: float, delta: float) -> None:
    """What a survey at the lower rate may spend is what the table has at rate 1, and promises what the table says."""
    inside = before_sampling(epsilon, rate)
    assert inside == pytest.approx(math.log(11), rel=1e-12)
    survey = OfSample(ApproximateDP(math.log(11), 1e-5, Relation.ADD_REMOVE), rate)
    assert survey.delta(epsilon * (1 + 1e-12)) == pytest.approx(delta, rel=1e-9)
    assert survey.delta(0.9 * epsilon) > 100 * delta


def test_the_abstract_example_of_amplification():
    epsilon, delta = amplify(math.log(2), 0.0, 1.0, 0.1)
    assert epsilon == pytest.approx(math.log(1.1))
    assert delta == 0


@pytest.mark.parametrize(("k", "beta", "epsilon", "expected"), [(20, 0.1, 1.0, "2.76e-15"), (20, 0.2, 0.5, "3.11e-07")])
def test_exact_delta(k, beta, epsilon, expected):
    assert f"{exact_delta(k, beta, epsilon):.2e}" == expected


@pytest.mark.parametrize(
    ("beta", "epsilon", "exact", "paper"),
    [
        (0.2, 0.5, 18, 25),
        (0.4, 1.0, 25, 31),
        (0.1, 1.0, 8, 9),
        # Where Theorem 5 says nothing: ε < −ln(1−β).
        (0.5, 0.5, 72, None),
        (0.95, 0.5, 1675, None),
        (0.8, 1.0, 135, None),
        (0.5, 0.3, 142, None),
    ],
)
def test_k_for_delta_of_one_in_a_million(beta, epsilon, exact, paper):
    answer = plan(beta=beta, epsilon=epsilon, delta=1e-6)
    assert answer.k == exact
    assert (answer.paper and answer.paper.k) == paper


def divergences(k, beta, growth, largest):
    """The divergence of the mechanism by Definition 2, as fractions: both directions, all cells of up to so many."""
    laws = []
    for n in range(largest + 1):
        law = dict.fromkeys([0, *range(k, largest + 1)], Fraction(0))
        for j in range(n + 1):
            law[j if j >= k else 0] += math.comb(n, j) * beta**j * (1 - beta) ** (n - j)
        laws.append(law)
    pairs = list(itertools.pairwise(laws))
    return [
        max(sum(max(0, p[o] - growth * q[o]) for o in p) for p, q in ordered)
        for ordered in ([(larger, smaller) for smaller, larger in pairs], pairs)
    ]


@pytest.mark.parametrize(
    ("k", "beta", "growth", "largest"),
    [
        (4, Fraction(1, 2), Fraction(5, 4), 30),
        (3, Fraction(4, 5), Fraction(3, 2), 20),
        (2, Fraction(1, 4), Fraction(1), 30),
        (3, Fraction(1, 4), Fraction(5, 4), 40),
        (3, Fraction(1, 4), Fraction(2), 30),
    ],
)
def test_delta_is_the_definition_in_both_directions(k, beta, growth, largest):
    """Theorem 5 needs ε ≥ −ln(1−β), where adding a record costs nothing. Below, it costs, and is counted."""
    removal, addition = divergences(k, beta, growth, largest)
    profile = CrowdProfile(k, float(beta))
    epsilon = math.log(growth)
    assert profile.removal(epsilon) == pytest.approx(float(removal), rel=1e-9)
    assert profile.addition(epsilon) == pytest.approx(float(addition), rel=1e-9, abs=0)
    assert (addition > 0) == (growth * (1 - beta) < 1)
    assert exact_delta(k, float(beta), epsilon) == pytest.approx(float(max(removal, addition)), rel=1e-9)


def test_choosing_the_mapping_costs_its_share():
    answer = plan(beta=0.85043, epsilon=2, delta=1e-5, selection_epsilon=0.1)
    assert (answer.k, answer.paper.k) == (83, 102)
    assert plan(beta=0.3, epsilon=2, delta=1e-5, selection_epsilon=0.1).k == 10


def test_figure_4_pairs_protect_about_equally():
    """The four curves cross: a small rate wins at small ε, a large crowd at large ε, and none wins throughout."""
    curves = crowd_figures.figure_4(4)  # ε = 0.5, 1.0, 1.5, 2.0
    small_rate, large_crowd = curves[0], curves[2]
    assert small_rate.paper[0] < large_crowd.paper[0]
    assert small_rate.paper[-1] > large_crowd.paper[-1]
    doubled_alone = paper_delta(15, 0.1, 1.0)  # β doubled and k left at 15
    assert doubled_alone > 1e4 * curves[1].paper[1]


def test_figure_5_facts():
    curves = crowd_figures.figure_5(40)
    assert curves[0].exact[-1] == pytest.approx(0.025)  # k = 1: all protection comes from sampling
    assert all(curve.paper[-1] < 0.001 for curve in curves[1:])  # the paper's remark for k ≥ 2 at ε = 2


def test_figure_2_remark_ten_more_in_the_crowd_are_worth_five_orders():
    values = {c.label: c.paper[-1] for c in crowd_figures.figure_2(4)}
    steps = [values["k = 10"] / values["k = 20"], values["k = 20"] / values["k = 30"]]
    assert all(1e4 < step < 1e7 for step in steps)


def test_figure_6_epsilon_falls_with_k_and_ours_is_smaller():
    for curve in crowd_figures.figure_6((10, 20, 50, 100)):
        assert list(curve.exact) == sorted(curve.exact, reverse=True)
        assert all(paper is None or exact < paper for exact, paper in zip(curve.exact, curve.paper, strict=True))


def test_figure_3_delta_grows_with_beta():
    at_one = [curve.exact[19] for curve in crowd_figures.figure_3(40)]
    assert at_one == sorted(at_one)


def test_fifty_fresh_samples_at_0_02_give_epsilon_1():
    """§2.7: fifty releases, each (0.2, 0.02, 0)-DP under sampling."""
    together = compose([ApproximateDP(0.02, 0.0, Relation.ADD_REMOVE)] * 50)
    assert together.epsilon(0.0) == pytest.approx(1.0, abs=1e-12)


def test_the_maximum_is_not_always_at_the_smallest_n():
    """The paper warns of it: a search that tried only the smallest n would be too small somewhere."""
    from scipy.special import betainc

    missed = 0
    for beta, epsilon, k in itertools.product((0.05, 0.2, 0.4), (0.6, 1.0, 1.5), range(2, 30)):
        gamma = (math.exp(epsilon) - 1 + beta) / math.exp(epsilon)
        tails = [betainc(j, math.ceil(j / gamma) - j, beta) for j in range(k, k + 60)]
        assert paper_delta(k, beta, epsilon) == pytest.approx(max(tails), rel=1e-9)
        missed += max(tails) > tails[0] * 1.000001
    assert missed > 0


def test_proposition_4_without_sampling_nothing_is_promised():
    """As β → 1 a crowd of k protects nobody: δ → 1."""
    assert exact_delta(5, 1 - 1e-9, 1.0) > 0.99999
    assert smallest_k(1.0, 1e-6, 0.99) > 1000


def test_profile_is_the_exact_delta():
    profile = CrowdProfile(20, 0.1)
    assert profile.delta(1.0) == exact_delta(20, 0.1, 1.0)
    assert profile.relation is Relation.ADD_REMOVE
