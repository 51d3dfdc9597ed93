"""What shuffling adds: the central (ε,δ) of a table whose records were randomised one by one.

Every record is ε₀-DP on its own. Shuffling hides which record is whose, so the table as a whole is (ε,δ)-DP with a
much smaller ε, for replacing one record. Throughout, n counts *all* records, the replaced one included, and the
promise needs at least n of them: the bounds below fall with n, because an average of more independent terms is
smaller in the convex order.

**One formula, two decompositions.** Let R_x be the law of the randomised record x. Suppose that every record's law
contains the same ω with weight γ: R_y = γω + (1−γ)·(the rest of y). Tell the adversary of each *other* record whether
it came from ω, and its value if it did not. What remains is a shuffled set of m+1 outputs, m ~ Bin(n−1, γ) of them
from ω and one from R_x or R_x'. Its likelihood relative to ω^{m+1} is the average of R_x(W_i)/ω(W_i), so the divergence
for that m is E[(L₁+…+L_{m+1})₊]/(m+1) with L = (R_x(W) − e^ε R_x'(W))/ω(W), W ~ ω. Average over m, using
P[Bin(n−1,γ) = m]/(m+1) = P[Bin(n,γ) = m+1]/(γn):

    δ(ε) ≤ E[(L₁ + … + L_M)₊] / (γn),      M ~ Bin(n, γ).                                                (*)

*Privacy blanket* (Balle, Bell, Gascón, Nissim 2019, Lemma 5.3). ω is proportional to min_x R_x, which every product of
row-stochastic matrices has: for one matrix the column minima, with γ their sum, and for several attributes the products
of these. If there are few pairs x, x' each is computed. Else `_blanket` has for each matrix one law of the two
likelihoods R_x(W)/ω(W), R_x'(W)/ω(W) that is at least as bad as that of every pair, alone and in a product. For
retention-replacements ω is uniform, γ = Π(1−ρ_a), and the law is that of two records which differ in every attribute.

*Clones* (Feldman, McMillan, Talwar 2021, Section 3). Any ε₀-DP pair can be written R_x = aQ + (1−a)Q' and
R_x' = (1−a)Q + aQ' with a = e^ε₀/(e^ε₀+1) (Kairouz, Oh, Viswanath 2015), and every R_y contains
(R_x + R_x')/2 = (Q + Q')/2 with weight e^{−ε₀}. Tell the adversary of every record drawn from Q or Q' which of the two
it was: this is (*) with γ = e^{−ε₀} and ω uniform on {Q, Q'}. Both hold for every matrix, and the smaller is promised.

**Sampling.** If every record is in the table with probability β only, independently, then what becomes of record x is
again a randomised record: it is left out with probability 1−β, and else drawn from R_x. All n records are shuffled, and
those left out show in their number alone. So (*) holds for R'_x = (1−β)·[left out] + β·R_x, whose blanket is
(1−β)·[left out] + βγω: sampling and shuffling are counted at once, for replacing one of the n records.

Counting only the outputs x and x', without the rest of the blanket, is *not* an upper bound from four values on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from incrowd.core.errors import UnreachableError
from incrowd.theory._blanket import worst_of
from incrowd.theory._excess import SLACK, Vector, mean_excess, spread_out
from incrowd.theory._numbers import (
    EPSILON_MACHINE,
    require_between,
    require_count,
    require_non_negative,
    round_down,
    round_up,
)
from incrowd.theory.profile import Relation
from incrowd.theory.randomisation import Attribute, RetentionReplacement, TransitionMatrix, local_epsilon

BLANKET, CLONES, CLOSED_FORM, LOCAL = "privacy blanket", "clones", "clones, closed form", "local"

_MOST_PAIRS = 20_000
_POINTS = 200
_ROUNDS, _ROUNDED, _LEAST_SHARE = 4, 2e-5, 1e-290  # of narrowing down the ε of several replaced records
_MOST_ATTRIBUTES = 128
"""Up to here what thinning out loses in each step stays within what `SLACK` allows for."""

_LARGEST_LOCAL = 300.0
"""Beyond this e^{2ε₀} leaves the range of floating-point numbers, and the local promise is returned as it is."""


@dataclass(frozen=True)
class CentralGuarantee:
    """The shuffled table is (ε,δ)-DP for replacing one record, if it has at least the stated number of records.

    Attributes:
        epsilon: rounded up.
        delta: rounded up.
        records: n, all records counted.
        bound: which proof gives these numbers.
        by_bound: what each proof that applies gives: its ε for the asked δ, or its δ for the asked ε.
        relation: always replace-one; the number of records is public.
    """

    epsilon: float
    delta: float
    records: int
    bound: str
    by_bound: Mapping[str, float] = field(hash=False)
    relation: Relation = Relation.REPLACE_ONE


@dataclass(frozen=True)
class _Pair:
    """The likelihoods of two records relative to a law ω that every record's law contains with weight `mass`."""

    mass: float
    probabilities: Vector
    first: Vector
    second: Vector

    def times(self, other: _Pair) -> _Pair:
        """Of records that have both attributes, or sets of attributes."""
        mass = round_down(self.mass * other.mass, 2 * EPSILON_MACHINE)  # a smaller weight is contained as well
        law = [
            np.outer(mine, theirs).ravel()
            for mine, theirs in (
                (self.probabilities, other.probabilities),
                (self.first, other.first),
                (self.second, other.second),
            )
        ]
        return _Pair(mass, *(_thin_out(*law) if len(law[0]) > _MOST_PAIRS else law))

    def sampled(self, rate: float) -> _Pair:
        """Of records that are in the table with this probability: to be left out is one more output."""
        absent = 1 - rate
        mass = absent + rate * self.mass
        return _Pair(
            round_down(mass, 4 * EPSILON_MACHINE),
            np.append(rate * self.mass * self.probabilities, absent) / mass,
            np.append(self.first * (mass / self.mass), mass),
            np.append(self.second * (mass / self.mass), mass),
        )


