"""Exact draws from laws whose probabilities are powers of e: noise for counts, and choices by their scores.

Two ways lead to the same law of noise, and the cheaper one is taken.

- *One by one*, for a few numbers of a wide Gaussian: by accepting and rejecting (Canonne, Kamath, Steinke).
- *By inversion*, for many. U is uniform on [0, 1), its binary digits are fair bits; the value is the number of bounds
  F(x) = P[X ≤ x] at or below U. The bounds are no fractions, but balls enclose them as closely as wanted. The first 64
  digits of U tell the value, unless they are those of a bound (probability 2⁻⁶⁴ for each); then more digits of U and of
  the bounds are looked at until no doubt is left.

A choice is drawn by inversion, too. So the law is the stated one, and no rounding decides anything (docs/proofs.md,
"Exact draws").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError, ParameterError
from incrowd.randomness import RandomSource
from incrowd.theory._balls import precision, whole_above

if TYPE_CHECKING:
    from flint import arb

Integers = NDArray[np.int64]

_DIGITS = 192  # of the bounds at first, in bits
_LONGEST = 1 << 20
_WORD = 64
_FEW = 4  # numbers for each unit of the deviation: fewer are drawn one by one sooner than the bounds are found


@dataclass(frozen=True)
class DiscreteGaussian:
    """x with probability proportional to e^{−x²/(2σ²)}."""

    variance: int | Fraction

    def __post_init__(self) -> None:
        if not 0 < self.variance < 2**100:
            raise ParameterError("variance must be above 0, and below 2**100.", code="parameter-range")

    def weight(self, x: int) -> arb:
        """That of x, relative to 0."""
        from flint import arb

        exact = Fraction(self.variance)
        return (-arb(x * x * exact.denominator) / (2 * exact.numerator)).exp()


@dataclass(frozen=True)
class DiscreteLaplace:
    """x with probability proportional to e^{−a|x|}."""

    decay: Fraction

    def weight(self, x: int) -> arb:
        from flint import arb

        return (-arb(abs(x) * self.decay.numerator) / self.decay.denominator).exp()


Law = DiscreteGaussian | DiscreteLaplace


def draw(source: RandomSource, law: Law, size: int) -> Integers:
    """So many independent numbers, each exactly of this law."""
    if isinstance(law, DiscreteGaussian) and size < _FEW * math.isqrt(math.floor(law.variance)):
        return _one_by_one(source, Fraction(law.variance), size)
    return _by_inversion(source, law, size)


def laplace(source: RandomSource, scale: int, size: int) -> Integers:
    """So many independent numbers, x with probability proportional to e^{−|x|/scale}: a few, of any scale."""
    if scale < 1:
        raise ParameterError("scale must be 1 at least.", code="parameter-range")
    dice = _Dice(source)
    return np.array([dice.laplace(scale) for _ in range(size)], dtype=np.int64)


def _by_inversion(source: RandomSource, law: Law, size: int) -> Integers:
    """The number of bounds at or below a uniform U."""
    middle, bounds = _bounds(law, _DIGITS)
    leading = _leading(law)
    words = source.words(size)
    codes = np.searchsorted(leading, words, side="right")
    # Where the first digits are those of a bound, the code just found is one beyond it.
    doubtful = np.flatnonzero((codes > 0) & (leading[np.maximum(codes, 1) - 1] == words))
    drawn = codes.astype(np.int64) - middle
    for i in doubtful:
        drawn[i] = _settled(source, law, int(words[i]))
    # Below the first and above the last bound of the table there is next to nothing, but not nothing.
    for i in np.flatnonzero((codes == 0) | (codes == len(bounds))):
        drawn[i] = _settled(source, law, int(words[i]))
    return drawn


def choose(source: RandomSource, exponents: Sequence[Fraction]) -> int:
    """One index, i with probability proportional to e^{exponents[i]}, exactly: the exponential mechanism.

    By inversion: the index at which the sum of the weights passes U times their total. How many bits are drawn, and how
    often weights are looked at, does not depend on the exponents, which are secret as a rule.
    """
    if not exponents:
        raise ParameterError("A choice needs something to choose from.", code="parameter-range")
    best = max(exponents)
    lags = [best - exponent for exponent in exponents]
    digits = bits = 0
    while bits < 64 * _WORD:
        digits, bits = digits << _WORD | int(source.words(1)[0]), bits + _WORD
        found = _passing(lags, digits, bits)
        if found is not None:
            return found
    raise InternalError("the digits of a random number are all those of a bound")


def _passing(lags: Sequence[Fraction], digits: int, bits: int) -> int | None:
    """The first index whose sum of weights e^{−lag} surely exceeds U of the total; None if digits of U are missing."""
    from flint import arb

    with precision(bits + _DIGITS):
        sums = list(accumulate((-arb(lag.numerator) / lag.denominator).exp() for lag in lags))
        # U lies in [digits, digits + 1) · 2^−bits.
        low, high = (sums[-1] * n * arb(2) ** -bits for n in (digits, digits + 1))
        below = sum(1 for bound in sums[:-1] if bound <= low)
        above = sum(1 for bound in sums[:-1] if bound >= high)
    return below if below + above == len(sums) - 1 else None


def pick(source: RandomSource, scores: Integers, scale: Fraction) -> int:
    """The index of a large score, exactly by permute-and-flip (McKenna, Sheldon).

    Candidates come in random order, and each is taken with probability e^{−(largest − score)/scale}, until one is.
    """
    dice, largest = _Dice(source), int(scores.max())
    for i in source.permutation(len(scores)):
        if dice.decayed((largest - int(scores[i])) * scale.denominator, scale.numerator):
            return int(i)
    raise InternalError("a candidate whose score is the largest was not taken")


def _one_by_one(source: RandomSource, variance: Fraction, size: int) -> Integers:
    """A discrete Laplace draw of scale t = ⌊σ⌋ + 1 is accepted with probability e^{−(|x| − σ²/t)²/(2σ²)}."""
    dice = _Dice(source)
    scale = math.isqrt(math.floor(variance)) + 1
    drawn = np.empty(size, dtype=np.int64)
    for i in range(size):
        while True:
            x = dice.laplace(scale)
            distance = abs(x) * scale * variance.denominator - variance.numerator
            if dice.decayed(distance**2, 2 * scale**2 * variance.numerator * variance.denominator):
                drawn[i] = x
                break
    return drawn


def _settled(source: RandomSource, law: Law, word: int) -> int:
    """The value of a U whose first 64 digits are known, drawing more of them as needed."""
    digits, bits = word, _WORD
    while bits < 64 * _WORD:
        digits, bits = digits << _WORD | int(source.words(1)[0]), bits + _WORD
        middle, bounds = _bounds(law, bits + _DIGITS)
        # U lies in [digits, digits + 1) · 2^−bits.
        shift = _DIGITS
        low, high = digits << shift, (digits + 1) << shift
        below = sum(1 for _, upper in bounds if upper <= low)
        above = sum(1 for lower, _ in bounds if lower >= high)
        if below + above == len(bounds) and below and above:
            return below - middle
    raise InternalError("the digits of a random number are all those of a bound")


@lru_cache(maxsize=32)
def _leading(law: Law) -> NDArray[np.uint64]:
    """The first 64 digits of each bound."""
    _, bounds = _bounds(law, _DIGITS)
    shift = _DIGITS - _WORD
    first = [(lower >> shift, upper >> shift) for lower, upper in bounds]
    if any(lower != upper for lower, upper in first):
        raise InternalError("the bounds of a law are not known to 64 digits")
    return np.array([lower for lower, _ in first], dtype=np.uint64)


@lru_cache(maxsize=32)
def _bounds(law: Law, bits: int) -> tuple[int, list[tuple[int, int]]]:
    """P[X ≤ x] for x from −m to m − 1, in units of 2^−bits, from below and from above; and m."""
    from flint import arb

    with precision(bits + 64):
        weights = [law.weight(0)]
        enough = arb(2) ** (-bits - 16)
        while not weights[-1] < enough:
            weights.append(law.weight(len(weights)))
            if len(weights) > _LONGEST:
                raise ParameterError("The noise would be too large to be drawn.", code="parameter-range")
        m = len(weights) - 1
        ratio = weights[-1] / weights[-2]  # it never rises with x
        rest = weights[-1] * ratio / (1 - ratio)
        beyond = arb(rest.upper() / 2, rest.upper() / 2)  # all x > m together: between nothing and that
        total = weights[0] + 2 * sum(weights[1:], start=arb(0)) + 2 * beyond
        sums, bounds = beyond, []
        for x in range(-m, m):
            sums += weights[abs(x)]
            share = sums / total
            # Every bound lies strictly between 0 and 1.
            bounds.append((max(0, -whole_above(-share, bits)), min((1 << bits) - 1, whole_above(share, bits))))
    return m, bounds


class _Dice:
    """Exact draws one by one: whole numbers, and events whose probability is a power of e (Canonne, Kamath, Steinke).

    Words are fetched some at a time and belong to one call, so that no fork and no other thread can see them twice.
    """

    def __init__(self, source: RandomSource) -> None:
        self._source = source
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        """Uniform on 0 … bound − 1, for any bound."""
        if bound <= 1:
            return 0
        bits = (bound - 1).bit_length()
        while True:
            number, length = 0, 0
            while length < bits:
                if not self._words:
                    self._words = self._source.words(32).tolist()
                number, length = number << 64 | self._words.pop(), length + 64
            number >>= length - bits
            if number < bound:
                return number

    def decayed(self, numerator: int, denominator: int) -> bool:
        """True with probability e^{−x}, x = numerator/denominator ≥ 0.

        For x ≤ 1: let j be the first of 1, 2, … at which a trial of probability x/j fails; j is odd with probability
        e^{−x}. A larger x takes ⌊x⌋ trials of e^{−1} first.
        """
        whole, numerator = divmod(numerator, denominator)
        for _ in range(whole):
            if not self._decayed_once(1, 1):
                return False
        return self._decayed_once(numerator, denominator)

    def _decayed_once(self, numerator: int, denominator: int) -> bool:
        j = 1
        while self.below(denominator * j) < numerator:
            j += 1
        return j % 2 == 1

    def laplace(self, scale: int) -> int:
        """x with probability proportional to e^{−|x|/scale}."""
        while True:
            rest = self.below(scale)
            if not self._decayed_once(rest, scale):
                continue
            steps = 0
            while self._decayed_once(1, 1):
                steps += 1
            size = rest + scale * steps
            if self.below(2):
                return size
            if size:
                return -size
