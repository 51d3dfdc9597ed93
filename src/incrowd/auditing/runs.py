"""Groups of a list that look alike, as one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def alike(items: Sequence[T], key: Callable[[T], object]) -> list[tuple[T, int]]:
    """Runs of items that look alike, each by its first one and how many they are."""
    runs: list[tuple[T, int]] = []
    for item in items:
        if runs and key(runs[-1][0]) == key(item):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((item, 1))
    return runs
