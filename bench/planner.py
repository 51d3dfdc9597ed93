"""How long the planner takes, as a ratio to one evaluation of SciPy's incomplete beta function over 10⁵ points."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from incrowd.guarantees.crowd import plan

CASES: dict[str, dict[str, Any]] = {
    "k for β = 0.2, ε = 0.5, δ = 1e-6 (k = 18)": {"beta": 0.2, "epsilon": 0.5, "delta": 1e-6},
    "k for β = 0.9, ε = 0.5, δ = 1e-6 (k = 774)": {"beta": 0.9, "epsilon": 0.5, "delta": 1e-6},
    "k for β = 0.99, ε = 0.2, δ = 1e-9 (k = 74,453)": {"beta": 0.99, "epsilon": 0.2, "delta": 1e-9},
    "ε for k = 100,000, β = 0.5, δ = 1e-30": {"beta": 0.5, "k": 100_000, "delta": 1e-30},
    "ε for k = 100,000, β = 0.01, δ = 1e-6 (Theorem 5 too)": {"beta": 0.01, "k": 100_000, "delta": 1e-6},
    "β for k = 100,000, ε = 0.05, δ = 1e-9": {"epsilon": 0.05, "k": 100_000, "delta": 1e-9},
}


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The median of several runs, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run() -> dict[str, dict[str, float]]:
    """Seconds and ratio for each case."""
    from scipy.special import betainc

    sizes = np.arange(1.0, 100_001.0)
    unit = seconds(lambda: betainc(20.0, sizes, 0.1))
    results = {}
    for name, arguments in CASES.items():
        taken = seconds(lambda arguments=arguments: plan(**arguments))  # type: ignore[misc]
        results[name] = {"seconds": taken, "ratio": taken / unit}
    return results


if __name__ == "__main__":
    for case, figures in run().items():
        print(f"{case:56s} {figures['seconds'] * 1000:8.1f} ms   {figures['ratio']:6.2f} ×")
