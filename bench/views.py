"""How well views carry all pairs and triples of columns: crowds and noisy counts beside other ways and libraries.

The score of a synthetic table is the mean over all pairs (triples) of columns of 1000·(1 − total variation distance)
between its cross-tabulation and that of the people. Every choice is paid; δ = 1e-6; the mean of five runs. Adult,
fars10 and a census of 30,000 people.

- *one-way*: the one-way tables by noise, columns independent: below this, nothing else is worth having.
- *one crowd table*: all columns at once, levels chosen privately, each shown value spread over what it covers by the
  noisy counts that the choice has paid for.
- *exact tree*: the pairs along the best tree, counted exactly: what no private tree of pairs can exceed.
- *another million people* (the census only): the law that its people were drawn from, known without any noise. Who
  scores more than this repeats what is accidental in the table.
- *MST* and *AIM* are those of dpmm, with its own settings, in an environment of their own. They take minutes, so
  they are run once, by themselves: `--rivals` measures them and nothing else. dpmm's AIM leaves out pairs with more
  than 10,000 cells. The adaptive choice is compared with the recorded time of AIM.

Takes long, so it is not part of `make bench`; `--record` keeps what it found.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import venv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from bench.measuring import Row, Spent, command, measured, median, seconds, show, spent
from bench.recording import afterwards, keep, machine, recorded
from bench.tables import ABSENT, benchmark_policy, census, load, new_folder, table_folder, write_census
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.views import draw as views
from incrowd.mechanisms.views.measurements import Measurement
from incrowd.mechanisms.views.model_fit import fit
from incrowd.mechanisms.views.settle import settle
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.sources import open_source

NAME, COSTS = "views", "view_costs"
HERE = Path(__file__).parent
PLACE = HERE / ".view_rivals"
DELTA = 1e-6
EPSILONS = (1.0, 2.0, 10.0)
RUNS = 5

Array = np.ndarray[Any, Any]
Marginal = Callable[[Sequence[int]], Array]

OURS = {
    "crowds, tree of pairs": "by: crowd, choose: {how: tree}",
    "crowds, adaptive pairs": "by: crowd, choose: {how: adaptive}",
    "noise, tree of pairs": "by: noise, choose: {how: tree}",
    "noise, tree of triples": "by: noise, choose: {columns: 3, how: tree}",
    "noise, adaptive pairs": "by: noise, choose: {columns: 2, how: adaptive}",
    "noise, adaptive triples": "by: noise, choose: {columns: 3, how: adaptive}",
}
RIVALS = {"MST": "mst", "AIM": "aim"}


@dataclass(frozen=True)
class Subject:
    """A table whose columns are to be carried, and a policy for it that still lacks a release."""

    name: str
    policy: str
    table: Histogram
    attributes: tuple[CodedAttribute, ...]

    @cached_property
    def sizes(self) -> list[int]:
        """How many values each column has."""
        return [len(column.labels) for column in self.table.columns]

    def release(self, text: str) -> Policy:
        """The policy with this release."""
        return Policy.from_text(f"{self.policy}\nrelease: {{{text}}}\n")

    def true(self, columns: Sequence[int]) -> Array:
        """The people by these columns."""
        return counts_of(self.table, columns)

    def score(self, marginal: Marginal) -> dict[str, float]:
        """See the module's text."""
        found = {}
        for name, length in (("pairs", 2), ("triples", 3)):
            each = [self._alike(columns, marginal) for columns in combinations(range(len(self.sizes)), length)]
            found[name] = 1000 * float(np.mean(each))
        return found

    def _alike(self, columns: Sequence[int], marginal: Marginal) -> float:
        there, made = self.true(columns), marginal(columns)
        return 1 - float(np.abs(there / there.sum() - made / made.sum()).sum()) / 2


def counts_of(table: Histogram, columns: Sequence[int]) -> Array:
    """A table's counts by some of its columns, one axis for each."""
    parts = [table.columns[column] for column in columns]
    shape = [len(part.labels) for part in parts]
    place = np.ravel_multi_index([part.codes.astype(np.int64) for part in parts], shape)
    return np.bincount(place, table.counts, prod(shape)).reshape(shape)


