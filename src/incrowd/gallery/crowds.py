"""Tables 1 and 2 and Figures 1 to 6 of Li, Qardaji and Su, with the exact δ beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from incrowd.gallery import Figure, Material, comparison
from incrowd.guarantees import crowd_figures
from incrowd.guarantees.crowd_figures import Curve
from incrowd.reports.page import Content, figure, number, paragraph, table
from incrowd.reports.svg import COLOURS, Axis, Line, Mark, line_chart

PAPER = "Li, Qardaji, Su: On Sampling, Anonymization, and Differential Privacy"

# As printed, β down and ε across.
PRINTED_TABLE_2 = {
    0.05: (6.83e-10, 2.50e-14, 3.19e-17, 1.76e-19, 3.97e-22, 2.00e-24),
    0.1: (4.19e-06, 1.61e-09, 3.44e-12, 4.07e-14, 3.22e-16, 1.89e-18),
    0.2: (2.16e-03, 8.02e-06, 1.89e-07, 6.03e-09, 4.79e-11, 1.59e-12),
}
# (β, ε, δ), with as many digits as are printed.
PRINTED_TABLE_1 = ((0.1, "0.693", "1e-06"), (0.01, "0.095", "1e-07"), (0.1, "0.159", "0"), (0.01, "0.017", "0"))


def table_1(material: Material) -> Figure:  # noqa: ARG001
    """Table 1: what sampling does to ε and δ."""
    rows = crowd_figures.table_1()
    sampled = [row for row in rows if row["beta"] < 1]
    agree = [
        f"{row['epsilon']:.3f}" == epsilon and math.isclose(row["delta"], float(delta), rel_tol=1e-9)
        for row, (_, epsilon, delta) in zip(sampled, PRINTED_TABLE_1, strict=True)
    ]
    return Figure(
        "sampling-table-1",
        "Table 1: sampling amplifies privacy",
        PAPER,
        (
            table(
                "ε and δ at three sampling rates",
                ["β", "ε", "δ"],
                [[number(r["beta"]), number(r["epsilon"]), number(r["delta"])] for r in rows],
                numbers=(0, 1, 2),
            ),
            comparison(sum(agree), len(agree), "values as printed, to their last digit"),
        ),
        {"rows": rows, "printed": len(agree), "agree": sum(agree)},
    )


def table_2(material: Material) -> Figure:  # noqa: ARG001
    """Table 2: δ at k = 20."""
    curves = crowd_figures.table_2()
    agree, rows = 0, []
    for beta, curve in zip(crowd_figures.TABLE_2_BETAS, curves, strict=True):
        printed = PRINTED_TABLE_2[beta]
        agree += sum(f"{mine:.2e}" == f"{theirs:.2e}" for mine, theirs in zip(curve.paper, printed, strict=True))
        rows.append([f"{curve.label}, Theorem 5", *(_scientific(value) for value in curve.paper)])
        rows.append([f"{curve.label}, exact", *(_scientific(value) for value in curve.exact)])
    total = sum(map(len, PRINTED_TABLE_2.values()))
    return Figure(
        "sampling-table-2",
        "Table 2: δ of crowds of 20",
        PAPER,
        (
            table(
                "δ, by the paper’s bound and exactly",
                ["", *(f"ε = {e:g}" for e in crowd_figures.TABLE_2_EPSILONS)],
                rows,
                numbers=range(1, 7),
            ),
            comparison(agree, total, "values of the bound as printed, to three digits"),
        ),
        {
            "epsilon": list(crowd_figures.TABLE_2_EPSILONS),
            "paper": {c.label: list(c.paper) for c in curves},
            "exact": {c.label: list(c.exact) for c in curves},
            "printed": total,
            "agree": agree,
        },
    )


def figure_1(material: Material) -> Figure:  # noqa: ARG001
    """Figure 1: the tail beyond γn of a binomial distribution."""
    n, beta, epsilon = 100, 0.2, 0.5
    gamma = (math.exp(epsilon) - 1 + beta) / math.exp(epsilon)
    pmf = [math.comb(n, j) * beta**j * (1 - beta) ** (n - j) for j in range(n + 1)]
    tail = math.fsum(p for j, p in enumerate(pmf) if j > gamma * n)
    chart = line_chart(
        "A binomial distribution, its mean and γn",
        Axis("sampled records of a group of 100", low=0, high=70),
        Axis("probability", low=0),
        [Line(f"n = {n}, β = {beta:g}", list(map(float, range(71))), list(pmf[:71]))],
        [Mark(beta * n, pmf[round(beta * n)], "βn"), Mark(gamma * n, pmf[round(gamma * n)], "γn")],
    )
    caption = (
        f"With ε = {epsilon:g}, γ = {gamma:.4f}. The probability beyond γn is {tail:.3g}; the larger n, the smaller."
    )
    numbers = {"n": n, "beta": beta, "epsilon": epsilon, "gamma": gamma, "tail": tail}
    return Figure("sampling-figure-1", "Figure 1: what the bound adds up", PAPER, (figure(chart, caption),), numbers)


def figure_2(material: Material) -> Figure:
    """Figure 2: ε against 1/δ for several k."""
    return _inverse("2", "ε against 1/δ at β = 0.2", crowd_figures.figure_2(_points(material)))


def figure_3(material: Material) -> Figure:
    """Figure 3: ε against 1/δ for several β."""
    return _inverse("3", "ε against 1/δ at k = 20", crowd_figures.figure_3(_points(material)))


def figure_4(material: Material) -> Figure:
    """Figure 4: pairs of k and β that protect alike."""
    return _inverse("4", "Twice the rate needs a larger crowd", crowd_figures.figure_4(_points(material)))


def figure_5(material: Material) -> Figure:
    """Figure 5: very small crowds."""
    return _inverse("5", "Very small crowds at β = 0.025", crowd_figures.figure_5(_points(material)))


def figure_6(material: Material) -> Figure:  # noqa: ARG001
    """Figure 6: the ε that k buys."""
    curves = crowd_figures.figure_6()
    chart = line_chart(
        "The ε that a crowd of k buys at δ ≤ 10⁻⁶",
        Axis("k"),
        Axis("ε", low=0),
        _lines(curves, lambda value: value),
    )
    return _figure("6", "What k buys", curves, chart)


def _points(material: Material) -> int:
    return 16 if material.quick else 40


def _inverse(which: str, title: str, curves: Sequence[Curve]) -> Figure:
    chart = line_chart(title, Axis("ε"), Axis("1/δ", log=True), _lines(curves, lambda delta: 1 / delta))
    return _figure(which, title, curves, chart)


def _lines(curves: Sequence[Curve], shown: Callable[[float], float]) -> list[Line]:
    lines = []
    for curve, colour in zip(curves, COLOURS, strict=False):
        exact = [shown(value) if value else None for value in curve.exact]
        paper = [shown(value) if value else None for value in curve.paper]
        lines.append(Line(curve.label, curve.x, exact, colour=colour))
        lines.append(Line(f"{curve.label}, Theorem 5", curve.x, paper, dashed=True, colour=colour, in_legend=False))
    return lines


def _figure(which: str, title: str, curves: Sequence[Curve], chart: str) -> Figure:
    content: tuple[Content, ...] = (
        figure(chart, "Whole lines are exact; dashed ones are the bound of Theorem 5, where it applies."),
        paragraph(_gain(curves)),
    )
    numbers = {
        curve.label: {"x": list(curve.x), "paper": list(curve.paper), "exact": list(curve.exact)} for curve in curves
    }
    return Figure(f"sampling-figure-{which}", f"Figure {which}: {title}", PAPER, content, numbers)


def _gain(curves: Sequence[Curve]) -> str:
    ratios = [
        paper / exact
        for curve in curves
        for paper, exact in zip(curve.paper, curve.exact, strict=True)
        if paper is not None and exact > 0
    ]
    alone = sum(paper is None for curve in curves for paper in curve.paper)
    beyond = f" At {alone} further points the theorem does not apply and the exact value stands alone." if alone else ""
    return (
        f"Where both exist, the bound is {number(min(ratios), 3)} to {number(max(ratios), 3)} times the exact value."
        f"{beyond}"
    )


def _scientific(value: float | None) -> str:
    return "–" if value is None else number(value, 3)
