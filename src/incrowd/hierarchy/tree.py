"""The value type: a domain, and coarser and coarser ways to see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import HierarchyError, InternalError
from incrowd.domain import Coding, Recode
from incrowd.policy.taxonomy import ROOT

Grouping = tuple[NDArray[np.integer], Sequence[str]]  # of the declared values: each one's group, and the groups' names


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The levels of one attribute, from its values as they are to all of them alike.

    Every level tells apart no more than the one below it: two base codes that share a code at some level share one at
    every higher level. Groups are numbered in the order of their first base codes. Below the root, values outside the
    domain and missing values stay groups of their own; at the root they are like everything else.

    Attributes:
        levels: for each level, the code of every base code and the labels of these codes.
        declared: how many of the base codes are values of the domain; the rest are the bucket for others and missing.
    """

    levels: tuple[Recode, ...]
    declared: int

    def __post_init__(self) -> None:
        sizes = {len(level.to) for level in self.levels}
        if len(self.levels) < 2 or len(sizes) != 1 or len(self.levels[-1].labels) != 1:
            raise InternalError("a hierarchy needs two levels of one length and one root")
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            if np.any(parents(below.to, above.to)[below.to] != above.to):
                raise InternalError("a level of a hierarchy is not a coarsening of the one below")

    @property
    def height(self) -> int:
        """The number of the highest level."""
        return len(self.levels) - 1

    @property
    def root(self) -> str | None:
        """What everything is called at the highest level."""
        return self.levels[-1].labels[0]

    def recode(self, level: int) -> Recode:
        """Base codes to codes at a level."""
        if not 0 <= level <= self.height:
            raise HierarchyError(
                f"There is no level {level}: the hierarchy has the levels 0 to {self.height}.",
                code="hierarchy-level",
                details={"level": level, "height": self.height},
            )
        return self.levels[level]

    def coarsen(self, lower: int, upper: int) -> Recode:
        """Codes at one level to codes at a higher one."""
        below, above = self.recode(lower), self.recode(upper)
        if lower > upper:
            raise HierarchyError(
                f"Nothing leads back from level {lower} to level {upper}.",
                code="hierarchy-level",
                details={"level": upper, "from": lower},
            )
        return Recode(parents(below.to, above.to), above.labels)

    def covered(self, level: int) -> NDArray[np.int64]:
        """How many base codes each group of a level stands for, the buckets for others and missing included."""
        recode = self.recode(level)
        return np.bincount(recode.to, minlength=len(recode.labels))


def assemble(coding: Coding, groupings: Iterable[Grouping], root: str = ROOT) -> Hierarchy:
    """The hierarchy of a column from the groupings of its declared values above level 0.

    The root is the last grouping if that is one group, and comes on top of it if not. Where a group is one value under
    the name that it prints as, it is published as that value is.
    """
    declared = len(coding.domain.labels)
    beyond = coding.base_labels[declared:]
    base = declared + len(beyond)
    steps: list[Grouping] = [(np.arange(declared), coding.domain.labels), *groupings]
    if len(steps) > 1 and len(steps[-1][1]) == 1:
        steps.pop()
    levels = []
    for number, (to, own) in enumerate(steps):
        labels = own if coding.names is None else _published(to, own, coding)
        _require_distinct(number, labels, beyond)
        extra = np.arange(len(labels), len(labels) + len(beyond))
        levels.append(Recode(_codes(np.concatenate([to, extra]), len(labels) + len(beyond)), (*labels, *beyond)))
    levels.append(Recode(_codes(np.zeros(base), 1), (root,)))
    return Hierarchy(tuple(levels), declared)


def parents(below: NDArray[np.integer], above: NDArray[np.integer]) -> NDArray[np.integer]:
    """For each code at one level, the code at another of some base code that has it (the last one)."""
    to = np.zeros(int(below.max()) + 1, above.dtype)
    to[below] = above
    to.setflags(write=False)
    return to


def in_order(codes: NDArray[np.integer], labels: Sequence[str]) -> Grouping:
    """The same groups numbered by first appearance, those that never appear left out."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse], tuple(labels[codes[i]] for i in np.sort(first))


def _codes(to: NDArray[np.generic], groups: int) -> NDArray[np.integer]:
    """Codes in the smallest type that fits, never to be changed."""
    codes = to.astype(np.min_scalar_type(groups - 1))
    codes.setflags(write=False)
    return codes


def _published(to: NDArray[np.integer], labels: Sequence[str], coding: Coding) -> Sequence[str]:
    """The labels of a grouping, those of single values being what these are published as."""
    last = np.zeros(len(labels), np.int64)
    last[to] = np.arange(len(to))
    single = np.bincount(to, minlength=len(labels)) == 1
    printed, shown = coding.domain.labels, coding.value_labels
    return tuple(
        shown[value] if alone and printed[value] == label else label
        for label, value, alone in zip(labels, last.tolist(), single.tolist(), strict=True)
    )


def _require_distinct(level: int, labels: Sequence[str], beyond: Sequence[str | None]) -> None:
    if not set(beyond).isdisjoint(labels):
        raise HierarchyError(
            f"A name for values outside the domain is already that of a group at level {level}.",
            code="hierarchy-label",
            remedy="Choose another name under 'other' or 'codes'.",
            details={"level": level},
        )
    if len(set(labels)) < len(labels):
        raise HierarchyError(
            f"Two groups at level {level} have the same name.",
            code="hierarchy-label",
            remedy="Give each group of a level a name of its own.",
            details={"level": level},
        )
