"""A distribution over many columns as a junction tree: tables of a few columns each that agree where they overlap.

The tables are the cliques of a chordal graph in which every given set of columns is complete, so a log-linear model
with these sets as its terms has all its marginals by passing messages along the tree, without ever holding a cell for
every combination of values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from incrowd.core.errors import InternalError

Array = np.ndarray[Any, Any]
Columns = tuple[int, ...]

_SMALL = 1e-290


def cells(sizes: Sequence[int], columns: Iterable[int]) -> int:
    """How many combinations of values these columns have."""
    return math.prod(map(sizes.__getitem__, columns))


def cliques(sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> list[Columns]:
    """The maximal cliques after eliminating the columns one by one, the one with the smallest table first."""
    near: dict[int, set[int]] = {column: set() for column in range(len(sizes))}
    for columns in sets:
        if len(columns) > 1:
            for column in columns:
                near[column].update(columns)
                near[column].discard(column)
    costs = {column: cells(sizes, others) * sizes[column] for column, others in near.items()}
    found: list[set[int]] = []
    while near:
        column = min(costs, key=costs.__getitem__)
        others = near.pop(column)
        del costs[column]
        clique = others | {column}
        if not any(clique <= larger for larger in found):
            found.append(clique)
        for other in others:
            near[other] |= others
            near[other] -= {other, column}
            costs[other] = cells(sizes, near[other]) * sizes[other]
    return [tuple(sorted(clique)) for clique in found]


@dataclass(frozen=True)
class Edge:
    """A clique and the one before it in the tree, with the columns that they share (none between components)."""

    child: int
    parent: int
    shared: Columns


class JunctionTree:
    """Which tables there are and how they hang together; it holds no numbers.

    Args:
        sizes: how many values each column has.
        sets: the sets of columns that must each lie within one table.
    """

    def __init__(self, sizes: Sequence[int], sets: Iterable[Sequence[int]]) -> None:
        self.sizes = tuple(sizes)
        self._order = {column: place for place, column in enumerate(np.argsort(sizes, kind="stable").tolist())}
        self.cliques = [self.ordered(clique) for clique in cliques(sizes, sets)]
        self.cells = sum(cells(sizes, clique) for clique in self.cliques)

    def ordered(self, columns: Iterable[int]) -> Columns:
        """Columns in the order of a table's axes: the longest last, because sums go along it."""
        return tuple(sorted(columns, key=self._order.__getitem__))

    @cached_property
    def edges(self) -> list[Edge]:
        """A spanning tree whose shared columns are as many as can be, every parent before its children."""
        sets = [set(clique) for clique in self.cliques]
        root = max(range(len(sets)), key=lambda i: cells(self.sizes, self.cliques[i]))
        best = {i: (len(sets[i] & sets[root]), root) for i in range(len(sets)) if i != root}
        edges = []
        while best:
            child = max(best, key=lambda i: (best[i][0], -i))
            parent = best.pop(child)[1]
            edges.append(Edge(child, parent, self.ordered(sets[child] & sets[parent])))
            for i, found in best.items():
                if (shared := len(sets[i] & sets[child])) > found[0]:
                    best[i] = shared, child
        return edges

    @property
    def root(self) -> int:
        """The table that the messages go to first."""
        return self.edges[0].parent if self.edges else 0

    def home(self, columns: Sequence[int]) -> int | None:
        """The smallest table that has these columns, if one has."""
        having = [i for i, clique in enumerate(self.cliques) if set(columns) <= set(clique)]
        return min(having, key=lambda i: cells(self.sizes, self.cliques[i]), default=None)

    def home_of(self, columns: Sequence[int]) -> int:
        """The same for one of the sets that the tree was made for."""
        found = self.home(columns)
        if found is None:
            raise InternalError("a set of columns lies in no table of its junction tree", columns=len(columns))
        return found

    def shape(self, clique: Sequence[int]) -> tuple[int, ...]:
        """The shape of a table of these columns."""
        return tuple(self.sizes[column] for column in clique)

    def propagate(self, logs: Sequence[Array]) -> tuple[list[Array], float]:
        """From the logarithms of the tables' factors to their probabilities, and the logarithm of what they sum to.

        The arrays of logarithms are taken over for the probabilities.
        """
        scale = 0.0
        tables = []
        for log in logs:
            top = float(log.max())
            scale += top
            tables.append(np.exp(np.subtract(log, top, out=log), out=log))
        sent: dict[int, Array] = {}
        for edge in reversed(self.edges):
            message = onto(tables[edge.child], self.cliques[edge.child], edge.shared)
            total = float(message.sum())
            scale += math.log(total)
            message = message / total
            sent[edge.child] = message
            tables[edge.parent] *= spread(message, edge.shared, self.cliques[edge.parent])
        total = float(tables[self.root].sum())
        scale += math.log(total)
        tables[self.root] /= total
        for edge in self.edges:
            received = onto(tables[edge.parent], self.cliques[edge.parent], edge.shared)
            tables[edge.child] *= spread(ratio(received, sent[edge.child]), edge.shared, self.cliques[edge.child])
            tables[edge.child] /= tables[edge.child].sum()
        return tables, scale


def onto(table: Array, clique: Sequence[int], columns: Sequence[int]) -> Array:
    """A table summed up to some of its columns; both in one order."""
    gone = tuple(axis for axis, column in enumerate(clique) if column not in columns)
    return np.asarray(np.add.reduce(table, gone)) if gone else table


def ratio(above: Array, below: Array) -> Array:
    """A quotient of probabilities; 0 where the lower one is 0 or too small to divide by."""
    return np.divide(above, below, out=np.zeros(below.shape), where=below > _SMALL)


def spread(table: Array, columns: Sequence[int], clique: Sequence[int]) -> Array:
    """A table of some columns in a shape that broadcasts against one of more columns; both in one order."""
    lengths = iter(table.shape)
    return table.reshape([next(lengths) if column in columns else 1 for column in clique])
