"""A table that no machine can hold: the executors of a cluster draw and write it, as its mechanism says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from incrowd.core.bits import DerivedBits
from incrowd.core.errors import InternalError, ParameterError
from incrowd.core.files import umask
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Concern, ExecutorsDraw, Tell
from incrowd.mechanisms.certificate import MechanismT, PromiseT
from incrowd.mechanisms.promises import Promise
from incrowd.mechanisms.registry import MECHANISMS, mechanism_named
from incrowd.mechanisms.tables import table_name
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.folders import Stage, Staged, writing
from incrowd.releases.names import REPORT
from incrowd.releases.release import Release, certify, measured, void_of
from incrowd.releases.verdict import Insight, internal_block, public_block, verdict
from incrowd.reports.page import completed

if TYPE_CHECKING:
    from incrowd.sources.people import BoundedRows


@dataclass(frozen=True)
class Derived:
    """Where the executors' bits came from, for a certificate."""

    kind: str
    secure: bool


def require_possible(policy: Policy, folder: str | Path | None, copies: int, *, rehearse: bool) -> None:
    """Whether executors can write what a policy asks for, as far as that can be seen without the table.

    Raises:
        ParameterError: they cannot.
    """
    section = policy.release
    able = [name for name, mechanism in MECHANISMS.items() if mechanism.drawn_by_executors]
    asked = None if section is None or section.mechanism not in able else section
    lacking = None if asked is None else mechanism_named(asked.mechanism).executors_lack(asked)
    wrong = (
        (f"write tables of the mechanism {' or '.join(map(repr, able))} only", asked is None),
        ("write Parquet files only (output: parquet)", asked is None or asked.output != "parquet"),
        ("write one release at a time", copies > 1),
        ("need a folder to write the release to", folder is None),
        ("rehearse nothing", rehearse),
        (lacking, lacking is not None),
        ("do not bound the rows of people (people)", policy.people is not None),
    )
    for what, holds in wrong:
        if holds:
            raise ParameterError(
                f"Executors {what}.",
                code="parameter-combination",
                remedy="Leave out --write-with: then the table is drawn and written here.",
            )


@dataclass(frozen=True, eq=False)
class ExecutorsWork(Generic[PromiseT, MechanismT]):
    """A table that executors draw and write in parts; the stage's folder they must all reach under the same path.

    Attributes:
        policy: what was asked for; `require_possible` has found nothing wrong with it.
        draw: what the mechanism's executors do.
        source: the driver's random bits, from which one key is taken.
        tell: told what is being done.
    """

    policy: Policy
    draw: ExecutorsDraw[PromiseT, MechanismT]
    source: RandomSource
    tell: Tell
    concerns: tuple[Concern, ...] = ()
    people: BoundedRows | None = None

    def ready(self, stage: Stage | None) -> Promise:
        """Executors that can write, and what is charged."""
        place, scratch = _places(stage)
        with writing(place.folder):
            scratch.mkdir(mode=0o700)
        return self.draw.ready(scratch, self.tell)

    def make(self, stage: Stage | None, number: int) -> Release:
        """Let executors draw and write, and put certificate and reports around the parts."""
        del number  # there is one
        place, scratch = _places(stage)
        bits = Derived(DerivedBits.kind if self.source.secure else self.source.kind, self.source.secure)
        void = void_of(bits, rehearse=False)
        made = self.draw.draw(self.source.words(4).tobytes(), scratch, self.tell)
        with writing(place.folder):
            files = _moved(made.parts, place.public / table_name("parquet"))
        judged = verdict(self.policy, made.published, made.statement)
        page = self.draw.public_report(self.policy, made, void=void)
        internal = self.draw.internal_report(self.policy, made, void=void)
        certified = certify(
            *(self.policy, made.statement, made.published.columns, None, bits, files),
            report=partial(completed, page, public_block(judged)),
            void=void,
        )
        return Release(
            load=lambda: _read(place.folder),
            certified=certified.certificate,
            policy=self.policy.with_levels(made.levels),
            report=certified.report,
            internal={REPORT: completed(internal, internal_block(judged, Insight()), certified.digest)},
            folder=place.folder,
            verdict=judged,
        )


def _places(stage: Stage | None) -> tuple[Staged, Path]:
    """The release's folders, and where executors write.

    A task that was given up but runs on writes there, and not to what is published.
    """
    if stage is None:
        raise InternalError("executors were given no folder to write to")
    (place,) = stage.releases
    return place, stage.root / "scratch"


def _moved(parts: Sequence[Path], table: Path) -> Mapping[str, Any]:
    """The parts as the files of a certificate, moved to the table's own folder."""
    table.mkdir()
    table.chmod(0o755 & ~umask())
    for part in parts:
        part.rename(table / part.name)
    return {f"{table.name}/{part.name}": measured(table / part.name) for part in parts}


def _read(folder: Path) -> Histogram:
    from incrowd.releases.verify import read_release

    return read_release(folder)[1].table
