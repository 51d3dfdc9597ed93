"""The scores of a lattice's nodes against brute force, and their sensitivity against every neighbour."""

import itertools
from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import UnreachableError
from incrowd.recoding import choice, node_scores
from incrowd.recoding import lattice as lattice_module
from incrowd.recoding.lattice import Fold, Ladder, Lattice
from incrowd.recoding.node_scores import scores
from incrowd.recoding.quality import WEIGHT_ONE, Detail, SurvivalTable


@st.composite
def ladders(draw, least=1):
    """A random tree over a few raw values: each level merges some codes of the one below; the last is one root."""
    size = draw(st.integers(1, 6))
    maps = [np.arange(size)]
    for _ in range(draw(st.integers(0, 2))):
        below = int(maps[-1].max()) + 1
        merged = np.array(draw(st.lists(st.integers(0, max(0, below - 1)), min_size=below, max_size=below)))
        maps.append(np.unique(merged, return_inverse=True)[1][maps[-1]])
    maps.append(np.zeros(size, dtype=np.int64))
    # Names of codes carry no order: shuffle them within each level.
    shuffled = []
    for level in maps[1:]:
        names = draw(st.permutations(range(int(level.max()) + 1)))
        shuffled.append(np.array(names)[level])
    maps = [maps[0], *shuffled]
    weights = tuple(
        np.array(draw(st.lists(st.integers(0, 50), min_size=int(m.max()) + 1, max_size=int(m.max()) + 1))) for m in maps
    )
    return Ladder(tuple(np.asarray(m, dtype=np.int64) for m in maps), weights)


def summed(survival, cells, weights):
    """The sum over cells of weight times value."""
    return int(np.dot(survival.values(cells), weights))


@st.composite
def tables(draw):
    columns = draw(st.lists(ladders(), min_size=1, max_size=4))
    rows = draw(st.integers(1, 25))
    codes = [
        np.array(draw(st.lists(st.integers(0, len(c.maps[0]) - 1), min_size=rows, max_size=rows)), dtype=np.int64)
        for c in columns
    ]
    counts = np.array(draw(st.lists(st.integers(1, 9), min_size=rows, max_size=rows)), dtype=np.int64)
    return Lattice(columns), codes, counts


def brute(lattice, codes, counts, node):
    cells = {}
    for row in range(len(counts)):
        key = tuple(int(la.maps[le][c[row]]) for la, le, c in zip(lattice.ladders, node, codes, strict=True))
        cells[key] = cells.get(key, 0) + int(counts[row])
    return sorted(
        (n, sum(int(la.weights[le][k]) for la, le, k in zip(lattice.ladders, node, key, strict=True)))
        for key, n in cells.items()
    )


class Worth:
    """Any values that never fall, from some number of records on."""

    def __init__(self, least, steps):
        self.table = np.concatenate([np.zeros(least, dtype=np.int64), np.cumsum([1, *steps])])
        self.least = least

    def values(self, counts):
        return self.table[np.minimum(counts, len(self.table) - 1)]


worths = st.builds(Worth, st.integers(1, 12), st.lists(st.integers(0, 5), max_size=40))


def test_nodes_are_numbered_in_counting_order():
    lattice = Lattice([FREE, Ladder(tuple(np.zeros(1, dtype=np.int64) for _ in range(3)), (np.zeros(1),) * 3)])
    assert [lattice.number(node) for node in lattice.nodes()] == list(range(lattice.size)) == list(range(6))
    assert [lattice.node_at(i) for i in range(6)] == list(lattice.nodes())


