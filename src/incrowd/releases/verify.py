"""Checking a release against its certificate, with nothing but the published folder.

What can be checked is checked; what cannot (how the sample was drawn, that the table is what the publisher says) is
listed as claimed. A folder may come from anyone: whatever is in it, the answer is a verdict, never a crash, and no file
outside the folder is opened. The table is read a batch at a time, and counted only by columns that some check looks at.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from incrowd._bits import DerivedBits
from incrowd.errors import IncrowdError, InputError
from incrowd.histogram import Histogram
from incrowd.randomness import RandomSource
from incrowd.releases import certificate as certificates
from incrowd.releases.enclosing import enclosed
from incrowd.releases.kinds import Check, Kind, all_columns, kind_of, published_attributes, section_of
from incrowd.releases.reading import Published, read_table
from incrowd.releases.release import (
    BY_RESPONDENTS,
    CERTIFICATE,
    FIELDS,
    RECORDS_PER_PART,
    REPORT,
    part_names,
    table_name,
)

VOID = "the promise is not void"

_SIGNATURE = {"algorithm", "public_key", "value"}
_LARGEST_CERTIFICATE = 1 << 28
_HOSTILE = (
    *(KeyError, TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError, OSError),
    NotImplementedError,  # what Arrow says of files that it cannot read
)

Columns = Callable[[Mapping[str, Any]], Iterable[str]]
"""Which columns somebody wants the table to be counted by, given a certificate that may be anything."""


@dataclass(frozen=True)
class Verification:
    """What was checked, what must be taken on trust, and whether every check holds."""

    checks: tuple[Check, ...]
    claimed: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)


def verify(folder: str | Path, public_key: str | Path | None = None, *, rigorous: bool = False) -> Verification:
    """Every check that the folder allows.

    Args:
        folder: the published folder.
        public_key: a PEM file; if given, the certificate must be signed by that key.
        rigorous: compare the numbers of the promise with enclosures by ball arithmetic, too.
    """
    return _examine(Path(folder), public_key, rigorous=rigorous)[0]


def read_release(folder: str | Path, columns: Columns | None = None) -> tuple[Mapping[str, Any], Histogram]:
    """The certificate and the table of a folder that passes every check (a void promise apart).

    Args:
        folder: the published one.
        columns: those that the table is to be counted by at least; all if not given.

    Raises:
        InputError: it does not.
    """
    found, certificate, table = _examine(Path(folder), None, columns or all_columns)
    failed = [check for check in found.checks if not check.holds and check.name != VOID]
    if failed or table is None:
        why = f": {failed[0].name} does not hold" if failed else ""
        raise _unreadable(Path(folder), f"it is not a valid release{why}")
    return certificate, table.histogram


def _examine(
    folder: Path, public_key: str | Path | None, columns: Columns = lambda _: (), *, rigorous: bool = False
) -> tuple[Verification, dict[str, Any], Published | None]:
    """Every check, and what they were made of."""
    written, certificate = read_certificate(folder)
    checks: list[Check] = []
    claimed: tuple[str, ...] = ()
    table: Published | None = None
    try:
        checks.append(_sealed(written, certificate))
        checks.append(_closed(certificate))
        if public_key is not None or "signature" in certificate:
            signed = certificates.signature_is_valid(certificate, public_key)
            checks.append(Check("the signature", signed, "it is missing or not by this key"))
        checks.extend(_promise(certificate))
        if rigorous and all(check.holds or check.name == VOID for check in checks):
            checks.extend(enclosed(certificate))
        files = list(_files(folder, certificate))
        checks.extend(files)
        if all(check.holds for check in files):
            wanted = {*_kind(certificate).columns_needed(certificate), *columns(certificate)}
            table = _read(folder, certificate, wanted)
            checks.extend(_table(certificate, table))
        claimed = (*_kind(certificate).CLAIMED, *(str(text) for text in certificate["assumptions"]))
    except (IncrowdError, *_HOSTILE) as error:
        if getattr(error, "code", None) == "key-unreadable":
            raise  # the caller's key, not the folder
        checks.append(Check("the certificate is complete", holds=False, detail="a field is missing or malformed"))
    found = Verification(tuple(Check(c.name, holds=True) if c.holds else c for c in checks), claimed)
    return found, certificate, table


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
    by_curator = DerivedBits.kind if _in_parts(certificate) else RandomSource().kind
    secure = certificate["randomness"] == (BY_RESPONDENTS if by_respondents else by_curator)
    yield Check(VOID, void is None and secure, "it was drawn from predictable bits")
    asked = certificate["policy"]["release"]["mechanism"] == certificate["mechanism"]["name"]
    yield Check("the mechanism is the policy's", asked, "it is another one")
    if asked:
        yield from _kind(certificate).check_promise(certificate)


def _kind(certificate: Mapping[str, Any]) -> Kind:
    return kind_of(certificate["mechanism"]["name"])


def _table_files(certificate: Mapping[str, Any]) -> list[str]:
    """The table's files, in order, as far as a release can have such; the names of others are not looked at."""
    if _in_parts(certificate):
        return part_names(max(1, len(set(certificate["files"]) - {REPORT})))
    return [table_name(section_of(certificate).output)]


