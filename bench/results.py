"""What was measured, as files to look at: results.json, table.md, the curves as SVG, and all of it as one page."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.curves import CURVES, draw, picture_name
from bench.measuring import HEADS, Row, cells, times
from incrowd.reports import page
from incrowd.reports.bars import Row as Bar
from incrowd.reports.bars import bars

FOLDER = Path(__file__).parent / "results"


def write(found: Mapping[str, Sequence[Row]], machine: Mapping[str, Any]) -> None:
    """All files."""
    FOLDER.mkdir(exist_ok=True)
    everything = {"machine": machine, "rows": {name: [row.to_dict() for row in rows] for name, rows in found.items()}}
    text = json.dumps(everything, indent=1, ensure_ascii=False)
    (FOLDER / "results.json").write_text(f"{text}\n", encoding="utf-8")
    parts = [f"## {name}\n\n{about(name)}\n\n{markdown(rows)}" for name, rows in found.items()]
    (FOLDER / "table.md").write_text("\n".join([f"# Benchmarks\n\n{in_words(machine)}\n", *parts]), encoding="utf-8")
    pictures = {curve: draw(found["curves"], curve) for curve in CURVES} if found.get("curves") else {}
    for curve, picture in pictures.items():
        (FOLDER / picture_name(curve)).write_text(picture, encoding="utf-8")
    (FOLDER / "results.html").write_bytes(_page(found, machine, pictures))


def about(name: str) -> str:
    """The first sentence of a benchmark's text."""
    text = importlib.import_module(f"bench.{name}").__doc__ or ""
    return " ".join(text.partition("\n\n")[0].split())


def in_words(machine: Mapping[str, Any]) -> str:
    """The machine and the libraries, in one line."""
    libraries = [key for key in machine if key not in _NO_LIBRARY]
    versions = ", ".join(f"{_CALLED.get(key, key)} {machine[key]}" for key in libraries)
    return (
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gigabytes']} GB, {machine['system']}; "
        f"{versions}"
    )


_NO_LIBRARY = {"date", "processor", "cores", "memory_gigabytes", "system", "busy", "quick", "seconds"}
_CALLED = {"python": "Python", "duckdb": "DuckDB", "pyspark": "PySpark", "numpy": "NumPy", "scipy": "SciPy"}


def markdown(rows: Iterable[Row], heads: Sequence[str] = HEADS) -> str:
    """Rows as a table; columns that are empty throughout are left out."""
    return table(heads, [cells(row) for row in rows])


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table without its empty columns."""
    kept = [i for i in range(len(heads)) if i == 0 or any(line[i] for line in lines)]
    out = [
        [heads[i] for i in kept],
        ["---"] * len(kept),
        *([line[i].replace("|", "\\|") for i in kept] for line in lines),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in out)


def _page(found: Mapping[str, Sequence[Row]], machine: Mapping[str, Any], pictures: Mapping[str, str]) -> bytes:
    aimed = [row for rows in found.values() for row in rows if row.target is not None and row.reached is not None]
    facts = [
        page.Fact("targets reached", f"{sum(not row.missed for row in aimed)} of {len(aimed)}"),
        page.Fact("benchmarks", str(len(found))),
        page.Fact("figures", str(sum(map(len, found.values())))),
        page.Fact("time", f"{sum(machine['seconds'].values()):,.0f} s"),
    ]
    sections = []
    for name, rows in found.items():
        content: list[page.Content] = [page.paragraph(about(name))]
        if name == "curves":
            content += [page.figure(picture, CURVES[curve].title) for curve, picture in pictures.items()]
        compared = [row for row in rows if row.ratio is not None]
        if compared:
            content.append(_ratios(compared))
        content.append(page.table(name, HEADS, [cells(row) for row in rows], numbers=range(1, len(HEADS))))
        sections.append(page.PageSection(name, name.replace("_", " "), tuple(content)))
    return page.Page(
        kind="Benchmarks",
        title="What incrowd costs",
        lead=f"Measured {machine['date']}{' with small sizes' if machine['quick'] else ''}. {in_words(machine)}.",
        facts=facts,
        sections=sections,
        closing="Medians of several turns in one run; what is compared took turns.",
    ).render()


def _ratios(rows: Sequence[Row]) -> page.Html:
    """What was compared, as bars of elapsed time, the other's above ours."""
    made = []
    for row in rows:
        assert row.ours is not None
        assert row.other is not None
        longest = max(row.ours.seconds, row.other.seconds)
        lengths = [row.other.seconds / longest, row.ours.seconds / longest]
        made.append(Bar(row.key, lengths, [times(row.ratio), times(row.cpu_ratio)]))
    return bars("Time against what it is compared with", "above: the other, below: ours", ("ratio", "processor"), made)