@dataclass(frozen=True)
class _Bound:
    """Pairs of records of which one is the worst, or is at least as bad as the worst."""

    pairs: Sequence[_Pair]

    def delta(self, records: int, epsilon: float) -> float:
        """The right side of (*), rounded up."""
        return max(_delta(pair, records, epsilon) for pair in self.pairs)

    def epsilon(self, records: int, delta: float, local: float) -> float:
        """An ε whose δ was computed and is small enough, at most a share of 1e-4 above the smallest such."""
        found = 0.0
        for pair in self.pairs:  # most of them are seen at once not to be the worst
            if _delta(pair, records, found) > delta:
                found = _epsilon(pair, records, delta, found, local)
        return found


def _delta(pair: _Pair, records: int, epsilon: float) -> float:
    scaled = math.exp(epsilon) * pair.second
    return mean_excess(records, pair.mass, pair.probabilities, pair.first - scaled + SLACK * (pair.first + scaled))


def _epsilon(pair: _Pair, records: int, delta: float, low: float, high: float) -> float:
    while high - low > max(1e-4 * high, 1e-15):
        middle = (low + high) / 2
        low, high = (low, middle) if _delta(pair, records, middle) <= delta else (middle, high)
    return high


def central_delta(attributes: Sequence[Attribute], records: int, epsilon: float, rate: float = 1.0) -> CentralGuarantee:
    """The δ that a shuffled table of at least `records` randomised records promises with ε (replace-one).

    With a rate below 1, each of these records is in the table with that probability, independently.
    """
    records = require_count("records", records)
    epsilon = require_non_negative("epsilon", epsilon)
    rate = require_between("rate", rate, 0.0, 1.0, open_high=False)
    local = _require_local(attributes)
    # The worst ε₀-DP mechanism is randomised response on two values; shuffled or not, nothing exceeds it.
    share = -rate * math.expm1(epsilon - local) / (1 + math.exp(-local))
    deltas = {LOCAL: min(1.0, round_up(share, 1e-14)) if epsilon < local else 0.0}
    if epsilon < local:
        deltas |= {name: bound.delta(records, epsilon) for name, bound in _blankets(attributes, local, rate).items()}
    best = min(deltas, key=deltas.__getitem__)
    return CentralGuarantee(epsilon, deltas[best], records, best, deltas)


