"""What a release is said to be good for, and what to change about it."""

import json

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.cli import incrowd as command
from incrowd.cli._shell import run
from incrowd.core.numbers import percent
from incrowd.histogram import Column, Histogram
from incrowd.marginals import Marginals
from incrowd.mechanisms.sampled_crowd import settle
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.fidelity import dense, fidelity
from incrowd.releases.verdict import verdict
from incrowd.releases.verify import VOID

TEXT = """
incrowd: 1
attributes:
  town: {domain: [a, b, c], ROLE}
  age: {type: integer, domain: {from: 0, to: 79}, hierarchy: {widths: [20]}, ROLE, level: LEVEL}
  flag: {domain: [x, y], ROLE}
release: {RELEASE}
"""
CROWD = "mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, beta: 0.4"
RELEASES = {
    "sampled_crowd": CROWD,
    "sample": "mechanism: sample, epsilon: 1, delta: 0.3",
    "pram": "mechanism: pram, rho: 0.4",
    "generalization": "mechanism: generalization, require: {k: 40}, suppression: 0.05",
}


def policy(release, level=1):
    role = "role: quasi" if "generalization" in release else ""
    text = TEXT.replace(", ROLE", f", {role}" if role else "").replace("LEVEL", str(level))
    return Policy.from_text(text.replace("RELEASE", release))


@pytest.fixture(scope="module")
def people():
    """Everyone has the flag x; the few in c are 2% of the table, spread over all ages."""
    rng = np.random.default_rng(5)
    town = np.repeat(["a", "b", "c"], [8000, 900, 180])
    return pd.DataFrame({"town": town, "age": rng.integers(0, 80, len(town)), "flag": "x"})


def codes(warnings):
    return {(warning.code, warning.column) for warning in warnings}


@pytest.mark.parametrize("name", list(RELEASES))
def test_every_mechanism_has_a_verdict_on_top_of_both_reports(people, name, tmp_path):
    made = api.release(people, policy(RELEASES[name]), folder=tmp_path / "out")
    assert len(made.verdict.lines) == 3
    assert str(made.verdict) == "\n".join(made.verdict.lines)
    assert {column.name for column in made.verdict.columns} == {"town", "age", "flag"}
    assert b"What it is good for" in made.report
    assert b"What it is good for" in made.internal["report.html"]
    assert b"How right counts are" in made.internal["report.html"]
    assert b"How right counts are" not in made.report
    assert b"<!-- verdict -->" not in made.report + made.internal["report.html"]
    assert api.verify(tmp_path / "out").valid  # whoever verifies makes the verdict again
    for line in made.verdict.lines:
        assert line.split("`")[0] in made._repr_html_()


def test_commands_in_warnings_are_marked_as_those_in_sentences(people):
    made = api.release(people.head(20), policy(CROWD))
    assert any("`incrowd advise POLICY`" in concern.text for concern in made.concerns)
    page = made.internal["report.html"].decode()
    assert "<code>incrowd advise POLICY</code>" in page
    assert "`" not in page.split("To be changed, perhaps")[1].split("</div>")[0]


def test_a_forged_verdict_is_found(people, tmp_path):
    api.release(people, policy(CROWD), folder=tmp_path / "out")
    page = tmp_path / "out" / "report.html"
    page.write_bytes(page.read_bytes().replace(b"tell them apart", b"tell all apart "))
    assert not api.verify(tmp_path / "out").valid


def test_columns_that_tell_nothing_are_named_with_what_to_change(people):
    made = api.release(people, policy(CROWD, level=2))
    found = {column.name: column for column in made.verdict.columns}
    assert found["age"].hidden
    assert found["flag"].gone == ("y",)
    assert {("hidden", "age"), ("single-value", "flag")} <= codes(made.verdict.warnings)
    assert "role: drop" in next(w.text for w in made.warnings if w.code == "hidden")
    assert "2 columns do not" in made.verdict.lines[0]


def test_a_table_of_hardly_anybody(people):
    made = api.release(people.head(20), policy(CROWD))
    assert ("nearly-empty", None) in codes(made.verdict.warnings)
    assert made.verdict.lines == ("Nothing could be published: the table is empty.",)


def test_the_public_verdict_is_the_same_whatever_was_left_out(people):
    """It speaks of what is published: a table with other suppressed people gives the same."""
    few = people[people.town != "c"]
    made = [
        api.release(t, policy("mechanism: generalization, require: {k: 200}, suppression: 0.05")) for t in (people, few)
    ]
    assert made[0].histogram.counts.tolist() == made[1].histogram.counts.tolist()
    assert made[0].verdict == made[1].verdict
    assert made[0].report == made[1].report
    assert "180 records were left out" in made[0].insight.lines[0]


