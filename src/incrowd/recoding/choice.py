"""The private choice of a mapping, on the full table.

**Why on the full table.** Li, Qardaji and Su let the mapping be chosen by an ε₁-DP procedure on the *sample*; their
Theorem 6 is false for that (see `tests/papers`). Chosen on the full table D with randomness of its own, the choice is
an ε₁-DP release of D, and the sampled crowd under the chosen mapping is an (ε₂,δ)-DP release of D that knows the
first one's output: adaptive composition gives (ε₁+ε₂, δ).

**The score.** What a mapping is worth is the information expected to be published under it: Σ over its cells of
w(c)·h(n_c), where n_c is the number of records in the cell, h(n) = E[X·1(X ≥ k)] with X ~ Bin(n, β) is the number
expected to survive, and w(c) in [0, 1] is the cell's information: the mean over columns of 1 − (values covered −
1)/(values of the domain − 1).

**Its sensitivity.** One record more raises one cell's n by one and changes no other cell. With X ~ Bin(n, β) and an
independent B ~ Bernoulli(β),

    h(n+1) − h(n) = E[(X+B)·1(X+B ≥ k)] − E[X·1(X ≥ k)] = β (P[X ≥ k] + k·P[X = k−1])  ≥ 0,

so the score never falls when a record is added (it is *monotone*), and rises by at most the maximum of this over n.
The scores are whole numbers: h is tabulated once as integers that never fall, and the largest step of *that table*
times the largest weight, times the rows that one person may have, is the sensitivity used. Nothing is left to
floating-point arithmetic.

**The selection** is OpenDP's noisy max with exact sampling: permute-and-flip, which is never worse than the
exponential mechanism. Its output is the index that it picked and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.core.errors import InternalError, UnreachableError
from incrowd.recoding.lattice import Codes, Lattice, Node
from incrowd.recoding.scoring import scores
from incrowd.theory._numbers import require_count, require_positive

ENUMERATED = 200_000
"""Lattices up to this size are scored whole; larger ones are searched greedily."""

_LEAST_SHARE = 0.0125  # of ε for a step: with less, it would be drawn rather than chosen
_RECORD = 1 << 8  # what a record that surely survives adds to a cell's value
WEIGHT_ONE = 1 << 16
"""The weight that stands for all information kept, over all columns together."""

_MOST_RECORDS = 1 << 38  # so that no score reaches 2**63
_LONGEST_TABLE, _LONGEST_LINE = 5_000_000, 5_000_000


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
            f"Choosing a mapping for crowds of {k:,} sampled at rate {beta:g} is beyond what can be tabulated.",
            code="unreachable",
            remedy="Fix the levels in the policy, raise beta or lower k.",
        )
    return reach


def require_scorable(records: int) -> None:
    """Refuse a table whose scores could outgrow 63 bits; to be asked as soon as the number of its records is known."""
    if records >= _MOST_RECORDS:
        raise UnreachableError(
            "Levels cannot be chosen privately on a table of 2**38 records or more.",
            code="unreachable",
            remedy="Fix the levels in the policy.",
        )


def choose(
    lattice: Lattice, columns: Sequence[Codes], counts: Codes, *, k: int, beta: float, epsilon: float, rows: int = 1
) -> Node:
    """An ε-DP choice of a node (add/remove), good for publishing crowds of k sampled at rate β.

    Small lattices are scored whole and one noisy maximum is taken over all nodes. In larger ones the choice starts at
    the top, where every column is suppressed, and descends: at each of a fixed number of steps it picks, with an
    equal share of ε, one column to show any number of levels finer, or to stay. There are as many steps as columns that
    have levels, so that the lowest node can be reached, unless shares became too small. The steps compose adaptively:
    their shares add up to ε. The number of steps, the candidates and the order depend only on the lattice and on ε,
    never on the table or the clock.

    Args:
        lattice: its ladders' weights must add up to at most `WEIGHT_ONE` in any cell.
        columns: the raw codes of the full table's cells.
        counts: the full table's counts.
        k: the crowd threshold of the release to come.
        beta: its sampling rate.
        epsilon: ε₁, the budget of the choice.
        rows: how many rows one person has at most: added or removed, they move a score by so many times its step.
    """
    require_count("k", k)
    require_positive("selection_epsilon", epsilon)
    largest_weight = sum(max(int(w.max()) for w in ladder.weights) for ladder in lattice.ladders)
    if largest_weight > WEIGHT_ONE or any(int(w.min()) < 0 for ladder in lattice.ladders for w in ladder.weights):
        raise InternalError("the weights of a lattice exceed the sensitivity that they were to be used with")
    total = int(counts.sum())
    require_scorable(total)
    survival = SurvivalTable.of(k, beta).reaching(total)
    sensitivity = survival.largest_step * largest_weight * require_count("rows", rows)
    if lattice.size <= ENUMERATED:
        found = scores(lattice, columns, counts, survival)
        return lattice.node_at(noisy_max(found, sensitivity, epsilon))
    node: Node = tuple(ladder.height for ladder in lattice.ladders)
    steps = steps_of(lattice, epsilon)
    share = math.nextafter(epsilon / steps, 0.0)
    for _ in range(steps):
        candidates = [node] + [
            (*node[:i], finer, *node[i + 1 :]) for i, level in enumerate(node) for finer in range(level - 1, -1, -1)
        ]
        scored = [_score(survival, *lattice.cells(c, columns, counts)) for c in candidates]
        node = candidates[noisy_max(np.array(scored, dtype=np.int64), sensitivity, share)]
    return node


def steps_of(lattice: Lattice, epsilon: float) -> int:
    """How many steps a choice takes that descends: one for each column with levels, as far as ε has shares for them."""
    columns = sum(ladder.height > 0 for ladder in lattice.ladders)
    return max(1, min(columns, math.floor(epsilon / _LEAST_SHARE)))


def _score(survival: SurvivalTable, cells: Codes, weights: Codes) -> int:
    """Σ w(c)·h(n_c), in whole numbers."""
    return int(np.dot(survival.values(cells), weights))


def noisy_max(scores: Codes, sensitivity: int, epsilon: float) -> int:
    """The index of a large score, ε-DP for scores that only rise, by `sensitivity` at most, when a record is added."""
    # Module by module: OpenDP's prelude would import every data library that it can find.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64", monotonic=True)
    scale = sensitivity / epsilon
    while True:
        measurement = make_noisy_max(*space, max_divergence(), scale=scale)
        # The library's own account of what this costs, with its own outward rounding, has the last word.
        if measurement.map(sensitivity) <= epsilon:  # type: ignore[no-untyped-call]
            return int(measurement(scores))
        scale = math.nextafter(scale * (1 + 1e-12), math.inf)
