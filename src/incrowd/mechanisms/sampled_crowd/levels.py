"""The private choice of the levels that a policy leaves open, on the full table and before any sampling.

**How much each column counts.** For `loss`, a column counts as much as it tells: where nearly all people have one
value, that is little, however fine the value. The weights come from the policy (`importance`), and then they cost
nothing; or from the table, and then they are paid for. An eighth of ε₁ buys one-way tables with exact discrete Laplace
noise: a person with m rows changes the counts of each of d columns by m together, so a scale of t ≥ d·m/(ε₁/8) makes
all tables together (ε₁/8)-DP. The rest of ε₁ pays for the choice, which may depend on them (adaptive composition).

These tables are published (`values.json`): they are paid for. A column whose level is fixed is counted at that level,
so that nothing finer of it is shown than the policy says.

The noise is not small. What it may have hidden is taken to be there: of v values, the most frequent one is taken to
have t·ln v records fewer, and none fewer than t. Where there are few records, all columns then count nearly the same,
as they would without any table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram, Labels
from incrowd.mechanisms.sampled_crowd.one_way import OneWay
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings, LevelChoice, parts_of_one
from incrowd.noise import laplace
from incrowd.randomness import RandomSource
from incrowd.recoding.choice import choose, choose_kept
from incrowd.recoding.lattice import Codes, Ladder, Lattice
from incrowd.recoding.quality import WEIGHT_ONE
from incrowd.sources.kept import KeptTable
from incrowd.theory.views import LaplaceStep

Floats = NDArray[np.float64]
Weigh = Callable[[CodedAttribute, int], Codes]
"""The weight of each label of a column at a level."""


def choose_levels(
    table: Histogram | KeptTable,
    attributes: Sequence[CodedAttribute],
    fixed: Mapping[str, int],
    settings: CrowdSettings,
    source: RandomSource,
) -> ChosenLevels:
    """The open levels, what columns counted, and the tables that this was found from: an ε₁-DP release."""
    # Fixed columns take part as they will be published: they split cells, but offer no choice.
    tables = None
    if settings.tables_epsilon:
        tables = NoisyTables.of(table, attributes, fixed, settings.tables_scale(len(attributes)), source)
    weigh, weights = _weights(attributes, fixed, settings.choice, tables)
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
    found = {a.name: level for a, level in zip(attributes, node, strict=True) if a.name not in fixed}
    coarser = {a.name: a.hierarchy.recode(found[a.name]) for a in attributes if found.get(a.name)}
    shown = {name: tuple(recode.labels[code] for code in recode.to) for name, recode in coarser.items()}
    return ChosenLevels(found, weights, None if tables is None else tables.one_way(shown))


@dataclass(frozen=True, eq=False)
class ChosenLevels:
    """What a private choice came to.

    Attributes:
        levels: of the columns whose levels were open.
        weights: what each column counted, if they did not count together.
        values: the noisy one-way tables that this was found from, if it was.
    """

    levels: Mapping[str, int]
    weights: Mapping[str, float] | None
    values: OneWay | None


def _weights(
    attributes: Sequence[CodedAttribute], fixed: Mapping[str, int], choice: LevelChoice, tables: NoisyTables | None
) -> tuple[Weigh, dict[str, float] | None]:
    weights = weights_of(choice, [a.name for a in attributes], tables)
    if weights is None:
        return lambda a, level: information(a, level, WEIGHT_ONE), None
    if choice.minimise == "loss" or tables is None:
        return lambda a, level: information(a, level, math.floor(weights[a.name] * WEIGHT_ONE)), weights
    unit = WEIGHT_ONE / math.fsum(_bits(choice, tables, a.name) for a in attributes)

    def told(a: CodedAttribute, level: int) -> Codes:
        recode = a.hierarchy.coarsen(fixed.get(a.name, 0), level)
        bits = tables.bits(a.name, recode.to, len(recode.labels))
        return np.floor(choice.importance.get(a.name, 1.0) * bits * unit).astype(np.int64)

    return told, weights


def weights_of(choice: LevelChoice, names: Sequence[str], tables: NoisyTables | None) -> dict[str, float] | None:
    """What each column counts in a choice, from the policy and, where it needs them, noisy tables."""
    if choice.minimise not in ("loss", "entropy"):
        return None
    if choice.minimise == "entropy" and tables is not None:
        return parts_of_one({name: _bits(choice, tables, name) for name in names})
    if tables is not None:
        return parts_of_one({name: tables.spread(name) for name in names})
    return parts_of_one({name: choice.importance.get(name, 1.0) for name in names})


def _bits(choice: LevelChoice, tables: NoisyTables, name: str) -> float:
    return choice.importance.get(name, 1.0) * tables.most_bits(name)


@dataclass(frozen=True, eq=False)
class NoisyTables:
    """How many records have each value of each column, with noise.

    Attributes:
        scale: t, that of the noise.
        labels: by column, what is counted: its own values, or its labels at the level that is fixed.
        counts: by column, that of each of these.
    """

    scale: int
    labels: Mapping[str, Labels]
    counts: Mapping[str, NDArray[np.int64]]

    @classmethod
    def of(
        cls,
        table: Histogram | KeptTable,
        attributes: Sequence[CodedAttribute],
        fixed: Mapping[str, int],
        scale: int,
        source: RandomSource,
    ) -> NoisyTables:
        """One of each column, a record in one place of each."""
        labels, counts = {}, {}
        for a in attributes:
            recode = a.hierarchy.recode(fixed.get(a.name, 0))
            exact = np.zeros(len(recode.labels), dtype=np.int64)
            np.add.at(exact, recode.to, table.tallies[a.name])
            labels[a.name], counts[a.name] = recode.labels, exact + laplace(source, scale, len(exact))
        return cls(scale, labels, counts)

    @classmethod
    def published(cls, one_way: OneWay, scale: int) -> NoisyTables:
        """As they stand beside a release."""
        return cls(scale, one_way.labels, one_way.counts)

    def one_way(self, shown: Mapping[str, Labels]) -> OneWay:
        """As they are published, with what each value is shown as."""
        return OneWay(noise_of(self.scale), self.labels, self.counts, shown)

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

    def bits(self, name: str, to: NDArray[np.integer], labels: int) -> Floats:
        """What each label at a level tells: −log₂ of its share, at most what equally frequent values would tell."""
        counts = np.bincount(to, weights=self.counts[name], minlength=labels)
        told = np.log2(self.total / np.maximum(counts, self.scale))
        return np.asarray(np.clip(told, 0.0, self.most_bits(name)))


def noise_of(scale: int) -> LaplaceStep:
    """What is said of noise of a scale."""
    return LaplaceStep(1 / scale)


def information(attribute: CodedAttribute, level: int, whole: int) -> Codes:
    """What each label at a level still tells, in parts of `whole`: 1 − (values covered − 1)/(values in all − 1)."""
    covered = attribute.hierarchy.covered(level)
    total = int(covered.sum())
    if total == 1:
        return np.full(len(covered), whole, dtype=np.int64)
    return (total - covered) * whole // (total - 1)
