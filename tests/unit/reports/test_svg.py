"""Line charts: where the names of points go."""

import re
import xml.etree.ElementTree as ET

import pytest

from incrowd.reports.svg import Axis, Line, Mark, line_chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(y, mark):
    x = [i / 50 for i in range(101)]
    chart = line_chart("A chart", Axis("x"), Axis("y"), [Line("curve", x, [y(v) for v in x])], [Mark(*mark, "a point")])
    root = ET.fromstring(chart)
    (name,) = [e for e in root.iter(f"{SVG}text") if e.get("class") == "mark-name"]
    (path,) = root.iter(f"{SVG}path")
    points = [tuple(map(float, p.split(","))) for p in re.split("[ML]", path.get("d"))[1:]]
    left, bottom = float(name.get("x")), float(name.get("y"))
    width = 7 * len("a point")
    left -= width if name.get("text-anchor") == "end" else 0
    return (left, bottom, width), points


@pytest.mark.parametrize(
    ("y", "mark"),
    [
        (lambda x: 2 - x, (1.0, 1.0)),
        (lambda x: x, (1.0, 1.0)),
        (lambda x: x, (1.9, 1.9)),
        (lambda x: 2 - x, (0.3, 1.7)),
        (lambda x: x**4, (1.5, 1.5**4)),
    ],
)
def test_the_name_of_a_point_covers_no_curve_and_stays_inside(y, mark):
    (left, bottom, width), points = drawn(y, mark)
    assert left >= 84
    assert left + width <= 760 - 24
    assert not [p for p in points if left < p[0] < left + width and bottom - 12 < p[1] < bottom + 3]


def test_a_chart_is_escaped_and_described():
    chart = line_chart("<b>", Axis("x & y"), Axis('"y"'), [Line("<i>", [0, 1], [0, None])], [Mark(0, 0, "<u>")])
    root = ET.fromstring(chart)
    assert root.get("aria-label") == '<b>. Horizontal: x & y. Vertical: "y". <i>'
    assert root.get("role") == "img"
