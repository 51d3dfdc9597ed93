"""One-way tables, further views, and a synthetic table made of them.

*Precondition.* The histogram counts the full table on its declared domains, one record per person.

*Promise.* (ε,δ)-DP for adding or removing one record, for all views and choices together: every step's parameters were
fixed before anything was drawn (`ViewsPlan`), every view by crowds thins the full table afresh, and every choice is
drawn on the full table with randomness of its own. The synthetic table is made from the views alone: it costs nothing.

*What must not be published* for this to hold: the size of any sample, and the number of records in cells withheld.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from incrowd.core.errors import InternalError
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.base import Made, Publication
from incrowd.mechanisms.views.certificate import ViewsCertificate, ViewsStatement
from incrowd.mechanisms.views.choose import Candidate, Chooser, coarse, total_of
from incrowd.mechanisms.views.model import Model
from incrowd.mechanisms.views.model_fit import fit
from incrowd.mechanisms.views.settle import ViewsSettled
from incrowd.mechanisms.views.state import read_views, state
from incrowd.mechanisms.views.truth import Integers, Truth
from incrowd.mechanisms.views.view import View
from incrowd.noise import DiscreteGaussian, DiscreteLaplace
from incrowd.noise import draw as noise
from incrowd.randomness import RandomSource
from incrowd.sources.kept import KeptTable
from incrowd.theory.views import CrowdStep, NoiseStep, Step


@dataclass(frozen=True, eq=False)
class ViewsOutcome:
    """What came out.

    Attributes:
        views: all of them, in the order in which they were drawn.
        drawn_from: the model that the synthetic table was drawn from; None if none was asked for.
        combined: the synthetic table.
        truth: the full table that they were drawn from. For the publisher's eyes only.
        last: the model in whose light the last view was chosen, if it was.
    """

    views: tuple[View, ...]
    drawn_from: Model | None
    combined: Histogram
    truth: Truth
    last: Model | None = None

    @cached_property
    def model(self) -> Model:
        """What the views say together: where no synthetic table was drawn from it, nearly."""
        return self.drawn_from or fitted(self.truth.sizes, self.views, near=self.last)


def run(settings: ViewsSettled, table: Histogram | KeptTable, source: RandomSource) -> ViewsOutcome:
    """Draw the views one after the other, and combine them.

    Args:
        settings: what is promised; checked once more before anything is drawn.
        table: the full table at the levels at which it is counted.
        source: the random bits.
    """
    plan = settings.plan
    if not plan.kept:
        raise InternalError("views were started with settings that do not keep their promise")
    truth = Truth(table)
    chooser = Chooser(settings, truth)
    places = {name: place for place, name in enumerate(settings.names)}
    truth.look((places[name],) for name in settings.singles)
    views = [
        _drawn(chooser, Candidate((places[name],), (settings.base[name],)), plan.single, source)
        for name in settings.singles
    ]
    last: Model | None = None
    if settings.listed:
        model = _fitted(chooser, views) if settings.by == "crowd" else None
        for listed in settings.listed:
            candidate = chooser.at_levels(tuple(places[name] for name in listed), model)
            views.append(_drawn(chooser, candidate, plan.view, source))
    else:
        chosen, last = _chosen(chooser, views, source)
        views += chosen
    if (len(views), plan.singles) != (plan.singles + plan.views, len(settings.singles)):
        raise InternalError("other views were drawn than were planned")
    if not settings.combine:
        return ViewsOutcome(tuple(views), None, _nothing(truth.columns), truth, last)
    model = _fitted(chooser, views)
    rng = np.random.default_rng([int(word) for word in source.words(4)])
    return ViewsOutcome(tuple(views), model, combined(model, truth.columns, settings.rows, rng), truth)


def _chosen(chooser: Chooser, singles: Sequence[View], source: RandomSource) -> tuple[list[View], Model | None]:
    """Views that are chosen one after the other, each in the light of those before, and the model before the last."""
    plan, choice = chooser.settings.plan, chooser.settings.choice
    found: list[View] = []
    model = _fitted(chooser, singles) if plan.views else None
    for number in range(plan.views):
        if model is None or choice is None or plan.choices != plan.views:
            raise InternalError("a view was to be chosen without a charge")
        if number and (choice.how == "adaptive" or choice.columns > 2):
            # Along a tree of pairs, the ends of a bridge are independent whatever is known of the rest.
            model = _fitted(chooser, [*singles, *found], model)
        candidate = chooser.pick(chooser.possible([view.places for view in found], model), model, source)
        found.append(_drawn(chooser, candidate, plan.view, source))
    return found, model


def _drawn(chooser: Chooser, candidate: Candidate, step: Step, source: RandomSource) -> View:
    """A view of the full table, with fresh randomness."""
    recodes = chooser.recodes(candidate)
    counts = coarse(chooser.truth.by(candidate.places), recodes).astype(np.int64)
    names = chooser.settings.names
    return View(
        tuple(names[place] for place in candidate.places),
        candidate.places,
        candidate.levels,
        tuple(recodes),
        step,
        _counted(counts, step, source),
    )


def _counted(counts: Integers, step: Step, source: RandomSource) -> Integers:
    if isinstance(step, CrowdStep):
        sampled = source.binomial(counts, step.beta)
        return np.where(sampled >= step.k, sampled, 0)
    law = DiscreteGaussian(step.variance) if isinstance(step, NoiseStep) else DiscreteLaplace(Fraction(step.decay))
    return counts + noise(source, law, counts.size).reshape(counts.shape)


def _fitted(chooser: Chooser, views: Sequence[View], start: Model | None = None) -> Model:
    return fitted(chooser.sizes, views, start)


def fitted(sizes: Sequence[int], views: Sequence[View], start: Model | None = None, near: Model | None = None) -> Model:
    """What views say together: post-processing of what is published."""
    measurements = [view.measurement for view in views]
    singles = [m for m in measurements if len(m.columns) == 1]
    return fit(sizes, measurements, total_of(singles or measurements), start, near)


def combined(model: Model, columns: Sequence[Column], rows: int | None, rng: np.random.Generator) -> Histogram:
    """A synthetic table in the columns' own values. Its rows are nobody's records."""
    size = max(1, round(model.total)) if rows is None else rows
    codes = model.sample(size, rng)
    return Histogram.of([Column(c.name, c.labels, codes[:, place]) for place, c in enumerate(columns)])


def _nothing(columns: Sequence[Column]) -> Histogram:
    return Histogram.of([Column(c.name, c.labels, np.zeros(0, np.uint8)) for c in columns])


def draw(
    settings: ViewsSettled, table: Histogram | KeptTable, source: RandomSource
) -> Made[ViewsOutcome, ViewsStatement]:
    """Draw all views; then derive the promise once more from what came out."""
    outcome = run(settings, table, source)
    statement = state(settings, outcome.views)
    if not settings.plan.kept or len(statement.mechanism.views) != settings.plan.singles + settings.plan.views:
        raise InternalError("the release is not what the policy promises")
    beside = {one.file: view.to_bytes() for one, view in zip(statement.mechanism.views, outcome.views, strict=True)}
    return Made(outcome.combined, dict(settings.base), statement, outcome, beside)


def drawn_again(certificate: ViewsCertificate, published: Publication, rows: int | None, seed: int | None) -> Histogram:
    """Another synthetic table from published views, which costs nothing, because nothing else is looked at.

    So many rows, or about as many as people; the same for the same seed.
    """
    views = read_views(certificate.mechanism, certificate.labels, published.beside)
    model = fitted([len(labels) for labels in certificate.labels.values()], views)
    none = np.zeros(0, np.uint8)
    columns = [Column(name, labels, none) for name, labels in certificate.labels.items()]
    return combined(model, columns, rows, np.random.default_rng(seed))
