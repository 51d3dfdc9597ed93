"""What a page needs to show tables, plans, policies and releases: pictures, and texts that are edited with care."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from incrowd.core.errors import InputError, ParameterError

if TYPE_CHECKING:
    from incrowd.comparison import Compared
    from incrowd.mechanisms.planner import Planned
    from incrowd.papers.attacks.stories import Attack
    from incrowd.policy import Policy
    from incrowd.sources.profile import ColumnProfile
    from incrowd.survey import Questionnaire
    from incrowd.theory.crowd import CrowdPlan, FrontierPoint

_SHOWN = 12  # labels of a level

ENCODINGS = ("utf-8", "windows-1252", "latin-1")
"""The encodings in which a text file is tried, in turn: anything can be read in the last."""


# --- mechanisms ------------------------------------------------------------------------------------------------------


def mechanism_forms() -> dict[str, dict[str, Any]]:
    """What a form needs to know of each mechanism: its title, a summary, its keys with labels, and where to begin."""
    from incrowd.mechanisms.registry import MECHANISMS

    return {
        name: {
            "title": one.title,
            "summary": one.summary,
            "start": dict(one.start),
            "fields": [
                {
                    "key": field.key,
                    "label": field.label,
                    "lists": field.lists,
                    "choices": dict(field.choices),
                    "usual": field.usual(one.section),
                    "more": field.more,
                }
                for field in one.form
            ],
            "editor": one.editor,
            "groups": one.looked_at_first,
        }
        for name, one in MECHANISMS.items()
    }


class Drawable(Protocol):
    """A plan that draws its own trade-off."""

    def chart(self) -> str:
        """As an SVG document."""


# --- pictures ---------------------------------------------------------------------------------------------------------


def style_sheet() -> str:
    """The style of reports and of the pictures below, for a page that shows them without styles of their own."""
    from incrowd.reports import lattice_chart, page, scatter, svg

    return f"{page.style()}\n{svg.STYLE}\n{lattice_chart.STYLE}\n{scatter.DOTS}"


def draw_plan(plan: Drawable | CrowdPlan | Planned) -> str:
    """A plan's trade-off as SVG, for a page that has `style_sheet`."""
    return without_style(plan_chart(plan))


def plan_chart(plan: Drawable | CrowdPlan | Planned) -> str:
    """A plan's trade-off as an SVG document."""
    from incrowd.mechanisms.planner import Planned
    from incrowd.mechanisms.sampled_crowd.plan import draw_crowd_plan
    from incrowd.theory.crowd import CrowdPlan

    if isinstance(plan, CrowdPlan):  # theory draws nothing
        return draw_crowd_plan(plan)
    if not isinstance(plan, Planned):
        return plan.chart()
    if plan.draw is None:
        raise ParameterError(
            "There is nothing to draw for this plan.",
            code="parameter-combination",
            remedy="Leave the option out.",
        )
    return plan.draw()


def draw_frontier(points: Sequence[FrontierPoint], plan: CrowdPlan) -> str:
    """The same promise at other sampling rates as SVG, for a page that has `style_sheet`."""
    from incrowd.mechanisms.sampled_crowd.plan import draw_frontier

    return without_style(draw_frontier(points, plan))


def draw_attack(attack: Attack) -> tuple[str, str]:
    """What the attacker sees of the unsafe release and of a safe one, for a page that has `style_sheet`."""
    unsafe, safe = map(without_style, attack.pictures)
    return unsafe, safe


def column_ranges(column: ColumnProfile) -> list[tuple[float, float, int]]:
    """The numbers of a column in ranges of a round width, and how many records are in each. For the publisher alone."""
    from incrowd.reports.column_bars import ranges

    return ranges(column) if column.numbers else []


def draw_lattice(content: Mapping[str, Any]) -> str:
    """The lattice of a release's internal folder as SVG, for a page that has `style_sheet`."""
    from incrowd.mechanisms.generalization.lattice_view import lattice_picture

    return without_style(lattice_picture(content))


def draw_explored(points: Sequence[Mapping[str, Any]], control: Sequence[float]) -> str:
    """Moves of a page as SVG, for a page that has `style_sheet`. For the publisher's eyes only."""
    from incrowd.comparison.chart import draw_explored

    return without_style(draw_explored(points, control))


def draw_compared(compared: Compared) -> str:
    """A comparison as SVG, for a page that has `style_sheet`. For the publisher's eyes only."""
    from incrowd.comparison.chart import draw

    return without_style(draw(compared))


def without_style(picture: str) -> str:
    """A picture without its own style, which a strict Content-Security-Policy forbids: the page has `style_sheet`."""
    return re.sub(r"<style>.*?</style>", "", picture, count=1, flags=re.DOTALL)


def odds_at_most(epsilon: float) -> float:
    """e^ε, rounded up to three digits: what is said not to be exceeded is not."""
    from incrowd.core.numbers import few_digits, grown_float

    return few_digits(grown_float(epsilon), 3, up=True)


def belief_at_most(epsilon: float) -> float:
    """What a belief of 50 to 50 becomes at most, under a promise of ε."""
    odds = odds_at_most(epsilon)
    return odds / (1 + odds)


