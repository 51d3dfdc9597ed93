"""The belief ratios that Machanavajjhala, Gehrke and Götz print, computed again.

Those about their Table 3 can be computed from it. Of Table 5 the data are not to be had, but its columns hang together.
A group of n people, a share m < ½ of them with the rarer value, asks against a uniform prior for

    A = 1 + w(½/m − 1) at stubbornness σ, with w = σ/(n + σ),   and   ½/m at σ = ∞

(the other of the two ratios is never larger, and the −1's of the exact formula are far below what is printed). Against
a prior in which the rarer value has the share r it asks for 1 + w(r/m − 1), against any shape for 1 + w(1 − m)/m at
least. With A and A∞ as printed, every group has m ≥ ½/A∞ and asks for A at most, and the one that asks for A has
m ≤ ½/A. Since 1 + (A−1)(r−m)/(½−m) falls with m, its value at ½/A is the least that can stand in the column of the
table's shares, and its value at ½/A∞ the most, unless a group's rarer value is the table's commoner one. Against any
shape, 1 + (A−1)(1−m)/(½−m) rises with m, so ½/A∞ gives the least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np

from incrowd.core.numbers import number
from incrowd.papers.gallery import Claim, Figure, Material, unbroken
from incrowd.papers.gallery.adversaries import PAPER
from incrowd.reports.page import paragraph, table
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.beliefs import belief_ratio
from incrowd.theory.embeddings import t_closeness_as_beliefs

# Table 3: (<40, M), (≥40, M), (≥40, F) by flu and cancer.
TABLE_3 = np.array([[200, 300], [1800, 2700], [18000, 2000]])

# Table 5, as printed: uniform prior and the table's shares at σ = 10⁶; any shape at 10³ and 10⁶; both shapes at σ = ∞.
TABLE_5 = {
    "[5, 2, 1, 1]": ("1.13", "1.0", "1.1", "1.6", "1.5", "1"),
    "[4, 2, 1, 1]": ("105.8", "70.8", "2.9", "211.6", "118.9", "79.5"),
    "[5, 1, 1, 1]": ("1.57", "1.25", "1.1", "2.7", "2.38", "1.59"),
    "[5, 2, 1, 0]": ("1.32", "1.08", "1.1", "2.1", "1.81", "1.21"),
    "[5, 2, 0, 1]": ("1.69", "1.54", "1.3", "249.4", "1.69", "1.54"),
    "[3, 2, 1, 1]": ("105.8", "70.7", "2.9", "211.6", "119.0", "79.6"),
    "[4, 2, 1, 0]": ("377", "251.9", "11.1", "753.9", "407.0", "272.0"),
    "[4, 1, 1, 1]": ("213.4", "142.6", "6.9", "426.8", "229.8", "153.6"),
    "[5, 0, 1, 1]": ("15.3", "10.3", "1.3", "30.5", "17.7", "11.8"),
    "[5, 1, 1, 0]": ("3.01", "2.14", "1.1", "5.7", "4.38", "2.92"),
    "[5, 1, 0, 1]": ("4.71", "1.25", "3.6", "1157.1", "4.93", "3.29"),
    "[5, 2, 0, 0]": ("2.45", "1.69", "1.7", "526.8", "2.45", "1.69"),
    "[3, 1, 1, 1]": ("213.4", "142.6", "6.9", "426.8", "229.8", "153.5"),
    "[3, 2, 1, 0]": ("377", "251.9", "11.1", "753.9", "406.9", "271.9"),
    "[5, 0, 1, 0]": ("19.8", "13.3", "1.6", "55.9", "22.3", "14.9"),
    "[5, 1, 0, 0]": ("9.5", "6.34", "7.2", "2625.7", "9.72", "6.49"),
    "[5, 0, 0, 1]": ("21.7", "14.5", "21.8", "14.6", "21.8", "14.6"),
}
SHARE = "0.334"
"""Of the minority in the paper's whole table."""

