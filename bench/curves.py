"""How time and memory grow with rows, columns, distinct tuples and nodes: the whole command, each in its own process.

Everything but one quantity stays the same along each curve: rows from Parquet and from CSV files (30 thousand tuples,
8 columns, fixed levels); columns (10 thousand tuples); distinct tuples (8 columns, all equally frequent); nodes of the
lattice from which levels are chosen privately (10 thousand tuples of 6 columns, each with 7 levels, of which some are
fixed).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.main_job import whole_command
from bench.measuring import Row, main
from bench.tables import FIELDS, MORE_FIELDS, Field, as_csv, people, policy_text
from incrowd.reports.svg import COLOURS, Axis, Line, line_chart

SIXTY_FOUR = tuple(Field(f"n{i}", 64, "integer") for i in range(6))


@dataclass(frozen=True)
class Curve:
    """One quantity that grows: what its axis is called, whether in powers of ten, and what is drawn along it."""

    title: str
    axis: str
    log: bool
    lines: tuple[str, ...]


CURVES = {
    "rows": Curve("The main job and the rows of the table", "rows", True, ("Parquet", "CSV")),
    "columns": Curve("The main job and the columns of the table", "columns", False, ("Parquet",)),
    "distinct tuples": Curve("The main job and the distinct tuples", "distinct tuples", True, ("Parquet",)),
    "nodes": Curve("A private choice of levels and the nodes of the lattice", "nodes", True, ("Parquet",)),
}


def run(quick: bool = False) -> Iterator[Row]:
    """Four curves."""
    part = 100 if quick else 1
    for millions in (1, 3, 10, 30):
        rows = millions * 10**6 // part
        data = people(rows, 30_000 // part)
        yield _point("rows", "Parquet", rows, policy_text(), data, f"{rows:,} rows from Parquet")
        if millions <= 10:
            yield _point("rows", "CSV", rows, policy_text(), as_csv(data), f"{rows:,} rows from CSV")
    rows = 3 * 10**6 // part
    for columns in (2, 4, 6, 8, 10, 12):
        fields = MORE_FIELDS[:columns]
        data = people(rows, 10_000 // part, fields)
        text = policy_text(fields, level=0)
        yield _point("columns", "Parquet", columns, text, data, f"{rows:,} rows of {columns} columns")
    rows = 5 * 10**6 // part
    for most in (10**3, 10**4, 10**5, 10**6, 3_162_278):
        tuples = most // part
        data = people(rows, tuples, FIELDS, even=True)
        text = policy_text(level=0)
        yield _point("distinct tuples", "Parquet", tuples, text, data, f"{rows:,} rows, {tuples:,} distinct tuples")
    rows = 10**6 // part
    for free in range(1, 5 if quick else 7):
        data = people(rows, 10_000 // part, SIXTY_FOUR)
        text = policy_text(SIXTY_FOUR, free=free, level=0)
        yield _point("nodes", "Parquet", 7**free, text, data, f"{rows:,} rows, {7**free:,} nodes")


def _point(curve: str, line: str, x: int, policy: str, data: str, name: str) -> Row:
    took = whole_command(policy, data)
    size = sum(file.stat().st_size for file in Path(data).parent.glob(Path(data).name))
    figures = {curve: x, "bytes a row": round(size / x, 1)} if curve == "rows" else {curve: x}
    return Row(f"{curve}, {line}, {x}", f"release command, {name}", took, figures=figures)


def points(rows: Sequence[Row], curve: str, line: str) -> list[Row]:
    """The rows along one line, in order."""
    found = [row for row in rows if row.key.startswith(f"{curve}, {line}, ") and row.ours is not None]
    return sorted(found, key=lambda row: row.figures[curve])


def draw(rows: Sequence[Row], curve: str) -> str:
    """Seconds and gigabytes along one quantity, as SVG."""
    how = CURVES[curve]
    lines = []
    for colour, line in zip(COLOURS, how.lines, strict=False):
        along = points(rows, curve, line)
        x = [row.figures[curve] for row in along]
        of = f", {line}" if len(how.lines) > 1 else ""
        took = [row.ours for row in along if row.ours is not None]
        lines.append(Line(f"seconds{of}", x, [t.seconds for t in took], colour=colour))
        memory = [None if t.megabytes is None else t.megabytes / 1000 for t in took]
        lines.append(Line(f"gigabytes{of}", x, memory, dashed=True, colour=colour))
    axis = Axis(how.axis, log=how.log, low=None if how.log else 0)
    return line_chart(how.title, axis, Axis("seconds, gigabytes", log=True), lines)


def picture_name(curve: str) -> str:
    """The file of a curve's picture."""
    return f"cost-{curve.replace(' ', '-')}.svg"


if __name__ == "__main__":
    main(run)
