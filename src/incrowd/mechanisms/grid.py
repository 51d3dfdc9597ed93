"""The declared cells of a cross-tabulation, and the numbers that labels stand for: what all estimates begin with."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import ParameterError
from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Histogram, Labels
from incrowd.mechanisms.base import all_columns
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.declared import held_columns
from incrowd.mechanisms.estimates import GroupMean
from incrowd.theory.intervals import ANY, extreme_mean, mean_margin

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_LISTED = 100_000
_MOST_CELLS = 1 << 62
_NUMBER = r"[-−]?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_EXACT = re.compile(_NUMBER, re.IGNORECASE)
_BIN = re.compile(rf"[\[(\]]({_NUMBER}), ?({_NUMBER})[)\]\[]", re.IGNORECASE)  # ARX ends half-open ones with "["
_RANGE = re.compile(rf"({_NUMBER})(?: to | ?[-–] ?)({_NUMBER})", re.IGNORECASE)

MIDDLES = (
    "For a mean, a value that is an interval counts as its middle; missing values are left out, and so are codes that "
    "stand among numbers."
)


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of a cross-tabulation: all that are declared or, if these are very many, those that are published.

    Attributes:
        labels: of each column asked for.
        keys: of each listed cell, its codes as one number, in order.
        places: of each cell of the table, its listed cell.
        possible: how many cells there could be.
    """

    labels: tuple[Labels, ...]
    keys: Ints
    places: NDArray[np.intp]
    possible: int

    @classmethod
    def of(cls, table: Histogram, by: Sequence[str]) -> Grid:
        """The cells of a table by some columns."""
        labels = tuple(table[name].labels for name in by)
        sizes = [len(texts) for texts in labels]
        possible = math.prod(sizes)
        if possible > _MOST_CELLS:
            raise ParameterError(
                "These columns have more combinations of values than can be numbered.",
                code="parameter-range",
                remedy="Ask for fewer columns.",
            )
        keys = np.zeros(len(table), dtype=np.int64)
        for name, size in zip(by, sizes, strict=True):
            keys = keys * size + table[name].codes
        if possible <= MOST_LISTED:
            return cls(labels, np.arange(possible), keys, possible)
        listed, places = np.unique(keys, return_inverse=True)
        return cls(labels, listed, places, possible)

    def __len__(self) -> int:
        return len(self.keys)

    def summed(self, weights: NDArray[np.number] | None = None) -> Floats:
        """For each listed cell the sum of what the table's cells weigh; without weights, how many they are."""
        found = np.bincount(self.places, weights=weights, minlength=len(self.keys))
        return np.asarray(found, dtype=np.float64)

    def values(self) -> list[tuple[str | None, ...]]:
        """The labels of each listed cell."""
        codes = np.unravel_index(self.keys, [len(texts) for texts in self.labels])
        return [
            tuple(texts[code] for texts, code in zip(self.labels, cell, strict=True))
            for cell in zip(*(column.tolist() for column in codes), strict=True)
        ]

    @property
    def unlisted(self) -> int:
        """How many declared cells are not listed."""
        return self.possible - len(self.keys)


@dataclass(frozen=True, eq=False)
class NumberSpread:
    """How a column of numbers is spread over the groups of a cross-tabulation.

    Attributes:
        groups: the cells asked for.
        numbers: the number that each label of the column stands for, the missing value and codes left out.
        codes: the column's codes that these labels have.
        counts: for each group and number, the weights of the table's cells.
        cells: and how many cells they are.
    """

    groups: Grid
    numbers: Floats
    codes: Ints
    counts: Floats
    cells: Floats

    @classmethod
    def of(cls, certificate: AnyCertificate, table: Histogram, by: Sequence[str], column: str) -> NumberSpread:
        """Of a column that is there and not among those asked for."""
        level = certificate.mechanism.levels.get(column)
        labels = table[column].labels if column in table.names else ()
        found = numbers_of(certificate, all_columns(certificate), labels, by, column, level)
        codes = np.array([code for code, value in enumerate(found) if value is not None], dtype=np.int64)
        groups = Grid.of(table, by)
        size = len(table[column].labels)
        keys = groups.places.astype(np.int64) * size + table[column].codes
        shape = (len(groups), size)
        sums = [
            np.bincount(keys, weights=weights, minlength=len(groups) * size).reshape(shape)[:, codes].astype(np.float64)
            for weights in (table.counts, None)
        ]
        return cls(groups, np.array([v for v in found if v is not None], dtype=np.float64), codes, *sums)


def sampled_mean(
    group: tuple[str | None, ...], values: Floats, counts: Floats, hidden: Floats, rate: float
) -> GroupMean:
    """The mean of people of whom so many of each value were sampled, and up to so many more that are not shown."""
    sampled = float(counts.sum())
    if not sampled:
        return GroupMean(group, None, None, None, None, 0.0)
    here = float(counts @ values) / sampled
    squares = None if hidden.any() else float(counts @ (values - here) ** 2)
    least, most = float(values.min()), float(values.max())
    margin = mean_margin(sampled, squares, most - least, rate)
    low, high = (extreme_mean(values, counts, hidden, largest=side) for side in (False, True))
    return GroupMean(
        group,
        here,
        math.sqrt((1.0 - rate) * squares) / sampled if squares else None,  # if all are alike, that says nothing of it
        max(low - margin, least),
        min(high + margin, most),
        min(sampled / rate, float(ANY)),
    )


