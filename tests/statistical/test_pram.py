"""Draws and intervals of randomised tables, each beside a broken twin that the same test must catch.

A test that should pass fails by chance with probability 1e-6 at most; the bits are seeded, so it either does or not.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.pram import draw as pram
from incrowd.mechanisms.pram.blocks import Block, as_drawn
from incrowd.mechanisms.pram.estimate import tabulate
from incrowd.mechanisms.pram.inversion import invert
from incrowd.randomness import RandomSource
from incrowd.theory.intervals import NORMAL_95
from incrowd.theory.randomisation import RetentionReplacement, TransitionMatrix

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
LAW = TransitionMatrix(
    [[Fraction(a, 20) for a in row] for row in ((14, 3, 3), (1, 17, 2), (5, 5, 10))],
)
LAWS = [RetentionReplacement(as_drawn(0.3), 5), LAW]


def table(records, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.choice(5, records, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    second = (first + rng.choice(3, records, p=[0.6, 0.3, 0.1])) % 3
    return Histogram.of([Column("a", tuple("vwxyz"), first), Column("b", tuple("pqr"), second)])


def blocks(laws):
    return [Block((name,), (law.size,), law) for name, law in zip(("a", "b"), laws, strict=True)]


def p_value(way, drawn_by, records=900_000):
    """Whether everybody with the same true values is spread as the stated law says: chi-square over all outputs."""
    worst = 1.0
    for value in range(5):
        for other in range(3):
            everyone = Histogram.of(
                [Column("a", tuple("vwxyz"), np.array([value])), Column("b", tuple("pqr"), np.array([other]))],
                np.array([records // 15]),
            )
            out = way(everyone, blocks(drawn_by), RandomSource.seeded(10 * value + other))
            counts = np.zeros((5, 3))
            counts[out["a"].codes, out["b"].codes] = out.counts
            expected = np.outer(LAWS[0].matrix()[value], LAWS[1].matrix()[other]) * (records // 15)
            worst = min(worst, stats.chisquare(counts.ravel(), expected.ravel()).pvalue)
    return worst


@pytest.mark.parametrize("way", [pram._on_cells, pram._by_record, pram._by_record_in_parts])
def test_values_are_redrawn_by_the_stated_law_and_a_biased_twin_is_caught(way):
    assert p_value(way, LAWS) > FALSE_ALARM / 15
    for biased in (
        [RetentionReplacement(as_drawn(0.32), 5), LAW],
        [LAWS[0], TransitionMatrix([[Fraction(13, 20), Fraction(4, 20), Fraction(3, 20)], *LAW.rows[1:]])],
    ):
        assert p_value(way, biased) < FALSE_ALARM / 15


def covered(standard_error, laws=LAWS, runs=400):
    """How often 95% intervals hold the true counts of the table, over all cells of its cross-tabulation."""
    people = table(4_000)
    source = RandomSource.seeded(7)
    truth = np.zeros((5, 3))
    truth[people["a"].codes, people["b"].codes] = people.counts
    hits = 0
    for _ in range(runs):
        whole = tabulate(blocks(laws), pram.run(people, blocks(laws), source), ["a", "b"])
        estimate, variance = invert(whole.axes, whole.released)
        errors = standard_error(whole.released, estimate, variance)
        hits += int((np.abs(estimate - truth) <= NORMAL_95 * errors).sum())
    return hits / (15 * runs)


def test_95_percent_intervals_hold_95_percent_of_the_true_counts():
    """Cells of a run are dependent, so the runs are counted: five standard deviations of the share are 2%."""
    assert abs(covered(lambda _y, _x, v: np.sqrt(v)) - 0.95) < 0.02


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(lambda y, _x, _v: np.sqrt(y * (1 - y / y.sum())), id="the released counts' own"),
        pytest.param(lambda _y, x, _v: np.sqrt(np.maximum(x, 0) * (1 - x / 4_000)), id="as if nothing was randomised"),
    ],
)
def test_a_broken_standard_error_is_found_wanting(broken):
    assert abs(covered(broken) - 0.95) > 0.02


def test_the_errors_of_a_population_are_too_large_for_the_table():
    """Where little is randomised, sampling would be most of a population's error."""
    mild = [RetentionReplacement(0.875, 5), RetentionReplacement(0.875, 3)]
    assert abs(covered(lambda _y, _x, v: np.sqrt(v), mild) - 0.95) < 0.02
    assert covered(lambda _y, x, v: np.sqrt(v + np.maximum(x, 0) * (1 - x / 4_000)), mild) > 0.99


def test_pearson_on_the_release_keeps_its_level_and_on_estimates_does_not():
    from incrowd.mechanisms.pram.association import pearson

    rng = np.random.default_rng(5)
    source = RandomSource.seeded(6)
    naive, sound, runs = 0, 0, 300
    for _ in range(runs):
        people = Histogram.of(
            [
                Column("a", tuple("vwxyz"), rng.choice(5, 5_000, p=[0.3, 0.2, 0.2, 0.2, 0.1])),
                Column("b", tuple("pqr"), rng.choice(3, 5_000, p=[0.5, 0.3, 0.2])),
            ]
        )
        whole = tabulate(blocks(LAWS), pram.run(people, blocks(LAWS), source), ["a", "b"])
        statistic, degrees = pearson(whole.released)
        sound += statistic > stats.chi2.ppf(0.95, degrees)
        statistic, degrees = pearson(np.maximum(invert(whole.axes, whole.released)[0], 0.5))
        naive += statistic > stats.chi2.ppf(0.95, degrees)
    assert stats.binomtest(int(sound), runs, 0.05).pvalue > FALSE_ALARM
    assert stats.binomtest(int(naive), runs, 0.05).pvalue < FALSE_ALARM
