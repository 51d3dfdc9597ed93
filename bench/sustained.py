"""What goes on for long: a thousand releases in one process, many processes at one ledger, a day of a collector.

*Releases.* Target: at most 10 MB more behind the last release than behind the tenth. Each is a release in Python of the
same table of five thousand people, with certificate and reports; nothing is written. Memory is what is resident, after
collecting garbage.

*Ledger.* Thirty-two processes charge one ledger until its budget is spent: exactly what fits must be charged.

*Collector.* What comes in a day, five records a second, comes in ten minutes, paced, over 64 connections; then the
service is killed. Nothing that it acknowledged may be lost, and its memory must stay as it is: at most 10 MB more in
the end than after a tenth of the time.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bench.collector import CONNECTIONS, day_of
from bench.measuring import Row, Spent, command, main, spent
from bench.tables import new_folder

ROWS, WARM, MOST_MORE = 5000, 10, 10.0
POLICY = """
incrowd: 1
rows_are_people: true
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1}
  sex: {domain: [f, m]}
  job: {domain: [baker, smith, teacher]}
release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-6}
"""


PROCESSES, CHARGES = 32, 64
DAY, SECONDS = 86_400 * 5, 600.0

_CHARGER = """
import sys
from incrowd.core.errors import BudgetError
from incrowd.mechanisms.promises import Entry, Point
from incrowd.releases.ledger import Ledger
from incrowd.theory.profile import Relation
ledger, charged = Ledger(sys.argv[1]), 0
try:
    while True:
        ledger.charge("people", Entry("test", Point(0.5, 0.0, Relation.ADD_REMOVE), ""))
        charged += 1
except BudgetError:
    print(charged)
"""


def resident(process: str = "self") -> float:
    """Megabytes."""
    gc.collect()
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def work(releases: int, result: Path) -> None:
    """So many releases, and the memory behind some of them."""
    import pyarrow as pa

    from incrowd import api
    from incrowd.policy import Policy

    rng = np.random.default_rng(1)
    people = pa.table(
        {
            "age": rng.integers(0, 100, ROWS),
            "sex": rng.choice(["f", "m"], ROWS),
            "job": rng.choice(["baker", "smith", "teacher"], ROWS),
        }
    )
    plan, after = Policy.from_text(POLICY), {}
    for number in range(1, releases + 1):
        api.release(people, plan)
        if number in (WARM, releases):
            after[number] = resident()
    result.write_text(json.dumps([after[WARM], after[releases]]), encoding="ascii")


def _at_one_ledger(processes: int, charges: int) -> None:
    from incrowd.releases.ledger import Ledger
    from incrowd.theory.profile import Relation

    path = new_folder() / "ledger.db"
    Ledger(path).set_budget("people", charges / 2, 0.0, Relation.ADD_REMOVE)

    def one(_: int) -> int:
        done = subprocess.run([sys.executable, "-c", _CHARGER, path], capture_output=True, text=True, check=True)
        return int(done.stdout)

    with ThreadPoolExecutor(processes) as starters:
        charged = sum(starters.map(one, range(processes)))
    assert charged == charges == Ledger(path).statement("people").spent.releases


def run(quick: bool = False) -> Iterator[Row]:
    """Many releases in one process, many processes at one ledger, and a day of a collector."""
    releases = 30 if quick else 1000
    result = new_folder() / "memory.json"
    took = command("python", "-m", "bench.sustained", str(releases), result)
    before, after = json.loads(result.read_text(encoding="ascii"))
    yield Row(
        "releases",
        f"{releases:,} releases in one process",
        took,
        target=before + MOST_MORE,
        target_for="megabytes",
        figures={f"megabytes after {WARM}": round(before, 1), f"after {releases:,}": round(after, 1)},
    )
    processes, charges = (4, 8) if quick else (PROCESSES, CHARGES)
    name = f"{processes} processes at one ledger, {charges} charges that fit and as many refusals as processes"
    yield Row("ledger", name, spent(lambda: _at_one_ledger(processes, charges), lambda: sum(os.times()[:4])))
    records, seconds = (200, 2.0) if quick else (DAY, SECONDS)
    day = day_of(records, seconds, resident)
    yield Row(
        "collector",
        f"{records:,} records in {seconds:.0f} s over {CONNECTIONS} connections, then kill -9",
        Spent(seconds, day.cpu, day.after),
        target=day.before + MOST_MORE,
        target_for="megabytes",
        figures={"median wait in ms": day.median, "99% within ms": day.most, "acknowledged": day.stored, "lost": 0},
    )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        work(int(sys.argv[1]), Path(sys.argv[2]))
    else:
        main(run)
