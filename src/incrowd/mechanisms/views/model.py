"""A model of all columns: its marginal tables, and rows drawn from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from incrowd.mechanisms.views.blocks import Trust, places
from incrowd.mechanisms.views.junction import Columns, JunctionTree, cells, onto, ratio, spread
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
    _works: dict[tuple[int, int, Columns], int] = field(default_factory=dict, repr=False)

    def marginal(self, columns: Sequence[int]) -> Array:
        """The expected people by these columns, one axis for each, in this order."""
        wanted = self.tree.ordered(columns)
        home = self.tree.home(wanted)
        if home is None:
            end = next(i for i, clique in enumerate(self.tree.cliques) if wanted[0] in clique)
            start = min(self._made_of(end, -1, (), wanted), key=lambda table: self._work(table, -1, (), wanted))
            found = self._message(start, -1, (), wanted)
        else:
            found = self._part(home, wanted)
        return np.transpose(found, [wanted.index(column) for column in columns]) * self.total

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

    @cached_property
    def _beyond(self) -> dict[tuple[int, int], set[int]]:
        """The columns of a table and of those that lie behind it, seen from the one before."""
        found: dict[tuple[int, int], set[int]] = {}

        def look(table: int, before: int) -> set[int]:
            others = (look(other, table) for other, _ in self._near[table] if other != before)
            found[table, before] = set(self.tree.cliques[table]).union(*others)
            return found[table, before]

        for table, near in enumerate(self._near):
            for other, _ in near:
                if (other, table) not in found:
                    look(other, table)
        return found

    def _part(self, table: int, columns: Columns) -> Array:
        key = table, columns
        if key not in self._parts:
            self._parts[key] = onto(self.tables[table], self.tree.cliques[table], columns)
        return self._parts[key]

    def _message(self, table: int, before: int, shared: Columns, wanted: Columns) -> Array:
        """The probabilities of the shared columns and of wanted ones in a table and behind it, in the tree's order."""
        key = table, before, wanted
        if key in self._messages:
            return self._messages[key]
        used, parts = self._sources(table, before, shared, wanted)
        factors = [(self._part(table, used), used)]
        for other, link, part in parts:
            behind = self.tree.ordered({*link, *part})
            joint, margin = self._message(other, table, link, part), self._part(other, link)
            share = ratio(np.ones_like(margin), margin)
            factors.append((joint * spread(share, link, behind), behind))
        found = self._product(factors, self.tree.ordered({*shared, *wanted}))
        if found.size <= _KEPT:  # large ones are asked for once
            self._messages[key] = found
        return found

    def _work(self, table: int, before: int, shared: Columns, wanted: Columns) -> int:
        """How many products of two numbers such a message takes, where no part of it is known."""
        key = table, before, wanted
        if key not in self._works:
            used, parts = self._sources(table, before, shared, wanted)
            behind = [self.tree.ordered({*link, *part}) for _, link, part in parts]
            steps = self._contractions([used, *behind], self.tree.ordered({*shared, *wanted}))
            self._works[key] = sum(cells(self.tree.sizes, both) for _, both, _ in steps)
            self._works[key] += sum(self._work(other, table, link, part) for other, link, part in parts)
        return self._works[key]

    def _sources(
        self, table: int, before: int, shared: Columns, wanted: Columns
    ) -> tuple[Columns, list[tuple[int, Columns, Columns]]]:
        """Columns of a table that a message needs, and other wanted ones by the neighbour that they come from."""
        here = set(self.tree.cliques[table])
        need, missing, parts = {*shared, *(here & set(wanted))}, set(wanted) - here, []
        for other, link in self._near[table]:
            if other != before and (part := missing & self._beyond[other, table]):
                missing -= part
                need |= set(link)
                parts.append((other, link, self.tree.ordered(part)))
        return self.tree.ordered(need), parts

    def _made_of(self, table: int, before: int, shared: Columns, wanted: Columns) -> Iterator[int]:
        """The tables that a message is made of."""
        yield table
        for other, link, part in self._sources(table, before, shared, wanted)[1]:
            yield from self._made_of(other, table, link, part)

    def _contractions(self, sets: Sequence[Columns], wanted: Columns) -> Iterator[tuple[int, Columns, Columns]]:
        """Which table the first is multiplied with next, their columns together, and those that are kept of these."""
        columns, left = sets[0], set(range(1, len(sets)))
        while left:
            place = min(left, key=lambda i: (cells(self.tree.sizes, {*columns, *sets[i]}), i))
            left.remove(place)
            both = self.tree.ordered({*columns, *sets[place]})
            needed = set(wanted).union(*(sets[i] for i in left))
            columns = tuple(column for column in both if column in needed)
            yield place, both, columns

    def _product(self, factors: Sequence[tuple[Array, Columns]], wanted: Columns) -> Array:
        """The product of tables, each with its columns, summed up to the wanted ones, in the tree's order.

        Two tables at a time, and columns that no later one has are summed away at once: `einsum` of two keeps to one
        thread.
        """
        found, columns = factors[0]
        for place, both, kept in self._contractions([some for _, some in factors], wanted):
            table, more = factors[place]
            number = {column: n for n, column in enumerate(both)}  # `einsum` knows 52 subscripts
            given, beside, left = ([number[column] for column in some] for some in (columns, more, kept))
            found, columns = np.einsum(found, given, table, beside, left), kept
        return found


def coarsened(people: Array, m: Measurement) -> Array:
    """A table by base codes, summed up to the codes of a measurement."""
    place = coarsening(m)
    return people if place is None else np.bincount(place, people.ravel(), m.estimate.size).reshape(m.shape)


def coarsening(m: Measurement) -> Array | None:
    """The cell of a measurement that each cell by base codes is counted in; None where they are the same."""
    return None if tuple(map(len, m.recodes)) == m.shape else places(m.recodes, m.shape).ravel()


def refined(table: Array, m: Measurement) -> Array:
    """A table by the codes of a measurement, repeated for all base codes."""
    finest = table.shape == tuple(map(len, m.recodes))
    return table if finest else table[np.ix_(*m.recodes)]
