"""A mapping that is a tree of boxes, and how it is written.

The first box is everything. A box that is split has parts, which together are the box: they differ from it in one
column, and there they take its set apart. So the leaves are disjoint and cover the domain, and a record is in exactly
one. It is published with the names of its leaf's sets.

A grid is such a tree, too: its cuts take a set of a column apart wherever it is, so each column has one set of labels.
It is written as its cuts, because they say all.

Files are read strictly: whatever is not such a tree is refused, so that what follows from the tree may be relied on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.signing import canonical
from incrowd.histogram import Column, Histogram, Labels

Integers = NDArray[np.int64]
Values = tuple[int, ...]

FORMAT = "incrowd-mapping/1"
CUTS_FORMAT = "incrowd-cuts/1"
MAPPING = "mapping.json"
"""Its place beside a release."""

MOST_CELLS = 1 << 16
"""Of a grid."""

_MOST_VALUES = 1 << 28  # of all sets of a column together


@dataclass(frozen=True)
class TreeColumn:
    """A column as a tree shows it.

    Attributes:
        name: of the column.
        base: the labels of its base codes; None is the missing value.
        sets: the base codes of each set; the first is everything.
        labels: the name of each set, all different; None is the missing value alone.
        weights: about how many records have each base code, as far as that is public: a box's records are spread by
            them over what it covers. None if nothing is known.
    """

    name: str
    base: Labels
    sets: tuple[Values, ...]
    labels: Labels
    weights: tuple[int, ...] | None = None

    @cached_property
    def widths(self) -> NDArray[np.float64]:
        """(values covered − 1)/(values of the domain − 1), by set."""
        return np.array([(len(values) - 1) / max(len(self.base) - 1, 1) for values in self.sets])


@dataclass
class Box:
    """A box of the tree.

    Attributes:
        sets: by column, the number of its set.
        size: how many records it has, with noise; None in a mapping that was taken from elsewhere.
        column: along which it is split; None for a leaf.
        parts: the numbers of its parts.
        failed: the columns that were chosen here before, each of which left parts too small.
    """

    sets: tuple[int, ...]
    size: int | None
    column: int | None = None
    parts: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Cut:
    """A set of a column taken apart wherever it is: their numbers."""

    column: int
    number: int
    parts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Tree:
    """All boxes; the first holds everything, and parts come after what they are parts of.

    Attributes:
        columns: their sets.
        boxes: from the first.
        cuts: of a grid, in order; None for any other tree.
    """

    columns: tuple[TreeColumn, ...]
    boxes: tuple[Box, ...]
    cuts: tuple[Cut, ...] | None = None

    @cached_property
    def leaves(self) -> list[int]:
        """The numbers of the boxes that are not split."""
        return [number for number, box in enumerate(self.boxes) if box.column is None]

    @cached_property
    def above(self) -> list[int]:
        """The number of the box that each is a part of; −1 for the first."""
        found = [-1] * len(self.boxes)
        for number, box in enumerate(self.boxes):
            for part in box.parts:
                found[part] = number
        return found

    @cached_property
    def kept(self) -> NDArray[np.float64]:
        """What each box keeps of the information: the mean over columns of 1 − width."""
        widths = [c.widths[[box.sets[place] for box in self.boxes]] for place, c in enumerate(self.columns)]
        return np.asarray(1 - np.mean(widths, axis=0), dtype=np.float64)

    def leaf_of(self, table: Histogram) -> Integers:
        """For each cell of a table of base codes, the number of the leaf that it is in."""
        at = np.zeros(len(table), dtype=np.int64)
        level = [0]
        while level:
            for place, column in enumerate(self.columns):
                split = [n for n in level if self.boxes[n].column == place]
                if split:
                    self._descend(at, split, place, table[column.name].codes)
            level = [part for n in level for part in self.boxes[n].parts]
        return at

    def _descend(self, at: Integers, split: Sequence[int], place: int, codes: Integers) -> None:
        column = self.columns[place]
        row = np.full(len(self.boxes), -1, dtype=np.int64)
        row[split] = np.arange(len(split))
        parts = np.zeros((len(split), len(column.base)), dtype=np.int64)
        for i, n in enumerate(split):
            for part in self.boxes[n].parts:
                parts[i, list(column.sets[self.boxes[part].sets[place]])] = part
        rows = row[at]
        here = np.flatnonzero(rows >= 0)
        at[here] = parts[rows[here], codes[here]]

    def shown(self, counts: Integers) -> Histogram:
        """A table of so many records in each box, as it is published."""
        present = np.flatnonzero(counts)
        return Histogram.of(self.labelled(present), counts[present])

    @cached_property
    def shown_sets(self) -> list[Integers]:
        """By column, the numbers of the sets that a release may show: of a grid, those that were not cut again."""
        if self.cuts is None:
            return [np.arange(len(c.sets)) for c in self.columns]
        cut = {(cut.column, cut.number) for cut in self.cuts}
        return [
            np.array([n for n in range(len(c.sets)) if (place, n) not in cut], dtype=np.int64)
            for place, c in enumerate(self.columns)
        ]

    def labels(self, place: int) -> Labels:
        """What a column of a release may show."""
        return tuple(self.columns[place].labels[n] for n in self.shown_sets[place].tolist())

    def labelled(self, boxes: Integers) -> list[Column]:
        """The columns of records in these boxes."""
        sets = np.array([box.sets for box in self.boxes], dtype=np.int64)
        return [
            Column(c.name, self.labels(place), np.searchsorted(self.shown_sets[place], sets[boxes, place]))
            for place, c in enumerate(self.columns)
        ]

    def places(self, table: Histogram) -> Integers:
        """The leaf of each cell of a published table; −1 if it is none."""
        known = {self.boxes[n].sets: n for n in self.leaves}
        columns = enumerate(self.columns)
        cells = zip(*(self.shown_sets[place][table[c.name].codes].tolist() for place, c in columns), strict=True)
        return np.array([known.get(cell, -1) for cell in cells], dtype=np.int64)

    def weighted(self, weights: Mapping[str, Sequence[int]]) -> Tree:
        """The same boxes, with the weights of all columns."""
        columns = tuple(replace(c, weights=tuple(max(0, int(n)) for n in weights[c.name])) for c in self.columns)
        return replace(self, columns=columns)

    def without_sizes(self) -> Tree:
        """The same boxes; how many records were in them is another table's."""
        return replace(self, boxes=tuple(Box(b.sets, None, b.column, b.parts) for b in self.boxes))

    def to_bytes(self) -> bytes:
        columns = [
            {
                "name": c.name,
                "values": list(c.base),
                "weights": None if c.weights is None else list(c.weights),
                "sets": [
                    {"label": label, "values": _runs(values)} for label, values in zip(c.labels, c.sets, strict=True)
                ],
            }
            for c in self.columns
        ]
        if self.cuts is not None:
            cuts = [
                {"column": self.columns[cut.column].name, "set": cut.number, "parts": list(cut.parts)}
                for cut in self.cuts
            ]
            return canonical({"format": CUTS_FORMAT, "columns": columns, "cuts": cuts})
        boxes = [
            {
                "sets": list(box.sets),
                "size": box.size,
                "column": None if box.column is None else self.columns[box.column].name,
                "parts": list(box.parts),
                "failed": [self.columns[place].name for place in box.failed],
            }
            for box in self.boxes
        ]
        return canonical({"format": FORMAT, "columns": columns, "boxes": boxes})


