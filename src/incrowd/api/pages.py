"""What a page needs to show tables, plans, policies and releases: pictures, and texts that are edited with care."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from incrowd.core.errors import InputError, ParameterError

if TYPE_CHECKING:
    from incrowd.mechanisms.planner import Planned, Planner
    from incrowd.policy import Policy
    from incrowd.sources.profile import ColumnProfile
    from incrowd.theory.crowd import CrowdPlan, FrontierPoint

_SHOWN = 12  # labels of a level


# --- mechanisms ------------------------------------------------------------------------------------------------------


def mechanism_forms() -> dict[str, dict[str, Any]]:
    """What a form needs to know of each mechanism: its title, a summary, its keys with labels, and where to begin."""
    from incrowd.mechanisms.registry import MECHANISMS

    return {
        name: {
            "title": one.title,
            "summary": one.summary,
            "start": dict(one.start),
            "fields": [[field.key, field.label, field.lists] for field in one.form],
            "editor": one.editor,
            "groups": one.looked_at_first,
        }
        for name, one in MECHANISMS.items()
    }


def planners() -> dict[str, Planner]:
    """What can be planned, by the names that the command line has for it."""
    from incrowd.mechanisms.planner import planners

    return planners()


class Drawable(Protocol):
    """A plan that draws its own trade-off."""

    def chart(self) -> str:
        """As an SVG document."""


# --- pictures ---------------------------------------------------------------------------------------------------------


def style_sheet() -> str:
    """The style of reports and of the pictures below, for a page that shows them without styles of their own."""
    from incrowd.reports import lattice_chart, page, svg

    return f"{page.style()}\n{svg.STYLE}\n{lattice_chart.STYLE}"


def draw_plan(plan: Drawable | CrowdPlan | Planned) -> str:
    """A plan's trade-off as SVG, for a page that has `style_sheet`."""
    return _bare(plan_chart(plan))


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

    return _bare(draw_frontier(points, plan))


def draw_column(column: ColumnProfile) -> str:
    """What a column holds as HTML, for a page that has `style_sheet`. For the publisher's eyes only."""
    from incrowd.reports.column_bars import column_bars

    return column_bars(column)


def draw_lattice(content: Mapping[str, Any]) -> str:
    """The lattice of a release's internal folder as SVG, for a page that has `style_sheet`."""
    from incrowd.mechanisms.generalization.lattice_view import lattice_picture

    return _bare(lattice_picture(content))


def _bare(picture: str) -> str:
    """A picture without its own style, which a page with a strict Content-Security-Policy would not use."""
    return re.sub(r"<style>.*?</style>", "", picture, count=1, flags=re.DOTALL)


def survival(size: int, k: int, beta: float) -> float:
    """The share of a crowd of some size that is published, on average."""
    from incrowd.theory.crowd import survival

    return survival(size, k, beta)


def odds_at_most(epsilon: float) -> float:
    """e^ε, rounded up to three digits: what is said not to be exceeded is not."""
    from incrowd.core.numbers import few_digits, grown_float

    return few_digits(grown_float(epsilon), 3, up=True)


def belief_at_most(epsilon: float) -> float:
    """What a belief of 50 to 50 becomes at most, under a promise of ε."""
    odds = odds_at_most(epsilon)
    return odds / (1 + odds)


def print_number(value: float, digits: int = 4) -> str:
    """A number for people: thousands apart, very small and very large ones as powers of ten."""
    from incrowd.core.numbers import number

    return number(value, digits)


def print_percent(share: float) -> str:
    """A share for people."""
    from incrowd.core.numbers import percent

    return percent(share)


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


def policy_outline(text: str) -> dict[str, Any]:
    """What a policy says as mappings, lists and texts, whether or not it makes sense."""
    from incrowd.policy.editing import outline

    return outline(text)


def edit_policy(text: str, place: Sequence[str], content: Any) -> str:
    """The text of a policy with one thing changed, added (or, for None, removed), and everything else as it was."""
    from incrowd.policy.editing import edit

    return edit(text, place, content)


def unconfirmed(text: str) -> dict[str, list[str]]:
    """What a draft asks a person to confirm, by attribute; what is about none of them under an empty name."""
    from incrowd.policy.editing import unconfirmed

    return unconfirmed(text)


def confirm(text: str, attribute: str) -> str:
    """The text of a draft after a person has confirmed what it says about an attribute, or (for "") about the rest."""
    from incrowd.policy.editing import confirm

    return confirm(text, attribute)


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


def find_files(names: Sequence[str]) -> list[Path]:
    """The files that names and patterns stand for."""
    from incrowd.sources.files import find_files

    return find_files(names)


def read_certificate(folder: str | Path) -> dict[str, Any]:
    """The certificate in a folder. Nothing in it is checked: see `verify`."""
    from incrowd.releases.verify import read_certificate

    return read_certificate(Path(folder))[1]
