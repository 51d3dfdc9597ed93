"""What the main job costs on Spark against Spark's own aggregation of the same columns, on the same data in one run.

Target: at most 1.3 times the bare `groupBy(...).count()`, whose result is collected as Arrow too. The table is that of
`bench.counting`: 10 million rows of six texts, an age and a date. Both take turns after a round that is not measured,
in one session of two threads on this machine; medians are compared. Next to elapsed time stands the processor time of
driver and executors (one Java process here), which is less disturbed by what else the machine does.

Needs the extra `spark` and Java; without them it says so and does nothing.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.counting import FIRST_DAY, TEXTS, codings, labels, write_table
from incrowd import api
from incrowd.policy import Policy
from incrowd.sources import open_source

ROWS, TARGET, REPEATS = 10_000_000, 1.3, 3
SHAPES = {"30 thousand tuples": 30_000, "3 million tuples": 3_000_000}


def session() -> Any:
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    made = SparkSession.builder.master("local[2]").appName("incrowd bench").config(map=settings).getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def policy() -> Policy:
    """Everything at a fixed level, so that nothing but the main job's own steps is measured."""
    texts = "\n".join(f"  {name}: {{domain: [{', '.join(labels(name))}]}}" for name in TEXTS)
    year = f"from: {FIRST_DAY}, to: {FIRST_DAY.replace(month=12, day=30)}"
    return Policy.from_text(
        f"incrowd: 1\nattributes:\n{texts}\n"
        "  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1}\n"
        f"  admitted: {{type: date, domain: {{{year}}}, hierarchy: {{dates: [year]}}, level: 1}}\n"
        "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-6, beta: 0.5}\n"
    )


def run(rows: int = ROWS, repeats: int = REPEATS) -> Iterator[tuple[str, dict[str, float]]]:
    """Median seconds and their ratio to the bare aggregation, of counting alone and of the main job."""
    spark = session()
    process = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001
    plan = policy()
    for shape, tuples in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            write_table(Path(folder), rows, tuples, numbers=False)
            columns = [f"`{coding.column}`" for coding in codings(numbers=False)]
            works: dict[str, Callable[[], int]] = {
                "groupBy": lambda f=folder, c=columns: spark.read.parquet(f).groupBy(*c).count().toArrow().num_rows,
                "count_by": lambda f=folder: len(open_source(spark.read.parquet(f)).count_by(codings(numbers=False))),
                "release": lambda f=folder: api.release(spark.read.parquet(f), plan).histogram.total,
            }
            if works["groupBy"]() != works["count_by"]():
                raise AssertionError("both must find the same groups")
            works["release"]()
            turns = [{name: seconds(work, process) for name, work in works.items()} for _ in range(repeats)]
        medians = {name: [statistics.median(turn[name][i] for turn in turns) for i in (0, 1)] for name in works}
        for name in ("count_by", "release"):
            yield (
                f"{rows:,} rows, {shape}, {name}",
                {
                    "incrowd_seconds": medians[name][0],
                    "group_by_seconds": medians["groupBy"][0],
                    "ratio": medians[name][0] / medians["groupBy"][0],
                    "cpu_ratio": medians[name][1] / medians["groupBy"][1],
                },
            )
    spark.stop()


def seconds(work: Callable[[], int], process: int) -> tuple[float, float]:
    """Elapsed seconds, and processor seconds of this process and the Java one."""
    elapsed, cpu = time.perf_counter(), time.process_time() + java_seconds(process)
    work()
    return time.perf_counter() - elapsed, time.process_time() + java_seconds(process) - cpu


def java_seconds(process: int) -> float:
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    if importlib.util.find_spec("pyspark") is None or not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        print("PySpark or Java is not installed: not measured")
        return
    print(f"{'table and work':<56}{'incrowd':>10}{'groupBy':>10}{'ratio':>8}{'CPU':>7}")
    for name, row in run(*map(int, sys.argv[1:])):
        print(
            f"{name:<56}{row['incrowd_seconds']:>9.2f}s{row['group_by_seconds']:>9.2f}s"
            f"{row['ratio']:>8.2f}{row['cpu_ratio']:>7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
