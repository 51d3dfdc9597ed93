"""Hierarchies in the text format of Amnesia.

A file begins with the word ``distinct`` or ``range`` and the lines ``name …``, ``type …`` and ``height …``. An empty
line follows, then a block for each level from the lowest parents up to the root, with lines ``parent has child child``;
an empty line ends a block. Words are separated by single spaces, so no value contains one. ``height`` counts the levels
of nodes. In a ``distinct`` file the lowest nodes are the values; in a ``range`` file they are ranges ``low,high`` of
numbers or dates (``dd/mm/yyyy``, ``mm/yyyy`` or ``yyyy``), and the values come below them. A node ``NaN`` or ``null``
stands for missing values, which a policy treats in its own way.
"""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from incrowd.core.errors import InputError
from incrowd.domain import Bins, DateRange, Domain, IntegerRange
from incrowd.hierarchy.runs import nested, positions, run_names, unfit
from incrowd.hierarchy.table import HierarchyTable, Origin
from incrowd.hierarchy.tree import Grouping
from incrowd.policy import Node
from incrowd.policy.taxonomy import rows
from incrowd.policy.values import read_number

_MISSING = {"NaN", "NaN,NaN", "null", "null,null", "(null)"}
_ONE_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Ranges:
    """Nested ranges.

    Attributes:
        levels: from the finest to the root, each a list of (low, high) in order.
        dates: whether they are ranges of dates.
        origin: where they were read.
    """

    levels: tuple[tuple[tuple[Any, Any], ...], ...]
    dates: bool
    origin: Origin

    def groupings(self, domain: Domain) -> Iterator[Grouping]:
        """The groups of the values of a domain at each level.

        Where one range ends at the very value at which the next begins, that value belongs to the next.
        """
        if self.dates != isinstance(domain, DateRange) or not isinstance(domain, DateRange | IntegerRange | Bins):
            raise unfit("ranges of numbers need a domain of whole numbers or bins, ranges of dates one of dates")
        finest = self.levels[0]
        # Whole numbers and days may leave the step of one between two ranges; bins must meet.
        step: Any = _ONE_DAY if self.dates else Decimal(0 if isinstance(domain, Bins) else 1)
        if any(not high <= low <= high + step for (_, high), (low, _) in pairwise(finest)):
            raise self.origin.wrong("ranges overlap or leave a gap", code="hierarchy-nesting")
        least, most = _ends(domain)
        if least < finest[0][0] or most > finest[-1][1]:
            raise self.origin.wrong(
                "the domain reaches beyond the ranges of this hierarchy",
                code="hierarchy-uncovered",
                remedy="Make the domain smaller or the ranges wider.",
            )
        starts = [positions(domain, [max(low, least) for low, _ in level if low <= most]) for level in self.levels]
        yield from nested(((level, run_names(domain)) for level in starts), len(domain.labels))


def is_amnesia(text: str) -> bool:
    """Whether a text begins like a hierarchy of Amnesia."""
    lines = [line.strip().lower() for line in text[:1000].splitlines()[:2]]
    return len(lines) == 2 and lines[0] in ("distinct", "range") and lines[1].startswith("name")


def read_amnesia(text: str, origin: Origin) -> HierarchyTable | Ranges:
    """A hierarchy from the text of a file."""
    lines = text.splitlines()
    header, first = _header(lines, origin)
    height = header.get("height", "")
    if not height.isdigit() or int(height) < 1:
        raise origin.wrong("the line 'height' with the number of levels is missing", line=1)
    nodes = _nodes(lines, first, int(height), origin)
    if lines[0].strip().lower() == "distinct":
        return _distinct(nodes, header.get("type", "") in ("int", "double", "decimal"), origin)
    return _ranges(nodes, int(height), header.get("type", "") == "date", origin)


# A node is known by its depth and name; to it belong its children's names and the line in which they stand.
_Nodes = dict[tuple[int, str], tuple[list[str], int]]


def _header(lines: list[str], origin: Origin) -> tuple[dict[str, str], int]:
    header: dict[str, str] = {}
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            return header, number
        key, _, value = line.strip().partition(" ")
        header[key.lower()] = value.strip()
    raise origin.wrong("after the header there is nothing", line=len(lines))


