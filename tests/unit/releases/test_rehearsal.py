"""A draft is refused until a person has confirmed it; a rehearsal shows what would come out, and is void everywhere."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import incrowd
from incrowd import Policy, api
from incrowd.cli import incrowd as command
from incrowd.cli._shell import run
from incrowd.core.errors import InputError, ParameterError, PolicyError
from incrowd.releases.names import REHEARSED

ROWS = 3000
PROMISE = "the promise is not void"


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    return pd.DataFrame({"age": rng.integers(18, 90, ROWS), "sex": rng.choice(["f", "m"], ROWS)})


@pytest.fixture
def draft(people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    text = api.draft_policy(tmp_path / "people.csv", tmp_path / "draft.yaml").text
    ledger = "ledger: {path: budget.sqlite, dataset: people, epsilon: 4, delta: 1e-4}\n"
    (tmp_path / "draft.yaml").write_text(text + ledger, encoding="utf-8")
    return tmp_path / "draft.yaml"


CONFIRMED = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 120}, hierarchy: {widths: [10, 40]}, level: 2}
  sex: {domain: [f, m]}
release: %s
"""
RELEASES = {
    "sampled_crowd": "{mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}",
    "csv": "{mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, output: csv}",
    "pram": "{mechanism: pram, k: 20}",
    "sample": "{mechanism: sample, epsilon: 0.5, delta: 0.05}",
    "generalization": "{mechanism: generalization, require: [{k: 5}]}",
}


# --- drafts -----------------------------------------------------------------------------------------------------------


def test_a_draft_is_refused_with_all_that_is_to_be_confirmed(draft, tmp_path, capsys):
    marked = [i for i, line in enumerate(draft.read_text(encoding="utf-8").splitlines(), 1) if "# CONFIRM" in line]
    assert len(marked) >= 3
    with pytest.raises(PolicyError) as refused:
        incrowd.release(policy=draft, folder=tmp_path / "out")
    assert refused.value.code == "policy-unconfirmed"
    listed = refused.value.details["unconfirmed"]
    assert [mark["line"] for mark in listed] == marked
    assert {"attributes.age.domain", "attributes.sex.domain", "release.delta"} <= {mark["path"] for mark in listed}
    assert "attributes.sex.domain" in refused.value.message
    assert run(command, ["release", str(draft), "-o", str(tmp_path / "out")]) == 2
    assert "--rehearse" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "budget.sqlite").exists()


def test_a_draft_that_was_confirmed_is_released(draft, people, tmp_path):
    text = re.sub(r"\s+# CONFIRM\b.*", "", draft.read_text(encoding="utf-8")).partition("ledger:")[0]
    incrowd.release(people, Policy.from_text(text), folder=tmp_path / "out")
    assert incrowd.verify(tmp_path / "out").valid


def test_one_mark_is_enough(people):
    text = CONFIRMED % RELEASES["sampled_crowd"]
    for marked in (
        text.replace("sex: {", "sex: # CONFIRM really?\n    {"),
        text + "# CONFIRM all of it\n",
        text.replace("incrowd: 1", "incrowd: 1 # CONFIRM"),
        text.replace("incrowd: 1", "title: |  # CONFIRM\n  A block\nincrowd: 1"),
        text.replace("\n", "\r\n").replace("incrowd: 1", "incrowd: 1 # CONFIRM"),
    ):
        policy = Policy.from_text(marked)
        assert len(policy.unconfirmed) == 1, marked
        with pytest.raises(PolicyError, match="draft"):
            incrowd.release(people, policy)


def test_a_text_is_no_mark():
    text = """
incrowd: 1
title: "Not # CONFIRM this"
attributes:
  a: {domain: ["x # CONFIRM y", 'z # CONFIRM']}
  b:
    domain: [a] # this was asked to be marked CONFIRM
    other: |
      A block
      # CONFIRM is part of it
"""
    assert Policy.from_text(text).unconfirmed == ()


def test_marks_outlive_all_that_is_made_of_a_policy(draft, tmp_path):
    policy = Policy.from_file(draft)
    for made in (
        policy.with_levels({"age": 0}),
        policy.relocated(tmp_path / "elsewhere"),
        policy.model_copy(),
        Policy.from_text(policy.to_yaml()),
        Policy.from_text(Policy.from_text(policy.to_yaml()).to_yaml()),
    ):
        assert len(made.unconfirmed) == len(policy.unconfirmed)
        assert "attributes.sex.domain" in str(made.unconfirmed)
        with pytest.raises(PolicyError, match="draft"):
            made.require_confirmed()
    assert Policy.from_text(policy.to_yaml()).attributes == policy.attributes


def test_names_with_ends_of_lines_do_not_break_a_written_mark():
    text = 'incrowd: 1\nattributes:\n  "a\\nb":\n    domain: [x] # CONFIRM\n'
    again = Policy.from_text(Policy.from_text(text).to_yaml())
    assert len(again.unconfirmed) == 1
    assert set(again.attributes) == {"a\nb"}


def test_no_questionnaire_is_made_of_a_draft(draft, tmp_path):
    text = (CONFIRMED % "{mechanism: pram, rho: 0.5}").replace("level: 2}", "level: 0} # CONFIRM")
    with pytest.raises(PolicyError, match="draft"):
        api.make_questionnaire(Policy.from_text(text), tmp_path / "asked.json", records=1000)


