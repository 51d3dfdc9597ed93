"""Whether the studio's memory grows with the work that it has done: 200 jobs.

Read off the studio's own process, not those that do the work: they end with it. Compared are the median of the resident
memory over the first jobs after a start-up phase and over the last.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measuring import Row, main
from incrowd.studio.jobs import REMEMBERED, Job, Jobs

_FIRST = 40
"""By then libraries are loaded, and as much is remembered as ever will be."""


def run(quick: bool = False) -> Iterator[Row]:
    """Memory after the first jobs and after all of them."""
    jobs_in_all = 3 * REMEMBERED if quick else 200
    first = 2 * REMEMBERED if quick else _FIRST
    used = []
    with tempfile.TemporaryDirectory(prefix="incrowd-") as place:
        folder = Path(place)
        (folder / "table.csv").write_text("a,b\n" + "".join(f"{i % 97},{i % 13}\n" for i in range(2000)))
        (folder / "jobs").mkdir()
        jobs = Jobs(folder / "jobs")
        for _ in range(jobs_in_all):
            finished(jobs.start("count", asked_of(folder / "table.csv")))
            used.append(_resident())
        left = len(list((folder / "jobs").iterdir()))
        jobs.stop()
    span = max(5, len(used) - first) // 2
    early, late = statistics.median(used[first : first + span]), statistics.median(used[-span:])
    yield Row(
        f"{jobs_in_all} jobs",
        f"the studio's memory after {jobs_in_all} jobs",
        figures={"MiB early": early / 2**20, "MiB late": late / 2**20, "late / early": late / early, "folders": left},
    )


def asked_of(table: Path) -> dict[str, Any]:
    """What the studio's page on samples asks of a table."""
    return {"data": [str(table)], "columns": [], "counts": False, "reading": {}}


def finished(job: Job) -> None:
    """When a job is done, which it must be."""
    while job.state in ("waiting", "running"):
        time.sleep(0.01)
    if job.state != "done":
        raise SystemExit(f"a job ended as {job.state}: {job.error}")


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


if __name__ == "__main__":
    main(run)
