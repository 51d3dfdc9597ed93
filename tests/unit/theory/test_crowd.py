"""The exact δ of a sampled crowd against brute force and against 50-digit arithmetic."""

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from scipy.special import betainc

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.theory.crowd import (
    DELTA_FLOOR,
    CrowdProfile,
    exact_delta,
    frontier,
    largest_beta,
    paper_applies,
    paper_delta,
    plan,
    smallest_epsilon,
    smallest_k,
    survival,
)


def published_law(n, k, beta):
    """The law of what is shown for a cell of n records: the sampled count if at least k, else 0. Exact."""
    law = {}
    for j in range(n + 1):
        mass = math.comb(n, j) * beta**j * (1 - beta) ** (n - j)
        shown = j if j >= k else 0
        law[shown] = law.get(shown, 0) + mass
    return law


def divergence(p, q, growth):
    return sum(max(0, p.get(o, 0) - growth * q.get(o, 0)) for o in set(p) | set(q))


GRID = [
    (k, beta, growth)
    for k in (1, 2, 3, 5, 8)
    for beta in (Fraction(1, 8), Fraction(1, 2), Fraction(7, 8))
    for growth in (Fraction(1), Fraction(17, 16), Fraction(3, 2), Fraction(4))
]


@pytest.mark.parametrize(("k", "beta", "growth"), GRID)
def test_equals_brute_force_over_all_cell_sizes(k, beta, growth):
    """The maximum over n of the true divergence, in rational arithmetic: attained, never exceeded, both ways."""
    epsilon = math.log(growth)
    sizes = range(1, 15 * k + 20)
    laws = [published_law(n, k, beta) for n in range(sizes[-1] + 1)]
    # The closed form takes ε as a float; compare at that float's own growth.
    growth = Fraction(math.exp(epsilon)) if growth != 1 else growth
    removal = max(divergence(laws[n], laws[n - 1], growth) for n in sizes)
    addition = max(divergence(laws[n - 1], laws[n], growth) for n in sizes)
    profile = CrowdProfile(k, float(beta))
    assert profile.removal(epsilon) == pytest.approx(float(removal), rel=1e-12)
    assert profile.addition(epsilon) == pytest.approx(float(addition), rel=1e-12, abs=1e-290)
    assert profile.removal(epsilon) >= float(removal) * (1 - 2e-15)
    assert profile.addition(epsilon) >= float(addition) * (1 - 2e-15)


def test_whole_tables_on_a_tiny_domain():
    """Every table with up to four records in two cells: no neighbour diverges by more than promised."""
    k, beta, epsilon = 2, Fraction(1, 2), 0.25
    growth = Fraction(math.exp(epsilon))

    def law(table):
        cells = [published_law(n, k, beta) for n in table]
        return {
            tuple(o for o, _ in outcome): math.prod(m for _, m in outcome)
            for outcome in itertools.product(*(c.items() for c in cells))
        }

    worst = 0
    for table in itertools.product(range(5), repeat=2):
        for cell in range(2):
            if table[cell] == 0:
                continue
            smaller = tuple(n - (i == cell) for i, n in enumerate(table))
            worst = max(
                worst,
                divergence(law(table), law(smaller), growth),
                divergence(law(smaller), law(table), growth),
            )
    assert worst <= Fraction(exact_delta(k, float(beta), epsilon))
    assert float(worst) == pytest.approx(exact_delta(k, float(beta), epsilon), rel=1e-12)


@pytest.mark.parametrize(
    ("k", "beta", "epsilon"),
    [
        (20, 0.1, 1.0),
        (1000, 0.3, 0.2),
        (100_000, 0.5, 0.0245),
        (100_000, 0.2, 0.0105),
        (100_000, 0.9, 0.05),
        (30_000, 1e-4, 5e-6),
        (5, 1e-6, 0.7),
        (99_999, 0.05, 0.0),
        (180, 0.01, 1.0),  # far below 1e-200, above the floor
        (150, 0.05, 0.5),
    ],
)
def test_all_digits_against_mpmath(k, beta, epsilon):
    """An independent evaluation with 60 digits: two regularised incomplete beta functions and their difference."""
    with mpmath.workdps(60):
        b, growth = mpmath.mpf(beta), mpmath.exp(mpmath.mpf(epsilon))
        n = max(1, int(mpmath.ceil((k - 1) / (1 - (1 - b) / growth))))
        first = mpmath.binomial(n, k) * b**k * (1 - b) ** (n - k)
        # P[Bin(n) ≥ k] and P[Bin(n−1) ≥ k] as series in exact ratios.
        expected = _series_tail(n, k, b, first) - growth * _series_tail(n - 1, k, b, first * (n - k) / (n * (1 - b)))
        ours = CrowdProfile(k, beta).removal(epsilon)
        assert abs(mpmath.mpf(ours) / expected - 1) < 1e-10
        assert mpmath.mpf(ours) >= expected


