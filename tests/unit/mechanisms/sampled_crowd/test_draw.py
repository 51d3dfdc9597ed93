"""The mechanism: what it may look at, what it may show, and how it settles what is left open."""

from dataclasses import replace

import numpy as np
import pytest

from incrowd.core.errors import GuaranteeError, InternalError, ParameterError, UnreachableError
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.mechanisms.sampled_crowd import draw as sampled_crowd
from incrowd.mechanisms.sampled_crowd import levels as levels_module
from incrowd.mechanisms.sampled_crowd.draw import run
from incrowd.mechanisms.sampled_crowd.levels import information
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings, CrowdSettled, LevelChoice, solve
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.theory import crowd

CROWD = MECHANISMS["sampled_crowd"]
POLICY = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [5, 10, 50]}}
  sex: {domain: [f, m]}
  town: {domain: [a, b, c, d], hierarchy: {taxonomy: {"*": {north: [a, b], south: [c, d]}}}}
"""


@pytest.fixture
def attributes():
    return codings(Policy.from_text(POLICY))


@pytest.fixture
def table(attributes):
    rng = np.random.default_rng(5)
    rows = 5000
    codes = [rng.integers(0, len(a.coding.labels), rows) for a in attributes]
    return Histogram.of([Column(a.name, a.coding.labels, c) for a, c in zip(attributes, codes, strict=True)])


def test_a_table_too_large_for_a_private_choice_is_refused_before_the_budget_is_charged(attributes):
    huge = Histogram.of([Column(a.name, a.coding.labels, np.zeros(1, int)) for a in attributes], np.array([2**38]))

    def prepared(more="", text=POLICY):
        plan = Policy.from_text(f"{text}release: {{mechanism: sampled_crowd, epsilon: 2, delta: 1e-6{more}}}")
        return CROWD.prepare(CROWD.settle(plan, attributes, 1), huge, lambda *_: None)[1]

    with pytest.raises(UnreachableError, match="Fix the levels in the policy"):
        prepared(", selection_epsilon: 0.2")
    fixed = POLICY.replace("hierarchy:", "level: 1, hierarchy:")
    assert prepared(text=fixed) is huge  # nothing is left to choose


def test_a_choice_that_cannot_be_tabulated_is_refused_by_the_policy_alone(attributes):
    release = "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-6, beta: 1.0e-9"
    with pytest.raises(UnreachableError, match="tabulated"):
        CROWD.settle(Policy.from_text(f"{POLICY}{release}, selection_epsilon: 0.2}}"), attributes, 1)
    fixed = POLICY.replace("hierarchy:", "level: 1, hierarchy:")
    assert CROWD.settle(Policy.from_text(f"{fixed}{release}}}"), attributes, 1).crowd.beta == 1e-9


def settings(**changes):
    given = {
        "epsilon": 2.0,
        "delta": 1e-5,
        "selection_epsilon": 0.5,
        "k": 20,
        "beta": 0.3,
        "already_sampled": False,
    } | changes
    return CrowdSettings(**given)


def test_the_choice_is_made_on_the_full_table_before_any_sampling(table, attributes, monkeypatch):
    """Theorem 6 is false for a choice on the sample. Whoever moves it there makes this fail."""
    seen = []
    order = []

    class Watched(RandomSource):
        def binomial(self, counts, probability):
            order.append("sample")
            return super().binomial(counts, probability)

    def choose(lattice, columns, counts, **arguments):
        order.append("choose")
        seen.append((int(counts.sum()), arguments["epsilon"]))
        return tuple(ladder.height for ladder in lattice.ladders)

    monkeypatch.setattr(levels_module, "choose", choose)
    run(table, attributes, {}, settings(), Watched())
    assert seen == [(table.total, pytest.approx(0.4375))]  # an eighth has bought one-way tables
    assert order == ["choose", "sample", "sample"]  # large cells, then small ones


def test_fixed_levels_are_not_chosen(table, attributes, monkeypatch):
    monkeypatch.setattr(levels_module, "choose", None)
    outcome = run(table, attributes, {"age": 2, "sex": 0, "town": 1}, settings(selection_epsilon=0.0), RandomSource())
    assert outcome.levels == {"age": 2, "sex": 0, "town": 1}
    assert outcome.published["town"].labels == ("north", "south")


def test_some_levels_fixed_and_others_chosen(table, attributes):
    outcome = run(table, attributes, {"sex": 0}, settings(selection_epsilon=1.0), RandomSource())
    assert outcome.levels["sex"] == 0
    assert set(outcome.levels) == {"age", "sex", "town"}
    assert len(outcome.published["sex"].labels) == 2


def test_every_published_crowd_has_k_and_comes_from_the_sample(table, attributes):
    outcome = run(table, attributes, {"age": 2, "sex": 0, "town": 0}, settings(), RandomSource())
    assert outcome.published.counts.min() >= 20
    assert outcome.published == outcome.sample.where(outcome.sample.counts >= 20)
    assert outcome.sample.total < table.total


def test_a_good_mapping_is_chosen_when_the_budget_allows(table, attributes):
    """With a large ε₁ the choice is the best one: brute force over all nodes."""
    chosen = run(table, attributes, {}, settings(epsilon=60.0, selection_epsilon=50.0), RandomSource()).levels
    best = None
    for age in range(attributes[0].hierarchy.height + 1):
        for sex in range(2):
            for town in range(attributes[2].hierarchy.height + 1):
                levels = {"age": age, "sex": sex, "town": town}
                recoded = table.recode({a.name: a.hierarchy.recode(levels[a.name]) for a in attributes})
                kept = np.array([n * crowd.survival(int(n), 20, 0.3) for n in recoded.counts])
                weight = np.mean(
                    [information(a, levels[a.name], 1 << 20)[recoded[a.name].codes] for a in attributes], axis=0
                )
                score = float((kept * weight).sum())
                if best is None or score > best[0]:
                    best = (score, levels)
    assert chosen == best[1]


def test_a_sample_is_not_sampled_again(table, attributes):
    levels = {"age": 2, "sex": 0, "town": 1}
    outcome = run(table, attributes, levels, settings(already_sampled=True, selection_epsilon=0.0), RandomSource())
    assert outcome.sample.total == table.total


def test_levels_are_never_chosen_on_a_sample(table, attributes):
    with pytest.raises(GuaranteeError) as error:
        run(table, attributes, {"sex": 0}, settings(already_sampled=True), RandomSource())
    assert error.value.code == "choice-on-sample"


def test_settings_that_do_not_keep_their_promise_never_run(table, attributes):
    with pytest.raises(InternalError):
        run(table, attributes, {"age": 0, "sex": 0, "town": 0}, settings(k=3), RandomSource())


def test_crowds_that_are_too_small_are_found_out_before_they_leave(table, attributes, monkeypatch):
    settled = CrowdSettled(settings(selection_epsilon=0.0), attributes, {"age": 2, "sex": 0, "town": 1})
    assert sampled_crowd.draw(settled, table, RandomSource()).published.counts.min() >= 20
    whole = run(table, attributes, settled.fixed, settled.crowd, RandomSource())
    one_too_few = replace(whole, published=whole.published.with_counts(np.full(len(whole.published), 19)))
    monkeypatch.setattr(sampled_crowd, "run", lambda *_: one_too_few)
    with pytest.raises(InternalError, match="not what the policy promises"):
        sampled_crowd.draw(settled, table, RandomSource())


def test_an_empty_release_is_a_release(attributes):
    columns = [Column(a.name, a.coding.labels, np.array([0])) for a in attributes]
    outcome = run(Histogram.of(columns), attributes, {}, settings(), RandomSource())
    assert outcome.published.total == 0


def release(**changes):
    return SampledCrowd(**({"mechanism": "sampled_crowd", "epsilon": 2.0, "delta": 1e-5} | changes))


def test_what_is_open_is_settled_without_data():
    assert solve(release(beta=0.85043, selection_epsilon=0.1)).k == 83
    found = solve(release(k=83, selection_epsilon=0.1))
    assert found.beta == pytest.approx(0.8504, abs=5e-3)
    assert found.kept
    small, large = solve(release(crowd_of_interest=30)), solve(release(crowd_of_interest=5000))
    assert small.kept
    assert large.kept
    assert small.beta < large.beta  # large crowds can afford a large k


def test_where_both_are_open_the_largest_rate_near_the_least_k_per_rate_is_taken():
    found = solve(release(selection_epsilon=0.1))
    sizes = {i / 100: crowd.smallest_k(found.crowd_epsilon, 1e-5, i / 100) / (i / 100) for i in range(1, 100)}
    near = [beta for beta, size in sizes.items() if size <= 1.15 * min(sizes.values())]
    assert (found.k, found.beta) == (18, 0.49) == (crowd.smallest_k(found.crowd_epsilon, 1e-5, max(near)), max(near))
    assert crowd.plan(epsilon=2.0, delta=1e-5, selection_epsilon=0.1).beta == found.beta
    with pytest.raises(UnreachableError):
        solve(release(epsilon=1e-9, delta=1e-300))


def test_the_rate_taken_is_the_best_one_for_a_crowd_of_interest():
    found = solve(release(crowd_of_interest=150))
    kept = crowd.survival(150, found.k, found.beta)
    for beta in (0.1, 0.3, 0.5, 0.7, 0.9):
        assert crowd.survival(150, crowd.smallest_k(2.0, 1e-5, beta), beta) <= kept


def test_parameters_that_contradict_each_other_are_refused():
    with pytest.raises(GuaranteeError) as error:
        solve(release(k=5, beta=0.5))
    assert error.value.code == "promise-not-kept"
    assert error.value.details["k_needed"] == crowd.smallest_k(2.0, 1e-5, 0.5)


def test_a_crowd_too_small_for_any_rate_is_refused():
    with pytest.raises(UnreachableError):
        solve(release(epsilon=0.05, delta=1e-9, crowd_of_interest=2))


def test_information_is_one_for_raw_values_and_zero_at_the_root(attributes):
    age = attributes[0]
    assert information(age, 0, 99).tolist() == [99] * 100
    assert information(age, age.hierarchy.height, 99).tolist() == [0]
    assert information(age, 1, 99).tolist() == [95] * 20  # five values of a hundred: 1 − 4/99


def test_a_lattice_too_large_to_enumerate_is_searched_with_a_budget_that_adds_up(monkeypatch):
    """Twelve columns, 13 million nodes: a step for each column, each with an equal share, together no more than ε₁."""
    from incrowd.recoding import choice

    columns = "\n".join(
        f"  c{i}: {{type: integer, domain: {{from: 0, to: 15}}, hierarchy: {{widths: [4, 8]}}}}" for i in range(12)
    )
    attributes = codings(Policy.from_text(f"incrowd: 1\nattributes:\n{columns}\n"))
    rng = np.random.default_rng(2)
    table = Histogram.of([Column(a.name, a.coding.labels, rng.integers(0, 16, 2000)) for a in attributes])
    spent, real = [], choice.noisy_max

    def noisy_max(scores, sensitivity, epsilon):
        spent.append((len(scores), epsilon))
        return real(scores, sensitivity, epsilon)

    monkeypatch.setattr(choice, "noisy_max", noisy_max)
    outcome = run(table, attributes, {}, settings(selection_epsilon=1.0), RandomSource())
    assert len(spent) == 12  # one for each column
    assert sum(epsilon for _, epsilon in spent) <= 1.0
    assert spent[0][0] == 37  # stay, or show one of twelve columns one, two or three levels finer
    assert set(outcome.levels) == {f"c{i}" for i in range(12)}


@pytest.mark.parametrize("changes", [{"epsilon": 100.1}, {"beta": 2.0**-65}, {"epsilon": 101.0, "beta": 0.5, "k": 3}])
def test_what_promises_nothing_and_rates_that_no_draw_has_are_refused(changes):
    with pytest.raises(ParameterError, match=r"epsilon must be 100 at most .* beta 2\*\*-64 at least"):
        solve(release(**changes))


@pytest.mark.parametrize("changes", [{"epsilon": 100.0}, {"beta": 2.0**-64}])
def test_their_limits_are_not(changes):
    assert solve(release(**changes)).kept


def test_the_private_choice_allows_for_all_rows_of_a_person(attributes, monkeypatch):
    """Its noise is scaled by the rows that one person may have."""
    from incrowd.recoding import choice

    seen = []
    monkeypatch.setattr(choice, "noisy_max", lambda scores, sensitivity, epsilon: seen.append(sensitivity) or 0)
    columns = [Column(a.name, a.coding.labels, np.array([0])) for a in attributes]
    for rows in (1, 3):
        given = replace(settings(), k=60, beta=0.2, persons=Persons(rows))
        given = replace(given, choice=LevelChoice(importance={"age": 1.0}))  # weights without noise
        run(Histogram.of(columns), attributes, {}, given, RandomSource())
    assert seen[1] == 3 * seen[0]
