"""Blocks: columns that are redrawn together, and the law by which they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError
from incrowd.randomness import to_fraction64
from incrowd.theory.randomisation import Attribute, RetentionReplacement, TransitionMatrix

Integers = NDArray[np.int64]


Rows = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class Block:
    """Attributes that are redrawn at once.

    Attributes:
        names: their columns.
        sizes: how many values each has.
        law: how a combination is redrawn; combinations are numbered with the last attribute changing fastest.
        back: the rows of a second step, which makes the marginal of the block invariant; None for no such step.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    law: Attribute
    back: Rows | None = None

    def __post_init__(self) -> None:
        if math.prod(self.sizes) != self.law.size or len(self.names) != len(self.sizes):
            raise InternalError("a block of attributes and the law by which it is redrawn differ in size")
        if isinstance(self.law, RetentionReplacement) and self.law.retention != as_drawn(self.law.retention):
            raise InternalError("a retention is not a multiple of 2**-64")

    @property
    def size(self) -> int:
        """How many combinations of values there are."""
        return self.law.size

    @cached_property
    def steps(self) -> tuple[RetentionReplacement | Rows, ...]:
        """What is done to a value, in exact numbers."""
        first = self.law.rows if isinstance(self.law, TransitionMatrix) else self.law
        return (first,) if self.back is None else (first, self.back)


def as_drawn(retention: float) -> float:
    """The retention that is really drawn: the largest multiple of 2⁻⁶⁴ that is not above."""
    return math.ldexp(to_fraction64(retention), -64)


def backward(block: Block, marginal: Sequence[int]) -> Rows:
    """Q, the second step of invariant PRAM for a block whose combinations occur so often.

    From a value that nothing present can have turned into there is no way back; it never comes up, and stays.
    """
    law = block.law
    rows = law.rows if isinstance(law, TransitionMatrix) else _rows(law)
    back = []
    for k in range(block.size):
        weights = [rows[j][k] * count if count else Fraction(0) for j, count in enumerate(marginal)]
        whole = sum(weights, Fraction(0))
        back.append(tuple(w / whole if whole else Fraction(int(j == k)) for j, w in enumerate(weights)))
    return tuple(back)


def _rows(law: RetentionReplacement) -> Rows:
    """The exact matrix of a retention-replacement."""
    rho = Fraction(law.retention)
    elsewhere = (1 - rho) / law.size
    return tuple(tuple(elsewhere + rho if i == j else elsewhere for j in range(law.size)) for i in range(law.size))


def fold(codes: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> Integers:
    """One number for each combination of codes, the last one's changing fastest."""
    keys = np.zeros(len(codes[0]), dtype=np.int64)
    for code, size in zip(codes, sizes, strict=True):
        keys *= size
        keys += code
    return keys