def numbers_of(
    certificate: AnyCertificate, names: Sequence[str], labels: Labels, by: Sequence[str], column: str, level: int | None
) -> list[float | None]:
    """The number that each label of a column, one of these names, stands for; None for the missing value and for codes.

    At level 0 labels are the column's own values; without a level, they are of several.

    Raises:
        ParameterError: it is not there, is asked for already, or has a label that stands for no number.
    """
    others = [name for name in names if name not in by]
    if column not in others:
        raise ParameterError(
            f"The mean of {column!r} is asked for, which the release does not have or which the groups are made by.",
            code="column-unknown",
            remedy=f"Name another column of the release: {', '.join(others)}.",
        )
    numbers = _standing_for(certificate, column, labels, level)
    strange = [label for label, value in numbers.items() if value is None]
    known = [value for value in numbers.values() if value is not None]
    if strange or not known:
        raise _no_mean(column, strange, level)
    return [None if label is None else numbers.get(label) for label in labels]


def _standing_for(
    certificate: AnyCertificate, column: str, labels: Labels, level: int | None
) -> dict[str, float | None]:
    """The number of each label that should have one: not of the missing value, and not of codes among numbers.

    Above level 0 a label such as 88 may be the name of a group. So the values that it covers decide; if these are in a
    file, nothing does.
    """
    attribute = certificate.policy["attributes"].get(column, {})
    whole = attribute.get("type") == "integer"
    beside = set((attribute.get("codes") or {}).values())
    found = {text: middle(text, whole=whole) for text in labels if text is not None and text not in beside}
    if level == 0:
        return found
    named = [text for text, value in found.items() if value is None or _EXACT.fullmatch(_plain(text))]
    if not named:
        return found
    held = held_columns(certificate).get(column)
    if held is None:
        return found | dict.fromkeys(named)
    base = held.hierarchy.recode(0).labels
    own = {text: middle(text, whole=whole) for text in base if text is not None and text not in beside}
    covered = _covered(held.hierarchy, own) if held.whole else {}
    for text in named:
        found[text] = own[text] if level is None and text in own else covered.get(text)
    return found


def _covered(hierarchy: Hierarchy, own: Mapping[str, float | None]) -> dict[str, float | None]:
    """For each label above level 0 the middle of the values that it covers; None if one of them is not a number."""
    base = hierarchy.recode(0).labels
    found: dict[str, float | None] = {}
    for level in range(1, hierarchy.height + 1):
        recode = hierarchy.recode(level)
        for place, text in enumerate(recode.labels):
            below = [base[code] for code in np.flatnonzero(recode.to == place)]
            values = [own[label] for label in below if label is not None and label in own]
            ends = [value for value in values if value is not None]
            if text is not None and text not in found:
                found[text] = (min(ends) + max(ends)) / 2 if ends and len(ends) == len(values) else None
    return found


def _no_mean(column: str, strange: Sequence[str], level: int | None) -> ParameterError:
    if strange and all("∞" in label for label in strange):
        text = f"{column!r} has an interval without an end, which has no middle, so there is no mean."
        remedy = "Choose another column; a release whose policy closes that interval would have a mean."
    elif level != 0 and any(_EXACT.fullmatch(_plain(label)) for label in strange):
        text = (
            f"Values of {column!r} are taken together by a file, whose groups may be called by numbers that say nothing"
            " of what they hold, so there is no mean."
        )
        remedy = "Choose another column; groups called by what they hold, 20-39 say, would have a mean."
    else:
        text = f"Not all values of {column!r} are numbers or intervals with two ends, so it has no mean."
        remedy = "Choose a column of numbers."
    return ParameterError(text, code="column-type", remedy=remedy)


def middle(label: str, *, whole: bool = False) -> float | None:
    """The number that a label stands for: a number itself, or the middle of an interval with two ends.

    Of `whole` numbers, [0, 10) holds 0 to 9, whose middle is 4.5.
    """
    text = _plain(label)
    if _EXACT.fullmatch(text):
        return float(text)
    found = _BIN.fullmatch(text) or _RANGE.fullmatch(text)
    if found is None or float(found[1]) > float(found[2]):
        return None
    low, high = float(found[1]), float(found[2])
    if whole:
        first = math.floor(low) + 1 if text.startswith(("(", "]")) else math.ceil(low)
        last = math.ceil(high) - 1 if text.endswith((")", "[")) else math.floor(high)
        low, high = (first, last) if first <= last else (low, high)
    return (low + high) / 2


def _plain(label: str) -> str:
    return label.replace("−", "-")
