"""Randomised tables (Ikarashi, Kikuchi, Chida, Takahashi): Figures 2, 3 and 4, errors of reconstruction and ε.

The table is randomised by retention-replacement with the ρ of Algorithm 1, all counts of the columns are reconstructed,
and the error is Σ|x − x̂|/R. The paper does not say by which of the two methods of Agrawal, Srikant and Thomas it
reconstructs; both are drawn. The bits are seeded, so the figures are the same each time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.core.errors import DataError, IncrowdError
from incrowd.core.numbers import number
from incrowd.domain import Bins, Coding, Domain, IntegerRange
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.pram import draw as pram
from incrowd.mechanisms.pram.blocks import Block, as_drawn
from incrowd.mechanisms.pram.estimate import tabulate
from incrowd.mechanisms.pram.inversion import invert, likeliest
from incrowd.papers.examples.census1990 import SIZES, census_1990
from incrowd.papers.gallery import Claim, Figure, Material
from incrowd.randomness import RandomSource
from incrowd.reports.page import Content, figure, paragraph, table
from incrowd.reports.svg import Axis, Line, line_chart
from incrowd.theory.randomisation import RetentionReplacement, local_epsilon, retention_for_k
from incrowd.theory.shuffling import central_epsilon

if TYPE_CHECKING:
    from incrowd.sources import Source

PAPER = "Ikarashi, Kikuchi, Chida, Takahashi: k-anonymous Microdata Release via Post Randomisation Method"
DELTA = 1e-6

# The columns of the 1990 census in the UCI repository, and how the paper's roundings may have been.
_RAW: dict[str, tuple[str, Domain]] = {
    "sex": ("SEX", IntegerRange(0, 1)),
    "age": ("AGE", Bins((*(float(a) for a in range(0, 90, 5)), math.inf))),
    "income": (
        "RPINCOME",
        Bins((-math.inf, 0, 1, 5e3, 10e3, 15e3, 20e3, 25e3, 30e3, 40e3, 50e3, 75e3, math.inf)),
    ),
    "worked_last_year": ("WORK89", IntegerRange(0, 2)),
    "worked_last_week": ("WORKLWK", IntegerRange(0, 2)),
    "education": ("YEARSCH", IntegerRange(0, 17)),
    "travel_time": ("TRAVTIME", Bins((*(float(t) for t in range(0, 100, 5)), math.inf))),
}
_NAMES = tuple(SIZES)
_SEED = 2458285
_QUICK = 24_582
_STEPS = {False: 300, True: 60}


@dataclass(frozen=True)
class Run:
    """One randomised table: how much was kept, what that promises, and how wrong the reconstruction is."""

    records: int
    columns: int
    k: float
    rho: float
    epsilon: float
    central: float
    inverse: float
    em: float
    em_gap: float


def run(people: Histogram, names: Sequence[str], k: float, source: RandomSource, steps: int) -> Run:
    """Randomise some columns of a table for Pk-anonymity and reconstruct all counts."""
    truth = people.project(names)
    sizes = [len(truth[name].labels) for name in names]
    rho = as_drawn(retention_for_k(k, truth.total, sizes))
    laws = [RetentionReplacement(rho, size) for size in sizes]
    blocks = [Block((name,), (law.size,), law) for name, law in zip(names, laws, strict=True)]
    released = pram.run(truth, blocks, source)
    whole = tabulate(blocks, released, names, most=math.prod(sizes))
    exact = np.zeros(sizes)
    exact[tuple(truth[name].codes for name in names)] = truth.counts
    best = likeliest(whole.axes, whole.released, most=steps)
    return Run(
        records=truth.total,
        columns=len(names),
        k=k,
        rho=rho,
        epsilon=local_epsilon(laws),
        central=central_epsilon(laws, truth.total, DELTA).epsilon,
        inverse=float(np.abs(invert(whole.axes, whole.released)[0] - exact).sum()) / truth.total,
        em=float(np.abs(best.counts - exact).sum()) / truth.total,
        em_gap=best.gap,
    )


def figure_2(material: Material) -> Figure:
    """Errors against the number of records, at k = 2 and with four columns."""
    people, source, steps = _people(material), RandomSource.seeded(_SEED), _STEPS[material.quick]
    sizes = [people.total // 10**i for i in range(4, -1, -1) if people.total // 10**i >= 200]
    runs = []
    for records in sizes:
        part = people.with_counts(source.sample_without_replacement(people.counts, records))
        runs.append(run(part, _NAMES[:4], 2, source, steps))
    return _drawn(
        "pram-figure-2",
        "Reconstruction errors against the number of records",
        runs,
        ("records", [float(one.records) for one in runs], True),
        "More records help twice: counts of a given ρ become more accurate, and a larger ρ reaches the same k. The "
        "local ε grows with it, the ε of the shuffled table falls.",
        (
            _example_of_section_4(),
            _claim("Errors become smaller with more records.", runs, material, falling=True),
            _almost_none(runs),
            Claim(
                "ε increases with the number of records.",
                f"the local ε, from {number(runs[0].epsilon)} to {number(runs[-1].epsilon)}",
                all(a.epsilon < b.epsilon for a, b in pairwise(runs)),
            ),
        ),
    )


def figure_3(material: Material) -> Figure:
    """Errors against the number of columns, at k = 2 and with all records."""
    people, source = _people(material), RandomSource.seeded(_SEED + 1)
    most = 5 if material.quick else 7
    runs = [run(people, _NAMES[:n], 2, source, _STEPS[material.quick] if n < 6 else 60) for n in range(1, most + 1)]
    return _drawn(
        "pram-figure-3",
        "Reconstruction errors against the number of columns",
        runs,
        ("columns", [float(one.columns) for one in runs], False),
        "The local ε is the same for any number of columns, since k decides it: ε = ½·ln((R−1)/(k−1)). It has to be "
        "divided among more of them, while there are more cells to fill: all counts of six or seven columns together "
        "cannot be had. Counts of a few of them can, whatever else is in the table.",
        (
            _claim("Errors become larger with more columns.", runs, material),
            _small(runs, "the columns grow from 1 to {}", runs[-1].columns),
        ),
    )


def figure_4(material: Material) -> Figure:
    """Errors against k, with four columns and all records."""
    people, source = _people(material), RandomSource.seeded(_SEED + 2)
    sizes = (2, 10, 100) if material.quick else (2, 5, 10, 20, 50, 100)
    runs = [run(people, _NAMES[:4], k, source, _STEPS[material.quick]) for k in sizes]
    return _drawn(
        "pram-figure-4",
        "Reconstruction errors against k",
        runs,
        ("k", [float(one.k) for one in runs], True),
        "A crowd fifty times as large costs an ε smaller by ½·ln 99, and errors that grow slowly.",
        (
            _claim("Errors become larger with k.", runs, material),
            _small(runs, "k grows from 2 to {}", 100),
        ),
    )


def _example_of_section_4() -> Claim:
    """The only number that the paper prints."""
    rho = retention_for_k(100, 100_000, [2, 5, 10])
    return Claim(
        "100,000 records, three attributes with 2, 5 and 10 values, k = 100: ρ is roughly 0.303.",
        f"{rho:.5f}",
        f"{rho:.3f}" == "0.303",
    )


def _almost_none(runs: Sequence[Run]) -> Claim:
    first, last = runs[0], runs[-1]
    return Claim(
        "Errors are “quite high” at 245 records, and there are “almost no errors” at 2,458,285.",
        f"{number(first.em, 2)} at {number(first.records)} and {number(last.em, 2)} at {number(last.records)} by the "
        "likeliest numbers, where 2 would be the worst",
        None,
    )


def _claim(said: str, runs: Sequence[Run], material: Material, *, falling: bool = False) -> Claim:
    """What the paper says of its census, which is the user's own if one was given; otherwise of a stand-in for it."""
    errors = [one.em for one in runs]
    holds = all(b < a if falling else a < b for a, b in pairwise(errors))
    own = "census1990" in material.data
    found = f"from {number(errors[0], 2)} to {number(errors[-1], 2)} by the likeliest numbers"
    stand_in = f"{'so' if holds else 'not so'} in an example census: "
    return Claim(said, found if own else stand_in + found, holds if own else None)


