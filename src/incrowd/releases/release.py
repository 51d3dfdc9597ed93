"""A release: the published table with its certificate, in memory and on disk."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from incrowd.core import signing
from incrowd.core.display import Picture, Showable, Shown, ShownTable
from incrowd.core.errors import InputError, InternalError
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.base import Concern, Publication
from incrowd.mechanisms.certificate import (
    FORMAT,
    AnyCertificate,
    StatedFile,
    StatedMechanism,
    StatedPromise,
    Statement,
    Together,
)
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.tables import table_name, write_table
from incrowd.policy import Policy
from incrowd.policy.release import ReleaseSection
from incrowd.releases import certificate as certificates
from incrowd.releases.description import described
from incrowd.releases.folders import internal_folder, staged, writing
from incrowd.releases.names import CERTIFICATE, DESCRIPTION, POLICY, REHEARSED, REPORT, file_name
from incrowd.releases.purse import Charged, Foreseen
from incrowd.releases.verdict import Insight, Verdict, in_brief

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from incrowd.sources.people import BoundedRows

VOID = "Drawn from predictable bits, for tests: this promises nothing."
BY_RESPONDENTS = "the generator of each respondent's own device"
"""Where the bits of records came from that their owners have randomised."""


@dataclass(frozen=True, eq=False, repr=False)
class Release(Showable):
    """A table that can be published, and the proof of what it promises.

    Attributes:
        certified: what is promised: its certificate, by the model of its mechanism.
        policy: the policy as it was carried out, with every level fixed: for review, and for next year's table.
        folder: where it is, if executors wrote it there as they drew it.
        digest: that by which the ledger will know it as published, with its copies.
        beside: the public files beside the table, by their path in the folder.
        people: how many rows and people there were and how many rows count, if rows are not people. For the publisher's
            eyes only.
        verdict: what it is good for, as far as everyone may know.
        insight: what it has kept of the table. For the publisher's eyes only.
        concerns: what was found before it was drawn. For the publisher's eyes only.
    """

    load: Callable[[], Histogram]
    certified: AnyCertificate
    policy: Policy
    report: bytes
    internal: Mapping[str, bytes]
    charged: Charged = field(default_factory=Charged)
    digest: str = ""
    folder: Path | None = None
    beside: Mapping[str, bytes] = field(default_factory=dict)
    people: BoundedRows | None = None
    verdict: Verdict = field(default_factory=Verdict)
    insight: Insight = field(default_factory=Insight)
    concerns: Sequence[Concern] = ()

    @property
    def warnings(self) -> tuple[Concern, ...]:
        """What had better be changed: before publishing, about what is published, and about what it has lost."""
        return (*self.concerns, *self.verdict.warnings, *self.insight.warnings)

    @property
    def account(self) -> Mapping[str, Any] | None:
        """What is spent on the dataset and what is left, as its ledger says now; None if no ledger counts."""
        return self.charged.account()

    @property
    def foreseen(self) -> Foreseen | None:
        """What publishing a rehearsal would do to its ledger; None if it names none, or was published. For you only."""
        return self.charged.foreseen

    @cached_property
    def histogram(self) -> Histogram:
        """The published cells; of a release that executors wrote, they are read from its folder."""
        return self.load()

    @cached_property
    def certificate(self) -> dict[str, Any]:
        """The certificate as it is written: plain dictionaries and lists."""
        return self.certified.document()

    @property
    def main_file(self) -> str:
        """What to look at first in its folder: the table, or the folder of its files if there is none."""
        section = _section_of(self.policy)
        stem = mechanism_named(section.mechanism).table_stem(section)
        if stem is None:
            return next(name.partition("/")[0] for name in self.beside)
        return file_name(table_name(section.output, stem), self.void)

    @property
    def void(self) -> str | None:
        """Why nothing is promised; None if something is."""
        return self.certified.promise.void

    @property
    def empty(self) -> bool:
        """Whether nothing could be published. What executors wrote is not: they never leave out a record."""
        return self.folder is None and not self.histogram.total and not self.beside

    @property
    def table(self) -> pa.Table:
        """The published records as an Arrow table, in canonical order."""
        return self.histogram.expand(plain=True)

    def to_pandas(self) -> pd.DataFrame:
        """The published records as a pandas table."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The published records as a Polars table."""
        import polars as pl

        return pl.DataFrame(self.table)

    def __len__(self) -> int:
        return int(self.histogram.total)

    def __bool__(self) -> bool:
        return True  # a release without records is one, too

    def plot(self, by: str | Sequence[str] | None = None, path: str | Path | None = None) -> Picture:
        """How many people of the population there are by some columns, as estimated from this release, with intervals.

        Args:
            by: the columns, or the only one; the first that is published if not given.
            path: an SVG file to write.
        """
        from incrowd.releases.estimate import estimate

        names = [next(iter(self.policy.published))] if by is None else [by] if isinstance(by, str) else list(by)
        return estimate(self, names).plot(path)

    def save(self, folder: str | Path) -> Path:
        """Write the public files to a new folder and the publisher's own beside it, to `<folder>.internal`.

        Both are made under other names and renamed when complete, the internal one first. Nothing is ever overwritten.
        """
        if self.folder is not None:
            raise InputError(
                f"The release is in {self.folder} already, where the executors wrote it.",
                code="output-exists",
                remedy="Copy that folder and the internal one beside it.",
            )
        with self.charged.explained():
            return save(Path(folder), self)

    def shown(self) -> Shown:
        """What it promises and what it is good for."""
        columns = [(column.name, column.shown, str(column.occurring_of)) for column in self.verdict.columns]
        return Shown(
            f"Release by {self.certified.mechanism.name}",
            (*self.verdict.lines, self.void or self.certified.promise.in_words),
            (ShownTable(("column", "shown", "values that occur"), columns, words=2),),
            (
                *(f"For you only: {line}" for line in (self.insight.headline, *self.insight.lines) if line),
                *(f"{'For you only: ' if one.internal else ''}{one.text}" for one in in_brief(self.warnings)),
            ),
        )


