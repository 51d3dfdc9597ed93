"""Which columns the next view has: a private choice on the full table, and the level of each by a public rule.

**The score.** Let E be what the model of all that is published so far expects in each cell of a possible view, rounded
to whole people, and t ≥ 0 whole numbers that say how much of a difference the view would hide: E and t depend on what
is published, and on nothing else. The score of the view is

    s = Σ over its cells of max(|M − E| − t, 0),

with M the true counts. Every record is in one cell of each possible view, so adding or removing one changes one M by
one, and no score by more than one. All of them are whole numbers, so this holds to the last digit.

**The choice.** A view is drawn with probability proportional to e^{e·s/2}, exactly. The logarithm of each weight moves
by e/2 at most, up or down: within a range of e. So the choice is e-DP, and e²/8-zCDP.

**Levels** follow from the model alone, and cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from incrowd.domain import Recode
from incrowd.mechanisms.views.measurements import Measurement
from incrowd.mechanisms.views.model import Model
from incrowd.mechanisms.views.settle import MOST_CELLS, ViewsSettled
from incrowd.mechanisms.views.truth import Truth
from incrowd.noise import choose
from incrowd.randomness import RandomSource
from incrowd.theory.views import CrowdStep

Floats = NDArray[np.float64]

MOST_MODEL_CELLS = 1 << 18
"""Of the tables of the model that an adaptive choice may lead to: they decide how long a fit takes."""

MOST_NOISE = 4
"""A view may have so many times as much noise as there are people, in all its cells together; else it tells nothing."""

_MEAN_DEVIATION = math.sqrt(2 / math.pi)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A possible view."""

    places: tuple[int, ...]
    levels: tuple[int, ...]


