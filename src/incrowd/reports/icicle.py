"""A tree as an icicle: each part hangs below what it is a part of, as wide as what it holds. Self-contained SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from incrowd.reports.svg import COLOURS

_WIDTH, _ROW, _TOP, _LINE = 760, 26, 44, 20
_NARROWEST = 1.2
_LETTER = 6.2  # the width of a letter, about


@dataclass(frozen=True)
class Hanging:
    """A part of the tree.

    Attributes:
        left, width: as shares of the whole.
        depth: how far below the whole.
        kind: by which it is coloured; None for the whole.
        text: what it is.
    """

    left: float
    width: float
    depth: int
    kind: int | None
    text: str


def icicle(title: str, blocks: Sequence[Hanging], kinds: Sequence[str]) -> str:
    """The picture, with a legend of the kinds that occur; blocks too narrow to be seen are left out."""
    seen = [b for b in blocks if b.width * _WIDTH >= _NARROWEST]
    used = sorted({b.kind for b in seen if b.kind is not None})
    legend, rows = _legend(used, kinds)
    top = _TOP + rows * _LINE
    height = top + (max((b.depth for b in seen), default=0) + 1) * _ROW + 8
    bars = "".join(_bar(b, top) for b in seen)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="sans-serif" font-size="11">'
        f'<text x="0" y="18" font-size="15" font-weight="bold" fill="currentColor">{escape(title)}</text>'
        f"{legend}{bars}</svg>"
    )


def colour(kind: int | None) -> str:
    """Six colours and, from the seventh kind on, lighter ones."""
    return "#d9dee5" if kind is None else COLOURS[kind % len(COLOURS)]


def _legend(used: Sequence[int], kinds: Sequence[str]) -> tuple[str, int]:
    parts, x, row = [], 0.0, 0
    for kind in used:
        wide = 22 + len(kinds[kind]) * _LETTER + 14
        if x + wide > _WIDTH:
            x, row = 0.0, row + 1
        y = _TOP - 10 + row * _LINE
        parts.append(
            f'<rect x="{x:.1f}" y="{y - 10}" width="12" height="12" fill="{colour(kind)}" '
            f'fill-opacity="{_opacity(kind)}"/>'
            f'<text x="{x + 16:.1f}" y="{y}" fill="currentColor">{escape(kinds[kind])}</text>'
        )
        x += wide
    return "".join(parts), row


def _opacity(kind: int | None) -> float:
    return 1.0 if kind is None else max(0.25, 1.0 - 0.4 * (kind // len(COLOURS)))


def _bar(block: Hanging, top: int) -> str:
    x, wide = block.left * _WIDTH, block.width * _WIDTH
    y = top + block.depth * _ROW
    room = int((wide - 6) / _LETTER)
    text = block.text if len(block.text) <= room else f"{block.text[: room - 1]}…" if room >= 5 else ""
    ink = "#1f2933" if block.kind is None else "currentColor" if block.kind >= len(COLOURS) else "#ffffff"
    named = f'<text x="{x + 3:.1f}" y="{y + 16}" fill="{ink}">{escape(text)}</text>' if text else ""
    return (
        f'<g><title>{escape(block.text)}</title><rect x="{x:.2f}" y="{y}" width="{max(wide - 0.6, 0.6):.2f}" '
        f'height="{_ROW - 2}" fill="{colour(block.kind)}" fill-opacity="{_opacity(block.kind)}"/>{named}</g>'
    )
