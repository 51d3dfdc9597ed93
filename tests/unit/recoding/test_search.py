"""The search against the enumeration of every node, spelled out record by record on tiny tables."""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import count, product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import DataError, ParameterError, UnreachableError
from incrowd.domain import Recode
from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.generalization.section import MINIMISED
from incrowd.recoding import demands as demands_module
from incrowd.recoding import search as module
from incrowd.recoding import utility
from incrowd.recoding.demands import Demand
from incrowd.recoding.descent import _EMPTY as EMPTY
from incrowd.recoding.descent import Cheapest, Descent, Minimal
from incrowd.recoding.measures import MEASURES
from incrowd.recoding.search import generalize, search
from incrowd.recoding.task import Best, Task
from incrowd.recoding.utility import Comparison
from incrowd.theory.adversaries import Adversary
from incrowd.theory.requirements import (
    BeliefRatio,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    LargestShare,
    RecursiveDiversity,
    TCloseness,
)

SENSITIVE = 3  # values


@st.composite
def hierarchies(draw):
    """A random tree over a few values; its last level is one root."""
    size = draw(st.integers(1, 5))
    maps = [list(range(size))]
    for _ in range(draw(st.integers(0, 1))):
        below = max(maps[-1]) + 1
        merged = draw(st.lists(st.integers(0, below - 1), min_size=below, max_size=below))
        codes = {code: place for place, code in enumerate(dict.fromkeys(merged))}
        maps.append([codes[merged[code]] for code in maps[-1]])
    maps.append([0] * size)
    levels = tuple(Recode(np.array(m), tuple(f"{h}:{g}" for g in range(max(m) + 1))) for h, m in enumerate(maps))
    return Hierarchy(levels, size)


@st.composite
def tables(draw):
    trees = draw(st.lists(hierarchies(), min_size=1, max_size=3))
    row = st.tuples(*(st.integers(0, tree.declared - 1) for tree in trees), st.integers(0, SENSITIVE - 1))
    return trees, draw(st.lists(row, min_size=1, max_size=24))


def histogram(trees, rows):
    codes = np.array(rows, dtype=np.int64).reshape(-1, len(trees) + 1)
    columns = [Column(f"q{i}", tree.levels[0].labels, codes[:, i]) for i, tree in enumerate(trees)]
    secret = Column("secret", tuple(f"s{v}" for v in range(SENSITIVE)), codes[:, -1])
    return Histogram.of([*columns, secret]), {f"q{i}": tree for i, tree in enumerate(trees)}


# --- the requirements once more, in plain words ---------------------------------------------------------------------


def too_small(group, whole, k):
    return sum(group) < k


def too_uniform(group, whole, l):  # noqa: E741
    return sum(n > 0 for n in group) < l


def too_skewed(group, whole, c):
    ordered = sorted(group, reverse=True)
    return not ordered[0] < c * sum(ordered[1:])


def too_frequent(group, whole, alpha):
    return any(Fraction(n, sum(group)) > alpha for n in group)


def too_far(group, whole, t):
    shares = zip(group, whole, strict=True)
    return sum(abs(Fraction(n, sum(group)) - Fraction(m, sum(whole))) for n, m in shares) / 2 > t


def too_telling(group, whole, sigma, epsilon):
    for n in group:
        if n:
            p_in, p_out = Fraction(n, sum(group)), Fraction(n, sum(group) + sigma - 1)
            if p_in == 1 or p_in > epsilon * p_out or 1 - p_out > epsilon * (1 - p_in):
                return True
    return False


def too_low(group, whole, l):  # noqa: E741
    shares = [n / sum(group) for n in group if n]
    return math.exp(-sum(q * math.log(q) for q in shares)) < l


def too_gained(group, whole, beta):
    shares = zip(group, whole, strict=True)
    return any(n and Fraction(n * sum(whole), sum(group) * m) - 1 > beta for n, m in shares)


def too_changed(group, whole, delta):
    return any(
        m and (not n or abs(math.log(n * sum(whole) / (sum(group) * m))) >= delta)
        for n, m in zip(group, whole, strict=True)
    )


