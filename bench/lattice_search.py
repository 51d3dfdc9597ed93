"""The search of the full-domain lattice: k = 5, all columns quasi-identifiers, at most 0%, 5% or 100% suppressed.

Adult and fars10: the search itself, the counted table being there, for loss and for the measures whose optima ARX 3.9
reports. ihis_syn: from the compressed file to the best node. creditcard, with 5·10¹³ nodes: how the best node improves
within its time. Every optimum is compared with the known one before anything is timed. The processor's time is given,
too, as it says more on a machine that is shared. Needs the benchmark tables (INCROWD_BENCHMARK_DATA, or ../shared/data
beside the project)."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from bench.adult_release import benchmark_data
from incrowd.guarantees.requirements import KAnonymity
from incrowd.hierarchy import Hierarchy, codings
from incrowd.histogram import Histogram
from incrowd.policy import Policy
from incrowd.recoding.search import Demand, Found, search
from incrowd.sources import open_source

FILES = {
    "adult": ("adult.csv", "adult_hierarchy_"),
    "fars10": ("fars_subset.csv", "fars_hierarchy_"),
    "ihis_syn": ("ihis_int_syn.csv.gz", "ihis_int_hierarchy_"),
    "creditcard": ("creditcard_int.csv", "creditcard_int_hierarchy_"),
}
K5 = [Demand(KAnonymity(5))]


@dataclass(frozen=True)
class Case:
    """A table, what is minimised, how much may be suppressed, the known optimum and the records it suppresses."""

    table: str
    measure: str
    suppression: float
    cost: float
    suppressed: int


CASES = (
    Case("adult", "loss", 0.0, 0.635544, 0),
    Case("adult", "loss", 0.05, 0.269635, 1346),
    Case("adult", "loss", 1.0, 0.227700, 2553),
    Case("adult", "discernibility", 0.0, 33_627_534, 0),
    Case("adult", "discernibility", 0.05, 7_220_555, 105),
    Case("adult", "class_size", 0.0, 628.375, 0),
    Case("adult", "class_size", 0.05, 28.8080, 906),
    Case("adult", "class_size", 1.0, 16.3214, 7185),
    Case("fars10", "loss", 0.0, 0.680393, 0),
    Case("fars10", "loss", 0.05, 0.280714, 474),
    Case("fars10", "discernibility", 0.0, 2_644_917, 0),
    Case("fars10", "discernibility", 0.05, 907_815, 34),
)
WHOLE = (Case("ihis_syn", "loss", 0.0, 0.402768, 0), Case("ihis_syn", "loss", 0.05, 0.258893, 47_970))
LARGE = Case("creditcard", "loss", 0.05, 1.0, 0)


def load(name: str) -> tuple[Histogram, dict[str, Hierarchy]]:
    """A table, counted, and the hierarchies of all its columns."""
    file, prefix = FILES[name]
    folder: Path = benchmark_data() / name
    source = open_source(folder / file, delimiter=";")
    names = [path.name.removeprefix(prefix).removesuffix(".csv") for path in sorted(folder.glob(f"{prefix}*.csv"))]
    trees = {n: {"hierarchy": {"file": str(folder / f"{prefix}{n}.csv"), "delimiter": ";"}} for n in names}
    attributes = codings(Policy.from_dict({"incrowd": 1, "attributes": trees}))
    return source.count_by([a.coding for a in attributes]), {a.name: a.hierarchy for a in attributes}


def run_case(case: Case, table: Histogram, hierarchies: dict[str, Hierarchy], **options: object) -> Found:
    """One search."""
    return search(table, hierarchies, K5, measure=case.measure, suppression=case.suppression, **options)  # type: ignore[arg-type]


def check(case: Case, found: Found) -> None:
    """The known optimum, to six digits."""
    assert found.complete
    assert abs(found.cost - case.cost) <= 5e-6 * case.cost, (case, found.cost)
    assert found.suppressed == case.suppressed, (case, found.suppressed)


def run(repeats: int = 7) -> dict[Case, dict[str, float]]:
    """For each case the medians of the time and of the processor's time, and how many nodes were looked at."""
    loaded = {name: load(name) for name in ("adult", "fars10")}
    results = {}
    for case in (*CASES, *WHOLE):
        table = loaded.get(case.table)
        check(case, run_case(case, *(table or load(case.table))))
        times, busy, examined = [], [], 0
        for _ in range(repeats if table else 3):
            start = time.perf_counter(), time.process_time()
            examined = run_case(case, *(table or load(case.table))).examined
            times.append(time.perf_counter() - start[0])
            busy.append(time.process_time() - start[1])
        results[case] = {
            "seconds": statistics.median(times),
            "processor": statistics.median(busy),
            "examined": examined,
        }
    return results


if __name__ == "__main__":
    for case, figures in run().items():
        print(
            f"{case.table:9s} {case.measure:15s} {case.suppression:4.0%} suppressed   optimum {case.cost:12,.6g}   "
            f"{figures['examined']:6,.0f} nodes   {figures['seconds'] * 1000:8.1f} ms   "
            f"processor {figures['processor'] * 1000:8.1f} ms"
        )
    found = run_case(LARGE, *load(LARGE.table), seconds=10)
    steps = ", ".join(f"{cost:.3f} after {at:.1f} s" for at, cost in found.improved[:: -(-len(found.improved) // 5)])
    print(f"{LARGE.table}, loss, {LARGE.suppression:.0%} suppressed, 10 s: {steps}, in the end {found.cost:.4f}")
