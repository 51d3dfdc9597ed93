"""The lattice of generalizations as a picture: which tables withstand whom, and which one was taken.

After Figure 3 of Machanavajjhala, Gehrke and Götz: coarser tables stand higher, lines join a table to those one step
coarser, and marks show what each withstands. Self-contained SVG, light and dark, readable aloud.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from incrowd.reports.svg import COLOURS

Node = tuple[int, ...]

MOST_IN_A_ROW = 14
MOST_ROWS = 14
MOST_COLUMNS = 8
"""With more columns than this a table is called by what differs from the one taken."""

_WIDTH, _SIDE = 900, 6
_BOX, _ROW, _DOT = 36, 92, 4.0
_SWEEPS = 6


@dataclass(frozen=True)
class LatticeNode:
    """One table of the lattice.

    Attributes:
        node: the level of each column.
        keeps: for each demand, whether the table keeps it.
        kept: whether it keeps all of them together.
        minimal: it keeps all, and nothing finer does.
        chosen: it is the one that was taken.
    """

    node: Node
    keeps: tuple[bool, ...]
    kept: bool
    minimal: bool = False
    chosen: bool = False


def around(centre: Node, heights: Sequence[int]) -> list[Node]:
    """The nodes that fit into a picture: all of them, or those nearest to one, in steps of one level."""
    inside, edge = {centre}, [centre]
    rows = {sum(centre): 1}
    while edge:
        ring = sorted({n for node in edge for n in steps(node, heights)} - inside)
        wider = dict(rows)
        for node in ring:
            wider[sum(node)] = wider.get(sum(node), 0) + 1
        if max(wider.values()) > MOST_IN_A_ROW or len(wider) > MOST_ROWS:
            if len(inside) == 1:  # too many columns: some of the nearest are better than none
                finer, coarser = ([n for n in ring if sum(n) - sum(centre) == side] for side in (-1, 1))
                inside |= {*finer[:MOST_IN_A_ROW], *coarser[:MOST_IN_A_ROW]}
            break
        inside |= set(ring)
        rows, edge = wider, ring
    return sorted(inside)


def steps(node: Node, heights: Sequence[int]) -> list[Node]:
    """The nodes one level away in one column."""
    return [
        (*node[:i], level, *node[i + 1 :])
        for i, height in enumerate(heights)
        for level in (node[i] - 1, node[i] + 1)
        if 0 <= level <= height
    ]


def lattice_chart(title: str, columns: Sequence[str], demands: Sequence[str], nodes: Sequence[LatticeNode]) -> str:
    """A complete SVG document.

    Args:
        title: what it shows.
        columns: whose levels a node's numbers are, in order.
        demands: what the marks stand for.
        nodes: the tables to be shown, at most `MOST_IN_A_ROW` of a height.
    """
    top = 30 + 22 * (1 + len(demands))
    chosen = [n.node for n in nodes if n.chosen]
    names = {n.node: _name(n.node, columns, chosen[0] if chosen else n.node) for n in nodes}
    told = (
        f"{title}. {len(nodes)} tables, coarser ones higher; a table's numbers are the levels of {', '.join(columns)}. "
        f"{sum(n.kept for n in nodes)} of them keep everything"
        + (f"; taken was {' '.join(map(str, chosen[0]))}." if chosen else ".")
    )
    places, height = _layout(names)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top + height}" role="img" '
            f'class="lattice" aria-label="{escape(told, quote=True)}">'
        ),
        f"<title>{escape(title)}</title><desc>{escape(told)}</desc><style>{STYLE}</style>",
        f'<rect class="lattice-paper" width="{_WIDTH}" height="{top + height}"/>',
        _legend(demands),
        f'<g transform="translate(0 {top})">',
    ]
    known = {n.node: n for n in nodes}
    for node, (x, y) in sorted(places.items()):
        for i in range(len(node)):
            above = (*node[:i], node[i] + 1, *node[i + 1 :])
            if above in places:
                both = known[node].kept and known[above].kept
                over, up = places[above]
                parts.append(
                    f'<line class="lattice-step{" kept" if both else ""}" x1="{x:.1f}" y1="{y - _BOX / 2:.1f}" '
                    f'x2="{over:.1f}" y2="{up + _BOX / 2:.1f}"/>'
                )
    widest = max(Counter(sum(n.node) for n in nodes).values())
    room = (_WIDTH - 2 * _SIDE) / widest
    for n in nodes:
        width = min(_pitch(names[n.node]), room - 4)
        parts.append(_box(n, names[n.node], places[n.node], width, columns, demands))
    return "\n".join((*parts, "</g></svg>\n"))


def _layout(names: Mapping[Node, str]) -> tuple[dict[Node, tuple[float, float]], int]:
    """Where each node goes, coarser ones higher; within a row near those that it is joined to."""
    rows: dict[int, list[Node]] = {}
    pitch = max(map(_pitch, names.values()))
    for node in sorted(names, reverse=True):
        rows.setdefault(sum(node), []).append(node)
    sums = sorted(rows, reverse=True)
    across: dict[Node, float] = {}
    for members in rows.values():
        _spread(members, pitch, across)
    everyone = set(names)
    for sweep in range(_SWEEPS):
        for height in sums if sweep % 2 else sums[::-1]:
            pull = {}
            for node in rows[height]:
                near = [across[n] for n in steps(node, [level + 1 for level in node]) if n in everyone]
                pull[node] = sum(near) / len(near) if near else across[node]
            rows[height].sort(key=lambda node: (pull[node], node))
            _spread(rows[height], pitch, across)
    places = {
        node: (across[node], _BOX / 2 + 6 + row * _ROW) for row, height in enumerate(sums) for node in rows[height]
    }
    return places, (len(sums) - 1) * _ROW + _BOX + 14


def _spread(members: Sequence[Node], pitch: float, across: dict[Node, float]) -> None:
    """Next to each other, in the middle."""
    step = min(pitch + 22, (_WIDTH - 2 * _SIDE) / len(members))
    for i, node in enumerate(members):
        across[node] = _WIDTH / 2 + (i - (len(members) - 1) / 2) * step


def _pitch(name: str) -> float:
    return max(44.0, 7.6 * len(name) + 8)


def _name(node: Node, columns: Sequence[str], taken: Node) -> str:
    """The levels, close together where there are many; where there are too many, what differs from the one taken."""
    if len(node) <= MOST_COLUMNS:
        return ("" if len(node) > 6 and max(node) < 10 else " ").join(map(str, node))
    apart = [i for i, level in enumerate(node) if level != taken[i]]
    if not apart:
        return "taken"
    place = apart[0]
    column = columns[place] if len(columns[place]) <= 5 else f"{columns[place][:4]}…"
    return f"{column} {node[place]}"


def _box(
    n: LatticeNode,
    name: str,
    place: tuple[float, float],
    width: float,
    columns: Sequence[str],
    demands: Sequence[str],
) -> str:
    x, y = place
    levels = ", ".join(f"{name} {level}" for name, level in zip(columns, n.node, strict=True))
    kept = [demand for demand, keeps in zip(demands, n.keeps, strict=True) if keeps]
    said = f"{levels}: " + ("keeps everything" if n.kept else f"keeps {'; '.join(kept)}" if kept else "keeps nothing")
    kinds = "".join(f" {kind}" for kind in ("kept", "minimal", "chosen") if getattr(n, kind))
    out = [
        f'<g class="lattice-node{kinds}" data-node="{",".join(map(str, n.node))}"><title>{escape(said)}</title>',
        f'<rect x="{x - width / 2:.1f}" y="{y - _BOX / 2:.1f}" width="{width:.1f}" height="{_BOX}" rx="8"/>',
        f'<text x="{x:.1f}" y="{y - 2:.1f}" text-anchor="middle">{escape(name)}</text>',
    ]
    step = min(12.0, (width - 8) / max(len(n.keeps), 1))
    for i, keeps in enumerate(n.keeps):
        out.append(_dot(x + (i - (len(n.keeps) - 1) / 2) * step, y + 10, i, keeps=keeps))
    return "".join((*out, "</g>"))


def _dot(x: float, y: float, demand: int, *, keeps: bool) -> str:
    colour = COLOURS[demand % len(COLOURS)]
    if keeps:
        return f'<circle class="lattice-dot" cx="{x:.1f}" cy="{y:.1f}" r="{_DOT}" fill="{colour}"/>'
    return f'<circle class="lattice-dot open" cx="{x:.1f}" cy="{y:.1f}" r="{_DOT - 1.4:.1f}"/>'


def _legend(demands: Sequence[str]) -> str:
    out, left = [], 14.0
    for i, demand in enumerate(demands):
        line = 16 + 22 * i
        out.append(
            f"{_dot(left, line - 4, i, keeps=True)}"
            f'<text class="lattice-key" x="{left + 12:.0f}" y="{line}">{escape(_cut(demand))}</text>'
        )
    line = 18 + 22 * len(demands)
    left = 8
    for kinds, text in (
        ("", "something fails"),
        (" kept", "keeps everything"),
        (" kept minimal", "and nothing finer does"),
        (" kept minimal chosen", "taken"),
    ):
        out.append(
            f'<g class="lattice-node{kinds}"><rect x="{left:.0f}" y="{line - 12}" width="24" height="15" rx="5"/></g>'
            f'<text class="lattice-key" x="{left + 31:.0f}" y="{line}">{text}</text>'
        )
        left += 60 + 7.0 * len(text)
    return "".join(out)


def _cut(text: str) -> str:
    return text if len(text) <= 110 else f"{text[:109]}…"


STYLE = """
.lattice-paper{fill:#fff}.lattice-key{font:13px system-ui,sans-serif;fill:#2d3748}
.lattice-step{stroke:#ccd3db;stroke-width:1}.lattice-step.kept{stroke:#6b9bd0;stroke-width:1.8}
.lattice-node rect{fill:#f4f5f7;stroke:#cbd2da;stroke-width:1}
.lattice-node text{font:600 12.5px ui-monospace,Menlo,Consolas,monospace;fill:#5b6675}
.lattice-node.kept rect{fill:#e3eefa;stroke:#6b9bd0;stroke-width:1.2}.lattice-node.kept text{fill:#1b3a5c}
.lattice-node.minimal rect{stroke:#2563a8;stroke-width:2.6}
.lattice-node.chosen rect{fill:#ffe9b8;stroke:#b36b00;stroke-width:3.2}.lattice-node.chosen text{fill:#4a2f00}
.lattice-dot{stroke:#fff;stroke-width:.8}.lattice-dot.open{fill:none;stroke:#b9c1cb;stroke-width:1}
@media screen and (prefers-color-scheme:dark){.lattice-paper{fill:#171a21}.lattice-key{fill:#cbd5e0}
.lattice-step{stroke:#343c49}.lattice-step.kept{stroke:#4f7fb5}
.lattice-node rect{fill:#1e222b;stroke:#3b4351}.lattice-node text{fill:#98a3b3}
.lattice-node.kept rect{fill:#1d2f45;stroke:#4f7fb5}.lattice-node.kept text{fill:#d6e6f8}
.lattice-node.minimal rect{stroke:#86b7ee}.lattice-node.chosen rect{fill:#4a3508;stroke:#f0b43c}
.lattice-node.chosen text{fill:#ffe9b8}.lattice-dot{stroke:#171a21;filter:brightness(1.5)}
.lattice-dot.open{stroke:#525c6b;filter:none}}
""".strip()