CASES = {
    "entropy": [(EntropyDiversity(1.6), too_low, (1.6,))],
    "likeness": [(BetaLikeness(0.7), too_gained, (Fraction(7, 10),))],
    "disclosure": [(DeltaDisclosure(0.9), too_changed, (0.9,))],
    "k": [(KAnonymity(3), too_small, (3,))],
    "k and distinct": [(KAnonymity(2), too_small, (2,)), (DistinctDiversity(2), too_uniform, (2,))],
    "distinct": [(DistinctDiversity(2), too_uniform, (2,))],
    "recursive": [(RecursiveDiversity(Fraction(3), 2), too_skewed, (3,))],
    "k and share": [(KAnonymity(2), too_small, (2,)), (LargestShare(0.6), too_frequent, (Fraction(3, 5),))],
    "closeness": [(TCloseness(0.3), too_far, (Fraction(3, 10),))],
    "k and closeness": [(KAnonymity(2), too_small, (2,)), (TCloseness(0.4), too_far, (Fraction(2, 5),))],
    "share and closeness": [
        (TCloseness(0.4), too_far, (Fraction(2, 5),)),
        (LargestShare(0.7), too_frequent, (Fraction(7, 10),)),
    ],
    "beliefs": [(BeliefRatio(3, Adversary.with_stubbornness(9)), too_telling, (9, 3))],
}
PREDICTIVE = ("k", "k and distinct", "distinct")


def demands(case):
    return [Demand(r, "secret" if r.about_values else None) for r, _, _ in CASES[case]]


def recoded(trees, row, node):
    return tuple(int(tree.levels[level].to[v]) for tree, level, v in zip(trees, node, row, strict=False))


def left_out(trees, rows, node, case):
    """The groups that are left out, and all groups."""
    groups = defaultdict(lambda: [0] * SENSITIVE)
    for row in rows:
        groups[recoded(trees, row, node)][row[-1]] += 1
    kept = dict(groups)
    while True:
        # What is about single groups first, then what compares them with the rest.
        for about_whole in (False, True):
            whole = [sum(g[s] for g in kept.values()) for s in range(SENSITIVE)]
            failing = [
                key
                for key, group in kept.items()
                if any(f(group, whole, *a) for r, f, a in CASES[case] if r.about_whole == about_whole)
            ]
            for key in failing:
                del kept[key]
            if failing:
                break
        else:
            return set(groups) - set(kept), groups


def brute_force(trees, rows, case, suppression):
    """Every satisfying node, with what it leaves out."""
    room = math.floor(Fraction(str(suppression)) * len(rows))
    found = {}
    for node in product(*(range(tree.height + 1) for tree in trees)):
        out, groups = left_out(trees, rows, node, case)
        lost = sum(sum(groups[key]) for key in out)
        if lost <= room and len(out) < len(groups):
            found[node] = out
    return found


def measured(trees, rows, node, out, name):
    """The measure at a node, by `utility` on a comparison made here; the simplest ones spelled out."""
    records = [recoded(trees, row, node) for row in rows]
    sizes = Counter(record for record in records if record not in out)
    lost = sum(record in out for record in records)
    if name == "discernibility":
        return sum(n * n for n in sizes.values()) + lost * len(rows)
    if name == "class_size":
        return len(rows) / (len(sizes) + (lost > 0))
    if name == "loss":
        total = Fraction(0)
        for record in records:
            for tree, level, code in zip(trees, node, record, strict=True):
                covered = tree.levels[level].to.tolist().count(code)
                if record in out:
                    total += 1
                elif tree.declared > 1:
                    total += Fraction(covered - 1, tree.declared - 1)
        return float(total / (len(rows) * len(trees)))
    before, _ = histogram(trees, rows)
    before = before.project(before.names[:-1])
    recodes = {f"q{i}": tree.recode(level) for i, (tree, level) in enumerate(zip(trees, node, strict=True))}
    sample = before.recode(recodes)
    cells = zip(*(c.codes.tolist() for c in sample.columns), strict=True)
    published = sample.where(np.array([cell not in out for cell in cells]))
    function = {
        "entropy": utility.nonuniform_entropy,
        "divergence": utility.kl_divergence,
        "query_error": utility.query_error,
    }[name]
    return function(Comparison(before, recodes, sample, published))


