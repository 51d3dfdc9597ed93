"""Tables of nearly distinct tuples: cells that stay in the engine, and the most memory that a release takes.

Half of the rows are one of 20 thousand tuples (fewer in small tables), the others are all but unique, in eight
columns of ten million million million possible tuples; with `--different`, so many are all but unique. Levels are
fixed: as the values are, so that the engine has a cell for every other row, and coarse; with `--choose` they are chosen
privately, and a tree is grown, by counts of cells that stay in the engine. DuckDB may use half of the memory that is
given, and turns to temporary files. Targets: 8 GB for all of it on one machine; on Spark, 2 GB for the driver, of which
Java's heap may have one, with two executors of 2 GB.

It takes long, so it is not part of `make bench`: `python -m bench.cells --rows 400000000` is a table of 200 million
different tuples. `--spark` runs the same on a local cluster (`--rows 200000000 --different 50000000` takes some 30 GB
on disk at most), `--wide` looks at tables of many columns and of huge
domains instead. `--record` keeps what was found.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import duckdb

from bench.measuring import Row, Spent, command, measured, show
from bench.recording import afterwards, keep, machine, recorded
from bench.tables import new_folder, scratch

NAME = "cells"

COLUMNS = {"age": 100, "sex": 2, "area": 1000, "job": 500, "school": 16, "income": 100, "household": 10, "day": 365}
COARSE = {"age": 10, "area": 100, "job": 100, "income": 50, "day": 365}
FREQUENT = 20_000
SHAPES = {"fine": "levels as they are", "coarse": "coarse levels"}
CHOICES = {"chosen": "levels chosen privately", "tree": "a tree"}
HOW = {"chosen": ", selection_epsilon: 0.5", "tree": ", recoding: tree"}
ROWS, GIGABYTES = 400_000_000, 8
WIDE = {
    "100 columns": ("100 columns", (4,) * 100, 5),
    "million codes": ("2 columns of a million codes and 6 of 4", (10**6, 10**6, *(4,) * 6), 4),
}


@cache
def nearly_distinct(rows: int, different: int) -> Path:
    """A Parquet file; so many of the rows are all but unique."""
    path = scratch() / f"nearly-distinct-{rows}-{different}.parquet"
    columns = ", ".join(
        f"CAST(hash(who * 100 + {number}) % {size} AS INTEGER) AS {name}"
        for number, (name, size) in enumerate(COLUMNS.items())
    )
    frequent = f"-1 - (hash(i) % {min(FREQUENT, rows // 200)})::BIGINT"
    who = f"CASE WHEN i % {rows // different} = 0 THEN i ELSE {frequent} END AS who"
    with duckdb.connect(config={"memory_limit": "1GB", "preserve_insertion_order": "false"}) as connection:
        connection.execute(
            f"COPY (SELECT {columns} FROM (SELECT {who} FROM range({rows}) AS r(i))) TO '{path}' (FORMAT parquet)"
        )
    return path


def policy(shape: str) -> str:
    """Every level is fixed, or they are chosen."""
    lines = []
    for name, size in COLUMNS.items():
        width, level = COARSE.get(name), "" if shape in CHOICES else f", level: {int(shape == 'coarse')}"
        grouped = "" if width is None else f", hierarchy: {{widths: [{width}]}}{level}"
        lines.append(f"  {name}: {{type: integer, domain: {{from: 0, to: {size - 1}}}{grouped}}}")
    release = f"release: {{mechanism: sampled_crowd, epsilon: 1, delta: 1e-9{HOW.get(shape, '')}}}"
    return "\n".join(["incrowd: 1", "rows_are_people: true", "attributes:", *lines, release, ""])


def wide_table(rows: int, sizes: Sequence[int]) -> Path:
    """Columns of independent values."""
    path = new_folder() / "wide.parquet"
    columns = ", ".join(f"CAST(hash(i * 1000 + {n}) % {size} AS INTEGER) AS c{n}" for n, size in enumerate(sizes))
    with duckdb.connect(config={"memory_limit": "1GB"}) as connection:
        connection.execute(f"COPY (SELECT {columns} FROM range({rows}) AS r(i)) TO '{path}' (FORMAT parquet)")
    return path


def wide_policy(sizes: Sequence[int], coarse: int) -> str:
    """The first columns as they are, up to thousands of values; all others so coarse that all values are alike."""
    lines = []
    for n, size in enumerate(sizes):
        width = max(2, size // 10)
        level = 2 if n >= coarse else int(size > 1000)
        domain = f"type: integer, domain: {{from: 0, to: {size - 1}}}, hierarchy: {{widths: [{width}]}}"
        lines.append(f"  c{n}: {{{domain}, level: {level}}}")
    release = "release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-9}"
    return "\n".join(["incrowd: 1", "rows_are_people: true", "attributes:", *lines, release, ""])


# The limit is for addresses, of which twice as many are used as of memory.
_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 * {limit}, 2 * {limit}))
from incrowd.cli import incrowd
from incrowd.cli._shell import run
sys.exit(run(incrowd, {arguments!r}))
"""


