"""A release: the published table with its certificate, in memory and on disk."""

from __future__ import annotations

import datetime as dt
import hashlib
import html
import io
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from incrowd.errors import InputError, InternalError
from incrowd.files import cannot_write
from incrowd.histogram import Histogram
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases import certificate as certificates
from incrowd.releases.kinds import Made, kind_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

CERTIFICATE, REPORT, POLICY = "certificate.json", "report.html", "policy.yaml"
VOID = "Drawn from predictable bits, for tests: this promises nothing."
BY_RESPONDENTS = "the generator of each respondent's own device"
"""Where the bits of records came from that their owners have randomised."""


@dataclass(frozen=True, eq=False)
class Release:
    """A table that can be published, and the proof of what it promises.

    Attributes:
        histogram: the published cells.
        certificate: what is promised, ready to be written.
        policy: the policy as it was carried out, with every level fixed: for review, and for next year's table.
    """

    histogram: Histogram
    certificate: Mapping[str, Any]
    policy: Policy
    report: bytes = field(repr=False)
    internal: Mapping[str, bytes] = field(repr=False)
    settle: Callable[[], None] | None = field(default=None, repr=False)

    @property
    def table(self) -> pa.Table:
        """The published records as an Arrow table, in canonical order."""
        return self.histogram.expand(plain=True)

    def to_pandas(self) -> pd.DataFrame:
        """The published records as a pandas table."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    def save(self, folder: str | Path) -> Path:
        """Write the public files to a new folder and the publisher's own beside it, to `<folder>.internal`.

        Both are made under other names and renamed when complete, the internal one first. Nothing is ever overwritten.
        """
        written = save(Path(folder), self)
        if self.settle is not None:
            self.settle()  # the ledger now knows it as published
        return written

    def _repr_html_(self) -> str:
        promise = self.certificate["promise"]
        rows = "".join(
            f"<tr><td>{html.escape(str(name))}</td><td>{level}</td></tr>"
            for name, level in self.certificate["mechanism"]["levels"].items()
        )
        return (
            f"<div><b>Release of {self.histogram.total:,} records in {len(self.histogram):,} crowds</b>"
            f"<p>{html.escape(promise['in_words'])}</p>"
            f"<table><tr><th>column</th><th>level</th></tr>{rows}</table></div>"
        )


FIELDS = frozenset(
    {
        *("format", "title", "promise", "mechanism", "assumptions", "columns", "policy", "policy_digest", "files"),
        *("software", "randomness", "created", "digest"),
    }
)
"""Everything that a certificate has, but for its signature: what else stands there, nothing promises or covers."""


def certify(policy: Policy, made: Made, together: Any, source: RandomSource, report: bytes) -> dict[str, Any]:
    """The certificate of a release: what its mechanism states, about these very files."""
    if policy.release is None:
        raise InternalError("a release was made without being asked for")
    output = policy.release.output
    return certificates.seal(
        {
            "format": certificates.FORMAT,
            "title": policy.title,
            "promise": {**made.statement.promise, "together": together, "void": None if source.secure else VOID},
            "mechanism": dict(made.statement.mechanism),
            "assumptions": list(made.statement.assumptions),
            "columns": [{"name": c.name, "labels": list(c.labels)} for c in made.published.columns],
            "policy": policy.canonical(),
            "policy_digest": policy.digest(),
            "files": {
                table_name(output): table_digest(made.published, output),
                REPORT: {"sha256": certificates.sha256(report), "bytes": len(report)},
            },
            "software": certificates.software(),
            "randomness": source.kind,
            "created": dt.datetime.now(dt.UTC).date().isoformat(),
        }
    )


def table_name(output: str) -> str:
    """What the table's file is called."""
    return f"release.{output}"


def write_table(published: Histogram, output: str, sink: BinaryIO) -> None:
    """The records in canonical order, whatever order the input had, a batch at a time."""
    import pyarrow as pa

    schema = pa.schema([(name, pa.string()) for name in published.names])
    if output == "csv":
        from pyarrow import csv

        writer: Any = csv.CSVWriter(sink, schema)
    else:
        import pyarrow.parquet as pq

        writer = pq.ParquetWriter(sink, schema, compression="zstd")
    with writer:
        for batch in published.batches(plain=True):
            writer.write_batch(batch)


class _Digest(io.RawIOBase):
    """A file that is only digested and measured."""

    def __init__(self) -> None:
        super().__init__()
        self.sha256 = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.sha256.update(content)
        self.size += len(content)
        return len(content)


def table_digest(published: Histogram, output: str) -> dict[str, Any]:
    """The digest and size of the table's file, found without keeping it."""
    sink = _Digest()
    write_table(published, output, sink)  # type: ignore[arg-type]
    return {"sha256": sink.sha256.hexdigest(), "bytes": sink.size}


# --- folders ------------------------------------------------------------------------------------------------------


def internal_folder(folder: Path) -> Path:
    """Where the publisher's own files go: beside the public folder, never inside it."""
    return folder.with_name(f"{folder.name}.internal")


def require_free(folder: Path) -> None:
    """A folder that a release can be written to, or a clear error: before any budget is spent."""
    for target in (folder, internal_folder(folder)):
        if target.exists():
            raise InputError(
                f"{target} exists already.",
                code="output-exists",
                remedy="A release is never overwritten; choose another folder.",
            )
    if not folder.parent.is_dir():
        raise InputError(
            f"There is no folder {folder.parent}.", code="output-unwritable", remedy="Make it, or choose another."
        )
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        raise InputError(
            f"The folder {folder.parent} cannot be written to.",
            code="output-unwritable",
            remedy="Choose a folder that may be written to.",
        )


def save(folder: Path, release: Release) -> Path:
    """Both folders, whole or not at all: first the internal one, then the public one, each by a rename."""
    folder = folder.absolute()
    require_free(folder)
    mark = secrets.token_hex(4)
    public, internal = (t.with_name(f".{t.name}.{mark}.part") for t in (folder, internal_folder(folder)))
    try:
        for temporary in (internal, public):
            temporary.mkdir(mode=0o700)
        text = release.policy.relocated(internal_folder(folder)).to_yaml()
        note = kind_of(release.certificate["mechanism"]["name"]).POLICY_NOTE
        _write(internal / POLICY, partial(_pour, f"{note}{text}".encode()))
        for name, content in release.internal.items():
            _write(internal / name, partial(_pour, content))
        (table,) = (name for name in release.certificate["files"] if name != REPORT)
        output = table.rpartition(".")[2]
        _write(public / table, lambda file: write_table(release.histogram, output, file))
        if certificates.file_sha256(public / table) != release.certificate["files"][table]["sha256"]:
            raise InternalError("the table written is not the table certified")
        _write(public / REPORT, partial(_pour, release.report))
        _write(public / CERTIFICATE, partial(_pour, certificates.to_bytes(release.certificate)))
        public.chmod(0o755)  # meant to be passed on; the internal folder stays the owner's
        internal.rename(internal_folder(folder))
        public.rename(folder)
    except OSError as error:
        raise cannot_write(folder, error) from None
    finally:
        for temporary in (internal, public):
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _pour(content: bytes, file: BinaryIO) -> None:
    file.write(content)


def _write(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    with path.open("xb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())
