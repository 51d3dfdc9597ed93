"""The numbers of a promise once more, each as a ball that encloses the true value of its formula.

Nothing here is shared with the code that makes the promises but the formulas, and where a bound has free parameters,
which ones to take. Crowds come from incomplete beta functions instead of sums; randomisation from exact fractions and
logarithms; shuffling from Poisson's formula term by term, where `_excess` bounds rounding errors by hand. Tests compare
the two on random parameters, and `incrowd verify --rigorous` does so for one certificate. It takes a second, not a
millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeAlias

import numpy as np

from incrowd.core.errors import InternalError
from incrowd.theory import _excess
from incrowd.theory._balls import above, below, precision, whole_above
from incrowd.theory._blanket import worst_of
from incrowd.theory.randomisation import Attribute, RetentionReplacement, TransitionMatrix
from incrowd.theory.shuffling import BLANKET, CLONES, LOCAL

if TYPE_CHECKING:
    from flint import arb

MOST_LIKELIHOODS = 20_000
"""Attributes whose likelihoods have more combinations are not looked at."""

_WANTED = 64  # bits of relative accuracy
_MOST_BITS = 1 << 14
_SERIES = 192  # bits while a series is summed
_REFRESH = 16  # every so many terms turned numbers are computed afresh: each turn may double their error

Arguments = ParamSpec("Arguments")


def sharp(formula: Callable[Arguments, arb]) -> Callable[Arguments, arb]:
    """The formula evaluated with more and more bits until its ball is small, or is zero."""

    @wraps(formula)
    def evaluate(*args: Arguments.args, **kwargs: Arguments.kwargs) -> arb:
        bits = 128
        while bits <= _MOST_BITS:
            with precision(bits):
                found = formula(*args, **kwargs)
                if found.is_exact() or found.rel_accuracy_bits() >= _WANTED:
                    return found
            bits *= 2
        raise InternalError("a number could not be enclosed")

    return evaluate


# --- sampled crowds -------------------------------------------------------------------------------------------------


@sharp
def crowd_removal(k: int, beta: float, epsilon: float) -> arb:
    """h_k(n) = T_k(n) − e^ε T_k(n−1) at n = ⌈(k−1)/γ⌉, as β f(k−1; n−1) − (e^ε−1) T_k(n−1).

    Where the ball of (k−1)/γ leaves two n possible, here and below, either will do: δ is not below what any n gives.
    """
    from flint import arb

    p, growth = arb(beta), arb(epsilon).exp()
    n = max(k, whole_above((k - 1) / (1 - (1 - p) / growth)))
    return p * _mass(k - 1, n - 1, p) - (growth - 1) * binomial_tail(n - 1, k, p)


@sharp
def crowd_addition(k: int, beta: float, epsilon: float) -> arb:
    """r_k(n) = P[X_{n−1} < k] − e^ε P[X_n < k] at n = ⌈(k−1)/γ'⌉; 0 if γ' ≤ 0."""
    from flint import arb

    p, growth = arb(beta), arb(epsilon).exp()
    gamma = 1 - growth * (1 - p)
    if gamma <= 0:
        return arb(0)
    n = max(1, whole_above((k - 1) / gamma))
    # P[X_n < k] = P[n − X_n > n − k], a tail of the failures, as P[X_n < k] = P[X_{n−1} < k] − β f(k−1; n−1).
    before = binomial_tail(n - 1, n - k, 1 - p) if n > k else arb(1)
    return growth * p * _mass(k - 1, n - 1, p) - (growth - 1) * before


@sharp
def crowd_group(k: int, beta: float, epsilon: float, rows: int) -> arb:
    """The larger of T_k(n+a) − e^ε T_k(n) and P[X_n < k] − e^ε P[X_{n+a} < k], each at its best n.

    The best n is in a window of a + 1 numbers below ⌈(k−1)/γ⌉; γ = 1 − (1−β)e^{−ε/a}, and with e^{ε/a} for additions.
    """
    from flint import arb

    p, growth = arb(beta), arb(epsilon).exp()
    found = arb(0)
    for sign in (1, -1):
        gamma = 1 - (1 - p) * (-sign * arb(epsilon) / rows).exp()
        if not gamma > 0:
            continue
        last = max(k - 1, whole_above((k - 1) / gamma))
        for n in range(max(k - 1, last - rows - 1), last + 1):
            with_her, without = binomial_tail(n + rows, k, p), binomial_tail(n, k, p)
            delta = with_her - growth * without if sign > 0 else 1 - without - growth * (1 - with_her)
            found = found.max(delta)
    return found


def binomial_tail(n: int, least: int, p: arb) -> arb:
    """P[Bin(n, p) ≥ least], the regularised incomplete beta function."""
    from flint import arb

    if least <= 0:
        return arb(1)
    return p.beta_lower(least, n - least + 1, regularized=True) if least <= n else arb(0)


def _mass(successes: int, trials: int, p: arb) -> arb:
    from flint import arb

    if successes > trials:
        return arb(0)
    if trials < 1 << 63:
        return arb.bin_uiui(trials, successes) * p**successes * (1 - p) ** (trials - successes)
    choose = arb(trials + 1).lgamma() - arb(successes + 1).lgamma() - arb(trials - successes + 1).lgamma()
    return (choose + successes * p.log() + (trials - successes) * (-p).log1p()).exp()


# --- randomised records ---------------------------------------------------------------------------------------------


@sharp
def local_epsilon(attributes: Sequence[Attribute]) -> arb:
    """Σ_a ln max A_a[u,w]/A_a[v,w]."""
    from flint import arb

    total = arb(0)
    for attribute in attributes:
        total += _ball(max(highest / lowest for lowest, highest in _columns(attribute))).log()
    return total


def pk(attributes: Sequence[Attribute], records: int) -> Fraction:
    """1 + (R−1)·Π AR_a, exactly."""
    return 1 + (records - 1) * math.prod((_ratio(a) for a in attributes), start=Fraction(1))


def _columns(attribute: Attribute) -> list[tuple[Fraction, Fraction]]:
    """The least and the largest probability of each value that can come out."""
    if isinstance(attribute, RetentionReplacement):
        kept, other = _kept(attribute)
        return [(other, kept)]
    return [(min(column), max(column)) for column in zip(*attribute.rows, strict=True) if any(column)]


def _kept(attribute: RetentionReplacement) -> tuple[Fraction, Fraction]:
    rho = Fraction(attribute.retention)
    other = (1 - rho) / attribute.size
    return rho + other, other


def _ratio(attribute: Attribute) -> Fraction:
    """AR = min A[u,w]A[v,x] / (A[u,x]A[v,w])."""
    if isinstance(attribute, RetentionReplacement):
        kept, other = _kept(attribute)
        return (other / kept) ** 2
    return _matrix_ratio(attribute)


def _matrix_ratio(matrix: TransitionMatrix) -> Fraction:
    columns = [column for column in zip(*matrix.rows, strict=True) if any(column)]
    if any(min(column) == 0 for column in columns):
        return Fraction(0)
    rows = list(zip(*columns, strict=True))
    least = Fraction(1)
    for u in rows:
        for v in rows:
            quotients = [a / b for a, b in zip(u, v, strict=True)]
            least = min(least, min(quotients) / max(quotients))
    return least


def _ball(exact: Fraction) -> arb:
    from flint import arb

    return arb(exact.numerator) / exact.denominator


# --- shuffled tables ------------------------------------------------------------------------------------------------


def central_delta(
    attributes: Sequence[Attribute], records: int, epsilon: float, bound: str, rate: float = 1.0
) -> float | None:
    """A δ that goes with ε by the proof named, rounded up; None if there are too many likelihoods to look at.

    It is the bound that `shuffling` computes: (*) there, by Poisson's formula, with the same tilt, noise, period and
    cap, for each of which any number would be safe.
    """
    from flint import arb

    with precision(_SERIES):
        local = local_epsilon(attributes)
        if local <= epsilon:
            return 0.0
        if bound == LOCAL:
            return above(-rate * (epsilon - local).expm1() / (1 + (-local).exp()))
        if bound == CLONES:
            shares = [(arb(1) / 2, 2 / (1 + (-sign * local).exp()), 2 / (1 + (sign * local).exp())) for sign in (1, -1)]
            pairs: Iterable[_Pair | None] = [(below((-local).exp()), shares)]
        elif bound == BLANKET:
            pairs = _pairs(attributes)
        else:
            return 1.0
        growth, largest = arb(epsilon).exp(), 0.0
        for pair in pairs:
            if pair is None:
                return None
            mass, shares = pair if rate == 1 else _sampled(*pair, rate)
            largest = max(largest, above(_mean_excess(records, mass, [(p, x - growth * y) for p, x, y in shares])))
        return min(1.0, largest)


def _sampled(mass: float, shares: list[tuple[arb, arb, arb]], rate: float) -> _Pair:
    """The same of records that are in the table with this probability."""
    from flint import arb

    part = rate * arb(mass)
    whole = 1 - arb(rate) + part
    found = [(part * p / whole, x * whole / mass, y * whole / mass) for p, x, y in shares]
    return below(whole), [*found, ((1 - arb(rate)) / whole, whole, whole)]


_Pair: TypeAlias = "tuple[float, list[tuple[arb, arb, arb]]]"


def _pairs(attributes: Sequence[Attribute]) -> Iterator[_Pair | None]:
    """The weight of the blanket, and for a w drawn from it the probability, R_x(w)/ω(w) and R_x'(w)/ω(w).

    One of the pairs is the worst or worse than that. None if there are too many likelihoods to look at.
    """
    retained = [a for a in attributes if isinstance(a, RetentionReplacement) and a.retention]
    matrices = [a for a in attributes if isinstance(a, TransitionMatrix) and a.epsilon]
    kept = _likelihoods(retained)
    left = math.prod((1 - Fraction(a.retention) for a in retained), start=Fraction(1))
    for laws in worst_of(matrices):
        if kept is None or math.prod((len(law.shares) for law in laws), start=len(kept)) > MOST_LIKELIHOODS:
            yield None
            return
        shares = kept
        for law in laws:
            each = [(_ball(p), _ball(a), _ball(b)) for p, a, b in law.shares]
            shares = [(p * q, x * a, y * b) for p, x, y in shares for q, a, b in each]
        yield below(_ball(math.prod((law.mass for law in laws), start=left))), shares


def _likelihoods(attributes: Iterable[RetentionReplacement]) -> list[tuple[arb, arb, arb]] | None:
    """For a w drawn uniformly: the probability, R_x(w)/ω(w) and R_x'(w)/ω(w), x and x' differing everywhere."""
    from flint import arb

    shares = [(arb(1), arb(1), arb(1))]
    kinds: dict[RetentionReplacement, int] = {}
    for attribute in attributes:
        kinds[attribute] = kinds.get(attribute, 0) + 1
    for attribute, times in kinds.items():
        rho, size = Fraction(attribute.retention), attribute.size
        low, high = _ball(1 - rho), _ball(1 + (size - 1) * rho)
        ways = [(i, j) for i in range(times + 1) for j in range(times + 1 - i) if size > 2 or i + j == times]
        if len(shares) * len(ways) > MOST_LIKELIHOODS:
            return None
        each = [
            (
                _ball(
                    Fraction(math.comb(times, i) * math.comb(times - i, j) * (size - 2) ** (times - i - j), size**times)
                ),
                high**i * low ** (times - i),
                high**j * low ** (times - j),
            )
            for i, j in ways
        ]
        shares = [(p * q, x * a, y * b) for p, x, y in shares for q, a, b in each]
    return shares


def _mean_excess(n: int, mass: float, law: list[tuple[arb, arb]]) -> arb:
    """An upper bound on E[(L₁ + … + L_M)₊] / (n·mass), M ~ Bin(n, mass), for L with these probabilities and values."""
    if all(value.upper() <= 0 for _, value in law):
        return 0 * law[0][0]
    probabilities = np.array([float(p) for p, _ in law])
    values = np.array([float(value) for _, value in law])
    unit = 2.0 ** math.frexp(float(np.abs(values).max()))[1]
    chances, merged = _excess.merge(probabilities, values / unit)
    if len(merged) < len(law):
        law = _spread(law, [float(v) * unit for v in merged])
    capped, _ = _excess.cap(n, mass, chances, merged, unit)
    plain = sum((p * _positive(value) for p, value in law), start=0 * law[0][0])
    if capped.max() <= 0:  # positive by less than a float shows
        return plain
    tilt, log_height, _ = _excess.tilt_of(n, mass, chances, capped)
    _, noise, period = _excess.smoothing(n, mass, chances, capped, tilt, log_height)
    cap = float(capped.max()) * unit * (1 + 2.0**-40)  # above the largest value, unless that was capped
    smoothed = _poisson(n, mass, law, cap, tilt / unit, noise * unit, period * unit)
    return plain if plain < smoothed else smoothed


def _positive(ball: arb) -> arb:
    """The positive part; only its upper end is meant."""
    return ball.upper() if ball.upper() > 0 else 0 * ball


def _spread(law: list[tuple[arb, arb]], grid: list[float]) -> list[tuple[arb, arb]]:
    """Each value as a mixture of two neighbouring grid points with its mean, which is larger in the convex order."""
    from flint import arb

    masses = [arb(0) for _ in grid]
    for p, value in law:
        upper = min(max(1, int(np.searchsorted(grid, float(value)))), len(grid) - 1)
        low, high = arb(grid[upper - 1]), arb(grid[upper])
        share = (value - low) / (high - low)
        if share.lower() < 0:  # at or below the grid: moved up to its first point
            share = share.upper() if share.upper() > 0 else arb(0)
        if share.upper() > 1:
            raise InternalError("a value lies above its grid")
        masses[upper - 1] += p * (1 - share)
        masses[upper] += p * share
    return [(mass, arb(point)) for mass, point in zip(masses, grid, strict=True)]


def _poisson(
    n: int, mass: float, law: list[tuple[arb, arb]], cap: float, tilt: float, noise: float, period: float
) -> arb:
    """(1/P) Σ_k e^{b²z_k²/2} φ(z_k)^n / z_k² over n·mass, with values capped and what that loses added."""
    from flint import acb, arb

    lost = sum((p * _positive(value - cap) for p, value in law), start=arb(0))
    values = [value if value < cap else arb(cap) for _, value in law]
    step = 2 * arb.pi() / period
    count = math.ceil(_excess.CUT * period / (noise * 2 * math.pi))
    b_squared = arb(noise) ** 2
    heights = [mass * p * (tilt * value).exp() for (p, _), value in zip(law, values, strict=True)]
    turns = [acb(0, step * value).exp() for value in values]
    rest = 1 - mass * sum((p for p, _ in law), start=arb(0))
    total, grown = arb(0), [acb(height) for height in heights]
    for k in range(count + 1):
        if k % _REFRESH:
            grown = [weight * turn for weight, turn in zip(grown, turns, strict=True)]
        else:
            grown = [height * acb(0, k * step * value).exp() for height, value in zip(heights, values, strict=True)]
        z = acb(tilt, k * step)
        # φ(z)^n e^{b²z²/2} / z², and its conjugate at −k.
        term = (rest + sum(grown, start=acb(0))) ** n * (b_squared * z * z / 2).exp() / (z * z)
        total += 2 * term.real if k else term.real
    last = step * count
    height = (rest + sum(heights, start=arb(0))) ** n
    beyond = height * (b_squared * (arb(tilt) ** 2 - last**2) / 2).exp() / (arb.pi() * last)
    idle = (1 - arb(mass)) ** n * noise / (2 * arb.pi()).sqrt()  # all that was counted where M = 0
    return (total / period + beyond - idle) / (n * arb(mass)) + lost
