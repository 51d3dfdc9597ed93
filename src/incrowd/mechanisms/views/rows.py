"""Rows drawn from a model, evenly instead of independently.

Columns are drawn one after the other along the tree, each given those before it in its table. Rows are sorted by the
columns that it depends on, then by the others, and get quantiles from a sequence that is spread evenly over every
stretch of rows, short or long: multiples of the golden ratio, or of the root of a prime. Each column has another
number, and no two of these are related; else quantiles of columns would depend on each other where both orders begin
with the same long column. So the counts of rows follow the model's tables to about one row a cell, where independent
draws would scatter like a sample. By columns that no table has together, rows are brought near the model by swaps
(`swaps`), as far as this does not take too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, count
from math import comb, prod
from typing import Any

import numpy as np

from incrowd.mechanisms.views.junction import JunctionTree, onto
from incrowd.mechanisms.views.swaps import Target, swap

Array = np.ndarray[Any, Any]

_KEYS = 2**62
_WORK = 400_000_000
"""Rows that are looked at, for all targets and passes of swaps: some seconds."""
_MOST, _MANY, _LEAST = 200, 50, 4
"""Passes of swaps: at most, for triples to be worth it, and for pairs."""
_SPARSE = 8
"""Cells for each row, of the largest tables that rows can follow."""

Marginal = Callable[[Sequence[int]], Array]


def drawn(
    tree: JunctionTree, tables: Sequence[Array], marginal: Marginal, rows: int, rng: np.random.Generator
) -> Array:
    """So many rows of codes, in random order, from the tables of probabilities of a junction tree.

    Args:
        tree: which tables there are.
        tables: their probabilities.
        marginal: what the same model expects by any columns, in any unit.
        rows: how many are drawn.
        rng: random numbers.
    """
    codes = np.zeros((len(tree.sizes), rows), dtype=np.int64)
    done: list[int] = []
    columns, passes = _swaps(len(tree.sizes), rows)
    steps = _steps()
    for table in [tree.root, *(edge.child for edge in tree.edges)]:
        clique = tree.cliques[table]
        for column in sorted(set(clique) - set(done), key=lambda c: -tree.sizes[c]):
            given = sorted(c for c in clique if c in done)
            used = tree.ordered([*given, column])
            joint = np.transpose(onto(tables[table], clique, used), [used.index(c) for c in (*given, column)])
            others = [c for c in reversed(done) if c not in given]
            order = _order(codes, tree.sizes, [*given, *others], rng)
            group = _folded(codes, tree.sizes, given)[order]
            quantiles = (rng.random() + next(steps) * np.arange(rows)) % 1
            codes[column, order] = _inverse(joint.reshape(-1, tree.sizes[column]), group, quantiles)
            if passes and others:
                sets = [s for n in range(1, columns) for s in combinations(done, n) if not set(s) <= set(given)]
                targets = [
                    _target(codes, tree.sizes, s, column, marginal) for s in _followed(sets, tree.sizes, column, rows)
                ]
                swap(codes[column], _folded(codes, tree.sizes, given), targets, passes, rng)
            done.append(column)
    return np.ascontiguousarray(rng.permutation(codes.T))


def _steps() -> Iterator[float]:
    """Numbers whose multiples are spread evenly, with and without those of the others: of different square roots."""
    yield (5**0.5 - 1) / 2
    primes: list[int] = []
    for number in count(2):
        if all(number % prime for prime in primes):
            primes.append(number)
            if number != 5:
                yield number**0.5 % 1


def _swaps(columns: int, rows: int) -> tuple[int, int]:
    """Of how many columns the tables are that rows follow by swaps, and in how many passes."""
    for most, least in ((3, _MANY), (2, _LEAST)):
        targets = sum(comb(columns, n) for n in range(2, most + 1))
        passes = _WORK // max(targets * rows, 1)
        if passes >= least:
            return most, min(passes, _MOST)
    return 2, 0


def _followed(sets: Sequence[Sequence[int]], sizes: Sequence[int], column: int, rows: int) -> list[Sequence[int]]:
    """Those that together with a column have not too many cells for so many rows."""
    return [s for s in sets if prod(sizes[c] for c in s) * sizes[column] <= min(_SPARSE * rows, 1 << 20)]


def _target(codes: Array, sizes: Sequence[int], others: Sequence[int], column: int, marginal: Marginal) -> Target:
    """What rows should count by a column and others, and by how much they do not."""
    wanted = marginal((*others, column)).ravel()
    place = _folded(codes, sizes, others) * sizes[column]
    counted = np.bincount(place + codes[column], minlength=wanted.size)
    return Target(place, counted - wanted * (codes.shape[1] / wanted.sum()))


def _folded(codes: Array, sizes: Sequence[int], columns: Iterable[int]) -> Array:
    """One number for each row that says its codes in these columns."""
    key = np.zeros(codes.shape[1], dtype=np.int64)
    for column in columns:
        key = key * sizes[column] + codes[column]
    return key


def _order(codes: Array, sizes: Sequence[int], columns: Sequence[int], rng: np.random.Generator) -> Array:
    """The rows sorted by the first of these columns, then the next, as far as one number can say it; then at random."""
    leading, room = [], _KEYS
    for column in columns:
        room //= sizes[column]
        if room < 1:
            break
        leading.append(column)
    shuffled = rng.permutation(codes.shape[1])
    return shuffled[np.argsort(_folded(codes, sizes, leading)[shuffled], kind="stable")]


def _inverse(weights: Array, group: Array, quantiles: Array) -> Array:
    """The code at each row's quantile of its group's distribution, which has one row of weights for each group."""
    size = weights.shape[1]
    sums = np.cumsum(weights, axis=1)
    total = sums[:, -1:]
    sums = np.divide(sums, total, out=np.ones_like(sums), where=total > 0)
    sums[:, -1] = 1
    ladder = (sums + np.arange(len(sums))[:, None]).ravel()
    place = np.searchsorted(ladder, group + quantiles, side="right") - group * size
    return np.asarray(np.clip(place, 0, size - 1))
