"""Local recoding: what is published keeps every demand, covers every record, and no group could be split further."""

from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import DataError, ParameterError, UnreachableError
from incrowd.domain import Categories, Coding, Recode
from incrowd.hierarchy import CodedAttribute, Hierarchy
from incrowd.histogram import Column, Histogram
from incrowd.recoding.boxes import Sets
from incrowd.recoding.demands import Demand
from incrowd.recoding.mapping import read_tree
from incrowd.recoding.mondrian import mondrian as local_recoding
from incrowd.recoding.search import search
from incrowd.theory.adversaries import Adversary
from incrowd.theory.requirements import (
    BeliefRatio,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    LargestShare,
    TCloseness,
)


def tree(*maps):
    levels = (Recode(np.array(m), tuple(f"{h}:{g}" for g in range(max(m) + 1))) for h, m in enumerate(maps))
    return Hierarchy(tuple(levels), len(maps[0]))


TREES = {
    # The value 5 is alone at level 1, too.
    "a": tree([0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 0, 1], [0] * 6),
    "b": tree([0, 1, 2], [0, 0, 0]),
    "c": tree([0, 1, 2, 3], [0, 0, 1, 1], [0] * 4),
}


def mondrian(table, trees, demands, splits="hierarchy"):
    columns = []
    for name, hierarchy in trees.items():
        coding = Coding(name, Categories(hierarchy.levels[0].labels))
        attribute = CodedAttribute(name, coding, hierarchy)
        columns.append(Sets(attribute, splits, ordered=False, marginal=table.tallies[name]))
    return local_recoding(table, columns, demands)


ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)), min_size=6, max_size=60
)
DEMANDS = [
    [Demand(KAnonymity(3))],
    [Demand(KAnonymity(2)), Demand(DistinctDiversity(2), "s")],
    [Demand(EntropyDiversity(1.5), "s")],
    [Demand(LargestShare(0.8), "s")],
    [Demand(TCloseness(0.3), "s")],
    [Demand(BeliefRatio(4, Adversary.with_stubbornness(9)), "s")],
]


def table_of(rows):
    codes = np.array(rows, dtype=np.int64).reshape(-1, 4)
    columns = [Column(n, t.levels[0].labels, codes[:, i]) for i, (n, t) in enumerate(TREES.items())]
    return Histogram.of([*columns, Column("s", ("x", "y", "z"), codes[:, 3])])


def extents(hierarchy):
    """Base values under each label: of labels for the same values, the lowest."""
    found = {}
    for level in hierarchy.levels:
        for code, label in enumerate(level.labels):
            values = frozenset(np.flatnonzero(level.to == code).tolist())
            if values not in found.values():
                found[label] = values
    return found


def groups_of(published):
    """Counts of the sensitive values by the labels of the other columns."""
    groups = defaultdict(lambda: [0, 0, 0])
    columns = [[c.labels[code] for code in c.codes.tolist()] for c in published.columns[:-1]]
    for *labels, secret, count in zip(*columns, published["s"].codes.tolist(), published.counts.tolist(), strict=True):
        groups[tuple(labels)][secret] += count
    return groups


@pytest.mark.parametrize("demands", DEMANDS, ids=lambda d: d[-1].name)
@settings(deadline=None, max_examples=25)
@given(ROWS)
def test_every_demand_is_kept_and_every_record_is_in_its_group(demands, rows):
    table = table_of(rows)
    whole = np.array([[sum(row[3] == v for row in rows) for v in range(3)]])
    if not all(d.requirement.holds(whole) for d in demands):
        with pytest.raises(UnreachableError):
            mondrian(table, TREES, demands)
        return
    made = mondrian(table, TREES, demands)
    groups = groups_of(made.published)
    assert len(groups) == made.groups
    counts = np.array(list(groups.values()))
    assert all(d.requirement.holds(counts) for d in demands)
    # Groups do not overlap, and each record is in exactly one: the counts say how many of which value.
    covers = [extents(t) for t in TREES.values()]
    expected, lost = {key: [0, 0, 0] for key in groups}, Fraction(0)
    for row in rows:
        fitting = [k for k in groups if all(v in c[label] for v, c, label in zip(row, covers, k, strict=False))]
        assert len(fitting) == 1
        expected[fitting[0]][row[3]] += 1
        for cover, label, hierarchy in zip(covers, fitting[0], TREES.values(), strict=True):
            lost += Fraction(len(cover[label]) - 1, hierarchy.declared - 1)
    assert expected == groups
    assert made.loss == pytest.approx(float(lost / (3 * len(rows))))
    for name, hierarchy in TREES.items():
        assert set(made.published[name].labels) <= set(extents(hierarchy))
    # The same groups stand in the tree that is published.
    assert read_tree(made.tree.to_bytes()).to_bytes() == made.tree.to_bytes()
    leaf = made.tree.leaf_of(table)
    assert len(set(leaf.tolist())) == made.groups
    assert set(made.tree.places(made.published).tolist()) == set(leaf.tolist())
    # Strict: no group can be split any further.
    for key in groups:
        mine = [r for r in rows if all(v in c[label] for v, c, label in zip(r, covers, key, strict=False))]
        for place, (cover, hierarchy) in enumerate(zip(covers, TREES.values(), strict=True)):
            values = cover[key[place]]
            if len(values) == 1:
                continue
            below = max(h for h, le in enumerate(hierarchy.levels) if len({int(le.to[v]) for v in values}) > 1)
            parts = defaultdict(lambda: [0, 0, 0])
            for row in mine:
                parts[int(hierarchy.levels[below].to[row[place]])][row[3]] += 1
            others = [g for k, g in groups.items() if k != key]
            split = np.array([*parts.values(), *others])
            assert any(d.requirement.failing(split)[: len(parts)].any() for d in demands)


