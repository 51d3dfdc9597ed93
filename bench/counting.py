"""What counting costs against DuckDB's own GROUP BY of the same columns, and how much memory it takes.

Targets: 10 million rows of 8 columns in at most 1.3 times the bare GROUP BY's time in the same run, and 100 million
rows in less than 1 GB. The tables are made here, in a temporary folder: texts, whole numbers and a date (or whole
numbers only, which leave the engine least to do), drawn from a fixed number of tuples of very unequal frequencies.
"""

from __future__ import annotations

import datetime as dt
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.domain import Categories, Coding, DateRange, IntegerRange
from incrowd.histogram import Histogram
from incrowd.sources import open_source

ROWS, MEMORY_ROWS, PART = 10_000_000, 100_000_000, 5_000_000
TIME_TARGET, MEMORY_TARGET = 1.3, 1000
SHAPES = {
    "30 thousand tuples": (30_000, False),
    "3 million tuples": (3_000_000, False),
    "30 thousand tuples of numbers": (30_000, True),
    "3 million tuples of numbers": (3_000_000, True),
}
MEMORY_SHAPES = ("30 thousand tuples", "3 million tuples")

FIRST_DAY = dt.date(2020, 1, 1)
TEXTS = {
    "sex": 2,
    "race": 5,
    "marital status": 7,
    "education": 16,
    "occupation": 14,
    "native country": 41,
}


def codings(numbers: bool) -> list[Coding]:
    texts = [
        Coding(name, IntegerRange(0, size - 1) if numbers else Categories(tuple(labels(name))))
        for name, size in TEXTS.items()
    ]
    days = IntegerRange(0, 364) if numbers else DateRange(FIRST_DAY, FIRST_DAY + dt.timedelta(days=364))
    return [*texts, Coding("age", IntegerRange(0, 99)), Coding("admitted", days)]


def labels(name: str) -> list[str]:
    return [f"{name} number {i}" for i in range(TEXTS[name])]


def write_table(folder: Path, rows: int, tuples: int, numbers: bool) -> None:
    """Parquet files of the given number of rows in all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sizes = TEXTS | {"age": 100, "admitted": 365}
    for part, start in enumerate(range(0, rows, PART)):
        rng = np.random.default_rng(part)
        chosen = (tuples * rng.random(min(PART, rows - start)) ** 3).astype(np.uint64)
        columns: dict[str, Any] = {}
        for number, (name, size) in enumerate(sizes.items()):
            columns[name] = pa.array(scattered(chosen, number, size).astype(np.int32))
            if not numbers and name in TEXTS:
                columns[name] = pa.DictionaryArray.from_arrays(columns[name], pa.array(labels(name)))
        if not numbers:
            first = (FIRST_DAY - dt.date(1970, 1, 1)).days
            columns["admitted"] = pa.array(columns["admitted"].to_numpy() + np.int32(first)).cast(pa.date32())
        pq.write_table(pa.table(columns), folder / f"part-{part:03}.parquet")


def scattered(numbers: np.ndarray, stream: int, size: int) -> np.ndarray:
    """A fixed value below `size` for each number, different in each stream."""
    mixed = (numbers + np.uint64(stream * 7919 + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(33)) % np.uint64(size)


def count(folder: Path, numbers: bool) -> Histogram:
    return open_source(folder / "*.parquet").count_by(codings(numbers))


def group_by(folder: Path, numbers: bool) -> int:
    """The bare query, with the engine's own settings but for the order, which nobody needs."""
    import duckdb

    connection = duckdb.connect(config={"preserve_insertion_order": "false"})
    columns = ", ".join(f'"{coding.column}"' for coding in codings(numbers))
    query = f"SELECT {columns}, count(*) FROM read_parquet('{folder}/*.parquet') GROUP BY ALL"
    groups: int = connection.sql(query).to_arrow_table().num_rows
    connection.close()
    return groups


def run(rows: int = ROWS, memory_rows: int = MEMORY_ROWS, repeats: int = 5) -> dict[str, dict[str, float]]:
    """Median seconds of both and their ratio, taking turns; then the largest memory of a process that counts."""
    results: dict[str, dict[str, float]] = {}
    for shape, (tuples, numbers) in SHAPES.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_table(folder, rows, tuples, numbers)
            cells = len(count(folder, numbers))
            if cells != group_by(folder, numbers):
                raise AssertionError("both must find the same groups")
            turns = [(seconds(count, folder, numbers), seconds(group_by, folder, numbers)) for _ in range(repeats)]
            ours, bare = (statistics.median(turn[i][0] for turn in turns) for i in (0, 1))
            our_cpu, bare_cpu = (statistics.median(turn[i][1] for turn in turns) for i in (0, 1))
            results[f"{rows:,} rows, {shape}"] = {
                "cells": cells,
                "incrowd_seconds": ours,
                "group_by_seconds": bare,
                "ratio": ours / bare,
                "cpu_ratio": our_cpu / bare_cpu,
            }
    for shape in MEMORY_SHAPES:
        with tempfile.TemporaryDirectory() as name:
            write_table(Path(name), memory_rows, *SHAPES[shape])
            results[f"memory, {memory_rows:,} rows, {shape}"] = measured_apart(Path(name))
    return results


def seconds(work: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Elapsed and processor seconds."""
    elapsed, cpu = time.perf_counter(), time.process_time()
    work(*arguments)
    return time.perf_counter() - elapsed, time.process_time() - cpu


def measured_apart(folder: Path) -> dict[str, float]:
    """Counts in a process of its own, which tells its cells, seconds and peak memory."""
    done = subprocess.run([sys.executable, __file__, str(folder)], check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def peak_megabytes() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike ru_maxrss, this does not begin with what the parent process had.
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> None:
    if len(sys.argv) > 1:
        elapsed, histogram = time.perf_counter(), count(Path(sys.argv[1]), numbers=False)
        print(
            json.dumps(
                {
                    "cells": len(histogram),
                    "incrowd_seconds": time.perf_counter() - elapsed,
                    "peak_megabytes": peak_megabytes(),
                }
            )
        )
        return
    print(f"{'table':<48}{'cells':>10}{'incrowd':>10}{'GROUP BY':>10}{'ratio':>8}{'CPU':>7}{'memory':>10}")
    for name, row in run().items():
        bare = (
            f"{row['group_by_seconds']:>9.2f}s{row['ratio']:>8.2f}{row['cpu_ratio']:>7.2f}"
            if "ratio" in row
            else " " * 25
        )
        memory = f"{row['peak_megabytes']:>7.0f} MB" if "peak_megabytes" in row else ""
        print(f"{name:<48}{row['cells']:>10,.0f}{row['incrowd_seconds']:>9.2f}s{bare}{memory}")


if __name__ == "__main__":
    main()
