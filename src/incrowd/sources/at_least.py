"""Cells that stay where the table is: only those that can be published come here.

A mechanism whose levels are fixed publishes no cell with fewer than k records, whatever it draws. So it is enough to
count at these levels and to fetch the cells with k or more; of the others, the engine tells how many there are of each
size. What is lost is what the publisher's own report says of combinations of columns, so all cells are fetched as long
as there are not more than `incrowd.sources.options.Options.most_cells`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from incrowd.domain import Coding, Recode
from incrowd.histogram import Column, Histogram
from incrowd.marginals import Crowds, Marginals
from incrowd.sources import Progress, Source
from incrowd.sources.tally import not_as_asked

FIRST_ROWS = 1 << 13
"""How many rows show whether a table has very many cells."""


@dataclass(frozen=True)
class CrowdsAsked:
    """Which cells can be published.

    Attributes:
        recodes: how coarse each column is published, by its name.
        at_least: how many records a cell must have.
    """

    recodes: dict[str, Recode]
    at_least: int

    def coarse(self, codings: Sequence[Coding]) -> list[Coding]:
        """How the columns are coded as they are published."""
        return [
            coding if recode.labels == coding.labels else replace(coding, recode=recode)
            for coding in codings
            for recode in [self.recodes[coding.column]]
        ]


@runtime_checkable
class CountsCrowds(Protocol):
    """An engine that can keep small cells to itself; none needs to."""

    def count_crowds(
        self, codings: Sequence[Coding], asked: CrowdsAsked, *, progress: Progress | None = None
    ) -> Histogram | Crowds:
        """As `Source.count_by`; where there are too many cells to be fetched, only those that can be published."""
        ...


def count_crowds(
    source: Source, codings: Sequence[Coding], asked: CrowdsAsked, *, progress: Progress | None = None
) -> Histogram | Crowds:
    """The table, or what of it can be published, whatever engine holds it.

    Raises:
        DataError: as `Source.count_by`.
    """
    if codings and isinstance(source, CountsCrowds):
        return source.count_crowds(codings, asked, progress=progress)
    return source.count_by(codings, progress=progress)


def crowds(
    codings: Sequence[Coding],
    asked: CrowdsAsked,
    whole: Marginals,
    cells: np.ndarray,
    codes: Sequence[np.ndarray],
    counts: np.ndarray,
) -> Crowds:
    """What an engine found.

    Args:
        codings: how the columns are published.
        asked: what was asked.
        whole: the counts of each column, base codes.
        cells: how many cells there are with these codes and so many records; one, if they can be published.
        codes: their codes, column by column; without meaning where there are too few records.
        counts: how many records each has.

    Raises:
        DataError: the engine found something else at its second look.
    """
    large = counts >= asked.at_least
    if int(counts @ cells) != whole.total or (cells[large] != 1).any():
        raise not_as_asked()
    smaller = np.zeros(asked.at_least, dtype=np.int64)
    np.add.at(smaller, counts[~large], cells[~large])
    columns = [Column(c.column, c.labels, code[large]) for c, code in zip(codings, codes, strict=True)]
    return Crowds(Histogram.of(columns, counts[large]), asked.at_least, smaller, whole)


def seem_more(counts: Iterable[int], most: int) -> bool:
    """Whether there seem to be more cells than that, by how often some of the first rows occur.

    From those that were seen once and those that were seen twice follows how many different ones there are at least,
    with those that were not seen (A. Chao, 1984, corrected for its bias). It decides nothing but whether fetching all
    cells is tried.
    """
    times = Counter(counts)
    return times.total() + times[1] * (times[1] - 1) / (2 * (times[2] + 1)) > most
