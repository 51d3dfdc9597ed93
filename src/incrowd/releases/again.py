"""The public report of a release, made again by whoever has its certificate and what it publishes, to be compared."""

from __future__ import annotations

from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.declared import policy_of
from incrowd.mechanisms.registry import mechanism_named
from incrowd.releases.verdict import public_block, verdict
from incrowd.reports.page import with_verdict


def report_again(certificate: AnyCertificate, published: Publication) -> bytes:
    """The report that belongs to a certificate and what is published with it, both of which have been verified."""
    mechanism, void = mechanism_named(certificate.mechanism.name), certificate.promise.void
    settings = mechanism.settled_again(certificate)
    policy = policy_of(certificate)
    report = mechanism.public_report(policy, settings, published, certificate.statement, void=void)
    return with_verdict(report, public_block(verdict(policy, published.table, certificate.statement)))
