"""Sample, recode, and publish only crowds of k (Li, Qardaji, Su).

*Precondition.* The histogram counts the full table on its declared domains, at most m rows per person. The levels are
fixed in the policy, or chosen here on the full table with their own share of ε; they are never chosen on the sample.

*Promise.* (ε,δ)-DP for adding or removing one person, with ε = ε₁ + ε₂ and δ the δ(k, β, ε₂, m) of
`incrowd.theory.crowd`, exact for m = 1: an ε₁-DP choice of the mapping followed by a sampled crowd under it, by
adaptive composition. One-way tables of the full table (`totals`) add an ε of their own: one person changes d tables by
m rows each, so discrete Laplace noise e^{−a|x|} with a = ε/(d·m) pays for them. The noisy tables by which a choice has
weighed the columns are part of what ε₁ pays for, so they are published, too (`values.json`).

*What must not be published* for this to hold: the size of the sample and the number of suppressed records. They leave
this module only inside `CrowdOutcome`, for the publisher's internal report.

If the table itself is a β-sample of the population ("already sampled"), nothing is sampled here, levels must be
fixed, and the promise is about the population that it was drawn from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.core.errors import GuaranteeError, InternalError
from incrowd.domain import Recode
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.marginals import Crowds
from incrowd.mechanisms.base import (
    Made,
)
from incrowd.mechanisms.sampled_crowd.certificate import CrowdStatement
from incrowd.mechanisms.sampled_crowd.levels import choose_levels
from incrowd.mechanisms.sampled_crowd.one_way import ONE_WAY, VALUES, OneWay
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings, CrowdSettled
from incrowd.mechanisms.sampled_crowd.state import state
from incrowd.noise import DiscreteLaplace
from incrowd.noise import draw as draw_noise
from incrowd.randomness import RandomSource
from incrowd.sources.kept import KeptTable


@dataclass(frozen=True, eq=False)
class CrowdOutcome:
    """What came out.

    Attributes:
        published: the release: every cell holds k records or more.
        levels: the level at which each column is shown.
        sample: the recoded sample before suppression. For the publisher's eyes only.
        recoded: the table that the sample was drawn from, as the release shows it: the full one, or those cells of it
            that can be published. For the publisher's eyes only.
        one_way: noisy counts of each column, as the release shows it; None if the policy does not ask for them.
        weights: what each column counted in the choice of levels; None if nothing was chosen, or all counted together.
        values: the noisy counts that the weights come from; None if they do not come from the table.
        crowds: what is known of the table, if its small cells stayed in the engine. For the publisher's eyes only.
    """

    published: Histogram
    levels: Mapping[str, int]
    sample: Histogram
    recoded: Histogram
    one_way: OneWay | None = None
    weights: Mapping[str, float] | None = None
    values: OneWay | None = None
    crowds: Crowds | None = None


def run(
    table: Histogram | Crowds | KeptTable,
    attributes: Sequence[CodedAttribute],
    fixed: Mapping[str, int],
    settings: CrowdSettings,
    source: RandomSource,
) -> CrowdOutcome:
    """Choose what is left to choose, sample, recode, suppress.

    Args:
        table: the full table, raw codes, one column for each attribute; or, if nothing is left to choose, its cells of
            k records and more at the levels that are fixed (docs/proofs.md, "Cells that stay in the engine"); or what
            answers for it in the engine, with columns whose levels are fixed recoded.
        attributes: the attributes in the order of the table's columns.
        fixed: the levels that the policy fixes.
        settings: what is promised; checked once more before anything is drawn.
        source: the random bits.
    """
    if not settings.kept:
        raise InternalError("a sampled crowd was started with settings that do not keep its promise")
    open_ones = [a.name for a in attributes if a.name not in fixed]
    if settings.already_sampled and open_ones:
        raise GuaranteeError(
            "The table is declared to be a sample already, so its levels cannot be chosen by looking at it.",
            code="choice-on-sample",
            remedy="Give every attribute its 'level' in the policy.",
            details={"without_level": open_ones},
        )
    levels, chosen = dict(fixed), None
    if open_ones and not isinstance(table, Crowds):
        chosen = choose_levels(table, attributes, fixed, settings, source)
        levels |= chosen.levels
    recodes = {a.name: a.hierarchy.recode(levels[a.name]) for a in attributes}
    if isinstance(table, KeptTable):
        table = table.crowds(recodes, settings.k)
    recoded = table.recode(recodes) if isinstance(table, Histogram) else _asked_for(table, recodes, settings)
    # Sampling commutes with recoding: thinning a recoded cell is sampling its records one by one. Cells that can be
    # published come first and the others last, so that equal bits make equal releases whether or not these are here.
    large, counts = recoded.counts >= settings.k, recoded.counts.copy()
    if not settings.already_sampled:
        counts[large] = source.binomial(counts[large], settings.beta)
    one_way = _one_way(table, recodes, settings, source) if settings.totals_epsilon else None
    if not settings.already_sampled:
        counts[~large] = source.binomial(counts[~large], settings.beta)
    sample = recoded.with_counts(counts)
    published, crowds = sample.where(sample.counts >= settings.k), table if isinstance(table, Crowds) else None
    weights, values = (None, None) if chosen is None else (chosen.weights, chosen.values)
    return CrowdOutcome(published, levels, sample, recoded, one_way, weights, values, crowds)


def _asked_for(table: Crowds, recodes: Mapping[str, Recode], settings: CrowdSettings) -> Histogram:
    """The cells that can be published, at the levels that are fixed."""
    shown = [(column.name, column.labels) for column in table.cells.columns]
    if shown != [(name, recode.labels) for name, recode in recodes.items()] or table.at_least > settings.k:
        raise InternalError("a sampled crowd was given other cells than it asked for")
    return table.cells


def _one_way(
    table: Histogram | Crowds, recodes: Mapping[str, Recode], settings: CrowdSettings, source: RandomSource
) -> OneWay:
    """Counts of the full table, one column at a time, with discrete Laplace noise."""
    noise = settings.totals_noise(len(recodes))
    law = DiscreteLaplace(Fraction(noise.decay))
    tallies = table.tallies if isinstance(table, Histogram) else table.whole.tallies
    counts = {}
    for name, recode in recodes.items():
        exact = np.zeros(len(recode.labels), dtype=np.int64)
        np.add.at(exact, recode.to, tallies[name])
        counts[name] = exact + draw_noise(source, law, len(exact))
    return OneWay(noise, {name: recode.labels for name, recode in recodes.items()}, counts)


def draw(
    settings: CrowdSettled, table: Histogram | Crowds | KeptTable, source: RandomSource
) -> Made[CrowdOutcome, CrowdStatement]:
    """Choose, sample and suppress; then derive the promise once more from what came out."""
    outcome = run(table, settings.attributes, settings.fixed, settings.crowd, source)
    smallest = int(outcome.published.counts.min()) if len(outcome.published) else settings.crowd.k
    if not settings.crowd.kept or smallest < settings.crowd.k:
        raise InternalError("the release is not what the policy promises")
    statement = state(settings.crowd, outcome.levels, settings.chosen, outcome.weights)
    tables = {ONE_WAY: outcome.one_way, VALUES: outcome.values}
    beside = {name: one.to_bytes() for name, one in tables.items() if one is not None}
    return Made(outcome.published, outcome.levels, statement, outcome, beside)
