"""One task of generalizing a table: the table, the hierarchies, what is demanded and what is minimised."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.core.errors import InternalError, ParameterError, UnreachableError
from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Histogram
from incrowd.recoding.demands import Demand, Demands, require_task, unreachable
from incrowd.recoding.lattice import Codes, Lattice, Node
from incrowd.recoding.measures import MEASURES, Cost
from incrowd.recoding.neighbours import Cells, Grouped
from incrowd.recoding.utility import Comparison
from incrowd.theory._groups import Flags
from incrowd.theory._numbers import require_positive


@dataclass(frozen=True, eq=False)
class Generalized:
    """A table at a node.

    Attributes:
        published: the table, quasi-identifiers recoded, without the groups that are left out.
        comparison: the quasi-identifiers before and after, for the measures of `utility`.
    """

    published: Histogram
    comparison: Comparison

    @property
    def suppressed(self) -> int:
        """How many records are left out."""
        return self.comparison.suppressed


class Task:
    """What is to be done, prepared for looking at many nodes."""

    def __init__(
        self,
        table: Histogram,
        hierarchies: Mapping[str, Hierarchy],
        demands: Sequence[Demand],
        measure: str,
        suppression: float,
        seconds: float,
    ) -> None:
        require_task(table, hierarchies, demands)
        chosen = MEASURES.get(measure)
        if chosen is None or chosen.fast is None:
            offered = ", ".join(name for name, one in MEASURES.items() if one.fast is not None)
            raise ParameterError(f"The measure must be one of {offered}.", code="parameter-type")
        self.start = time.perf_counter()
        self.deadline = self.start + require_positive("seconds", seconds)
        self.table = table
        self.names = tuple(hierarchies)
        self.hierarchies = dict(hierarchies)
        self.before = table if table.names == self.names else table.project(self.names)
        self.demands = Demands(demands, table, suppression)
        self.measure = chosen.exact
        self.cost: Cost = chosen.fast(self.before, [self.hierarchies[name] for name in self.names])
        self.columns = [table[name].codes.astype(np.int64) for name in self.names]
        self.cells = Cells(self.hierarchies, self.cost.ladders, self.columns, table.counts, self.demands)
        self.lattice = Lattice(self.cost.ladders)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.start

    def generalized(self, node: Node) -> Generalized | None:
        """The table at a node; None if the node does not satisfy."""
        grouped = self.cells.at(node)
        _, out = self.cells.judged(grouped)
        return None if out is None else self.made(grouped, out)

    def made(self, grouped: Grouped, out: Flags) -> Generalized:
        """The table at a node that satisfies, its groups and which of them are left out being known."""
        levels = zip(self.names, grouped.node, strict=True)
        recodes = {name: self.hierarchies[name].recode(level) for name, level in levels}
        published = self.table.where(~out.take(grouped.group)).recode(recodes)
        shown = published if published.names == self.names else published.project(self.names)
        return Generalized(published, Comparison(self.before, recodes, self.before.recode(recodes), shown))


class Best:
    """The nodes that may be the best of those looked at so far, up to the error of their costs.

    Attributes:
        lowest: the lowest cost so far.
        improved: when which cost was reached, in the unit of the measure.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.lowest = math.inf
        self.improved: list[tuple[float, float]] = []
        self._candidates: dict[Node, float] = {}

    def beaten(self, cost: float) -> bool:
        """Whether another node surely costs less."""
        return cost > self.lowest + 2 * self.task.cost.slack

    def price(self, grouped: Grouped, sizes: Codes, out: Flags) -> float:
        """The cost of a satisfying node, which is written down."""
        cost = self.task.cost
        if cost.needs_table:
            return self.offer(grouped.node, self.task.measure(self.task.made(grouped, out).comparison))
        stays = ~out
        return self.offer(grouped.node, cost.of(sizes[stays], grouped.weights[stays], int(sizes[out].sum())))

    def price_of(self, node: Node, sizes: Codes, weights: Codes, suppressed: int) -> float:
        """The same of published groups."""
        if not self.task.cost.needs_table:
            return self.offer(node, self.task.cost.of(sizes, weights, suppressed))
        return self.offer(node, self.task.measure(self._again(node).comparison))

    def offer(self, node: Node, cost: float) -> float:
        """Write down what a node costs."""
        if not self.beaten(cost):
            self._candidates[node] = cost
            if cost < self.lowest:
                self.lowest = cost
                self._candidates = {n: c for n, c in self._candidates.items() if not self.beaten(c)}
                self.improved.append((self.task.elapsed, cost / self.task.cost.scale))
        return cost

    def settled(self, complete: bool) -> tuple[Node, float, int]:
        """The best node, by the measure itself, what it costs and how many records it leaves out."""
        if not self._candidates:
            raise self._nothing(complete)
        ranked: list[tuple[float, int, int, Node]] = []
        for node in self._candidates:
            made = self._again(node)
            ranked.append((self.task.measure(made.comparison), made.suppressed, sum(node), node))
        cost, suppressed, _, node = min(ranked)
        return node, cost, suppressed

    def _again(self, node: Node) -> Generalized:
        """The table at a node that was found to satisfy."""
        made = self.task.generalized(node)
        if made is None:
            raise InternalError("a node that satisfied does not when looked at again")
        return made

    def _nothing(self, complete: bool) -> UnreachableError:
        failing = self.task.demands.failing_alone()
        if failing is not None:
            return unreachable(failing)
        how = "keeps" if complete else "was found in time that keeps"
        return UnreachableError(
            f"No generalization {how} everything that is demanded within the suppression allowed.",
            code="unreachable",
            remedy="Relax a requirement, allow more suppression or more time.",
        )
