"""How two columns go together, when both were randomised: a test of independence, and odds ratios.

Here the table is taken to be a sample of a population: whether two columns are independent, and what their odds ratio
is, are questions about that population.

**The test.** Let two columns be randomised independently of each other, and p be the shares of their pairs in the
population. The released shares are q = (A₁⊗A₂)ᵀp, and released margins come from true margins in the same way, so
q − q₁⊗q₂ = (A₁⊗A₂)ᵀ(p − p₁⊗p₂). For invertible matrices, the released columns are independent *exactly if* the true
ones are. Released records are independent draws from q, hence Pearson's statistic of the released table has, under
independence, its usual law: χ² with (r−1)(c−1) degrees of freedom. Nothing has to be corrected. (A Wald statistic of
the estimated counts, with their full covariance, is that of the released ones: linear maps do not change it.)
What must not be done is to put estimated counts into Pearson's formula: their errors are larger than it thinks.

Two columns that were randomised *together*, or one of them together with a third, may be dependent in the release
although they are not in the population. There the Wald statistic is computed: d_ij = p̂_ij − p̂_i p̂_j for all but the
last row and column, and its covariance through the inverse, JΣJᵀ with Σ = (C diag(y/R) Cᵀ − p̂p̂ᵀ)/R.

**Odds ratios**, of each pair of values against the first row and column: the logarithm of x̂_ij x̂_00/(x̂_i0 x̂_0j) has,
by the delta method, the variance Σ_w (Σ_j c_j C_jw)² y_w with c = (1/x̂_ij, 1/x̂_00, −1/x̂_i0, −1/x̂_0j). (The covariance's
other term, (cᵀx̂)²/R, vanishes.) It is what the randomisation adds plus Woolf's 1/x_ij + 1/x_00 + 1/x_i0 + 1/x_0j.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.numbers import count, number
from incrowd.mechanisms.pram.inversion import Floats
from incrowd.theory.intervals import NORMAL_95

if TYPE_CHECKING:
    from incrowd.mechanisms.pram.estimate import Tabulation

MOST_CELLS = 400
_MOST_RELEASED = 10_000
_MOST_TOLD = 12


@dataclass(frozen=True)
class OddsRatio:
    """The odds ratio of two values against two others; None where an estimated count is not above zero.

    Attributes:
        first: the value of the first column, and the one it is compared with.
        second: the same for the second column.
        odds_ratio: estimated.
        log_standard_error: of its logarithm.
        low: the lower end of a 95% confidence interval.
        high: its upper end.
    """

    first: tuple[str | None, str | None]
    second: tuple[str | None, str | None]
    odds_ratio: float | None
    log_standard_error: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        pair = "; ".join(
            " against ".join("(missing)" if v is None else v for v in side) for side in (self.first, self.second)
        )
        if self.odds_ratio is None or self.low is None or self.high is None:
            return f"odds ratio of {pair}: not estimable"
        return f"odds ratio of {pair}: {number(self.odds_ratio)} (95% from {number(self.low)} to {number(self.high)})"


@dataclass(frozen=True)
class Association:
    """Whether two columns are independent, and their odds ratios.

    Attributes:
        chi_square: the statistic.
        degrees: its degrees of freedom under independence.
        p_value: how likely a statistic as large is under independence.
        test: "Pearson, on the released counts" or "Wald, through the inverse".
        odds_ratios: against the first value of each column.
    """

    chi_square: float
    degrees: int
    p_value: float
    test: str
    odds_ratios: tuple[OddsRatio, ...]

    def sentences(self) -> list[str]:
        """The test, and the first odds ratios."""
        more = len(self.odds_ratios) - _MOST_TOLD
        return [
            (
                f"independence: χ² = {number(self.chi_square)} with {self.degrees} degrees of freedom, "
                f"p = {number(self.p_value, 3)} ({self.test})"
            ),
            *(str(odds) for odds in self.odds_ratios[:_MOST_TOLD]),
            *([f"and {count(more, 'more odds ratio', 'more odds ratios')} (--json)"] if more > 0 else []),
        ]


def associate(whole: Tabulation, estimate: Floats, labels: Sequence[Sequence[str | None]]) -> Association | None:
    """The association of the two columns of a cross-tabulation; None if it has too many cells, or one row.

    The estimates are of the records there were, not of a population of which these are a sample.
    """
    if estimate.size > MOST_CELLS or whole.released.size > _MOST_RELEASED or min(estimate.shape) < 2:
        return None
    coefficients = _coefficients(whole)
    # A column randomised together with others, not asked for, brings their dependences with it.
    if len(whole.axes) == 2 and whole.released.size == estimate.size:
        statistic, degrees = pearson(whole.released)
        test = "Pearson, on the released counts"
    else:
        statistic, degrees = _wald(whole, estimate, coefficients)
        test = "Wald, through the inverse"
    from scipy.special import gammaincc

    p_value = float(gammaincc(degrees / 2, statistic / 2)) if degrees else 1.0
    return Association(statistic, degrees, p_value, test, tuple(_odds(whole, estimate, coefficients, labels)))


def pearson(counts: Floats) -> tuple[float, int]:
    """Pearson's statistic and its degrees of freedom; rows and columns without a record do not count."""
    used = counts[np.ix_(counts.sum(axis=1) > 0, counts.sum(axis=0) > 0)]
    expected = np.outer(used.sum(axis=1), used.sum(axis=0)) / used.sum()
    return float(np.sum((used - expected) ** 2 / expected)), (used.shape[0] - 1) * (used.shape[1] - 1)


