"""What is drawn for a plain sample: rounding without bias, samples of the stated rate, intervals that cover.

Each test raises a false alarm with a probability below 10⁻⁷, and rejects a twin that is wrong by a few percent.
"""

import numpy as np
import pytest
from scipy.stats import binom

from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.sample import draw as sample
from incrowd.mechanisms.sample.estimate import interval
from incrowd.mechanisms.sample.settle import Rounding
from incrowd.randomness import RandomSource

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-9
RECORDS = 40_000
HOW = Rounding(10, 0, 29)


def surprise(successes, trials, probability):
    """How improbable so few or so many successes are."""
    return 2 * min(binom.cdf(successes, trials, probability), binom.sf(successes - 1, trials, probability))


def rounded_up(rounding):
    """For each number from 0 to 29 how many of its records were rounded up."""
    table = Histogram.of([Column("n", tuple(map(str, range(30))), np.arange(30))], np.full(30, RECORDS))
    seen = []
    for value in range(30):
        one = rounding(table.where(np.arange(30) == value))
        up = str(value - value % 10 + 10)
        here = [int(n) for code, n in zip(one["n"].codes, one.counts, strict=True) if one["n"].labels[code] == up]
        seen.append(sum(here))
    return seen


def unbiased(seen):
    return all(
        surprise(up, RECORDS, value % 10 / 10) > FALSE_ALARM if value % 10 else up == 0 for value, up in enumerate(seen)
    )


def test_rounding_has_no_bias():
    assert unbiased(rounded_up(lambda table: sample.round_at_random(table, {"n": HOW}, RandomSource())))


@pytest.mark.parametrize("twin", ["nearest", "towards one half"])
def test_biased_rounding_is_found(twin, monkeypatch):
    exact = RandomSource.binomial

    def biased(self, counts, probability):
        wrong = round(float(probability)) if twin == "nearest" else 0.95 * float(probability) + 0.025
        return exact(self, counts, float(wrong))

    monkeypatch.setattr(RandomSource, "binomial", biased)
    assert not unbiased(rounded_up(lambda table: sample.round_at_random(table, {"n": HOW}, RandomSource())))


def misses(rate_used):
    """How many of 4,000 cells of 60 records each are missed by the intervals of a sample of rate 0.3."""
    drawn = RandomSource().binomial(np.full(4000, 60), 0.3)
    low, high = interval(drawn[drawn > 0], rate_used)
    return int(((low > 60) | (high < 60)).sum())


def too_many(missed):
    return binom.sf(missed - 1, 4000, 0.05) < FALSE_ALARM


def test_intervals_cover():
    assert not too_many(misses(0.3))


def test_intervals_for_another_rate_do_not():
    assert too_many(misses(0.36))
