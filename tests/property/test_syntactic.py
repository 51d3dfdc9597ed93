"""Syntactic measures against slow definitions, and what must not change or must not get worse."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from incrowd.theory.syntactic import (
    beta_likeness,
    delta_disclosure,
    distinct_l_diversity,
    entropy_l_diversity,
    k_anonymity,
    largest_share,
    recursive_l_diversity,
    t_closeness,
)
from older_notions import tree_levels

moderately = settings(deadline=None, max_examples=80)


@st.composite
def tables(draw, groups=(1, 5), largest=9, values=(2, 5)):
    size = draw(st.integers(*values))
    row = st.lists(st.integers(0, largest), min_size=size, max_size=size).filter(any)
    return draw(st.lists(row, min_size=groups[0], max_size=groups[1]))


@st.composite
def trees(draw, size):
    """A random tree over the columns: keep joining neighbours in a shuffled row of branches."""
    branches = list(draw(st.permutations(range(size))))
    while len(branches) > 1:
        at = draw(st.integers(0, len(branches) - 2))
        take = draw(st.integers(2, len(branches) - at))
        branches[at : at + take] = [branches[at : at + take]]
    return branches[0]


def lowest_common_heights(tree, size):
    """The height of the lowest common ancestor of every two columns, by walking the tree."""
    heights = np.zeros((size, size))

    def walk(node):
        if isinstance(node, int):
            return 0, [node]
        parts = [walk(child) for child in node]
        height = 1 + max(h for h, _ in parts)
        for i, (_, ours) in enumerate(parts):
            for j, (_, theirs) in enumerate(parts):
                if i != j:
                    heights[np.ix_(ours, theirs)] = height
        return height, [column for _, columns in parts for column in columns]

    top, _ = walk(tree)
    return heights / top


def transport(p, q, cost):
    """The earth mover's distance by linear programming."""
    from scipy.optimize import linprog

    m = len(p)
    leaving = np.kron(np.eye(m), np.ones(m))
    arriving = np.kron(np.ones(m), np.eye(m))
    solved = linprog(cost.ravel(), A_eq=np.vstack([leaving, arriving]), b_eq=np.concatenate([p, q]), method="highs")
    assert solved.success
    return solved.fun


def shares(table):
    whole = np.sum(table, axis=0)
    return [np.array(group) / sum(group) for group in table], whole / whole.sum()


class TestEarthMover:
    @moderately
    @given(tables(values=(2, 6)), st.data())
    def test_every_distance_is_the_cheapest_transport(self, table, data):
        groups, whole = shares(table)
        m = len(whole)
        tree = data.draw(trees(m))
        index = np.arange(m)
        costs = {
            "equal": 1.0 - np.eye(m),
            "ordered": np.abs(index[:, None] - index) / (m - 1),
            "tree": lowest_common_heights(tree, m),
        }
        for name, cost in costs.items():
            distance = tree_levels(tree) if name == "tree" else name
            found = t_closeness(table, distance, per_group=True)
            expected = [transport(group, whole, cost) for group in groups]
            assert found.by_group == pytest.approx(expected, abs=1e-9)
            assert float(found.exact) == pytest.approx(max(expected), abs=1e-9)

    @moderately
    @given(tables(values=(2, 8)))
    def test_the_ordered_distance_is_the_wasserstein_distance_of_ranks(self, table):
        from scipy.stats import wasserstein_distance

        groups, whole = shares(table)
        ranks = np.arange(len(whole)) / (len(whole) - 1)
        expected = max(wasserstein_distance(ranks, ranks, group, whole) for group in groups)
        assert t_closeness(table, "ordered").value == pytest.approx(expected, abs=1e-12)


