"""Killed at any moment: a release is there whole or not at all, and the ledger never counts less than was spent."""

import subprocess
import sys

from incrowd import api

KILLS, AT_ONCE = 200, 8

# A process of its own imports everything and then only forks, waits and kills: its children start at once, so that
# the kills fall on the work and not on imports.
KILLER = """
import contextlib, importlib, os, random, signal, sys, time
from pathlib import Path
import numpy as np, pyarrow as pa
from incrowd import api
from incrowd.policy import Policy

folder, kills, at_once = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
policy = Policy.from_text('''
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1}
  sex: {domain: [f, m]}
release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-5, beta: 0.4}
ledger: {path: ledger.sqlite, dataset: town, epsilon: 100, delta: 0.5}
''', base=folder)
rng = np.random.default_rng(1)
ages, sexes = rng.integers(0, 100, 3000), rng.choice(["f", "m"], 3000)

def start(name, most=10**9):
    child = os.fork()
    if child:
        return child
    table = pa.table({"age": ages, "sex": sexes})
    for number in range(most):
        api.release(table, policy, folder=folder / f"{name}-{number}")
    os._exit(0)

# A first child shows what a release imports.
if os.fork() == 0:
    api.release(pa.table({"age": ages, "sex": sexes}), policy, folder=folder / "first", new_ledger=True)
    (folder / "modules").write_text("\\n".join(sys.modules))
    os._exit(0)
os.wait()
for module in (folder / "modules").read_text().splitlines():
    with contextlib.suppress(Exception):
        importlib.import_module(module)

# How long a release takes here and now: kills fall before, during and after the first one of each child.
began = time.monotonic()
for child in [start(f"unharmed{i}", most=1) for i in range(at_once)]:
    os.waitpid(child, 0)
usual = time.monotonic() - began

chance = random.Random(7)
for batch in range(kills // at_once):
    children = [start(f"b{batch}c{i}") for i in range(at_once)]
    time.sleep(chance.uniform(0.1, 2.2) * usual)
    for child in children:
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, "a child ended by itself"
"""


def test_two_hundred_kills(tmp_path):
    subprocess.run([sys.executable, "-c", KILLER, str(tmp_path), str(KILLS), str(AT_ONCE)], check=True)
    public = [p for p in tmp_path.iterdir() if p.is_dir() and not p.name.startswith(".") and p.suffix != ".internal"]
    assert len(public) > 20, "hardly anything was released before the kills; the test shows nothing"
    for folder in public:
        assert folder.with_name(f"{folder.name}.internal").is_dir()
        assert sorted(p.name for p in folder.iterdir()) == ["certificate.json", "release.parquet", "report.html"]
    for folder in public[:: max(1, len(public) // 20)]:
        assert api.verify(folder).valid
    statement = api.ledger_statement(tmp_path / "ledger.sqlite", "town").to_dict()
    assert len(statement["releases"]) >= len(public)
    published = [line for line in statement["releases"] if line["state"] == "published"]
    assert len(published) <= len(public)
