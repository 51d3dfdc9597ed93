"""The private tree: the law of what it publishes, enumerated, against what it is said to cost."""

import itertools
import math
from fractions import Fraction
from unittest import mock

import duckdb
import numpy as np
import pandas as pd
import pytest

from incrowd.domain import Categories, Coding
from incrowd.hierarchy import CodedAttribute, build
from incrowd.histogram import Column, Histogram
from incrowd.randomness import RandomSource
from incrowd.recoding import boxes as boxes_module
from incrowd.recoding import growth as growth_module
from incrowd.recoding.boxes import Sets
from incrowd.recoding.growth import Growth, Lines, Noisy, cost, grow
from incrowd.recoding.mapping import read_tree

WIDEST = 3
ORDERS = (0.5, 1, 2)


def table_of(counts):
    """Two columns of two values; counts of (0,0), (0,1), (1,0), (1,1)."""
    a, b = np.divmod(np.arange(4), 2)
    return Histogram.of([Column("a", ("x", "y"), a), Column("b", ("u", "v"), b)], np.array(counts))


def line_of(counts):
    """One column of four values, which a binary split takes apart in two steps."""
    return Histogram.of([Column("a", tuple("wxyz"), np.arange(4))], np.array(counts))


def seeded(seed):
    return Noisy(RandomSource.seeded(seed))


def columns_of(table):
    found = []
    for column in table.columns:
        coding = Coding(column.name, Categories(column.labels))
        attribute = CodedAttribute(column.name, coding, build(None, coding))
        found.append(Sets(attribute, "binary", ordered=True, marginal=np.ones(len(column.labels))))
    return found


class Script:
    """Draws that follow a script, with the probability of having done so."""

    def __init__(self, script):
        self.script, self.sizes, self.probability = script, [], 1.0

    def _pick(self, probabilities):
        place = len(self.sizes)
        chosen = self.script[place] if place < len(self.script) else 0
        self.sizes.append(len(probabilities))
        self.probability *= probabilities[chosen]
        return chosen

    def choose(self, exponents):
        weights = [math.exp(float(e - max(exponents))) for e in exponents]
        return self._pick([w / sum(weights) for w in weights])

    def noise(self, variance, size):
        weights = [math.exp(-x * x / (2 * variance)) for x in range(-40, 41)]
        kept = [math.exp(-x * x / (2 * variance)) / sum(weights) for x in range(-WIDEST, WIDEST + 1)]
        return np.array([self._pick(kept) - WIDEST for _ in range(size)])


def law(table, growth, size):
    """The probability of every transcript: the tree and all noisy counts, those of splits thrown away included.

    Noise beyond `WIDEST` is left out. Sets in order are cut in the middle alone, or there were too many transcripts.
    """
    found, script, agreeing = {}, [], growth_module._agreeing
    while True:
        source, heard = Script(script), []

        def hearing(sizes, *rest, heard=heard):
            heard.append(tuple(sizes))
            return agreeing(sizes, *rest)

        in_the_middle = mock.patch.object(boxes_module, "_PLACES", (0.5,))
        with in_the_middle, mock.patch.object(growth_module, "_agreeing", hearing):
            tree = grow(table, columns_of(table), growth, size, source)
        key = tree.to_bytes(), tuple(heard)
        found[key] = found.get(key, 0.0) + source.probability
        taken = [script[i] if i < len(script) else 0 for i in range(len(source.sizes))]
        while taken and taken[-1] + 1 == source.sizes[len(taken) - 1]:
            taken.pop()
        if not taken:
            return found
        script = [*taken[:-1], taken[-1] + 1]


def worst(one, other, rho):
    """The largest ratio of a moment of the privacy loss to its bound; what was cut off is left out on both sides."""
    ratios = []
    for p, q in ((one, other), (other, one)):
        for a in ORDERS:
            moment = sum(p[t] * (p[t] / q[t]) ** a for t in p if t in q and p[t] > 1e-9 and q[t] > 1e-13)
            ratios.append(moment / math.exp(a * (a + 1) * rho))
    return max(ratios)


