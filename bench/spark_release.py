"""What the main job costs on Spark against Spark's own aggregation of the same columns, on the same data in one run.

Target: at most 1.3 times the bare `groupBy(...).count()`, whose result is collected as Arrow too. Both take turns after
two rounds of each that are not measured, the first of which compares all groups and counts, in one session of two
threads on this machine. Processor time is that of driver and executors (one Java process here) and of Python. Needs the
extra `spark` and Java.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.measuring import Row, in_turns, main
from bench.tables import FIELDS, people, policy_text, require_same
from incrowd import api
from incrowd.policy import Policy
from incrowd.sources import open_source

ROWS = 10_000_000
SHAPES = {"few": ("30 thousand tuples", 30_000), "many": ("3 million tuples", 3_000_000)}


def can_run() -> bool:
    """Whether Spark and Java are here."""
    java = shutil.which("java") or os.environ.get("JAVA_HOME")
    return importlib.util.find_spec("pyspark") is not None and bool(java)


def session() -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # what executors run Python with
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


def run(quick: bool = False) -> Iterator[Row]:
    """The main job on Spark against the bare aggregation."""
    if not can_run():
        yield Row("few, release", "release on Spark", note="PySpark or Java is not installed")
        return
    repeats = 1 if quick else 3
    spark = session()
    process = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001
    plan = Policy.from_text(policy_text())
    codings = [field.coding for field in FIELDS]
    columns = [f"`{field.name}`" for field in FIELDS]
    rows = ROWS // 100 if quick else ROWS
    for key, (shape, tuples) in SHAPES.items():
        pattern = people(rows, tuples)
        works: dict[str, Callable[[], Any]] = {
            "bare": lambda p=pattern: spark.read.parquet(p).groupBy(*columns).count().toArrow(),
            "release": lambda p=pattern: api.release(spark.read.parquet(p), plan),
        }
        counted = open_source(spark.read.parquet(pattern)).count_by(codings)
        require_same(counted, works["bare"]())
        for work in works.values():  # so that both are as warm
            work()
        took = in_turns(works, repeats, lambda: time.process_time() + java_seconds(process))
        name = f"release on Spark, {rows:,} rows, {shape}, fixed levels"
        figures = {"rows": rows, "cells": len(counted)}
        yield Row(
            f"{key}, release", name, took["release"], "bare Spark groupBy", took["bare"], target=1.3, figures=figures
        )
    spark.stop()


def java_seconds(process: int) -> float:
    """The processor time of the Java process."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family_seconds(java: int) -> float:
    """The same, and that of what it started: executors and their Python, also of those of them that have ended."""
    return java_seconds(java) + children_seconds(java)


def children_seconds(java: int) -> float:
    """The processor time of the Java process's children and theirs, and of those of theirs that have ended."""
    total, parents = 0, {java}
    for _ in range(2):
        found = set()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:  # ended meanwhile
                continue
            if int(fields[1]) in parents:
                found.add(int(stat.parent.name))
                total += sum(map(int, fields[11:15]))
        parents = found
    return total / os.sysconf("SC_CLK_TCK")


def peak_megabytes(process: int) -> float:
    """The most memory that a process has had."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)[1]) / 2**10  # type: ignore[index]


if __name__ == "__main__":
    main(run)
