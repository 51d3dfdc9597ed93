"""The experiment of Machanavajjhala, Gehrke and Götz (Section 4): 72 generalizations against six adversaries.

Age in ranges of 5, 10, 20, 40 or not at all, marital status by a taxonomy, race and sex as they are or not at all; the
salary class is sensitive. The paper used the American Community Survey of 2006, which is not to be had freely; here it
is the Adult table, or the census of an imaginary country. So the numbers are others, and what the paper concludes from
them is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.auditing.groups import Grouping
from incrowd.core.numbers import number
from incrowd.hierarchy import codings
from incrowd.papers.examples.census import census_batches
from incrowd.papers.gallery import Claim, Figure, Material, unbroken
from incrowd.papers.gallery.hasse import hasse
from incrowd.policy import Policy
from incrowd.recoding.utility import Comparison, kl_divergence, query_error
from incrowd.reports.page import figure, paragraph, table
from incrowd.reports.svg import Axis, Line, line_chart
from incrowd.sources import open_source
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.beliefs import belief_ratio
from incrowd.theory.embeddings import recursive_diversity_as_beliefs, t_closeness_as_beliefs
from incrowd.theory.syntactic import recursive_l_diversity, t_closeness

PAPER = "Machanavajjhala, Gehrke, Götz: Data Publishing against Realistic Adversaries, Section 4"
SENSITIVE = "salary-class"
QUASI = ("age", "marital-status", "race", "sex")
Node = tuple[int, ...]

_ADULT = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 15, to: 94}, hierarchy: {widths: [5, 10, 20, 40]}}
  marital-status:
    hierarchy:
      taxonomy:
        married: [Married-civ-spouse, Married-AF-spouse, Married-spouse-absent, Separated]
        not married: [Never-married, Divorced, Widowed]
    missing: drop
  race: {domain: [White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black], missing: drop}
  sex: {domain: [Female, Male], missing: drop}
  salary-class: {role: sensitive, domain: ["<=50K", ">50K"], missing: drop}
"""
_CENSUS = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 15, to: 119}, hierarchy: {widths: [5, 10, 20, 40]}}
  marital-status:
    hierarchy:
      taxonomy:
        couple: [married, partnership]
        single: [never married, separated, divorced, widowed]
  race:
    domain: [White, Black, Asian, Native American, Pacific Islander, other, two or more]
    missing: drop
  sex: {domain: [female, male]}
  salary-class: {role: sensitive, type: number, domain: {cuts: [0, 50000, .inf]}, missing: drop}
