"""Checking a release against its certificate, with nothing but the published folder.

What can be checked is checked; what cannot (how the sample was drawn, that the table is what the publisher says) is
listed as claimed. A folder may come from anyone: whatever is in it, the answer is a verdict, never a crash, and no file
outside the folder is opened. The table is read a batch at a time, and counted only by columns that some check looks at.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from incrowd.core import signing
from incrowd.core.bits import DerivedBits
from incrowd.core.display import Showable, Shown, ShownTable
from incrowd.core.errors import IncrowdError, InputError, InternalError, MissingLibraryError
from incrowd.mechanisms.base import AnyMechanism, Check, Publication, all_columns, published_attributes, section_of
from incrowd.mechanisms.certificate import FORMAT, AnyCertificate
from incrowd.mechanisms.declared import policy_of, unheld
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.tables import RECORDS_PER_PART, part_names, table_name
from incrowd.policy.release import ReleaseSection
from incrowd.randomness import RandomSource
from incrowd.releases import certificate as certificates
from incrowd.releases.description import described
from incrowd.releases.names import CERTIFICATE, DESCRIPTION, REHEARSED, REPORT, file_name
from incrowd.releases.published import Published, no_table, read_table
from incrowd.releases.release import BY_RESPONDENTS

VOID = "the promise is not void"

_COMPLETE = "the certificate is complete"
_BY_PLACE: Mapping[tuple[str, ...], str] = {
    ("promise",): "the promise says what the parameters mean",
    ("assumptions",): "the promise says what the parameters mean",
    ("mechanism",): "the promise says what the parameters mean",
    ("mechanism", "name"): "the mechanism is the policy's",
    ("mechanism", "levels"): "every stated level exists",
    ("files",): "the files are those of a release",
}
"""What does not hold if something there cannot be read at all."""
_LARGEST_CERTIFICATE = 1 << 28
_LARGEST_BESIDE = 1 << 28
_HOSTILE = (
    *(KeyError, TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError, OSError),
    NotImplementedError,  # what Arrow says of files that it cannot read
)

Columns = Callable[[AnyCertificate], Iterable[str]]
"""Which columns somebody wants the table to be counted by, given a certificate that may say anything."""


@dataclass(frozen=True, repr=False)
class Verification(Showable):
    """What was checked, what must be taken on trust, and whether every check holds.

    Attributes:
        checks: what was checked.
        claimed: what must be taken on trust.
        signed_by: the fingerprint of the key that signed; None if none did.
        compared: whether that key was compared with one that the caller trusts.
        rehearsal: whether the folder says that it is a rehearsal, which is never valid.
    """

    checks: tuple[Check, ...]
    claimed: tuple[str, ...]
    signed_by: str | None = None
    compared: bool = False
    rehearsal: bool = False

    @property
    def valid(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    @property
    def signature(self) -> str:
        """Who signed, in a sentence."""
        if self.signed_by is None:
            return "Not signed."
        with_what = "compared with the key given" if self.compared else "compared with no key that you trust"
        return f"Signed by the key {self.signed_by}, {with_what}."

    def shown(self) -> Shown:
        """Whether it is valid, each check, and what must be taken on trust."""
        rows = [("holds" if one.holds else "FAILS", one.name, one.detail) for one in self.checks]
        verdict = "valid" if self.valid else "a rehearsal, which is never valid" if self.rehearsal else "not valid"
        return Shown(
            f"The release is {verdict}: {sum(one.holds for one in self.checks)} of {len(self.checks)} checks hold",
            (self.signature,),
            (ShownTable(("", "check", ""), rows, words=3),),
            tuple(f"on the publisher's word: {text}" for text in self.claimed),
        )


def verify(folder: str | Path, public_key: str | Path | None = None, *, rigorous: bool = False) -> Verification:
    """Check a published folder against its certificate, without the original data.

    Args:
        folder: the published one.
        public_key: a PEM file with the public key of the publisher; if given, the certificate must be signed by it.
        rigorous: compare the numbers of the promise with enclosures by ball arithmetic, too.
    """
    return _examine(Path(folder), public_key, report=True, rigorous=rigorous)[0]


def read_release(folder: str | Path, columns: Columns | None = None) -> tuple[AnyCertificate, Publication]:
    """The certificate and the table with its further files, of a folder that passes every check (a void promise apart).

    Args:
        folder: the published one.
        columns: those that the table is to be counted by at least; all if not given.

    Raises:
        InputError: it does not.
    """
    found, certificate, table = _examine(Path(folder), None, columns or all_columns)
    failed = [check for check in found.checks if not check.holds and check.name != VOID]
    if failed or table is None or certificate is None:
        why = f": {failed[0].name} does not hold" if failed else ""
        raise _unreadable(Path(folder), f"it is not a valid release{why}")
    return certificate, table.publication


def _examine(
    folder: Path,
    public_key: str | Path | None,
    columns: Columns = lambda _: (),
    *,
    report: bool = False,
    rigorous: bool = False,
) -> tuple[Verification, AnyCertificate | None, Published | None]:
    """Every check, and what they were made of."""
    written, document = read_certificate(folder)
    trusted = None if public_key is None else signing.key_fingerprint(public_key)
    signed_by = signing.signer(document)
    certificate, closed = _closed(document)
    checks = [_sealed(written, document), *closed]
    checks.extend(_signed("signature" in document, signed_by, trusted))
    claimed: list[str] = []
    table: Published | None = None
    if certificate is not None:
        try:
            checks.extend(_promise(certificate))
            if rigorous and all(check.holds or check.name == VOID for check in checks):
                checks.extend(enclosed(certificate))
            files = list(_files(folder, certificate))
            checks.extend(files)
            if all(check.holds for check in files):
                again = report and not _in_parts(certificate)
                wanted = {*_mechanism(certificate).columns_needed(certificate), *columns(certificate)}
                table = _read(folder, certificate, {*wanted, *(all_columns(certificate) if again else ())})
                checks.extend(_table(certificate, table))
            claimed += [*_mechanism(certificate).claimed, *unheld(certificate)]
            if all(c.holds or c.name == VOID for c in checks):
                said = _description(folder, certificate)
                (claimed if isinstance(said, str) else checks).append(said)  # type: ignore[arg-type]
            if table is not None and report and all(c.holds or c.name == VOID for c in checks):
                found = _report(folder, certificate, table.publication)
                (claimed if isinstance(found, str) else checks).append(found)  # type: ignore[arg-type]
            if table is not None and table.unsure and not _writes_alike(certificate):
                claimed.append("that the table's file says nothing besides its records: other software wrote it")
            claimed += [_whose(signed_by, trusted), *certificate.assumptions]
        except MissingLibraryError:
            raise
        except (IncrowdError, *_HOSTILE):
            checks.append(Check(_COMPLETE, holds=False, detail="a field is missing or malformed"))
    outcome = Verification(
        checks=tuple(Check(c.name, holds=True) if c.holds else c for c in checks),
        claimed=tuple(text for text in claimed if text),
        signed_by=signed_by,
        compared=trusted is not None,
        rehearsal=certificate is not None and certificate.promise.void == REHEARSED,
    )
    return outcome, certificate, table


def _signed(there: bool, signed_by: str | None, trusted: str | None) -> Iterator[Check]:
    """A signature is by the key that it names; if a key is trusted, there must be one, by that key."""
    if there:
        yield Check("the signature is by the key that it names", signed_by is not None, "it is not")
    if trusted is not None:
        why = "it is by another key" if there else "the certificate is not signed"
        yield Check("the signature is by the key given", signed_by == trusted, why)


def _whose(signed_by: str | None, trusted: str | None) -> str:
    """What must be taken on trust about who published it."""
    if signed_by is None:
        return "who published it: the certificate is not signed"
    if trusted is None:
        return f"that the key {signed_by}, which signed the certificate, is the publisher's: it was compared with none"
    return ""


def _description(folder: Path, certificate: AnyCertificate) -> Check | str:
    """Whether the description is the one that follows from the certificate; or why that cannot be told."""
    name = file_name(DESCRIPTION, certificate.promise.void)
    if name not in certificate.files:
        return ""
    same = (folder / name).read_bytes() == described(certificate)
    if not same and certificate.software.document() != certificates.software():
        return f"that {name} says what the certificate does: it was made by other versions of the software"
    return Check("the description is the one that the certificate gives", same, "it says something else")


def _report(folder: Path, certificate: AnyCertificate, published: Publication) -> Check | str:
    """Whether the report is the one that follows from certificate and table; or why that cannot be told."""
    said = "that the report says what certificate and table do"
    if _in_parts(certificate):
        return f"{said}: it is about a table in parts, which is too large to make it again"
    name = file_name(REPORT, certificate.promise.void)
    same = (folder / name).read_bytes() == _report_again(name, certificate, published)
    if not same and certificate.software.document() != certificates.software():
        return f"{said}: it was made by other versions of the software, and could not be made again alike"
    return Check("the report is the one that certificate and table give", same, "it says something else")


def _report_again(name: str, certificate: AnyCertificate, published: Publication) -> bytes:
    """The report that belongs to a certificate and what is published with it."""
    from incrowd.releases.verdict import public_block, verdict
    from incrowd.reports.page import completed

    mechanism, policy = _mechanism(certificate), policy_of(certificate)
    settings, void = mechanism.settled_again(certificate), certificate.promise.void
    report = mechanism.public_report(policy, settings, published, certificate.statement, void=void)
    judged = verdict(policy, published.table, certificate.statement, published.beside)
    return completed(report, public_block(judged), certificates.digest_without(name, certificate.document()))


_WITHOUT = (
    "Give the folder that `incrowd release` wrote, complete and unchanged. What a table without a certificate gives "
    "away, `incrowd audit TABLE --quasi ... --require k=5` says."
)


def read_certificate(folder: Path) -> tuple[bytes, dict[str, Any]]:
    """The certificate in a folder, as it is written and as it is read; nothing in it is checked yet."""
    path = folder / CERTIFICATE
    rehearsed = folder / file_name(CERTIFICATE, REHEARSED)
    if rehearsed.exists() and not path.exists():
        path = rehearsed
    try:
        if not stat.S_ISREG(path.lstat().st_mode) or path.stat().st_size > _LARGEST_CERTIFICATE:
            raise _unreadable(path, "it is not an ordinary file of a certificate's size")
        written = path.read_bytes()
        content = json.loads(written, parse_constant=_refuse)
    except FileNotFoundError:
        raise _unreadable(
            path,
            "there is no certificate",
            _WITHOUT,
        ) from None
    except NotADirectoryError:
        raise _unreadable(folder, "it is a file, and a release is a folder", _WITHOUT) from None
    except OSError as error:
        raise _unreadable(path, error.strerror or type(error).__name__) from None
    except (ValueError, RecursionError):
        raise _unreadable(path, "it is not JSON") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _unreadable(path, "it is not a certificate that this version of incrowd knows")
    return written, content


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _sealed(written: bytes, document: Mapping[str, Any]) -> Check:
    """Byte for byte the canonical form: nothing said twice, nothing between the lines."""
    whole = written == signing.to_bytes(document) and signing.is_sealed(document)
    return Check("the certificate's own digest", whole, "it was changed")


def _closed(document: Mapping[str, Any]) -> tuple[AnyCertificate | None, list[Check]]:
    """Only the fields of a certificate, as its model has them: others could tell what no promise covers."""
    wrong: list[tuple[int | str, ...]] = []
    found: AnyCertificate | None = None
    try:
        found = mechanism_named(document["mechanism"]["name"]).certificate.read(document)
    except ValidationError as error:
        wrong = [problem["loc"] for problem in error.errors(include_input=False)]
    except InputError:
        wrong = [("mechanism", "name")]
    except _HOSTILE:
        wrong = [()]
    closed = all(place[:1] in (("promise",), ("mechanism",)) for place in wrong)
    checks = [Check("the certificate has the fields of a certificate", closed, "it has others, or not all of them")]
    malformed = [_COMPLETE] if wrong else []
    malformed += [name for start, name in _BY_PLACE.items() if any(place[: len(start)] == start for place in wrong)]
    return found, [*checks, *(Check(name, holds=False, detail="a field is missing or malformed") for name in malformed)]


def _promise(certificate: AnyCertificate) -> Iterator[Check]:
    """The policy is the one digested, and the promise follows from it."""
    yield Check(
        "the policy is the one digested",
        signing.sha256(signing.canonical(certificate.policy)) == certificate.policy_digest,
        "its digest differs",
    )
    yield Check("the policy is one, and says nothing else", _is_policy(certificate), "it is none, or says more")
    titled = certificate.title == certificate.policy["title"]
    yield Check("the title is the policy's", titled, "it is another one")
    void = certificate.promise.void
    by_respondents = _mechanism(certificate).by_respondents(certificate)
    by_curator = DerivedBits.kind if _in_parts(certificate) else RandomSource().kind
    secure = certificate.randomness == (BY_RESPONDENTS if by_respondents else by_curator)
    why = "it is a rehearsal" if void == REHEARSED else "it was drawn from predictable bits"
    yield Check(VOID, void is None and secure, why)
    asked = certificate.policy["release"]["mechanism"] == certificate.mechanism.name
    yield Check("the mechanism is the policy's", asked, "it is another one")
    if asked:
        yield from _mechanism(certificate).check_promise(certificate)


def _is_policy(certificate: AnyCertificate) -> bool:
    try:
        policy_of(certificate)
    except (IncrowdError, *_HOSTILE):
        return False
    return True


def _mechanism(certificate: AnyCertificate) -> AnyMechanism:
    return mechanism_named(certificate.mechanism.name)


def _section(certificate: AnyCertificate) -> ReleaseSection:
    section: type[ReleaseSection] = _mechanism(certificate).section
    return section_of(certificate, section)


def _table_files(certificate: AnyCertificate) -> list[str]:
    """The table's files, in order, as far as a release can have such; the names of others are not looked at."""
    if _in_parts(certificate):
        return part_names(max(1, len(set(certificate.files) - {REPORT, DESCRIPTION})))
    whole = _whole_table(certificate)
    return [] if whole is None else [whole]


