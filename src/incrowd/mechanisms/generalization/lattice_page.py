"""The tables that there were to choose from, in the publisher's own report. Never to be published."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import product

from incrowd.core.numbers import count, exactly, number, number_up
from incrowd.histogram import Histogram
from incrowd.mechanisms.generalization.draw import (
    GeneralizationOutcome,
    LatticeTable,
    look_around,
)
from incrowd.mechanisms.generalization.lattice_view import CELLS, tables_near
from incrowd.mechanisms.generalization.section import MINIMISED
from incrowd.mechanisms.generalization.settle import GeneralizationSettings
from incrowd.recoding.search import Found
from incrowd.reports.frame import level_in_words
from incrowd.reports.lattice_chart import MOST_COLUMNS, LatticeNode, lattice_chart
from incrowd.reports.page import Content, Html, figure, label, markup, paragraph, table, tag

_LISTED = 240  # tables of a lattice that are listed one by one


def tables_there_were(
    settings: GeneralizationSettings, whole: Histogram, outcome: GeneralizationOutcome, found: Found
) -> list[Content]:
    """The lattice as a picture, and what its tables have.

    Args:
        settings: what must hold.
        whole: the full table, base codes.
        outcome: what came out.
        found: what the search saw.
    """
    heights, minimal = settings.heights, list(found.minimal or ())
    drawn = tables_near(settings, whole, outcome, found)
    looked = dict(drawn)
    listed = _every(heights) if settings.size <= _LISTED else sorted({*minimal[:_LISTED], found.node})
    missing = [node for node in listed if node not in looked]
    if missing:
        looked |= look_around(whole if outcome.linked is None else outcome.linked, settings, missing, cells=CELLS)
    names = [demand.name for demand in settings.demands]
    nodes = [
        LatticeNode(node, t.keeps, t.left_out is not None, node in minimal, node == found.node)
        for node, t in drawn.items()
    ]
    columns = list(settings.hierarchies)
    whole_lattice = len(nodes) == settings.size
    nodes.sort(key=lambda n: n.node)
    picture = lattice_chart("The lattice of generalizations", columns, names, nodes)
    parts: list[Content] = [
        paragraph(f"{count(settings.size, 'table', 'tables')} to choose from. {_how_it_ended(found)}"),
        figure(
            picture,
            (
                ("All tables" if whole_lattice else f"{len(nodes)} tables around the one taken")
                + ", coarser ones higher. "
                + (
                    f"The numbers in a box are the levels of {', '.join(columns)}, 0 being as it is"
                    if len(columns) <= MOST_COLUMNS
                    else "A box names the column whose level differs from that of the table taken, and the level"
                )
                + ". Dots show what each table keeps by itself"
                + (", with no more records left out than allowed." if settings.suppression else ".")
            ),
        ),
    ]
    if found.minimal is not None:
        parts.append(
            paragraph(
                f"{count(len(minimal), 'table is', 'tables are')} minimal: nothing finer keeps everything. Of all that "
                f"keep everything, the one taken has the least {MINIMISED[settings.minimise]}: {number(found.cost)}."
            )
        )
    return [*parts, _tables(settings, [looked[node] for node in listed if node in looked], found)]


def _how_it_ended(found: Found) -> str:
    if found.complete:
        return "The search was complete: no table is better."
    return "The time was up before all had been looked at: a better table may exist. Raise 'time_limit' to look for it."


def _tables(settings: GeneralizationSettings, tables: Sequence[LatticeTable], found: Found) -> Html:
    """The minimum belief ratio of each table against each adversary, as in the paper's LatticeTable 5."""
    minimal = set(found.minimal or ())
    head: list[Content] = ["how columns are shown", "which", "height", "groups"]
    head += [_short(settings, i) for i in range(len(settings.demands))]
    head.append("records left out")
    rows = []
    beliefs = [i for i, demand in enumerate(settings.demands) if demand.belief is not None]
    worth_it = [t for t in tables if any(t.keeps[i] for i in beliefs or range(len(t.keeps)))]
    for t in sorted(worth_it, key=lambda t: (-sum(t.node), [-level for level in t.node])):
        mark = "taken" if t.node == found.node else "minimal" if t.node in minimal else ""
        cells: list[Content] = [_in_words(settings, t.node), mark, number(sum(t.node)), number(t.groups)]
        for i, (value, keeps) in enumerate(zip(t.measures, t.keeps, strict=True)):
            shown = number_up(value) if i in beliefs else number(value)
            cells.append(tag("b", shown) if keeps else shown)
        cells.append("too many" if t.left_out is None else number(t.left_out))
        rows.append(cells)
    caption = "What each table has" if len(tables) == settings.size else "What the minimal tables have"
    if len(tables) == 1:
        caption = "What the table taken has"
    others = len(tables) - len(worth_it)
    whole = table(caption, head, rows, numbers=range(2, len(head)))
    note = (
        "Against an adversary: the smallest belief ratio of what would be published, or of the whole table where too "
        "many records would have to go. Bold: it can be kept, leaving out no more than allowed. Left out: the records "
        "that must go so that everything holds."
        + (f" {count(others, 'other withstands', 'others withstand')} nobody." if others and beliefs else "")
    )
    return tag("div", whole, paragraph(note))


def _in_words(settings: GeneralizationSettings, node: Sequence[int]) -> Html:
    """How each column is shown at these levels."""
    shown = [
        (name, level_in_words(level, len(hierarchy.levels[level].labels)))
        for (name, hierarchy), level in zip(settings.hierarchies.items(), node, strict=True)
    ]
    if not any(node):
        return markup("all as they are")
    told = [(name, how) for (name, how), level in zip(shown, node, strict=True) if level]
    parts = [markup(["; " if i else None, label(name), f" {how}"]) for i, (name, how) in enumerate(told)]
    return markup([*parts, "; the rest as it is" if len(told) < len(shown) else None])


def _short(settings: GeneralizationSettings, place: int) -> Html:
    """What a column of the table is about, on several short lines."""
    demand = settings.demands[place]
    belief = demand.belief
    if belief is None:
        lines = textwrap.wrap(demand.name, 18)
    else:
        lines = [*textwrap.wrap(f"against {belief.against}", 18), f"≤ {exactly(float(belief.epsilon))}"]
    return markup([part for line in lines for part in (line, tag("br"))][:-1])


def _every(heights: Sequence[int]) -> list[tuple[int, ...]]:
    return list(product(*(range(height + 1) for height in heights)))
