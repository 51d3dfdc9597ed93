"""Checking a release against its certificate, with nothing but the published folder.

What can be checked is checked; what cannot (how the sample was drawn, that the table is what the publisher says) is
listed as claimed. A folder may come from anyone: whatever is in it, the answer is a verdict, never a crash, and no file
outside the folder is opened.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from incrowd.errors import IncrowdError, InputError
from incrowd.histogram import Histogram
from incrowd.mechanisms.sampled_crowd import CrowdSettings
from incrowd.policy import Attribute, SampledCrowd
from incrowd.randomness import RandomSource
from incrowd.releases import certificate as certificates
from incrowd.releases.release import (
    CERTIFICATE,
    REPORT,
    assumptions,
    mechanism_of,
    promise_of,
    table_digest,
    table_name,
)

if TYPE_CHECKING:
    import pyarrow as pa

CLAIMED = (
    "that the table published was drawn from the publisher's data as described",
    "that each record was sampled independently with probability beta, from unpredictable bits",
    "that chosen levels were chosen on the full table with no more than selection_epsilon",
    "that the labels of the columns are those of the policy's hierarchies at the stated levels",
)
VOID = "the promise is not void"

_LARGEST_CERTIFICATE = 1 << 28
_HOSTILE = (KeyError, TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError, OSError)


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


def verify(folder: str | Path, public_key: str | Path | None = None) -> Verification:
    """Every check that the folder allows.

    Args:
        folder: the published folder.
        public_key: a PEM file; if given, the certificate must be signed by that key.
    """
    place = Path(folder)
    written, certificate = _read_certificate(place)
    checks: list[Check] = []
    claimed: tuple[str, ...] = CLAIMED
    try:
        checks.append(_sealed(written, certificate))
        if public_key is not None or "signature" in certificate:
            signed = certificates.signature_is_valid(certificate, public_key)
            checks.append(Check("the signature", signed, "it is missing or not by this key"))
        checks.extend(_promise(certificate))
        files = list(_files(place, certificate))
        checks.extend(files)
        if all(check.holds for check in files):
            checks.extend(_table(place, certificate))
        claimed += tuple(str(text) for text in certificate["assumptions"])
    except (IncrowdError, *_HOSTILE) as error:
        if getattr(error, "code", None) == "key-unreadable":
            raise  # the caller's key, not the folder
        checks.append(Check("the certificate is complete", holds=False, detail="a field is missing or malformed"))
    return Verification(tuple(Check(c.name, holds=True) if c.holds else c for c in checks), claimed)


def read_release(folder: str | Path) -> tuple[Mapping[str, Any], Histogram]:
    """The certificate and the table of a folder that passes every check (a void promise apart).

    Raises:
        InputError: it does not.
    """
    found = verify(folder)
    failed = [check for check in found.checks if not check.holds and check.name != VOID]
    if failed:
        raise _unreadable(Path(folder), f"it is not a valid release: {failed[0].name} does not hold")
    _, certificate = _read_certificate(Path(folder))
    return certificate, _histogram(_read_table(Path(folder), certificate), certificate)


def _read_certificate(folder: Path) -> tuple[bytes, dict[str, Any]]:
    path = folder / CERTIFICATE
    try:
        if not stat.S_ISREG(path.lstat().st_mode) or path.stat().st_size > _LARGEST_CERTIFICATE:
            raise _unreadable(path, "it is not an ordinary file of a certificate's size")
        written = path.read_bytes()
        content = json.loads(written, parse_constant=_refuse)
    except OSError as error:
        raise _unreadable(path, error.strerror or type(error).__name__) from None
    except (ValueError, RecursionError):
        raise _unreadable(path, "it is not JSON") from None
    if not isinstance(content, dict) or content.get("format") != certificates.FORMAT:
        raise _unreadable(path, "it is not a certificate that this version of incrowd knows")
    return written, content


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _sealed(written: bytes, certificate: Mapping[str, Any]) -> Check:
    """Byte for byte the canonical form: nothing said twice, nothing between the lines."""
    whole = written == certificates.to_bytes(certificate) and certificates.is_sealed(certificate)
    return Check("the certificate's own digest", whole, "it was changed")


def _promise(certificate: Mapping[str, Any]) -> Iterator[Check]:
    """The promise is the policy's, and follows from k and beta."""
    mechanism, policy = certificate["mechanism"], certificate["policy"]
    yield Check(
        "the policy is the one digested",
        certificates.sha256(certificates.canonical(policy)) == certificate["policy_digest"],
        "its digest differs",
    )
    release = SampledCrowd.model_validate(policy["release"])
    attributes = {
        name: Attribute.model_construct(hierarchy=a["hierarchy"], level=a["level"], role=a["role"])
        for name, a in policy["attributes"].items()
        if a["role"] != "drop"
    }
    settings = CrowdSettings(
        release.epsilon,
        release.delta,
        release.selection_epsilon,
        mechanism["k"],
        mechanism["beta"],
        release.already_sampled,
    )
    given = all(getattr(release, key) in (None, mechanism[key]) for key in ("k", "beta"))
    sound = not release.unfit(attributes)
    yield Check("the policy's parameters go together", given and sound, "they contradict each other")
    kept = settings.kept
    yield Check(
        "epsilon and delta follow from k and beta",
        kept,
        f"they give delta = {settings.exact_delta:.3g}, more than the {settings.delta:g} promised",
    )
    chosen = [name for name, a in attributes.items() if a.level is None and release.selection_epsilon]
    levels = mechanism["levels"]
    same = set(levels) == set(attributes) and sorted(mechanism["levels_chosen"]) == sorted(chosen)
    for name, attribute in attributes.items():
        fixed = 0 if attribute.level is None else attribute.level
        same = same and (name in chosen or levels[name] == fixed)
    yield Check("the levels are the policy's, where it fixes them", same, "a level differs from the policy's")
    void = certificate["promise"]["void"]
    secure = certificate["randomness"] == RandomSource().kind
    yield Check(VOID, void is None and secure, "it was drawn from predictable bits")
    copies = certificate["promise"]["together"]["copies"] if certificate["promise"]["together"] else 1
    expected = promise_of(settings, chosen=bool(chosen), void=void, copies=copies)
    stated = certificate["promise"] == expected and certificate["assumptions"] == assumptions(settings)
    stated = stated and mechanism == mechanism_of(settings, levels, mechanism["levels_chosen"])
    yield Check("the promise says what the parameters mean", stated, "its words or numbers are others")


