"""The public report of a release, made again by whoever has its certificate and its table, to be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Statement
from incrowd.mechanisms.declared import policy_of
from incrowd.mechanisms.registry import mechanism_named


def report_again(certificate: Mapping[str, Any], table: Histogram) -> bytes:
    """The report that belongs to a certificate and its table, both of which have been verified."""
    promise, mechanism = certificate["promise"], mechanism_named(certificate["mechanism"]["name"])
    statement = Statement(
        {key: value for key, value in promise.items() if key not in ("together", "void")},
        certificate["mechanism"],
        certificate["assumptions"],
    )
    settings = mechanism.settled_again(certificate)
    return mechanism.public_report(policy_of(certificate), settings, table, statement, void=promise["void"])
