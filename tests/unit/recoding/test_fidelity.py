"""Scores of counts, against sums written out by hand and against tables whose scores are known."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.domain import Recode
from incrowd.histogram import Column, Histogram
from incrowd.recoding.fidelity import (
    dense,
    fidelities,
    fidelity,
    independent,
    score,
    sets_of_columns,
    spread,
    spread_counts,
)


def table(*cells, sizes):
    codes = np.array([cell[:-1] for cell in cells])
    columns = [Column(f"c{i}", tuple(f"v{j}" for j in range(size)), codes[:, i]) for i, size in enumerate(sizes)]
    return Histogram.of(columns, np.array([cell[-1] for cell in cells]))


PEOPLE = table((0, 0, 6), (0, 1, 2), (1, 0, 1), (1, 1, 3), (2, 1, 8), sizes=(3, 2))


def test_a_release_that_tells_the_truth_scores_one():
    assert [f.score for f in fidelity(PEOPLE, lambda names: dense(PEOPLE, names))] == [1.0, 1.0]


def test_a_release_that_tells_nothing_scores_zero():
    nothing = lambda names: 0 * dense(PEOPLE, names)  # noqa: E731
    assert [f.score for f in fidelity(PEOPLE, nothing)] == [0.0, 0.0]


def test_the_scale_of_what_is_told_does_not_matter():
    assert [f.score for f in fidelity(PEOPLE, lambda names: 7 * dense(PEOPLE, names))] == [1.0, 1.0]


def test_the_control_is_independence_of_the_true_counts():
    one, two = fidelity(PEOPLE, lambda names: dense(PEOPLE, names))
    truth = dense(PEOPLE, ("c0", "c1")) / 20
    rows, columns = truth.sum(axis=1), truth.sum(axis=0)
    off = sum(abs(truth[i, j] - rows[i] * columns[j]) for i, j in product(range(3), range(2)))
    assert one.control == 1.0
    assert two.control == pytest.approx(1 - off / 2)
    assert two.control < 1


def test_a_coarser_comparison_forgives_what_is_told_within_a_group():
    recode = Recode(np.array([0, 0, 1]), ("low", "high"))
    shuffled = table((1, 0, 6), (1, 1, 2), (0, 0, 1), (0, 1, 3), (2, 1, 8), sizes=(3, 2))
    told = lambda names: dense(shuffled, names)  # noqa: E731
    assert fidelity(PEOPLE, told)[1].score < 1
    assert fidelity(PEOPLE, told, {"c0": recode})[1].score == pytest.approx(1.0)


def test_several_levels_at_once_score_as_each_alone():
    """Also where a label covers nothing, and where values keep their places."""
    shuffled = table((1, 0, 6), (1, 1, 2), (0, 0, 1), (0, 1, 3), (2, 1, 8), sizes=(3, 2))
    told = lambda names: dense(shuffled, names)  # noqa: E731
    as_they_are = Recode(np.array([0, 1]), ("x", "y"))
    levels = ({}, {"c0": Recode(np.array([2, 0, 2]), ("low", "nothing", "high")), "c1": as_they_are})
    both = fidelities(PEOPLE, told, levels)
    assert both == tuple(fidelity(PEOPLE, told, recodes) for recodes in levels)
    truth, believed = np.array([[1, 3], [6, 10]]), np.array([[6, 2], [1, 11]])
    assert both[1][1].score == pytest.approx(score(truth, believed))
    assert both[1][1].control == pytest.approx(score(truth, independent(truth)))


def test_labels_are_spread_evenly_over_what_they_cover():
    shown = table((0, 0, 4), (1, 1, 3), sizes=(2, 2))
    told = spread(
        shown, {"c0": Recode(np.array([0, 0, 1]), ("low", "high")), "c1": [np.array([0, 1]), np.array([1])]}, 0.5
    )
    assert told(("c0",)).tolist() == [4, 4, 6]
    assert told(("c1",)).tolist() == [4, 10]
    assert told(("c0", "c1")).tolist() == [[2, 2], [2, 2], [0, 6]]
    assert told(("c1", "c0")).tolist() == [[2, 2, 0], [2, 2, 6]]


@given(st.lists(st.integers(0, 9), min_size=6, max_size=6), st.lists(st.integers(0, 9), min_size=6, max_size=6))
def test_a_score_is_a_share_and_symmetric(one, other):
    a, b = (np.array(values, dtype=float).reshape(3, 2) for values in (one, other))
    assert -1e-12 <= score(a, b) <= 1 + 1e-12
    assert score(a, b) == pytest.approx(score(b, a))


@given(st.lists(st.integers(0, 9), min_size=12, max_size=12).filter(any))
def test_independence_keeps_what_each_column_counts(values):
    counts = np.array(values, dtype=float).reshape(2, 3, 2)
    made = independent(counts)
    for axis in range(3):
        others = tuple(i for i in range(3) if i != axis)
        assert made.sum(axis=others) == pytest.approx(counts.sum(axis=others))


def test_of_many_sets_a_fixed_choice_is_looked_at():
    wide = table((*[0] * 30, 1), sizes=[2] * 30)
    chosen = list(sets_of_columns(wide, 3))
    assert len(chosen) == len(set(chosen)) == 300
    assert chosen == list(sets_of_columns(wide, 3))


def test_sets_with_too_many_cells_are_left_out():
    assert list(sets_of_columns(table((0, 0, 1), sizes=(3000, 3000)), 2)) == []


def overlapping(rng, labels, size):
    """Covers that overlap: unions of runs, some of a single value."""
    covers = [np.flatnonzero(rng.random(size) < share) for share in rng.uniform(0.05, 0.9, labels)]
    return [codes if len(codes) else np.array([int(rng.integers(size))]) for codes in covers]


@pytest.mark.parametrize("seed", range(20))
def test_overlapping_labels_are_spread_as_one_record_after_the_other_would_be(seed):
    rng = np.random.default_rng(seed)
    covers = {"a": overlapping(rng, 7, 12), "b": overlapping(rng, 4, 5)}
    counts = rng.integers(0, 50, (7, 4)).astype(float)
    expected = np.zeros((12, 5))
    for i, j in np.ndindex(7, 4):
        expected[np.ix_(covers["a"][i], covers["b"][j])] += counts[i, j] / len(covers["a"][i]) / len(covers["b"][j])
    found = spread_counts(lambda names: counts, covers)(("a", "b"))
    assert found == pytest.approx(expected[: found.shape[0], : found.shape[1]], abs=1e-9)
    assert found.sum() == pytest.approx(counts.sum())


def test_wide_labels_take_no_more_memory_than_what_they_are_spread_over():
    """Of 200 intervals that cover half of 3,000 dates, and 300 cells of other columns: 720 MB, value by value."""
    covers = {"date": [np.arange(i, i + 1500) for i in range(0, 1500, 7)][:200]}
    counts = np.ones((200, 300))
    told = spread_counts(lambda names: counts, covers)
    tracemalloc.start()
    try:
        found = told(("date", "other"))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.sum() == pytest.approx(counts.sum())
    assert most < 10 * found.nbytes + 100_000_000
