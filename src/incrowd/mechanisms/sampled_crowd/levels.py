"""The private choice of the levels that a policy leaves open, on the full table and before any sampling.

**How much each column counts.** For `loss`, a column counts as much as it tells: where nearly all people have one
value, that is little, however fine the value. The weights come from the policy (`importance`), and then they cost
nothing; or from the table, and then they are paid for. An eighth of ε₁ buys one-way tables with exact discrete Laplace
noise: a person with m rows changes the counts of each of d columns by m together, so a scale of t ≥ d·m/(ε₁/8) makes
all tables together (ε₁/8)-DP. The rest of ε₁ pays for the choice, which may depend on them (adaptive composition).

The noise is not small. What it may have hidden is taken to be there: of v values, the most frequent one is taken to
have t·ln v records fewer, and none fewer than t. Where there are few records, all columns then count nearly the same,
as they would without any table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings, parts_of_one
from incrowd.noise import laplace
from incrowd.randomness import RandomSource
from incrowd.recoding.choice import choose, choose_kept
from incrowd.recoding.lattice import Codes, Ladder, Lattice
from incrowd.recoding.quality import WEIGHT_ONE
from incrowd.sources.kept import KeptTable

Floats = NDArray[np.float64]
Weigh = Callable[[CodedAttribute, int], Codes]
"""The weight of each label of a column at a level."""


def choose_levels(
    table: Histogram | KeptTable,
    attributes: Sequence[CodedAttribute],
    fixed: Mapping[str, int],
    settings: CrowdSettings,
    source: RandomSource,
) -> tuple[dict[str, int], dict[str, float] | None]:
    """The open levels, and what each column counted if they did not count together: an ε₁-DP release."""
    # Fixed columns take part as they will be published: they split cells, but offer no choice.
    weigh, weights = _weights(table, attributes, settings, source)
    ladders = []
    for a in attributes:
        levels = [fixed[a.name]] if a.name in fixed else range(a.hierarchy.height + 1)
        of_labels = tuple(weigh(a, level) for level in levels)
        if a.name in fixed:
            maps: tuple[Codes, ...] = (np.arange(len(of_labels[0]), dtype=np.int64),)
        else:
            maps = tuple(a.hierarchy.recode(level).to.astype(np.int64) for level in levels)
        ladders.append(Ladder(maps, of_labels))
    quality = settings.quality([a.name for a in attributes])
    epsilon, rows = settings.choice_epsilon, settings.persons.at_most
    if isinstance(table, Histogram):
        known = table.recode({a.name: a.hierarchy.recode(fixed[a.name]) for a in attributes if a.name in fixed})
        columns = [known[a.name].codes for a in attributes]
        node = choose(Lattice(ladders), columns, known.counts, quality=quality, epsilon=epsilon, rows=rows)
    else:  # where they are recoded already
        node = choose_kept(Lattice(ladders), table, quality=quality, epsilon=epsilon, rows=rows)
    return {a.name: level for a, level in zip(attributes, node, strict=True) if a.name not in fixed}, weights


def _weights(
    table: Histogram | KeptTable, attributes: Sequence[CodedAttribute], settings: CrowdSettings, source: RandomSource
) -> tuple[Weigh, dict[str, float] | None]:
    choice, names = settings.choice, [a.name for a in attributes]
    if choice.minimise not in ("loss", "entropy"):
        return lambda a, level: information(a, level, WEIGHT_ONE), None
    own = {name: choice.importance.get(name, 1.0) for name in names}
    if not settings.tables_epsilon:
        weights = parts_of_one(own)
        return lambda a, level: information(a, level, math.floor(weights[a.name] * WEIGHT_ONE)), weights
    tables = NoisyTables.of(table, attributes, settings.tables_epsilon, settings.persons.at_most, source)
    if choice.minimise == "loss":
        weights = parts_of_one({name: tables.spread(name) for name in names})
        return lambda a, level: information(a, level, math.floor(weights[a.name] * WEIGHT_ONE)), weights
    bits = {name: own[name] * tables.most_bits(name) for name in names}
    unit = WEIGHT_ONE / math.fsum(bits.values())

    def told(a: CodedAttribute, level: int) -> Codes:
        return np.floor(own[a.name] * tables.bits(a, level) * unit).astype(np.int64)

    return told, parts_of_one(bits)


@dataclass(frozen=True, eq=False)
class NoisyTables:
    """How many records have each value of each column, with noise.

    Attributes:
        scale: t, that of the noise.
        counts: by column, that of each base code.
    """

    scale: int
    counts: Mapping[str, NDArray[np.int64]]

    @classmethod
    def of(
        cls,
        table: Histogram | KeptTable,
        attributes: Sequence[CodedAttribute],
        epsilon: float,
        rows: int,
        source: RandomSource,
    ) -> NoisyTables:
        """Of all columns together ε-DP, for adding or removing a person with so many rows."""
        scale = math.ceil(Fraction(len(attributes) * rows) / Fraction(epsilon))
        exact = {a.name: table.tallies[a.name] for a in attributes}
        return cls(scale, {name: counts + laplace(source, scale, len(counts)) for name, counts in exact.items()})

    @cached_property
    def total(self) -> float:
        """How many records there are, about: columns with fewer values are less noisy, and count more."""
        sums = [(float(counts.sum()), 1 / len(counts)) for counts in self.counts.values()]
        return max(1.0, math.fsum(n * weight for n, weight in sums) / math.fsum(weight for _, weight in sums))

    def spread(self, name: str) -> float:
        """How much a column tells: twice the share of people outside its most frequent value, from 0.01 to 1."""
        counts = self.counts[name]
        most = max(0.0, float(counts.max()) - self.scale * max(1.0, math.log(len(counts))))
        return min(1.0, max(2.0 * (1.0 - most / self.total), 0.01))

    def most_bits(self, name: str) -> float:
        """What equally frequent values of a column would tell."""
        return math.log2(max(2, len(self.counts[name])))

    def bits(self, attribute: CodedAttribute, level: int) -> Floats:
        """What each label at a level tells: −log₂ of its share, at most what equally frequent values would tell."""
        recode = attribute.hierarchy.recode(level)
        counts = np.bincount(recode.to, weights=self.counts[attribute.name], minlength=len(recode.labels))
        told = np.log2(self.total / np.maximum(counts, self.scale))
        return np.asarray(np.clip(told, 0.0, self.most_bits(attribute.name)))


def information(attribute: CodedAttribute, level: int, whole: int) -> Codes:
    """What each label at a level still tells, in parts of `whole`: 1 − (values covered − 1)/(values in all − 1)."""
    covered = attribute.hierarchy.covered(level)
    total = int(covered.sum())
    if total == 1:
        return np.full(len(covered), whole, dtype=np.int64)
    return (total - covered) * whole // (total - 1)