@pytest.mark.parametrize(
    ("k", "beta", "epsilon"), [(20, 0.5, 0.5), (20, 0.9, 0.1), (200, 0.5, 0.3), (200, 0.8, 1.0), (200, 0.1, 0.02)]
)
def test_addition_against_mpmath(k, beta, epsilon):
    """The same for the sum that runs downwards: all terms of both distribution functions, with 60 digits."""
    with mpmath.workdps(60):
        b, growth = mpmath.mpf(beta), mpmath.exp(mpmath.mpf(epsilon))
        assert growth * (1 - b) < 1
        n = max(1, int(mpmath.ceil((k - 1) / (1 - growth * (1 - b)))))

        def below(n):
            return mpmath.fsum(mpmath.binomial(n, j) * b**j * (1 - b) ** (n - j) for j in range(k))

        expected = below(n - 1) - growth * below(n)
        ours = CrowdProfile(k, beta).addition(epsilon)
        assert expected > 0
        assert abs(mpmath.mpf(ours) / expected - 1) < 1e-10
        assert mpmath.mpf(ours) >= expected


def _series_tail(n, start, b, mass):
    total, j = mpmath.mpf(0), start
    while j <= n and (total == 0 or mass > total * mpmath.mpf(10) ** -45):
        total += mass
        mass *= mpmath.mpf(n - j) * b / ((j + 1) * (1 - b))
        j += 1
    return total


def test_delta_of_1e_30_keeps_its_digits():
    k = smallest_k(0.5, 1e-30, 0.1)
    assert exact_delta(k, 0.1, 0.5) <= 1e-30 < exact_delta(k - 1, 0.1, 0.5)


def test_underflow_is_rounded_up():
    assert exact_delta(100_000, 0.01, 5.0) == DELTA_FLOOR


def test_k_of_one_is_the_sampling_rate():
    for epsilon in (0.0, 0.3, 5.0):
        assert exact_delta(1, 0.25, epsilon) == pytest.approx(0.25)


def test_largest_epsilon_bottoms_out_at_beta_to_the_k():
    assert exact_delta(7, 0.3, 50.0) == pytest.approx(0.3**7)


@pytest.mark.parametrize("epsilon", [20.0, 110.0, 138.0, 200.0, 500.0, 5000.0, 1e13])
def test_no_epsilon_is_large_enough_to_hide_a_whole_crowd(epsilon):
    """δ never falls below β^k, however large ε is and whatever rounding does to e^ε."""
    for k, beta in [(1, 0.5), (2, 0.5), (7, 0.3), (50, 0.9)]:
        assert exact_delta(k, beta, epsilon) == pytest.approx(beta**k, rel=1e-12)
        assert exact_delta(k, beta, epsilon) >= beta**k


def test_paper_delta_is_the_brute_force_maximum():
    for k, beta, epsilon in [(3, 0.1, 0.3), (7, 0.3, 0.6), (12, 0.05, 0.06), (20, 0.2, 2.0)]:
        gamma = (math.exp(epsilon) - 1 + beta) / math.exp(epsilon)
        smallest = math.ceil(k / gamma - 1)
        brute = max(
            float(betainc(math.floor(gamma * n) + 1, n - math.floor(gamma * n), beta))
            for n in range(smallest, smallest + 3000)
            if math.floor(gamma * n) < n
        )
        assert paper_delta(k, beta, epsilon) == pytest.approx(brute, rel=1e-9)


def test_paper_says_nothing_below_its_limit():
    limit = -math.log1p(-0.3)
    assert paper_delta(20, 0.3, limit * 0.99) is None
    assert paper_delta(20, 0.3, limit * 1.01) is not None
    assert paper_applies(0.3, limit)
    assert plan(epsilon=0.2, delta=1e-6, beta=0.3).paper is None


