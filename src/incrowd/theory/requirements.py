"""What a generalized table must keep to be published: k, ℓ, α, t, β, δ and belief ratios, each with its limit.

A requirement is decided on an array of counts with one row per group and one column per value of the declared
sensitive domain (`KAnonymity` looks at the sizes of the groups only, so any array with the right row sums will do).
Rows without records are no groups and never fail.

**What a search may conclude from one table about others.**

`monotone`: a table that keeps the requirement still keeps it after any of its groups are merged. True for all of them
here. A merged group's shares are a weighted mean of its parts' shares, and the shares of the whole table stay as they
are; so whatever a mean of satisfying shares satisfies is monotone: shares of at most α, an earth mover's distance of
at most t (convex), gains of at most β, q_s/p_s strictly between e^−δ and e^δ, an entropy of at least ln ℓ (concave).
Sizes and numbers of different values only grow. (c,ℓ): the largest count of a union is at most the sum of the largest
counts, and so are the ℓ − 1 largest together, hence the rest is at least the sum of the rests. Belief ratios: see
`incrowd.theory.beliefs`.

`survives_any_merge`: a *group* that keeps it still does after it is merged with any other group, also with one that
does not. Then a coarser table has no more records in failing groups, so the least suppression never rises. True of
sizes and of numbers of different values only. The others fail with the group {s: 1, r: 1}, which a large group of s
alone drowns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from incrowd.core.errors import ParameterError
from incrowd.core.numbers import as_given
from incrowd.theory._groups import Flags, Floats, GroupTable, Integers, as_written, group_table, written_as
from incrowd.theory._numbers import EPSILON_MACHINE, require_count
from incrowd.theory.adversaries import Adversary, AdversaryClass
from incrowd.theory.beliefs import (
    BeliefAudit,
    Predicates,
    Statements,
    belief_ratio,
    belief_scores,
    outlooks_of,
    p_in,
)
from incrowd.theory.syntactic import (
    Measure,
    beta_likeness,
    beyond_cap,
    change_scores,
    delta_disclosure,
    distance_scores,
    distinct_l_diversity,
    entropies,
    entropy_error,
    entropy_l_diversity,
    even,
    gain_caps,
    k_anonymity,
    largest_share,
    log_of,
    ratio_scores,
    recursion_scores,
    recursive_l_diversity,
    share_scores,
    t_closeness,
)
from incrowd.theory.transport import Distance, cost

MOST_VALUES = 10_000
"""A sensitive domain with more values than this is refused: every group is compared with each of them."""

MOST_NEGATED = 1_000
"""With more values than this, only single values are statements: negated ones are as long as the domain."""

Limit = float | Fraction


class Bound(NamedTuple):
    """What a set of values has at most of a group: the sum of their shares, and one share more.

    Attributes:
        shares: one for each value.
        more: the other one.
        kind: if given, of which kind each value is; then shares and sets are of kinds.
    """

    shares: Floats
    more: float = 0.0
    kind: Integers | None = None


class Requirement(ABC):
    """A measure and its limit, which is the first field of each of the frozen dataclasses below.

    Whether a group keeps it is written down twice. `keeps` is the definition, for one group, on whole numbers and
    fractions. `fails` decides about all groups of a table at once: in floating point where that is far enough from the
    limit to be sure, and exactly where it is not. Both always agree.

    Attributes:
        monotone: merging groups of a table that keeps it gives a table that keeps it.
        survives_any_merge: a group that keeps it does so after a merge with any other group.
        about_values: it is about sensitive values, not only about the sizes of groups.
        about_whole: whether a group fails depends on the other groups, too.
    """

    monotone: ClassVar[bool] = True
    survives_any_merge: ClassVar[bool] = False
    about_values: ClassVar[bool] = True
    about_whole: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """What is required, in plain words; free of data."""

    @property
    def limit(self) -> Limit:
        """What the measure is held against: the first field."""
        limit: Limit = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return limit

    @cached_property
    def low(self) -> Fraction:
        """The limit, or the decimal that it was written as, whichever is lower."""
        return written_as("the limit", self.limit)[0]

    @cached_property
    def high(self) -> Fraction:
        """The higher one of the two."""
        return written_as("the limit", self.limit)[1]

    @abstractmethod
    def keeps(self, group: Sequence[int], whole: Sequence[int]) -> bool:
        """Whether a group with these records of each value keeps it, in a table with those of each value."""

    @abstractmethod
    def fails(self, table: GroupTable) -> Flags:
        """Which groups with records do not keep it."""

    def bounds(self, sizes: Integers, whole: Floats) -> list[Bound]:  # noqa: ARG002
        """What is known of the shares of values in groups that keep it, up to rounding.

        Such groups, merged, have no larger shares either. So it tells how many records of a group must be lost however
        that is split: see `recoding.demands.least_lost`.

        Args:
            sizes: the largest number of records of each group, as a column.
            whole: the largest share that each value can have of what is published.
        """
        return []

    @abstractmethod
    def measure(self, counts: npt.ArrayLike, *, per_group: bool = False) -> Measure | BeliefAudit:
        """The measure of a table and its worst group, whatever the limit."""

    def failing(self, counts: npt.ArrayLike) -> Flags:
        """Which rows of a table of counts are groups that fail."""
        table = group_table(counts)
        flags = np.zeros(table.given, dtype=np.bool_)
        flags[table.rows] = self.fails(table)
        return flags

    def holds(self, counts: npt.ArrayLike) -> bool:
        """Whether every group of a table keeps it."""
        return not self.fails(group_table(counts)).any()


@dataclass(frozen=True)
class KAnonymity(Requirement):
    """Every group has at least k records; if a person may have several of them, so many that it has `people` people.

    Attributes:
        k: how many.
        people: how many people that makes, where records are counted and a person may have several.
        counted: whether people are counted, and not records.
    """

    k: int
    people: int | None = None
    counted: bool = False
    survives_any_merge: ClassVar[bool] = True
    about_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", require_count("k", self.k))

    @property
    def name(self) -> str:
        if self.counted:
            return f"groups of at least {self.k} people, counted"
        return f"groups of at least {self.k} records" + (
            "" if self.people is None else f", and so of at least {self.people} people"
        )

    @classmethod
    def of_people(cls, people: int, rows: int) -> KAnonymity:
        """A group of more than m·(k−1) rows has at least k people, if none of them has more than m."""
        return cls(people) if rows == 1 else cls(rows * (require_count("k", people) - 1) + 1, people)

    def keeps(self, group: Sequence[int], whole: Sequence[int]) -> bool:  # noqa: ARG002
        return sum(group) >= self.k

    def fails(self, table: GroupTable) -> Flags:
        return table.sizes < self.k

    def measure(self, counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
        return k_anonymity(counts, per_group=per_group)


@dataclass(frozen=True)
class DistinctDiversity(Requirement):
    """Every group has at least ℓ different values."""

    l: int  # noqa: E741 - the literature's name
    survives_any_merge: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", require_count("l", self.l))

    @property
    def name(self) -> str:
        return f"at least {self.l} different values in every group"

    def keeps(self, group: Sequence[int], whole: Sequence[int]) -> bool:  # noqa: ARG002
        return sum(count > 0 for count in group) >= self.l

    def fails(self, table: GroupTable) -> Flags:
        flags: Flags = np.count_nonzero(table.cells, axis=1) < self.l
        return flags

    def measure(self, counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
        return distinct_l_diversity(counts, per_group=per_group)


@dataclass(frozen=True)
class EntropyDiversity(Requirement):
    """Every group has an entropy of at least ln ℓ."""

    l: Limit  # noqa: E741

    def __post_init__(self) -> None:
        _require("l", self.l, 1)

    @property
    def name(self) -> str:
        return f"the entropy of {_plain(self.l)} equally frequent values in every group"

    def keeps(self, group: Sequence[int], whole: Sequence[int]) -> bool:  # noqa: ARG002
        """By −Σ q ln q; exactly for equally frequent values, and else not if it is too near to tell."""
        there, size = [count for count in group if count], sum(group)
        if len(set(there)) == 1:
            return len(there) >= self.low
        found = math.exp(-math.fsum(count / size * math.log(count / size) for count in there))
        return Fraction(found) * (1 - 2 * Fraction(entropy_error(len(group)))) >= self.low

    def fails(self, table: GroupTable) -> Flags:
        """By their entropies; those near the limit by the definition."""
        found, limit, margin = entropies(table), float(self.l), 8 * entropy_error(table.values)
        flags: Flags = found < limit
        near = np.flatnonzero(np.abs(found - limit) <= margin * limit)
        if len(near):
            flat = even(table.cells[near])
            flags[near[flat]] = np.count_nonzero(table.cells[near[flat]], axis=1) < math.ceil(self.low)
            for row in near[~flat]:
                flags[row] = not self.keeps(table.cells[row].tolist(), ())
        return flags

    def bounds(self, sizes: Integers, whole: Floats) -> list[Bound]:  # noqa: ARG002
        """A share a leaves an entropy of at most h(a) + (1 − a)·ln(K − 1), the others being alike."""
        low, high, others = 1 / (len(whole) + 1), 1.0, math.log(max(len(whole) - 1, 1))
        while high - low > 1e-9:  # the bound falls from 1/K on, and is too low at `high`
            a = (low + high) / 2
            most = -a * math.log(a) - (1 - a) * (math.log1p(-a) - others)
            low, high = (a, high) if a * len(whole) <= 1 or most >= math.log(self.l) - 1e-12 else (low, a)
        return [Bound(np.full(len(whole), high))]

    def measure(self, counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
        return entropy_l_diversity(counts, per_group=per_group)


@dataclass(frozen=True)
class RecursiveDiversity(Requirement):
    """Every group's most frequent value has fewer records than c times all but its ℓ − 1 most frequent together."""

    c: Limit
    l: int  # noqa: E741

    def __post_init__(self) -> None:
        _require("c", self.c, 0, open_low=True)
        object.__setattr__(self, "l", require_count("l", self.l, least=2))

    @property
    def name(self) -> str:
        return f"recursive ({_plain(self.c)}, {self.l})-diversity"

    def keeps(self, group: Sequence[int], whole: Sequence[int]) -> bool:  # noqa: ARG002
        first, *others = sorted(group, reverse=True)
        return first < self.low * sum(others[self.l - 2 :])

    def fails(self, table: GroupTable) -> Flags:
        scores = recursion_scores(table, self.l)
        return scores.beyond(float(self.c), lambda at, clue: _below(scores.exact(at, clue), self.low))

    def bounds(self, sizes: Integers, whole: Floats) -> list[Bound]:  # noqa: ARG002
        """The most frequent value has fewer records than c times the others."""
        return [Bound(np.full(len(whole), float(self.c) / (1 + float(self.c))))]

    def measure(self, counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
        """The c that must be exceeded."""
        return recursive_l_diversity(counts, self.l, per_group=per_group)


@dataclass(frozen=True)
class LargestShare(Requirement):
    """No sensitive value (or none of these columns) has more than a share α of any group.

    Together with `KAnonymity` this is (α,k)-anonymity.
    """

    alpha: Limit
    values: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        _require("alpha", self.alpha, 0, 1, open_low=True)

    @property
    def name(self) -> str:
        which = "value" if self.values is None else "named value"
        return f"no {which} with a share above {_plain(self.alpha)} of any group"

    def keeps(self, group: Sequence[int], whole: Sequence[int]) -> bool:  # noqa: ARG002
        named = range(len(group)) if self.values is None else self.values
        return all(group[value] <= self.high * sum(group) for value in named)

    def fails(self, table: GroupTable) -> Flags:
        scores = share_scores(table, self.values)
        return scores.beyond(float(self.alpha), lambda at, clue: _at_most(scores.exact(at, clue), self.high))

    def bounds(self, sizes: Integers, whole: Floats) -> list[Bound]:  # noqa: ARG002
        """The limit itself."""
        named = np.isin(np.arange(len(whole)), range(len(whole)) if self.values is None else self.values)
        return [Bound(np.where(named, float(self.alpha), 1.0))]

    def measure(self, counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
        return largest_share(counts, self.values, per_group=per_group)


@dataclass(frozen=True)
class TCloseness(Requirement):
    """No group is farther than t from the whole table."""

    t: Limit
    distance: Distance = "equal"
    about_whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _require("t", self.t, 0, 1)

    @property
    def name(self) -> str:
        kind = self.distance if isinstance(self.distance, str) else "hierarchical"
        return f"t-closeness with t = {_plain(self.t)} ({kind} distance)"

    def keeps(self, group: Sequence[int], whole: Sequence[int]) -> bool:
        """By the cost of moving the difference of the shares."""
        shares = zip(group, whole, strict=True)
        surplus = [Fraction(count, sum(group)) - Fraction(overall, sum(whole)) for count, overall in shares]
        return cost(self.distance, surplus) <= self.high

    def fails(self, table: GroupTable) -> Flags:
        scores = distance_scores(table, self.distance, table.totals)
        return scores.beyond(float(self.t), lambda at, clue: _at_most(scores.exact(at, clue), self.high))

    def bounds(self, sizes: Integers, whole: Floats) -> list[Bound]:  # noqa: ARG002
        """A surplus of some values is moved at least as far as two values are apart.

        In a tree of height H that of some subtrees, of height h, is moved to others: (h + 1)/H at least.
        """
        t = float(self.t)
        if self.distance == "equal":
            return [Bound(whole, t)]
        if self.distance == "ordered":
            return [Bound(whole, t * (len(whole) - 1))]
        found, height = [Bound(whole, t * len(self.distance))], len(self.distance)
        for number, level in enumerate(self.distance[:-1], start=2):
            kind = np.unique(np.asarray(level), return_inverse=True)[1]
            found.append(Bound(np.bincount(kind, weights=whole).astype(np.float64), t * height / number, kind))
        return found

    def measure(self, counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
        return t_closeness(counts, self.distance, per_group=per_group)


@dataclass(frozen=True)
class BetaLikeness(Requirement):
    """No value's share of a group exceeds its share of the table by more than β times the latter."""

    beta: Limit
    enhanced: bool = False
    about_whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _require("beta", self.beta, 0)

    @property
    def name(self) -> str:
        return f"{'enhanced ' if self.enhanced else ''}β-likeness with β = {_plain(self.beta)}"

    def keeps(self, group: Sequence[int], whole: Sequence[int]) -> bool:
        """By each gain (q − p)/p, and its own limit −ln p if enhanced."""
        size, total, caps = sum(group), sum(whole), gain_caps(whole)
        return all(
            self._allows(Fraction(count * total, size * overall) if overall else None, cap)
            for count, overall, cap in zip(group, whole, caps, strict=True)
            if count
        )

    def fails(self, table: GroupTable) -> Flags:
        """By the quotients q/p, each with its own limit."""
        whole, most = table.totals, float(1 + self.high)
        scores = ratio_scores(table, whole)
        if not self.enhanced:
            return scores.beyond(most, lambda at, clue: self._allows(scores.exact(at, clue)))
        caps = gain_caps(whole)
        limits = np.where(caps > 1, np.minimum(most, caps), most)
        return scores.beyond(limits, lambda at, clue: self._allows(scores.exact(at, clue), caps[at]))

    def _allows(self, ratio: Fraction | None, cap: float = math.inf) -> bool:
        return ratio is not None and ratio - 1 <= self.high and not (self.enhanced and beyond_cap(ratio, cap))

    def bounds(self, sizes: Integers, whole: Floats) -> list[Bound]:  # noqa: ARG002
        """(1 + β)·p; if enhanced, p·(1 − ln p) besides, which grows with p up to 1."""
        most = (1 + float(self.beta)) * whole
        if self.enhanced:
            most = np.minimum(most, whole * (1 - np.log(np.maximum(whole, 1e-300))))
        return [Bound(most)]

    def measure(self, counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
        return beta_likeness(counts, enhanced=self.enhanced, per_group=per_group)


@dataclass(frozen=True)
class DeltaDisclosure(Requirement):
    """Every |ln(share in a group / share in the table)| is below δ."""

    delta: Limit
    about_whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _require("delta", self.delta, 0, open_low=True)

    @property
    def name(self) -> str:
        return f"δ-disclosure privacy with δ = {_plain(self.delta)}"

    def keeps(self, group: Sequence[int], whole: Sequence[int]) -> bool:
        """By each |ln(q/p)|; not if it is too near to tell."""
        size, total = sum(group), sum(whole)
        for count, overall in zip(group, whole, strict=True):
            if count or overall:
                ratio = Fraction(count * total, size * overall) if overall else None
                if not ratio or not log_of(max(ratio, 1 / ratio)).satisfies(self.delta):
                    return False
        return True

    def fails(self, table: GroupTable) -> Flags:
        """By the quotients q/p and p/q, held against e^δ."""
        scores, delta = change_scores(table, table.totals), float(self.delta)
        limit = math.exp(delta) if delta < 700 else math.inf
        error = 32 * (1 + delta) * EPSILON_MACHINE
        return scores.beyond(limit, lambda at, clue: log_of(scores.exact(at, clue)).satisfies(self.delta), error)

    def bounds(self, sizes: Integers, whole: Floats) -> list[Bound]:  # noqa: ARG002
        """Less than e^δ·p; and what is left by the others, which have more than e^−δ times theirs: 1 − e^−δ·(1 − p)."""
        change = math.exp(min(float(self.delta), 700.0))
        return [Bound(change * whole), Bound(whole / change, 1 - 1 / change)]

    def measure(self, counts: npt.ArrayLike, *, per_group: bool = False) -> Measure:
        return delta_disclosure(counts, per_group=per_group)


@dataclass(frozen=True)
class BeliefRatio(Requirement):
    """The table is `epsilon`-private against an adversary: no belief rises, and no doubt shrinks, by more than that.

    Attributes:
        epsilon: the largest ratio of beliefs; not the ε of differential privacy.
        adversary: who is feared.
        predicates: what must not be learned.
        against: how the adversary is called.
    """

    epsilon: Limit
    adversary: Adversary
    predicates: Predicates = "values"
    against: str = ""

    def __post_init__(self) -> None:
        _require("the belief ratio", self.epsilon, 1)
        if self.adversary.kind is AdversaryClass.ANYONE:
            self.measure([[1, 1]])  # refused, with the reason

    @property
    def name(self) -> str:
        return f"a belief ratio of at most {_plain(self.epsilon)} against {self.against or 'an adversary'}"

    def keeps(self, group: Sequence[int], whole: Sequence[int]) -> bool:  # noqa: ARG002
        """By both inequalities of Definition 4, for every statement and the worst members of her class."""
        statements, size, known = Statements.of(self.predicates, len(group)), sum(group), self.adversary.known_records
        for at, predicate in enumerate(statements.predicates):
            hits = sum(group[value] for value in predicate.values)
            inside = p_in(hits, size, known)
            for outlook in outlooks_of(self.adversary, statements):
                outside = outlook.p_out(at, hits, size)
                if inside > self.high * outside or 1 - outside > self.high * (1 - inside):
                    return False
        return True

    def fails(self, table: GroupTable) -> Flags:
        scores = belief_scores(table, self.adversary, self.predicates)
        return scores.beyond(float(self.epsilon), lambda at, clue: _at_most(scores.exact(at, clue), self.high))

    def bounds(self, sizes: Integers, whole: Floats) -> list[Bound]:
        """From the closed form, for statements that somebody has a certain value.

        p_in ≤ ε·p_out bounds n_φ/n by ε·σ(φ)/σ against one who never revises her belief. For others the second
        inequality says (n − n_φ)·(ε(n − 1 + σ) − n) ≥ (σ − σ(φ))·n, whose bound is weakest for the largest n.
        """
        if self.predicates not in ("values", "subsets"):
            return []
        statements, epsilon, most = Statements.of("values", len(whole)), float(self.epsilon), np.ones((1, len(whole)))
        for outlook in outlooks_of(self.adversary, statements):
            inside, total = np.array([float(weight) for weight in outlook.inside]), float(outlook.total)
            if outlook.revises:
                spread = (epsilon - 1) * sizes + epsilon * (total - 1)
                most = np.minimum(most, np.maximum(1 - (total - inside) / np.maximum(spread, 1e-300), 0))
            else:
                most = np.minimum(most, epsilon * inside / total)
        return [Bound(most)]

    def measure(self, counts: npt.ArrayLike, *, per_group: bool = False) -> BeliefAudit:
        return belief_ratio(counts, self.adversary, self.predicates, per_group=per_group)


def _require(name: str, limit: Limit, least: float, most: float = math.inf, *, open_low: bool = False) -> None:
    written_as(name, limit)  # a finite number
    if limit < least or limit > most or (open_low and limit == least):
        wanted = f"{'above' if open_low else 'at least'} {as_given(least)}" + (
            f" and at most {as_given(most)}" if most < math.inf else ""
        )
        raise ParameterError(f"{name} must be {wanted}.", code="parameter-range", details={"parameter": name})


def _at_most(score: Fraction | None, limit: Fraction) -> bool:
    return score is not None and score <= limit


def _below(score: Fraction | None, limit: Fraction) -> bool:
    return score is not None and score < limit


def _plain(limit: Limit) -> str:
    """All digits that were written: these names stand in promises."""
    return repr(float(as_written(limit))).removesuffix(".0")
