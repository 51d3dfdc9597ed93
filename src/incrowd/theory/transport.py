"""The cost of turning one distribution of sensitive values into another, for three distances between values.

- "equal": two different values are 1 apart.
- "ordered": the i-th and the j-th of m values are |i − j|/(m − 1) apart.
- a tree: two values are as far apart as their lowest common ancestor is high, divided by the tree's height. Given as
  levels, lowest first: at each level a code of the ancestor for every column, the same for all at the last.
  `tree_levels` makes them from a nested list.

A line and a tree have one path between two values, so the earth mover's distance is the sum over the edges of their
length times the surplus on one side. Each case is thus a sum of |share in the one − share in the other| over certain
sets of values: the single values (1/2 each: a star with spokes of that length), the beginnings of the order (1/(m−1)
each), the subtrees at each height below the root (an edge from height h to h+1 is 1/(2H) long, so that two values
which meet at height h are h/H apart).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np

from incrowd.core.errors import HierarchyError, ParameterError
from incrowd.theory._groups import Integers
from incrowd.theory._numbers import require_count

Levels = Sequence[Sequence[int]]
Distance = Literal["equal", "ordered"] | Levels


def transport_sets(distance: Distance, size: int) -> tuple[Callable[[Integers], Integers], int]:
    """How to sum counts over the sets whose surplus is moved, and what the sum of the surpluses is divided by."""
    if isinstance(distance, str):
        if distance == "equal":
            return lambda cells: cells, 2
        if distance == "ordered":
            return lambda cells: np.cumsum(cells, axis=1)[:, :-1], max(size - 1, 1)
        raise ParameterError("The distance must be 'equal', 'ordered' or the levels of a tree.", code="parameter-type")
    levels = [np.arange(size), *(np.asarray(level) for level in distance)]
    if len(levels) < 2 or any(level.shape != (size,) for level in levels):
        raise _bad_tree(f"must give, at each level, a code for each of the {size} columns")
    for low, high in pairwise(level.tolist() for level in levels):
        if len(set(zip(low, high, strict=True))) > len(set(low)):
            raise _bad_tree("has a node with two parents: its levels are not nested")
    if len(set(levels[-1].tolist())) > 1:
        raise _bad_tree("has no root: the last level must have the same code for every column")
    orders = [np.argsort(level, kind="stable") for level in levels[:-1]]
    starts = [np.unique(level[order], return_index=True)[1] for level, order in zip(levels, orders, strict=False)]

    def sets(cells: Integers) -> Integers:
        by_level = [
            np.add.reduceat(cells[:, order], start, axis=1) for order, start in zip(orders, starts, strict=True)
        ]
        return np.concatenate(by_level, axis=1)

    return sets, 2 * (len(levels) - 1)


def cost(distance: Distance, surplus: Sequence[Fraction]) -> Fraction:
    """What it costs to move a surplus of each value (negative where there is a lack) to where it is lacking."""
    if distance == "equal":
        return sum(map(abs, surplus), Fraction(0)) / 2
    if distance == "ordered":
        return sum(map(abs, accumulate(surplus)), Fraction(0)) / max(len(surplus) - 1, 1)
    found, below = Fraction(0), [range(len(surplus)), *distance]
    for codes in below[:-1]:
        subtrees: dict[int | str, Fraction] = {}
        for code, moved in zip(codes, surplus, strict=True):
            subtrees[code] = subtrees.get(code, Fraction(0)) + moved
        found += sum(map(abs, subtrees.values()), Fraction(0))
    return found / (2 * (len(below) - 1))


def tree_levels(tree: Sequence[Any]) -> list[list[int]]:
    """The levels of a nested list of column numbers: [[0, 1], [2, [3, 4]]] has a root with two branches.

    A node is as high as its highest child and one more, so that branches of different depth meet at the height of their
    common ancestor. Level h sends each column to its highest ancestor of height at most h.
    """
    paths: dict[int, list[tuple[int, int]]] = {}  # column -> (height, code) of its ancestors, from below
    nodes = 0

    def walk(node: Any) -> tuple[int, list[int]]:
        nonlocal nodes
        nodes += 1
        code = nodes
        if isinstance(node, str) or not isinstance(node, Sequence | int | np.integer):
            raise _bad_tree("must be made of lists and column numbers")
        if not isinstance(node, Sequence):
            column = require_count("a column of the tree", int(node), least=0)
            if column in paths:
                raise _bad_tree("holds a column more than once")
            paths[column] = [(0, code)]
            return 0, [column]
        if len(node) == 0:
            raise _bad_tree("has an empty branch")
        children = [walk(child) for child in node]
        height = 1 + max(child_height for child_height, _ in children)
        below = [column for _, columns in children for column in columns]
        for column in below:
            paths[column].append((height, code))
        return height, below

    top, columns = walk(tree)
    if sorted(columns) != list(range(len(columns))):
        raise _bad_tree("must hold every column from 0 on")
    return [
        [max((h, code) for h, code in paths[column] if h <= height)[1] for column in range(len(columns))]
        for height in range(1, top + 1)
    ]


def _bad_tree(problem: str) -> HierarchyError:
    return HierarchyError(f"The tree of sensitive values {problem}.", code="tree-invalid")
