"""Undoing the randomisation of a cross-tabulation, one axis at a time.

An *axis* of a cross-tabulation was randomised by one matrix A (a block, or what a few columns see of it), different
axes independently. With x the true counts and y the released ones, y is the sum over the records of independent draws
from the rows of A = ⊗A_a, so E[y] = Aᵀx. The Kronecker product is never built: applying it is applying each A_a along
its axis, and so is applying its inverse.

**The unbiased estimate** is x̂ = By with B = (Aᵀ)⁻¹, for E[x̂] = BAᵀx = x. Sums of its cells are Cy, C = MB, with M the
0/1 matrix that sums; everything below is said for C.

**Its variance**, for the table as it is: x is fixed, chance is in the redrawing alone. Then
Cov(y) = Σ_u x_u·(diag(A_u) − A_u A_uᵀ) = diag(Aᵀx) − Aᵀdiag(x)A, and with CAᵀ = M

    Var(x̂_j) = Σ_w C_jw²·(Aᵀx)_w − Σ_u M_ju²·x_u = Σ_w C_jw²·(Aᵀx)_w − x_j .

Both terms are linear in x, so putting y for Aᵀx and x̂_j for x_j gives an *unbiased* estimate of the variance, exactly,
whatever x is. (C² is the product of the axes' squared matrices: again one axis at a time.) If instead the table is
itself a sample of a population with shares π, and Rπ is to be estimated, y is multinomial with covariance
R(diag(Aᵀπ) − Aᵀππ'A), and the variance is Σ_w C_jw² y_w − x̂_j²/R: more by x_j(1 − x_j/R), the ordinary variance of
sampling. The released counts' own √(y(1 − y/R)) is neither; it forgets that B amplifies.

**The likeliest counts.** The inversion may go below zero. The likelihood L(π) = Σ_w y_w ln q_w, q = Aᵀπ, is concave on
the shares π ≥ 0, Σπ = 1, and the EM step (iterative Bayes) π_u ← π_u·g_u, g = A(y/q)/R, never lowers it. How far π is
from the maximum is bounded by any ν ≥ 0 with Aν ≤ R in every cell: for every π* and q* = Aᵀπ*, by Jensen's inequality,

    L(π*) = Σ_w y_w ln(q*_w ν_w/y_w) + Σ_w y_w ln(y_w/ν_w) ≤ R·ln(Σ_u π*_u (Aν)_u/R) + Σ_w y_w ln(y_w/ν_w),

and the first term is not above 0, so L(π*) − L(π) ≤ Σ_w y_w ln(y_w/(ν_w q_w)). Two choices of ν are tried. Dividing
y/q by max g gives R·ln max g, the usual bound. Taking A⁻¹R(g − 1)₊ off y/q makes Aν = min(A(y/q), R) exactly, and the
bound is R·Σπ_u(g_u − 1)₊ to first order: a thousand times less where small cells are on their way to zero. Either holds
however π was found, so steps may be extrapolated, and iteration stops when the smaller bound is small enough.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import ParameterError
from incrowd.theory.randomisation import RetentionReplacement

Floats = NDArray[np.float64]

EM_GAP = 0.01
"""The likelihood found is at least e^(−this) times the largest."""

_WORST_CONDITION = 1e8
_MOST_STEPS = 4_000
_LOOKS = 10  # steps between two looks at what is missing

AlongAxis = Callable[[Floats, int], Floats]
"""What is done to counts along an axis."""


class Inversion(ABC):
    """One axis: how it was randomised, and what is shown of it."""

    size: int
    """How many values it has in the release."""

    @abstractmethod
    def forward(self, cells: Floats, axis: int) -> Floats:
        """Aᵀ along an axis: what is expected of these counts after randomisation."""

    @abstractmethod
    def backward(self, cells: Floats, axis: int) -> Floats:
        """A along an axis."""

    @abstractmethod
    def solved(self, cells: Floats, axis: int) -> Floats:
        """(Aᵀ)⁻¹ along an axis."""

    @abstractmethod
    def solved_back(self, cells: Floats, axis: int) -> Floats:
        """A⁻¹ along an axis."""

    @abstractmethod
    def undone(self, cells: Floats, axis: int, *, squared: bool = False) -> Floats:
        """C along an axis, or C with each entry squared."""

    @abstractmethod
    def summed(self, cells: Floats, axis: int) -> Floats:
        """M along an axis: from the values it has to those that are shown."""

    @abstractmethod
    def paired(
        self, cells: Floats, axis: int, sizes: Sequence[int], place: int, first: Floats, second: Floats
    ) -> Floats:
        """Σ_w p_ow·n_ow·y_w along an axis whose shown values are combinations of so many values of some columns.

        p_ow = Σ_v first_v·C_(o,v)w sums over the values v of the column at `place`, o being those of the others; n
        likewise.
        """

    @property
    @abstractmethod
    def coefficients(self) -> Floats:
        """C, written out."""


@dataclass(frozen=True)
class KeptAxis(Inversion):
    """Retention-replacement: A = ρI + (1−ρ)J/|V|, and its inverse (I − (1−ρ)J/|V|)/ρ, with J all ones."""

    law: RetentionReplacement

    def __post_init__(self) -> None:
        if self.law.retention * _WORST_CONDITION < 1:  # 1/ρ is the condition of the matrix
            raise _not_invertible()

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many values it has in the release."""
        return self.law.size

    def forward(self, cells: Floats, axis: int) -> Floats:
        """A is its own transpose."""
        rho = self.law.retention
        return _mixed(cells, axis, rho, (1 - rho) / self.size)

    backward = forward

    def solved(self, cells: Floats, axis: int) -> Floats:
        """The inverse is its own transpose, too."""
        return self.undone(cells, axis)

    solved_back = solved

    def undone(self, cells: Floats, axis: int, *, squared: bool = False) -> Floats:
        """Its own entries off the diagonal are all alike, and so are their squares."""
        own, elsewhere = self._inverse
        if squared:
            return _mixed(cells, axis, (elsewhere + own) ** 2 - elsewhere**2, elsewhere**2)
        return _mixed(cells, axis, own, elsewhere)

    @property
    def _inverse(self) -> tuple[float, float]:
        """C as a·I + b·J."""
        rho = self.law.retention
        return 1 / rho, -(1 - rho) / (self.size * rho)

    def paired(
        self, cells: Floats, axis: int, sizes: Sequence[int], place: int, first: Floats, second: Floats
    ) -> Floats:
        """With C = a·I + b·J, p_o(o',v) = a·first_v·[o = o'] + b·Σfirst: nothing of the size of C is made."""
        own, elsewhere = self._inverse
        sums = elsewhere * float(first.sum()), elsewhere * float(second.sum())
        here = own * (own * first * second + sums[1] * first + sums[0] * second)
        apart = cells.reshape(*cells.shape[:axis], *sizes, *cells.shape[axis + 1 :])
        summed = np.tensordot(here, apart, axes=(0, axis + place))
        within = summed.reshape(*cells.shape[:axis], -1, *cells.shape[axis + 1 :])
        return np.asarray(within + sums[0] * sums[1] * cells.sum(axis=axis, keepdims=True), dtype=np.float64)

    def summed(self, cells: Floats, axis: int) -> Floats:  # noqa: ARG002
        """All of it is shown."""
        return cells

    @property
    def coefficients(self) -> Floats:
        """The inverse, which is its own transpose."""
        return self.law.inverse()


