"""How much of Adult a sampled crowd keeps: nine columns, ε = 2, δ = 1e-5, ε₁ = 0.1, averaged over runs.

Information kept is the mean over the sampled records and the nine columns of 1 − (values covered − 1)/(domain − 1),
suppressed records counting 0. Needs the benchmark tables (INCROWD_BENCHMARK_DATA, or ../shared/data beside the
project)."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.hierarchy import codings
from incrowd.mechanisms import sampled_crowd
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.sources import open_source

COLUMNS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)


def benchmark_data() -> Path:
    """Where the benchmark tables are."""
    given = os.environ.get("INCROWD_BENCHMARK_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"


def policy_text(folder: Path, beta: float) -> str:
    """A policy for the whole of Adult."""
    attributes = "\n".join(f"  {c}: {{hierarchy: {{file: {folder}/adult_hierarchy_{c}.csv}}}}" for c in COLUMNS)
    return (
        f"incrowd: 1\ndata: {{path: {folder}/adult.csv, delimiter: ';'}}\nattributes:\n{attributes}\n"
        "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, selection_epsilon: 0.1, "
        f"beta: {beta}}}\n"
    )


def information_kept(outcome: sampled_crowd.Outcome, attributes: list[Any]) -> float:
    """See the module's text."""
    per_record = np.zeros(len(outcome.published))
    for a in attributes:
        covered = a.hierarchy.covered(outcome.levels[a.name])
        share = 1 - (covered - 1) / (covered.sum() - 1)
        per_record += share[outcome.published[a.name].codes]
    return float((per_record * outcome.published.counts).sum() / len(attributes) / outcome.sample.total)


def run(repeats: int = 20) -> dict[str, dict[str, float]]:
    """Information kept and the time of the whole command, for two sampling rates."""
    folder = benchmark_data() / "adult"
    results = {}
    for beta in (0.85043, 0.3):
        policy = Policy.from_text(policy_text(folder, beta))
        attributes = codings(policy)
        assert policy.release is not None
        settings = sampled_crowd.settle(policy.release)
        source = open_source(str(folder / "adult.csv"), delimiter=";")
        table = source.count_by([a.coding for a in attributes])
        kept = [
            information_kept(sampled_crowd.run(table, attributes, {}, settings, RandomSource()), attributes)
            for _ in range(repeats)
        ]
        results[f"β = {beta}"] = {
            "k": settings.k,
            "kept": statistics.mean(kept),
            "kept_worst": min(kept),
            "command_seconds": _command(policy_text(folder, beta)),
        }
    return results


def _command(text: str) -> float:
    times = []
    with tempfile.TemporaryDirectory() as place:
        policy = Path(place) / "adult.yaml"
        policy.write_text(text, encoding="utf-8")
        for number in range(3):
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "incrowd", "release", str(policy), "-o", f"{place}/out{number}", "--json"],
                check=True,
                capture_output=True,
            )
            times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    for name, figures in run().items():
        print(
            f"{name:12s} k = {figures['k']:3.0f}   kept {figures['kept']:.3f} (worst {figures['kept_worst']:.3f})   "
            f"whole command {figures['command_seconds']:.2f} s"
        )
