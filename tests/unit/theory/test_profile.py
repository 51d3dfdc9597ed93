"""Profiles: conversion between relations, amplification, composition."""

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest

from incrowd.core.errors import ParameterError, RelationError, UnreachableError
from incrowd.theory.crowd import CrowdProfile
from incrowd.theory.profile import (
    ApproximateDP,
    OfSample,
    PrivacyProfile,
    Relation,
    amplify,
    before_sampling,
    compose,
    to_replace_one,
)

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def test_a_pure_promise_has_the_profile_of_randomised_response():
    profile = ApproximateDP(1.0, 0.0, REPLACE)
    yes, no = math.e / (1 + math.e), 1 / (1 + math.e)
    for epsilon in (0.0, 0.3, 0.99):
        growth = math.exp(epsilon)
        assert profile.delta(epsilon) == pytest.approx(max(0, yes - growth * no))
    assert profile.delta(1.0) == 0
    assert profile.epsilon(0.0) == 1.0
    assert profile.delta(profile.epsilon(0.01)) <= 0.01


def test_a_point_promises_nothing_below_its_delta():
    with pytest.raises(UnreachableError):
        ApproximateDP(1.0, 1e-5, REPLACE).epsilon(1e-6)


def test_replace_one_is_never_worse_than_twice_epsilon():
    profile = CrowdProfile(20, 0.2)
    for epsilon in (0.3, 0.5, 1.0):
        delta = profile.delta(epsilon)
        converted = to_replace_one(profile).delta(2 * epsilon)
        assert converted <= (1 + math.exp(epsilon)) * delta * (1 + 1e-9)


def cell_laws(n, k, beta):
    law = np.zeros(n + 2)
    for j in range(n + 1):
        law[j if j >= k else 0] += math.comb(n, j) * beta**j * (1 - beta) ** (n - j)
    return law


def test_replace_one_bounds_the_true_divergence_of_two_cells():
    """One record moves from a cell of n to a cell of m: enumerated for all small n and m, never above the bound."""
    k, beta, epsilon = 3, 0.4, 0.8
    growth = math.exp(epsilon)
    worst = 0.0
    for n, m in itertools.product(range(1, 14), range(14)):
        before = np.outer(np.pad(cell_laws(n, k, beta), (0, 20 - n)), np.pad(cell_laws(m, k, beta), (0, 20 - m)))
        after = np.outer(np.pad(cell_laws(n - 1, k, beta), (0, 21 - n)), np.pad(cell_laws(m + 1, k, beta), (0, 19 - m)))
        worst = max(worst, np.maximum(0, before - growth * after).sum())
    bound = to_replace_one(CrowdProfile(k, beta)).delta(epsilon)
    assert worst <= bound
    assert bound <= 3 * worst  # and the bound is not idle


def test_relations_are_never_mixed():
    with pytest.raises(RelationError):
        compose([ApproximateDP(1.0, 0.0, ADD_REMOVE), ApproximateDP(1.0, 0.0, REPLACE)])
    mixed = compose([to_replace_one(ApproximateDP(0.5, 0.0, ADD_REMOVE)), ApproximateDP(1.0, 0.0, REPLACE)])
    assert mixed.relation is REPLACE
    assert mixed.epsilon(0.0) <= 2.0 + 1e-6


def test_a_crowd_is_not_a_replace_one_promise():
    with pytest.raises(ParameterError):
        CrowdProfile(5, 0.5, REPLACE)


def test_composition_bounds_the_truth_and_is_close_to_it():
    """Ten releases of one cell: the true composed divergence by convolving the exact loss distribution."""
    k, beta, times, epsilon = 6, 0.3, 10, 1.5
    together = compose([CrowdProfile(k, beta)] * times).delta(epsilon)
    worst = 0.0
    for n in range(k, 60):
        p, q = cell_laws(n, k, beta), np.append(cell_laws(n - 1, k, beta), 0.0)
        worst = max(worst, composed_divergence(p, q, times, epsilon))
    assert worst <= together
    assert together <= 3 * worst  # the bound lets the worst n differ from one ε to the next


