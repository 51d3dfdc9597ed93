"""What can be estimated from a crowd under a tree.

**Estimates** are on the columns' own values: boxes spread by the one-way tables and raked to them (`spreading`).

**Intervals** assume nothing of how records lie within a box. A cell holds at least the boxes that lie in it, and at
most all that overlap it; so between Σ x over published boxes inside, and Σ x over published boxes that overlap plus k −
1 for each unpublished one, of its records were sampled (`theory.intervals`). For one column, its one-way table says
more: the count, and the noise whose variance is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from incrowd.core.errors import ParameterError
from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.estimates import NO_OPTIONS, EstimatedCell, EstimateOptions, Estimates, GroupMean
from incrowd.mechanisms.grid import MIDDLES, MOST_LISTED, numbers_of
from incrowd.mechanisms.sampled_crowd.certificate import CrowdCertificate
from incrowd.mechanisms.sampled_crowd.tree.spread import Spreading
from incrowd.mechanisms.sampled_crowd.tree.state import tree_of
from incrowd.theory.intervals import extreme_mean, mean_margin, noisy_between, sampled_between

_SPREAD = (
    "Within a box, people are spread over its values by the one-way tables, and the whole is fitted to these. Low and "
    "high assume nothing of the kind: the number of people lies between them with a probability of at least 95%, "
    "however they lie within the boxes, those of unpublished boxes included."
)
_MEANS = (
    "Low and high of a mean assume nothing of how people lie within the boxes, so they are wide where boxes are; the "
    "mean itself is that of the spread table."
)
_MOST_BOUNDS = 5_000_000  # groups times boxes
_REST = _SPREAD.split(". ", 1)[1]
_EARLIER = f"Within a box, people are spread over its values as in the release that the mapping comes from. {_REST}"
_EVENLY = f"Within a box, people are spread evenly, for want of one-way tables. {_REST}"


def estimate_tree(
    certificate: CrowdCertificate,
    published: Publication,
    by: Sequence[str],
    options: EstimateOptions = NO_OPTIONS,
) -> Estimates:
    """A cross-tabulation by some columns, on their own values."""
    if options.total is not None:
        raise ParameterError(
            "From a tree, counts are estimated with no total from elsewhere.",
            code="parameter-combination",
            remedy="Leave the option out; the release's own one-way tables hold the total.",
        )
    k, beta = certificate.mechanism.k, certificate.mechanism.beta
    tree, one_way = tree_of(published.beside)
    spreading = Spreading.of(tree, one_way, published.table, k, beta)
    places = spreading.places(by)
    labels = [tree.columns[p].base for p in places]
    if math.prod(map(len, labels)) > MOST_LISTED:
        raise ParameterError(
            f"These columns have more than {MOST_LISTED:,} combinations of values.",
            code="parameter-range",
            remedy="Ask for fewer columns.",
        )
    table = spreading.table(by)
    low, high = _ends(spreading, places, table.shape)
    error = None
    if len(by) == 1 and one_way is not None:
        error = one_way.noise.deviation
        low, high = noisy_between(one_way.counts[by[0]], one_way.margin())
    rows = [
        EstimatedCell(
            tuple(names[i] for names, i in zip(labels, at, strict=True)),
            float(min(max(table[at], low[at]), high[at])),
            error,
            int(low[at]),
            int(high[at]),
        )
        for at in np.ndindex(*table.shape)
    ]
    weighted = any(column.weights is not None for column in tree.columns)
    notes = [_SPREAD if one_way is not None else _EARLIER if weighted else _EVENLY]
    means: tuple[GroupMean, ...] = ()
    if options.mean is not None:
        means = _means(certificate, spreading, by, options.mean)
        notes += [MIDDLES, _MEANS]
    return Estimates(by=tuple(by), rows=tuple(rows), notes=tuple(notes), means=means)


def _means(
    certificate: CrowdCertificate, spreading: Spreading, by: Sequence[str], column: str
) -> tuple[GroupMean, ...]:
    """Means of the spread table, with intervals that assume nothing of how records lie within a box.

    Every record of a box may have the least of its numbers, or the largest. Those of a box that lies within a group are
    in it; those of one that overlaps it, and up to k − 1 of an unpublished one, may be.
    """
    columns = {c.name: c for c in spreading.tree.columns}
    base = columns[column].base if column in columns else ()
    numbers = numbers_of(certificate, list(columns), base, by, column, 0)
    places = [*spreading.places(by), *spreading.places([column])]
    shape = tuple(len(columns[name].base) for name in by)
    boxes = [
        [spreading.tree.columns[p].sets[spreading.tree.boxes[n].sets[p]] for p in places] for n in spreading.tree.leaves
    ]
    known = [[v for v in (numbers[code] for code in sets[-1]) if v is not None] for sets in boxes]
    if math.prod(shape) * len(boxes) > _MOST_BOUNDS:
        raise ParameterError(
            "These columns have too many combinations of values for means.",
            code="parameter-range",
            remedy="Ask for fewer columns.",
        )
    surely, maybe = np.zeros((len(boxes), *shape)), np.zeros((len(boxes), *shape))
    for i, n in enumerate(spreading.tree.leaves):
        *groups, values = boxes[i]
        if not known[i]:
            continue
        shown = int(spreading.shown[n])
        inside = shown and all(len(one) == 1 for one in groups) and len(known[i]) == len(values)
        (surely if inside else maybe)[i][np.ix_(*map(list, groups))] = shown or spreading.k - 1
    surely, maybe = np.moveaxis(surely, 0, -1), np.moveaxis(maybe, 0, -1)
    ends = [np.array([side(found) if found else 0.0 for found in known]) for side in (min, max)]
    told = np.array([0.0 if v is None else v for v in numbers])
    counted = np.array([v is not None for v in numbers])
    table = spreading.table([*by, column])[..., counted]
    least, most = min(v for v in numbers if v is not None), max(v for v in numbers if v is not None)
    labels = [columns[name].base for name in by]
    means = []
    for at in np.ndindex(*shape):
        group = tuple(texts[i] for texts, i in zip(labels, at, strict=True))
        people = float(table[at].sum())
        if people < 0.5 or not (surely[at].any() or maybe[at].any()):
            means.append(GroupMean(group, None, None, None, None, people))
            continue
        margin = mean_margin(float(surely[at].sum()), None, most - least, spreading.beta)
        low, high = (
            extreme_mean(ends[side], surely[at], maybe[at], largest=bool(side)) + (margin if side else -margin)
            for side in (0, 1)
        )
        low, high = max(low, least), min(high, most)
        here = float(table[at] @ told[counted]) / people
        means.append(GroupMean(group, min(max(here, low), high), None, low, high, people))
    return tuple(means)


def _ends(
    spreading: Spreading, places: Sequence[int], shape: tuple[int, ...]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    least, most = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for n in spreading.tree.leaves:
        sets = [spreading.tree.columns[p].sets[spreading.tree.boxes[n].sets[p]] for p in places]
        shown = int(spreading.shown[n])
        most[np.ix_(*map(list, sets))] += shown or spreading.k - 1
        if all(len(values) == 1 for values in sets):
            least[tuple(values[0] for values in sets)] += shown
    low, high = sampled_between(least.ravel(), most.ravel(), spreading.beta)
    return low.reshape(shape), high.reshape(shape)
