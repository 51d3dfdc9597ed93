"""The publisher's own report on a table whose small cells stayed in the engine: what counts of cells alone can tell."""

from __future__ import annotations

import numpy as np

from incrowd.core.errors import InternalError
from incrowd.core.numbers import count, number, percent
from incrowd.marginals import Crowds
from incrowd.mechanisms.base import Made
from incrowd.mechanisms.sampled_crowd.certificate import CrowdStatement
from incrowd.mechanisms.sampled_crowd.draw import CrowdOutcome
from incrowd.mechanisms.sampled_crowd.report import GIVES_AWAY, TITLE
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings
from incrowd.policy import Policy
from incrowd.reports.frame import internal_page, records_table
from incrowd.reports.page import Content, Fact, PageSection, code, paragraph, table

RAISE_THE_LIMIT = (code("--most-cells"), ") on a machine with some 140 bytes of memory for each different row.")
_SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 1000, 10_000, 100_000)


def internal_report(
    policy: Policy,
    settings: CrowdSettings,
    made: Made[CrowdOutcome, CrowdStatement],
    *,
    void: str | None = None,
) -> bytes:
    """The report that only the publisher may see."""
    published, crowds = made.published, made.outcome.crowds
    if crowds is None:
        raise InternalError("a report on large cells was asked for where all cells are known")
    sections = [
        PageSection("numbers", "What became of the records", tuple(_numbers(settings, crowds, made))),
        PageSection("sizes", "How large cells are", (_sizes(crowds),)),
        PageSection("left-out", "What is not on this page", tuple(_left_out(settings))),
    ]
    facts = [
        Fact("in the table", number(crowds.total), "records"),
        Fact("in crowds of k", number(crowds.cells.total), percent(crowds.cells.total / crowds.total)),
        Fact("published", number(published.total), percent(published.total / crowds.total)),
        Fact("cells", number(crowds.cells_in_all), f"{count(len(published), 'is', 'are')} published"),
    ]
    return internal_page(policy, TITLE, facts, sections, gives_away=GIVES_AWAY, void=void)


def _numbers(settings: CrowdSettings, crowds: Crowds, made: Made[CrowdOutcome, CrowdStatement]) -> list[Content]:
    small, sample = crowds.total - crowds.cells.total, made.outcome.sample
    steps = [
        ("records in the table", crowds.total, crowds.cells_in_all),
        (f"in cells of fewer than {settings.k:,}, which are never published", small, int(crowds.smaller.sum())),
        ("in larger cells", crowds.cells.total, len(crowds.cells)),
        ("sampled of these", sample.total, len(sample)),
        ("published", made.published.total, len(made.published)),
    ]
    return [records_table("Records and cells", steps, "cells")]


def _sizes(crowds: Crowds) -> Content:
    sizes, cells = crowds.cells.sizes
    sizes = np.concatenate([np.arange(crowds.at_least), sizes])
    cells = np.concatenate([crowds.smaller, cells])
    rows = []
    for low, high in zip(_SIZES, (*_SIZES[1:], None), strict=True):
        within = (sizes >= low) & ((sizes < high) if high is not None else True)
        if cells[within].any():
            name = f"{low:,} or more" if high is None else f"{low:,}" if high == low + 1 else f"{low:,} to {high - 1:,}"
            records = int((sizes * cells)[within].sum())
            rows.append([name, number(int(cells[within].sum())), number(records), percent(records / crowds.total)])
    return table(
        "Cells by their records", ["records", "cells", "records in all", "of the table"], rows, numbers=(1, 2, 3)
    )


def _left_out(settings: CrowdSettings) -> list[Content]:
    return [
        paragraph(
            f"The table has too many different rows to be fetched, so cells of fewer than k = {number(settings.k)} "
            "records, of which none can be published, stayed where the table is. Measures of information loss, the "
            "errors of counts by two columns and the list of suppressed crowds need every cell and are left out. "
            "To have them, raise the limit (",
            *RAISE_THE_LIMIT,
        )
    ]
