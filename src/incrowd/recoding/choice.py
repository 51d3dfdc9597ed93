"""The private choice of a mapping, on the full table.

**Why on the full table.** Li, Qardaji and Su let the mapping be chosen by an ε₁-DP procedure on the *sample*; their
Theorem 6 is false for that (see `tests/papers`). Chosen on the full table D with randomness of its own, the choice is
an ε₁-DP release of D, and the sampled crowd under the chosen mapping is an (ε₂,δ)-DP release of D that knows the
first one's output: adaptive composition gives (ε₁+ε₂, δ).

**What is looked for** is a `Quality`: a score for every mapping, a whole number that only rises, by a known amount at
most, when a record is added. Added or removed, the m rows of a person move it by m times that.

**The selection** is permute-and-flip, drawn exactly, which is never worse than the exponential mechanism (proof:
docs/proofs.md, "The sensitivity of the score"). Its output is the index that it picked and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from incrowd.noise import pick
from incrowd.randomness import RandomSource
from incrowd.recoding.lattice import Codes, Lattice, Node
from incrowd.recoding.quality import Quality
from incrowd.sources.kept import KeptTable
from incrowd.theory._numbers import require_count, require_positive

ENUMERATED = 200_000
"""Lattices up to this size are scored whole, if the quality can be found for all nodes at once; larger ones are
searched greedily."""

_LEAST_SHARE = 0.0125  # of ε for a step: with less, it would be drawn rather than chosen


def choose(
    lattice: Lattice, columns: Sequence[Codes], counts: Codes, *, quality: Quality, epsilon: float, rows: int = 1
) -> Node:
    """As `choose_by`, of a table in memory.

    Args:
        lattice, quality, epsilon, rows: as there.
        columns: the raw codes of the full table's cells.
        counts: the full table's counts.
    """
    quality.require_scorable(int(counts.sum()))
    return choose_by(
        lattice,
        lambda: quality.scores(lattice, columns, counts),
        lambda node: quality.score(lattice, node, columns, counts),
        quality=quality,
        epsilon=epsilon,
        rows=rows,
    )


def choose_kept(lattice: Lattice, table: KeptTable, *, quality: Quality, epsilon: float, rows: int = 1) -> Node:
    """As `choose_by`, of a table whose cells stay in the engine."""
    from incrowd.recoding.pieces import kept_score, kept_scores

    quality.require_scorable(table.total)
    return choose_by(
        lattice,
        lambda: kept_scores(table, lattice, quality),
        lambda node: kept_score(table, lattice, node, quality),
        quality=quality,
        epsilon=epsilon,
        rows=rows,
    )


def choose_by(
    lattice: Lattice,
    scores: Callable[[], Codes],
    score: Callable[[Node], int],
    *,
    quality: Quality,
    epsilon: float,
    rows: int = 1,
) -> Node:
    """An ε-DP choice of a node (add/remove) of a high quality.

    Small lattices are scored whole and one noisy maximum is taken over all nodes. In larger ones the choice starts at
    the top, where every column is suppressed, and descends: at each of a fixed number of steps it picks, with an
    equal share of ε, one column to show any number of levels finer, or to stay. There are as many steps as columns that
    have levels, so that the lowest node can be reached, unless shares became too small. The steps compose adaptively:
    their shares add up to ε. The number of steps, the candidates and the order depend only on the lattice and on ε,
    never on the table or the clock.

    Args:
        lattice: all nodes; its ladders' weights are for the quality to use.
        scores: finds those of all nodes, on the full table, in the order of `Lattice.nodes`.
        score: finds that of one node.
        quality: what is looked for.
        epsilon: ε₁, the budget of the choice.
        rows: how many rows one person has at most: added or removed, they move a score by so many times its step.
    """
    require_positive("selection_epsilon", epsilon)
    sensitivity = quality.sensitivity(lattice) * require_count("rows", rows)
    if lattice.size <= min(ENUMERATED, quality.enumerated):
        return lattice.node_at(noisy_max(scores(), sensitivity, epsilon))
    node: Node = tuple(ladder.height for ladder in lattice.ladders)
    steps = steps_of(lattice, epsilon)
    share = math.nextafter(epsilon / steps, 0.0)
    for _ in range(steps):
        candidates = [node] + [
            (*node[:i], finer, *node[i + 1 :]) for i, level in enumerate(node) for finer in range(level - 1, -1, -1)
        ]
        scored = [score(candidate) for candidate in candidates]
        node = candidates[noisy_max(np.array(scored, dtype=np.int64), sensitivity, share)]
    return node


def steps_of(lattice: Lattice, epsilon: float) -> int:
    """How many steps a choice takes that descends: one for each column with levels, as far as ε has shares for them."""
    columns = sum(ladder.height > 0 for ladder in lattice.ladders)
    return max(1, min(columns, math.floor(epsilon / _LEAST_SHARE)))


def noisy_max(scores: Codes, sensitivity: int, epsilon: float) -> int:
    """The index of a large score, ε-DP for scores that only rise, by `sensitivity` at most, when a record is added."""
    return pick(RandomSource(), scores, int(sensitivity) / Fraction(epsilon))
