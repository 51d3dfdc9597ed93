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

*Privacy blanket* (Balle, Bell, Gascón, Nissim 2019, Lemma 5.3). ω is proportional to min_x R_x. For a product of
retention-replacements that is the uniform law with γ = Π(1−ρ_a), and R_x(w)/ω(w) is the product over a of
1−ρ_a + |V_a|ρ_a·[w_a = x_a]. *The worst pair x, x' differs in every attribute.* Suppose they agree in a, and change
x'_a to another value y. Given W outside a, let r and s be the products over the other attributes for x and x', s times
e^ε, and u < v the two values of a's factor. Unless W_a is x_a or y, L stays u(r−s). In those two cases, equally likely,
its values v(r−s) and u(r−s) become vr−us and ur−vs: the same sum, and the new pair encloses the old. So L grows in the
convex order with every attribute that differs, and the right side of (*) with it.

*Clones* (Feldman, McMillan, Talwar 2021, Section 3). Any ε₀-DP pair can be written R_x = aQ + (1−a)Q' and
R_x' = (1−a)Q + aQ' with a = e^ε₀/(e^ε₀+1) (Kairouz, Oh, Viswanath 2015), and every R_y contains
(R_x + R_x')/2 = (Q + Q')/2 with weight e^{−ε₀}. Tell the adversary of every record drawn from Q or Q' which of the two
it was: this is (*) with γ = e^{−ε₀} and ω uniform on {Q, Q'}. It holds for every matrix. The blanket is proved here for
products of retention-replacements; the smaller of the two is promised.

Counting only the outputs x and x', without the rest of the blanket, is *not* an upper bound from four values on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from incrowd.core.errors import UnreachableError
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
from incrowd.theory.randomisation import Attribute, RetentionReplacement, local_epsilon

BLANKET, CLONES, CLOSED_FORM, LOCAL = "privacy blanket", "clones", "clones, closed form", "local"

_MOST_PAIRS = 20_000
_POINTS = 200
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
class _Blanket:
    """A law ω that every record's law contains with weight `mass`, and the likelihoods of x and x' relative to it."""

    mass: float
    probabilities: Vector
    first: Vector
    second: Vector

    def delta(self, records: int, epsilon: float) -> float:
        """The right side of (*), rounded up."""
        scaled = math.exp(epsilon) * self.second
        return mean_excess(records, self.mass, self.probabilities, self.first - scaled + SLACK * (self.first + scaled))

    def epsilon(self, records: int, delta: float, local: float) -> float:
        """An ε whose δ was computed and is small enough, at most a share of 1e-4 above the smallest such."""
        if self.delta(records, 0.0) <= delta:
            return 0.0
        low, high = 0.0, local
        while high - low > max(1e-4 * high, 1e-15):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(records, middle) <= delta else (middle, high)
        return high


def central_delta(attributes: Sequence[Attribute], records: int, epsilon: float) -> CentralGuarantee:
    """The δ that a shuffled table of at least `records` randomised records promises with ε (replace-one)."""
    records = require_count("records", records)
    epsilon = require_non_negative("epsilon", epsilon)
    local = _require_local(attributes)
    # The worst ε₀-DP mechanism is randomised response on two values; shuffled or not, nothing exceeds it.
    share = -math.expm1(epsilon - local) / (1 + math.exp(-local))
    deltas = {LOCAL: min(1.0, round_up(share, 1e-14)) if epsilon < local else 0.0}
    if epsilon < local:
        deltas |= {name: blanket.delta(records, epsilon) for name, blanket in _blankets(attributes, local).items()}
    best = min(deltas, key=deltas.__getitem__)
    return CentralGuarantee(epsilon, deltas[best], records, best, deltas)


def central_epsilon(attributes: Sequence[Attribute], records: int, delta: float) -> CentralGuarantee:
    """The ε that a shuffled table of at least `records` randomised records promises with δ (replace-one)."""
    records = require_count("records", records)
    delta = require_between("delta", delta, 0.0, 1.0)
    local = _require_local(attributes)
    epsilons = {LOCAL: local}
    for name, blanket in _blankets(attributes, local).items():
        epsilons[name] = blanket.epsilon(records, delta, local)
    best = min(epsilons, key=epsilons.__getitem__)
    closed = clones_closed_form(local, records, delta)
    if closed is not None:  # for comparison: it only rounds off what "clones" computes
        epsilons[CLOSED_FORM] = closed
    return CentralGuarantee(epsilons[best], delta, records, best, epsilons)


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


def _blankets(attributes: Sequence[Attribute], local: float) -> dict[str, _Blanket]:
    """The decompositions that are proved for these attributes."""
    if not 0 < local <= _LARGEST_LOCAL:
        return {}
    blankets = {CLONES: _clones(local)}
    retained = [attribute for attribute in attributes if isinstance(attribute, RetentionReplacement)]
    if len(retained) == len(attributes) <= _MOST_ATTRIBUTES:
        blankets[BLANKET] = _uniform_blanket(retained)
    return blankets


def _clones(local: float) -> _Blanket:
    likely, unlikely = 2 / (1 + math.exp(-local)), 2 / (1 + math.exp(local))
    return _Blanket(
        mass=round_down(math.exp(-local), 4 * EPSILON_MACHINE),  # a smaller weight is contained as well
        probabilities=np.array([0.5, 0.5]),
        first=np.array([likely, unlikely]),
        second=np.array([unlikely, likely]),
    )


def _uniform_blanket(attributes: Sequence[RetentionReplacement]) -> _Blanket:
    """The joint law of the likelihoods of two records that differ in every attribute."""
    probabilities = first = second = np.ones(1)
    mass = 1.0
    for attribute in attributes:
        if attribute.retention == 0:
            continue  # its factor is 1 whatever it shows
        size, low = attribute.size, 1 - attribute.retention
        high = 1 + (size - 1) * attribute.retention
        mass = round_down(mass * low, 2 * EPSILON_MACHINE)  # a smaller weight is contained as well
        chances, mine, theirs = ([1 / size, 1 / size, (size - 2) / size], [high, low, low], [low, high, low])
        kinds = 3 if size > 2 else 2
        probabilities = np.outer(probabilities, chances[:kinds]).ravel()
        first, second = np.outer(first, mine[:kinds]).ravel(), np.outer(second, theirs[:kinds]).ravel()
        if len(probabilities) > _MOST_PAIRS:
            probabilities, first, second = _thin_out(probabilities, first, second)
    return _Blanket(mass, probabilities, first, second)


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
