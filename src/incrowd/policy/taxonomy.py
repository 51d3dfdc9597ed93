"""A tree of names, as it is written in a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic_core import PydanticCustomError

from incrowd.policy.values import read_value

ROOT = "*"


class Node(NamedTuple):
    """A name and what it stands for; a value of the domain has nothing below it."""

    label: str
    children: tuple[Node, ...] = ()

    def paths(self, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        """For each value its names from the root down to itself."""
        here = (*above, self.label)
        if not self.children:
            yield here
        for child in self.children:
            yield from child.paths(here)


def read_taxonomy(raw: Any) -> Node:
    """A tree from nested mappings and lists. Several names at the top are given the root '*'."""
    if isinstance(raw, Node):
        return raw
    if not isinstance(raw, Mapping | list | tuple) or not raw:
        raise ValueError("must be names with lists of values below them")
    findings: list[tuple[tuple[str | int, ...], str]] = []
    top = _children(raw, (), findings)
    root = top[0] if len(top) == 1 and top[0].children else Node(ROOT, top)
    if not findings:
        table = rows(root)
        if len({row[0] for row in table}) < len(table):
            findings.append(((), "a value stands in two places; list each once"))
        elif any(_splits(table, level) for level in range(1, len(table[0]) - 1)):
            findings.append(((), "two groups of one level have the same name"))
    if findings:
        raise PydanticCustomError("policy", "{text}", {"text": findings[0][1], "problems": findings})
    return root


def rows(root: Node) -> list[tuple[str, ...]]:
    """For each value its names at each level. A value that is not as deep as others keeps its own name for longer."""
    paths = list(root.paths())
    height = max(map(len, paths)) - 1
    return [tuple(path[min(len(path) - 1, height - level)] for level in range(height + 1)) for path in paths]


def _splits(table: list[tuple[str, ...]], level: int) -> bool:
    """Whether a name at a level stands below two names of the next."""
    return len({row[level : level + 2] for row in table}) > len({row[level] for row in table})


def write_taxonomy(node: Node) -> Any:
    """The tree as it is written, root included."""
    return {node.label: _branches(node)}


def _branches(node: Node) -> Any:
    if all(not child.children for child in node.children):
        return [child.label for child in node.children]
    return {child.label: _branches(child) if child.children else None for child in node.children}


def _children(
    raw: Any, place: tuple[str | int, ...], findings: list[tuple[tuple[str | int, ...], str]]
) -> tuple[Node, ...]:
    """What is written below a name."""
    if isinstance(raw, Mapping):
        pairs = [((*place, key), key, below) for key, below in raw.items()]
    elif isinstance(raw, list | tuple):
        pairs = []
        for number, item in enumerate(raw):
            here = (*place, number)
            inner = item.items() if isinstance(item, Mapping) else [(item, None)]
            pairs += [((*here, key) if isinstance(item, Mapping) else here, key, below) for key, below in inner]
    else:
        pairs = [(place, raw, None)]
    nodes: list[Node] = []
    for here, name, below in pairs:
        try:
            label = str(read_value("text", name))
        except ValueError as error:
            findings.append((here, "has no value" if name is None else str(error)))
            continue
        if any(node.label == label for node in nodes):
            findings.append((here, "this name is already given above"))
        nodes.append(Node(label, () if below is None else _children(below, here, findings)))
    return tuple(nodes)
