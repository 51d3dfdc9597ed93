"""The numbers of a certificate's promise, each compared with a ball that encloses its formula.

Belief ratios are fractions, computed without any rounding, and the rate of a plain sample rests on a table that nobody
has here: of these there is nothing to be enclosed.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from incrowd.core.errors import InternalError
from incrowd.mechanisms.base import Check, section_of
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.pram.section import Pram
from incrowd.mechanisms.pram.state import read_block
from incrowd.mechanisms.pram.stated import PramStatedMechanism, PramStatedPromise
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.stated import CrowdStatedMechanism, CrowdStatedPromise
from incrowd.theory import enclosures
from incrowd.theory._balls import above, below, precision


def enclosed(certificate: AnyCertificate) -> Iterator[Check]:
    """A check for every number that the promise of this certificate computes; its other checks must have held."""
    promise, mechanism = certificate.promise, certificate.mechanism
    try:
        if isinstance(promise, CrowdStatedPromise) and isinstance(mechanism, CrowdStatedMechanism):
            yield from _crowd(promise, mechanism, section_of(certificate, SampledCrowd))
        if isinstance(promise, PramStatedPromise) and isinstance(mechanism, PramStatedMechanism):
            yield from _pram(promise, mechanism, section_of(certificate, Pram))
    except InternalError:
        yield Check("the promise can be enclosed by ball arithmetic", holds=False, detail="its numbers are too extreme")


def _crowd(promise: CrowdStatedPromise, mechanism: CrowdStatedMechanism, section: SampledCrowd) -> Iterator[Check]:
    from flint import arb

    with precision():
        left = max(0.0, below(arb(promise.epsilon) - arb(section.selection_epsilon)))
    k, beta = mechanism.k, mechanism.beta
    found = max(above(delta(k, beta, left)) for delta in (enclosures.crowd_removal, enclosures.crowd_addition))
    yield _at_most("exact_delta", found, mechanism.exact_delta)
    yield _at_most("delta", found, promise.delta)


def _pram(promise: PramStatedPromise, mechanism: PramStatedMechanism, section: Pram) -> Iterator[Check]:
    laws = [read_block(block).law for block in mechanism.blocks]
    records = mechanism.records if section.records is None else section.records
    yield _at_most("local_epsilon", above(enclosures.local_epsilon(laws)), promise.local_epsilon)
    k = enclosures.pk(laws, records)
    yield Check(_name("k"), Fraction(promise.k) <= k, f"it is {float(k):.6g} at most")
    found = enclosures.central_delta(laws, records, promise.epsilon, promise.bound)
    if found is not None:
        yield _at_most("delta", found, promise.delta)


def _at_most(name: str, found: float, stated: float) -> Check:
    return Check(_name(name), found <= stated, f"it is up to {found:.6g}")


def _name(name: str) -> str:
    return f"{name}, enclosed by ball arithmetic"
