"""What a mechanism offers to those who plan: the command line, the studio's page and scripts list the same planners.

A planner's options are light, and so is the module that has them: planning loads no mechanism. `solve` imports what it
needs.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from incrowd.mechanisms import NAMES

if TYPE_CHECKING:
    from incrowd.histogram import Histogram

Kind = Literal["number", "count", "sizes", "flag", "choice"]


@dataclass(frozen=True)
class PlanOption:
    """Something that a planner is told.

    Attributes:
        name: as `solve` takes it; on the command line with dashes.
        help: what it is, in a sentence.
        kind: a number, a whole number, several whole numbers, yes or no, or one of some words.
        default: what it is if not given; None for nothing.
        required: whether it must be given.
        choices: the words.
        least: of a whole number.
        start: what a form begins with.
    """

    name: str
    help: str
    kind: Kind = "number"
    default: float | str | bool | None = None
    required: bool = False
    choices: tuple[str, ...] = ()
    least: int | None = None
    start: str = ""


ROWS_PER_PERSON = PlanOption("rows_per_person", "How many rows one person has at most.", "count", 1)


@dataclass(frozen=True)
class PlanTable:
    """A table of an answer: what it is about, its headings, how many of them are words and not numbers, its rows."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    words: int = 0


@dataclass(frozen=True, eq=False)
class Planned:
    """A planner's answer.

    Attributes:
        answer: the plan itself.
        payload: all of it, for programs.
        title: what to do, in a sentence.
        lines: what that promises.
        tables: further numbers.
        closing: how to read them.
        draw: the trade-off as an SVG document; None if there is none to draw.
        section: what the policy's section `release` would say.
        internal: why this is for the publisher's eyes only, if it is.
    """

    answer: object
    payload: Mapping[str, Any]
    title: str
    lines: tuple[str, ...] = ()
    tables: tuple[PlanTable, ...] = ()
    closing: str = ""
    draw: Callable[[], str] | None = None
    section: Mapping[str, Any] = field(default_factory=dict)
    internal: str = ""


@dataclass(frozen=True, eq=False)
class Planner:
    """A way to plan.

    Attributes:
        name: its word on the command line.
        title: its name for people.
        help: what it does; the first line in short, and then the rest.
        options: what it is told.
        solve: takes the options that are given, by their names; of a table also `counts`, how often each row occurs.
        draws: whether its answers can be drawn.
        of_table: whether it looks at a table.
        examples: of its command.
        filled: of a table with a policy, the options given, with what the policy's section says of others.
        advise: of a table, with the ways in which its columns could become coarser, what would better an answer.
    """

    name: str
    title: str
    help: str
    options: tuple[PlanOption, ...]
    solve: Callable[..., Planned]
    draws: bool = True
    of_table: bool = False
    examples: tuple[str, ...] = ()
    filled: Callable[[dict[str, Any], Mapping[str, Any]], dict[str, Any]] | None = None
    advise: Callable[[Histogram, Mapping[str, Any], Planned], Planned] | None = None


def planners() -> dict[str, Planner]:
    """What can be planned, by the names that the command line has for it: `PLANNERS` of each folder that has some."""
    modules = [f"incrowd.mechanisms.{name}.planner" for name in NAMES]
    found = [importlib.import_module(module) for module in modules if importlib.util.find_spec(module) is not None]
    return {planner.name: planner for module in found for planner in module.PLANNERS}
