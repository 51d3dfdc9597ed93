"""The search of the full-domain lattice: k = 5, all columns quasi-identifiers, at most 0%, 5% or 100% suppressed.

Adult and fars10: the search itself, the counted table being there, for loss and for the measures whose optima ARX 3.9
reports. ihis_syn: from the compressed file to the best node. creditcard, with 5·10¹³ nodes: what is found within ten
seconds. Every optimum is compared with the known one. Needs the benchmark tables; without them, the built-in census is
searched.

Targets, for the loss: Adult in 0.05, 0.2 and 0.7 s at 0%, 5% and 100% suppressed; ihis_syn in 10 and 20 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.measuring import Row, Spent, in_turns, main
from bench.tables import ABSENT, census, load, table_folder
from incrowd.guarantees.requirements import KAnonymity
from incrowd.hierarchy import CodedAttribute, Hierarchy
from incrowd.histogram import Histogram
from incrowd.recoding.search import Demand, Found, search

K5 = [Demand(KAnonymity(5))]


@dataclass(frozen=True)
class Case:
    """A table, what is minimised, how much may be suppressed, the known optimum and the records it suppresses.

    And, if anything is aimed at, how many seconds it should take at most.
    """

    table: str
    measure: str
    suppression: float
    cost: float
    suppressed: int
    target: float | None = None

    def search(self, table: Histogram, hierarchies: Mapping[str, Hierarchy]) -> Found:
        """One search."""
        return search(table, hierarchies, K5, measure=self.measure, suppression=self.suppression)

    def check(self, found: Found) -> None:
        """The known optimum, to six digits."""
        assert found.complete
        assert abs(found.cost - self.cost) <= 5e-6 * self.cost, (self, found.cost)
        assert found.suppressed == self.suppressed, (self, found.suppressed)


CASES = (
    Case("adult", "loss", 0.0, 0.635544, 0, target=0.05),
    Case("adult", "loss", 0.05, 0.269635, 1346, target=0.2),
    Case("adult", "loss", 1.0, 0.227700, 2553, target=0.7),
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
WHOLE = (
    Case("ihis_syn", "loss", 0.0, 0.402768, 0, target=10),
    Case("ihis_syn", "loss", 0.05, 0.258893, 47_970, target=20),
)


def trees(attributes: Sequence[CodedAttribute]) -> dict[str, Hierarchy]:
    """The hierarchies of columns, by name."""
    return {a.name: a.hierarchy for a in attributes}


def run(quick: bool = False) -> Iterator[Row]:
    """The known optima of three tables, and a lattice that is too large to be searched."""
    if table_folder("adult") is None:
        yield Row("adult, loss, 0.05", "search of Adult", note=ABSENT)
        table, attributes = census(100_000)
        took = in_turns({"ours": lambda: search(table, trees(attributes), K5, suppression=0.05)}, 1 if quick else 3)
        yield Row("census", "search, census of 100,000, loss, 5% suppressed", took["ours"])
    for case in CASES[1::6] if quick else CASES:
        folder = table_folder(case.table)
        if folder is not None:
            counted, attributes = load(case.table, folder)
            one = partial(case.search, counted, trees(attributes))
            yield _row(case, one(), in_turns({"ours": one}, 1 if quick else 3)["ours"], "search")
    for case in () if quick else WHOLE:
        folder = table_folder(case.table)
        if folder is not None:
            found: list[Found] = []
            took = in_turns({"ours": partial(_from_file, case, folder, found)}, 2)["ours"]
            yield _row(case, found[0], took, "from the file to the best node")
    yield from _large(1 if quick else 10)


def _from_file(case: Case, folder: Path, found: list[Found]) -> None:
    counted, attributes = load(case.table, folder)
    found.append(case.search(counted, trees(attributes)))


def _row(case: Case, found: Found, took: Spent, what: str) -> Row:
    case.check(found)
    key = f"{case.table}, {case.measure}, {case.suppression:g}"
    name = f"{what}, {case.table}, {case.measure}, {case.suppression:.0%} suppressed"
    figures = {"optimum": case.cost, "nodes looked at": found.examined}
    return Row(key, name, took, target=case.target, target_for="seconds", figures=figures)


def _large(seconds: float) -> Iterator[Row]:
    folder = table_folder("creditcard")
    if folder is not None:
        table, attributes = load("creditcard", folder)
        found = search(table, trees(attributes), K5, suppression=0.05, seconds=seconds)
        figures = {f"loss after {at:.1f} s": cost for at, cost in found.improved[:: -(-len(found.improved) // 4)]}
        figures |= {"loss in the end": found.cost}
        yield Row("creditcard", f"search, creditcard (5·10¹³ nodes), stopped after {seconds} s", figures=figures)


if __name__ == "__main__":
    main(run)
