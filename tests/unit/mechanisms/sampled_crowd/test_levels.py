"""The private choice of levels: what it looks for, what columns count in it, and what that costs."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import incrowd
from incrowd import api
from incrowd.core.errors import PolicyError
from incrowd.core.signing import canonical
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.mechanisms.sampled_crowd import levels
from incrowd.mechanisms.sampled_crowd.levels import NoisyTables, choose_levels
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings, LevelChoice
from incrowd.policy import Policy
from incrowd.randomness import RandomSource

CROWD = MECHANISMS["sampled_crowd"]
POLICY = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [5, 10, 50]}}
  sex: {domain: [f, m]}
  ill: {domain: ["no", "yes"]}
  cured: {domain: ["no", "yes"]}
"""
RELEASE = "release: {{mechanism: sampled_crowd, epsilon: 3, delta: 1e-5, selection_epsilon: {spent}{more}}}\n"


def policy(more="", spent=1):
    return Policy.from_text(POLICY + RELEASE.format(more=more, spent=spent))


def people(rows=40_000):
    rng = np.random.default_rng(3)
    age = rng.integers(0, 100, rows)
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "ill": np.where(rng.random(rows) < 0.02, "yes", "no"),
            "cured": np.where(age >= 50, "yes", "no"),
        }
    )


def counted(attributes, rows=40_000):
    columns = []
    for a in attributes:
        place = {label: code for code, label in enumerate(a.coding.labels)}
        columns.append(Column(a.name, a.coding.labels, np.array([place[str(v)] for v in people(rows)[a.name]])))
    return Histogram.of(columns)


def settings(more="", spent=1):
    plan = policy(more, spent)
    return CROWD.settle(plan, codings(plan), 1)


def chosen(more="", spent=1):
    settled = settings(more, spent)
    table = counted(settled.attributes)
    found = choose_levels(table, settled.attributes, settled.fixed, settled.crowd, RandomSource())
    return found.levels, found.weights


def test_a_column_in_which_nearly_all_have_one_value_counts_little():
    found, weights = chosen()
    assert weights["ill"] < 0.05
    assert weights["sex"] > 0.25
    assert sum(weights.values()) <= 1
    assert found["sex"] == 0
    _, even = chosen(", importance: {age: 1}")
    assert set(even.values()) == {0.25}


def test_importance_is_the_policys_and_costs_nothing():
    _, weights = chosen(", importance: {age: 3, sex: 0.5}")
    assert weights == {"age": 0.5454, "sex": 0.0909, "ill": 0.1818, "cured": 0.1818}
    given = settings(", importance: {age: 3}").crowd
    assert (given.tables_epsilon, given.choice_epsilon) == (0.0, 1.0)
    paid = settings().crowd
    assert paid.tables_epsilon == 0.125
    assert paid.tables_epsilon + paid.choice_epsilon <= paid.selection_epsilon


def test_what_matters_more_is_shown_more_finely():
    often = [chosen(", importance: {age: 1000}", spent=2)[0] for _ in range(3)]
    assert all(one["age"] <= 1 for one in often)
    often = [chosen(", importance: {age: 0.001}", spent=2)[0] for _ in range(3)]
    assert all(one["age"] >= 3 and one["sex"] == one["ill"] == one["cured"] == 0 for one in often)


def test_a_workload_shows_its_columns_and_hides_the_others():
    found, weights = chosen(", minimise: workload, workload: [[age, sex], sex]")
    assert weights is None
    assert (found["sex"], found["ill"]) == (0, 1)  # who is cured follows from the age, so it may be shown as well
    assert found["age"] <= 1


def test_what_predicts_the_target_is_kept():
    found, _ = chosen(", minimise: misclassified, target: cured")
    assert set(found) == {"age", "sex", "ill"}
    assert found["age"] <= 3  # from 50 on they are cured


@pytest.mark.parametrize("goal", ["entropy", "discernibility", "class_size"])
def test_other_goals_are_reached_for(goal):
    found, weights = chosen(f", minimise: {goal}")
    assert found["age"] < 4
    assert (weights is None) == (goal != "entropy")


