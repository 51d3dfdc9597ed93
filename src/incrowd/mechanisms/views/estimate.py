"""What can be estimated from a set of views.

A cross-tabulation that some view carries is read off it, with intervals that hold. Beyond the views there is only the
model that the synthetic table is drawn from: its numbers are marked and have no standard error. Their intervals do not
rest on the model: a cell has no more people than any cell around it that some view shows, of fewer columns or coarser
levels, and no fewer than such a cell has, less all who have other values in the columns that the view lacks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from incrowd.core.numbers import as_given
from incrowd.mechanisms.base import Publication, all_columns
from incrowd.mechanisms.estimates import EstimatedCell, Estimates, GroupMean
from incrowd.mechanisms.grid import MIDDLES, numbers_of, sampled_mean
from incrowd.mechanisms.views.certificate import SampledViewsMechanism, ViewsCertificate
from incrowd.mechanisms.views.draw import fitted
from incrowd.mechanisms.views.state import read_views
from incrowd.mechanisms.views.view import Integers, View
from incrowd.theory.intervals import ANY, SURPRISE, noisy_between, sampled_between
from incrowd.theory.views import CrowdStep, LaplaceStep

Floats = NDArray[np.float64]


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

    def possible(self, place: tuple[int, ...]) -> float:
        """The estimate of a cell as far as it lies in its interval: a noisy count may be below zero."""
        return float(min(max(self.estimate[place], self.low[place]), self.high[place]))


def estimate(
    certificate: ViewsCertificate, published: Publication, by: Sequence[str], mean: str | None = None
) -> Estimates:
    """A cross-tabulation by some columns, which are there, and the mean of a column in each group."""
    names = all_columns(certificate)
    views = read_views(certificate.mechanism, certificate.labels, published.beside)
    labels = [certificate.labels[name] for name in by]
    base, rate = certificate.mechanism.levels, rate_of(certificate)
    carrying = [view for view in views if _carries(view, by, base)]
    if carrying:
        best = tabulated(_read_from(certificate, carrying), by, rate=rate)
        rows = [
            ViewEstimate(
                values,
                None if _empty(best, place) else best.possible(place),
                None if best.hidden[place] else float(best.error[place]),
                int(best.low[place]),
                int(best.high[place]),
                modelled=False,
            )
            for place, values in _cells(labels)
        ]
        notes = (_CARRIED, *_sampled(rate))
        return _with_means(Estimates(tuple(by), tuple(rows), notes), certificate, views, mean)
    model = fitted([len(certificate.labels[name]) for name in names], views)
    people = model.marginal([names.index(name) for name in by]) / rate
    most = _most(views, by, people.shape, rate)
    least = np.minimum(_least(certificate, views, by, people.shape), most)
    people = np.clip(people, least, most)
    rows = [
        ViewEstimate(values, float(people[place]), None, int(least[place]), int(most[place]), modelled=True)
        for place, values in _cells(labels)
    ]
    coarser = [view for view in views if set(by) <= set(view.columns)]
    notes = (_MODELLED, *([_coarser(coarser[0])] if coarser else []), *_sampled(rate))
    return _with_means(Estimates(tuple(by), tuple(rows), notes), certificate, views, mean)


def rate_of(certificate: ViewsCertificate) -> float:
    """The probability with which people came into the table that was counted."""
    mechanism = certificate.mechanism
    return mechanism.beta if isinstance(mechanism, SampledViewsMechanism) else 1.0


def _sampled(rate: float) -> tuple[str, ...]:
    """A note on a table that is itself a sample."""
    if rate == 1:
        return ()
    note = f"The table was a random sample at rate {as_given(rate)}: all numbers are of the people sampled from"
    return (f"{note}, and errors count both the sampling and the noise.",)


def _read_from(certificate: ViewsCertificate, carrying: Sequence[View]) -> View:
    """The first view that was drawn or, of listed ones, the least: which one is read may not depend on what it says."""
    return carrying[0] if certificate.mechanism.choices else min(carrying, key=lambda view: view.counts.size)


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
        view = _read_from(certificate, carrying)
        table = tabulated(view, wanted, rate=rate_of(certificate))
        means = [_mean_in(view, table, values, codes, place, group) for place, group in groups]
        return replace(found, means=tuple(means), notes=(*found.notes, MIDDLES, _NO_MEAN))
    model = fitted([len(certificate.labels[name]) for name in names], views)
    people = model.marginal([names.index(name) for name in wanted]) / rate_of(certificate)
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
    """The mean in a group of a view: as in a sample, or by the delta method, cells having independent errors."""
    step = view.step
    if isinstance(step, CrowdStep):
        sampled = np.rint(table.estimate[place][codes] * step.beta)
        return sampled_mean(group, values, sampled, table.hidden[place][codes] * (step.k - 1.0), step.beta)
    counts, error = table.estimate[place][codes], table.error[place][codes]
    people = float(counts.sum())
    if people <= _FEWEST_ERRORS * float(np.linalg.norm(error)):
        return GroupMean(group, None, None, None, None, people)
    mean = float(counts @ values) / people
    spread = float(np.linalg.norm(error * (values - mean))) / people
    reach = deviations(SURPRISE, laplace=isinstance(step, LaplaceStep)) * spread
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
    "other through them alone; of that nothing is claimed. Low and high claim less: the number of people lies between "
    "them with a probability of at least 95%, because a cell has no more people than a cell of a view around it, and "
    "no fewer than that cell less everybody who has another value in one of the other columns."
)


def _coarser(view: View) -> str:
    return (
        f"The view of {', '.join(view.columns)} shows these columns together, but more coarsely: upper ends use it, "
        "and its file has its counts."
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


def tabulated(view: View, by: Sequence[str], surprise: float = SURPRISE, rate: float = 1.0) -> Tabulated:
    """A view summed up to some of its columns, in their order; either end may be wrong with so small a probability.

    If the table is itself a sample, of that rate, all numbers are of the people sampled from. An end is then wrong if
    the noise is, with half of that probability, or the sample, with the other half.
    """
    return _known(view, *_summed(view, by), surprise, rate)


def others(view: View, name: str, surprise: float, rate: float) -> Integers:
    """For each value of a column, how many people at most have another one; each may be wrong with that probability."""
    counts, hidden, cells = _summed(view, [name])
    rest = _known(view, counts.sum() - counts, hidden.sum() - hidden, cells * (len(counts) - 1), surprise, rate)
    return rest.high


def _summed(view: View, by: Sequence[str]) -> tuple[Integers, Integers, int]:
    """A view summed up to some of its columns, in their order; of how many cells each sum is, and how many are 0."""
    gone = tuple(axis for axis, name in enumerate(view.columns) if name not in by)
    kept = [name for name in view.columns if name in by]
    order = [kept.index(name) for name in by]

    def summed(cells: Integers) -> Integers:
        return np.transpose(np.asarray(cells.sum(axis=gone)), order)

    cells = math.prod(view.counts.shape[axis] for axis in gone)
    return summed(view.counts), summed((view.counts == 0).astype(np.int64)), cells


def _known(view: View, counts: Integers, hidden: Integers, cells: int, surprise: float, rate: float) -> Tabulated:
    """What is known of sums of cells of a view.

    Args:
        view: the view.
        counts: the sums.
        hidden: how many of the cells of each are 0: not shown, if only crowds are.
        cells: how many each has.
        surprise: the probability with which either end may be wrong.
        rate: of the table, if it is itself a sample.
    """
    if isinstance(view.step, CrowdStep):
        beta = view.step.beta
        low, high = sampled_between(counts, counts + hidden * (view.step.k - 1), beta, surprise=surprise)
        return Tabulated(counts / beta, np.sqrt(counts * (1 - beta)) / beta, low, high, hidden)
    error = view.step.deviation * math.sqrt(cells)
    laplace, shared = isinstance(view.step, LaplaceStep), surprise if rate == 1 else surprise / 2
    low, high = noisy_between(counts, math.ceil(deviations(shared, laplace=laplace) * error) + 1)
    errors = np.full(counts.shape, error)
    if rate != 1:
        low, high = sampled_between(low, high, rate, surprise=shared)
        errors = np.sqrt(error**2 + np.maximum(counts, 0) * (1 - rate)) / rate
    return Tabulated(counts / rate, errors, low, high, np.zeros_like(counts))


def deviations(surprise: float, *, laplace: bool) -> float:
    """A sum of noise is more standard deviations than that above 0 with a probability of `surprise` at most.

    Of Laplace numbers it is at most what one alone has, ln(1/2s)/√2, or a Gaussian, whichever is more, and a little.
    """
    gaussian = NormalDist().inv_cdf(1 - surprise)
    return 1.04 * max(gaussian, math.log(0.5 / surprise) / math.sqrt(2)) if laplace else gaussian


def _most(views: Sequence[View], by: Sequence[str], shape: tuple[int, ...], rate: float) -> Integers:
    """The least upper end among the cells around each cell, whatever levels they have.

    The 2.5% are shared by all views, so that the least of their upper ends holds. How many there are was fixed before
    any was drawn; which of them have one of the columns may depend on what the first ones said.
    """
    most = np.full(shape, ANY, dtype=np.int64)
    for view in views:
        within = [name for name in by if name in view.columns]
        if not within:
            continue
        high = tabulated(view, within, SURPRISE / len(views), rate).high
        for axis, name in enumerate(within):
            # From the cells of the view to those of the columns' own values.
            high = np.take(high, view.recodes[view.columns.index(name)].to, axis=axis)
        most = np.minimum(most, high[_placed(by, within)])
    return most


def _least(certificate: ViewsCertificate, views: Sequence[View], by: Sequence[str], shape: tuple[int, ...]) -> Integers:
    """The largest lower end: a cell around each cell, less all who have another value in one of the other columns.

    Half of the 2.5% is shared by all views, the other half by the columns.
    """
    rate, base = rate_of(certificate), certificate.mechanism.levels
    least = np.zeros(shape, dtype=np.int64)
    carrying = {name: [view for view in views if _carries(view, [name], base)] for name in by}
    if not all(carrying.values()):
        return least
    part = SURPRISE / 2
    elsewhere = {
        name: np.minimum(others(_read_from(certificate, found), name, part / len(by), rate), ANY >> 8)
        for name, found in carrying.items()
    }
    for view in views:
        within = [name for name in by if view in carrying[name]]
        if within:
            low = tabulated(view, within, part / len(views), rate).low[_placed(by, within)]
            beyond = [elsewhere[name][_placed(by, [name])] for name in by if name not in within]
            least = np.maximum(least, low - sum(beyond))
    return least


def _placed(by: Sequence[str], within: Sequence[str]) -> tuple[slice | None, ...]:
    """Where an array of some of the columns lies in one of all of them."""
    return tuple(slice(None) if name in within else None for name in by)
