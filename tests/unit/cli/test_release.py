"""The main job from the command line: example → release → verify → estimate → ledger, and what can go wrong."""

import json
import subprocess
import sys

import pytest

from incrowd.cli import incrowd
from incrowd.cli._shell import run


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    folder = tmp_path_factory.mktemp("census")
    assert run(incrowd, ["example", "census", "-o", str(folder / "census.csv"), "--rows", "20000"]) == 0
    return folder


@pytest.fixture(scope="module")
def released(census):
    assert run(incrowd, ["release", str(census / "census.yaml"), "-o", str(census / "out")]) == 0
    return census / "out"


def as_json(result):
    code, out, err = result
    assert code == 0, err
    return json.loads(out)


def test_the_whole_journey_in_json(call, census, tmp_path):
    answer = as_json(call("release", census / "census.yaml", "-o", tmp_path / "out", "--json"))
    assert {"release", "certificate", "guarantee"} <= answer.keys()
    assert answer["guarantee"]["epsilon"] == 2
    assert answer["guarantee"]["relation"] == "add/remove"
    assert (tmp_path / "out" / "report.html").is_file()
    checked = as_json(call("verify", tmp_path / "out", "--json"))
    assert checked["valid"] is True
    assert all(check["holds"] for check in checked["checks"])
    table = as_json(call("estimate", tmp_path / "out", "--by", "sex", "--json"))
    assert {tuple(row["values"]) for row in table["rows"]} <= {("female",), ("male",), ("*",)}
    assert sum(row["estimate"] for row in table["rows"]) == pytest.approx(20_000, rel=0.4)


def test_it_reads_well(call, released):
    code, out, err = call("verify", released)
    assert (code, err) == (0, "")
    assert out.rstrip().endswith("Valid")
    assert "Taken on trust" in out
    code, out, _ = call("estimate", released, "--by", "sex")
    assert code == 0
    assert "Low and high" in out


