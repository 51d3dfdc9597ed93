"""`incrowd compare`, and `incrowd plan sample` with advice and planned rates."""

import json

import numpy as np
import pandas as pd
import pytest

from incrowd.theory import sampling

POLICY = """
incrowd: 1
data: {path: people.csv}
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1}
  sex: {domain: [f, m]}
release: {mechanism: sample, epsilon: 0.5, delta: 0.05, rows_unknown: 2}
"""


@pytest.fixture
def policy(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"age": np.minimum(99, rng.gamma(6, 7, 5000).astype(int)), "sex": rng.choice(["f", "m"], 5000)}
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.yaml").write_text(POLICY, encoding="utf-8")
    return tmp_path / "people.yaml"


def counts(policy, width):
    frame = pd.read_csv(policy.with_name("people.csv"))
    return frame.assign(age=frame.age // width).value_counts().to_numpy()


def test_plan_sample_of_a_policy(call, policy):
    code, out, _ = call("plan", "sample", policy, "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["rate"] == sampling.largest_rate(counts(policy, 10), 0.5, 0.05, 2).rate
    assert (answer["rows_unknown"], answer["relation"]) == (2, "replace-2")
    assert "advice" not in answer


def test_plan_sample_of_a_policy_for_another_table(call, policy):
    other = policy.with_name("others.csv")
    policy.with_name("people.csv").rename(other)
    code, out, _ = call("plan", "sample", policy, "--data", other, "--json")
    assert code == 0
    assert json.loads(out)["rate"] > 0


def test_plan_sample_with_advice(call, policy):
    code, out, _ = call("plan", "sample", policy, "--advice", "--json")
    assert code == 0
    answer = json.loads(out)
    advice = answer["advice"]
    assert advice["rate"] == answer["rate"]
    coarser = next(s for s in advice["steps"] if s["action"] == "level")
    assert coarser["rate"] == sampling.largest_rate(counts(policy, 50), 0.5, 0.05, 2).rate
    code, out, _ = call("plan", "sample", policy, "--advice")
    assert code == 0
    assert "For your eyes only" in out
    assert "level: 2" in out


def test_plan_sample_of_a_table_with_advice(call, policy):
    data = policy.with_name("people.csv")
    code, out, _ = call("plan", "sample", data, "--epsilon", 0.5, "--delta", 0.05, "--advice", "--json")
    assert code == 0
    assert json.loads(out)["rate"] == sampling.largest_rate(counts(policy, 1), 0.5, 0.05).rate
    assert {s["action"] for s in json.loads(out)["advice"]["steps"]} >= {"top", "drop"}


def test_a_planned_rate(call, policy):
    code, out, _ = call("plan", "sample", policy, "--rate", 0.01, "--delta", 0.05, "--rows-unknown", 1, "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["rate"] == 0.01
    assert answer["epsilon"] == sampling.sample_epsilon(counts(policy, 10), 0.01, 0.05).epsilon
    code, out, _ = call("plan", "sample", policy, "--rate", 0.01, "--epsilon", 1, "--rows-unknown", 1, "--json")
    assert json.loads(out)["delta"] == sampling.sample_delta(counts(policy, 10), 0.01, 1.0).delta


def test_an_option_takes_the_place_of_the_policys_value(call, policy):
    code, out, _ = call("plan", "sample", policy, "--epsilon", 0.7, "--json")
    assert code == 0
    answer = json.loads(out)
    assert (answer["epsilon"], answer["delta"]) == (0.7, 0.05)
    assert answer["rate"] == sampling.largest_rate(counts(policy, 10), 0.7, 0.05, 2).rate
    code, out, _ = call("plan", "sample", policy, "--delta", 0.01, "--json")
    assert json.loads(out)["rate"] == sampling.largest_rate(counts(policy, 10), 0.5, 0.01, 2).rate


@pytest.mark.parametrize(("rate", "kept"), [(1e-5, True), (0.3, False)])
@pytest.mark.parametrize("where", ["option", "policy"])
def test_a_rate_beside_a_whole_promise_keeps_it_or_not(call, policy, tmp_path, rate, kept, where):
    options = ("--rate", rate)
    if where == "policy":
        options = ()
        policy.write_text(POLICY.replace("rows_unknown: 2", f"rows_unknown: 2, rate: {rate}"), encoding="utf-8")
    code, out, _ = call("plan", "sample", policy, *options, "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["planned"] == {"rate": rate, "kept": kept}
    assert answer["rate"] == sampling.largest_rate(counts(policy, 10), 0.5, 0.05, 2).rate
    code, out, _ = call("plan", "sample", policy, *options)
    assert ("keeps the promise" in out, "will be refused" in out) == (kept, not kept)
    if where == "policy":
        assert (call("release", policy, "-o", tmp_path / "out")[0] == 0) == kept


def test_a_plan_is_marked_as_internal(call, policy, tmp_path):
    plot = tmp_path / "plan.svg"
    code, out, _ = call("plan", "sample", policy, "--plot", plot)
    assert code == 0
    assert out.startswith("INTERNAL")
    assert "INTERNAL" in plot.read_text(encoding="utf-8")
    code, out, _ = call("plan", "sample", policy, "--json")
    assert "publisher's eyes only" in json.loads(out)["internal"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--epsilon", 1, "--delta", 0.1, "--rate", 0.1),
        ("--columns", "age"),
        ("--counts", "counts.csv"),
    ],
)
def test_plan_sample_mistakes(call, policy, arguments):
    code, out, err = call("plan", "sample", policy, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")


def test_a_planned_rate_that_promises_nothing(call, policy):
    code, _, err = call("plan", "sample", policy, "--rate", 0.999, "--epsilon", 0.1)
    assert code == 3
    assert "Lower the rate" in err


def test_compare(call, policy, tmp_path):
    plot = tmp_path / "c.svg"
    code, out, _ = call("compare", policy, "--epsilon", "0.5,2", "--runs", 2, "--plot", plot, "--json")
    assert code == 0
    found = json.loads(out)
    assert len(found["contenders"]) == 10
    assert found["records"] == 5000
    assert "published" in found["internal"]
    assert found["differences"]
    assert plot.read_text(encoding="utf-8").startswith("<svg")
    code, out, _ = call("compare", policy, "--epsilon", 1, "--runs", 1, "--level", "age=2")
    assert code == 0
    assert out.startswith("INTERNAL")
    assert "weaker" in out or "weakest" in out
    assert "one run" in out
    assert "±" not in out
    assert "noisy counts" in out


def test_compare_a_table(call, policy):
    data = policy.with_name("people.csv")
    code, out, _ = call("compare", data, "--columns", "sex", "--epsilon", 1, "--runs", 1, "--json")
    assert code == 0
    assert json.loads(out)["columns"] == ["sex"]
    assert "declared without looking" in json.loads(out)["differences"][-1]


@pytest.mark.parametrize(
    "arguments",
    [("--epsilon", "x"), ("--epsilon", 0), ("--delta", 2), ("--level", "age"), ("--level", "town=1"), ("--runs", 0)],
)
def test_compare_mistakes(call, policy, arguments):
    code, out, err = call("compare", policy, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")


def test_a_refused_release_points_to_the_advice(call, policy, tmp_path):
    policy.write_text(POLICY.replace("rows_unknown: 2", "rate: 0.4"), encoding="utf-8")
    code, _, err = call("release", policy, "-o", tmp_path / "out")
    assert code == 3
    assert "incrowd plan sample" in err
    assert not (tmp_path / "out").exists()


def test_release_and_estimate_on_the_command_line(call, policy, tmp_path):
    code, out, _ = call("release", policy, "-o", tmp_path / "out", "--json")
    assert code == 0
    guarantee = json.loads(out)["guarantee"]
    assert guarantee["mechanism"] == "sample"
    assert guarantee["rate"] > 0
    code, out, _ = call("verify", tmp_path / "out", "--json")
    assert json.loads(out)["valid"]
    code, out, _ = call("estimate", tmp_path / "out", "--by", "sex")
    assert code == 0
    assert "high" in out
