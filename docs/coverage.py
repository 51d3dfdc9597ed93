"""How often the 95% intervals of `incrowd estimate` hold the truth: the table in docs/estimates.md.

    python docs/coverage.py [RELEASES [MECHANISM or TABLE ...]]

Counts of each column and of each pair of columns, over so many releases of Adult, `fars10` and the built-in census.
Nothing of a generalized table is random, so there each release is of another random half of the table. A table that is
a sample already is drawn anew for each release, and the truth is the table that it was drawn from.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from incrowd import api
from incrowd.domain import Recode
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.estimates import NO_OPTIONS, EstimatedCell, EstimateOptions, Estimates
from incrowd.mechanisms.registry import mechanism_named
from incrowd.papers.examples.census import write_census
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import count_table

RELEASES = 200
MECHANISMS = {
    "sampled crowds": "mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, beta: 0.3",
    "sampled crowds, total known": "mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, beta: 0.3",
    "sampled crowds, totals": ("mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, beta: 0.3, totals: {epsilon: 0.1}"),
    "sampled crowds, levels chosen": "mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, selection_epsilon: 0.2",
    "crowds under a tree": "mechanism: sampled_crowd, epsilon: 2, delta: 1e-6, recoding: tree",
    "views": "mechanism: views, epsilon: 2, delta: 1e-6",
    "views, noisy": "mechanism: views, epsilon: 2, delta: 1e-6, by: noise",
    "views, noisy, already a sample": (
        "mechanism: views, epsilon: 2, delta: 1e-6, by: noise, already_sampled: true, beta: 0.5"
    ),
    "plain sample": "mechanism: sample, epsilon: 1, delta: 0.3",
    "plain sample, age rounded": "mechanism: sample, epsilon: 1, delta: 0.3, round: {age: 10}",
    "randomised": "mechanism: pram, rho: 0.7",
    "randomised sample": "mechanism: pram, rho: 0.7, beta: 0.5",
    "randomised, already a sample": "mechanism: pram, rho: 0.7, beta: 0.5, already_sampled: true, records: 10000",
    "generalization": "mechanism: generalization, require: {k: 5}, suppression: 0.1",
    "generalization, local": "mechanism: generalization, require: {k: 100}, recoding: local",
}
Ends = Callable[[EstimatedCell], tuple[float, float]]


def stated(row: EstimatedCell) -> tuple[float, float]:
    """The interval of a row."""
    return row.low, row.high


def bare(row: EstimatedCell) -> tuple[float, float]:
    """What once was read out of a row: the estimate and 1.96 standard errors, of what was published alone."""
    estimate, error = row.estimate or 0.0, row.standard_error or 0.0
    return estimate - 1.96 * error, estimate + 1.96 * error


def data_folder() -> Path | None:
    """Where Adult and fars10 are, if they are anywhere."""
    given = os.environ.get("INCROWD_BENCHMARK_DATA")
    place = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    return place if (place / "adult" / "adult.csv").is_file() else None


def tables(scratch: Path) -> Iterator[tuple[str, str]]:
    """The tables that are here, each as a policy without its release: a few columns, each at a level."""
    data = data_folder()
    if data is not None:
        yield (
            "Adult",
            _policy(
                f"{data}/adult/adult.csv",
                f"{data}/adult/adult_hierarchy_",
                {"age": 2, "sex": 0, "race": 0, "education": 1, "salary-class": 0},
            ),
        )
        yield (
            "fars10",
            _policy(
                f"{data}/fars10/fars_subset.csv",
                f"{data}/fars10/fars_hierarchy_",
                {"iage": 3, "isex": 0, "irace": 0, "iinjury": 0, "ihispanic": 0},
            ),
        )
    path = scratch / "census.csv"
    if not path.exists():
        write_census(path, 20_000)
    yield (
        "census",
        f"""
incrowd: 1
unlisted: drop
data: {{path: {path}}}
attributes:
  age: {{role: quasi, type: integer, domain: {{from: 0, to: 110}}, hierarchy: {{widths: [10, 20]}}, LEVEL}}
  sex: {{role: quasi, domain: [female, male]}}
  marital_status: {{role: quasi, domain: [single, married, divorced, widowed], other: other}}
