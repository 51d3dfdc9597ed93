"""Boxes: one set of values per column; and the public ways in which a column's set may be split.

In a private tree, a split is a function of the policy and of what has been published before (the noisy one-way table of
the column), never of the data. Two kinds are offered:

- `hierarchy`: a set is a node of the column's hierarchy, and falls apart into its children (numbers, dates and bins
  without a hierarchy are cut as in `binary`: all their values at once would be too many parts);
- `binary`: a set of a column in order is an interval, cut at the median of the noisy one-way table or at one of its
  quartiles; other sets are unions of groups of the hierarchy, and there are two ways to split one: the largest group
  against the rest, or halves by the noisy one-way table. Values outside the domain and missing values are parts of
  their own.

Every set has a name in words, and no two sets of a column have the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from incrowd.domain import Categories, Coding
from incrowd.hierarchy import CodedAttribute, Hierarchy
from incrowd.hierarchy.runs import run_names
from incrowd.policy import Ordinal, Policy

Splits = Literal["hierarchy", "binary"]
Values = tuple[int, ...]

_PLACES = (0.5, 0.25, 0.75)
"""Where a tree may cut a set in order: with such shares of the noisy one-way table below."""
_MORE_PLACES = (0.2, 0.35, 0.5, 0.65, 0.8)
"""The same of a cut through the whole table, which is made once."""
_LARGEST = 8
"""Of so many groups each may be cut off."""
_NAMED = 6  # a union of more than so many is named by what it leaves out, if that is shorter


def in_order(coding: Coding) -> bool:
    """Whether a column's declared values have an order of their own: numbers, dates and bins, not texts."""
    if not isinstance(coding.domain, Categories):
        return True
    values = coding.domain.values
    return not isinstance(values[0], str | bool) and list(values) == sorted(values)


def ordered_columns(policy: Policy, attributes: Sequence[CodedAttribute]) -> frozenset[str]:
    """The names of columns in order: by their values, or by an ordinal hierarchy."""
    return frozenset(
        a.name for a in attributes if in_order(a.coding) or isinstance(policy.attributes[a.name].hierarchy, Ordinal)
    )


