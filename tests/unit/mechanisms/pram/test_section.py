"""The section `release` of a randomised table: what it accepts, and what it says about what it does not."""

from fractions import Fraction

import pytest

from incrowd.core.errors import PolicyError
from incrowd.mechanisms.pram.section import read_probability, write_probability
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy

BASE = """
incrowd: 1
attributes:
  sex: {{domain: [f, m]}}
  age: {{type: integer, domain: {{from: 0, to: 9}}}}
  region: {{domain: [a, b, c], missing: keep}}
  name: drop
release: {{mechanism: pram, {}}}
"""


def read(keys: str) -> Policy:
    return Policy.from_text(BASE.format(keys))


ACCEPTED = [
    "k: 100",
    "epsilon: 4",
    "k: 1.5, epsilon: 4, importance: {age: 2}",
    "rho: 0.4",
    "rho: {sex: 0.4, age: 0.5, region: 0.1}",
    "rho: 0.3, matrix: {sex: [[0.9, 0.1], [1/3, 2/3]]}",
    "epsilon: 3, joint: [{of: [sex, age]}]",
    "rho: {region: 0.2}, joint: [{of: [sex, age], rho: 0.5}]",
    "epsilon: 3, importance: {region: 3}, joint: [{of: [sex, age], importance: 2}]",
    "rho: 0.5, invariant: true, delta: 1e-9, records: 1000, output: csv",
    "matrix: {sex: [[1/2, 1/2], [1/3, 2/3]]}, joint: [{of: [age, region], rho: 0.1}]",
]


@pytest.mark.parametrize("keys", ACCEPTED)
def test_what_is_accepted_reads_again_as_the_same(keys):
    policy = read(keys)
    assert Policy.from_text(policy.to_yaml()).release == policy.release
    canonical = policy.canonical()["release"]
    assert MECHANISMS["pram"].section.model_validate(canonical) == policy.release
    assert Policy.from_text(policy.to_yaml()).digest() == policy.digest()


REFUSED = [
    ("", "say how much is kept"),
    ("rho: 0.3, k: 2", "either rho or what it should reach"),
    ("importance: {sex: 2}, rho: 0.1", "divides what"),
    ("rho: {sex: 0.4}", "for each attribute"),
    ("rho: 1.2", "at most 1"),
    ("k: 1", "above 1"),
    ("rho: {sex: 0.4, age: 0.5, region: 0.1, nmae: 1}", "no such attribute"),
    ("rho: {sex: 0.4, age: 0.5, region: 0.1, name: 1}", "is dropped"),
    ("rho: 0.3, matrix: {sex: [[0.9, 0.2], [1/3, 2/3]]}", "sum to exactly 1"),
    ("rho: 0.3, matrix: {sex: [[0.33, 0.33, 0.33], [1, 0, 0], [0, 1, 0]]}", "sum to exactly 1"),
    ("rho: 0.3, matrix: {sex: [[0.9, 0.1], [1]]}", "has 1 entries; 2 rows need 2"),
    ("rho: 0.3, matrix: {sex: [[1.9, -0.9], [0, 1]]}", "between 0 and 1"),
    ("rho: 0.3, matrix: {sex: [[a, b], [0, 1]]}", "must be a number"),
    ("rho: 0.3, matrix: {sex: [[1e-400, 1], [0, 1]]}", "between 0 and 1e-100"),
    ("rho: 0.3, matrix: {sex: 7}", "list of rows"),
    ("rho: 0.3, joint: [{of: [sex]}]", "two attributes at least"),
    ("rho: 0.3, joint: [{of: [sex, sex]}]", "named twice"),
    ("rho: 0.3, joint: [{of: [sex, age]}, {of: [age, region]}]", "named twice"),
    ("rho: 0.3, joint: [{of: [sex, size]}]", "no such attribute"),
    ("rho: {sex: 0.1, region: 0.5}, joint: [{of: [sex, age], rho: 0.3}]", "part of a joint attribute"),
    ("rho: 0.3, joint: [{of: [sex, age], rhoo: 0.3}]", "did you mean 'rho'"),
    ("rho: 0.3, matrix: {sex: {file: nowhere.csv}}, kk: 3", "did you mean 'k'"),
]


@pytest.mark.parametrize(("keys", "said"), REFUSED)
def test_what_is_refused_is_explained(keys, said):
    with pytest.raises(PolicyError, match=said):
        read(keys)


def test_a_hierarchy_needs_its_level_and_a_dropped_record_would_show():
    text = BASE.format("rho: 0.3").replace("[a, b, c], missing: keep", "[a, b, c], hierarchy: {ordinal: 2}")
    with pytest.raises(PolicyError, match="give its 'level'"):
        Policy.from_text(text)
    assert Policy.from_text(text.replace("ordinal: 2}", "ordinal: 2}, level: 1")).release.rho == 0.3
    with pytest.raises(PolicyError, match="number of records"):
        Policy.from_text(BASE.format("rho: 0.3").replace("missing: keep", "missing: drop"))


def test_a_matrix_in_a_file_belongs_to_the_policy(tmp_path):
    (tmp_path / "sex.csv").write_text("0.9,0.1\n0.2,0.8\n")
    text = BASE.format("rho: 0.3, matrix: {sex: {file: sex.csv}}")
    policy = Policy.from_text(text, tmp_path)
    assert ("release", "matrix", "sex") in policy.files()
    before = policy.digest()
    assert (
        MECHANISMS["pram"]
        .section.model_validate(policy.canonical()["release"])
        .matrix["sex"]
        .file.startswith("sha256:")
    )
    (tmp_path / "sex.csv").write_text("0.8,0.2\n0.2,0.8\n")
    assert policy.digest() != before
    moved = policy.relocated(tmp_path / "elsewhere")
    assert moved.release.matrix["sex"].file == "../sex.csv"
    with pytest.raises(PolicyError, match="there is no file"):
        Policy.from_text(text, tmp_path / "nowhere")


def test_probabilities_are_exactly_what_is_written():
    assert read_probability("0.1") == Fraction(1, 10)
    assert read_probability(" 2 / 6 ") == Fraction(1, 3)
    for value in (Fraction(1, 3), Fraction(9, 10), Fraction(1), Fraction(0), Fraction(1, 2**70), Fraction(123, 10**9)):
        assert read_probability(write_probability(value)) == value
    assert write_probability(Fraction(9, 10)) == "0.9"
    for wrong in ("1/0", "3/2", "-0.1", "x", None, True):
        with pytest.raises(ValueError, match="must be"):
            read_probability(wrong)


def test_the_schema_for_editors_knows_the_section():
    section = Policy.json_schema()["$defs"]["Pram"]
    assert set(section["properties"]) == set(MECHANISMS["pram"].section.model_fields)
    assert all("description" in field for field in section["properties"].values())