def read_tree(content: bytes) -> Tree:
    """The tree that a file holds.

    Raises:
        ValueError: it holds something else, or its boxes are not disjoint or do not cover everything.
    """
    document = json.loads(content)
    _require(isinstance(document, dict))
    made_of = "cuts" if document["format"] == CUTS_FORMAT else "boxes"
    _require(set(document) == {"format", "columns", made_of} and document["format"] in (FORMAT, CUTS_FORMAT))
    columns = tuple(map(_column, document["columns"]))
    _require(len({c.name for c in columns}) == len(columns) > 0)
    names = {c.name: place for place, c in enumerate(columns)}
    if made_of == "cuts":
        tree = grid(columns, tuple(_cut(raw, names) for raw in document["cuts"]))
    else:
        tree = Tree(columns, tuple(_box(raw, names) for raw in document["boxes"]))
    _require_boxes(tree)
    _require(tree.to_bytes() == content)
    return tree


def grid(columns: tuple[TreeColumn, ...], cuts: tuple[Cut, ...]) -> Tree:
    """The tree of all cells that some cuts make, one after the other.

    Raises:
        ValueError: a cut is of a set that is not there, or there are too many cells.
    """
    boxes = [Box(tuple(0 for _ in columns), None)]
    leaves = [0]
    for cut in cuts:
        apart = [n for n in leaves if boxes[n].sets[cut.column] == cut.number]
        _require(bool(apart) and len(leaves) + len(apart) * (len(cut.parts) - 1) <= MOST_CELLS)
        for n in apart:
            box = boxes[n]
            box.column, box.parts = cut.column, tuple(range(len(boxes), len(boxes) + len(cut.parts)))
            before, after = box.sets[: cut.column], box.sets[cut.column + 1 :]
            boxes += [Box((*before, part, *after), None) for part in cut.parts]
        leaves = [n for n in leaves if boxes[n].column is None] + [p for n in apart for p in boxes[n].parts]
    return Tree(columns, tuple(boxes), cuts)


