"""What an attacker sees of a release: pictures as markup, for pages that have the reports' style."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from incrowd.core.numbers import number, percent
from incrowd.reports.bars import Row, bars
from incrowd.reports.svg import Axis, Line, Mark, line_chart

_LEAST = 1e-18


def ranges(groups: Sequence[tuple[int, int]]) -> str:
    """Groups as the ranges of their members, the last ones."""
    widest = max(high - low for low, high in groups) or 1
    return bars(
        "The last groups, as they are published",
        "A bar is as long as the range is wide",
        ("thousands wide",),
        [Row(f"{low:,} to {high:,}", [(high - low) / widest], [number((high - low) / 1000)]) for low, high in groups],
    )


def beside_each_other(edges: NDArray[np.int64], with_her: NDArray[np.int64], without: NDArray[np.int64]) -> str:
    """Crowds of declared ranges, from a table with her and from one without."""
    top = max(int(with_her.max()), int(without.max()), 1)
    names = [f"{low:,} to {high - 1:,}" for low, high in pairwise(edges[:-1])] + [f"{edges[-2]:,} or more"]
    return bars(
        "Declared ranges, of a tenth of the people",
        "Grey: without her in the table. Blue: with her. Ranges with too few people are not published",
        ("without", "with her"),
        [
            Row(name, [int(a) / top, int(b) / top], [number(int(a)), number(int(b))])
            for name, a, b in zip(names, without, with_her, strict=True)
        ],
    )


def divergences(title: str, epsilons: Sequence[float], deltas: Sequence[float], promised: float) -> str:
    """The δ that both answers have at each ε, and the ε at which it should be 0."""
    at = epsilons.index(promised)
    return line_chart(
        title,
        Axis("ε", low=0.0),
        Axis("δ of both answers together", low=0.0, high=0.6),
        [Line("with her against without her", epsilons, list(deltas))],
        [Mark(epsilons[at], deltas[at], f"the sum of both ε: δ = {number(deltas[at], 2)}")],
    )


def found(title: str, looked: Sequence[tuple[str, int]], of: int) -> str:
    """Of how many people asked about a row is found, by whether they are in the table."""
    return bars(
        title,
        "People of whom a row is found",
        ("found", "of them"),
        [Row(who, [many / of], [number(many), percent(many / of)]) for who, many in looked],
    )


def distances(title: str, sizes: Sequence[int], deltas: Sequence[float], promised: float) -> str:
    """How far outputs with and without her are apart, by the size of her group, beside what is promised."""
    x = [float(size) for size in sizes]
    shown = [max(delta, _LEAST) for delta in deltas]
    return line_chart(
        title,
        Axis("people in her group"),
        Axis("distance of outputs", log=True, low=_LEAST, high=1e-11),
        [Line("what it is", x, shown), Line("what is promised", x, [promised] * len(x), dashed=True)],
    )
