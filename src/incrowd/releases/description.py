"""What data catalogues read of a release: its description as a Frictionless Data Package.

It is made of the certificate alone, so it says nothing else than that, and `verify` makes it once more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from incrowd.mechanisms.base import section_of
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.declared import policy_of
from incrowd.mechanisms.packages import variable
from incrowd.mechanisms.registry import mechanism_named
from incrowd.policy import Attribute
from incrowd.releases.names import CERTIFICATE, DESCRIPTION, REPORT, file_name

_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_MEDIA_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
    "sav": "application/x-spss-sav",
    "dta": "application/x-stata-dta",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_CODED = ("sav", "dta")


def described(certificate: AnyCertificate) -> bytes:
    """The description of a release with this certificate."""
    promise = certificate.promise
    package: dict[str, Any] = {
        "$schema": _PROFILE,
        **({} if certificate.title is None else {"title": certificate.title}),
        "description": promise.void or promise.in_words,
        "resources": list(_resources(certificate)),
        "incrowd": {
            "certificate": file_name(CERTIFICATE, promise.void),
            "mechanism": certificate.mechanism.name,
            "promise": promise.document(),
            "assumptions": list(certificate.assumptions),
        },
    }
    return (json.dumps(package, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _resources(certificate: AnyCertificate) -> Iterator[dict[str, Any]]:
    """The table, in one file or in parts, and each file beside it."""
    mechanism, void = mechanism_named(certificate.mechanism.name), certificate.promise.void
    section = section_of(certificate, mechanism.section)
    attributes = policy_of(certificate).attributes
    tables = mechanism.tables_beside(certificate)
    beside = {file_name(name, void): name for name in mechanism.beside_names(certificate)}
    table = sorted(set(certificate.files) - {file_name(REPORT, void), file_name(DESCRIPTION, void)} - set(beside))
    stem = mechanism.table_stem(section)
    if stem is not None and table:
        fields = [
            _field(name, labels, attributes.get(name), section.output) for name, labels in certificate.labels.items()
        ]
        yield _resource(stem, table, section.output, fields)
    for number, (path, name) in enumerate(beside.items(), start=1):
        of = [_field(column, what, attributes.get(column), "parquet") for column, what in tables.get(name, {}).items()]
        folder, _, file = name.rpartition("/")
        called = f"{folder}-{number}" if folder else Path(file).stem
        yield _resource(called, [path], Path(file).suffix[1:], of)


def _resource(name: str, paths: Sequence[str], form: str, fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A file. Its digest stands in the certificate alone: readers of Data Packages cannot tell that of Parquet."""
    return {
        "name": name,
        "path": paths[0] if len(paths) == 1 else list(paths),
        "format": form,
        **({"mediatype": _MEDIA_TYPES[form]} if form in _MEDIA_TYPES else {}),
        **({"encoding": "utf-8"} if form in ("csv", "json") else {}),
        **({"type": "table", "schema": {"fields": list(fields), "missingValues": [""]}} if fields else {}),
    }


def _field(name: str, shown: Sequence[str | None] | str, attribute: Attribute | None, form: str) -> dict[str, Any]:
    """A column, as it is written in a format: of labels, or of numbers of a kind."""
    if isinstance(shown, str):
        return {"name": name, "type": shown, "constraints": {"required": True}}
    title = {} if attribute is None or attribute.title is None else {"title": attribute.title}
    present: list[Any] = [label for label in shown if label is not None]
    more: dict[str, Any] = {}
    if form in _CODED:
        of = variable(name, shown, attribute)
        present = [code for code in of.codes if code is not None]
        if of.value_labels:
            more = {"categories": [{"value": code, "label": text} for code, text in of.value_labels.items()]}
    enum = {"enum": present} if present else {}
    required = {} if None in shown else {"required": True}
    kind = "integer" if form in _CODED else "string"
    return {"name": name, "type": kind, **title, **more, "constraints": {**required, **enum}}
