"""An engine with `columns` and `count_by` alone does for every verb, and says what the engine here says."""

import json
import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import incrowd
from incrowd.api import compare, count_rows, look_at, table_columns
from incrowd.cli import incrowd as command
from incrowd.cli._shell import run
from incrowd.core.errors import DataError, ParameterError
from incrowd.domain import Categories, Coding
from incrowd.histogram import Column, Histogram
from incrowd.sources import SourceColumn, count_groups, open_source
from incrowd.sources.observed import count_observed
from incrowd.sources.profile import profile

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sources.md"
POLICY = """
incrowd: 1
attributes:
  region: {domain: [north, south, west]}
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1}
  ill: {domain: [true, false]}
  income: {role: drop}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}
"""


@pytest.fixture(scope="module")
def people():
    draw = np.random.default_rng(5)
    n = 3000
    return pa.table(
        {
            "region": pa.array(draw.choice(["north", "south", "west"], n)),
            "age": pa.array(draw.integers(18, 90, n)),
            "income": pa.array(draw.integers(1, 40, n) * 50 / 2, mask=draw.random(n) < 0.05),
            "ill": pa.array(draw.random(n) < 0.2),
        }
    )


@pytest.fixture
def register(people, tmp_path, monkeypatch):
    """The address of a table in the engine that docs/sources.md shows, which is installed as the page says."""
    text = PAGE.read_text(encoding="utf-8")
    shown = dict(re.findall(r"^```\w+ (pyproject\.toml|register_engine\.py)\n(.*?)^```", text, re.M | re.S))
    project = tomllib.loads(shown["pyproject.toml"])["project"]
    site = tmp_path / "site"
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in groups)
    (info / "entry_points.txt").write_text("".join(lines))
    (site / "register_engine.py").write_text(shown["register_engine.py"], encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.json").write_text(json.dumps(people.to_pylist()))
    assert "register" in entry_points(group="incrowd.sources").names
    return "register://people.json"


def test_an_installed_engine_shows_a_policy_what_the_engine_here_shows(register, people):
    assert table_columns(register) == table_columns(people)
    policy = incrowd.Policy.from_text(POLICY)
    assert look_at(policy, data=register).table == look_at(policy, data=people).table
    assert incrowd.release(register, policy).table.num_rows > 0


@pytest.mark.parametrize("asked", [{"sensitive": "ill"}, {"weights": "income"}])
def test_an_installed_engine_is_audited_as_the_engine_here_is(register, people, asked):
    table = people.filter(pc.is_valid(people["income"]))  # which are weights
    Path("people.json").write_text(json.dumps(table.to_pylist()))
    theirs, here = (incrowd.audit(thing, ["region", "age"], **asked).to_dict() for thing in (register, table))
    assert theirs == here


def test_an_installed_engine_is_drafted_for_and_compared_as_the_engine_here_is(register, people):
    assert profile(open_source(register)) == profile(open_source(people))
    assert incrowd.draft_policy(register, "-").columns == incrowd.draft_policy(people, "-").columns
    theirs, here = (look_at(thing) for thing in (register, people))
    assert theirs.table == here.table
    assert compare(theirs, epsilons=[1.0], delta=1e-5, runs=1).records == people.num_rows
    assert sorted(count_rows(register)) == sorted(count_rows(people))


def test_an_installed_engine_serves_the_command_line(register, capsys):
    for line in (
        f"init {register} -o draft.yaml",
        f"audit {register} --quasi region,age --sensitive ill",
        f"compare {register} --columns region,ill --epsilon 1 --runs 1",
        f"plan sample {register} --columns region,ill --epsilon 1 --delta 1e-5",
    ):
        assert run(command, line.split()) == 0, (line, capsys.readouterr().err)
    Path("policy.yaml").write_text(POLICY)
    assert run(command, ["release", "policy.yaml", "--data", register, "-o", "out"]) == 0, capsys.readouterr().err
    assert run(command, ["verify", "out"]) == 0
    assert run(command, ["audit", register, "--quasi", "regoin"]) == 2
    assert "did you mean 'region'" in " ".join(capsys.readouterr().err.split())


def test_every_engine_counts_by_bare_names(engine):
    source = engine(pa.table({"x": ["b", "a", None, "a"], "y": ["1", "2", "3", "2"]}))
    found = source.count_by(["y", "x"])
    assert found == count_observed(source, ["y", "x"]).histogram
    assert found.names == ("y", "x")
    assert found["x"].labels == ("a", "b", None)
    assert found.counts.tolist() == [1, 2, 1]
    with pytest.raises(ParameterError):
        source.count_by(["y", Coding("x", Categories(("a",)))])


def test_groups_need_as_many_counts_as_rows():
    rows = pa.table({"x": ["a", "b"]})
    assert count_groups(rows, iter([2, 3]), ["x"]).counts.tolist() == [2, 3]
    for counts in ([1], [1, -1], [0.5, 1]):
        with pytest.raises(ParameterError):
            count_groups(rows, counts, ["x"])
    with pytest.raises(DataError) as caught:
        count_groups(rows.slice(0, 0), [], ["x"])
    assert caught.value.code == "data-empty"


def test_an_engine_that_prints_numbers_as_it_likes():
    class Printing:
        labels = ("7", "7.0", "1e1")

        def columns(self):
            return [SourceColumn("x", "float")]

        def count_by(self, codings, *, progress=None):
            return Histogram.of([Column("x", self.labels, np.arange(3))], np.array([2, 3, 4]))

    found = count_observed(open_source(Printing()), ["x"]).histogram
    assert (found["x"].labels, found.counts.tolist()) == (("7.0", "10.0"), [5, 4])
    frame = pd.DataFrame({"x": [7.0] * 5 + [10.0] * 4})
    assert profile(open_source(Printing())) == profile(open_source(frame))
    Printing.labels = ("7", "secret", "8")
    with pytest.raises(DataError) as caught:
        count_observed(open_source(Printing()), ["x"])
    assert caught.value.code == "data-unreadable"
    assert "secret" not in str(caught.value)


def test_an_engine_that_answers_with_other_columns_or_labels_is_refused():
    class Wayward:
        def columns(self):
            return [SourceColumn("x", "text"), SourceColumn("y", "text")]

        def count_by(self, codings, *, progress=None):
            answer = [Column(name, ("a", "b", "c"), np.arange(3)) for name in ("y", "x")[: len(codings)]]
            return Histogram.of(answer, np.full(3, 1000))

    text = "{incrowd: 1, attributes: {%s}, release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}}"
    for attributes in ("x: {domain: [a, b, c]}, y: {domain: [a, b, c]}", "x: {role: drop}, y: {domain: [a, b]}"):
        with pytest.raises(DataError) as caught:
            incrowd.release(Wayward(), incrowd.Policy.from_text(text % attributes))
        assert caught.value.code == "data-unreadable"
    assert incrowd.release(
        Wayward(), incrowd.Policy.from_text(text % "x: {role: drop}, y: {domain: [a, b, c]}")
    ).table.num_rows
    with pytest.raises(DataError) as caught:
        count_observed(Wayward(), ["x", "y"])
    assert caught.value.code == "data-unreadable"
