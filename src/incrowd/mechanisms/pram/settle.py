"""How much is kept, from what a policy asks for; and what that promises.

The promises about the whole table need the number of records R, which a randomised table shows anyway: it has as many
rows. So R is public here, tables are compared by *replacing* a record, and a retention found from k may use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from incrowd.core.errors import DataError, GuaranteeError, PolicyError, UnreachableError
from incrowd.core.numbers import as_given, few_digits, number, number_up
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.marginals import Counted
from incrowd.mechanisms.already_sampled import require_one_use
from incrowd.mechanisms.base import (
    Concern,
    Tell,
    fixed_levels,
)
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.pram.blocks import Block, Rows, as_drawn, backward, fold
from incrowd.mechanisms.pram.matrices import rows_of
from incrowd.mechanisms.pram.section import LARGEST_MATRIX, MatrixFile, Pram
from incrowd.mechanisms.promises import LARGEST_EPSILON, Point, Uncomposable
from incrowd.policy import Policy
from incrowd.theory import randomisation
from incrowd.theory.profile import Relation
from incrowd.theory.randomisation import Attribute, RetentionReplacement, TransitionMatrix, local_epsilon
from incrowd.theory.shuffling import LOCAL, group_delta, group_epsilon

By = Literal["curator", "respondents"]
"""Who has randomised."""

_WEAK = 1.25  # a k with which a person is found four times in five
FEWEST = 2
"""Nobody can hide in a table of one record."""

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
        text
        for text in (k and f"k = {as_given(k)}", epsilon and f"epsilon = {as_given(epsilon)}")
        if isinstance(text, str)
    )
    return GuaranteeError(
        f"The matrices given reach k = {as_given(reached)} and epsilon = {as_given(spent)} by themselves, not {asked}.",
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
        rows: how many records one person has at most. The ε's and δ are about all of them; k is about each.
        rate: the probability with which each of the R records is in the table.
        linked: the number of records that k needs, if that is not R: those published, if they are a sample.
    """

    records: int
    k: float
    local_epsilon: float
    epsilon: float
    delta: float
    bound: str
    rows: int = 1
    rate: float = 1.0
    linked: int | None = None

    @classmethod
    def of(cls, blocks: Sequence[Block], records: int, delta: float, rows: int = 1, rate: float = 1.0) -> PramPromise:
        """The promise of these blocks. The searched ε is rounded up, so that anyone who computes δ at it finds less."""
        laws, local = [block.law for block in blocks], rows * uncertain(blocks)
        central = group_epsilon(laws, records, delta, rows, rate)
        epsilon, bound = few_digits(central.epsilon, 6, up=True), central.bound
        least = few_digits(local, 12, up=True)
        if epsilon >= local:  # as after rounding: then it is the promise for one record that gives it
            epsilon, bound = least, LOCAL
        linked = None if rate == 1 else FEWEST
        return cls(
            records=records,
            k=few_digits(randomisation.pk(laws, linked or records), 12, up=False),
            local_epsilon=least,
            epsilon=epsilon,
            delta=delta,
            bound=bound,
            rows=rows,
            rate=rate,
            linked=linked,
        )

    def published(self, blocks: Sequence[Block], records: int) -> PramPromise:
        """The same once it is known how many records are published: on them k depends, if they are a sample."""
        if self.linked is None:
            return self
        k = randomisation.pk([block.law for block in blocks], records)
        return replace(self, k=few_digits(k, 12, up=False), linked=records)

    def holds(self, blocks: Sequence[Block]) -> Mapping[str, bool]:
        """Whether each part of the promise follows from the blocks, computed once more, by the proof that is named."""
        laws = [block.law for block in blocks]
        central = group_delta(laws, self.records, self.epsilon, self.rows, self.rate)
        return {
            "k": 1 <= self.k <= randomisation.pk(laws, self.linked or self.records),
            "local epsilon": self.rows * randomisation.local_epsilon(laws) <= self.local_epsilon,
            "epsilon and delta": central.by_bound.get(self.bound, 1.0) <= self.delta,
        }


@dataclass(frozen=True, eq=False)
class PramSettled:
    """What a policy asks for and, once the number of records is known, what is done and promised.

    Attributes:
        section: the policy's.
        attributes: the columns.
        levels: the level at which each is shown.
        wishes: the blocks as asked for.
        blocks: the blocks as they are redrawn; none before the table was counted.
        promise: what that promises; None before the table was counted, and for invariant PRAM.
        records: the number of records; 0 before the table was counted.
        by: who redraws.
        persons: whose the records are.
    """

    section: Pram
    attributes: Sequence[CodedAttribute]
    levels: Mapping[str, int]
    wishes: tuple[Wish, ...]
    blocks: tuple[Block, ...] = ()
    promise: PramPromise | None = None
    records: int = 0
    by: By = "curator"
    persons: Persons = field(default_factory=Persons)

    @property
    def epsilon(self) -> float | None:
        """The local ε that each record may have, if the policy gives one: that of a person is the sum over records."""
        return each_of(self.section.epsilon, self.persons)

    @property
    def rate(self) -> float:
        """The probability with which each record is redrawn and published, as it is drawn."""
        return 1.0 if self.section.beta is None else as_drawn(self.section.beta)

    @property
    def drawn_rate(self) -> float:
        """The same as far as the table is concerned: a table that is itself a sample is redrawn as a whole."""
        return 1.0 if self.section.already_sampled else self.rate

    def published(self, records: int) -> PramSettled:
        """The same once it is known how many records are published."""
        if self.promise is None or self.section.beta is None:
            return self
        return replace(self, records=records, promise=self.promise.published(self.blocks, records))


