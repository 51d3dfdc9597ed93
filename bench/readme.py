"""Writes what was recorded into the README and docs/cost.md: `python -m bench.readme` (or `make record`).

Between `<!-- measured: NAME -->` and `<!-- end -->` stands what is made here; the rest of the pages is left alone. The
curves become pictures beside the pages. Nothing is measured: everything comes from bench/recorded.json.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.curves import CURVES, draw, picture_name, points
from bench.lattice_search import ALONE
from bench.measuring import ROOT, Row, megabytes, number, seconds, target, times
from bench.paper import worked_example
from bench.recording import Recorded, recorded
from bench.results import in_words, table

PICTURES = ROOT / "docs" / "pictures"
MARKED = re.compile(r"(<!-- measured: (?P<name>[\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


SHOWN = (
    ("main_job", "Python, few, fixed"),
    ("main_job", "Python, few, private"),
    ("main_job", "Python, many, fixed"),
    ("main_job", "Python, many, private"),
    ("main_job", "command, few, fixed"),
    ("spark_release", "few, release"),
    ("spark_release", "many, release"),
    ("spark_pram", "copy"),
    ("spark_pram", "sort"),
    ("hundred_million", "parquet, few"),
    ("hundred_million", "csv, many"),
    ("people", "one"),
    ("people", "latest"),
    ("thinning", "10⁸ records over 10⁶ cells, 0.1"),
    ("thinning", "Zipf: 10⁸ records over 10⁶ cells, 0.1"),
    ("rivals", "search, k"),
    ("rivals", "Mondrian, binary"),
)
"""The rows of the first table of docs/cost.md: a benchmark, and the key of a row."""

SCORED = ("views", "tree")
"""Benchmarks that are about scores; of their time only the processor's is shown, so a busy machine does no harm."""

BUSY = 0.2
"""From this share of the processors' time on, other work is said to have disturbed a run."""

COMMAND = (
    "Times are medians of as many turns as is said, and of a single run where that is 1 or nothing is said. "
    "`make bench` measures all of this on your machine and `make record` writes it here, but for the 100 million rows: "
    "`python -m bench.hundred_million --record` measures these, and `make hundred-million` also writes them here."
)


def performance(record: Recorded) -> str:
    """The first table of docs/cost.md."""
    return _table([row for row in (record.row(*place) for place in SHOWN) if row is not None])


SPEED = (
    ("10 million rows published from Python", ("main_job", "Python, few, fixed")),
    ("the same with levels chosen privately", ("main_job", "Python, few, private")),
    ("100 million rows of Parquet, the whole command", ("hundred_million", "parquet, few")),
    ("10 million rows on Spark", ("spark_release", "few, release")),
    ("a k-anonymous recoding of Adult", ("rivals", "search, k")),
)
"""The README's five lines: in words, and the row behind each."""


def speed(record: Recorded) -> str:
    """Five lines for people in a hurry."""
    lines = []
    for words, place in SPEED:
        row = record.row(*place)
        if row is None or row.ours is None:
            continue
        against = f", {times(row.ratio)} {row.against}" if row.ratio is not None else ""
        held = f", {megabytes(row.ours.megabytes)}" if row.target_for == "megabytes" else ""
        lines.append(f"- {words}: {seconds(row.ours.seconds)}{against}{held}\n")
    return "".join(lines)


def _table(rows: Sequence[Row], *, memory: bool = False) -> str:
    """Rows with their notes; memory where it is what a target is about, or always."""
    heads = ("what", "time", "against", "ratio", "memory", "target", "turns")
    return table(heads, [[_name(row), *_figures(row, memory or row.target_for == "megabytes")] for row in rows])


