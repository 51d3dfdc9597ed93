"""Advice: alternatives are carried out as policies of their own, and scored by what is known of them."""

import json
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import incrowd
from incrowd import api
from incrowd.cli import main
from incrowd.comparison import advice
from incrowd.comparison.chart import draw_advice
from incrowd.comparison.rehearsed import rehearsed
from incrowd.core.numbers import few_digits
from incrowd.hierarchy import codings
from incrowd.mechanisms.pram.plan import largest_retention
from incrowd.mechanisms.views import draw
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.fidelity import TrueCounts, dense, fidelity
from incrowd.releases.pipeline import count_table
from incrowd.theory.randomisation import RetentionReplacement
from incrowd.theory.shuffling import central_epsilon

TEXT = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 0}
  sex: {domain: [f, m]}
  job: {domain: [none, office, shop, farm]}
release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-5}
"""


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(4)
    age = rng.integers(0, 100, 4000)
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], 4000),
            "job": np.where(age < 20, "none", rng.choice(["office", "shop", "farm"], 4000)),
        }
    )


def advise(policy, people):
    """With seeded bits, so that every run finds the same."""

    def count(policy, attributes):
        return count_table(people, policy, attributes, show_values=False, progress=lambda part: None)

    return advice.advise(policy, count, time_limit=1e6, source=RandomSource.seeded(3))


@pytest.fixture(scope="module")
def advised(people):
    return advise(Policy.from_text(TEXT), people)


def test_a_level_that_hides_less_is_found(advised):
    """4,000 people of 100 ages make no crowds; in tens they do."""
    assert max(advised.current.scores) < 0.6
    coarser = next(one for one in advised.alternatives if one.change == "age coarser, at level 1")
    assert coarser.scores[0] > 0.9
    assert coarser.score > advised.current.score
    assert coarser.epsilon == advised.current.epsilon == 1


def test_the_lines_of_a_change_make_the_policy_that_was_tried(advised, people):
    import yaml

    coarser = next(one for one in advised.alternatives if one.change == "age coarser, at level 1")
    content, lines = yaml.safe_load(TEXT), yaml.safe_load(coarser.lines)
    content["attributes"]["age"] |= lines["attributes"]["age"]
    again = advise(Policy.from_dict(content), people)
    assert again.current.scores == pytest.approx(coarser.scores, abs=0.06)


def test_alternatives_come_from_the_policy_and_from_every_mechanism(advised):
    changes = {one.change for one in advised.alternatives}
    assert {"drop age", "drop sex", "drop job", "ε = 2", "ε = 0.5", "beta = 0.1"} <= changes
    assert {"mechanism: sample", "mechanism: views", "mechanism: sampled_crowd, recoding: tree"} <= changes
    assert any(change.startswith("mechanism: pram, rho: ") for change in changes)


def test_the_best_never_promise_less(advised):
    assert advised.best
    assert all(one.epsilon <= 1 for one in advised.best)
    assert all(one.score > advised.current.score for one in advised.best)


def test_a_dropped_column_is_taken_as_evenly_spread(people):
    """Sex is even here, so that nothing is lost by dropping it; ages below 20 have no job, which is lost with job."""
    text = TEXT.replace("level: 0", "level: 1")
    found = {one.change: one for one in advise(Policy.from_text(text), people).alternatives}
    assert found["drop sex"].scores[0] > 0.95
    assert found["drop job"].scores[0] < found["drop sex"].scores[0]


def test_the_control_is_one_for_single_columns_and_less_for_dependent_ones(advised):
    assert advised.control[0] == pytest.approx(1.0)
    assert advised.control[1] < 1.0


def changes_of(people, release):
    text = TEXT.split("release:", maxsplit=1)[0] + f"release: {{{release}}}\n"
    if "generalization" in release:
        text = (
            text.replace(", level: 0", "")
            .replace("age: {", "age: {role: quasi, ")
            .replace("sex: {", "sex: {role: quasi, ")
        )
    policy = Policy.from_text(text)
    attributes = codings(policy)
    table = count_table(people, policy, attributes, show_values=False, progress=lambda part: None)
    truth = TrueCounts.of(table)
    tried = advice.carried_out(policy, advice.Change("as it is", {}), table, truth, RandomSource.seeded(3))
    return tried, list(advice.changes_around(policy, attributes, tried, table))


def test_others_are_compared_at_the_epsilon_that_was_promised(people):
    """Not at the local one, which a randomised table's policy asks for, nor at 1, if it asks for rho or k."""
    for release in ("mechanism: pram, epsilon: 4", "mechanism: pram, rho: 0.3"):
        tried, changes = changes_of(people, release)
        views = next(c.places["release",] for c in changes if c.words == "mechanism: views")
        assert views["epsilon"] == tried.found.epsilon
        assert tried.promise == (tried.found.epsilon, 1e-6)
    tried, changes = changes_of(people, "mechanism: sample, epsilon: 1, delta: 0.3")
    views = next(c.places["release",] for c in changes if c.words == "mechanism: views")
    assert (views["epsilon"], views["delta"]) == (pytest.approx(np.log(2)), 0.3)


