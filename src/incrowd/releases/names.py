"""What the files of a release are called."""

from __future__ import annotations

CERTIFICATE, REPORT, POLICY, DESCRIPTION = "certificate.json", "report.html", "policy.yaml", "datapackage.json"
REHEARSED = (
    "A rehearsal: it was charged to no ledger, and parts of its policy may have been read off the table. It promises "
    "nothing and is not to be published."
)
"""Why a rehearsal is void, as its certificate says."""


def file_name(name: str, void: str | None) -> str:
    """What a file of a release is called: those of a rehearsal say that they are void."""
    return void_name(name) if void == REHEARSED else name


def void_name(name: str) -> str:
    """The name of a file that says that it is void."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}.void{dot}{suffix}"
