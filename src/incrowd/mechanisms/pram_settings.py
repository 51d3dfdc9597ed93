"""How much is kept, from what a policy asks for; and what that promises.

The promises about the whole table need the number of records R, which a randomised table shows anyway: it has as many
rows. So R is public here, tables are compared by *replacing* a record, and a retention found from k may use it.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from incrowd.errors import GuaranteeError, UnreachableError
from incrowd.guarantees import randomisation
from incrowd.guarantees.randomisation import Attribute, RetentionReplacement, TransitionMatrix
from incrowd.guarantees.shuffling import LOCAL, central_delta, central_epsilon
from incrowd.mechanisms.pram import Block, Rows, as_drawn

_MOST_SPENT = 700.0  # e to this is about the largest number there is


@dataclass(frozen=True)
class Wish:
    """A block as a policy asks for it: redrawn by these rows, kept with this ρ, or with its part of what k and ε allow.

    Attributes:
        names: its columns.
        sizes: how many values each has.
        rows: a matrix.
        rho: the retention.
        weight: its part of ε, relative to the others'; None for the same ρ as all others.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    rows: Rows | None = None
    rho: float | None = None
    weight: float | None = None

    @property
    def size(self) -> int:
        """How many combinations of values there are."""
        return math.prod(self.sizes)


def needs_records(wishes: Sequence[Wish], k: float | None) -> bool:
    """Whether what is kept depends on the number of records."""
    return k is not None and any(wish.rows is None and wish.rho is None for wish in wishes)


def solve(wishes: Sequence[Wish], k: float | None, epsilon: float | None, records: int) -> tuple[Block, ...]:
    """Blocks that keep what is asked for: Pk and the local ε, each if given (Ikarashi et al., Algorithms 1-3).

    Matrices are taken as they are, and what they leave of k and ε is given to the others: the same ρ for all of them,
    or ε in proportion to their weights. Retentions are rounded down to what is drawn, which keeps every promise.

    Raises:
        GuaranteeError: the matrices alone fall short of k or spend more than ε.
        UnreachableError: there are fewer than k records.
    """
    fixed = [_fixed(wish) for wish in wishes]
    free = [wish for wish, law in zip(wishes, fixed, strict=True) if law is None]

    def laws(retentions: Sequence[float]) -> list[Attribute]:
        found = iter(retentions)
        return [
            RetentionReplacement(as_drawn(next(found)), wish.size) if law is None else law
            for wish, law in zip(wishes, fixed, strict=True)
        ]

    def kept(retentions: Sequence[float]) -> bool:
        return _keep(laws(retentions), k, epsilon, records)

    if not kept([0.0] * len(free)):
        if k is not None and k > records:
            randomisation.retention_for_k(k, records, [wish.size for wish in wishes])  # refuses it
        raise _falls_short([law for law in fixed if law is not None], k, epsilon, records)
    chosen = _retentions(free, k, epsilon, records, kept) if free else ()
    return tuple(Block(wish.names, wish.sizes, law) for wish, law in zip(wishes, laws(chosen), strict=True))


def _fixed(wish: Wish) -> Attribute | None:
    """How a block is redrawn if the policy says so itself."""
    if wish.rows is not None:
        return TransitionMatrix(wish.rows)
    return None if wish.rho is None else RetentionReplacement(as_drawn(wish.rho), wish.size)


def keeps(blocks: Sequence[Block], k: float | None, epsilon: float | None, records: int) -> bool:
    """Whether blocks reach the Pk and the local ε that are asked for."""
    return _keep([block.law for block in blocks], k, epsilon, records)


def _keep(laws: Sequence[Attribute], k: float | None, epsilon: float | None, records: int) -> bool:
    return (epsilon is None or randomisation.local_epsilon(laws) <= epsilon) and (
        k is None or randomisation.pk(laws, records) >= k
    )


def _retentions(
    wishes: Sequence[Wish],
    k: float | None,
    epsilon: float | None,
    records: int,
    kept: Callable[[Sequence[float]], bool],
) -> Sequence[float]:
    """The largest retentions that are kept, as zeros are: all the same, or spending ε in proportion to weights."""
    sizes = [wish.size for wish in wishes]
    if all(wish.weight is None for wish in wishes):
        return _largest(lambda share: [share] * len(sizes), kept)
    weights = [1.0 if wish.weight is None else wish.weight for wish in wishes]
    most = _MOST_SPENT if epsilon is None else min(epsilon, _MOST_SPENT)
    if k is not None and k > 1:
        # k = 1 + (R−1)e^(−2ε) for retention-replacement, whatever the domains; matrices leave less than that
        most = min(most, math.log((records - 1) / (k - 1)) / 2)
    return _largest(lambda share: randomisation.retentions_by_weight(share * most, sizes, weights), kept)