def _small(runs: Sequence[Run], while_: str, last: int) -> Claim:
    grown = runs[-1].em - runs[0].em
    return Claim(
        "The increment is “quite small”.",
        f"{number(grown, 2)}, while {while_.format(last)}, where 2 would be the largest error",
        None,
    )


def _drawn(
    name: str,
    title: str,
    runs: Sequence[Run],
    across: tuple[str, list[float], bool],
    said: str,
    claims: tuple[Claim, ...],
) -> Figure:
    label, x, log = across
    axis = Axis(label, log=log)
    errors = line_chart(
        title,
        axis,
        Axis("Σ|x − x̂|/R", log=True),
        [
            Line("likeliest (iterative Bayes)", x, [r.em for r in runs]),
            Line("unbiased (inverse)", x, [r.inverse for r in runs]),
        ],
    )
    privacy = line_chart(
        "What is promised",
        axis,
        Axis("ε (replace-one)", log=True),
        [
            Line("one record (local)", x, [r.epsilon for r in runs]),
            Line(f"the shuffled table, δ = {DELTA:g}", x, [r.central for r in runs]),
        ],
    )
    rows: list[list[Content]] = [
        [
            number(r.records),
            number(r.columns),
            number(r.k),
            f"{r.rho:.5f}",
            number(r.epsilon),
            number(r.central),
            number(r.inverse, 3),
            number(r.em, 3),
        ]
        for r in runs
    ]
    head = ["records", "columns", "k", "ρ", "ε₀", "ε", "inverse", "likeliest"]
    return Figure(
        name,
        f"Figure {name[-1]}: {title[0].lower()}{title[1:]}",
        PAPER,
        (
            figure(errors, "An error of 2 is the largest that counts none of which is negative can have."),
            figure(privacy, "Both for replacing one record."),
            table("The numbers", head, rows, numbers=range(8)),
            paragraph(said),
        ),
        {"runs": [vars(one) for one in runs]},
        claims,
    )


