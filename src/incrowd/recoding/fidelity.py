"""How far the counts that a release tells are from the true ones: of one, two and three columns.

The score of some columns is 1 − the total variation distance between the true shares of their cells and those that the
release tells: 1 if they are the same, 0 if they have no cell in common. A release tells (`Told`) what one knows who
has it and the hierarchies: a count for each cell of base values. The score of a release is the mean over all sets of
one, two or three columns. Beside it stands the *control*: what the true one-way counts and independence would tell. A
release of many columns that scores below it carries less than a table for each column.

None of this may be published: it is read off the raw table.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.domain import Recode
from incrowd.histogram import Histogram
from incrowd.marginals import Counted
from incrowd.recoding.pairs import Floats

Names = tuple[str, ...]
Told = Callable[[Names], Floats]
"""The counts of some columns as a release tells them, on an array with an axis of base codes for each."""

MOST_SETS = 300
"""Of more sets of columns a fixed choice is looked at."""
MOST_CELLS = 1 << 22
"""Sets of columns with more cells are left out."""
_AT_ONCE = 1 << 22
"""How many numbers are held beside the cells, where labels are spread."""
WORK = 1 << 25
"""How many cells are looked at for each number of columns, where many releases are held against one table."""


@dataclass(frozen=True)
class Fidelity:
    """The scores of all sets of so many columns.

    Attributes:
        columns: how many columns a set has.
        score: the mean over sets, from 0 to 1.
        control: the same of what one-way counts and independence tell.
        sets: how many were looked at.
    """

    columns: int
    score: float
    control: float
    sets: int


def fidelity(
    table: Counted,
    told: Told,
    recodes: Mapping[str, Recode] | None = None,
    most: int = 3,
    work: int | None = None,
) -> tuple[Fidelity, ...]:
    """Scores of one, two, … `most` columns.

    Args:
        table: the true table, base codes; or its counts by all sets of so many columns.
        told: what the release tells.
        recodes: columns to be compared at a coarser level than their base values.
        most: how many columns a set has at most.
        work: how many cells may be looked at for each number of columns, which then decides how many sets are.
    """
    return fidelities(table, told, (recodes or {},), most, work)[0]


def fidelities(
    table: Counted, told: Told, levels: Sequence[Mapping[str, Recode]], most: int = 3, work: int | None = None
) -> tuple[tuple[Fidelity, ...], ...]:
    """The same at several levels, for which everything is counted and told once."""
    sizes = range(1, min(most, len(table.columns)) + 1)
    return tuple(zip(*(_of(table, told, levels, columns, work) for columns in sizes), strict=True))


def _of(
    table: Counted, told: Told, levels: Sequence[Mapping[str, Recode]], columns: int, work: int | None
) -> list[Fidelity]:
    scores: list[list[float]] = [[] for _ in levels]
    controls: list[list[float]] = [[] for _ in levels]
    for names in sets_of_columns(table, columns, work):
        truth, believed = dense(table, names), told(names)
        for place, recodes in enumerate(levels):
            coarse = _recoded(truth, names, recodes)
            scores[place].append(score(coarse, _recoded(believed, names, recodes)))
            controls[place].append(score(coarse, independent(coarse)))
    if not scores[0]:
        return [Fidelity(columns, math.nan, math.nan, 0) for _ in levels]
    sets = len(scores[0])
    return [
        Fidelity(columns, math.fsum(found) / sets, math.fsum(alone) / sets, sets)
        for found, alone in zip(scores, controls, strict=True)
    ]


def sets_of_columns(table: Counted, columns: int, work: int | None = None) -> Iterator[Names]:
    """All sets of so many columns, or a fixed choice of them, without those that have too many cells."""
    sets = list(combinations(table.names, columns))
    if len(sets) > MOST_SETS or work is not None:
        sets = random.Random(columns).sample(sets, min(len(sets), MOST_SETS))  # noqa: S311 - no secret
    left, held = math.inf if work is None else work, len(table) if isinstance(table, Histogram) else 0
    for names in sets:
        cells = math.prod(len(table[name].labels) for name in names)
        if cells <= MOST_CELLS and left > 0:
            left -= cells + held
            yield names


@dataclass(frozen=True, eq=False)
class TrueCounts:
    """The true counts by sets of columns, counted once, against which any number of releases are held.

    Attributes:
        counts: by sets of one, two and three columns, those looked at.
        possible: how many sets of one, two and three columns there are.
    """

    counts: tuple[Mapping[Names, Floats], ...]
    possible: tuple[int, ...]

    @classmethod
    def of(cls, table: Histogram, work: int = WORK, most: int = 3) -> TrueCounts:
        """Counts by all columns, and by as many sets of more as `work` allows.

        Args:
            table: the true table, base codes.
            work: how many cells, of the table and of counts, may be looked at for each number of columns.
            most: how many columns a set has at most.
        """
        sizes = range(1, min(most, len(table.columns)) + 1)
        chosen = [sets_of_columns(table, size, None if size == 1 else work) for size in sizes]
        counts = tuple({names: dense(table.project(names), names) for names in sets} for sets in chosen)
        return cls(counts, tuple(math.comb(len(table.columns), size) for size in sizes))

    def scores(self, told: Told) -> tuple[float, ...]:
        """The mean score of one, two and three columns, as far as there are sets to look at."""
        return self._means(lambda names, truth: score(truth, told(names)))

    def control(self) -> tuple[float, ...]:
        """The same of what one-way counts and independence tell."""
        return self._means(lambda _, truth: score(truth, independent(truth)))

    def _means(self, by: Callable[[Names, Floats], float]) -> tuple[float, ...]:
        each = [[by(names, truth) for names, truth in sets.items()] for sets in self.counts]
        return tuple(math.fsum(scores) / len(scores) for scores in each if scores)


def score(truth: Floats, told: Floats) -> float:
    """1 − the total variation distance of two arrays of counts, both taken as shares; what is below 0 counts as 0."""
    told = np.maximum(told, 0.0)
    total = float(told.sum())
    if not total or not truth.sum():
        return 0.0
    return 1.0 - float(np.abs(truth / truth.sum() - told / total).sum()) / 2


def independent(counts: Floats) -> Floats:
    """What the counts of each column alone tell about them together."""
    total = float(counts.sum())
    together = np.array(total)
    for axis in range(counts.ndim):
        alone = counts.sum(axis=tuple(i for i in range(counts.ndim) if i != axis))
        together = np.multiply.outer(together, alone / total if total else alone)
    return together


def dense(table: Counted, names: Sequence[str]) -> Floats:
    """The counts of some columns as an array."""
    table = table if isinstance(table, Histogram) else table.project(names)
    shape = [len(table[name].labels) for name in names]
    keys = np.ravel_multi_index([table[name].codes.astype(np.int64) for name in names], shape)
    counts = np.bincount(keys, weights=table.counts, minlength=math.prod(shape))
    return np.asarray(counts, dtype=np.float64).reshape(shape)


def _recoded(counts: Floats, names: Names, recodes: Mapping[str, Recode]) -> Floats:
    for axis, name in enumerate(names):
        if name in recodes and not _one_to_one(recodes[name]):
            order = np.argsort(recodes[name].to, kind="stable")
            _, firsts = np.unique(recodes[name].to[order], return_index=True)  # of labels that cover something
            counts = np.add.reduceat(counts.take(order, axis), firsts, axis)
    return counts


def _one_to_one(recode: Recode) -> bool:
    return np.array_equal(recode.to, np.arange(len(recode.labels)))


# --- what a coarser table tells ---------------------------------------------------------------------------------------


Cover = Recode | Sequence[NDArray[np.integer]]
"""The base codes that each label of a column covers; a recoding, where labels do not overlap."""


def spread(
    published: Histogram,
    covers: Mapping[str, Cover],
    rate: float = 1.0,
    likely: Mapping[str, Floats] | None = None,
) -> Told:
    """Each record is spread over the base values that its labels cover.

    Args:
        published: records with labels that cover one base value or more.
        covers: what the labels of each column cover.
        rate: the share of the table's records that was published.
        likely: of some columns that are recoded, what is known of how many records have each base value; of others,
            and where that is nothing, records are spread evenly.
    """
    return spread_counts(lambda names: dense(published, names) / rate, covers, likely)


def spread_counts(counts_of: Told, covers: Mapping[str, Cover], likely: Mapping[str, Floats] | None = None) -> Told:
    """The same for counts that are given by labels."""
    exact = {name for name, cover in covers.items() if isinstance(cover, Recode) and _one_to_one(cover)}
    shares = {name: _share(cover, (likely or {}).get(name)) for name, cover in covers.items() if name not in exact}

    def told(names: Names) -> Floats:
        counts = counts_of(names)
        for axis, name in enumerate(names):
            if name in shares:
                counts = np.moveaxis(shares[name](np.moveaxis(counts, axis, 0)), 0, axis)
        return counts

    return told


def shares_within(recode: Recode, likely: Floats | None = None) -> Floats:
    """Of each base code, its share of the records with its label."""
    to, labels = recode.to, len(recode.labels)
    even = 1.0 / np.bincount(to, minlength=labels)[to]
    if likely is None:
        return np.asarray(even)
    whole = np.bincount(to, weights=likely, minlength=labels)[to]
    return np.asarray(np.divide(likely, whole, out=np.asarray(even), where=whole > 0))


def _share(cover: Cover, likely: Floats | None = None) -> Callable[[Floats], Floats]:
    """Takes an array from labels to base values, along its first axis."""
    if isinstance(cover, Recode):
        to, shares = cover.to, shares_within(cover, likely)

        def by_recode(counts: Floats) -> Floats:
            return np.asarray(counts[to] * shares.reshape(-1, *[1] * (counts.ndim - 1)))

        return by_recode
    return _by_runs(cover)


def _by_runs(cover: Sequence[NDArray[np.integer]]) -> Callable[[Floats], Floats]:
    """The same where labels overlap: what each adds per base code is the sum of the steps up to that code."""
    codes = np.concatenate([np.sort(one) for one in cover]).astype(np.int64)
    labels = np.repeat(np.arange(len(cover)), [len(one) for one in cover])
    size = int(codes.max()) + 1
    begins = np.diff(codes, prepend=-2) != 1
    begins[1:] |= labels[1:] != labels[:-1]
    ends = np.append(begins[1:], True)
    steps = np.concatenate([codes[begins], codes[ends] + 1])
    weights = 1.0 / np.maximum(np.bincount(labels), 1)
    of = np.concatenate([labels[begins], labels[ends]])
    sizes = np.repeat([1.0, -1.0], len(of) // 2) * weights[of]
    order = np.argsort(steps, kind="stable")
    steps, of, sizes = steps[order], of[order], sizes[order]

    def by_runs(counts: Floats) -> Floats:
        rest = counts.shape[1:]
        flat = counts.reshape(len(counts), -1)
        base = np.zeros((size + 1, flat.shape[1]))
        at_once = max(1, _AT_ONCE // max(1, flat.shape[1]))
        for start in range(0, len(steps), at_once):
            part = slice(start, start + at_once)
            where, firsts = np.unique(steps[part], return_index=True)
            base[where] += np.add.reduceat(flat[of[part]] * sizes[part, None], firsts)
        return np.asarray(np.cumsum(base, axis=0, out=base)[:-1].reshape(size, *rest))

    return by_runs