@dataclass(frozen=True, eq=False)
class Sets:
    """The sets of one column that a tree has come across: each has a number, and the first is everything."""

    attribute: CodedAttribute
    splits: Splits
    ordered: bool
    marginal: np.ndarray
    """The one-way table by base code, nothing below zero: with noise, where the sets are to be private."""

    def __post_init__(self) -> None:
        self.number(tuple(range(self.size)))

    @property
    def name(self) -> str:
        """The column's."""
        return self.attribute.name

    @property
    def base(self) -> tuple[str | None, ...]:
        """The labels of the base codes."""
        return self.attribute.coding.base_labels

    @property
    def size(self) -> int:
        """How many base codes there are."""
        return len(self.base)

    @cached_property
    def values(self) -> list[Values]:
        """The base codes of each set."""
        return []

    @cached_property
    def _numbers(self) -> dict[Values, int]:
        return {}

    @cached_property
    def _ways(self) -> dict[int, list[tuple[int, ...]]]:
        return {}

    @cached_property
    def _cuts(self) -> dict[int, list[tuple[int, ...]]]:
        return {}

    @property
    def most_ways(self) -> int:
        """How many ways there may be to split a set."""
        if self._in_two and self.ordered:
            return max(1, min(len(_PLACES), len(self.attribute.coding.domain.labels) - 1))
        return 2 if self._in_two else 1

    @property
    def _in_two(self) -> bool:
        return self.splits == "binary" or (self.ordered and self.attribute.hierarchy.height == 1)

    def number(self, values: Values) -> int:
        """The number of a set, a new one if need be."""
        found = self._numbers.get(values)
        if found is None:
            found = self._numbers[values] = len(self.values)
            self.values.append(values)
        return found

    def ways(self, number: int) -> list[tuple[int, ...]]:
        """The ways to split a set, each as the sets that it falls apart into; none if it cannot be split."""
        if number not in self._ways:
            self._ways[number] = self.ways_by(number, self.marginal)
        return self._ways[number]

    def ways_by(self, number: int, masses: np.ndarray) -> list[tuple[int, ...]]:
        """The same by another one-way table."""
        ways = self._split(self.values[number], masses) if len(self.values[number]) > 1 else []
        return [tuple(map(self.number, parts)) for parts in ways]

    def _split(self, values: Values, masses: np.ndarray) -> list[list[Values]]:
        groups = groups_within(self.attribute.hierarchy, values)
        if not self._in_two:
            return [groups]
        declared = len(self.attribute.coding.domain.labels)
        inside: list[Values] = [(v,) for v in values if v < declared]
        beyond: list[Values] = [(v,) for v in values if v >= declared]
        if self.ordered and inside:
            found = [_cut(inside, masses, place) for place in _PLACES] if len(inside) > 1 else [inside]
            return [[*parts, *beyond] for i, parts in enumerate(found) if parts not in found[:i]]
        if len(groups) == 2:
            return [groups]
        largest = int(np.argmax([float(masses[list(group)].sum()) for group in groups]))
        rest = [group for i, group in enumerate(groups) if i != largest]
        halves = _cut(groups, masses)
        return [[groups[largest], _joined(rest)]] + ([halves] if groups[largest] not in halves else [])

    def cuts(self, number: int) -> list[tuple[int, ...]]:
        """The ways to take a set apart in all records. In two there are more than a tree offers: at one of several
        places of a column in order; of other columns, one of the largest groups, or several of them, against the rest.
        """
        if not self._in_two:
            return self.ways(number)
        if number not in self._cuts:
            values = self.values[number]
            second = {tuple(sorted(set(values) - set(first))): first for first in self._firsts(values)}
            self._cuts[number] = [(self.number(first), self.number(rest)) for rest, first in second.items() if rest]
        return self._cuts[number]

    def _firsts(self, values: Values) -> list[Values]:
        declared = len(self.attribute.coding.domain.labels)
        inside, beyond = tuple(v for v in values if v < declared), tuple(v for v in values if v >= declared)
        if self.ordered and inside:
            upto = np.cumsum(self.marginal[list(inside)])
            places = [int(np.argmin(np.abs(upto[:-1] - share * upto[-1]))) for share in _MORE_PLACES if len(inside) > 1]
            return [*([inside] if beyond else []), *(inside[: place + 1] for place in places)]
        groups = groups_within(self.attribute.hierarchy, values)
        masses = [float(self.marginal[list(group)].sum()) for group in groups]
        largest = sorted(range(len(groups)), key=lambda i: -masses[i])[:_LARGEST]
        several = [[groups[i] for i in largest[:many]] for many in range(2, len(largest) + 1)]
        halves = _cut(groups, np.asarray(self.marginal))[:1] if len(groups) > 1 else []
        return [*(groups[i] for i in largest), *map(_joined, several), *halves]

    def labels(self, numbers: Sequence[int]) -> list[str | None]:
        """The names of some sets, all different; None is the missing value alone."""
        namer = Namer(self.attribute.coding, self.attribute.hierarchy, ordered=self.ordered)
        found: dict[str | None, None] = {}
        for number in numbers:
            name = label = namer.name(self.values[number])
            again = 1
            while label in found:
                again += 1
                label = f"{name} ({again})"
            found[label] = None
        return list(found)


def _cut(groups: Sequence[Values], masses: np.ndarray, share: float = 0.5) -> list[Values]:
    """In two, with such a share of the one-way table in the first, as nearly as can be."""
    if all(len(group) == 1 for group in groups):
        upto = np.cumsum(masses[[group[0] for group in groups]].astype(np.float64))
    else:
        upto = np.cumsum([float(masses[list(group)].sum()) for group in groups])
    cut = 1 + int(np.argmin(np.abs(upto[:-1] - share * upto[-1]))) if upto[-1] > 0 else len(groups) // 2
    return [_joined(groups[:cut]), _joined(groups[cut:])]


