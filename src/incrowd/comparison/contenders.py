"""The ways to publish a table that are compared: what each promises, and the counts that it leaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.comparison.workload import Floats, Marginals, Workload
from incrowd.histogram import Histogram
from incrowd.mechanisms.pram import draw as pram
from incrowd.mechanisms.pram.blocks import Block
from incrowd.mechanisms.pram.plan import largest_retention
from incrowd.mechanisms.sample.settle import SampleSettings, find_terms
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.settle import solve
from incrowd.mechanisms.views import draw as views
from incrowd.mechanisms.views.section import Views
from incrowd.mechanisms.views.settle import settled_for
from incrowd.randomness import RandomSource
from incrowd.recoding.fidelity import Names, dense
from incrowd.theory.randomisation import RetentionReplacement, local_epsilon

NOISY_CELLS = 20_000
"""A histogram of all possible cells is made noisy as a whole up to this size; beyond, the counts that are asked for."""


@dataclass(frozen=True, eq=False)
class ReadyContender:
    """A way to publish, ready to be tried.

    Attributes:
        settings: its parameters, in words.
        draw: makes a release and estimates the counts that are asked for from it.
    """

    settings: str
    draw: Callable[[RandomSource], Marginals]


@dataclass(frozen=True)
class Contender:
    """A way to publish.

    Attributes:
        name: what it is called.
        promise: what it promises, for an ε and a δ.
        settle: finds the parameters that keep the promise for a table.
    """

    name: str
    promise: Callable[[float, float], str]
    settle: Callable[[Histogram, Workload, float, float], ReadyContender]


def _sample(table: Histogram, workload: Workload, epsilon: float, delta: float) -> ReadyContender:
    """A likelihood ratio of 1 + ε′ = e^ε."""
    terms = find_terms(table.counts, SampleSettings(math.expm1(epsilon), delta, None))

    def draw(source: RandomSource) -> Marginals:
        drawn = table.with_counts(source.binomial(table.counts, Fraction(terms.rate)))
        return {names: dense(drawn, names) / terms.rate for names in workload.truth}

    return ReadyContender(f"p = {terms.rate:.3g}", draw)


def _crowd(table: Histogram, workload: Workload, epsilon: float, delta: float) -> ReadyContender:
    """k and β as the policy's default would have them."""
    found = solve(SampledCrowd(mechanism="sampled_crowd", epsilon=epsilon, delta=delta))

    def draw(source: RandomSource) -> Marginals:
        drawn = table.with_counts(source.binomial(table.counts, found.beta))
        shown = drawn.where(drawn.counts >= found.k)
        return {names: dense(shown, names) / found.beta for names in workload.truth}

    return ReadyContender(f"k = {found.k}, β = {found.beta:.3g}", draw)


def _pram(table: Histogram, workload: Workload, epsilon: float, delta: float) -> ReadyContender:
    """The largest ρ, one for all columns, whose shuffled table keeps (ε, δ)."""
    sizes = [len(column.labels) for column in table.columns]
    rho = largest_retention(sizes, table.total, epsilon, delta)
    laws = [RetentionReplacement(rho, size) for size in sizes]
    blocks = [Block((column.name,), (law.size,), law) for column, law in zip(table.columns, laws, strict=True)]

    def draw(source: RandomSource) -> Marginals:
        drawn = pram.run(table, blocks, source)
        return {names: _undone(dense(drawn, names), rho) for names in workload.truth}

    return ReadyContender(f"ρ = {rho:.3g}, local ε = {local_epsilon(laws):.3g}", draw)


def _undone(counts: Floats, rho: float) -> Floats:
    """What the counts were before randomising, on average: along each axis y = ρx + (1−ρ)·sum/size."""
    for axis, size in enumerate(counts.shape):
        counts = (counts - (1 - rho) / size * counts.sum(axis=axis, keepdims=True)) / rho
    return counts


def _geometric(table: Histogram, workload: Workload, epsilon: float, delta: float) -> ReadyContender:  # noqa: ARG001
    """Geometric noise on all possible cells, or on the counts asked for, each with its part of ε."""
    if table.domain_size <= NOISY_CELLS:
        whole = dense(table, table.names).astype(np.int64)

        def draw(source: RandomSource) -> Marginals:  # noqa: ARG001 - OpenDP has bits of its own
            noisy = noise(whole, epsilon)
            return {names: _summed(noisy, table.names, names) for names in workload.truth}

        return ReadyContender(f"noise on each of {table.domain_size:,} cells", draw)
    share = epsilon / len(workload.truth)

    def draw_each(source: RandomSource) -> Marginals:  # noqa: ARG001
        return {names: noise(truth.astype(np.int64), share) for names, truth in workload.truth.items()}

    return ReadyContender(f"ε/{len(workload.truth)} for each of the counts asked for", draw_each)


def _views(table: Histogram, workload: Workload, epsilon: float, delta: float) -> ReadyContender:
    """Noisy one-way tables and pairs along a tree, chosen privately, and the model of them."""
    section = Views(mechanism="views", epsilon=epsilon, delta=delta, by="noise")
    settings = settled_for(section, table)
    places = {name: place for place, name in enumerate(table.names)}

    def draw(source: RandomSource) -> Marginals:
        drawn = views.run(settings, table, source)
        model = drawn.model or views.fitted([len(c.labels) for c in table.columns], drawn.views)
        return {names: np.asarray(model.marginal([places[name] for name in names])) for names in workload.truth}

    plan = settings.plan
    return ReadyContender(f"{plan.singles + plan.views} views with noise", draw)


def _summed(cells: Floats, all_names: Names, names: Names) -> Floats:
    """The sums over all other columns; the names come in the order of the axes."""
    return np.asarray(cells.sum(axis=tuple(i for i, name in enumerate(all_names) if name not in names)))


def noise(counts: NDArray[np.int64], epsilon: float) -> Floats:
    """The counts with geometric noise, ε-DP for adding or removing one record; drawn exactly, by OpenDP."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    scale = 1.0 / epsilon
    while True:
        measurement = make_laplace(*space, scale=scale)
        # The library's own account of what this costs, with its own outward rounding, has the last word.
        if measurement.map(1) <= epsilon:  # type: ignore[no-untyped-call]
            break
        scale = math.nextafter(scale * (1 + 1e-12), math.inf)
    return np.array(measurement(counts.ravel()), dtype=np.float64).reshape(counts.shape)


CONTENDERS = (
    Contender(
        "plain sample",
        lambda e, d: f"(1, {math.expm1(e):.3g}, {d:g})-privacy of this table, replace-one",
        _sample,
    ),
    Contender("sampled crowd", lambda e, d: f"({e:g}, {d:g})-differential privacy, add/remove", _crowd),
    Contender("randomised records", lambda e, d: f"({e:g}, {d:g})-differential privacy, replace-one", _pram),
    Contender("views", lambda e, d: f"({e:g}, {d:g})-differential privacy, add/remove", _views),
    Contender("noisy counts", lambda e, _: f"{e:g}-differential privacy, add/remove", _geometric),
)
