"""What was measured last, and with what: bench/recorded.json, from which the README's table is made."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import json
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measuring import Row
from bench.rivals import HERE, installed_versions

RECORDED = HERE / "recorded.json"
LIBRARIES = ("incrowd", "duckdb", "pyspark", "numpy", "scipy", "pyarrow")


def machine(*, quick: bool) -> dict[str, Any]:
    """What the figures depend on; to be asked before anything is run, while all that is busy is others' work."""
    found = {name: importlib.metadata.version(name) for name in LIBRARIES if _there(name)}
    return {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gigabytes": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "busy": busy(),
        "quick": quick,
        "python": platform.python_version(),
        **found,
        **installed_versions(),
    }


def afterwards(machine: Mapping[str, Any]) -> dict[str, Any]:
    """The same once everything was run: other work may have begun meanwhile, so the larger share counts."""
    return {**machine, "busy": max(machine["busy"], busy())}


def busy(seconds: float = 2.0) -> float:
    """The share of the processors' time that goes to other work."""
    if not Path("/proc/stat").exists():
        return min(1.0, round(os.getloadavg()[0] / (os.cpu_count() or 1), 2))

    def times() -> tuple[int, int]:
        fields = Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=9)[1:9]
        return sum(map(int, fields)), int(fields[3]) + int(fields[4])

    total, idle = times()
    time.sleep(seconds)
    later, still_idle = times()
    return round(1 - (still_idle - idle) / max(later - total, 1), 2)


def _there(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    found = (
        re.search(r"^model name\s*: (.+)$", info.read_text(encoding="utf-8"), re.MULTILINE) if info.exists() else None
    )
    return found.group(1) if found else platform.processor()


@dataclass(frozen=True)
class Recorded:
    """The last figures of each benchmark.

    Attributes:
        runs: what each run was made with, by its date.
        benchmarks: for each benchmark, the run and its rows.
    """

    runs: Mapping[str, Mapping[str, Any]]
    benchmarks: Mapping[str, tuple[str, Sequence[Row]]]

    def rows(self, benchmark: str) -> list[Row]:
        """The rows of a benchmark, none if it was never recorded."""
        return list(self.benchmarks[benchmark][1]) if benchmark in self.benchmarks else []

    def row(self, benchmark: str, key: str) -> Row | None:
        """One row."""
        return next((row for row in self.rows(benchmark) if row.key == key), None)

    def run_of(self, benchmark: str) -> Mapping[str, Any]:
        """What a benchmark was run with."""
        return self.runs[self.benchmarks[benchmark][0]]


def recorded(path: Path = RECORDED) -> Recorded:
    """What is in the file."""
    text = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": {}, "benchmarks": {}}
    benchmarks = {
        name: (part["run"], [Row.from_dict(row) for row in part["rows"]]) for name, part in text["benchmarks"].items()
    }
    return Recorded(text["runs"], benchmarks)


def keep(results: Mapping[str, Sequence[Row]], machine: Mapping[str, Any], path: Path = RECORDED) -> None:
    """Replaces the rows of these benchmarks; those of others stay, and so does what they were run with."""
    date = machine["date"]
    made = {name: value for name, value in machine.items() if name not in {"date", "seconds"}}
    before = recorded(path)
    benchmarks = dict(before.benchmarks) | {name: (date, rows) for name, rows in results.items()}
    used = {run for run, _ in benchmarks.values()}
    text = {
        "runs": {run: how for run, how in sorted({**before.runs, date: made}.items()) if run in used},
        "benchmarks": {
            name: {"run": run, "rows": [row.to_dict() for row in rows]}
            for name, (run, rows) in sorted(benchmarks.items())
        },
    }
    path.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
