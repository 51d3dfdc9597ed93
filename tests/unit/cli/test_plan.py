"""`incrowd plan`: the JSON contract, readable output, one clear line for every mistake."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from incrowd import api
from incrowd.core.errors import ParameterError


def as_json(result):
    code, out, err = result
    assert code == 0, err
    assert err == ""
    return json.loads(out)


def test_crowd_finds_k(call):
    answer = as_json(call("plan", "crowd", "--beta", 0.2, "--epsilon", 0.5, "--delta", 1e-6, "--json"))
    assert answer["k"] == 18
    assert answer["paper"]["k"] == 25
    assert {"epsilon", "delta", "k", "beta", "paper"} <= answer.keys()
    assert answer["relation"] == "add/remove"


def test_crowd_where_the_theorem_does_not_apply(call):
    answer = as_json(call("plan", "crowd", "--beta", 0.5, "--epsilon", 0.3, "--delta", 1e-6, "--json"))
    assert answer["k"] == 142
    assert answer["paper"] is None


def test_crowd_finds_each_of_the_other_three(call):
    assert as_json(call("plan", "crowd", "--k", 18, "--beta", 0.2, "--epsilon", 0.5, "--json"))["delta"] <= 1e-6
    found = as_json(call("plan", "crowd", "--k", 18, "--beta", 0.2, "--delta", 1e-6, "--json"))
    assert found["epsilon"] == pytest.approx(0.49622, abs=1e-5)
    found = as_json(call("plan", "crowd", "--k", 18, "--epsilon", 0.5, "--delta", 1e-6, "--json"))
    assert found["beta"] == pytest.approx(0.20143, abs=1e-5)


def test_crowd_with_a_chosen_mapping(call):
    answer = as_json(
        call("plan", "crowd", "--beta", 0.85043, "--epsilon", 2, "--delta", 1e-5, "--selection-epsilon", 0.1, "--json")
    )
    assert (answer["k"], answer["paper"]["k"]) == (83, 102)


def test_crowd_under_a_tree(call):
    answer = as_json(call("plan", "crowd", "--tree", "--epsilon", 1, "--delta", 1e-6, "--json"))
    assert {"epsilon", "delta", "k", "beta", "paper", "relation"} <= answer.keys()
    assert answer["paper"] is None
    assert answer["k"] > answer["k_without"]


def test_crowd_reads_well(call):
    code, out, err = call("plan", "crowd", "--beta", 0.2, "--epsilon", 0.5, "--delta", 1e-6)
    assert (code, err) == (0, "")
    assert "crowds of 18 or more" in out
    assert "k = 25" in out
    assert "1,675" in out  # the frontier, at β = 0.95


def test_amplify(call):
    answer = as_json(
        call("plan", "amplify", "--epsilon", 1, "--delta", 0, "--from-beta", 1, "--to-beta", 0.01, "--json")
    )
    assert round(answer["epsilon"], 3) == 0.017
    assert answer["delta"] == 0


def test_pram(call):
    answer = as_json(call("plan", "pram", "--records", 100000, "--domain", "2,5,10", "--k", 100, "--json"))
    assert answer["rho"] == pytest.approx(0.30320, abs=1e-5)
    assert answer["epsilon_local"] == pytest.approx(3.459, abs=1e-3)
    assert answer["k"] >= 100
    assert 0 < answer["central"]["epsilon"] < answer["epsilon_local"]
    assert answer["central"]["delta"] == 1e-6


def test_pram_takes_the_domain_one_by_one_and_the_smaller_of_two_wishes(call):
    base = ("plan", "pram", "--records", 100000, "--domain", 2, "--domain", 5, "--domain", 10, "--json")
    by_k, by_epsilon = as_json(call(*base, "--k", 100)), as_json(call(*base, "--epsilon", 2))
    both = as_json(call(*base, "--k", 100, "--epsilon", 2))
    assert both["rho"] == min(by_k["rho"], by_epsilon["rho"])
    given = as_json(call(*base, "--rho", both["rho"]))
    assert given["epsilon_local"] == pytest.approx(both["epsilon_local"])


def zipf(folder):
    file = folder / "counts.csv"
    lines = [f"v{i},{max(1, int(1e6 / (2.6 * i**1.5)))}" for i in range(1, 1001)]
    file.write_text("\n".join(["value,count", *lines]), encoding="utf-8")
    return file


def test_sample(call, tmp_path):
    base = ("plan", "sample", "--counts", zipf(tmp_path), "--epsilon", 0.5, "--delta", 0.05)
    answer = as_json(call(*base, "--json"))
    assert answer["rate"] == pytest.approx(0.0504, abs=5e-5)
    assert answer["theorem"]["rate"] == pytest.approx(2.05e-7, rel=5e-3)
    assert answer["theorem"]["epsilon"] <= 0.5
    assert answer["theorem"]["rare"] == answer["classes"]["rare"]
    assert sum(answer["classes"].values()) == 1000
    assert answer["relation"] == "replace-one"
    two = as_json(call(*base, "--rows-unknown", 2, "--json"))
    assert two["rate"] < answer["rate"]
    assert two["relation"] == "replace-2"
    code, out, err = call(*base, "--plot", tmp_path / "sample.svg")
    assert (code, err) == (0, "")
    assert "weaker than differential privacy" in out
    assert len(ET.parse(tmp_path / "sample.svg").findall(".//{*}circle")) == 2


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "count\n",
        "value,number\na,3\n",
        "count\n3\nx\n",
        "count\n0\n",
        "count\n-2\n",
        "count\n2.5\n",
        "\x00\x01",
    ],
)
def test_a_wrong_file_of_counts_is_one_clear_message_without_its_values(call, tmp_path, text):
    file = tmp_path / "counts.csv"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    code, out, err = call("plan", "sample", "--counts", file, "--epsilon", 0.5, "--delta", 0.05)
    assert (code, out) == (2, "")
    assert "counts-file" in err
    assert "2.5" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("crowd", "--epsilon", 1, "--delta", 1e-6, "--k", 50),
        ("crowd", "--epsilon", 1, "--delta", 1e-6, "--k", 50, "--selection-epsilon", 0.1),
        ("amplify", "--epsilon", 1, "--delta", 1e-6, "--from-beta", 0.5, "--to-beta", 0.1),
        ("pram", "--records", 10000, "--domain", "2,5", "--k", 50),
    ],
)
def test_plots_are_complete_svg(call, tmp_path, arguments):
    file = tmp_path / "plan.svg"
    code, _, err = call("plan", *arguments, "--plot", file)
    assert (code, err) == (0, "")
    root = ET.fromstring(file.read_text(encoding="utf-8"))
    assert root.tag.endswith("svg")
    assert root.findall(".//{*}path")
    assert root.findall(".//{*}circle")
    assert [p.name for p in tmp_path.iterdir()] == ["plan.svg"]  # nothing half-written is left behind


BAD = [
    ("crowd", "--beta", 2, "--epsilon", 0.5, "--delta", 1e-6),
    ("crowd", "--beta", 0, "--epsilon", 0.5, "--delta", 1e-6),
    ("crowd", "--beta", "nan", "--epsilon", 0.5, "--delta", 1e-6),
    ("crowd", "--beta", "x", "--epsilon", 0.5, "--delta", 1e-6),
    ("crowd", "--beta", 0.5, "--epsilon", 0.5),
    ("crowd", "--beta", 0.5, "--epsilon", 0.5, "--delta", 1e-6, "--k", 5),
    ("crowd", "--beta", 0.5, "--epsilon", -1, "--delta", 1e-6),
    ("crowd", "--beta", 0.5, "--epsilon", 1, "--delta", 1e-6, "--selection-epsilon", 2),
    ("crowd", "--bta", 0.5),
    ("amplify", "--epsilon", 1, "--delta", 0, "--from-beta", 0.1, "--to-beta", 0.2),
    ("amplify", "--epsilon", 1),
    ("pram", "--records", 100, "--domain", "2,x", "--k", 5),
    ("pram", "--records", 100, "--domain", "1", "--k", 5),
    ("pram", "--records", 100, "--domain", "2,5"),
    ("pram", "--records", 100, "--domain", "2,5", "--k", 5, "--rho", 0.5),
    ("pram", "--records", 0, "--domain", "2,5", "--k", 5),
    ("crowd", "--epsilon", 1, "--delta", 1e-6, "--k", 5, "--plot", "x.png"),
    ("crowd", "--epsilon", 1, "--delta", 1e-6, "--k", 5, "--plot", "/no/such/folder/x.svg"),
    ("nothing",),
]


@pytest.mark.parametrize("arguments", BAD, ids=lambda a: " ".join(map(str, a)))
def test_mistakes_get_one_clear_message_and_exit_code_2(call, arguments):
    code, out, err = call("plan", *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 4
    code, out, _ = call("plan", *arguments, "--json")
    assert code == 2
    assert json.loads(out)["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("crowd", "--epsilon", 0, "--delta", 1e-6, "--beta", 0.5),
        ("crowd", "--k", 5, "--delta", 1e-9, "--beta", 0.5),
        ("pram", "--records", 100, "--domain", "2,5", "--k", 101),
    ],
)
def test_what_cannot_be_promised_gets_exit_code_3(call, arguments):
    code, out, err = call("plan", *arguments, "--json")
    assert code == 3
    error = json.loads(out)["error"]
    assert error["code"] == "unreachable"
    assert error["remedy"]
    assert "Traceback" not in err


def test_an_unknown_command_is_answered_with_the_nearest_one(call):
    code, _, err = call("plam")
    assert code == 2
    assert "'plan'" in err


def test_a_bug_is_exit_code_1_without_a_traceback(call, monkeypatch):
    from incrowd.mechanisms.sampled_crowd import plan

    monkeypatch.delenv("INCROWD_DEBUG", raising=False)
    monkeypatch.setattr(plan, "plan_crowd", lambda **_: 1 / 0)
    code, out, err = call("plan", "crowd", "--epsilon", 1, "--delta", 1e-6, "--k", 5)
    assert (code, out) == (1, "")
    assert "Traceback" not in err
    assert "ZeroDivisionError" in err


def test_the_installed_program_runs():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "incrowd",
            "plan",
            "crowd",
            "--beta",
            "0.2",
            "--epsilon",
            "0.5",
            "--delta",
            "1e-6",
            "--json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["k"] == 18
    assert done.stderr == ""


@pytest.mark.parametrize("form", ["", ", '--json'"])
def test_planning_a_crowd_imports_nothing_that_takes_long_and_is_not_used(form):
    """NumPy and SciPy would take most of the time."""
    import subprocess
    import sys

    code = (
        "import sys; from incrowd.cli import main\n"
        f"try: main(['plan', 'crowd', '--epsilon', '1', '--delta', '1e-6', '--beta', '0.2'{form}])\n"
        "except SystemExit: sys.exit(sorted({'numpy', 'scipy', 'pyarrow', 'tempfile'} & set(sys.modules)) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_a_plan_for_people_with_several_rows(call):
    arguments = ("plan", "crowd", "--epsilon", 1, "--delta", 1e-6, "--beta", 0.2, "--rows-per-person", 3)
    answer = as_json(call(*arguments, "--json"))
    assert (answer["k"], answer["rows_per_person"], answer["paper"]) == (30, 3, None)
    assert {point["beta"]: point["k"] for point in answer["frontier"]}[0.3] == 53
    code, out, _ = call(*arguments)
    assert code == 0
    assert "adding or removing a person with at most 3 rows" in out


def test_a_plan_with_epsilon_and_delta_alone_chooses_both(call):
    answer = as_json(call("plan", "crowd", "--epsilon", 1, "--delta", 1e-6, "--json"))
    assert (answer["k"], answer["beta"]) == (28, 0.44)
    assert "k/β" in call("plan", "crowd", "--epsilon", 1, "--delta", 1e-6)[1]


def test_a_plan_for_randomised_records_of_people_with_several(call):
    arguments = ("plan", "pram", "--records", 100000, "--domain", "2,5,10", "--k", 100)
    one, three = (as_json(call(*arguments, "--rows-per-person", rows, "--json")) for rows in (1, 3))
    assert three["rho"] == one["rho"]
    assert three["k"] == one["k"]
    assert three["epsilon_local"] == pytest.approx(3 * one["epsilon_local"])
    assert 3 * one["central"]["epsilon"] < three["central"]["epsilon"] < 3.5 * one["central"]["epsilon"]
    assert "k is about each record" in call(*arguments, "--rows-per-person", 3)[1]


def test_a_randomised_sample_is_planned():
    whole, part = (api.plan_pram(records=100_000, domain=[2, 5, 4, 3], rho=0.5, beta=beta) for beta in (None, 0.1))
    assert (whole.beta, part.beta) == (1.0, pytest.approx(0.1))
    assert part.central.epsilon == pytest.approx(0.0495, abs=1e-3)
    assert whole.central.epsilon == pytest.approx(0.1678, abs=1e-3)
    assert part.epsilon_local == whole.epsilon_local
    assert part.k < whole.k
    with pytest.raises(ParameterError):
        api.plan_pram(records=100, domain=[2], k=5, beta=0.5)
