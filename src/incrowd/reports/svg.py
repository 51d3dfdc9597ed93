"""Line charts as self-contained SVG: small, sharp in print, readable in light and dark, with no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from incrowd.core.numbers import number

COLOURS = ("#2563a8", "#c2570c", "#3d7a37", "#8a3f8f", "#8a6d00", "#4a5568")
"""Told apart by people who do not see all colours alike, and dark enough on white; order matters."""

_WIDTH, _HEIGHT = 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 56, 64


@dataclass(frozen=True)
class Line:
    """One curve. Points whose y is None are gaps. A dashed line is for what is compared with.

    A line is left out of the legend if the caption explains it and there would be no room.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    dashed: bool = False
    colour: str | None = None
    in_legend: bool = True
    width: float | None = None


@dataclass(frozen=True)
class Mark:
    """A point that is singled out."""

    x: float
    y: float
    name: str


@dataclass(frozen=True)
class Axis:
    """A scale with round ticks."""

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None


@dataclass
class _Scale:
    axis: Axis
    start: float
    end: float
    low: float = field(init=False, default=0.0)
    high: float = field(init=False, default=1.0)

    def fit(self, values: Sequence[float]) -> None:
        usable = [v for v in values if math.isfinite(v) and (v > 0 or not self.axis.log)] or [0.1, 1.0]
        low = min(usable) if self.axis.low is None else self.axis.low
        high = max(usable) if self.axis.high is None else self.axis.high
        if self.axis.log:
            low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
        if low == high:
            low, high = (low / 10, high * 10) if self.axis.log else (low - 1, high + 1)
        self.low, self.high = low, high

    def place(self, value: float) -> float:
        if self.axis.log:
            share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def shows(self, value: float | None) -> bool:
        return value is not None and math.isfinite(value) and self.low <= value <= self.high

    def ticks(self) -> list[float]:
        if self.axis.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            step = max(1, math.ceil((last - first) / 8))
            return [10.0**e for e in range(first, last + 1, step)]
        rough = (self.high - self.low) / 6
        magnitude = 10 ** math.floor(math.log10(rough))
        step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= rough)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def line_chart(title: str, x: Axis, y: Axis, lines: Sequence[Line], marks: Sequence[Mark] = ()) -> str:
    """A complete SVG document. Its title and a sentence for screen readers are part of it."""
    across = _Scale(x, _LEFT, _WIDTH - _RIGHT)
    up = _Scale(y, _HEIGHT - _BOTTOM, _TOP)
    across.fit([v for line in lines for v in line.x] + [m.x for m in marks])
    up.fit([v for line in lines for v in line.y if v is not None] + [m.y for m in marks])
    parts = [_frame(title, lines, across, up)]
    for i, line in enumerate(lines):
        colour = line.colour or COLOURS[i % len(COLOURS)]
        dash = ' stroke-dasharray="6 4"' if line.dashed else ""
        parts.extend(
            f'<path class="curve" d="{path}" stroke="{colour}"{dash}{_width(line)}>'
            f"<title>{escape(line.name)}</title></path>"
            for path in _paths(line, across, up)
        )
    curves = [
        (across.place(a), up.place(b))
        for line in lines
        for a, b in zip(line.x, line.y, strict=True)
        if b is not None and across.shows(a) and up.shows(b)
    ]
    for mark in marks:
        if across.shows(mark.x) and up.shows(mark.y):
            left, top = across.place(mark.x), up.place(mark.y)
            beside, level, anchor = _room(mark.name, left, top, curves)
            parts.append(
                f'<circle class="mark" cx="{left:.1f}" cy="{top:.1f}" r="5"/>'
                f'<text class="mark-name" x="{beside:.1f}" y="{level:.1f}" text-anchor="{anchor}">'
                f"{escape(mark.name)}</text>"
            )
    return "\n".join((*parts, "</svg>\n"))


