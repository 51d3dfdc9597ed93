"""The papers' tables and figures, drawn again by the library: one module for each paper."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from incrowd.core.errors import ParameterError
from incrowd.core.files import cannot_write, named, write_whole
from incrowd.reports.page import Content, Fact, Page, PageSection, table, tag

Tell = Callable[[str, float], None]


@dataclass(frozen=True)
class Material:
    """What figures are drawn from.

    Attributes:
        data: tables of the user's own, by the names in `DATA`; without one, an example that is made on the spot.
        quick: fewer records and runs, for a first look.
    """

    data: Mapping[str, Path] = field(default_factory=dict)
    quick: bool = False


@dataclass(frozen=True)
class Claim:
    """Something that a paper prints or says.

    Attributes:
        said: by the paper.
        found: by the library, in a few words or numbers.
        agrees: whether that is the same; None if it cannot be said, because the paper speaks of a table that is not
            to be had, or names no number. What was found then stands beside what the paper says.
    """

    said: str
    found: str
    agrees: bool | None


@dataclass(frozen=True)
class Figure:
    """One table or figure of a paper.

    Attributes:
        name: how it is asked for.
        title: what it shows.
        paper: whose it is.
        content: charts, tables and paragraphs.
        numbers: what was computed, ready for JSON.
        claims: what the paper prints or says of it, and whether that comes out.
    """

    name: str
    title: str
    paper: str
    content: tuple[Content, ...]
    numbers: Mapping[str, Any]
    claims: tuple[Claim, ...] = ()

    @property
    def heading(self) -> str:
        """The title, with the first of the authors."""
        return f"{self.paper.partition(',')[0]}, {self.title}"


# Name → module and function. A module is imported when one of its figures is drawn.
FIGURES = {
    "sampling-table-1": "incrowd.papers.gallery.crowds:table_1",
    "sampling-table-2": "incrowd.papers.gallery.crowds:table_2",
    **{f"sampling-figure-{i}": f"incrowd.papers.gallery.crowds:figure_{i}" for i in range(1, 7)},
    "adversaries-printed": "incrowd.papers.gallery.printed:printed_ratios",
    "adversaries": "incrowd.papers.gallery.adversaries:minimum_ratios",
    "stubbornness": "incrowd.papers.gallery.adversaries:stubbornness",
    "definitions": "incrowd.papers.gallery.adversaries:definitions",
    "rare-values": "incrowd.papers.gallery.samples:rare_values",
    **{f"pram-figure-{i}": f"incrowd.papers.gallery.randomised:figure_{i}" for i in (2, 3, 4)},
}
DATA = {
    "adult": "the Adult table, with its columns named as in the UCI repository",
    "census1990": "the US census of 1990, its columns named as in the raw table of the UCI repository, or not at all",
}


def draw(
    folder: str | Path, only: Sequence[str] = (), material: Material | None = None, tell: Tell | None = None
) -> list[Figure]:
    """Draw figures into one self-contained page, `index.html` in the folder.

    Raises:
        ParameterError: there is no figure or no kind of data of that name.
    """
    place, given = named(folder), material or Material()
    for name in only:
        _require(name, FIGURES, "figure")
    for name in given.data:
        _require(name, DATA, "kind of data")
    wanted = [name for name in FIGURES if name in only or not only]
    figures = []
    for number, name in enumerate(wanted):
        if tell is not None:
            tell(f"drawing {name}", number / len(wanted))
        module, _, function = FIGURES[name].partition(":")
        figures.append(getattr(importlib.import_module(module), function)(given))
    verdicts = [claim.agrees for one in figures for claim in one.claims]
    page = Page(
        kind="Gallery",
        title="The papers’ tables and figures, drawn again",
        lead="Every number on this page was computed by the library when the page was made, but for those that are "
        "marked as the papers’.",
        facts=[
            Fact("tables and figures", str(len(figures))),
            Fact("printed values and statements that come out", str(verdicts.count(True))),
            Fact("do not come out", str(verdicts.count(False)), "listed first" if False in verdicts else ""),
            Fact(
                "cannot be compared", str(verdicts.count(None)), "other data, or no number" if None in verdicts else ""
            ),
        ],
        sections=[
            PageSection("agreement", "Where they agree", _agreement(figures)),
            *(
                PageSection(one.name, one.heading, (tag("p", one.paper, class_="kind"), *_whole(one)))
                for one in figures
            ),
        ],
        closing="Figures that need a table use the user’s own where one was given, and an example otherwise.",
    )
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(place, error) from None
    write_whole(place / "index.html", page.render())
    return figures


def _require(name: str, known: Mapping[str, str], what: str) -> None:
    if name not in known:
        raise ParameterError(
            f"There is no {what} {name!r}.", code="parameter-range", remedy=f"There are: {', '.join(known)}."
        )


_VERDICTS = {True: "agrees", False: "differs", None: "cannot be compared"}


def _whole(one: Figure) -> tuple[Content, ...]:
    rows = [[claim.said, claim.found, _VERDICTS[claim.agrees]] for claim in one.claims]
    return (
        (*one.content, table("Compared with the paper", ["the paper", "here", "verdict"], rows))
        if rows
        else one.content
    )


def _agreement(figures: Sequence[Figure]) -> tuple[Content, ...]:
    def those(verdict: bool | None) -> list[list[Content]]:
        return [
            [_linked(one), claim.said, claim.found]
            for one in figures
            for claim in one.claims
            if claim.agrees is verdict
        ]

    compared = [
        [_linked(one), f"{verdicts.count(True)} of {len(verdicts)}"]
        for one in figures
        if (verdicts := [claim.agrees for claim in one.claims if claim.agrees is not None])
    ]
    parts: list[Content] = []
    if differing := those(False):
        parts.append(table("What differs", ["table or figure", "the paper", "here"], differing))
    parts.append(table("What agrees", ["table or figure", "of what was compared"], compared, numbers=(1,)))
    if other := those(None):
        parts.append(table("What cannot be compared", ["table or figure", "the paper", "here"], other))
    return tuple(parts)


def _linked(one: Figure) -> Content:
    return tag("a", one.heading, href=f"#{one.name}")


def unbroken(text: str) -> str:
    """A heading whose equations stay on one line."""
    return text.replace(" = ", "\u00a0=\u00a0")
