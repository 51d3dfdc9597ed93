"""All groups of a table at once decide as the definition decides for each: `fails` against `keeps`."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.recoding.demands import least_lost, suppress
from incrowd.theory import _groups, requirements
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.beliefs import Predicate
from incrowd.theory.requirements import (
    BeliefRatio,
    BetaLikeness,
    Bound,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    LargestShare,
    RecursiveDiversity,
    Requirement,
    TCloseness,
)


def tree(size):
    return (tuple(value // 2 for value in range(size)), (0,) * size)


def prior(size):
    return DirichletPrior(tuple(float(1 + value) for value in range(size)))


def predicates(size):
    return (Predicate((0,), "one"), Predicate(tuple(range(1, size)), "not one"))


# Every kind of requirement, its limit and the size of the domain left open.
KINDS = {
    "k": lambda limit, size: KAnonymity(max(1, int(limit))),
    "distinct": lambda limit, size: DistinctDiversity(max(1, int(limit))),
    "entropy": lambda limit, size: EntropyDiversity(max(1, limit)),
    "recursive 2": lambda limit, size: RecursiveDiversity(limit or 1, 2),
    "recursive 3": lambda limit, size: RecursiveDiversity(limit or 1, 3),
    "share": lambda limit, size: LargestShare(min(limit, 1) or 1),
    "named share": lambda limit, size: LargestShare(min(limit, 1) or 1, (0, size - 1)),
    "equal": lambda limit, size: TCloseness(min(limit, 1)),
    "ordered": lambda limit, size: TCloseness(min(limit, 1), "ordered"),
    "tree": lambda limit, size: TCloseness(min(limit, 1), tree(size)),
    "likeness": lambda limit, size: BetaLikeness(limit),
    "enhanced likeness": lambda limit, size: BetaLikeness(limit, enhanced=True),
    "disclosure": lambda limit, size: DeltaDisclosure(limit or 1),
    "prior": lambda limit, size: BeliefRatio(max(1, limit), Adversary.with_prior(prior(size))),
    "stubborn": lambda limit, size: BeliefRatio(
        max(1, limit), Adversary.with_stubbornness(3.5 * size, known_records=1), "subsets"
    ),
    "shape": lambda limit, size: BeliefRatio(max(1, limit), Adversary.with_shape([1.0] * size), "negations"),
    "less stubborn": lambda limit, size: BeliefRatio(
        max(1, limit),
        Adversary.with_shape([float(1 + v) for v in range(size)], or_less_stubborn=True),
        predicates(size),
    ),
}
EVERY = pytest.mark.parametrize("kind", KINDS)

SIZES = st.sampled_from([0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 8, 12, 50, 10**3, 10**6 + 1])


@st.composite
def tables(draw):
    """Rows without records, values that nobody has, and single values among them."""
    values = draw(st.integers(2, 5))
    row = st.lists(SIZES, min_size=values, max_size=values)
    single = st.tuples(st.integers(0, values - 1), st.integers(1, 9)).map(
        lambda pair: [pair[1] * (value == pair[0]) for value in range(values)]
    )
    even = st.tuples(st.integers(1, 9), st.integers(1, values)).map(
        lambda pair: [pair[0] * (value < pair[1]) for value in range(values)]
    )
    rows = draw(st.lists(st.one_of(row, single, even), min_size=1, max_size=7).filter(lambda rows: any(map(any, rows))))
    return np.array(rows, dtype=np.int64)


def as_defined(requirement, counts):
    whole = [int(total) for total in counts.sum(axis=0)]
    return [any(group) and not requirement.keeps([int(c) for c in group], whole) for group in counts.tolist()]


def limits_reached(kind, counts):
    """The limits that some group of a table reaches exactly, as far as there are any."""
    size = counts.shape[1]
    found = []
    for group in counts[counts.any(axis=1)]:
        whole = np.array([group, counts.sum(axis=0) - group])
        measure = KINDS[kind](1, size).measure(whole if whole[1].any() else whole[:1])
        exact = measure.exact
        if exact is None and hasattr(measure, "value") and math.isfinite(measure.value):
            exact = Fraction(measure.value)  # a logarithm, as near as it gets
        if exact is not None:
            found.append(exact)
    return found


@EVERY
@settings(deadline=None, max_examples=120)
@given(tables(), st.data())
def test_all_at_once_decide_as_each_by_the_definition(kind, counts, data):
    reached = limits_reached(kind, counts)
    limits = st.sampled_from([0, 1, 2, 0.1, 0.3, 0.5, 0.75, 1.5, 2.3, 3, Fraction(1, 3), Fraction(8, 3), 900.0])
    if reached:
        tied = st.sampled_from(reached)
        limits |= (
            tied
            | tied.map(float)
            | st.tuples(tied, st.sampled_from([-1, 1])).map(
                lambda pair: max(Fraction(0), pair[0] + pair[1] * Fraction(1, 10**15))
            )
        )
    requirement = KINDS[kind](data.draw(limits), counts.shape[1])
    fails = requirement.failing(counts)
    assert fails.tolist() == as_defined(requirement, counts)
    assert requirement.holds(counts) == (not fails.any())
    # And the worst group, as reports state it, meets the limit exactly if none fails.
    assert requirement.measure(counts).satisfies(requirement.limit) == (not fails.any())


@EVERY
@settings(deadline=None, max_examples=15)
@given(tables(), st.sampled_from([0.3, 0.5, 1.5, 3]))
def test_in_small_blocks_and_many_at_once_too(kind, counts, limit):
    requirement = KINDS[kind](limit, counts.shape[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_groups, "_BLOCK_CELLS", 7)
        assert requirement.failing(counts).tolist() == as_defined(requirement, counts)
        patch.setattr(_groups, "_FEW", 0)
        assert requirement.failing(counts).tolist() == as_defined(requirement, counts)


@EVERY
def test_counts_beyond_64_bits_when_multiplied(kind):
    """Fractions of counts near 2^52 differ by less than floating point tells."""
    large = 1 << 50
    counts = np.array([[large, large - 1, 1], [large, large, 0], [large - 1, large + 1, 0], [3, 3, 3]])
    for limit in (0.5, Fraction(1, 2), Fraction(large, 2 * large - 1), 1, 2, 3):
        requirement = KINDS[kind](limit, 3)
        assert requirement.failing(counts).tolist() == as_defined(requirement, counts)


@EVERY
def test_a_table_with_a_single_sensitive_value(kind):
    counts = np.array([[4, 0], [9, 0], [0, 0], [1, 0]])
    for limit in (0, 0.5, 1, 2, 5):
        requirement = KINDS[kind](limit, 2)
        assert requirement.failing(counts).tolist() == as_defined(requirement, counts)


def test_every_requirement_is_compared():
    defined = {
        value for value in vars(requirements).values() if isinstance(value, type) and issubclass(value, Requirement)
    } - {Requirement}
    assert {type(make(1, 3)) for make in KINDS.values()} == defined


def test_the_comparison_notices_a_decision_by_floating_point_alone(monkeypatch):
    """The twin: whatever is near a limit passes."""
    counts, half = np.array([[(1 << 50) + 1, (1 << 50) - 1]]), LargestShare(Fraction(1, 2))
    assert half.failing(counts).tolist() == as_defined(half, counts) == [True]
    beyond = _groups.Scores.beyond
    monkeypatch.setattr(
        _groups.Scores, "beyond", lambda self, limit, allows, error=0.0: beyond(self, limit, lambda *_: True, error)
    )
    assert half.failing(counts).tolist() != as_defined(half, counts)


# --- what is lost however a group is split ---------------------------------------------------------------------------


def least_and_lost(requirement, parts, group_of):
    """What groups must lose at least, and what they do lose when split into parts of which those that fail go."""
    out = suppress([(requirement, parts)])
    groups = max(group_of) + 1
    coarse = np.zeros((groups, parts.shape[1]), dtype=np.int64)
    np.add.at(coarse, group_of, parts)
    lost = np.bincount(group_of, weights=(parts.sum(axis=1) * out), minlength=groups)
    left = max(1, int(parts[~out].sum()))
    whole = np.minimum(1.0, parts.sum(axis=0) / left)
    return least_lost(requirement, coarse, coarse.sum(axis=1), whole), lost


@EVERY
@settings(deadline=None, max_examples=60)
@given(tables(), st.data())
def test_no_split_loses_less_than_the_bound(kind, parts, data):
    limits = st.sampled_from([0.1, 0.3, 0.5, 0.75, 1.2, 1.5, 2, 3])
    requirement = KINDS[kind](data.draw(limits), parts.shape[1])
    group_of = data.draw(st.lists(st.integers(0, 2), min_size=len(parts), max_size=len(parts)))
    least, lost = least_and_lost(requirement, parts, group_of)
    assert (least <= lost).all()


def test_the_bound_is_reached_and_a_tighter_one_would_be_noticed(monkeypatch):
    half = LargestShare(0.5)
    parts = np.array([[5, 5], [80, 0]])
    least, lost = least_and_lost(half, parts, [0, 0])
    assert least.tolist() == lost.tolist() == [80]
    monkeypatch.setattr(LargestShare, "bounds", lambda self, sizes, whole: [Bound(np.full(len(whole), 0.49))])
    least, lost = least_and_lost(half, parts, [0, 0])
    assert (least > lost).any()
