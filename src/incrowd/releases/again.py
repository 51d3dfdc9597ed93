"""The public report of a release, made again by whoever has its certificate and what it publishes, to be compared."""

from __future__ import annotations

from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.declared import policy_of
from incrowd.mechanisms.registry import mechanism_named
from incrowd.releases.certificate import digest_without
from incrowd.releases.names import REPORT, file_name
from incrowd.releases.verdict import public_block, verdict
from incrowd.reports.page import completed


def report_again(certificate: AnyCertificate, published: Publication) -> bytes:
    """The report that belongs to a certificate and what is published with it, both of which have been verified."""
    mechanism, void = mechanism_named(certificate.mechanism.name), certificate.promise.void
    settings = mechanism.settled_again(certificate)
    policy = policy_of(certificate)
    report = mechanism.public_report(policy, settings, published, certificate.statement, void=void)
    digest = digest_without(file_name(REPORT, void), certificate.document())
    judged = verdict(policy, published.table, certificate.statement, published.beside)
    return completed(report, public_block(judged), digest)
