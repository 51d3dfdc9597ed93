"""Every node of a lattice that can matter, found by a descent through the columns.

At depth j the first j columns of an order have their levels. The groups that these alone make are the groups of a node,
the one with all other columns at the top; every node below merely splits them. So what fails there fails below:

- a group too small, or lost for good for another reason, is lost in every node below, and its records are dropped on
  the way down;
- if more records are dropped than may be, or (with no suppression) a monotone requirement fails, the whole branch does;
- the cost can be bounded from below by what the levels chosen so far cost, plus the records dropped.

All levels of a column are looked at on the groups alone, which merge from one level to the next without any sorting
(see `lattice`). Only where the descent goes on are cells merged, which takes a sort.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.recoding.demands import Cells, LeftOut
from incrowd.recoding.lattice import Codes, Fold, Node, starts, totals
from incrowd.recoding.measures import Cost, Hope
from incrowd.recoding.neighbours import Cells as NodeCells
from incrowd.recoding.task import Best

# No node of a branch satisfies; how much it loses however it is split has been looked at, and is not too much. Groups
# that are merged lose no more than their parts, so the latter holds at coarser levels of the last column, too.
_UNBOUNDED, _EMPTY = 1, 2


class OutOfTime(Exception):  # noqa: N818 - no error: what was found so far stands
    """The time is up."""


class Judge(Protocol):
    """What is sought.

    Attributes:
        finest_first: whether a node must be looked at before those above it. Otherwise those come first, where good
            nodes are found sooner.
    """

    finest_first: bool

    def skips(self, levels: Node) -> bool:
        """Whether no node that begins so is of interest, whatever it costs."""

    def hopeless(self, least: float) -> bool:
        """Whether no node that costs at least so much is of interest."""

    def found(self, levels: Node, sizes: Codes, weights: Codes, suppressed: int) -> None:
        """A node that satisfies, and its published groups."""


@dataclass(frozen=True, eq=False)
class _Branch:
    """All nodes that begin with some levels.

    Cells, the groups of these levels split by all raw values of the other columns, are sorted by group and suffix.
    """

    levels: Node
    number: int  # these levels, written as one number
    group: Codes
    suffix: Codes
    counts: Codes
    weights: Codes  # of the groups
    dropped: int  # records lost for good
    left: int  # the others
    cost: float  # if all other columns were worth nothing
    bound: float  # from the cells, a bound of the cost from below

    def least(self, hope: Hope) -> float:
        """A bound of the cost from below, if the other columns are worth what one hopes for."""
        return max(_least(self.cost, self.left, hope), self.bound)


class Descent:
    """Descents through one table; levels are in an order of columns of its own."""

    def __init__(self, nodes: NodeCells, cost: Cost) -> None:
        columns, counts, demands = nodes.columns, nodes.counts, nodes.demands
        self.nodes = nodes
        # Columns with many values first: they are decided where there are few branches, and what is dropped for their
        # sake is dropped early.
        self.order = sorted(range(len(columns)), key=lambda i: (-len(cost.ladders[i].maps[0]), i))
        self.demands = demands
        self.cost = cost
        self.fold = Fold(cost.ladders, self.order, columns, counts, demands.combination)
        self.heights = [cost.ladders[i].height for i in self.order]
        # What a column can be worth at each level, and at each depth what the columns behind can be worth together.
        self._hopes = [[cost.hope(i, level) for level in range(cost.ladders[i].height + 1)] for i in self.order]
        self._behind: list[Hope] = [(0, 0)]
        for levels in reversed(self._hopes):
            self._behind.insert(0, _both(self._behind[0], levels[0]))
        self.examined = 0
        # What was found out of the branches at each depth, for those who descend again.
        self._known = [
            np.zeros((prod(h + 1 for h in self.heights[:depth]), height + 1), dtype=np.uint8)
            for depth, height in enumerate(self.heights)
        ]

    def node(self, levels: Node) -> Node:
        """Levels in the table's order of columns."""
        node = [0] * len(self.order)
        for place, level in zip(self.order, levels, strict=True):
            node[place] = level
        return tuple(node)

    def run(self, judge: Judge, deadline: float, progress: Callable[[float], None] | None = None) -> bool:
        """Descend everywhere; False if the time ran out."""
        cells = self.fold.cells
        nothing = np.zeros(len(cells), dtype=np.int64)
        total, nobody = self.fold.total, np.zeros(1, dtype=np.int64)
        cost = self.cost.of(nobody + total, nobody, 0) if self.cost.additive else -np.inf
        everything = _Branch((), 0, nothing, np.arange(len(cells)), cells, nobody, 0, total, cost, -np.inf)
        try:
            self._descend(everything, judge, deadline, progress, (0.0, 1.0))
        except OutOfTime:
            return False
        return True

    def _descend(
        self,
        branch: _Branch,
        judge: Judge,
        deadline: float,
        progress: Callable[[float], None] | None,
        span: tuple[float, float],
    ) -> None:
        """`span` is the part of all work that this branch is: where it begins, and how long it is."""
        if time.perf_counter() > deadline:
            raise OutOfTime
        children = self._children(branch, judge)
        if not judge.finest_first:
            children = reversed(list(children))
        height = self.heights[len(branch.levels)]
        for child in children:
            passed = child.levels[-1] if judge.finest_first else height - child.levels[-1]
            begins = span[0] + span[1] * passed / (height + 1)
            if progress is not None and len(child.levels) <= 2:
                progress(begins)
            least = child.least(self._behind[len(child.levels)])
            if not judge.skips(child.levels) and not judge.hopeless(least):
                self._descend(child, judge, deadline, progress, (begins, span[1] / (height + 1)))
        depth = len(branch.levels)
        if depth and (self._known[depth][branch.number] == _EMPTY).all():
            self._known[depth - 1].flat[branch.number] = _EMPTY

    def _children(self, branch: _Branch, judge: Judge) -> Iterator[_Branch]:
        """The branches with one more level, finest first; where all levels are chosen, the judge is told instead."""
        fold, depth = self.fold, len(branch.levels)
        last, known = depth == len(self.order) - 1, self._known[depth][branch.number]
        code = fold.heads[depth].take(branch.suffix)
        first = starts(branch.group * len(fold.weights[depth][0]) + code)
        at = first.nonzero()[0]
        # The groups at the level looked at: their records, the branch's group that each is part of, and its code.
        sizes, parent, code = totals(branch.counts, at), branch.group.take(at), code.take(at)
        cells = _DescentCells(fold, depth + 1, first.cumsum() - 1, fold.tails[depth].take(branch.suffix), branch.counts)
        for level, (step, weights) in enumerate(zip(fold.steps[depth], fold.weights[depth], strict=True)):
            if judge.hopeless(branch.least(_both(self._behind[depth + 1], self._hopes[depth][level]))):
                break  # coarser levels are worth even less
            if level:
                code = step.take(code)
                first = starts(parent * len(weights) + code)
                at = first.nonzero()[0]
                if len(at) < len(first):
                    sizes, parent, code = totals(sizes, at), parent.take(at), code.take(at)
                    cells.went_on(first.cumsum() - 1)
            levels = (*branch.levels, level)
            if judge.skips(levels) or known[level] == _EMPTY:
                continue
            self.examined += 1
            found = self._lost(branch, level, sizes, cells.with_ends)
            if found is None:
                known[level] = _EMPTY
                continue
            out, lost = found
            worth = branch.weights.take(parent)
            worth += weights.take(code)
            published, stays = sizes, None
            if lost:
                stays = ~out
                published, worth = sizes[stays], worth[stays]
            dropped, left = branch.dropped + lost, branch.left - lost
            if last:
                if not self.demands.apart:
                    judge.found(levels, published, worth, dropped)
                elif not judge.hopeless(self.cost.of(published, worth, dropped) if self.cost.additive else -np.inf):
                    self._found_apart(levels, judge)
                continue
            cost = self.cost.of(published, worth, dropped) if self.cost.additive else -np.inf
            if judge.hopeless(_least(cost, left, self._behind[depth + 1])):
                continue
            merged = cells.merged(len(sizes), stays)
            bound = self.cost.above_cells(merged[2], dropped)
            if not judge.hopeless(bound):
                yield _Branch(levels, branch.number * len(known) + level, *merged, worth, dropped, left, cost, bound)

    def _lost(self, branch: _Branch, level: int, sizes: Codes, cells: Callable[[], Cells]) -> LeftOut | None:
        """Which groups are lost at a level of the next column; None if no node that begins so satisfies."""
        room, known = self.demands.room - branch.dropped, self._known[len(branch.levels)][branch.number]
        if len(branch.levels) == len(self.order) - 1:
            return self.demands.left_out(sizes, cells, room)
        if known[level] == _UNBOUNDED:
            return self.demands.lost_for_good(sizes, cells, room)
        found, bounded = self.demands.surely_left_out(sizes, cells, room)
        if found is not None and bounded:
            np.maximum(known[level:], _UNBOUNDED, out=known[level:])
        return found

    def _found_apart(self, levels: Node, judge: Judge) -> None:
        """A node that keeps all plain demands, if it keeps the others as well, which look at the table itself."""
        grouped = self.nodes.at(self.node(levels))
        sizes, out = self.nodes.judged(grouped)
        if out is not None:
            judge.found(levels, sizes[~out], grouped.weights[~out], int(sizes[out].sum()))


