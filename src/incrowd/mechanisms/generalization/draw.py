"""Make columns coarser until the table withstands everyone feared (Machanavajjhala, Gehrke, Götz, Section 3.1).

*Precondition.* The histogram counts the full table on its declared domains, one record per person.

*Promise.* Every group of the published table (records that share all quasi-identifiers) keeps every demand: its
requirements, and the belief ratio against each adversary (Definition 4). That is a property of the published table, so
it can be checked there. Nothing is random.

*What is not covered.* The levels, and the groups that are left out, are chosen by looking at the data. An adversary
who reasons about that choice (a minimality attack) is outside the notion. So what other tables of the lattice would
have had, and how many records were left out, leaves this module only inside
`GeneralizationOutcome`, which is the publisher's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from incrowd.core.errors import DataError, IncrowdError, InternalError
from incrowd.core.numbers import count, number
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import (
    Made,
    Tell,
)
from incrowd.mechanisms.generalization.certificate import GeneralizationStatement
from incrowd.mechanisms.generalization.claims import Said, reached, state
from incrowd.mechanisms.generalization.people import FILE, people_in, to_bytes
from incrowd.mechanisms.generalization.settle import GeneralizationSettings, GeneralizationSettled, Node
from incrowd.recoding.demands import Demands, Groups, groups_of
from incrowd.recoding.mapping import MAPPING, Tree
from incrowd.recoding.mondrian import mondrian
from incrowd.recoding.search import Found, generalize, search
from incrowd.recoding.utility import information_kept
from incrowd.sources.people import WHOSE
from incrowd.theory.beliefs import BeliefAudit

MINIMAL_AMONG, MINIMAL_WORK = 20_000, 200_000_000
"""All minimal nodes are found, for the publisher's report, in lattices of at most so many nodes, and nodes times cells.

