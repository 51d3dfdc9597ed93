"""What must hold for every set of releases."""

import itertools
import json
import math
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import BudgetError
from incrowd.mechanisms.promises import CrowdPromise, Entry, Point, Uncomposable
from incrowd.releases.costs import at_least, at_most, meaning
from incrowd.releases.ledger import Ledger
from incrowd.theory.crowd import CrowdProfile
from incrowd.theory.profile import ApproximateDP, Relation, compose
from spending import spent

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
some = settings(max_examples=60, deadline=None)
few = settings(max_examples=15, deadline=None)

hundredths = st.integers(0, 80).map(lambda n: n / 100)
small_deltas = st.sampled_from([0.0, 0.0, 1e-9, 1e-7])
relations = st.sampled_from(Relation)


def entry(promise, **more):
    return Entry("m", promise, **more)


def points(relation=relations):
    return st.builds(Point, hundredths, small_deltas, relation)


crowds = st.sampled_from([CrowdPromise(20, 0.2), CrowdPromise(20, 0.2, 0.1), CrowdPromise(8, 0.1)])
alone = st.just(Uncomposable("belief ratio of 3"))
pure = st.lists(st.builds(Point, hundredths, st.just(0.0), relations).map(entry), max_size=6)
mixed = st.lists((points() | alone).map(entry), max_size=6)


# --- numbers ----------------------------------------------------------------------------------------------------


@some
@given(st.floats(0, 1e6))
def test_a_number_is_read_within_its_own_rounding(number):
    assert float(meaning(number)) == number
    assert at_least(meaning(number)) == at_most(meaning(number)) == number
    assert meaning(math.nextafter(number, math.inf)) > meaning(number)


@some
@given(st.fractions(0, 100, max_denominator=10**20))
def test_totals_are_rounded_outwards_by_less_than_a_unit(total):
    assert meaning(at_least(total)) >= total >= meaning(at_most(total))
    assert meaning(math.nextafter(at_least(total), -math.inf)) < total or total == 0
    assert meaning(math.nextafter(at_most(total), math.inf)) > total


# --- totals -----------------------------------------------------------------------------------------------------


@some
@given(pure)
def test_pure_promises_add_up_exactly(entries):
    """Hundredths are counted as whole numbers here, twice as many for what must be converted."""
    hundreds = sum(round(e.promise.epsilon * 100) * (2 if e.relation is ADD else 1) for e in entries)
    assert spent(entries, REPLACE, 0.0) == hundreds / 100
    assert spent(entries, ADD, 0.0) == sum(round(e.promise.epsilon * 100) for e in entries if e.relation is ADD) / 100


@some
@given(mixed, relations, st.sampled_from([0.0, 1e-6, 1e-3]), st.randoms(use_true_random=False))
def test_the_order_of_releases_does_not_matter(entries, relation, delta, random):
    shuffled = random.sample(entries, len(entries))
    assert spent(shuffled, relation, delta) == spent(entries, relation, delta)


@some
@given(mixed, (points() | alone).map(entry), relations, st.sampled_from([0.0, 1e-6, 1e-3]))
def test_another_release_never_lowers_what_is_spent(entries, more, relation, delta):
    before, after = spent(entries, relation, delta), spent([*entries, more], relation, delta)
    assert after >= before * (1 - 1e-9)
    if not more.composes or (more.relation is REPLACE and relation is ADD):
        assert after == before


def test_another_release_never_lowers_what_crowds_have_spent():
    entries = [
        entry(p) for p in (CrowdPromise(20, 0.2), Point(0.1, 0.0, ADD), CrowdPromise(8, 0.1), Point(0, 1e-9, ADD))
    ]
    totals = [spent(entries[:n], ADD, 1e-6) for n in range(5)]
    assert totals == sorted(totals)
    assert totals[3] > totals[2] > totals[1] > totals[0] == 0.0


@few
@given(st.lists(points(st.just(ADD)), min_size=1, max_size=3), st.integers(1, 4))
def test_copies_are_so_many_releases(promises, copies):
    together = [entry(p, copies=copies) for p in promises]
    apart = [entry(p) for p in promises for _ in range(copies)]
    assert spent(together, ADD, 1e-6) == spent(apart, ADD, 1e-6)