class Near(Growth):
    """Noise of which little lies beyond what is enumerated."""

    def deviation(self, size):
        return 1


def growth_for(tries, score="information", columns=2):
    """A budget for so many choices on a path."""
    free = Near(2**64, 3, score, (1,) * columns)
    return Near(tries * free.price(8), 3, score, (1,) * columns)


NEIGHBOURS = ([6, 1, 1, 1], [5, 1, 1, 1])
DEEPER = ([5, 3, 0, 1], [4, 3, 0, 1])


@pytest.mark.parametrize("score", ["information", "queries"])
def test_a_choice_and_its_counts_cost_no_more_than_they_are_charged(score):
    growth = growth_for(1, score)
    one, other = (law(table_of(counts), growth, 9) for counts in NEIGHBOURS)
    assert len(one) > 30
    assert 0.5 < worst(one, other, growth.rho) <= 1.0


def test_a_path_of_two_splits_costs_no_more_than_it_is_charged():
    growth = growth_for(2, columns=1)
    one, other = (law(line_of(counts), growth, 9) for counts in DEEPER)
    assert len(one) > 200
    assert 0.5 < worst(one, other, growth.rho) <= 1.0


@pytest.mark.parametrize("more", [[2, 0, 0, 0], [1, 0, 1, 0]])
def test_a_person_with_several_rows_pays_their_number_squared(more):
    """Rows in one cell, and on paths that part."""
    growth, without = growth_for(2, columns=1), [2, 3, 1, 0]
    one, other = (law(line_of(counts), growth, 9) for counts in (np.array(without) + more, without))
    assert worst(one, other, 4 * growth.rho) <= 1.0
    if max(more) == 2:
        assert worst(one, other, growth.rho) > 1.02  # what one row pays is not enough


def test_a_charge_left_out_is_found(monkeypatch):
    growth = growth_for(1, columns=1)
    monkeypatch.setattr(Growth, "price", lambda *_: 0)
    one, other = (law(line_of(counts), growth, 9) for counts in DEEPER)
    assert worst(one, other, growth.rho) > 1.02


def test_freezing_without_a_charge_is_found_in_the_law(monkeypatch):
    """All lines are given up; then each has been counted, and only the last was paid for."""
    boxes, choose, growth = [], growth_module._choose, growth_for(1)

    def remembered(box, *rest):
        boxes.append(box)
        return choose(box, *rest)

    def forgiving(*_):
        boxes[-1].spent = 0
        return False

    monkeypatch.setattr(growth_module, "_choose", remembered)
    for good, found in ((lambda *_: False, False), (forgiving, True)):
        monkeypatch.setattr(growth_module, "_good", good)
        one, other = (law(table_of(counts), growth, 9) for counts in NEIGHBOURS)
        assert (worst(one, other, growth.rho) > 1.02) == found


def test_an_exact_total_is_found():
    """A size that was not paid for decides whether there is a split at all."""
    growth = growth_for(1)
    one, other = (law(table_of(counts), growth, sum(counts) - 3) for counts in NEIGHBOURS)
    assert not set(one) & set(other)


def log_law(options, box, counted, exponent):
    caught = []

    class Catch:
        def choose(self, exponents):
            caught.extend(map(float, exponents))
            return 0

    growth_module._choose(box, list(counted), counted, options, exponent, Catch())
    return np.array(caught)


