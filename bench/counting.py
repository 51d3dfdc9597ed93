"""What counting costs against DuckDB's own GROUP BY of the same columns.

Target: 10 million rows of 8 columns in at most 1.3 times the bare GROUP BY's time in the same run. Texts, whole
numbers and a date, or whole numbers only, which leave the engine least to do. All groups and counts are compared before
anything is timed.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.measuring import Row, in_turns, main
from bench.tables import FIELDS, NUMBERS, bare_group_by, people, require_same
from incrowd.sources import open_source

SHAPES = {
    "few": ("30 thousand tuples", 30_000, FIELDS),
    "many": ("3 million tuples", 3_000_000, FIELDS),
    "few numbers": ("30 thousand tuples of numbers", 30_000, NUMBERS),
    "many numbers": ("3 million tuples of numbers", 3_000_000, NUMBERS),
}


def run(quick: bool = False) -> Iterator[Row]:
    """Counting against the bare GROUP BY, four tables."""
    rows, repeats = (300_000, 2) if quick else (10_000_000, 3)
    for key, (shape, tuples, fields) in SHAPES.items():
        pattern = people(rows, tuples, fields)
        codings = [field.coding for field in fields]
        counted = open_source(pattern).count_by(codings)
        require_same(counted, bare_group_by(pattern, fields))
        took = in_turns(
            {
                "ours": lambda p=pattern, c=codings: open_source(p).count_by(c),
                "bare": lambda p=pattern, f=fields: bare_group_by(p, f),
            },
            repeats,
        )
        name = f"counting {rows:,} rows, {shape}"
        yield Row(key, name, took["ours"], "bare GROUP BY", took["bare"], target=1.3, figures={"cells": len(counted)})


if __name__ == "__main__":
    main(run)