def two_crowds(table, k, beta, *, one_sample=False):
    """The law of two sampled crowds of two values; what the first shows decides whether the second merges them."""

    def probability(counts):
        masses = [math.comb(n, j) * beta**j * (1 - beta) ** (n - j) for n, j in zip(table, counts, strict=True)]
        return math.prod(masses)

    samples = [(counts, probability(counts)) for counts in itertools.product(*(range(n + 1) for n in table))]
    law = Counter()
    for counts, mass in samples:
        first = tuple(j if j >= k else 0 for j in counts)
        for again, share in [(counts, 1.0)] if one_sample else samples:
            cells = (sum(again),) if first[0] > first[1] else again
            law[first, tuple(j if j >= k else 0 for j in cells)] += mass * share
    return law


@pytest.mark.parametrize(("k", "beta"), [(2, 0.3), (3, 0.5), (3, 0.3)])
def test_a_mapping_chosen_by_an_earlier_crowd_stays_within_the_composition(k, beta):
    """All tables of up to seven records, either direction. One sample for both releases would need more."""
    profile = compose([CrowdProfile(k, beta)] * 2)
    tables = [table for table in itertools.product(range(8), repeat=2) if sum(table) <= 7]
    pairs = [(t, tuple(n - (i == v) for i, n in enumerate(t))) for t in tables for v in range(2) if t[v]]
    for epsilon in (0.1, 0.8, 2.0):
        growth = math.exp(epsilon)
        worst = {}
        for one_sample in (False, True):
            laws = {table: two_crowds(table, k, beta, one_sample=one_sample) for table in tables}
            for direction, (p, q) in itertools.product(("removal", "addition"), pairs):
                first, second = (laws[p], laws[q]) if direction == "removal" else (laws[q], laws[p])
                found = sum(max(0.0, mass - growth * second[o]) for o, mass in first.items())
                worst[one_sample, direction] = max(worst.get((one_sample, direction), 0.0), found)
        for direction in ("removal", "addition"):
            assert worst[False, direction] <= getattr(profile, direction)(epsilon)
        assert worst[False, "removal"] > 0.9 * profile.removal(epsilon)  # the bound is not idle
        if epsilon > 0.5:
            assert worst[True, "removal"] > 1.01 * profile.removal(epsilon)


def composed_divergence(p, q, times, epsilon):
    """The times-fold hockey-stick divergence by merging losses on a grid of 1e-4, rounded down: a lower bound."""
    grid = 1e-4
    infinite = 0.0
    step = {}
    for a, b in zip(p, q, strict=True):
        if a > 0 and b > 0:
            key = math.floor(math.log(a / b) / grid)
            step[key] = step.get(key, 0.0) + a
    lost = p[(p > 0) & (q == 0)].sum()
    array = np.array([1.0])
    offset = 0
    low = min(step)
    kernel = np.zeros(max(step) - low + 1)
    for key, mass in step.items():
        kernel[key - low] += mass
    for _ in range(times):
        infinite += array.sum() * lost
        array = np.convolve(array, kernel) if array.size * kernel.size < 1e7 else _fft_convolve(array, kernel)
        offset += low
    keys = (np.arange(array.size) + offset) * grid
    return infinite + float((array * np.maximum(0.0, 1 - np.exp(epsilon - keys))).sum())


def _fft_convolve(a, b):
    from scipy.signal import fftconvolve

    return fftconvolve(a, b)


@pytest.mark.parametrize(("times", "each"), [(1, 2.0), (3, 2.0), (4, 0.25), (2, 5.0)])
@pytest.mark.parametrize("failing", [0.0, 1e-3])
def test_points_that_are_added_cost_at_least_the_truth(times, each, failing):
    """Randomised response, so many times over, that fails with a probability: its exact divergence at every ε."""
    profile = compose([ApproximateDP(each, failing, REPLACE)] * times)
    for epsilon in map(float, np.linspace(0.0, 1.2 * times * each, 25)):
        with mpmath.workdps(50):
            yes, no, growth = 1 / (1 + mpmath.exp(-each)), 1 / (1 + mpmath.exp(each)), mpmath.exp(epsilon)
            hidden = sum(
                math.comb(times, j) * max(0, yes**j * no ** (times - j) - growth * yes ** (times - j) * no**j)
                for j in range(times + 1)
            )
            true = 1 - (1 - mpmath.mpf(failing)) ** times * (1 - hidden) - mpmath.mpf(10) ** -40
        assert profile.delta(epsilon) >= true
        # The plain sum alone, which answers where the numerical one has nothing to say.
        assert profile._by_addition(epsilon, "removal") >= true


