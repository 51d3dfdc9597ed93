"""Secret random bits, and exact draws made from them.

Bits come from AES-256 in counter mode under a key from the operating system. Every draw below is *exact*: given
fair independent bits its law is the stated one, not an approximation of it, because only whole numbers are ever
compared. No floating-point number decides anything that a guarantee rests on.

How a probability β is decided. Let U be uniform on [0, 1), its binary digits U₁U₂… fair independent bits. The event
U < β has probability β, and it is settled at the first digit where U and β differ: success if β has the 1 there,
failure if U has it. If β's digits end before they differ, then U ≥ β: failure. A trial needs two digits on average.

*Bit-slicing* walks β's digits once for many trials. Sixty-four trials share a word, one random word brings the next
digit of U to all of them, and two or three word operations settle those whose digit differs (`_trials`). In a cell
with very many records only the *number* of undecided trials matters, so it is enough to count ones (`_successes`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incrowd.core.bits import WORD, Bits, SeededBits, SystemBits, Words
from incrowd.core.errors import ParameterError
from incrowd.theory._numbers import require_count

Integers = NDArray[np.int64]
Real = float | int | Fraction | np.floating[Any] | np.integer[Any]

_ALL_ONES = 2**64 - 1
_BLOCK = 1 << 21  # trials decided together: their words stay in the cache
_CELLS = 1 << 17  # cells counted together
_LARGE = 1 << 18  # records in a cell from which on counting alone is faster; at most a block
_STRIDE = 9  # digits of β between two looks at which words are still undecided


def to_fraction64(probability: Real) -> int:
    """⌊p·2⁶⁴⌋: the numerator of the largest multiple of 2⁻⁶⁴ that does not exceed `probability`.

    Computed in whole numbers. A float of 2⁻¹¹ or more is such a multiple already and loses nothing.

    Raises:
        ParameterError: `probability` is not a number in [0, 1].
    """
    return math.floor(_probability(probability) * 2**64)


class RandomSource:
    """A source of secret bits and of exact draws from them.

    ``RandomSource()`` is the one to use. Its output never repeats: every source has a key of its own, a forked child
    takes a new key before its first draw, and a source cannot be copied or pickled. Threads may share one.
    ``RandomSource.seeded(n)`` repeats itself on purpose, for tests; it says so in `secure` and `kind`, and whatever is
    made with it must not be published.

    A probability given as a float is rounded down to a multiple of 2⁻⁶⁴ (`to_fraction64`); one given as a `Fraction`
    is taken exactly, whatever its denominator. Weights are always taken exactly.
    """

    def __init__(self, *, _bits: Bits | None = None) -> None:
        self._bits = SystemBits() if _bits is None else _bits

    @classmethod
    def seeded(cls, seed: int) -> RandomSource:
        """A predictable source for tests: the same on every platform, and never safe to publish from."""
        return cls(_bits=SeededBits(seed))

    @property
    def secure(self) -> bool:
        """Whether the bits come from the operating system's key: only then may results be published."""
        return type(self._bits) is SystemBits

    @property
    def kind(self) -> str:
        """Where the bits come from, in the words of a certificate."""
        return self._bits.kind

    def __repr__(self) -> str:
        return f"<RandomSource: {self.kind}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A random source cannot be copied or pickled: its output would be used twice.")

    def words(self, size: int) -> Words:
        """`size` independent 64-bit words, each uniform."""
        words = np.empty(require_count("size", size, least=0), dtype=WORD)
        self._bits.fill(words)
        return words

    def integers(self, bound: int, size: int) -> Integers:
        """`size` independent whole numbers, uniform on 0 … `bound` − 1, for a `bound` of at most 2⁶³.

        Words at or above the largest multiple of `bound` are thrown away; the remainders of the others are uniform.
        """
        size = require_count("size", size, least=0)
        if require_count("bound", bound) > 2**63:
            raise ParameterError("bound must be at most 2**63.", code="parameter-range")
        last = 2**64 - 2**64 % int(bound) - 1
        drawn = np.empty(size, dtype=np.int64)
        filled = 0
        while filled < size:
            words = self.words(min(size - filled, _BLOCK))
            words = words[words <= np.uint64(last)]
            drawn[filled : filled + len(words)] = words % np.uint64(bound)
            filled += len(words)
        return drawn

    def permutation(self, size: int) -> Integers:
        """The numbers 0 … `size` − 1 in an order drawn uniformly from all orders.

        Sorts random keys. Given that the keys are all different, every order is equally likely; if two are equal,
        all are drawn again.
        """
        while True:
            keys = self.words(size)
            order = np.argsort(keys)
            ranked = keys[order]
            if not (ranked[1:] == ranked[:-1]).any():
                return order.astype(np.int64, copy=False)

    def bernoulli(self, probability: Real, size: int) -> NDArray[np.bool_]:
        """`size` independent trials, each true with exactly the given probability (rounded as the class says)."""
        p = _as_drawn(probability)
        outcome = np.empty(require_count("size", size, least=0), dtype=np.bool_)
        if p in (0, 1):
            outcome[:] = p == 1
            return outcome
        for first in range(0, size, _BLOCK):
            part = outcome[first : first + _BLOCK]
            packed = self._trials(len(part), p).view(np.uint8)
            part[:] = np.unpackbits(packed, count=len(part), bitorder="little")
        return outcome

    def binomial(self, counts: ArrayLike, probability: Real) -> Integers:
        """For each cell, how many of its records survive when each is kept with the given probability.

        Independent Binomial(count, p) draws, exact, in the shape of `counts`. Takes about ten random bits for each
        record (two in very large cells) and memory for the cells, not for the records.
        """
        cells = _counts(counts)
        return self._binomial(cells.ravel(), _as_drawn(probability)).reshape(cells.shape)

    def multinomial(self, counts: ArrayLike, weights: Iterable[Real]) -> Integers:
        """For each cell, how many of its records fall into each category; one more axis than `counts`, at the end.

        Each record falls into category j with probability wⱼ/Σw, exactly. The categories are halved again and again:
        of the records known to lie in a range of categories, each lies in its first half independently with probability
        (weight of the half)/(weight of the range), which is a Binomial with a rational probability.
        """
        cells = _counts(counts)
        exact = _weights(weights)
        table = np.empty((cells.size, len(exact)), dtype=np.int64)
        self._spread(cells.ravel(), exact, table)
        return table.reshape(*cells.shape, len(exact))

    def categorical(self, weights: Iterable[Real], size: int) -> Integers:
        """`size` independent categories, j with probability wⱼ/Σw, exactly.

        With bounds bⱼ = (w₀ + … + wⱼ)/Σw the category of a uniform U is the number of bounds at or below U. The first
        64 digits of U tell, unless they are those of a bound (probability 2⁻⁶⁴ each); then more are drawn.
        """
        exact = _weights(weights)
        bounds = [bound for bound in itertools.accumulate(exact) if bound < 1]
        leading = np.array([math.floor(bound * 2**64) for bound in bounds], dtype=np.uint64)
        codes = np.empty(require_count("size", size, least=0), dtype=np.int64)
        if not bounds:
            codes[:] = 0
            return codes
        for first in range(0, size, _BLOCK):
            part = codes[first : first + _BLOCK]
            digits = self.words(len(part))
            part[:] = np.searchsorted(leading, digits, side="right")
            # Code 0 reads the last bound, which its digits lie below: never a false alarm.
            for i in np.flatnonzero(leading[part - 1] == digits):
                part[i] = self._settle(int(digits[i]), bounds)
        return codes

    def sample_without_replacement(self, counts: ArrayLike, size: int) -> Integers:
        """For each cell, how many of its records are in a uniformly drawn set of exactly `size` records.

        An exact multivariate hypergeometric draw. Thin every cell with probability size/total: by symmetry, the kept
        set is uniform among the sets of its own size. If it is too large, take a uniform set of the surplus out of it;
        if too small, add a uniform set of the missing from the rest. Either keeps the symmetry: the result is uniform.
        """
        cells = _counts(counts)
        if cells.sum(dtype=np.float64) >= 2.0**62:
            raise ParameterError("counts add up to more than 2**62 records.", code="parameter-range")
        flat = cells.ravel()
        total = int(flat.sum())
        if require_count("size", size, least=0) > total:
            raise ParameterError(
                "size is larger than the number of records.",
                code="parameter-combination",
                remedy="Draw at most as many records as there are.",
            )
        kept = self._binomial(flat, Fraction(int(size), max(total, 1)))
        surplus = int(kept.sum()) - int(size)
        if surplus > 0:
            kept -= self._distinct(kept, surplus)
        elif surplus < 0:
            kept += self._distinct(flat - kept, -surplus)
        return kept.reshape(cells.shape)

    def _binomial(self, cells: Integers, p: Fraction) -> Integers:
        if p == 0:
            return np.zeros_like(cells)
        if p == 1:
            return cells.copy()
        kept = np.empty_like(cells)
        for first in range(0, len(cells), _CELLS):
            part = slice(first, first + _CELLS)
            self._thin(cells[part], p, kept[part])
        return kept

    def _thin(self, cells: Integers, p: Fraction, kept: Integers) -> None:
        large = cells >= _LARGE
        ends = np.cumsum(np.where(large, 0, cells))
        first = done = 0
        while first < len(cells):
            # Every cell left here is smaller than a block, so at least one fits.
            last = int(np.searchsorted(ends, done + _BLOCK, side="right"))
            local = ends[first:last] - done
            kept[first:last] = _ones_between(self._trials(int(local[-1]), p), local)
            first, done = last, int(ends[last - 1])
        for cell in np.flatnonzero(large):
            kept[cell] = self._successes(int(cells[cell]), p)

    def _trials(self, size: int, p: Fraction) -> Words:
        """The outcomes of `size` trials, 0 < p < 1: bit i of the words, and zeros in the rest of the last word.

        A random 1 stands for the digit 0 of U. Among the undecided, it means U < p where p's digit is 1, and still
        undecided where p's digit is 0; a random 0 means still undecided in the first case, U > p in the second.
        """
        success = np.zeros(size // 64 + 1, dtype=WORD)
        undecided = np.full_like(success, _ALL_ONES)
        undecided[-1] = (1 << size % 64) - 1
        drawn = np.empty_like(success)
        digits = _binary_digits(p)
        won, where = success, None  # at first all words are looked at, later only those `where` a trial is undecided
        while len(undecided):
            taken = 0
            for digit in itertools.islice(digits, _STRIDE):
                self._bits.fill(drawn)
                drawn &= undecided
                if digit:
                    won |= drawn
                    undecided ^= drawn
                else:
                    undecided, drawn = drawn, undecided
                taken += 1
            if where is not None:
                success[where] |= won
            if taken < _STRIDE:
                break  # p has no more digits, so U ≥ p in whatever is still undecided
            remaining = np.flatnonzero(undecided != 0)
            where = remaining if where is None else where[remaining]
            undecided = undecided[remaining]
            drawn = drawn[: len(undecided)]
            won = np.zeros_like(undecided)
        return success

    def _successes(self, size: int, p: Fraction) -> int:
        """How many of `size` trials succeed, 0 < p < 1, by counting alone; digits mean what they do in `_trials`."""
        successes = 0
        for digit in _binary_digits(p):
            if size == 0:
                break
            ones = self._ones(size)
            if digit:
                successes += ones
                size -= ones
            else:
                size = ones
        return successes

    def _ones(self, size: int) -> int:
        """The number of ones among `size` fair bits."""
        drawn = np.empty(min(size, _BLOCK) // 64 + 1, dtype=WORD)
        ones = 0
        for first in range(0, size, _BLOCK):
            part = min(size - first, _BLOCK)
            words = drawn[: part // 64 + 1]
            self._bits.fill(words)
            words[-1] &= np.uint64((1 << part % 64) - 1)
            ones += int(np.bitwise_count(words).sum(dtype=np.int64))
        return ones

    def _spread(self, cells: Integers, weights: Sequence[Fraction], table: Integers) -> None:
        if len(weights) == 1:
            table[:, 0] = cells
            return
        half = len(weights) // 2
        whole = sum(weights)
        # Without weight there are no records to spread either, so any probability will do.
        kept = self._binomial(cells, sum(weights[:half]) / whole if whole else Fraction(1))
        self._spread(kept, weights[:half], table[:, :half])
        self._spread(cells - kept, weights[half:], table[:, half:])

    def _settle(self, digits: int, bounds: Sequence[Fraction]) -> int:
        """The number of bounds at or below a U whose first 64 digits are known, drawing more as needed."""
        low, width = Fraction(digits, 2**64), Fraction(1, 2**64)
        while any(low < bound < low + width for bound in bounds):
            width /= 2**64
            low += int(self.words(1)[0]) * width
        return sum(bound <= low for bound in bounds)

    def _distinct(self, cells: Integers, size: int) -> Integers:
        """A uniform set of `size` records by cell, for a `size` that is small against the number of records.

        Numbers are drawn until `size` different ones are found. Nothing in that favours one number over another, so
        every set is equally likely.
        """
        ends = np.cumsum(cells)
        chosen = np.empty(0, dtype=np.int64)
        while len(chosen) < size:
            chosen = np.union1d(chosen, self.integers(int(ends[-1]), size - len(chosen)))
        return np.bincount(np.searchsorted(ends, chosen, side="right"), minlength=len(cells))


def _binary_digits(p: Fraction) -> Iterator[bool]:
    """The digits of 0 ≤ p < 1 after the binary point, by long division; they end if only zeros would follow."""
    rest, divisor = p.numerator, p.denominator
    while rest:
        rest *= 2
        digit = rest >= divisor
        if digit:
            rest -= divisor
        yield digit


def _ones_between(words: Words, ends: Integers) -> Integers:
    """The ones in each of the consecutive stretches of bits that end before the given positions."""
    before = np.zeros(len(words) + 1, dtype=np.int64)
    np.cumsum(np.bitwise_count(words), out=before[1:], dtype=np.int64)
    word = ends >> 6
    below = np.left_shift(np.uint64(1), (ends & 63).astype(np.uint64))
    below -= np.uint64(1)
    below &= words[word]
    upto = before[word]
    upto += np.bitwise_count(below)
    between: Integers = np.diff(upto, prepend=0)
    return between


def _rational(name: str, value: Real) -> Fraction:
    """The exact value of a number; floating-point numbers are fractions too."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise ParameterError(f"{name} must be a finite number.", code="parameter-range")
        return Fraction(*value.as_integer_ratio())
    raise ParameterError(f"{name} must be a number.", code="parameter-type", details={"parameter": name})


def _probability(value: Real) -> Fraction:
    p = _rational("probability", value)
    if not 0 <= p <= 1:
        raise ParameterError("probability must be in [0, 1].", code="parameter-range")
    return p


def _as_drawn(value: Real) -> Fraction:
    """The probability with which a trial then succeeds: never above the one asked for."""
    return _probability(value) if isinstance(value, Fraction) else Fraction(to_fraction64(value), 2**64)


def _weights(weights: Iterable[Real]) -> list[Fraction]:
    """The weights divided by their sum, exactly."""
    exact = [_rational("weights", weight) for weight in weights]
    whole = sum(exact, Fraction(0))
    if whole <= 0 or min(exact) < 0:
        raise ParameterError("weights must not be negative, and one at least must be above 0.", code="parameter-range")
    return [weight / whole for weight in exact]


def _counts(counts: ArrayLike) -> Integers:
    """Counts of records as 64-bit integers, or a clear error. The message holds no count: they are data."""
    cells = np.asarray(counts)
    if cells.size == 0:
        return np.zeros(cells.shape, dtype=np.int64)
    if cells.dtype.kind not in "iu":
        raise ParameterError("counts must be whole numbers.", code="parameter-type")
    if int(cells.min()) < 0 or int(cells.max()) >= 2**63:
        raise ParameterError("counts must lie between 0 and 2**63 - 1.", code="parameter-range")
    return cells.astype(np.int64, copy=False)