def _files(folder: Path, certificate: Mapping[str, Any]) -> Iterator[Check]:
    """Exactly the files that a release has: ordinary ones, with the digests and sizes stated."""
    wanted = {_table_name(certificate), REPORT}
    stated = certificate["files"]
    yield Check("the files are those of a release", set(stated) == wanted, "others are listed")
    for name in sorted(wanted & set(stated)):
        path = folder / name
        if not path.exists() or not stat.S_ISREG(path.lstat().st_mode):
            yield Check(f"{name} is the file certified", holds=False, detail="it is missing or not an ordinary file")
            continue
        same = path.stat().st_size == stated[name]["bytes"] and (
            certificates.file_sha256(path) == stated[name]["sha256"]
        )
        yield Check(f"{name} is the file certified", same, "its digest or size differs")
    extra = [p for p in folder.iterdir() if p.name not in {*wanted, CERTIFICATE}]
    yield Check("nothing else is in the folder", not extra, f"{len(extra)} other files")


def _table(folder: Path, certificate: Mapping[str, Any]) -> Iterator[Check]:
    """Only declared values, only crowds of k, and nothing in the order of rows or the file's own notes."""
    k, policy = certificate["mechanism"]["k"], certificate["policy"]["attributes"]
    columns = [column["name"] for column in certificate["columns"]]
    listed = [name for name, attribute in policy.items() if attribute["role"] != "drop"]
    yield Check("the columns are the policy's", sorted(columns) == sorted(listed), "they differ")
    try:
        table = _read_table(folder, certificate)
        histogram = _histogram(table, certificate)
    except (IncrowdError, *_HOSTILE):
        yield Check("the table holds only declared values", holds=False, detail="it does not, or cannot be read")
        return
    yield Check("the table holds only declared values", holds=True)
    small = int((histogram.counts < k).sum())
    yield Check(f"every crowd has k = {k} records or more", small == 0, f"{small} crowds are smaller")
    yield Check(
        "rows come in canonical order, and the file says nothing else",
        _is_canonical(folder / _table_name(certificate), table, histogram),
        "its rows are in another order, or it holds notes of its own",
    )


def _is_canonical(path: Path, table: pa.Table, histogram: Histogram) -> bool:
    if path.suffix == ".csv":
        return bool(table_digest(histogram, "csv")["sha256"] == certificates.file_sha256(path))
    import pyarrow.parquet as pq

    # Other versions of Arrow write other bytes, so what is compared is all that a file can say.
    notes = set(pq.read_metadata(path).metadata or {}) - {b"ARROW:schema"}
    return not notes and bool(table.equals(histogram.expand(plain=True), check_metadata=True))


def _table_name(certificate: Mapping[str, Any]) -> str:
    return table_name(SampledCrowd.model_validate(certificate["policy"]["release"]).output)


def _read_table(folder: Path, certificate: Mapping[str, Any]) -> pa.Table:
    path = folder / _table_name(certificate)
    names = [column["name"] for column in certificate["columns"]]
    if path.suffix == ".csv":
        import pyarrow as pa
        from pyarrow import csv

        table = csv.read_csv(
            path,
            # A record with nothing but missing values is an empty line, and a record all the same.
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
    else:
        import pyarrow.parquet as pq

        table = pq.ParquetFile(path).read()
    if table.column_names != names:
        raise _unreadable(path, "its columns are not those of the certificate")
    return table


def _histogram(table: pa.Table, certificate: Mapping[str, Any]) -> Histogram:
    labels = {column["name"]: column["labels"] for column in certificate["columns"]}
    return Histogram.from_arrow(table, labels=labels)


def _unreadable(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: {why}.",
        code="release-unreadable",
        remedy="Give the folder that `incrowd release` wrote, complete and unchanged.",
    )