def test_a_synthetic_table_is_not_called_records_shown_as_they_are(people):
    asked = "mechanism: views, epsilon: 2, delta: 1e-6, by: noise"
    made = api.release(people, policy(asked, level=0))
    assert "synthetic rows, nobody's records" in made.verdict.lines[0]
    assert {column.shown for column in made.verdict.columns} == {"synthetic"}


def test_parts_that_nobody_confirmed_are_one_warning_for_a_reader(people):
    text = TEXT.replace(", ROLE", "").replace("LEVEL", "1").replace("{RELEASE}", "")
    lines = ["  mechanism: sampled_crowd", "  epsilon: 1 # CONFIRM really?", "  delta: 1e-6 # CONFIRM", "  beta: 0.4"]
    made = api.release(people, Policy.from_text("\n".join([text.rstrip(), *lines])), rehearse=True)
    assert sum(warning.code == "unconfirmed" for warning in made.warnings) == 2
    assert [w.text for w in made.warnings if w.code == "unconfirmed"][1].startswith(
        "release.delta was read off the data. "
    )
    assert repr(made).count("read off the data") == 1
    assert made.internal["report.html"].count(b"read off the data") == 1
    assert made.insight.headline in repr(made)


def test_groups_that_lost_most_are_named_to_the_publisher_alone(people):
    made = api.release(people, policy("mechanism: generalization, require: {k: 200}, suppression: 0.05"))
    [lost] = made.insight.warnings
    assert (lost.code, lost.column) == ("lost-most", "town")
    assert "“c” (2.0% of the table, 0% of the release)" in lost.text
    assert "lost-most" not in {w.code for w in made.verdict.warnings}
    assert b"lost most" not in made.report
    share = made.insight.shares[0]
    assert (share.column, share.value, share.after) == ("town", "c", 0.0)
    assert share.before == pytest.approx(180 / len(people))


def test_scores_at_the_published_levels_and_at_the_finest(people):
    made = api.release(people, policy("mechanism: generalization, require: {k: 5}"))
    inside = made.insight
    assert [round(part.score, 6) for part in inside.shown] == [1, 1, 1]  # nothing is lost at these levels
    assert inside.finest[0].score < 1  # ages are spread evenly within twenty years
    assert inside.finest[0].control == 1
    assert all(error == pytest.approx(0) for error in inside.errors.values())
    assert "columns are, of 1000: 1000, 1000, 1000 at the published levels and 9" in inside.headline
    assert inside.headline.endswith(", would reach 1000, 998, 993 and 1000, 991, 973.")


def test_a_release_that_tells_more_scores_higher(people):
    scores = []
    for rho in (0.2, 0.5, 0.9):
        made = api.release(people, policy(f"mechanism: pram, rho: {rho}"), _source=RandomSource.seeded(3))
        scores.append(made.insight.finest[-1].score)
    assert scores == sorted(scores)


def test_that_nobody_would_be_published_is_said_of_large_tables_that_are_shown_as_they_are(people, monkeypatch):
    monkeypatch.setattr(settle, "_FORETOLD", 10)
    few = people.assign(age=np.arange(len(people)) % 80)[::7]
    for level, said in ((0, {("few-people", None)}), (1, set())):
        told = []
        api.release_copies(few, policy(CROWD, level=level), copies=1, warn=told.append)
        assert codes(told) == said


def test_what_is_said_before_publishing(people):
    told = []
    api.release_copies(people, policy("mechanism: pram, rho: 0.99"), copies=1, warn=told.append)
    assert codes(told) == {("weak-promise", None)}
    assert "smaller rho" in told[0].text
    told.clear()
    few = people.assign(age=np.arange(len(people)) % 80)
    api.release_copies(
        few, policy("mechanism: sample, epsilon: 0.01, delta: 0.001", level=0), copies=1, warn=told.append
    )
    assert codes(told) == {("few-people", None)}
    told.clear()
    made = api.release_copies(few[::7], policy(CROWD, level=0), copies=1, warn=told.append)[0]
    assert codes(told) == {("few-people", None)}
    assert made.empty
    assert "none would be published" in told[0].text
    told.clear()
    wide = policy(CROWD).model_copy()
    text = TEXT.replace(", ROLE", "").replace("LEVEL", "1").replace("RELEASE", CROWD).replace("to: 79", "to: 99999")
    made = api.release_copies(people, Policy.from_text(text), copies=1, warn=told.append)[0]
    assert codes(told) == {("mostly-unused", "age")}
    assert made.concerns == tuple(told)
    assert "100,000 values" in told[0].text
    api.release_copies(people, wide, copies=1, warn=told.append)
    assert len(told) == 1


