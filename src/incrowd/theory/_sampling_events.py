"""Which samples of a table give too much away, as an event whose probability can be computed.

A *cell* is a distinct tuple v, held by n_v rows. A sample keeps each row with probability p, so it is a
histogram of independent s_v ~ Bin(n_v, p), and for any table T′ with as many rows as T
Pr[S|T′] = p^|S| (1−p)^(n−|S|) Π_v C(n′_v, s_v). Chaudhuri and Mishra compare two tables in which the same c
rows of T were overwritten, in two arbitrary ways; either may use values that T does not have.

**Worst ratio of one sample.** If 1 ≤ s_v and n_v − s_v < c for some v, the ratio is unbounded. Otherwise its
logarithm is at most

    max over cells u and 1 ≤ j ≤ c of  A_u(j) + B(c−j),   where
    φ_v(m) = ln(m/(m − s_v)),   A_u(j) = Σ_{i=1..j} φ_u(n_u − c + i),
    B(i) = the sum of the i largest of all φ_w(n_w + l), w any cell, l = 1, 2, …

and this is attained as soon as rows can take some value that is not in the sample.

*Proof.* Overwriting takes r_v rows from each v (Σ r = c) and gives back a_v in one table, b_v in the other.
C(m, s) grows with m, so the denominator is least when all b go to a value outside the sample, where they change
nothing. In the first case take r_v = n_v − s_v + 1 rows of v and give them back: only the denominator is 0. In
the second, the logarithm is Σ_v Σ_{i=1..a_v} φ_v(n_v − r_v + i), and every φ is finite, decreasing and convex.
For fixed a the sum is convex in r, so it is largest when all c rows come from one cell u. The best a then takes the
c largest of u's terms φ_u(n_u − c + i) and the others' terms φ_w(n_w + l): j of the former, c−j of the latter.
Letting B use u's own φ_u(n_u + l) too adds nothing, as each is below the next unused term of A_u; nor does j = 0. ∎

For c = 1 this is 1/(1 − s_v/n_v). For c > 1 the case j = c, all changes within one cell, is *not* always the
worst. EventCells of 3 and 10 rows, 1 and 4 sampled, c = 2: it gives 3, but taking two rows of the small cell and
giving one to each cell gives 2·(11/7) = 22/7. (It would be the worst if one of the two tables had to be T.)

**The event.** With θ = ln(1+ε), a sample is safe iff A_u(j) + B(c−j) ≤ θ for all u and j. The case j = c is a
threshold on each s_v. The others couple the cells: call a state s of cell u *fragile* if it is within its
threshold but safe only while B stays low enough. Since B(i) ≤ i·Y with Y = max_w φ_w(n_w + 1), it is safe as
long as Y ≤ z(u,s) = min_j (θ − A_u(j))/(c−j); those j may be left out for which even the largest B within the
thresholds is harmless. As B(1) = Y, nothing is lost if the minimum is always at j = c−1, so never for c = 2.
Order the fragile states by z. A sample within the thresholds is unsafe iff Y exceeds the least z among the
fragile states it has, so

    P[unsafe] = P[some s_v above its threshold] + Σ_r (P[C_{r−1}∖C_r] − P[(C_{r−1}∖C_r) ∩ {Y ≤ z_r}]),

C_r being the samples within the thresholds that have none of the first r fragile states. All these sets are
boxes in (s_v), or differences of boxes, hence products over cells. Every φ grows with s, so unsafe samples
remain unsafe when rows are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incrowd.core.errors import ParameterError
from incrowd.core.numbers import number
from incrowd.theory._numbers import require_count, round_down, round_up

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_ROWS = 10**12  # per cell; the binomial tails below were measured up to here
MOST_CHANGED = 200  # rows at once; the time grows with their square
LEAST_TAIL = 1e-280  # scipy's tails lose digits below
LEAST_DELTA = 1e-260  # next to which the tails of all cells that are too small to be told do not count
MIXTURE_WORK = 1_000_000  # binomial tails spent on fragile states per evaluation; beyond it they are pooled


@dataclass(frozen=True, eq=False)
class EventCells:
    """A histogram as its distinct counts, ascending, and how many cells have each."""

    rows: Ints
    cells: Ints

    @classmethod
    def of(cls, counts: ArrayLike) -> EventCells:
        """Group the counts; any order, each a whole number of 1 or more."""
        array = as_counts("counts", counts, least=1)
        if array.size == 0:
            raise ParameterError("The table has no rows, so there is nothing to sample.", code="parameter-range")
        if array.max() <= max(2 * array.size, 65_536):
            tally = np.bincount(array)
            rows = np.flatnonzero(tally)
            return cls(rows.astype(np.int64), tally[rows].astype(np.int64))
        rows, tally = np.unique(array, return_counts=True)
        return cls(rows, tally.astype(np.int64))

    @property
    def distinct(self) -> int:
        """How many distinct tuples the table has."""
        return int(self.cells.sum())

    @property
    def total(self) -> int:
        """How many rows the table has; in two halves, as the sum may not fit 64 bits."""
        high, low = np.dot(self.rows >> 20, self.cells), np.dot(self.rows & 0xFFFFF, self.cells)
        return (int(high) << 20) + int(low)


def as_counts(name: str, values: ArrayLike, least: int) -> Ints:
    """A one-dimensional array of whole numbers, or a clear error that shows none of them."""
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ParameterError(
            f"{name} must be a one-dimensional list of whole numbers, one per distinct tuple.",
            code="parameter-type",
            details={"parameter": name},
        )
    bad = int(np.count_nonzero((array < least) | (array > MOST_ROWS)))
    if bad:
        raise ParameterError(
            f"{name} must lie between {least} and {number(MOST_ROWS, 2)}; {bad} of {array.size} do not.",
            code="parameter-range",
            remedy="Leave out tuples that no row has." if least == 1 else "",
            details={"parameter": name, "wrong": bad},
        )
    return array.astype(np.int64, copy=False)


def paired(counts: ArrayLike, sample_counts: ArrayLike) -> tuple[Ints, Ints]:
    """The counts of a table and of a sample of it, in the same order."""
    n, s = as_counts("counts", counts, least=1), as_counts("sample_counts", sample_counts, least=0)
    if n.shape != s.shape or bool((s > n).any()):
        raise ParameterError(
            "sample_counts must have one entry for each of counts, and none above it.",
            code="parameter-combination",
            remedy="Give the sample's counts in the order of the table's, with 0 for tuples it does not hold.",
        )
    return n, s


def require_changed_rows(changed_rows: int, total: int) -> int:
    """c, the number of rows that may change together: at least one, no more than there are, nor than can be weighed."""
    c = require_count("changed_rows", changed_rows)
    if c > MOST_CHANGED:
        raise ParameterError(
            f"No more than {MOST_CHANGED} rows may be changed at once (`rows_unknown` in a policy).",
            code="parameter-range",
            remedy="Ask for fewer.",
            details={"parameter": "changed_rows"},
        )
    if c > total:
        raise ParameterError(
            "The promise cannot be made of so many rows at once (`rows_unknown` in a policy) on this table.",
            code="parameter-combination",
            remedy="Ask for fewer.",
            details={"parameter": "changed_rows"},
        )
    return c


def as_printed(value: float) -> Fraction:
    """The decimal number that a float shows: a promise of 0.3 is read as 3/10, as in the certificate."""
    return Fraction(repr(float(value)))


def floor_times(n: Ints, share: Fraction) -> Ints:
    """⌊n·share⌋ exactly, for 0 ≤ share < 1."""
    top, bottom = share.numerator, share.denominator
    if bottom < 2**63 and int(n.max(initial=0)) * top < 2**63:
        exact: Ints = n * top // bottom
        return exact
    product = n * float(share)
    floors: Ints = np.floor(product).astype(np.int64)
    for i in np.flatnonzero(np.abs(product - np.rint(product)) <= 1e-15 * n):
        floors[i] = int(n[i]) * top // bottom
    return floors


def thresholds(n: Ints, epsilon: Fraction, c: int) -> Ints:
    """The most rows of each cell that a sample may hold if all c changed rows are in that cell."""
    if c == 1:
        return floor_times(n, epsilon / (1 + epsilon))
    # φ(n−c+1) ≤ θ/c suffices and φ(n) ≤ θ/c is necessary: the answer is between, at most about c steps up.
    share = -math.expm1(-math.log1p(float(epsilon)) / c)
    state: Ints = np.clip(np.floor((n - c + 1) * share).astype(np.int64) - 1, 0, np.maximum(n - c, 0))
    climbing = np.flatnonzero(state < n - c)
    while climbing.size:
        rises = _within(n[climbing], state[climbing] + 1, epsilon, c)
        climbing = climbing[rises]
        state[climbing] += 1
        climbing = climbing[state[climbing] < n[climbing] - c]
    return state


def _within(n: Ints, s: Ints, epsilon: Fraction, c: int) -> NDArray[np.bool_]:
    """Whether Π_{i<c} (n−i)/(n−i−s) ≤ 1+ε; in floating point where that is clear, else in integers."""
    theta = math.log1p(float(epsilon))
    excess = sum((np.log1p(s / (n - i - s)) for i in range(c)), np.zeros(n.shape)) - theta
    answer: NDArray[np.bool_] = excess <= 0
    for k in np.flatnonzero(np.abs(excess) <= 1e-15 * (c + 4) * theta):
        rows, kept = int(n[k]), int(s[k])
        left = math.prod(rows - i for i in range(c)) * epsilon.denominator
        right = math.prod(rows - i - kept for i in range(c)) * (epsilon.denominator + epsilon.numerator)
        answer[k] = left <= right
    return answer


@dataclass(frozen=True, eq=False)
class _Level:
    """Fragile states that become unsafe together, as soon as some cell has s/(n+1) above a share."""

    groups: Ints  # the distinct counts that have a state here …
    caps: Ints  # … and the most rows they may have without it
    calm: Ints | None  # the caps of all distinct counts while no share is exceeded; None: unsafe in any case


class UnsafeSamples:
    """The unsafe samples of one table for one (c, ε), ready to be weighed at any rate.

    Attributes:
        exact: whether the event is exactly the unsafe samples, rather than a little more.
    """

    def __init__(self, table: EventCells, epsilon: Fraction, c: int) -> None:
        self._n, self._k = table.rows, table.cells
        self._caps = thresholds(table.rows, epsilon, c)
        self.exact = True
        self._levels = self._mixtures(epsilon, c) if c > 1 else []
        largest = float(self._n[-1])
        self._error = 1e-13 * math.sqrt(largest) + 2e-16 * largest
        # Chernoff: P[Bin(n,p) ≥ a] ≤ exp(a ln p + b ln(1−p) − entropy) for a > np, where b = n−a, and the bound is
        # too large by at most a factor √(2n). So cells whose bound is e^-50 below all others need no tail.
        self._a = self._caps + 1.0
        self._b = self._n - self._a
        self._entropy = self._a * np.log(self._a / self._n) + self._b * np.log(np.maximum(self._b, 1.0) / self._n)
        self._lowest = float((self._a / self._n).min())
        self._cells = table.distinct

    def probability(self, rate: float) -> tuple[float, float]:
        """A lower and an upper bound on P[unsafe]; they differ by rounding alone if `exact`."""
        if rate >= 1.0:
            return 1.0, 1.0  # every row of every cell is in the sample
        # A binomial median is at least ⌊np⌋: each cell with its threshold below np exceeds it half of the time.
        if rate >= self._lowest and self._k[self._a <= self._n * rate].sum() >= 64:
            return round_down(1.0), 1.0
        logs, rest = self._log_within(rate)
        above = -math.expm1(float(logs.sum()))
        fragile, slack = self._fragile(rate, logs) if above < 1.0 else (0.0, 0.0)
        low = above + fragile - slack if self.exact else above
        low = 0.0 if low < LEAST_DELTA else low
        high = max(round_up(above + fragile + slack + rest, self._error), LEAST_DELTA)
        return round_down(low, self._error), min(1.0, high)

    def _fragile(self, rate: float, logs: Floats) -> tuple[float, float]:
        """P[no threshold exceeded, yet unsafe], and what rounding may have taken from it."""
        caps, logs = self._caps.copy(), logs.copy()
        total = slack = 0.0
        for level in self._levels:
            g = level.groups
            if (inside := float(logs.sum())) == -math.inf:
                break  # some cell is certain to have an earlier state
            without = self._log_at(g, level.caps, rate)
            present = math.exp(inside) * -math.expm1((without - logs[g]).sum())
            # The tails bound what their differences can lose.
            slack += 4.0 * self._error * min(1.0, -float(without.sum()))
            if level.calm is not None:
                calm = logs.copy()
                lower = np.flatnonzero(level.calm < caps)
                calm[lower] = self._log_at(lower, level.calm[lower], rate)
                if (inside := float(calm.sum())) > -math.inf:
                    calm_without = np.where(level.calm[g] <= level.caps, calm[g], without)
                    present -= math.exp(inside) * -math.expm1((calm_without - calm[g]).sum())
            total += max(present, 0.0)
            caps[g], logs[g] = level.caps, without
        return total, slack

    def _log_within(self, rate: float) -> tuple[Floats, float]:
        """ln P[no cell above its threshold], by distinct count, and a bound on what was left out of it."""
        success, failure = math.log(rate), math.log1p(-rate)
        bound = self._a * success
        bound += self._b * failure
        bound -= self._entropy
        if rate >= self._lowest:
            bound[self._a <= self._n * rate] = 0.0  # thresholds below the mean: no Chernoff bound
        largest = float(self._n[-1])
        rounding = 4e-15 * largest * (1.0 - success - failure)
        cut = bound.max() - (50.0 + math.log(self._cells) + 0.5 * math.log(2.0 * largest) + 2.0 * rounding)
        needed = np.flatnonzero(bound >= cut)
        logs = np.zeros(bound.shape)
        logs[needed] = self._log_at(needed, self._caps[needed], rate)
        return logs, self._cells * math.exp(cut + rounding) if needed.size < bound.size else 0.0

    def _log_at(self, groups: Ints, caps: Ints, rate: float) -> Floats:
        return _log_complement(self._k[groups], tail(self._n[groups], caps, rate))

    def _mixtures(self, epsilon: Fraction, c: int) -> list[_Level]:
        """The fragile states, in the order in which they become unsafe."""
        groups, states, rooms, sharp = self._fragile_states(epsilon, c)
        if not groups.size:
            return []
        pools = min(groups.size, MIXTURE_WORK // self._n.size)
        shares: list[Fraction | None]
        if pools == groups.size:
            shares = [
                _share(int(self._n[g]), int(s), epsilon, c) if exactly else _share_below(room)
                for g, s, room, exactly in zip(groups, states, rooms, sharp, strict=True)
            ]
            order = sorted(range(groups.size), key=lambda i: shares[i] or 0)
            members = [np.array([i]) for i in order]
            shares = [shares[i] for i in order]
            self.exact = bool(sharp.all())
        else:
            members = list(np.array_split(np.argsort(rooms, kind="stable"), max(pools, 1)))
            shares = [_share_below(rooms[pool[0]]) if pools else None for pool in members]
            self.exact = False
        caps, levels = self._caps.copy(), []
        for pool, share in zip(members, shares, strict=True):
            calm = None if share is None else np.minimum(caps, floor_times(self._n + 1, share))
            np.minimum.at(caps, groups[pool], states[pool] - 1)
            affected = np.unique(groups[pool])
            levels.append(_Level(affected, caps[affected], calm))
        return levels

    def _fragile_states(self, epsilon: Fraction, c: int) -> tuple[Ints, Ints, Floats, NDArray[np.bool_]]:
        """Distinct count, state, z(u,s), and whether z is the exact limit on Y."""
        theta = math.log1p(float(epsilon))
        terms = self._largest_additions(c)
        additions = [math.prod(terms[:i], start=Fraction(1)) for i in range(c)]  # e^B(i)
        logs = [math.fsum(math.log1p(t - 1) for t in terms[:i]) for i in range(c)]  # B(i)
        active = np.flatnonzero(self._caps)
        state = self._caps[active]
        found = []
        while active.size:
            n = self._n[active]
            a = np.zeros(n.shape)
            room = np.full(n.shape, np.inf)
            sharp = np.ones(n.shape, dtype=bool)
            for j in range(1, c):
                a += np.log1p(state / (n - c + j - state))
                excess = a + logs[c - j] - theta
                harmless = excess <= 0
                for i in np.flatnonzero(np.abs(excess) <= 1e-12 * theta):
                    harmless[i] = spent(int(n[i]), int(state[i]), c, j) * additions[c - j] <= 1 + epsilon
                left = np.where(harmless, np.inf, (theta - a) / (c - j))
                sharp = left * (1 + 1e-12) < room if j == c - 1 else sharp
                room = np.minimum(room, left)
            sharp |= np.isinf(room)
            fragile = np.isfinite(room)
            active, state = active[fragile], state[fragile]
            found.append((active, state, room[fragile], sharp[fragile]))
            active, state = active[state > 1], state[state > 1] - 1
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool)
        groups, states, rooms, exact = (np.concatenate(part) for part in zip(*found, strict=True))
        return groups, states, rooms, exact

    def _largest_additions(self, c: int) -> list[Fraction]:
        """The c−1 or more largest (n+l)/(n+l−s), l ≥ 1, when every cell is at its threshold; falling."""
        terms: list[Fraction] = []
        most = min(c - 1, self._n.size)
        for extra in range(1, c):
            ratio = self._caps / (self._n + extra)
            for i in np.argpartition(ratio, -most)[-most:]:
                rows, kept = int(self._n[i]) + extra, int(self._caps[i])
                terms += [Fraction(rows, rows - kept)] * min(int(self._k[i]), c - 1)
        return sorted(terms, reverse=True)


def tail(n: Ints, cap: Ints, rate: float) -> Floats:
    """P[Bin(n, rate) > cap]: relative error below 1e-13·√n + 2e-16·n, several times what was measured."""
    from scipy.special import betainc

    # Far in the tail digits are lost, and then all of the number; a bound must not be.
    tails: Floats = np.maximum(betainc(cap + 1.0, (n - cap).astype(np.float64), rate), LEAST_TAIL)
    return tails


def _log_complement(cells: Ints, tails: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        logs: Floats = cells.astype(np.float64) * np.log1p(-tails)
    return logs


def spent(n: int, s: int, c: int, j: int) -> Fraction:
    """e^A(j) of a cell with n rows of which s are sampled."""
    return Fraction(math.prod(n - c + i for i in range(1, j + 1)), math.prod(n - c + i - s for i in range(1, j + 1)))


def _share(n: int, s: int, epsilon: Fraction, c: int) -> Fraction:
    """The largest s_w/(n_w+1) with A_u(c−1) + φ_w(n_w+1) ≤ θ, for n rows of which s are sampled."""
    return 1 - spent(n, s, c, c - 1) / (1 + epsilon)


def _share_below(room: float) -> Fraction:
    """The largest s_w/(n_w+1) with φ_w(n_w+1) ≤ room, rounded down."""
    return Fraction(-math.expm1(-float(room)) * (1 - 1e-12))
