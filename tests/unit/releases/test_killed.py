"""Killed at any moment: releases are there whole or not at all, and the ledger never counts less than was spent."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pytest

from incrowd import api

KILLS, AT_ONCE = int(os.environ.get("INCROWD_KILLS", "104")), 8

# A process of its own imports everything and then only forks, waits and kills: its children start at once, so that
# the kills fall on the work and not on imports. All mechanisms take turns, those that can with several copies.
KILLER = """
import contextlib, importlib, json, os, random, signal, sys, time
from pathlib import Path
import numpy as np, pyarrow as pa
from incrowd import api
from incrowd.policy import Policy

folder, kills, at_once = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
kinds = json.loads(sys.argv[4])
policies = [Policy.from_text(f'''
incrowd: 1
attributes:
  age: {{type: integer, domain: {{from: 0, to: 99}}, hierarchy: {{widths: [10, 50]}}, level: 1}}
  sex: {{domain: [f, m]}}
release: {{{release}}}
ledger: {{path: ledger.sqlite, dataset: {dataset}, epsilon: 100, delta: 0.9, relation: replace-one}}
''', base=folder) for dataset, release, _ in kinds]
rng = np.random.default_rng(1)
ages, sexes = rng.integers(0, 100, 3000), rng.choice(["f", "m"], 3000)

def start(name, which, most=10**9, **options):
    child = os.fork()
    if child:
        return child
    table = pa.table({"age": ages, "sex": sexes})
    dataset, _, copies = kinds[which]
    for number in range(most):
        place = folder / f"{dataset}.{name}.{number}"
        api.release_copies(table, policies[which], copies=copies, folder=place, **options)
    os._exit(0)

# First children show what a release imports, and begin the ledger.
for which, (dataset, _, _) in enumerate(kinds):
    os.waitpid(start("first", which, most=1, new_ledger=True), 0)
for module in (
    "incrowd.releases.executors incrowd.releases.folders incrowd.mechanisms.sampled_crowd.report "
    "incrowd.mechanisms.pram.report incrowd.mechanisms.generalization.report incrowd.mechanisms.sample.report "
    "pyarrow.parquet flint scipy.special"
).split():
    with contextlib.suppress(Exception):
        importlib.import_module(module)

# How long a release takes here and now: kills fall before, during and after the first one of each child.
began = time.monotonic()
for child in [start(f"unharmed{i}", i % len(kinds), most=1) for i in range(at_once)]:
    os.waitpid(child, 0)
usual = time.monotonic() - began

chance = random.Random(7)
for batch in range(kills // at_once):
    children = [start(f"b{batch}c{i}", (batch + i) % len(kinds)) for i in range(at_once)]
    time.sleep(chance.uniform(0.1, 2.2) * usual)
    for child in children:
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, "a child ended by itself"
"""

KINDS = [
    ("crowd", "mechanism: sampled_crowd, epsilon: 1, delta: 1e-5, beta: 0.4", 1),
    ("crowds", "mechanism: sampled_crowd, epsilon: 1, delta: 1e-5, beta: 0.4", 5),
    ("prams", "mechanism: pram, rho: 0.2", 3),
    ("sample", "mechanism: sample, epsilon: 0.5, delta: 0.05", 1),
    ("general", "mechanism: generalization, require: {k: 2}", 1),
]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")
def test_a_hundred_kills(tmp_path):
    arguments = [str(tmp_path), str(KILLS), str(AT_ONCE), json.dumps(KINDS)]
    subprocess.run([sys.executable, "-c", KILLER, *arguments], check=True)
    visible = [p for p in tmp_path.iterdir() if p.is_dir() and not p.name.startswith(".")]
    public = [p for p in visible if p.suffix != ".internal"]
    assert len(public) > 20, "hardly anything was released before the kills; the test shows nothing"
    for folder in public:
        assert folder.with_name(f"{folder.name}.internal").is_dir()
        assert sorted(p.name for p in folder.iterdir()) == [
            "certificate.json",
            "datapackage.json",
            "release.parquet",
            "report.html",
        ]
    for folder in public[:: max(1, len(public) // 20)]:
        assert api.verify(folder).valid
    for dataset, _, copies in KINDS:
        mine = [p.name for p in public if p.name.split(".")[0] == dataset]
        made = {name.rpartition("-")[0] if copies > 1 else name for name in mine}
        if copies > 1:
            assert sorted(mine) == sorted(f"{name}-{i + 1}" for name in made for i in range(copies)), "some, not all"
        lines = api.ledger_statement(tmp_path / "ledger.sqlite", dataset).to_dict()["releases"]
        assert {line["copies"] for line in lines} == {copies}
        assert len(lines) >= len(made) >= sum(line["state"] == "published" for line in lines)
    # The next run sweeps what the killed ones have left.
    policy = next(tmp_path.glob("crowd.*.internal")) / "policy.yaml"
    rows = {"age": [i % 100 for i in range(3000)], "sex": ["f", "m"] * 1500}
    api.release(pa.table(rows), policy, folder=tmp_path / "last")
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]
    assert not [p.name for p in tmp_path.iterdir() if p.is_symlink()]
    assert {p.name for p in public} <= {p.name for p in tmp_path.iterdir()}