def _on_any_machine(rows: Sequence[Row]) -> str:
    """Rows with what says something on a busy machine, too: the processor's time, and memory."""
    heads = ("what", "time", "processor time", "against", "its processor time", "ratio of these", "memory", "target")
    lines = []
    for row in rows:
        told = "; ".join(f"{name} {number(value)}" for name, value in row.figures.items() if row.ours is None)
        time, ratio, held, wanted = (
            text.replace(" ", "\u00a0")
            for text in (
                seconds(row.ours.seconds) if row.ours else "",
                times(row.cpu_ratio),
                megabytes(row.ours.megabytes) if row.ours else "",
                target(row),
            )
        )
        other = seconds(row.other.cpu).replace(" ", "\u00a0") if row.other is not None else ""
        name = f"{_name(row)}{f': {told}' if told else ''}"
        lines.append([name, time, _busy(row), row.against, other, ratio, held, wanted])
    return table(heads, lines)


def _name(row: Row) -> str:
    """What was measured; before it what two recodings lose, if these were compared, and after it what must be said."""
    losses = [f"{row.figures[name]:.2f}" for name in ("our loss", "its loss") if name in row.figures]
    name = f"loss {' against '.join(losses)}: {row.name}" if losses else row.name
    return f"{name} ({row.note})" if row.note else name


def _figures(row: Row, memory: bool) -> list[str]:
    if row.ours is None:
        return ["not measured", "", "", "", "", ""]
    held = megabytes(row.ours.megabytes) if memory else ""
    figures = [seconds(row.ours.seconds), times(row.ratio), held, target(row)]
    time, ratio, held, wanted = (text.replace(" ", "\u00a0") for text in figures)  # a number stays with its unit
    return [time, row.against, ratio, held, wanted, row.turns]


def conditions(record: Recorded) -> str:
    """When, on what and how everything was measured, and what speaks against the figures, in one paragraph."""
    dates: dict[str, list[str]] = {}
    for date in sorted({date for name, (date, _) in record.benchmarks.items() if name not in SCORED}):
        dates.setdefault(in_words(record.runs[date]), []).append(date)
    parts = [f"Measured {' to '.join(sorted({when[0], when[-1]}))} on {what}." for what, when in dates.items()]
    runs = [record.runs[date] for when in dates.values() for date in when]
    if any(how.get("quick") for how in runs):
        parts.append("**Some figures are of small sizes, in which what is the same for every table weighs most.**")
    if any(how["busy"] > BUSY for how in runs):
        parts.append("**The machine was busy with other work: times, and ratios of times, are not to be relied on.**")
    return " ".join([*parts, COMMAND])


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def scores(record: Recorded) -> str:
    """For each table of the benchmark of views, what each way keeps of pairs and triples of columns at each ε."""
    found: dict[str, dict[str, dict[str, Row]]] = {}
    for row in record.rows("views"):
        subject, *epsilon, way = row.key.split(", ", 2) if row.key.count(", ") > 1 else [*row.key.split(", ")]
        found.setdefault(subject, {}).setdefault(way, {})[epsilon[0] if epsilon else "any"] = row
    texts = []
    for subject, ways in found.items():
        epsilons = sorted({epsilon for way in ways.values() for epsilon in way} - {"any"}, key=float)
        lines = [
            [
                way,
                *(_score(rows.get(epsilon) or rows.get("any")) for epsilon in epsilons),
                *(_busy(rows.get(epsilon)) for epsilon in epsilons[:1]),
            ]
            for way, rows in ways.items()
        ]
        turns = max(row.ours.turns for way in ways.values() for row in way.values() if row.ours is not None)
        heads = [f"{subject}, {turns} runs", *(f"ε = {epsilon}" for epsilon in epsilons), "processor time"]
        texts.append(table(heads, lines))
    return "\n".join(texts)


