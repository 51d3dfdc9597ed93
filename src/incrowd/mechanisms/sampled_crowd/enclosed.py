"""The δ of a sampled crowd, enclosed by ball arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

from incrowd.mechanisms.base import Check, section_of
from incrowd.mechanisms.enclosed import at_most
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.sampled_crowd.certificate import CrowdCertificate
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.theory import enclosures
from incrowd.theory._balls import above, below, precision


def enclosed(certificate: CrowdCertificate) -> Iterator[Check]:
    """Of a person with several rows that is the δ of all in one cell; other cells are composed in whole numbers."""
    promise, mechanism, section = certificate.promise, certificate.mechanism, section_of(certificate, SampledCrowd)
    if mechanism.tree is not None and mechanism.tree.rho:
        return  # joined with the choice in ball arithmetic in the first place
    from flint import arb

    rows = Persons.in_certificate(certificate).at_most
    with precision():
        beside = sum(map(arb, section.beside), arb(0))
        left = max(0.0, below(arb(promise.epsilon) - beside))
    k, beta = mechanism.k, mechanism.beta
    if rows > 1:
        found = above(enclosures.crowd_group(k, beta, left, rows))
    else:
        found = max(above(delta(k, beta, left)) for delta in (enclosures.crowd_removal, enclosures.crowd_addition))
    yield at_most("exact_delta", found, mechanism.exact_delta)
    yield at_most("delta", found, promise.delta)
