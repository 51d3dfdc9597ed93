"""A tree of boxes, grown privately on the full table.

It starts with one box, everything. A box is split along one column, which is chosen by the exponential mechanism; the
parts are counted with noise; what comes next follows from these counts alone. Different branches refine different
columns. The noisy one-way tables come first, are published, and serve all public decisions: where a column is cut, and
what a split is worth at most.

**One step** at a box with a noisy size n~ and a threshold τ (about 1.15 k/β: what a box should hold to be published).
Part j of column c holds n_j records and gains a share g_cj of information. With whole numbers G_cj in proportion to
g_cj/b_c, b_c the entropy of the noisy one-way table over the parts, r_c = max_j G_cj and P_c = ⌊r_c/4⌋, the score is

    s_c = Σ_j G_cj n_j − P_c Σ_j min(n_j, (τ − n_j)₊):

what is gained, less what would be lost with parts too small to be published. One record more moves s_c by −P_c at least
and r_c + P_c at most, so all scores move within a range of R = max_c(r_c + P_c) + max_c P_c, and choosing c with
probability proportional to e^{e·s_c/R} is e-bounded-range, hence (e²/8)-zCDP. The parts are disjoint: counting them
with discrete Gaussian noise of variance σ² costs 1/(2σ²). For `queries`, the gain is the distance of the parts from
what the one-way table predicts, Σ_j |2^b n_j − Q_j n|, of which one record moves at most 2·max_j(2^b − Q_j) either way.

**Sizes** that are published, and decide what comes next, are the noisy counts, made to agree with the noisy size of the
box above: what the parts lack of it, or have too much, is shared among them as far as its noise is small beside theirs.

**Only a record's own path pays.** Given the transcript so far, a box that the record is not in has the same law with
and without it. A charge is a function of the transcript; it is compared with what is left on the path *before* the
draw, and a choice that is thrown away again (the column is frozen) is charged like any other. So the charges on every
path add up to at most ρ_t, and the tree is ρ_t-zCDP, whatever the number of its boxes.

All counts, scores and charges are whole numbers, all draws exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError
from incrowd.histogram import Histogram
from incrowd.noise import DiscreteGaussian, choose, draw
from incrowd.randomness import RandomSource
from incrowd.recoding.boxes import Sets
from incrowd.recoding.mapping import Box, Tree, TreeColumn
from incrowd.theory.concentrated import counts_charge, selection_charge

Integers = NDArray[np.int64]
Score = Literal["information", "queries"]

_SCALE = 1 << 16
_PENALTY = 4  # a quarter of the largest gain for each record in a part too small
_LEAST_ENTROPY = 0.15
_EXPONENT_BITS = 24


@dataclass(frozen=True)
class Growth:
    """How a tree is to be grown: public, and decided before any data is seen.

    Attributes:
        budget: ρ_t, the most that a path may cost, in units of 2⁻⁶⁴.
        threshold: τ.
        score: what a split is worth.
        weights: the importance of each column, as whole numbers.
        lost: one of so many records, at most, may look lost after a split, in parts smaller than τ.
        by_budget: whether the noise of sizes follows the path's budget; in releases of 0.3 it was a quarter of τ.
    """

    budget: int
    threshold: int
    score: Score
    weights: tuple[int, ...]
    lost: int = 25
    by_budget: bool = True

    @property
    def rho(self) -> float:
        """The budget as a number."""
        return self.budget / 2**64

    @property
    def least(self) -> int:
        """The noisy size from which on a split is tried: nearly two boxes, as few splits halve."""
        return math.ceil(1.8 * self.threshold)

    def exponent(self, size: int) -> Fraction:
        """e for a box of a noisy size: enough to tell columns apart, and no more."""
        wanted = min(0.25, math.sqrt(0.5 * self.rho), 100 / max(size, 1))
        return Fraction(max(1, math.floor(wanted * 2**_EXPONENT_BITS)), 2**_EXPONENT_BITS)

    def deviation(self, size: int) -> int:
        """σ for the parts of a box of a noisy size.

        Counts of a small box take an eighth of a path's budget, as far as a part is then still told from τ.
        """
        least = 0.25 * self.threshold
        if self.by_budget:
            least = min(max(math.sqrt(4 / max(self.rho, 1e-30)), 0.2 * self.threshold), 0.4 * self.threshold)
        return max(1, math.ceil(least), math.ceil(0.04 * size))

    def price(self, size: int) -> int:
        """What a choice and the counts after it cost, in units of 2⁻⁶⁴: the larger a box, the less."""
        return selection_charge(self.exponent(size)) + counts_charge(self.deviation(size) ** 2)

    def least_split(self, most: int) -> int | None:
        """How many records a table must have, about, for a single split; None if that is more than `most`."""
        low, high = self.least, most
        if low > most or self.price(most) > self.budget:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.price(middle) <= self.budget else (middle + 1, high)
        return low


class Draws(Protocol):
    """Where everything random in a tree comes from."""

    def choose(self, exponents: Sequence[Fraction]) -> int:
        """An index, i with probability proportional to e^{exponents[i]}."""
        ...

    def noise(self, variance: int, size: int) -> Integers:
        """So many numbers of a discrete Gaussian law."""
        ...


@dataclass(frozen=True)
class Noisy:
    """Exact draws: what the module's text promises holds for these alone."""

    source: RandomSource

    def choose(self, exponents: Sequence[Fraction]) -> int:
        """The exponential mechanism."""
        return choose(self.source, exponents)

    def noise(self, variance: int, size: int) -> Integers:
        return draw(self.source, DiscreteGaussian(variance), size)


