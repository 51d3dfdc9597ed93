"""Intervals for numbers of people of whom some were sampled, and of these some are not shown."""

import numpy as np
import pytest
from scipy.stats import binom

from incrowd.theory.intervals import (
    ANY,
    OWN,
    REST,
    SURPRISE,
    calibrated,
    extreme_mean,
    mean_margin,
    sampled_between,
    sum_between,
)


def ints(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_the_ends_are_the_last_that_are_no_surprise(rate):
    least, most = ints(0, 1, 5, 40), ints(3, 1, 60, 41)
    low, high = sampled_between(least, most, rate)
    for a, b, first, last in zip(least.tolist(), most.tolist(), low.tolist(), high.tolist(), strict=True):
        assert first == 0 if a == 0 else binom.sf(a - 1, first, rate) > SURPRISE >= binom.sf(a - 1, first - 1, rate)
        assert binom.cdf(b, last, rate) > SURPRISE >= binom.cdf(b, last + 1, rate)


@pytest.mark.parametrize("rate", [0.05, 0.4])
@pytest.mark.parametrize("cells", [[3], [30], [25, 25, 25], [2] * 40, [200, 4, 4, 9]])
def test_crowds_that_are_not_shown_are_allowed_for(rate, cells):
    """By brute force over what is sampled: only cells of k records are seen, and the truth is covered all the same."""
    k, runs = 6, 4000
    drawn = np.random.default_rng(7).binomial(cells, rate, (runs, len(cells)))
    shown = np.where(drawn >= k, drawn, 0).sum(axis=1)
    hidden = (drawn < k).sum(axis=1)
    low, high = sampled_between(shown, shown + (k - 1) * hidden, rate)
    missed = np.mean((low > sum(cells)) | (high < sum(cells)))
    assert missed < 0.05 + 4 * np.sqrt(0.05 * 0.95 / runs)
    blind = sampled_between(shown, shown, rate)  # as if nothing were hidden
    wrong = np.mean((blind[0] > sum(cells)) | (blind[1] < sum(cells)))
    assert wrong > 0.2 or len(cells) * rate != 40 * 0.4  # a broken twin, where most is hidden


def test_far_ends_are_far_enough():
    x = ints(10**9 - 1, 10**9, 10**15, ANY)
    low, high = sampled_between(x, x, 0.25)
    assert (high > 4 * x.astype(float) * 0.999).all() or high[-1] == ANY
    assert (low <= np.minimum(4.0 * x, ANY)).all()
    assert high[1] >= high[0]


def test_a_total_leaves_to_a_cell_what_the_rest_has_not():
    ends = calibrated((ints(10, 0), ints(500, 90)), (ints(60, 80), ints(70, 700)), (100, 100))
    assert ends[0].tolist() == [30, 0]
    assert ends[1].tolist() == [40, 20]
    uncertain = calibrated((ints(10), ints(500)), (ints(60), ints(70)), (90, 110))
    assert [int(end[0]) for end in uncertain] == [20, 50]
    assert OWN + REST == SURPRISE


def test_extreme_means_by_brute_force():
    rng = np.random.default_rng(1)
    for _ in range(30):
        values = rng.integers(0, 9, 4).astype(float)
        counts, more = rng.integers(0, 4, 4).astype(float), rng.integers(0, 3, 4).astype(float)
        counts[0] += 1
        tried = [
            float((counts + extra) @ values / (counts + extra).sum())
            for extra in (np.array(at) for at in np.ndindex(*(more.astype(int) + 1)))
        ]
        assert extreme_mean(values, counts, more, largest=True) == pytest.approx(max(tried))
        assert extreme_mean(values, counts, more, largest=False) == pytest.approx(min(tried))


@pytest.mark.parametrize("sampled", [4, 12, 60])
def test_the_margin_of_a_mean_holds(sampled):
    """Of a lopsided population: 1 in 10 has the value 1."""
    people = np.array([1.0] * 30 + [0.0] * 270)
    rng = np.random.default_rng(sampled)
    missed = 0
    for _ in range(600):
        drawn = rng.choice(people, sampled, replace=False)
        squares = float(((drawn - drawn.mean()) ** 2).sum())
        missed += abs(drawn.mean() - 0.1) > mean_margin(sampled, squares, 1.0, sampled / 300)
    assert missed / 600 <= 0.05
    assert mean_margin(1000, None, 1.0, 0.1) > mean_margin(1000, 10.0, 1.0, 0.1)


SUMS = [
    ({10: 1}, 0.004),
    ({1: 3, 10: 1}, 0.2),
    ({1: 40, 30: 2}, 0.3),
    ({-5: 6, 4: 5}, 0.4),
    ({2: 60}, 0.6),
]


@pytest.mark.parametrize(("people", "rate"), SUMS)
def test_sums_are_covered_whenever_their_group_occurs(people, rate):
    """Every sample of a small group: neither end is wrong in more than 2.5% of those that show it."""
    values, sizes = np.array([0, *people, 0.5], dtype=float), np.array([0, *people.values(), 0])
    truth = float(values @ sizes)
    above = below = 0.0
    for drawn in np.ndindex(*(sizes + 1)):
        if any(drawn):
            chance = float(np.prod(binom.pmf(drawn, sizes, rate)))
            if chance > 1e-7:
                low, high = sum_between(values, np.array(drawn, dtype=float), rate)
                assert low <= float(values @ drawn) / rate <= high
                below += chance * (truth < low)
                above += chance * (truth > high)
    occurs = 1 - (1 - rate) ** int(sizes.sum())
    assert max(below, above) <= SURPRISE * occurs


def test_the_interval_of_a_sum_comes_close_to_that_of_a_count():
    """Where all numbers are one and the rate is small, it is a count."""
    low, high = sum_between(np.ones(1), np.array([400.0]), 0.05)
    [least], [most] = sampled_between(ints(400), ints(400), 0.05)
    assert 0.95 * least < low < least
    assert most < high < 1.05 * most
