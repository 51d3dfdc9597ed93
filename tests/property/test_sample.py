"""Plain samples: what holds for every table."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.sample import draw as sample
from incrowd.mechanisms.sample.estimate import interval
from incrowd.mechanisms.sample.settle import Rounding, SampleSettings, find_terms, printed
from incrowd.randomness import RandomSource
from incrowd.theory import sampling

tables = st.lists(st.integers(1, 2000), min_size=1, max_size=30).map(np.array)
promises = st.tuples(st.floats(0.01, 3.0), st.floats(1e-6, 0.5))


@settings(deadline=None, max_examples=40)
@given(tables, promises, st.randoms())
def test_terms_are_safe_and_do_not_depend_on_the_order(counts, promise, random):
    terms = find_terms(counts, SampleSettings(*promise, None))
    assert 0 < terms.rate < 1
    assert sampling.sample_delta(counts, terms.rate, terms.epsilon).delta <= terms.delta
    shuffled = counts.tolist()
    random.shuffle(shuffled)
    assert find_terms(np.array(shuffled), SampleSettings(*promise, None)) == terms
    planned = find_terms(counts, SampleSettings(promise[0], None, terms.rate))
    assert planned.delta <= printed(promise[1], up=True)


@settings(deadline=None, max_examples=40)
@given(st.integers(-50, 50), st.integers(0, 60), st.integers(2, 70), st.integers(0, 2**32), st.booleans())
def test_rounding_keeps_every_record_within_a_base_of_its_number(first, span, base, seed, missing):
    how = Rounding(base, first, first + span)
    labels = (*map(str, range(first, first + span + 1)), *([None] if missing else []))
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(labels), 50)
    table = Histogram.of([Column("n", labels, codes)], rng.integers(1, 9, 50))
    rounded = sample.round_at_random(table, {"n": how}, RandomSource.seeded(seed))
    assert rounded.total == table.total
    numbers = [int(text) for text in how.labels]
    assert all(number % base == 0 for number in numbers)
    assert numbers[0] <= first < numbers[0] + base
    assert numbers[-1] - base < first + span <= numbers[-1]
    # As many records lie at or below a multiple afterwards as can have come from numbers less than a base above it.
    before = {t: int(n) for t, n in zip(_texts(table), table.counts, strict=True)}
    after = {t: int(n) for t, n in zip(_texts(rounded), rounded.counts, strict=True)}
    assert before.get(None, 0) == after.get(None, 0)
    for number in numbers:
        reach = sum(n for t, n in before.items() if t is not None and abs(int(t) - number) < base)
        sure = before.get(str(number), 0)
        assert sure <= after.get(str(number), 0) <= reach


def _texts(table):
    column = table["n"]
    return [column.labels[code] for code in column.codes]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=20, unique=True), st.floats(1e-6, 0.999))
def test_intervals_hold_the_estimate_and_grow_with_it(counts, rate):
    x = np.array(sorted(counts))
    low, high = interval(x, rate)
    assert (low >= x).all()
    assert (low <= np.ceil(x / rate)).all()
    assert (high >= np.floor(x / rate)).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