def subjects(quick: bool) -> Iterator[Subject]:
    """The tables that are here."""
    for name in ("adult", "fars10"):
        if (folder := table_folder(name)) is not None:
            yield Subject(name, benchmark_policy(name, folder), *load(name, folder))
    path = new_folder() / "census.parquet"
    write_census(path, 1000)
    policy = path.with_suffix(".yaml").read_text(encoding="utf-8").partition("\nrelease:")[0]
    yield Subject("census", policy, *census(3000 if quick else 30_000))


# --- ways to a synthetic table ---------------------------------------------------------------------------------------


def of_views(subject: Subject, epsilon: float, how: str) -> Marginal:
    """Views as the mechanism makes them, settled and drawn."""
    policy = subject.release(f"mechanism: views, epsilon: {epsilon:g}, delta: {DELTA:g}, {how}")
    settings = settle(policy.release, policy, subject.attributes)  # type: ignore[arg-type]
    return partial(counts_of, views.run(settings, subject.table, RandomSource()).combined)


def one_way(subject: Subject, epsilon: float) -> Marginal:
    """Only the one-way tables."""
    listed = ", ".join(f'["{column.name}"]' for column in subject.table.columns)
    return of_views(subject, epsilon, f"by: noise, views: [{listed}]")


def one_crowd(subject: Subject, epsilon: float) -> Marginal:
    """One table of crowds, as it tells of all columns together."""
    policy = subject.release(
        f"mechanism: sampled_crowd, epsilon: {epsilon:g}, delta: {DELTA:g}, "
        f"selection_epsilon: {epsilon / 10:g}, beta: 0.3"
    )
    mechanism = mechanism_named("sampled_crowd")
    settled = mechanism.settle(policy, subject.attributes, 1)
    told = mechanism.told(settled, mechanism.draw(settled, subject.table, RandomSource()))
    return lambda columns: told(tuple(subject.attributes[c].name for c in columns)) + 1e-9


def exact_tree(subject: Subject) -> Marginal:
    """Rows of the model of the exact pairs along the tree on which columns depend most on each other."""
    columns, total = range(len(subject.sizes)), float(subject.table.total)
    single = [subject.true([column]) for column in columns]
    strength = {
        (a, b): float(np.abs(subject.true((a, b)) - np.outer(single[a], single[b]) / total).sum())
        for a, b in combinations(columns, 2)
    }
    joined, pairs = {0}, []
    while len(joined) < len(subject.sizes):
        pairs.append(max((p for p in strength if (p[0] in joined) != (p[1] in joined)), key=strength.__getitem__))
        joined |= set(pairs[-1])
    model = fit(subject.sizes, [_exact(subject, view) for view in [*((c,) for c in columns), *pairs]], total)
    rows = model.sample(round(total), np.random.default_rng(1))
    return partial(_of_rows, rows, subject.sizes)


def _exact(subject: Subject, columns: tuple[int, ...]) -> Measurement:
    counts = subject.true(columns).astype(float)
    every = np.ones(counts.shape)
    recodes = tuple(np.arange(length) for length in counts.shape)
    return Measurement(columns, recodes, counts, every * 1e-4, -np.inf * every, np.inf * every, every > 0)


def _of_rows(rows: Array, sizes: Sequence[int], columns: Sequence[int]) -> Array:
    shape = [sizes[column] for column in columns]
    return np.bincount(np.ravel_multi_index(rows[:, list(columns)].T, shape), minlength=prod(shape)).reshape(shape)


# --- the other library -----------------------------------------------------------------------------------------------


