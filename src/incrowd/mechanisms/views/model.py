"""A model of all columns: its marginal tables, and rows drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from incrowd.mechanisms.views.blocks import Trust
from incrowd.mechanisms.views.junction import Columns, JunctionTree, onto, ratio, spread
from incrowd.mechanisms.views.measurements import Measurement
from incrowd.mechanisms.views.rows import drawn

Array = np.ndarray[Any, Any]


_KEPT = 1 << 14
"""Cells of a message that is kept for the next time."""


@dataclass(frozen=True, eq=False)
class Term:
    """A measurement's part in a model.

    Attributes:
        measurement: as it was given.
        settled: the same after it was made consistent with the others.
        trusts: how far it is trusted, by cells and by blocks of them.
        thetas: for each of these, the logarithm of the factor that each cell or block has in the model.
    """

    measurement: Measurement
    settled: Measurement
    trusts: tuple[Trust, ...]
    thetas: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Model:
    """A distribution over all columns, as the tables of a junction tree.

    Attributes:
        tree: which tables there are.
        tables: their probabilities.
        total: the number of people.
        terms: the measurements that it was fitted to.
        left: the measurements that the tree had no room for.
    """

    tree: JunctionTree
    tables: Sequence[Array]
    total: float
    terms: tuple[Term, ...] = ()
    left: tuple[Measurement, ...] = ()
    _parts: dict[tuple[int, Columns], Array] = field(default_factory=dict, repr=False)
    _messages: dict[tuple[int, int, Columns], Array] = field(default_factory=dict, repr=False)

    def marginal(self, columns: Sequence[int]) -> Array:
        """The expected people by these columns, one axis for each, in this order."""
        wanted = tuple(sorted(columns))
        home = self.tree.home(wanted)
        if home is None:
            start = next(i for i, clique in enumerate(self.tree.cliques) if wanted[0] in clique)
            found = self._message(start, -1, (), wanted)
        else:
            found = self._part(home, wanted)
        return np.transpose(found, np.argsort(np.argsort(columns))) * self.total

    def sample(self, rows: int, rng: np.random.Generator) -> Array:
        """So many rows of codes, in random order, whose counts follow the model as closely as whole rows can."""
        return drawn(self.tree, self.tables, self.marginal, rows, rng)

    def cost_of_adding(self, columns: Sequence[int]) -> int:
        """The cells that the tree's tables would have if these columns were to lie within one of them."""
        if self.tree.home(columns) is not None:
            return self.tree.cells
        return JunctionTree(self.tree.sizes, [*(term.measurement.columns for term in self.terms), columns]).cells

    @cached_property
    def _near(self) -> list[list[tuple[int, Columns]]]:
        """The neighbours of each table, with the columns that they share."""
        near: list[list[tuple[int, Columns]]] = [[] for _ in self.tree.cliques]
        for edge in self.tree.edges:
            near[edge.child].append((edge.parent, edge.shared))
            near[edge.parent].append((edge.child, edge.shared))
        return near

    def _beyond(self, table: int, before: int) -> set[int]:
        """The columns of a table and of those that lie behind it, seen from the one before."""
        found = set(self.tree.cliques[table])
        for other, _ in self._near[table]:
            if other != before:
                found |= self._beyond(other, table)
        return found

    def _part(self, table: int, columns: Columns) -> Array:
        key = table, columns
        if key not in self._parts:
            self._parts[key] = onto(self.tables[table], self.tree.cliques[table], columns)
        return self._parts[key]

    def _message(self, table: int, before: int, shared: Columns, wanted: Columns) -> Array:
        """The probabilities of the shared columns and of wanted ones in a table and behind it, in rising order."""
        key = table, before, wanted
        if key in self._messages:
            return self._messages[key]
        here = set(self.tree.cliques[table])
        need, missing = {*shared, *(here & set(wanted))}, set(wanted) - here
        factors: list[tuple[Array, Columns]] = []
        for other, link in self._near[table]:
            if other == before or not (part := missing & self._beyond(other, table)):
                continue
            missing -= part
            need |= set(link)
            behind = tuple(sorted({*link, *part}))
            joint, margin = self._message(other, table, link, tuple(sorted(part))), self._part(other, link)
            share = ratio(np.ones_like(margin), margin)
            factors.append((joint * spread(share, link, behind), behind))
        used = tuple(sorted(need))
        found = _product([(self._part(table, used), used), *factors], tuple(sorted({*shared, *wanted})))
        if found.size <= _KEPT:  # large ones are asked for once
            self._messages[key] = found
        return found


def _product(factors: Sequence[tuple[Array, Columns]], wanted: Columns) -> Array:
    """The product of tables, each with its columns, summed up to the wanted ones.

    `einsum` knows 52 subscripts, so columns are numbered anew in each call.
    """
    number = {column: n for n, column in enumerate(sorted({column for _, columns in factors for column in columns}))}
    operands: list[Any] = []
    for table, columns in factors:
        operands += [table, [number[column] for column in columns]]
    found: Array = np.einsum(*operands, [number[column] for column in wanted], optimize=len(factors) > 2)
    return found


def coarsened(people: Array, m: Measurement) -> Array:
    """A table by base codes, summed up to the codes of a measurement."""
    if people.shape == m.shape:
        return people
    index = np.zeros(people.shape, dtype=np.int64)
    for axis, (recode, length) in enumerate(zip(m.recodes, m.shape, strict=True)):
        index = index * length + recode.reshape([-1 if a == axis else 1 for a in range(people.ndim)])
    return np.bincount(index.ravel(), people.ravel(), m.estimate.size).reshape(m.shape)


def refined(table: Array, m: Measurement) -> Array:
    """A table by the codes of a measurement, repeated for all base codes."""
    finest = table.shape == tuple(map(len, m.recodes))
    return table if finest else table[np.ix_(*m.recodes)]