@pytest.mark.parametrize("score", ["information", "queries"])
def test_scores_move_within_the_range_that_is_charged(score, monkeypatch):
    """All counts up to 8 of two columns that cut the same records; and scores that move twice as far are found out."""
    table = table_of([1, 1, 1, 1])
    columns = columns_of(table)
    growth = Growth(2**64, 5, score, (1, 3))
    options, box, exponent = Lines(columns, growth), growth_module.OpenBox((0, 0), 20), Fraction(1, 4)
    largest = 0.0
    for cells in itertools.product(range(0, 9, 2), repeat=4):
        grid = np.array(cells).reshape(2, 2)
        before = log_law(options, box, {0: grid.sum(1), 1: grid.sum(0)}, exponent)
        for a, b in itertools.product(range(2), repeat=2):
            more = grid.copy()
            more[a, b] += 1
            moved = log_law(options, box, {0: more.sum(1), 1: more.sum(0)}, exponent) - before
            largest = max(largest, float(moved.max() - moved.min()))
    assert 0.2 * float(exponent) < largest <= float(exponent) * (1 + 1e-12)
    honest = Lines.score
    monkeypatch.setattr(Lines, "score", lambda self, option, counts: 4 * honest(self, option, counts))
    moved = []
    for cells in itertools.product(range(0, 9, 4), repeat=4):
        grid = np.array(cells).reshape(2, 2)
        more = grid + np.array([[1, 0], [0, 0]])
        change = log_law(options, box, {0: more.sum(1), 1: more.sum(0)}, exponent) - log_law(
            options, box, {0: grid.sum(1), 1: grid.sum(0)}, exponent
        )
        moved.append(float(change.max() - change.min()))
    assert max(moved) > float(exponent)


