"""The exact rate of a plain sample beside the rate of the paper's theorem, and how long each takes to find.

Adult with every column up to three levels up, the built-in census at ten million rows in the same way, and ten million
distinct tuples (target: under 5 s). ε = 0.5, δ = 0.05, one row unknown. Adult needs the benchmark tables
(INCROWD_BENCHMARK_DATA, or ../shared/data beside the project).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.adult_release import COLUMNS, benchmark_data
from incrowd.examples.census import write_census
from incrowd.guarantees.sampling import largest_rate, theorem_rate
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.sample import recode
from incrowd.policy import Policy
from incrowd.sources import open_source

EPSILON, DELTA = 0.5, 0.05
ROWS, CELLS = 10_000_000, 10_000_000
TARGET = 5.0


def adult() -> tuple[Histogram, list[CodedAttribute]]:
    folder = benchmark_data() / "adult"
    attributes = "\n".join(f"  {c}: {{hierarchy: {{file: {folder}/adult_hierarchy_{c}.csv}}}}" for c in COLUMNS)
    coded = codings(Policy.from_text(f"incrowd: 1\nattributes:\n{attributes}\n"))
    return open_source(str(folder / "adult.csv"), delimiter=";").count_by([a.coding for a in coded]), coded


def census(rows: int) -> tuple[Histogram, list[CodedAttribute]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "census.parquet"
        write_census(path, rows)
        coded = codings(Policy.from_file(path.with_suffix(".yaml")))
        return open_source(path).count_by([a.coding for a in coded]), coded


def rates(name: str, counts: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Both rates and their times."""
    start = time.perf_counter()
    exact = largest_rate(counts, EPSILON, DELTA)
    middle = time.perf_counter()
    theorem = theorem_rate(counts, EPSILON, DELTA)
    end = time.perf_counter()
    return {
        "table": name,
        "records": int(counts.sum()),
        "distinct": len(counts),
        "exact": exact.rate,
        "exact_seconds": middle - start,
        "theorem": theorem.rate,
        "theorem_seconds": end - middle,
        "rare": theorem.rare,
    }


def run(rows: int = ROWS, cells: int = CELLS) -> list[dict[str, Any]]:
    """A line for each table and number of levels up, then one for many distinct tuples."""
    results = []
    for name, (table, attributes) in (("Adult", adult()), (f"census of {rows:,}", census(rows))):
        for up in range(4):
            levels = {a.name: min(up, a.hierarchy.height) for a in attributes}
            recoded = recode(table, attributes, levels, {})
            results.append(rates(f"{name}, {up} levels up", recoded.counts))
    many = np.random.default_rng(20_261_116).geometric(0.002, cells) + 1000
    results.append(rates(f"{cells:,} distinct tuples", many))
    return results


if __name__ == "__main__":
    print(f"ε = {EPSILON}, δ = {DELTA}; rates, and seconds to find them (target for the last line: {TARGET:g} s)")
    print(f"{'table':<34}{'records':>16}{'distinct':>12}{'exact':>11}{'':>9}{'theorem':>11}{'':>9}{'rare':>12}")
    for row in run():
        print(
            f"{row['table']:<34}{row['records']:>16,}{row['distinct']:>12,}{row['exact']:>11.3g}"
            f"{row['exact_seconds']:>8.2f}s{row['theorem']:>11.3g}{row['theorem_seconds']:>8.2f}s{row['rare']:>12,}"
        )