def test_a_randomised_sample_is_weak_only_if_its_promise_is(people):
    """The k of a sample depends on how many are drawn; before that, only two records are certain."""
    told = []
    text = "mechanism: pram, rho: 0.5, beta: 0.3"
    made = api.release_copies(people, policy(text), copies=1, warn=told.append)[0]
    assert made.certified.promise.k > 1.25
    assert told == []


def test_a_table_redrawn_to_nothing_is_told_before_publishing(people):
    told = []
    api.release_copies(people, policy("mechanism: pram, rho: 0.001"), copies=1, warn=told.append)
    assert codes(told) == {("tells-nothing", None)}
    told.clear()
    api.release_copies(people, policy("mechanism: pram, rho: 0.2"), copies=1, warn=told.append)
    assert told == []


def test_a_release_below_the_control_is_told_to_the_publisher():
    """Two towns of different ages: crowds of the pairs lose what one-way tables would still tell."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame({f"c{i}": rng.integers(0, 12, 6000).astype(str) for i in range(3)})
    columns = "\n".join(f"  c{i}: {{domain: [{', '.join(map(repr, map(str, range(12))))}]}}" for i in range(3))
    text = "incrowd: 1\nattributes:\n" + columns + "\nrelease: {mechanism: pram, rho: 0.1}\n"
    made = api.release(table, Policy.from_text(text), _source=RandomSource.seeded(1))
    [found] = made.insight.warnings
    assert found.code == "below-control"
    assert found.internal


def test_counts_of_one_column_have_no_control_to_be_below():
    """True counts of each column alone are the truth there: 1000, whatever the release."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"c": rng.integers(0, 50, 2000).astype(str)})
    column = f"  c: {{domain: [{', '.join(map(repr, map(str, range(50))))}]}}\n"
    text = "incrowd: 1\nattributes:\n" + column + "release: {mechanism: pram, rho: 0.3}\n"
    made = api.release(table, Policy.from_text(text), _source=RandomSource.seeded(1))
    assert made.insight.finest[0].score < 0.9
    assert made.insight.warnings == ()


def test_an_empty_table_has_lost_nobody_in_particular(people):
    made = api.release(people.head(20), policy(CROWD))
    assert {warning.code for warning in made.warnings} == {"few-people", "nearly-empty"}


def test_what_no_suppression_allows_is_not_counted(people):
    made = api.release(people, policy("mechanism: generalization, require: {k: 5}"))
    assert not any("left out" in line for line in made.insight.lines)


def test_nodes_of_a_hierarchy_are_no_lost_values(people):
    text = TEXT.replace(", level: LEVEL", "").replace("ROLE", "role: quasi")
    text = text.replace("RELEASE", "mechanism: generalization, require: {k: 40}, recoding: local")
    made = api.release(people, Policy.from_text(text))
    assert all(column.gone == () for column in made.verdict.columns)
    assert "missing of" not in made.verdict.text
    assert "as finely as its group allows" in made.verdict.lines[1]
    assert "lost-most" not in {warning.code for warning in made.warnings}


TREE = (
    "incrowd: 1\nattributes:\n  town: {domain: [a, b, c, d], hierarchy: {taxonomy: {Everywhere: [a, b, c, d]}}}\n"
    "  age: {type: integer, domain: {from: 0, to: 79}}\n"
    "release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, recoding: tree, splits: binary}\n"
)


