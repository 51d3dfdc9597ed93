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
from incrowd.mechanisms.estimates import NO_OPTIONS, EstimatedCell, EstimateOptions, Estimates
from incrowd.mechanisms.sampled_crowd.stated import CrowdCertificate
from incrowd.mechanisms.sampled_crowd.tree.spreading import Spreading
from incrowd.mechanisms.sampled_crowd.tree.state import tree_of
from incrowd.mechanisms.tabulating import MOST_LISTED
from incrowd.theory.intervals import sampled_between

_SPREAD = (
    "Within a box, people are spread over its values by the one-way tables, and the whole is fitted to these. Low and "
    "high assume nothing of the kind: the number of people lies between them with a probability of at least 95%, "
    "however they lie within the boxes, those of unpublished boxes included."
)
_EVENLY = f"Within a box, people are spread evenly, for want of one-way tables. {_SPREAD.split('. ', 1)[1]}"


def estimate_tree(
    certificate: CrowdCertificate,
    published: Publication,
    by: Sequence[str],
    options: EstimateOptions = NO_OPTIONS,
) -> Estimates:
    """A cross-tabulation by some columns, on their own values."""
    if options.given:
        raise ParameterError(
            "From a tree, counts alone are estimated: no means, and with no total from elsewhere.",
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
        counts, error, reach = one_way.counts[by[0]], one_way.noise.deviation, one_way.margin()
        low, high = np.maximum(counts - reach, 0), np.maximum(counts + reach, 0)
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
    return Estimates(by=tuple(by), rows=tuple(rows), notes=(_EVENLY if one_way is None else _SPREAD,))


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
