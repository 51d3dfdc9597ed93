"""Codes in the data, labels in everything that is published."""

import json

import numpy as np
import pandas as pd
import pytest

from incrowd import Policy, api
from incrowd.core import signing

ATTRIBUTES = """
incrowd: 1
attributes:
  sex: {type: integer, labels: {1: man, 2: woman}}
  school: {labels: {file: book.csv}, level: 0}
  income: {type: number, domain: {cuts: [0, 1000, .inf]}, codes: {-9: refused, N: no job}, format: "1.234,5", level: 0}
  born: {type: date, domain: {from: 1990-01-01, to: 1999-12-31}, format: dd.mm.yyyy, hierarchy: {dates: year}, level: 1}
"""
RELEASES = {
    "sampled_crowd": "{mechanism: sampled_crowd, epsilon: 2, delta: 1e-4, selection_epsilon: 0.2}",
    "generalization": "{mechanism: generalization, require: [{k: 5}, {l: 2}]}",
    "pram": "{mechanism: pram, rho: 0.5}",
    "sample": "{mechanism: sample, epsilon: 0.3, delta: 0.01}",
}


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "sex": rng.choice([1, 2], 4000),
            "school": rng.choice(["01", "2"], 4000),
            "income": rng.choice(["N", "-9", "1.500,0", "20,5"], 4000),
            "born": rng.choice(["31.01.1990", "1.2.1999"], 4000),
        }
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "book.csv").write_text("variable,value,label\nschool,01,primary\nschool,2,secondary\nschool,3,higher\n")
    return tmp_path


@pytest.mark.parametrize("mechanism", RELEASES)
def test_every_mechanism_publishes_labels_and_verifies(people, folder, mechanism):
    attributes = ATTRIBUTES
    if mechanism == "generalization":
        attributes = attributes.replace("sex: {", "sex: {level: 0, role: sensitive, ")
    elif mechanism != "sampled_crowd":
        attributes = attributes.replace("sex: {", "sex: {level: 0, ")
    policy = Policy.from_text(f"{attributes}release: {RELEASES[mechanism]}\n", folder)
    made = api.release(people, policy, folder=folder / "out")
    shown = made.to_pandas()
    assert set(shown["sex"].dropna()) <= {"man", "woman", "*"}
    assert set(shown["school"].dropna()) <= {"primary", "secondary", "higher"}
    assert set(shown["income"].dropna()) <= {"[0, 1000)", "[1000, ∞)", "refused", "no job"}
    assert api.verify(folder / "out").valid
    report = (folder / "out" / "report.html").read_text()
    assert "primary" in report or mechanism == "generalization"


def test_codes_are_counted_as_what_they_mean(people, folder):
    policy = Policy.from_text(f"{ATTRIBUTES}release: {RELEASES['sampled_crowd']}\n", folder)
    released = api.release(people, policy.with_levels({"sex": 0}), folder=folder / "out").to_pandas()
    for label, code in (("refused", "-9"), ("no job", "N"), ("[1000, ∞)", "1.500,0"), ("[0, 1000)", "20,5")):
        share = (released["income"] == label).mean()
        assert share == pytest.approx((people["income"] == code).mean(), abs=0.05)
    estimate = api.estimate(folder / "out", by=["school"])
    assert "primary" in str(estimate)


def test_other_labels_in_the_certificate_are_found(people, folder):
    policy = Policy.from_text(f"{ATTRIBUTES}release: {RELEASES['sampled_crowd']}\n", folder)
    api.release(people, policy.with_levels({"sex": 0}), folder=folder / "out")
    path = folder / "out" / "certificate.json"
    certificate = json.loads(path.read_bytes())
    said = json.dumps(certificate)
    assert '["man", "woman"]' in said
    forged = json.loads(said.replace('["man", "woman"]', '["man", "Jane Doe"]'))
    path.write_bytes(signing.to_bytes(signing.seal(forged)))
    failed = [check.name for check in api.verify(folder / "out").checks if not check.holds]
    assert "the labels are the policy's at the stated levels, where it lists them" in failed