@settings(max_examples=400, deadline=None)
@given(
    tables(),
    worths,
    st.sampled_from([0, 1, 8, 10**6]),
    st.sampled_from([0, 20, 1 << 16]),
    # Every way to go on is taken by some of these: arrays always, never, or in turns; cells that are alone looked for
    # or not; cells brought together or not; on threads or not.
    st.fixed_dictionaries(
        {
            "_PLACES": st.sampled_from([1, 7, 1 << 22]),
            "_LOOSE": st.sampled_from([0, 4, 100]),
            "_FEW_CELLS": st.sampled_from([0, 1 << 12]),
            "_SAMPLED": st.sampled_from([np.uint64(1 << 58), np.uint64(2**64 - 1)]),
            "_MANY_CELLS": st.sampled_from([1, 1 << 17]),
            "_MOST_NUMBERS": st.sampled_from([0, 1 << 31]),
            "_MANY_GROUPS": st.sampled_from([1, 64]),
        }
    ),
)
def test_every_node_has_the_score_of_its_cells(table, worth, room, small, ways):
    lattice, codes, counts = table
    with pytest.MonkeyPatch.context() as context:
        for name, value in ways.items():
            context.setattr(node_scores, name, value)
        context.setattr(lattice_module, "_ROOM", room)
        context.setattr(lattice_module, "_SMALL", small)
        context.setattr(node_scores.os, "cpu_count", lambda: 3)
        found = scores(lattice, codes, counts, worth)
    assert found.dtype == np.int64
    for node, score in zip(lattice.nodes(), found.tolist(), strict=True):
        cells = brute(lattice, codes, counts, node)
        assert score == sum(int(worth.values(n)) * weight for n, weight in cells), node


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("threads", [1, 3])
def test_scores_of_larger_tables_are_those_of_each_node_counted_by_itself(seed, threads, monkeypatch):
    """Long enough for every way to be taken as it comes, with columns that follow from others and with rare values."""
    rng = np.random.default_rng(seed)
    towns = (300 * rng.random(30_000) ** 3).astype(np.int64)
    columns = [towns, towns // 10, towns % 7, rng.integers(0, 40, 30_000), rng.integers(0, 3, 30_000), towns % 2]
    ladders = []
    for column in columns:
        size = int(column.max()) + 1
        maps = (np.arange(size), np.arange(size) // 4, np.zeros(size, dtype=np.int64))
        weights = tuple(rng.integers(0, 9, int(m.max()) + 1) for m in maps)
        ladders.append(Ladder(maps, (np.full(size, 9), *weights[1:])))
    lattice, survival = Lattice(ladders), SurvivalTable.of(4, 0.5)
    counts = rng.integers(1, 4, 30_000)
    merged = []
    bring_together = node_scores._Scoring._merged

    def noted(self, cells, depth):
        found = bring_together(self, cells, depth)
        merged.append(len(found.rows) < len(cells.rows))
        return found

    monkeypatch.setattr(node_scores._Scoring, "_merged", noted)
    monkeypatch.setattr(node_scores, "_MANY_CELLS", 1)
    monkeypatch.setattr(node_scores.os, "cpu_count", lambda: threads)
    found = scores(lattice, columns, counts, survival)
    assert any(merged)
    for node in rng.choice(lattice.size, 60, replace=False).tolist():
        assert found[node] == summed(survival, *lattice.cells(lattice.node_at(node), columns, counts))


@pytest.mark.parametrize("columns", [64, 65, 200])
def test_more_columns_than_an_array_has_axes(columns):
    """Most of their levels are fixed, as in a table of which a few levels are left to be chosen."""
    fixed = Ladder((np.arange(2),), (np.array([3, 4]),))
    lattice = Lattice([fixed] * (columns - 2) + [FREE, FREE])
    rng = np.random.default_rng(columns)
    codes, counts = list(rng.integers(0, 2, (columns, 50))), rng.integers(1, 200, 50)
    survival = SurvivalTable.of(3, 0.5)
    expected = [summed(survival, *lattice.cells(node, codes, counts)) for node in lattice.nodes()]
    assert scores(lattice, codes, counts, survival).tolist() == expected


@pytest.mark.parametrize("many", [20_000, 100])
def test_rare_values_of_huge_domains_are_scored_as_any_others(many):
    rng = np.random.default_rng(many)
    columns = [np.where(rng.random(3000) < 0.7, 0, rng.integers(0, many, 3000)) for _ in range(6)]
    maps = (np.arange(many), np.arange(many) // 50, np.zeros(many, dtype=np.int64))
    ladder = Ladder(maps, tuple(rng.integers(0, 9, int(m.max()) + 1) for m in maps))
    lattice, survival, counts = Lattice([ladder] * 6), SurvivalTable.of(3, 0.5), rng.integers(1, 4, 3000)
    found = scores(lattice, columns, counts, survival)
    for node in rng.choice(lattice.size, 80, replace=False).tolist():
        assert found[node] == summed(survival, *lattice.cells(lattice.node_at(node), columns, counts))


def test_a_table_without_cells_has_scores_of_nought():
    nothing = np.zeros(0, dtype=np.int64)
    assert scores(Lattice([FREE]), [nothing], nothing, SurvivalTable.of(2, 0.5)).tolist() == [0, 0]


def test_what_goes_wrong_in_a_thread_is_raised(monkeypatch):
    rng = np.random.default_rng(1)
    ladder = Ladder((np.arange(64), np.arange(64) // 8), (np.zeros(64, dtype=np.int64), np.zeros(8, dtype=np.int64)))
    columns = [rng.integers(0, 64, 150_000) for _ in range(4)]

    class Failing:
        least = 1

        def values(self, counts):
            raise ZeroDivisionError

    monkeypatch.setattr(node_scores.os, "cpu_count", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        scores(Lattice([ladder] * 4), columns, np.ones(150_000, dtype=np.int64), Failing())


@settings(max_examples=60, deadline=None)
@given(tables(), worths, st.randoms())
def test_the_order_of_rows_changes_nothing(table, worth, random):
    lattice, codes, counts = table
    order = list(range(len(counts)))
    random.shuffle(order)
    shuffled = scores(lattice, [c[order] for c in codes], counts[order], worth)
    assert scores(lattice, codes, counts, worth).tolist() == shuffled.tolist()


@settings(max_examples=60, deadline=None)
@given(tables(), st.data())
def test_the_cells_of_one_node_are_those_of_brute_force(table, data):
    lattice, codes, counts = table
    node = lattice.node_at(data.draw(st.integers(0, lattice.size - 1)))
    found = lattice.cells(node, codes, counts)
    assert sorted(zip(*(a.tolist() for a in found), strict=True)) == brute(lattice, codes, counts, node)


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(1, 8), st.floats(0.05, 0.95), st.data())
def test_one_more_record_raises_every_score_by_at_most_the_sensitivity(table, k, beta, data):
    lattice, codes, counts = table
    survival = SurvivalTable.of(k, beta)
    largest = sum(max(int(w.max()) for w in ladder.weights) for ladder in lattice.ladders)
    extra = [data.draw(st.integers(0, len(ladder.maps[0]) - 1)) for ladder in lattice.ladders]
    more = [np.append(c, e) for c, e in zip(codes, extra, strict=True)]
    raised = scores(lattice, more, np.append(counts, 1), survival) - scores(lattice, codes, counts, survival)
    assert (raised >= 0).all()
    assert (raised <= survival.largest_step * largest).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.floats(0.02, 0.98))
def test_the_survival_table_never_falls_and_steps_as_the_formula_says(k, beta):
    from scipy.stats import binom

    survival = SurvivalTable.of(k, beta)
    steps = np.diff(survival.table)
    assert (steps >= 0).all()
    n = np.arange(len(survival.table) - 1)
    formula = binom.sf(k - 1, n, beta) + k * binom.pmf(k - 1, n, beta)  # the step of h, divided by β
    scale = 256
    assert np.abs(steps - formula * scale).max() <= 1.01
    assert survival.largest_step >= formula.max() * scale - 1.01
    beyond = np.array([len(survival.table) - 1, len(survival.table), len(survival.table) + 5])
    assert np.diff(survival.values(beyond)).tolist() == [survival.slope, 5 * survival.slope]


def test_survival_is_the_expected_number_of_records_published():
    k, beta, n = 4, 0.5, 9
    published = sum(
        sum(kept) * beta ** sum(kept) * (1 - beta) ** (n - sum(kept))
        for kept in itertools.product((0, 1), repeat=n)
        if sum(kept) >= k
    )
    value = SurvivalTable.of(k, beta).values(np.array([n]))[0] / 256 * beta
    assert value <= published < value + 1 / 200


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(1, 8), st.floats(0.05, 0.95), st.booleans(), st.data())
def test_the_sensitivity_that_is_used_covers_every_neighbour(table, k, beta, greedy, data):
    """What `choose` hands to the noisy max is at least what one person changes, in both of its ways to search."""
    lattice, codes, counts = table
    rows = data.draw(st.integers(1, 3))  # of the person who is added, in any cells
    extra = [[data.draw(st.integers(0, len(ladder.maps[0]) - 1)) for _ in range(rows)] for ladder in lattice.ladders]
    more = [np.append(c, e) for c, e in zip(codes, extra, strict=True)]
    seen = []

    def noisy_max(scores, sensitivity, epsilon):
        seen.append((scores.copy(), sensitivity, epsilon))
        return 0

    with patch.object(choice, "noisy_max", noisy_max), patch.object(choice, "ENUMERATED", 0 if greedy else 10**6):
        for columns, sizes in ((codes, counts), (more, np.append(counts, [1] * rows))):
            choice.choose(lattice, columns, sizes, quality=Detail(k, beta), epsilon=1.0, rows=rows)
    half = len(seen) // 2
    for (before, sensitivity, share), (after, same, _) in zip(seen[:half], seen[half:], strict=True):
        assert sensitivity == same
        assert ((after - before) >= 0).all()
        assert ((after - before) <= sensitivity).all()
        assert share * half <= 1.0


def equal_records(columns):
    """A lattice of columns with eight values and three levels above them, and a million records that are all alike."""
    maps = tuple(np.arange(8) // width for width in (1, 2, 4, 8))
    weights = tuple(
        np.full(len(set(m)), (8 - w) * (WEIGHT_ONE // columns) // 7) for m, w in zip(maps, (1, 2, 4, 8), strict=True)
    )
    return Lattice([Ladder(maps, weights)] * columns), [np.array([3])] * columns, np.array([10**6])


def test_many_columns_of_equal_records_keep_everything():
    lattice, columns, counts = equal_records(14)
    assert lattice.size > choice.ENUMERATED
    assert choice.choose(lattice, columns, counts, quality=Detail(20, 0.4), epsilon=5.0) == (0,) * 14


def test_steps_follow_the_columns_and_the_budget():
    lattice, _, _ = equal_records(14)
    assert choice.steps_of(lattice, 1.0) == 14
    assert choice.steps_of(lattice, 0.1) == 8
    assert choice.steps_of(lattice, 0.001) == 1


def test_weights_beyond_the_agreed_unit_are_refused():
    import pytest

    from incrowd.core.errors import InternalError
    from incrowd.recoding.choice import choose

    ladder = Ladder((np.arange(2), np.zeros(2, dtype=np.int64)), (np.array([WEIGHT_ONE + 1, 0]), np.array([0])))
    with pytest.raises(InternalError):
        choose(Lattice([ladder]), [np.array([0, 1])], np.array([5, 5]), quality=Detail(2, 0.5), epsilon=1.0)


FREE = Ladder((np.arange(2), np.zeros(2, dtype=np.int64)), (np.full(2, WEIGHT_ONE), np.zeros(1, dtype=np.int64)))


def test_tables_too_large_for_a_private_choice_are_refused_with_a_remedy():
    lattice, columns, how = Lattice([FREE]), [np.array([0, 1])], {"quality": Detail(2, 0.5), "epsilon": 1.0}
    assert choice.choose(lattice, columns, np.array([2**38 - 6, 5]), **how) in {(0,), (1,)}
    with pytest.raises(UnreachableError, match="Fix the levels in the policy") as error:
        choice.choose(lattice, columns, np.array([2**38 - 5, 5]), **how)
    assert error.value.code == "unreachable"


def test_tables_too_large_to_be_folded_are_refused_with_a_remedy():
    def fold(counts):
        Fold([FREE], [0], [np.array([0, 1])], np.array(counts))

    fold([2**52 - 6, 5])
    with pytest.raises(UnreachableError, match="Fix the levels in the policy") as error:
        fold([2**52 - 5, 5])
    assert error.value.code == "unreachable"


def test_keys_that_outgrow_a_word_are_refused_with_a_remedy():
    fold = Fold([FREE], [0], [np.array([0, 1])], np.array([3, 4]))
    keys, counts = fold.merge(np.array([7, 7]), np.array([3, 4]), 2**63 - 1)
    assert (keys.tolist(), counts.tolist()) == ([7], [7])
    with pytest.raises(UnreachableError, match="Fix the levels in the policy") as error:
        fold.merge(np.array([7, 7]), np.array([3, 4]), 2**63)
    assert error.value.code == "unreachable"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 4 * 10**9), min_size=1, max_size=4),
    st.integers(2, 40),
    st.floats(0.05, 0.95),
    st.integers(0, 3),
)
def test_scores_of_large_tables_are_exact_and_rise_by_at_most_the_sensitivity(counts, k, beta, which):
    """Cells of billions of records, on both sides of where narrow numbers would overflow."""
    half = WEIGHT_ONE // 2
    ladder = Ladder((np.arange(2), np.zeros(2, dtype=np.int64)), (np.full(2, half), np.full(1, half // 3)))
    lattice, survival = Lattice([ladder, ladder]), SurvivalTable.of(k, beta)
    cells = list(itertools.product(range(2), repeat=2))[: len(counts)]
    columns = [np.array(codes) for codes in zip(*cells, strict=True)]

    def by_node(sizes):
        return dict(zip(lattice.nodes(), scores(lattice, columns, np.array(sizes), survival).tolist(), strict=True))

    def value(n):
        top = len(survival.table) - 1
        return int(survival.table[min(n, top)]) + max(n - top, 0) * survival.slope

    before = by_node(counts)
    for node, score in before.items():
        groups = Counter()
        for cell, n in zip(cells, counts, strict=True):
            groups[tuple(0 if level else code for level, code in zip(node, cell, strict=True))] += n
        weight = sum(half // 3 if level else half for level in node)
        assert score == sum(value(n) * weight for n in groups.values())
    more = list(counts)
    more[which % len(more)] += 1
    for node, score in by_node(more).items():
        assert 0 <= score - before[node] <= survival.largest_step * 2 * half


@pytest.mark.parametrize("records", [8_388_000, 8_389_567, 100_000_000, 2_000_000_000, 3_000_000_000])
def test_a_cell_of_very_many_records_is_worth_what_it_holds(records):
    survival = SurvivalTable.of(20, 0.1)
    for kind in (np.int32, np.int64):
        if records < np.iinfo(kind).max:
            top = len(survival.table) - 1
            expected = int(survival.table[-1]) + (records - top) * survival.slope
            assert survival.values(np.array([records], dtype=kind)).tolist() == [expected]
