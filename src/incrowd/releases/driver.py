"""A table that is drawn and written here, and not by the executors of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Generic

from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.marginals import Crowds
from incrowd.mechanisms.base import Concern, Made, Mechanism, OutcomeT, PreparedT, SectionT, SettingsT, Tell
from incrowd.mechanisms.certificate import MechanismT, PromiseT, Statement
from incrowd.mechanisms.packages import require_exact, require_rows
from incrowd.mechanisms.promises import Promise
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.folders import Stage, writing
from incrowd.releases.names import REPORT
from incrowd.releases.pipeline import count_people_or_rows, one_row_each, rows_not_people
from incrowd.releases.release import Release, certify, files_of, void_of
from incrowd.releases.verdict import before_publishing, insight, internal_block, public_block, verdict
from incrowd.reports.page import completed
from incrowd.sources import Source
from incrowd.sources.at_least import CrowdsAsked
from incrowd.sources.kept import KeptTable
from incrowd.sources.people import BoundedRows


def prepared(
    mechanism: Mechanism[SectionT, SettingsT, PreparedT, OutcomeT, PromiseT, MechanismT],
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    settings: SettingsT,
    opened: Source,
    source: RandomSource,
    copies: int,
    tell: Tell,
    *,
    rehearse: bool,
) -> DriverWork[SectionT, SettingsT, PreparedT, OutcomeT, PromiseT, MechanismT]:
    """Count the table and look at it: nothing is charged or drawn."""
    section = mechanism.section_in(policy)
    has_table = mechanism.table_stem(section) is not None
    if has_table:
        require_exact(section.output, policy.attributes, attributes, known=mechanism.labels_known(section))
    repeating = rows_not_people(opened, policy)
    asked = mechanism.crowds_asked(settings)
    whose = mechanism.counts_people(settings)
    table, people = _count_asked(opened, policy, attributes, asked, lambda part: tell("reading", part), whose=whose)
    if has_table:
        require_rows(section.output, mechanism.most_rows(section, table.total))
    settings, found = _prepare(mechanism, settings, table if people is None else people.telling, tell)
    concerns = (*repeating, *one_row_each(people, policy), *before_publishing(mechanism, policy, settings, table))
    return DriverWork(mechanism, policy, attributes, settings, found, table, source, copies, concerns, people, rehearse)


@dataclass(frozen=True, eq=False)
class DriverWork(Generic[SectionT, SettingsT, PreparedT, OutcomeT, PromiseT, MechanismT]):
    """A table that is drawn and written here."""

    mechanism: Mechanism[SectionT, SettingsT, PreparedT, OutcomeT, PromiseT, MechanismT]
    policy: Policy
    attributes: Sequence[CodedAttribute]
    settings: SettingsT
    prepared: PreparedT
    table: Histogram | Crowds | KeptTable
    source: RandomSource
    copies: int
    concerns: Sequence[Concern]
    people: BoundedRows | None
    rehearse: bool

    def ready(self, stage: Stage | None) -> Promise:
        del stage
        return self.mechanism.spending(self.settings)

    def make(self, stage: Stage | None, number: int) -> Release:
        """Draw, and write the table while reports are made."""
        mechanism, policy, settings = self.mechanism, self.policy, self.settings
        made = mechanism.draw(settings, self.prepared, self.source)
        place = None if stage is None else stage.releases[number]
        void = void_of(self.source, rehearse=self.rehearse)
        with nullcontext() if place is None else writing(place.folder), ThreadPoolExecutor(1) as aside:
            # As slow as the reports, and independent of them.
            files = aside.submit(files_of, policy, made.publication, None if place is None else place.public, void)
            judged = verdict(policy, made.published, made.statement, made.beside)
            inside = insight(mechanism, self.attributes, settings, self.table, made)
            page = mechanism.public_report(policy, settings, made.publication, made.statement, void=void)
            internal = self._internal(made, void)
            together = mechanism.together(settings, self.copies)
            published = made.published  # without the rest, which is not for those who get the release
            certified = certify(
                *(policy, made.statement, published.columns, together, self.source, files.result()),
                report=partial(completed, page, public_block(judged)),
                void=void,
            )
            block = internal_block(judged, inside, self.concerns)
            return Release(
                load=lambda: published,
                certified=certified.certificate,
                policy=policy.with_levels(made.levels),
                report=certified.report,
                internal=internal | {REPORT: completed(internal[REPORT], block, certified.digest)},
                beside=made.beside,
                verdict=judged,
                insight=inside,
                concerns=self.concerns,
            )

    def _internal(self, made: Made[OutcomeT, Statement[PromiseT, MechanismT]], void: str | None) -> dict[str, bytes]:
        if isinstance(self.table, Histogram):
            table = self.table
            return self.mechanism.internal_files(self.policy, self.attributes, self.settings, table, made, void=void)
        return self.mechanism.internal_crowds(self.policy, self.settings, self.table, made, void=void)


def _count_asked(
    source: Source,
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    asked: CrowdsAsked | None,
    progress: Callable[[float], None],
    *,
    whose: bool = False,
) -> tuple[Histogram | Crowds | KeptTable, BoundedRows | None]:
    """As `count_people_or_rows`; of a table with very many cells, those that were asked for.

    Which rows of a person count depends on base codes, so tables of people with several rows come with all cells.
    """
    from incrowd.sources.at_least import count_crowds
    from incrowd.sources.tally import require_as_asked

    if asked is None or policy.people is not None:
        return count_people_or_rows(source, policy, attributes, progress, whose=whose)
    codings = [a.coding for a in attributes]
    found = count_crowds(source, codings, asked, progress=progress)
    if isinstance(found, Histogram):
        return require_as_asked(found, codings), None
    if isinstance(found, Crowds):
        require_as_asked(found.cells, asked.coarse(codings))
    return found, None


def _prepare(
    mechanism: Mechanism[SectionT, SettingsT, PreparedT, OutcomeT, PromiseT, MechanismT],
    settings: SettingsT,
    table: Histogram | Crowds | KeptTable,
    tell: Tell,
) -> tuple[SettingsT, PreparedT]:
    """What the mechanism makes of the table before it draws."""
    if isinstance(table, Histogram):
        return mechanism.prepare(settings, table, tell)
    return settings, mechanism.prepare_crowds(settings, table)
