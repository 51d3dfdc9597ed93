"""A million runs on worst-case neighbours: the promise stands, and broken mechanisms are caught.

A table with a million cells of n records is a million independent runs on a table with one: each cell is sampled and
suppressed for itself. The bounds used are wrong with probability 1e-6 each.
"""

import math

import numpy as np
import pandas as pd
import pytest

from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.sampled_crowd.draw import run
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings, solve
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import count_table
from incrowd.theory.crowd import exact_delta
from power_audit import audit

RUNS = 1_000_000
K, BETA, EPSILON = 5, 0.3, 0.4
pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def attributes():
    number = "{type: integer, domain: {from: 0, to: 999}}"
    return codings(Policy.from_text(f"incrowd: 1\nattributes: {{a: {number}, b: {number}}}\n"))


def published_counts(attributes, n, k=K, beta=BETA):
    """What the real mechanism shows for each of a million cells of n records: 0 if nothing."""
    if n == 0:
        return np.zeros(RUNS, dtype=np.int64)
    codes = {"a": np.arange(RUNS) // 1000, "b": np.arange(RUNS) % 1000}
    table = Histogram.of([Column(a.name, a.coding.labels, codes[a.name]) for a in attributes], np.full(RUNS, n))
    # δ = 1 lets a broken twin through the mechanism's own check; the audit judges it by the δ promised.
    settings = CrowdSettings(EPSILON, 1.0, 0.0, k, beta, already_sampled=False)
    outcome = run(table, attributes, {"a": 0, "b": 0}, settings, RandomSource())
    shown = np.zeros(RUNS, dtype=np.int64)
    first, second = (column.codes.astype(np.int64) for column in outcome.published.columns)
    shown[1000 * first + second] = outcome.published.counts
    return shown


def worst_size(k=K, beta=BETA, epsilon=EPSILON):
    """The size of the cell in which one record shows most."""
    return math.ceil((k - 1) / (1 - (1 - beta) * math.exp(-epsilon)))


@pytest.mark.parametrize("n", [1, K, worst_size(), worst_size() + 1, 2 * worst_size()])
def test_the_promise_stands(attributes, n):
    larger, smaller = published_counts(attributes, n), published_counts(attributes, n - 1)
    delta = exact_delta(K, BETA, EPSILON)
    assert audit(larger, smaller, EPSILON).delta_at_least <= delta
    assert audit(smaller, larger, EPSILON).delta_at_least <= delta


def test_the_audit_sees_nearly_all_of_the_true_delta(attributes):
    """The promise is exact: at the worst n the measured divergence comes close to it, from below."""
    n = worst_size()
    found = audit(published_counts(attributes, n), published_counts(attributes, n - 1), EPSILON)
    assert found.delta_at_least > 0.7 * exact_delta(K, BETA, EPSILON)


# (k, β, ε) and the twin: chosen so that the twin's δ lies tens of standard errors above the promised one.
TWINS = {"k − 1": ((5, 0.3, 0.4), (4, 0.3)), "1.1 β": ((3, 0.5, 0.8), (3, 0.55))}


@pytest.mark.parametrize(("promised", "twin"), TWINS.values(), ids=TWINS)
def test_broken_twins_are_caught(attributes, promised, twin):
    (k, beta, epsilon), (twin_k, twin_beta) = promised, twin
    n = worst_size(twin_k, twin_beta, epsilon)
    larger, smaller = (published_counts(attributes, size, twin_k, twin_beta) for size in (n, n - 1))
    assert audit(larger, smaller, epsilon).delta_at_least > exact_delta(k, beta, epsilon)


def test_publishing_the_suppressed_count_is_caught():
    """A twin that also tells how many sampled records it suppressed: one record is then seen with probability β."""
    source = RandomSource()

    def published_and_suppressed(n):
        sampled = source.binomial(np.full(RUNS, n), BETA)
        shown = np.where(sampled >= K, sampled, 0)
        return shown * 1000 + (sampled - shown)

    found = audit(published_and_suppressed(1), published_and_suppressed(0), EPSILON)
    assert found.delta_at_least > 0.9 * BETA > exact_delta(K, BETA, EPSILON)


# --- people with several rows ---------------------------------------------------------------------------------------

ROWS = 3


def worst_others(k, beta, epsilon, rows):
    """Of how many other rows a cell is in which a person's rows show most, found by trying."""
    from scipy.stats import binom

    sizes = np.arange(k - 1, 20 * k)
    return int(sizes[np.argmax(binom.sf(k - 1, sizes + rows, beta) - math.exp(epsilon) * binom.sf(k - 1, sizes, beta))])


def released_counts(people, rows, beta=BETA, at_most=ROWS):
    """The counts that real releases show of a million cells, each with some people of one row and one of `rows`.

    The table goes the whole way: an engine limits the rows of each person, and the mechanism draws as it settled.
    """
    policy = Policy.from_text(
        "incrowd: 1\nattributes: {who: {role: drop}, a: {type: integer, domain: {from: 0, to: 999}}}\n"
        f"people: {{column: who, at_most: {at_most}}}\n"
        f"release: {{mechanism: sampled_crowd, epsilon: {EPSILON}, delta: 0.05, beta: {beta}}}\n"
    )
    cell = np.repeat(np.arange(1000), people + rows)
    place = np.tile(np.arange(people + rows), 1000)
    frame = pd.DataFrame({"who": cell * 10_000 + np.minimum(place, people), "a": cell})
    attributes = codings(policy)
    mechanism = mechanism_named("sampled_crowd")
    settings = mechanism.settle(policy, attributes, 1)
    table = count_table(frame, policy, attributes, progress=lambda _: None, show_values=False)
    shown = np.zeros((200, 1000), dtype=np.int64)
    for run_number in range(len(shown)):
        drawn = run(table, attributes, settings.fixed, settings.crowd, RandomSource())
        (column,) = drawn.published.columns
        shown[run_number, column.codes] = drawn.published.counts
    return shown.ravel(), settings.crowd


def test_people_with_several_rows_are_covered_and_a_twin_that_ignores_them_is_caught():
    """Two hundred releases of a thousand cells; in each cell a person has ten rows, of which three count, or none."""
    settings = solve(SampledCrowd(mechanism="sampled_crowd", epsilon=EPSILON, delta=0.05, beta=BETA), Persons(ROWS))
    others = worst_others(settings.k, BETA, EPSILON, ROWS)
    (with_her, said), (without, _) = released_counts(others, 10), released_counts(others, 0)
    assert said.k == settings.k
    found = audit(with_her, without, EPSILON).delta_at_least
    assert 0.6 * said.exact_delta < found <= said.exact_delta
    # The twin keeps k for one row each, and lets three rows of each person count.
    twin = solve(SampledCrowd(mechanism="sampled_crowd", epsilon=EPSILON, delta=0.05, beta=BETA))
    assert twin.k < settings.k
    others = worst_others(twin.k, BETA, EPSILON, ROWS)
    source = RandomSource()

    def drawn(n):
        sampled = source.binomial(np.full(200_000, n), BETA)
        return np.where(sampled >= twin.k, sampled, 0)

    assert audit(drawn(others + ROWS), drawn(others), EPSILON).delta_at_least > 1.5 * twin.delta
