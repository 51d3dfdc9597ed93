"""Promise against error: a dot for each way to publish a table, those at one promise side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from incrowd.core.numbers import number
from incrowd.reports.svg import COLOURS, STYLE

_WIDTH, _LEFT, _RIGHT, _TOP, _FOOT = 820, 74, 24, 74, 56
_PLOT = 380  # high
_NONE = 130  # wide: where those are that have no place on the axis
_RADIUS, _NAMED_RADIUS = 4.5, 8.0
_APART = 46.0  # between two ticks, at least
_LINE = 20
_MOST_MOVED = 25
_BEYOND = f'<text class="tick" x="{_WIDTH - _RIGHT}" y="66" text-anchor="end">▲ beyond the axis</text>'
_FAR = 2.5  # times the dashed line, or what is singled out: a dot beyond that would press the others together

DOTS = """
.dot{fill-opacity:.75;stroke:#fff;stroke-width:1}.ring{fill:none;stroke:#1a202c;stroke-width:2.5}
.lead{stroke:#718096;stroke-width:1}.apart{stroke:#a0aec0;stroke-width:1;stroke-dasharray:2 3}
.in{font:700 11px system-ui,sans-serif;fill:#fff;text-anchor:middle}
@media screen and (prefers-color-scheme:dark){.dot{stroke:#171a21;filter:brightness(1.3)}.ring{stroke:#edf2f7}}
"""
_STYLE = STYLE + DOTS


@dataclass(frozen=True)
class Dot:
    """A way to publish.

    Attributes:
        x: its place across; None if it has none.
        y: its error.
        group: what it belongs to, which decides its colour.
        text: what it is, shown when it is pointed at and, if it is named, below the picture.
        name: of a dot that is singled out: a number, or "now".
        key: of a dot that a page makes something of: it can be reached and chosen.
    """

    x: float | None
    y: float
    group: str
    text: str
    name: str = ""
    key: str = ""


def scatter(title: str, x_label: str, y_label: str, dots: Sequence[Dot], control: tuple[str, float]) -> str:
    """A complete SVG document.

    Args:
        title: of the picture.
        x_label: of the axis across, which is logarithmic.
        y_label: of the axis upwards, from 0 to 1 or less. Dots far above the others are marks at its upper end.
        dots: all of them.
        control: what the dashed line is, and where.
    """
    named = sorted((dot for dot in dots if dot.name), key=lambda dot: (dot.name == "now", dot.name))
    height = _TOP + _PLOT + _FOOT + _LINE * len(named) + 12
    groups = list(dict.fromkeys(dot.group for dot in dots))
    colours = {group: COLOURS[i % len(COLOURS)] for i, group in enumerate(groups)}
    across = _Across.of([dot.x for dot in dots])
    far = _FAR * max([control[1], *(dot.y for dot in named)])
    top = min(1.0, 1.08 * max([control[1], *(dot.y for dot in dots if dot.y <= far)]))

    def up(y: float) -> float:
        return _TOP + _PLOT * (1 - min(y / top, 1.0))

    role = "group" if any(dot.key for dot in dots) else "img"  # of a picture alone, nothing within is told
    out = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="{role}" '
            f'aria-label="{escape(f"{title}. Horizontal: {x_label}. Vertical: {y_label}.", quote=True)}">'
        ),
        f'<style>{_STYLE.strip()}</style><rect class="paper" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="{_LEFT}" y="24">{escape(title)}</text>',
        *_legend(colours),
        *_axes(across, top, x_label, y_label),
        *([_BEYOND] if any(dot.y > top for dot in dots) else []),
        (
            f'<line class="curve" stroke="#718096" stroke-dasharray="6 4" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" '
            f'y1="{up(control[1]):.1f}" y2="{up(control[1]):.1f}"/>'
            f'<text class="tick" x="{_LEFT + 6}" y="{up(control[1]) - 6:.1f}">{escape(control[0])}</text>'
        ),
    ]
    places = _side_by_side(
        [(across.place(dot.x), up(dot.y), _radius(dot)) for dot in dots], [bool(d.name) for d in dots]
    )
    for dot, (x, y) in sorted(zip(dots, places, strict=True), key=lambda pair: bool(pair[0].name)):
        out.append(_drawn(dot, x, y, colours[dot.group], beyond=dot.y > top))
    for line, dot in enumerate(named):
        y = _TOP + _PLOT + _FOOT + _LINE * line + 6
        out.append(
            f'<text class="tick" x="{_LEFT}" y="{y}"><tspan font-weight="700">{escape(dot.name)}</tspan>'
            f"  {escape(dot.text)}</text>"
        )
    return "\n".join((*out, "</svg>\n"))


@dataclass(frozen=True)
class _Across:
    """A logarithmic axis, and beside it a strip for what has no place on it."""

    low: float
    high: float
    ticks: tuple[float, ...]
    has_none: bool

    @classmethod
    def of(cls, values: Sequence[float | None]) -> _Across:
        known = sorted({value for value in values if value})
        return cls(*((known[0], known[-1]) if known else (1.0, 1.0)), tuple(known), None in values)

    @property
    def end(self) -> float:
        """Of the axis: the strip begins."""
        return _WIDTH - _RIGHT - (_NONE if self.has_none else 0)

    def place(self, value: float | None) -> float:
        if value is None:
            return self.end + _NONE / 2
        margin = 90.0
        if self.high <= self.low * 1.001:
            return (_LEFT + self.end) / 2
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return _LEFT + margin + share * (self.end - _LEFT - 2 * margin)

    def shown(self) -> list[float]:
        """Ticks at the values that there are, as far as there is room."""
        found: list[float] = []
        for tick in self.ticks:
            if not found or self.place(tick) - self.place(found[-1]) >= _APART:
                found.append(tick)
        return found


def _axes(across: _Across, top: float, x_label: str, y_label: str) -> list[str]:
    floor = _TOP + _PLOT
    out = []
    for tick in across.shown():
        left = across.place(tick)
        out.append(
            f'<line class="grid" x1="{left:.1f}" y1="{_TOP}" x2="{left:.1f}" y2="{floor}"/>'
            f'<text class="tick" x="{left:.1f}" y="{floor + 17}" text-anchor="middle">{number(tick, 3)}</text>'
        )
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2) if top / s <= 7 or s == 0.2)
    for i in range(int(top / step + 1e-9) + 1):
        y = floor - _PLOT * i * step / top
        out.append(
            f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(i * step, 2)}</text>'
        )
    if across.has_none:
        out.append(
            f'<line class="apart" x1="{across.end}" y1="{_TOP}" x2="{across.end}" y2="{floor}"/>'
            f'<text class="tick" x="{across.place(None):.1f}" y="{floor + 17}" text-anchor="middle">no ε</text>'
        )
    middle = (_LEFT + across.end) / 2
    out.append(
        f'<text class="label" x="{middle:.0f}" y="{floor + 36}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text class="label" transform="translate(20 {_TOP + _PLOT / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text>"
    )
    return out


def _legend(colours: dict[str, str]) -> list[str]:
    out, left = [], float(_LEFT)
    for group, colour in colours.items():
        out.append(
            f'<circle class="dot" cx="{left + 6:.0f}" cy="46" r="{_RADIUS}" fill="{colour}"/>'
            f'<text class="tick" x="{left + 16:.0f}" y="50">{escape(group)}</text>'
        )
        left += 36 + 6.8 * len(group)
    return out


def _radius(dot: Dot) -> float:
    return _NAMED_RADIUS if dot.name else _RADIUS


def _drawn(dot: Dot, x: float, y: float, colour: str, *, beyond: bool) -> str:
    """A dot with its title; a number stands in it, and what is published now has a ring."""
    radius = _radius(dot)
    shape = f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"/>'
    if beyond:
        shape = f'<path class="dot" d="M{x:.1f} {y - 6:.1f}l6 10h-12z" fill="{colour}"/>'
    parts = [shape]
    if dot.name == "now":
        parts.append(
            f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="{radius + 3:g}"/>'
            f'<text class="mark-name" x="{x:.1f}" y="{y - radius - 8:.1f}" text-anchor="middle">now</text>'
        )
    elif dot.name:
        parts.append(f'<text class="in" x="{x:.1f}" y="{y + 4:.1f}">{escape(dot.name)}</text>')
    chosen = ""
    if dot.key:
        spoken = escape(dot.text, quote=True)
        chosen = f' data-dot="{escape(dot.key, quote=True)}" tabindex="0" role="button" aria-label="{spoken}"'
    return f"<g{chosen}>{''.join(parts)}<title>{escape(dot.text)}</title></g>"


def _side_by_side(wanted: Sequence[tuple[float, float, float]], first: Sequence[bool]) -> list[tuple[float, float]]:
    """Where dots go so that few cover others: as high as they should be, moved across as little as needed.

    Args:
        wanted: of each dot its place and radius.
        first: those that are placed before others, and so move least.
    """
    order = sorted(range(len(wanted)), key=lambda i: (not first[i], wanted[i][1]))
    placed: dict[int, tuple[float, float]] = {}
    for i in order:
        x, y, radius = wanted[i]
        free = (
            shift
            for shift in map(_shift, range(_MOST_MOVED))
            if all(math.hypot(x + shift - a, y - b) > radius + wanted[j][2] for j, (a, b) in placed.items())
        )
        placed[i] = (x + next(free, _shift(len(placed) % _MOST_MOVED)), y)  # where all is full, they cover each other
    return [placed[i] for i in range(len(wanted))]


def _shift(moved: int) -> float:
    """0, 4, −4, 8, −8, …"""
    return 4.0 * ((moved + 1) // 2) * (1 if moved % 2 else -1)
