"""A comparison as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from incrowd.comparison import Compared
from incrowd.comparison.advice import Advised
from incrowd.core.numbers import number
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.reports.scatter import Dot, scatter
from incrowd.reports.svg import Axis, Line, Mark, line_chart

_WIDTHS = (10.0, 7.5, 5.3, 3.3, 1.6)


def draw(compared: Compared) -> str:
    """The error of each way of publishing against ε, as an SVG document."""
    names = list(dict.fromkeys(figure.mechanism for figure in compared.contenders))
    lines: list[Line] = []
    marks: list[Mark] = []
    for name in names:
        points = [(f.epsilon, f.absolute) for f in compared.contenders if f.mechanism == name]
        # Where lines lie on each other, as those do that stand for nothing published, each is a band within the last.
        width = _WIDTHS[len(lines) % len(_WIDTHS)]
        lines.append(Line(name, [x for x, _ in points], [y if y else None for _, y in points], width=width))
        if len(points) == 1 and points[0][1]:
            marks.append(Mark(points[0][0], points[0][1], name))
    return line_chart(
        f"INTERNAL: error of counts of one and two columns, {compared.records:,} records",
        Axis("ε", low=0.0),
        Axis("people counted wrongly per person: Σ|x − y|/records", log=True),
        lines,
        marks,
    )


def draw_advice(advised: Advised) -> str:
    """Promise across, error upwards: a dot for each alternative; the current one ringed, the best ones numbered."""
    names = {id(one): f"{i}" for i, one in enumerate(advised.best, start=1)} | {id(advised.current): "now"}
    dots = [
        Dot(
            one.epsilon,
            1 - one.score,
            one.mechanism,
            f"{one.change}: error {number(1 - one.score, 2)}",
            names.get(id(one), ""),
        )
        for one in (advised.current, *advised.alternatives)
        if one.scores
    ]
    control = 1 - sum(advised.control) / len(advised.control)
    return scatter(
        f"INTERNAL: what a policy gives and what others would, {advised.records:,} records",
        "ε, a weaker promise to the right",
        "error of counts of 1 to 3 columns",
        dots,
        ("one-way tables alone", control),
    )


def draw_explored(points: Sequence[Mapping[str, Any]], control: Sequence[float]) -> str:
    """The moves that were made: promise across, error upwards; each dot can be chosen by its key."""
    dots = [
        Dot(
            one["epsilon"],
            1 - one["score"],
            MECHANISMS[one["mechanism"]].title if one["mechanism"] in MECHANISMS else one["mechanism"],
            f"{one['words']}: error {number(1 - one['score'], 2)}",
            one["name"],
            one["key"],
        )
        for one in points
    ]
    return scatter(
        "INTERNAL: what was tried, and the policy as it is now",
        "ε, a weaker promise to the right",
        f"error of counts of 1 to {len(control)} columns",
        dots,
        ("one-way tables alone", 1 - sum(control) / len(control)),
    )
