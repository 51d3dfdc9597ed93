"""The table beside what can be reconstructed of it, and a generalization to the same k. Never to be published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from incrowd.core.errors import IncrowdError, InternalError
from incrowd.core.numbers import number, percent
from incrowd.hierarchy import CodedAttribute, Hierarchy
from incrowd.histogram import Histogram
from incrowd.marginals import Counted
from incrowd.mechanisms.pram.estimate import can_be_undone, columns_of, of_sample, tabulate
from incrowd.mechanisms.pram.inversion import Floats, invert, likeliest
from incrowd.mechanisms.pram.settle import PramSettled
from incrowd.recoding import utility
from incrowd.recoding.demands import Demand
from incrowd.recoding.search import generalize, search
from incrowd.recoding.utility import SANITY, Comparison
from incrowd.reports.page import Content, Fact, PageSection, heading, label, markup, paragraph, table
from incrowd.theory.requirements import KAnonymity

_CELLS = 4_000  # larger tables of two columns are left out of the comparison
_SHOWN = 12
_SUPPRESSION = 0.05
_SECONDS = 5.0


@dataclass(frozen=True)
class Reconstruction:
    """How well the counts of some columns are reconstructed.

    Attributes:
        names: the columns.
        l1: Σ|x − x̂|/R by the unbiased estimate: the paper's measure.
        l1_em: the same by the likeliest numbers.
        expected: what the standard errors let one expect of `l1`.
        covered: the share of true counts within their 95% intervals.
        query_error: the mean relative error of the counts that occur, as in `utility.query_error`.
    """

    names: tuple[str, ...]
    l1: float
    l1_em: float
    expected: float
    covered: float
    query_error: float


def reconstruct(settled: PramSettled, truth: Counted, published: Counted, names: Sequence[str]) -> Reconstruction:
    """The estimates of a cross-tabulation beside the truth."""
    whole = tabulate(settled.blocks, published, names, invariant=settled.promise is None)
    rate = settled.drawn_rate
    estimate, variance = of_sample(map(whole.arranged, invert(whole.axes, whole.released)), rate)
    em = whole.arranged(likeliest(whole.axes, whole.released, most=400).counts) / rate
    x = counts_by(truth, names)
    records, errors = float(x.sum()), np.sqrt(variance)
    wrong = np.abs(em - x) / np.maximum(x, SANITY * records)
    return Reconstruction(
        names=tuple(names),
        l1=float(np.abs(estimate - x).sum()) / records,
        l1_em=float(np.abs(em - x).sum()) / records,
        expected=float(errors.sum()) * math.sqrt(2 / math.pi) / records,
        covered=float((np.abs(estimate - x) <= 1.96 * errors).mean()),
        query_error=float(wrong[x > 0].mean()),
    )


def counts_by(table: Counted, names: Sequence[str]) -> Floats:
    """How many records have each combination of values of these columns."""
    part = table.project(names)
    counts = np.zeros([len(part[name].labels) for name in names])
    counts[tuple(part[name].codes for name in names)] = part.counts
    return counts


def content(
    settled: PramSettled, attributes: Sequence[CodedAttribute], truth: Counted, published: Counted
) -> tuple[list[Fact], list[PageSection]]:
    """The facts and sections of the publisher's own report."""
    known = {
        name
        for name in truth.names
        if can_be_undone(settled.blocks, published, name, invariant=settled.promise is None)
    }
    asked = workload(truth)
    found = [reconstruct(settled, truth, published, chosen) for chosen in asked if known.issuperset(chosen)]
    query = query_error(asked, {one.names: one.query_error for one in found})
    facts = [
        Fact(
            "records",
            number(truth.total),
            "in the table, and in the release" if truth.total == published.total else "in the table",
        ),
        Fact("error of one column", _mean(found, 1), "Σ|x − x̂|/R, on average"),
        *([Fact("of two columns", _mean(found, 2), "Σ|x − x̂|/R, on average")] if len(truth.names) > 1 else []),
        Fact("query error", percent(query), "mean relative error of all these counts"),
    ]
    sections = [
        PageSection("reconstruction", "How well the table is reconstructed", tuple(_reconstruction(found))),
    ]
    if settled.promise is not None:
        told = (
            _generalization(settled, attributes, truth, asked, query)
            if isinstance(truth, Histogram)
            else [paragraph("It was not computed: for that, all cells of the table would be needed in one place.")]
        )
        sections.append(PageSection("generalization", "What generalization would have cost", tuple(told)))
    return facts, sections


Workload = Sequence[tuple[str, ...]]


def workload(truth: Counted) -> Workload:
    """The columns whose counts are compared: each one, and each pair that is not too large."""
    return _compared({column.name: len(column.labels) for column in truth.columns})


def _compared(sizes: Mapping[str, int]) -> Workload:
    pairs = combinations(sizes, 2)
    return [*((name,) for name in sizes), *(pair for pair in pairs if sizes[pair[0]] * sizes[pair[1]] <= _CELLS)]


