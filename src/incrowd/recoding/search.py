"""The full-domain generalizations of a table that keep what is demanded, and the best of them.

One level for each quasi-identifier; groups that fail are left out, up to a share of the records. A node *satisfies* if
what is published then keeps every demand, is not nothing, and no more records than allowed are left out.

The choice depends on the data. That no requirement here says anything about an adversary who knows how it was made
(minimality attacks) must be said wherever the result is published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import DataError, ParameterError, UnreachableError
from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Histogram
from incrowd.recoding.demands import Demand
from incrowd.recoding.descent import Cheapest, Descent, Everything, Minimal, minimal_of
from incrowd.recoding.lattice import Node
from incrowd.recoding.neighbours import wander
from incrowd.recoding.task import Best, Generalized, Task

Progress = Callable[[float], None]

DESCENDED = 5_000_000
"""Lattices up to this size are searched completely, if the time allows; larger ones from neighbour to neighbour."""


@dataclass(frozen=True, eq=False)
class Every:
    """What holds at every node; arrays with one axis per quasi-identifier.

    Attributes:
        satisfies: whether the node satisfies.
        costs: what a satisfying node costs, up to the rounding of `measures.Cost.slack`; nan for others.
        suppressed: how many records it leaves out; −1 for others.
    """

    satisfies: NDArray[np.bool_]
    costs: NDArray[np.float64]
    suppressed: NDArray[np.int64]


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    Attributes:
        names: the quasi-identifiers, in the order of a node's levels.
        node: the best node found.
        cost: what it costs, by the measure.
        suppressed: how many records it leaves out.
        complete: whether no node is better.
        examined: how many nodes were looked at.
        minimal: if asked for and settled, all satisfying nodes that have no satisfying node below them.
        improved: when (seconds from the beginning) which cost was reached.
        every: if asked for, all nodes.
    """

    names: tuple[str, ...]
    node: Node
    cost: float
    suppressed: int
    complete: bool
    examined: int
    minimal: tuple[Node, ...] | None = None
    improved: tuple[tuple[float, float], ...] = field(default=(), compare=False)
    every: Every | None = field(default=None, compare=False)

    @property
    def levels(self) -> dict[str, int]:
        """The level of each quasi-identifier."""
        return dict(zip(self.names, self.node, strict=True))


def search(
    table: Histogram,
    hierarchies: Mapping[str, Hierarchy],
    demands: Sequence[Demand],
    *,
    measure: str = "loss",
    suppression: float = 0.0,
    seconds: float = 60.0,
    minimal: bool = False,
    every: bool = False,
    progress: Progress | None = None,
) -> Found:
    """The node with the lowest cost among those that satisfy; of several, the one with the fewest records left out,
    the lowest levels in all, and the first.

    Nothing depends on the order of records.

    Args:
        table: raw codes; columns that are neither quasi-identifiers nor asked about are ignored. Sensitive columns are
            taken as they are: one that is to be published at a level is recoded beforehand.
        hierarchies: of the quasi-identifiers, by name.
        demands: what must hold, all of it.
        measure: what is minimised, one of `measures.MEASURES` that has a fast form.
        suppression: the share of the records that may be left out.
        seconds: when to stop with the best node so far.
        minimal: also find all minimal nodes, in the time that is left when the best one is known.
        every: also return what holds at every node.
        progress: called now and then with the part that is done, from 0 to 1.

    Raises:
        UnreachableError: no node satisfies, or none was found in time.
    """
    asked = {name for d in demands for name in (*d.columns, *d.knowing)}
    used = table.project([*hierarchies, *sorted(asked - set(hierarchies))])
    task = Task(used, hierarchies, demands, measure, suppression, seconds)
    if every:
        return _look_at_all(task, progress)
    return _optimise(task, progress, minimal=minimal)


def generalize(
    table: Histogram,
    hierarchies: Mapping[str, Hierarchy],
    levels: Mapping[str, int],
    demands: Sequence[Demand],
    *,
    suppression: float = 1.0,
) -> Generalized:
    """The table at given levels, without the groups that must be left out.

    Raises:
        UnreachableError: more than the allowed share would be left out, or everything.
    """
    task = Task(table, hierarchies, demands, "loss", suppression, 1.0)
    found = task.generalized(tuple(levels[name] for name in hierarchies))
    if found is None:
        raise UnreachableError(
            "At these levels more records would have to be left out than allowed, or all of them.",
            code="unreachable",
            remedy="Choose coarser levels, relax a requirement or allow more suppression.",
        )
    return found


def _optimise(task: Task, progress: Progress | None, *, minimal: bool) -> Found:
    best = Best(task)
    if task.lattice.size > DESCENDED:
        tell = None if progress is None else lambda: progress(min(1.0, task.elapsed / (task.deadline - task.start)))
        examined = wander(task.cells, best.price, task.deadline, tell)
        return _found(task, best, examined, complete=False)
    descent = Descent(task.cells, task.cost)
    complete = descent.run(Cheapest(best, descent), task.deadline, _half(progress, 0.0) if minimal else progress)
    if not complete:
        wander(task.cells, best.price, task.deadline)  # which looks at the top even if there is no time at all
    among = _all_minimal(task, best, descent, _half(progress, 0.5)) if minimal and complete else None
    return _found(task, best, descent.examined, complete=complete, minimal=among)


def _all_minimal(task: Task, best: Best, descent: Descent, progress: Progress | None) -> tuple[Node, ...] | None:
    """All minimal nodes; None if there is no time or no room to find them."""
    judge = Minimal(best, descent)
    try:
        complete = descent.run(judge, task.deadline, progress)
    except DataError:
        return None  # a node has too many groups; the best one was found without it
    return tuple(sorted(judge.nodes)) if complete else None


def _half(progress: Progress | None, begins: float) -> Progress | None:
    return None if progress is None else lambda part: progress(begins + part / 2)


def _look_at_all(task: Task, progress: Progress | None) -> Found:
    if task.lattice.size > DESCENDED:
        raise ParameterError(
            f"The {task.lattice.size:,} nodes of this lattice are too many to be listed.", code="parameter-combination"
        )
    best = Best(task)
    descent = Descent(task.cells, task.cost)
    everything = Everything(best, descent)
    complete = descent.run(everything, task.deadline, progress)
    if not complete:
        wander(task.cells, best.price, task.deadline)
    every = Every(everything.suppressed >= 0, everything.costs, everything.suppressed)
    lowest = minimal_of(every.satisfies) if complete else None
    return _found(task, best, descent.examined, complete=complete, minimal=lowest, every=every)


def _found(
    task: Task,
    best: Best,
    examined: int,
    *,
    complete: bool,
    minimal: tuple[Node, ...] | None = None,
    every: Every | None = None,
) -> Found:
    node, cost, suppressed = best.settled(complete)
    improved = tuple(best.improved)
    return Found(task.names, node, cost, suppressed, complete, examined, minimal, improved, every)
