"""A plain sample: the terms that are found, rounding at random, and what is drawn."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.errors import GuaranteeError, InternalError
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.sample import draw as sample
from incrowd.mechanisms.sample.settle import Rounding, SampleSettings, Terms, find_terms, printed, recode
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.sources import open_source
from incrowd.theory import sampling

COUNTS = np.array([3, 40, 300, 4000, 4000, 50_000])


def digits(value: float) -> int:
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


def test_the_largest_rate_is_rounded_down_to_few_digits():
    largest = sampling.largest_rate(COUNTS, 0.5, 0.05).rate
    terms = find_terms(COUNTS, SampleSettings(0.5, 0.05, None))
    assert terms.rate <= largest < terms.rate * 1.01
    assert digits(terms.rate) <= 3 < digits(largest)
    assert sampling.sample_delta(COUNTS, terms.rate, 0.5).delta <= 0.05


def test_a_tiny_rate_is_drawn_as_it_is(monkeypatch):
    counts = np.full(10**6, 1)
    terms = find_terms(counts, SampleSettings(0.5, 1e-6, None))
    assert 0 < terms.rate < 2**-39
    assert sampling.sample_delta(counts, terms.rate, 0.5).delta <= 1e-6
    asked = []
    exact = RandomSource.binomial
    monkeypatch.setattr(RandomSource, "binomial", lambda self, n, p: asked.append(p) or exact(self, n, p))
    drawn(settings=SampleSettings(0.5, None, 1e-15 / 7))
    assert asked == [Fraction(1e-15 / 7)]  # a float would be rounded down to a multiple of 2**-64


def test_what_a_planned_rate_promises_is_rounded_up():
    delta = sampling.sample_delta(COUNTS, 0.01, 0.5).delta
    terms = find_terms(COUNTS, SampleSettings(0.5, None, 0.01))
    assert delta <= terms.delta <= delta * 1.01
    assert digits(terms.delta) <= 3
    epsilon = sampling.sample_epsilon(COUNTS, 0.01, 0.05).epsilon
    terms = find_terms(COUNTS, SampleSettings(None, 0.05, 0.01))
    assert epsilon <= terms.epsilon <= epsilon * 1.01 + 1e-3
    assert digits(terms.epsilon) <= 3
    assert sampling.sample_delta(COUNTS, terms.rate, terms.epsilon).delta <= 0.05


def test_a_complete_promise_is_checked_and_publishes_nothing_found():
    assert find_terms(COUNTS, SampleSettings(0.5, 0.05, 0.001)) == Terms(0.5, 0.05, 0.001, 1)
    with pytest.raises(GuaranteeError) as refused:
        find_terms(COUNTS, SampleSettings(0.5, 0.05, 0.3))
    assert refused.value.code == "promise-not-kept"
    assert "--advice" in refused.value.remedy
    assert not refused.value.details  # nothing that was read off the table


@pytest.mark.parametrize(
    "settings",
    [SampleSettings(0.5, None, 0.9999), SampleSettings(0.5, None, 0.3), SampleSettings(None, 0.001, 0.9)],
)
def test_a_rate_that_promises_nothing_is_refused_with_a_way_out(settings):
    with pytest.raises(GuaranteeError) as refused:
        find_terms(COUNTS, settings)
    assert "--advice" in refused.value.remedy


def test_a_sample_that_is_all_but_surely_empty_is_promised_some_epsilon_still():
    assert sampling.sample_epsilon(np.array([1000]), 1e-6, 0.1).epsilon == 0
    assert find_terms(np.array([1000]), SampleSettings(None, 0.1, 1e-6)) == Terms(0.001, 0.1, 1e-6, 1)


def test_several_rows_at_once():
    one, two = (find_terms(COUNTS, SampleSettings(0.5, 0.05, None, c)).rate for c in (1, 2))
    assert two < one
    assert sampling.sample_delta(COUNTS, two, 0.5, 2).delta <= 0.05


@pytest.mark.parametrize("value", [0.123456, 1e-9 / 3, 0.9999, 5e-324 * 12345])
def test_few_digits_never_cross_the_value(value):
    down, up = printed(value, up=False), printed(value, up=True)
    assert down <= value <= up


@pytest.mark.parametrize("value", [0.001, 0.05, 0.7, 0.123, 1e-9, 12.3])
def test_few_digits_stay_as_they_are(value):
    assert printed(value, up=True) == value == printed(value, up=False)


# --- rounding -------------------------------------------------------------------------------------------------------


def histogram(values, other, counts, labels):
    return Histogram.of(
        [Column("n", labels, np.array(values)), Column("x", ("a", "b"), np.array(other))], np.array(counts)
    )


LABELS = (*map(str, range(-7, 24)), "other", None)


def test_only_the_two_multiples_around_a_number_and_nothing_is_lost():
    rng = np.random.default_rng(3)
    values = rng.integers(0, len(LABELS), 400)
    table = histogram(values, rng.integers(0, 2, 400), rng.integers(1, 50, 400), LABELS)
    how = Rounding(10, -7, 23)
    assert how.labels == ("-10", "0", "10", "20", "30")
    rounded = sample.round_at_random(table, {"n": how}, RandomSource.seeded(1))
    assert rounded["n"].labels == ("-10", "0", "10", "20", "30", "other", None)
    assert rounded.total == table.total
    assert rounded.project(["x"]) == table.project(["x"])
    for label in ("other", None):
        kept = [h.counts[h["n"].codes == h["n"].labels.index(label)].sum() for h in (table, rounded)]
        assert kept[0] == kept[1]
    alone = {}
    for value in range(-7, 24):
        one = histogram([value + 7], [0], [200], LABELS)
        seen = sample.round_at_random(one, {"n": how}, RandomSource.seeded(value + 50))
        alone[value] = {int(seen["n"].labels[c]) for c in seen["n"].codes}
    for value, seen in alone.items():
        assert seen <= {math.floor(value / 10) * 10, math.ceil(value / 10) * 10}
        if value % 10 == 0:
            assert seen == {value}


def test_two_columns_are_rounded_one_after_the_other():
    labels = tuple(map(str, range(10)))
    table = Histogram.of([Column("a", labels, np.arange(10)), Column("b", labels, np.arange(10))], np.full(10, 100))
    how = {"a": Rounding(5, 0, 9), "b": Rounding(3, 0, 9)}
    rounded = sample.round_at_random(table, how, RandomSource.seeded(4))
    assert rounded.total == 1000
    assert (rounded["a"].labels, rounded["b"].labels) == (("0", "5", "10"), ("0", "3", "6", "9"))
    again = sample.round_at_random(table, how, RandomSource.seeded(4))
    assert again == rounded


def test_the_promise_about_the_rounded_table_holds_for_true_values():
    """The mixture argument, by enumeration: a row with an unknown value, which is rounded to one of three."""
    epsilon, rate = Fraction(1, 2), Fraction(1, 10)
    others = {0: 4, 10: 6, 20: 5}  # the other rows, as they were rounded

    def likelihood(drawn, value):
        counts = dict(others)
        counts[value] += 1
        return math.prod(
            math.comb(counts[v], drawn[v]) * rate ** drawn[v] * (1 - rate) ** (counts[v] - drawn[v])
            for v in counts
            if drawn[v] <= counts[v]
        ) * all(drawn[v] <= counts[v] for v in counts)

    def of_true(drawn, value):
        low = value - value % 10
        up = Fraction(value % 10, 10)
        return (1 - up) * likelihood(drawn, low) + (up * likelihood(drawn, low + 10) if up else 0)

    private = 0
    for sizes in itertools.product(*(range(n + 2) for n in others.values())):
        drawn = dict(zip(others, sizes, strict=True))
        ratios = [likelihood(drawn, v) for v in others]
        if max(ratios) > (1 + epsilon) * min(ratios):
            continue
        private += 1
        true = [of_true(drawn, value) for value in range(21)]
        assert max(true) <= (1 + epsilon) * min(true)
    assert private > 1


# --- drawing --------------------------------------------------------------------------------------------------------

POLICY = Policy.from_text(
    """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 9}, hierarchy: {widths: 5}, level: 1}
  sex: {domain: [f, m]}
