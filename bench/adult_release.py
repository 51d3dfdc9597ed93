"""How much of Adult a sampled crowd keeps: nine columns, ε = 2, δ = 1e-5, ε₁ = 0.1, averaged over runs.

Information kept is the mean over the sampled records and the nine columns of 1 − (values covered − 1)/(domain − 1),
suppressed records counting 0. The time is that of the whole command. Needs the benchmark tables.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

import numpy as np

from bench.main_job import whole_command
from bench.measuring import Row, in_turns, main
from bench.tables import ABSENT, FILES, benchmark_policy, load, table_folder
from incrowd.hierarchy import CodedAttribute
from incrowd.mechanisms.sampled_crowd import draw as sampled_crowd
from incrowd.mechanisms.sampled_crowd.settle import solve
from incrowd.policy import Policy
from incrowd.randomness import RandomSource

RELEASE = "release: {{mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, selection_epsilon: 0.1, beta: {beta}}}\n"


def information_kept(outcome: sampled_crowd.CrowdOutcome, attributes: Sequence[CodedAttribute]) -> float:
    """See the module's text."""
    per_record = np.zeros(len(outcome.published))
    for a in attributes:
        covered = a.hierarchy.covered(outcome.levels[a.name])
        share = 1 - (covered - 1) / (covered.sum() - 1)
        per_record += share[outcome.published[a.name].codes]
    return float((per_record * outcome.published.counts).sum() / len(attributes) / outcome.sample.total)


def run(quick: bool = False) -> Iterator[Row]:
    """Information kept and the time of the whole command, for two sampling rates."""
    folder = table_folder("adult")
    if folder is None:
        yield Row("β = 0.3", "release of Adult", note=ABSENT)
        return
    table, attributes = load("adult", folder)
    for beta in (0.85043, 0.3):
        text = benchmark_policy("adult", folder, RELEASE.format(beta=beta))
        release = Policy.from_text(text).release
        assert release is not None
        settings = solve(release)
        kept = [
            information_kept(sampled_crowd.run(table, list(attributes), {}, settings, RandomSource()), attributes)
            for _ in range(2 if quick else 10)
        ]
        path = str(folder / FILES["adult"][0])
        took = in_turns({"command": lambda t=text, p=path: whole_command(t, p)}, 1 if quick else 3)["command"]
        figures = {"k": settings.k, "information kept": statistics.mean(kept), "at worst": min(kept)}
        yield Row(f"β = {beta:g}", f"release command, Adult (12,960 nodes), β = {beta:g}", took, figures=figures)


if __name__ == "__main__":
    main(run)