It may take a look at every node, and must not use up the time that the search for the best one has.
"""
_QUICK = 400_000  # cells times columns that are recoded locally within seconds
_LITTLE = 0.05  # a loss of information that nobody needs to make smaller
_LESS = 0.95  # of the loss


@dataclass(frozen=True, eq=False)
class GeneralizationOutcome:
    """What came out.

    Attributes:
        published: the release.
        levels: the level at which each column is shown, where it is the same for all records.
        found: the search and what it saw; None if recoding is local. For the publisher's eyes only.
        loss: the loss of information of the quasi-identifiers. For the publisher's eyes only.
        people: how many people each group of the release has, where they are counted.
        linked: the full table with whose each row is, where people are counted. For the publisher's eyes only.
        near: tables around the one taken, once they have been looked at. For the publisher's eyes only.
        tree: the mapping, if recoding is local.
    """

    published: Histogram
    levels: Mapping[str, int]
    found: Found | None
    loss: float
    people: Histogram | None = None
    linked: Histogram | None = None
    near: dict[Node, LatticeTable] = field(default_factory=dict)
    tree: Tree | None = None


def run(
    table: Histogram, settings: GeneralizationSettings, tell: Callable[[str, float], None]
) -> GeneralizationOutcome:
    """Find the best table that keeps every demand.

    Args:
        table: the full table, raw codes, one column for each attribute.
        settings: what must hold, and what is minimised.
        tell: told how far it is.

    Raises:
        UnreachableError: no generalization keeps everything.
    """
    searched = settings.searched(table)
    if settings.splits is not None:
        local = mondrian(searched, settings.sets(searched, settings.splits), settings.demands)
        return GeneralizationOutcome(local.published, dict(settings.fixed), None, local.loss, tree=local.tree)
    found = search(
        searched,
        settings.hierarchies,
        settings.demands,
        measure=settings.minimise,
        suppression=settings.suppression,
        seconds=settings.seconds,
        minimal=settings.size <= min(MINIMAL_AMONG, MINIMAL_WORK // max(1, len(searched))),
        progress=lambda part: tell("searching", part),
    )
    made = generalize(searched, settings.hierarchies, found.levels, settings.demands, suppression=settings.suppression)
    whose = WHOSE in table.names
    return GeneralizationOutcome(
        made.published.marginalise([WHOSE]) if whose else made.published,
        settings.levels(found.node),
        found,
        1 - information_kept(made.comparison),
        people_in(made.published, settings.quasi) if whose else None,
        table if whose else None,
    )


# --- for the publisher's report ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LatticeTable:
    """One table of the lattice. For the publisher's eyes only.

    Attributes:
        node: the level of each quasi-identifier.
        groups: how many groups it has.
        measures: for each demand what would be published has, or the whole table if too much were to be left out.
        keeps: for each demand whether the table keeps it, leaving out no more records than allowed.
        left_out: how many records must be left out so that all demands hold; None if too many.
        information: how much of the quasi-identifiers it keeps, nothing left out; see `utility.information_kept`.
    """

    node: Node
    groups: int
    measures: tuple[float, ...]
    keeps: tuple[bool, ...]
    left_out: int | None
    information: float


def look_around(
    table: Histogram, settings: GeneralizationSettings, nodes: Sequence[Node], *, cells: int = 1 << 62
) -> dict[Node, LatticeTable]:
    """Tables of the lattice, in the order given, as many as can be had by regrouping so many cells; at least one.

    Args:
        table: the full table, raw codes.
        settings: what must hold.
        nodes: which ones.
        cells: the work that they are worth.
    """
    # All of them are coarser than where they meet, so that is counted once.
    meet = tuple(map(min, zip(*nodes, strict=True)))
    hidden = [name for name in table.names if name == WHOSE]
    searched = settings.searched(table).project([*settings.quasi, *settings.sensitive, *hidden])
    base = searched.recode({n: h.recode(low) for (n, h), low in zip(settings.hierarchies.items(), meet, strict=True)})
    room = Demands(settings.demands, base, settings.suppression).room
    affordable = max(1, cells // max(1, len(base)))
    found = {}
    for node in nodes[:affordable]:
        recodes = {
            name: hierarchy.coarsen(low, level)
            for (name, hierarchy), low, level in zip(settings.hierarchies.items(), meet, node, strict=True)
        }
        try:
            groups = groups_of(base.recode(recodes), settings.quasi, settings.sensitive)
        except DataError:
            continue  # too large to be counted for the sake of a report
        found[node] = _looked_at(node, groups, settings, room)
    return found


def _looked_at(node: Node, groups: Groups, settings: GeneralizationSettings, room: int) -> LatticeTable:
    sizes = groups.shown.counts
    out = groups.left_out(settings.demands, room)
    left_out = None if out is None or out.all() else int(sizes[out].sum())
    stays = np.ones(len(sizes), dtype=np.bool_) if out is None or left_out is None else ~out
    left = groups.only(stays)
    measures, keeps = [], []
    for demand in settings.demands:
        counts = left.of(demand)
        measure = demand.requirement.measure(counts) if counts.any() else None
        measures.append(
            1.0 if measure is None else measure.ratio if isinstance(measure, BeliefAudit) else measure.value
        )
        alone = groups.left_out([demand], room)
        keeps.append(alone is not None and not bool(alone.all()))
    return LatticeTable(
        node, len(sizes), tuple(measures), tuple(keeps), left_out, _information(node, groups.shown, settings)
    )


def _information(node: Node, shown: Histogram, settings: GeneralizationSettings) -> float:
    kept = []
    for (name, hierarchy), level in zip(settings.hierarchies.items(), node, strict=True):
        covered = hierarchy.covered(level)
        domain = int(covered.sum())
        worth = (domain - covered) / (domain - 1) if domain > 1 else np.ones(1)
        kept.append(float(np.dot(worth[shown[name].codes], shown.counts)) / shown.total)
    return math.fsum(kept) / len(kept)


def prepare(
    settings: GeneralizationSettled, table: Histogram, tell: Tell
) -> tuple[GeneralizationSettled, GeneralizationOutcome]:
    """Find the table; what cannot be withstood is refused.

    Where the table does not say whose each row is, enough rows are asked for.
    """
    if settings.counts_people and WHOSE not in table.names:
        settings = settings.without_people()
    return settings, run(table, settings.generalization, tell)


def draw(
    settled: GeneralizationSettled, outcome: GeneralizationOutcome
) -> Made[GeneralizationOutcome, GeneralizationStatement]:
    """Nothing is drawn; all that is promised is looked for once more in what will be published."""
    settings = settled.generalization
    groups = groups_of(outcome.published, settings.quasi, settings.sensitive, outcome.people)
    for demand in settled.demands:
        if groups.failing(demand):
            raise InternalError("the table found does not withstand what it must")
    said = Said(
        release=settled.release,
        demands=settled.demands,
        labels={name: outcome.published[name].labels for name in settings.sensitive},
        levels=outcome.levels,
        chosen=sorted(name for name in settings.quasi if name not in settings.fixed),
        seen=settled.seen,
        trees=settled.trees,
        dropping=settled.dropping,
        persons=settled.persons,
    )
    beside = {} if outcome.people is None else {FILE: to_bytes(outcome.people)}
    if outcome.tree is not None:
        beside[MAPPING] = outcome.tree.to_bytes()
    return Made(outcome.published, outcome.levels, state(said, reached(settled.demands, groups)), outcome, beside)


def remarks(settings: GeneralizationSettings, table: Histogram, outcome: GeneralizationOutcome) -> Iterator[str]:
    """How many were left out, and whether recoding locally would have lost less, where that is quickly found."""
    if settings.local:
        return
    left_out = table.total - outcome.published.total
    if settings.suppression:
        how_many = count(left_out, "record was", "records were") if left_out else "No record was"
        yield f"{how_many} left out, of {table.total:,}."
    fixed = any(name in settings.fixed for name in settings.quasi)
    if fixed or outcome.loss < _LITTLE or len(table) * len(settings.quasi) > _QUICK:
        return
    searched = settings.searched(table)
    if any(demand.counts_people for demand in settings.demands):
        return
    try:
        local = mondrian(searched, settings.sets(searched, "hierarchy"), settings.demands)
    except IncrowdError:  # a requirement that needs all
        return
    if local.loss < _LESS * outcome.loss:
        yield (
            f"`recoding: local` would lose less: {number(local.loss, 3)} of the information instead of "
            f"{number(outcome.loss, 3)}, and would leave nobody out; its extreme values are protected less."
        )
