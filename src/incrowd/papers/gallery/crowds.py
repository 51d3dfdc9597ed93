"""Tables 1 and 2 and Figures 1 to 6 of Li, Qardaji and Su, with the exact δ beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from incrowd.core.numbers import number
from incrowd.papers.gallery import Claim, Figure, Material
from incrowd.reports.page import Content, figure, paragraph, table
from incrowd.reports.svg import COLOURS, Axis, Line, Mark, line_chart
from incrowd.theory import crowd_figures
from incrowd.theory.crowd import paper_delta
from incrowd.theory.crowd_figures import Curve

PAPER = "Li, Qardaji, Su: On Sampling, Anonymization, and Differential Privacy"

# As printed, β down and ε across.
PRINTED_TABLE_2 = {
    0.05: (6.83e-10, 2.50e-14, 3.19e-17, 1.76e-19, 3.97e-22, 2.00e-24),
    0.1: (4.19e-06, 1.61e-09, 3.44e-12, 4.07e-14, 3.22e-16, 1.89e-18),
    0.2: (2.16e-03, 8.02e-06, 1.89e-07, 6.03e-09, 4.79e-11, 1.59e-12),
}
# (β, ε, δ), with as many digits as are printed.
PRINTED_TABLE_1 = (
    *((1.0, "2.40", "1e-05"), (0.1, "0.69", "1e-06"), (0.01, "0.095", "1e-07")),
    *((1.0, "1", "0"), (0.1, "0.159", "0"), (0.01, "0.017", "0")),
)


def table_1(material: Material) -> Figure:  # noqa: ARG001
    """Table 1: what sampling does to ε and δ."""
    rows = crowd_figures.table_1()
    agree = [
        f"{row['epsilon']:.{len(epsilon.partition('.')[2])}f}" == epsilon
        and math.isclose(row["delta"], float(delta), rel_tol=1e-9)
        for row, (_, epsilon, delta) in zip(rows, PRINTED_TABLE_1, strict=True)
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
        ),
        {"rows": rows, "printed": len(agree), "agree": sum(agree)},
        (_values(sum(agree), len(agree), "pairs of ε and δ are printed", "the last digit"),),
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
                ["bound", *(f"ε = {e:g}" for e in crowd_figures.TABLE_2_EPSILONS)],
                rows,
                numbers=range(1, 7),
            ),
        ),
        {
            "epsilon": list(crowd_figures.TABLE_2_EPSILONS),
            "paper": {c.label: list(c.paper) for c in curves},
            "exact": {c.label: list(c.exact) for c in curves},
            "printed": total,
            "agree": agree,
        },
        (_values(agree, total, "values of δ are printed", "the third digit"),),
    )


def _values(agree: int, total: int, printed: str, digits: str) -> Claim:
    return Claim(f"{total} {printed}", f"{agree} come out, to {digits}", agree == total)


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
    tails = [
        math.fsum(math.comb(m, j) * beta**j * (1 - beta) ** (m - j) for j in range(m + 1) if j > gamma * m)
        for m in range(n, 2 * n + 1)
    ]
    rises = sum(after > before for before, after in pairwise(tails))
    claim = Claim(
        "The larger n, the smaller the tail beyond γn; but not from every n to the next.",
        f"{tails[0]:.3g} at n = {n}, {tails[-1]:.3g} at n = {2 * n}; in between it rises {rises} times",
        tails[-1] < tails[0] and rises > 0,
    )
    title = "Figure 1: what the bound adds up"
    return Figure("sampling-figure-1", title, PAPER, (figure(chart, caption),), numbers, (claim,))


def figure_2(material: Material) -> Figure:
    """Figure 2: ε against 1/δ for several k."""
    at = [_bound(k, 0.2, 2.0) for k in (10, 20, 30, 40, 50)]
    steps = [after / before for before, after in pairwise(at)]
    claim = Claim(
        "At ε = 2, ten more in k roughly divide δ by 10⁵ (here: by 10⁴ to 10⁶).",
        f"by {number(1 / max(steps), 2)} to {number(1 / min(steps), 2)}",
        all(1e-6 <= step <= 1e-4 for step in steps),
    )
    return _inverse("2", "ε against 1/δ at β = 0.2", crowd_figures.figure_2(_points(material)), (claim,))


def figure_3(material: Material) -> Figure:
    """Figure 3: ε against 1/δ for several β."""
    at = [_bound(20, beta, 1.0) for beta in (0.05, 0.1, 0.2, 0.3, 0.4)]
    claim = Claim(
        "A smaller β protects better (“dramatically”).",
        f"at ε = 1, δ from {number(at[0], 2)} (β = 0.05) to {number(at[-1], 2)} (β = 0.4)",
        all(less < more for less, more in pairwise(at)),
    )
    return _inverse("3", "ε against 1/δ at k = 20", crowd_figures.figure_3(_points(material)), (claim,))


def figure_4(material: Material) -> Figure:
    """Figure 4: pairs of k and β that protect alike."""
    pairs = ((15, 0.05), (22, 0.1), (35, 0.2), (60, 0.4))
    spread = {
        epsilon: max(at) / min(at)
        for epsilon in (1.0, 1.5, 2.0)
        if (at := [_bound(k, beta, epsilon) for k, beta in pairs])
    }
    claim = Claim(
        "The four pairs of k and β give a similar level of protection (how similar is not said).",
        "their δ are "
        + "; ".join(f"within a factor of {number(factor, 2)} at ε = {epsilon:g}" for epsilon, factor in spread.items()),
        None,
    )
    title = "Twice the rate needs a larger crowd"
    return _inverse("4", title, crowd_figures.figure_4(_points(material)), (claim,))


def figure_5(material: Material) -> Figure:
    """Figure 5: very small crowds."""
    alone = [_bound(1, 0.025, epsilon) for epsilon in (0.5, 1.0, 2.0)]
    more = [_bound(k, 0.025, 2.0) for k in (2, 3, 4, 5)]
    claims = (
        Claim(
            "With k = 1, δ is less than β = 0.025.",
            f"{number(alone[0], 3)} at ε = 0.5, and β itself at ε = 1 and ε = 2",
            all(delta < 0.025 for delta in alone),
        ),
        Claim(
            "From k = 2 on, δ is below 0.001 at ε = 2.",
            f"{number(more[0], 3)} at k = 2, and less above",
            all(delta < 0.001 for delta in more),
        ),
    )
    return _inverse("5", "Very small crowds at β = 0.025", crowd_figures.figure_5(_points(material)), claims)


def figure_6(material: Material) -> Figure:  # noqa: ARG001
    """Figure 6: the ε that k buys."""
    curves = crowd_figures.figure_6()
    chart = line_chart(
        "The ε that a crowd of k buys at δ ≤ 10⁻⁶",
        Axis("k"),
        Axis("ε", low=0),
        _lines(curves, lambda value: value),
    )
    falls = all(later <= earlier for c in curves for earlier, later in pairwise(p for p in c.paper if p is not None))
    claim = Claim("The larger k, the smaller ε can be.", "so it is, for every β" if falls else "not so", falls)
    return _figure("6", "What k buys", curves, chart, (claim,))


def _points(material: Material) -> int:
    return 16 if material.quick else 40


def _bound(k: int, beta: float, epsilon: float) -> float:
    """The paper's own δ; where Theorem 5 does not apply, something that agrees with nothing."""
    found = paper_delta(k, beta, epsilon)
    return math.nan if found is None else found