def most_cells(rows: int) -> int:
    """How many cells are fetched at most: as many as if nothing is said, fewer of small tables."""
    return min(10_000_000, rows // 4)


def released(text: str, data: Path, gigabytes: float, most: int = most_cells(ROWS)) -> Spent:
    """`incrowd release` with this policy, in a process that may use so much memory."""
    folder = new_folder()
    (folder / "policy.yaml").write_text(text, encoding="utf-8")
    given = ["release", str(folder / "policy.yaml"), "-o", str(folder / "out"), "--data", str(data), "--json"]
    given += ["--most-cells", str(most)]
    took = command("python", "-c", _LIMITED.format(limit=int(gigabytes * 1e9), arguments=given))
    assert (folder / "out" / "certificate.json").is_file(), "the command must have released something"
    return took


def run(
    quick: bool = False, rows: int = ROWS, gigabytes: float = GIGABYTES, shapes: Mapping[str, str] = SHAPES
) -> Iterator[Row]:
    """The release command on nearly distinct tuples."""
    if quick:
        rows, gigabytes = 400_000, 4
    data = nearly_distinct(rows, rows // 2)
    for key, levels in shapes.items():
        took = released(policy(key), data, gigabytes, most_cells(rows))
        name = f"release command, {rows:,} rows, {rows // 2:,} different tuples, {levels}, {gigabytes:g} GB given"
        figures = {"rows": rows}
        yield Row(key, name, took, target=1000 * gigabytes, target_for="megabytes", figures=figures)


def run_wide(quick: bool = False) -> Iterator[Row]:
    """Many columns, and columns of a million codes: a million rows, all but distinct."""
    rows = 20_000 if quick else 1_000_000
    for key, (shown, sizes, coarse) in WIDE.items():
        took = released(wide_policy(sizes, coarse), wide_table(rows, sizes), GIGABYTES)
        yield Row(key, f"release command, {rows:,} rows, {shown}", took, figures={"rows": rows})


_ON_SPARK = """
import json
from pathlib import Path
from pyspark.sql import SparkSession
from bench.spark_release import family_seconds, peak_megabytes
from incrowd import api
from incrowd.policy import Policy
settings = {{
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "1g",
    "spark.executor.memory": "2g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
}}
spark = SparkSession.builder.master("local-cluster[2,1,2560]").config(map=settings).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
java = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
made = api.release(spark.read.parquet({data!r}), Policy.from_file({policy!r}), rehearse=True, most_cells={most})
assert made.load().total, "something must have been released"
Path({found!r}).write_text(json.dumps([family_seconds(java), peak_megabytes(java)]))
"""


def run_spark(
    quick: bool = False, rows: int = ROWS, different: int | None = None, shapes: Mapping[str, str] = SHAPES
) -> Iterator[Row]:
    """The same on a cluster of two executors.

    Processor time is the driver's and the executors', memory the driver's alone: what Python and what Java had at most.
    """
    if importlib.util.find_spec("pyspark") is None or not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        yield Row("spark, coarse", "release on Spark", note="PySpark or Java is not installed")
        return
    rows, different = (400_000, 100_000) if quick else (rows, different or rows // 2)
    data = nearly_distinct(rows, different)
    for key, levels in shapes.items():
        folder = new_folder()
        (folder / "policy.yaml").write_text(policy(key), encoding="utf-8")
        names = {"data": str(data), "policy": str(folder / "policy.yaml"), "found": str(folder / "java.json")}
        # Executors of a local cluster work in the folder that this names, whatever the session's settings.
        work = _ON_SPARK.format(**names, most=most_cells(rows))
        python = command("env", f"SPARK_LOCAL_DIRS={folder}", sys.executable, "-c", work)
        seconds, megabytes = json.loads((folder / "java.json").read_text(encoding="utf-8"))
        took = Spent(python.seconds, python.cpu + seconds, (python.megabytes or 0) + megabytes)
        name = f"release on Spark, {rows:,} rows, {different:,} different tuples, {levels}, Java's heap of 1 GB"
        yield Row(f"spark, {key}", name, took, target=2000, target_for="megabytes", figures={"rows": rows})
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--different", type=int, help="how many of them are all but unique; half, if nothing is said")
    parser.add_argument("--gigabytes", type=float, default=GIGABYTES)
    parser.add_argument("--spark", action="store_true", help="on a local cluster of two executors instead")
    parser.add_argument("--choose", action="store_true", help="levels that are chosen, and a tree")
    parser.add_argument("--wide", action="store_true", help="many columns and huge domains instead")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it works")
    parser.add_argument("--record", action="store_true", help="keep the result in bench/recorded.json")
    options = parser.parse_args()
    made = machine(quick=options.quick)
    shapes = CHOICES if options.choose else SHAPES
    work: Callable[[bool], Iterator[Row]] = partial(run, rows=options.rows, gigabytes=options.gigabytes, shapes=shapes)
    if options.spark:
        work = partial(run_spark, rows=options.rows, different=options.different, shapes=shapes)
    if options.wide:
        work = run_wide
    rows = show(measured(work, options.quick))
    if options.record:
        others = [row for row in recorded().rows(NAME) if row.key not in {new.key for new in rows}]
        keep({NAME: [*others, *rows]}, afterwards(made))


if __name__ == "__main__":
    main()