def test_what_is_tried_of_each_mechanism(people):
    words = {change.words: change.weaker for change in changes_of(people, "mechanism: pram, epsilon: 4")[1]}
    assert {"local ε = 2", "rho = 0.5", "k = 5"} <= set(words)
    words = {c.words: c.weaker for c in changes_of(people, "mechanism: generalization, require: {k: 10}")[1]}
    assert words["k = 5"] is True
    assert words["k = 20"] is words["suppression = 0.05"] is words["recoding = local"] is False
    assert {"age coarser, at level 2", "age finer, at level 0"} & set(words)  # levels that were chosen are tried, too
    assert {"k = 20", "k = 50"} <= {
        c.words for c in changes_of(people, "mechanism: sampled_crowd, epsilon: 1, delta: 1e-5")[1]
    }


def test_the_time_may_be_up(people, monkeypatch):
    """The policy itself is scored, and what could not be tried is named: one of each kind comes first."""
    clock = iter(range(0, 1_000_000, 1000))
    monkeypatch.setattr(advice.time, "monotonic", lambda: next(clock))
    policy = Policy.from_text(TEXT)

    def count(policy, attributes):
        return count_table(people, policy, attributes, show_values=False, progress=lambda part: None)

    found = advice.advise(policy, count, time_limit=4500, source=RandomSource.seeded(3))
    assert found.current.scores
    assert {one.change for one in found.alternatives} == {
        "age coarser, at level 1",
        "ε = 0.5",
        "mechanism: sampled_crowd",
        "drop age",
    }
    [note] = [note for note in found.notes if "4,500 seconds" in note]
    assert "drop sex" in note
    assert "drop age" not in note


@pytest.mark.parametrize("left", [9, 10, 60])
def test_of_many_that_were_not_tried_some_are_named(left):
    [note] = advice._limits(SimpleNamespace(counts=(), possible=()), [f"drop c{n}" for n in range(left)], 60.0)
    assert note.count("drop c") == (9 if left == 9 else 8)
    assert (f"drop c7, and {left - 8} more. A longer" in note) == (left > 9)


def test_the_time_limit_holds_within_an_alternative(people, monkeypatch):
    real = advice.rehearsed

    def endless(policy, table, source):
        while policy.release.epsilon == 0.5:
            time.sleep(0.001)
        return real(policy, table, source)

    monkeypatch.setattr(advice, "rehearsed", endless)

    def count(policy, attributes):
        return count_table(people, policy, attributes, show_values=False, progress=lambda part: None)

    begun = time.monotonic()
    found = advice.advise(Policy.from_text(TEXT), count, time_limit=2, source=RandomSource.seeded(3))
    assert time.monotonic() - begun < 30
    assert "ε = 0.5" not in {one.change for one in found.alternatives}
    [note] = [note for note in found.notes if "2 seconds" in note]
    assert "ε = 0.5" in note


def test_no_synthetic_rows_are_drawn_for_a_score(people, monkeypatch):
    """They cost more than the views, and tell the same counts. A score is of a model that is found nearly."""
    text = TEXT.replace("sampled_crowd, epsilon: 1", "views, rows: 500, epsilon: 1").replace(", level: 0", "")
    policy = Policy.from_text(text)
    table = count_table(people, policy, codings(policy), show_values=False, progress=lambda part: None)
    truth = TrueCounts.of(table)
    whole = truth.scores(rehearsed(policy, table, RandomSource.seeded(3)).told)
    monkeypatch.setattr(draw, "combined", None)
    tried = advice.carried_out(policy, advice.Change("as it is", {}), table, truth, RandomSource.seeded(3))
    assert tried.found.refused is None
    assert tried.found.scores == pytest.approx(whole, abs=5e-4)


def test_scores_are_those_of_sets_counted_once(people):
    policy = Policy.from_text(TEXT)
    table = count_table(people, policy, codings(policy), show_values=False, progress=lambda part: None)
    noisy = lambda names: fidelity_of(table, names)  # noqa: E731
    whole, few = TrueCounts.of(table), TrueCounts.of(table, len(table) + 1)
    each = fidelity(table, noisy)
    assert whole.scores(noisy) == pytest.approx([one.score for one in each])
    assert whole.control() == pytest.approx([one.control for one in each])
    assert [len(sets) for sets in few.counts] == [3, 1, 1]  # all columns by themselves, whatever they cost
    notes = list(advice._limits(few, [], 1.0))
    assert len(notes) == 1
    assert "1 of 3 pairs of columns" in notes[0]
    assert not list(advice._limits(whole, [], 1.0))


def fidelity_of(table, names):
    """Something that is told: every third record is one of the first cell."""
    counts = dense(table, names)
    told = counts * 2 / 3
    told.flat[0] += counts.sum() / 3
    return told