release: {mechanism: sample, epsilon: 0.5, delta: 0.05}
"""
)


def drawn(terms=None, settings=None, seed=1):
    attributes = codings(POLICY)
    table = Histogram.of(
        [
            Column("age", attributes[0].coding.labels, np.tile(np.arange(10), 2)),
            Column("sex", ("f", "m"), np.repeat([0, 1], 10)),
        ],
        np.full(20, 500),
    )
    settings = settings or SampleSettings(0.5, 0.05, None)
    return table, sample.run(table, attributes, {"age": 1, "sex": 0}, settings, RandomSource.seeded(seed), terms)


def test_what_is_drawn_is_a_part_of_the_recoded_table():
    table, outcome = drawn()
    assert outcome.before == table
    assert outcome.table.counts.tolist() == [2500] * 4
    assert outcome.published == outcome.table.with_counts(outcome.drawn)
    assert (outcome.drawn <= outcome.table.counts).all()
    assert 0 < outcome.published.total < table.total


def test_a_rate_that_does_not_keep_the_promise_is_never_drawn():
    with pytest.raises(InternalError):
        drawn(Terms(0.5, 0.05, 0.9, 1))


def test_adult_two_levels_up(benchmark_data):
    folder = benchmark_data / "adult"
    names = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
    attributes = "\n".join(f"  {n}: {{hierarchy: {{file: {folder}/adult_hierarchy_{n}.csv}}}}" for n in names)
    salary = f"  salary-class: {{hierarchy: {{file: {folder}/adult_hierarchy_salary-class.csv}}}}"
    coded = codings(Policy.from_text(f"incrowd: 1\nattributes:\n{attributes}\n{salary}\n"))
    table = open_source(str(folder / "adult.csv"), delimiter=";").count_by([a.coding for a in coded])
    counts = recode(table, coded, {a.name: min(2, a.hierarchy.height) for a in coded}, {}).counts
    assert len(counts) == 24
    assert sampling.largest_rate(counts, 0.5, 0.05).rate == pytest.approx(0.0943, abs=5e-5)
    assert sampling.theorem_rate(counts, 0.5, 0.05).rate == pytest.approx(3.84e-5, rel=2e-3)
    assert find_terms(counts, SampleSettings(0.5, 0.05, None)).rate == 0.0942