"""


@dataclass(frozen=True, eq=False)
class PaperLattice:
    """All generalizations of a table.

    Attributes:
        source: which table it is.
        totals: its records by sensitive value.
        kinds: for each generalization the different kinds of groups, records by sensitive value.
        sizes: for each the sizes of all groups.
        divergence: for each how far its distribution is from the table's, in bits; see `utility.kl_divergence`.
        query_error: for each the mean relative error of counts; see `utility.query_error`.
    """

    source: str
    totals: tuple[int, int]
    kinds: Mapping[Node, NDArray[np.int64]]
    sizes: Mapping[Node, NDArray[np.int64]]
    divergence: Mapping[Node, float]
    query_error: Mapping[Node, float]

    def ratio(self, node: Node, adversary: Adversary) -> float:
        """The smallest belief ratio of one generalization."""
        return belief_ratio(self.kinds[node], adversary, "subsets").ratio

    def nodes(self) -> list[Node]:
        """Every generalization, the coarsest first."""
        return sorted(self.kinds, key=lambda node: (-sum(node), [-level for level in node]))

    def discernibility(self, node: Node) -> int:
        """Σ of the squared sizes of groups."""
        return int(np.square(self.sizes[node]).sum())

    def average(self, node: Node) -> float:
        """The average size of groups."""
        return float(self.sizes[node].mean())


def adversaries(lattice: PaperLattice) -> dict[str, Adversary]:
    """The six adversaries of Table 5."""
    share = [n / sum(lattice.totals) for n in lattice.totals]
    return {
        "uniform prior, σ = 10⁶": Adversary.with_prior(DirichletPrior.from_shape((0.5, 0.5), 1e6)),
        "the table’s shares, σ = 10⁶": Adversary.with_prior(DirichletPrior.from_shape(share, 1e6)),
        "any shape, σ = 10³": Adversary.with_stubbornness(1e3),
        "any shape, σ = 10⁶": Adversary.with_stubbornness(1e6),
        "uniform prior, σ = ∞": Adversary.with_shape((0.5, 0.5)),
        "the table’s shares, σ = ∞": Adversary.with_shape(lattice.totals),
    }


@lru_cache(maxsize=2)
def lattice(adult: Path | None, rows: int) -> PaperLattice:
    """All generalizations of Adult or, without it, of an example census of that many people."""
    if adult is None:
        policy, data, source = Policy.from_text(_CENSUS), _grown_up(rows), f"an example census of {rows:,} people"
    else:
        policy, data, source = Policy.from_text(_ADULT), str(adult), "Adult"
    attributes = codings(policy)
    base = open_source(data).count_by([a.coding for a in attributes])
    hierarchies = {a.name: a.hierarchy for a in attributes}
    kinds: dict[Node, NDArray[np.int64]] = {}
    sizes: dict[Node, NDArray[np.int64]] = {}
    divergence: dict[Node, float] = {}
    error: dict[Node, float] = {}
    as_they_are = {SENSITIVE: hierarchies[SENSITIVE].recode(0)}
    for node in product(*(range(hierarchies[name].height + 1) for name in QUASI)):
        recodes = {name: hierarchies[name].recode(level) for name, level in zip(QUASI, node, strict=True)}
        published = base.recode(recodes | as_they_are)
        compared = Comparison(base, recodes | as_they_are, published, published)
        divergence[node], error[node] = kl_divergence(compared), query_error(compared)
        groups = Grouping.of(published, QUASI, SENSITIVE)
        kinds[node] = np.concatenate([cells for _, cells in groups.kinds().blocks()])
        sizes[node] = groups.sizes
    low, high = Grouping.of(base, QUASI, SENSITIVE).totals
    return PaperLattice(source, (low, high), kinds, sizes, divergence, error)


def _grown_up(rows: int) -> Any:
    """An example census, without children and with its columns named as Adult's."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = {"age": "age", "marital_status": "marital-status", "race": "race", "sex": "sex", "income": SENSITIVE}
    people = pa.Table.from_batches(list(census_batches(rows))).select(list(names)).rename_columns(list(names.values()))
    return people.filter(pc.greater_equal(people["age"], 15))


def _of(material: Material) -> PaperLattice:
    return lattice(material.data.get("adult"), 30_000 if material.quick else 300_000)


# --- Table 5 ----------------------------------------------------------------------------------------------------------


def minimum_ratios(material: Material) -> Figure:
    """Table 5: the smallest ε of each generalization against each adversary."""
    tables = _of(material)
    against = adversaries(tables)
    found = {node: [tables.ratio(node, adversary) for adversary in against.values()] for node in tables.nodes()}
    shown = {node: ratios for node, ratios in found.items() if min(ratios) < 20}
    rows = [
        [_name(node).replace(" ", "\u00a0"), str(sum(node)), *map(_ratio, ratios)] for node, ratios in shown.items()
    ]
    claims = _claims_of_section_4_1(found)
    return Figure(
        "adversaries",
        "Table 5: the smallest belief ratio of each generalization",
        PAPER,
        (
            paragraph(
                f"Of the {len(found)} generalizations of {tables.source}, these keep a ratio below 20 against "
                "somebody. A generalization is named by its levels of age, marital status, race and sex."
            ),
            table("Smallest ε", ["levels", "height", *map(unbroken, against)], rows, numbers=range(1, 8)),
        ),
        {
            "source": tables.source,
            "adversaries": list(against),
            "ratios": {_name(node): list(map(_finite, ratios)) for node, ratios in found.items()},
            "conclusions": claims,
        },
        (*_on(tables, claims, elsewhere=True), _mostly_smaller(shown)),
    )


def _mostly_smaller(shown: Mapping[Node, list[float]]) -> Claim:
    smaller = sum(r[2] < min(r[4], r[5]) for r in shown.values())
    return Claim(
        "“Almost all” tables need a smaller ε against any shape with σ = 10³ than against both shapes with infinite "
        "stubbornness.",
        f"{smaller} of {len(shown)} do; the paper’s table has 3 million people, and larger groups",
        None,
    )


