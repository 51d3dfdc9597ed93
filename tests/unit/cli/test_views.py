"""Views on the command line: plan, release, estimate, combine."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

POLICY = """
incrowd: 1
data: {{path: {table}}}
attributes:
  sex: {{domain: [f, m]}}
  job: {{domain: [none, office, shop]}}
  home: {{domain: [flat, house]}}
release: {{mechanism: views, epsilon: 2, delta: 1e-5, {more}}}
"""


@pytest.fixture
def written(tmp_path):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {name: rng.choice(values, 4000) for name, values in (("sex", ["f", "m"]), ("job", ["none", "office", "shop"]))}
    )
    table["home"] = np.where(table.sex == "f", "flat", "house")
    table.to_csv(tmp_path / "people.csv", index=False)

    def write(more=""):
        path = tmp_path / "policy.yaml"
        path.write_text(POLICY.format(table=tmp_path / "people.csv", more=more), encoding="utf-8")
        return path

    return write


def test_plan_views(call):
    code, out, _ = call(
        "plan", "views", "--columns", 10, "--rows", 27000, "--epsilon", 1, "--delta", 1e-6, "--by", "noise", "--json"
    )
    assert code == 0
    found = json.loads(out)
    assert found["views"] == 9
    assert found["k"] is None
    assert found["standard_deviation"] > 10
    assert [option["choose"]["how"] for option in found["options"]] == ["tree", "tree", "adaptive"]
    code, out, _ = call("plan", "views", "--columns", 3, "--rows", 9000, "--epsilon", 1, "--delta", 1e-6)
    assert code == 0
    assert "pairs, tree" in out
    assert "crowds, k = " in out


def test_a_plan_of_views_is_for_epsilon_1_unless_another_is_given(call):
    code, out, _ = call("plan", "views", "--columns", 3, "--rows", 9000, "--by", "noise", "--json")
    assert code == 0
    assert (json.loads(out)["epsilon"], json.loads(out)["delta"]) == (1, 1e-6)


def test_a_release_and_what_is_made_of_it(call, written, tmp_path):
    code, out, _ = call("release", written("by: noise"), "-o", tmp_path / "out", "--json")
    assert code == 0
    assert json.loads(out)["release"].endswith("combined.parquet")
    code, out, _ = call("verify", tmp_path / "out", "--json")
    assert code == 0
    assert json.loads(out)["valid"]
    files = sorted((tmp_path / "out" / "views").iterdir())
    checks = [check["name"] for check in json.loads(out)["checks"]]
    assert len(files) > 3
    assert {f"views/{file.name} is the file certified" for file in files} < set(checks)
    told = call("verify", tmp_path / "out")[1]
    assert told.count(f"the {len(files)} files in views/ are the files certified") == 1
    assert f"{files[0].name} is" not in told
    shutil.copytree(tmp_path / "out", tmp_path / "forged")
    (tmp_path / "forged" / "views" / files[1].name).write_bytes(b"x")
    told = call("verify", tmp_path / "forged")[1]
    assert f"✗ views/{files[1].name} is the file certified" in told
    assert f"the {len(files) - 1} files in views/ are" in told or f"views/{files[0].name} is the file" in told
    code, out, _ = call("estimate", tmp_path / "out", "--by", "sex,home")
    assert code == 0
    assert "modelled" in out
    for name in ("one.csv", "two.csv"):
        code, out, _ = call("combine", tmp_path / "out", "--rows", 300, "--seed", 4, "-o", tmp_path / name, "--json")
        assert code == 0
        assert json.loads(out)["rows"] == 300
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    code, out, _ = call("combine", tmp_path / "out", "--rows", 300, "--seed", 4, "--json")
    assert code == 0
    assert Path(json.loads(out)["output"]) == tmp_path / "out.combined.parquet"
    assert pq.read_schema(tmp_path / "out.combined.parquet").metadata[b"synthetic"] == b"true"
    assert call("combine", tmp_path / "out", "--seed", 4)[0] == 2, "it is not written over"
    assert call("verify", tmp_path / "out")[0] == 0
    code, _, err = call("combine", tmp_path / "out", "-o", tmp_path / "three.txt")
    assert code == 2
    assert "output-format" in err


def test_views_alone_name_their_folder(call, written, tmp_path):
    code, out, _ = call("release", written("views: [[sex, job]], combine: none"), "-o", tmp_path / "out", "--json")
    assert code == 0
    assert json.loads(out)["release"].endswith("views")


def test_too_many_views_are_refused_as_a_budget_is(call, written, tmp_path):
    path = written("views: [[sex, job], [sex, home]]")
    path.write_text(path.read_text(encoding="utf-8").replace("epsilon: 2", "epsilon: 0.004"), encoding="utf-8")
    code, _, err = call("release", path, "-o", tmp_path / "out")
    assert code == 3
    assert "views-too-many" in err
    assert not (tmp_path / "out").exists()