@dataclass
class OpenBox:
    """A box while the tree grows.

    Attributes:
        sets, size, column, parts: as those of a `Box`.
        spent: what its path has cost, in units of 2⁻⁶⁴.
        variance: that of its size; the first box is counted so much better than others that it is taken for 0.
        frozen: the lines that were tried here or above and left parts too small.
        failed: those of them that were tried here.
    """

    sets: tuple[int, ...]
    size: int
    spent: int = 0
    variance: int = 0
    frozen: frozenset[int] = frozenset()
    column: int | None = None
    parts: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Option:
    """A column's split of one set, with the whole numbers that its score is made of, and the parts' shares in it."""

    parts: tuple[int, ...]
    part_of: Integers
    shares: NDArray[np.float64]
    gains: Integers
    expected: Integers
    most: int
    penalty: int
    range_up: int
    range_down: int


class Lines:
    """What can be done with a set of a column, computed once.

    Attributes:
        lines: what a box is offered: each is a column and one of the ways to split it.
    """

    def __init__(self, columns: Sequence[Sets], growth: Growth) -> None:
        self.columns, self.growth = columns, growth
        self.lines = [(place, way) for place, sets in enumerate(columns) for way in range(sets.most_ways)]
        self._known: dict[tuple[int, int], Option | None] = {}

    def of(self, line: int, box: OpenBox) -> Option | None:
        """How a box is split along a line; None if it cannot be."""
        place, way = self.lines[line]
        key = (line, box.sets[place])
        if key not in self._known:
            self._known[key] = self._made(place, way, box.sets[place])
        return self._known[key]

    def _made(self, place: int, way: int, number: int) -> Option | None:
        sets = self.columns[place]
        ways = sets.ways(number)
        return self.made(place, number, ways[way], sets.marginal) if way < len(ways) else None

    def made(self, place: int, number: int, parts: tuple[int, ...], masses: NDArray[np.float64]) -> Option:
        """What a split of a set into parts is worth, if the records lie like this one-way table."""
        sets = self.columns[place]
        part_of = np.zeros(sets.size, dtype=np.int64)
        for j, part in enumerate(parts):
            part_of[list(sets.values[part])] = j
        within = np.array([float(masses[list(sets.values[part])].sum()) for part in parts])
        shares = within / within.sum() if within.sum() > 0 else np.full(len(parts), 1 / len(parts))
        positive = shares[shares > 0]
        spread = max(_LEAST_ENTROPY, float(-(positive * np.log(positive)).sum()))
        weight = self.growth.weights[place] / max(sum(self.growth.weights), 1)
        lengths = np.array([len(sets.values[part]) for part in parts])
        gained = (len(sets.values[number]) - lengths) / (sets.size - 1)
        gains = np.floor(_SCALE * weight * gained / spread).astype(np.int64)
        expected = np.floor(shares * 256).astype(np.int64)
        expected[0] += 256 - expected.sum()
        if self.growth.score == "queries":
            factor = max(1, math.floor(16 * weight * len(self.columns)))
            reach = 2 * factor * int((256 - expected).max())
            penalty = reach // _PENALTY
            gains = np.full(len(parts), factor, dtype=np.int64)
            return Option(parts, part_of, shares, gains, expected, reach, penalty, reach + penalty, reach + penalty)
        most = int(gains.max())
        penalty = most // _PENALTY
        return Option(parts, part_of, shares, gains, expected, most, penalty, most + penalty, penalty)

    def score(self, option: Option, counts: Integers) -> int:
        """s_c."""
        tau = self.growth.threshold
        lost = int(np.minimum(counts, np.maximum(tau - counts, 0)).sum())
        if self.growth.score == "queries":
            apart = np.abs(256 * counts - option.expected * int(counts.sum()))
            return int(option.gains[0]) * int(apart.sum()) - option.penalty * lost
        return int(option.gains @ counts) - option.penalty * lost


