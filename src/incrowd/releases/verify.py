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
from incrowd.randomness import RandomSource
from incrowd.releases import certificate as certificates
from incrowd.releases.kinds import Check, Kind, kind_of, published_attributes, section_of
from incrowd.releases.release import BY_RESPONDENTS, CERTIFICATE, FIELDS, REPORT, table_digest, table_name

if TYPE_CHECKING:
    import pyarrow as pa

VOID = "the promise is not void"

_SIGNATURE = {"algorithm", "public_key", "value"}
_LARGEST_CERTIFICATE = 1 << 28
_HOSTILE = (KeyError, TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError, OSError)


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
    written, certificate = read_certificate(place)
    checks: list[Check] = []
    claimed: tuple[str, ...] = ()
    try:
        checks.append(_sealed(written, certificate))
        checks.append(_closed(certificate))
        if public_key is not None or "signature" in certificate:
            signed = certificates.signature_is_valid(certificate, public_key)
            checks.append(Check("the signature", signed, "it is missing or not by this key"))
        checks.extend(_promise(certificate))
        files = list(_files(place, certificate))
        checks.extend(files)
        if all(check.holds for check in files):
            checks.extend(_table(place, certificate))
        claimed = (*_kind(certificate).CLAIMED, *(str(text) for text in certificate["assumptions"]))
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
    _, certificate = read_certificate(Path(folder))
    return certificate, _histogram(_read_table(Path(folder), certificate), certificate)


def read_certificate(folder: Path) -> tuple[bytes, dict[str, Any]]:
    """The certificate in a folder, as it is written and as it is read; nothing in it is checked yet."""
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


def _closed(certificate: Mapping[str, Any]) -> Check:
    """Only the fields of a certificate: others could tell of the data what no promise covers."""
    closed = (
        set(certificate) - {"signature"} == FIELDS
        and set(certificate.get("signature", _SIGNATURE)) == _SIGNATURE
        and all(set(column) == {"name", "labels"} for column in certificate["columns"])
        and all(set(file) == {"sha256", "bytes"} for file in certificate["files"].values())
    )
    return Check("the certificate has the fields of a certificate", closed, "it has others, or not all of them")


def _promise(certificate: Mapping[str, Any]) -> Iterator[Check]:
    """The policy is the one digested, and the promise follows from it."""
    yield Check(
        "the policy is the one digested",
        certificates.sha256(certificates.canonical(certificate["policy"])) == certificate["policy_digest"],
        "its digest differs",
    )
    titled = certificate["title"] == certificate["policy"]["title"]
    yield Check("the title is the policy's", titled, "it is another one")
    void = certificate["promise"]["void"]
    by_respondents = certificate["mechanism"].get("randomised_by") == "respondents"
    secure = certificate["randomness"] == (BY_RESPONDENTS if by_respondents else RandomSource().kind)
    yield Check(VOID, void is None and secure, "it was drawn from predictable bits")
    asked = certificate["policy"]["release"]["mechanism"] == certificate["mechanism"]["name"]
    yield Check("the mechanism is the policy's", asked, "it is another one")
    if asked:
        yield from _kind(certificate).check_promise(certificate)


def _kind(certificate: Mapping[str, Any]) -> Kind:
    return kind_of(certificate["mechanism"]["name"])


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
    """Only declared values, what the mechanism promises, and nothing in the order of rows or the file's own notes."""
    columns = [column["name"] for column in certificate["columns"]]
    listed = published_attributes(certificate)
    yield Check("the columns are the policy's", sorted(columns) == sorted(listed), "they differ")
    try:
        table = _read_table(folder, certificate)
        histogram = _histogram(table, certificate)
    except (IncrowdError, *_HOSTILE):
        yield Check("the table holds only declared values", holds=False, detail="it does not, or cannot be read")
        return
    yield Check("the table holds only declared values", holds=True)
    yield from _kind(certificate).check_table(certificate, histogram)
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
    return table_name(section_of(certificate).output)


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
