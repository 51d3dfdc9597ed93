"""Choose a tree of boxes on the full table, sample, and publish only crowds of k.

*Precondition.* The histogram counts the full table on its declared domains, at most m records per person.

*Promise.* The one-way tables with discrete Gaussian noise and the tree are ρ-zCDP together (`recoding.growth`); the
sampled crowd under the tree is independent of them given the tree. What both promise is that of `theory.concentrated`.
Both the one-way tables and the tree, with its noisy sizes, are published.

*What must not be published*: the size of the sample and the number of suppressed records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Made
from incrowd.mechanisms.sampled_crowd.certificate import CrowdStatement
from incrowd.mechanisms.sampled_crowd.one_way import ONE_WAY, OneWay
from incrowd.mechanisms.sampled_crowd.tree.settle import TreeSettled
from incrowd.mechanisms.sampled_crowd.tree.state import state
from incrowd.noise import DiscreteGaussian
from incrowd.noise import draw as draw_noise
from incrowd.randomness import RandomSource
from incrowd.recoding.boxes import Sets
from incrowd.recoding.cuts import cells_of, cut
from incrowd.recoding.growth import Noisy, cost, grow
from incrowd.recoding.kept_boxes import KeptCounts, leaf_records
from incrowd.recoding.mapping import MAPPING, Tree
from incrowd.sources.kept import KeptTable
from incrowd.theory.views import NoiseStep


@dataclass(frozen=True, eq=False)
class TreeOutcome:
    """What came out.

    Attributes:
        tree: the mapping.
        one_way: the noisy one-way tables; None for a mapping that was given.
        records: how many records of the full table are in each box. For the publisher's eyes only.
        sampled: how many of them were sampled. For the publisher's eyes only.
    """

    tree: Tree
    one_way: OneWay | None
    records: NDArray[np.int64]
    sampled: NDArray[np.int64]


def draw_tree(
    settled: TreeSettled, table: Histogram | KeptTable, source: RandomSource
) -> Made[TreeOutcome, CrowdStatement]:
    """One-way tables, tree, sample, threshold."""
    crowd = settled.crowd
    if not crowd.kept:
        raise InternalError("a sampled crowd was started with settings that do not keep its promise")
    one_way = None
    if settled.fixed is not None:
        tree = settled.fixed
        records = _records(tree, table)
    else:
        one_way = _one_way(settled, table, source)
        tree, records = _grown(settled, table, one_way, source)
    sampled = records if crowd.already_sampled else source.binomial(records, crowd.beta)
    published = tree.shown(np.where(sampled >= crowd.k, sampled, 0))
    if len(published) and int(published.counts.min()) < crowd.k:
        raise InternalError("the release is not what the policy promises")
    beside: Mapping[str, bytes] = {MAPPING: tree.to_bytes()}
    if one_way is not None:
        beside = {**beside, ONE_WAY: one_way.to_bytes()}
    return Made(published, {}, state(settled), TreeOutcome(tree, one_way, records, sampled), beside)


def _records(tree: Tree, table: Histogram | KeptTable) -> NDArray[np.int64]:
    """How many records are in each leaf."""
    if isinstance(table, KeptTable):
        return leaf_records(tree, table)
    records = np.zeros(len(tree.boxes), dtype=np.int64)
    np.add.at(records, tree.leaf_of(table), table.counts)
    return records


def _one_way(settled: TreeSettled, table: Histogram | KeptTable, source: RandomSource) -> OneWay:
    variance = settled.one_way_variance
    counts = {}
    for attribute in settled.attributes:
        exact = table.tallies[attribute.name]
        counts[attribute.name] = exact + draw_noise(source, DiscreteGaussian(variance), len(exact))
    labels = {a.name: a.coding.base_labels for a in settled.attributes}
    return OneWay(NoiseStep(variance), labels, counts)


def _grown(
    settled: TreeSettled, table: Histogram | KeptTable, one_way: OneWay, source: RandomSource
) -> tuple[Tree, NDArray[np.int64]]:
    """The tree, and how many records are in each leaf."""
    columns = [
        Sets(a, settled.release.splits, a.name in settled.ordered, one_way.spread(a.name)) for a in settled.attributes
    ]
    names = [a.name for a in settled.attributes]
    if settled.flat:
        cutting = settled.cutting(names)
        tree, records = cut(cells_of(table, columns), columns, cutting, Noisy(source))
        if cutting.cost > cutting.budget or len(tree.cuts or ()) > cutting.times:
            raise InternalError("cuts have cost more than they may")
        return tree.weighted(one_way.weights()), records
    growth = settled.growth(names)
    cells = KeptCounts(table) if isinstance(table, KeptTable) else table
    tree = grow(cells, columns, growth, one_way.total, Noisy(source))
    if cost(tree, growth) > growth.budget:
        raise InternalError("a path of the tree has cost more than it may")
    if isinstance(cells, KeptCounts):  # which has learnt that level by level
        records = np.where([box.column is None for box in tree.boxes], cells.records, 0)
    else:
        records = _records(tree, cells)
    return tree.weighted(one_way.weights()), records