class Chooser:
    """Knows the true table, so that it can draw a choice."""

    def __init__(self, settings: ViewsSettled, truth: Truth) -> None:
        self.settings, self.truth, self.sizes = settings, truth, truth.sizes
        self._recodes: dict[tuple[int, int], Recode] = {}

    def pick(self, candidates: Sequence[Candidate], model: Model, source: RandomSource) -> Candidate:
        """One of the possible views, drawn by the exponential mechanism."""
        half = Fraction(self.settings.plan.exponent) / 2
        self.truth.look(candidate.places for candidate in candidates)
        return candidates[choose(source, [half * self.score(candidate, model) for candidate in candidates])]

    def score(self, candidate: Candidate, model: Model) -> int:
        """What a view would tell beyond the model. Secret, like the counts that it is made of."""
        recodes = self.recodes(candidate)
        expected = coarse(model.marginal(candidate.places), recodes)
        people = np.rint(expected).astype(np.int64)
        hidden = np.ceil(self.unseen(expected)).astype(np.int64)
        counts = coarse(self.truth.by(candidate.places), recodes).astype(np.int64)
        return int(np.maximum(np.abs(counts - people) - hidden, 0).sum())

    def unseen(self, expected: Floats) -> Floats:
        """About how large a difference from what is expected a cell's noise or threshold would hide."""
        step = self.settings.plan.view
        if not isinstance(step, CrowdStep):
            return np.full(expected.shape, _MEAN_DEVIATION * step.deviation)
        scatter = _MEAN_DEVIATION * np.sqrt(expected * (1 - step.beta) / step.beta)
        return np.where(expected >= step.threshold, scatter, step.threshold)

    def recodes(self, candidate: Candidate) -> list[Recode]:
        """From the codes that are counted to those of a view."""
        return [self._recode(p, level) for p, level in zip(candidate.places, candidate.levels, strict=True)]

    def _recode(self, place: int, level: int) -> Recode:
        if (place, level) not in self._recodes:
            self._recodes[place, level] = self.settings.coarser(self.settings.names[place], level)
        return self._recodes[place, level]

    def at_levels(self, places: tuple[int, ...], model: Model | None) -> Candidate:
        """The view of some columns at levels that it can carry: a rule that looks at the model alone.

        Of all levels, those at which most is told of the people in cells that are expected to be shown: the logarithm
        of the number of cells is what is told of each. Noisy counts are shown whatever they are, as finely as can be.
        """
        names, step = self.settings.names, self.settings.plan.view
        finest = tuple(self.settings.base[names[p]] for p in places)
        if not isinstance(step, CrowdStep) or model is None:
            return Candidate(places, finest)
        people = model.marginal(places)
        best, found = -1.0, finest
        for levels in product(*(self.settings.levels(names[p]) for p in places)):
            recodes = self.recodes(Candidate(places, levels))
            cells = coarse(people, recodes)
            told = math.log(max(2, cells.size)) * float(cells[cells >= step.threshold].sum())
            if told > best:
                best, found = told, levels
        return Candidate(places, found)

    # --- which views are possible --------------------------------------------------------------------------------

    def possible(self, chosen: Sequence[tuple[int, ...]], model: Model) -> list[Candidate]:
        """The views among which the next is chosen, given those that were: never none."""
        choice = self.settings.choice
        columns = 2 if choice is None else choice.columns
        if choice is not None and choice.how == "adaptive":
            sets = self._open(chosen, columns, model)
        elif columns == 2:
            sets = self._bridges(chosen, model)
        else:
            sets = self._triangles(chosen, model)
        return [self.at_levels(places, model) for places in sets]

    def _bridges(self, chosen: Sequence[tuple[int, ...]], model: Model) -> list[tuple[int, ...]]:
        """The pairs that connect two columns which are not connected yet."""
        part = list(range(len(self.sizes)))
        for a, b in chosen:
            gone, kept = part[b], part[a]
            part = [kept if p == gone else p for p in part]
        pairs: list[tuple[int, ...]] = [(a, b) for a, b in combinations(range(len(part)), 2) if part[a] != part[b]]
        return self._worthwhile(pairs, model)

    def _triangles(self, chosen: Sequence[tuple[int, ...]], model: Model) -> list[tuple[int, ...]]:
        """The triples that add one column to a pair of an earlier triple: together they are a junction tree."""
        everything = range(len(self.sizes))
        sets: list[tuple[int, ...]]
        if not chosen:
            sets = list(combinations(everything, 3))
        else:
            old = {place for triple in chosen for place in triple}
            pairs = sorted({pair for triple in chosen for pair in combinations(triple, 2)})
            sets = [tuple(sorted((*pair, new))) for pair in pairs for new in everything if new not in old]
        return self._worthwhile(sets, model)

    def _open(self, chosen: Sequence[tuple[int, ...]], columns: int, model: Model) -> list[tuple[int, ...]]:
        """The pairs (and triples) that the model has room for, those chosen before apart.

        A triple is possible once a view has two of its columns: before, what its pairs say is yet to be learnt, and
        there are too many of them to look at each.
        """
        everything = range(len(self.sizes))
        left: list[tuple[int, ...]] = [pair for pair in combinations(everything, 2) if pair not in chosen]
        if columns > 2:
            known = {pair for places in chosen for pair in combinations(places, 2)}
            wider = {tuple(sorted((*pair, new))) for pair in known for new in everything if new not in pair}
            left += sorted(wider - set(chosen))
        sets = self._worthwhile(left, model)
        roomy = [places for places in sets if model.cost_of_adding(places) <= MOST_MODEL_CELLS]
        return roomy or sets

    def _worthwhile(self, sets: Sequence[tuple[int, ...]], model: Model) -> list[tuple[int, ...]]:
        """Those that are small enough to be drawn, and for their noise not to drown the people; never none.

        It looks at what is published alone: the sizes of columns and the total of the model.
        """
        step = self.settings.plan.view
        most = float(MOST_CELLS)
        if not isinstance(step, CrowdStep):
            most = min(most, MOST_NOISE * model.total / (_MEAN_DEVIATION * step.deviation))
        cells = {places: math.prod(self.sizes[p] for p in places) for places in sets}
        least = min(cells.values())
        return [places for places, size in cells.items() if size <= max(most, least)]


def coarse(people: NDArray[np.generic], recodes: Sequence[Recode]) -> Floats:
    """A table by the codes that are counted, summed up to coarser ones."""
    found: NDArray[np.generic] = people
    for axis, recode in enumerate(recodes):
        if len(recode.labels) != found.shape[axis]:
            to = np.asarray(recode.to)
            moved = np.moveaxis(found, axis, 0)
            summed = np.zeros((len(recode.labels), *moved.shape[1:]), dtype=found.dtype)
            np.add.at(summed, to, moved)
            found = np.moveaxis(summed, 0, axis)
    return found  # type: ignore[return-value]


def total_of(measurements: Sequence[Measurement]) -> float:
    """About how many people there are: from every one-way view, those in which little is hidden counting most."""

    def each() -> Iterator[tuple[float, float]]:
        for m in measurements:
            hidden = float(m.high[~m.published].sum()) if not m.published.all() else 0.0
            shown = float(m.estimate[m.published].sum())
            # Of what is hidden, nothing is known but that it lies between nothing and the bounds.
            scale = float(m.variance[m.published].sum()) + hidden**2 / 12 + 1.0
            yield shown + min(hidden / 2, 0.02 * shown), 1 / scale

    found = list(each())
    weight = sum(w for _, w in found)
    return max(1.0, sum(t * w for t, w in found) / weight)
