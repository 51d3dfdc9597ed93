"""How long exact, secret thinning takes, against NumPy's binomials on the same histogram.

The target: 10⁸ records over 10⁶ cells in at most twice NumPy's time. The other shapes show where the cost lies:
NumPy's time grows with the cells and hardly with the records; ours grows with both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from incrowd.randomness import RandomSource

RATES = (0.001, 0.01, 0.1, 0.5)
TARGET = "10^8 records over 10^6 cells"


def histograms() -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    rng = np.random.default_rng(20)
    rank = np.arange(1, 10**6 + 1)
    return {
        TARGET: rng.poisson(100, 10**6),
        "Zipf: 10^8 records over 10^6 cells": np.maximum(1, 10**8 / (14.4 * rank)).astype(np.int64),
        "10^7 cells of 1 to 3 records": rng.integers(1, 4, 10**7),
        "10 cells of 10^8 records": np.full(10, 10**8),
    }


def run(repeats: int = 5) -> dict[str, dict[str, float]]:
    """Median CPU seconds of both, and their ratio, for each histogram and rate; the two take turns."""
    source = RandomSource()
    rng = np.random.default_rng()
    results = {}
    for name, counts in histograms().items():
        for beta in RATES:
            ours: list[float] = []
            numpys: list[float] = []
            for _ in range(repeats):
                ours.append(_cpu_seconds(source.binomial, counts, beta))
                numpys.append(_cpu_seconds(rng.binomial, counts, beta))
            seconds, baseline = statistics.median(ours), statistics.median(numpys)
            results[f"{name}, beta {beta:g}"] = {
                "incrowd": seconds,
                "numpy": baseline,
                "ratio": seconds / baseline,
            }
    return results


def _cpu_seconds(draw: Callable[..., object], *arguments: object) -> float:
    # CPU time: both run on one thread, and the machine may have other work.
    start = time.process_time()
    draw(*arguments)
    return time.process_time() - start


def main() -> None:
    print(f"{'histogram':<48}{'incrowd':>10}{'NumPy':>10}{'ratio':>10}")
    for name, row in run().items():
        print(f"{name:<48}{row['incrowd']:>9.4f}s{row['numpy']:>9.4f}s{row['ratio']:>10.2f}")


if __name__ == "__main__":
    main()