def _in_parts(certificate: Mapping[str, Any]) -> bool:
    return section_of(certificate).output == "parquet" and table_name("parquet") not in certificate["files"]


def _files(folder: Path, certificate: Mapping[str, Any]) -> Iterator[Check]:
    """Exactly the files that a release has: ordinary ones, with the digests and sizes stated."""
    table, stated = _table_files(certificate), certificate["files"]
    wanted = {*table, REPORT}
    yield Check("the files are those of a release", set(stated) == wanted, "others are listed")
    tops = {Path(name).parts[0] for name in wanted}
    odd = [name for name in tops if name not in wanted and not _is(folder / name, stat.S_ISDIR)]
    if odd:
        yield Check(f"{odd[0]} is a folder", holds=False, detail="it is missing or something else")
        return
    for name in sorted(wanted & set(stated)):
        path = folder / name
        if not _is(path, stat.S_ISREG):
            yield Check(f"{name} is the file certified", holds=False, detail="it is missing or not an ordinary file")
            continue
        same = path.stat().st_size == stated[name]["bytes"] and (
            certificates.file_sha256(path) == stated[name]["sha256"]
        )
        yield Check(f"{name} is the file certified", same, "its digest or size differs")
    extra = {p.name for p in folder.iterdir()} - {*tops, CERTIFICATE}
    extra |= {p.name for top in tops - wanted for p in (folder / top).iterdir() if f"{top}/{p.name}" not in wanted}
    yield Check("nothing else is in the folder", not extra, f"{len(extra)} other files")


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether something of this kind is there itself, and no link to it."""
    return path.exists() and kind(path.lstat().st_mode)


def _read(folder: Path, certificate: Mapping[str, Any], wanted: Collection[str]) -> Published | None:
    """The table, unless it cannot be read or holds something that is not declared."""
    labels = {column["name"]: column["labels"] for column in certificate["columns"]}
    try:
        return read_table([folder / name for name in _table_files(certificate)], labels, wanted)
    except (IncrowdError, *_HOSTILE):
        return None


def _table(certificate: Mapping[str, Any], table: Published | None) -> Iterator[Check]:
    """Only declared values, what the mechanism promises, and nothing in the order of rows or the file's own notes."""
    listed = published_attributes(certificate)
    same = sorted(all_columns(certificate)) == sorted(listed)
    yield Check("the columns are the policy's", same, "they differ")
    declared = "the table holds only declared values"
    yield Check(declared, table is not None, "it does not, or cannot be read")
    if table is None:
        return
    yield from _kind(certificate).check_table(certificate, table.histogram)
    *full, last = table.records
    cut = not _in_parts(certificate) or (set(full) <= {RECORDS_PER_PART} and 0 < last <= RECORDS_PER_PART)
    yield Check(
        "rows come in canonical order, and the file's notes say nothing else",
        table.canonical and cut,
        "its rows are in another order, it holds notes of its own, or it is cut into parts elsewhere",
    )


def _unreadable(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: {why}.",
        code="release-unreadable",
        remedy="Give the folder that `incrowd release` wrote, complete and unchanged.",
    )
