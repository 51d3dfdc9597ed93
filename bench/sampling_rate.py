"""How long the largest safe rate of a plain sample takes to find on ten million cells.

Tables that are easy and hard: few and many distinct counts, with and without rare tuples; one or two rows unknown. The
hardest, in which all counts are different, have a tenth of the cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.measuring import Row, in_turns, main
from incrowd.theory.sampling import largest_rate, sample_epsilon

EPSILON, DELTA = 0.5, 0.05


def tables(cells: int) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """The counts of five tables."""
    rng = np.random.default_rng(20_240_601)
    return {
        "no rare tuples": rng.geometric(0.002, cells) + 1000,
        "many rare tuples": rng.geometric(0.01, cells),
        "power law": np.minimum(rng.zipf(1.5, cells), 10**9),
        "all counts different, from 1": rng.permutation(cells // 10) + 1,
        "all counts different, from a million": rng.permutation(cells // 10) + 1_000_000,
    }


def run(quick: bool = False) -> Iterator[Row]:
    """The largest rates of five tables, and the ε of a sample of one."""
    cells = 100_000 if quick else 10_000_000
    for name, counts in tables(cells).items():
        questions = {
            "largest rate, c = 1": lambda t=counts: largest_rate(t, EPSILON, DELTA).rate,
            "largest rate, c = 2": lambda t=counts: largest_rate(t, EPSILON, DELTA, 2).rate,
        }
        if name == "no rare tuples":  # the others promise no ε at 1%, or take as many evaluations again
            del questions["largest rate, c = 1"]  # that is in `plain_sample`
            questions["ε of a 1% sample"] = lambda t=counts: sample_epsilon(t, 0.01, DELTA).epsilon
        for question, answer in questions.items():
            took = in_turns({question: answer}, 1)[question]
            shown = f"{question}, {len(counts):,} cells, {name}"
            yield Row(f"{question}, {name}", shown, took)


if __name__ == "__main__":
    main(run)
