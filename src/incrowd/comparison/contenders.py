"""The ways to publish a table that are compared: what each promises, and the counts that it leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.comparison.workload import Floats, Marginals, Workload
from incrowd.core.errors import UnreachableError
from incrowd.core.numbers import number
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.base import AnyMechanism, ComparedAs
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.noise import DiscreteLaplace, laplace
from incrowd.noise import draw as drawn_by
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.fidelity import Names, dense

NOISY_CELLS = 20_000
"""A histogram of all possible cells is made noisy as a whole up to this size; beyond, the counts that are asked for."""

WIDE = 2**-10
"""The ε of a count below which its noise is drawn one by one."""


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
        differs: how that promise differs from the others.
    """

    name: str
    promise: Callable[[float, float], str]
    settle: Callable[[Histogram, Workload, float, float], ReadyContender]
    differs: str = ""


def _of(mechanism: AnyMechanism, asked: ComparedAs) -> Contender:
    """A mechanism of the registry: its releases are made as by a policy that declares the table's own values."""

    def settle(table: Histogram, workload: Workload, epsilon: float, delta: float) -> ReadyContender:
        sizes = [len(column.labels) for column in table.columns]
        found = (
            section.keys
            for section in mechanism.comparable(epsilon, delta, sizes, table.total)
            if asked.keys.items() <= section.keys.items()
        )
        name = next(name for name, known in MECHANISMS.items() if known is mechanism)
        keys = next(found, None)
        if keys is None:
            raise UnreachableError("It keeps no such promise for this table.", code="unreachable")
        spared = {key: value for key, value in mechanism.scored_with.items() if value is not None}
        policy = _policy(table, {"mechanism": name, **keys, **spared})
        attributes = codings(policy)
        settings = mechanism.settle(policy, attributes, 1)
        orders = {a.name: [a.coding.base_labels.index(label) for label in table[a.name].labels] for a in attributes}
        coded = Histogram.of(
            [Column(a.name, a.coding.base_labels, np.asarray(orders[a.name])[table[a.name].codes]) for a in attributes],
            table.counts,
        )
        settings, prepared = mechanism.prepare(settings, coded, lambda *_: None)

        def draw(source: RandomSource) -> Marginals:
            told = mechanism.told(settings, mechanism.draw(settings, prepared, source))
            return {names: told(names)[np.ix_(*(orders[name] for name in names))] for names in workload.truth}

        return ReadyContender(mechanism.in_short(settings), draw)

    return Contender(asked.name, asked.promise, settle, asked.differs)


def _policy(table: Histogram, release: Mapping[str, Any]) -> Policy:
    """A policy for a table as it is shown: its labels are the values that there can be."""
    attributes = {
        column.name: {
            "domain": [label for label in column.labels if label is not None],
            "missing": "keep" if None in column.labels else "refuse",
        }
        for column in table.columns
    }
    return Policy.from_dict({"incrowd": 1, "attributes": attributes, "release": dict(release)})


def _geometric(table: Histogram, workload: Workload, epsilon: float, delta: float) -> ReadyContender:  # noqa: ARG001
    """Geometric noise on all possible cells, or on the counts asked for, each with its part of ε."""
    if table.domain_size <= NOISY_CELLS:
        whole = dense(table, table.names).astype(np.int64)

        def draw_all(source: RandomSource) -> Marginals:
            noisy = noise(source, whole, epsilon)
            return {names: _summed(noisy, table.names, names) for names in workload.truth}

        return ReadyContender(f"noise on each of {table.domain_size:,} cells", draw_all)
    share = epsilon / len(workload.truth)

    def draw_each(source: RandomSource) -> Marginals:
        return {names: noise(source, truth.astype(np.int64), share) for names, truth in workload.truth.items()}

    return ReadyContender(f"ε/{len(workload.truth)} for each of the counts asked for", draw_each)


def _summed(cells: Floats, all_names: Names, names: Names) -> Floats:
    """The sums over all other columns; the names come in the order of the axes."""
    return np.asarray(cells.sum(axis=tuple(i for i, name in enumerate(all_names) if name not in names)))


def noise(source: RandomSource, counts: NDArray[np.int64], epsilon: float) -> Floats:
    """The counts with geometric noise, ε-DP for adding or removing one record; drawn exactly.

    Very wide noise is a little wider still: its scale is a whole number then.
    """
    drawn = (
        laplace(source, math.ceil(1 / Fraction(epsilon)), counts.size)
        if epsilon < WIDE
        else drawn_by(source, DiscreteLaplace(Fraction(epsilon)), counts.size)
    )
    return (counts + drawn.reshape(counts.shape)).astype(np.float64)


CONTENDERS = (
    *(_of(mechanism, mechanism.compared_as) for mechanism in MECHANISMS.values() if mechanism.compared_as is not None),
    Contender(
        "noisy counts",
        lambda epsilon, _: f"{number(epsilon)}-differential privacy, add/remove",
        _geometric,
        "The noisy counts are ε-differentially private for adding or removing one record, with δ = 0: the strongest "
        "promise. They are counts and no records; what was not asked for cannot be had from them.",
    ),
)
"""The mechanisms of the registry that can be compared, and for comparison plain counts with noise."""
