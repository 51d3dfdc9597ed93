"""How far a measurement is trusted: cell by cell, and by blocks of neighbouring cells.

Let e be what is expected of a cell before its measurement is looked at. The true count differs from it by chance (with
variance e), and because columns depend on each other. Neighbouring values mostly do so alike: ages 40 and 41 more than
40 and 80. So the relative difference of a cell is taken for a sum of independent parts: one of its own with variance
r₀², and one that it shares with all cells of its block, for blocks of 4 and of 16 values of each long column. The r²
are estimated from the measurement itself: its sums over blocks of each size scatter about what is expected by

    variance of the noise + e + Σ r² e²

(a part that varies within a block counts for as much less as it averages out there); a size of blocks counts with the
certainty that its scatter has beside the noise. For a cell, the linear estimate of least mean squared error draws
towards e as far as the ridge `variance / (1 + r₀²e)` on the logarithm of its factor does, and for a block
`variance / (r²e)`. If nearby codes have nothing in common, r is about 0 and the blocks do nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.mechanisms.views.measurements import Measurement

Array = np.ndarray[Any, Any]
Widths = tuple[int, ...]

_WIDTHS = (4, 16)
_LONG = 3
"""A column is divided into blocks if it fills more than two of them."""
_DRAW = 0.5
"""The part of the ridge that is taken: the whole is right for squared errors, half of it better for absolute ones."""
_FIRMEST = 0.05
"""The least ridge, in standard deviations: measurements that contradict each other must not drive θ far apart."""
_LEAST = 1e-6
"""Blocks whose relative variance is less than this say nothing."""


@dataclass(frozen=True, eq=False)
class Trust:
    """For blocks of one size, how far the model may differ from their estimates.

    Attributes:
        widths: the cells of a block along each axis.
        looseness: the ridge for each unit of a block's variance.
    """

    widths: Widths
    looseness: Array


def sums(table: Array, widths: Widths) -> Array:
    """The sum of every block."""
    for axis, width in enumerate(widths):
        if width > 1:
            table = np.add.reduceat(table, np.arange(0, table.shape[axis], width), axis)
    return table


def inside(widths: Widths, shape: Sequence[int]) -> Array:
    """For each cell of a table of this shape, the block that it lies in."""
    numbers = [np.arange(length) // width for width, length in zip(widths, shape, strict=True)]
    return places(numbers, [-(-length // width) for width, length in zip(widths, shape, strict=True)])


def places(codes: Sequence[Array], shape: Sequence[int]) -> Array:
    """For each cell of a table, the cell of one of this shape that it lies in, by the codes along each axis."""
    place = np.zeros((), dtype=np.int64)
    for along, length in zip(codes, shape, strict=True):
        place = np.add.outer(place * length, along)
    return place


def sizes_of_blocks(shape: Sequence[int]) -> list[Widths]:
    """Single cells, then blocks of each size that the long axes have room for."""
    found: list[Widths] = [(1,) * len(shape)]
    for width in _WIDTHS:
        widths = tuple(
            width if length >= _LONG * width else before for length, before in zip(shape, found[-1], strict=True)
        )
        if widths != found[-1]:
            found.append(widths)
    return found


def trusts(m: Measurement, expected: Array) -> list[Trust]:
    """How far the measurement is trusted, by single cells first; see the module's text."""
    # The sum of a block with withheld cells is not known.
    sizes = sizes_of_blocks(m.shape) if m.published.all() else [(1,) * len(m.shape)]
    relative = _relative(m, expected, sizes)
    found = []
    for widths, r in zip(sizes, relative, strict=True):
        people, deviation = sums(expected, widths), np.sqrt(np.maximum(sums(m.variance, widths), 1e-12))
        if widths == sizes[0]:
            ridge = _DRAW / (1 + r * people)
        elif r > _LEAST:
            ridge = _DRAW / (r * np.maximum(people, 1e-9))
        else:
            continue
        found.append(Trust(widths, np.maximum(ridge, _FIRMEST / deviation)))
    return found


def _relative(m: Measurement, expected: Array, sizes: Sequence[Widths]) -> Array:
    """r² of single cells and of blocks of each size: the scatter at each size is a sum of them."""
    from scipy.optimize import nnls

    shown = m.published.astype(np.float64)
    squares = [sums(expected * shown, widths) ** 2 for widths in sizes]
    scatter, certain, parts = np.zeros(len(sizes)), np.zeros(len(sizes)), np.ones((len(sizes), len(sizes)))
    for i, widths in enumerate(sizes):
        people, noise = sums(expected * shown, widths), sums(m.variance * shown, widths)
        weight = (sums(shown, widths) > 0) / (people + np.sqrt(noise) + 1e-12)
        beyond = (sums(m.estimate * shown, widths) - people) ** 2 - noise - people
        whole = max(float((weight * people**2).sum()), 1e-9)
        scatter[i] = float((weight * beyond).sum()) / whole
        certain[i] = whole / max(float(np.sqrt(((weight * (noise + people)) ** 2).sum())), 1e-9)
        for j in range(i):
            within = tuple(width // before for width, before in zip(widths, sizes[j], strict=True))
            parts[i, j] = float((weight * sums(squares[j], within)).sum()) / whole
    certain /= certain.max() or 1.0
    found: Array = nnls(parts * certain[:, None], scatter * certain)[0]
    return found
