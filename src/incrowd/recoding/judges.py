"""What a descent looks for: the lowest cost, all minimal nodes, or everything."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.recoding.descent import Descent
from incrowd.recoding.lattice import Codes, Node
from incrowd.recoding.task import Best


class Cheapest:
    """Wants the lowest cost."""

    finest_first = False

    def __init__(self, best: Best, descent: Descent) -> None:
        self._best = best
        self._descent = descent

    def skips(self, levels: Node) -> bool:  # noqa: ARG002
        """Never: it is the cost that counts."""
        return False

    def hopeless(self, least: float) -> bool:
        """Whether another node costs less."""
        return self._best.beaten(least)

    def found(self, levels: Node, sizes: Codes, weights: Codes, suppressed: int) -> None:
        """A candidate."""
        self._best.price_of(self._descent.node(levels), sizes, weights, suppressed)


class Minimal:
    """Wants every satisfying node with no satisfying one below, where all nodes above a satisfying one satisfy too.

    Finer nodes are met before coarser ones, so a node that lies above none of those found is minimal.
    """

    finest_first = True

    def __init__(self, best: Best, descent: Descent) -> None:
        self.nodes: list[Node] = []
        self._best = best
        self._descent = descent
        self._known = np.zeros([height + 1 for height in descent.heights], dtype=np.bool_)

    def skips(self, levels: Node) -> bool:
        """Whether even the finest node that begins so is known to satisfy."""
        return bool(self._known[levels + (0,) * (self._known.ndim - len(levels))])

    def hopeless(self, least: float) -> bool:  # noqa: ARG002
        """Never: the cost does not count."""
        return False

    def found(self, levels: Node, sizes: Codes, weights: Codes, suppressed: int) -> None:
        """A minimal node."""
        node = self._descent.node(levels)
        self.nodes.append(node)
        self._known[tuple(slice(level, None) for level in levels)] = True
        self._best.price_of(node, sizes, weights, suppressed)


class Everything:
    """Writes down every node.

    Attributes:
        costs: nan where a node does not satisfy.
        suppressed: −1 there.
    """

    finest_first = True

    def __init__(self, best: Best, descent: Descent) -> None:
        shape = [ladder.height + 1 for ladder in best.task.lattice.ladders]
        self.costs = np.full(shape, np.nan)
        self.suppressed = np.full(shape, -1, dtype=np.int64)
        self._best = best
        self._descent = descent

    def skips(self, levels: Node) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def hopeless(self, least: float) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def found(self, levels: Node, sizes: Codes, weights: Codes, suppressed: int) -> None:
        """A node that satisfies."""
        node = self._descent.node(levels)
        cost = self._best.price_of(node, sizes, weights, suppressed)
        self.costs[node] = cost / self._best.task.cost.scale
        self.suppressed[node] = suppressed


def minimal_of(satisfies: NDArray[np.bool_]) -> tuple[Node, ...]:
    """The satisfying nodes with no satisfying one below, whatever follows from what."""
    reached = satisfies.copy()  # whether this node or one below it satisfies
    for axis in range(satisfies.ndim):
        np.logical_or.accumulate(reached, axis=axis, out=reached)
    lowest = satisfies.copy()
    for axis in range(satisfies.ndim):
        whole = [slice(None)] * satisfies.ndim
        upper, lower = list(whole), list(whole)
        upper[axis], lower[axis] = slice(1, None), slice(None, -1)
        lowest[tuple(upper)] &= ~reached[tuple(lower)]
    return tuple(tuple(int(level) for level in node) for node in np.argwhere(lowest))