def test_noisy_tables_are_private_by_brute_force(monkeypatch):
    """The law of the noise written out: what a person with two rows can change in the probability of any tables."""
    attributes = codings(Policy.from_text(POLICY))
    epsilon, rows = 0.5, 2
    asked = []

    def laplace(source, scale, size):
        asked.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(levels, "laplace", laplace)
    before = counted(attributes, 50)
    extra = [Column(c.name, c.labels, np.append(c.codes, [0, 1])) for c in before.columns]
    after = Histogram.of(extra, np.append(before.counts, [1, 1]))
    given = CrowdSettings(9.0, 1e-5, 8 * epsilon, 100, 0.2, already_sampled=False, persons=Persons(rows))
    scale = given.tables_scale(len(attributes))
    exact = [NoisyTables.of(table, attributes, {}, scale, RandomSource()).counts for table in (before, after)]
    apart = sum(int(np.abs(exact[0][a.name] - exact[1][a.name]).sum()) for a in attributes)
    assert set(asked) == {scale}
    assert given.tables_epsilon == epsilon
    assert apart == 2 * len(attributes)
    # |x|/t and |x − apart|/t differ by apart/t at most, and at x = 0 by just that.
    assert apart / scale <= epsilon
    assert apart / (scale - 1) > epsilon  # a smaller scale would not do
    assert replace(given, persons=Persons()).tables_scale(len(attributes)) == len(attributes) / epsilon


def test_tables_are_bought_for_all_rows_of_a_person(monkeypatch):
    seen = []
    real = NoisyTables.of.__func__

    def of(cls, table, attributes, fixed, scale, source):
        seen.append(scale)
        return real(cls, table, attributes, fixed, scale, source)

    monkeypatch.setattr(NoisyTables, "of", classmethod(of))
    attributes = codings(Policy.from_text(POLICY))
    given = CrowdSettings(3.0, 1e-5, 1.0, 100, 0.2, already_sampled=False, persons=Persons(3))
    choose_levels(counted(attributes), attributes, {}, given, RandomSource())
    assert seen == [len(attributes) * 3 / 0.125]
    choose_levels(counted(attributes), attributes, {}, replace(given, choice=LevelChoice("class_size")), RandomSource())
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", minimise: workload", "goes with 'minimise: workload'"),
        (", workload: [[age]]", "goes with 'minimise: workload'"),
        (", minimise: workload, workload: [[age, age]]", "one twice"),
        (", minimise: workload, workload: [[age, height]]", "there is no published column 'height'"),
        (", minimise: misclassified", "goes with 'minimise: misclassified'"),
        (", target: sex", "goes with 'minimise: misclassified'"),
        (", minimise: class_size, importance: {age: 2}", "'minimise: loss' or 'entropy'"),
        (", importance: {height: 2}", "there is no published column 'height'"),
        (", minimise: speed", "minimise"),
    ],
)
def test_what_does_not_go_together_is_refused(more, message):
    with pytest.raises(PolicyError, match=message):
        policy(more)


def test_without_a_choice_there_is_nothing_to_look_for():
    with pytest.raises(PolicyError, match="give a 'selection_epsilon'"):
        policy(", minimise: class_size", spent=0)
    with pytest.raises(PolicyError, match="a tree has 'score'"):
        Policy.from_text(
            f"{POLICY}release: {{mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, recoding: tree, minimise: entropy}}"
        )


def test_policies_that_say_nothing_of_it_are_what_they_were():
    content = policy().release.model_dump()
    assert not {"minimise", "workload", "target", "importance"} & set(content)
    assert policy(", importance: {age: 2}").release.model_dump()["importance"] == {"age": 2.0}


@pytest.mark.parametrize(
    "more",
    [
        "",
        ", importance: {age: 3}",
        ", minimise: entropy",
        ", minimise: discernibility",
        ", minimise: class_size",
        ", minimise: workload, workload: [[age, sex]]",
        ", minimise: misclassified, target: cured",
    ],
)
def test_a_release_says_what_was_looked_for_and_is_verified(more, tmp_path):
    made = incrowd.release(people(5000), policy(more), folder=tmp_path / "out")
    assert api.verify(tmp_path / "out").valid
    stated = json.loads((tmp_path / "out" / "certificate.json").read_text())["mechanism"]["choice"]
    assert stated["minimise"] == policy(more).release.minimise
    assert (stated["weights"] is not None) == (stated["minimise"] in ("loss", "entropy"))
    page = (tmp_path / "out" / "report.html").read_text()
    assert ("What each column counted" in page) == (stated["weights"] is not None and made.table.num_rows > 0)
    again = Policy.from_text((tmp_path / "out.internal" / "policy.yaml").read_text())
    assert again.release.selection_epsilon == 0
    assert again.release.minimise == "loss"


def test_weights_that_are_not_the_policys_are_found_out(tmp_path):
    incrowd.release(people(5000), policy(", importance: {age: 3}"), folder=tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    certificate = json.loads(path.read_text())
    for weights, valid in (
        (certificate["mechanism"]["choice"]["weights"], True),
        ({"age": 0.4, "sex": 0.2, "ill": 0.2, "cured": 0.2}, False),
        (None, False),
    ):
        certificate["mechanism"]["choice"]["weights"] = weights
        path.write_bytes(canonical(certificate))
        failed = [check.name for check in api.verify(tmp_path / "out").checks if not check.holds]
        assert ("what columns counted in the choice follows from the policy" in failed) != valid