def void_of(bits: BitsOrigin, *, rehearse: bool) -> str | None:
    """Why a release promises nothing, if so."""
    return REHEARSED if rehearse else None if bits.secure else VOID


class BitsOrigin(Protocol):
    """Where random bits came from, as far as a certificate says it."""

    @property
    def kind(self) -> str:
        """In words."""

    @property
    def secure(self) -> bool:
        """Whether nobody could predict them."""


def _section_of(policy: Policy) -> ReleaseSection:
    if policy.release is None:
        raise InternalError("a release was made without being asked for")
    return policy.release


def files_of(
    policy: Policy, published: Publication, folder: Path | None = None, void: str | None = None
) -> dict[str, Any]:
    """The table's file and those beside it, as a certificate names them: with digest and size, found as it is written.

    Without a folder to write them to, nothing of them is kept.
    """
    section = _section_of(policy)
    fills: dict[str, Callable[[BinaryIO], None]] = {
        name: partial(_pour, content) for name, content in published.beside.items()
    }
    mechanism = mechanism_named(section.mechanism)
    stem = mechanism.table_stem(section)
    if stem is not None:
        fills[table_name(section.output, stem)] = partial(
            write_table, published.table, section.output, notes=mechanism.table_notes, attributes=policy.attributes
        )
    names = {file_name(name, void): fill for name, fill in fills.items()}
    return {n: _measured(fill) if folder is None else _write(folder / n, fill) for n, fill in names.items()}


