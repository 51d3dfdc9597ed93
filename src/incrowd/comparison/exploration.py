"""A table that is counted once, and what policies would make of it: each move is a rehearsal on the same counts.

What is seen says which values, groups and counts would survive. It is read off the raw table, move after move: nothing
of it may be published, and no promise covers a policy that was chosen because of it (`advice.LOOKS`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from incrowd.comparison.advice import (
    LOOKS,
    Alternative,
    Change,
    Places,
    Tried,
    as_tried,
    carried_out,
    changes_around,
    switched,
)
from incrowd.comparison.rehearsed import Rehearsed, rehearsed
from incrowd.core.errors import DataError, IncrowdError, ParameterError
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.fidelity import TrueCounts, dense, independent, score
from incrowd.releases.verdict import value_shares, verdict

MOST_CELLS = 4_000_000
"""Different rows of a table that is kept."""
_SIZES = (1, 2, 5, 10, 20, 50, 100, 500)  # where classes of groups begin


@dataclass(frozen=True)
class SeenValue:
    """A value as it would be shown: its part of the table, and of the release."""

    value: str | None
    before: float
    after: float


@dataclass(frozen=True)
class SeenColumn:
    """A column of the table.

    Attributes:
        name: its name.
        published: whether the policy publishes it.
        level: at which level it is shown; none if each record has its own, or it is not published.
        shown: how finely, in words.
        off: the part of the records that its counts would put elsewhere.
        occurring: how many of its values occur in the table, as they would be shown.
        left: how many of these would be left.
        values: those of them that are told first: the ones that lose most.
    """

    name: str
    published: bool
    level: int | None = None
    shown: str = "not published"
    off: float | None = None
    occurring: int = 0
    left: int = 0
    values: tuple[SeenValue, ...] = ()


@dataclass(frozen=True)
class SeenGroups:
    """Groups of people who look alike as they would be shown, by size.

    Attributes:
        least: people in each, at least.
        most: at most; none of the largest.
        groups: how many there are in the table.
        people: in them.
        left: how many of them the release would show.
    """

    least: int
    most: int | None
    groups: int
    people: int
    left: int


@dataclass(frozen=True)
class SeenPair:
    """How right the counts of two columns together would be, from 0 to 1, and what each alone would tell of both."""

    columns: tuple[str, str]
    score: float
    control: float


@dataclass(frozen=True)
class SeenTable:
    """What a policy would give. For the publisher's eyes only.

    Attributes:
        point: its promise and its scores, as among alternatives.
        records: how many would be published; none where no table is.
        rows: how many different rows these would have.
        lines: what it would be good for.
        warnings: what had better be changed.
        columns: all that were counted.
        groups: by size; none if each record is shown at a level of its own.
        by_chance: whether a group that is shown may be there by chance: records are randomised or synthetic.
        pairs: of columns.
        levels: at which columns are shown.
    """

    point: Alternative
    records: int | None
    rows: int
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
    columns: tuple[SeenColumn, ...]
    groups: tuple[SeenGroups, ...]
    by_chance: bool
    pairs: tuple[SeenPair, ...]
    levels: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """For a page."""
        return {**asdict(self), "score": self.point.score}


class Exploration:
    """A table that is kept, and what policies about its columns would make of it.

    Args:
        policy: the first one; its columns are counted.
        count: counts the table.
        source: the random bits; secret ones if not given.

    Attributes:
        notes: what to keep in mind.

    Raises:
        DataError: the table has too many different rows to be kept.
    """

    notes = (LOOKS,)

    def __init__(
        self,
        policy: Policy,
        count: Callable[[Policy, Sequence[CodedAttribute]], Histogram],
        source: RandomSource | None = None,
    ) -> None:
        self._attributes = {a.name: a for a in codings(policy)}
        self._people = policy.people
        self.table = count(policy, list(self._attributes.values()))
        if len(self.table) > MOST_CELLS:
            raise DataError(
                f"The table has {len(self.table):,} different rows; {MOST_CELLS:,} at most are kept to be looked at.",
                code="cells-too-many",
                remedy="Publish fewer columns, declare fewer values, or rehearse the release instead.",
            )
        self._source = source or RandomSource()
        self._truth = TrueCounts.of(self.table)
        self._last: tuple[Policy, Tried] | None = None  # what was looked at: moves begin there

    @cached_property
    def control(self) -> tuple[float, ...]:
        """The scores of true one-way counts and independence."""
        return self._truth.control()

    def look(self, policy: Policy) -> SeenTable:
        """What a policy would give.

        Raises:
            IncrowdError: it cannot be carried out, or is about other columns or values.
        """
        self._require_same(policy)
        found = rehearsed(policy, self.table, self._source)
        scores = self._truth.scores(found.told)
        name = policy.release.mechanism if policy.release is not None else ""
        judged = verdict(policy, found.made.published, found.made.statement, found.made.beside)
        shown = {column.name: column.shown for column in judged.columns}
        point = Alternative("", "", name, found.epsilon, found.promise, scores)
        self._last = policy, as_tried(point, found)
        return SeenTable(
            point=point,
            records=found.made.published.total if judged.columns else None,
            rows=len(found.made.published),
            lines=judged.lines,
            warnings=tuple(warning.text for warning in judged.warnings),
            columns=tuple(self._columns(found, shown)),
            groups=tuple(_groups(found, policy)),
            by_chance=not found.mechanism.leaves_out,
            pairs=tuple(self._pairs(found)),
            levels=dict(found.made.levels),
        )

    def around(self, policy: Policy) -> list[Change]:
        """What could be otherwise in a policy."""
        self._require_same(policy)
        return list(changes_around(policy, codings(policy), self._tried(policy), self.table))

    def try_out(self, policy: Policy, change: Change) -> Alternative:
        """What one of these would give: a point beside the others."""
        return carried_out(policy, change, self.table, self._truth, self._source).found

    def by_mechanism(self, policy: Policy, name: str) -> Places:
        """What a policy says for another mechanism to make the same promise: levels, too, where it needs them."""
        self._require_same(policy)
        if name not in MECHANISMS:
            raise ParameterError("There is no such mechanism.", code="parameter-range")
        return switched(policy, codings(policy), self._tried(policy), self.table, name)

    def _tried(self, policy: Policy) -> Tried:
        """What came of a policy: not once more, if it was the last one looked at."""
        if self._last is not None and self._last[0] == policy:
            return self._last[1]
        return carried_out(policy, Change("", {}), self.table, self._truth, self._source)

    def _require_same(self, policy: Policy) -> None:
        known = {name: a.coding for name, a in self._attributes.items()}
        same = policy.people == self._people
        for a in codings(policy):
            same &= a.name in known and known[a.name].base_labels == a.coding.base_labels
        if not same:
            raise ParameterError(
                "This policy is about other columns or values than those that were counted.",
                code="parameter-combination",
                remedy="Load the page again: the table is counted anew then.",
            )

    def _columns(self, found: Rehearsed, shown: Mapping[str, str]) -> Iterator[SeenColumn]:
        levels = found.made.levels
        recodes = {a.name: a.hierarchy.recode(levels[a.name]) for a in found.attributes if a.name in levels}
        try:
            errors, shares = value_shares(found.table, found.told, recodes, found.attributes)
        except IncrowdError:  # what cannot be undone tells no shares
            errors, shares = {}, ()
        for name in self.table.names:
            if name not in found.table.names:
                yield SeenColumn(name, published=False)
                continue
            values = [SeenValue(one.value, one.before, one.after) for one in shares if one.column == name]
            left = sum(value.after > 0 for value in values)
            how = shown.get(name, "")
            yield SeenColumn(name, True, levels.get(name), how, errors.get(name), len(values), left, tuple(values[:60]))

    def _pairs(self, found: Rehearsed) -> Iterator[SeenPair]:
        names = [name for name in self.table.names if name in found.table.names]
        for pair in combinations(names, 2):
            if math.prod(len(self.table[name].labels) for name in pair) <= 1 << 20:
                known = self._truth.counts[1].get(pair)
                truth = dense(self.table, pair) if known is None else known
                yield SeenPair(pair, score(truth, found.told(pair)), score(truth, independent(truth)))


def _groups(found: Rehearsed, policy: Policy) -> Iterator[SeenGroups]:
    """The groups of the table as they would be shown, and whether the release shows them."""
    levels, published = found.made.levels, found.made.published
    if any(name not in levels for name in found.table.names) or published.names != found.table.names:
        return
    true = found.table.recode({a.name: a.hierarchy.recode(levels[a.name]) for a in found.attributes})
    if any(a.labels != b.labels for a, b in zip(true.columns, published.columns, strict=True)):
        return  # labels of its own
    if not found.mechanism.groups_by_all:
        known = [name for name in true.names if policy.attributes[name].role == "quasi"]
        true, published = true.project(known), published.project(known)
    there = published.places(true) >= 0
    for least, after in zip(_SIZES, (*_SIZES[1:], None), strict=True):
        within = (true.counts >= least) & (true.counts < (after or np.inf))
        if within.any():
            people, left = int(true.counts[within].sum()), int(there[within].sum())
            yield SeenGroups(least, after and after - 1, int(within.sum()), people, left)