@settings(deadline=None, max_examples=25)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_records_changes_nothing(rows, random):
    demands = [Demand(KAnonymity(3))]
    made = mondrian(table_of(rows), TREES, demands)
    again = mondrian(table_of(random.sample(rows, len(rows))), TREES, demands)
    assert made.published == again.published


def test_what_it_gives_away():
    """The group's edge follows the record that stretches it: its neighbours tell that nobody else is there."""
    rows = [(0, 0, 0, 0)] * 5 + [(1, 0, 0, 1)] * 5 + [(5, 0, 0, 2)] * 5
    made = mondrian(table_of(rows), TREES, [Demand(KAnonymity(5))])
    assert made.groups == 3
    assert made.loss == 0
    assert Counter(made.published.counts.tolist()) == {5: 3}


def test_it_tells_more_than_one_level_for_all():
    rows = [(v % 6, v % 3, v % 4 if v % 3 else 0, v % 3) for v in range(60)]
    table, demands = table_of(rows), [Demand(KAnonymity(5))]
    quasi = dict(TREES)
    assert mondrian(table, quasi, demands).loss <= search(table, quasi, demands).cost


def test_names_that_mean_two_things_are_told_apart():
    twice = Hierarchy(
        (
            Recode(np.arange(3), ("x", "y", "z")),
            Recode(np.array([0, 0, 1]), ("x", "rest")),
            Recode(np.zeros(3, dtype=np.int64), ("*",)),
        ),
        3,
    )
    table = Histogram.of([Column("a", ("x", "y", "z"), np.array([0, 1, 2]))])
    labels = mondrian(table, {"a": twice}, [Demand(KAnonymity(1))]).tree.columns[0].labels
    assert sorted(labels) == ["*", "x", "x (2)", "y", "z"]


@pytest.mark.parametrize("demands", DEMANDS, ids=lambda d: d[-1].name)
@settings(deadline=None, max_examples=25)
@given(ROWS)
def test_splits_in_two_keep_every_demand(demands, rows):
    table = table_of(rows)
    whole = np.array([[sum(row[3] == v for row in rows) for v in range(3)]])
    if not all(d.requirement.holds(whole) for d in demands):
        return
    made = mondrian(table, TREES, demands, "binary")
    assert all(d.requirement.holds(np.array(list(groups_of(made.published).values()))) for d in demands)
    # Each record is shown by sets that it lies in.
    leaf = made.tree.leaf_of(table)
    for place, column in enumerate(made.tree.columns):
        sets = [column.sets[made.tree.boxes[n].sets[place]] for n in leaf]
        assert all(code in values for code, values in zip(table[column.name].codes.tolist(), sets, strict=True))
    assert made.published.total == table.total


def test_splits_in_two_tell_more():
    """Two of three children are too small; together they are large enough."""
    table = Histogram.of([Column("b", TREES["b"].levels[0].labels, np.arange(3))], np.array([90, 4, 6]))
    demands, trees = [Demand(KAnonymity(10))], {"b": TREES["b"]}
    assert mondrian(table, trees, demands).loss == 1
    made = mondrian(table, trees, demands, "binary")
    assert made.loss == pytest.approx(0.1 * 0.5)
    assert made.tree.columns[0].labels == ("1:0", "0:0", "any of 0:1 or 0:2")


def test_what_makes_no_sense_is_refused():
    table = table_of([(0, 0, 0, 0)])
    with pytest.raises(ParameterError):
        mondrian(table, TREES, [])
    with pytest.raises(ParameterError):
        mondrian(table, {}, [Demand(KAnonymity(1))])
    with pytest.raises(DataError):
        mondrian(table.where(table.counts > 1), TREES, [Demand(KAnonymity(1))])
    with pytest.raises(UnreachableError, match="at least 2 records"):
        mondrian(table, TREES, [Demand(KAnonymity(2))])