def below(a, b):
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def check(trees, rows, case, suppression, measure, **options):
    table, by_name = histogram(trees, rows)
    satisfying = brute_force(trees, rows, case, suppression)
    arguments = {"measure": measure, "suppression": suppression} | options
    if not satisfying:
        with pytest.raises(UnreachableError):
            search(table, by_name, demands(case), **arguments)
        return None
    found = search(table, by_name, demands(case), **arguments)
    costs = {node: measured(trees, rows, node, out, measure) for node, out in satisfying.items()}
    assert found.node in satisfying
    assert found.cost == pytest.approx(costs[found.node], rel=1e-9, abs=1e-12)
    assert found.suppressed == sum(recoded(trees, row, found.node) in satisfying[found.node] for row in rows)
    assert found.complete
    assert found.cost == pytest.approx(min(costs.values()), rel=1e-9, abs=1e-12)
    if found.minimal is not None:
        assert set(found.minimal) == {n for n in satisfying if not any(below(m, n) for m in satisfying)}
    return found, satisfying, costs


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("suppression", [0.0, 0.2, 1.0])
@settings(deadline=None, max_examples=12)
@given(tables())
def test_optimum_and_minimal_nodes(case, suppression, table):
    trees, rows = table
    check(trees, rows, case, suppression, "loss")
    check(trees, rows, case, suppression, "loss", minimal=True)
    outcome = check(trees, rows, case, suppression, "loss", every=True)
    if outcome is not None:
        found, satisfying, costs = outcome
        assert {tuple(map(int, n)) for n in np.argwhere(found.every.satisfies)} == set(satisfying)
        for node, cost in costs.items():
            assert found.every.costs[node] == pytest.approx(cost, rel=1e-8, abs=1e-8)
        assert np.isnan(found.every.costs[~found.every.satisfies]).all()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("suppression", [0.0, 0.3])
@settings(deadline=None, max_examples=12)
@given(tables())
def test_what_one_descent_found_out_helps_the_next(case, suppression, table):
    """Branches that were found empty are, and whoever descends again finds what one finds who knows nothing."""
    trees, rows = table
    counted, by_name = histogram(trees, rows)
    task = Task(counted, by_name, demands(case), "loss", suppression, 60)
    best = Best(task)
    descent, fresh = Descent(task.cells, task.cost), Descent(task.cells, task.cost)
    descent.run(Cheapest(best, descent), math.inf)
    before = descent.examined
    satisfying = brute_force(trees, rows, case, suppression)
    for depth, known in enumerate(descent._known):
        for number, level in np.argwhere(known == EMPTY).tolist():
            prefix = np.unravel_index(number, [h + 1 for h in descent.heights[:depth]]) if depth else ()
            begins = dict(zip(descent.order, (*prefix, level), strict=False))
            assert not any(all(node[i] == at for i, at in begins.items()) for node in satisfying)
    again, anew = Minimal(best, descent), Minimal(Best(task), fresh)
    descent.run(again, math.inf)
    fresh.run(anew, math.inf)
    assert sorted(again.nodes) == sorted(anew.nodes)
    assert descent.examined - before <= fresh.examined


@pytest.mark.parametrize("case", ["k and share", "k and closeness"])
@settings(deadline=None, max_examples=20)
@given(tables(), st.sampled_from([0, 1000]))
def test_groups_that_are_left_out_may_be_counted_or_not(case, table, sparse):
    with patch.object(demands_module, "_SPARSE", sparse):
        check(*table, case, 0.3, "loss", minimal=True)


@pytest.mark.parametrize("measure", MINIMISED)
@pytest.mark.parametrize("suppression", [0.0, 0.3])
@settings(deadline=None, max_examples=15)
@given(tables(), st.sampled_from(["k", "k and share"]))
def test_every_measure(measure, suppression, table, case):
    check(*table, case, suppression, measure)