def _claims_of_section_4_1(found: Mapping[Node, list[float]]) -> dict[str, bool]:
    ratios = list(found.values())
    # A person is left out of what she compares with, which can lower p_out below the prior: by 1 record in σ.
    slack = 1 + 1e-5
    return {
        "no table needs a larger ε (by more than 1 part in 10⁵) against a known prior than against the same shape with "
        "infinite stubbornness": all(r[0] <= r[4] * slack and r[1] <= r[5] * slack for r in ratios),
        "no table needs a larger ε against a known prior than against any shape of the same stubbornness": all(
            max(r[0], r[1]) <= r[3] for r in ratios
        ),
        "no table needs a larger ε against any shape with σ = 10³ than with σ = 10⁶": all(r[2] <= r[3] for r in ratios),
        "some tables are private (ε = 20) even against adversaries of any shape with σ = 10³": any(
            r[2] <= 20 for r in ratios
        ),
    }


# --- Figure 2 ---------------------------------------------------------------------------------------------------------

_SIGMAS = tuple(10.0**e for e in range(2, 10))
_EXAMPLE: Node = (5, 1, 1, 0)
_LIMIT = 2.5


def stubbornness(material: Material) -> Figure:
    """Figure 2: the smallest ε of one table, and the best utility at ε = 2.5, against stubbornness."""
    tables = _of(material)
    share = [n / sum(tables.totals) for n in tables.totals]
    curves: dict[str, Callable[[float], Adversary]] = {
        "uniform prior": lambda s: Adversary.with_prior(DirichletPrior.from_shape((0.5, 0.5), s)),
        "the table’s shares": lambda s: Adversary.with_prior(DirichletPrior.from_shape(share, s)),
        "any shape": Adversary.with_stubbornness,
    }
    ratios = {name: [tables.ratio(_EXAMPLE, make(s)) for s in _SIGMAS] for name, make in curves.items()}
    satisfying = {
        name: [[node for node in tables.kinds if tables.ratio(node, make(s)) <= _LIMIT] for s in _SIGMAS]
        for name, make in curves.items()
    }
    measures: dict[str, Callable[[Node], float]] = {
        "discernibility": tables.discernibility,
        "average group": tables.average,
        "divergence, in bits": tables.divergence.__getitem__,
        "mean relative error of counts": tables.query_error.__getitem__,
    }
    best = {
        measure: {
            name: [min((score(node) for node in nodes), default=None) for nodes in by_sigma]
            for name, by_sigma in satisfying.items()
        }
        for measure, score in measures.items()
    }
    across = Axis("stubbornness σ", log=True)
    charts = [
        line_chart(
            f"The smallest ε of the table {_name(_EXAMPLE)}",
            across,
            Axis("smallest belief ratio", log=True),
            [Line(name, _SIGMAS, _drawn(values)) for name, values in ratios.items()],
        ),
        *(
            line_chart(
                f"The best table that is private with ε = {_LIMIT:g}",
                across,
                Axis(measure, log=measure in ("discernibility", "average group")),
                [Line(name, _SIGMAS, _drawn(values)) for name, values in by_name.items()],
            )
            for measure, by_name in best.items()
        ),
    ]
    rising = {
        f"the smallest ε rises with stubbornness ({name})": all(a <= b for a, b in pairwise(v))
        for name, v in ratios.items()
    }
    return Figure(
        "stubbornness",
        "Figure 2: stubbornness costs utility",
        PAPER,
        (*(figure(chart, f"On {tables.source}.") for chart in charts),),
        {
            "source": tables.source,
            "stubbornness": list(_SIGMAS),
            "ratios": {name: list(map(_finite, values)) for name, values in ratios.items()},
            "best": best,
            "conclusions": rising,
        },
        (*_on(tables, rising, elsewhere=True), _same_utility(tables, best)),
    )


def _same_utility(tables: PaperLattice, best: Mapping[str, Mapping[str, list[float | None]]]) -> Claim:
    """The claim about Figure 2(b), in another table and by every measure."""
    up_to = [place for place, sigma in enumerate(_SIGMAS) if sigma <= 1e5]
    same = {
        measure: [_SIGMAS[at] for at in up_to if len({values[at] for values in by_name.values()}) == 1]
        for measure, by_name in best.items()
    }
    where = [f"{measure} at σ = {', '.join(map(_power, sigmas))}" for measure, sigmas in same.items() if sigmas]
    return Claim(
        f"In Figure 2(b), tables that are private (ε = {_LIMIT:g}) against any shape have the same utility as those "
        "private against the known priors, for all σ ≤ 10⁵.",
        f"{'so' if all(len(s) == len(up_to) for s in same.values()) else 'not so'} in {tables.source}: the same "
        f"{'; '.join(where) or 'nowhere'}",
        None,
    )


