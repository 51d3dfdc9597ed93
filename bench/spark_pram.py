"""What it costs that executors redraw and write a table, against Spark reading and writing the same table as it is.

Five million rows of three million tuples, all values redrawn. Target: at most twice what Spark takes to read the table
and write it again. A randomised table must not keep the order of its records, so the second comparison is with Spark
reading, sorting and writing it. All in one session of two threads on this machine; processor time is that of the
driver, of Java and of the executors' Python. Needs the extra `spark` and Java.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.measuring import Row, in_turns, main
from bench.spark_release import can_run, family_seconds, session
from bench.tables import FIELDS, FIRST_DAY, Field, new_folder, people
from incrowd import api
from incrowd.policy import Policy

ROWS, TUPLES = 5_000_000, 3_000_000


def domain(field: Field) -> str:
    """A field's line in a policy."""
    if field.kind == "text":
        return f"  {field.name}: {{domain: [{', '.join(field.labels)}]}}"
    if field.kind == "date":
        return f"  {field.name}: {{type: date, domain: {{from: {FIRST_DAY}, to: {field.last_day}}}}}"
    return f"  {field.name}: {{type: integer, domain: {{from: 0, to: {field.size - 1}}}}}"


def policy() -> Policy:
    """Every value of every record is redrawn with probability 0.2."""
    lines = ["incrowd: 1", "rows_are_people: true", "attributes:", *map(domain, FIELDS)]
    return Policy.from_text("\n".join([*lines, "release: {mechanism: pram, rho: 0.8, output: parquet}", ""]))


def run(quick: bool = False) -> Iterator[Row]:
    """A randomised table by executors against Spark's own reading and writing."""
    if not can_run():
        yield Row("copy", "PRAM by executors", note="PySpark or Java is not installed")
        return
    rows, repeats = (ROWS // 100, 1) if quick else (ROWS, 3)
    spark, plan, pattern = session(), policy(), people(rows, TUPLES)
    process = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001
    columns = [f"`{field.name}`" for field in FIELDS]

    def gone(write: Callable[[Path], Any]) -> Callable[[], None]:
        def work() -> None:
            folder = new_folder() / "out"
            write(folder)
            shutil.rmtree(folder.parent, ignore_errors=True)

        return work

    works = {
        "copy": gone(lambda to: spark.read.parquet(pattern).write.parquet(str(to))),
        "sort": gone(lambda to: spark.read.parquet(pattern).orderBy(*columns).write.parquet(str(to))),
        "pram": gone(lambda to: api.release(spark.read.parquet(pattern), plan, folder=to, write_with="executors")),
    }
    for work in works.values():  # so that all are as warm
        work()
    took = in_turns(works, repeats, lambda: time.process_time() + family_seconds(process))
    name = f"PRAM by executors, {rows:,} rows, {TUPLES:,} tuples"
    yield Row("copy", name, took["pram"], "Spark reading and writing the table", took["copy"], target=2)
    yield Row("sort", name, took["pram"], "Spark reading, sorting and writing the table", took["sort"], target=2)
    spark.stop()


if __name__ == "__main__":
    main(run)