def looked_at(settled: PramSettled) -> Workload:
    """The sets of columns by whose counts a table is known well enough for the reports, if it cannot be held."""
    sizes = {name: size for block in settled.blocks for name, size in zip(block.names, block.sizes, strict=True)}
    sets = (columns_of(settled.blocks, names, invariant=settled.promise is None) for names in _compared(sizes))
    return list(dict.fromkeys(map(tuple, sets)))


def query_error(asked: Workload, found: Mapping[tuple[str, ...], float]) -> float:
    """The mean over what is asked; what cannot be answered at all counts as wholly wrong."""
    return math.fsum(found.get(names, 1.0) for names in asked) / len(asked)


def _mean(found: Sequence[Reconstruction], columns: int) -> str:
    chosen = [one.l1 for one in found if len(one.names) == columns]
    return percent(float(np.mean(chosen))) if chosen else "—"


def _reconstruction(found: Sequence[Reconstruction]) -> list[Content]:
    shown = sorted(found, key=lambda one: (len(one.names), -one.l1))
    singles = [one for one in shown if len(one.names) == 1]
    pairs = [one for one in shown if len(one.names) == 2]
    rows = [
        [
            markup([markup([" × " if i else None, label(name)]) for i, name in enumerate(one.names)]),
            percent(one.l1),
            percent(one.expected),
            percent(one.l1_em),
            percent(one.covered),
        ]
        for one in [*singles, *pairs[:_SHOWN]]
    ]
    left = f" Of {number(len(pairs))} pairs, the {_SHOWN} least accurate are shown." if len(pairs) > _SHOWN else ""
    return [
        paragraph(
            "Each count of one or two columns is estimated from the release and compared with the table. The error is "
            "the sum of all deviations, divided by the number of records. Expected is what readers can compute from "
            "the standard errors, which they are given; within: the share of true counts inside their 95% intervals."
            + left
        ),
        table(
            "Errors of reconstructed counts",
            ["columns", "error", "expected", "error of the likeliest", "within"],
            rows,
            numbers=(1, 2, 3, 4),
        ),
    ]


# --- generalization -------------------------------------------------------------------------------------------------


def generalized(attributes: Sequence[CodedAttribute], settled: PramSettled, truth: Histogram, k: int) -> Comparison:
    """The table, full-domain generalized so that every group has k records, at the least query error that was found.

    Every column counts as a quasi-identifier, as it does for the randomised table.
    """
    hierarchies = {
        a.name: Hierarchy(
            tuple(
                a.hierarchy.coarsen(settled.levels[a.name], upper)
                for upper in range(settled.levels[a.name], a.hierarchy.height + 1)
            ),
            len(truth[a.name].labels),
        )
        for a in attributes
    }
    demands = [Demand(KAnonymity(k))]
    found = search(truth, hierarchies, demands, measure="query_error", suppression=_SUPPRESSION, seconds=_SECONDS)
    return generalize(truth, hierarchies, found.levels, demands, suppression=_SUPPRESSION).comparison


def group_size(settled: PramSettled) -> int:
    """The k of the release as a whole number: the policy's, or what it reaches, its last digits being rounding."""
    if settled.promise is None:
        raise InternalError("a release without a promise has no k")
    return math.ceil(settled.promise.k * (1 - 1e-9)) if settled.section.k is None else math.ceil(settled.section.k)


def _generalization(
    settled: PramSettled, attributes: Sequence[CodedAttribute], truth: Histogram, asked: Workload, query: float
) -> list[Content]:
    k = group_size(settled)
    try:
        c = generalized(attributes, settled, truth, k)
    except IncrowdError:
        return [
            paragraph(
                f"No full-domain generalization with groups of k = {number(k)} was found that leaves out at most "
                f"{percent(_SUPPRESSION)} of the records."
            )
        ]
    theirs = query_error(asked, {marginal.names: marginal.query_error for marginal in c.marginals})
    levels = [
        [label(a.name), number(len(c.recodes[a.name].labels)), number(len(c.recodes[a.name].to))] for a in attributes
    ]
    rows = [
        ["this release", percent(query), "all values as published", "0"],
        [
            f"generalized to groups of {number(k)}",
            percent(theirs),
            f"{percent(utility.information_kept(c))} of the information kept",
            number(c.suppressed),
        ],
    ]
    better = "more" if theirs > query else "less"
    return [
        paragraph(
            f"Pk-anonymity extends k-anonymity to randomised tables, so the two can be compared at the same k = "
            f"{number(k)}. Below, the table is generalized instead: one level for each column, found for the smallest "
            f"error, leaving out at most {percent(_SUPPRESSION)} of the records. The workload is the same: all counts "
            f"of one column, and of two unless they have more than {_CELLS:,} combinations, with their mean relative "
            f"error (against no less than {percent(SANITY)} of the table). The randomised table is used through its "
            "likeliest numbers; a column that was redrawn without regard to its value cannot be answered, and counts "
            "as an error of 100%."
        ),
        table(
            "The same k, the same workload",
            ["table", "query error", "what is left", "records left out"],
            rows,
            numbers=(1, 3),
        ),
        paragraph(
            f"Here generalization costs {better}. It also promises less: it is not differentially private, and what it "
            "reveals depends on what others know."
        ),
        heading("The generalized columns"),
        table("Values told apart", ["column", "after", "before"], levels, numbers=(1, 2)),
    ]