class _DescentCells:
    """The cells of a branch while its groups merge from level to level. They are merged themselves only when needed."""

    def __init__(self, fold: Fold, depth: int, group: Codes, suffix: Codes, counts: Codes) -> None:
        self._fold, self._depth = fold, depth
        self._group, self._suffix, self._counts = group, suffix, counts
        self._since: Codes | None = None  # what became of the groups since the cells were merged

    def went_on(self, became: Codes) -> None:
        """Every group became part of another."""
        self._since = became if self._since is None else became.take(self._since)

    def with_ends(self) -> Cells:
        """What demands are asked about."""
        group = self._group if self._since is None else self._since.take(self._group)
        return group, self._counts, self._fold.ends[self._depth].take(self._suffix)

    def merged(self, groups: int, stays: NDArray[np.bool_] | None) -> tuple[Codes, Codes, Codes]:
        """Group, suffix and count of each cell, without the groups that do not stay."""
        if self._since is not None:
            shift = (self._fold.suffixes[self._depth] - 1).bit_length()
            keys = (self._since.take(self._group) << shift) | self._suffix
            keys, self._counts = self._fold.merge(keys, self._counts, groups << shift)
            self._group, self._suffix, self._since = keys >> shift, keys & ((1 << shift) - 1), None
        if stays is None:
            return self._group, self._suffix, self._counts
        inside = stays.take(self._group)
        place = stays.cumsum() - 1
        return place.take(self._group[inside]), self._suffix[inside], self._counts[inside]