def exact_delta(promises, epsilon):
    """δ of all these promises at their worst: each a randomised response that fails with probability δ₀.

    Every combination of answers is visited; the failures are independent.
    """
    odds = [(1 / (1 + math.exp(-p.epsilon)), 1 / (1 + math.exp(p.epsilon))) for p in promises]
    above = 0.0
    for likely in itertools.product((True, False), repeat=len(odds)):
        here = math.prod(high if yes else low for (high, low), yes in zip(odds, likely, strict=True))
        there = math.prod(low if yes else high for (high, low), yes in zip(odds, likely, strict=True))
        above += max(0.0, here - math.exp(epsilon) * there)
    return 1 - math.prod(1 - p.delta for p in promises) * (1 - above)


@some
@given(st.lists(points(st.just(ADD)), min_size=1, max_size=7), st.sampled_from([1e-6, 1e-4, 1e-2]))
def test_points_cost_what_the_worst_mechanisms_would(promises, delta):
    """Never less, and little more: the composition works on a grid of 1e-4 or finer than a thousandth."""
    epsilon = spent([entry(p) for p in promises], ADD, delta)
    assert exact_delta(promises, epsilon) <= delta * (1 + 1e-6)
    if epsilon > 0.02:
        assert exact_delta(promises, epsilon - 0.001 * len(promises) - 0.01) > delta


def test_crowds_cost_what_composing_their_profiles_gives():
    entries = [entry(CrowdPromise(20, 0.2, 0.1)), entry(Point(0.3, 1e-9, ADD))]
    profiles = [ApproximateDP(0.3, 1e-9, ADD), CrowdProfile(20, 0.2), ApproximateDP(0.1, 0.0, ADD)]
    assert spent(entries, ADD, 1e-6) == pytest.approx(compose(profiles).epsilon(1e-6), rel=1e-9)


def test_two_crowds_cost_what_publishing_twice_reveals():
    """Both releases of one cell at once, on tables that differ in one record of it, outcome by outcome."""
    k, beta, delta = 5, 0.1, 1e-4
    epsilon = spent([entry(CrowdPromise(k, beta), copies=2)], ADD, delta)

    def law(n):
        once = np.array([math.comb(n, j) * beta**j * (1 - beta) ** (n - j) for j in range(61)])
        once[0], once[1:k] = once[:k].sum(), 0.0
        return np.outer(once, once)

    laws = [law(n) for n in range(61)]
    pairs = [*itertools.pairwise(laws), *((more, less) for less, more in itertools.pairwise(laws))]

    def revealed(at):
        return max(float(np.maximum(0.0, p - math.exp(at) * q).sum()) for p, q in pairs)

    assert revealed(epsilon) <= delta < revealed(0.85 * epsilon)


# --- the file ---------------------------------------------------------------------------------------------------


@few
@given(
    st.lists(
        st.builds(
            Entry,
            st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20),
            points() | crowds | alone,
            description=st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
            policy_digest=st.sampled_from(["", "sha256:0"]),
            copies=st.integers(1, 3),
        ),
        max_size=4,
    )
)
def test_what_is_charged_is_what_is_stated(entries):
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db")
        receipts = [ledger.charge("d", e) for e in entries]
        records = ledger.statement("d").releases if entries else ()
        assert [line.recorded.entry for line in records] == entries
        assert [line.recorded.id for line in records] == [receipt.entry_id for receipt in receipts]
        for e in entries:
            assert Entry.from_dict(json.loads(json.dumps(e.to_dict()))) == e


@few
@given(st.lists(st.integers(1, 60), max_size=8), st.integers(0, 150))
def test_charges_go_through_exactly_while_they_fit(hundreds, budget):
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db")
        ledger.set_budget("d", budget / 100, 0.0, ADD)
        total = 0
        for step in hundreds:
            try:
                ledger.charge("d", entry(Point(step / 100, 0.0, ADD)))
            except BudgetError:
                assert total + step > budget
            else:
                total += step
                assert total <= budget
        statement = ledger.statement("d")
        assert Fraction(str(statement.spent.epsilon)) == Fraction(total, 100)
        assert Fraction(str(statement.remaining)) == Fraction(budget - total, 100)
