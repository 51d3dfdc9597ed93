"""What a plain sample promises: found from the policy, and from the table where that leaves something open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import GuaranteeError, InternalError, ParameterError, UnreachableError
from incrowd.core.numbers import as_given, count, few_digits
from incrowd.domain import IntegerRange
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.marginals import Counted
from incrowd.mechanisms.base import (
    Concern,
    Tell,
    fixed_levels,
)
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.promises import Uncomposable
from incrowd.mechanisms.sample.section import Sample
from incrowd.policy import Policy
from incrowd.theory import sampling

DIGITS = 3
"""So many digits of a number that was read off the table are published."""


ADVICE = "`incrowd plan sample POLICY --advice` says what would help."


_FEWEST = 30  # people, below which a sample is hardly worth publishing
_LARGEST_DELTA = 0.5  # a promise that fails more often than it holds is none


_LEAST_EPSILON = 1e-3  # an ε of 0 would be a promise of nothing sampled


@dataclass(frozen=True)
class Rounding:
    """Random rounding of the whole numbers from `first` to `last` to multiples of `base`."""

    base: int
    first: int
    last: int

    @property
    def lowest(self) -> int:
        """The lowest multiple that occurs."""
        return self.first - self.first % self.base

    @property
    def labels(self) -> tuple[str, ...]:
        """All multiples that can occur."""
        highest = self.last + -self.last % self.base
        return tuple(str(value) for value in range(self.lowest, highest + 1, self.base))


@dataclass(frozen=True)
class SampleSettings:
    """What is asked for; two of the first three are given, and the third is found by looking at the table."""

    epsilon: float | None
    delta: float | None
    rate: float | None
    rows_unknown: int = 1
    rounding: Mapping[str, Rounding] = field(default_factory=dict)
    epoch: int | None = None
    persons: Persons = field(default_factory=Persons)


@dataclass(frozen=True)
class Terms:
    """What is promised, and the rate that keeps it; fit to be published with the sample."""

    epsilon: float
    delta: float
    rate: float
    rows_unknown: int


def printed(value: float, *, up: bool) -> float:
    """A number with `DIGITS` digits, never below (or never above) the value, as that prints: 0.001 has one digit."""
    return few_digits(Decimal(repr(value)), DIGITS, up=up)


def find_terms(counts: NDArray[np.int64], settings: SampleSettings) -> Terms:
    """Fill in what the settings leave open, by looking at the table that will be sampled.

    Raises:
        GuaranteeError: the planned rate does not keep the promise.
        UnreachableError: it keeps none, or δ is so small that no rate can be shown to keep it.
    """
    epsilon, delta, rate, c = settings.epsilon, settings.delta, settings.rate, settings.rows_unknown
    if epsilon is not None and delta is not None and rate is None:
        largest = sampling.largest_rate(counts, epsilon, delta, c).rate
        return Terms(epsilon, delta, printed(largest, up=False), c)
    planned = rate or 0.0
    if epsilon is not None:
        reached = sampling.sample_delta(counts, planned, epsilon, c).delta
        promised = printed(reached, up=True) if delta is None else delta
        if reached > promised or (delta is None and promised > _LARGEST_DELTA):
            raise GuaranteeError(
                f"Most samples at rate {as_given(planned)} do not keep epsilon = {as_given(epsilon)} on this table."
                if delta is None
                else f"A sample at rate {as_given(planned)} does not keep epsilon = {as_given(epsilon)} with "
                f"delta = {as_given(delta)} on this "
                "table.",
                code="promise-not-kept",
                remedy=f"Lower the rate, or leave it out and the largest safe one is found; {ADVICE}",
            )
        return Terms(epsilon, promised, planned, c)
    if delta is None:
        raise InternalError("a sample was asked for without epsilon and delta")
    try:
        found = sampling.sample_epsilon(counts, planned, delta, c).epsilon
    except UnreachableError:
        # The number in its message is read off the table, and this one may end up in a log.
        raise UnreachableError(
            f"A sample at rate {as_given(planned)} promises no epsilon at all with delta = {as_given(delta)} on "
            "this table.",
            code="unreachable",
            remedy=f"Lower the rate or accept a larger delta; {ADVICE}",
        ) from None
    return Terms(printed(max(found, _LEAST_EPSILON), up=True), delta, planned, c)


def recode(
    table: Histogram,
    attributes: Sequence[CodedAttribute],
    levels: Mapping[str, int],
    rounding: Mapping[str, Rounding],
) -> Histogram:
    """The table as it is shown. A rounded column stays as it was rounded."""
    return table.recode({a.name: a.hierarchy.recode(levels[a.name]) for a in attributes if a.name not in rounding})


@dataclass(frozen=True, eq=False)
class SampleSettled:
    """The settings, and the columns with their levels.

    Attributes:
        terms: what the table makes of the settings; None before it was seen, and if it is rounded at random first.
    """

    sample: SampleSettings
    attributes: Sequence[CodedAttribute]
    levels: Mapping[str, int]
    terms: Terms | None = None


def asked_for(release: Sample, rounding: Mapping[str, Rounding], persons: Persons) -> SampleSettings:
    """What a policy asks for. Of one person all rows may change, so that c is at least their number."""
    c = max(release.rows_unknown, persons.at_most)
    return SampleSettings(release.epsilon, release.delta, release.rate, c, rounding, release.epoch, persons)


def settle(release: Sample, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> SampleSettled:
    """What is asked for; what it amounts to depends on the table."""
    if copies > 1:
        raise ParameterError(
            "Several samples of one table would together tell more than the policy promises of one.",
            code="parameter-combination",
            remedy="Draw one sample. If it is to be larger, allow a larger epsilon or delta: the rate rises with them.",
        )
    rounding: dict[str, Rounding] = {}
    for a in attributes:
        if a.name in release.rounding:
            domain = a.coding.domain
            if not isinstance(domain, IntegerRange):
                raise InternalError("a column is to be rounded that does not hold whole numbers")
            rounding[a.name] = Rounding(release.rounding[a.name], domain.low, domain.high)
    settings = asked_for(release, rounding, Persons.in_policy(policy))
    return SampleSettled(settings, attributes, {a.name: 0 for a in attributes} | fixed_levels(policy, attributes))


def prepare(settings: SampleSettled, table: Histogram, tell: Tell) -> tuple[SampleSettled, Histogram]:
    """Find the rate, or what the planned one promises.

    If numbers are rounded first, the rate is that of the rounded table. Then this finds whether there is one at all,
    which is the same for all roundings.
    """
    tell("finding the rate", 0.0)
    rounding = settings.sample.rounding
    recoded = recode(table, settings.attributes, settings.levels, rounding)
    terms = find_terms(recoded.counts, settings.sample)
    return replace(settings, terms=None if rounding else terms), table


def spending(settings: SampleSettled) -> Uncomposable:
    """A promise about one table, which cannot be added to promises about all tables."""
    c = settings.sample.rows_unknown
    return Uncomposable(f"({c}, epsilon, delta)-privacy of this table (Chaudhuri, Mishra)")


def concerns(settings: SampleSettled, table: Counted) -> Iterator[Concern]:
    """A rate at which hardly anybody is drawn."""
    if settings.terms is None:
        return
    expected = settings.terms.rate * table.total
    if expected < _FEWEST:
        about = "nobody" if expected < 0.5 else count(round(expected), "person", "people")
        yield Concern(
            "few-people",
            None,
            f"At this rate about {about} would be published. Allow a larger epsilon or delta, show columns more "
            f"coarsely or leave some out; {ADVICE}",
        )
