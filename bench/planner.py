"""How long the planner takes, against one evaluation of SciPy's incomplete beta function over 10⁵ points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.measuring import Row, in_turns, main
from incrowd.theory.crowd import plan

CASES: dict[str, dict[str, Any]] = {
    "k for β = 0.2, ε = 0.5, δ = 1e-6 (k = 18)": {"beta": 0.2, "epsilon": 0.5, "delta": 1e-6},
    "k for β = 0.9, ε = 0.5, δ = 1e-6 (k = 774)": {"beta": 0.9, "epsilon": 0.5, "delta": 1e-6},
    "k for β = 0.99, ε = 0.2, δ = 1e-9 (k = 74,453)": {"beta": 0.99, "epsilon": 0.2, "delta": 1e-9},
    "ε for k = 100,000, β = 0.5, δ = 1e-30": {"beta": 0.5, "k": 100_000, "delta": 1e-30},
    "ε for k = 100,000, β = 0.01, δ = 1e-6 (Theorem 5 too)": {"beta": 0.01, "k": 100_000, "delta": 1e-6},
    "β for k = 100,000, ε = 0.05, δ = 1e-9": {"epsilon": 0.05, "k": 100_000, "delta": 1e-9},
}


def run(quick: bool = False) -> Iterator[Row]:
    """Six plans."""
    from scipy.special import betainc

    sizes = np.arange(1.0, 100_001.0)
    for number, (name, arguments) in enumerate(CASES.items(), start=1):
        works = {"plan": lambda a=arguments: plan(**a), "unit": lambda: betainc(20.0, sizes, 0.1)}
        in_turns(works, 1)  # to warm up
        took = in_turns(works, 1 if quick else 5)
        yield Row(f"plan {number}", name, took["plan"], "10⁵ incomplete betas", took["unit"])


if __name__ == "__main__":
    main(run)
