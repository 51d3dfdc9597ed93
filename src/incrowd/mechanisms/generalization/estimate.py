"""What can be counted in a generalized table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from incrowd.histogram import Histogram
from incrowd.mechanisms.base import (
    Estimates,
    section_of,
)
from incrowd.mechanisms.generalization.section import Generalization
from incrowd.mechanisms.generalization.stated import GeneralizationCertificate


@dataclass(frozen=True)
class CountedCell:
    """One cell of a cross-tabulation.

    Attributes:
        values: the labels of the columns asked for, None for missing.
        estimate: the people of this cell in the published table.
        standard_error: 0, since nothing was drawn at random.
    """

    values: tuple[str | None, ...]
    estimate: float
    standard_error: float = 0.0


def estimate(certificate: GeneralizationCertificate, table: Histogram, by: Sequence[str]) -> Estimates:
    """A cross-tabulation by some columns: records are true, so they are counted."""
    cells = table.project(by)
    rows = tuple(
        CountedCell(tuple(cells[name].labels[int(cells[name].codes[i])] for name in by), float(cells.counts[i]))
        for i in range(len(cells))
    )
    notes = ["Counts of the published records. They are true, but for what a label covers nothing more is known."]
    release = section_of(certificate, Generalization)
    if release.suppression:
        notes.append(f"Up to {release.suppression:.3g} of the table's records may have been left out, in whole groups.")
    if release.recoding == "local":
        notes.append("Recoding is local: a label may cover others of the same column, which are counted apart.")
    return Estimates(tuple(by), rows, tuple(notes))
