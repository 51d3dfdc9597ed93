"""How long the largest safe sampling rate takes on ten million cells.

Run it: ``python bench/sampling_rate.py``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from incrowd.guarantees.sampling import largest_rate, sample_epsilon

CELLS = 10_000_000
EPSILON, DELTA = 0.5, 0.05


def tables(cells: int) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """Tables that are easy and hard: few and many distinct counts, with and without rare tuples."""
    rng = np.random.default_rng(20_240_601)
    return {
        "no rare tuples": rng.geometric(0.002, cells) + 1000,
        "many rare tuples": rng.geometric(0.01, cells),
        "power law": np.minimum(rng.zipf(1.5, cells), 10**9),
        "all counts different, from 1": rng.permutation(cells) + 1,
        "all counts different, from a million": rng.permutation(cells) + 1_000_000,
    }


def run(cells: int = CELLS) -> dict[str, Any]:
    """Seconds for each table and question."""
    results = []
    for name, counts in tables(cells).items():
        distinct = int(np.unique(counts).size)
        for question, answer in (
            ("largest rate, c = 1", lambda table: largest_rate(table, EPSILON, DELTA).rate),
            ("largest rate, c = 2", lambda table: largest_rate(table, EPSILON, DELTA, 2).rate),
            ("ε of a 1% sample", lambda table: sample_epsilon(table, 0.01, DELTA).epsilon),
        ):
            if question.startswith("ε") and name != "no rare tuples":
                continue  # the others promise no ε at 1%, or take as many evaluations again
            start = time.perf_counter()
            value = answer(counts)
            seconds = time.perf_counter() - start
            results.append(
                {"table": name, "distinct": distinct, "question": question, "answer": value, "seconds": seconds}
            )
    return {"cells": cells, "epsilon": EPSILON, "delta": DELTA, "results": results}


if __name__ == "__main__":
    report = run()
    print(f"{report['cells']:,} cells, ε = {report['epsilon']}, δ = {report['delta']}")
    for row in report["results"]:
        line = f"{row['seconds']:8.2f} s  {row['question']:20} = {row['answer']:<12.6g}"
        print(f"{line} {row['table']} ({row['distinct']:,} distinct counts)")