def test_answers_are_on_the_safe_side_and_tight():
    epsilon, delta, k, beta = 0.5, 1e-6, 18, 0.2
    found = smallest_epsilon(delta, k, beta)
    assert exact_delta(k, beta, found) <= delta < exact_delta(k, beta, found * (1 - 1e-9))
    found = largest_beta(epsilon, delta, k)
    assert exact_delta(k, found, epsilon) <= delta < exact_delta(k, found * (1 + 1e-9), epsilon)
    found = smallest_k(epsilon, delta, beta)
    assert exact_delta(found, beta, epsilon) <= delta < exact_delta(found - 1, beta, epsilon)


def test_solving_in_a_circle():
    start = plan(epsilon=0.7, delta=1e-8, beta=0.6)
    by_delta = plan(epsilon=0.7, k=start.k, beta=0.6)
    assert by_delta.delta <= 1e-8
    by_epsilon = plan(delta=by_delta.delta, k=start.k, beta=0.6)
    assert by_epsilon.epsilon == pytest.approx(0.7, rel=1e-9)
    by_beta = plan(epsilon=0.7, delta=by_delta.delta, k=start.k)
    assert by_beta.beta == pytest.approx(0.6, rel=1e-9)


def test_selection_epsilon_is_added_on_top():
    plain = plan(delta=1e-6, k=20, beta=0.2)
    chosen = plan(delta=1e-6, k=20, beta=0.2, selection_epsilon=0.25)
    assert chosen.epsilon == pytest.approx(plain.epsilon + 0.25)
    assert chosen.epsilon >= plain.epsilon + 0.25


def test_no_epsilon_at_all_is_a_question_too():
    found = plan(epsilon=0.0, delta=1e-3, k=50)
    assert exact_delta(50, found.beta, 0.0) <= 1e-3
    with pytest.raises(ParameterError):
        smallest_k(1.0, float("nan"), 0.5)


def test_the_paper_bound_is_never_below_the_truth_far_out():
    assert paper_delta(199, 0.0234375, 2.0) >= exact_delta(199, 0.0234375, 2.0)


def test_extreme_rates():
    assert 0 < largest_beta(1.0, 1e-30, 1) <= 1e-30
    assert largest_beta(5.0, 0.9, 1_000) > 0.9


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 1, "delta": 1e-6, "beta": 1.0},
        {"epsilon": 1, "delta": 1e-6, "beta": 0.0},
        {"epsilon": 1, "delta": 1e-6, "beta": -0.1},
        {"epsilon": -1, "delta": 1e-6, "beta": 0.5},
        {"epsilon": float("nan"), "delta": 1e-6, "beta": 0.5},
        {"epsilon": 1, "delta": 0.0, "beta": 0.5},
        {"epsilon": 1, "delta": 1.0, "beta": 0.5},
        {"epsilon": 1, "delta": 1e-6, "k": 0},
        {"epsilon": 1, "delta": 1e-6, "k": 2.5},
        {"epsilon": 1, "delta": 1e-6, "k": float("inf")},
        {"epsilon": 1, "delta": 1e-6, "k": 10**12},
        {"epsilon": 1, "delta": 1e-6, "k": 3, "beta": 0.1},
        {"epsilon": 0.1, "delta": 1e-6, "beta": 0.1, "selection_epsilon": 0.2},
    ],
)
def test_bad_parameters_are_refused(arguments):
    with pytest.raises(ParameterError):
        plan(**arguments)


def test_what_cannot_be_reached_is_refused_with_what_could():
    with pytest.raises(UnreachableError) as error:
        plan(epsilon=0.0, delta=1e-6, beta=0.5)
    assert error.value.details["delta_at_limit"] > 1e-6
    with pytest.raises(UnreachableError) as error:
        plan(delta=1e-9, k=5, beta=0.5)
    assert error.value.details["smallest_delta"] == pytest.approx(0.5**5)


def test_frontier_covers_what_the_paper_excludes():
    points = {p.beta: p for p in frontier(0.5, 1e-6)}
    assert (points[0.2].k, points[0.2].paper_k) == (18, 25)
    assert (points[0.95].k, points[0.95].paper_k) == (1675, None)
    assert [p.k for p in points.values()] == sorted(p.k for p in points.values())


def test_survival_is_the_expected_published_share():
    n, k, beta = 60, 18, Fraction(1, 4)
    expected = sum(j * m for j, m in published_law(n, k, beta).items()) / n
    assert survival(n, k, float(beta)) == pytest.approx(float(expected))
    assert survival(5, 6, 0.5) == 0
    assert survival(5, 1, 0.5) == 0.5