@pytest.mark.parametrize("case", ["k", "k and distinct", "beliefs", "closeness"])
@settings(deadline=None, max_examples=20)
@given(tables(), st.sampled_from([0.0, 0.25]))
def test_a_large_lattice_is_searched_from_neighbour_to_neighbour(case, table, suppression):
    trees, rows = table
    satisfying = brute_force(trees, rows, case, suppression)
    counted, by_name = histogram(trees, rows)
    with patch.object(module, "DESCENDED", 0):
        if not satisfying:
            with pytest.raises(UnreachableError):
                search(counted, by_name, demands(case), suppression=suppression)
            return
        found = search(counted, by_name, demands(case), suppression=suppression)
    # Tiny lattices are seen whole, unless satisfying nodes hide below others that do not.
    assert found.node in satisfying
    assert not found.complete
    assert found.cost == pytest.approx(min(measured(trees, rows, n, out, "loss") for n, out in satisfying.items()))
    assert [cost for _, cost in found.improved] == sorted((cost for _, cost in found.improved), reverse=True)
    assert found.improved[-1][1] == pytest.approx(found.cost, rel=1e-6)


@settings(deadline=None, max_examples=30)
@given(tables(), st.randoms(use_true_random=False), st.sampled_from(list(CASES)), st.sampled_from([0.0, 0.2, 1.0]))
def test_the_order_of_records_and_columns_changes_nothing(table, random, case, suppression):
    trees, rows = table
    shuffled = random.sample(rows, len(rows))
    order = random.sample(range(len(trees)), len(trees))

    def run(chosen, of):
        counted, by_name = histogram(chosen, of)
        try:
            return search(counted, by_name, demands(case), suppression=suppression, minimal=True)
        except UnreachableError:
            return None

    found, again = run(trees, rows), run(trees, shuffled)
    assert found == again
    permuted = run([trees[i] for i in order], [(*(row[i] for i in order), row[-1]) for row in rows])
    if found is None:
        assert permuted is None
    else:
        assert permuted.cost == pytest.approx(found.cost, abs=1e-12)
        assert (permuted.suppressed, sum(permuted.node)) == (found.suppressed, sum(found.node))
        assert {tuple(node[i] for i in order) for node in found.minimal} == set(permuted.minimal)


@settings(deadline=None, max_examples=30)
@given(tables(), st.sampled_from(list(CASES)), st.data())
def test_a_table_at_given_levels(table, case, data):
    trees, rows = table
    node = tuple(data.draw(st.integers(0, tree.height)) for tree in trees)
    counted, by_name = histogram(trees, rows)
    out, groups = left_out(trees, rows, node, case)
    levels = dict(zip(by_name, node, strict=True))
    if len(out) == len(groups):
        with pytest.raises(UnreachableError):
            generalize(counted, by_name, levels, demands(case))
        return
    made = generalize(counted, by_name, levels, demands(case))
    expected = Counter((*recoded(trees, row, node), row[-1]) for row in rows if recoded(trees, row, node) not in out)
    codes = zip(*(c.codes.tolist() for c in made.published.columns), strict=True)
    assert dict(zip(codes, made.published.counts.tolist(), strict=True)) == expected
    assert made.suppressed == len(rows) - sum(expected.values())


# --- single points --------------------------------------------------------------------------------------------------


def tree(*maps):
    return Hierarchy(
        tuple(Recode(np.array(m), tuple(f"{i}.{g}" for g in range(max(m) + 1))) for i, m in enumerate(maps)),
        len(maps[0]),
    )


PAIR = [tree([0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]), tree([0, 1], [0, 0])]
ROWS = [(a, b, (a + b) % 3) for a in range(4) for b in range(2) for _ in range(a + 1)]


def test_the_requirement_that_cannot_be_met_is_named_without_data():
    table, by_name = histogram(PAIR, ROWS)
    with pytest.raises(UnreachableError) as caught:
        search(table, by_name, [Demand(KAnonymity(2)), Demand(DistinctDiversity(9), "secret")])
    assert "at least 9 different values" in str(caught.value)
    with pytest.raises(UnreachableError, match="at least 99 records"):
        search(table, by_name, [Demand(KAnonymity(99)), Demand(DistinctDiversity(2), "secret")])