_TURNED = ("[5, 2, 0, 1]", "[5, 2, 0, 0]")
"""Rows that are decided by groups whose majority is the table's minority, to which the formulas above do not apply."""

Formula = Callable[[float, float, float], float]
_FOLLOWING: dict[str, tuple[int, Formula]] = {  # column of Table 5, and what m, w and r make of it
    "the table’s shares, σ = 10⁶": (1, lambda m, w, r: 1 + w * (r / m - 1)),
    "the table’s shares, σ = ∞": (5, lambda m, _, r: r / m),
    "any shape, σ = 10⁶": (3, lambda m, w, _: 1 + w * (1 - m) / m),
}
_ANY_SHAPE, _NEVER_CHANGES = 3, 5


def printed_ratios(material: Material) -> Figure:  # noqa: ARG001
    """The examples about Table 3, and the columns of Table 5 that follow from others."""
    examples = _examples()
    following = {name: _following(*at) for name, at in _FOLLOWING.items()}
    wrong = {name: [row for row, (_, _, agrees) in found.items() if not agrees] for name, found in following.items()}
    rows = [
        [
            row.replace(" ", "\u00a0"),
            *(text for found in following.values() for text in _cells(*found[row])),
        ]
        for row in TABLE_5
        if row not in _TURNED
    ]
    head = ["levels", *(text for name in following for text in (f"{unbroken(name)}: printed", "here"))]
    columns = tuple(
        Claim(
            f"Table 5, {name}: {len(found)} values that follow from those against the uniform prior.",
            f"{len(found) - len(wrong[name])} can be right"
            + (f"; not {', '.join(wrong[name])}" if wrong[name] else ""),
            not wrong[name],
        )
        for name, found in following.items()
    )
    return Figure(
        "adversaries-printed",
        "Tables 3 and 5: the values that are printed",
        PAPER,
        (
            paragraph(
                "The paper’s own examples are about its Table 3 and can be computed again. Its Table 5 is about a "
                "survey that is not to be had freely. But the two values against the uniform prior tell the size and "
                "the shares of the group that decides, and from these follow others. What is printed is rounded, so "
                "they follow within limits."
            ),
            table("Columns of Table 5", head, rows, numbers=range(1, 7)),
        ),
        {
            "examples": {claim.said: claim.found for claim in examples},
            "impossible": wrong,
        },
        (*examples, *columns, *_section_4_1()),
    )


def _section_4_1() -> tuple[Claim, ...]:
    """What Section 4.1 says of Table 5, looked up in Table 5."""
    rows = {row: tuple(map(float, printed)) for row, printed in TABLE_5.items()}
    at_3, at_6 = (sum(r[column] <= 20 for r in rows.values()) for column in (2, 3))
    below_both = sum(r[2] < min(r[4], r[5]) for r in rows.values())
    orders: dict[str, Callable[[tuple[float, ...]], bool]] = {
        "from σ = 10⁶ to σ = ∞ against a known shape": lambda r: r[0] <= r[4] and r[1] <= r[5],
        "from σ = 10³ to σ = 10⁶ against any shape": lambda r: r[2] <= r[3],
        "from a known prior to any shape, at σ = 10⁶": lambda r: max(r[0], r[1]) <= r[3],
    }
    return (
        Claim("§4.1, 16 tables keep ε = 20 against any shape with σ = 10³.", f"{at_3} in Table 5", at_3 == 16),
        Claim("§4.1, 4 tables keep ε = 20 against any shape with σ = 10⁶.", f"{at_6} in Table 5", at_6 == 4),
        *(
            Claim(
                f"§4.1, the smallest ε of every table rises {step}.",
                "it falls in no row of Table 5" + (f" but {', '.join(falling)}" if falling else ""),
                not falling,
            )
            for step, rises in orders.items()
            for falling in [[row for row, r in rows.items() if not rises(r)]]
        ),
        Claim(
            "§4.1, “almost all” tables need a smaller ε against any shape with σ = 10³ than against both shapes with "
            "σ = ∞.",
            f"in Table 5, {below_both} of {len(rows)} do",
            None,
        ),
        _figure_2b(rows),
    )