def certify(
    policy: Policy,
    statement: Statement[StatedPromise, StatedMechanism],
    columns: Sequence[Column],
    together: Together | None,
    bits: BitsOrigin,
    files: Mapping[str, Any],
    report: Callable[[str], bytes],
    void: str | None,
) -> Certified:
    """The certificate of a release: what its mechanism states, about these very files.

    Args:
        policy: what was asked for.
        statement: what the mechanism says.
        columns: those of the table, with their labels.
        together: what several copies promise together.
        bits: where the random bits came from.
        files: the table and those beside it, each with its digest and size.
        report: the public one, with the digest that it shows.
        void: why nothing is promised, if so.
    """
    name = file_name(REPORT, void)
    stated: dict[str, Any] = {
        "format": FORMAT,
        "title": policy.title,
        "promise": statement.promise.model_copy(update={"together": together, "void": void}).document(),
        "mechanism": statement.mechanism.document(),
        "assumptions": list(statement.assumptions),
        "columns": [{"name": c.name, "labels": list(c.labels)} for c in columns],
        "policy": policy.canonical(),
        "policy_digest": policy.digest(),
        "files": dict(files),
        "software": certificates.software(),
        "randomness": bits.kind,
        "created": dt.datetime.now(dt.UTC).date().isoformat(),
    }
    certificate = mechanism_named(statement.mechanism.name).certificate.read(signing.seal(stated))
    stated["files"][file_name(DESCRIPTION, void)] = _digested(described(certificate))
    digest = certificates.digest_without(name, stated)
    page = report(digest)
    stated["files"][name] = _digested(page)
    named = {of: StatedFile(**entry) for of, entry in stated["files"].items()}
    whole = certificate.model_copy(update={"files": named, "digest": signing.seal(stated)["digest"]})
    return Certified(whole, page, digest)


class Certified(NamedTuple):
    """A certificate, the public report that it names, and the digest that reports show."""

    certificate: AnyCertificate
    report: bytes
    digest: str


def _digested(content: bytes) -> dict[str, Any]:
    return {"sha256": signing.sha256(content), "bytes": len(content)}


def signed(certificate: AnyCertificate, key: Ed25519PrivateKey | None) -> AnyCertificate:
    """The certificate with a signature by this key, if there is one."""
    return certificate if key is None else certificate.read(signing.sign(certificate.document(), key))


class FileDigest(io.RawIOBase):
    """A file that is digested and measured as it is written, and kept only if there is another to keep it in."""

    def __init__(self, kept: BinaryIO | None = None) -> None:
        super().__init__()
        self._sha256 = hashlib.sha256()
        self._kept = kept
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        """Digest some more."""
        if self._kept is not None:
            self._kept.write(content)
        self._sha256.update(content)
        self.size += len(content)
        return len(content)

    def hexdigest(self) -> str:
        """The digest of what was written."""
        return self._sha256.hexdigest()


def measured(path: Path) -> dict[str, Any]:
    """The digest and size of a file."""
    return {"sha256": signing.file_sha256(path), "bytes": path.stat().st_size}


# --- files --------------------------------------------------------------------------------------------------------


def save(folder: Path, release: Release) -> Path:
    """Both folders, whole or not at all: first the internal one, then the public one, each by a rename."""
    with staged([folder]) as stage:
        (one,) = stage.releases
        with writing(one.folder):
            published = Publication(release.histogram, release.beside)
            written = files_of(release.policy, published, one.public, release.void)
            certified = release.certified.files
            if any(name not in certified or certified[name].document() != found for name, found in written.items()):
                raise InternalError("the table written is not the table certified")
            write_around(release, one.public, one.internal, internal_folder(one.folder))
        release.charged.publish(stage, release.digest)
    return one.folder


def write_around(release: Release, public: Path, internal: Path, at: Path) -> None:
    """All files but the table and those beside it; the internal folder will be found `at` another place."""
    text = release.policy.relocated(at).to_yaml()
    note = mechanism_named(release.certified.mechanism.name).policy_note
    certificate = signing.to_bytes(release.certificate)
    for folder, files in (
        (internal, {POLICY: f"{note}{text}".encode(), **release.internal}),
        (public, {REPORT: release.report, DESCRIPTION: described(release.certified), CERTIFICATE: certificate}),
    ):
        for name, content in files.items():
            _write(folder / file_name(name, release.void), partial(_pour, content))


def _pour(content: bytes, file: BinaryIO) -> None:
    file.write(content)


def _write(path: Path, fill: Callable[[BinaryIO], object]) -> dict[str, Any]:
    """A new file, its digest and its size."""
    path.parent.mkdir(exist_ok=True)
    with path.open("xb") as file:
        written = _measured(fill, file)
        file.flush()
        os.fsync(file.fileno())
    return written


def _measured(fill: Callable[[BinaryIO], object], kept: BinaryIO | None = None) -> dict[str, Any]:
    sink = FileDigest(kept)
    fill(sink)  # type: ignore[arg-type]
    return {"sha256": sink.hexdigest(), "bytes": sink.size}
