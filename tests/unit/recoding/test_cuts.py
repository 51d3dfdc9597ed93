"""Cuts through the whole table: the law of what they publish, enumerated, against what it is said to cost."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.domain import Categories, Coding
from incrowd.hierarchy import CodedAttribute, build
from incrowd.histogram import Column, Histogram
from incrowd.policy import Ordinal
from incrowd.randomness import RandomSource
from incrowd.recoding import cuts as cuts_module
from incrowd.recoding.boxes import Sets
from incrowd.recoding.cuts import Cutting, GridCells, cut
from incrowd.recoding.growth import Noisy
from incrowd.recoding.mapping import read_tree

TAU = 3


def columns_of(table, *, ordered=True, splits="binary"):
    """By `hierarchy`, twelve values fall apart into four groups of three, and fewer into themselves."""
    found = []
    for column in table.columns:
        coding = Coding(column.name, Categories(column.labels))
        groups = Ordinal(ordinal=(3,)) if splits == "hierarchy" and len(column.labels) == 12 else None
        attribute = CodedAttribute(column.name, coding, build(groups, coding))
        found.append(Sets(attribute, splits, ordered and splits == "binary", np.ones(len(column.labels))))
    return found


def table_of(counts):
    """A column of three values, and one of two."""
    a, b = np.divmod(np.arange(6), 2)
    return Histogram.of([Column("a", tuple("xyz"), a), Column("b", ("u", "v"), b)], np.array(counts))


def cutting_for(times, exponent=1.0, columns=2):
    """A budget for so many cuts at this exponent."""
    one = Cutting(2**64, TAU, (1,) * columns, 1)
    return Cutting(math.ceil(times * exponent**2 / 8 * 2**64), one.threshold, one.weights, times)


class Script:
    """Choices that follow a script, with the probability of having made them; what it was asked is kept."""

    def __init__(self, script=()):
        self.script, self.sizes, self.probability, self.asked = script, [], 1.0, []

    def choose(self, exponents):
        self.asked.append(np.array(list(map(float, exponents))))
        weights = [math.exp(float(e - max(exponents))) for e in exponents]
        place = len(self.sizes)
        chosen = self.script[place] if place < len(self.script) else 0
        self.sizes.append(len(weights))
        self.probability *= weights[chosen] / sum(weights)
        return chosen


def made(table, cutting, draws, *, ordered=True, splits="binary"):
    columns = columns_of(table, ordered=ordered, splits=splits)
    return cut(GridCells(table, columns), columns, cutting, draws)


def law(table, cutting, splits="binary"):
    """The probability of every sequence of choices."""
    found, script = {}, []
    while True:
        draws = Script(script)
        tree, _ = made(table, cutting, draws, splits=splits)
        taken = [script[i] if i < len(script) else 0 for i in range(len(draws.sizes))]
        found[tree.to_bytes(), tuple(taken)] = draws.probability
        while taken and taken[-1] + 1 == draws.sizes[len(taken) - 1]:
            taken.pop()
        if not taken:
            return found
        script = [*taken[:-1], taken[-1] + 1]


def worst(one, other, rho):
    """The largest ratio of a moment of the privacy loss to its bound."""
    assert set(one) == set(other)
    return max(
        sum(p[t] * (p[t] / q[t]) ** a for t in p) / math.exp(a * (a + 1) * rho)
        for p, q in ((one, other), (other, one))
        for a in (0.5, 1, 2, 8)
    )


NEIGHBOURS = ([2, 0, 1, 3, 0, 5], [2, 0, 1, 2, 0, 5])


@pytest.mark.parametrize(("splits", "laws"), [("binary", 20), ("hierarchy", 4)])
def test_all_cuts_together_cost_no_more_than_they_are_charged(splits, laws):
    cutting = cutting_for(3)
    assert cutting.cost <= cutting.budget
    one, other = (law(table_of(counts), cutting, splits) for counts in NEIGHBOURS)
    assert len(one) > laws
    assert sum(one.values()) == pytest.approx(1)
    assert 0.5 < worst(one, other, cutting.cost / 2**64) <= 1.0


@pytest.mark.parametrize("more", [[2, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 1]])
def test_a_person_with_several_rows_pays_their_number_squared(more):
    cutting, without = cutting_for(3), np.array([1, 2, 3, 1, 0, 2])
    one, other = (law(table_of(counts), cutting) for counts in (without + more, without))
    assert worst(one, other, 4 * cutting.cost / 2**64) <= 1.0


def reaching(factor, monkeypatch):
    honest = cuts_module._Grid.reach
    monkeypatch.setattr(cuts_module._Grid, "reach", lambda *given: max(1, int(honest(*given) * factor)))


def furthest(splits="binary"):
    """How far choices move apart with one record more, over all small tables, in parts of what they are charged for."""
    cutting, largest = cutting_for(2), 0.0
    for counts in itertools.product((1, 3), repeat=6):
        for place, first in itertools.product(range(0, 6, 3), (0, 2)):
            more = np.array(counts)
            more[place] += 1
            draws = [Script([first]), Script([first])]
            for table, script in zip((counts, more), draws, strict=True):
                made(table_of(table), cutting, script, splits=splits)
            for before, after in zip(draws[0].asked, draws[1].asked, strict=True):
                moved = after - before
                largest = max(largest, float(moved.max() - moved.min()))
    return largest / float(cutting.exponent)


@pytest.mark.parametrize("splits", ["binary", "hierarchy"])
def test_worths_move_within_the_range_that_is_charged(splits):
    assert 0.5 < furthest(splits) <= 1.0


def test_a_range_that_is_too_small_is_found(monkeypatch):
    reaching(1 / 3, monkeypatch)
    assert furthest() > 1.0
    one, other = (law(table_of(counts), cutting_for(3)) for counts in ([0, 0, 0, 3, 0, 3], [0, 0, 0, 2, 0, 3]))
    assert worst(one, other, 3 / 8) > 1.02


def test_a_cut_that_is_not_charged_is_found():
    """More cuts than were paid for: the law says so, where the worths say it clearly."""
    loud = [[0, 0, 0, 3, 0, 0], [0, 0, 0, 2, 0, 0]]
    paid, taken = cutting_for(1, 2.0), cutting_for(6, 2.0)
    one, other = (law(table_of(counts), paid) for counts in loud)
    assert worst(one, other, paid.cost / 2**64) <= 1.0
    one, other = (law(table_of(counts), taken) for counts in loud)
    assert worst(one, other, paid.cost / 2**64) > 1.02
    assert worst(one, other, taken.cost / 2**64) <= 1.0


def worth(tree, table, threshold):
    """U, from the definition, for two columns that count the same."""
    leaf, found = tree.leaf_of(table), 0.0
    for n in set(leaf.tolist()):
        records = int(table.counts[leaf == n].sum())
        told = [
            1 - (len(c.sets[s]) - 1) / (len(c.base) - 1) for c, s in zip(tree.columns, tree.boxes[n].sets, strict=True)
        ]
        found += (1 / 8 + sum(told) / len(told)) * (records - min(records, max(threshold - records, 0)))
    return found


@pytest.mark.parametrize("splits", ["binary", "hierarchy"])
def test_gains_are_those_of_the_definition(splits):
    """Of the second cut: what is offered, against the worth of the grid that it makes, computed from the table."""
    table, cutting = table_of([4, 1, 0, 7, 2, 2]), cutting_for(2)
    before = worth(made(table, cutting_for(1), Script([0]), splits=splits)[0], table, TAU)
    seen = Script([0])
    made(table, cutting, seen, splits=splits)
    exponents = seen.asked[1]
    worths = [worth(made(table, cutting, Script([0, i]), splits=splits)[0], table, TAU) for i in range(len(exponents))]
    gains = np.array(worths) - before
    assert abs(gains).max() > 0.5
    scale = exponents[np.argmax(abs(gains))] / gains[np.argmax(abs(gains))]
    assert exponents == pytest.approx(scale * gains, abs=1e-3 * abs(exponents).max())


def survey(rows=4000, seed=5):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 12, rows), rng.integers(0, 4, rows)
    c = np.where(rng.random(rows) < 0.8, a // 3, b)
    columns = [Column(name, tuple(map(str, range(n))), x) for name, n, x in (("a", 12, a), ("b", 4, b), ("c", 4, c))]
    return Histogram.of(columns)


def test_a_node_falls_apart_into_its_children():
    tree, _ = made(survey(), cutting_for(12, 0.3, 3), Noisy(RandomSource.seeded(1)), splits="hierarchy")
    [column] = [c for c in tree.columns if c.name == "a"]
    threes = {tuple(range(i, i + 3)) for i in range(0, 12, 3)}
    assert threes <= set(column.sets) <= threes | {tuple(range(12))} | {(i,) for i in range(12)}
    assert any(len(cut.parts) == 4 for cut in tree.cuts)


@pytest.mark.parametrize(("ordered", "splits"), [(True, "binary"), (False, "binary"), (False, "hierarchy")])
def test_each_value_has_one_label(ordered, splits):
    table = survey()
    draws = Noisy(RandomSource.seeded(1))
    tree, records = made(table, cutting_for(12, 0.3, 3), draws, ordered=ordered, splits=splits)
    assert len(tree.leaves) > 20
    assert read_tree(tree.to_bytes()).to_bytes() == tree.to_bytes()  # boxes are disjoint and cover everything
    for place, column in enumerate(tree.columns):
        shown = [column.sets[n] for n in tree.shown_sets[place]]
        assert sorted(itertools.chain(*shown)) == list(range(len(column.base)))
        assert {tree.boxes[n].sets[place] for n in tree.leaves} == set(tree.shown_sets[place].tolist())
    leaf = tree.leaf_of(table)
    assert records.tolist() == np.bincount(leaf, weights=table.counts, minlength=len(tree.boxes)).tolist()
    shown = tree.shown(records)
    assert shown.total == table.total
    assert records[tree.places(shown)].tolist() == shown.counts.tolist()


def test_the_same_bits_give_the_same_cuts():
    table, cutting = survey(), cutting_for(12, 0.05, 3)
    files = [made(table, cutting, Noisy(RandomSource.seeded(seed)))[0].to_bytes() for seed in (7, 7, 8)]
    assert files[0] == files[1] != files[2]


@pytest.mark.parametrize("splits", ["binary", "hierarchy"])
def test_a_grid_has_no_more_cells_than_it_may(splits, monkeypatch):
    monkeypatch.setattr(cuts_module, "MOST_CELLS", 12)
    tree, _ = made(survey(), cutting_for(12, 0.3, 3), Noisy(RandomSource.seeded(1)), splits=splits)
    assert 3 < len(tree.leaves) <= 12


def test_the_exponent_is_the_largest_that_the_budget_bears():
    for budget, times in ((2**60, 12), (10**15, 17), (0, 12)):
        cutting = Cutting(budget, 60, (1,), times)
        more = cutting.exponent + Fraction(1, 2**24)
        assert cutting.cost <= budget < times * more**2 / 8 * 2**64
