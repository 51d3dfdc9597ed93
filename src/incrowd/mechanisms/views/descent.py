"""Minimising a smooth convex function of many variables: limited-memory BFGS.

Sums of products are taken with `einsum`, which keeps to one thread: with BLAS, the many short calls of a fit spend
nearly all their time waiting for each other as soon as another process wants the cores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Slope = Callable[[Array], tuple[float, Array]]

_MEMORY = 12
_ENOUGH = 1e-4
"""The part of the decrease that the slope promises with which a step is content (Armijo)."""


def least(function: Slope, start: Array, *, tolerance: float, steps: int) -> Array:
    """Where the function is least, to a squared length of its gradient of `tolerance`, or after so many steps."""
    here = start
    value, slope = function(here)
    pairs: deque[tuple[Array, Array, float]] = deque(maxlen=_MEMORY)
    for _ in range(steps):
        if _dot(slope, slope) <= tolerance:
            break
        way = _direction(slope, pairs)
        descent = _dot(way, slope)
        length = 1.0 if pairs else min(1.0, 1 / np.sqrt(_dot(slope, slope)))
        while True:
            there = here + length * way
            new_value, new_slope = function(there)
            if new_value <= value + _ENOUGH * length * descent or length < 1e-10:
                break
            length *= 0.3
        if not new_value < value:
            break
        moved, turned = there - here, new_slope - slope
        if (curved := _dot(moved, turned)) > 0:
            pairs.append((moved, turned, curved))
        here, value, slope = there, new_value, new_slope
    return here


def _direction(slope: Array, pairs: deque[tuple[Array, Array, float]]) -> Array:
    """Minus the inverse Hessian, as far as it is known, times the gradient."""
    way = -slope
    parts = []
    for moved, turned, curved in reversed(pairs):
        part = _dot(moved, way) / curved
        way -= part * turned
        parts.append(part)
    if pairs:
        _, turned, curved = pairs[-1]
        way *= curved / _dot(turned, turned)
    for (moved, turned, curved), part in zip(pairs, reversed(parts), strict=True):
        way += (part - _dot(turned, way) / curved) * moved
    return way


def _dot(left: Array, right: Array) -> float:
    return float(np.einsum("i,i->", left, right))