def central_epsilon(attributes: Sequence[Attribute], records: int, delta: float, rate: float = 1.0) -> CentralGuarantee:
    """The ε that a shuffled table of at least `records` randomised records promises with δ (replace-one).

    With a rate below 1, each of these records is in the table with that probability, independently.
    """
    records = require_count("records", records)
    delta = require_between("delta", delta, 0.0, 1.0)
    rate = require_between("rate", rate, 0.0, 1.0, open_high=False)
    local = _require_local(attributes)
    epsilons = {LOCAL: local}
    for name, blanket in _blankets(attributes, local, rate).items():
        epsilons[name] = blanket.epsilon(records, delta, local)
    best = min(epsilons, key=epsilons.__getitem__)
    closed = clones_closed_form(local, records, delta) if rate == 1 else None
    if closed is not None:  # for comparison: it only rounds off what "clones" computes
        epsilons[CLOSED_FORM] = closed
    return CentralGuarantee(epsilons[best], delta, records, best, epsilons)


def group_epsilon(
    attributes: Sequence[Attribute], records: int, delta: float, rows: int = 1, rate: float = 1.0
) -> CentralGuarantee:
    """The same where neighbours differ in up to `rows` records: they are replaced one after the other.

    If one record has δ₁ at ε₁, m of them have Σ_{i<m} e^{iε₁} δ₁ at m·ε₁. If some e is large enough, δ₁ = δ/Σe^{ie}
    will do, and the ε₁ that it needs is not larger than e: every round is valid, and better than the one before.
    """
    if rows == 1:
        return central_epsilon(attributes, records, delta, rate)
    require_between("delta", delta, 0.0, 1.0)
    local = _require_local(attributes)
    found = CentralGuarantee(local, delta, records, LOCAL, {LOCAL: local})
    for _ in range(_ROUNDS):
        # A little is left for those who round ε up before they compute δ again.
        share = round_down(delta / _steps(found.epsilon * (1 + _ROUNDED), rows), 1e-14)
        if share < _LEAST_SHARE:
            break
        better = central_epsilon(attributes, records, share, rate)
        if better.epsilon >= found.epsilon:
            break
        found = better
    by_bound = {name: round_up(rows * epsilon) for name, epsilon in found.by_bound.items()}
    return CentralGuarantee(round_up(rows * found.epsilon), delta, records, found.bound, by_bound)


def group_delta(
    attributes: Sequence[Attribute], records: int, epsilon: float, rows: int = 1, rate: float = 1.0
) -> CentralGuarantee:
    """The δ of up to `rows` replaced records at ε."""
    if rows == 1:
        return central_delta(attributes, records, epsilon, rate)
    each = round_down(require_non_negative("epsilon", epsilon) / rows)
    one = central_delta(attributes, records, each, rate)
    by_bound = {
        name: min(1.0, round_up(delta * _steps(each, rows), 1e-14)) if delta else 0.0
        for name, delta in one.by_bound.items()
    }
    best = min(by_bound, key=by_bound.__getitem__)
    return CentralGuarantee(epsilon, by_bound[best], records, best, by_bound)


def _steps(epsilon: float, rows: int) -> float:
    """Σ_{i<m} e^{iε}, rounded up; infinite where that is too large."""
    return round_up(math.fsum(math.exp(i * epsilon) for i in range(rows)), 1e-14) if rows * epsilon < 700 else math.inf