def _frame(title: str, lines: Sequence[Line], across: _Scale, up: _Scale) -> str:
    summary = f"{title}. Horizontal: {across.axis.label}. Vertical: {up.axis.label}. " + "; ".join(
        line.name for line in lines
    )
    out = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'aria-label="{escape(summary, quote=True)}">'
        ),
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
        f'<text class="title" x="{_LEFT}" y="24">{escape(title)}</text>',
    ]
    for tick in across.ticks():
        left = across.place(tick)
        out.append(
            f'<line class="grid" x1="{left:.1f}" y1="{_TOP}" x2="{left:.1f}" y2="{_HEIGHT - _BOTTOM}"/>'
            f'<text class="tick" x="{left:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">'
            f"{number(tick)}</text>"
        )
    for tick in up.ticks():
        top = up.place(tick)
        out.append(
            f'<line class="grid" x1="{_LEFT}" y1="{top:.1f}" x2="{_WIDTH - _RIGHT}" y2="{top:.1f}"/>'
            f'<text class="tick" x="{_LEFT - 8}" y="{top + 4:.1f}" text-anchor="end">{number(tick)}</text>'
        )
    out.append(
        f'<text class="label" x="{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}" y="{_HEIGHT - 22}" text-anchor="middle">'
        f"{escape(across.axis.label)}</text>"
        f'<text class="label" transform="translate(18 {(_TOP + _HEIGHT - _BOTTOM) / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{escape(up.axis.label)}</text>'
    )
    left = float(_LEFT)
    for i, line in enumerate(lines):
        if not line.in_legend:
            continue
        colour = line.colour or COLOURS[i % len(COLOURS)]
        dash = ' stroke-dasharray="6 4"' if line.dashed else ""
        out.append(
            f'<line class="curve" x1="{left:.0f}" y1="40" x2="{left + 22:.0f}" y2="40" stroke="{colour}"{dash}'
            f"{_width(line)}/>"
            f'<text class="tick" x="{left + 28:.0f}" y="44">{escape(line.name)}</text>'
        )
        left += 44 + 6.6 * len(line.name)
    return "\n".join(out)


def _width(line: Line) -> str:
    """A width of its own; what the style sheet says of all curves would overrule an attribute."""
    return "" if line.width is None else f' style="stroke-width:{line.width:g}"'


def _room(name: str, left: float, top: float, curves: Sequence[tuple[float, float]]) -> tuple[float, float, str]:
    """Where the name of a point goes: beside it within the frame, where it covers least of the curves."""
    width, best = 7.0 * len(name), (math.inf, left + 10, top - 9, "start")
    for side, (shift, anchor) in enumerate(((10, "start"), (-10, "end"))):
        for below, drop in enumerate((-9, 20)):
            start = left + shift - (width if anchor == "end" else 0)
            outside = start < _LEFT or start + width > _WIDTH - _RIGHT or not _TOP < top + drop < _HEIGHT - _BOTTOM
            covered = sum(start - 4 < x < start + width + 4 and top + drop - 16 < y < top + drop + 8 for x, y in curves)
            cost = 1000 * outside + 10 * covered + 2 * below + side
            best = min(best, (cost, left + shift, top + drop, anchor))
    return best[1:]


def _paths(line: Line, across: _Scale, up: _Scale) -> list[str]:
    """One path for each unbroken run of points."""
    runs: list[list[str]] = [[]]
    for x, y in zip(line.x, line.y, strict=True):
        if y is not None and across.shows(x) and up.shows(y):
            runs[-1].append(f"{across.place(x):.1f},{up.place(y):.1f}")
        elif runs[-1]:
            runs.append([])
    return ["M" + "L".join(run) for run in runs if run]


STYLE = """
.paper{fill:#fff}.title{font:600 16px system-ui,sans-serif;fill:#1a202c}
.label{font:13px system-ui,sans-serif;fill:#2d3748}.tick{font:12px system-ui,sans-serif;fill:#4a5568}
.grid{stroke:#e2e8f0;stroke-width:1}.curve{fill:none;stroke-width:2.2;stroke-linejoin:round}
.mark{fill:#1a202c;stroke:#fff;stroke-width:2}.mark-name{font:600 12px system-ui,sans-serif;fill:#1a202c;
paint-order:stroke;stroke:#fff;stroke-width:5px;stroke-linejoin:round}
@media screen and (prefers-color-scheme:dark){.paper{fill:#171a21}.title,.mark-name{fill:#edf2f7}
.label,.tick{fill:#cbd5e0}
.grid{stroke:#2d3748}.curve{filter:brightness(1.5)}.mark{fill:#edf2f7;stroke:#171a21}.mark-name{stroke:#171a21}}
""".strip()
