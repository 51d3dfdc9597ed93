"""Plain samples (Chaudhuri, Mishra): the largest safe rate against the number of rare values, theorem and exact."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from incrowd.core.errors import UnreachableError
from incrowd.core.numbers import number
from incrowd.papers.gallery import Claim, Figure, Material
from incrowd.reports.page import figure, paragraph, table
from incrowd.reports.svg import Axis, Line, line_chart
from incrowd.theory import sampling

PAPER = "Chaudhuri, Mishra: When Random Sampling Preserves Privacy"
_EPSILON, _DELTA = 0.5, 0.05


def rare_values(material: Material) -> Figure:
    """The rate at which a table with some rare values may be sampled."""
    rare = (1, 2, 5, 10, 50, 100) if material.quick else (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    sizes = (1, 3, 10)
    exact: dict[int, list[float]] = {size: [] for size in sizes}
    theorem: list[float | None] = []
    for many in rare:
        for size in sizes:
            counts = np.array([size] * many + [1000] * 1000)
            exact[size].append(sampling.largest_rate(counts, _EPSILON, _DELTA, 1).rate)
        try:
            theorem.append(sampling.theorem_rate(np.array([1] * many + [1000] * 1000), _EPSILON, _DELTA, 1).rate)
        except UnreachableError:
            theorem.append(None)
    x = list(map(float, rare))
    falls = [
        all(later < earlier for earlier, later in pairwise(rates))
        for rates in ([rate for rate in theorem if rate is not None], *exact.values())
    ]
    chart = line_chart(
        "Rare values decide how much may be sampled",
        Axis("rare values in a table of 1,000 values of 1,000 rows each", log=True),
        Axis("largest safe rate", log=True),
        [
            *(Line(f"exact, {size} rows each", x, list(exact[size])) for size in sizes),
            Line("Theorem 3", x, theorem, dashed=True),
        ],
    )
    printed = [
        ("1,000 values of 1,000 rows", np.full(1000, 1000)),
        ("a Zipf table", np.maximum(1, np.floor(1e6 / (2.6 * np.arange(1, 1001) ** 1.5))).astype(np.int64)),
    ]
    rows, numbers = [], {}
    for name, counts in printed:
        best = sampling.largest_rate(counts, _EPSILON, _DELTA, 1).rate
        paper = sampling.theorem_rate(counts, _EPSILON, _DELTA, 1).rate
        rows.append([name, number(paper, 3), number(best, 3), number(best / paper, 3)])
        numbers[name] = {"theorem": paper, "exact": best}
    return Figure(
        "rare-values",
        "Rare values and the safe rate",
        PAPER,
        (
            figure(chart, f"ε = {_EPSILON:g}, δ = {_DELTA:g}, one unknown row."),
            table("Two whole tables", ["table", "Theorem 3", "exact", "times"], rows, numbers=(1, 2, 3)),
            paragraph(
                "The theorem’s rate falls with every rare value, however many rows it has; the exact one asks of each "
                "value only how likely too many of its rows are sampled."
            ),
        ),
        {"rare": x, "exact": {str(k): v for k, v in exact.items()}, "theorem": theorem, **numbers},
        (
            Claim(
                "“The higher the number of rare values, the lower the sampling frequency” (the paper has no figure).",
                f"{'so' if falls[0] else 'not so'} by Theorem 3, {'so' if all(falls[1:]) else 'not so'} exactly",
                falls[0],
            ),
        ),
    )