class Falling(PrivacyProfile):
    """δ = e^{−steepness·ε}, which writes down at which ε it was asked."""

    relation = ADD_REMOVE

    def __init__(self, steepness):
        self.steepness, self.asked = steepness, []

    def removal(self, epsilon):
        self.asked.append(epsilon)
        return math.exp(-self.steepness * epsilon)

    addition = removal


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 30.0])
@pytest.mark.parametrize("points", [0, 1, 3])
def test_the_shares_of_a_plain_sum_add_up_to_no_more_than_epsilon(epsilon, points):
    crowds = {Falling(0.5): 2, Falling(3.0): 5}
    point = ApproximateDP(0.4, 1e-3, ADD_REMOVE)
    profile = compose([point] * points + [crowd for crowd, times in crowds.items() for _ in range(times)])
    profile._by_addition(epsilon, "removal")  # what each needs is found once
    for crowd in crowds:
        crowd.asked.clear()
    total = profile._by_addition(epsilon, "removal")
    shares = {crowd: crowd.asked for crowd in crowds}
    assert all(len(asked) == 1 for asked in shares.values())
    left = epsilon - sum(times * shares[crowd][0] for crowd, times in crowds.items())
    assert left >= 0
    expected = sum(times * math.exp(-crowd.steepness * shares[crowd][0]) for crowd, times in crowds.items())
    assert total >= expected + points * point.removal(left / points if points else 0.0) * (1 - 1e-9)


@pytest.mark.parametrize("each", [0.05, 0.4, 2.0])
def test_all_parts_together_cost_at_least_each(each):
    """A point and crowds: neither the composition nor the plain sum is below what one of them costs alone."""
    parts = [ApproximateDP(each, 1e-4, ADD_REMOVE), CrowdProfile(5, 0.3), CrowdProfile(5, 0.3), CrowdProfile(9, 0.2)]
    profile = compose(parts)
    for epsilon, direction in itertools.product((0.0, 0.03, 0.3, 1.0, 1.9, 2.5, 4.0), ("removal", "addition")):
        alone = max(getattr(part, direction)(epsilon) for part in parts)
        assert getattr(profile, direction)(epsilon) >= alone * (1 - 1e-9)
        assert profile._by_addition(epsilon, direction) >= alone * (1 - 1e-9)


def test_composition_beats_addition():
    single = CrowdProfile(30, 0.05)
    together = compose([single] * 50)
    assert together.epsilon(1e-6) < 0.5 * 50 * single.epsilon(1e-6 / 50)


def test_tiny_deltas_fall_back_on_addition():
    single = CrowdProfile(60, 0.1)
    together = compose([single] * 4)
    assert together.epsilon(1e-20) <= 4 * single.epsilon(1e-20 / 4) * (1 + 1e-9)
    assert together.delta(4.0) <= 4 * single.delta(1.0) * (1 + 1e-9)


def test_an_empty_composition_costs_nothing():
    nothing = compose([])
    assert nothing.delta(0.0) == 0
    assert nothing.epsilon(0.0) == 0


def test_order_does_not_matter():
    a, b = CrowdProfile(18, 0.2), ApproximateDP(0.3, 1e-9, ADD_REMOVE)
    assert compose([a, b]).epsilon(1e-5) == pytest.approx(compose([b, a]).epsilon(1e-5), rel=1e-6)


def test_amplification_refuses_to_go_upwards():
    with pytest.raises(ParameterError):
        amplify(1.0, 0.0, 0.1, 0.2)
    assert amplify(1.0, 1e-6, 0.3, 0.3) == (pytest.approx(1.0), pytest.approx(1e-6))


