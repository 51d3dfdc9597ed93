"""From measurements of a few columns each to one model of all columns.

The model is log-linear, with one table of terms θ for each measurement, on a junction tree. The terms make

    N log Z(θ) − Σ θ·estimate + ½ Σ ridge·θ²

least, where Z is what the model sums to and N the number of people. Without the ridge this is the distribution of
greatest entropy with the estimated marginals. The ridge lets a marginal differ from its estimate, by ridge·θ people,
and is what an estimate's error asks for (`blocks`): it draws every cell, and every block of neighbouring cells, towards
what is expected without the measurement. So one that shows nothing but noise changes little.

A cell that was withheld because it was small is a censored observation: its likelihood is the probability of falling
below the threshold, which is replaced by a parabola at the current model, several times over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from incrowd.mechanisms.views.blocks import inside, sums, trusts
from incrowd.mechanisms.views.consistency import reconciled
from incrowd.mechanisms.views.descent import least
from incrowd.mechanisms.views.junction import JunctionTree
from incrowd.mechanisms.views.margins import Margins
from incrowd.mechanisms.views.measurements import Measurement
from incrowd.mechanisms.views.model import Model, Term, coarsened, coarsening, refined

Array = np.ndarray[Any, Any]

LIMIT = 2**20
"""The cells of all tables of a junction tree together, which decide how long a fit takes."""
_TOLERANCE, _ROUGHLY = 1e-4, 1e-3
"""Of a cell's error in standard deviations, squared, on average: of what is published, and of a fit that begins at
another model, which decides which view is next or scores what a rehearsal tells."""
_STEPS, _MORE_STEPS = 400, 100
"""At most: of a first fit, and of one that goes on from another."""
_ROUNDS = 4
"""How often the parabolas of censored cells are drawn anew."""
_DEPTH = 20.0
"""A cell is as good as empty if its factor is e to the power of minus this."""
_NOTHING = 1e12
"""The variance of an estimate that says nothing."""


def fit(
    sizes: Sequence[int],
    measurements: Sequence[Measurement],
    total: float,
    start: Model | None = None,
    near: Model | None = None,
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
        near: a model of some of the same measurements, near which the new one is looked for: this takes less time, and
            finds it less exactly.
        limit: a measurement that would make the tree's tables larger than this is left out, the last first.
    """
    kept = carried(sizes, [m.columns for m in measurements], limit)
    tree = JunctionTree(sizes, [measurements[i].columns for i in kept])
    known = {id(term.measurement): term for term in start.terms} if start is not None else {}
    guess = {id(term.measurement): term.thetas for term in near.terms} if near is not None else {}
    settled = [_turned(m, tree.ordered(m.columns)) for m in reconciled(sizes, measurements, total)]
    single = _beliefs(sizes, settled, total)

    def term(given: Measurement, now: Measurement) -> Term:
        if id(given) in known:
            return replace(known[id(given)], settled=now)
        expected = _product(single, now, total)
        if start is not None and len(now.columns) > 1:
            expected = coarsened(start.marginal(now.columns), now)
        found = trusts(now, expected)
        thetas = tuple(np.zeros(trust.looseness.shape) for trust in found)
        begun = guess.get(id(given), ())
        alike = [theta.shape for theta in begun] == [theta.shape for theta in thetas]
        return Term(given, now, tuple(found), begun if alike else thetas)

    terms = [term(given, now) for given, now in zip(measurements, settled, strict=True)]
    tolerance = _TOLERANCE if start is None and near is None else _ROUGHLY
    steps = _STEPS if start is None else _MORE_STEPS
    model = _solved(tree, [terms[i] for i in kept], total, tolerance, steps)
    return replace(model, left=tuple(m for i, m in enumerate(measurements) if i not in kept))


def _turned(m: Measurement, columns: tuple[int, ...]) -> Measurement:
    """The same with its columns in this order."""
    if m.columns == columns:
        return m
    axes = [m.columns.index(column) for column in columns]
    turned = {
        name: np.ascontiguousarray(np.transpose(getattr(m, name), axes))
        for name in ("estimate", "variance", "low", "high", "published")
    }
    return replace(m, columns=columns, recodes=tuple(m.recodes[axis] for axis in axes), **turned)


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


# --- the fit ---------------------------------------------------------------------------------------------------------