def boxes(record: Recorded) -> str:
    """For each table of the benchmark of trees, what each mapping keeps, and how far counts from it are off."""
    ways: dict[tuple[str, str], dict[str, Row]] = {}
    for row in record.rows("tree"):
        if "information kept" in row.figures:
            subject, promise, way = row.key.split(", ", 2)
            ways.setdefault((subject, way), {})[promise] = row
    promises = sorted({promise for rows in ways.values() for promise in rows})
    shares, kinds = ("information kept", "published"), ("error, raked", "error, one-way", "error, even")
    heads = ["table", "mapping", *(f"{what}, {p}" for p in promises for what in ("kept", "published"))]
    lines = [
        [subject, way, *(f"{rows[p].figures[what]:.2f}" for p in promises for what in shares)]
        for (subject, way), rows in ways.items()
    ]
    off = [
        [subject, way, *(" / ".join(f"{rows[p].figures[kind]:.0%}" for kind in kinds) for p in promises)]
        for (subject, way), rows in ways.items()
        if kinds[0] in rows[promises[0]].figures
    ]
    errors = table(["table", "mapping", *(f"raked / one-way alone / even, {p}" for p in promises)], off)
    sizes = [
        [row.name, number(row.figures["cells"]), number(row.figures["boxes"]), _busy(row)]
        for row in record.rows("tree")
        if "cells" in row.figures
    ]
    return "\n".join([table(heads, lines), errors, table(["size", "cells", "boxes", "processor time"], sizes)])


def _score(row: Row | None) -> str:
    return f"{row.figures['pairs']:.0f} / {row.figures['triples']:.0f}" if row is not None and row.figures else ""


def _busy(row: Row | None) -> str:
    return seconds(row.ours.cpu).replace(" ", "\u00a0") if row is not None and row.ours is not None else ""


def curve(record: Recorded, name: str) -> str:
    """A picture, and its points as a table."""
    how, rows = CURVES[name], record.rows("curves")
    lines: list[list[str]] = []
    xs = sorted({row.figures[name] for line in how.lines for row in points(rows, name, line)})
    for x in xs:
        cells = [number(x)]
        for line in how.lines:
            found = next((row.ours for row in points(rows, name, line) if row.figures[name] == x), None)
            cells += [seconds(found.seconds), megabytes(found.megabytes)] if found else ["", ""]
        lines.append(cells)
    heads = [f"{what}{f' ({line})' if len(how.lines) > 1 else ''}" for line in how.lines for what in ("time", "memory")]
    return f"![{how.title}](pictures/{picture_name(name)})\n\n{table((how.axis, *heads), lines)}"


def parts(record: Recorded) -> dict[str, str]:
    """Everything that pages may ask for, by name."""
    return {
        "speed": speed(record),
        "performance": performance(record),
        "conditions": f"{_wrapped(conditions(record))}\n",
        "example": worked_example(record),
        "hundred million": _table(record.rows("hundred_million"), memory=True),
        "cells": _on_any_machine(record.rows("cells")),
        "demands": _on_any_machine([row for row in record.rows("lattice_search") if row.against == ALONE]),
        "planner": _on_any_machine([*record.rows("planner"), *record.rows("startup")]),
        "sustained": _on_any_machine(record.rows("sustained")),
        "other libraries": _table(record.rows("rivals")),
        "views": scores(record),
        "view costs": _table(record.rows("view_costs")),
        "trees": boxes(record),
        **{name: curve(record, name) for name in CURVES},
    }


def filled(text: str, record: Recorded) -> str:
    """A page with all that is measured put in."""
    known = parts(record)
    return MARKED.sub(lambda found: f"{found[1]}\n{known[found['name']]}\n{found[3]}", text)


def files(record: Recorded) -> Iterator[tuple[Path, str]]:
    """Every file that is made from the record, with what it should hold."""
    for page in (ROOT / "README.md", ROOT / "docs" / "cost.md"):
        yield page, filled(page.read_text(encoding="utf-8"), record)
    for name in CURVES:
        yield PICTURES / picture_name(name), draw(record.rows("curves"), name)


def main(read: Callable[[], Recorded] = recorded) -> None:
    for path, text in files(read()):
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