def test_requirements_about_several_sensitive_columns_hold_together():
    rows = [(v % 4, v % 2, v % 3, (v * v) % 5 % 2) for v in range(40)]
    codes = np.array(rows)
    columns = [Column(f"q{i}", t.levels[0].labels, codes[:, i]) for i, t in enumerate(PAIR)]
    first, second = Column("a", ("x", "y", "z"), codes[:, 2]), Column("b", ("u", "v"), codes[:, 3])
    asked = [Demand(KAnonymity(4)), Demand(DistinctDiversity(3), "a"), Demand(DistinctDiversity(2), "b")]
    table, by_name = Histogram.of([*columns, second, first]), {"q0": PAIR[0], "q1": PAIR[1]}
    found = search(table, by_name, asked, minimal=True)
    satisfying = set()
    for node in product(range(3), range(2)):
        groups = defaultdict(list)
        for row in rows:
            groups[recoded(PAIR, row, node)].append(row)
        if all(len(g) >= 4 and len({r[2] for r in g}) >= 3 and len({r[3] for r in g}) >= 2 for g in groups.values()):
            satisfying.add(node)
    assert set(found.minimal) == {n for n in satisfying if not any(below(m, n) for m in satisfying)}
    published = generalize(table, by_name, found.levels, asked).published
    assert published.names == ("q0", "q1", "b", "a")
    assert published.total == 40


def test_a_search_that_runs_out_of_time_says_so_and_is_valid():
    table, by_name = histogram(PAIR, ROWS)
    hidden = [Demand(LargestShare(0.4), "secret"), Demand(KAnonymity(1))]  # not so at the top
    rows = [(0, 0, 0)] * 9 + [(1, 0, v) for v in range(3)]
    with pytest.raises(UnreachableError, match="was found in time"):  # not that none is there
        search(histogram(PAIR, rows)[0], by_name, hidden, suppression=1.0, seconds=1e-9)
    assert search(histogram(PAIR, rows)[0], by_name, hidden, suppression=1.0).node == (0, 0)
    for limit in (0, module.DESCENDED):
        with patch.object(module, "DESCENDED", limit):
            early = search(table, by_name, [Demand(KAnonymity(2))], seconds=1e-9)
        assert early.node == (2, 1)
        assert not early.complete


@pytest.mark.parametrize("option", ["minimal", "every"])
def test_without_time_to_list_all_minimal_nodes_there_is_a_valid_answer(option):
    table, by_name = histogram(PAIR, ROWS)
    asked = [Demand(LargestShare(0.5), "secret")]  # which survives no merge with a group that fails
    early = search(table, by_name, asked, suppression=0.1, seconds=1e-9, **{option: True})
    assert (early.node, early.complete, early.minimal) == ((2, 1), False, None)


def test_the_best_node_stands_even_if_minimal_nodes_cannot_be_listed(monkeypatch):
    table, by_name = histogram(PAIR, ROWS)
    asked = [Demand(LargestShare(0.5), "secret")]
    whole = search(table, by_name, asked, suppression=0.1, minimal=True)
    assert whole.complete
    assert whole.minimal is not None

    def too_large(self, *_):
        raise DataError("too large", code="domain-large")

    monkeypatch.setattr(module.Minimal, "skips", too_large)
    found = search(table, by_name, asked, suppression=0.1, minimal=True)
    assert (found.node, found.complete, found.minimal) == (whole.node, True, None)


def test_what_would_not_fit_in_memory_is_refused(monkeypatch):
    table, by_name = histogram(PAIR, ROWS)
    monkeypatch.setattr("incrowd.recoding.demands.MOST_CELLS", 2)
    with pytest.raises(DataError) as caught:
        search(table, by_name, [Demand(DistinctDiversity(2), "secret")])
    assert caught.value.code == "domain-large"


