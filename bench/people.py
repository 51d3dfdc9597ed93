"""What it costs to count people instead of rows, against counting the rows of the same table.

Visits of 1.5 million people in Parquet, up to a dozen each. At most one row of each counts, whichever; or three, the
latest by a date. Each person's rows are sorted twice, so this is a sort of the table against a scan of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measuring import Row, in_turns, main
from incrowd.domain import Coding, IntegerRange
from incrowd.sources import open_source
from incrowd.sources.people import RowBound, count_people

VALUES = (100, 2, 12, 8, 5)
CODINGS = [Coding(f"a{i}", IntegerRange(0, size - 1)) for i, size in enumerate(VALUES)]
BOUNDS = {
    "one": ("one row of each", RowBound(("person",), 1, key="bench")),
    "latest": ("the latest three of each", RowBound(("person",), 3, ("day", True), key="bench")),
}


def visits(path: Path, rows: int) -> int:
    """Writes the table, and says how many people it has."""
    rng = np.random.default_rng(18)
    person = rng.integers(0, 3 * rows // 10, rows)
    columns = {f"a{i}": rng.integers(0, size, rows, dtype=np.int16) for i, size in enumerate(VALUES)}
    pq.write_table(pa.table({"person": person, "day": rng.integers(0, 365, rows, dtype=np.int16), **columns}), path)
    return len(np.unique(person))


def run(quick: bool = False) -> Iterator[Row]:
    """Bounding what a person contributes against the bare aggregation."""
    rows, repeats = (50_000, 1) if quick else (5_000_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        people = visits(path, rows)
        works = {"bare": lambda: open_source(path).count_by(CODINGS)}
        works |= {
            key: lambda bound=bound: count_people(open_source(path), CODINGS, bound).table
            for key, (_, bound) in BOUNDS.items()
        }
        assert works["one"]().total == people, "one row of each person counts"
        took = in_turns(works, repeats)
        for key, (what, bound) in BOUNDS.items():
            name = f"{what}, of {people:,} people with {rows:,} rows"
            figures = {"people": people, "at most": bound.at_most}
            yield Row(key, name, took[key], "counting all rows", took["bare"], figures=figures)


if __name__ == "__main__":
    main(run)
