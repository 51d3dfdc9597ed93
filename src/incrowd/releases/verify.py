"""Checking a release against its certificate, with nothing but the published folder.

What can be checked is checked; what cannot (how the sample was drawn, that the table is what the publisher says) is
listed as claimed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.errors import IncrowdError, InputError
from incrowd.guarantees import crowd
from incrowd.histogram import Histogram
from incrowd.releases import certificate as certificates
from incrowd.releases.release import CERTIFICATE

CLAIMED = (
    "that the table published was drawn from the publisher's data as described",
    "that each record was sampled independently with probability beta, from unpredictable bits",
    "that chosen levels were chosen on the full table with no more than selection_epsilon",
    "that domains and hierarchies were declared without looking at the table",
)


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what, whether it holds, and if not, why."""

    name: str
    holds: bool
    detail: str = ""


@dataclass(frozen=True)
class Verification:
    """What was checked, what must be taken on trust, and whether every check holds."""

    checks: tuple[Check, ...]
    claimed: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)


def read_certificate(folder: Path) -> dict[str, Any]:
    """The certificate of a published folder."""
    path = folder / CERTIFICATE
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise _unreadable(path, error.strerror or type(error).__name__) from None
    except ValueError:
        raise _unreadable(path, "it is not JSON") from None
    if not isinstance(content, dict) or content.get("format") != certificates.FORMAT:
        raise _unreadable(path, "it is not a certificate that this version of incrowd knows")
    return content


def read_release(folder: Path, certificate: Mapping[str, Any]) -> Histogram:
    """The published table as a histogram over the columns and labels that the certificate names."""
    from pyarrow import csv

    names = [name for name in certificate["files"] if name.startswith("release.")]
    path = folder / names[0]
    labels = {column["name"]: column["labels"] for column in certificate["columns"]}
    try:
        if path.suffix == ".csv":
            options = csv.ConvertOptions(
                column_types=dict.fromkeys(labels, "string"),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            )
            table = csv.read_csv(path, convert_options=options)
        else:
            import pyarrow.parquet as pq

            table = pq.read_table(path)
    except (OSError, ValueError) as error:  # Arrow's errors are ValueErrors
        raise _unreadable(path, type(error).__name__) from None
    if table.column_names != list(labels):
        raise _unreadable(path, "its columns are not those of the certificate")
    return Histogram.from_arrow(table, labels=labels)


def verify(folder: str | Path, public_key: str | Path | None = None) -> Verification:
    """Every check that the folder allows.

    Args:
        folder: the published folder.
        public_key: a PEM file; if given, the certificate must be signed by that key.
    """
    place = Path(folder)
    certificate = read_certificate(place)
    checks = [Check("the certificate's own digest", certificates.is_sealed(certificate), "it was changed")]
    if public_key is not None or "signature" in certificate:
        signed = certificates.signature_is_valid(certificate, public_key)
        checks.append(Check("the signature", signed, "it is missing or not by this key"))
    try:
        checks.extend(_promise(certificate))
        checks.extend(_files(place, certificate))
        checks.extend(_table(place, certificate))
    except (KeyError, TypeError, AttributeError, IndexError):
        checks.append(Check("the certificate is complete", holds=False, detail="a field is missing or malformed"))
    claimed = (*CLAIMED, *certificate.get("assumptions", ()))
    return Verification(tuple(c if not c.holds else Check(c.name, holds=True) for c in checks), claimed)


def _promise(certificate: Mapping[str, Any]) -> Iterator[Check]:
    """The arithmetic of the promise, and that it is the policy's."""
    promise, mechanism, policy = certificate["promise"], certificate["mechanism"], certificate["policy"]
    yield Check(
        "the policy is the one digested",
        certificates.sha256(certificates.canonical(policy)) == certificate["policy_digest"],
        "its digest differs",
    )
    release = policy["release"]
    stated = ("epsilon", "delta")
    same = all(promise[key] == release[key] for key in stated)
    same &= mechanism["selection_epsilon"] == release["selection_epsilon"]
    same &= all(release[key] in (None, mechanism[key]) for key in ("k", "beta"))
    same &= mechanism["already_sampled"] == release["already_sampled"]
    yield Check("the promise is the policy's", same, "a parameter differs from the policy's")
    fixed = {n: a["level"] for n, a in policy["attributes"].items() if a["role"] != "drop" and a["level"] is not None}
    levels = mechanism["levels"]
    kept = all(levels.get(name) == level for name, level in fixed.items())
    kept &= set(levels) == {n for n, a in policy["attributes"].items() if a["role"] != "drop"}
    yield Check("the levels are the policy's, where it fixes them", kept, "a level differs from the policy's")
    yield Check("the promise is not void", promise["void"] is None, str(promise["void"]))
    try:
        left = float(np.nextafter(promise["epsilon"] - mechanism["selection_epsilon"], 0.0))
        if mechanism["selection_epsilon"] == 0:
            left = promise["epsilon"]
        delta = crowd.exact_delta(mechanism["k"], mechanism["beta"], left)
    except IncrowdError as error:
        yield Check("epsilon and delta follow from k and beta", holds=False, detail=error.message)
        return
    yield Check(
        "epsilon and delta follow from k and beta",
        delta <= promise["delta"],
        f"they give delta = {delta:.3g}, more than the {promise['delta']:g} promised",
    )


def _files(folder: Path, certificate: Mapping[str, Any]) -> Iterator[Check]:
    for name, stated in certificate["files"].items():
        path = folder / name
        if path.name != name or not path.is_file():
            yield Check(f"{name} is the file certified", holds=False, detail="it is missing")
            continue
        same = certificates.file_sha256(path) == stated["sha256"]
        yield Check(f"{name} is the file certified", same, "its digest differs")
    extra = sorted(p.name for p in folder.iterdir() if p.name not in {*certificate["files"], CERTIFICATE})
    yield Check("nothing else is in the folder", not extra, f"{len(extra)} other files")


def _table(folder: Path, certificate: Mapping[str, Any]) -> Iterator[Check]:
    k = certificate["mechanism"]["k"]
    columns = [column["name"] for column in certificate["columns"]]
    policy = certificate["policy"]["attributes"]
    listed = [name for name, attribute in policy.items() if attribute["role"] != "drop"]
    yield Check("the columns are the policy's", sorted(columns) == sorted(listed), "they differ")
    try:
        table = read_release(folder, certificate)
    except InputError as error:
        yield Check("the table holds only declared values", holds=False, detail=error.message)
        return
    yield Check("the table holds only declared values", holds=True)
    small = int((table.counts < k).sum())
    yield Check(f"every crowd has k = {k} records or more", small == 0, f"{small} crowds are smaller")


def _unreadable(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: {why}.",
        code="release-unreadable",
        remedy="Give the folder that `incrowd release` wrote, complete and unchanged.",
    )
