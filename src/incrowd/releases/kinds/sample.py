"""A plain sample as a release: what it promises, what little of that can be checked, and what can be estimated from it.

A cell of n people shows X ~ Bin(n, p) records, so x records stand for x/p people with a standard error of √(x(1−p))/p.

**The interval** is shown beside cells that occur, so it must be right of these, and not only of all cells. Its low end
is the least n with P[X ≥ x | X ≥ 1] > 2.5%, its high end the largest with P[X ≤ x] > 2.5%; of a cell that does not
occur it is said that n is at most the largest with P[X = 0] > 2.5%. *What holds, whatever n is.* Given that the cell
occurs, the interval holds n with a probability of at least 95%. And of a cell that was chosen in advance, what is said
(the one or the other) is true with a probability of at least 95%. *Proof.* P_n[X = x] has a monotone likelihood ratio
in n, also where x ≥ 1, so all these probabilities are monotone in n. The low end is above n only for the largest x, of
which X ≥ 1 has at most 2.5% by definition. What is said bounds n from above, and wrongly, only for X ≤ z, z being the
largest number with P_n[X ≤ z] ≤ 2.5%; and P[X ≤ z | X ≥ 1] = (P[X ≤ z] − P[X = 0])/(1 − P[X = 0]) ≤ P[X ≤ z]. ∎
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.domain import IntegerRange
from incrowd.errors import InternalError, ParameterError
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms import sample
from incrowd.mechanisms.sample import Rounding, SampleSettings, Terms
from incrowd.policy import Attribute, Policy, Span
from incrowd.policy import Sample as Section
from incrowd.randomness import RandomSource
from incrowd.releases.declared import check_labels, held_columns
from incrowd.releases.entries import Uncomposable
from incrowd.releases.kinds import (
    Check,
    Estimates,
    Made,
    Statement,
    Tell,
    fixed_levels,
    published_attributes,
    section_of,
)
from incrowd.signing import canonical

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CLAIMED = (
    "that epsilon and delta hold at this rate: that depends on the whole table, which only the publisher has",
    "that the table published was drawn from the publisher's data as described, once",
    "that each record was sampled independently with the stated rate, from unpredictable bits",
)
POLICY_NOTE = """\
# The policy as it was carried out, to be reviewed, and to be used again on another table. What was found by looking at
# this table (the rate, or what a planned rate promises) is found anew for each table.
"""
CONFIDENCE = 0.95
SURPRISE = 0.5 * (1.0 - CONFIDENCE)
"""What is less likely than this is taken not to have happened: on either side."""
_MOST = 1 << 62  # no table has more records
_NUMERICS = 1e-9  # more than the relative error of a tail


@dataclass(frozen=True, eq=False)
class Settled:
    """The settings, and the columns with their levels."""

    sample: SampleSettings
    attributes: Sequence[CodedAttribute]
    levels: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that is needed to draw; the terms are known unless they depend on a rounding yet to be drawn."""

    settings: Settled
    table: Histogram
    terms: Terms | None