def _least(cost: float, records: int, hope: Hope) -> float:
    """The cost, less what the other columns can be worth."""
    return cost - min(hope[0] * records, hope[1])


def _both(one: Hope, other: Hope) -> Hope:
    return one[0] + other[0], one[1] + other[1]


# --- what is sought ---------------------------------------------------------------------------------------------------


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
    """Wants every satisfying node with no satisfying one below.

    A node above one of these is not minimal, whether it satisfies or not, so it need not be looked at. Finer nodes are
    met before coarser ones, so one that satisfies and lies above none of those found is minimal.
    """

    finest_first = True

    def __init__(self, best: Best, descent: Descent) -> None:
        self.nodes: list[Node] = []
        self._best = best
        self._descent = descent
        self._above = np.zeros([height + 1 for height in descent.heights], dtype=np.bool_)

    def skips(self, levels: Node) -> bool:
        """Whether even the finest node that begins so lies above one that was found, or is it."""
        return bool(self._above[levels + (0,) * (self._above.ndim - len(levels))])

    def hopeless(self, least: float) -> bool:  # noqa: ARG002
        """Never: the cost does not count."""
        return False

    def found(self, levels: Node, sizes: Codes, weights: Codes, suppressed: int) -> None:
        """A minimal node."""
        node = self._descent.node(levels)
        self.nodes.append(node)
        self._above[tuple(slice(level, None) for level in levels)] = True
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
