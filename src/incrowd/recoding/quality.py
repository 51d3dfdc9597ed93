"""What the private choice of a mapping may look for, and how far one record can move that.

A *quality* gives every node of the lattice a whole number, its score. All of them begin with the people expected to
be published: n_c is the number of records in a cell, X ~ Bin(n_c, β) of them are sampled, and h(n) = E[X·1(X ≥ k)].

| | the score of a node | one record more |
|---|---|---|
| `Detail` | Σ_c w(c)·h(n_c), w(c) the public information of a cell's labels | raises it by at most s·max w |
| `CrowdCount` | Σ_c P[X ≥ k], the crowds expected to be published | raises it by at most max β·P[Bin(n, β) = k−1] |
| `Apart` | Σ_c h(n_c)·(1 − n_c/N), N the records of the table | moves it by −f at least and s + r at most |
| `Asked` | w(g)·Σ_c h(n_c), w(g) a public weight of the node | raises it by at most s·max w |
| `Classified` | Σ over groups by all columns but the target of the largest h(n_c) in it | raises it by at most s |

Here s is the largest step of h and r that of a record which surely survives. The proofs are in docs/proofs.md, "The
sensitivity of the score"; they hold for the whole numbers that are used, not only for what these approximate. f is what
rounding h to whole numbers can do, and a few units of r/256. What can fall by it is shifted: f is added to every node's
score for each record of the table. The shift is the same for all nodes, so it changes nothing for a noisy maximum, and
what is shifted only rises.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.core.errors import InternalError, UnreachableError
from incrowd.core.numbers import as_given
from incrowd.recoding.lattice import Codes, Ladder, Lattice, Node, Prefixes, ranked, starts
from incrowd.recoding.node_scores import scores
from incrowd.theory._numbers import require_count

WEIGHT_ONE = 1 << 16
"""The weight that stands for all information kept, over all columns together."""

_RECORD = 1 << 8  # what a record that surely survives adds to a cell's value
_CROWD = 1 << 24  # what a crowd that surely survives is worth
_MOST_RECORDS = 1 << 38  # so that no score reaches 2**63
_MOST_PAIRED = 1 << 27  # the same where records are multiplied with records
_LONGEST_TABLE, _LONGEST_LINE = 5_000_000, 5_000_000
_FEW_NODES = 2_000


@dataclass(frozen=True, eq=False)
class SurvivalTable:
    """h/β as whole numbers, `_RECORD` to a record: a table up to where it becomes a straight line, then that line.

    Attributes:
        table: value at n = 0, 1, ...; never falling.
        slope: the step from one n to the next beyond the table.
        largest_step: the largest step anywhere: how much one record can change a cell's value.
    """

    table: Codes
    slope: int
    largest_step: int

    @classmethod
    def of(cls, k: int, beta: float) -> SurvivalTable:
        """The table for a crowd threshold and a sampling rate. Depends on nothing else, least of all on data."""
        from scipy.special import betainc

        reach = reach_of(k, beta)
        n = np.arange(reach + 1, dtype=np.float64)
        kept = np.zeros(reach + 1)
        alive = n >= k
        # Divided by β, which changes no comparison, so that a small β is not lost in rounding.
        kept[alive] = n[alive] * (betainc(k - 1, n[alive] - k + 1, beta) if k > 1 else 1.0)
        # Rounding may not make the table fall: a running maximum restores what is true of h itself.
        table = np.maximum.accumulate(np.floor(kept * _RECORD).astype(np.int64))
        table = np.minimum(table, _RECORD * np.arange(reach + 1))  # nor make it exceed βn
        return cls(table, _RECORD, max(int(np.diff(table).max()), _RECORD))

    def reaching(self, total: int) -> SurvivalTable:
        """The same function, its straight line tabulated up to `total` if that is not too far: faster to look up."""
        top = len(self.table) - 1
        if not top < total <= _LONGEST_LINE:
            return self
        line = self.table[-1] + self.slope * np.arange(1, total - top + 1)
        return SurvivalTable(np.concatenate((self.table, line)), self.slope, self.largest_step)

    @property
    def least(self) -> int:
        """The smallest count with any value: smaller cells add nothing to a score."""
        return int(np.argmax(self.table > 0))

    def values(self, counts: Codes) -> Codes:
        """The value of each cell."""
        counts = counts.astype(np.int64, copy=False)  # narrower ones would overflow in silence
        top = len(self.table) - 1
        if len(counts) == 0 or int(counts.max()) <= top:
            return self.table.take(counts)
        values: Codes = self.table.take(np.minimum(counts, top)) + np.maximum(counts - top, 0) * self.slope
        return values


def reach_of(k: int, beta: float) -> int:
    """Beyond this n a cell is suppressed with probability below 1e-12 (Chernoff): h(n) is βn to the last digit kept.

    Raises:
        UnreachableError: that is beyond what can be tabulated; to be asked as soon as k and β are known.
    """
    reach = math.ceil((k + 30 + math.sqrt(60.0 * (k + 15))) / beta) + 1
    if reach > _LONGEST_TABLE:
        raise UnreachableError(
            f"Choosing a mapping for crowds of {k:,} sampled at rate {as_given(beta)} is beyond what can be tabulated.",
            code="unreachable",
            remedy="Fix the levels in the policy, raise beta or lower k.",
        )
    return reach


def require_scorable(records: int, most: int = _MOST_RECORDS) -> None:
    """Refuse a table whose scores could outgrow 63 bits."""
    if records >= most:
        raise UnreachableError(
            f"Levels cannot be chosen privately on a table of 2**{most.bit_length() - 1} records or more"
            + (", or not for discernibility." if most < _MOST_RECORDS else "."),
            code="unreachable",
            remedy="Fix the levels in the policy" + (", or minimise 'loss'." if most < _MOST_RECORDS else "."),
        )


class Quality(ABC):
    """What is looked for in a node, for crowds of k sampled at rate β.

    Attributes:
        enumerated: up to so many nodes it is found for all of them at once.
        most_records: beyond so many, scores could outgrow 63 bits.
    """

    enumerated = _MOST_RECORDS
    most_records = _MOST_RECORDS

    def __init__(self, k: int, beta: float) -> None:
        self.k, self.beta = require_count("k", k), beta

    @cached_property
    def survival(self) -> SurvivalTable:
        """h."""
        return SurvivalTable.of(self.k, self.beta)

    def require_scorable(self, records: int) -> None:
        """Refuse a table that is too large; to be asked as soon as its records are counted."""
        require_scorable(records, self.most_records)

    @abstractmethod
    def sensitivity(self, lattice: Lattice) -> int:
        """By how much one record more raises any score at most; it lowers none."""

    @abstractmethod
    def added(self, lattice: Lattice, columns: Sequence[Codes], counts: Codes, total: int) -> Codes:
        """What some cells add to every node, in the order of `Lattice.nodes`.

        The cells are all of a table of so many records, or those that no node of the lattice brings together with
        others (by columns other than `whole`): what they add is added up.
        """

    def concluded(self, lattice: Lattice, levels: Sequence[Codes], added: Codes, total: int) -> Codes:  # noqa: ARG002
        """The scores of some nodes, given the level of each column in them, from what all cells add."""
        return added

    def scores(self, lattice: Lattice, columns: Sequence[Codes], counts: Codes) -> Codes:
        """Those of all nodes, in the order of `Lattice.nodes`."""
        total = int(counts.sum())
        return self.concluded(lattice, lattice.levels, self.added(lattice, columns, counts, total), total)

    def score(self, lattice: Lattice, node: Node, columns: Sequence[Codes], counts: Codes) -> int:
        """That of one."""
        total = int(counts.sum())
        added = np.array([self.one(lattice, node, columns, counts, total)], dtype=np.int64)
        return int(self.concluded(lattice, [np.array([level]) for level in node], added, total)[0])

    @abstractmethod
    def one(self, lattice: Lattice, node: Node, columns: Sequence[Codes], counts: Codes, total: int) -> int:
        """What some cells add to one node."""

    @property
    def whole(self) -> frozenset[int]:
        """The columns by which cells may not be taken apart."""
        return frozenset()


class Detail(Quality):
    """The information expected to be published: Σ w(c)·h(n_c), with the weights of the lattice's ladders.

    They must add up to at most `WEIGHT_ONE` in any cell.
    """

    def sensitivity(self, lattice: Lattice) -> int:
        """s·max w."""
        largest = sum(max(int(w.max()) for w in ladder.weights) for ladder in lattice.ladders)
        if largest > WEIGHT_ONE or any(int(w.min()) < 0 for ladder in lattice.ladders for w in ladder.weights):
            raise InternalError("the weights of a lattice exceed the sensitivity that they were to be used with")
        return self.survival.largest_step * largest

    def added(self, lattice: Lattice, columns: Sequence[Codes], counts: Codes, total: int) -> Codes:
        return scores(lattice, columns, counts, self.survival.reaching(total))

    def one(self, lattice: Lattice, node: Node, columns: Sequence[Codes], counts: Codes, total: int) -> int:  # noqa: ARG002
        cells, weights = lattice.cells(node, columns, counts)
        return int(np.dot(self.survival.values(cells), weights))


class CrowdCount(Quality):
    """How many crowds are expected to be published: Σ P[Bin(n_c, β) ≥ k]. The more there are, the smaller they are."""

    @cached_property
    def survival(self) -> SurvivalTable:
        """P[Bin(n, β) ≥ k], in place of h: from where it is nearly one, it is taken to be one."""
        from scipy.special import betainc

        n = np.arange(reach_of(self.k, self.beta) + 1, dtype=np.float64)
        shown = np.zeros(len(n))
        alive = n >= self.k
        shown[alive] = betainc(self.k, n[alive] - self.k + 1, self.beta)
        table = np.maximum.accumulate(np.floor(shown * _CROWD).astype(np.int64))
        return SurvivalTable(table, 0, int(np.diff(table).max()))

    def sensitivity(self, lattice: Lattice) -> int:  # noqa: ARG002
        """The largest step of the table."""
        return self.survival.largest_step

    def added(self, lattice: Lattice, columns: Sequence[Codes], counts: Codes, total: int) -> Codes:  # noqa: ARG002
        return scores(_unweighted(lattice), columns, counts, self.survival)

    def one(self, lattice: Lattice, node: Node, columns: Sequence[Codes], counts: Codes, total: int) -> int:  # noqa: ARG002
        return int(self.survival.values(lattice.cells(node, columns, counts)[0]).sum())


@dataclass(frozen=True, eq=False)
class _Paired:
    """h(n)·(N − n)."""

    survival: SurvivalTable
    total: int

    @property
    def least(self) -> int:
        """As h."""
        return self.survival.least

    def values(self, counts: Codes) -> Codes:
        """Of each cell."""
        counts = counts.astype(np.int64, copy=False)
        found: Codes = self.survival.values(counts) * (self.total - counts)
        return found


class Apart(Quality):
    """From how many of the others a published record can be told: Σ h(n_c)·(1 − n_c/N), which is discernibility.

    Rounded down as a whole. One record more may lower it, by f at most; what is returned is shifted by f for each
    record, and so only rises.
    """

    most_records = _MOST_PAIRED

    @cached_property
    def fall(self) -> int:
        """f: by how much h(n+1) is below (n+1)/n·h(n) at most, rounded up. Beyond the table it never is."""
        n, table = np.arange(1, len(self.survival.table) - 1), self.survival.table
        short = -((n * table[2:] - (n + 1) * table[1:-1]) // n)
        return max(0, int(short.max(initial=0)))

    def sensitivity(self, lattice: Lattice) -> int:  # noqa: ARG002
        """s + r, and the shift."""
        return self.survival.largest_step + _RECORD + self.fall

    def added(self, lattice: Lattice, columns: Sequence[Codes], counts: Codes, total: int) -> Codes:
        return scores(_unweighted(lattice), columns, counts, _Paired(self.survival.reaching(total), total))

    def concluded(self, lattice: Lattice, levels: Sequence[Codes], added: Codes, total: int) -> Codes:  # noqa: ARG002
        """Divided by all records, and shifted."""
        found: Codes = added // max(1, total) + total * self.fall
        return found

    def one(self, lattice: Lattice, node: Node, columns: Sequence[Codes], counts: Codes, total: int) -> int:
        return int(_Paired(self.survival, total).values(lattice.cells(node, columns, counts)[0]).sum())


class Asked(Quality):
    """How well some sets of columns can be tabulated: the people expected to be published, times the node's weight.

    The weight is public: the mean over the sets of the product over their columns of how much a column tells at its
    level, which is the mean of its weights over raw values, in parts of `WEIGHT_ONE`. Each column may have all of it.
    """

    def __init__(self, k: int, beta: float, sets: Sequence[Sequence[int]]) -> None:
        super().__init__(k, beta)
        self.sets = tuple(tuple(places) for places in sets)

    def weights(self, lattice: Lattice, levels: Sequence[Codes]) -> Codes:
        """Those of some nodes, given the level of each column in them."""
        told = [
            np.array(
                [weights.take(to).mean() / WEIGHT_ONE for to, weights in zip(ladder.maps, ladder.weights, strict=True)]
            )
            for ladder in lattice.ladders
        ]
        shares = [np.prod([told[i].take(levels[i]) for i in places], axis=0) for places in self.sets]
        weights: Codes = np.floor(np.mean(shares, axis=0) * WEIGHT_ONE).astype(np.int64)
        if (weights < 0).any() or (weights > WEIGHT_ONE).any():
            raise InternalError("the weights of a lattice exceed the sensitivity that they were to be used with")
        return weights

    def sensitivity(self, lattice: Lattice) -> int:  # noqa: ARG002
        """s·max w."""
        return self.survival.largest_step * WEIGHT_ONE

    def added(self, lattice: Lattice, columns: Sequence[Codes], counts: Codes, total: int) -> Codes:
        """All at once: the people."""
        return scores(_unweighted(lattice), columns, counts, self.survival.reaching(total))

    def concluded(self, lattice: Lattice, levels: Sequence[Codes], added: Codes, total: int) -> Codes:  # noqa: ARG002
        """The people, times the weights."""
        found: Codes = added * self.weights(lattice, levels)
        return found

    def one(self, lattice: Lattice, node: Node, columns: Sequence[Codes], counts: Codes, total: int) -> int:  # noqa: ARG002
        return int(self.survival.values(lattice.cells(node, columns, counts)[0]).sum())


class Classified(Quality):
    """How many published people have the target value that is the most frequent one among those like them.

    Those like them share all other columns. The target must be shown at one level: where it is hidden, all are alike.
    """

    enumerated = _FEW_NODES

    def __init__(self, k: int, beta: float, target: int) -> None:
        super().__init__(k, beta)
        self.target = target

    def sensitivity(self, lattice: Lattice) -> int:
        """s: one record more raises one h, and so the largest of its group, by that at most."""
        if lattice.ladders[self.target].height:
            raise InternalError("a table was to be classified by a column that may be hidden")
        return self.survival.largest_step

    @property
    def whole(self) -> frozenset[int]:
        """The target: those who differ in it alone are looked at together."""
        return frozenset({self.target})

    def added(self, lattice: Lattice, columns: Sequence[Codes], counts: Codes, total: int) -> Codes:
        found = [self.one(lattice, node, columns, counts, total) for node in lattice.nodes()]
        return np.array(found, dtype=np.int64)

    def one(self, lattice: Lattice, node: Node, columns: Sequence[Codes], counts: Codes, total: int) -> int:  # noqa: ARG002
        """From the cells, grouped by all columns but the target."""
        if len(counts) == 0:
            return 0
        groups = Prefixes.empty(len(counts))
        for place, (ladder, level, column) in enumerate(zip(lattice.ladders, node, columns, strict=True)):
            if place != self.target:
                groups = groups.lengthened(column, ladder.maps[level], ladder.weights[level])
        target = lattice.ladders[self.target]
        values = len(target.weights[0])
        found, cell = ranked(groups.of * values + target.maps[0].take(columns[self.target]), groups.number * values)
        records = np.bincount(cell, weights=counts, minlength=len(found)).astype(np.int64)
        best = np.maximum.reduceat(self.survival.values(records), np.flatnonzero(starts(found // values)))
        return int(best.sum())


def _unweighted(lattice: Lattice) -> Lattice:
    """The same lattice with a weight of one for every cell."""
    return Lattice(
        [
            Ladder(
                ladder.maps, tuple(np.full(len(weights), int(place == 0), dtype=np.int64) for weights in ladder.weights)
            )
            for place, ladder in enumerate(lattice.ladders)
        ]
    )
