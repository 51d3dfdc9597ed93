"""What the main job costs against DuckDB's own GROUP BY of the same columns, in the same run.

Target: 10 million rows from Parquet in at most 1.5 times the bare GROUP BY's time; for `release` in Python and for the
whole command, which also starts Python and writes the table, its certificate and two reports; at fixed levels and at
privately chosen ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.measuring import Row, Spent, command, in_turns, main
from bench.tables import FIELDS, bare_group_by, new_folder, people, policy_text
from incrowd import api
from incrowd.policy import Policy
from incrowd.sources import open_source

SHAPES = {"few": ("30 thousand tuples", 30_000), "many": ("3 million tuples", 3_000_000)}
NODES = 4 * 2 * 2**6  # of an age, a date and six texts
LEVELS = {"fixed": ("fixed levels", 0), "private": (f"privately chosen levels ({NODES} nodes)", len(FIELDS))}
TARGET = 1.5


def whole_command(policy: str, data: str) -> Spent:
    """`incrowd release`, from files to files."""
    folder = new_folder()
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    took = command("incrowd", "release", folder / "policy.yaml", "-o", folder / "out", "--data", data, "--json")
    assert (Path(folder) / "out" / "certificate.json").is_file(), "the command must have released something"
    return took


def run(quick: bool = False) -> Iterator[Row]:
    """The main job, in Python and as a command, against the bare GROUP BY."""
    rows, repeats = (300_000, 1) if quick else (10_000_000, 3)
    for shape_key, (shape, tuples) in SHAPES.items():
        pattern = people(rows, tuples)
        table = open_source(pattern).count_by([field.coding for field in FIELDS])
        assert (len(table), table.total) == (bare_group_by(pattern), rows), "both must find the same groups"
        for key, (levels, free) in LEVELS.items():
            text = policy_text(free=free)
            plan = Policy.from_text(text)
            took = in_turns(
                {
                    "bare GROUP BY": lambda p=pattern: bare_group_by(p),
                    "release in Python": lambda p=pattern, plan=plan: api.release(p, plan),
                    "release command": lambda p=pattern, text=text: whole_command(text, p),
                },
                1 if (shape_key, key) == ("many", "private") else repeats,
            )
            bare = took.pop("bare GROUP BY")
            for work, ours in took.items():
                name = f"{work}, {rows:,} rows, {shape}, {levels}"
                one = f"{'Python' if 'Python' in work else 'command'}, {shape_key}, {key}"
                yield Row(one, name, ours, "bare GROUP BY", bare, target=TARGET, figures={"cells": len(table)})


if __name__ == "__main__":
    main(run)
