"""The cost of turning one distribution of sensitive values into another, for three distances between values.

- "equal": two different values are 1 apart.
- "ordered": the i-th and the j-th of m values are |i − j|/(m − 1) apart.
- a tree: two values are as far apart as their lowest common ancestor is high, divided by the tree's height. Given as
  levels, lowest first: at each level a code of the ancestor for every column, the same for all at the last.

A line and a tree have one path between two values, so the earth mover's distance is the sum over the edges of their
length times the surplus on one side. Each case is thus a sum of |share in the one − share in the other| over certain
sets of values: the single values (1/2 each: a star with spokes of that length), the beginnings of the order (1/(m−1)
each), the subtrees at each height below the root (an edge from height h to h+1 is 1/(2H) long, so that two values
which meet at height h are h/H apart).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np

from incrowd.core.errors import HierarchyError, ParameterError
from incrowd.theory._groups import Integers

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
    levels = [np.asarray(level) for level in distance]
    if not levels or any(level.shape != (size,) for level in levels):
        raise _bad_tree(f"must give, at each level, a code for each of the {size} columns")
    return _subtrees(tuple(tuple(level.tolist()) for level in levels)), 2 * len(levels)


@lru_cache(maxsize=8)
def _subtrees(levels: tuple[tuple[int | str, ...], ...]) -> Callable[[Integers], Integers]:
    """How to sum counts over the subtrees at each height below the root; made once for many tables."""
    for low, high in pairwise(levels):
        if len(set(zip(low, high, strict=True))) > len(set(low)):
            raise _bad_tree("has a node with two parents: its levels are not nested")
    if len(set(levels[-1])) > 1:
        raise _bad_tree("has no root: the last level must have the same code for every column")
    inner = [np.asarray(level) for level in levels[:-1]]
    orders = [np.argsort(level, kind="stable") for level in inner]
    starts = [np.unique(level[order], return_index=True)[1] for level, order in zip(inner, orders, strict=True)]

    def sets(cells: Integers) -> Integers:
        by_level = [
            np.add.reduceat(cells[:, order], start, axis=1) for order, start in zip(orders, starts, strict=True)
        ]
        return np.concatenate([cells, *by_level], axis=1)

    return sets


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


def _bad_tree(problem: str) -> HierarchyError:
    return HierarchyError(f"The tree of sensitive values {problem}.", code="tree-invalid")