def clones_closed_form(local: float, records: int, delta: float) -> float | None:
    """Theorem 3.1 of Feldman, McMillan, Talwar 2021; None where it does not apply. For comparison, never promised.

    ε = ln(1 + (e^ε₀−1)/(e^ε₀+1)·(8√(e^ε₀ ln(4/δ))/√n + 8e^ε₀/n)). The theorem asks for ε₀ ≤ ln(n/(16 ln(2/δ))); the
    authors' own program asks for ln(4/δ) in place of ln(2/δ), and so does this function.
    """
    require_non_negative("local", local)
    require_between("delta", delta, 0.0, 1.0)
    logarithm = math.log(4 / delta)
    if local > 700 or math.exp(local) * 16 * logarithm > require_count("records", records):
        return None
    odds = math.exp(local)
    share = 8 * math.sqrt(odds * logarithm / records) + 8 * odds / records
    return math.log1p(math.tanh(local / 2) * share)


def _require_local(attributes: Sequence[Attribute]) -> float:
    local = local_epsilon(attributes)
    if math.isinf(local):
        raise UnreachableError(
            "An attribute is published with some certainty (a retention of 1, or a zero in its matrix), "
            "so shuffling cannot promise anything.",
            code="unreachable",
            remedy="Let every value turn into every other with some probability.",
        )
    return local


def _blankets(attributes: Sequence[Attribute], local: float, rate: float) -> dict[str, _Bound]:
    """The decompositions that are proved for these attributes."""
    if not 0 < local <= _LARGEST_LOCAL:
        return {}
    blankets = {CLONES: _Bound([_clones(local)])}
    if len(attributes) <= _MOST_ATTRIBUTES:
        blankets[BLANKET] = _Bound(_blanket(attributes))
    if rate == 1:
        return blankets
    return {name: _Bound([pair.sampled(rate) for pair in bound.pairs]) for name, bound in blankets.items()}


def _clones(local: float) -> _Pair:
    likely, unlikely = 2 / (1 + math.exp(-local)), 2 / (1 + math.exp(local))
    return _Pair(
        mass=round_down(math.exp(-local), 4 * EPSILON_MACHINE),  # a smaller weight is contained as well
        probabilities=np.array([0.5, 0.5]),
        first=np.array([likely, unlikely]),
        second=np.array([unlikely, likely]),
    )


def _blanket(attributes: Sequence[Attribute]) -> list[_Pair]:
    """Every pair of records if these are few, else one that is at least as bad as any."""
    telling = [attribute for attribute in attributes if attribute.epsilon]  # the factor of others is 1
    kept = _Pair(1.0, *np.ones((3, 1)))
    for attribute in telling:
        if isinstance(attribute, RetentionReplacement):
            kept = kept.times(_retained(attribute))
    found = []
    for laws in worst_of([attribute for attribute in telling if isinstance(attribute, TransitionMatrix)]):
        pair = kept
        for law in laws:
            mass = round_down(float(law.mass), 2 * EPSILON_MACHINE)
            pair = pair.times(_Pair(mass, *np.array([[float(entry) for entry in share] for share in law.shares]).T))
        found.append(pair)
    return found


def _retained(attribute: RetentionReplacement) -> _Pair:
    """Of two different values, which are the worst pair."""
    size, low = attribute.size, 1 - attribute.retention
    high = 1 + (size - 1) * attribute.retention
    law = np.array([[1 / size, high, low], [1 / size, low, high], [(size - 2) / size, low, low]])
    return _Pair(low, *law[: 3 if size > 2 else 2].T)


def _thin_out(probabilities: Vector, first: Vector, second: Vector) -> tuple[Vector, Vector, Vector]:
    """Fewer pairs of likelihoods: each becomes a mixture of four grid points with the same means.

    That makes the pair, and every L computed from it and from factors yet to come, larger in the convex order.
    """
    columns, rows = np.geomspace(first.min(), first.max(), _POINTS), np.geomspace(second.min(), second.max(), _POINTS)
    (column, across), (row, along) = spread_out(columns, first), spread_out(rows, second)
    merged = np.zeros(_POINTS * _POINTS)
    for right in (0, 1):
        for up in (0, 1):
            share = (across if right else 1 - across) * (along if up else 1 - along)
            merged += np.bincount((column + right) * _POINTS + row + up, probabilities * share, len(merged))
    used = np.flatnonzero(merged)
    return merged[used], columns[used // _POINTS], rows[used % _POINTS]
