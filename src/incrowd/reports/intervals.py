"""Estimates with their intervals as self-contained SVG: a point and a bar for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from incrowd.core.numbers import number
from incrowd.reports.svg import COLOURS, STYLE

_WIDTH, _ROW, _TOP, _BOTTOM, _RIGHT = 760, 22, 48, 54, 40
_LONGEST = 42  # letters of a name


@dataclass(frozen=True)
class Whisker:
    """One row: its ends, and the point between them if there is one. Without an upper end it goes on to the edge."""

    name: str
    low: float
    point: float | None
    high: float | None


def interval_chart(title: str, spans: Sequence[Whisker]) -> str:
    """A complete SVG document. Upper ends far beyond everything else are cut off, with an arrow."""
    names = [span.name if len(span.name) <= _LONGEST else f"{span.name[: _LONGEST - 1]}…" for span in spans]
    left = 24 + 6.8 * max(map(len, names), default=0)
    points = [value for span in spans for value in (span.low, span.point or 0.0)]
    reach = 4.0 * (max(points, default=0.0) or max((span.high or 0.0 for span in spans), default=1.0) or 1.0)
    ends = [span.high for span in spans if span.high is not None and span.high <= reach]
    top = max([*ends, *points, 1.0])
    top = reach if len(ends) < len(spans) else top
    height = _TOP + _ROW * len(spans) + _BOTTOM

    def place(value: float) -> float:
        return left + min(value / top, 1.0) * (_WIDTH - _RIGHT - left)

    out = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
            f'aria-label="{escape(title, quote=True)}">'
        ),
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="16" y="24">{escape(title)}</text>',
    ]
    bottom = _TOP + _ROW * len(spans)
    step = _step(top)
    for tick in range(math.floor(top / step + 1e-9) + 1):
        x = place(tick * step)
        out.append(
            f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
            f'<text class="tick" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{number(tick * step)}</text>'
        )
    out.append(
        f'<text class="label" x="{(left + _WIDTH - _RIGHT) / 2:.0f}" y="{bottom + 40}" text-anchor="middle">'
        "people</text>"
    )
    for place_of, (span, name) in enumerate(zip(spans, names, strict=True)):
        y = _TOP + _ROW * (place_of + 0.5)
        beyond = span.high is None or span.high > top
        end = _WIDTH - _RIGHT if beyond else place(span.high or 0.0)
        said = f"{span.name}: {span.low:,.0f} to {'no bound' if span.high is None else f'{span.high:,.0f}'}"
        out.append(
            f'<text class="tick" x="{left - 10:.0f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>'
            f'<line x1="{place(span.low):.1f}" y1="{y:.1f}" x2="{max(end, place(span.low) + 1):.1f}" y2="{y:.1f}" '
            f'stroke="{COLOURS[0]}" stroke-width="5" stroke-opacity="0.45"><title>{escape(said)}</title></line>'
        )
        if beyond:
            out.append(f'<path d="M{end:.1f},{y - 6:.1f}l10,6l-10,6z" fill="{COLOURS[0]}" fill-opacity="0.45"/>')
        if span.point is not None:
            out.append(f'<circle class="mark" cx="{place(span.point):.1f}" cy="{y:.1f}" r="4.5"/>')
    return "\n".join((*out, "</svg>\n"))


def _step(top: float) -> float:
    rough = top / 5
    magnitude = 10 ** math.floor(math.log10(rough))
    return float(next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= rough))
