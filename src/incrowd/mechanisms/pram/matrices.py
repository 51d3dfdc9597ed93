"""Transition matrices as policies give them: written out, or in a file."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from incrowd.core.errors import PolicyError
from incrowd.hierarchy.table import Origin, read_rows
from incrowd.mechanisms.pram.blocks import Rows
from incrowd.mechanisms.pram.section import MatrixFile, read_probability, unfit_rows


def rows_of(spec: Rows | MatrixFile, base: Path, size: int, labels: Sequence[str | None] | None, called: str) -> Rows:
    """The matrix of an attribute with so many values.

    Args:
        spec: the rows themselves, or the file that holds them.
        base: the folder at which relative paths start.
        size: how many values there are.
        labels: the values in order, by which the lines and columns of a file may be named; None where they have no
            names of their own.
        called: what the attribute is called in messages.
    """
    rows = spec if isinstance(spec, tuple) else _read(spec, base, labels)
    if len(rows) != size:
        raise PolicyError(
            f"{called} has {size:,} values, its matrix {len(rows):,} rows.",
            code="matrix-invalid",
            remedy="Give a row for each value of the domain, as it is published; missing values, if kept, come last.",
            details={"values": size, "rows": len(rows)},
        )
    return rows


def _read(spec: MatrixFile, base: Path, labels: Sequence[str | None] | None) -> Rows:
    """Rows of probabilities; if the first line is no such row, it and the first column name the values."""
    origin = Origin(spec.file, error=PolicyError, code="matrix-invalid")
    table, lines = read_rows(origin.read(base / spec.file, spec.encoding), origin, spec.delimiter)
    if not table:
        raise origin.wrong("it is empty")
    order: list[int] | None = None
    if any(_number(entry) is None for entry in table[0]):
        order = _order(table, labels, origin)
        table, lines = [row[1:] for row in table[1:]], lines[1:]
    rows = []
    for row, line in zip(table, lines, strict=True):
        entries = [_number(entry) for entry in row]
        if any(entry is None for entry in entries):
            raise origin.wrong("an entry is not a probability", line=line)
        rows.append(tuple(entry for entry in entries if entry is not None))
    for place, text in unfit_rows(rows):
        raise origin.wrong(text, line=lines[int(place[0])] if place else None)
    return tuple(rows) if order is None else tuple(tuple(rows[i][j] for j in order) for i in order)


def _order(table: Sequence[Sequence[str]], labels: Sequence[str | None] | None, origin: Origin) -> list[int]:
    """Where the values of the domain stand in the file."""
    if labels is None:
        raise origin.wrong("the combinations of a joint attribute have no names; leave out the first line and column")
    across, down = list(table[0][1:]), [row[0] for row in table[1:]]
    wanted = ["" if label is None else label for label in labels]
    if across != down or sorted(across) != sorted(wanted):
        raise origin.wrong("its first line and its first column must name the values of the domain, each once")
    return [across.index(label) for label in wanted]


def _number(text: str) -> Fraction | None:
    try:
        return read_probability(text)
    except ValueError:
        return None
