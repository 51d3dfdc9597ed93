"""Counts by every pair of columns against projections, one pair at a time."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.histogram import Column, Histogram
from incrowd.recoding import pairs


def random_table(sizes, rows, seed):
    rng = np.random.default_rng(seed)
    columns = [
        Column(f"c{i}", tuple(map(str, range(size))), rng.integers(0, size, rows)) for i, size in enumerate(sizes)
    ]
    return Histogram.of(columns, rng.integers(1, 5, rows))


def occurring(sums):
    keys, counts = sums.occurring()
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


def projected(table, pair):
    part = table.project(pair)
    keys = part.columns[0].codes.astype(np.int64) * len(part.columns[1].labels) + part.columns[1].codes
    return dict(zip(keys.tolist(), part.counts.tolist(), strict=True))


def check(table, other):
    found = {pair: sums for pair, *sums in pairs.paired_sums(table, other)}
    assert sorted(found) == sorted(combinations(table.names, 2))
    for pair, (one, two) in found.items():
        assert occurring(one) == projected(table, pair)
        expected = projected(other, pair)
        assert occurring(two) == expected
        sought = np.arange(min(2000, np.prod([len(other[name].labels) for name in pair], dtype=np.int64)))
        assert two.at(sought).tolist() == [expected.get(key, 0) for key in sought.tolist()]


@given(
    st.lists(st.sampled_from((1, 2, 3, 7, 16, 60, 300)), min_size=1, max_size=7),
    st.integers(1, 300),
    st.integers(0, 2**32),
    st.sampled_from((1, 2**6, 2**12)),
)
@settings(max_examples=60, deadline=None)
def test_every_pair_is_counted_as_a_projection_counts_it(sizes, rows, seed, fewest):
    table = random_table(sizes, rows, seed)
    other = random_table([max(1, size // 2) for size in sizes], rows // 2, seed + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_FEWEST", fewest)
        check(table, other)


def test_pairs_with_very_many_combinations_are_sorted():
    table, other = random_table((3000, 2, 3000, 5), 500, 1), random_table((3000, 1, 2000, 5), 100, 2)
    check(table, other)


def test_nothing_published():
    table = random_table((3000, 2, 3000), 50, 1)
    check(table, table.where(table.counts > 9))


def test_small_columns_are_counted_together():
    table = random_table((100, 365, 2, 5, 7, 16, 14, 41), 10, 1)
    sizes = {c.name: len(c.labels) for c in table.columns}
    blocks = list(pairs._blocks(sizes, 2**20))
    assert len(blocks) <= 6  # instead of 28
    covered = {frozenset(pair) for a, b in blocks for pair in combinations((*a, *b), 2)}
    assert covered == {frozenset(pair) for pair in combinations(table.names, 2)}
