"""The numbers of a certificate's promise, each compared with a ball that encloses its formula.

Belief ratios are fractions, computed without any rounding, and the rate of a plain sample rests on a table that nobody
has here: of these there is nothing to be enclosed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from incrowd.core.errors import InternalError
from incrowd.mechanisms.base import Check, section_of
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.pram.section import Pram
from incrowd.mechanisms.pram.state import read_block
from incrowd.mechanisms.pram.stated import PramStatedMechanism, PramStatedPromise, SampledPramMechanism
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.stated import CrowdStatedMechanism, CrowdStatedPromise
from incrowd.theory import enclosures
from incrowd.theory._balls import above, below, precision


def enclosed(certificate: AnyCertificate) -> Iterator[Check]:
    """A check for every number that the promise of this certificate computes; its other checks must have held."""
    promise, mechanism = certificate.promise, certificate.mechanism
    try:
        if isinstance(promise, CrowdStatedPromise) and isinstance(mechanism, CrowdStatedMechanism):
            rows = Persons.in_certificate(certificate).at_most
            yield from _crowd(promise, mechanism, section_of(certificate, SampledCrowd), rows)
        if isinstance(promise, PramStatedPromise) and isinstance(mechanism, PramStatedMechanism):
            rows = Persons.in_certificate(certificate).at_most
            yield from _pram(promise, mechanism, section_of(certificate, Pram), rows)
    except InternalError:
        yield Check("the promise can be enclosed by ball arithmetic", holds=False, detail="its numbers are too extreme")


def _crowd(
    promise: CrowdStatedPromise, mechanism: CrowdStatedMechanism, section: SampledCrowd, rows: int
) -> Iterator[Check]:
    """Of a person with several rows that is the δ of all in one cell; other cells are composed in whole numbers."""
    if mechanism.tree is not None and mechanism.tree.rho:
        return  # joined with the choice in ball arithmetic in the first place
    from flint import arb

    with precision():
        beside = arb(section.selection_epsilon) + arb(0.0 if section.totals is None else section.totals.epsilon)
        left = max(0.0, below(arb(promise.epsilon) - beside))
    k, beta = mechanism.k, mechanism.beta
    if rows > 1:
        found = above(enclosures.crowd_group(k, beta, left, rows))
    else:
        found = max(above(delta(k, beta, left)) for delta in (enclosures.crowd_removal, enclosures.crowd_addition))
    yield _at_most("exact_delta", found, mechanism.exact_delta)
    yield _at_most("delta", found, promise.delta)


def _pram(promise: PramStatedPromise, mechanism: PramStatedMechanism, section: Pram, rows: int) -> Iterator[Check]:
    laws = [read_block(block).law for block in mechanism.blocks]
    sampled = isinstance(mechanism, SampledPramMechanism)
    records = promise.records if sampled else mechanism.records if section.records is None else section.records
    yield _at_most("local_epsilon", above(rows * enclosures.local_epsilon(laws)), promise.local_epsilon)
    k = enclosures.pk(laws, mechanism.records if sampled else records)
    yield Check(_name("k"), Fraction(promise.k) <= k, f"it is {float(k):.6g} at most")
    each = promise.epsilon if rows == 1 else math.nextafter(promise.epsilon / rows, 0.0)
    rate = mechanism.beta if isinstance(mechanism, SampledPramMechanism) else 1.0
    found = enclosures.central_delta(laws, records, each, promise.bound, rate)
    if found is not None and rows > 1:
        found = math.nextafter(found * math.fsum(math.exp(i * each) for i in range(rows)) * (1 + 1e-14), math.inf)
    if found is not None:
        yield _at_most("delta", found, promise.delta)


def _at_most(name: str, found: float, stated: float) -> Check:
    return Check(_name(name), found <= stated, f"it is up to {found:.6g}")


def _name(name: str) -> str:
    return f"{name}, enclosed by ball arithmetic"
