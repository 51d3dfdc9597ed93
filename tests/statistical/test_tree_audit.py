"""Many trees on neighbouring tables: what they publish differs no more than they were charged, and broken twins do.

ρ-zCDP bounds the Kullback-Leibler divergence by ρ, so by Pinsker's inequality no event is likelier on one table than on
its neighbour by more than √(ρ/2). Each event is fixed beforehand; the margin is wrong with probability 1e-4 or less.
(`tests/unit/recoding/test_growth.py` holds the law of small trees, enumerated, against every order.)
"""

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from incrowd.domain import Categories, Coding
from incrowd.hierarchy import CodedAttribute, build, codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.sampled_crowd.tree import draw as drawing
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding import cuts, growth
from incrowd.recoding.boxes import Sets
from incrowd.recoding.growth import Growth, Lines, Noisy, OpenBox

pytestmark = pytest.mark.statistical
RUNS, RHO, PEOPLE = 500, 0.62, 18
COLUMNS = [f"c{i}" for i in range(8)]
RELEASE = "mechanism: sampled_crowd, epsilon: 2, delta: 0.9, k: 1, beta: 0.3, recoding: tree, splits: binary"
POLICY = "\n".join(
    [
        "incrowd: 1",
        "attributes:",
        *(f"  {name}: {{domain: [x, y]}}" for name in COLUMNS),
        f"release: {{{RELEASE}, choice_rho: {RHO}}}",
    ]
)


@pytest.fixture(scope="module")
def settled():
    policy = Policy.from_text(POLICY)
    return mechanism_named("sampled_crowd").settle(policy, codings(policy), 1)


@pytest.fixture(autouse=True)
def _little_noise(monkeypatch):
    """And charges to match: what a broken twin gives away shows after fewer runs."""
    monkeypatch.setattr(Growth, "deviation", lambda *_: 1)


def alike(people):
    """A table of people who are all the same: one path has them all."""
    columns = [Column(name, ("x", "y"), np.zeros(1, dtype=np.int64)) for name in COLUMNS]
    return Histogram.of(columns, np.array([people]))


def advantage(settled, event, runs=RUNS):
    """How much likelier an event is with one person more, and how far that may be off.

    An event sees the tree and the noisy counts of the box with everybody, as they were drawn.
    """
    shares, heard, agreeing = [], [], growth._agreeing

    def hearing(sizes, *rest):
        heard.append(max(sizes))
        return agreeing(sizes, *rest)

    with mock.patch.object(growth, "_agreeing", hearing):
        for people in (PEOPLE + 1, PEOPLE):
            table, source, found = alike(people), RandomSource(), 0
            for _ in range(runs):
                heard.clear()
                found += event(drawing.draw_tree(settled, table, source).outcome.tree, heard)
            shares.append(found / runs)
    return shares[0] - shares[1], 4 * math.sqrt(0.5 / runs)


def more_than_half(_, heard):
    return bool(heard) and np.mean(heard) > PEOPLE + 0.5


def test_a_tree_shows_no_more_than_it_was_charged(settled):
    found, margin = advantage(settled, more_than_half)
    assert found <= math.sqrt(RHO / 2) + margin


def test_a_charge_left_out_is_caught(settled, monkeypatch):
    monkeypatch.setattr(Growth, "price", lambda *_: 0)
    found, margin = advantage(settled, more_than_half)
    assert found > math.sqrt(RHO / 2) + margin


def test_freezing_that_is_not_charged_is_caught(settled, monkeypatch):
    """Every line is counted and given up; the twin gives back what that cost, and keeps silent about it."""
    choose = growth._choose

    def forgiven(box, *rest):
        box.spent, box.failed = 0, ()
        return choose(box, *rest)

    monkeypatch.setattr(growth, "_choose", forgiven)
    monkeypatch.setattr(growth, "_good", lambda *_: False)
    found, margin = advantage(settled, more_than_half, runs=300)
    assert found > math.sqrt(RHO / 2) + margin


def test_a_total_that_was_not_paid_for_is_caught(settled, monkeypatch):
    grow = drawing.grow
    monkeypatch.setattr(drawing, "grow", lambda table, *rest: grow(table, *rest[:2], table.total, rest[3]))
    found, margin = advantage(settled, lambda tree, _: tree.boxes[0].size == PEOPLE + 1, runs=200)
    assert found > math.sqrt(RHO / 2) + margin


@pytest.mark.parametrize(("times", "caught"), [(1, False), (2, True)])
def test_scores_of_twice_the_sensitivity_are_caught(times, caught, monkeypatch):
    """The choice alone: e-bounded range is (e²/8)-zCDP. One column weighs nearly nothing: the other's score decides."""
    honest = Lines.score
    monkeypatch.setattr(Lines, "score", lambda *given: times * honest(*given))
    columns = []
    for name in "ab":
        coding = Coding(name, Categories(("x", "y")))
        columns.append(Sets(CodedAttribute(name, coding, build(None, coding)), "binary", True, np.ones(2)))
    options = Lines(columns, Growth(2**64, 3, "information", (10_000, 1)))
    exponent, draws, runs, shares = Fraction(1, 4), Noisy(RandomSource()), 60_000, []
    for people in (3, 2):
        counted = {0: np.array([people, 0]), 1: np.array([people, 0])}
        chosen = [growth._choose(OpenBox((0, 0), 9), [0, 1], counted, options, exponent, draws) for _ in range(runs)]
        shares.append(1 - np.mean(chosen))
    found, margin = shares[0] - shares[1], 4 * math.sqrt(0.5 / runs)
    assert (found > math.sqrt(float(exponent) ** 2 / 16) + margin) == caught


@pytest.mark.parametrize(("times", "caught"), [(1, False), (3, True)])
def test_cuts_through_the_table_show_no_more_than_they_were_charged(times, caught, monkeypatch):
    """Whether the column that matters is cut: the charge covers that, and not worths that count several times."""
    honest = cuts._Grid.reach
    monkeypatch.setattr(cuts._Grid, "reach", lambda *given: honest(*given) // times)
    columns = []
    for name in "ab":
        coding = Coding(name, Categories(("x", "y")))
        columns.append(Sets(CodedAttribute(name, coding, build(None, coding)), "binary", True, np.ones(2)))
    cutting = cuts.Cutting(2**61, 4, (10_000, 1), 1)  # ρ = 1/8
    draws, runs, shares = Noisy(RandomSource()), 1500, []
    for people in (3, 2):
        found = [cuts.cut(cuts.GridCells(pair(people), columns), columns, cutting, draws)[0] for _ in range(runs)]
        shares.append(np.mean([any(made.column == 0 for made in tree.cuts) for tree in found]))
    found, margin = shares[0] - shares[1], 4 * math.sqrt(0.5 / runs)
    assert (found > math.sqrt(cutting.cost / 2**64 / 2) + margin) == caught


def pair(people):
    """All the same, in two columns."""
    return Histogram.of([Column(name, ("x", "y"), np.zeros(1, dtype=np.int64)) for name in "ab"], np.array([people]))