def each_of(epsilon: float | None, persons: Persons) -> float | None:
    """The share of one record in what all records of a person may have, rounded down."""
    if epsilon is None or not persons.several:
        return epsilon
    return math.nextafter(epsilon / persons.at_most, 0.0)


def settle(section: Pram, policy: Policy, attributes: Sequence[CodedAttribute], copies: int = 1) -> PramSettled:
    """What the policy asks for, without any number of records unless the policy declares it."""
    if section.already_sampled:
        require_one_use(policy, copies)
    levels = {a.name: 0 for a in attributes} | fixed_levels(policy, attributes)
    labels = {a.name: a.hierarchy.recode(levels[a.name]).labels for a in attributes}
    for name, texts in labels.items():
        if len(texts) < 2:
            raise PolicyError(
                f"Attribute {name}: at level {levels[name]} it has one value, so there is nothing to be redrawn.",
                code="policy-invalid",
                remedy="Choose a lower level, or drop it.",
                details={"attribute": name},
            )
    sizes = {name: len(texts) for name, texts in labels.items()}
    wishes = tuple(_wishes(section, sizes, partial(_matrix, policy, labels)))
    if section.invariant and any(wish.size > LARGEST_MATRIX for wish in wishes):
        raise PolicyError(
            f"An attribute, alone or joint, has more than {LARGEST_MATRIX:,} values: too many to be made invariant.",
            code="domain-large",
            remedy="Show it more coarsely.",
        )
    settled = PramSettled(section, attributes, levels, wishes, persons=Persons.in_policy(policy))
    if not settled.rate:
        raise PolicyError(
            "beta is below 2**-64, to which it is rounded down: no record would ever be published.",
            code="policy-invalid",
            remedy="Give a larger beta.",
        )
    if section.records is not None:
        _decide(settled, section.records)  # what can be refused without the table is refused before it is read
    return settled


def _matrix(
    policy: Policy, labels: Mapping[str, Sequence[str | None]], names: tuple[str, ...], spec: Rows | MatrixFile
) -> Rows:
    called = f"Attribute {names[0]}" if len(names) == 1 else f"The joint attribute of {' and '.join(names)}"
    size = math.prod(len(labels[name]) for name in names)
    return rows_of(spec, policy.base, size, labels[names[0]] if len(names) == 1 else None, called)


def _wishes(
    section: Pram, sizes: Mapping[str, int], rows: Callable[[tuple[str, ...], Rows | MatrixFile], Rows]
) -> Iterator[Wish]:
    """The blocks that a policy asks for: attributes by themselves, then joint ones.

    Args:
        section: the policy's.
        sizes: how many values each attribute has.
        rows: how to get at a matrix that the policy names.
    """
    weighted = bool(section.importance) or any(one.importance is not None for one in section.joint)
    each = section.rho if isinstance(section.rho, Mapping) else {}
    rho = None if isinstance(section.rho, Mapping) else section.rho
    asked: list[tuple[tuple[str, ...], Any, float | None, float | None]] = [
        ((name,), section.matrix.get(name), each.get(name, rho), section.importance.get(name))
        for name in section.alone(sizes)
    ]
    asked += [(one.of, one.matrix, rho if one.rho is None else one.rho, one.importance) for one in section.joint]
    for names, matrix, kept, weight in asked:
        own = tuple(sizes[name] for name in names)
        if matrix is not None:
            yield Wish(names, own, rows(names, matrix))
        else:
            yield Wish(names, own, rho=kept, weight=(1.0 if weight is None else weight) if weighted else None)


def _decide(settled: PramSettled, records: int) -> PramSettled:
    """The same with blocks and promise, for so many records."""
    section = settled.section
    blocks = solve(settled.wishes, section.k, settled.epsilon, records)
    uncertain(blocks)  # invariant PRAM promises nothing, but it does redraw
    rows = settled.persons.at_most
    promise = None if section.invariant else PramPromise.of(blocks, records, section.delta, rows, settled.rate)
    if promise is not None and promise.epsilon > LARGEST_EPSILON:
        raise UnreachableError(
            f"So much is kept that epsilon is above {as_given(LARGEST_EPSILON)}, even for the shuffled table.",
            code="unreachable",
            remedy="Keep less: that would promise nothing.",
        )
    return replace(settled, blocks=blocks, promise=promise)