class BoxCounts(Protocol):
    """A table that knows which box each record is in: one aggregation of box × part for each line and level.

    The boxes of a level are numbered from 0. Whatever answers so gives the same tree from the same bits.
    """

    def within(self, options: Lines, boxes: Sequence[OpenBox], line: int) -> dict[int, Integers]:
        """For each box that can be split along a line, how many records each part holds."""
        ...

    def follow(self, options: Lines, boxes: Sequence[OpenBox], lines: dict[int, int], first: Integers) -> None:
        """Put each record into the part that it is in; see `Counts.follow`."""
        ...

    def only(self, boxes: Integers) -> None:
        """Keep the records of some boxes, numbered anew; −1 stands for those that leave."""
        ...


class Counts:
    """The full table, cell by cell, with the box that each cell is in."""

    def __init__(self, codes: Sequence[Integers], counts: Integers) -> None:
        self.codes = [np.asarray(c) for c in codes]
        self.counts = counts.astype(np.float64)  # sums of whole numbers below 2**53 are exact
        self.box = np.zeros(len(counts), dtype=np.int64)

    @classmethod
    def of(cls, table: Histogram, columns: Sequence[Sets]) -> Counts:
        """A table in memory."""
        return cls([table[sets.name].codes for sets in columns], table.counts)

    def within(self, options: Lines, boxes: Sequence[OpenBox], line: int) -> dict[int, Integers]:
        """For each box that can be split along a line, how many records each part holds: one aggregation."""
        found = [(i, options.of(line, box)) for i, box in enumerate(boxes) if line not in box.frozen]
        known = {i: option for i, option in found if option is not None}
        if not known:
            return {}
        widest = max(len(option.parts) for option in known.values())
        part, here = self._part(known, len(boxes), self.codes[options.lines[line][0]])
        keys = self.box[here] * widest + part
        sums = np.bincount(keys, weights=self.counts[here], minlength=len(boxes) * widest).astype(np.int64)
        return {i: sums[i * widest : i * widest + len(option.parts)] for i, option in known.items()}

    def _part(self, options: dict[int, Option], boxes: int, codes: Integers) -> tuple[Integers, Integers | slice]:
        """The part of each cell that is in one of the boxes with an option; and which cells these are."""
        different = {id(option): option for option in options.values()}
        number = {key: row for row, key in enumerate(different)}
        tables = np.stack([option.part_of for option in different.values()])
        row = np.full(boxes, -1, dtype=np.int64)
        row[list(options)] = [number[id(option)] for option in options.values()]
        at = row[self.box]
        if len(options) == boxes:
            return tables[at, codes], slice(None)
        here = np.flatnonzero(at >= 0)
        return tables[at[here], codes[here]], here

    def follow(self, options: Lines, boxes: Sequence[OpenBox], lines: dict[int, int], first: Integers) -> None:
        """Put each cell into the part that it is in; cells of boxes that are not split leave.

        Args:
            options: as before.
            boxes: where the cells are.
            lines: along which line a box is split.
            first: the number of a box's first part, from now on.
        """
        after = np.full(len(self.box), -1, dtype=np.int64)
        for line in set(lines.values()):
            split = {i: options.of(line, boxes[i]) for i, along in lines.items() if along == line}
            known = {i: option for i, option in split.items() if option is not None}
            part, here = self._part(known, len(boxes), self.codes[options.lines[line][0]])
            after[here] = first[self.box[here]] + part
        self._keep(after)

    def only(self, boxes: Integers) -> None:
        """Keep the cells of some boxes, numbered anew; −1 stands for those that leave."""
        self._keep(boxes[self.box])

    def _keep(self, box: Integers) -> None:
        if (box >= 0).all():
            self.box = box
            return
        kept = np.flatnonzero(box >= 0)
        self.box, self.counts = box[kept], self.counts[kept]
        self.codes = [codes[kept] for codes in self.codes]


