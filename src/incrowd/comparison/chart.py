"""A comparison as a picture."""

from __future__ import annotations

from incrowd.comparison import Compared
from incrowd.reports.svg import Axis, Line, Mark, line_chart


def draw(compared: Compared) -> str:
    """The error of each way of publishing against ε, as an SVG document."""
    names = list(dict.fromkeys(figure.mechanism for figure in compared.figures))
    lines: list[Line] = []
    marks: list[Mark] = []
    for name in names:
        points = [(f.epsilon, f.absolute) for f in compared.figures if f.mechanism == name]
        # Where two lie on each other, as lines do that stand for nothing published, both can be seen.
        dashed = len(lines) == 1
        lines.append(Line(name, [x for x, _ in points], [y if y else None for _, y in points], dashed=dashed))
        if len(points) == 1 and points[0][1]:
            marks.append(Mark(points[0][0], points[0][1], name))
    return line_chart(
        f"INTERNAL: error of counts of one and two columns, {compared.records:,} records",
        Axis("ε", low=0.0),
        Axis("Σ|x − y| / records", log=True),
        lines,
        marks,
    )