def _people(material: Material) -> Histogram:
    own = material.data.get("census1990")
    return _example(_QUICK * 10 if material.quick else None) if own is None else _own(own)


@lru_cache(maxsize=1)
def _example(records: int | None) -> Histogram:
    return census_1990() if records is None else census_1990(records)


def _opened(path: Path) -> tuple[Source, dict[str, str]]:
    """A table with the columns' names in its first line; or without it, the columns used and no others, in order."""
    from incrowd.sources import open_source

    wanted = tuple(raw for raw, _ in _RAW.values())
    lacking: Sequence[str] = wanted
    # The first line may hold values, two of them alike; without names there may be other columns, or no plain text.
    attempts: tuple[tuple[dict[str, Any], list[str]], ...] = (
        ({}, ["data-columns"]),
        ({"columns": wanted}, ["data-malformed", "data-format"]),
    )
    for names, expected in attempts:
        try:
            source = open_source(str(path), **names)
        except IncrowdError as error:
            if error.code in expected:
                continue
            raise
        found = {column.name.upper(): column.name for column in source.columns()}
        absent = [raw for raw in wanted if raw not in found]
        if not absent:
            return source, found
        lacking = absent
        if len(absent) < len(wanted):
            break  # it has a line of names, and not all of them
    raise DataError(
        f"{path.name} has no column {lacking[0]}.",
        code="column-unknown",
        remedy=f"A copy of the 1990 census needs the columns {', '.join(wanted)}: named in its first line, or just "
        "these in this order.",
    )


@lru_cache(maxsize=1)
def _own(path: Path) -> Histogram:
    """The user's own copy of the census, its columns rounded to the paper's numbers of values."""
    source, found = _opened(path)
    table = source.count_by([Coding(found[raw], domain) for raw, domain in _RAW.values()])
    columns = [
        Column(name, tuple(map(str, range(size))), column.codes)
        for (name, size), column in zip(SIZES.items(), table.columns, strict=True)
    ]
    return Histogram.of(columns, table.counts)
