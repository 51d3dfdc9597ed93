"""Local recoding: different groups of records are shown by different sets of values.

After LeFevre, DeWitt and Ramakrishnan's strict Mondrian, with the splits of a tree of boxes (`boxes`): into the
children of a hierarchy, or in two. It begins with everything in one group. A group is split along one column if every
part that holds records keeps all requirements; of the splits that do, the one is taken that tells most for what it
takes apart: the information gained, over the entropy of the group's records over the parts. Groups never overlap, so a
record's group is told by its labels.

**What this does not protect.** The groups follow the records, so their edges tell where records are: of a group that
reaches from 900 thousand to 35 million, everyone knows that somebody in it has about 35 million, and who that is (Li,
Qardaji and Su, Section 3.1). A set narrowed down because nobody else was there tells that nobody was. Full-domain
generalization gives away less of this, a mapping chosen without the data nothing. Local recoding as it is done here, by
looking at the records, is never differentially private, and no sample, shuffle or crowd size makes it so. The same
splits, chosen and counted with noise, are (`growth`); `recoding: tree` of `sampled_crowd` uses that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.core.errors import ParameterError
from incrowd.histogram import Histogram
from incrowd.recoding.boxes import Sets
from incrowd.recoding.demands import Demand, Demands, require_task, unreachable
from incrowd.recoding.growth import Growth, Lines, OpenBox, Option, finished, parted
from incrowd.recoding.lattice import Codes
from incrowd.recoding.mapping import Tree


@dataclass(frozen=True, eq=False)
class Local:
    """A table recoded group by group.

    Attributes:
        published: the table, every quasi-identifier with the sets of the tree as labels.
        tree: the groups, with those that hold no records.
        groups: how many groups hold records.
        loss: the mean over records and quasi-identifiers of (values covered − 1)/(values of the domain − 1).
    """

    published: Histogram
    tree: Tree
    groups: int
    loss: float


def mondrian(table: Histogram, columns: Sequence[Sets], demands: Sequence[Demand]) -> Local:
    """Recode a table locally, so that everything demanded holds and nothing is left out.

    Depends on the histogram only, not on the order of records; see the module's text for what it does not protect.

    Args:
        table: raw codes; columns that are not quasi-identifiers stay as they are.
        columns: the sets of the quasi-identifiers, each with its one-way table as it is.
        demands: what must hold for every group.

    Raises:
        UnreachableError: not even the whole table as one group keeps everything.
    """
    require_task(table, {sets.name: sets.attribute.hierarchy for sets in columns}, demands)
    if any(demand.apart for demand in demands):
        raise ParameterError(
            "A local recoding looks at groups by all quasi-identifiers, and at one sensitive column at a time.",
            code="parameter-combination",
        )
    checked = Demands(demands, table, 0.0)
    failing = checked.failing_alone()
    if failing is not None:
        raise unreachable(failing)
    tree, leaf = _Partition(table, columns, checked).split_up()
    shown = {column.name: column for column in tree.labelled(leaf)}
    published = Histogram.of([shown.get(column.name, column) for column in table.columns], table.counts)
    loss = 1 - float(np.dot(tree.kept[leaf], table.counts)) / table.total
    return Local(published, tree, len(np.unique(leaf)), loss)


class _Partition:
    """The groups, from one to the last."""

    def __init__(self, table: Histogram, columns: Sequence[Sets], demands: Demands) -> None:
        self.columns, self.counts, self.demands = columns, table.counts, demands
        self.codes = [table[sets.name].codes for sets in columns]
        self.options = Lines(columns, Growth(0, 0, "information", (1,) * len(columns)))
        self.ends = demands.ends(len(self.counts))

    def split_up(self) -> tuple[Tree, Codes]:
        """All boxes, without their sizes, and the leaf of each cell."""
        boxes = [OpenBox(tuple(0 for _ in self.columns), 0)]
        leaf = np.zeros(len(self.counts), dtype=np.int64)
        waiting = [(0, np.arange(len(self.counts)))]
        while waiting:
            number, cells = waiting.pop()
            best = self._best_split(boxes[number], cells)
            if best is None:
                leaf[cells] = number
                continue
            place, option, part = best
            order = np.argsort(part, kind="stable")
            edges = np.searchsorted(part.take(order), np.arange(1, len(option.parts)))
            parts = parted(boxes, boxes[number], place, option.parts, [0] * len(option.parts))
            within = [cells.take(some) for some in np.split(order, edges)]
            waiting += [(below, some) for below, some in zip(parts, within, strict=True) if len(some)]
        return finished(boxes, self.options).without_sizes(), leaf

    def _best_split(self, box: OpenBox, cells: Codes) -> tuple[int, Option, Codes] | None:
        """The column that a group is split along, how, and the part of each cell; None if it may not be split."""
        counts = self.counts.take(cells)
        hopes: list[tuple[int, int, Option, Codes]] = []
        for place, sets in enumerate(self.columns):
            number, codes = box.sets[place], self.codes[place].take(cells)
            if len(sets.values[number]) == 1:
                continue
            masses = np.bincount(codes, weights=counts, minlength=sets.size).astype(np.float64)
            for parts in sets.ways_by(number, masses):
                option = self.options.made(place, number, parts, masses)
                part = option.part_of.take(codes)
                hopes.append((-int(option.gains.take(part) @ counts), place, option, part))
        for _, place, option, part in sorted(hopes, key=lambda hope: hope[:2]):
            group = np.unique(part, return_inverse=True)[1]
            sizes = np.bincount(group, weights=counts).astype(np.int64)
            if self.demands.kept_by_parts(sizes, lambda group=group: (group, counts, self.ends.take(cells))):  # type: ignore[misc]
                return place, option, part
        return None
