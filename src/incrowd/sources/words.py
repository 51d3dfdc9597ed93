"""Several keys in one 64-bit integer, which is faster to group by, to move and to hand over than many small columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.histogram import smallest_type

_WORD_BITS = 62


@dataclass(frozen=True)
class Place:
    """Where a column's keys stand in a word: which column's, from which bit on, and how many bits wide."""

    column: int
    shift: int
    width: int

    def keys(self, words: np.ndarray) -> np.ndarray:
        """The column's keys."""
        keys: np.ndarray = (words >> self.shift) & (2**self.width - 1)
        return keys.astype(smallest_type(2**self.width))


def share_words(sizes: Sequence[int]) -> list[list[Place]]:
    """The words in which columns with so many keys each find their places, in order."""
    words: list[list[Place]] = []
    filled = _WORD_BITS
    for column, size in enumerate(sizes):
        width = (size - 1).bit_length()
        if filled + width > _WORD_BITS:
            words.append([])
            filled = 0
        words[-1].append(Place(column, filled, width))
        filled += width
    return words