class _Problem:
    """The function of all terms' θ, as one vector, that a fit makes least."""

    def __init__(self, tree: JunctionTree, terms: Sequence[Term], total: float) -> None:
        self.tree, self.terms, self.total = tree, terms, total
        self.views = [term.settled for term in terms]
        homes = [tree.home_of(view.columns) for view in self.views]
        self.at_home = [[i for i, home in enumerate(homes) if home == clique] for clique in range(len(tree.cliques))]
        self.margins = [
            Margins(clique, tree.shape(clique), [self.views[i].columns for i in members])
            for clique, members in zip(tree.cliques, self.at_home, strict=True)
        ]
        self.coarse = [coarsening(view) for view in self.views]
        self.within = [[inside(trust.widths, term.settled.shape) for trust in term.trusts[1:]] for term in terms]
        self.cell_parts = _parts([view.estimate for view in self.views])
        self.theta_parts = _parts([theta for term in terms for theta in term.thetas])

    def cells(self, whole: Array) -> list[Array]:
        """Each measurement's own part of a vector with a number for each cell."""
        return [whole[part].reshape(shape) for part, shape in self.cell_parts]

    def thetas(self, whole: Array) -> list[list[Array]]:
        """Each term's own parts of a vector with a number for each θ."""
        parts = iter([whole[part].reshape(shape) for part, shape in self.theta_parts])
        return [[next(parts) for _ in term.thetas] for term in self.terms]

    def blocks(self, whole: Array) -> Array:
        """From a number for each cell to one for each θ: the sums of their blocks."""
        return _joined(
            [
                sums(part, trust.widths)
                for part, term in zip(self.cells(whole), self.terms, strict=True)
                for trust in term.trusts
            ]
        )

    def tables(self, theta: Array) -> tuple[list[Array], float]:
        """The tree's tables, and the logarithm of what they summed to."""
        factors = []
        for view, within, (own, *others) in zip(self.views, self.within, self.thetas(theta), strict=True):
            shared = (part.ravel()[place] for place, part in zip(within, others, strict=True))
            factors.append(refined(sum(shared, own), view))
        logs = [
            margins.spread([factors[i] for i in members])
            for margins, members in zip(self.margins, self.at_home, strict=True)
        ]
        return self.tree.propagate(logs)

    def people(self, tables: Sequence[Array]) -> Array:
        """What the model expects in every cell of every measurement."""
        shares: dict[int, Array] = {}
        for table, margins, members in zip(tables, self.margins, self.at_home, strict=True):
            shares.update(zip(members, margins.of(table), strict=True))
        found = [
            shares[i] if place is None else np.bincount(place, shares[i].ravel(), self.views[i].estimate.size)
            for i, place in enumerate(self.coarse)
        ]
        return _joined(found) * self.total

    def least(self, theta: Array, estimate: Array, variance: Array, tolerance: float, steps: int) -> Array:
        """The best θ, from a first guess."""
        ridge = self.blocks(variance) * _joined([trust.looseness for term in self.terms for trust in term.trusts])
        # An estimate far below 0 asks for a still smaller θ of a cell that is empty in any case.
        own = _joined([parts[0] for parts in self.thetas(ridge)])
        estimate = np.maximum(estimate, -_DEPTH * own)
        wanted = self.blocks(estimate)
        scale = 1 / np.sqrt(np.maximum(wanted, 1.0) + ridge)

        def function(scaled: Array) -> tuple[float, Array]:
            at = scaled * scale
            tables, log = self.tables(at)
            drawn = ridge * at
            value = self.total * log + float(np.sum((0.5 * drawn - wanted) * at))
            return value, (self.blocks(self.people(tables)) - wanted + drawn) * scale

        return np.asarray(least(function, theta / scale, tolerance=tolerance * len(theta), steps=steps) * scale)


def _solved(tree: JunctionTree, terms: Sequence[Term], total: float, tolerance: float, steps: int) -> Model:
    problem = _Problem(tree, terms, total)
    withheld = ~_joined([view.published for view in problem.views])
    estimate = _joined([view.estimate for view in problem.views])
    variance = _joined([view.variance for view in problem.views])
    theta = _joined([theta for term in terms for theta in term.thetas])
    if withheld.any():
        high = _joined([view.high for view in problem.views])[withheld]
        width = np.sqrt(np.where(variance[withheld] > 0, variance[withheld], high))
        estimate[withheld], variance[withheld] = 0.0, _NOTHING
        for _ in range(_ROUNDS):
            theta = problem.least(theta, estimate, variance, 10 * tolerance, steps)
            at = problem.people(problem.tables(theta)[0])[withheld]
            estimate[withheld], variance[withheld] = _parabola(at, high, width)
    theta = problem.least(theta, estimate, variance, tolerance, steps)
    fitted = [replace(term, thetas=tuple(parts)) for term, parts in zip(terms, problem.thetas(theta), strict=True)]
    return Model(tree, problem.tables(theta)[0], total, tuple(fitted))


def _parts(arrays: Sequence[Array]) -> list[tuple[slice, tuple[int, ...]]]:
    """Where each array is in one vector of all of them, and its shape."""
    ends = np.cumsum([array.size for array in arrays]).tolist()
    return [(slice(end - array.size, end), array.shape) for end, array in zip(ends, arrays, strict=True)]


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate([part.ravel() for part in parts])


def _parabola(at: Array, below: Array, width: Array) -> tuple[Array, Array]:
    """The estimate and variance whose likelihood touches, at this count, that of falling below a threshold."""
    from scipy.special import log_ndtr

    z = (below - at) / width
    slope = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    curve = np.maximum(slope * (slope + z), width**2 / _NOTHING)
    return at - slope / curve * width, width**2 / curve
