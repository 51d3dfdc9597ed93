"""Demands on chosen sets of columns and on combinations, against every node spelled out record by record."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.domain import Categories, Coding, Recode
from incrowd.hierarchy import CodedAttribute, Hierarchy
from incrowd.histogram import Column, Histogram
from incrowd.recoding import search as module
from incrowd.recoding.apart import Concerned
from incrowd.recoding.boxes import Sets
from incrowd.recoding.demands import Demand, groups_of
from incrowd.recoding.mondrian import mondrian
from incrowd.recoding.search import generalize, search
from incrowd.theory.adversaries import Adversary
from incrowd.theory.requirements import BeliefRatio, DistinctDiversity, KAnonymity, TCloseness

SIZES = (4, 3, 2)
SECRETS = (2, 3)


def tree(size: int) -> Hierarchy:
    maps = [list(range(size)), [code // 2 for code in range(size)], [0] * size]
    return Hierarchy(
        tuple(Recode(np.array(m), tuple(f"{h}:{g}" for g in range(max(m) + 1))) for h, m in enumerate(maps)), size
    )


def drawn(seed: int, records: int = 40) -> tuple[Histogram, dict[str, Hierarchy], list[tuple[int, ...]]]:
    rng = np.random.default_rng(seed)
    rows = [tuple(int(rng.integers(0, size)) for size in (*SIZES, *SECRETS)) for _ in range(records)]
    codes = np.array(rows)
    names = [f"q{i}" for i in range(len(SIZES))] + [f"s{i}" for i in range(len(SECRETS))]
    columns = [
        Column(name, tuple(f"{name}={v}" for v in range(size)), codes[:, i])
        for i, (name, size) in enumerate(zip(names, (*SIZES, *SECRETS), strict=True))
    ]
    return Histogram.of(columns), {f"q{i}": tree(size) for i, size in enumerate(SIZES)}, rows


def kept(rows, trees, node, demands, room):
    """The records that are kept at a node, by leaving out groups round by round; None if too many go."""
    names = [*trees, "s0", "s1"]
    shown = []
    for row in rows:
        recoded = [t.levels[level].to[value] for t, level, value in zip(trees.values(), node, row, strict=False)]
        shown.append(dict(zip(names, (*map(int, recoded), *row[len(SIZES) :]), strict=True)))
    here = list(shown)
    while here:
        bad = set()
        for demand in demands:
            parts: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
            for r in here:
                if not concerned(demand, trees, node, r) or (
                    demand.possible and code(demand, r) not in demand.possible
                ):
                    continue
                key = tuple(r[name] for name in demand.parts(trees))
                parts.setdefault(key, []).append(tuple(r[name] for name in demand.columns))
            whole = Counter(v for values in parts.values() for v in values)
            for key, values in parts.items():
                if fails(demand.requirement, Counter(values), whole):
                    bad |= {
                        tuple(r[name] for name in trees)
                        for r in here
                        if tuple(r[name] for name in demand.parts(trees)) == key
                    }
        if not bad:
            break
        here = [r for r in here if tuple(r[name] for name in trees) not in bad]
    return len(here) if here and len(rows) - len(here) <= room else None


def concerned(demand, trees, node, record):
    """Whether one of the people may be shown as this record is."""
    for name, labels in demand.people.labels if demand.people else ():
        level = node[list(trees).index(name)]
        if trees[name].levels[level].labels[record[name]] not in labels:
            return False
    return True


def code(demand, record):
    (column,) = demand.columns
    return record[column]


def fails(requirement, group, whole):
    size = sum(group.values())
    if isinstance(requirement, KAnonymity):
        return size < requirement.k
    if isinstance(requirement, DistinctDiversity):
        return len(group) < requirement.l
    if isinstance(requirement, BeliefRatio):
        size = SECRETS[1]
        return not requirement.keeps([group[(v,)] for v in range(size)], ())
    distance = sum(abs(group[v] / size - whole[v] / sum(whole.values())) for v in whole) / 2
    return distance > requirement.t + 1e-12


RATIO = BeliefRatio(3, Adversary.with_stubbornness(6))
DEMANDS = {
    "k over two sets": [Demand(KAnonymity(5), None, ("q0", "q1")), Demand(KAnonymity(7), None, ("q0", "q2"))],
    "k over sets and groups": [Demand(KAnonymity(2)), Demand(KAnonymity(9), None, ("q1",))],
    "l of combinations": [Demand(DistinctDiversity(3), "both", None, ("s0", "s1"))],
    "l of who knows another": [Demand(DistinctDiversity(2), "s1", knowing=("s0",))],
    "for some people": [Demand(RATIO, "s1", people=Concerned("some", (("q0", frozenset({"0:1", "1:0", "2:0"})),)))],
    "for people in two columns": [
        Demand(KAnonymity(2)),
        Demand(
            DistinctDiversity(3),
            "s1",
            people=Concerned(
                "some", (("q0", frozenset({"0:0", "1:0", "2:0"})), ("q2", frozenset({"0:1", "1:0", "2:0"})))
            ),
        ),
    ],
    "with the whole": [Demand(TCloseness(0.4), "s0"), Demand(KAnonymity(5), None, ("q0", "q1"))],
}


@pytest.mark.parametrize("room", [0, 4, 12])
@pytest.mark.parametrize("name", DEMANDS)
def test_every_node_is_decided_as_spelled_out(name, room):
    demands = DEMANDS[name]
    some = False
    for seed in range(2):
        table, trees, rows = drawn(seed)
        every = search(table, trees, demands, suppression=room / len(rows), every=True).every
        for node in product(*(range(t.height + 1) for t in trees.values())):
            expected = kept(rows, trees, node, demands, room)
            assert every.satisfies[node] == (expected is not None), (name, node)
            assert expected is None or every.suppressed[node] == len(rows) - expected
            some |= expected is None
    assert some or room == 12


@pytest.mark.parametrize("room", [0, 6])
@pytest.mark.parametrize("name", ["k over two sets", "l of combinations", "l of who knows another", "for some people"])
def test_the_best_is_found_by_both_searches(name, room, monkeypatch):
    table, trees, rows = drawn(3)
    best = search(table, trees, DEMANDS[name], suppression=room / len(rows))
    everything = search(table, trees, DEMANDS[name], suppression=room / len(rows), every=True)
    assert best.node == everything.node
    monkeypatch.setattr(module, "DESCENDED", 0)
    assert search(table, trees, DEMANDS[name], suppression=room / len(rows)).node == best.node


def test_less_is_asked_of_sets_than_of_all_columns():
    table, trees, _ = drawn(5, 200)
    sets = [Demand(KAnonymity(9), None, pair) for pair in (("q0", "q1"), ("q1", "q2"))]
    assert search(table, trees, sets).cost < search(table, trees, [Demand(KAnonymity(9))]).cost
    made = generalize(table, trees, search(table, trees, sets).levels, sets)
    for demand in sets:
        assert min(made.published.project(demand.by).counts) >= 9
    assert min(made.published.project(list(trees)).counts) < 9


def test_groups_say_the_same_as_the_search():
    table, trees, rows = drawn(2)
    demands = [*DEMANDS["with the whole"], *DEMANDS["l of combinations"]]
    groups = groups_of(table, list(trees), ["s0", "s1"])
    out = groups.left_out(demands)
    stays = kept(rows, trees, (0, 0, 0), demands, len(rows))
    assert int(groups.shown.counts[out].sum()) == len(rows) - (stays or 0)
    if stays:
        left = groups.only(~out)
        assert all(demand.requirement.holds(left.of(demand)) for demand in demands)
        assert left.shown.total == left.records.total == stays


def test_what_is_demanded_for_some_people_is_not_monotone():
    """A node keeps it, and one above does not: a group of others that fails was merged with theirs."""
    broken = 0
    for seed in range(12):
        table, trees, _ = drawn(seed, 30)
        try:
            holds = search(table, trees, DEMANDS["for some people"], every=True).every.satisfies
        except UnreachableError:
            continue
        for axis in range(holds.ndim):
            lower, upper = (np.take(holds, range(start, 2 + start), axis=axis) for start in (0, 1))
            broken += int((lower & ~upper).sum())
    assert broken


def test_local_recoding_refuses_them():
    table, trees, _ = drawn(0)
    columns = [
        Sets(CodedAttribute(n, Coding(n, Categories(t.levels[0].labels)), t), "hierarchy", False, table.tallies[n])
        for n, t in trees.items()
    ]
    with pytest.raises(ParameterError):
        mondrian(table, columns, DEMANDS["k over two sets"])