def _inverse(which: str, title: str, curves: Sequence[Curve], claims: tuple[Claim, ...]) -> Figure:
    chart = line_chart(title, Axis("ε"), Axis("1/δ", log=True), _lines(curves, lambda delta: 1 / delta))
    return _figure(which, title, curves, chart, claims)


def _lines(curves: Sequence[Curve], shown: Callable[[float], float]) -> list[Line]:
    lines = []
    for curve, colour in zip(curves, COLOURS, strict=False):
        exact = [shown(value) if value else None for value in curve.exact]
        paper = [shown(value) if value else None for value in curve.paper]
        lines.append(Line(curve.label, curve.x, exact, colour=colour))
        lines.append(Line(f"{curve.label}, Theorem 5", curve.x, paper, dashed=True, colour=colour, in_legend=False))
    return lines


def _figure(which: str, title: str, curves: Sequence[Curve], chart: str, claims: tuple[Claim, ...]) -> Figure:
    content: tuple[Content, ...] = (
        figure(chart, "Whole lines are exact; dashed ones are the bound of Theorem 5, where it applies."),
        paragraph(_gain(curves)),
    )
    numbers = {
        curve.label: {"x": list(curve.x), "paper": list(curve.paper), "exact": list(curve.exact)} for curve in curves
    }
    return Figure(
        f"sampling-figure-{which}", f"Figure {which}: {title[0].lower()}{title[1:]}", PAPER, content, numbers, claims
    )


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