class TestDefinitions:
    @moderately
    @given(tables(groups=(1, 4)), st.integers(2, 5))
    def test_against_fractions(self, table, l):  # noqa: E741
        whole = [sum(column) for column in zip(*table, strict=True)]
        gains, logs, tops, cs = [Fraction(0)], [Fraction(1)], [], []
        for group in table:
            n = sum(group)
            tops.append(Fraction(max(group), n))
            ordered = sorted(group, reverse=True)
            tail = sum(ordered[l - 1 :])
            cs.append(Fraction(ordered[0], tail) if tail else None)
            for count, overall in zip(group, whole, strict=True):
                if overall:
                    ratio = Fraction(count * sum(whole), n * overall)
                    gains.append(ratio - 1)
                    logs.append(max(ratio, 1 / ratio) if ratio else None)
        assert k_anonymity(table).value == min(map(sum, table))
        assert distinct_l_diversity(table).value == min(sum(count > 0 for count in group) for group in table)
        assert largest_share(table).exact == max(tops)
        assert recursive_l_diversity(table, l).exact == (None if None in cs else max(cs))
        assert beta_likeness(table).exact == max(gains)
        expected = math.inf if None in logs else math.log(max(logs))
        assert delta_disclosure(table).value == pytest.approx(expected, rel=1e-14)

    @moderately
    @given(tables(groups=(1, 4)))
    def test_entropy_within_its_stated_error(self, table):
        from mpmath import mp

        with mp.workdps(40):
            exact = []
            for group in table:
                share = [mp.mpf(count) / sum(group) for count in group if count]
                exact.append(mp.exp(-sum(s * mp.log(s) for s in share)))
            found = entropy_l_diversity(table)
            assert abs(found.value - min(exact)) <= max(found.error, 1e-30) * min(exact)
            if found.exact is not None:
                assert abs(min(exact) - int(found.exact)) < mp.mpf(10) ** -30

    @moderately
    @given(tables(groups=(1, 4)))
    def test_enhanced_likeness_by_its_definition(self, table):
        whole = np.sum(table, axis=0)
        overall = whole / whole.sum()
        beta, capped = 0.0, True
        for group in np.array(table):
            share = group / group.sum()
            for q, p in zip(share, overall, strict=True):
                if q > p > 0:
                    beta = max(beta, q / p - 1)
                    capped &= q / p - 1 <= -math.log(p)
        found = beta_likeness(table, enhanced=True)
        assert found.value == (pytest.approx(beta, abs=1e-12) if capped else math.inf)


MEASURES = {
    "k": k_anonymity,
    "distinct": distinct_l_diversity,
    "entropy": entropy_l_diversity,
    "recursive": lambda table: recursive_l_diversity(table, 2),
    "recursive 3": lambda table: recursive_l_diversity(table, 3),
    "share": largest_share,
    "equal": t_closeness,
    "ordered": lambda table: t_closeness(table, "ordered"),
    "likeness": beta_likeness,
    "enhanced": lambda table: beta_likeness(table, enhanced=True),
    "disclosure": delta_disclosure,
}


class TestInvariants:
    @pytest.mark.parametrize("name", MEASURES)
    @settings(deadline=None, max_examples=40)
    @given(table=tables(groups=(2, 4)))
    def test_merging_two_groups_never_makes_it_worse(self, name, table):
        merged = [[a + b for a, b in zip(table[0], table[1], strict=True)], *table[2:]]
        before, after = MEASURES[name](table), MEASURES[name](merged)
        if before.exact is not None and after.exact is not None:
            assert after.exact >= before.exact if before.rule == "at least" else after.exact <= before.exact
        elif before.rule == "at least":
            assert after.value >= before.value * (1 - 1e-13)
        else:
            assert after.value <= before.value * (1 + 1e-13)

    @pytest.mark.parametrize("name", MEASURES)
    @settings(deadline=None, max_examples=25)
    @given(table=tables(), random=st.randoms(use_true_random=False))
    def test_order_of_groups_and_values_and_empty_groups_do_not_matter(self, name, table, random):
        measure = MEASURES[name]
        shuffled = [*table, [0] * len(table[0])]
        random.shuffle(shuffled)
        found = measure(shuffled)
        # A sum of logarithms may depend on the order in its last digits, fractions may not.
        assert found.exact == measure(table).exact
        assert found.value == pytest.approx(measure(table).value, rel=1e-14)
        assert sum(shuffled[found.group]) > 0
        if name != "ordered":
            columns = list(range(len(table[0])))
            random.shuffle(columns)
            renamed = measure([[group[column] for column in columns] for group in table])
            assert renamed.exact == measure(table).exact
            assert renamed.value == pytest.approx(measure(table).value, rel=1e-14)

    @moderately
    @given(tables(), st.integers(2, 50))
    def test_only_k_sees_the_scale(self, table, factor):
        scaled = [[factor * count for count in group] for group in table]
        assert k_anonymity(scaled).value == factor * k_anonymity(table).value
        for measure in (largest_share, t_closeness, beta_likeness):
            assert measure(scaled).exact == measure(table).exact

    @moderately
    @given(tables(groups=(2, 5)), st.integers(0, 20))
    def test_a_check_is_the_comparison_of_fractions(self, table, twentieths):
        found = t_closeness(table)
        assert found.satisfies(twentieths / 20) == (found.exact <= Fraction(twentieths, 20))

    @moderately
    @given(tables(groups=(2, 4)))
    def test_ordered_and_tree_distances_never_exceed_the_equal_one(self, table):
        assume(len(table[0]) > 2)
        tree = [list(range(len(table[0]) - 1)), len(table[0]) - 1]
        equal = t_closeness(table).exact
        assert t_closeness(table, "ordered").exact <= equal
        assert t_closeness(table, tree_levels(tree)).exact <= equal