def test_what_is_tried_of_views(people):
    words = {c.words for c in changes_of(people, "mechanism: views, epsilon: 2, delta: 1e-5")[1]}
    assert {"by = noise", "how = tree, columns = 3", "how = tree, columns = 2", "share = 0.2"} <= words
    assert "how = adaptive, columns = 2" not in words  # what it does anyway
    listed = changes_of(people, "mechanism: views, epsilon: 2, delta: 1e-5, by: noise, views: [[age, sex]]")[1]
    assert {"by = crowd", "no views"} <= {c.words for c in listed}


def test_randomising_at_the_same_promise_may_be_among_the_best():
    """The largest ρ states no more than the ε that was asked for, rounded up."""
    for sizes in ([2, 7, 5, 16], [2, 2], [40, 3]):
        for epsilon in (0.5, 2.0):
            rho = largest_retention(sizes, 30_162, epsilon, 1e-6)
            laws = [RetentionReplacement(rho, size) for size in sizes]
            assert few_digits(central_epsilon(laws, 30_162, 1e-6).epsilon, 6, up=True) <= epsilon
            more = [RetentionReplacement(min(1.02 * rho, 1.0), size) for size in sizes]
            assert central_epsilon(more, 30_162, 1e-6).epsilon > epsilon


def test_the_best_of_a_promise_without_epsilon_are_not_weaker(people):
    text = TEXT.split("release:", maxsplit=1)[0].replace(", level: 0", "").replace("domain:", "role: quasi, domain:")
    found = advise(Policy.from_text(text + "release: {mechanism: generalization, require: {k: 10}}\n"), people)
    assert not any(one.weaker for one in found.best)
    assert any("no ε" in note for note in found.notes)
    assert all(one.mechanism == "generalization" or one.epsilon is not None for one in found.best)


def test_what_cannot_be_done_says_why_and_comes_last(people):
    text = TEXT.replace("epsilon: 1, delta: 1e-5", "epsilon: 1, delta: 1e-5, k: 40, beta: 0.1")
    found = advise(Policy.from_text(text), people)
    refused = [one for one in found.alternatives if one.refused]
    assert refused == list(found.alternatives[len(found.alternatives) - len(refused) :])
    assert all(one.scores == () and one.score < 0 for one in refused)


def test_nothing_is_charged(people, tmp_path):
    ledger = f"ledger: {{path: {tmp_path / 'ledger.sqlite'}, dataset: people, epsilon: 1, delta: 0.001}}\n"
    incrowd.advise(Policy.from_text(TEXT + ledger), people)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_policy_without_a_release_is_refused(people):
    with pytest.raises(incrowd.InputError, match="how to release"):
        incrowd.advise(Policy.from_text(TEXT.split("release:", maxsplit=1)[0]), people)


def test_the_picture_names_the_current_policy_and_the_best(advised):
    picture = draw_advice(advised)
    assert "INTERNAL" in picture
    assert ">now<" in picture
    assert all(f">{number + 1}<" in picture for number in range(len(advised.best)))
    shown = [one for one in advised.alternatives if one.scores]
    assert picture.count("<title>") == len(shown) + 1
    assert (">no ε<" in picture) == any(one.epsilon is None for one in shown)


def test_the_command(people, tmp_path, capsys):
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.yaml").write_text(TEXT + "data: {path: people.csv}\n", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                "advise",
                str(tmp_path / "people.yaml"),
                "--json",
                "--time-limit",
                "1e6",
                "--plot",
                str(tmp_path / "advice.svg"),
            ]
        )
    found = json.loads(capsys.readouterr().out)
    assert stopped.value.code == 0
    assert {"current", "alternatives", "best", "internal"} <= found.keys()
    assert found["current"]["change"] == "as it is"
    assert (tmp_path / "advice.svg").read_text(encoding="utf-8").startswith("<svg")


def test_changes_in_a_policy_say_and_leave_out():
    policy = Policy.from_text(TEXT)
    other = policy.changed({("release", "beta"): 0.2, ("release", "delta"): 1e-6, ("attributes", "age"): None})
    assert other.release.beta == 0.2
    assert other.release.delta == 1e-6
    assert list(other.attributes) == ["sex", "job"]
    assert policy.attributes["age"].level == 0


def test_api_names_it():
    assert "advise" in api.__all__
    assert "advise" in incrowd.__all__


def test_what_release_would_refuse_is_not_advised(people, monkeypatch):
    """Several rows of a person are to count, and a mechanism promises nothing to such people."""
    from incrowd.mechanisms.registry import MECHANISMS

    monkeypatch.setattr(type(MECHANISMS["views"]), "several_rows", False)
    visits = people.assign(who=np.arange(len(people)) // 2)
    found = advise(Policy.from_text(TEXT + "people: {column: who, at_most: 2}\n"), visits)
    tried = [one for one in found.alternatives if one.mechanism == "views"]
    assert tried
    assert all("one row each" in one.refused for one in tried)
    assert not any(one.mechanism == "views" for one in found.best)
