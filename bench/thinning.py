"""How long exact, secret thinning takes, against NumPy's binomials on the same histogram.

The target: 10⁸ records over 10⁶ cells in at most twice NumPy's time. The other shapes show where the cost lies:
NumPy's time grows with the cells and hardly with the records; ours grows with both, and at rates with many binary
digits, such as 0.3, more than at 0.5, which has one. Both run on one thread, so that processor and elapsed time should
be the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.measuring import Row, in_turns, main
from incrowd.randomness import RandomSource

RATES = (0.01, 0.1, 0.5)
LARGE = "10⁴ cells of 10⁴ records"
TARGET = "10⁸ records over 10⁶ cells"


def histograms(part: int) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """Tables with so many times fewer cells than they are called after."""
    rng = np.random.default_rng(20)
    cells = 10**6 // part
    return {
        TARGET: rng.poisson(100, cells),
        "Zipf: 10⁸ records over 10⁶ cells": np.maximum(1, 10**8 / (14.4 * np.arange(1, cells + 1))).astype(np.int64),
        "10⁷ cells of 1 to 3 records": rng.integers(1, 4, 10 * cells),
        LARGE: np.full(10**4 // part, 10**4),
        "10 cells of 10⁸ records": np.full(10, 10**8 // part),
    }


def run(quick: bool = False) -> Iterator[Row]:
    """Five histograms at some rates."""
    source, rng = RandomSource(), np.random.default_rng()
    for name, counts in histograms(100 if quick else 1).items():
        for beta in (0.3, 0.5) if name == LARGE else RATES:
            took = in_turns(
                {
                    "ours": lambda c=counts, b=beta: source.binomial(c, b),
                    "NumPy": lambda c=counts, b=beta: rng.binomial(c, b),
                },
                1 if quick else 3,
            )
            shown = f"thinning {name}{' (a hundredth of it)' if quick else ''}, β = {beta:g}"
            aim = 2.0 if name == TARGET else None
            figures = {"records": int(counts.sum())}
            key = f"{name}, {beta:g}"
            yield Row(key, shown, took["ours"], "NumPy binomial", took["NumPy"], target=aim, figures=figures)


if __name__ == "__main__":
    main(run)