# --- rehearsals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RELEASES)
def test_a_rehearsal_is_void_everywhere(people, tmp_path, kind):
    policy = Policy.from_text(CONFIRMED % RELEASES[kind])
    made = incrowd.release(people, policy, folder=tmp_path / "out", rehearse=True)
    assert made.void == REHEARSED
    assert REHEARSED in repr(made)
    assert REHEARSED in made._repr_html_()
    table = "release.void.csv" if kind == "csv" else "release.void.parquet"
    expected = {table, "certificate.void.json", "datapackage.void.json", "report.void.html"}
    assert {p.name for p in (tmp_path / "out").iterdir()} == expected
    internal = [p.name for p in (tmp_path / "out.internal").iterdir()]
    assert {"policy.void.yaml", "report.void.html"} <= set(internal)
    assert all(".void." in name for name in internal)
    certificate = json.loads((tmp_path / "out" / "certificate.void.json").read_bytes())
    assert certificate["promise"]["void"] == REHEARSED
    for page in (tmp_path / "out", tmp_path / "out.internal"):
        text = (page / "report.void.html").read_text(encoding="utf-8")
        assert REHEARSED in text
        assert "release promises nothing" in text
    found = incrowd.verify(tmp_path / "out")
    assert found.rehearsal
    assert not found.valid
    assert {check.name: check.detail for check in found.checks if not check.holds} == {PROMISE: "it is a rehearsal"}
    assert incrowd.estimate(tmp_path / "out", "sex").notes[0] == REHEARSED


def test_a_rehearsal_of_a_draft_costs_nothing_and_stays_a_draft(draft, tmp_path):
    for number in range(3):
        incrowd.release(policy=draft, folder=tmp_path / f"out{number}", rehearse=True)
    assert not (tmp_path / "budget.sqlite").exists()
    again = Policy.from_file(tmp_path / "out0.internal" / "policy.void.yaml")
    assert len(again.unconfirmed) == len(Policy.from_file(draft).unconfirmed)


def test_a_ledger_that_is_there_is_left_as_it_is(draft, people, tmp_path):
    api.ledger_budget(tmp_path / "budget.sqlite", "people", epsilon=4, delta=1e-4)
    before = (tmp_path / "budget.sqlite").read_bytes()
    made = incrowd.release(policy=draft, rehearse=True)
    made.save(tmp_path / "later")
    assert (tmp_path / "later" / "certificate.void.json").is_file()
    assert (tmp_path / "budget.sqlite").read_bytes() == before
    assert api.ledger_statement(tmp_path / "budget.sqlite", "people").releases == ()


def test_a_rehearsal_passes_for_a_release_under_no_name(people, tmp_path):
    incrowd.release(people, Policy.from_text(CONFIRMED % RELEASES["csv"]), folder=tmp_path / "out", rehearse=True)
    (tmp_path / "out" / "certificate.void.json").rename(tmp_path / "out" / "certificate.json")
    found = incrowd.verify(tmp_path / "out")
    assert {PROMISE, "nothing else is in the folder"} <= {check.name for check in found.checks if not check.holds}


def test_a_release_does_not_pass_for_a_rehearsal(people, tmp_path):
    incrowd.release(people, Policy.from_text(CONFIRMED % RELEASES["csv"]), folder=tmp_path / "out")
    (tmp_path / "out" / "certificate.json").rename(tmp_path / "out" / "certificate.void.json")
    found = incrowd.verify(tmp_path / "out")
    assert not found.valid
    assert not found.rehearsal


def test_copies_are_rehearsed_too(people, tmp_path):
    policy = Policy.from_text(CONFIRMED % RELEASES["csv"])
    made = api.release_copies(people, policy, copies=2, folder=tmp_path / "out", rehearse=True)
    assert [one.void for one in made] == [REHEARSED, REHEARSED]
    assert (tmp_path / "out-2" / "release.void.csv").is_file()


def test_executors_rehearse_nothing(people, tmp_path):
    policy = Policy.from_text(CONFIRMED % RELEASES["pram"])
    with pytest.raises(ParameterError, match="rehearse nothing"):
        incrowd.release(people, policy, folder=tmp_path / "out", rehearse=True, write_with="executors")


def test_on_the_command_line(draft, tmp_path, capsys):
    assert run(command, ["release", str(draft), "-o", str(tmp_path / "out"), "--rehearse"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Void")
    assert REHEARSED in out
    assert "Published" not in out
    assert run(command, ["release", str(draft), "-o", str(tmp_path / "two"), "--rehearse", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["guarantee"]["void"] == REHEARSED
    assert said["certificate"].endswith("certificate.void.json")
    assert said["report"].endswith("report.void.html")
    assert said["release"].endswith("release.void.parquet")
    assert run(command, ["verify", str(tmp_path / "out")]) == 3
    assert "Void: a rehearsal, which promises nothing." in capsys.readouterr().out
    assert run(command, ["verify", str(tmp_path / "out"), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["rehearsal"] is True


def test_a_certificate_that_is_no_file_is_still_said_to_be_missing(tmp_path):
    (tmp_path / "certificate.void.json").mkdir()
    with pytest.raises(InputError):
        incrowd.verify(tmp_path)
