"""What must hold for every randomisation: order, monotonicity, and that the central ε never exceeds the local one."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.theory.randomisation import (
    RetentionReplacement,
    TransitionMatrix,
    local_epsilon,
    pk,
    retention_for_both,
    retentions_by_weight,
)
from incrowd.theory.shuffling import central_delta, central_epsilon

retentions = st.floats(0.01, 0.95)
attributes = st.lists(st.builds(RetentionReplacement, retentions, st.integers(2, 8)), min_size=1, max_size=3)
weights = st.integers(1, 50)
matrices = st.integers(2, 4).flatmap(
    lambda size: st.lists(st.lists(weights, min_size=size, max_size=size), min_size=size, max_size=size)
)
quick = settings(deadline=None, max_examples=60)
slow = settings(deadline=None, max_examples=25)


@quick
@given(attributes, st.integers(1, 10**9), st.randoms())
def test_the_order_of_attributes_does_not_matter(drawn, records, random) -> None:
    shuffled = list(drawn)
    random.shuffle(shuffled)
    assert local_epsilon(shuffled) == pytest.approx(local_epsilon(drawn), rel=1e-14)
    assert pk(shuffled, records) == pytest.approx(pk(drawn, records), rel=1e-14)


@quick
@given(matrices, st.randoms())
def test_the_names_of_values_do_not_matter(drawn, random) -> None:
    rows = [[Fraction(entry, sum(row)) for entry in row] for row in drawn]
    order = list(range(len(rows)))
    random.shuffle(order)
    renamed = TransitionMatrix([[rows[u][w] for w in order] for u in order])
    assert renamed.epsilon == pytest.approx(TransitionMatrix(rows).epsilon, rel=1e-12)
    assert renamed.ratio == pytest.approx(TransitionMatrix(rows).ratio, rel=1e-12)


@quick
@given(matrices)
def test_a_crowd_is_never_smaller_than_epsilon_implies(drawn) -> None:
    matrix = TransitionMatrix([[Fraction(entry, sum(row)) for entry in row] for row in drawn])
    assert math.exp(-2 * matrix.epsilon) * (1 - 1e-12) <= matrix.ratio <= 1


@quick
@given(retentions, retentions, st.integers(2, 50), st.integers(2, 10**6))
def test_less_retention_is_more_private(one, other, size, records) -> None:
    less, more = (RetentionReplacement(rho, size) for rho in sorted((one, other)))
    assert less.epsilon <= more.epsilon
    assert pk([less], records) >= pk([more], records)


@quick
@given(
    st.lists(st.integers(2, 40), min_size=1, max_size=5),
    st.integers(2, 10**7),
    st.floats(0, 1),
    st.floats(0.001, 30),
)
def test_chosen_retentions_keep_their_promises(sizes, records, share, epsilon) -> None:
    k = 1 + share * (records - 1)
    rho = retention_for_both(k, epsilon, records, sizes)
    chosen = [RetentionReplacement(rho, size) for size in sizes]
    assert pk(chosen, records) >= k
    assert local_epsilon(chosen) <= epsilon


@quick
@given(
    st.lists(st.tuples(st.integers(2, 40), st.floats(0, 100)), min_size=1, max_size=6).filter(
        lambda pairs: sum(weight for _, weight in pairs) > 0
    ),
    st.floats(1e-9, 60),
)
def test_weighted_retentions_spend_what_they_were_given(pairs, epsilon) -> None:
    sizes, shares = zip(*pairs, strict=True)
    chosen = [
        RetentionReplacement(rho, size)
        for rho, size in zip(retentions_by_weight(epsilon, sizes, shares), sizes, strict=True)
    ]
    assert local_epsilon(chosen) <= epsilon
    if epsilon < 20:  # above, a retention may come too close to 1 for a floating-point number
        assert local_epsilon(chosen) >= epsilon * (1 - 1e-6)


@slow
@given(attributes, st.integers(1, 10**8), st.floats(1e-9, 1e-2))
def test_central_is_never_more_than_local(drawn, records, delta) -> None:
    promise = central_epsilon(drawn, records, delta)
    assert promise.epsilon <= local_epsilon(drawn)
    assert central_delta(drawn, records, promise.epsilon).delta <= delta


@slow
@given(attributes, st.integers(5, 10**7), st.floats(0.01, 0.9))
def test_delta_falls_with_records_and_with_epsilon(drawn, records, share) -> None:
    """Both are proved for the bound itself; the smoothing of its evaluation may add a few per cent."""
    epsilon = share * local_epsilon(drawn)
    here = central_delta(drawn, records, epsilon).delta
    assert central_delta(drawn, 2 * records, epsilon).delta <= 1.05 * here
    assert central_delta(drawn, records, 1.05 * epsilon).delta <= 1.05 * here


@quick
@given(
    st.fractions(0, 1),
    st.fractions(0, 1),
    st.integers(2, 9),
    st.fractions(0, 9),
    st.fractions(0, 9),
    st.fractions(-9, 9),
)
def test_differing_in_one_more_attribute_is_larger_in_the_convex_order(one, other, size, r, s, at) -> None:
    """The step behind the worst pair, for every convex function of the form (· − at)₊."""
    low, high = sorted((one, other))
    outcomes = range(size)

    def expected(values) -> Fraction:
        return sum((max(Fraction(0), value - at) for value in values), start=Fraction(0)) / size

    agreeing = [(high if w == 0 else low) * (r - s) for w in outcomes]
    differing = [(high if w == 0 else low) * r - (high if w == 1 else low) * s for w in outcomes]
    assert sum(agreeing) == sum(differing)
    assert expected(agreeing) <= expected(differing)


@slow
@given(attributes, st.integers(2, 10**6), st.floats(0.01, 0.9))
def test_the_order_of_attributes_does_not_matter_when_shuffled(drawn, records, share) -> None:
    epsilon = share * local_epsilon(drawn)
    values = [central_delta(list(order), records, epsilon).delta for order in itertools.permutations(drawn)]
    assert max(values) == pytest.approx(min(values), rel=1e-4)
