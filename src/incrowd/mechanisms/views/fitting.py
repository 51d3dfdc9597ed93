"""From measurements of a few columns each to one model of all columns.

The model is log-linear, with one table of terms θ for each measurement, on a junction tree. The terms make

    N log Z(θ) − Σ θ·estimate + ½ Σ ridge·θ²

least, where Z is what the model sums to and N the number of people. Without the ridge this is the distribution of
greatest entropy with the estimated marginals. The ridge lets a marginal differ from its estimate, by ridge·θ people,
and is what an estimate's error asks for: let e be what is expected of a cell before its measurement is looked at,
and e + r²e² the variance of the true count about it (chance, and a dependence of relative size r, which is estimated
from the measurement itself). Then ridge = variance / (1 + r²e) draws the cell towards e as far as the linear estimate
of least mean squared error does; half of it is taken. So a measurement that shows nothing but noise changes little.

A cell that was withheld because it was small is a censored observation: its likelihood is the probability of falling
below the threshold, which is replaced by a parabola at the current model, several times over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from incrowd.mechanisms.views.consistency import reconciled
from incrowd.mechanisms.views.descent import least
from incrowd.mechanisms.views.junction import JunctionTree, onto, spread
from incrowd.mechanisms.views.measurements import Measurement
from incrowd.mechanisms.views.model import Model, Term, coarsened, refined

Array = np.ndarray[Any, Any]

LIMIT = 2**20
"""The cells of all tables of a junction tree together, which decide how long a fit takes."""
_TOLERANCE = 1e-4
"""Of a cell's error in standard deviations, squared, on average."""
_STEPS, _MORE_STEPS = 400, 100
"""At most: of a first fit, and of one that goes on from another."""
_ROUNDS = 4
"""How often the parabolas of censored cells are drawn anew."""
_DRAW = 0.5
"""The part of the ridge that is taken: the whole is right for squared errors, half of it better for absolute ones."""
_FIRMEST = 0.05
"""The least ridge, in standard deviations: measurements that contradict each other must not drive θ far apart."""
_DEPTH = 20.0
"""A cell is as good as empty if its factor is e to the power of minus this."""
_NOTHING = 1e12
"""The variance of an estimate that says nothing."""


def fit(
    sizes: Sequence[int],
    measurements: Sequence[Measurement],
    total: float,
    start: Model | None = None,
    limit: int = LIMIT,
) -> Model:
    """The model of a table with columns of these sizes and so many people.

    Args:
        sizes: how many codes each column has.
        measurements: what is known. Of a cell that was not published, `high` is the number of people from which it
            would as likely as not have been, and `variance` that of an estimate of this size.
        total: the number of people.
        start: a model of the first of the same measurements; the others are taken as deviations from it. Without one,
            columns are expected to be independent.
        limit: a measurement that would make the tree's tables larger than this is left out, the last first.
    """
    kept = carried(sizes, [m.columns for m in measurements], limit)
    tree = JunctionTree(sizes, [measurements[i].columns for i in kept])
    known = {id(term.measurement): term for term in start.terms} if start is not None else {}
    settled = reconciled(sizes, measurements, total)
    single = _beliefs(sizes, settled, total)

    def term(given: Measurement, now: Measurement) -> Term:
        if id(given) in known:
            return replace(known[id(given)], settled=now)
        expected = _product(single, now, total)
        if start is not None and len(now.columns) > 1:
            expected = coarsened(start.marginal(now.columns), now)
        return Term(given, now, np.zeros(now.shape), _looseness(now, expected))

    terms = [term(given, now) for given, now in zip(measurements, settled, strict=True)]
    model = _solved(tree, [terms[i] for i in kept], total, _STEPS if start is None else _MORE_STEPS)
    return replace(model, left=tuple(m for i, m in enumerate(measurements) if i not in kept))


def carried(sizes: Sequence[int], sets: Sequence[Sequence[int]], limit: int) -> list[int]:
    """Which of the sets a junction tree of so many cells has room for, the first first; single columns always."""
    if JunctionTree(sizes, sets).cells <= limit:
        return list(range(len(sets)))
    kept = [i for i, columns in enumerate(sets) if len(columns) == 1]
    for i, columns in enumerate(sets):
        if len(columns) > 1 and JunctionTree(sizes, [*(sets[j] for j in kept), columns]).cells <= limit:
            kept.append(i)
    return sorted(kept)


# --- what is expected, and how far to trust an estimate --------------------------------------------------------------


def _beliefs(sizes: Sequence[int], measurements: Sequence[Measurement], total: float) -> list[Array]:
    """The people of each value of each column by its finest one-way measurement; evenly, if it has none."""
    found = [np.full(size, total / size) for size in sizes]
    for m in sorted((m for m in measurements if len(m.columns) == 1), key=lambda m: m.estimate.size):
        people = np.where(m.published, m.estimate, 0.0).clip(0)
        rest = max(total - float(people.sum()), 0.0) / max(int((~m.published).sum()), 1)
        people = np.where(m.published, people, np.minimum(rest, m.high)).clip(0.5)
        column, recode = m.columns[0], m.recodes[0]
        spread_out = people[recode] / np.bincount(recode, minlength=len(people))[recode]
        found[column] = spread_out * (total / spread_out.sum())
    return found


