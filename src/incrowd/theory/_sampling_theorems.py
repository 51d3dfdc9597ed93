"""Chaudhuri and Mishra's own results: classes of values, good samples, and the rates of Theorems 3 and 7.

Notation: k distinct values, α = δ/2, L = ln(k/α), t rare values, and F = 1 + εc/(2L) for c > 1, F = 1 for c = 1.
A rate p goes with an *inner* ε, which defines "rare", and promises another number, ε′ = 2cx with
x = F·max(p + ε, 3p).

**What holds.** If p ≤ ε, a value with n ≥ 2L/ε rows has more than n·max(p + ε, 3p) of them in the sample with
probability at most (α/k)^1.29. *Proof.* By Chernoff P[Bin(n,p) > (1+d)np] ≤ exp(−np·h(d)) with
h(d) = (1+d)ln(1+d) − d, and h(2) > 1.29. For p ≤ ε/2 take d = ε/p ≥ 2: np·h(d) = nε·h(d)/d ≥ L·h(2), as h(d)/d
increases. For p > ε/2 take d = 2: np·h(2) ≥ L·h(2). ∎ The rare values are all absent with probability ≥ 1−α.
So with probability ≥ 1−δ every s_v is at most x·(n_v − c), or x·n_v for c = 1, and each of the c factors of a
likelihood ratio is at most 1/(1−x).

**What does not.** (a) Lemma 2 bounds P[s_v > n_v p + 2L] by α/k for all infrequent values. Chernoff's bound gives that
for n_v p up to about 4L/3, not up to 12L, and good samples can be improbable. Theorem 3 stands all the same:
1/(1−x) ≤ 1 + 2x for x ≤ ½, and beyond, where 1/6 < p < 1/4, the exponent of P[s_v > n_v·ε′/(1+ε′)] is still
above 1.29·L. (b) The proof of Theorem 7 ends with (1−x)^(−c) ≤ 1 + 2cx, which is false unless cx is small,
and so is the theorem: for ten values of 10⁶ rows, p = ε = 0.2, c = 20 and δ = 1e-6 it promises a ratio of 27.9,
but an average sample has 1.25^20 = 86.7. For c > 1 the promise made here is the larger of 2cx and
(1−x)^(−c) − 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incrowd.core.errors import UnreachableError
from incrowd.core.numbers import as_given
from incrowd.theory._numbers import (
    require_between,
    require_count,
    require_positive,
    round_down,
    round_up,
)
from incrowd.theory._sampling_events import EventCells, Ints, paired, require_changed_rows

_ROUNDING = 1e-13
_HALF = math.nextafter(0.5, 0.0)


@dataclass(frozen=True)
class ValueClasses:
    """How many distinct values are rare, infrequent and common (Definition 4)."""

    rare: int
    infrequent: int
    common: int


@dataclass(frozen=True)
class TheoremRate:
    """What Theorem 3 (c = 1) or Theorem 7 (c > 1) has to offer.

    Attributes:
        theorem: 3 or 7.
        rate: the largest p it allows.
        epsilon: the ε′ that is proved for this rate.
        epsilon_printed: ε′ as the theorem prints it; below `epsilon` where Theorem 7 claims too much.
        inner_epsilon: the ε of the theorem, which defines "rare".
        rare: t.
        classes: all three classes at this rate.
    """

    theorem: int
    rate: float
    epsilon: float
    epsilon_printed: float
    inner_epsilon: float
    rare: int
    classes: ValueClasses


@dataclass(frozen=True)
class GoodSample:
    """Whether a sample is good (Definition 5), and if not, which cells are to blame.

    Attributes:
        good: no cell is.
        rare: rare values that occur in the sample.
        infrequent: infrequent values with more than n_v p + 2L rows in it.
        common: common values with more than n_v p + √(3 n_v p L).
        epsilon: the ε′ that a good sample has (Lemmas 1 and 3); None if the lemmas do not apply.
    """

    good: bool
    rare: int
    infrequent: int
    common: int
    epsilon: float | None


@dataclass(frozen=True)
class _Setting:
    """k, δ and c, and what follows from them."""

    distinct: int
    delta: float
    c: int

    @property
    def log_term(self) -> float:
        """L = ln(k/α)."""
        return math.log(2.0 * self.distinct / self.delta)

    def factor(self, epsilon: float) -> float:
        """F."""
        return 1.0 if self.c == 1 else 1.0 + epsilon * self.c / (2.0 * self.log_term)

    def rare(self, n: Ints, epsilon: float) -> NDArray[np.bool_]:
        """At most 2L/ε rows (and c more for c > 1); borderline cases count as rare, which is safe."""
        answer: NDArray[np.bool_] = n <= self._rare_limit(epsilon)
        return answer

    def rare_values(self, table: EventCells, epsilon: float) -> int:
        """t."""
        upto = np.searchsorted(table.rows, self._rare_limit(epsilon), side="right")
        return int(table.cells[:upto].sum())

    def _rare_limit(self, epsilon: float) -> float:
        return round_up(2.0 * self.log_term / epsilon, _ROUNDING) + (self.c if self.c > 1 else 0)

    def common(self, n: Ints, rate: float) -> NDArray[np.bool_]:
        """At least 12L/p rows; for c > 1 of the rows that no change can take away."""
        limit = 12.0 * self.log_term / rate
        answer: NDArray[np.bool_] = n >= limit if self.c == 1 else n - self.c > limit
        return answer

    def rate_limit(self, rare: int, epsilon: float) -> float:
        """The bound on p in the theorem."""
        if rare == 0:
            return epsilon
        alpha = 0.5 * self.delta
        return -epsilon * math.log1p(-alpha) / (4.0 * rare * self.log_term * self.factor(epsilon))

    def printed(self, rate: float, epsilon: float) -> float:
        """ε′ = 2cx."""
        return 2.0 * self.c * self.factor(epsilon) * max(rate + epsilon, 3.0 * rate)

    def proved(self, rate: float, epsilon: float) -> float:
        """ε′ where the theorem is right, else what its proof does give."""
        printed = self.printed(rate, epsilon)
        if self.c == 1:
            return printed
        x = printed / (2.0 * self.c)
        return max(printed, math.expm1(-self.c * math.log1p(-x))) if x < 1.0 else math.inf

    def largest_share(self, target: float) -> float:
        """The largest x whose promise is at most the target."""
        printed = target / (2.0 * self.c)
        return printed if self.c == 1 else min(printed, -math.expm1(-math.log1p(target) / self.c))


def classify(counts: ArrayLike, rate: float, epsilon: float, delta: float, changed_rows: int = 1) -> ValueClasses:
    """Rare, infrequent and common values for a rate and an inner ε (Definition 4; §5 for c > 1).

    A value that would be both, at rates far above ε, counts as rare.
    """
    table = EventCells.of(counts)
    setting = _setting(table, delta, changed_rows)
    return _classes(table, setting, _rate(rate), require_positive("epsilon", epsilon))


def theorem_promise(counts: ArrayLike, epsilon: float, delta: float, changed_rows: int = 1) -> TheoremRate:
    """Theorem 3 or 7 as it stands: from the inner ε to the largest rate p and the promise ε′.

    Raises:
        UnreachableError: the theorem does not apply, since F·(p + ε) < ½ for no p.
    """
    table = EventCells.of(counts)
    setting = _setting(table, delta, changed_rows)
    inner = require_positive("epsilon", epsilon)
    room = _HALF / setting.factor(inner) - inner
    if room <= 0.0:
        raise UnreachableError(
            f"Theorem {3 if setting.c == 1 else 7} needs p + ε below ½ (for c > 1, a little less); ε = "
            f"{as_given(inner)} "
            "leaves no rate.",
            code="unreachable",
            remedy="Ask for a smaller ε, or use the exact rate, which has no such condition.",
        )
    rate = min(setting.rate_limit(setting.rare_values(table, inner), inner), room)
    return _result(table, setting, rate, inner)


def theorem_rate(counts: ArrayLike, epsilon: float, delta: float, changed_rows: int = 1) -> TheoremRate:
    """The largest rate for which Theorem 3 or 7 proves a promise of at most ε, with probability 1−δ.

    Here ε is what is to be promised (the theorem's ε′), so that the rate compares with `largest_rate`; the
    theorem's own ε is chosen to give the largest rate. As it grows, fewer values are rare and the theorem
    allows a higher rate, but ε′ leaves less room for it: the best choice is where the two limits cross.
    """
    table = EventCells.of(counts)
    setting = _setting(table, delta, changed_rows)
    # A little less than asked, so that ε′ computed from the rate does not end up a rounding error above it.
    share = setting.largest_share(round_down(require_positive("epsilon", epsilon), _ROUNDING))

    def limits(inner: float) -> tuple[float, float]:
        factor = setting.factor(inner)
        promised = min(share / (3.0 * factor), min(share, _HALF) / factor - inner)
        return setting.rate_limit(setting.rare_values(table, inner), inner), promised

    low, high = 0.0, share
    while low < (middle := 0.5 * (low + high)) < high:
        allowed, promised = limits(middle)
        low, high = (middle, high) if allowed < promised else (low, middle)
    rate, inner = max((min(limits(inner)), inner) for inner in (low, high) if inner > 0.0)
    return _result(table, setting, rate, inner)


def good_sample(
    counts: ArrayLike,
    sample_counts: ArrayLike,
    rate: float,
    epsilon: float,
    delta: float,
    changed_rows: int = 1,
) -> GoodSample:
    """Whether a sample is good (Definition 5), for its rate and the inner ε.

    A good sample has ε′; a sample that is not good may still be private, which `sample_ratio` decides.
    """
    n, s = paired(counts, sample_counts)
    setting = _setting(EventCells.of(n), delta, changed_rows)
    p, inner = _rate(rate), require_positive("epsilon", epsilon)
    rare = setting.rare(n, inner)
    common = ~rare & setting.common(n, p)
    infrequent = ~rare & ~common
    spread = np.sqrt(3.0 * n * p * setting.log_term)
    bad = (
        int(np.count_nonzero(rare & (s > 0))),
        int(np.count_nonzero(infrequent & (s > n * p + 2.0 * setting.log_term))),
        int(np.count_nonzero(common & (s > n * p + spread))),
    )
    applies = setting.factor(inner) * (p + inner) < 0.5
    promise = round_up(setting.proved(p, inner), _ROUNDING) if applies else None
    return GoodSample(not any(bad), *bad, epsilon=promise)


def observation_6_table(inverse_epsilon: int, rare: int, rest: int) -> Ints:
    """The table of Observation 6, which shows that Theorem 3 is tight up to a logarithm.

    `rare` values of 1/ε rows each, one value with `rest` rows, and one row with a value of its own. At any rate above
    ε·ln(1/(1−α))/rare it violates (1, ε/2, α)-privacy. (The paper prints "<" for this "above"; its proof has it right.)
    """
    rows = [require_count("inverse_epsilon", inverse_epsilon, least=2)] * require_count("rare", rare)
    return np.array([*rows, require_count("rest", rest), 1], dtype=np.int64)


def _setting(table: EventCells, delta: float, changed_rows: int) -> _Setting:
    return _Setting(
        table.distinct,
        require_between("delta", delta, 0.0, 1.0),
        require_changed_rows(changed_rows, table.total),
    )


def _rate(rate: float) -> float:
    return require_between("rate", rate, 0.0, 1.0, open_high=False)


def _classes(table: EventCells, setting: _Setting, rate: float, epsilon: float) -> ValueClasses:
    rare = setting.rare(table.rows, epsilon)
    common = ~rare & setting.common(table.rows, rate)
    sizes = (int(table.cells[chosen].sum()) for chosen in (rare, ~rare & ~common, common))
    return ValueClasses(*sizes)


def _result(table: EventCells, setting: _Setting, rate: float, inner: float) -> TheoremRate:
    p = round_down(rate, _ROUNDING)
    classes = _classes(table, setting, p, inner)
    return TheoremRate(
        theorem=3 if setting.c == 1 else 7,
        rate=p,
        epsilon=round_up(setting.proved(p, inner)),
        epsilon_printed=round_up(setting.printed(p, inner)),
        inner_epsilon=inner,
        rare=classes.rare,
        classes=classes,
    )