def _cut(raw: Mapping[str, Any], names: Mapping[str, int]) -> Cut:
    number, parts = raw["set"], tuple(raw["parts"])
    _require(set(raw) == {"column", "set", "parts"} and all(type(n) is int and n >= 0 for n in (number, *parts)))
    _require(len(parts) > 1)
    return Cut(names[raw["column"]], number, parts)


def _column(raw: Mapping[str, Any]) -> TreeColumn:
    base = tuple(raw["values"])
    runs = [_runs_of(item["values"], len(base)) for item in raw["sets"]]
    # A short file could hold very long sets, so they are written out after that only.
    _require(sum(last - first + 1 for among in runs for first, last in among) <= _MOST_VALUES)
    sets = tuple(tuple(value for first, last in among for value in range(first, last + 1)) for among in runs)
    labels = tuple(item["label"] for item in raw["sets"])
    _require(isinstance(raw["name"], str) and all(x is None or isinstance(x, str) for x in (*base, *labels)))
    _require(len(set(base)) == len(base) > 0 and len(set(labels)) == len(labels) and len(set(sets)) == len(sets))
    _require(sets[0] == tuple(range(len(base))) and all(v and v[0] >= 0 and v[-1] < len(base) for v in sets))
    weights = None if raw["weights"] is None else tuple(raw["weights"])
    if weights is not None:
        _require(len(weights) == len(base) and all(type(n) is int and 0 <= n < 2**62 for n in weights))
    return TreeColumn(raw["name"], base, sets, labels, weights)


def _box(raw: Mapping[str, Any], names: Mapping[str, int]) -> Box:
    sets, parts = tuple(raw["sets"]), tuple(raw["parts"])
    size = raw["size"]
    _require(all(type(n) is int and n >= 0 for n in (*sets, *parts)) and len(sets) == len(names))
    _require(size is None or (type(size) is int and size >= 0))
    column = None if raw["column"] is None else names[raw["column"]]
    return Box(sets, size, column, parts, tuple(names[name] for name in raw["failed"]))


def _require_boxes(tree: Tree) -> None:
    """Every box but the first is a part of one before it, and parts take a box apart along one column."""
    boxes, columns = tree.boxes, tree.columns
    _require(len(boxes) > 0 and not any(boxes[0].sets))
    _require(sorted(part for box in boxes for part in box.parts) == list(range(1, len(boxes))))
    for number, box in enumerate(boxes):
        _require(all(s < len(c.sets) for s, c in zip(box.sets, columns, strict=True)))
        _require((box.column is None) == (not box.parts) and len(box.parts) != 1)
        _require((box.size is None) == (boxes[0].size is None))
        if box.column is None:
            continue
        place = box.column
        taken: list[int] = []
        for part in box.parts:
            _require(part > number)
            sets = boxes[part].sets
            _require(sets[:place] == box.sets[:place] and sets[place + 1 :] == box.sets[place + 1 :])
            taken.extend(columns[place].sets[sets[place]])
        _require(tuple(sorted(taken)) == columns[place].sets[box.sets[place]])


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("this is not a tree of boxes")


def _runs(values: Values) -> list[list[int]]:
    """Codes as runs, each with its first and its last."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][1] == value - 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return runs


def _runs_of(runs: Sequence[Sequence[int]], size: int) -> Sequence[Sequence[int]]:
    """Runs of codes, if they are some."""
    _require(all(len(run) == 2 for run in runs))
    _require(all(type(end) is int for run in runs for end in run) and all(0 <= a <= b < size for a, b in runs))
    _require(all(last + 1 < first for (_, last), (first, _) in pairwise(runs)))
    return runs
