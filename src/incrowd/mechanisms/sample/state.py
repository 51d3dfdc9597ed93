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

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from incrowd.core.signing import canonical
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import (
    Check,
    published_attributes,
    section_of,
)
from incrowd.mechanisms.certificate import Statement
from incrowd.mechanisms.declared import check_labels, held_columns
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.sample.certificate import (
    Found,
    SampleCertificate,
    SampleStatedMechanism,
    SampleStatedPromise,
    SampleStatement,
)
from incrowd.mechanisms.sample.section import Sample
from incrowd.mechanisms.sample.settle import DIGITS, Rounding, SampleSettings, SampleSettled, Terms, asked_for, printed
from incrowd.policy import Attribute, Span

# --- what it says ---------------------------------------------------------------------------------------------------


def state(terms: Terms, asked: SampleSettings, levels: Mapping[str, int]) -> SampleStatement:
    """The whole statement; all of it follows from the terms and from what was asked for."""
    given: dict[Found, float | None] = {"epsilon": asked.epsilon, "delta": asked.delta, "rate": asked.rate}
    found = next((name for name, value in given.items() if value is None), None)
    promise = SampleStatedPromise(
        notion="(c, epsilon, delta)-privacy of one table (Chaudhuri, Mishra)",
        epsilon=terms.epsilon,
        delta=terms.delta,
        rows_unknown=terms.rows_unknown,
        relation="replace-one" if terms.rows_unknown == 1 else f"replace-{terms.rows_unknown}",
        found_by_looking_at_this_table=found,
        in_words=in_words(terms, found, rounded=bool(asked.rounding)),
        grounds=grounds(terms),
    )
    mechanism = SampleStatedMechanism(
        rate=terms.rate,
        levels=dict(levels),
        rounded={name: how.base for name, how in asked.rounding.items()},
        epoch=asked.epoch,
    )
    return Statement(promise, mechanism, assumptions(terms, asked, found))


def factor(terms: Terms) -> Decimal:
    """1 + ε as it is printed, never too small."""
    return Context(prec=28, rounding=ROUND_CEILING).add(Decimal(1), Decimal(repr(terms.epsilon)))


def in_words(terms: Terms, found: Found | None, *, rounded: bool) -> str:
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


def assumptions(terms: Terms, asked: SampleSettings, found: Found | None) -> list[str]:
    """The premises that nobody can check from outside, and what the promise does not cover."""
    what = "The rate" if found == "rate" else "That the rate keeps the promise"
    premises = [
        asked.persons.premise
        if asked.persons.declared
        else "Each person is one record of the table"
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


def check_promise(certificate: SampleCertificate) -> Iterator[Check]:
    """The numbers are the policy's, where it gives them, and the words are theirs."""
    promise, mechanism, release = certificate.promise, certificate.mechanism, section_of(certificate, Sample)
    listed = published_attributes(certificate)
    attributes = {name: _attribute(a, name in release.rounding) for name, a in listed.items()}
    asked = settled_again(certificate).sample
    terms = Terms(promise.epsilon, promise.delta, mechanism.rate, asked.rows_unknown)
    sound = not release.unfit(attributes)
    sound = sound and terms.epsilon > 0 and 0 < terms.delta < 1 and 0 < terms.rate < 1
    yield Check("the policy's parameters go together", sound, "they contradict each other")
    same = release.epsilon in (None, terms.epsilon) and release.delta in (None, terms.delta)
    yield Check("epsilon and delta are the policy's, where it gives them", same, "they are others")
    yield Check("the rate is the policy's, if it gives one", release.rate in (None, terms.rate), "it is another one")
    short = all(
        given is not None or printed(found, up=up) == found
        for given, found, up in (
            (release.epsilon, terms.epsilon, True),
            (release.delta, terms.delta, True),
            (release.rate, terms.rate, False),
        )
    )
    yield Check(f"what was found has {DIGITS} digits at most", short, "it has more")
    levels = {name: a.level or 0 for name, a in attributes.items()}
    same = canonical(mechanism.levels) == canonical(levels)
    yield Check("the levels are the policy's", same, "a level differs from the policy's")
    if same:
        yield check_labels(certificate, held_columns(certificate), apart=release.rounding)
    stated = state(terms, asked, levels).is_in(certificate) and promise.together is None
    yield Check("the promise says what the parameters mean", stated, "its words or numbers are others")


def settled_again(certificate: SampleCertificate) -> SampleSettled:
    """What was asked for, and the levels as stated."""
    release, listed = section_of(certificate, Sample), published_attributes(certificate)
    rounding = {name: _rounding(listed[name], release.rounding[name]) for name in listed if name in release.rounding}
    asked = asked_for(release, rounding, Persons.in_certificate(certificate))
    return SampleSettled(asked, (), certificate.mechanism.levels)


def columns_needed(certificate: SampleCertificate, by: Sequence[str], *others: str | None) -> list[str]:
    """Rounded columns, and those asked for."""
    return [*section_of(certificate, Sample).rounding, *by, *(name for name in others if name is not None)]


def check_table(certificate: SampleCertificate, table: Histogram) -> Iterator[Check]:
    """Rounded columns hold multiples; nothing else of the promise can be seen in the sample."""
    release, listed = section_of(certificate, Sample), published_attributes(certificate)
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
