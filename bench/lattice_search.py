"""The search of the full-domain lattice: k = 5, all columns quasi-identifiers, at most 0%, 5% or 100% suppressed.

Adult and fars10: the search itself, the counted table being there, for loss and for the measures whose optima ARX 3.9
reports. ihis_syn: from the compressed file to the best node. creditcard, with 5·10¹³ nodes: what is found within ten
seconds. Every optimum is compared with the known one. Needs the benchmark tables; without them, the built-in census is
searched.

Requirements beyond k: Adult, 5% suppressed, salary class or occupation being sensitive, the best node and all minimal
ones, as a release asks for them; each beside k = 5 alone in the same run.

Targets: at most three times k alone. For the loss: Adult in 0.05, 0.2 and 0.7 s at 0%, 5% and 100% suppressed; ihis_syn
in 10 and 20 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.measuring import Row, Spent, in_turns, main
from bench.tables import ABSENT, census, load, table_folder
from incrowd.hierarchy import CodedAttribute, Hierarchy
from incrowd.histogram import Histogram
from incrowd.recoding.demands import Demand
from incrowd.recoding.search import Found, search
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.requirements import (
    BeliefRatio,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    LargestShare,
    RecursiveDiversity,
    Requirement,
    TCloseness,
)

K5, ALONE = [Demand(KAnonymity(5))], "k = 5 alone"


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


@dataclass(frozen=True)
class Asked:
    """A requirement besides k, the sensitive column that it is about, and the known optimum."""

    name: str
    sensitive: str
    requirement: Requirement
    cost: float


def _tree(values: int) -> list[list[int]]:
    return [[value // 3 for value in range(values)], [0] * values]


JOBS = 14
ASKED = (
    Asked("ℓ = 2, distinct", "salary-class", DistinctDiversity(2), 0.358824),
    Asked("ℓ = 1.5, entropy", "salary-class", EntropyDiversity(1.5), 0.762159),
    Asked("recursive (4, 2)", "salary-class", RecursiveDiversity(4.0, 2), 0.785826),
    Asked("α = 0.8", "salary-class", LargestShare(0.8), 0.785826),
    Asked("t = 0.2, ordered", "salary-class", TCloseness(0.2, "ordered"), 0.551446),
    Asked("β = 2", "salary-class", BetaLikeness(2.0), 0.288383),
    Asked("β = 2, enhanced", "salary-class", BetaLikeness(2.0, enhanced=True), 0.472416),
    Asked("δ = 1.5", "salary-class", DeltaDisclosure(1.5), 0.500727),
    Asked(
        "belief ratio 3, prior",
        "salary-class",
        BeliefRatio(3.0, Adversary.with_prior(DirichletPrior((2.0, 2.0)))),
        0.358824,
    ),
    Asked("ℓ = 3, distinct", "occupation", DistinctDiversity(3), 0.179877),
    Asked("ℓ = 1.5, entropy", "occupation", EntropyDiversity(1.5), 0.178339),
    Asked("recursive (4, 2)", "occupation", RecursiveDiversity(4.0, 2), 0.179107),
    Asked("α = 0.8", "occupation", LargestShare(0.8), 0.178680),
    Asked("t = 0.3, equal", "occupation", TCloseness(0.3), 0.663161),
    Asked("t = 0.2, ordered", "occupation", TCloseness(0.2, "ordered"), 0.182020),
    Asked("t = 0.3, hierarchical", "occupation", TCloseness(0.3, _tree(JOBS)), 0.543578),
    Asked("β = 2", "occupation", BetaLikeness(2.0), 0.601780),
    Asked("δ = 1.5", "occupation", DeltaDisclosure(1.5), 0.880852),
    Asked(
        "belief ratio 3, prior",
        "occupation",
        BeliefRatio(3.0, Adversary.with_prior(DirichletPrior((2.0,) * JOBS))),
        0.231018,
    ),
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
    yield from _beyond_k(quick)
    yield from _large(1 if quick else 10)


def _beyond_k(quick: bool) -> Iterator[Row]:
    """Each requirement beside k alone."""
    folder = table_folder("adult")
    if folder is None:
        return
    table, attributes = load("adult", folder)
    for asked in ASKED[:1] if quick else ASKED:
        quasi = {name: tree for name, tree in trees(attributes).items() if name != asked.sensitive}

        def looked_for(demands: Sequence[Demand], quasi: Mapping[str, Hierarchy] = quasi) -> Found:
            return search(table, quasi, demands, suppression=0.05, minimal=True)

        demands = [*K5, Demand(asked.requirement, asked.sensitive)]
        found = looked_for(demands)
        assert abs(found.cost - asked.cost) <= 5e-6 * asked.cost, (asked, found.cost)
        works = {"ours": partial(looked_for, demands), "k": partial(looked_for, K5)}
        took = in_turns(works, 1 if quick else 3)
        yield Row(
            f"adult, k and {asked.name}, {asked.sensitive}",
            f"search, adult, k = 5 and {asked.name} ({asked.sensitive}), 5% suppressed",
            took["ours"],
            ALONE,
            took["k"],
            target=3,
            figures={"optimum": found.cost, "nodes looked at": found.examined},
        )


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
