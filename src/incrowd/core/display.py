"""How results show themselves: as text at a prompt, and as HTML in a notebook. All texts are escaped, here alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path

from incrowd.core.numbers import as_given, exactly, number, number_down, number_up

INTERNAL = "For you only: this was computed from the table itself and is not to be published."

# What promises are made of, and the side that claims less; ρ is a probability in one plan and a cost in another.
_ROUNDED: dict[str, Callable[[float, int], str]] = {
    "epsilon": number_up,
    "delta": number_up,
    "beta": number_down,
    "rate": number_down,
    "rho": lambda value, _digits: exactly(value),
}


@dataclass(frozen=True)
class ShownTable:
    """Headings and rows; so many columns at the left are words, the others numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1

    def text(self) -> str:
        headings = [self.headings] if any(self.headings) else []
        lines = [[_printable(text) for text in row] for row in (*headings, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                text.ljust(width) if place < self.words else text.rjust(width)
                for place, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def html(self) -> str:
        head = f"<thead>{self._row('th', self.headings)}</thead>" if any(self.headings) else ""
        return f"<table>{head}<tbody>{''.join(self._row('td', row) for row in self.rows)}</tbody></table>"

    def _row(self, kind: str, texts: Sequence[str]) -> str:
        sides = ["left" if place < self.words else "right" for place in range(len(texts))]
        cells = [
            f'<{kind} style="text-align: {side}">{escape(text)}</{kind}>'
            for text, side in zip(texts, sides, strict=True)
        ]
        return f"<tr>{''.join(cells)}</tr>"


@dataclass(frozen=True)
class Shown:
    """What is shown of a result.

    Attributes:
        title: what it is, in a line.
        lines: what it says, in sentences.
        tables: its numbers.
        notes: how to read them.
        internal: why it is for the publisher's eyes only, if it is.
        listing: a text in a language of its own, such as a policy, which a notebook shows on demand.
    """

    title: str = ""
    lines: tuple[str, ...] = ()
    tables: tuple[ShownTable, ...] = ()
    notes: tuple[str, ...] = ()
    internal: str = ""
    listing: str = ""

    def text(self) -> str:
        before = [_printable(line) for line in (self.internal, self.title, *self.lines) if line]
        after = [_printable(note) for note in self.notes]
        return "\n".join([*before, *(table.text() for table in self.tables if table.rows), *after])

    def html(self) -> str:
        parts = [f'<p style="color: #b00020"><b>{escape(self.internal)}</b></p>'] if self.internal else []
        parts += [f"<p><b>{escape(self.title)}</b></p>"] if self.title else []
        parts += [f"<p>{escape(line)}</p>" for line in self.lines]
        parts += [table.html() for table in self.tables if table.rows]
        if self.notes:
            parts.append(f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in self.notes)}</ul>")
        if self.listing:
            parts.append(f"<details><summary>as a file</summary><pre>{escape(self.listing)}</pre></details>")
        return f"<div>{''.join(parts)}</div>"


class Showable:
    """A result that shows itself, at a prompt and in a notebook."""

    def shown(self) -> Shown:
        """What is shown of it; if nothing else is said, its numbers by their names."""
        called = "".join(f" {c.lower()}" if c.isupper() else c for c in type(self).__name__).strip()
        rows = [
            (one.name.replace("_", " "), _value(getattr(self, one.name), one.name))
            for one in fields(self)  # type: ignore[arg-type] # results are dataclasses
            if one.repr and getattr(self, one.name) not in (None, ())
        ]
        return Shown(called.capitalize(), tables=(ShownTable(("", ""), rows),))

    def __repr__(self) -> str:
        return self.shown().text()

    def _repr_html_(self) -> str:
        return self.shown().html()


@dataclass(frozen=True, repr=False)
class Picture:
    """A drawing that notebooks show."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return "<Picture: .save('picture.svg') writes it>"

    def save(self, path: str | Path) -> Path:
        """Write it to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")
        return Path(path)


def picture(svg: str, path: str | Path | None = None) -> Picture:
    """A drawing; with a path, saved as well."""
    drawn = Picture(svg)
    if path is not None:
        drawn.save(path)
    return drawn


def _value(value: object, name: str = "") -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value)
    if isinstance(value, float):
        return _to_the_safe_side(value, name.rsplit("_", maxsplit=1)[-1])
    if isinstance(value, tuple | list):
        return "; ".join(_value(one, name) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        inside = {one.name: getattr(value, one.name) for one in fields(value)}  # type: ignore[arg-type]
        return ", ".join(f"{name} = {_value(one, name)}" for name, one in inside.items() if one not in (None, ()))
    return str(value)


def _to_the_safe_side(value: float, name: str) -> str:
    """A number as it was given, or else rounded so that no more is promised than holds."""
    if name not in _ROUNDED or float(f"{value:.6g}") == value:
        return as_given(value)
    return _ROUNDED[name](value, 6)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