# --- policies ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Level:
    """A level of a hierarchy: how many groups it has, and what the first of them are called."""

    groups: int
    labels: tuple[str | None, ...]


def policy_from_text(text: str, base: str | Path | None = None) -> Policy:
    """A policy from its text. Without a base, no file that it names is looked for."""
    from incrowd.policy import Policy

    return Policy.from_text(text, base)


def policy_paths(policy: Policy) -> list[str]:
    """Every path that a policy names, as it is written there."""
    named = [spec.file for spec in policy.files().values()]
    named += [path for path in (policy.data.path, policy.ledger.path if policy.ledger else None) if path is not None]
    return named


def policy_levels(policy: Policy) -> dict[str, tuple[Level, ...]]:
    """The levels of each published column, from what is declared and not from any data."""
    from incrowd.hierarchy import codings

    return {
        a.name: tuple(Level(len(level.labels), tuple(level.labels[:_SHOWN])) for level in a.hierarchy.levels)
        for a in codings(policy)
    }


def without_preamble(text: str) -> str:
    """The text of a draft without the remarks above and below it, which a page shows in a better place."""
    lines = text.splitlines(keepends=True)
    said = [i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")]
    return "".join(lines[said[0] : said[-1] + 1]) if said else text


def save_policy(text: str, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the text of a policy to a file, whether or not it makes sense yet."""
    from incrowd.core.files import named, require_absent, write_whole

    target = named(path)
    if target.suffix.lower() not in {".yaml", ".yml"}:
        raise InputError(
            f"Policies are written as YAML; {target.name} does not end in .yaml.",
            code="output-format",
            remedy="Name the file something.yaml.",
        )
    if not overwrite:
        require_absent(target)
    return write_whole(target, text.encode())


# --- tables and releases ----------------------------------------------------------------------------------------------


def table_columns(data: Any, **reading: Any) -> list[tuple[str, str]]:
    """The columns of a table, and what kind of values each can hold."""
    from incrowd.sources import open_source

    return [(column.name, column.kind) for column in open_source(data, **reading).columns()]


@dataclass(frozen=True)
class TextPreview:
    """The beginning of a text file. For the publisher's eyes only.

    Attributes:
        encoding: in which it can be read.
        delimiter: what separates the fields.
        lines: the first lines as fields, that of the columns' names first.
    """

    encoding: str
    delimiter: str
    lines: tuple[tuple[str, ...], ...]


def preview_text(
    path: str | Path,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    quote: str = '"',
    unfit: Sequence[str] = (),
) -> TextPreview:
    """The first lines of a text file as they would be read; without an encoding, in the first in which they can be.

    Args:
        path: the file.
        encoding: of the file.
        delimiter: what separates the fields; found out if not given.
        quote: what surrounds fields.
        unfit: encodings that need not be tried: further down something does not fit them.
    """
    from incrowd.core.errors import DataError
    from incrowd.sources.delimited import first_lines
    from incrowd.sources.options import Options

    tried = [encoding] if encoding is not None else [one for one in ENCODINGS if one not in unfit]
    for one in tried:
        try:
            said = None if encoding is None and one == ENCODINGS[0] else one  # a mark of UTF-16 is then believed
            found, cut, lines = first_lines(Path(path), Options(encoding=said, delimiter=delimiter, quote=quote))
        except DataError as error:
            if error.code != "data-encoding" or one == tried[-1]:
                raise
        else:
            return TextPreview(one if found != "utf-16" else found, cut, tuple(tuple(line) for line in lines))
    raise AssertionError("latin-1 can always be read")


def rows_of_people(data: Any, columns: Sequence[str], **reading: Any) -> tuple[tuple[int, int], ...]:
    """How many people have how many rows, as pairs (rows, people) by rows, if these columns say whose a row is.

    For the publisher's eyes only. Rows that lack the identifier count as those of one person.
    """
    from collections import Counter

    from incrowd.sources import open_source
    from incrowd.sources.values import distinct_counts

    return tuple(sorted(Counter(distinct_counts(open_source(data, **reading), columns).tolist()).items()))


def read_certificate(folder: str | Path) -> dict[str, Any]:
    """The certificate in a folder. Nothing in it is checked: see `verify`."""
    from incrowd.releases.verify import read_certificate

    return read_certificate(Path(folder))[1]


# --- surveys ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Collected:
    """What a store holds: how much of it, and nothing else.

    Attributes:
        title: of the survey.
        records: how many came.
        expected: how many the questionnaire speaks of.
    """

    title: str
    records: int
    expected: int


def open_questionnaire(path: str | Path) -> Questionnaire:
    """A questionnaire from its file, checked."""
    from incrowd.survey import Questionnaire

    return Questionnaire.from_file(path)


def collected(store: str | Path) -> Collected:
    """How much has been collected in a store, which a collector may be filling at this moment."""
    from incrowd.survey.collector.store import Store

    opened = Store(str(store))
    try:
        asked = opened.questionnaire
        return Collected(asked.title, sum(opened.cells().values()), asked.records)
    finally:
        opened.close()
