"""What a tree of boxes keeps of a table, beside one level per column, a tree without noise, and one-way tables alone.

Information kept is the mean over the sampled records and the columns of 1 − (values covered − 1)/(domain − 1), records
that are not published counting 0, and the choice of levels takes all columns to count the same. Queries are 200 counts
on random ranges of two random columns, in the order of their values, others in each run; their error is relative to the
true count or, if that is larger, to a hundredth of the records. Boxes are spread evenly over the values that they
cover, or by the one-way tables and raked to them. A flat tree has one set of labels per column. The tree without noise
takes the best split everywhere, by exact counts and one-way tables, as deep as it will; then it is sampled like the
others. (ε, δ) = (1, 1e-6) and (2, 1e-5), means of 5 runs. Adult's ages are declared as 17 to 90, which its codebook
says. Needs the benchmark tables, but for the census.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from bench.measuring import Row, main, spent
from bench.tables import ABSENT, benchmark_policy, census, people, policy_text, table_folder
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Made
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.sampled_crowd.draw import CrowdOutcome
from incrowd.mechanisms.sampled_crowd.tree.draw import TreeOutcome, draw_tree
from incrowd.mechanisms.sampled_crowd.tree.settle import TreeSettled
from incrowd.mechanisms.sampled_crowd.tree.spread import Spreading
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.boxes import Sets
from incrowd.recoding.growth import Integers, grow
from incrowd.sources import open_source

PROMISES = ((1, "1e-6"), (2, "1e-5"))
NUMBERS = {"adult": {"age": "domain: {from: 17, to: 90}"}, "fars10": {}}
"""The columns in order, and the values that may occur: hierarchies have more."""
TARGETS = {
    ("adult", "binary"): (0.72, 0.76),
    ("adult", "hierarchy"): (0.67, 0.70),
    ("fars10", "binary"): (0.63, 0.71),
    ("census", "binary"): (0.75, 0.78),
}
EVENLY = {("adult", "binary"): (0.60, 0.48)}
"""The error of counts spread evenly that should not be exceeded."""
LARGE = {"a quarter": 250_000, "all": 1_000_000}
QUERIES = 200


@dataclass(frozen=True)
class Case:
    """A table, its columns, and the beginning of its policy."""

    name: str
    table: Histogram
    attributes: Sequence[CodedAttribute]
    text: str

    def release(self, promise: tuple[float, str], how: str) -> tuple[Any, Any]:
        """The mechanism's settings for one way to choose the mapping."""
        epsilon, delta = promise
        release = f"release: {{mechanism: sampled_crowd, epsilon: {epsilon}, delta: {delta}, {how}}}"
        policy = Policy.from_text(f"{self.text}\n{release}\n")
        mechanism = mechanism_named("sampled_crowd")
        return mechanism, mechanism.settle(policy, codings(policy), 1)


class Noiseless:
    """The best choice and counts as they are: what a tree would be if it promised nothing."""

    def choose(self, exponents: Sequence[Fraction]) -> int:
        """The first of the best."""
        return max(range(len(exponents)), key=exponents.__getitem__)

    def noise(self, variance: int, size: int) -> Integers:  # noqa: ARG002
        """None."""
        return np.zeros(size, dtype=np.int64)


def without_noise(settings: TreeSettled, table: Histogram, source: RandomSource) -> Made[TreeOutcome, Any]:
    """The tree that exact counts give, whatever its paths cost; then a sample under it, as from any mapping."""
    columns = [
        Sets(a, settings.release.splits, a.name in settings.ordered, table.tallies[a.name]) for a in settings.attributes
    ]
    growth = replace(settings.growth(table.names), budget=1 << 80)
    tree = grow(table, columns, growth, table.total, Noiseless())
    return draw_tree(replace(settings, fixed=tree), table, source)


def cases(quick: bool) -> Iterator[Case]:
    """The tables that there are."""
    for name, numbers in NUMBERS.items():
        folder = table_folder(name)
        if folder is not None:
            text = benchmark_policy(name, folder)
            for column, domain in numbers.items():
                text = text.replace(f"  {column}: {{", f"  {column}: {{type: integer, {domain}, ")
            plan = Policy.from_text(text)
            coded = codings(plan)
            found = open_source(plan.data.path, delimiter=";").count_by([a.coding for a in coded])
            yield Case(name, found, coded, text)
    table, coded_census = census(20_000 if quick else 100_000)
    yield Case("census", table, coded_census, _census_text())


def _census_text() -> str:
    from incrowd.papers.examples.census import census_policy

    return census_policy("census.parquet", 100_000).split("\nrelease:")[0]


def kept(made: Made[Any, Any], attributes: Sequence[CodedAttribute]) -> tuple[float, float]:
    """The information kept, and the share of the sample that is published."""
    if isinstance(made.outcome, TreeOutcome):
        outcome = made.outcome
        places = outcome.tree.places(made.published)
        drawn = int(outcome.sampled.sum())
        return float(outcome.tree.kept[places] @ made.published.counts) / drawn, made.published.total / drawn
    lattice: CrowdOutcome = made.outcome
    per_record = np.zeros(len(lattice.published))
    for a in attributes:
        covered = a.hierarchy.covered(lattice.levels[a.name])
        per_record += (1 - (covered - 1) / max(covered.sum() - 1, 1))[lattice.published[a.name].codes]
    drawn = lattice.sample.total
    return float(per_record @ lattice.published.counts) / len(attributes) / drawn, lattice.published.total / drawn