def test_where_records_may_be_left_out_no_requirement_is_called_impossible():
    """A share of 1/3 is not kept by the whole table, nor within the suppression allowed; with more of it, it is."""
    rows = [(0, 0, 0)] * 9 + [(1, 0, v) for v in range(3)]
    table, by_name = histogram(PAIR, rows)
    asked = [Demand(LargestShare(Fraction(1, 3)), "secret")]
    with pytest.raises(UnreachableError, match="Even with every column suppressed"):
        search(table, by_name, asked)
    with pytest.raises(UnreachableError, match="within the suppression allowed") as caught:
        search(table, by_name, asked, suppression=0.5)
    assert "no generalization" not in str(caught.value.remedy)
    assert search(table, by_name, asked, suppression=0.8).suppressed == 9
    with pytest.raises(UnreachableError, match="Even with every column suppressed"):  # which no suppression helps
        search(table, by_name, [Demand(DistinctDiversity(4), "secret")], suppression=0.8)


def test_progress_never_goes_back():
    table, by_name = histogram(PAIR, ROWS)
    for options in ({}, {"minimal": True}, {"minimal": True, "suppression": 0.4}, {"every": True}):
        parts = []
        search(table, by_name, [Demand(KAnonymity(2))], progress=parts.append, **options)
        assert parts == sorted(parts)
        assert 0 <= parts[0] <= parts[-1] <= 1


def test_what_makes_no_sense_is_refused():
    table, by_name = histogram(PAIR, ROWS)
    k = Demand(KAnonymity(2))
    for wrong in (
        lambda: search(table, {}, [k]),
        lambda: search(table, by_name, []),
        lambda: search(table, by_name, [k], measure="beauty"),
        lambda: search(table, by_name, [k], suppression=1.5),
        lambda: search(table, by_name, [k], seconds=0),
        lambda: search(table, by_name, [Demand(DistinctDiversity(2), "q0")]),
        lambda: Demand(DistinctDiversity(2)),
        lambda: search(table, {"q0": PAIR[1]}, [k]),
        lambda: search(table, {"q0": tree([0, 0, 1, 1], [0, 0, 0, 0])}, [k]),
        lambda: search(table, by_name, [Demand(DistinctDiversity(2), "nowhere")]),
    ):
        with pytest.raises(ParameterError):
            wrong()
    with pytest.raises(DataError):
        search(table.where(table.counts > 99), by_name, [k])


@pytest.mark.parametrize("measure", [name for name in MINIMISED if not MEASURES[name].fast.needs_table])
@settings(deadline=None, max_examples=25)
@given(tables(), st.integers(1, 4))
def test_costs_and_their_bounds(measure, table, k):
    """At every node the cost is the measure; and it is no less than what any node below it promises at least."""
    trees, rows = table
    before, by_name = histogram(trees, rows)
    before = before.project(before.names[:-1])
    cost = MEASURES[measure].fast(before, list(by_name.values()))
    nodes = list(product(*(range(tree.height + 1) for tree in trees)))

    def groups(node, records):
        found = Counter(recoded(trees, row, node) for row in records)
        weights = [
            sum(int(la.weights[level][code]) for la, level, code in zip(cost.ladders, node, key, strict=True))
            for key in found
        ]
        return np.array(list(found.values()), dtype=np.int64), np.array(weights, dtype=np.int64)

    for upper in nodes:
        sizes = Counter(recoded(trees, row, upper) for row in rows)
        shown = [row for row in rows if sizes[recoded(trees, row, upper)] >= k]
        if not shown:
            continue
        lost = len(rows) - len(shown)
        out = {key for key, n in sizes.items() if n < k}
        price = cost.of(*groups(upper, shown), lost)
        exact = measured(trees, rows, upper, out, measure)
        assert price / cost.scale == pytest.approx(exact, rel=1e-9, abs=1e-9)
        assert abs(price - exact * cost.scale) <= cost.slack + 1e-12 * cost.scale
        for lower in nodes:
            if lower == upper or below(lower, upper):
                assert cost.above_cells(groups(lower, shown)[0], lost) <= price
                if cost.monotone:
                    assert cost.of(*groups(lower, rows), 0) <= price + 2 * cost.slack
        if cost.additive:
            # Some columns at their levels, the others as good as they can be.
            for known in range(len(trees) + 1):
                worth = sum(
                    int(cost.ladders[i].weights[upper[i]][recoded(trees, row, upper)[i]])
                    for row in shown
                    for i in range(known)
                )
                hopes = [cost.hope(i, 0) for i in range(known, len(trees))]
                whole = cost.of(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 0)
                hoped = min(sum(h[0] for h in hopes) * len(shown), sum(h[1] for h in hopes))
                assert whole - worth - hoped <= price


