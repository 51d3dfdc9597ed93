"""The public report of a release, made again by whoever has its certificate and its table, to be compared."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from incrowd.histogram import Histogram
from incrowd.releases.declared import policy_of
from incrowd.releases.kinds import Statement, kind_of


def report_again(certificate: Mapping[str, Any], table: Histogram) -> bytes:
    """The report that belongs to a certificate and its table, both of which have been verified."""
    promise = certificate["promise"]
    name = certificate["mechanism"]["name"]
    statement = Statement(
        {key: value for key, value in promise.items() if key not in ("together", "void")},
        certificate["mechanism"],
        certificate["assumptions"],
    )
    report: bytes = import_module(f"incrowd.reports.{name}_report").public_report(
        policy_of(certificate), kind_of(name).settled_again(certificate), table, statement, void=promise["void"]
    )
    return report