def survey(rows=6000, seed=5):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 12, rows), rng.integers(0, 4, rows)
    c = np.where(rng.random(rows) < 0.8, a // 3, b)
    columns = [Column(name, tuple(map(str, range(n))), x) for name, n, x in (("a", 12, a), ("b", 4, b), ("c", 4, c))]
    return Histogram.of(columns)


def grown(table, splits, source, budget=0.02, cells=None):
    columns = []
    for column in table.columns:
        coding = Coding(column.name, Categories(column.labels))
        columns.append(
            Sets(
                CodedAttribute(column.name, coding, build(None, coding)),
                splits,
                ordered=column.name == "a",
                marginal=table.tallies[column.name],
            )
        )
    growth = Growth(math.floor(budget * 2**64), 60, "information", (1,) * len(columns))
    return grow(cells or table, columns, growth, table.total, source), growth


@pytest.mark.parametrize("splits", ["hierarchy", "binary"])
def test_leaves_are_disjoint_and_cover_everything(splits):
    table = survey()
    tree, growth = grown(table, splits, seeded(1))
    assert len(tree.leaves) > 8
    assert tree.to_bytes() == read_tree(tree.to_bytes()).to_bytes()  # which checks just that
    leaf = tree.leaf_of(table)
    for place, column in enumerate(tree.columns):
        codes = table[column.name].codes
        assert all(codes[i] in column.sets[tree.boxes[leaf[i]].sets[place]] for i in range(len(table)))
    assert set(leaf.tolist()) <= set(tree.leaves)
    assert 0 < cost(tree, growth) <= growth.budget


def test_freezing_without_a_charge_is_found(monkeypatch):
    """What a published tree has cost is found again from its sizes and from what failed; a path may not exceed it."""
    table, choose, boxes = survey(), growth_module._choose, []
    budget = 2.9e-5  # of which a choice and its counts take two fifths at the first box

    def remembered(box, *rest):
        boxes.append(box)
        return choose(box, *rest)

    def forgiving(*_):
        boxes[-1].spent = 0
        return False

    monkeypatch.setattr(growth_module, "_choose", remembered)
    monkeypatch.setattr(growth_module, "_good", lambda *_: False)
    tree, growth = grown(table, "binary", seeded(0), budget)
    assert len(tree.boxes[0].failed) == 2
    assert cost(tree, growth) <= growth.budget
    monkeypatch.setattr(growth_module, "_good", forgiving)
    tree, growth = grown(table, "binary", seeded(0), budget)
    assert cost(tree, growth) > growth.budget


def test_noisy_sizes_agree_with_the_box_above_as_least_squares_say():
    """Against the normal equations of one noisy total and its noisy parts."""
    rng = np.random.default_rng(4)
    for parts, above, variance in itertools.product((2, 3, 7), (0, 10, 400), (1, 25, 900)):
        sizes, box = rng.integers(0, 300, parts).tolist(), growth_module.OpenBox((0,), 500, variance=above)
        found, after = growth_module._agreeing(sizes, variance, box)
        precision = np.eye(parts) / variance + np.ones((parts, parts)) / max(above, 1e-9)
        best = np.linalg.solve(precision, np.array(sizes) / variance + box.size / max(above, 1e-9))
        assert np.abs(np.array(found) - best).max() <= 0.51
        assert after == pytest.approx(np.linalg.inv(precision)[0, 0], rel=0.01, abs=1.1)


def test_the_same_bits_give_the_same_tree():
    table = survey()
    one, other = (grown(table, "binary", seeded(7))[0] for _ in range(2))
    assert one.to_bytes() == other.to_bytes()
    assert one.to_bytes() != grown(table, "binary", seeded(8))[0].to_bytes()


class Rows:
    """A table of rows, each with its box, counted by SQL: what an engine would do."""

    def __init__(self, table):
        self.connection = duckdb.connect()
        rows = np.repeat(np.stack([column.codes for column in table.columns], 1), table.counts, axis=0)
        self.connection.register("rows", pd.DataFrame(rows, columns=[f"c{i}" for i in range(rows.shape[1])]))
        self.connection.execute("CREATE TABLE people AS SELECT *, 0 AS box FROM rows")

    def _split(self, options, boxes, lines):
        """By box and code: the part."""
        known = [(i, line, options.of(line, boxes[i])) for i, line in lines.items()]
        split = [
            (i, options.lines[line][0], code, int(part))
            for i, line, option in known
            if option is not None
            for code, part in enumerate(option.part_of)
        ]
        self.connection.register("split", pd.DataFrame(split, columns=["box", "place", "code", "part"]))
        return {i: len(option.parts) for i, _, option in known if option is not None}

    def within(self, options, boxes, line):
        sizes = self._split(options, boxes, {i: line for i, box in enumerate(boxes) if line not in box.frozen})
        place = options.lines[line][0]
        found = self.connection.execute(
            f"SELECT box, part, count(*) FROM people JOIN split USING (box) WHERE code = c{place} GROUP BY ALL"
        ).fetchall()
        counts = {i: np.zeros(size, dtype=np.int64) for i, size in sizes.items()}
        for box, part, count in found:
            counts[box][part] = count
        return counts

    def follow(self, options, boxes, lines, first):
        self._split(options, boxes, lines)
        self.connection.register("numbers", pd.DataFrame({"box": np.arange(len(first)), "first": first}))
        columns = self.connection.execute("SELECT * FROM people LIMIT 0").df().columns[:-1]
        code = " ".join(f"WHEN {i} THEN {name}" for i, name in enumerate(columns))
        self.connection.execute(
            f"CREATE OR REPLACE TABLE people AS SELECT {', '.join(columns)}, first + part AS box FROM people "
            f"JOIN split USING (box) JOIN numbers USING (box) WHERE code = CASE place {code} END"
        )

    def only(self, boxes):
        self.connection.register("numbers", pd.DataFrame({"box": np.arange(len(boxes)), "anew": boxes}))
        self.connection.execute(
            "CREATE OR REPLACE TABLE people AS SELECT people.* REPLACE (anew AS box) FROM people "
            "JOIN numbers USING (box) WHERE anew >= 0"
        )


@pytest.mark.parametrize("splits", ["hierarchy", "binary"])
def test_counts_of_an_engine_give_the_same_tree_from_the_same_bits(splits):
    table = survey(3000)
    ours, _ = grown(table, splits, seeded(3))
    theirs, _ = grown(table, splits, seeded(3), cells=Rows(table))
    assert len(ours.leaves) > 8
    assert theirs.to_bytes() == ours.to_bytes()


def test_a_budget_for_no_split_leaves_one_box():
    tree, growth = grown(survey(), "binary", seeded(1), budget=1e-9)
    assert tree.leaves == [0]
    assert cost(tree, growth) == 0


def test_published_tables_lead_back_to_leaves():
    table = survey()
    tree, _ = grown(table, "binary", seeded(1))
    counts = np.bincount(tree.leaf_of(table), weights=table.counts, minlength=len(tree.boxes)).astype(np.int64)
    shown = tree.shown(counts)
    assert shown.total == table.total
    assert counts[tree.places(shown)].tolist() == shown.counts.tolist()
