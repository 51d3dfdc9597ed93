"""Every measure of what is left of a table: exactly, and in a form that is fast enough for a search.

`MEASURES` holds both side by side. A fast form agrees with the exact one up to a known error (`Cost.slack`), and finds
the candidates; which of them is the best is decided by the exact one, whose value is reported.

Loss and non-uniform entropy are sums over the published records and columns: a record is *worth* something for each
column, depending on its label there, and what is left of the whole is the cost. Worths are whole numbers, so no sum
depends on its order. In other costs only sizes of groups and the widths of their labels count.

**Bounds.** Generalizing further never lowers any of these (except the error of queries) as long as no record is
suppressed, and suppressing records never lowers it. So the cost of a node with nothing suppressed but what surely will
be bounds the costs of all nodes above it from below. For the number of groups the suppressed ones count as one group
more; for the divergence, both nodes' distributions are even within the finer node's groups, where the finer one has
the shares of the table itself, so what the coarser one adds is a divergence between the two on these groups.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from incrowd.core.errors import InternalError
from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Histogram
from incrowd.recoding import utility
from incrowd.recoding.lattice import Codes, Ladder
from incrowd.recoding.utility import Comparison

Hope = tuple[int, int]
"""How much a record, and how much all records together, can at most be worth."""

_UNIT_BITS = 40
_WIDTH = 1 << 32  # a bit of width


class Cost(ABC):
    """The fast form of a measure, prepared for one table.

    Attributes:
        slack: how far `of` may be from the measure, in the unit of `of`.
        scale: what `of` is divided by to give the measure.
        additive: the cost is what all records and columns are worth, less what those shown are; see `hope`.
        needs_table: there is no short cut; `of` cannot be used.
        monotone: nothing suppressed, a coarser node never costs less.
    """

    slack: float = 0
    scale: float = 1
    monotone = True
    additive = False
    needs_table = False

    def __init__(self, table: Histogram, hierarchies: Sequence[Hierarchy]) -> None:
        """Prepare for a table of quasi-identifiers and their hierarchies."""
        self.total = table.total
        self.records = [
            np.bincount(column.codes, weights=table.counts, minlength=len(column.labels)).astype(np.int64)
            for column in table.columns
        ]
        maps = [[level.to.astype(np.int64) for level in hierarchy.levels] for hierarchy in hierarchies]
        self.ladders = [
            Ladder(tuple(levels), tuple(self._weights(level, counts) for level in levels))
            for levels, counts in zip(maps, self.records, strict=True)
        ]

    def _weights(self, level: Codes, records: Codes) -> Codes:  # noqa: ARG002 - for those who need it
        """A number for each code at a level; those of all columns are added up for a group."""
        return np.zeros(int(level.max()) + 1, dtype=np.int64)

    @abstractmethod
    def of(self, sizes: Codes, weights: Codes, suppressed: int) -> float:
        """The cost of these published groups and this number of suppressed records."""

    def hope(self, column: int, level: int) -> Hope:  # noqa: ARG002
        """If the cost is additive: what a column at a level can be worth at most."""
        return 0, 0

    def above_cells(self, cells: Codes, suppressed: int) -> float:  # noqa: ARG002
        """At most the cost of whatever merges these cells and suppresses at least so many other records."""
        return -math.inf


class _Worth(Cost):
    """What the published records are worth, subtracted from what all would be."""

    additive = True

    def __init__(self, table: Histogram, hierarchies: Sequence[Hierarchy]) -> None:
        self.unit = 1 << min(_UNIT_BITS, 61 - (table.total * len(hierarchies)).bit_length())
        super().__init__(table, hierarchies)
        self.slack = table.total * len(hierarchies)  # each weight is rounded down once
        self.scale = self.unit * table.total * len(hierarchies)
        self._whole = sum(self.hope(column, 0)[1] for column in range(len(hierarchies)))

    def of(self, sizes: Codes, weights: Codes, suppressed: int) -> int:  # noqa: ARG002 - they are worth nothing
        return self._whole - int(np.dot(sizes, weights))

    def hope(self, column: int, level: int) -> Hope:
        """Per record the largest weight; in all, the weights of all records."""
        ladder = self.ladders[column]
        weights = ladder.weights[level]
        return int(weights.max()), int(np.dot(weights.take(ladder.maps[level]), self.records[column]))


class Loss(_Worth):
    """`utility.loss`. A record is worth 1 − (values covered − 1)/(values of the domain − 1)."""

    def _weights(self, level: Codes, records: Codes) -> Codes:  # noqa: ARG002
        domain, covered = len(level), np.bincount(level)
        if domain == 1:
            return np.array([self.unit])
        left: Codes = (domain - covered) * self.unit // (domain - 1)
        return left


class NonuniformEntropy(_Worth):
    """`utility.nonuniform_entropy`. A record shown as g is worth log₂(n/n_g), the mean over all raw ones being 1.

    A record loses what its label does not tell of its value, log₂(n_g/n_v), and a suppressed one log₂(n/n_v): together
    that is what all records lose by the labels, and log₂(n/n_g) for each suppressed one.
    """

    def _weights(self, level: Codes, records: Codes) -> Codes:
        groups = np.bincount(level, weights=records)
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = math.fsum(np.where(records > 0, records * np.log2(self.total / records), 0.0))
            bits = np.where(groups > 0, np.log2(self.total / groups), 0.0)
        if whole == 0:
            return np.zeros(len(groups), dtype=np.int64)
        return np.floor(bits * (self.unit * self.total / whole)).astype(np.int64)


class Discernibility(Cost):
    """`utility.discernibility`."""

    def of(self, sizes: Codes, weights: Codes, suppressed: int) -> int:  # noqa: ARG002
        return self.above_cells(sizes, suppressed)

    def above_cells(self, cells: Codes, suppressed: int) -> int:
        return utility.sum_of_squares(cells, self.total) + suppressed * self.total


class ClassSize(Cost):
    """`utility.average_class_size`."""

    def of(self, sizes: Codes, weights: Codes, suppressed: int) -> float:  # noqa: ARG002
        return self.total / (len(sizes) + (suppressed > 0))

    def above_cells(self, cells: Codes, suppressed: int) -> float:  # noqa: ARG002
        """As if the cells were the groups, and some records suppressed."""
        return self.total / (len(cells) + 1)


class Divergence(Cost):
    """`utility.kl_divergence`. Weights are widths of labels, in bits."""

    def __init__(self, table: Histogram, hierarchies: Sequence[Hierarchy]) -> None:
        super().__init__(table, hierarchies)
        self._domain = math.fsum(math.log2(len(column.labels)) for column in table.columns)
        shares = table.counts / table.total
        self._known = float(np.dot(shares, np.log2(shares)))
        # Rounded widths, and sums and logarithms of numbers that are not much larger than the domain's.
        self.slack = len(hierarchies) / _WIDTH + 1e-12 * (64 + self._domain)

    def _weights(self, level: Codes, records: Codes) -> Codes:  # noqa: ARG002
        bits: Codes = np.rint(np.log2(np.bincount(level)) * _WIDTH).astype(np.int64)
        return bits

    def of(self, sizes: Codes, weights: Codes, suppressed: int) -> float:
        hidden = math.log2(suppressed / self.total) - self._domain if suppressed else -math.inf
        shares = sizes / self.total
        told = np.logaddexp2(np.log2(shares) - weights / _WIDTH, hidden)
        rest = suppressed / self.total * hidden if suppressed else 0.0
        return self._known - float(np.dot(shares, told)) - rest


class QueryError(Cost):
    """`utility.query_error`: no short cut, so every satisfying node is measured in full. Not monotone."""

    monotone = False
    needs_table = True

    def of(self, sizes: Codes, weights: Codes, suppressed: int) -> float:  # noqa: ARG002
        raise InternalError("the error of queries was asked for without a table")


Extreme = Callable[[int], float]
"""What a measure can come to, for a table of so many records."""


@dataclass(frozen=True)
class UtilityMeasure:
    """How much of a table is left, or lost.

    Attributes:
        name: in a policy, if a search can minimise it; see `MINIMISED` in `mechanisms.generalization.section`.
        title: at the head of a line of a report.
        unit: a share of a whole, a plain number, bits, or records.
        exact: the measure; less is better.
        fast: what a search uses instead; None if it cannot minimise this.
        best, worst: where what is shown begins and ends.
        kept: what a report shows in place of it, if not the measure itself.
    """

    name: str
    title: str
    unit: Literal["share", "number", "bits", "records"]
    exact: Callable[[Comparison], float]
    fast: type[Cost] | None
    best: Extreme
    worst: Extreme
    kept: Callable[[Comparison], float] | None = None

    def shown(self, comparison: Comparison) -> float:
        """What a report shows."""
        return (self.kept or self.exact)(comparison)


def _at(value: float) -> Extreme:
    return lambda _: value


MEASURES: Mapping[str, UtilityMeasure] = {
    measure.name: measure
    for measure in (
        UtilityMeasure(
            "loss", "information kept", "share", utility.loss, Loss, _at(1.0), _at(0.0), utility.information_kept
        ),
        UtilityMeasure(
            "entropy", "entropy lost", "share", utility.nonuniform_entropy, NonuniformEntropy, _at(0.0), _at(1.0)
        ),
        UtilityMeasure(
            "discernibility", "discernibility", "number", utility.discernibility, Discernibility, float, lambda n: n**2
        ),
        UtilityMeasure("class_size", "average crowd", "records", utility.average_class_size, ClassSize, _at(1), float),
        UtilityMeasure("divergence", "KL divergence", "bits", utility.kl_divergence, Divergence, _at(0), _at(math.inf)),
        UtilityMeasure("pmse", "pMSE", "number", utility.pmse, None, _at(0), _at(0.25)),
        UtilityMeasure("query_error", "query error", "share", utility.query_error, QueryError, _at(0.0), _at(math.inf)),
    )
}
"""All of them, in the order of the report."""
