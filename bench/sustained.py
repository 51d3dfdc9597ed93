"""A process that goes on for long: a thousand releases one after the other, and whether its memory stays as it is.

Target: at most 10 MB more behind the last release than behind the tenth. Each is a release in Python of the same table
of five thousand people, with certificate and reports; nothing is written. Memory is what is resident, after collecting
garbage.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.measuring import Row, command, main
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


def resident() -> float:
    """Megabytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
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


def run(quick: bool = False) -> Iterator[Row]:
    """Many releases in one process."""
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


if __name__ == "__main__":
    if len(sys.argv) == 3:
        work(int(sys.argv[1]), Path(sys.argv[2]))
    else:
        main(run)
