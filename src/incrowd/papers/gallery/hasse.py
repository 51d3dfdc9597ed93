"""A part of a lattice of generalizations as a diagram: the coarsest table on top, lines to the next finer ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from incrowd.reports.svg import COLOURS, STYLE

_WIDTH, _ROW, _BOX, _TOP = 760, 74, (92, 40), 70


def hasse(title: str, kinds: Sequence[str], tables: Mapping[tuple[int, ...], Sequence[bool]]) -> str:
    """A complete SVG document.

    Args:
        title: what it shows.
        kinds: the conditions that tables are marked by, each with a colour and a place of its own.
        tables: for every table drawn, which of the conditions it satisfies.
    """
    heights = sorted({sum(node) for node in tables}, reverse=True)
    rows = {height: sorted((n for n in tables if sum(n) == height), reverse=True) for height in heights}
    places = {
        node: (_WIDTH * (2 * i + 1) / (2 * len(row)), _TOP + _BOX[1] / 2 + _ROW * heights.index(height))
        for height, row in rows.items()
        for i, node in enumerate(row)
    }
    high = _TOP + _ROW * len(heights)
    told = "; ".join(
        f"{_name(node)}: {', '.join(kind for kind, holds in zip(kinds, held, strict=True) if holds) or 'none'}"
        for node, held in tables.items()
    )
    out = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {high}" role="img" '
            f'aria-label="{escape(f"{title}. {told}", quote=True)}">'
        ),
        f"<style>{STYLE}.edge{{stroke:#8b95a5;stroke-width:1.2}}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{high}"/>',
        f'<text class="title" x="12" y="24">{escape(title)}</text>',
    ]
    left = 12.0
    for kind, colour in zip(kinds, COLOURS, strict=False):
        out.append(
            f'<circle cx="{left + 5:.0f}" cy="44" r="5" fill="{colour}"/>'
            f'<text class="tick" x="{left + 15:.0f}" y="48">{escape(kind)}</text>'
        )
        left += 30 + 6.6 * len(kind)
    for node, (x, y) in places.items():
        for other, (u, v) in places.items():
            if sum(other) == sum(node) - 1 and all(b <= a for a, b in zip(node, other, strict=True)):
                out.append(f'<line class="edge" x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}"/>')
    for node, (x, y) in places.items():
        out.append(
            f'<rect class="paper edge" x="{x - _BOX[0] / 2:.1f}" y="{y - _BOX[1] / 2:.1f}" width="{_BOX[0]}" '
            f'height="{_BOX[1]}" rx="6"/>'
            f'<text class="tick" x="{x:.1f}" y="{y - 3:.1f}" text-anchor="middle">{_name(node)}</text>'
        )
        start = x - 8 * (len(kinds) - 1)
        out.extend(
            f'<circle cx="{start + 16 * i:.1f}" cy="{y + 10:.1f}" r="5" fill="{colour}"/>'
            for i, (holds, colour) in enumerate(zip(tables[node], COLOURS, strict=False))
            if holds
        )
    return "\n".join((*out, "</svg>\n"))


def _name(node: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, node))}]"