def _coefficients(whole: Tabulation) -> Floats:
    """C for all cells at once, in the order of the columns asked for: what released counts add to each estimate."""
    product = reduce(np.multiply.outer, [axis.coefficients for axis in whole.axes])
    shown = [2 * i for i in range(len(whole.axes))]
    released = [2 * i + 1 for i in range(len(whole.axes))]
    arranged = np.transpose(product, [*shown, *released]).reshape(-1, whole.released.size)
    order = whole.arranged(np.arange(len(arranged), dtype=np.float64)).astype(np.int64).ravel()
    return np.asarray(arranged[order], dtype=np.float64)


def _wald(whole: Tabulation, estimate: Floats, coefficients: Floats) -> tuple[float, int]:
    records = float(whole.released.sum())
    shares = estimate / records
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    scaled = (coefficients * (whole.released.ravel() / records)) @ coefficients.T
    covariance = (scaled - np.outer(shares.ravel(), shares.ravel())) / records
    inner = [(i, j) for i in range(len(rows) - 1) for j in range(len(columns) - 1)]
    jacobian = np.zeros((len(inner), estimate.size))
    for place, (i, j) in enumerate(inner):
        slope = np.zeros_like(shares)
        slope[i, :] -= columns[j]
        slope[:, j] -= rows[i]
        slope[i, j] += 1.0
        jacobian[place] = slope.ravel()
    departure = np.array([shares[i, j] - rows[i] * columns[j] for i, j in inner])
    spread = jacobian @ covariance @ jacobian.T
    return float(departure @ np.linalg.pinv(spread, hermitian=True) @ departure), len(inner)


def _odds(
    whole: Tabulation, estimate: Floats, coefficients: Floats, labels: Sequence[Sequence[str | None]]
) -> list[OddsRatio]:
    released, columns = whole.released.ravel(), estimate.shape[1]
    found = []
    for i in range(1, estimate.shape[0]):
        for j in range(1, columns):
            cells = [(i, j), (0, 0), (i, 0), (0, j)]
            counts = [float(estimate[cell]) for cell in cells]
            first, second = (labels[0][i], labels[0][0]), (labels[1][j], labels[1][0])
            if min(counts) <= 0:
                found.append(OddsRatio(first, second, None, None, None, None))
                continue
            weights = [sign / count for sign, count in zip((1, 1, -1, -1), counts, strict=True)]
            slope = sum(w * coefficients[a * columns + b] for w, (a, b) in zip(weights, cells, strict=True))
            error = math.sqrt(float(np.sum(np.asarray(slope) ** 2 * released)))
            middle = math.log(counts[0] * counts[1] / (counts[2] * counts[3]))
            ends = [_exp(middle + side * NORMAL_95 * error) for side in (-1, 1)]
            found.append(OddsRatio(first, second, _exp(middle), error, ends[0], ends[1]))
    return found


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
