"""The picture of a lattice: every table once, coarser ones higher, nothing on top of anything else."""

import itertools
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.reports.lattice_chart import MOST_IN_A_ROW, MOST_ROWS, LatticeNode, around, lattice_chart, steps

SVG = "{http://www.w3.org/2000/svg}"


def drawn(nodes, columns=("age", "sex"), demands=("k & more", "<b>")):
    root = ET.fromstring(lattice_chart("Tables", columns, demands, nodes))
    boxes = {}
    for group in root.iter(f"{SVG}g"):
        rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        if (group.get("class") or "").startswith("lattice-node") and text is not None:
            name = tuple(map(int, text.text.split()))
            assert name not in boxes
            boxes[name] = [float(rect.get(key)) for key in ("x", "y", "width", "height")], group
    return root, boxes


def whole(heights, chosen):
    return [
        LatticeNode(n, (sum(n) > 1, n[0] > 0), sum(n) > 1 and n[0] > 0, n == chosen, n == chosen)
        for n in itertools.product(*(range(h + 1) for h in heights))
    ]


def test_every_table_is_there_once_and_joined_to_its_neighbours():
    nodes = whole((3, 2), (1, 1))
    root, boxes = drawn(nodes)
    assert set(boxes) == {n.node for n in nodes}
    lines = [e for e in root.iter(f"{SVG}line") if e.get("class").startswith("lattice-step")]
    assert len(lines) == 3 * 3 + 4 * 2  # of a grid of 4 by 3
    for line in lines:  # upwards, from box to box
        assert float(line.get("y2")) < float(line.get("y1"))


def test_coarser_tables_stand_higher_and_no_two_overlap():
    nodes = whole((5, 2, 1, 1), (4, 2, 1, 0))
    _, boxes = drawn(nodes, ("a", "b", "c", "d"))
    for (one, (a, _)), (two, (b, _)) in itertools.combinations(boxes.items(), 2):
        if sum(one) > sum(two):
            assert a[1] < b[1]
        assert a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]
    width = 900
    assert all(box[0] >= 0 and box[0] + box[2] <= width for box, _ in boxes.values())


def test_marks_show_what_is_kept():
    _, boxes = drawn(whole((2, 1), (1, 1)))
    for node, (_, group) in boxes.items():
        dots = [e.get("class") == "lattice-dot" for e in group.iter(f"{SVG}circle")]
        assert dots == [sum(node) > 1, node[0] > 0]
        kinds = group.get("class").split()[1:]
        assert ("kept" in kinds) == (sum(node) > 1 and node[0] > 0)
        assert ("chosen" in kinds) == ("minimal" in kinds) == (node == (1, 1))


def test_it_can_be_read_aloud_and_names_are_only_text():
    root, boxes = drawn(whole((2, 1), (1, 1)))
    assert root.get("role") == "img"
    assert "taken was 1 1" in root.get("aria-label")
    assert root.find(f"{SVG}title").text == "Tables"
    assert "coarser" in root.find(f"{SVG}desc").text
    assert boxes[1, 0][1].find(f"{SVG}title").text == "age 1, sex 0: keeps <b>"
    assert any(e.text == "k & more" for e in root.iter(f"{SVG}text"))


@settings(deadline=None, max_examples=40)
@given(heights=st.lists(st.integers(0, 6), min_size=1, max_size=9), data=st.data())
def test_what_is_drawn_of_a_large_lattice_is_near_the_table_taken_and_fits(heights, data):
    centre = tuple(data.draw(st.integers(0, height)) for height in heights)
    near = around(centre, heights)
    assert centre in near
    assert len(set(near)) == len(near)
    rows = [sum(1 for n in near if sum(n) == height) for height in {sum(n) for n in near}]
    assert max(rows) <= MOST_IN_A_ROW
    assert len(rows) <= MOST_ROWS
    reached = {centre}
    for _ in near:
        reached |= {n for node in reached for n in steps(node, heights) if n in set(near)}
    assert reached == set(near)
    nodes = [LatticeNode(n, (True,), True, chosen=n == centre) for n in near]
    chart = lattice_chart("T", [f"c{i}" for i in range(len(heights))], ["k"], nodes)
    assert len(re.findall(r'class="lattice-node[^"]*"[^>]*><title>', chart)) == len(near)


@pytest.mark.parametrize("heights", [(5, 2, 1, 1), (3,), (0, 0)])
def test_a_small_lattice_is_drawn_whole(heights):
    every = list(itertools.product(*(range(h + 1) for h in heights)))
    for centre in every:
        assert around(centre, heights) == every