# --- Figure 3 ---------------------------------------------------------------------------------------------------------


def definitions(material: Material) -> Figure:
    """Figure 3: which generalizations satisfy (4,2)-diversity, 0.2-closeness, and ε-privacy at 2.5."""
    tables = _of(material)
    uniform, shares = Adversary.with_shape((0.5, 0.5)), Adversary.with_shape(tables.totals)
    least = min(tables.totals) / sum(tables.totals)
    t = min(0.2, math.floor(least * 0.6 * 100) / 100)  # Lemma 1 needs t below every share
    implied = t_closeness_as_beliefs(t, tables.totals)
    diverse, close, against = {}, {}, {}
    for node, counts in tables.kinds.items():
        diverse[node] = recursive_l_diversity(counts, 2).value <= 4
        close[node] = t_closeness(counts, reference=tables.totals).satisfies(t)
        against[node] = (
            belief_ratio(counts, uniform, "subsets"),
            belief_ratio(counts, shares, "subsets"),
            belief_ratio(counts, Adversary.with_stubbornness(1e6), "subsets"),
        )
    embedded = recursive_diversity_as_beliefs(4, 2)
    homogeneous = {node: bool((np.count_nonzero(counts, axis=1) == 1).any()) for node, counts in tables.kinds.items()}
    claims = {
        "(4,2)-diversity is ε-privacy with ε = (4+1)/2 against the uniform prior that never changes": all(
            diverse[node] == against[node][0].satisfies(embedded.exact) for node in tables.kinds
        ),
        f"every {t:g}-close table without homogeneous groups keeps the ratio {number(implied.ratio)} of Lemma 1": all(
            against[node][1].satisfies(implied.exact) for node in tables.kinds if close[node] and not homogeneous[node]
        ),
        "no table with a homogeneous group keeps any ratio against a shape": all(
            math.isinf(against[node][0].ratio) and math.isinf(against[node][1].ratio)
            for node in tables.kinds
            if homogeneous[node]
        ),
    }
    kinds = [
        "(4,2)-diverse",
        "uniform, σ = ∞",
        f"{t:g}-close",
        "the table’s shares, σ = ∞",
        "any shape, σ = 10⁶",
    ]
    satisfied = {
        node: (
            diverse[node],
            against[node][0].satisfies(embedded.exact),
            close[node],
            *(audit.satisfies(_LIMIT) for audit in against[node][1:]),
        )
        for node in tables.nodes()
    }
    lowest = min((sum(node) for node, held in satisfied.items() if any(held)), default=0)
    chart = hasse(
        "Which tables satisfy whom",
        kinds,
        {node: held for node, held in satisfied.items() if any(held) or sum(node) > lowest},
    )
    return Figure(
        "definitions",
        "Figure 3: ε-privacy beside diversity and closeness",
        PAPER,
        (
            figure(
                chart,
                f"Generalizations of {tables.source}, down to the finest that satisfies anyone; a line leads from each "
                f"to the next finer ones. Belief ratios are {_LIMIT:g} at most.",
            ),
        ),
        {
            "source": tables.source,
            "t": t,
            "diverse": [_name(node) for node in tables.nodes() if diverse[node]],
            "close": [_name(node) for node in tables.nodes() if close[node]],
            "conclusions": claims,
        },
        _on(tables, claims),
    )


# --- parts ------------------------------------------------------------------------------------------------------------


def _on(tables: PaperLattice, claims: Mapping[str, bool], *, elsewhere: bool = False) -> tuple[Claim, ...]:
    """Theorems, checked on a table; or what the paper concludes from its table, looked at in another one."""
    return tuple(
        Claim(
            f"{said[0].upper()}{said[1:]}.",
            f"{'so' if holds else 'not so'} in {tables.source}",
            None if elsewhere else holds,
        )
        for said, holds in claims.items()
    )


def _power(sigma: float) -> str:
    return f"10{str(round(math.log10(sigma))).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def _name(node: Node) -> str:
    return f"[{', '.join(map(str, node))}]"


def _ratio(value: float) -> str:
    return number(math.ceil(value * 100) / 100) if math.isfinite(value) else "∞"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _drawn(values: list[Any]) -> list[float | None]:
    return [None if value is None or not math.isfinite(value) else float(value) for value in values]
