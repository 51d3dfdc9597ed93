"""The exact rate of a plain sample beside the rate of the paper's theorem, and how long each takes to find.

Adult with every column up to three levels up, the built-in census in the same way, and ten million distinct tuples,
for which the target is 5 s. ε = 0.5, δ = 0.05, one row unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench.measuring import Row, in_turns, main
from bench.tables import ABSENT, census, load, table_folder
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms.sample.settle import recode
from incrowd.theory.sampling import largest_rate, theorem_rate

EPSILON, DELTA = 0.5, 0.05


def run(quick: bool = False) -> Iterator[Row]:
    """Rates at four levels of two tables, and of many distinct tuples."""
    folder = table_folder("adult")
    if folder is None:
        yield Row("Adult", "rates on Adult", note=ABSENT)
    else:
        yield from _levels("Adult", *load("adult", folder))
    many = 100_000 if quick else 10_000_000
    yield from _levels(f"census of {many:,}", *census(many))
    counts = np.random.default_rng(20_261_116).geometric(0.002, many) + 1000
    yield replace(_rates("many", f"{many:,} distinct tuples", counts), target=5.0, target_for="seconds")


def _levels(name: str, table: Histogram, attributes: Sequence[CodedAttribute]) -> Iterator[Row]:
    for up in range(4):
        levels = {a.name: min(up, a.hierarchy.height) for a in attributes}
        counts = recode(table, attributes, levels, {}).counts
        yield _rates(f"{name.partition(' ')[0]}, {up}", f"{name}, {up} levels up", counts)


def _rates(key: str, name: str, counts: np.ndarray[Any, Any]) -> Row:
    exact, theorem = largest_rate(counts, EPSILON, DELTA), theorem_rate(counts, EPSILON, DELTA)
    assert exact.rate >= theorem.rate, "the exact rate is never below the theorem's"
    took = in_turns(
        {
            "exact": lambda: largest_rate(counts, EPSILON, DELTA),
            "theorem": lambda: theorem_rate(counts, EPSILON, DELTA),
        },
        3,
    )
    figures = {"exact rate": exact.rate, "theorem's rate": theorem.rate, "distinct": len(counts)}
    shown = f"largest rate, {name}"
    return Row(key, shown, took["exact"], "the theorem's rate", took["theorem"], figures=figures)


if __name__ == "__main__":
    main(run)
