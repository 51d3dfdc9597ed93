"""Boxes of a table whose cells stay in the engine: one aggregation of box × column × value for each level of a tree.

It gives the same whole numbers as `growth.Counts`, and so the same tree from the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from incrowd.core.errors import InternalError
from incrowd.recoding.growth import Integers, Lines, OpenBox, Option
from incrowd.recoding.mapping import Tree
from incrowd.sources.kept import KeptTable

_ByCode = tuple[Integers, Integers, Integers]


class KeptCounts:
    """What `growth.BoxCounts` says.

    Attributes:
        records: how many records each box of the tree has, in the order in which boxes come about. Not to be published.
    """

    def __init__(self, table: KeptTable) -> None:
        self._boxes = table.boxes()
        self.records = [table.total]
        self._along: dict[int, int] | None = None  # what is to become of the cells before the next question
        self._to: dict[int, Integers] = {}
        self._by_code: list[_ByCode] | None = None
        self._counted: dict[int, dict[int, Integers]] = {}

    def within(self, options: Lines, boxes: Sequence[OpenBox], line: int) -> dict[int, Integers]:
        found = [(i, options.of(line, box)) for i, box in enumerate(boxes) if line not in box.frozen]
        known = {i: option for i, option in found if option is not None}
        if known:
            self._counted[line] = _parts(self._asked()[options.lines[line][0]], known, len(boxes))
        return self._counted[line] if known else {}

    def follow(self, options: Lines, boxes: Sequence[OpenBox], lines: dict[int, int], first: Integers) -> None:
        """Put each cell into the part that it is in, before the next question."""
        self._along, self._to = {}, {}
        for i, line in lines.items():
            place, option = options.lines[line][0], options.of(line, boxes[i])
            if option is None:
                raise InternalError("a box was split along a line that does not split it")
            to = np.full(options.columns[place].size, -1, dtype=np.int64)
            inside = list(options.columns[place].values[boxes[i].sets[place]])
            to[inside] = first[i] + option.part_of[inside]
            self._along[i], self._to[i] = place, to
            self.records += self._counted[line][i].tolist()
        self._by_code, self._counted = None, {}

    def only(self, boxes: Integers) -> None:
        if self._along is None:  # all are in one box yet, and whether it is split at all is decided by its size
            return
        self._to = {i: np.where(to >= 0, boxes[to], -1) for i, to in self._to.items()}

    def _asked(self) -> list[_ByCode]:
        if self._by_code is None:
            if self._along is not None:
                self._boxes.move(self._along, self._to)
            self._by_code = self._boxes.by_code()
        return self._by_code


def _parts(by_code: _ByCode, options: Mapping[int, Option], boxes: int) -> dict[int, Integers]:
    """How many records each part of some boxes holds."""
    box, code, counts = by_code
    widest = max(len(option.parts) for option in options.values())
    different = {id(option): option for option in options.values()}
    number = {key: row for row, key in enumerate(different)}
    tables = np.stack([option.part_of for option in different.values()])
    row = np.full(boxes, -1, dtype=np.int64)
    row[list(options)] = [number[id(option)] for option in options.values()]
    here = np.flatnonzero(row[box] >= 0)
    keys = box[here] * widest + tables[row[box[here]], code[here]]
    # Sums of whole numbers below 2**53 are exact.
    sums = np.bincount(keys, weights=counts[here], minlength=boxes * widest).astype(np.int64)
    return {i: sums[i * widest : i * widest + len(option.parts)] for i, option in options.items()}


def leaf_records(tree: Tree, table: KeptTable) -> Integers:
    """How many records are in each leaf of a tree; nothing in other boxes."""
    found, boxes, level = np.zeros(len(tree.boxes), dtype=np.int64), table.boxes(), [0]
    found[0] = table.total
    while split := [(i, number) for i, number in enumerate(level) if tree.boxes[number].column is not None]:
        by_code, along, to = boxes.by_code(), {}, {}
        below: list[int] = []
        for i, number in split:
            place, parts = tree.boxes[number].column or 0, tree.boxes[number].parts
            column = tree.columns[place]
            becomes = np.full(len(column.base), -1, dtype=np.int64)
            for part in parts:
                becomes[list(column.sets[tree.boxes[part].sets[place]])] = len(below)
                below.append(part)
            box, code, counts = by_code[place]
            here = box == i
            np.add.at(found, np.array(below)[becomes[code[here]]], counts[here])
            found[number], along[i], to[i] = 0, place, becomes
        open_ones = [n for n in range(len(below)) if tree.boxes[below[n]].column is not None]
        level = [below[n] for n in open_ones]
        if level:
            number_of = np.full(len(below), -1, dtype=np.int64)
            number_of[open_ones] = np.arange(len(open_ones))
            boxes.move(along, {i: np.where(b >= 0, number_of[b], -1) for i, b in to.items()})
    return found
