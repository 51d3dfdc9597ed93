"""A plain random sample of (recoded) records, at a rate at which it is private (Chaudhuri, Mishra).

*Precondition.* The histogram counts the full table on its declared domains; the levels are fixed.

*Promise.* (c, ε, δ)-privacy of this table: with probability 1−δ over the sample S, for any c rows and any two ways V,
V′ of overwriting them, Pr[S|T→V] ≤ (1+ε)·Pr[S|T→V′]. The rate, or what a planned rate promises, is found by looking at
the table (`incrowd.theory.sampling`); the likelihoods take it as given. Whatever is found that way and will be
published is rounded outward to `DIGITS` digits: its further digits would tell more about the table and serve nobody.

**Random rounding.** A whole number v with mb ≤ v < (m+1)b becomes (m+1)b with probability (v−mb)/b, else mb: its mean
is v. Rows are rounded independently, then the rounded table R is sampled; the rate is found on R. *What holds.* If the
sample S of R is one of those with Pr[S|R→W] ≤ (1+ε)·Pr[S|R→W′] for all values W, W′ of some c rows, then for all true
values V, V′ of these rows Pr[S|V] ≤ (1+ε)·Pr[S|V′], the other rows being as they were rounded. *Proof.* Given the other
rows of R, Pr[S|V] = Σ_W q(W|V)·Pr[S|R→W], q being the law of the rounding: an average of numbers that are all at most
(1+ε) times any of those that Pr[S|V′] is an average of. ∎ So the promise is about the rounded table: it is made to
those who know all other rows as they were rounded. Someone who knows their true values only sees a mixture over
roundings, and to such a mixture this notion does not extend.

With rounding the rate is always found, never planned: some rate keeps any ε and δ on any R, so that nothing is refused
once R is drawn. A planned rate may fail on one R and pass on the next; to try again until it passes would be to choose
among roundings by what they came to.

*Never draw again.* A sample that is seen not to be private must not be replaced by another one. Which samples would be
replaced depends on the table, so a sample that was kept tells that it was not replaced: with two records of a
kind, one of them sampled, and ε = 1 the ratio is 2 and the sample is kept; had one of the two another value, the same
sample would have been replaced, and the ratio is infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Column, Histogram, smallest_type
from incrowd.mechanisms.base import (
    Made,
)
from incrowd.mechanisms.sample.certificate import SampleStatement
from incrowd.mechanisms.sample.settle import Rounding, SampleSettings, SampleSettled, Terms, find_terms, recode
from incrowd.mechanisms.sample.state import state
from incrowd.randomness import RandomSource
from incrowd.theory import sampling


@dataclass(frozen=True, eq=False)
class SampleOutcome:
    """What came out.

    Attributes:
        published: the sample.
        terms: what it promises.
        before: the whole table, base codes, rounded where that was asked for. For the publisher's eyes only.
        table: the whole table as it was sampled. For the publisher's eyes only.
        drawn: how many records of each cell of `table` are in the sample.
    """

    published: Histogram
    terms: Terms
    before: Histogram
    table: Histogram
    drawn: NDArray[np.int64]


def run(
    table: Histogram,
    attributes: Sequence[CodedAttribute],
    levels: Mapping[str, int],
    settings: SampleSettings,
    source: RandomSource,
    terms: Terms | None = None,
) -> SampleOutcome:
    """Round, recode, sample.

    Args:
        table: the full table, raw codes, one column for each attribute.
        attributes: the attributes in the order of the table's columns.
        levels: the level at which each is shown.
        settings: what is asked for.
        source: the random bits.
        terms: what `find_terms` said of this very table, if nothing is rounded.
    """
    before = round_at_random(table, settings.rounding, source)
    recoded = recode(before, attributes, levels, settings.rounding)
    if terms is None or settings.rounding:
        terms = find_terms(recoded.counts, settings)
    kept = sampling.sample_delta(recoded.counts, terms.rate, terms.epsilon, terms.rows_unknown).delta <= terms.delta
    if not kept:
        raise InternalError("a sample was about to be drawn at a rate that does not keep its promise")
    # Sampling commutes with recoding: thinning a recoded cell is sampling its records one by one. As a fraction, the
    # rate is drawn as it is, and not rounded to 64 binary digits.
    drawn = source.binomial(recoded.counts, Fraction(terms.rate))
    return SampleOutcome(recoded.with_counts(drawn), terms, before, recoded, drawn)


def round_at_random(table: Histogram, rounding: Mapping[str, Rounding], source: RandomSource) -> Histogram:
    """Every record's number becomes one of the two multiples around it, with its own value as the mean.

    The records of a cell fall apart into two by an exact Binomial with the rational probability (v mod b)/b.
    """
    for name, how in rounding.items():
        table = _rounded(table, name, how, source)
    return table


def _rounded(table: Histogram, name: str, how: Rounding, source: RandomSource) -> Histogram:
    column = table[name]
    declared = how.last - how.first + 1
    labels = (*how.labels, *column.labels[declared:])
    codes = column.codes.astype(np.int64)
    number = codes < declared  # the others are missing, or outside the domain
    above, rest = np.divmod(codes + how.first - how.lowest, how.base)
    below = np.where(number, above, codes - declared + len(how.labels))
    rest[~number] = 0
    raised = np.zeros(len(table), dtype=np.int64)
    order = np.argsort(rest, kind="stable")
    starts = np.flatnonzero(np.diff(rest[order], prepend=-1))
    for cells in np.split(order, starts[1:]):
        if len(cells) and rest[cells[0]]:
            raised[cells] = source.binomial(table.counts[cells], Fraction(int(rest[cells[0]]), how.base))
    moved = np.concatenate([below, below + (raised > 0)]).astype(smallest_type(len(labels)))
    columns = [
        Column(name, labels, moved) if c.name == name else Column(c.name, c.labels, np.tile(c.codes, 2))
        for c in table.columns
    ]
    return Histogram.of(columns, np.concatenate([table.counts - raised, raised]))


def draw(settings: SampleSettled, table: Histogram, source: RandomSource) -> Made[SampleOutcome, SampleStatement]:
    """Draw once. Whatever comes out is the release."""
    outcome = run(table, settings.attributes, settings.levels, settings.sample, source, settings.terms)
    statement = state(outcome.terms, settings.sample, settings.levels)
    return Made(outcome.published, dict(settings.levels), statement, outcome)
