"""What it gains to count in a database, against streaming the rows it holds and counting them here.

The same table, a million people, in PostgreSQL (a server of our own) and in SQLite: once with few distinct rows, once
with a floating-point number in each row that is cut into ten bins. Histograms are compared before anything is timed.
Times are medians of several runs; beside them stands the bare GROUP BY of the same columns, as far as there is one.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.domain import Bins, Categories, Coding, IntegerRange
from incrowd.sources import open_source
from incrowd.sources.databases import DatabaseSource

ROWS, RUNS = 1_000_000, 3
TOWNS = tuple(f"town number {i}" for i in range(40))
PLAIN = [
    Coding("sex", Categories(("f", "m", "x"))),
    Coding("town", Categories(TOWNS)),
    Coding("age", IntegerRange(0, 99)),
    Coding("children", IntegerRange(0, 9)),
]
SHAPES = {
    "few distinct rows": PLAIN,
    "a number in bins": [*PLAIN[:2], Coding("income", Bins(tuple(map(float, range(0, 101, 10)))))],
}


class _Streamed(DatabaseSource):
    """The same table, its rows fetched and counted here."""

    def __init__(self, source: DatabaseSource) -> None:
        super().__init__(source._remote, source.options)  # noqa: SLF001

    def _gather(self, scan: Any, wanted: Any) -> tuple[str, str | None]:
        return scan(list(wanted)), None


def people() -> pa.Table:
    rng = np.random.default_rng(8)
    return pa.table(
        {
            "sex": np.array(["f", "m", "x"])[rng.choice(3, ROWS, p=[0.5, 0.49, 0.01])],
            "town": np.array(TOWNS)[(40 * rng.random(ROWS) ** 3).astype(int)],
            "age": (100 * rng.random(ROWS) ** 2).astype(np.int32),
            "children": rng.integers(0, 4, ROWS, dtype=np.int32),
            "income": 100 * rng.random(ROWS),
        }
    )


def servers() -> ModuleType:
    """What the tests start their server with."""
    path = Path(__file__).parents[1] / "tests" / "databases.py"
    spec = importlib.util.spec_from_file_location("databases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def places(table: pa.Table) -> Iterator[dict[str, tuple[str, Any]]]:
    """The databases with the table in them: an address for each, and an open connection."""
    with ExitStack() as stack:
        found = {}
        if importlib.util.find_spec("adbc_driver_postgresql") and servers().server_programs():
            import adbc_driver_postgresql.dbapi as postgresql

            address = stack.enter_context(servers().postgresql_server())
            connection = stack.enter_context(postgresql.connect(address))
            with connection.cursor() as cursor:
                cursor.adbc_ingest("people", table)
                cursor.execute("ANALYZE people")
            connection.commit()
            found["PostgreSQL"] = address, connection
        if importlib.util.find_spec("adbc_driver_sqlite"):
            import adbc_driver_sqlite.dbapi as sqlite

            path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "people.db"
            connection = stack.enter_context(sqlite.connect(path.as_uri()))
            with connection.cursor() as cursor:
                cursor.adbc_ingest("people", table)
            connection.commit()
            found["SQLite"] = f"sqlite:///{path}", connection
        yield found


def median(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    table = people()
    with places(table) as databases:
        if not databases:
            print("Neither driver is installed (extras 'postgres' and 'sqlite').")
        for name, (address, connection) in databases.items():
            for shape, codings in SHAPES.items():
                source = open_source(address, table="people")
                columns = ", ".join(f'"{coding.column}"' for coding in codings)

                def pushed(source: Any = source, codings: list[Coding] = codings) -> Any:
                    return source.count_by(codings)

                def streamed(source: Any = source, codings: list[Coding] = codings) -> Any:
                    return _Streamed(source).count_by(codings)

                def bare(connection: Any = connection, columns: str = columns) -> None:
                    with connection.cursor() as cursor:
                        cursor.execute(f"SELECT {columns}, count(*) FROM people GROUP BY {columns}")
                        cursor.fetch_arrow_table()

                if pushed() != streamed():
                    sys.exit(f"{name}: the two ways do not count the same")
                here, there = median(streamed), median(pushed)
                least = f"{median(bare):.2f} s" if shape == "few distinct rows" else "none"
                times = f"streamed {here:.2f} s, counted there {there:.2f} s, ratio {there / here:.2f}"
                print(f"  {name:10} {shape:17} {times}, bare GROUP BY {least}", flush=True)


if __name__ == "__main__":
    main()