def _whole_table(certificate: AnyCertificate) -> str | None:
    section = _section(certificate)
    stem = _mechanism(certificate).table_stem(section)
    return None if stem is None else file_name(table_name(section.output, stem), certificate.promise.void)


def enclosed(certificate: AnyCertificate) -> Iterator[Check]:
    """A check for every number that the promise of this certificate computes; its other checks must have held."""
    try:
        yield from _mechanism(certificate).enclosed(certificate)
    except InternalError:
        yield Check("the promise can be enclosed by ball arithmetic", holds=False, detail="its numbers are too extreme")


def _in_parts(certificate: AnyCertificate) -> bool:
    whole = _whole_table(certificate)
    return whole is not None and _section(certificate).output == "parquet" and whole not in certificate.files


def _files(folder: Path, certificate: AnyCertificate) -> Iterator[Check]:
    """Exactly the files that a release has: ordinary ones, with the digests and sizes stated, and called void if so."""
    table, stated, void = _table_files(certificate), certificate.files, certificate.promise.void
    beside = [file_name(name, void) for name in _mechanism(certificate).beside_names(certificate)]
    # Releases of earlier versions have no description.
    wanted = {*table, *beside, file_name(REPORT, void), *({file_name(DESCRIPTION, void)} & set(stated))}
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
        same = path.stat().st_size == stated[name].bytes and (signing.file_sha256(path) == stated[name].sha256)
        yield Check(f"{name} is the file certified", same, "its digest or size differs")
    extra = {p.name for p in folder.iterdir()} - {*tops, file_name(CERTIFICATE, void)}
    extra |= {p.name for top in tops - wanted for p in (folder / top).iterdir() if f"{top}/{p.name}" not in wanted}
    yield Check("nothing else is in the folder", not extra, f"{len(extra)} other files")


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether something of this kind is there itself, and no link to it."""
    return path.exists() and kind(path.lstat().st_mode)


def _read(folder: Path, certificate: AnyCertificate, wanted: Collection[str]) -> Published | None:
    """The table, unless it cannot be read or holds something that is not declared."""
    try:
        files = [folder / name for name in _table_files(certificate)]
        table = (
            read_table(
                files,
                certificate.labels,
                wanted,
                _mechanism(certificate).table_notes,
                policy_of(certificate).attributes,
            )
            if files
            else no_table(certificate.labels)
        )
        return replace(table, beside=dict(_beside(folder, certificate)))
    except MissingLibraryError:
        raise
    except (IncrowdError, *_HOSTILE):
        return None


def _beside(folder: Path, certificate: AnyCertificate) -> Iterator[tuple[str, bytes]]:
    """The further files, whose digests have been compared, but which may have been made by anyone."""
    for name in _mechanism(certificate).beside_names(certificate):
        path = folder / file_name(name, certificate.promise.void)
        if path.stat().st_size > _LARGEST_BESIDE:
            raise ValueError("a file is too large")
        yield name, path.read_bytes()


def _table(certificate: AnyCertificate, table: Published | None) -> Iterator[Check]:
    """Only declared values, what the mechanism promises, and nothing in the order of rows or the file's own notes."""
    listed = published_attributes(certificate)
    same = sorted(all_columns(certificate)) == sorted(listed)
    yield Check("the columns are the policy's", same, "they differ")
    declared = "the table holds only declared values"
    yield Check(declared, table is not None, "it does not, or cannot be read")
    if table is None:
        return
    yield from _mechanism(certificate).check_table(certificate, table.publication)
    *full, last = table.records or (0,)
    cut = not _in_parts(certificate) or (set(full) <= {RECORDS_PER_PART} and 0 < last <= RECORDS_PER_PART)
    alike = not (table.unsure and _writes_alike(certificate))
    yield Check(
        "rows come in canonical order, and the file's notes say nothing else",
        table.canonical and cut and alike,
        "its rows are in another order, it holds notes of its own, or it is cut into parts elsewhere",
    )


def _writes_alike(certificate: AnyCertificate) -> bool:
    """Whether what wrote the table's file is here as stated; versions of what writes for packages are not stated."""
    return _section(certificate).output == "arrow" and certificate.software.document() == certificates.software()


def _unreadable(
    path: Path, why: str, remedy: str = "Give the folder that `incrowd release` wrote, complete and unchanged."
) -> InputError:
    return InputError(f"{path}: {why}.", code="release-unreadable", remedy=remedy)