@dataclass(frozen=True, eq=False)
class General(Inversion):
    """Any matrix, and which shown value each of its values belongs to (several, where a part of a block is shown)."""

    matrix: Floats
    shown: NDArray[np.int64]

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.matrix)

    @cached_property
    def coefficients(self) -> Floats:
        """C = M(Aᵀ)⁻¹."""
        return np.asarray(self._sum @ self._inverse.T, dtype=np.float64)

    @cached_property
    def _inverse(self) -> Floats:
        if np.linalg.cond(self.matrix) > _WORST_CONDITION:
            raise _not_invertible()
        return np.asarray(np.linalg.inv(self.matrix), dtype=np.float64)

    @cached_property
    def _sum(self) -> Floats:
        sums = np.zeros((int(self.shown.max()) + 1, self.size))
        sums[self.shown, np.arange(self.size)] = 1.0
        return sums

    def forward(self, cells: Floats, axis: int) -> Floats:
        return _along(self.matrix.T, cells, axis)

    def backward(self, cells: Floats, axis: int) -> Floats:
        return _along(self.matrix, cells, axis)

    def solved(self, cells: Floats, axis: int) -> Floats:
        return _along(self._inverse.T, cells, axis)

    def solved_back(self, cells: Floats, axis: int) -> Floats:
        return _along(self._inverse, cells, axis)

    def undone(self, cells: Floats, axis: int, *, squared: bool = False) -> Floats:
        return _along(self.coefficients**2 if squared else self.coefficients, cells, axis)

    def paired(
        self, cells: Floats, axis: int, sizes: Sequence[int], place: int, first: Floats, second: Floats
    ) -> Floats:
        apart = self.coefficients.reshape(*sizes, self.size)
        p, n = (np.tensordot(weights, apart, axes=(0, place)).reshape(-1, self.size) for weights in (first, second))
        return _along(np.asarray(p * n, dtype=np.float64), cells, axis)

    def summed(self, cells: Floats, axis: int) -> Floats:
        return _along(self._sum, cells, axis)


