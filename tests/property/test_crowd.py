"""What must hold for every k, β and ε."""

import math

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from incrowd.theory.crowd import CrowdProfile, exact_delta, paper_delta, smallest_epsilon, smallest_k
from incrowd.theory.profile import amplify

ks = st.integers(1, 300)
betas = st.floats(1e-4, 0.999)
epsilons = st.floats(0.0, 4.0)
few = settings(max_examples=150, deadline=None)


@few
@given(ks, betas, epsilons)
def test_delta_falls_with_k(k, beta, epsilon):
    assert exact_delta(k + 1, beta, epsilon) <= exact_delta(k, beta, epsilon) * (1 + 1e-12)


@few
@given(ks, betas, epsilons, st.floats(1e-6, 1.0))
def test_delta_falls_with_epsilon(k, beta, epsilon, more):
    assert exact_delta(k, beta, epsilon + more) <= exact_delta(k, beta, epsilon) * (1 + 1e-12)


@few
@given(ks, betas, epsilons, st.floats(0.01, 0.99))
def test_delta_rises_with_beta_as_amplification_says(k, beta, epsilon, ratio):
    """Not only is a lower rate better: it is at least as good as Theorem 1 promises."""
    delta = exact_delta(k, beta, epsilon)
    assume(delta > 1e-290)
    amplified_epsilon, amplified_delta = amplify(epsilon, delta, beta, beta * ratio)
    assert exact_delta(k, beta * ratio, amplified_epsilon) <= amplified_delta * (1 + 1e-9)


@few
@given(ks, betas, epsilons)
def test_the_paper_never_promises_more_than_is_true(k, beta, epsilon):
    bound = paper_delta(k, beta, epsilon)
    assume(bound is not None)
    assert exact_delta(k, beta, epsilon) <= bound * (1 + 1e-9)


@few
@given(ks, betas, st.floats(0.0, 2.0), st.floats(0.05, 1.0))
def test_profile_is_convex_in_the_growth_factor(k, beta, epsilon, gap):
    profile = CrowdProfile(k, beta)
    left, right = math.exp(epsilon), math.exp(epsilon + gap)
    middle = math.log((left + right) / 2)
    chord = (profile.removal(epsilon) + profile.removal(epsilon + gap)) / 2
    assert profile.removal(middle) <= chord * (1 + 1e-9)


@few
@given(ks, betas, epsilons)
def test_addition_is_free_where_the_paper_applies(k, beta, epsilon):
    if epsilon > -math.log1p(-beta) * (1 + 1e-12):
        assert CrowdProfile(k, beta).addition(epsilon) == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 100), st.floats(0.01, 0.95), st.floats(1e-12, 0.01))
def test_solutions_keep_the_promise(k, beta, delta):
    assume(beta**k < delta / 2)
    epsilon = smallest_epsilon(delta, k, beta)
    assert exact_delta(k, beta, epsilon) <= delta
    assert smallest_k(epsilon, delta, beta) <= k
