"""Which columns make people stand out: each by itself, each left out, and the smallest combinations that single out.

A *minimal sample unique* (Elliot, Manning, Ford: special uniques) is a record with a set of columns in which it is like
no other, while it is not in any smaller part of the set. A record that is unique in few columns is easily found, and
stays unique when others are recoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from incrowd.histogram import Histogram

_LARGEST = 3  # columns of a combination
_WORK = 2 * 10**8  # cells looked at, over all combinations, before the search stops at smaller ones
_DENSE, _DENSE_PER_CELL = 2**16, 8  # a table of all possible keys is faster than sorting if it is not much larger


@dataclass(frozen=True)
class Contribution:
    """What one quasi-identifier does.

    Attributes:
        name: of the column.
        distinct: how many values it has, the missing one included.
        entropy: how much a value tells on average, in bits.
        uniques: records that are alone with their value.
        k_without: the smallest group if the column were not there.
        mean_risk_without: the mean prosecutor risk if it were not there.
        uniques_without: records alone in their group if it were not there.
    """

    name: str
    distinct: int
    entropy: float
    uniques: int
    k_without: int
    mean_risk_without: float
    uniques_without: int


@dataclass(frozen=True)
class MinimalUniques:
    """The smallest combinations of columns that single a record out.

    Attributes:
        columns_searched: combinations of up to so many columns were looked at.
        records: records that one of these singles out.
        by_size: for each number of columns, how many pairs of a record and a smallest combination there are.
        by_column: in how many of all these pairs each column takes part.
    """

    columns_searched: int
    records: int
    by_size: dict[int, int]
    by_column: dict[str, int]


def contributions(groups: Histogram) -> tuple[Contribution, ...]:
    """Every column of a table counted by its quasi-identifiers, the most contributing first.

    Most contributing: without it the mean risk is lowest; then the one with the highest entropy.
    """
    found = []
    for name in groups.names:
        alone = groups.project([name]).counts
        shares = alone / groups.total
        rest = groups.marginalise([name]).counts
        found.append(
            Contribution(
                name=name,
                distinct=len(alone),
                entropy=abs(float(-(shares * np.log2(shares)).sum())),
                uniques=int(np.count_nonzero(alone == 1)),
                k_without=int(rest.min()),
                mean_risk_without=len(rest) / groups.total,
                uniques_without=int(np.count_nonzero(rest == 1)),
            )
        )
    return tuple(sorted(found, key=lambda c: (c.mean_risk_without, -c.entropy)))


def minimal_uniques(groups: Histogram, largest: int = _LARGEST) -> MinimalUniques:
    """Searches combinations of at most `largest` columns, of fewer if there would be too much to do.

    A record that is unique in some columns is unique in more of them. So in a set of columns only records that are
    unique in no smaller part of it can be minimal; and whoever shares the values of such a record is in no part unique
    either, so that the others need not be counted.
    """
    width = len(groups.columns)
    searched, work = 0, 0
    for size in range(1, min(largest, width) + 1):
        work += comb(width, size) * len(groups)
        if size > 1 and work > _WORK:
            break
        searched = size
    codes = [column.codes.astype(np.int64) for column in groups.columns]
    sizes = [len(column.labels) for column in groups.columns]
    singled = np.zeros(len(groups), dtype=bool)
    by_size, by_column = dict.fromkeys(range(1, searched + 1), 0), dict.fromkeys(groups.names, 0)
    before: dict[tuple[int, ...], NDArray[np.bool_]] = {(): np.zeros(len(groups), dtype=bool)}
    for size in by_size:
        here: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        for chosen in combinations(range(width), size):
            unique = np.logical_or.reduce([before[part] for part in combinations(chosen, size - 1)])
            left = np.flatnonzero(~unique)
            alike = _records_alike(groups.counts[left], [codes[i][left] for i in chosen], [sizes[i] for i in chosen])
            minimal = left[alike == 1]
            by_size[size] += len(minimal)
            for i in chosen:
                by_column[groups.names[i]] += len(minimal)
            singled[minimal] = True
            if size < searched:
                unique[minimal] = True
                here[chosen] = unique
        before = here
    return MinimalUniques(searched, int(np.count_nonzero(singled)), by_size, by_column)


def _records_alike(
    counts: NDArray[np.int64], codes: Sequence[NDArray[np.int64]], sizes: Sequence[int]
) -> NDArray[np.float64]:
    """How many records share each cell's values in some columns (at most three, so that the keys fit 62 bits)."""
    keys = codes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        keys = keys * size + code
    if prod(sizes) > max(_DENSE, _DENSE_PER_CELL * len(keys)):
        keys = np.unique(keys, return_inverse=True)[1]
    alike: NDArray[np.float64] = np.bincount(keys, weights=counts)[keys].astype(np.float64, copy=False)
    return alike
