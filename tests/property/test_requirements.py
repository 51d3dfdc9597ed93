"""What a search concludes from one table about others, and each requirement against its own definition."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.recoding.demands import suppress
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.requirements import (
    BeliefRatio,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    LargestShare,
    RecursiveDiversity,
    TCloseness,
)

VALUES = 3
COUNTS = (
    st.integers(1, 6)
    .flatmap(
        lambda groups: st.lists(
            st.lists(st.integers(0, 12), min_size=VALUES, max_size=VALUES).filter(any), min_size=groups, max_size=groups
        )
    )
    .map(np.array)
)
REQUIREMENTS = [
    KAnonymity(4),
    DistinctDiversity(2),
    DistinctDiversity(3),
    EntropyDiversity(2),
    EntropyDiversity(1.7),
    RecursiveDiversity(2.0, 2),
    RecursiveDiversity(Fraction(5), 3),
    LargestShare(0.6),
    LargestShare(0.5, (0, 2)),
    TCloseness(0.2),
    TCloseness(0.15, "ordered"),
    TCloseness(0.3, [[0, 0, 1], [0, 0, 0]]),
    BetaLikeness(0.5),
    BetaLikeness(0.8, enhanced=True),
    DeltaDisclosure(0.6),
    BeliefRatio(2.5, Adversary.with_prior(DirichletPrior((3.0, 2.0, 1.0)))),
    BeliefRatio(3, Adversary.with_stubbornness(12, known_records=1), "subsets"),
    BeliefRatio(2, Adversary.with_shape((5, 3, 2)), "negations"),
    BeliefRatio(2, Adversary.with_shape((1, 1, 1), or_less_stubborn=True)),
]
EVERY = pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda r: f"{type(r).__name__}-{r.name}")


@EVERY
@settings(deadline=None, max_examples=30)
@given(COUNTS, st.data())
def test_merging_groups_of_a_table_that_keeps_it_gives_one_that_keeps_it(requirement, counts, data):
    assert requirement.monotone
    # What is left after suppression keeps the requirement, so most examples are about something.
    out = suppress([(requirement, counts)])
    counts = counts[~out]
    if not len(counts):
        return
    assert requirement.holds(counts)
    target = data.draw(st.lists(st.integers(0, len(counts) - 1), min_size=len(counts), max_size=len(counts)))
    merged = np.zeros_like(counts)
    np.add.at(merged, target, counts)
    assert requirement.holds(merged)


@pytest.mark.parametrize("requirement", [r for r in REQUIREMENTS if r.survives_any_merge], ids=lambda r: r.name)
@settings(deadline=None, max_examples=30)
@given(COUNTS, COUNTS)
def test_a_group_that_survives_any_merge(requirement, kept, other):
    group, added = kept[:1], other[:1]
    if requirement.holds(group):
        assert requirement.holds(group + added)
    else:
        # So every part of a group that fails does, too.
        part = np.minimum(group, added)
        assert not part.any() or not requirement.holds(part)


def test_only_sizes_and_numbers_of_values_survive_any_merge():
    assert {type(r) for r in REQUIREMENTS if r.survives_any_merge} == {KAnonymity, DistinctDiversity}


@pytest.mark.parametrize(
    "requirement",
    [
        EntropyDiversity(2),
        RecursiveDiversity(2, 2),
        LargestShare(0.6),
        TCloseness(0.25),
        BetaLikeness(0.5),
        DeltaDisclosure(1.0),
        BeliefRatio(2, Adversary.with_stubbornness(12)),
    ],
    ids=lambda r: type(r).__name__,
)
def test_the_others_do_not(requirement):
    """A large group of one value drowns a group that is fine, and what must be left out grows with the merge."""
    fine, drowning, rest = [6, 6, 0], [40, 0, 0], [40, 120, 0]
    before, after = np.array([fine, drowning, rest]), np.array([np.add(fine, drowning), [0, 0, 0], rest])
    assert not requirement.failing(before)[0]
    assert requirement.failing(after)[0]


@EVERY
@settings(deadline=None, max_examples=20)
@given(COUNTS)
def test_a_group_fails_exactly_if_it_fails_on_its_own(requirement, counts):
    fails = requirement.failing(counts)
    assert fails.any() == (not requirement.holds(counts))
    for group, failed in zip(counts, fails, strict=True):
        if requirement.about_whole:
            # Beside a group that makes up for the rest of the table: that group may fail, this one decides.
            others = counts.sum(axis=0) - group
            alone = np.array([group, others])
            assert requirement.failing(alone)[0] == failed
        else:
            assert requirement.holds(group[None, :]) == (not failed)


@EVERY
@settings(deadline=None, max_examples=20)
@given(COUNTS, st.integers(0, 60), st.permutations(range(6)))
def test_what_is_left_after_suppression_keeps_it(requirement, counts, most, order):
    out = suppress([(requirement, counts)])
    assert out is not None
    left = counts[~out]
    assert not len(left) or requirement.holds(left)
    assert out.any() == (not requirement.holds(counts))
    limited = suppress([(requirement, counts)], most)
    if counts[out].sum() > most:
        assert limited is None
    else:
        assert (limited == out).all()
    permuted = [i for i in order if i < len(counts)]
    assert (suppress([(requirement, counts[permuted])]) == out[permuted]).all()


@settings(deadline=None, max_examples=30)
@given(COUNTS, st.sampled_from(list(itertools.combinations(REQUIREMENTS, 2))))
def test_two_requirements_are_kept_together_in_any_order(counts, pair):
    out = suppress([(requirement, counts) for requirement in pair])
    left = counts[~out]
    assert not len(left) or all(requirement.holds(left) for requirement in pair)
    assert (suppress([(requirement, counts) for requirement in reversed(pair)]) == out).all()


def test_suppressing_a_group_can_make_another_one_fail():
    """Close to the whole table, but not to what is published of it."""
    counts = np.array([[10, 0], [4, 6], [3, 7], [3, 7]])
    closeness = TCloseness(0.15)
    assert closeness.failing(counts).tolist() == [True, False, True, True]
    assert suppress([(closeness, counts)]).tolist() == [True, False, True, True]
    mild = TCloseness(0.25)
    assert mild.failing(counts).tolist() == [True, False, False, False]
    assert suppress([(mild, counts)]).tolist() == [True, False, False, False]
    skewed = np.array([[30, 0], [5, 5], [0, 8], [0, 8]])
    assert TCloseness(0.45).failing(skewed).tolist() == [False, False, True, True]
    assert suppress([(TCloseness(0.45), skewed)]).tolist() == [False, False, True, True]
    chain = np.array([[40, 0], [10, 10], [6, 14]])
    # 56:24 at first, so the last group fails; without it 50:10, where the second one does.
    assert TCloseness(0.32).failing(chain).tolist() == [False, False, True]
    assert suppress([(TCloseness(0.32), chain)]).tolist() == [False, True, True]


def test_exactly_at_the_limit():
    thirds = np.array([[1, 2], [2, 1]])
    assert not LargestShare(Fraction(2, 3)).failing(thirds).any()
    assert LargestShare(0.6666666).failing(thirds).all()
    assert not LargestShare(0.3, (0,)).failing(np.array([[3, 7]])).any()
    assert not EntropyDiversity(2).failing(np.array([[3, 3], [50, 50]])).any()
    assert RecursiveDiversity(2, 2).failing(thirds).all()  # strictly below
    assert not RecursiveDiversity(2.0001, 2).failing(thirds).any()
    # (1/3, 2/3) against halves: a distance of 1/6, a gain of 1/3.
    assert not TCloseness(Fraction(1, 6)).failing(thirds).any()
    assert TCloseness(Fraction(166666, 1000000)).failing(thirds).all()
    assert not BetaLikeness(Fraction(1, 3)).failing(thirds).any()
    assert not KAnonymity(3).failing(thirds).any()


def test_rows_without_records_never_fail():
    counts = np.array([[0, 0, 0], [4, 4, 4]])
    for requirement in REQUIREMENTS:
        assert not requirement.failing(counts)[0]


def test_what_makes_no_sense_is_refused():
    for wrong in (
        lambda: KAnonymity(0),
        lambda: DistinctDiversity(0),
        lambda: EntropyDiversity(0.5),
        lambda: RecursiveDiversity(0, 2),
        lambda: RecursiveDiversity(1, 1),
        lambda: LargestShare(0),
        lambda: LargestShare(1.5),
        lambda: TCloseness(-0.1),
        lambda: BetaLikeness(float("nan")),
        lambda: DeltaDisclosure(0),
        lambda: BeliefRatio(0.9, Adversary.with_stubbornness(5)),
    ):
        with pytest.raises(ParameterError):
            wrong()
    with pytest.raises(UnreachableError):
        BeliefRatio(2, Adversary.anyone())
