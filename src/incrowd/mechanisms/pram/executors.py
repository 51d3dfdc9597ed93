"""A randomised table that no machine can hold: the executors of a Spark cluster redraw and write it.

The driver never has the table, neither before nor after: what it decides, it decides by the number of records; what it
reports, by counts of few columns at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from weakref import finalize

from incrowd.hierarchy import CodedAttribute
from incrowd.mechanisms.base import ExecutorsDraw, MadeInParts, Tell
from incrowd.mechanisms.pram.certificate import AnyPramMechanism, AnyPramPromise, PramStatement
from incrowd.mechanisms.pram.comparison_page import looked_at
from incrowd.mechanisms.pram.parts import kept, require_executors, require_same, write_parts
from incrowd.mechanisms.pram.report import compared, public_report
from incrowd.mechanisms.pram.settle import PramSettled, completed, decided, spending
from incrowd.mechanisms.pram.spark import Told, count_marginals, count_records, records_of, redrawn
from incrowd.mechanisms.pram.state import state
from incrowd.mechanisms.promises import Promise
from incrowd.policy import Policy
from incrowd.sources.spark import SparkSource
from incrowd.sources.spark_kept import at_hand, let_go


class PramExecutors(ExecutorsDraw[AnyPramPromise, AnyPramMechanism]):
    """A table that executors redraw, record by record."""

    def __init__(self, settings: PramSettled, attributes: Sequence[CodedAttribute], source: SparkSource) -> None:
        self._attributes = attributes
        codings = [replace(a.coding, recode=a.hierarchy.recode(settings.levels[a.name])) for a in attributes]
        # Coded once, and kept until nobody wants it any more: to code takes longer than to draw.
        rows = source.coded(codings)
        rows = replace(rows, frame=at_hand(rows.frame))
        finalize(self, let_go, rows.frame).atexit = False
        self._settings = decided(settings, count_records(source, rows))
        self._rows, self._sets = records_of(rows), looked_at(self._settings)

    def ready(self, scratch: Path, tell: Tell) -> Promise:
        require_executors(self._rows.frame.sparkSession, scratch)
        tell("reading", 0.5)
        self._truth = count_marginals(self._rows, self._sets)
        require_same(self._truth.total == self._settings.records)
        self._settings = completed(self._settings, self._truth)
        return spending(self._settings)

    def draw(self, key: bytes, scratch: Path, tell: Tell) -> MadeInParts[PramStatement]:
        settings = self._settings
        with kept(redrawn(self._rows, settings.blocks, key, settings.records, self._sets)) as cells:
            told = Told.of(cells, settings.records, self._sets)
            published = told.published
            require_same(published.total == settings.records)
            statement = state(settings.published(settings.records), published)
            tell("writing", 0.0)
            parts, written = write_parts(cells, told.marks, scratch, settings.records, self._sets)
            # Cells that are lost meanwhile are drawn again, from the table as it is then.
            require_same(written.parts == published.parts)
        return MadeInParts(tuple(parts), published, settings.levels, statement)

    def public_report(self, policy: Policy, made: MadeInParts[PramStatement], *, void: str | None) -> bytes:
        """The report that is published beside the table."""
        return public_report(policy, self._settings, made.published, made.statement, void=void)

    def internal_report(self, policy: Policy, made: MadeInParts[PramStatement], *, void: str | None) -> bytes:
        return compared(policy, self._attributes, self._settings, self._truth, made.published, void=void)