def installed() -> str | None:
    """Makes the other library's environment if it is not there; why it could not be made, if so."""
    mark, wanted = PLACE / "installed.txt", (HERE / "view_rivals.txt").read_text(encoding="utf-8")
    if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return None
    try:
        venv.create(PLACE, with_pip=True, clear=True)
        pip = [PLACE / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", HERE / "view_rivals.txt"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"dpmm could not be installed ({type(error).__name__})"
    mark.write_text(wanted, encoding="utf-8")
    return None


def rival(subject: Subject, epsilon: float, method: str) -> tuple[Spent, Marginal]:
    """One run of the other library."""
    folder = new_folder()
    codes = np.stack([np.repeat(column.codes, subject.table.counts) for column in subject.table.columns], axis=1)
    np.savez(folder / "table.npz", codes=codes, sizes=subject.sizes)
    program = [PLACE / "bin" / "python", HERE / "view_rival_work.py", method, str(epsilon), str(DELTA), "1"]
    done = subprocess.run(
        [*program, folder / "table.npz", folder / "made.npz"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    rows = np.load(folder / "made.npz")["codes"].astype(np.int64)
    return Spent(**json.loads(done.stdout.splitlines()[-1])), partial(_of_rows, rows, subject.sizes)


# --- what is measured ------------------------------------------------------------------------------------------------


def run(
    quick: bool = False,
    rivals: Sequence[str] = (),
    only: str = "",
    epsilons: Sequence[float] = EPSILONS,
    runs: int = RUNS,
    ways: str = "",
) -> Iterator[Row]:
    """The scores of every way of ours on every table, or of the rivals."""
    here = [subject for subject in subjects(quick) if only in subject.name]
    if len(here) < 3 and not only:
        yield Row("benchmark tables", "Adult and fars10", note=ABSENT)
    if rivals and (why := installed()):
        yield Row("rivals", "MST and AIM", note=why)
        return
    for subject in here:
        shown = f"{subject.name}, {subject.table.total:,} × {len(subject.sizes)}"
        if not rivals and not ways:
            yield Row(f"{subject.name}, exact tree", f"{shown}, exact tree", figures=subject.score(exact_tree(subject)))
            if subject.name == "census":
                law = subject.score(partial(counts_of, census(3000 if quick else 1_000_000)[0]))
                yield Row("census, another million people", f"{shown}, another million people", figures=law)
        for epsilon in epsilons[:1] if quick else epsilons:
            label = f"{subject.name}, {epsilon:g}", f"{shown}, ε = {epsilon:g}"
            if rivals:
                yield from _rivals(subject, epsilon, label, rivals)
            else:
                yield from _ours(subject, epsilon, label, 1 if quick else runs, ways)


def _rivals(subject: Subject, epsilon: float, label: tuple[str, str], names: Sequence[str]) -> Iterator[Row]:
    for name in names:
        took, marginal = rival(subject, epsilon, RIVALS[name])
        figures = subject.score(marginal)
        yield Row(f"{label[0]}, {name}", f"{label[1]}, {name} of dpmm 0.1.9", took, figures=figures)


def _ours(subject: Subject, epsilon: float, label: tuple[str, str], runs: int, only: str) -> Iterator[Row]:
    ways: dict[str, Callable[[], Marginal]] = {
        "one-way": partial(one_way, subject, epsilon),
        "one crowd table": partial(one_crowd, subject, epsilon),
        **{name: partial(of_views, subject, epsilon, how) for name, how in OURS.items()},
    }
    aim = recorded().row(NAME, f"{label[0]}, AIM")
    for name, way in ways.items():
        if only not in name:
            continue
        took, figures = _mean(subject, way, runs)
        row = Row(f"{label[0]}, {name}", f"{label[1]}, {name}", took, figures=figures)
        if name.startswith("noise, adaptive") and aim is not None:
            row = Row(row.key, row.name, took, "AIM", aim.ours, target=0.1, figures=figures)
        yield row


# --- what views cost, and one of them as a table of counts ------------------------------------------------------------

WIDE = (100, 2, 7, 9, 3, 3, 13, 11, 7, 2, 20, 5, 4, 16, 6, 2, 8, 50, 3, 12)
"""The columns of a survey, by how many values they have."""


def costs(quick: bool = False) -> Iterator[Row]:
    """Whole commands, from a file to a release; and the error of a table of counts."""
    rows = 3000 if quick else 27_000
    for name, how in OURS.items():
        yield _cost(f"20 columns, {name}", f"{rows:,} × 20, {name}", _wide(rows, how), 20.0)
    rows = 3000 if quick else 1_000_000
    path = new_folder() / "census.parquet"
    write_census(path, rows)
    policy = path.with_suffix(".yaml")
    text = policy.read_text(encoding="utf-8").partition("\nrelease:")[0]
    for name in ("crowds, adaptive pairs", "noise, tree of pairs", "noise, adaptive triples"):
        _release(policy, text, OURS[name])
        yield _cost(f"million, {name}", f"census, {rows:,} × 7, {name}", policy, 60.0)
    if (folder := table_folder("adult")) is not None:
        errors: list[Array] = []
        took = spent(lambda: errors.append(_count_errors(folder)))
        errors += [_count_errors(folder) for _ in range(RUNS - 1)]
        note = f"all {errors[0].size} cells listed, mean relative error {np.mean(errors):.2%}"
        yield Row("counts", "Adult, education × sex as one listed view by noise, ε = 1", took, note=note)


def _cost(key: str, name: str, policy: Path, target: float) -> Row:
    took = command("incrowd", "release", policy, "-o", new_folder() / "release")
    note = f"processor time {seconds(took.cpu)}"
    return Row(key, name, took, target=target, target_for="seconds", note=note)


def _release(path: Path, text: str, how: str) -> None:
    path.write_text(f"{text}\nrelease: {{mechanism: views, epsilon: 1, delta: {DELTA:g}, {how}}}\n", encoding="utf-8")


def _wide(rows: int, how: str) -> Path:
    """A policy beside a survey whose columns depend on each other through five kinds of people."""
    import pyarrow as pa
    from pyarrow import csv

    rng, folder = np.random.default_rng(2), new_folder()
    kind = rng.integers(0, 5, rows)
    columns, lines = {}, []
    for number, size in enumerate(WIDE):
        weights = 0.6 * rng.dirichlet(np.full(size, 0.7), 5) + 0.4 * rng.dirichlet(np.full(size, 0.9))
        drawn = (np.cumsum(weights[kind], axis=1) < rng.random(rows)[:, None]).sum(axis=1)
        columns[f"c{number}"] = pa.array(np.minimum(drawn, size - 1))
        levels = ", hierarchy: {widths: [5, 10, 20]}" if size > 12 else ""
        lines.append(f"  c{number}: {{type: integer, domain: {{from: 0, to: {size - 1}}}{levels}}}")
    csv.write_csv(pa.table(columns), folder / "survey.csv")
    _release(folder / "survey.yaml", "\n".join(["incrowd: 1", "data: {path: survey.csv}", "attributes:", *lines]), how)
    return folder / "survey.yaml"


def _count_errors(folder: Path) -> Array:
    """The relative errors of the table's cells, none of which is empty."""
    kept = ("education", "sex")
    lines = benchmark_policy("adult", folder).splitlines()
    text = "\n".join(line for line in lines if not line.startswith("  ") or line.strip().startswith(kept))
    policy = Policy.from_text(
        f"{text}\nrelease: {{mechanism: views, epsilon: 1, delta: {DELTA:g}, by: noise, "
        "views: [[education, sex]], combine: none}\n"
    )
    attributes = codings(policy)
    table = open_source(folder / "adult.csv", delimiter=";").count_by([a.coding for a in attributes])
    view = views.run(settle(policy.release, policy, attributes), table, RandomSource()).views[-1]  # type: ignore[arg-type]
    true = counts_of(table, (0, 1))
    return np.asarray(np.abs(view.counts - true) / true)


def _mean(subject: Subject, way: Callable[[], Marginal], runs: int) -> tuple[Spent, dict[str, float]]:
    times, scores = [], []
    for _ in range(runs):
        made: list[Marginal] = []
        times.append(spent(lambda made=made: made.append(way())))  # type: ignore[misc]
        scores.append(subject.score(made[0]))
    figures = {name: float(np.mean([score[name] for score in scores])) for name in scores[0]}
    return median(times), {**figures, "pairs, standard deviation": float(np.std([s["pairs"] for s in scores]))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one run of each at ε = 1, to see that it works")
    parser.add_argument("--only", default="", help="one table: adult, fars10 or census")
    parser.add_argument("--ways", default="", help="only ways of ours with this in their name, such as crowds")
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS, help="other values of ε")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each way of ours; {RUNS} unless said")
    parser.add_argument("--rivals", nargs="*", choices=RIVALS, default=(), help="MST, AIM or both, and nothing of ours")
    parser.add_argument("--costs", action="store_true", help="what views cost, and nothing else")
    parser.add_argument("--record", action="store_true", help="keep the result in bench/recorded.json")
    options = parser.parse_args()
    made = machine(quick=options.quick)
    work = partial(
        run, rivals=options.rivals, only=options.only, epsilons=options.epsilon, runs=options.runs, ways=options.ways
    )
    name = COSTS if options.costs else NAME
    rows = show(measured(costs if options.costs else work, options.quick))
    if options.record:
        new = {row.key for row in rows}
        keep({name: [*(row for row in recorded().rows(name) if row.key not in new), *rows]}, afterwards(made))


if __name__ == "__main__":
    main()
