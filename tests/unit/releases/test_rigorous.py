"""`verify --rigorous`: every number of a promise against its enclosure, and numbers that fall short are found."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner

from incrowd import api
from incrowd.cli import incrowd as command
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.releases import verify

POLICY = """
incrowd: 1
title: A little town
attributes:
  age: {type: integer, domain: {from: 0, to: 9}}
  sex: {domain: [f, m]}
release: {mechanism: %s}
"""
CROWD = "sampled_crowd, epsilon: 2, delta: 1e-5, selection_epsilon: 0.5, beta: 0.4"
PRAM = "pram, k: 5, delta: 1e-6"
SUFFIX = ", enclosed by ball arithmetic"


def released(release, folder):
    people = pd.DataFrame({"age": [i % 10 for i in range(4000)], "sex": ["f", "m"] * 2000})
    api.release(people, Policy.from_text(POLICY % release), folder=folder)
    return json.loads((folder / "certificate.json").read_bytes())


NUMBERS = [(CROWD, ["exact_delta", "delta"]), (PRAM, ["local_epsilon", "k", "delta"])]


@pytest.mark.parametrize(("release", "numbers"), NUMBERS)
def test_every_number_has_a_line_and_holds(release, numbers, tmp_path):
    released(release, tmp_path / "out")
    plain, rigorous = api.verify(tmp_path / "out"), api.verify(tmp_path / "out", rigorous=True)
    assert rigorous.valid
    added = [check.name for check in rigorous.checks if check not in plain.checks]
    assert added == [name + SUFFIX for name in numbers]


def read(document):
    return MECHANISMS[document["mechanism"]["name"]].certificate.read(document)


@pytest.mark.parametrize(
    ("release", "part", "number", "factor"),
    [
        (CROWD, "mechanism", "exact_delta", 1 - 1e-12),
        (CROWD, "promise", "delta", 1e-3),
        (PRAM, "promise", "local_epsilon", 1 - 1e-10),
        (PRAM, "promise", "k", 1 + 1e-10),
        (PRAM, "promise", "delta", 0.5),
    ],
)
def test_a_number_that_is_a_little_better_than_the_truth_is_found(release, part, number, factor, tmp_path):
    certificate = released(release, tmp_path / "out")
    assert all(check.holds for check in verify.enclosed(read(certificate)))
    certificate[part][number] *= factor
    failed = [check for check in verify.enclosed(read(certificate)) if not check.holds]
    assert [check.name for check in failed] == [number + SUFFIX]
    assert failed[0].detail


def test_the_command_says_so_and_json_too(tmp_path):
    released(CROWD, tmp_path / "out")
    said = CliRunner().invoke(command, ["verify", str(tmp_path / "out"), "--rigorous"])
    assert said.exit_code == 0
    assert "✓ delta, enclosed by ball arithmetic" in said.output
    found = CliRunner().invoke(command, ["verify", str(tmp_path / "out"), "--rigorous", "--json"])
    assert "delta" + SUFFIX in [check["name"] for check in json.loads(found.output)["checks"]]


def test_a_certificate_that_fails_otherwise_is_not_enclosed(tmp_path, monkeypatch):
    """Hostile numbers could take hours; nothing is computed from parameters that the other checks refuse."""
    from incrowd.core import signing
    from incrowd.releases import verify

    certificate = released(CROWD, tmp_path / "out")
    certificate["mechanism"]["k"] = 10**30
    (tmp_path / "out" / "certificate.json").write_bytes(signing.to_bytes(signing.seal(certificate)))
    monkeypatch.setattr(verify, "enclosed", lambda _: pytest.fail("it was enclosed"))
    assert not api.verify(tmp_path / "out", rigorous=True).valid


def test_what_cannot_be_enclosed_is_a_failed_check(tmp_path, monkeypatch):
    from incrowd.theory import enclosures

    certificate = released(CROWD, tmp_path / "out")
    monkeypatch.setattr(enclosures, "_MOST_BITS", 0)
    (check,) = verify.enclosed(read(certificate))
    assert not check.holds