def _largest(
    retentions: Callable[[float], Sequence[float]], kept: Callable[[Sequence[float]], bool]
) -> Sequence[float]:
    """Retentions that grow with a share between 0 and 1, for the largest share found by bisection to be kept.

    A share of 0 is kept.
    """
    low, high = 0.0, 1.0
    if kept(found := retentions(high)):
        return found
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if kept(retentions(middle)) else (low, middle)
    return retentions(low)


def _falls_short(fixed: Sequence[Attribute], k: float | None, epsilon: float | None, records: int) -> GuaranteeError:
    spent, reached = randomisation.local_epsilon(fixed), randomisation.pk(fixed, records)
    asked = " and ".join(
        text for text in (k and f"k = {k:g}", epsilon and f"epsilon = {epsilon:g}") if isinstance(text, str)
    )
    return GuaranteeError(
        f"The matrices given reach k = {reached:.6g} and epsilon = {spent:.6g} by themselves, not {asked}.",
        code="promise-not-kept",
        remedy="Move their rows closer to each other, or ask for less.",
        details={"k": reached, "epsilon": spent if math.isfinite(spent) else None},
    )


def uncertain(blocks: Sequence[Block]) -> float:
    """The local ε, if it is finite: no released value rules out that it was another.

    Raises:
        UnreachableError: it is not, so that nothing at all could be said for the people of the table.
    """
    local = randomisation.local_epsilon([block.law for block in blocks])
    if math.isinf(local):
        raise UnreachableError(
            "A value would be published with certainty, or rule out others: a retention is 1, or a matrix has a zero "
            "where its column has not. Such a table promises nothing.",
            code="unreachable",
            remedy="Let every value turn into every other with some probability, however small.",
        )
    return local


@dataclass(frozen=True)
class PramPromise:
    """What a randomised table promises, each number rounded to the safe side.

    Attributes:
        records: R, the number of records that k and the central promise need, at least.
        k: nobody is linked to a record with a probability above 1/k (Theorem 3, Corollary 4).
        local_epsilon: ε₀ for whoever sees one randomised record and knows whose it is (Theorem 1).
        epsilon: ε for whoever sees the shuffled table.
        delta: its δ.
        bound: which proof gives ε.
    """

    records: int
    k: float
    local_epsilon: float
    epsilon: float
    delta: float
    bound: str

    @classmethod
    def of(cls, blocks: Sequence[Block], records: int, delta: float) -> PramPromise:
        """The promise of these blocks. The searched ε is rounded up, so that anyone who computes δ at it finds less."""
        laws, local = [block.law for block in blocks], uncertain(blocks)
        central = central_epsilon(laws, records, delta)
        epsilon, bound = rounded(central.epsilon, decimal.ROUND_CEILING), central.bound
        least = rounded(local, decimal.ROUND_CEILING, 12)
        if epsilon >= local:  # as after rounding: then it is the promise for one record that gives it
            epsilon, bound = least, LOCAL
        return cls(
            records=records,
            k=rounded(randomisation.pk(laws, records), decimal.ROUND_FLOOR, 12),
            local_epsilon=least,
            epsilon=epsilon,
            delta=delta,
            bound=bound,
        )

    def holds(self, blocks: Sequence[Block]) -> Mapping[str, bool]:
        """Whether each part of the promise follows from the blocks, computed once more, by the proof that is named."""
        laws = [block.law for block in blocks]
        central = central_delta(laws, self.records, self.epsilon)
        return {
            "k": 1 <= self.k <= randomisation.pk(laws, self.records),
            "local epsilon": randomisation.local_epsilon(laws) <= self.local_epsilon,
            "epsilon and delta": central.by_bound.get(self.bound, 1.0) <= self.delta,
        }


def rounded(value: float | Decimal, rounding: str, digits: int = 6) -> float:
    """A number with few digits, on the safe side.

    The decimal number is not beyond the value, and taking the nearest floating-point number keeps that order.
    """
    with decimal.localcontext(decimal.Context(prec=digits, rounding=rounding)):
        return float(+Decimal(value))
