"""What it gains to count in a database, against streaming the rows it holds and counting them here.

The same table, a million people, in PostgreSQL (a server of our own) and in SQLite: once with few distinct rows, once
with a floating-point number in each row that is cut into ten bins. Histograms are compared before anything is timed.
Where nothing is cut into bins, the bare GROUP BY of the same columns stands beside it.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from bench.measuring import Row, in_turns, main
from incrowd.domain import Bins, Categories, Coding, IntegerRange
from incrowd.sources import open_source
from incrowd.sources.databases import DatabaseSource

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


def people(rows: int) -> pa.Table:
    rng = np.random.default_rng(8)
    return pa.table(
        {
            "sex": np.array(["f", "m", "x"])[rng.choice(3, rows, p=[0.5, 0.49, 0.01])],
            "town": np.array(TOWNS)[(40 * rng.random(rows) ** 3).astype(int)],
            "age": (100 * rng.random(rows) ** 2).astype(np.int32),
            "children": rng.integers(0, 4, rows, dtype=np.int32),
            "income": 100 * rng.random(rows),
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


def run(quick: bool = False) -> Iterator[Row]:
    """Counting in the database against streaming its rows, and against its bare GROUP BY."""
    rows, repeats = (20_000, 1) if quick else (1_000_000, 3)
    with places(people(rows)) as databases:
        if not databases:
            yield Row("SQLite, few", "counting in databases", note="neither driver is installed (postgres, sqlite)")
        for name, (address, connection) in databases.items():
            for shape, codings in SHAPES.items():
                source = open_source(address, table="people")
                columns = ", ".join(f'"{coding.column}"' for coding in codings)

                def bare(connection: Any = connection, columns: str = columns) -> None:
                    with connection.cursor() as cursor:
                        cursor.execute(f"SELECT {columns}, count(*) FROM people GROUP BY {columns}")
                        cursor.fetch_arrow_table()

                works = {
                    "there": lambda s=source, c=codings: s.count_by(c),
                    "streamed": lambda s=source, c=codings: _Streamed(s).count_by(c),
                    **({"bare": bare} if shape == "few distinct rows" else {}),
                }
                assert works["there"]() == works["streamed"](), "both ways must count the same"
                took = in_turns(works, repeats)
                key, what = f"{name}, {shape.split()[0]}", f"counting {rows:,} rows in {name}, {shape}"
                yield Row(key, what, took["there"], "streaming the rows", took["streamed"])
                if "bare" in took:
                    yield Row(f"{key}, bare", what, took["there"], "its bare GROUP BY", took["bare"])


if __name__ == "__main__":
    main(run)
