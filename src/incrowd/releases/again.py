"""The public report of a release, made again by whoever has its certificate and its table, to be compared."""

from __future__ import annotations

from incrowd.histogram import Histogram
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.declared import policy_of
from incrowd.mechanisms.registry import mechanism_named


def report_again(certificate: AnyCertificate, table: Histogram) -> bytes:
    """The report that belongs to a certificate and its table, both of which have been verified."""
    mechanism, void = mechanism_named(certificate.mechanism.name), certificate.promise.void
    settings = mechanism.settled_again(certificate)
    return mechanism.public_report(policy_of(certificate), settings, table, certificate.statement, void=void)