def _nodes(lines: list[str], first: int, height: int, origin: Origin) -> _Nodes:
    nodes: _Nodes = {}
    depth = height - 2
    fresh = True
    for number, line in enumerate(lines[first:], first + 1):
        words = line.split()
        if not words:
            depth -= not fresh
            fresh = True
            continue
        fresh = False
        if len(words) < 3 or words[1] != "has":
            raise origin.wrong("this line is not of the form 'parent has child child'", line=number)
        if depth < 0:
            raise origin.wrong(f"there are more blocks than the height of {height} allows", line=number)
        if (depth, words[0]) in nodes:
            raise origin.wrong("this parent has a line already", line=number, code="hierarchy-duplicate")
        nodes[depth, words[0]] = [word for word in words[2:] if word not in _MISSING], number
    if len([None for depth, _ in nodes if depth == 0]) != 1:
        raise origin.wrong("the last block must be one line, for the root", code="hierarchy-root")
    _require_joined(nodes, origin)
    return nodes


def _require_joined(nodes: _Nodes, origin: Origin) -> None:
    """Every node but the root is the child of exactly one."""
    parents: dict[tuple[int, str], int] = {}
    for (depth, _), (children, line) in nodes.items():
        for child in children:
            if (depth + 1, child) in parents:
                raise origin.wrong(
                    f"a child of this line is also one of line {parents[depth + 1, child]}",
                    line=line,
                    value=child,
                    code="hierarchy-duplicate",
                )
            parents[depth + 1, child] = line
    for (depth, name), (_, line) in nodes.items():
        if depth and (depth, name) not in parents:
            raise origin.wrong(
                "this parent is not itself a child in the next block", line=line, value=name, code="hierarchy-root"
            )


def _distinct(nodes: _Nodes, numbers: bool, origin: Origin) -> HierarchyTable:
    lines: dict[str, int] = {}

    def node(depth: int, name: str, line: int) -> Node:
        children, below = nodes.get((depth, name), ([], line))
        if not children:
            name = _whole(name, origin, line) if numbers else name
            lines[name] = line
        return Node(name, tuple(node(depth + 1, child, below) for child in children))

    root = next(name for depth, name in nodes if depth == 0)
    columns = tuple(zip(*rows(node(0, root, 1)), strict=True))
    return HierarchyTable(columns, [lines[value] for value in columns[0]], origin)


def _whole(word: str, origin: Origin, line: int) -> str:
    """A number in our spelling: Amnesia writes 5 as 5.0."""
    try:
        return str(read_number(word))
    except ValueError:
        raise origin.wrong("a value in this line is not a number", line=line, value=word) from None


def _ranges(nodes: _Nodes, height: int, dates: bool, origin: Origin) -> Ranges:
    root = next(name for depth, name in nodes if depth == 0)
    line = nodes[0, root][1]
    level = [(_range(root, dates, origin, line), root, line)]
    levels = [level]
    for depth in range(height - 1):
        below = []
        for bounds, name, line in level:
            # A range without ranges below it stays as it is down to the finest level.
            children, number = nodes.get((depth, name), ([], line))
            below += [(_range(child, dates, origin, number), child, number) for child in children] or [
                (bounds, name, line)
            ]
        level = sorted(below, key=lambda node: node[0])
        levels.append(level)
    return Ranges(tuple(tuple(bounds for bounds, _, _ in level) for level in reversed(levels)), dates, origin)


def _range(word: str, dates: bool, origin: Origin, line: int) -> tuple[Any, Any]:
    low, _, high = word.partition(",")
    try:
        if dates:
            bounds: tuple[Any, Any] = _first_day(low), _last_day(high or low)
        else:
            bounds = read_number(low), read_number(high)
    except ValueError:
        raise _no_range(origin, line) from None
    if bounds[0] > bounds[1]:
        raise _no_range(origin, line)
    return bounds


def _no_range(origin: Origin, line: int) -> InputError:
    return origin.wrong("this line contains a word that is not a range 'low,high'", line=line)


def _first_day(text: str) -> dt.date:
    *front, year = (int(part) for part in text.split("/"))
    day, month = (1, 1) if not front else (1, front[0]) if len(front) == 1 else (front[0], front[1])
    return dt.date(year, month, day)


def _last_day(text: str) -> dt.date:
    *front, year = (int(part) for part in text.split("/"))
    if len(front) == 2:
        return dt.date(year, front[1], front[0])
    month = front[0] if front else 12
    return dt.date(year, month, calendar.monthrange(year, month)[1])


def _ends(domain: DateRange | IntegerRange | Bins) -> tuple[Any, Any]:
    if isinstance(domain, DateRange):
        return domain.first, domain.last
    if isinstance(domain, IntegerRange):
        return Decimal(domain.low), Decimal(domain.high)
    return Decimal(domain.cuts[0]), Decimal(domain.cuts[-1])
