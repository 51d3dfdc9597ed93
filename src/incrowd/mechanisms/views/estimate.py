"""What can be estimated from a set of views.

A cross-tabulation that some view carries is read off it, with intervals that hold. Beyond the views there is only the
model that the synthetic table is drawn from: its numbers are marked, have no standard error, and their intervals say
what the views rule out, which is that a cell has more people than any coarser cell around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from incrowd.mechanisms.base import Publication, all_columns
from incrowd.mechanisms.estimates import EstimatedCell, Estimates, GroupMean
from incrowd.mechanisms.tabulating import MIDDLES, numbers_of, sampled_mean
from incrowd.mechanisms.views.draw import fitted
from incrowd.mechanisms.views.state import read_views
from incrowd.mechanisms.views.stated import ViewsCertificate
from incrowd.mechanisms.views.view import Integers, View
from incrowd.theory.intervals import ANY, NORMAL_95, sampled_between
from incrowd.theory.views import CrowdStep, LaplaceStep

Floats = NDArray[np.float64]

_LAPLACE_95 = 2.2
"""Standard deviations of a sum of Laplace numbers: more than its 95% interval has on either side."""


@dataclass(frozen=True)
class ViewEstimate(EstimatedCell):
    """One cell of a cross-tabulation.

    Attributes:
        modelled: whether no view carries these columns, so that the number comes from the model of all views.
    """

    modelled: bool


@dataclass(frozen=True, eq=False)
class Tabulated:
    """Sums of a view by some of its columns, each with an interval; no error where cells may be missing."""

    estimate: Floats
    error: Floats
    low: Integers
    high: Integers
    hidden: Integers


def estimate(
    certificate: ViewsCertificate, published: Publication, by: Sequence[str], mean: str | None = None
) -> Estimates:
    """A cross-tabulation by some columns, which are there, and the mean of a column in each group."""
    names = all_columns(certificate)
    views = read_views(certificate.mechanism, certificate.labels, published.beside)
    labels = [certificate.labels[name] for name in by]
    base = certificate.mechanism.levels
    carrying = [tabulated(view, by) for view in views if _carries(view, by, base)]
    if carrying:
        best = min(carrying, key=lambda one: (int(one.hidden.sum()), float(one.error.sum())))
        rows = [
            ViewEstimate(
                values,
                float(best.estimate[place]) if best.high[place] and not _empty(best, place) else None,
                None if best.hidden[place] else float(best.error[place]),
                int(best.low[place]),
                int(best.high[place]),
                modelled=False,
            )
            for place, values in _cells(labels)
        ]
        return _with_means(Estimates(tuple(by), tuple(rows), (_CARRIED,)), certificate, views, mean)
    model = fitted([len(certificate.labels[name]) for name in names], views)
    people = model.marginal([names.index(name) for name in by])
    most = _most(views, by, base, people.shape)
    rows = [
        ViewEstimate(values, float(people[place]), None, 0, int(most[place]), modelled=True)
        for place, values in _cells(labels)
    ]
    return _with_means(Estimates(tuple(by), tuple(rows), (_MODELLED,)), certificate, views, mean)


def _with_means(
    found: Estimates, certificate: ViewsCertificate, views: Sequence[View], column: str | None
) -> Estimates:
    """The same with the means of a column, if one is asked for: of a view that carries all of it, or of the model."""
    if column is None:
        return found
    names, by, base = all_columns(certificate), found.by, certificate.mechanism.levels
    numbers = numbers_of(certificate, names, certificate.labels.get(column, ()), by, column, base.get(column))
    codes = [code for code, value in enumerate(numbers) if value is not None]
    values = np.array([numbers[code] for code in codes], dtype=np.float64)
    wanted = [*by, column]
    groups = _cells([certificate.labels[name] for name in by])
    carrying = [view for view in views if _carries(view, wanted, base)]
    if carrying:
        view = min(carrying, key=lambda one: (int(tabulated(one, wanted).hidden.sum()), one.counts.size))
        table = tabulated(view, wanted)
        means = [_mean_in(view, table, values, codes, place, group) for place, group in groups]
        return replace(found, means=tuple(means), notes=(*found.notes, MIDDLES, _NO_MEAN))
    model = fitted([len(certificate.labels[name]) for name in names], views)
    people = model.marginal([names.index(name) for name in wanted])
    means = []
    for place, group in groups:
        counts = people[place][codes]
        there = float(counts.sum())
        means.append(GroupMean(group, float(counts @ values) / there if there else None, None, None, None, there))
    return replace(found, means=tuple(means), notes=(*found.notes, MIDDLES, _MODELLED_MEAN))


def _mean_in(
    view: View,
    table: Tabulated,
    values: Floats,
    codes: Sequence[int],
    place: tuple[int, ...],
    group: tuple[str | None, ...],
) -> GroupMean:
    """The mean in a group of a view: as in a sample, or by the delta method, noise having one known variance."""
    step = view.step
    if isinstance(step, CrowdStep):
        sampled = np.rint(table.estimate[place][codes] * step.beta)
        return sampled_mean(group, values, sampled, table.hidden[place][codes] * (step.k - 1.0), step.beta)
    counts, error = table.estimate[place][codes], float(table.error[place][codes].max())
    people = float(counts.sum())
    if people <= _FEWEST_ERRORS * error * math.sqrt(len(values)):
        return GroupMean(group, None, None, None, None, people)
    mean = float(counts @ values) / people
    spread = error * math.sqrt(float(np.sum((values - mean) ** 2))) / people
    reach = (_LAPLACE_95 if isinstance(step, LaplaceStep) else NORMAL_95) * spread
    least, most = float(values.min()), float(values.max())
    mean = min(max(mean, least), most)
    return GroupMean(group, mean, spread, max(mean - reach, least), min(mean + reach, most), people)


_CARRIED = (
    "Low and high: the number of people lies between them with a probability of at least 95%, those included whose "
    "cells were withheld."
)
_NO_MEAN = "Groups of which nothing is shown, or whose number of people is not known to be far from zero, have no mean."
_MODELLED_MEAN = (
    "No view carries the groups and the column of the mean together: means are the model’s, without an interval."
)
_FEWEST_ERRORS = 3.0  # a group not known to be so far from empty has no mean
_MODELLED = (
    "Modelled: no view carries these columns together. The numbers follow from the views if columns depend on each "
    "other through them alone; an upper end is what the views rule out with a probability of 95% each."
)


def _empty(table: Tabulated, place: tuple[int, ...]) -> bool:
    """Whether nothing of a cell is shown."""
    return bool(table.hidden[place]) and table.estimate[place] == 0


def _cells(labels: Sequence[Sequence[str | None]]) -> list[tuple[tuple[int, ...], tuple[str | None, ...]]]:
    places = product(*(range(len(column)) for column in labels))
    return list(zip(places, product(*labels), strict=True))


def _carries(view: View, by: Sequence[str], base: dict[str, int]) -> bool:
    return set(by) <= set(view.columns) and all(
        level == base[name] for name, level in zip(view.columns, view.levels, strict=True) if name in by
    )


def tabulated(view: View, by: Sequence[str]) -> Tabulated:
    """A view summed up to some of its columns, in their order."""
    gone = tuple(axis for axis, name in enumerate(view.columns) if name not in by)
    kept = [name for name in view.columns if name in by]
    order = [kept.index(name) for name in by]

    def summed(cells: Integers) -> Integers:
        return np.transpose(np.asarray(cells.sum(axis=gone)), order)

    counts = summed(view.counts)
    if isinstance(view.step, CrowdStep):
        beta = view.step.beta
        hidden = summed((view.counts == 0).astype(np.int64))
        low, high = sampled_between(counts, counts + hidden * (view.step.k - 1), beta)
        return Tabulated(counts / beta, np.sqrt(counts * (1 - beta)) / beta, low, high, hidden)
    number = math.prod(view.counts.shape[axis] for axis in gone)
    error = view.step.deviation * math.sqrt(number)
    margin = math.ceil((_LAPLACE_95 if isinstance(view.step, LaplaceStep) else NORMAL_95) * error) + 1
    low, high = np.maximum(counts - margin, 0), np.maximum(counts + margin, 0)
    return Tabulated(counts.astype(np.float64), np.full(counts.shape, error), low, high, np.zeros_like(counts))


def _most(views: Sequence[View], by: Sequence[str], base: dict[str, int], shape: tuple[int, ...]) -> Integers:
    """The least upper end among the cells around each cell that some view shows."""
    most = np.full(shape, ANY, dtype=np.int64)
    for view in views:
        within = [name for name in by if name in view.columns]
        if within and _carries(view, within, base):
            table = tabulated(view, within)
            place = tuple(slice(None) if name in within else None for name in by)
            most = np.minimum(most, table.high[place])
    return most
