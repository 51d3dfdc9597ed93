"""A policy chosen within its promise: what a person may change of scores, what is charged, and what is shown."""

import json

import numpy as np
import pandas as pd
import pytest

import incrowd
from incrowd import api
from incrowd.cli import main
from incrowd.comparison.private_choice import candidates, scored
from incrowd.core.errors import BudgetError, IncrowdError, PolicyError
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.policy import Policy
from incrowd.releases.pipeline import count_table

TEXT = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 0}
  sex: {domain: [f, m]}
  job: {domain: [none, office, shop, farm]}
release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-5}
ledger: {path: LEDGER, dataset: people, epsilon: 2, delta: 1e-4}
"""


@pytest.fixture
def policy(tmp_path):
    made = Policy.from_text(TEXT.replace("LEDGER", str(tmp_path / "ledger.sqlite")))
    api.ledger_budget(tmp_path / "ledger.sqlite", "people", epsilon=2, delta=1e-4)
    return made


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


def table_of(attributes, rows):
    columns = [
        Column(a.name, a.hierarchy.recode(0).labels, np.array([row[i] for row in rows], dtype=np.int64))
        for i, a in enumerate(attributes)
    ]
    return Histogram.of(columns)


def test_one_more_person_raises_every_score_and_none_by_more_than_is_said(policy):
    """Brute force: crowds of every size around k, in one cell and spread; by one row, and by three."""
    attributes = codings(policy)
    found = candidates(policy, attributes)
    assert len(found) > 10
    assert len({(one.k, one.beta) for one in found}) > 5
    rng = np.random.default_rng(2)
    closest = 0.0
    for rows in (1, 3):
        for size in range(0, 400, 7):
            base = [(5, 1, 2)] * size + [tuple(rng.integers(0, (100, 2, 4))) for _ in range(rng.integers(0, 60))]
            more = [(5, 1, 2)] * rows
            before, sensitivity = scored(found, attributes, table_of(attributes, base or [(5, 1, 2)]), rows)
            after, _ = scored(found, attributes, table_of(attributes, [*(base or [(5, 1, 2)]), *more]), rows)
            assert (after >= before).all()
            assert int((after - before).max()) <= sensitivity
            closest = max(closest, float((after - before).max()) / sensitivity)
    assert closest > 0.3  # the bound is not idle: a sensitivity a third as large would be caught


def test_a_third_of_the_sensitivity_would_be_caught(policy):
    attributes = codings(policy)
    found = candidates(policy, attributes)
    steps = [
        int((scored(found, attributes, table_of(attributes, [(5, 1, 2)] * (n + 1)), 1)[0]).max())
        - int((scored(found, attributes, table_of(attributes, [(5, 1, 2)] * n), 1)[0]).max())
        for n in range(1, 200)
    ]
    assert max(steps) > scored(found, attributes, table_of(attributes, [(5, 1, 2)]), 1)[1] / 3


def test_candidates_do_not_depend_on_the_table(policy, people, tmp_path):
    small = incrowd.choose_privately(policy, people.head(50), share=0.2)
    large = incrowd.choose_privately(policy, people, share=0.2)
    assert small.candidates == large.candidates
    assert "as it is" in small.candidates
    assert {"drop age", "age coarser, at level 1", "beta = 0.1", "k = 20"} <= set(small.candidates)


def test_the_ledger_is_charged_with_the_share_and_the_rest_is_left(policy, people, tmp_path):
    chosen = incrowd.choose_privately(policy, people, share=0.25)
    assert (chosen.epsilon, chosen.left) == (0.25, pytest.approx(0.75))
    assert chosen.epsilon + chosen.left <= 1
    spent = api.ledger_statement(tmp_path / "ledger.sqlite", "people").to_dict()["spent"]
    assert spent["epsilon"] == pytest.approx(0.25)
    assert "policy_epsilon: 0.25" in chosen.lines


def test_the_release_that_follows_promises_the_sum_and_is_charged_the_rest(policy, people, tmp_path):
    import yaml

    chosen = incrowd.choose_privately(policy, people, share=0.25)
    plan = policy.changed({("release", "policy_epsilon"): 0.25, ("attributes", "age", "level"): 1})
    assert yaml.safe_load(chosen.lines)["release"]["policy_epsilon"] == 0.25
    made = incrowd.release(people, plan, folder=tmp_path / "out")
    stated = made.certificate
    assert stated["promise"]["epsilon"] == 1
    assert stated["mechanism"]["policy_epsilon"] == 0.25
    assert "policy_epsilon = 0.25" in " ".join(stated["assumptions"])
    assert "policy itself was chosen" in stated["promise"]["grounds"]
    alone = incrowd.release(people, policy.changed({("release", "epsilon"): 0.75, ("attributes", "age", "level"): 1}))
    assert stated["mechanism"]["k"] / stated["mechanism"]["beta"] == pytest.approx(
        alone.certificate["mechanism"]["k"] / alone.certificate["mechanism"]["beta"]
    )
    assert incrowd.verify(tmp_path / "out").valid
    assert incrowd.verify(tmp_path / "out", rigorous=True).valid
    assert "among several" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    # 0.25 for the choice, and 0.75 each for the release and for the one without a choice
    spent = api.ledger_statement(tmp_path / "ledger.sqlite", "people").to_dict()["spent"]
    assert spent["epsilon"] == pytest.approx(1.75, abs=0.01)


def test_a_certificate_that_hides_what_choosing_cost_is_not_valid(policy, people, tmp_path):
    plan = policy.changed({("release", "policy_epsilon"): 0.25, ("attributes", "age", "level"): 1})
    incrowd.release(people, plan, folder=tmp_path / "out")
    place = tmp_path / "out" / "certificate.json"
    content = json.loads(place.read_text(encoding="utf-8"))
    del content["mechanism"]["policy_epsilon"]
    del content["policy"]["release"]["policy_epsilon"]
    place.write_text(json.dumps(content), encoding="utf-8")
    assert not incrowd.verify(tmp_path / "out").valid


def test_several_copies_share_one_choice(policy, people):
    plan = policy.changed({("release", "policy_epsilon"): 0.25, ("attributes", "age", "level"): 1})
    richer = plan.changed({("ledger",): None})
    together = api.release_copies(people, richer, copies=3)[0].certificate["promise"]["together"]
    assert together["epsilon"] == pytest.approx(3 * 0.75 + 0.25)


def test_what_choosing_cost_goes_with_a_lattice_on_a_table_that_is_no_sample(policy):
    for places in (
        {("release", "policy_epsilon"): 1.0},
        {("release", "policy_epsilon"): 0.2, ("release", "already_sampled"): True, ("release", "beta"): 0.1},
        {
            ("release", "policy_epsilon"): 0.2,
            ("release", "recoding"): "tree",
            ("attributes", "age", "level"): None,
        },
    ):
        with pytest.raises(PolicyError, match="policy_epsilon"):
            policy.changed(places)


def test_with_much_to_spend_the_best_is_chosen(people, policy, tmp_path):
    """4,000 people of 100 ages make no crowds; in tens they do."""
    rich = policy.changed({("release", "epsilon"): 40.0, ("ledger", "epsilon"): 99.0})
    api.ledger_budget(tmp_path / "ledger.sqlite", "people", epsilon=99, delta=1e-4)
    chosen = incrowd.choose_privately(rich, people, share=0.95)
    attributes = codings(rich)
    found = candidates(rich.changed({("release", "epsilon"): chosen.left}), attributes)
    table = count_table(people, rich, attributes, show_values=False, progress=lambda _: None)
    worth = dict(zip([one.change.words for one in found], scored(found, attributes, table, 1)[0].tolist(), strict=True))
    assert worth[chosen.change] > 0.97 * max(worth.values())
    assert min(worth.values()) < 0.9 * max(worth.values())


def test_what_has_no_proved_score_is_refused_and_nothing_is_charged(policy, people, tmp_path):
    other = "release: {mechanism: views, epsilon: 1, delta: 1e-5}\n"
    texts = [
        TEXT.replace("release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-5}\n", other).replace(", level: 0", ""),
        TEXT.replace("delta: 1e-5}", "delta: 1e-5, selection_epsilon: 0.2}").replace(", level: 0", ""),
        TEXT.split("ledger:", maxsplit=1)[0],
    ]
    for text in texts:
        with pytest.raises(IncrowdError):
            incrowd.choose_privately(
                Policy.from_text(text.replace("LEDGER", str(tmp_path / "ledger.sqlite"))), people, share=0.1
            )
    assert api.ledger_statement(tmp_path / "ledger.sqlite", "people").to_dict()["spent"]["epsilon"] == 0


def test_a_budget_that_does_not_bear_it_is_not_overspent(policy, people):
    incrowd.choose_privately(policy, people, share=0.9)
    incrowd.choose_privately(policy, people, share=0.9)
    with pytest.raises(BudgetError):
        incrowd.choose_privately(policy, people, share=0.9)


def test_the_command_shows_no_score(policy, people, tmp_path, capsys):
    people.to_csv(tmp_path / "people.csv", index=False)
    text = TEXT.replace("LEDGER", "ledger.sqlite") + "data: {path: people.csv}\n"
    (tmp_path / "people.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["advise", str(tmp_path / "people.yaml"), "--privately", "0.2", "--json"])
    assert stopped.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"change", "lines", "candidates", "epsilon", "left"}
    with pytest.raises(SystemExit) as stopped:
        main(["advise", str(tmp_path / "people.yaml"), "--privately", "0.2", "--all"])
    assert stopped.value.code == 2
    with pytest.raises(SystemExit):
        main(["advise", str(tmp_path / "people.yaml"), "--privately", "0.1"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "Chosen privately among" in shown
    assert "score" not in shown


def test_a_draft_that_nobody_confirmed_is_refused_before_the_charge(people, tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    api.ledger_budget(ledger, "people", epsilon=2, delta=1e-4)
    text = TEXT.replace("LEDGER", str(ledger)).replace("sex: {domain: [f, m]}", "sex:\n    domain: [f, m]  # CONFIRM")
    assert "CONFIRM" in text
    with pytest.raises(PolicyError, match="confirm"):
        api.choose_privately(Policy.from_text(text), people, share=0.2)
    assert api.ledger_statement(ledger, "people").to_dict()["spent"]["epsilon"] == 0