def _figure_2b(rows: dict[str, tuple[float, ...]], limit: float = 2.5, sigma: float = 1e5) -> Claim:
    """Against any shape a group's ratio is concave in σ, and 1 at σ = 1: so ε at σ = 10⁶ bounds it below that."""
    least = {row: 1 + (r[3] - 1) * (sigma - 1) / (1e6 - 1) for row, r in rows.items() if r[4] <= limit}
    lost = {row: ratio for row, ratio in least.items() if ratio > limit}
    said = "; ".join(f"{row} needs {number(ratio, 3)} or more" for row, ratio in lost.items())
    return Claim(
        "§4.1 on Figure 2(b), at ε = 2.5 and σ < 10⁵ any shape allows strictly more than the uniform shape with σ = ∞: "
        "every table that keeps the latter keeps the former.",
        f"of the {len(least)} tables in Table 5 that keep the latter, at σ = 10⁵ against any shape {said}",
        not lost,
    )


def _examples() -> tuple[Claim, ...]:
    prior = DirichletPrior((12_000, 18_000))
    women, young = TABLE_3[2:], TABLE_3[:1]
    firm, loose = Adversary.with_stubbornness(30_000), Adversary.with_stubbornness(1_000)
    closeness = t_closeness_as_beliefs(0.2, (334, 666)).ratio
    cases = [
        ("Example 3, prior D(12000, 18000): 4.", belief_ratio(women, Adversary.with_prior(prior)).ratio, 4.0),
        ("Example 3, any shape, σ = 30,000: 6.4.", belief_ratio(women, firm).ratio, 6.4),
        ("Example 3, shape (0.4, 0.6), σ = ∞: 6.", belief_ratio(women, Adversary.with_shape((0.4, 0.6))).ratio, 6.0),
        ("§3, Table 3 is 3-private for any shape, σ = 1,000.", belief_ratio(TABLE_3, loose).ratio, 3.0),
        ("§3, for σ = 30,000 young men need 61.", belief_ratio(young, firm).ratio, 61.0),
        (
            "§3, Table 3 is 2.5-private against D(12000, 18000).",
            belief_ratio(TABLE_3, Adversary.with_prior(prior)).ratio,
            2.5,
        ),
        ("§4.2, 0.2-closeness implies ε = 2.5 at a share of 0.334.", closeness, 2.5),
    ]
    return tuple(Claim(said, number(found, 6), abs(found / printed - 1) < 5e-3) for said, found, printed in cases)


def _following(column: int, formula: Formula) -> dict[str, tuple[str, tuple[float, float], bool]]:
    """For each row of Table 5 what is printed, within which limits it must be, and whether it is."""
    found = {}
    for row, printed in TABLE_5.items():
        if row in _TURNED:
            continue
        values = []
        for a, never, r in product(_limits(printed[0]), _limits(printed[4]), _limits(SHARE)):
            values.append(formula(0.5 / never, (a - 1) / (never - 1), r))
            if column != _NEVER_CHANGES:
                values.append(formula(0.5 / a, 1.0, r))
        low, high = max(1.0, min(values)), math.inf if column == _ANY_SHAPE else max(values)
        smallest, largest = _limits(printed[column])
        found[row] = (printed[column], (low, high), smallest <= high and low <= largest)
    return found


def _limits(printed: str) -> tuple[float, float]:
    """What may have been rounded to this: to the nearest, or up as a bound should be."""
    unit = 10.0 ** -len(printed.partition(".")[2])
    return max(float(printed) - unit, 1.0 if float(printed) >= 1 else 0.0), float(printed) + unit / 2


def _cells(printed: str, limits: tuple[float, float], agrees: bool) -> tuple[str, str]:
    low, high = (number(limit, 3) for limit in limits)
    return printed if agrees else f"{printed} ✗", f"≥ {low}" if limits[1] == math.inf else f"{low} to {high}"
