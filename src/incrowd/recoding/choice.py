"""The private choice of a mapping, on the full table.

**Why on the full table.** Li, Qardaji and Su let the mapping be chosen by an ε₁-DP procedure on the *sample*; their
Theorem 6 is false for that (see `tests/papers`). Chosen on the full table D with randomness of its own, the choice is
an ε₁-DP release of D, and the sampled crowd under the chosen mapping is an (ε₂,δ)-DP release of D that knows the
first one's output: adaptive composition gives (ε₁+ε₂, δ).

**What is looked for** is a `Quality`: a score for every mapping, a whole number that only rises, by a known amount at
most, when a record is added. Added or removed, the m rows of a person move it by m times that.

**The selection** is OpenDP's noisy max with exact sampling: permute-and-flip, which is never worse than the
exponential mechanism. Its output is the index that it picked and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from incrowd.recoding.lattice import Codes, Lattice, Node
from incrowd.recoding.quality import Quality
from incrowd.theory._numbers import require_count, require_positive

ENUMERATED = 200_000
"""Lattices up to this size are scored whole, if the quality can be found for all nodes at once; larger ones are
searched greedily."""

_LEAST_SHARE = 0.0125  # of ε for a step: with less, it would be drawn rather than chosen


def choose(
    lattice: Lattice, columns: Sequence[Codes], counts: Codes, *, quality: Quality, epsilon: float, rows: int = 1
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
        columns: the raw codes of the full table's cells.
        counts: the full table's counts.
        quality: what is looked for.
        epsilon: ε₁, the budget of the choice.
        rows: how many rows one person has at most: added or removed, they move a score by so many times its step.
    """
    require_positive("selection_epsilon", epsilon)
    quality.require_scorable(int(counts.sum()))
    sensitivity = quality.sensitivity(lattice) * require_count("rows", rows)
    if lattice.size <= min(ENUMERATED, quality.enumerated):
        return lattice.node_at(noisy_max(quality.scores(lattice, columns, counts), sensitivity, epsilon))
    node: Node = tuple(ladder.height for ladder in lattice.ladders)
    steps = steps_of(lattice, epsilon)
    share = math.nextafter(epsilon / steps, 0.0)
    for _ in range(steps):
        candidates = [node] + [
            (*node[:i], finer, *node[i + 1 :]) for i, level in enumerate(node) for finer in range(level - 1, -1, -1)
        ]
        scored = [quality.score(lattice, c, columns, counts) for c in candidates]
        node = candidates[noisy_max(np.array(scored, dtype=np.int64), sensitivity, share)]
    return node


def steps_of(lattice: Lattice, epsilon: float) -> int:
    """How many steps a choice takes that descends: one for each column with levels, as far as ε has shares for them."""
    columns = sum(ladder.height > 0 for ladder in lattice.ladders)
    return max(1, min(columns, math.floor(epsilon / _LEAST_SHARE)))


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