def _product(single: Sequence[Array], m: Measurement, total: float) -> Array:
    """What a measurement would show if columns were independent; of a single column, if all values were as frequent."""
    expected = np.array(total)
    for column in m.columns:
        share = np.full(len(single[column]), 1 / len(single[column])) if len(m.columns) == 1 else single[column] / total
        expected = np.multiply.outer(expected, share)
    return coarsened(expected, m)


def _looseness(m: Measurement, expected: Array) -> Array:
    """The ridge for each unit of variance."""
    deviation = np.sqrt(np.maximum(m.variance, 1e-12))
    beyond = (m.estimate - expected) ** 2 - m.variance - expected
    weight = m.published / (expected + deviation)
    relative = max(float((weight * beyond).sum()), 0.0) / max(float((weight * expected**2).sum()), 1e-9)
    return np.asarray(np.maximum(_DRAW / (1 + relative * expected), _FIRMEST / deviation))


# --- the fit ---------------------------------------------------------------------------------------------------------


class _Problem:
    """The function of all terms' θ, as one vector, that a fit makes least."""

    def __init__(self, tree: JunctionTree, terms: Sequence[Term], total: float, steps: int) -> None:
        self.tree, self.total, self.steps = tree, total, steps
        self.views = [term.settled for term in terms]
        self.homes = [tree.home_of(view.columns) for view in self.views]
        self.ends = np.cumsum([view.estimate.size for view in self.views])[:-1]

    def apart(self, whole: Array) -> list[Array]:
        """Each term's own part."""
        return [part.reshape(view.shape) for part, view in zip(np.split(whole, self.ends), self.views, strict=True)]

    def tables(self, theta: Array) -> tuple[list[Array], float]:
        """The tree's tables, and the logarithm of what they summed to."""
        logs = [np.zeros(self.tree.shape(clique)) for clique in self.tree.cliques]
        for home, view, part in zip(self.homes, self.views, self.apart(theta), strict=True):
            logs[home] += spread(refined(part, view), view.columns, self.tree.cliques[home])
        return self.tree.propagate(logs)

    def people(self, tables: Sequence[Array]) -> Array:
        """What the model expects in every cell of every measurement."""
        shares = [
            coarsened(onto(tables[home], self.tree.cliques[home], view.columns), view)
            for home, view in zip(self.homes, self.views, strict=True)
        ]
        return _joined(shares) * self.total

    def least(self, theta: Array, estimate: Array, ridge: Array, tolerance: float) -> Array:
        """The best θ, from a first guess."""
        # An estimate far below 0 asks for a still smaller θ of a cell that is empty in any case.
        estimate = np.maximum(estimate, -_DEPTH * ridge)
        scale = 1 / np.sqrt(np.maximum(estimate, 1.0) + ridge)

        def function(scaled: Array) -> tuple[float, Array]:
            at = scaled * scale
            tables, log = self.tables(at)
            drawn = ridge * at
            value = self.total * log + float(np.sum((0.5 * drawn - estimate) * at))
            return value, (self.people(tables) - estimate + drawn) * scale

        return np.asarray(least(function, theta / scale, tolerance=tolerance * len(theta), steps=self.steps) * scale)


def _solved(tree: JunctionTree, terms: Sequence[Term], total: float, steps: int) -> Model:
    problem = _Problem(tree, terms, total, steps)
    loose = _joined([term.looseness for term in terms])
    withheld = ~_joined([view.published for view in problem.views])
    estimate = _joined([view.estimate for view in problem.views])
    variance = _joined([view.variance for view in problem.views])
    theta = _joined([term.theta for term in terms])
    if withheld.any():
        high = _joined([view.high for view in problem.views])[withheld]
        width = np.sqrt(np.where(variance[withheld] > 0, variance[withheld], high))
        estimate[withheld], variance[withheld] = 0.0, _NOTHING
        for _ in range(_ROUNDS):
            theta = problem.least(theta, estimate, loose * variance, 10 * _TOLERANCE)
            at = problem.people(problem.tables(theta)[0])[withheld]
            estimate[withheld], variance[withheld] = _parabola(at, high, width)
    theta = problem.least(theta, estimate, loose * variance, _TOLERANCE)
    fitted = [replace(term, theta=part) for term, part in zip(terms, problem.apart(theta), strict=True)]
    return Model(tree, problem.tables(theta)[0], total, tuple(fitted))


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate([part.ravel() for part in parts])


def _parabola(at: Array, below: Array, width: Array) -> tuple[Array, Array]:
    """The estimate and variance whose likelihood touches, at this count, that of falling below a threshold."""
    from scipy.special import log_ndtr

    z = (below - at) / width
    slope = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    curve = np.maximum(slope * (slope + z), width**2 / _NOTHING)
    return at - slope / curve * width, width**2 / curve
