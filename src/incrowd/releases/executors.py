"""The main job for a randomised table that no machine can hold: the executors of a Spark cluster draw and write it.

The same steps in the same order as for every release. The driver never has the table, neither before nor after: what
it decides, it decides by the number of records; what it reports, by counts of few columns at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.bits import DerivedBits
from incrowd.core.errors import ParameterError
from incrowd.core.files import umask
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.pram.settle import PramSettled, completed, decided, spending
from incrowd.mechanisms.pram.state import state
from incrowd.mechanisms.promises import Promise
from incrowd.mechanisms.tables import table_name
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.charging import Charged
from incrowd.releases.release import Release, certify, measured, void_of, write_around
from incrowd.releases.staging import internal_folder, staged, writing
from incrowd.releases.verdict import Insight, internal_block, public_block, verdict
from incrowd.reports.page import with_verdict

if TYPE_CHECKING:
    from incrowd.sources.spark import SparkSource

Charge = Callable[[Promise], Charged]
"""Spends a promise."""


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
    asked = policy.release
    wrong = (
        ("write randomised tables only (mechanism 'pram')", asked is None or asked.mechanism != "pram"),
        ("write Parquet files only (output: parquet)", asked is None or asked.output != "parquet"),
        ("write one release at a time", copies > 1),
        ("need a folder to write the release to", folder is None),
        ("rehearse nothing", rehearse),
        ("do not sample: how many records they write must be known (beta)", getattr(asked, "beta", None) is not None),
        ("do not bound the rows of people (people)", policy.people is not None),
    )
    for what, holds in wrong:
        if holds:
            raise _impossible(what)


def require_spark(source: Any) -> SparkSource:
    """A table that is on a cluster."""
    if type(source).__module__ != "incrowd.sources.spark":
        raise _impossible("write tables that Spark reads (a Spark DataFrame, or files and tables with --engine)")
    found: SparkSource = source
    return found


def _impossible(what: str) -> ParameterError:
    return ParameterError(
        f"Executors {what}.",
        code="parameter-combination",
        remedy="Leave the option out (write_with, --write-with): then the table is drawn and written here.",
    )


def release_by_executors(
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    settings: PramSettled,
    source: SparkSource,
    folder: Path,
    *,
    charge: Charge,
    sign: Callable[[AnyCertificate], AnyCertificate],
    randomness: RandomSource,
    tell: Callable[[str, float], None],
) -> Release:
    """Publish a table that the executors redraw, record by record.

    Args:
        policy: what was asked for; `require_possible` has found nothing wrong with it.
        attributes: its columns.
        settings: what `pram.settle` found.
        source: the table.
        folder: a new one, which all executors must reach under the same path.
        charge: spends the budget, once everything that can be refused has been found right.
        sign: signs a certificate, if it is to be signed.
        randomness: the driver's, from which one key is taken.
        tell: told what is being done.
    """
    from incrowd.mechanisms.pram import report as pram_report
    from incrowd.mechanisms.pram.comparison_page import looked_at
    from incrowd.mechanisms.pram.parts import kept, require_executors, require_same, write_parts
    from incrowd.mechanisms.pram.spark import count_marginals, count_records, records_of, redrawn

    levels = settings.levels
    codings = [replace(a.coding, recode=a.hierarchy.recode(levels[a.name])) for a in attributes]
    tell("reading", 0.0)
    settings = decided(settings, count_records(source, codings))
    rows, sets = records_of(source, codings), looked_at(settings)
    bits = Derived(DerivedBits.kind if randomness.secure else randomness.kind, randomness.secure)
    void = void_of(bits, rehearse=False)
    with staged([folder]) as stage, ExitStack() as after_charge:
        public, internal = stage.releases[0].public, stage.releases[0].internal
        # Where executors write. A task that was given up but runs on writes here, and not to what is published.
        scratch = stage.root / "scratch"
        with writing(folder):
            scratch.mkdir(mode=0o700)
        require_executors(rows.frame.sparkSession, scratch)
        tell("reading", 0.5)
        truth = count_marginals(rows, sets)
        require_same(truth.total == settings.records)
        settings = completed(settings, truth)
        charged = charge(spending(settings))
        after_charge.enter_context(charged.explained())
        tell("drawing", 0.0)
        key = randomness.words(4).tobytes()
        with kept(redrawn(rows, settings.blocks, key, settings.records)) as cells:
            published = count_marginals(cells, sets)
            require_same(published.total == settings.records)
            statement = state(settings, published)
            tell("writing", 0.0)
            parts, written = write_parts(cells, scratch, settings.records, sets)
            # Cells that are lost meanwhile are drawn again, from the table as it is then.
            require_same(written.parts == published.parts)
            with writing(folder):
                files = _moved(parts, public / table_name("parquet"))
        judged = verdict(policy, published, statement)
        report = pram_report.public_report(policy, settings, published, statement, void=void)
        report = with_verdict(report, public_block(judged))
        compared = pram_report.compared(policy, attributes, settings, truth, published, void=void)
        compared = with_verdict(compared, internal_block(judged, Insight()))
        certificate = sign(certify(policy, statement, published.columns, None, bits, files, report, void))
        release = Release(
            load=lambda: _read(folder),
            certified=certificate,
            policy=policy.with_levels(levels),
            report=report,
            internal={"report.html": compared},
            charged=charged,
            digest=certificate.digest,
            folder=folder,
            verdict=judged,
        )
        with writing(folder):
            write_around(release, public, internal, internal_folder(folder))
        charged.publish(stage, release.digest)
    tell("done", 1.0)
    return release


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
