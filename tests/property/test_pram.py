"""What holds for every table and every randomisation of it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import GuaranteeError
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.pram import draw as pram
from incrowd.mechanisms.pram.blocks import Block, as_drawn
from incrowd.mechanisms.pram.estimate import tabulate
from incrowd.mechanisms.pram.inversion import invert, likeliest
from incrowd.mechanisms.pram.settle import PramPromise, Wish, solve
from incrowd.mechanisms.pram.state import _written, read_block
from incrowd.randomness import RandomSource
from incrowd.theory.randomisation import RetentionReplacement, TransitionMatrix, local_epsilon, pk

FEW = settings(max_examples=25, deadline=None)


@st.composite
def matrices(draw, size):
    rows = []
    for _ in range(size):
        weights = draw(st.lists(st.integers(1, 20), min_size=size, max_size=size))
        rows.append([Fraction(w, sum(weights)) for w in weights])
    return TransitionMatrix(rows)


@st.composite
def situations(draw):
    """A table of one to three columns, and blocks that hold each of them once."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    records = draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), min_size=1, max_size=60))
    names = [f"c{i}" for i in range(len(sizes))]
    groups = [[name] for name in names]
    if len(names) > 1 and draw(st.booleans()):
        groups = [[names[1], names[0]], *([name] for name in names[2:])]
    blocks = []
    for group in groups:
        own = tuple(sizes[names.index(name)] for name in group)
        size = math.prod(own)
        kept = st.builds(lambda r, n=size: RetentionReplacement(as_drawn(r), n), st.floats(0.05, 0.95))
        blocks.append(Block(tuple(group), own, draw(st.one_of(kept, matrices(size)))))
    return records, sizes, names, blocks


def histogram(records, sizes, names):
    return Histogram.of(
        [
            Column(name, tuple(map(str, range(size))), np.array([record[i] for record in records]))
            for i, (name, size) in enumerate(zip(names, sizes, strict=True))
        ]
    )


@FEW
@given(situations(), st.randoms(use_true_random=False), st.integers(0, 10**6))
def test_the_order_of_the_records_changes_nothing_and_none_is_lost(situation, random, seed):
    records, sizes, names, blocks = situation
    shuffled = random.sample(records, len(records))
    for way in (pram._on_cells, pram._by_record, pram._by_record_in_parts):
        first = way(histogram(records, sizes, names), blocks, RandomSource.seeded(seed))
        second = way(histogram(shuffled, sizes, names), blocks, RandomSource.seeded(seed))
        assert first == second
        assert first.total == len(records)
        assert first.names == tuple(names)


@FEW
@given(situations())
def test_a_certificate_holds_the_very_probabilities_that_are_drawn(situation):
    for block in situation[3]:
        assert read_block(_written(block)) == block


@FEW
@given(situations(), st.data())
def test_sums_of_estimates_are_estimates_of_sums(situation, data):
    records, sizes, names, blocks = situation
    table = histogram(records, sizes, names)
    released = pram.run(table, blocks, RandomSource.seeded(1))
    by = data.draw(st.permutations(names))
    if any(isinstance(b.law, TransitionMatrix) and np.linalg.cond(b.law.matrix()) > 1e4 for b in blocks):
        return  # nearly singular: nothing to be estimated
    whole = tabulate(blocks, released, by)
    cells = whole.arranged(invert(whole.axes, whole.released)[0])
    part = tabulate(blocks, released, by[:1])
    one = part.arranged(invert(part.axes, part.released)[0])
    summed = cells.sum(axis=tuple(range(1, len(by))))
    assert summed == pytest.approx(one, rel=1e-6, abs=1e-4 * np.abs(cells).max())
    found = likeliest(whole.axes, whole.released, most=50)
    assert (found.counts >= 0).all()
    assert found.counts.sum() == pytest.approx(len(records))
    assert found.gap >= -1e-9


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(2, 12), min_size=1, max_size=4),
    st.floats(1.01, 50),
    st.floats(0.05, 8),
    st.lists(st.floats(0.1, 5), min_size=4, max_size=4),
    st.booleans(),
)
def test_what_is_solved_for_is_reached(sizes, k, epsilon, weights, weighted):
    wishes = [Wish((str(i),), (size,), weight=weights[i] if weighted else None) for i, size in enumerate(sizes)]
    records = 500
    blocks = solve(wishes, k, epsilon, records)
    laws = [block.law for block in blocks]
    assert pk(laws, records) >= k
    assert local_epsilon(laws) <= epsilon
    promise = PramPromise.of(blocks, records, 1e-5)
    assert all(promise.holds(blocks).values())
    assert promise.epsilon <= promise.local_epsilon


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([2, 3, 10, 1_000, 10**6, 10**8]),
    st.sampled_from([1.5, 1.0000001, 1 + 3e-15, "R", "R/2", "R(1-1e-9)", "R(1-1e-14)", "R-1e-3", None]),
    st.sampled_from([None, 1e-12, 0.1, 50, 2_000]),
    st.lists(st.sampled_from([1.0, 1e-9, 1e6, None]), min_size=1, max_size=4),
    st.booleans(),
)
def test_what_lies_at_the_edge_is_reached_or_refused(records, k, epsilon, weights, with_a_matrix):
    """As near to R, or to 1, as k may be, and beside a matrix: never a failure of our own."""
    edges = {"R": records, "R/2": records / 2, "R(1-1e-9)": records * (1 - 1e-9), "R-1e-3": records - 1e-3}
    edges["R(1-1e-14)"] = records * (1 - 1e-14)
    k = edges.get(k, k)
    if (k is None and epsilon is None) or (k is not None and k <= 1):
        return
    wishes = [Wish((str(i),), (i + 2,), weight=weight) for i, weight in enumerate(weights)]
    if with_a_matrix:
        rows = ((Fraction(51, 100), Fraction(49, 100)), (Fraction(49, 100), Fraction(51, 100)))
        wishes.insert(len(wishes) // 2, Wish(("m",), (2,), rows))
    try:
        blocks = solve(wishes, k, epsilon, records)
    except GuaranteeError:
        if with_a_matrix:
            return
        raise
    laws = [block.law for block in blocks]
    assert k is None or pk(laws, records) >= k
    assert epsilon is None or local_epsilon(laws) <= epsilon
