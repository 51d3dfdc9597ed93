"""How long the planner takes, against one evaluation of SciPy's incomplete beta function over 10⁵ points.

And what a ledger and a collector ask for: the ε of fifty different crowds together, and that of a shuffled table of a
hundred questions. Targets: 1 s and 5 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.measuring import Row, in_turns, main
from incrowd.theory._binomial import tail_sums
from incrowd.theory.crowd import CrowdProfile, plan, smallest_k
from incrowd.theory.profile import compose
from incrowd.theory.randomisation import RetentionReplacement
from incrowd.theory.shuffling import central_epsilon

CASES: dict[str, dict[str, Any]] = {
    "k for β = 0.2, ε = 0.5, δ = 1e-6 (k = 18)": {"beta": 0.2, "epsilon": 0.5, "delta": 1e-6},
    "k for β = 0.9, ε = 0.5, δ = 1e-6 (k = 774)": {"beta": 0.9, "epsilon": 0.5, "delta": 1e-6},
    "k for β = 0.99, ε = 0.2, δ = 1e-9 (k = 74,453)": {"beta": 0.99, "epsilon": 0.2, "delta": 1e-9},
    "ε for k = 100,000, β = 0.5, δ = 1e-30": {"beta": 0.5, "k": 100_000, "delta": 1e-30},
    "ε for k = 100,000, β = 0.01, δ = 1e-6 (Theorem 5 too)": {"beta": 0.01, "k": 100_000, "delta": 1e-6},
    "β for k = 100,000, ε = 0.05, δ = 1e-9": {"epsilon": 0.05, "k": 100_000, "delta": 1e-9},
}
CROWDS, QUESTIONS, RECORDS = 50, 100, 10**9


def afresh(work: Callable[[], object]) -> None:
    """As in a process of its own, where no sum is known from before."""
    tail_sums.cache_clear()
    work()


def together(crowds: int) -> float:
    """The ε of so many different crowds, each of which promises ε = 1 and δ = 1e-6."""
    rates = [0.05 + 0.015 * number for number in range(crowds)]
    return compose([CrowdProfile(smallest_k(1.0, 1e-6, rate), rate) for rate in rates]).epsilon(1e-5)


def shuffled(questions: int, records: int) -> float:
    """The ε of a shuffled table; the answers to each question are kept with probability 0.05."""
    return central_epsilon([RetentionReplacement(0.05, 2 + n % 20) for n in range(questions)], records, 1e-10).epsilon


def run(quick: bool = False) -> Iterator[Row]:
    """Six plans, a composition and a shuffled table."""
    from scipy.special import betainc

    sizes = np.arange(1.0, 100_001.0)
    for number, (name, arguments) in enumerate(CASES.items(), start=1):
        works = {"plan": lambda a=arguments: afresh(partial(plan, **a)), "unit": lambda: betainc(20.0, sizes, 0.1)}
        in_turns(works, 1)  # to warm up
        took = in_turns(works, 1 if quick else 5)
        yield Row(f"plan {number}", name, took["plan"], "10⁵ incomplete betas", took["unit"])
    crowds, questions = (3, 3) if quick else (CROWDS, QUESTIONS)
    took = in_turns(
        {"crowds": lambda: afresh(partial(together, crowds)), "shuffled": lambda: shuffled(questions, RECORDS)},
        1 if quick else 3,
    )
    yield Row("crowds", f"the ε of {crowds} different crowds together", took["crowds"], target=1, target_for="cpu")
    name = f"the ε of a shuffled table, {questions} questions, {RECORDS:,} records"
    yield Row("shuffled", name, took["shuffled"], target=5, target_for="cpu")


if __name__ == "__main__":
    main(run)
