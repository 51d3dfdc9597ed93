"""The main job at 100 million rows, end to end, and how much memory it takes at most.

Targets: less than 1 GB from Parquet and less than 2 GB from CSV. Fixed levels, 30 thousand and 3 million tuples. The
tables are made in a temporary folder: half a gigabyte of Parquet, some eleven of CSV. Takes minutes, so each is run
once, and it is not part of `make bench`: `make hundred-million` runs it, and `--record` keeps what it found.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial

from bench.main_job import whole_command
from bench.measuring import Row, measured, show
from bench.recording import afterwards, keep, machine, recorded
from bench.tables import as_csv, people, policy_text

NAME = "hundred_million"
TARGETS = {"parquet": ("Parquet", 1000.0), "csv": ("CSV", 2000.0)}
TUPLES = {"few": ("30 thousand tuples", 30_000), "many": ("3 million tuples", 3_000_000)}


def run(quick: bool = False, formats: Sequence[str] = tuple(TARGETS)) -> Iterator[Row]:
    """One command for each file format and number of tuples."""
    rows = 1_000_000 if quick else 100_000_000
    for key, (shape, tuples) in TUPLES.items():
        for form in formats:
            name, most = TARGETS[form]
            data = people(rows, tuples) if form == "parquet" else as_csv(people(rows, tuples))
            took = whole_command(policy_text(), data)
            shown = f"release command, {rows:,} rows, {shape}, from {name}"
            yield Row(f"{form}, {key}", shown, took, target=most, target_for="megabytes", figures={"rows": rows})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format", nargs="?", choices=TARGETS, help="both if not given")
    parser.add_argument("--quick", action="store_true", help="a million rows, to see that it works")
    parser.add_argument("--record", action="store_true", help="keep the result in bench/recorded.json")
    options = parser.parse_args()
    formats = [options.format] if options.format else list(TARGETS)
    made = machine(quick=options.quick)
    rows = show(measured(partial(run, formats=formats), options.quick))
    if options.record:
        others = [row for row in recorded().rows(NAME) if row.key.partition(",")[0] not in formats]
        keep({NAME: [*others, *rows]}, afterwards(made))


if __name__ == "__main__":
    main()