def _mixed(cells: Floats, axis: int, own: float, all_: float) -> Floats:
    """own·I + all·J along an axis."""
    return np.asarray(own * cells + all_ * cells.sum(axis=axis, keepdims=True), dtype=np.float64)


def _along(matrix: Floats, cells: Floats, axis: int) -> Floats:
    return np.moveaxis(np.tensordot(matrix, cells, axes=(1, axis)), 0, axis)


def invert(axes: Sequence[Inversion], released: Floats) -> tuple[Floats, Floats]:
    """The unbiased estimate of the true counts, and an unbiased estimate of its variance, set to 0 where negative."""
    estimate = squares = released
    for i, axis in enumerate(axes):
        estimate, squares = axis.undone(estimate, i), axis.undone(squares, i, squared=True)
    return estimate, np.maximum(squares - estimate, 0.0)


@dataclass(frozen=True, eq=False)
class Likeliest:
    """Counts whose likelihood is, in logarithm, at most `gap` below the largest; and the steps it took."""

    counts: Floats
    gap: float
    steps: int


def likeliest(axes: Sequence[Inversion], released: Floats, gap: float = EM_GAP, most: int = _MOST_STEPS) -> Likeliest:
    """The likeliest true counts, none below zero.

    Steps are extrapolated where that does not lower the likelihood.
    """
    total = float(released.sum())
    if not total:
        return Likeliest(released, 0.0, 0)
    observed = released / total

    hit = observed > 0

    def look(shares: Floats) -> tuple[float, Floats]:
        """The likelihood, for one record, and g."""
        expected = _apply(axes, shares, lambda axis: axis.forward)
        ratio = np.divide(observed, expected, out=np.zeros_like(observed), where=hit)
        return float(np.sum(observed[hit] * np.log(expected[hit]))), _apply(axes, ratio, lambda axis: axis.backward)

    def step(shares: Floats) -> Floats:
        return shares * look(shares)[1]

    # From the unbiased estimate, with a little in cells that it empties: what is zero would stay zero.
    shares = _normed(np.maximum(_apply(axes, released, lambda axis: axis.solved), 0.5))
    best, best_gap, steps = shares, math.inf, 0
    while True:
        level, gain = look(shares)
        once = shares * gain
        if steps % _LOOKS == 0 or steps >= most:
            missing = _missing(axes, observed, shares, gain) * total
            if missing < best_gap:
                best, best_gap = shares, missing
            if best_gap <= gap or steps >= most:
                break
        ahead = step(_extrapolated(shares, once, step(once)))
        steps += 1
        shares = _normed(ahead) if look(ahead)[0] >= level else _normed(once)
    counts = best * total
    for i, axis in enumerate(axes):
        counts = axis.summed(counts, i)
    return Likeliest(counts, best_gap, steps)


def _missing(axes: Sequence[Inversion], observed: Floats, shares: Floats, gain: Floats) -> float:
    """The smaller of the two bounds on what the likelihood of these shares lacks, for one record."""
    usual = math.log(max(1.0, float(gain.max())))
    expected = _apply(axes, shares, lambda axis: axis.forward)
    hit = observed > 0
    quotient = np.divide(observed, expected, out=np.zeros_like(observed), where=hit)
    dual = np.maximum(quotient - _apply(axes, np.maximum(gain - 1, 0.0), lambda axis: axis.solved_back), 0.0)
    if not (dual[hit] > 0).all():
        return usual
    dual /= float(
        _apply(axes, dual, lambda axis: axis.backward).max()
    )  # where something was set to zero, and for rounding
    return min(usual, float(np.sum(observed[hit] * np.log(observed[hit] / (dual[hit] * expected[hit])))))


def _extrapolated(start: Floats, once: Floats, twice: Floats) -> Floats:
    """A point far ahead on the way that two steps suggest (SQUAREM), inside the positive shares."""
    first = once - start
    bend = (twice - once) - first
    length = math.sqrt(float(np.sum(first**2)) / max(float(np.sum(bend**2)), 1e-300))
    length = min(max(length, 1.0), 1e9)
    return _normed(np.maximum(start + 2 * length * first + length**2 * bend, 0.1 * twice))


def _apply(axes: Sequence[Inversion], cells: Floats, what: Callable[[Inversion], AlongAxis]) -> Floats:
    for i, axis in enumerate(axes):
        cells = what(axis)(cells, i)
    return cells


def _normed(shares: Floats) -> Floats:
    return np.asarray(shares / shares.sum(), dtype=np.float64)


def _not_invertible() -> ParameterError:
    return ParameterError(
        "A column asked for was redrawn without regard to its value, or nearly so: it cannot be estimated.",
        code="parameter-range",
        remedy="Leave it out.",
    )
