"""What must hold for the sampling rate of any table."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import UnreachableError
from incrowd.theory.sampling import (
    good_sample,
    largest_rate,
    sample_delta,
    sample_epsilon,
    sample_ratio,
    theorem_promise,
    theorem_rate,
)

tables = st.lists(st.integers(3, 400), min_size=1, max_size=12)
epsilons = st.floats(0.02, 4.0)
deltas = st.floats(1e-6, 0.5)
rates = st.floats(1e-4, 0.6)
changes = st.integers(1, 3)
moderate = settings(deadline=None, max_examples=60)


@moderate
@given(tables, epsilons, rates, changes, st.randoms(use_true_random=False))
def test_order_does_not_matter(counts, epsilon, rate, c, random):
    shuffled = random.sample(counts, len(counts))
    assert sample_delta(counts, rate, epsilon, c) == sample_delta(np.array(shuffled), rate, epsilon, c)


@moderate
@given(tables, epsilons, rates, st.floats(1.001, 1.5), changes)
def test_delta_grows_with_the_rate_and_falls_with_epsilon(counts, epsilon, rate, factor, c):
    here = sample_delta(counts, rate, epsilon, c)
    assert here.delta_at_least <= here.delta
    assert sample_delta(counts, min(1.0, rate * factor), epsilon, c).delta >= here.delta_at_least
    assert sample_delta(counts, rate, epsilon * factor, c).delta_at_least <= here.delta


@moderate
@given(st.lists(st.integers(1, 10**5), min_size=3, max_size=12), epsilons, st.floats(1e-9, 1.0), st.integers(1, 6))
def test_bounds_are_probabilities_at_any_rate(counts, epsilon, rate, c):
    found = sample_delta(counts, rate, epsilon, min(c, sum(counts)))
    assert 0.0 <= found.delta_at_least <= found.delta <= 1.0


@moderate
@given(tables, epsilons, rates, changes)
def test_more_changed_rows_and_more_cells_are_no_safer(counts, epsilon, rate, c):
    here = sample_delta(counts, rate, epsilon, c)
    if c < sum(counts):
        assert sample_delta(counts, rate, epsilon, c + 1).delta >= here.delta_at_least
    assert sample_delta([*counts, 50], rate, epsilon, c).delta >= here.delta_at_least


@moderate
@given(tables, epsilons, deltas, changes)
def test_the_largest_rate_keeps_its_promise(counts, epsilon, delta, c):
    found = largest_rate(counts, epsilon, delta, c)
    assert sample_delta(counts, found.rate, epsilon, c).delta <= delta
    assert sample_delta(counts, found.rate_at_most, epsilon, c).delta_at_least > delta
    assert found.rate < found.rate_at_most
    if found.exact:
        assert found.rate_at_most < found.rate * (1 + 1e-6)
    assert theorem_rate(counts, epsilon, delta, c).rate <= found.rate_at_most


@settings(deadline=None, max_examples=25)
@given(tables, st.floats(1e-4, 0.1), st.floats(0.2, 0.9), changes)
def test_epsilon_and_rate_are_inverse(counts, rate, delta, c):
    try:
        planned = sample_epsilon(counts, rate, delta, c)
    except UnreachableError:
        assert sample_delta(counts, rate, 1e150, c).delta > delta
        return
    assert planned.delta <= delta
    if planned.epsilon > 0.0:
        assert largest_rate(counts, planned.epsilon, delta, c).rate_at_most > rate
        below = math.nextafter(planned.epsilon, 0.0)
        assert sample_delta(counts, rate, below, c).delta > delta


@moderate
@given(st.data(), tables, changes)
def test_adding_rows_to_a_sample_makes_it_no_safer(data, counts, c):
    sample = [data.draw(st.integers(0, n)) for n in counts]
    more = [data.draw(st.integers(s, n)) for s, n in zip(sample, counts, strict=True)]
    assert sample_ratio(counts, more, c) >= sample_ratio(counts, sample, c) * (1 - 1e-12)
    if c < sum(counts):
        assert sample_ratio(counts, sample, c + 1) >= sample_ratio(counts, sample, c) * (1 - 1e-12)


@moderate
@given(st.data(), st.lists(st.integers(30, 3000), min_size=1, max_size=6), changes)
def test_a_good_sample_has_the_promised_ratio(data, counts, c):
    p, epsilon, delta = data.draw(st.floats(0.01, 0.2)), data.draw(st.floats(0.05, 0.2)), 0.5
    sample = [data.draw(st.integers(0, max(1, int(2 * n * p)))) for n in counts]
    verdict = good_sample(counts, sample, p, epsilon, delta, c)
    if verdict.good and verdict.epsilon is not None:
        assert sample_ratio(counts, sample, c) <= verdict.epsilon


@moderate
@given(tables, st.floats(0.01, 0.2), deltas, changes)
def test_the_theorems_promise_is_kept(counts, inner, delta, c):
    promise = theorem_promise(counts, inner, delta, c)
    if promise.epsilon < 1e6:
        assert sample_delta(counts, promise.rate, promise.epsilon, c).delta <= delta
