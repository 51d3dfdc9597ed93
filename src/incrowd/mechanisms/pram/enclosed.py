"""The numbers of a randomised table's promise, enclosed by ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from incrowd.mechanisms.base import Check, section_of
from incrowd.mechanisms.enclosed import at_least, at_most
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.pram.certificate import (
    PramCertificate,
    PramStatedMechanism,
    PramStatedPromise,
    SampledPramMechanism,
)
from incrowd.mechanisms.pram.section import Pram
from incrowd.mechanisms.pram.state import read_block
from incrowd.theory import enclosures
from incrowd.theory._balls import above


def enclosed(certificate: PramCertificate) -> Iterator[Check]:
    """The local ε, k, and the δ of the shuffled table."""
    promise, mechanism, section = certificate.promise, certificate.mechanism, section_of(certificate, Pram)
    if not isinstance(promise, PramStatedPromise) or not isinstance(mechanism, PramStatedMechanism):
        return  # the shares of the table decide what invariant PRAM promises
    rows = Persons.in_certificate(certificate).at_most
    laws = [read_block(block).law for block in mechanism.blocks]
    sampled = isinstance(mechanism, SampledPramMechanism)
    records = promise.records if sampled else mechanism.records if section.records is None else section.records
    yield at_most("local_epsilon", above(rows * enclosures.local_epsilon(laws)), promise.local_epsilon)
    k = enclosures.pk(laws, mechanism.records if sampled else records)
    yield at_least("k", float(k), holds=Fraction(promise.k) <= k)
    each = promise.epsilon if rows == 1 else math.nextafter(promise.epsilon / rows, 0.0)
    rate = mechanism.beta if isinstance(mechanism, SampledPramMechanism) else 1.0
    found = enclosures.central_delta(laws, records, each, promise.bound, rate)
    if found is not None and rows > 1:
        found = math.nextafter(found * math.fsum(math.exp(i * each) for i in range(rows)) * (1 + 1e-14), math.inf)
    if found is not None:
        yield at_most("delta", found, promise.delta)