def test_a_column_that_most_boxes_hide_is_named_with_its_share(tmp_path):
    """A name of everything is not always a star; half of the records are not most."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"town": rng.choice(list("abcd"), 3000), "age": rng.integers(0, 80, 3000)})
    text = TREE.replace("tree,", "tree, importance: {age: 20},")
    made = api.release(table, Policy.from_text(text), folder=tmp_path / "out", _source=RandomSource.seeded(1))
    town, counts = made.histogram["town"], made.histogram.counts
    share = counts[np.array([label == "Everywhere" for label in town.labels])[town.codes]].sum() / counts.sum()
    assert 0.5 < share < 1
    [found] = [w for w in made.verdict.warnings if w.code == "mostly-hidden"]
    assert found.column == "town"
    assert not found.internal
    assert found.text.startswith(f"In most records all values look alike of town ({percent(share)}).")
    assert "importance: {town: 3}" in found.text
    assert "a larger epsilon" in found.text
    shown = {column.name: column for column in made.verdict.columns}
    assert shown["town"].at_top == share
    assert f"{percent(share)} of the records all alike".encode() in made.report
    assert shown["age"].at_top == 0
    assert {check.name for check in api.verify(tmp_path / "out").checks if not check.holds} == {VOID}  # it was seeded
    two = [Column("town", ("Everywhere", "a"), np.array([0, 1])), Column("age", ("0 to 39",), np.array([0, 0]))]
    for numbers, code in (((50, 50), None), ((51, 49), "mostly-hidden"), ((51, 0), "mostly-hidden")):
        judged = verdict(made.policy, Histogram.of(two, np.array(numbers)), made.certified.statement, made.beside)
        assert {w.code for w in judged.warnings if w.column == "town"} == ({code} if code else set())
    two[1] = Column("age", ("*",), np.array([0, 0]))
    judged = verdict(made.policy, Histogram.of(two, np.array([60, 40])), made.certified.statement, made.beside)
    [found] = [
        w for w in judged.warnings if w.code == "mostly-hidden"
    ]  # several columns are one warning, the worst first
    assert found.column is None
    assert "of age (100%) and town (60.0%). Give a column that matters more weight (importance: {age: 3})" in found.text


def test_what_a_draft_leaves_to_be_confirmed(people, tmp_path):
    people.to_csv(tmp_path / "people.csv", index=False)
    api.draft_policy(tmp_path / "people.csv", tmp_path / "draft.yaml")
    made = api.release(policy=tmp_path / "draft.yaml", rehearse=True)
    assert "unconfirmed" in {warning.code for warning in made.warnings}


def test_local_recoding_is_named_where_it_loses_less():
    rng = np.random.default_rng(8)
    age = np.concatenate([rng.integers(0, 40, 4000), rng.integers(40, 80, 60)])
    table = pd.DataFrame({"age": age, "town": rng.choice(["a", "b", "c"], len(age))})
    text = (
        "incrowd: 1\nattributes:\n  age: {role: quasi, type: integer, domain: {from: 0, to: 79}, "
        "hierarchy: {widths: [5, 20]}}\n  town: {role: quasi, domain: [a, b, c], "
        "hierarchy: {taxonomy: {all: [a, b, c]}}}\n"
        "release: {mechanism: generalization, require: {k: 10}}\n"
    )
    made = api.release(table, Policy.from_text(text))
    assert any("`recoding: local` would lose less" in line for line in made.insight.lines)
    local = api.release(table, Policy.from_text(text.replace("{k: 10}", "{k: 10}, recoding: local")))
    assert local.insight.lines == ()
    assert local.insight.finest[1].score > made.insight.finest[1].score


def test_the_terminal_and_json(people, tmp_path, capsys):
    people.to_csv(tmp_path / "people.csv", index=False)
    text = TEXT.replace(", ROLE", "").replace("LEVEL", "1").replace("RELEASE", "mechanism: pram, rho: 0.99")
    (tmp_path / "p.yaml").write_text(text + f"data: {{path: {tmp_path}/people.csv}}\n", encoding="utf-8")
    assert run(command, ["release", str(tmp_path / "p.yaml"), "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert "Redrawn at random: town, flag." in printed.out
    assert "Shown as they are" not in printed.out
    assert "What it is good for" in printed.out
    assert "(weak-promise)" in printed.err
    assert "weak-promise" not in printed.out
    assert run(command, ["release", str(tmp_path / "p.yaml"), "-o", str(tmp_path / "two"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"].count("\n") == 2
    assert {"code", "column", "text", "internal"} == set(found["warnings"][0])
    assert found["warnings"][0]["internal"] is True
    assert found["columns"][0]["shown"] == "redrawn at random"
    assert all({"gone", "occurring", "values"} <= set(column) for column in found["columns"])


def test_a_table_that_is_known_by_its_counts_alone_has_the_same_verdict(people):
    """As executors write one that no machine can hold: whoever verifies it may count more, and must find the same."""
    made = api.release(people, policy("mechanism: pram, rho: 0.4"))
    table = made.histogram
    parts = Marginals(table.columns, tuple(table.project([name]) for name in table.names))
    assert verdict(made.policy, parts, made.certified.statement) == made.verdict


def test_a_score_within_its_work_looks_at_fewer_sets(people):
    rng = np.random.default_rng(2)
    names = [f"c{i}" for i in range(8)]
    table = Histogram.from_pandas(pd.DataFrame({name: rng.choice(list("abc"), 500) for name in names}))
    whole = fidelity(table, lambda by: dense(table, by))
    part = fidelity(table, lambda by: dense(table, by), work=5000)
    assert [found.sets for found in whole] == [8, 28, 56]
    assert 0 < part[2].sets < 56
    assert all(found.score == pytest.approx(1) for found in (*whole, *part))
