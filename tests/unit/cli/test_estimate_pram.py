"""`incrowd estimate` on a randomised release, as a program would call it."""

import json

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.cli import incrowd
from incrowd.cli._shell import run
from incrowd.policy import Policy

POLICY = """
incrowd: 1
attributes:
  sex: {domain: [f, m]}
  age: {type: integer, domain: {from: 0, to: 4}}
  job: {domain: [a, b], missing: keep}
release: {mechanism: pram, rho: 0.6}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(2)
    jobs = np.array(["a", "b", None], dtype=object)
    table = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], 9000), "age": rng.integers(0, 5, 9000), "job": jobs[rng.integers(0, 3, 9000)]}
    )
    place = tmp_path_factory.mktemp("estimates") / "out"
    api.release(table, Policy.from_text(POLICY), folder=place)
    return str(place)


def test_the_fields_of_the_json(folder, capsys):
    assert run(incrowd, ["estimate", folder, "--by", "sex,job", "--mean", "age", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["by"] == ["sex", "job"]
    assert found["records"] == 9000
    assert len(found["rows"]) == 6
    assert set(found["rows"][0]) == {"values", "estimate", "standard_error", "low", "high", "em"}
    assert found["rows"][2]["values"] == ["f", None]
    assert found["em_gap"] <= 0.01
    assert {"mean", "standard_error", "people"} <= set(found["means"][0])
    assert 1.5 < found["means"][0]["mean"] < 2.5
    assert found["association"]["degrees"] == 2


def test_methods(folder, capsys):
    assert run(incrowd, ["estimate", folder, "--by", "sex", "--method", "inverse", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"][0]["em"] is None
    assert found["association"] is None
    assert run(incrowd, ["estimate", folder, "--by", "sex", "--method", "em", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["em"] is not None
    assert run(incrowd, ["estimate", folder, "--by", "sex", "--method", "magic"]) == 2
    assert run(incrowd, ["estimate", folder, "--by", "nobody"]) == 2
    capsys.readouterr()


def test_what_a_person_sees(folder, capsys):
    assert run(incrowd, ["estimate", folder, "--by", "sex,job", "--mean", "age"]) == 0
    shown = capsys.readouterr().out
    for text in ("people", "± standard error", "(missing)", "independence: χ²", "odds ratio of m against f", "mean"):
        assert text in shown


def test_names_of_columns_with_blanks_and_commas(folder, tmp_path, capsys):
    assert run(incrowd, ["estimate", folder, "--by", " sex, job ", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == ["sex", "job"]
    assert run(incrowd, ["estimate", folder, "--by", "sex", "--by", "job", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == ["sex", "job"]
    table = pd.DataFrame({"a, b": ["x", "y"] * 500, "c": ["u", "v"] * 500})
    text = 'incrowd: 1\nattributes: {"a, b": {domain: [x, y]}, c: {domain: [u, v]}}\n'
    api.release(table, Policy.from_text(text + "release: {mechanism: pram, rho: 0.6}\n"), folder=tmp_path / "out")
    assert run(incrowd, ["estimate", str(tmp_path / "out"), "--by", "a, b", "--by", "c", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == ["a, b", "c"]


def test_people_are_counted_in_full_beside_a_mean(folder, capsys):
    assert run(incrowd, ["estimate", folder, "--by", "sex", "--mean", "age"]) == 0
    printed = capsys.readouterr().out
    assert "e+0" not in printed
    [heading] = [line for line in printed.splitlines() if "mean" in line and "people" in line]
    [of_f] = [line for line in printed[printed.index(heading) :].splitlines() if line.startswith("f ")]
    assert int(of_f.split()[-1].replace(",", "")) > 3000
