"""The pictures that follow from computations; `make reference` draws them, and a test fails when one is out of date."""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable
from html import escape
from pathlib import Path

import numpy as np

from incrowd.comparison.chart import draw_advice
from incrowd.reports.svg import STYLE, Axis, Line, Mark, line_chart
from incrowd.theory.beliefs import Adversary, DirichletPrior, belief_ratio
from incrowd.theory.crowd import frontier
from incrowd.theory.randomisation import RetentionReplacement, local_epsilon
from incrowd.theory.sampling import largest_rate, theorem_rate
from incrowd.theory.shuffling import central_epsilon


def idea() -> str:
    """From a table to a release."""
    stations = [
        ("table", "a file, a database,", "a cluster"),
        ("histogram", "each record once,", "with its count"),
        ("histogram", "thinned, merged", "or redrawn"),
        ("release", "table, certificate,", "report"),
    ]
    steps = [("count", "no chance here"), ("mechanism", "chance only here"), ("write", "in no order")]
    out = [
        (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 130" role="img" aria-label="A table is counted '
            'into a histogram, a mechanism makes another histogram of it, and that is written as the release">'
        ),
        f"<style>{STYLE}.box{{fill:none;stroke:#8b95a5;stroke-width:1.4}}.small{{font-size:9px}}</style>",
        '<rect class="paper" width="760" height="130"/>',
    ]
    for i, (name, *said) in enumerate(stations):
        left = 8 + 207 * i
        out.append(
            f'<rect class="box" x="{left}" y="28" width="123" height="78" rx="8"/>'
            f'<text class="title" x="{left + 61}" y="54" text-anchor="middle">{escape(name)}</text>'
            f'<text class="tick" x="{left + 61}" y="75" text-anchor="middle">{escape(said[0])}</text>'
            f'<text class="tick" x="{left + 61}" y="91" text-anchor="middle">{escape(said[1])}</text>'
        )
    for i, (name, said) in enumerate(steps):
        left = 133 + 207 * i
        out.append(
            f'<path class="box" d="M{left} 67H{left + 78}m-7 -5l7 5l-7 5"/>'
            f'<text class="mark-name" x="{left + 39}" y="58" text-anchor="middle">{escape(name)}</text>'
            f'<text class="label small" x="{left + 39}" y="84" text-anchor="middle">{escape(said)}</text>'
        )
    return "\n".join((*out, "</svg>\n"))


def worst_table() -> str:
    """How the divergence of removal depends on the number of records in a cell."""
    k, beta, epsilon = 20, 0.2, 0.5
    gamma = 1 - (1 - beta) * math.exp(-epsilon)

    def tail(crowd: int, n: int) -> float:
        return math.fsum(math.comb(n, j) * beta**j * (1 - beta) ** (n - j) for j in range(crowd, n + 1))

    def curve(crowd: int) -> Line:
        values = [tail(crowd, n) - math.exp(epsilon) * tail(crowd, n - 1) for n in range(1, 81)]
        return Line(f"J = {crowd}", [float(n) for n in range(1, 81)], [max(value, 0.0) for value in values])

    lines = [curve(crowd) for crowd in (k, k + 1, k + 2)]
    at = math.ceil((k - 1) / gamma)
    mark = Mark(float(at), float(lines[0].y[at - 1] or 0), f"n = {at}: δ")
    x, y = Axis("records n in the cell of the one who is removed"), Axis("divergence", low=0)
    return line_chart(f"The worst table: k = {k}, β = {beta:g}, ε = {epsilon:g}", x, y, lines, [mark])


def crowds() -> str:
    """The smallest crowd against the sampling rate."""
    rates = [i / 50 for i in range(1, 48)]
    lines = []
    for epsilon, colour in ((0.5, "#2563a8"), (1.0, "#c2570c"), (2.0, "#3d7a37")):
        points = frontier(epsilon, 1e-6, rates)
        for name, ks, dashed in (
            (f"ε = {epsilon:g}", [p.k for p in points], False),
            (f"ε = {epsilon:g}, Theorem 5", [p.paper_k for p in points], True),
        ):
            lines.append(
                Line(
                    name,
                    [p.beta for p in points],
                    [None if k is None else float(k) for k in ks],
                    dashed=dashed,
                    colour=colour,
                    in_legend=not dashed,
                )
            )
    x, y = Axis("sampling rate β", low=0, high=1), Axis("smallest crowd k", log=True, high=1000)
    return line_chart("How large crowds must be, at δ = 10⁻⁶", x, y, lines)


def stubbornness() -> str:
    """The belief ratio of the paper's Table 3 against more and more stubborn readers."""
    table = [[200, 300], [1800, 2700], [18000, 2000]]
    sigmas = [10 ** (i / 4) for i in range(4, 25)]
    lines = [
        Line(
            "starts from shares of 0.4 and 0.6",
            sigmas,
            [belief_ratio(table, Adversary.with_prior(DirichletPrior.from_shape((0.4, 0.6), s))).ratio for s in sigmas],
        ),
        Line(
            "starts from anything",
            sigmas,
            [belief_ratio(table, Adversary.with_stubbornness(s)).ratio for s in sigmas],
        ),
    ]
    x, y = Axis("stubbornness σ", log=True), Axis("belief ratio of the table", log=True)
    return line_chart("The more stubborn the reader, the larger the ratio", x, y, lines)


def shuffled() -> str:
    """What shuffling makes of a local ε."""
    sizes = [round(10 ** (i / 2)) for i in range(6, 15)]
    lines = []
    for rho in (0.2, 0.3, 0.45):
        laws = [RetentionReplacement(rho, size) for size in (2, 18, 12, 3)]
        values = [central_epsilon(laws, n, 1e-6).epsilon for n in sizes]
        lines.append(
            Line(f"ρ = {rho:g}, local ε₀ = {local_epsilon(laws):.2f}", [float(n) for n in sizes], list(values))
        )
    x, y = Axis("records", log=True), Axis("central ε at δ = 10⁻⁶", log=True)
    return line_chart("What shuffling makes of it: four attributes of 2, 18, 12 and 3 values", x, y, lines)


def rates() -> str:
    """The largest rate against the number of rare values."""
    many = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    x = [float(m) for m in many]

    def table(size: int, m: int) -> np.ndarray:
        return np.array([size] * m + [1000] * 1000)

    lines = [
        Line(
            f"{size} {'person' if size == 1 else 'people'} each",
            x,
            [largest_rate(table(size, m), 0.5, 0.05).rate for m in many],
        )
        for size in (1, 3, 10)
    ]
    lines.append(Line("by Theorem 3", x, [theorem_rate(table(1, m), 0.5, 0.05, 1).rate for m in many], dashed=True))
    across = Axis("rare rows beside 1,000 rows that 1,000 people share", log=True)
    return line_chart("What rare rows do to the rate: ε = 0.5, δ = 0.05", across, Axis("largest rate", log=True), lines)


def advice() -> str:
    """What `incrowd advise` finds on Adult, as it was recorded (docs/advice.py)."""
    return draw_advice(runpy.run_path(str(Path(__file__).with_name("advice.py")))["recorded"]())


PICTURES: dict[str, Callable[[], str]] = {
    "idea.svg": idea,
    "worst-table.svg": worst_table,
    "crowds.svg": crowds,
    "stubbornness.svg": stubbornness,
    "shuffled.svg": shuffled,
    "rates.svg": rates,
    "advice.svg": advice,
}
