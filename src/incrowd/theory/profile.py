"""Privacy profiles: δ as a function of ε, and what can be done with them.

A profile belongs to one neighbour relation. Under *add/remove* the two tables differ by one record, under
*replace-one* they have the same size and differ in one record. Profiles of different relations are never mixed.

For ε ≥ 0 a profile has two directions, because the true table may be the larger or the smaller neighbour; the promise
is the larger of the two. For replace-one they coincide.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from incrowd.core.errors import ParameterError, RelationError, UnreachableError
from incrowd.core.numbers import as_given
from incrowd.theory._numbers import (
    require_between,
    require_non_negative,
    round_down,
    round_up,
)
from incrowd.theory.losses import Losses


class Relation(StrEnum):
    """Which tables count as neighbours."""

    ADD_REMOVE = "add/remove"
    REPLACE_ONE = "replace-one"


class PrivacyProfile(ABC):
    """For every ε ≥ 0 the δ that is promised with it, rounded up."""

    relation: Relation

    @abstractmethod
    def removal(self, epsilon: float) -> float:
        """δ when the larger table is the true one."""

    @abstractmethod
    def addition(self, epsilon: float) -> float:
        """δ when the smaller table is the true one."""

    def delta(self, epsilon: float) -> float:
        """The smallest δ known for this ε, in both directions."""
        return max(self.removal(epsilon), self.addition(epsilon))

    def epsilon(self, delta: float, limit: float = 100.0) -> float:
        """The smallest ε known for this δ, rounded up."""
        require_between("delta", delta, 0.0, 1.0, open_low=False)
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = 0.0, min(1.0, limit)
        while self.delta(high) > delta:
            if high >= limit:
                raise UnreachableError(
                    f"No epsilon up to {as_given(limit)} reaches delta = {as_given(delta)}.",
                    code="unreachable",
                    remedy="Raise delta or strengthen the mechanism.",
                    details={"delta_at_limit": self.delta(limit)},
                )
            low, high = high, min(2 * high, limit)
        while high - low > 1e-10 * high:
            middle = (low + high) / 2
            if self.delta(middle) <= delta:
                high = middle
            else:
                low = middle
        return high


@dataclass(frozen=True)
class ApproximateDP(PrivacyProfile):
    """All that is known is one point: the mechanism is (ε₀,δ₀)-DP.

    The worst such mechanism is randomised response that fails with probability δ₀; its profile is
    δ₀ + (1−δ₀)(e^ε₀ − e^ε)/(1 + e^ε₀) below ε₀ and δ₀ from there on.
    """

    at_epsilon: float
    at_delta: float
    relation: Relation

    def __post_init__(self) -> None:
        require_non_negative("epsilon", self.at_epsilon)
        require_between("delta", self.at_delta, 0.0, 1.0, open_low=False, open_high=False)

    def removal(self, epsilon: float) -> float:
        """The profile of the worst mechanism, which is symmetric."""
        epsilon = require_non_negative("epsilon", epsilon)
        if epsilon >= self.at_epsilon:
            return self.at_delta
        # (e^a − e^b)/(1 + e^a) = −expm1(b − a)/(1 + e^−a), which neither overflows nor cancels.
        share = -math.expm1(epsilon - self.at_epsilon) / (1 + math.exp(-self.at_epsilon))
        return min(1.0, round_up(self.at_delta + (1 - self.at_delta) * share, 1e-15))

    addition = removal

    def epsilon(self, delta: float, limit: float = math.inf) -> float:
        """ε₀ itself at δ₀; less above it; nothing below it."""
        if delta == self.at_delta:
            return self.at_epsilon
        if delta < self.at_delta:
            raise UnreachableError(
                f"Only delta = {as_given(self.at_delta)} and above are promised; {as_given(delta)} is below.",
                code="unreachable",
                remedy="Ask for a larger delta.",
            )
        return min(self.at_epsilon, super().epsilon(delta, limit))


@dataclass(frozen=True)
class ReplaceOne(PrivacyProfile):
    """An add/remove profile read for replacing one record: take it out, put the other in, or the other way round.

    With P, M, Q the outputs before, in between and after, H_{ε₁+ε₂}(P‖Q) ≤ H_ε₁(P‖M) + e^ε₁ H_ε₂(M‖Q). Every split
    of ε is valid, so the best of a grid is. ε₁ = ε₂ with equal directions gives the familiar (2ε, (1+e^ε)δ).
    """

    inner: PrivacyProfile
    relation: Relation = field(default=Relation.REPLACE_ONE, init=False)

    def removal(self, epsilon: float) -> float:
        """δ for replacing one record; the relation is symmetric."""
        epsilon = require_non_negative("epsilon", epsilon)
        best = 1.0
        for first, second in (
            (self.inner.removal, self.inner.addition),
            (self.inner.addition, self.inner.removal),
        ):
            for part in range(65):
                left = epsilon * part / 64
                right = max(0.0, math.nextafter(epsilon - left, -math.inf))
                bound = round_up(first(left) + math.exp(left) * second(right), 1e-14)
                best = min(best, bound)
        return best

    addition = removal


def to_replace_one(profile: PrivacyProfile) -> PrivacyProfile:
    """The same mechanism under replacing one record."""
    if profile.relation is Relation.REPLACE_ONE:
        return profile
    if isinstance(profile, ApproximateDP):
        delta = round_up((1 + math.exp(profile.at_epsilon)) * profile.at_delta, 1e-15) if profile.at_delta else 0.0
        return ApproximateDP(2 * profile.at_epsilon, min(1.0, delta), Relation.REPLACE_ONE)
    return ReplaceOne(profile)


@dataclass(frozen=True)
class OfSample(PrivacyProfile):
    """What a mechanism that sees a random sample only promises to all who could have been in it (add/remove).

    Each record is in the sample with probability β at most, independently. Theorem 1 of Li, Qardaji, Su for every ε at
    once, in each direction by itself (docs/proofs.md, "A table that is itself a sample"): δ(ε) = β·δ₁(ε₁), with
    e^ε = 1 + β(e^ε₁ − 1).
    """

    sampled: PrivacyProfile
    rate: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        require_between("rate", self.rate, 0.0, 1.0, open_high=False)
        if self.sampled.relation is not Relation.ADD_REMOVE:
            raise ParameterError("the theorem is about adding or removing a record", code="parameter-combination")

    def removal(self, epsilon: float) -> float:
        return self._scaled(self.sampled.removal(before_sampling(epsilon, self.rate)))

    def addition(self, epsilon: float) -> float:
        return self._scaled(self.sampled.addition(before_sampling(epsilon, self.rate)))

    def _scaled(self, delta: float) -> float:
        return round_up(self.rate * delta, 1e-15) if delta else 0.0


def before_sampling(epsilon: float, rate: float) -> float:
    """ε₁ = ln(1 + (e^ε − 1)/β), rounded down: with it, a mechanism on a sample of that rate promises ε."""
    require_non_negative("epsilon", epsilon)
    require_between("rate", rate, 0.0, 1.0, open_high=False)
    if epsilon < 300:
        found = math.log1p(math.expm1(epsilon) / rate)
    else:  # ln((e^ε − (1 − β))/β) without e^ε, which would overflow
        found = epsilon + math.log1p(-(1 - rate) * math.exp(-epsilon)) - math.log(rate)
    return max(epsilon, round_down(found, 1e-14))


def amplify(epsilon: float, delta: float, from_beta: float, to_beta: float) -> tuple[float, float]:
    """Theorem 1 of Li, Qardaji, Su: what (ε,δ) at sampling rate β₁ becomes at a lower rate β₂ (add/remove).

    ε₂ = ln(1 + (β₂/β₁)(e^ε₁ − 1)) and δ₂ = (β₂/β₁)δ₁, both rounded up.
    """
    require_non_negative("epsilon", epsilon)
    require_between("delta", delta, 0.0, 1.0, open_low=False, open_high=False)
    require_between("from_beta", from_beta, 0.0, 1.0, open_high=False)
    require_between("to_beta", to_beta, 0.0, 1.0, open_high=False)
    if to_beta > from_beta:
        raise ParameterError(
            f"Sampling amplifies privacy only towards a lower rate: {as_given(to_beta)} is above "
            f"{as_given(from_beta)}.",
            code="parameter-combination",
            remedy="Swap from_beta and to_beta, or lower to_beta.",
        )
    ratio = to_beta / from_beta
    if epsilon < 700:
        amplified = math.log1p(ratio * math.expm1(epsilon))
    else:
        # ln(1 − r + r·e^ε) without e^ε, which would overflow.
        far = epsilon + math.log(ratio)
        amplified = far + math.log1p((1 - ratio) * math.exp(-far)) if far > 0 else math.log1p(math.exp(far))
    return min(epsilon, round_up(amplified, 1e-14)), min(delta, round_up(ratio * delta, 1e-15)) if delta else 0.0


# --- composition ------------------------------------------------------------------------------------------------

_FINEST, _POINTS = 1e-4, 1500
_MANY, _FEWER_POINTS = 12, 750  # so many different parts take long; half the points cost them 10⁻⁴ of their ε
_TAIL, _FARTHEST = 1e-18, 64.0


@dataclass(frozen=True)
class Composition(PrivacyProfile):
    """Several mechanisms with independent randomness, each of which may depend on the outputs of the earlier.

    Composed through privacy losses on a grid, one measure for each direction (`losses`). Plain addition of ε's and δ's
    is used as well, and the smaller of the two proved values is returned.
    """

    parts: tuple[PrivacyProfile, ...]

    def __post_init__(self) -> None:
        if len({part.relation for part in self.parts}) > 1:
            raise RelationError(
                "Promises about adding or removing a record cannot be added to promises about replacing one.",
                code="relation-mismatch",
                remedy="Convert the add/remove ones with to_replace_one() first.",
            )

    @property
    def relation(self) -> Relation:  # type: ignore[override]
        """The one relation that all parts share."""
        return self.parts[0].relation if self.parts else Relation.ADD_REMOVE

    def removal(self, epsilon: float) -> float:
        return self._delta(epsilon, "removal")

    def addition(self, epsilon: float) -> float:
        return self._delta(epsilon, "addition")

    def _delta(self, epsilon: float, direction: str) -> float:
        epsilon = require_non_negative("epsilon", epsilon)
        if not self.parts:
            return 0.0
        added = self._by_addition(epsilon, direction)
        if added == 0.0:
            return 0.0
        return min(1.0, added, self._losses[direction].delta(epsilon))

    def epsilon(self, delta: float, limit: float = 1000.0) -> float:
        """The smallest ε known for this δ: the sum of the parts' ε's at an equal share of δ, or better."""
        if not self.parts:
            return 0.0
        try:
            share = delta / len(self.parts) * (1 - 1e-12)
            added = sum_up(times * part.epsilon(share) for part, times in self._counted.items())
        except UnreachableError:
            added = math.inf
        try:
            return min(added, super().epsilon(delta, limit))
        except UnreachableError:
            if math.isinf(added):
                raise
            return added

    def _by_addition(self, epsilon: float, direction: str) -> float:
        """The δ's added: known points get their ε, the rest shares what is left by how much each part needs."""
        needs = self._needs
        fixed = sum_up(n * needs[p] for p, n in self._counted.items() if isinstance(p, ApproximateDP))
        elastic = sum_up(n * needs[p] for p, n in self._counted.items() if not isinstance(p, ApproximateDP))
        if fixed <= epsilon:
            squeeze, stretch = 1.0, (epsilon - fixed) / elastic * (1 - 1e-12) if elastic else 1.0
        else:
            squeeze = stretch = epsilon / (fixed + elastic) * (1 - 1e-12)
        return sum_up(
            n * getattr(p, direction)(needs[p] * (squeeze if isinstance(p, ApproximateDP) else stretch))
            for p, n in self._counted.items()
        )

    @cached_property
    def _counted(self) -> dict[PrivacyProfile, int]:
        """Equal parts are composed together."""
        return dict(Counter(self.parts))

    @cached_property
    def _needs(self) -> dict[PrivacyProfile, float]:
        return {part: reach_of(part) for part in self._counted}

    @cached_property
    def _losses(self) -> dict[str, Losses]:
        """What covers all parts together, for each direction."""
        reach = max(self._needs.values())
        step = max(_FINEST, reach / (_POINTS if len(self._counted) < _MANY else _FEWER_POINTS))
        grid = [math.nextafter(j * step, 0.0) for j in range(math.floor(reach / step) + 2)]
        composed: dict[str, Losses] = {}
        for part, times in self._counted.items():
            removal, addition = ([delta(epsilon) for epsilon in grid] for delta in (part.removal, part.addition))
            for direction, forward, backward in (("removal", removal, addition), ("addition", addition, removal)):
                losses = Losses.covering(forward, backward, step).times(times)
                composed[direction] = composed[direction].compose(losses) if direction in composed else losses
        return composed


def compose(profiles: Sequence[PrivacyProfile]) -> Composition:
    """What several releases promise together. Their randomness must be independent: one sample serves one release."""
    return Composition(tuple(profiles))


def sum_up(values: Iterable[float]) -> float:
    """A sum of non-negative numbers, rounded up unless it is zero."""
    total = math.fsum(values)
    return 0.0 if total == 0.0 else round_up(total)


def reach_of(profile: PrivacyProfile) -> float:
    """An ε beyond which nothing is left to gain: δ no longer falls, or is negligible."""
    if isinstance(profile, ApproximateDP):
        return profile.at_epsilon
    low, high = 0.0, 0.125
    floor = max(_TAIL, profile.delta(_FARTHEST))
    while profile.delta(high) > floor and high < _FARTHEST:
        low, high = high, 2 * high
    while high - low > max(0.05 * high, 1e-3):
        middle = (low + high) / 2
        low, high = (low, middle) if profile.delta(middle) <= floor else (middle, high)
    return high
