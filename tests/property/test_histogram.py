"""Histograms against plain dictionaries."""

from collections import Counter
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import histogram
from incrowd.domain import Recode
from incrowd.histogram import Column, Histogram

NAMES = ("a", "b", "c")


@st.composite
def tables(draw):
    """Sizes of three columns, and rows within them."""
    sizes = draw(st.tuples(*[st.sampled_from([1, 2, 5, 300])] * 3))
    row = st.tuples(*[st.integers(0, min(size, 6) - 1) | st.just(size - 1) for size in sizes])
    return sizes, draw(st.lists(row, max_size=40))


def count(sizes, rows, counts=None):
    codes = np.array(rows, dtype=np.int64).reshape(len(rows), 3).T
    columns = [
        Column(name, (*map(str, range(size - 1)), None), code)
        for name, size, code in zip(NAMES, sizes, codes, strict=True)
    ]
    return Histogram.of(columns, None if counts is None else np.array(counts, dtype=np.int64))


def cells(h):
    return dict(zip(zip(*(c.codes.tolist() for c in h.columns), strict=True), h.counts.tolist(), strict=True))


@settings(deadline=None, max_examples=150)
@given(tables(), st.data(), st.sampled_from([2**62, 700]), st.sampled_from([0, 2**26]))
def test_counting_is_a_sorted_counter(table, data, key_limit, dense_cells):
    """With small limits, small tables take the ways that only huge ones would."""
    sizes, rows = table
    weights = data.draw(st.lists(st.integers(0, 10**15), min_size=len(rows), max_size=len(rows)))
    expected = Counter()
    for row, weight in zip(rows, weights, strict=True):
        expected[row] += weight
    with patch.object(histogram, "_KEY_LIMIT", key_limit), patch.object(histogram, "_DENSE_CELLS", dense_cells):
        got = count(sizes, rows, weights)
    assert list(cells(got).items()) == sorted((k, n) for k, n in expected.items() if n)


@settings(deadline=None, max_examples=100)
@given(tables(), st.randoms(use_true_random=False), st.integers(0, 40))
def test_order_and_parts_do_not_matter(table, random, cut):
    sizes, rows = table
    whole = count(sizes, rows)
    shuffled = random.sample(rows, len(rows))
    assert count(sizes, shuffled) == whole
    assert count(sizes, shuffled[:cut]).merge(count(sizes, shuffled[cut:])) == whole


@settings(deadline=None, max_examples=100)
@given(tables(), st.data())
def test_recoding_commutes_with_counting_and_projecting(table, data):
    sizes, rows = table
    groups = data.draw(st.integers(1, 3))
    to = np.arange(sizes[1]) * 7919 % groups
    recode = Recode(to, tuple(f"g{i}" for i in range(groups)))
    recoded = count(sizes, rows).recode({"b": recode})
    expected = Counter((a, int(to[b]), c) for a, b, c in rows)
    assert cells(recoded) == expected
    assert recoded.total == len(rows)
    assert recoded.project(["b"]) == count(sizes, rows).project(["b"]).recode({"b": recode})


@settings(deadline=None, max_examples=100)
@given(tables(), st.lists(st.sampled_from(NAMES), unique=True))
def test_projecting_sums(table, names):
    sizes, rows = table
    at = [NAMES.index(name) for name in names]
    expected = Counter(tuple(row[i] for i in at) for row in rows)
    projected = count(sizes, rows).project(names)
    assert projected.total == len(rows)
    assert not names or cells(projected) == expected


@settings(deadline=None, max_examples=60)
@given(tables(), st.integers(1, 7))
def test_decoding_and_expanding_lose_nothing(table, rows_at_once):
    sizes, rows = table
    h = count(sizes, rows)
    labels = {column.name: column.labels for column in h.columns}
    assert Histogram.from_arrow(h.decode(), count="count", labels=labels) == h
    assert Histogram.from_arrow(h.expand(), labels=labels) == h
    assert sum(batch.num_rows for batch in h.batches(rows_at_once)) == len(rows)
