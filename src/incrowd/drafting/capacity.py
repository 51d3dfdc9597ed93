"""How much a table of some size carries, how to publish it, and which of its columns to keep.

`fitting` is the one place that decides it. Its numbers are those of sampled crowds at the drafted promise; which way
suits which width follows from the benchmarks (docs/choosing.md says why).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from incrowd.drafting.guess import ColumnDraft
from incrowd.sources import column_names
from incrowd.sources.profile import ColumnProfile

_CROWD = 100  # people, of which a crowd is published nearly always if the promise is the drafted one
_VALUES = 3  # of a column that crowds are to be told apart by
_LEAST = 2  # columns that are proposed in any case
_FLAT = 3  # columns at most that one level each suits: with more, a tree of boxes keeps more of every table
_WIDEST = 20  # columns whose pairs views can still tell
_ALIKE = 1.25  # as much as independent columns may tell: those of people are alike in part
_SPARE = 2  # columns that may be hidden for the sake of others, since nobody knows beforehand which
_CONSTANT = 0.95  # of the records hold one value: there is hardly anything to tell
_EMPTY = 0.8  # of the records hold none
_BITS = 2.0  # of a column that are worth something: what is finer is made coarser anyway
_BITS_IN_VIEWS = 1.0  # the same where each column keeps its level: yes or no may be what users ask for
_SERIES, _MOST_SERIES = 0.1, 0.3  # less for each further column of a series (bill1, bill2, ...), and at most
_SENSITIVE = 2  # columns of this role that come before others
_NUMBER = re.compile(r"[0-9]+$")
_USUAL = {"sex": 2.0, "age": 2.0, "birth": 2.0, "year": 0.5, "zip": 0.5}


Way = Literal["lattice", "tree", "views"]
"""How to publish a table: one level per column, a tree of boxes, or views of a few columns each."""


@dataclass(frozen=True)
class Fitting:
    """What suits a table.

    Attributes:
        way: how to publish it.
        columns: how many columns leave crowds that are large enough to be published.
        proposed: how many columns are proposed at most.
        bits: how much these may tell together, each as coarse as it can be made short of being hidden.
    """

    way: Way
    columns: int
    proposed: int
    bits: float


def fitting(people: int, columns: int) -> Fitting:
    """Which way and how many columns suit a table of so many people and columns."""
    crowds = max(people / _CROWD, 1)
    carried = max(_LEAST, round(math.log(crowds, _VALUES)))
    if columns <= _FLAT or carried <= _LEAST:
        return Fitting("lattice", carried, min(columns, carried + _SPARE), _ALIKE * math.log2(crowds))
    if columns <= carried:
        return Fitting("tree", carried, columns, math.inf)
    return Fitting("views", carried, min(columns, _WIDEST), math.inf)


def chosen(columns: Sequence[ColumnDraft], profiles: Mapping[str, ColumnProfile], fit: Fitting) -> Collection[str]:
    """The names of the columns to propose: what every survey asks first, what is nearly constant last.

    A column that has many values and nothing between these and none is left out for others, if there is no room for it.
    """
    if len(columns) <= fit.proposed:
        return {column.name for column in columns}
    bits = _BITS_IN_VIEWS if fit.way == "views" else _BITS
    worth = {column.name: _worth(column, profiles[column.name], bits) for column in columns}
    for name, place in _series(list(worth)).items():
        worth[name] -= min(_SERIES * place, _MOST_SERIES)
    sensitive = sorted((c.name for c in columns if c.role == "sensitive"), key=lambda name: -worth[name])
    for name in sensitive[:_SENSITIVE]:
        worth[name] += 1.25
    size = {column.name: _least_bits(column, profiles[column.name]) for column in columns}
    kept: list[str] = []
    for name in sorted(worth, key=lambda name: -worth[name]):
        fits = sum(size[one] for one in kept) + size[name] <= fit.bits
        if len(kept) < _LEAST or (len(kept) < fit.proposed and fits and worth[name] > 0):
            kept.append(name)
    return set(kept)


def nearly_constant(column: ColumnProfile) -> bool:
    """Whether nearly every record says the same."""
    most = max((records for _, records in column.common), default=0)
    return max(most, column.missing) >= _CONSTANT * column.records


def _series(names: Sequence[str]) -> dict[str, int]:
    """How many columns before each one have the same name but for the number at its end."""
    seen: Counter[str] = Counter()
    places = {}
    for name in names:
        stem = _NUMBER.sub("", name)
        places[name] = seen[stem]
        seen[stem] += 1
    return places


def _worth(draft: ColumnDraft, column: ColumnProfile, bits: float) -> float:
    words = column_names.words_of(draft.name)
    worth = min(_bits(column), bits) / bits
    worth += max(
        [1.0 * column_names.says_sought(words), *(w for topic, w in _USUAL.items() if column_names.says(topic, words))]
    )
    worth += 0.5 * any(line.key in ("labels", "hierarchy") and "file" in line.value for line in draft.lines)
    if column.missing >= _EMPTY * column.records:
        worth -= 1
    return worth - 3 if nearly_constant(column) else worth


def _least_bits(draft: ColumnDraft, column: ColumnProfile) -> float:
    bits = _bits(column)
    return min(bits, math.log2(_VALUES)) if draft.coarser else bits


def _bits(column: ColumnProfile) -> float:
    """How much a record's value tells, rare values being taken as equally frequent."""
    counts = [records for _, records in column.common]
    rare = column.present - sum(counts)
    shares = [count / column.records for count in (*counts, rare, column.missing) if count > 0]
    spread = max(1, column.distinct - len(counts)) if rare else 1
    return rare / column.records * math.log2(spread) - sum(share * math.log2(share) for share in shares)