def grow(table: Histogram | BoxCounts, columns: Sequence[Sets], growth: Growth, size: int, draws: Draws) -> Tree:
    """The tree, level by level. See the module's text for what it costs.

    Args:
        table: the full table, base codes, one column for each of `columns`; or what counts it elsewhere.
        columns: the sets of each column, with its noisy one-way table.
        growth: how it is grown.
        size: how many records there are, with noise that was paid for.
        draws: what is drawn.
    """
    tree = [OpenBox(tuple(0 for _ in columns), max(0, size))]
    options = Lines(columns, growth)
    cells: BoxCounts = table if not isinstance(table, Histogram) else Counts.of(table, columns)
    level = [0]
    while level:
        number = np.full(len(level), -1, dtype=np.int64)
        going = [i for i, n in enumerate(level) if tree[n].size >= growth.least]
        number[going] = np.arange(len(going))
        cells.only(number)
        boxes = [tree[level[i]] for i in going]
        counted = [cells.within(options, boxes, line) for line in range(len(options.lines))]
        lines, first, level = {}, np.full(len(boxes), -1, dtype=np.int64), []
        for i, box in enumerate(boxes):
            here = {line: by_box[i] for line, by_box in enumerate(counted) if i in by_box}
            split = _split(box, here, options, growth, draws)
            if split is not None:
                line, sizes, variance = split
                option = options.of(line, box)
                if option is None:
                    raise InternalError("a box was split along a line that does not split it")
                lines[i], first[i] = line, len(level)
                level += parted(tree, box, options.lines[line][0], option.parts, sizes, variance)
        cells.follow(options, boxes, lines, first)
    return finished(tree, options)


def parted(
    tree: list[OpenBox], box: OpenBox, place: int, parts: Sequence[int], sizes: Sequence[int], variance: int = 0
) -> range:
    """The parts of a box that is split along a column, added to the tree: their numbers."""
    added = range(len(tree), len(tree) + len(parts))
    for part, size in zip(parts, sizes, strict=True):
        sets = (*box.sets[:place], part, *box.sets[place + 1 :])
        tree.append(OpenBox(sets, max(0, size), box.spent, variance, box.frozen))
    box.column, box.parts = place, tuple(added)
    return added


