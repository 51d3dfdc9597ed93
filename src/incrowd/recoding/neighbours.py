"""Single nodes, grouped from the cells of the table, and a search from neighbour to neighbour.

For lattices too large to be descended. The search starts at the top, where all columns are suppressed, and looks at the
nodes that are one level finer in one column; then it goes on from the best node found whose neighbours, finer and
coarser, have not been looked at. So there is a valid answer early, and it only gets better.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from incrowd.hierarchy import Hierarchy
from incrowd.recoding.demands import Demands
from incrowd.recoding.lattice import Codes, Ladder, Node, ranked
from incrowd.theory._groups import Flags


@dataclass(frozen=True, eq=False)
class Grouped:
    """A node, the group of each cell, and each group's weight."""

    node: Node
    group: Codes
    weights: Codes


class Cells:
    """The cells of a table, to be grouped by nodes."""

    def __init__(
        self,
        hierarchies: Mapping[str, Hierarchy],
        ladders: list[Ladder],
        columns: list[Codes],
        counts: Codes,
        demands: Demands,
    ) -> None:
        self.hierarchies = hierarchies
        self.ladders = ladders
        self.columns = columns
        self.counts = counts
        self.demands = demands
        self._none = np.zeros(len(counts), dtype=np.int64)

    @property
    def top(self) -> Node:
        """Everything suppressed."""
        return tuple(ladder.height for ladder in self.ladders)

    def at(self, node: Node) -> Grouped:
        grouped = Grouped(node, self._none, self._none[:1])
        for column, level in enumerate(node):
            grouped = self._split(grouped, column, level)
        return grouped

    def finer(self, grouped: Grouped, column: int) -> Grouped:
        """One level finer in one column."""
        level = grouped.node[column] - 1
        node = (*grouped.node[:column], level, *grouped.node[column + 1 :])
        ladder = self.ladders[column]
        # Without what the column is worth at its present level.
        present = np.zeros(len(grouped.weights), dtype=np.int64)
        present[grouped.group] = ladder.weights[level + 1].take(ladder.maps[level + 1].take(self.columns[column]))
        return self._split(Grouped(node, grouped.group, grouped.weights - present), column, level)

    def _split(self, grouped: Grouped, column: int, level: int) -> Grouped:
        weights = self.ladders[column].weights[level]
        if len(weights) == 1:
            return Grouped(grouped.node, grouped.group, grouped.weights + weights[0])
        code = self.ladders[column].maps[level].take(self.columns[column])
        code += grouped.group * len(weights)
        distinct, group = ranked(code, len(grouped.weights) * len(weights))
        before, code = np.divmod(distinct, len(weights))
        return Grouped(grouped.node, group, grouped.weights.take(before) + weights.take(code))

    def judged(self, grouped: Grouped) -> tuple[Codes, Flags | None]:
        """The sizes of the groups, and which are left out; None if the node does not satisfy."""
        sizes = np.bincount(grouped.group, weights=self.counts, minlength=len(grouped.weights)).astype(np.int64)
        ends = self.demands.ends(len(self.counts))
        left_out = self.demands.left_out(sizes, lambda: (grouped.group, self.counts, ends), self.demands.room)
        if left_out is None or not self.demands.apart:
            return sizes, None if left_out is None else left_out[0]
        shown = {
            name: (ladder.maps[level].take(column), hierarchy.levels[level].labels)
            for (name, hierarchy), ladder, column, level in zip(
                self.hierarchies.items(), self.ladders, self.columns, grouped.node, strict=True
            )
        }
        return sizes, self.demands.left_out_apart(sizes, grouped.group, self.counts, left_out[0], shown)


def wander(
    cells: Cells,
    price: Callable[[Grouped, Codes, Flags], float],
    deadline: float,
    progress: Callable[[], None] | None = None,
) -> int:
    """Look at nodes from neighbour to neighbour, starting at the top, until the time is up or nothing is left.

    Args:
        cells: the table.
        price: told of every node that satisfies (with sizes of groups and which are left out), returns its cost.
        deadline: when to stop.
        progress: called now and then.

    Returns:
        The number of nodes looked at.
    """
    waiting: list[tuple[float, int, Node]] = []
    seen: set[Node] = set()

    def look(grouped: Grouped) -> None:
        seen.add(grouped.node)
        sizes, out = cells.judged(grouped)
        cost = math.inf if out is None else price(grouped, sizes, out)
        # Below a node that does not satisfy there may be others that do, unless one follows from the other.
        if out is not None or not cells.demands.predictive:
            heapq.heappush(waiting, (cost, -sum(grouped.node), grouped.node))

    look(cells.at(cells.top))
    while waiting and time.perf_counter() < deadline:
        *_, node = heapq.heappop(waiting)
        for neighbour in _unseen(cells, node, seen):
            look(neighbour)
            if progress is not None:
                progress()
            if time.perf_counter() > deadline:
                break
    return len(seen)


def _unseen(cells: Cells, node: Node, seen: set[Node]) -> Iterator[Grouped]:
    """The neighbours of a node that were not looked at."""
    grouped: Grouped | None = None
    for column, level in enumerate(node):
        if level > 0 and (*node[:column], level - 1, *node[column + 1 :]) not in seen:
            grouped = cells.at(node) if grouped is None else grouped
            yield cells.finer(grouped, column)
    for column, level in enumerate(node):
        above = (*node[:column], level + 1, *node[column + 1 :])
        if level < cells.ladders[column].height and above not in seen:
            yield cells.at(above)