def test_amplification_of_a_huge_epsilon_does_not_overflow():
    epsilon, _ = amplify(800.0, 0.0, 1.0, 0.1)
    assert epsilon == pytest.approx(800 + math.log(0.1))


@pytest.mark.parametrize(("times", "each", "epsilon"), [(50_000, 0.001, 1.36664), (2_000, 0.01, 1.9)])
def test_many_small_parts_are_never_below_the_truth(times, each, epsilon):
    """The exact δ of T-fold randomised response, a binomial sum, against composing T losses."""
    from scipy.stats import binom

    yes = 1 / (1 + math.exp(-each))
    j = np.arange(times + 1)
    losses = (2 * j - times) * each
    exact = float((binom.pmf(j, times, yes) * np.maximum(0.0, -np.expm1(epsilon - losses))).sum())
    assert compose([ApproximateDP(each, 0.0, ADD_REMOVE)] * times).delta(epsilon) >= exact


def test_amplification_of_a_huge_epsilon_at_a_tiny_rate_keeps_the_one():
    assert amplify(700.0, 0.0, 1.0, 1e-304)[0] == pytest.approx(0.7007, abs=2e-3)


# --- a table that is itself a sample ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.4, 0.9])
def test_of_one_record_and_randomised_response_sampling_promises_exactly_so_much(rate, epsilon):
    """Who is in the sample answers truthfully with e^1 : 1, and the other way round if not."""
    truth = 1 / (1 + math.exp(-1))
    there, absent = np.array([truth, 1 - truth]), np.array([1 - truth, truth])
    law = rate * there + (1 - rate) * absent
    profile = OfSample(ApproximateDP(1.0, 0.0, Relation.ADD_REMOVE), rate)
    removal = np.maximum(law - math.exp(epsilon) * absent, 0).sum()
    addition = np.maximum(absent - math.exp(epsilon) * law, 0).sum()
    assert profile.removal(epsilon) == pytest.approx(removal, rel=1e-9, abs=1e-12)
    assert profile.addition(epsilon) >= addition - 1e-12


@pytest.mark.parametrize("seed", range(30))
def test_sampling_never_promises_more_than_there_is(seed):
    """Mechanisms at random, on the tables of up to three people: every sample of theirs, both directions."""
    rng = np.random.default_rng(seed)
    laws = {n: rng.dirichlet(np.full(4, 0.7)) for n in range(4)}  # people are alike: a table is their number
    rate = float(rng.choice([0.02, 0.2, 0.7]))

    def published(people):
        return sum(math.comb(people, n) * rate**n * (1 - rate) ** (people - n) * laws[n] for n in range(people + 1))

    def divergence(p, q, epsilon):
        return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())

    class Exact(PrivacyProfile):
        relation = Relation.ADD_REMOVE

        def removal(self, epsilon):
            return max(divergence(laws[n + 1], laws[n], epsilon) for n in range(3))

        def addition(self, epsilon):
            return max(divergence(laws[n], laws[n + 1], epsilon) for n in range(3))

    profile = OfSample(Exact(), rate)
    for epsilon in (0.0, 0.01, 0.1, 0.5, 1.5, 4.0):
        for n in range(3):
            larger, smaller = published(n + 1), published(n)
            assert divergence(larger, smaller, epsilon) <= profile.removal(epsilon) + 1e-12
            assert divergence(smaller, larger, epsilon) <= profile.addition(epsilon) + 1e-12


@pytest.mark.parametrize("rate", [1e-6, 0.05, 0.999])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 50.0, 299.0, 301.0, 600.0])
def test_what_a_sample_may_spend_is_rounded_down(epsilon, rate):
    with mpmath.workdps(400):
        exact = mpmath.log(1 + mpmath.expm1(mpmath.mpf(epsilon)) / mpmath.mpf(rate))
    found = before_sampling(epsilon, rate)
    assert epsilon <= found <= exact
    assert found >= exact * (1 - mpmath.mpf(10) ** -12)


def test_the_theorem_on_samples_is_about_adding_and_removing():
    with pytest.raises(ParameterError):
        OfSample(ApproximateDP(1.0, 0.0, Relation.REPLACE_ONE), 0.1)