def finished(tree: Sequence[OpenBox], options: Lines) -> Tree:
    """What is published of it: the sets that boxes have, numbered anew and named."""
    shown, numbers = [], []
    for place, sets in enumerate(options.columns):
        used = sorted({box.sets[place] for box in tree})
        labels = sets.labels(used)
        shown.append(TreeColumn(sets.name, sets.base, tuple(sets.values[n] for n in used), tuple(labels)))
        numbers.append({n: i for i, n in enumerate(used)})
    boxes = []
    for box in tree:
        renumbered = tuple(number[n] for number, n in zip(numbers, box.sets, strict=True))
        failed = tuple(options.lines[line][0] for line in box.failed)
        boxes.append(Box(renumbered, box.size, box.column, box.parts, failed))
    return Tree(tuple(shown), tuple(boxes))


def cost(tree: Tree, growth: Growth) -> int:
    """What the dearest path of a published tree has cost, found again from its sizes; in units of 2⁻⁶⁴."""
    spent = [0] * len(tree.boxes)
    for number, box in enumerate(tree.boxes):
        before = 0 if number == 0 else spent[tree.above[number]]
        tries = len(box.failed) + (box.column is not None)
        spent[number] = before + (tries * growth.price(box.size or 0) if tries else 0)
    return max(spent)


def _split(
    box: OpenBox, counted: dict[int, Integers], options: Lines, growth: Growth, draws: Draws
) -> tuple[int, list[int], int] | None:
    """Choose lines until one is good or the path's budget is spent: the line, the noisy sizes of its parts, and their
    variance."""
    exponent, deviation, price = growth.exponent(box.size), growth.deviation(box.size), growth.price(box.size)
    left = [line for line in counted if _hopeful(options.of(line, box), box.size, growth)]
    while left and box.spent + price <= growth.budget:
        box.spent += price
        line = left[_choose(box, left, counted, options, exponent, draws)]
        noise = draws.noise(deviation**2, len(counted[line]))
        sizes, variance = _agreeing((counted[line] + noise).tolist(), deviation**2, box)
        if _good(sizes, growth):
            return line, sizes, variance
        box.frozen |= {line}
        box.failed += (line,)
        left.remove(line)
    return None


def _choose(
    box: OpenBox,
    left: Sequence[int],
    counted: dict[int, Integers],
    options: Lines,
    exponent: Fraction,
    draws: Draws,
) -> int:
    """The exponential mechanism over lines; the range within which all scores move together is public."""
    offered = {line: option for line in left if (option := options.of(line, box)) is not None}
    scores = [options.score(option, counted[line]) for line, option in offered.items()]
    reach = max(option.range_up for option in offered.values()) + max(o.range_down for o in offered.values())
    step = exponent / max(1, reach)
    return draws.choose([score * step for score in scores])


def _hopeful(option: Option | None, size: int, growth: Growth) -> bool:
    """Whether a split into many parts is worth a try: not if by the one-way table twice too much would look lost."""
    if option is None or len(option.parts) == 2:
        return option is not None
    expected = option.shares * size
    return growth.lost * float(expected[expected < growth.threshold].sum()) <= 2 * size


def _agreeing(sizes: Sequence[int], variance: int, box: OpenBox) -> tuple[list[int], int]:
    """Noisy counts of a box's parts that agree with its own noisy size as well as both can be known; and the variance
    of each (least squares)."""
    whole = box.variance + len(sizes) * variance
    lacking = ((box.size - sum(sizes)) * 2 * variance + whole) // (2 * whole)
    return [size + lacking for size in sizes], variance * (whole - variance) // whole


def _good(sizes: Sequence[int], growth: Growth) -> bool:
    """Whether parts that look too small to be published hold few of the records."""
    found = [size for size in sizes if size > 0]
    small = sum(size for size in found if size < growth.threshold)
    return growth.lost * small <= sum(found)