def query_errors(case: Case, made: Made[TreeOutcome, Any], settled: TreeSettled, seed: int) -> dict[str, float]:
    """The mean error of random two-way range counts: spread evenly, raked, and from one-way tables alone."""
    rng = np.random.default_rng(seed)
    outcome, crowd = made.outcome, settled.crowd
    raked = Spreading.of(outcome.tree, outcome.one_way, made.published, crowd.k, crowd.beta)
    bare = replace(outcome.tree, columns=tuple(replace(column, weights=None) for column in outcome.tree.columns))
    even = Spreading.of(bare.without_sizes(), None, made.published, crowd.k, crowd.beta)
    names = case.table.names
    errors: dict[str, list[float]] = {"even": [], "raked": [], "one-way": []}
    known: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for _ in range(QUERIES):
        one, other = (names[i] for i in sorted(rng.choice(len(names), 2, replace=False)))
        if (one, other) not in known:
            shape = [len(case.table[n].labels) for n in (one, other)]
            truth = np.zeros(shape)
            np.add.at(truth, (case.table[one].codes, case.table[other].codes), case.table.counts)
            assert outcome.one_way is not None
            alone = np.outer(outcome.one_way.spread(one), outcome.one_way.spread(other)) / max(outcome.one_way.total, 1)
            known[one, other] = {
                "truth": truth,
                "even": even.table((one, other)),
                "raked": raked.table((one, other)),
                "one-way": alone,
            }
        tables = known[one, other]
        box = tuple(slice(*_range(rng, n)) for n in tables["truth"].shape)
        true = float(tables["truth"][box].sum())
        for name, found in errors.items():
            found.append(abs(float(tables[name][box].sum()) - true) / max(true, case.table.total / 100))
    return {name: statistics.mean(found) for name, found in errors.items()}


def _range(rng: np.random.Generator, size: int) -> tuple[int, int]:
    first, last = sorted(rng.integers(0, size, 2))
    return int(first), int(last) + 1


def run(quick: bool = False) -> Iterator[Row]:
    """Each table under each way to choose a mapping."""
    if table_folder("adult") is None:
        yield Row("adult", "trees of Adult and fars10", note=ABSENT)
    runs = 2 if quick else 5
    for case in cases(quick):
        for number, promise in enumerate(PROMISES):
            title = f"{case.name}, ε = {promise[0]}"
            mechanism, settings = case.release(
                promise, f"selection_epsilon: 0.1, importance: {{{case.attributes[0].name}: 1}}"
            )
            found = [
                kept(mechanism.draw(settings, case.table, RandomSource.seeded(seed)), case.attributes)
                for seed in range(runs)
            ]
            yield _row(title, "lattice", found)
            _, settings = case.release(promise, "recoding: tree, splits: binary, flat: true")
            made = [draw_tree(settings, case.table, RandomSource.seeded(seed)) for seed in range(runs)]
            errors = [query_errors(case, one, settings, seed) for seed, one in enumerate(made)]
            yield _row(title, "tree, flat", [kept(one, case.attributes) for one in made], errors)
            for splits in ("binary", "hierarchy"):
                mechanism, settings = case.release(promise, f"recoding: tree, splits: {splits}")
                made = [draw_tree(settings, case.table, RandomSource.seeded(seed)) for seed in range(runs)]
                found = [kept(one, case.attributes) for one in made]
                errors = [query_errors(case, one, settings, seed) for seed, one in enumerate(made)]
                row = _row(title, f"tree, {splits}", found, errors)
                aims = {"target": TARGETS, "target, even": EVENLY}
                wanted = {
                    what: aim[case.name, splits][number] for what, aim in aims.items() if (case.name, splits) in aim
                }
                yield replace(row, figures={**row.figures, **wanted})
                free = [without_noise(settings, case.table, RandomSource.seeded(seed)) for seed in range(runs)]
                yield _row(title, f"tree without noise, {splits}", [kept(one, case.attributes) for one in free])
    for share, rows in LARGE.items():
        yield _large(share, rows // 10 if quick else rows)


def _row(title: str, how: str, found: Sequence[tuple[float, float]], errors: Sequence[dict[str, float]] = ()) -> Row:
    figures: dict[str, Any] = {
        "information kept": statistics.mean(one for one, _ in found),
        "published": statistics.mean(share for _, share in found),
    }
    for name in errors[0] if errors else ():
        figures[f"error, {name}"] = statistics.mean(one[name] for one in errors)
    return Row(f"{title}, {how}", f"{title}: {how}", figures=figures)


def _large(share: str, rows: int) -> Row:
    """Rows of which half are different."""
    text = policy_text().split("release:")[0].replace(", level: 0", "").replace(", level: 1", "")
    plan = Policy.from_text(text)
    coded = codings(plan)
    table = open_source(people(rows, rows)).count_by([a.coding for a in coded])
    _, settings = Case("people", table, coded, text).release(PROMISES[0], "recoding: tree, splits: binary")
    boxes: list[int] = []
    took = spent(lambda: boxes.append(len(draw_tree(settings, table, RandomSource.seeded(1)).outcome.tree.leaves)))
    figures = {"cells": len(table), "boxes": boxes[0]}
    return Row(
        f"large, {share}",
        f"{rows:,} rows: the choice and the sample",
        ours=took,
        target=10.0,
        target_for="seconds",
        figures=figures,
    )


if __name__ == "__main__":
    main(run)
