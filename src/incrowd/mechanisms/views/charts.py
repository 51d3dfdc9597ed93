"""Pictures of a set of views as self-contained SVG: which columns are carried together, and how far pairs are off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations

from incrowd.reports.page import shortened
from incrowd.reports.svg import COLOURS

_SIZE, _RADIUS, _MARGIN = 520, 210, 150


def _opening(title: str, width: int, height: int, size: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="{size}">'
    )


def carried_graph(title: str, names: Sequence[str], views: Sequence[Sequence[str]]) -> str:
    """The columns on a circle; a line between two that some view carries together, stronger if several do."""
    times: dict[tuple[str, str], int] = {}
    for view in views:
        for pair in combinations(view, 2):
            times[pair] = times.get(pair, 0) + 1
    place = {
        name: (
            _MARGIN + _SIZE / 2 + _RADIUS * math.sin(2 * math.pi * i / len(names)),
            _SIZE / 2 - _RADIUS * math.cos(2 * math.pi * i / len(names)),
        )
        for i, name in enumerate(names)
    }
    parts = [_opening(title, _SIZE + 2 * _MARGIN, _SIZE, 14)]
    for (a, b), number in sorted(times.items()):
        (x1, y1), (x2, y2) = place[a], place[b]
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{COLOURS[0]}" '
            f'stroke-width="{min(1.5 + number, 6):g}" stroke-opacity="0.65"><title>{escape(a)} and {escape(b)}</title>'
            "</line>"
        )
    middle = _MARGIN + _SIZE / 2
    for name, (x, y) in place.items():
        side = "middle" if abs(x - middle) < 20 else "start" if x > middle else "end"
        dx = 0 if side == "middle" else 12 if side == "start" else -12
        dy = 5 if side != "middle" else -14 if y < _SIZE / 2 else 24
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{COLOURS[1]}"/>'
            f'<text x="{x + dx:.1f}" y="{y + dy:.1f}" text-anchor="{side}" fill="currentColor">'
            f"{escape(shortened(name, 18))}</text>"
        )
    return "".join([*parts, "</svg>"])


def heat_map(title: str, names: Sequence[str], errors: Mapping[tuple[str, str], float]) -> str:
    """A square for each pair of columns, the darker the further its counts are off; the figure is in per mille."""
    left, top, cell = 150, 110, max(22, min(46, 460 // max(1, len(names))))
    width, height = left + cell * len(names) + 60, top + cell * len(names) + 20  # the last name leans to the right
    worst = max(errors.values(), default=0.0) or 1.0
    parts = [_opening(title, width, height, 12)]
    for i, name in enumerate(names):
        x, y = left + cell * i, top + cell * i
        short = escape(shortened(name, 18))
        parts.append(
            f'<text x="{left - 6}" y="{y + cell / 2 + 4:.1f}" text-anchor="end" fill="currentColor">{short}</text>'
            f'<text transform="translate({x + cell / 2 + 4:.1f} {top - 6}) rotate(-60)" fill="currentColor">'
            f"{short}</text>"
        )
        for j, other in enumerate(names):
            error = errors.get((name, other), errors.get((other, name)))
            if error is None:
                continue
            shade = error / worst
            ink = "#fff" if shade > 0.55 else "currentColor"
            parts.append(
                f"<g><title>{escape(name)} and {escape(other)}: {1000 * error:.0f} of 1000</title>"
                f'<rect x="{left + cell * j}" y="{y}" width="{cell - 1}" height="{cell - 1}" '
                f'fill="{COLOURS[0]}" fill-opacity="{0.05 + 0.95 * shade:.2f}"/>'
                f'<text x="{left + cell * j + cell / 2:.1f}" y="{y + cell / 2 + 4:.1f}" text-anchor="middle" '
                f'fill="{ink}" font-size="10">{1000 * error:.0f}</text></g>'
            )
    return "".join([*parts, "</svg>"])