def test_what_release_prints_tells_where_everything_is(call, census, tmp_path):
    code, out, err = call("release", census / "census.yaml", "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    for name in ("release.parquet", "certificate.json", "report.html", "out.internal", "incrowd verify"):
        assert name in out.replace("\n", "")


def test_what_release_prints_tells_how_coarse_columns_are(call, tmp_path):
    (tmp_path / "people.csv").write_text(
        "sex,age,town\n" + "".join(f"f,{i % 90},a\nm,{i % 90},b\n" for i in range(2000))
    )
    (tmp_path / "policy.yaml").write_text(
        """
incrowd: 1
data: {path: people.csv}
attributes:
  sex: {domain: [f, m]}
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 2}
  town: {domain: [a, b], hierarchy: {ordinal: 2}, level: 1}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-6}
"""
    )
    code, out, err = call("release", tmp_path / "policy.yaml", "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "Shown as they are: sex.\nMade coarser: age (level 2).\nHidden, all values alike: town.\n" in out
    answer = as_json(call("release", tmp_path / "policy.yaml", "-o", tmp_path / "again", "--json"))
    assert answer["hidden"] == ["town"]


def test_a_tampered_release_is_exit_code_3(call, census, tmp_path):
    assert call("release", census / "census.yaml", "-o", tmp_path / "out")[0] == 0
    with (tmp_path / "out" / "report.html").open("a", encoding="utf-8") as report:
        report.write("x")
    code, out, _ = call("verify", tmp_path / "out", "--json")
    assert code == 3
    assert json.loads(out)["valid"] is False


def test_copies_and_signatures(call, census, tmp_path):
    keys = as_json(call("keys", "-o", tmp_path / "office", "--json"))
    answer = as_json(
        call(
            "release",
            census / "census.yaml",
            "-o",
            tmp_path / "out",
            "--copies",
            2,
            "--sign-with",
            keys["secret"],
            "--json",
        )
    )
    assert len(answer["releases"]) == 2
    for number in (1, 2):
        assert as_json(call("verify", tmp_path / f"out-{number}", "--key", keys["public"], "--json"))["valid"]


def test_the_ledger(call, tmp_path):
    base = ("--ledger", tmp_path / "ledger.sqlite", "--json")
    as_json(call("ledger", "budget", "town", "--epsilon", 1, "--delta", 1e-6, *base))
    for _ in range(2):
        as_json(call("ledger", "add", "town", "--epsilon", 0.4, "--delta", 0, *base))
    code, out, _ = call("ledger", "add", "town", "--epsilon", 0.4, "--delta", 0, *base)
    assert code == 3
    assert json.loads(out)["error"]["code"] == "budget-overspent"
    statement = as_json(call("ledger", "show", "town", *base))
    assert {"dataset", "spent", "remaining", "releases"} <= statement.keys()
    assert len(statement["releases"]) == 2
    assert statement["spent"]["epsilon"] == pytest.approx(0.8, rel=1e-3)
    assert as_json(call("ledger", "show", *base))["datasets"] == ["town"]
    code, out, err = call("ledger", "show", "town", "--ledger", tmp_path / "ledger.sqlite")
    assert (code, err) == (0, "")
    assert "remaining" in out


def test_overspending_is_exit_code_3_and_writes_nothing(call, census, tmp_path):
    text = (census / "census.yaml").read_text(encoding="utf-8")
    policy = tmp_path / "policy.yaml"
    budget = f"\nledger: {{path: {tmp_path}/l.sqlite, dataset: census, epsilon: 0.5, delta: 1e-9}}\n"
    policy.write_text(text + budget, encoding="utf-8")
    code, out, _ = call(
        "release", policy, "--data", census / "census.csv", "-o", tmp_path / "out", "--new-ledger", "--json"
    )
    assert code == 3
    assert json.loads(out)["error"]["code"] == "budget-overspent"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["policy.yaml"]


def test_a_record_that_cannot_be_read_costs_nothing(call, census, tmp_path):
    """The engine loses a last line that is longer than its buffers without a word."""
    ledger = tmp_path / "l.sqlite"
    call("ledger", "budget", "census", "--epsilon", 10, "--delta", 1e-3, "--ledger", ledger)
    text = (census / "census.yaml").read_text(encoding="utf-8")
    policy, data = tmp_path / "policy.yaml", tmp_path / "census.csv"
    budget = f"\nledger: {{path: {ledger}, dataset: census, epsilon: 10, delta: 1e-3}}\n"
    policy.write_text(text + budget, encoding="utf-8")
    data.write_bytes((census / "census.csv").read_bytes() + b"x" * 40_000_000)
    code, out, _ = call("release", policy, "--data", data, "-o", tmp_path / "out", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (2, "data-line-too-long")
    assert not (tmp_path / "out").exists()
    assert as_json(call("ledger", "show", "census", "--ledger", ledger, "--json"))["releases"] == []


def test_schema(call):
    schema = as_json(call("schema"))
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "attributes" in schema["properties"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("release", "absent.yaml", "-o", "out"), "policy-file"),
        (("release", "{policy}", "-o", "out", "--data", "absent.csv"), "data-not-found"),
        (("release", "{policy}"), "usage"),
        (("verify", "absent"), "release-unreadable"),
        (("estimate", "absent", "--by", "sex"), "release-unreadable"),
        (("estimate", "{out}", "--by", "town"), "column-unknown"),
        (("estimate", "{out}", "--by", ","), "column-unknown"),
        (("ledger", "show", "x", "--ledger", "absent.sqlite"), None),
        (("example", "census", "-o", "census.txt"), "output-format"),
        (("release", "{policy}", "-o", "{out}"), "output-exists"),
        (("release", "{policy}", "-o", "/no/such/folder/out"), "output-unwritable"),
    ],
)
def test_mistakes_get_one_clear_message(call, census, released, tmp_path, monkeypatch, arguments, code):
    monkeypatch.chdir(tmp_path)
    filled = [a.format(policy=census / "census.yaml", out=released) for a in arguments]
    exit_code, out, err = call(*filled, "--json")
    assert exit_code == 2
    error = json.loads(out)["error"]
    assert code in (None, error["code"])
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 6
    assert list(tmp_path.iterdir()) == []


def test_two_at_once_into_one_folder(census, tmp_path):
    """One of them gets the folder; the other is told so. Nothing is mixed."""
    command = [sys.executable, "-m", "incrowd", "release", str(census / "census.yaml"), "-o", str(tmp_path / "out")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    codes = sorted(process.wait() for process in both)
    for process in both:
        process.communicate()
    assert codes == [0, 2]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "out.internal"]
    assert run(incrowd, ["verify", str(tmp_path / "out")]) == 0


VISITS = """
incrowd: 1
data: {path: visits.csv}
attributes: {ward: {domain: [a, b], level: 0}}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, beta: 0.4}
"""


def test_rows_and_people(call, tmp_path):
    lines = [f"{patient},{day},{'ab'[day % 2]}" for patient in range(600) for day in range(4)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient_id,day,ward", *lines]))
    (tmp_path / "rows.yaml").write_text(VISITS)
    (tmp_path / "people.yaml").write_text(f"{VISITS}people: {{column: patient_id, at_most: 1}}\n")
    code, out, err = call("release", tmp_path / "rows.yaml", "-o", tmp_path / "rows", "--json")
    assert (code, err.count("rows-not-people")) == (0, 1)
    assert [said["column"] for said in json.loads(out)["warnings"]] == ["patient_id"]
    answer = as_json(call("release", tmp_path / "people.yaml", "-o", tmp_path / "people", "--json"))
    assert answer["people"] == {"rows": 2400, "people": 600, "at_most": 1, "left_out": 1800}
    assert answer["warnings"] == []
    code, out, err = call("release", tmp_path / "people.yaml", "-o", tmp_path / "again")
    assert (code, err) == (0, "")
    assert "2,400 rows of 600 people; 1,800 rows do not count" in out