def _joined(groups: Sequence[Values]) -> Values:
    return tuple(sorted(value for group in groups for value in group))


def groups_within(hierarchy: Hierarchy, values: Values) -> list[Values]:
    """A set taken apart at the highest level at which not all of it is one group."""
    codes = np.array(values)
    for level in reversed(hierarchy.levels):
        at = level.to[codes]
        if (at != at[0]).any():
            order = np.argsort(at, kind="stable")
            edges = np.flatnonzero(np.diff(at[order])) + 1
            if len(edges) + 1 == len(codes):
                return [(value,) for value in sorted(values)]
            groups = [tuple(part.tolist()) for part in np.split(codes[order], edges)]
            return sorted(groups)
    return []


class Namer:
    """Sets of one column in words."""

    def __init__(self, coding: Coding, hierarchy: Hierarchy, *, ordered: bool) -> None:
        self.coding, self.hierarchy, self.ordered = coding, hierarchy, ordered

    def name(self, values: Values) -> str | None:
        """A node of the hierarchy, an interval, a union, or what is left of a node."""
        found, name = self._node(values)
        if found:
            return name
        declared = len(self.coding.domain.labels)
        run = values[-1] - values[0] + 1 == len(values)
        if self.ordered and run and values[-1] < declared:
            return self._interval(values[0], values[-1])
        enclosing = self._enclosing(values)
        here = self._nodes_of(values)
        gone = self._nodes_of(tuple(sorted(set(enclosing) - set(values)))) if len(here) > _NAMED else here
        if len(gone) < len(here):
            whole = "all" if len(enclosing) == len(self.coding.base_labels) else self._node(enclosing)[1]
            return f"{whole} except {_listed(gone, 'and')}"
        return f"any of {_listed(here, 'or')}"

    def _node(self, values: Values) -> tuple[bool, str | None]:
        """Whether a set is a group of some level, and what it is called at the lowest of them."""
        codes = np.array(values)
        for level, sizes in zip(self.hierarchy.levels, self._sizes, strict=True):
            at = level.to[codes]
            if sizes[at[0]] == len(values) and (at == at[0]).all():
                return True, level.labels[int(at[0])]
        return False, None

    @cached_property
    def _sizes(self) -> list[np.ndarray]:
        return [self.hierarchy.covered(number) for number in range(len(self.hierarchy.levels))]

    def _interval(self, first: int, last: int) -> str:
        domain = self.coding.domain
        starts = np.array([s for s in (0, first, last + 1) if s < len(domain.labels)])
        return run_names(domain)(np.unique(starts))[0 if first == 0 else 1]

    def _enclosing(self, values: Values) -> Values:
        """The smallest node that has all of them."""
        codes = np.array(values)
        for level in self.hierarchy.levels:
            at = level.to[codes]
            if (at == at[0]).all():
                return tuple(np.flatnonzero(level.to == at[0]).tolist())
        return tuple(range(len(self.coding.base_labels)))

    def _nodes_of(self, values: Values) -> list[str]:
        """The largest nodes that make up a set."""
        if not values:
            return []
        found, name = self._node(values)
        if found:
            return [name or "missing"]
        groups = groups_within(self.hierarchy, values)
        if len(groups) == len(values):  # of thousands of values, one look for all
            level, sizes = self.hierarchy.levels[0], self._sizes[0]
            alone = level.to[[value for (value,) in groups]]
            return [level.labels[at] or "missing" for at in alone[sizes[alone] == 1].tolist()]
        return [name for group in groups for name in self._nodes_of(group)]


def _listed(names: Sequence[str], word: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