""".replace("LEVEL", "level: 1"),
    )


def _policy(path: str, hierarchies: str, levels: Mapping[str, int]) -> str:
    lines = "\n".join(
        f"  {name}: {{role: quasi, hierarchy: {{file: {hierarchies}{name}.csv, delimiter: ';'}}, level: {level}}}"
        for name, level in levels.items()
    )
    return f"incrowd: 1\nunlisted: drop\ndata: {{path: {path}, delimiter: ';'}}\nattributes:\n{lines}\n"


def drawn(text: str, releases: int) -> Iterator[tuple[Histogram, Callable[..., Estimates]]]:
    """The table that a policy shows, and what is estimated from it, release by release."""
    policy = Policy.from_text(text)
    coded = codings(policy)
    table = count_table(None, policy, coded, show_values=False, progress=lambda _: None)
    certificate = api.release(policy=policy, rehearse=True).certified
    kind = certificate.mechanism.name
    mechanism = mechanism_named(kind)
    settled = mechanism.settle(policy, coded, 1)
    settings, prepared = mechanism.prepare(settled, table, lambda *_: None)
    random = np.random.default_rng(20_261_118)
    for number in range(releases):
        whole = table
        if kind == "generalization":
            whole = table.with_counts(random.binomial(table.counts, 0.5))
            settings, prepared = mechanism.prepare(settled, whole, lambda *_: None)
        if getattr(policy.release, "already_sampled", False):
            part = table.with_counts(random.binomial(table.counts, policy.release.beta))
            settings, prepared = mechanism.prepare(settled, part, lambda *_: None)
        made = mechanism.draw(settings, prepared, RandomSource.seeded(number))
        truth = whole.recode({a.name: seen(a, made.levels[a.name]) for a in coded if a.name in made.levels})

        said = certificate.model_copy(update={"mechanism": made.statement.mechanism})

        def estimate(
            by: Sequence[str],
            options: EstimateOptions,
            *,
            said: AnyCertificate = said,
            published: Publication = made.publication,
        ) -> Estimates:
            return mechanism.estimate(said, published, by, options)

        yield truth, estimate


def seen(coded: CodedAttribute, level: int) -> Recode:
    """What estimates count a column by that is shown at a level: one of which nothing is shown, by its own values."""
    shown = coded.hierarchy.recode(level)
    return shown if len(shown.labels) > 1 else coded.hierarchy.recode(0)


def covered(text: str, releases: int, ends: Ends = stated, *, total: bool = False) -> dict[int, tuple[float, float]]:
    """For counts of one and of two columns, the part of the intervals that hold the truth, and their median width."""
    held: dict[int, list[bool]] = {1: [], 2: []}
    widths: dict[int, list[float]] = {1: [], 2: []}
    for truth, estimate in drawn(text, releases):
        known = EstimateOptions(total=(truth.total, truth.total)) if total else NO_OPTIONS
        for size in (1, 2):
            for by in combinations([name for name in truth.names if name not in rounded_in(text)], size):
                counts = _counts(truth, by)
                for row in estimate(by, known).rows:
                    if row.values not in counts:
                        continue  # a label above those of the table, as local recoding shows
                    low, high = ends(row)
                    held[size].append(low <= counts[row.values] <= high)
                    widths[size].append(high - low)
    return {size: (float(np.mean(held[size])), float(np.median(widths[size]))) for size in held}


def _counts(table: Histogram, by: Sequence[str]) -> dict[tuple[str | None, ...], int]:
    """The number of people of every declared cell."""
    labels = [table[name].labels for name in by]
    counts = np.zeros([len(texts) for texts in labels], dtype=np.int64)
    part = table.project(by)
    counts[tuple(part[name].codes for name in by)] = part.counts
    return {tuple(t[i] for t, i in zip(labels, at, strict=True)): int(counts[at]) for at in np.ndindex(counts.shape)}


def rounded_in(text: str) -> Sequence[str]:
    """The columns that a policy rounds at random: counts by them are of the rounded numbers, so they are left out."""
    return ["age"] if "round: {age" in text else []


def possible(table: str, mechanism: str) -> bool:
    """Whether a table has what a mechanism needs: whole numbers in the policy, to be rounded."""
    return "rounded" not in mechanism or "age: {role: quasi, type: integer" in table


def policy_of(table: str, mechanism: str) -> str:
    """A whole policy: where levels are found none are fixed, and what is rounded is at level 0."""
    release = f"release: {{{MECHANISMS[mechanism]}}}\n"
    if "rounded" in mechanism:
        table = table.replace("level: 1", "level: 0")
    if mechanism.endswith(("local", "tree", "chosen")):
        table = "\n".join(
            line.partition(", level:")[0] + "}" if ", level:" in line else line for line in table.splitlines()
        )
    if "already_sampled" in release:  # which is refused without a ledger; a rehearsal charges none
        release += "ledger: {path: not-charged.ledger, dataset: coverage, epsilon: 9, delta: 0.1}\n"
    return f"{table.rstrip()}\n{release}"


def main() -> None:
    """The table, as it stands in the docs."""
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else RELEASES
    asked = [one for one in sys.argv[2:] if one in MECHANISMS] or list(MECHANISMS)
    only = {one for one in sys.argv[2:] if one not in MECHANISMS}
    print("| mechanism | table | one column | width | two columns | width | estimate ± 1.96 standard errors |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name, table in tables(Path(scratch)):
            if only and name not in only:
                continue
            for mechanism in [one for one in asked if possible(table, one)]:
                text = policy_of(table, mechanism)
                found = covered(text, releases, total=mechanism.endswith("known"))
                once = covered(text, max(releases // 10, 5), bare)
                shown = " | ".join(f"{found[size][0]:.1%} | {found[size][1]:,.0f}" for size in (1, 2))
                print(f"| {mechanism} | {name} | {shown} | {once[1][0]:.1%}, {once[2][0]:.1%} |", flush=True)


if __name__ == "__main__":
    main()
