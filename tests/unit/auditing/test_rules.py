"""Requirements of any table that pass or fail."""

import json

import pandas as pd
import pytest

import incrowd
from incrowd.auditing.disclosure import alike
from incrowd.cli import incrowd as command
from incrowd.cli._shell import run
from incrowd.core.errors import InputError, ParameterError


@pytest.fixture
def table():
    """Groups of 4, 3 and 2; the last has one disease."""
    return pd.DataFrame(
        {
            "age": ["20"] * 4 + ["30"] * 3 + ["40"] * 2,
            "ill": ["flu", "flu", "cold", "ok", "flu", "cold", "cold", "ok", "ok"],
        }
    )


@pytest.mark.parametrize(
    ("rules", "holds"),
    [
        ("k=2", [True]),
        ("k=3", [False]),
        ("l=1", [True]),
        ("k=2,l=2", [True, False]),
        ("alpha=1", [True]),
        ("alpha=0.9", [False]),
        ("risk=0.5", [True]),
        ("risk=0.49, alone=0", [False, True]),
        ("mean_risk=0.34", [True]),  # three groups of nine records
        ("t=0.9,t=0.1", [True, False]),
    ],
)
def test_what_holds(table, rules, holds):
    found = incrowd.audit(table, ["age"], ["ill"]).require(rules)
    assert [outcome.holds for outcome in found] == holds


def test_what_cannot_be_required(table):
    audit = incrowd.audit(table, ["age"])
    for wrong in ("m=3", "k", "k=x", "", "k=-1", "l=2", "k=inf"):
        with pytest.raises(ParameterError):
            audit.require(wrong)


def test_exit_codes(table, tmp_path, capsys):
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    call = ["audit", str(path), "--quasi", "age", "--sensitive", "ill", "--require"]
    assert run(command, [*call, "k=2"]) == 0
    assert "Passed" in capsys.readouterr().out
    assert run(command, [*call, "k=2,l=2"]) == 3
    printed = capsys.readouterr().out
    assert "NOT passed" in printed
    assert "l = 2 of ill: the table has 1" in printed
    assert run(command, [*call, "k=5", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is False
    assert found["required"] == [{"rule": "k", "limit": 5.0, "found": 2.0, "column": None, "holds": False}]
    assert run(command, [*call, "nonsense"]) == 2


def test_a_folder_without_a_certificate_is_pointed_to_the_audit(tmp_path):
    with pytest.raises(InputError) as error:
        incrowd.verify(tmp_path)
    assert "incrowd audit" in error.value.remedy


def test_groups_that_look_alike_are_one_line(tmp_path, capsys):
    table = pd.DataFrame({"age": [str(age) for age in range(30)], "ill": ["flu"] * 30})
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    assert run(command, ["audit", str(path), "--quasi", "age"]) == 0
    assert "1 and 9 alike" in capsys.readouterr().out
    audit = incrowd.audit(table, ["age"])
    assert [groups for _, groups in audit.smallest_alike] == [10]
    shown = incrowd.audit(table, ["age"], show_values=True)
    assert len(shown.smallest_alike) == 10  # they are other people
    assert alike("aabca", str) == [("a", 2), ("b", 1), ("c", 1), ("a", 1)]


def test_one_estimate_of_uniques_is_to_be_believed():
    """In a sample of a table whose uniques are known, the truth lies between the two, nearer to the believed one."""
    import numpy as np

    rng = np.random.default_rng(4)
    sizes = rng.zipf(1.7, 3000).clip(max=400)
    people = pd.DataFrame({"q": np.repeat(np.arange(len(sizes)), sizes).astype(str)})
    drawn = people[rng.random(len(people)) < 0.3]
    alone = drawn["q"].value_counts()
    whole = people["q"].value_counts()
    truth = sum(whole[name] == 1 for name in alone.index[alone == 1])
    model, zayatz = incrowd.audit(drawn, ["q"], sampling_rate=0.3).risks.population_uniques
    assert zayatz.believed
    assert not model.believed
    assert abs(zayatz.in_table - truth) < abs(model.in_table - truth)