# --- real tables ----------------------------------------------------------------------------------------------------


def benchmark_table(folder, file, prefix):
    from incrowd.hierarchy import codings
    from incrowd.policy import Policy
    from incrowd.sources import open_source

    names = [p.name.removeprefix(prefix).removesuffix(".csv") for p in sorted(folder.glob(f"{prefix}*.csv"))]
    trees = {n: {"hierarchy": {"file": str(folder / f"{prefix}{n}.csv"), "delimiter": ";"}} for n in names}
    attributes = codings(Policy.from_dict({"incrowd": 1, "attributes": trees}))
    table = open_source(folder / file, delimiter=";").count_by([a.coding for a in attributes])
    return table, {a.name: a.hierarchy for a in attributes}


def test_optima_that_arx_finds(benchmark_data):
    """k = 5; ARX 3.9 prints these optima to four or five digits."""
    known = {
        ("adult/adult.csv", "adult_hierarchy_"): [
            ("discernibility", 0.0, 33_630_000, 4, 0),
            ("discernibility", 0.05, 7_220_600, 5, 105),
            ("class_size", 0.0, 628.4, 4, 0),
            ("class_size", 0.05, 28.81, 4, 906),
            ("class_size", 1.0, 16.32, 4, 7185),
        ],
        ("fars10/fars_subset.csv", "fars_hierarchy_"): [
            ("discernibility", 0.0, 2_644_917, 7, 0),
            ("discernibility", 0.05, 907_815, 6, 34),
        ],
    }
    for (file, prefix), optima in known.items():
        path = benchmark_data / file
        table, trees = benchmark_table(path.parent, path.name, prefix)
        for measure, suppression, value, digits, suppressed in optima:
            found = search(table, trees, [Demand(KAnonymity(5))], measure=measure, suppression=suppression)
            assert found.complete
            assert float(f"{found.cost:.{digits}g}") == value
            assert found.suppressed == suppressed


def test_loss_on_adult_is_the_lowest_of_all_nodes(benchmark_data):
    """Pruning finds what a look at all 12,960 nodes finds, minimal nodes included."""
    table, trees = benchmark_table(benchmark_data / "adult", "adult.csv", "adult_hierarchy_")
    demands = [Demand(KAnonymity(5))]
    for suppression, minimal in ((0.0, 27), (0.05, 1071)):
        every = search(table, trees, demands, suppression=suppression, every=True)
        found = search(table, trees, demands, suppression=suppression, minimal=True)
        assert (found.node, found.cost, found.minimal) == (every.node, every.cost, every.minimal)
        assert found.cost == pytest.approx(np.nanmin(every.every.costs), rel=1e-9)
        assert len(found.minimal) == minimal


def test_a_lattice_beyond_counting_gives_a_valid_answer_in_its_time(benchmark_data):
    table, trees = benchmark_table(benchmark_data / "creditcard", "creditcard_int.csv", "creditcard_int_hierarchy_")
    demands = [Demand(KAnonymity(5))]
    ticks = count()
    with patch("time.perf_counter", lambda: next(ticks) / 1000):  # a clock that knows no other machine than this one
        found = search(table, trees, demands, suppression=0.05, seconds=0.5)
    assert not found.complete
    assert found.examined > 100
    assert found.cost < 0.8 < found.improved[0][1]
    assert found.improved[-1][0] <= 0.51
    made = generalize(table, trees, found.levels, demands, suppression=0.05)
    assert made.published.counts.min() >= 5
    assert made.suppressed == found.suppressed <= 0.05 * table.total