def prepare(settings: PramSettled, table: Histogram, tell: Tell) -> tuple[PramSettled, Histogram]:
    """Count the records, which decides what is promised."""
    tell("solving", 0.0)
    recodes = {a.name: a.hierarchy.recode(settings.levels[a.name]) for a in settings.attributes}
    shown = table.recode({name: recode for name, recode in recodes.items() if settings.levels[name]})
    return completed(decided(settings, shown.total), shown), shown


def decided(settings: PramSettled, records: int) -> PramSettled:
    """The same for a table of so many records: how values are redrawn, but for a second step, and what that promises.

    Raises:
        DataError: they are too few.
        GuaranteeError: nothing can be promised about them.
    """
    declared = settings.section.records
    needed = FEWEST if settings.section.already_sampled else declared or FEWEST
    if records < needed:
        raise DataError(
            f"The promise needs {needed:,} records at least, and there are fewer.",
            code="data-empty",
            remedy="Nobody can hide in a table of one record; use a larger one."
            if records < FEWEST
            else "Declare fewer 'records', or leave the key out to have the promise found for those there are.",
            details={"needed": needed},
        )
    if settings.section.already_sampled and declared and not likely_sample(records, declared, settings.rate):
        raise DataError(
            f"A sample of {declared:,} people at this rate would have many more records than the table.",
            code="parameter-combination",
            remedy="Correct 'records' or 'beta': the table is not such a sample.",
        )
    return replace(_decide(settings, declared or records), records=records)


def likely_sample(found: int, people: int, rate: float) -> bool:
    """Whether a sample may be so small: by Chernoff's bound, P[Bin(people, rate) ≤ found] ≤ e^{−people·KL}.

    A sample so small that its probability is below one in 10⁹ is believed to be no sample of so many.
    """
    share = found / people
    if share >= rate:
        return True
    divergence = share * math.log(share / rate) + (1 - share) * math.log((1 - share) / (1 - rate))
    return people * divergence <= math.log(1e9)


def completed(settings: PramSettled, table: Counted) -> PramSettled:
    """The same with the second step of invariant PRAM, which is computed from the table at the published levels."""
    if not settings.section.invariant:
        return settings
    blocks = tuple(replace(b, back=backward(b, _marginal(table, b))) for b in settings.blocks)
    return replace(settings, blocks=blocks)


def _marginal(table: Counted, block: Block) -> list[int]:
    shares = table.project(block.names)
    counts = np.zeros(block.size, dtype=np.int64)
    counts[fold([shares[name].codes for name in block.names], block.sizes)] = shares.counts
    found: list[int] = counts.tolist()
    return found


def in_short(settings: PramSettled) -> str:
    """What is kept, and the ε of one record."""
    laws = [block.law for block in settings.blocks]
    kept = [law.retention for law in laws if isinstance(law, RetentionReplacement)]
    rho = f"ρ = {number(min(kept), 3)}, " if kept else ""
    return f"{rho}local ε = {number_up(local_epsilon(laws), 3)}"


def spending(settings: PramSettled) -> Point | Uncomposable:
    """The central promise; invariant PRAM promises nothing that could be added up."""
    if settings.promise is None:
        return Uncomposable("invariant PRAM: no promise")
    return Point(settings.promise.epsilon, settings.promise.delta, Relation.REPLACE_ONE)


def concerns(settings: PramSettled, table: Counted) -> Iterator[Concern]:
    """A promise that hardly is one, and a table that tells nothing."""
    expected = max(round(settings.drawn_rate * table.total), FEWEST)
    settled = settings.published(expected)  # of a sample, k depends on how many are drawn
    if settled.promise is not None and settled.promise.k < _WEAK:
        yield Concern(
            "weak-promise",
            None,
            "Somebody who looks for a person's record finds it with a probability of up to 1/k = "
            f"{number_up(1 / settled.promise.k, 3)}. Choose a smaller rho, or a k, until 1/k is what you can answer "
            "for.",
        )
    if settled.blocks and all(_error(block, expected) > 1 for block in settled.blocks):
        yield Concern(
            "tells-nothing",
            None,
            "Values are redrawn so often that the count of every value has a standard error as large as itself. Choose "
            "a larger rho, show columns more coarsely, or redraw more records.",
        )


def _error(block: Block, records: int) -> float:
    """The standard error of the count of a value, over that count, if all values were as frequent; 0 for a matrix.

    Such a count is estimated as (y − (1−ρ)·n/m)/ρ, with y ~ Bin(n, 1/m).
    """
    law = block.law
    if not isinstance(law, RetentionReplacement):
        return 0.0
    return math.sqrt((law.size - 1) / records) / law.retention if law.retention else math.inf
