"""Local recoding: different groups of records are shown at different levels of the same hierarchy.

After LeFevre, DeWitt and Ramakrishnan's strict Mondrian, with hierarchies. It begins with everything in one group, all
columns suppressed. A group is split along one column into the children of its node in that column's hierarchy, if every
part that holds records keeps all requirements; of the splits that do, the one that tells most is taken. Groups never
overlap, so a record's group is told by its labels.

**What this does not protect.** The groups follow the records, so their edges tell where records are: of a group that
reaches from 900 thousand to 35 million, everyone knows that somebody in it has about 35 million, and who that is (Li,
Qardaji and Su, Section 3.1). A node narrowed down because nobody else was there tells that nobody was. Full-domain
generalization gives away less of this, a mapping chosen without the data nothing. Local recoding as it is done here, by
looking at the records, is never differentially private, and no sample, shuffle or crowd size makes it so. A tree of
boxes whose every split is chosen and counted with noise is (`growing`); `recoding: tree` of `sampled_crowd` uses that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import HierarchyError, ParameterError
from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Column, Histogram, Labels
from incrowd.recoding.demands import Demand, Demands, require_task, unreachable
from incrowd.recoding.lattice import Codes, starts


@dataclass(frozen=True, eq=False)
class Local:
    """A table recoded group by group.

    Attributes:
        published: the table, every quasi-identifier with the nodes of its whole hierarchy as labels.
        groups: how many groups there are.
        loss: the mean over records and quasi-identifiers of (values covered − 1)/(values of the domain − 1).
    """

    published: Histogram
    groups: int
    loss: float


def mondrian(table: Histogram, hierarchies: Mapping[str, Hierarchy], demands: Sequence[Demand]) -> Local:
    """Recode a table locally, so that everything demanded holds and nothing is left out.

    Depends on the histogram only, not on the order of records; see the module's text for what it does not protect.

    Args:
        table: raw codes; columns that are not quasi-identifiers stay as they are.
        hierarchies: of the quasi-identifiers, by name.
        demands: what must hold for every group.

    Raises:
        UnreachableError: not even the whole table as one group keeps everything.
    """
    require_task(table, hierarchies, demands)
    if any(demand.apart for demand in demands):
        raise ParameterError(
            "A local recoding looks at groups by all quasi-identifiers, and at one sensitive column at a time.",
            code="parameter-combination",
        )
    checked = Demands(demands, table, 0.0)
    failing = checked.failing_alone()
    if failing is not None:
        raise unreachable(failing)
    columns = [_Nodes(name, hierarchy, table[name]) for name, hierarchy in hierarchies.items()]
    made, groups = _Partition(columns, table.counts, checked).split_up()
    shown = {column.name: Column(column.name, column.labels, made[place]) for place, column in enumerate(columns)}
    published = Histogram.of([shown.get(column.name, column) for column in table.columns], table.counts)
    loss = sum(float(np.dot(c.widths.take(made[p]), table.counts)) for p, c in enumerate(columns))
    return Local(published, groups, loss / (table.total * len(columns)))


def node_labels(hierarchy: Hierarchy) -> Labels:
    """What a column that is recoded locally may show: the nodes of its hierarchy, whether or not a record has them."""
    nowhere = Column("", hierarchy.levels[0].labels, np.zeros(0, dtype=np.int64))
    return _Nodes("", hierarchy, nowhere).labels


def within(hierarchy: Hierarchy) -> NDArray[np.bool_]:
    """For each pair of nodes, in the order of `node_labels`, whether the second lies within the first or is it."""
    everything = Column("", hierarchy.levels[0].labels, np.arange(len(hierarchy.levels[0].labels)))
    nodes = _Nodes("", hierarchy, everything)
    covers = np.zeros((len(nodes.labels), len(everything.labels)), dtype=np.bool_)
    for at in nodes.at:
        covers[at, everything.codes] = True
    one = covers.argmax(axis=1)  # a value of each node: nodes are disjoint, or one is within the other
    sizes = covers.sum(axis=1)
    return np.asarray(covers[:, one] & (sizes[:, None] >= sizes[None, :]))


class _Nodes:
    """The nodes of one column's hierarchy. One that is the same at several levels is one node, called as at the lowest.

    Attributes:
        labels: of the nodes.
        widths: (values covered − 1)/(values of the domain − 1), by node.
        split: the level at which a node falls apart; −1 for those that do not.
        at: by level, the node of each cell of the table.
    """

    def __init__(self, name: str, hierarchy: Hierarchy, column: Column) -> None:
        self.name = name
        labels: list[str | None] = list(hierarchy.levels[0].labels)
        splits = [-1] * len(labels)
        covered = [1] * len(labels)
        node = np.arange(len(labels))  # of each base code, at the level below
        self.at: list[Codes] = [node.take(column.codes)]
        for number, level in enumerate(hierarchy.levels[1:], start=1):
            sizes = hierarchy.covered(number)
            # The node below that a code of this level consists of, where it is one.
            below = np.zeros(len(level.labels), dtype=np.int64)
            below[level.to] = node
            places = []
            for code, label in enumerate(level.labels):
                if covered[below[code]] == sizes[code]:
                    places.append(int(below[code]))
                    continue
                places.append(len(labels))
                labels.append(label)
                splits.append(number - 1)
                covered.append(int(sizes[code]))
            node = np.array(places)[level.to]
            self.at.append(node.take(column.codes))
        if len(set(labels)) < len(labels):
            raise HierarchyError(
                f"Two groups in the hierarchy of {name!r} have the same name at different levels.",
                code="hierarchy-label",
                remedy="Local recoding shows several levels beside each other; give each group a name of its own.",
            )
        self.labels: Labels = tuple(labels)
        self.split = splits
        domain = len(column.labels)
        self.widths = (np.array(covered) - 1) / max(domain - 1, 1)


class _Partition:
    """The groups, from one to the last."""

    def __init__(self, columns: Sequence[_Nodes], counts: Codes, demands: Demands) -> None:
        self.columns = columns
        self.counts = counts
        self.demands = demands
        self.ends = demands.ends(len(counts))

    def split_up(self) -> tuple[list[Codes], int]:
        """The node of each cell, by column, and the number of groups."""
        made = [column.at[-1].copy() for column in self.columns]
        waiting = [np.arange(len(self.counts))]
        groups = 0
        while waiting:
            cells = waiting.pop()
            parts = self._best_split(made, cells)
            waiting.extend(parts)
            groups += not parts
        return made, groups

    def _best_split(self, made: list[Codes], cells: Codes) -> list[Codes]:
        """Split a group of cells along the column that tells most, and note the nodes; no parts if none may be."""
        counts = self.counts.take(cells)
        hopes: list[tuple[float, int, Codes]] = []
        for place, column in enumerate(self.columns):
            node = int(made[place][cells[0]])
            if column.split[node] >= 0:
                children = column.at[column.split[node]].take(cells)
                gain = float(np.dot(column.widths[node] - column.widths.take(children), counts))
                hopes.append((-gain, place, children))
        for _, place, children in sorted(hopes, key=lambda hope: hope[:2]):
            order = np.argsort(children, kind="stable")
            first = starts(children.take(order))
            group = np.empty(len(cells), dtype=np.int64)
            group[order] = np.cumsum(first) - 1
            sizes = np.bincount(group, weights=counts).astype(np.int64)
            if self.demands.kept_by_parts(sizes, lambda group=group: (group, counts, self.ends.take(cells))):  # type: ignore[misc]
                made[place][cells] = children
                return [cells.take(part) for part in np.split(order, np.flatnonzero(first)[1:])]
        return []
