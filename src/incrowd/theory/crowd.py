"""Sampling, then a safe crowd of k (Li, Qardaji, Su).

The mechanism keeps each record with probability β, recodes it by a mapping g, drops every recoded tuple that
occurs fewer than k times and publishes the rest. This module says what that promises under adding or removing
one record, provided that g does not depend on the data (strongly safe) or was chosen by an ε₁-DP procedure on the
*full* table (ε₁-safe), and that neither the sample size nor the number of suppressed records is published.

**The exact δ.** Neighbours differ in one cell, which holds n records or n−1. Let X_n ~ Bin(n, β), published if
X_n ≥ k and otherwise shown as 0, and write T_J(n) = P[X_n ≥ J].

*Removal* (the larger table is the true one). The likelihood ratio n(1−β)/(n−j) grows with j and the suppressed
outcome never favours the larger table, so the ε-divergence is the maximum over J ≥ k of

    h_J(n) = T_J(n) − e^ε T_J(n−1).

Since T_J(n) = T_J(n−1) + β f(J−1; n−1), the step h_J(n+1) − h_J(n) has the sign of (J−1) − γn with
γ = 1 − (1−β)e^{−ε}. So h_J is largest at n = ⌈(J−1)/γ⌉, and at 1 if J = 1. Call that maximum H(J). Conditioning on one
trial gives h_{J+1}(n) = β h_J(n−1) + (1−β) h_{J+1}(n−1); at the n that attains H(J+1), which is at least 2, this
reads H(J+1) ≤ β H(J) + (1−β) H(J+1), hence H(J+1) ≤ H(J). Therefore

    δ_removal(k, β, ε) = H(k) = h_k(⌈(k−1)/γ⌉):   one evaluation, no search.

*Addition*. The likelihood ratio the other way is largest on the suppressed outcome and falls with j, so the
divergence is the maximum over J ≥ k of r_J(n) = P[X_{n−1} < J] − e^ε P[X_n < J], or zero. With γ' = 1 − e^ε(1−β) the
same two steps show that it is zero if γ' ≤ 0, that is ε ≥ −ln(1−β), and otherwise r_k(⌈(k−1)/γ'⌉).

Both are evaluated as sums of positive terms,

    h_k(n) = Σ_{j≥k} f(j; n) · e^ε (j − γn) / (n(1−β)),      r_k(n) = Σ_{j<k} f(j; n) · (γ'n − j) / (n(1−β)),

so no digits cancel. `_persons` and `_cells` have people with several rows. Consequences used below: δ falls with ε
and with k, and rises with β (a smaller β is a larger one preceded by another sampling step, which cannot hurt). It
never falls below β^k, its value at n = k.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from incrowd.core.display import Showable
from incrowd.core.errors import InternalError, ParameterError, UnreachableError
from incrowd.core.numbers import as_given, number
from incrowd.theory import _persons
from incrowd.theory._balls import above, precision, whole_above
from incrowd.theory._binomial import mass, tail, weighted_tail
from incrowd.theory._numbers import (
    require_between,
    require_count,
    require_non_negative,
    round_up,
)
from incrowd.theory.profile import PrivacyProfile, Relation

if TYPE_CHECKING:
    from flint import arb

K_LIMIT = 1_000_000
"""No search looks for a k above this: such a crowd is no longer a table anyone publishes."""

SMALLEST_BETA = 1e-40
"""Below this rate 1 − β is no longer told from 1 with enough bits to spare."""

LARGEST_K = 100_000_000
"""No crowd above this is looked at: beyond, the sums would take too long."""

MOST_ROWS = 1000
"""More rows of one person are not looked at."""

_LARGEST_EPSILON = 1000.0  # δ has long reached β^k; a larger ε is treated as this one, which is safe

_FEW = 40  # bounds that are looked at one by one
_PAPER_FLOOR = 1e-250  # SciPy's incomplete beta function loses its digits further down

DELTA_FLOOR = 1e-300
"""Smaller values of δ are reported as this one: far below anything that matters, safely above underflow."""


@dataclass(frozen=True)
class CrowdProfile(PrivacyProfile):
    """The privacy profile of sampling at rate β followed by a crowd threshold of k.

    Exact if each person is one row. A maximum over tables of convex functions of e^ε, so it has a dominating pair and
    composes numerically. For people with up to `rows` rows it is a bound on such a function, at every ε, which is all
    that composition asks for.
    """

    k: int
    beta: float
    relation: Relation = Relation.ADD_REMOVE
    rows: int = 1

    def __post_init__(self) -> None:
        _check_k_beta(self.k, self.beta)
        object.__setattr__(self, "k", int(self.k))
        object.__setattr__(self, "rows", require_rows(self.rows))
        if self.relation is not Relation.ADD_REMOVE:
            raise ParameterError(
                "A sampled crowd is defined for adding or removing a record.",
                code="parameter-combination",
                remedy="Convert the profile with to_replace_one().",
            )

    def removal(self, epsilon: float) -> float:
        epsilon = min(require_non_negative("epsilon", epsilon), _LARGEST_EPSILON)
        if self.rows > 1:
            return max(DELTA_FLOOR, _persons.removal(self.k, self.beta, epsilon, self.rows))
        return _removal(self.k, self.beta, epsilon)

    def addition(self, epsilon: float) -> float:
        epsilon = min(require_non_negative("epsilon", epsilon), _LARGEST_EPSILON)
        if self.rows > 1:
            return _persons.addition(self.k, self.beta, epsilon, self.rows)
        return _addition(self.k, self.beta, epsilon)


def exact_delta(k: int, beta: float, epsilon: float, rows: int = 1) -> float:
    """The smallest δ for which the mechanism is (ε,δ)-DP, rounded up; with several rows per person the least proved."""
    return CrowdProfile(k, beta, rows=rows).delta(epsilon)


def _delta_at_least(k: int, beta: float, epsilon: float, rows: int) -> float:
    """Quickly a number that δ does not fall below: that of a person with all rows in one cell."""
    if rows == 1:
        return exact_delta(k, beta, epsilon)
    return _persons.in_one_cell(k, beta, min(require_non_negative("epsilon", epsilon), _LARGEST_EPSILON), rows)


def _removal(k: int, beta: float, epsilon: float) -> float:
    from flint import arb

    with precision():
        p, growth = arb(beta), arb(epsilon).exp()
        gamma = 1 - (1 - p) / growth
        # All of a crowd of exactly k is sampled: β^k. The sum has this one term at n = k.
        found = [p**k]
        for n in (n for n in _ceilings((k - 1) / gamma) if n > k):
            scale = growth / (n * (1 - p))
            found.append(scale * weighted_tail(k, n, beta, k - gamma * n, upwards=True))
        return _reported(found)


def _addition(k: int, beta: float, epsilon: float) -> float:
    from flint import arb

    with precision():
        p, growth = arb(beta), arb(epsilon).exp()
        gamma = 1 - growth * (1 - p)
        if gamma <= 0:
            return 0.0
        if not gamma > 0:
            return _reported([gamma])  # r_k(n) ≤ γ' for every n, as P[X_n < k] ≥ (1−β) P[X_{n−1} < k]
        found = []
        for n in (max(1, n) for n in _ceilings((k - 1) / gamma)):
            worth = weighted_tail(k - 1, n, beta, gamma * n - (k - 1), upwards=False)
            found.append(worth / (n * (1 - p)))
        return min(_reported(found), _reported([gamma]))


def _ceilings(ball: arb) -> set[int]:
    """What a number in the ball can be when rounded up to a whole one: one answer, or two."""
    only = ball.ceil().unique_fmpz()
    ends = {int(only)} if only is not None else {whole_above(end) for end in (ball.lower(), ball.upper())}
    if max(ends) - min(ends) > 1:
        raise InternalError("the worst table was not found with the digits there are")
    return ends


def _reported(found: Sequence[arb]) -> float:
    return min(1.0, max(DELTA_FLOOR, *(above(delta) for delta in found)))


# --- the paper's bound ------------------------------------------------------------------------------------------


def paper_applies(beta: float, epsilon: float) -> bool:
    """Whether Theorem 5 covers these parameters: ε ≥ −ln(1−β)."""
    return epsilon >= -math.log1p(-beta)


def paper_delta(k: int, beta: float, epsilon: float) -> float | None:
    """d(k, β, ε) of Theorem 5, or None where the theorem does not apply.

    d = max over n ≥ ⌈k/γ − 1⌉ of P[Bin(n,β) > γn]. Among the n with the same ⌊γn⌋ + 1 = J the largest,
    n_J = ⌈J/γ⌉ − 1, wins, so only J = k, k+1, ... are tried. The search stops when no larger J can win: by Stirling's
    formula and a geometric series

        P[Bin(n_J, β) ≥ J] ≤ exp(−n_J KL(γ‖β)) / (√(2πJ(1−J/n_J)) (1−r)),   r = e^{−ε}β/γ,

    whose right-hand side, with J/n_J replaced by its bound γJ/(J−γ), falls with J; so does Chernoff's bound, which is
    the same without the denominator.
    """
    _check_k_beta(k, beta)
    require_non_negative("epsilon", epsilon)
    if not paper_applies(beta, epsilon):
        return None
    gamma = -math.expm1(math.log1p(-beta) - epsilon)
    # KL(γ‖β) = γ ln(γ/β) + (1−γ) ln((1−γ)/(1−β)), and (1−γ)/(1−β) = e^{−ε}. Rounded down: the search ends later.
    divergence = (gamma * math.log(gamma / beta) - (1 - gamma) * epsilon) * (1 - 1e-9)
    shrink = math.exp(-epsilon) * beta / gamma
    best, first, width = 0.0, k, 1
    while True:
        best = max(best, _largest_tail(first, width, beta, gamma))
        last = first + width - 1
        ceiling = math.exp(-_trials(last, gamma) * divergence)
        share = gamma * last / (last - gamma) if last > gamma else 1.0  # at k = 1 and a large ε, γ rounds to 1
        if share < 1:
            ceiling = min(ceiling, ceiling / (math.sqrt(2 * math.pi * last * (1 - share)) * (1 - shrink)))
        if ceiling <= best or ceiling < _PAPER_FLOOR:
            return min(1.0, max(_PAPER_FLOOR, round_up(best, 1e-10)))
        if first + width > 64 * K_LIMIT:
            raise InternalError("the search for the paper's bound did not end", k=k, beta=beta, epsilon=epsilon)
        first, width = first + width, 1 if first < k + _FEW else max(64, 2 * width)


def _trials(J: int, gamma: float) -> int:
    """n_J. A quotient within rounding of a whole number could have been rounded across it: the larger n only raises
    the bound."""
    quotient = J / gamma
    near = abs(round(quotient) - quotient) < 1e-9 * J
    return max(J, round(quotient) if near else math.ceil(quotient) - 1)


def _largest_tail(first: int, width: int, beta: float, gamma: float) -> float:
    """The largest of the paper's bounds for some J.

    Mostly that is the first or one of the next. A single one is found without SciPy, which takes longer to import than
    all of them to compute.
    """
    if width == 1:
        n = _trials(first, gamma)
        with precision(128):
            start = above(mass(first, n, beta))
        odds, term, total = beta / (1 - beta), 1.0, 0.0
        for j in range(first, n + 1):
            total += term
            term *= (n - j) / (j + 1) * odds
            if term < 1e-18 * total:
                break
        return min(1.0, start * total)
    import numpy as np
    from scipy.special import betainc

    J = np.arange(first, first + width, dtype=np.float64)
    n_J = np.array([_trials(j, gamma) for j in range(first, first + width)], dtype=np.float64)
    return float(np.max(betainc(J, n_J - J + 1, beta)))


# --- solving for one parameter ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaperBound:
    """What Theorem 5 says beside the exact answer: its δ at the same k, and the k it would need for the same δ."""

    delta: float
    k: int | None


@dataclass(frozen=True, repr=False)
class CrowdPlan(Showable):
    """Parameters that go together: at (k, β) the mechanism is (ε, δ)-DP under adding or removing one person.

    Attributes:
        epsilon: the whole ε, including what choosing g costs.
        delta: the δ promised.
        k: the crowd threshold.
        beta: the sampling rate.
        selection_epsilon: ε₁, spent on choosing g on the full table; 0 for a fixed g.
        paper: the same question answered by Theorem 5, or None where it does not apply.
        rows_per_person: how many rows one person has at most.
    """

    epsilon: float
    delta: float
    k: int
    beta: float
    selection_epsilon: float
    paper: PaperBound | None
    rows_per_person: int = 1


def plan(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    k: int | None = None,
    beta: float | None = None,
    selection_epsilon: float = 0.0,
    rows_per_person: int = 1,
) -> CrowdPlan:
    """Three of ε, δ, k, β given: the fourth, rounded to the safe side (ε, δ, k up, β down). Of ε and δ alone: k and β.

    Choosing g privately with ε₁ on the full table composes with the rest (Theorem 6, proved for that case), so
    what is left for the crowd is ε − ε₁.

    Raises:
        UnreachableError: no value of the fourth parameter reaches the promise; says what would be possible.
    """
    given = {"epsilon": epsilon, "delta": delta, "k": k, "beta": beta}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1 and missing != ["k", "beta"]:
        raise ParameterError(
            f"Three of epsilon, delta, k and beta are needed to find the fourth; {4 - len(missing)} were given.",
            code="parameter-combination",
            remedy="Or give epsilon and delta alone: k and beta are then chosen so that the smallest groups show.",
            details={"missing": missing},
        )
    spent, rows = require_non_negative("selection_epsilon", selection_epsilon), require_rows(rows_per_person)
    if epsilon is not None:
        epsilon = require_non_negative("epsilon", epsilon)
        if epsilon < spent:
            raise ParameterError(
                f"Choosing the mapping costs {as_given(spent)}, more than the whole epsilon of {as_given(epsilon)}.",
                code="parameter-combination",
                remedy="Lower selection_epsilon or raise epsilon.",
            )
    if delta is not None:
        delta = require_between("delta", delta, 0.0, 1.0)
    if k is not None:
        k = require_count("k", k)
    if beta is not None:
        beta = require_between("beta", beta, 0.0, 1.0)

    # Sums and differences of ε are rounded away from the promise: the crowd gets a little less than is left.
    left = 0.0 if epsilon is None else max(0.0, left_after(epsilon, spent))
    match (epsilon, delta, k, beta):
        case (None, float(), int(), float()):
            left = smallest_epsilon(delta, k, beta, rows)
            epsilon = left if spent == 0 else math.nextafter(left + spent, math.inf)
        case (float(), None, int(), float()):
            delta = exact_delta(k, beta, left, rows)
        case (float(), float(), None, float()):
            k = smallest_k(left, delta, beta, rows)
        case (float(), float(), int(), None):
            beta = largest_beta(left, delta, k, rows)
        case (float(), float(), None, None):
            k, beta = choose_crowd(left, delta, rows)
    if epsilon is None or delta is None or k is None or beta is None:
        raise InternalError("a plan was left unsolved")
    paper = paper_bound(left, delta, k, beta) if rows == 1 else None
    return CrowdPlan(epsilon, delta, k, beta, spent, paper, rows)


def left_after(total: float, part: float) -> float:
    """What is left of ε when a part of it is spent, rounded down."""
    return total if part == 0 else math.nextafter(total - part, -math.inf)


def paper_bound(epsilon: float, delta: float, k: int, beta: float) -> PaperBound | None:
    """Theorem 5's answer beside ours."""
    at_k = paper_delta(k, beta, epsilon)
    if at_k is None:
        return None
    try:
        needed = smallest_k_with(lambda size: paper_delta(size, beta, epsilon) or 0.0, delta)
    except UnreachableError:
        needed = None
    return PaperBound(at_k, needed)


