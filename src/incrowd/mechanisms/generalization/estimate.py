"""What can be counted in a generalized table.

**Intervals.** Published records are true. Of n records, at most the share s that the policy allows was left out, so of
p published ones at most s·p/(1 − s) are missing; all of them may be of any one cell. Under local recoding a record is
shown by sets of values, which the mapping beside the table lists. It surely is of a cell if its sets lie within those
of the cell, and may be if they overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.core.numbers import number
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Publication, section_of
from incrowd.mechanisms.estimates import EstimatedCell, Estimates, GroupMean
from incrowd.mechanisms.generalization.certificate import GeneralizationCertificate
from incrowd.mechanisms.generalization.section import Generalization
from incrowd.mechanisms.grid import MIDDLES, MOST_LISTED, Grid, NumberSpread
from incrowd.recoding.mapping import MAPPING, read_tree
from incrowd.theory._groups import as_written
from incrowd.theory.intervals import ANY, calibrated, extreme_mean

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def estimate(
    certificate: GeneralizationCertificate,
    published: Publication,
    by: Sequence[str],
    *,
    mean: str | None = None,
    total: tuple[int, int] | None = None,
) -> Estimates:
    """A cross-tabulation by some columns: records are true, so they are counted.

    Args:
        certificate: of the release.
        published: its records, and the mapping if that is local.
        by: the columns; they are there.
        mean: a column whose mean is wanted in each group.
        total: an interval for the number of people of all cells, if it is known.
    """
    table = published.table
    grid = Grid.of(table, by)
    shown = grid.summed(table.counts).astype(np.int64)
    missing = left_out_at_most(section_of(certificate, Generalization).suppression, table.total)
    if total is not None:
        missing = max(min(missing, total[1] - table.total), 0)
    low, high, likely = _ends(certificate, published, by, grid, shown)
    high = high + missing
    if total is not None:
        low, high = calibrated((low, high), (table.total - (high - missing), table.total - low + missing), total)
    rows = tuple(
        EstimatedCell(
            values,
            float(min(max(likely[i], low[i]), high[i])) if likely[i] or low[i] == high[i] else None,
            0.0 if low[i] == high[i] else None,
            int(low[i]),
            int(high[i]),
        )
        for i, values in enumerate(grid.values())
    )
    notes = _notes(certificate, missing, grid)
    means: tuple[GroupMean, ...] = ()
    if mean is not None:
        means = _means(certificate, table, by, mean, missing)
        notes.append(MIDDLES)
    return Estimates(by=tuple(by), rows=rows, notes=tuple(notes), means=means)


def left_out_at_most(share: float, published: int) -> int:
    """How many records were left out at the most, if these are published and no more than a share was left out."""
    part = as_written(share)
    return int(part * published / (1 - part)) if part < 1 else ANY


def _notes(certificate: GeneralizationCertificate, missing: int, grid: Grid) -> list[str]:
    notes = ["Counts of the published records. They are true at the levels shown; what is behind a label is not known."]
    release = section_of(certificate, Generalization)
    if missing:
        notes.append(
            f"Up to {number(release.suppression, 3)} of the table's records may have been left out, in whole "
            "groups: at most "
            f"{missing:,}. All of them may be of any one row, and high allows for that; low to high holds for certain."
        )
    if release.recoding == "local":
        notes.append(
            "Recoding is local: a label may cover others of the same column. Low counts the records that surely are of "
            "a row, high those that may be; the estimate spreads records evenly over what their labels cover."
        )
    if grid.unlisted:
        notes.append(f"{grid.unlisted:,} declared cells of which no record is published are not listed.")
    return notes


def _ends(
    certificate: GeneralizationCertificate, published: Publication, by: Sequence[str], grid: Grid, shown: Ints
) -> tuple[Ints, Ints, Floats]:
    """How many of the published records surely are of each cell, how many may be, and how many are if spread evenly."""
    if all(name in certificate.mechanism.levels for name in by):
        return shown, shown, shown.astype(np.float64)
    if grid.unlisted or any(len(labels) ** 2 > 50 * MOST_LISTED for labels in grid.labels):
        return shown, np.full_like(shown, published.table.total), shown.astype(np.float64)
    columns = {column.name: column for column in read_tree(published.beside[MAPPING]).columns}
    surely = maybe = likely = shown.reshape([len(labels) for labels in grid.labels]).astype(np.float64)
    for axis, name in enumerate(by):
        if name not in columns:
            continue
        column = columns[name]
        covers = np.zeros((len(column.sets), len(column.base)))
        for place, values in enumerate(column.sets):
            covers[place, list(values)] = 1.0
        common, sizes = covers @ covers.T, covers.sum(axis=1)
        surely, maybe, likely = (
            np.moveaxis(np.tensordot(relation.astype(np.float64), cells, (1, axis)), 0, axis)
            for relation, cells in ((common == sizes, surely), (common > 0, maybe), (common / sizes, likely))
        )
    return surely.ravel().astype(np.int64), maybe.ravel().astype(np.int64), likely.ravel()


def _means(
    certificate: GeneralizationCertificate, table: Histogram, by: Sequence[str], column: str, missing: int
) -> tuple[GroupMean, ...]:
    spread = NumberSpread.of(certificate, table, by, column)
    values = spread.numbers
    means = []
    for group, counts in zip(spread.groups.values(), spread.counts, strict=True):
        people = float(counts.sum())
        if not people:
            means.append(GroupMean(group, None, None, None, None, 0.0))
            continue
        # The one value at an end is had by all who are missing, or by none.
        low, high = (_with_missing(values, counts, missing, largest=side) for side in (False, True))
        means.append(GroupMean(group, float(counts @ values) / people, 0.0 if low == high else None, low, high, people))
    return tuple(means)


def _with_missing(values: Floats, counts: Floats, missing: int, *, largest: bool) -> float:
    more = np.zeros(len(values))
    more[np.argmax(values) if largest else np.argmin(values)] = missing
    return extreme_mean(values, counts, more, largest=largest)