def settle(policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> Settled:
    """What is asked for; what it amounts to depends on the table."""
    release = policy.release
    if not isinstance(release, Section):
        raise InternalError("a sample was asked for by another mechanism's policy")
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
    settings = SampleSettings(
        release.epsilon, release.delta, release.rate, release.rows_unknown, rounding, release.epoch
    )
    return Settled(settings, attributes, {a.name: 0 for a in attributes} | fixed_levels(policy, attributes))


def prepare(settings: Settled, table: Histogram, tell: Tell) -> Prepared:
    """Find the rate, or what the planned one promises.

    If numbers are rounded first, the rate is that of the rounded table. Then this finds whether there is one at all,
    which is the same for all roundings.
    """
    tell("finding the rate", 0.0)
    rounding = settings.sample.rounding
    recoded = sample.recode(table, settings.attributes, settings.levels, rounding)
    terms = sample.find_terms(recoded.counts, settings.sample)
    return Prepared(settings, table, None if rounding else terms)


def spending(settings: Settled) -> Uncomposable:
    """A promise about one table, which cannot be added to promises about all tables."""
    c = settings.sample.rows_unknown
    return Uncomposable(f"({c}, epsilon, delta)-privacy of this table (Chaudhuri, Mishra)")


def together(settings: Settled, copies: int) -> dict[str, Any] | None:  # noqa: ARG001
    """There is never more than one."""
    return None


def draw(prepared: Prepared, source: RandomSource) -> Made:
    """Draw once. Whatever comes out is the release."""
    settings = prepared.settings
    outcome = sample.run(prepared.table, settings.attributes, settings.levels, settings.sample, source, prepared.terms)
    statement = state(outcome.terms, settings.sample, settings.levels)
    return Made(outcome.published, dict(settings.levels), statement, outcome)


# --- what it says ---------------------------------------------------------------------------------------------------


def state(terms: Terms, asked: SampleSettings, levels: Mapping[str, int]) -> Statement:
    """The whole statement; all of it follows from the terms and from what was asked for."""
    given = {"epsilon": asked.epsilon, "delta": asked.delta, "rate": asked.rate}
    found = next((name for name, value in given.items() if value is None), None)
    promise = {
        "notion": "(c, epsilon, delta)-privacy of one table (Chaudhuri, Mishra)",
        "epsilon": terms.epsilon,
        "delta": terms.delta,
        "rows_unknown": terms.rows_unknown,
        "relation": "replace-one" if terms.rows_unknown == 1 else f"replace-{terms.rows_unknown}",
        "found_by_looking_at_this_table": found,
        "in_words": in_words(terms, found, rounded=bool(asked.rounding)),
        "grounds": grounds(terms),
    }
    mechanism = {
        "name": "sample",
        "rate": terms.rate,
        "levels": dict(levels),
        "rounded": {name: how.base for name, how in asked.rounding.items()},
        "epoch": asked.epoch,
    }
    return Statement(promise, mechanism, assumptions(terms, asked, found))


def factor(terms: Terms) -> Decimal:
    """1 + ε as it is printed, never too small."""
    return Context(prec=28, rounding=ROUND_CEILING).add(Decimal(1), Decimal(repr(terms.epsilon)))


def in_words(terms: Terms, found: str | None, *, rounded: bool) -> str:
    """The promise as a sentence, and what it is not."""
    c = terms.rows_unknown
    rows = "any one record" if c == 1 else f"any {c} records together"
    how = {
        "rate": f"the rate, {terms.rate!r}, was chosen by looking at this table",
        "epsilon": f"what the planned rate, {terms.rate!r}, promises was found by looking at this table",
        "delta": f"what the planned rate, {terms.rate!r}, promises was found by looking at this table",
        None: f"that it holds at the planned rate, {terms.rate!r}, was found by looking at this table",
    }[found]
    as_rounded = " It is made to those who know all other records as they were rounded, at random." if rounded else ""
    return (
        f"But for a probability of δ = {terms.delta!r}, the sample drawn is one whose likelihood changes at most "
        f"{factor(terms)}-fold if {rows} of the table{' as rounded' if rounded else ''} had other values, whatever "
        f"these are.{as_rounded} This is a statement about this table alone, and {how}. It is weaker than differential "
        "privacy."
    )


def grounds(terms: Terms) -> str:
    """What the promise rests on."""
    theorem = 3 if terms.rows_unknown == 1 else 7
    return (
        "The notion of Chaudhuri and Mishra, 'When random sampling preserves privacy'; the probability of a sample "
        "that does not keep to it is computed from the table itself (incrowd, docs/sampling.md), sharpening Theorem "
        f"{theorem}."
    )


def assumptions(terms: Terms, asked: SampleSettings, found: str | None) -> list[str]:
    """The premises that nobody can check from outside, and what the promise does not cover."""
    what = "The rate" if found == "rate" else "That the rate keeps the promise"
    premises = [
        "Each person is one record of the table"
        + ("." if terms.rows_unknown == 1 else f", or {terms.rows_unknown} records at most."),
        (
            f"{what} was found by looking at the table. The promise takes the rate as given, as if it would have been "
            "the same with other values in these records; what the rate itself tells about the table is not covered."
        ),
        (
            "The same goes for domains, hierarchies and levels: the promise is about the table as it is shown by "
            "them, and takes them as given."
        ),
        "The sample was drawn once, and not again after it had been looked at: that would change the promise.",
        "No other release of the same records is covered: together with one, this sample may tell more.",
        "Every record fits the declarations; whether a run was refused for the sake of a record is not published.",
    ]
    if asked.rounding:
        premises.append(
            f"Numbers were rounded at random before sampling ({', '.join(asked.rounding)}). The promise is about the "
            "rounded table, and is made to those who know all other records as they were rounded."
        )
    if asked.epoch is not None:
        premises.append(
            f"The table is what arrived in epoch {asked.epoch} of a stream. None of its records is in the table of "
            "another epoch, and records that may change together are records of one epoch."
        )
    return [*premises, "The random bits were unpredictable, and have been forgotten."]


# --- checking it ----------------------------------------------------------------------------------------------------


def check_promise(certificate: Mapping[str, Any]) -> Iterator[Check]:
    """The numbers are the policy's, where it gives them, and the words are theirs."""
    promise, mechanism, release = certificate["promise"], certificate["mechanism"], section_of(certificate)
    listed = published_attributes(certificate)
    attributes = {name: _attribute(a, name in release.rounding) for name, a in listed.items()}
    terms = Terms(promise["epsilon"], promise["delta"], mechanism["rate"], release.rows_unknown)
    sound = not release.unfit(attributes) and all(type(x) is float for x in (terms.epsilon, terms.delta, terms.rate))
    sound = sound and terms.epsilon > 0 and 0 < terms.delta < 1 and 0 < terms.rate < 1
    yield Check("the policy's parameters go together", sound, "they contradict each other")
    same = release.epsilon in (None, terms.epsilon) and release.delta in (None, terms.delta)
    yield Check("epsilon and delta are the policy's, where it gives them", same, "they are others")
    yield Check("the rate is the policy's, if it gives one", release.rate in (None, terms.rate), "it is another one")
    short = all(
        given is not None or sample.few_digits(found, up=up) == found
        for given, found, up in (
            (release.epsilon, terms.epsilon, True),
            (release.delta, terms.delta, True),
            (release.rate, terms.rate, False),
        )
    )
    yield Check(f"what was found has {sample.DIGITS} digits at most", short, "it has more")
    levels = {name: a.level or 0 for name, a in attributes.items()}
    same = canonical(mechanism["levels"]) == canonical(levels)
    yield Check("the levels are the policy's", same, "a level differs from the policy's")
    if same:
        yield check_labels(certificate, held_columns(certificate), apart=release.rounding)
    asked = settled_again(certificate).sample
    stated = state(terms, asked, levels).is_in(certificate) and promise["together"] is None
    yield Check("the promise says what the parameters mean", stated, "its words or numbers are others")


def settled_again(certificate: Mapping[str, Any]) -> Settled:
    """What was asked for, and the levels as stated."""
    release, listed = section_of(certificate), published_attributes(certificate)
    rounding = {name: _rounding(listed[name], release.rounding[name]) for name in listed if name in release.rounding}
    asked = SampleSettings(release.epsilon, release.delta, release.rate, release.rows_unknown, rounding, release.epoch)
    return Settled(asked, (), certificate["mechanism"]["levels"])


def columns_needed(certificate: Mapping[str, Any], by: Sequence[str] = (), **_: Any) -> list[str]:
    """Rounded columns, and those asked for."""
    return [*section_of(certificate).rounding, *by]


def check_table(certificate: Mapping[str, Any], table: Histogram) -> Iterator[Check]:
    """Rounded columns hold multiples; nothing else of the promise can be seen in the sample."""
    release, listed = section_of(certificate), published_attributes(certificate)
    for name, base in release.rounding.items():
        a = listed[name]
        beyond = [] if a["other"] is None else [a["other"]]
        wanted = (*_rounding(a, base).labels, *beyond, *([None] if a["missing"] == "keep" else []))
        same = table[name].labels == wanted
        yield Check(f"rounded numbers are multiples of {base}", same, "some are not, or outside the domain")


def _attribute(stated: Mapping[str, Any], rounded: bool) -> Attribute:
    """An attribute of the certificate's policy, as far as `unfit` looks at it."""
    ends = _ends(stated) if rounded else (0, 0)
    domain = Span.model_construct(first=ends[0], last=ends[1], step=stated["domain"]["step"]) if rounded else None
    return Attribute.model_construct(
        hierarchy=stated["hierarchy"], level=stated["level"], role=stated["role"], kind=stated["type"], domain=domain
    )


def _ends(stated: Mapping[str, Any]) -> tuple[int, int]:
    first, last = stated["domain"]["from"], stated["domain"]["to"]
    if type(first) is not int or type(last) is not int or not 0 <= last - first < 2**24:
        raise ValueError("not a range of whole numbers")
    return first, last


def _rounding(stated: Mapping[str, Any], base: int) -> Rounding:
    return Rounding(base, *_ends(stated))


# --- estimates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampleEstimate:
    """One cell of a cross-tabulation.

    Attributes:
        values: the labels of the columns asked for, None for missing.
        estimate: people of the population in this cell.
        standard_error: of that number.
        low: with `high` an interval that holds the true number with a probability of at least 95%, given that the cell
            occurs in the sample.
        high: see `low`.
    """

    values: tuple[str | None, ...]
    estimate: float
    standard_error: float
    low: int
    high: int


@dataclass(frozen=True)
class SampleEstimates(Estimates):
    """Estimates from a plain sample.

    Attributes:
        absent_at_most: a cell of more people than this would be absent from the sample with a probability of 2.5% at
            most.
    """

    absent_at_most: int


def estimate(certificate: Mapping[str, Any], table: Histogram, by: Sequence[str]) -> SampleEstimates:
    """A cross-tabulation by some columns."""
    rate = float(certificate["mechanism"]["rate"])
    groups = table.project(by)
    with np.errstate(over="ignore"):  # at a rate at which nobody is ever drawn
        people = np.minimum(groups.counts / rate, float(_MOST))
        errors = np.minimum(np.sqrt(groups.counts * (1.0 - rate)) / rate, float(_MOST))
    low, high = interval(groups.counts, rate)
    rows = [
        SampleEstimate(
            tuple(groups[name].labels[int(groups[name].codes[i])] for name in by),
            float(people[i]),
            float(errors[i]),
            int(low[i]),
            int(high[i]),
        )
        for i in range(len(groups))
    ]
    absent = absent_at_most(rate)
    notes = [
        (
            "Low and high: given that a cell occurs in the sample, its true number lies between them with a "
            f"probability of at least {CONFIDENCE:.0%}."
        ),
        (
            f"What more than {absent:,} people have would be absent from the sample with a probability of "
            f"{SURPRISE:.1%} at most."
        ),
    ]
    rounded = [name for name in by if name in certificate["mechanism"]["rounded"]]
    if rounded:
        notes.append(f"Numbers were rounded at random before sampling: {', '.join(rounded)}. Their sums have no bias.")
    return SampleEstimates(tuple(by), tuple(rows), tuple(notes), absent)


def absent_at_most(rate: float) -> int:
    """The largest n of which no record is sampled with a probability above 2.5%, (1−p)^n, rounded up."""
    return math.floor(min(float(_MOST), math.log(SURPRISE) / math.log1p(-rate) * (1.0 + _NUMERICS)))


def interval(sampled: Ints, rate: float) -> tuple[Ints, Ints]:
    """For each number of sampled records x ≥ 1 the least and the largest n that do not make it a surprise.

    P[X ≥ x | X ≥ 1] rises with n and P[X ≤ x] falls, so both ends are found by halving.
    """
    from scipy.special import betainc

    x = sampled.astype(np.int64)

    def enough(n: Ints) -> NDArray[np.bool_]:
        occurs = -np.expm1(n * math.log1p(-rate))
        likely = betainc(x, n - x + 1.0, rate) >= SURPRISE * (1.0 - _NUMERICS) * occurs
        return np.asarray(likely | (x == 1))

    def too_many(n: Ints) -> NDArray[np.bool_]:
        fewer = betainc(np.maximum(n - x, 0.5), x + 1.0, 1.0 - rate)
        return np.asarray(fewer <= SURPRISE * (1.0 - _NUMERICS)) & (n > x)

    with np.errstate(over="ignore"):
        reach = np.minimum(np.ceil((x + 10.0 + 10.0 * np.sqrt(x + 10.0)) / rate), float(_MOST)).astype(np.int64)
    high = _first(too_many, x, reach) - 1
    return np.minimum(_first(enough, x, reach), high), high


def _first(holds: Any, low: Ints, high: Ints) -> Ints:
    """For each cell the first number from `low` to `high` at which something holds that goes on holding."""
    low, high = low.copy(), high.copy()
    while bool((low < high).any()):
        middle = low + (high - low) // 2  # the sum may not fit 64 bits
        found = holds(middle)
        high = np.where(found, middle, high)
        low = np.where(found, low, middle + 1)
    return low