def smallest_k(epsilon: float, delta: float, beta: float, rows: int = 1) -> int:
    """The smallest k for which (k, β) is (ε,δ)-DP."""
    least = least_k(epsilon, delta, beta, rows)
    if rows == 1 or exact_delta(least, beta, epsilon, rows) <= delta:
        return least
    return smallest_k_with(lambda k: exact_delta(k, beta, epsilon, rows), delta, least, epsilon=epsilon, beta=beta)


def least_k(epsilon: float, delta: float, beta: float, rows: int) -> int:
    """The smallest k for which a person with all rows in one cell is covered; quick, and no other k is smaller."""
    require_between("delta", delta, 0.0, 1.0)
    return smallest_k_with(lambda k: _delta_at_least(k, beta, epsilon, rows), delta, epsilon=epsilon, beta=beta)


def smallest_k_with(delta_of: Callable[[int], float], delta: float, low: int = 0, **context: float) -> int:
    """The smallest k above `low` with δ(k) ≤ δ, for a δ(k) that never rises with k."""
    start, high = low, low + 1
    while (reached := delta_of(high)) > delta:
        if high == K_LIMIT:
            raise UnreachableError(
                f"No k up to {K_LIMIT:,} reaches delta = {as_given(delta)}; at k = {K_LIMIT:,} delta is "
                f"{number(reached, 3)}.",
                code="unreachable",
                remedy="Raise epsilon or delta, or lower beta.",
                details={"delta_at_limit": reached, "k_limit": K_LIMIT, **context},
            )
        low, high = high, min(2 * high - start, K_LIMIT)
    while high - low > 1:
        middle = (low + high) // 2
        if delta_of(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def smallest_epsilon(delta: float, k: int, beta: float, rows: int = 1) -> float:
    """The smallest ε for which (k, β) is (ε,δ)-DP, rounded up.

    From ε = max(ln(k(1−β)), −ln(1−β)) on, δ no longer falls: it has reached β^k, if each person is one row.
    """
    _check_k_beta(k, beta)
    require_between("delta", delta, 0.0, 1.0)
    if rows > 1:
        return CrowdProfile(k, beta, rows=rows).epsilon(delta)
    if exact_delta(k, beta, 0.0) <= delta:
        return 0.0
    low, high = 0.0, max(math.log(k * (1 - beta)), -math.log1p(-beta), 0.0) + 1e-9
    reached = exact_delta(k, beta, high)
    if reached > delta:
        raise UnreachableError(
            f"No epsilon reaches delta = {as_given(delta)}: with k = {k} and beta = {as_given(beta)}, all of a "
            "crowd of exactly k is "
            f"sampled with probability beta^k = {number(reached, 3)}, and then it shows who is in it.",
            code="unreachable",
            remedy="Raise k or delta, or lower beta.",
            details={"smallest_delta": reached},
        )
    return _bisect(low, high, lambda epsilon: exact_delta(k, beta, epsilon) > delta)[1]


def largest_beta(epsilon: float, delta: float, k: int, rows: int = 1) -> float:
    """The largest β for which (k, β) is (ε,δ)-DP, rounded down. Searched on the log-odds of β."""
    require_count("k", k)
    require_between("delta", delta, 0.0, 1.0)
    quick = _largest_beta(lambda beta: _delta_at_least(k, beta, epsilon, rows), epsilon, delta, k)
    if rows == 1 or exact_delta(k, quick, epsilon, rows) <= delta:
        return quick
    return _largest_beta(lambda beta: exact_delta(k, beta, epsilon, rows), epsilon, delta, k)


def _largest_beta(delta_of: Callable[[float], float], epsilon: float, delta: float, k: int) -> float:

    def beta_at(log_odds: float) -> float:
        if log_odds < 0:
            return math.exp(log_odds) / (1 + math.exp(log_odds))
        return 1 / (1 + math.exp(-log_odds))

    low, high = -92.0, 36.0  # from 1.1e-40 to the largest float below 1, nearly
    if delta_of(beta_at(high)) <= delta:
        return beta_at(high)
    low, _ = _bisect(low, high, lambda x: delta_of(beta_at(x)) <= delta)
    beta = beta_at(low)
    if delta_of(beta) > delta:
        raise UnreachableError(
            f"No sampling rate reaches delta = {as_given(delta)} with k = {k} and epsilon = {as_given(epsilon)}.",
            code="unreachable",
            remedy="Raise k, epsilon or delta.",
        )
    return beta


def _bisect(low: float, high: float, left_of_answer: Callable[[float], bool]) -> tuple[float, float]:
    """An interval around the change of a monotone condition, narrowed to about 1e-12 of its place."""
    while high - low > 1e-12 * max(abs(low), abs(high), 1e-3):
        middle = (low + high) / 2
        if left_of_answer(middle):
            low = middle
        else:
            high = middle
    return low, high


# --- the trade-off ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrontierPoint:
    """A sampling rate with the smallest crowd that it needs; None where no crowd up to the limit is enough."""

    beta: float
    k: int | None
    paper_k: int | None


DEFAULT_BETAS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def frontier(
    epsilon: float, delta: float, betas: Iterable[float] = DEFAULT_BETAS, rows_per_person: int = 1
) -> list[FrontierPoint]:
    """For each sampling rate the smallest k at (ε,δ), exact and, where each person is one row, by Theorem 5."""
    require_non_negative("epsilon", epsilon)
    require_between("delta", delta, 0.0, 1.0)
    points = []
    for beta in betas:
        try:
            k: int | None = smallest_k(epsilon, delta, beta, rows_per_person)
        except UnreachableError:
            k = None
        bound = None if k is None or rows_per_person > 1 else paper_bound(epsilon, delta, k, beta)
        points.append(FrontierPoint(beta, k, bound.k if bound else None))
    return points


RATES = tuple(i / 100 for i in range(1, 100))
"""The rates among which one is chosen if nobody names any."""

RATE_SLACK = 1.15


def choose_rate(k_at: Callable[[float], int], rates: Sequence[float] = RATES) -> tuple[int, float]:
    """The k and β to take where both are open: the largest rate whose k/β is within 15% of the least.

    About k/β people make a crowd that is published as often as not. The least k/β therefore shows the smallest groups;
    near it the minimum is flat, and a larger rate samples more of everyone. Nothing of this looks at data.

    Args:
        k_at: the smallest k that keeps the promise at a rate; never falls as the rate rises.
        rates: rising.
    """
    found: list[tuple[float, int, float]] = []
    for beta in rates:
        try:
            k = k_at(beta)
        except UnreachableError:
            break
        found.append((k / beta, k, beta))
        if k / rates[-1] > RATE_SLACK * min(found)[0]:
            break  # k never falls: no larger rate comes close
    if not found:
        raise UnreachableError(
            f"No sampling rate from {as_given(rates[0])} on keeps the promise with any k up to {K_LIMIT:,}.",
            code="unreachable",
            remedy="Raise epsilon or delta.",
        )
    least = min(found)[0]
    return max(((k, beta) for size, k, beta in found if size <= RATE_SLACK * least), key=lambda pair: pair[1])


def choose_crowd(epsilon: float, delta: float, rows: int = 1) -> tuple[int, float]:
    """The k and β of a sampled crowd where both are open."""
    k, beta = choose_rate(lambda rate: least_k(epsilon, delta, rate, rows))
    return (k, beta) if rows == 1 else (smallest_k(epsilon, delta, beta, rows), beta)


def survival(size: int, k: int, beta: float) -> float:
    """The expected share of a cell of `size` records that is published: β P[Bin(size−1, β) ≥ k−1]."""
    _check_k_beta(k, beta)
    require_count("size", size)
    return 0.0 if size < k else beta * tail(k - 1, size - 1, beta)


def require_rows(rows: int) -> int:
    """So many rows as one person may have."""
    if require_count("rows_per_person", rows) > MOST_ROWS:
        raise ParameterError(
            f"One person may have {MOST_ROWS:,} rows at most; it is {rows:,}.",
            code="parameter-range",
            remedy="Let fewer rows of each person count.",
            details={"parameter": "rows_per_person"},
        )
    return int(rows)


def _check_k_beta(k: int, beta: float) -> None:
    if require_count("k", k) > LARGEST_K:
        raise ParameterError(f"k must be {LARGEST_K:,} at most.", code="parameter-range", details={"parameter": "k"})
    require_between("beta", beta, SMALLEST_BETA, 1.0, open_low=False)
