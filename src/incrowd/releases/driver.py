"""A table that is drawn and written here, and not by the executors of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Generic

from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.marginals import Crowds
from incrowd.mechanisms.base import Concern, Made, Mechanism, OutcomeT, PreparedT, SectionT, SettingsT, Tell
from incrowd.mechanisms.certificate import MechanismT, PromiseT, Statement
from incrowd.mechanisms.promises import Promise
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import count_people_or_rows, one_row_each, rows_not_people
from incrowd.releases.release import REPORT, Release, certify, files_of, void_of
from incrowd.releases.staging import Stage, writing
from incrowd.releases.verdict import before_publishing, insight, internal_block, public_block, verdict
from incrowd.reports.page import with_verdict
from incrowd.sources import Source
from incrowd.sources.at_least import CrowdsAsked
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
    repeating = rows_not_people(opened, policy)
    asked = mechanism.crowds_asked(settings)
    whose = mechanism.counts_people(settings)
    table, people = _count_asked(opened, policy, attributes, asked, lambda part: tell("reading", part), whose=whose)
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
    table: Histogram | Crowds
    source: RandomSource
    copies: int
    concerns: Sequence[Concern]
    people: BoundedRows | None
    rehearse: bool

    def ready(self, stage: Stage | None) -> Promise:
        """All is known."""
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
            judged = verdict(policy, made.published, made.statement)
            inside = insight(mechanism, self.attributes, settings, self.table, made)
            report = mechanism.public_report(policy, settings, made.publication, made.statement, void=void)
            report = with_verdict(report, public_block(judged))
            internal = self._internal(made, void)
            block = internal_block(judged, inside, self.concerns)
            internal = internal | {REPORT: with_verdict(internal[REPORT], block)}
            together = mechanism.together(settings, self.copies)
            published = made.published  # without the rest, which is not for those who get the release
            names = published.columns
            return Release(
                load=lambda: published,
                certified=certify(policy, made.statement, names, together, self.source, files.result(), report, void),
                policy=policy.with_levels(made.levels),
                report=report,
                internal=internal,
                beside=made.beside,
                verdict=judged,
                insight=inside,
                concerns=self.concerns,
            )

    def _internal(self, made: Made[OutcomeT, Statement[PromiseT, MechanismT]], void: str | None) -> dict[str, bytes]:
        from incrowd.marginals import Crowds

        if isinstance(self.table, Crowds):
            return self.mechanism.internal_crowds(self.policy, self.settings, self.table, made, void=void)
        return self.mechanism.internal_files(self.policy, self.attributes, self.settings, self.table, made, void=void)


def _count_asked(
    source: Source,
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    asked: CrowdsAsked | None,
    progress: Callable[[float], None],
    *,
    whose: bool = False,
) -> tuple[Histogram | Crowds, BoundedRows | None]:
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
    require_as_asked(found.cells, asked.coarse(codings))
    return found, None


def _prepare(
    mechanism: Mechanism[SectionT, SettingsT, PreparedT, OutcomeT, PromiseT, MechanismT],
    settings: SettingsT,
    table: Histogram | Crowds,
    tell: Tell,
) -> tuple[SettingsT, PreparedT]:
    """What the mechanism makes of the table before it draws."""
    if isinstance(table, Crowds):
        return settings, mechanism.prepare_crowds(settings, table)
    return mechanism.prepare(settings, table, tell)
