"""What the main job costs against DuckDB's own GROUP BY of the same columns, in the same run.

Target: 10 million rows from Parquet in at most 1.3 times the bare GROUP BY's time, at fixed levels and at privately
chosen ones. `release` in Python is compared with the query in the same process. The command, which also starts Python
and writes the table, its certificate and two reports, is compared with a fresh Python that imports DuckDB, runs the
query and writes what it finds to a Parquet file. All groups and counts are compared before anything is timed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.measuring import Row, Spent, command, in_turns, main
from bench.tables import (
    BARE_SETTINGS,
    FIELDS,
    bare_group_by,
    bare_query,
    new_folder,
    people,
    policy_text,
    require_same,
)
from incrowd import api
from incrowd.policy import Policy
from incrowd.sources import open_source

SHAPES = {"few": ("30 thousand tuples", 30_000), "many": ("3 million tuples", 3_000_000)}
NODES = 4 * 2 * 2**6  # of an age, a date and six texts
LEVELS = {"fixed": ("fixed levels", 0), "private": (f"privately chosen levels ({NODES} nodes)", len(FIELDS))}
TARGET = 1.3


def whole_command(policy: str, data: str) -> Spent:
    """`incrowd release`, from files to files."""
    folder = new_folder()
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    took = command("incrowd", "release", folder / "policy.yaml", "-o", folder / "out", "--data", data, "--json")
    assert (Path(folder) / "out" / "certificate.json").is_file(), "the command must have released something"
    return took


def bare_command(data: str) -> Spent:
    """The query in a Python of its own, from files to a file."""
    result = new_folder() / "groups.parquet"
    query = f"COPY ({bare_query(data)}) TO '{result}' (FORMAT parquet)"
    took = command("python", "-c", f"import duckdb; duckdb.connect(config={BARE_SETTINGS!r}).execute({query!r})")
    assert result.is_file(), "the query must have written something"
    return took


def run(quick: bool = False) -> Iterator[Row]:
    """The main job, in Python and as a command, against the bare GROUP BY."""
    rows, repeats = (300_000, 1) if quick else (10_000_000, 3)
    for shape_key, (shape, tuples) in SHAPES.items():
        pattern = people(rows, tuples)
        table = open_source(pattern).count_by([field.coding for field in FIELDS])
        require_same(table, bare_group_by(pattern))
        for key, (levels, free) in LEVELS.items():
            text = policy_text(free=free)
            plan = Policy.from_text(text)
            took = in_turns(
                {
                    "bare GROUP BY": lambda p=pattern: bare_group_by(p),
                    "release in Python": lambda p=pattern, plan=plan: api.release(p, plan),
                    "bare GROUP BY as a command": lambda p=pattern: bare_command(p),
                    "release command": lambda p=pattern, text=text: whole_command(text, p),
                },
                repeats,
            )
            for work, ours, against in (
                ("Python", "release in Python", "bare GROUP BY"),
                ("command", "release command", "bare GROUP BY as a command"),
            ):
                one, name = f"{work}, {shape_key}, {key}", f"{ours}, {rows:,} rows, {shape}, {levels}"
                figures = {"cells": len(table)}
                yield Row(one, name, took[ours], against, took[against], target=TARGET, figures=figures)


if __name__ == "__main__":
    main(run)
