"""What a generalized table must withstand, found from the policy alone.

A policy's adversaries and requirements become demands, each about the columns that it speaks of. That takes the policy
and the values of the sensitive columns as they are published, so whoever holds a certificate can do it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from incrowd.core.errors import DataError, InternalError, PolicyError
from incrowd.domain import Recode
from incrowd.hierarchy import CodedAttribute, Hierarchy
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import fixed_levels
from incrowd.mechanisms.declared import tree_above
from incrowd.mechanisms.generalization.adversaries import MISSING, AdversarySpec, EarlierTable
from incrowd.mechanisms.generalization.claims import notion
from incrowd.mechanisms.generalization.requirements import GroupSize, Tree
from incrowd.mechanisms.generalization.section import AboutValues, Generalization, named
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.promises import Uncomposable
from incrowd.policy import Attribute, Policy
from incrowd.policy.fields import NamedFile
from incrowd.policy.texts import Document, refusal
from incrowd.recoding.apart import Concerned
from incrowd.recoding.boxes import Sets, Splits, ordered_columns
from incrowd.recoding.demands import Demand
from incrowd.sources.people import WHOSE
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.beliefs import Predicate, Predicates
from incrowd.theory.requirements import MOST_NEGATED, MOST_VALUES, BeliefRatio, KAnonymity

Node = tuple[int, ...]


class OneLevel(Hierarchy):
    """A column at the level that the policy fixes: nothing is left to choose."""

    def __post_init__(self) -> None:
        """The single level need not be the root."""
        if len(self.levels) != 1:
            raise InternalError("a fixed column has one level")

    @classmethod
    def of(cls, hierarchy: Hierarchy, level: int) -> OneLevel:
        """That level, seen as the values of the column."""
        labels = hierarchy.recode(level).labels
        return cls((Recode(np.arange(len(labels)), labels),), len(labels))


@dataclass(frozen=True, eq=False)
class GeneralizationSettings:
    """Everything that decides which table is published, found without looking at any data.

    Attributes:
        attributes: the columns, in the order of the table.
        quasi: those that others may know, which are made coarser.
        sensitive: those that others want to know.
        fixed: the levels that nobody chooses; all sensitive columns have one.
        demands: what must hold, adversaries first.
        minimise: the measure by which the best table is chosen.
        suppression: the largest share of records that may be left out.
        seconds: when to stop with the best table found so far.
        splits: make each record only as coarse as needed by such splits, instead of each column; None for the latter.
        ordered: the columns whose values have an order.
    """

    attributes: tuple[CodedAttribute, ...]
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    fixed: Mapping[str, int]
    demands: tuple[Demand, ...]
    minimise: str
    suppression: float
    seconds: float
    splits: Splits | None
    ordered: frozenset[str] = frozenset()

    @property
    def local(self) -> bool:
        """Whether recoding is local."""
        return self.splits is not None

    def sets(self, table: Histogram, splits: Splits) -> list[Sets]:
        """Those of the quasi-identifiers that a local recoding may show."""
        return [
            Sets(a, splits, a.name in self.ordered, table.tallies[a.name])
            for a in self.attributes
            if a.name in self.quasi
        ]

    @cached_property
    def hierarchies(self) -> dict[str, Hierarchy]:
        """Those of the quasi-identifiers in the table as it is searched."""
        return {
            a.name: OneLevel.of(a.hierarchy, self.fixed[a.name]) if a.name in self.fixed else a.hierarchy
            for a in self.attributes
            if a.name in self.quasi
        }

    @property
    def heights(self) -> tuple[int, ...]:
        """How far each quasi-identifier can be raised."""
        return tuple(hierarchy.height for hierarchy in self.hierarchies.values())

    @property
    def size(self) -> int:
        """The number of tables to choose from."""
        return math.prod(height + 1 for height in self.heights)

    def levels(self, node: Sequence[int]) -> dict[str, int]:
        """The levels of all columns at a node."""
        chosen = dict(zip(self.hierarchies, node, strict=True)) | dict(self.fixed)
        return {a.name: chosen[a.name] for a in self.attributes}

    def searched(self, table: Histogram) -> Histogram:
        """The table with every column whose level is fixed at that level."""
        return table.recode(
            {a.name: a.hierarchy.recode(self.fixed[a.name]) for a in self.attributes if a.name in self.fixed}
        )


@dataclass(frozen=True, eq=False)
class GeneralizationSettled:
    """What the table must withstand, and what of it is fixed.

    Attributes:
        release: the policy's section.
        generalization: the settings of the mechanism.
        seen: for adversaries who have seen an earlier table, by their number: the people of each value in it.
        trees: for columns whose values are as far apart as in their hierarchies, the levels of these.
        dropping: columns without a value of which a record is left out.
        persons: whose the rows are.
    """

    release: Generalization
    generalization: GeneralizationSettings
    seen: Mapping[int, Sequence[int]]
    trees: Mapping[str, Sequence[Sequence[int]]]
    dropping: Sequence[str]
    persons: Persons = field(default_factory=Persons)

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Adversaries and requirements."""
        return self.generalization.demands

    @property
    def counts_people(self) -> bool:
        """Whether people are counted where a person may have several rows, instead of asking for enough rows."""
        return any(demand.counts_people for demand in self.demands)

    def without_people(self) -> GeneralizationSettled:
        """The same where nobody can tell whose a row is."""
        demands = tuple(by_rows(demand, self.persons.at_most) for demand in self.demands)
        return replace(self, generalization=replace(self.generalization, demands=demands))


def settle(
    release: Generalization, policy: Policy, attributes: Sequence[CodedAttribute], copies: int
) -> GeneralizationSettled:
    """Everything but the levels that are left open."""
    if copies > 1:
        raise PolicyError(
            "A generalized table is made without randomness: a second one would be the same.",
            code="parameter-combination",
            remedy="Make one release. Promises of this kind about several releases do not add up.",
        )
    sensitive = {a.name: a for a in attributes if policy.attributes[a.name].role == "sensitive"}
    fixed = dict.fromkeys(sensitive, 0) | fixed_levels(policy, attributes)
    labels = {name: a.hierarchy.recode(fixed[name]).labels for name, a in sensitive.items()}
    hierarchies = {a.name: a.hierarchy for a in attributes}
    release = release.by_prior(lambda name: parts_of(hierarchies[name], fixed[name]))
    unfit = release.mismatched(labels, list(labels))
    unfit += release.unknown_people(
        {a.name: None if _in_file(policy.attributes[a.name]) else a.hierarchy.levels[0].labels for a in attributes}
    )
    if unfit:
        raise refusal([Document(None).problem(place, text) for place, text in unfit], "The policy")
    _require_manageable(release, labels)
    seen = {
        number: _seen(
            policy,
            adversary.earlier_table,
            labels[release.about(adversary, list(labels))],
            {name: (hierarchies[name], adversary.concerned_by(name)) for name in adversary.earlier_table.by},
        )
        for number, adversary in enumerate(release.adversaries)
        if adversary.earlier_table is not None
    }
    trees: dict[str, list[list[int]]] = {}

    def tree(name: str) -> list[list[int]]:
        trees[name] = tree_above(sensitive[name].hierarchy, fixed[name])
        return trees[name]

    quasi = tuple(a.name for a in attributes if a.name not in sensitive)
    demands = demands_of(
        release,
        labels,
        seen=seen.__getitem__,
        tree=tree,
        hierarchy=hierarchies.__getitem__,
        rows=policy.rows_per_person,
        counted=release.recoding != "local",
    )
    settings = GeneralizationSettings(
        attributes=tuple(attributes),
        quasi=quasi,
        sensitive=tuple(sensitive),
        fixed=fixed,
        demands=demands,
        minimise=release.minimise,
        suppression=release.suppression,
        seconds=release.time_limit,
        splits=release.splits if release.recoding == "local" else None,
        ordered=ordered_columns(policy, attributes),
    )
    dropping = sorted(a.name for a in attributes if policy.attributes[a.name].missing == "drop")
    return GeneralizationSettled(release, settings, seen, trees, dropping, Persons.in_policy(policy))


def _in_file(attribute: Attribute) -> bool:
    """Whether a certificate does not hold all values and levels of a column."""
    files = (attribute.domain, attribute.hierarchy, attribute.labels)
    return any(isinstance(part, NamedFile) for part in files)


def _require_manageable(release: Generalization, labels: Mapping[str, Sequence[str | None]]) -> None:
    """Refuse sensitive columns with more values than can be looked at one by one."""
    sensitive = list(labels)
    asked = [*release.adversaries, *(spec for spec in release.require if not isinstance(spec, GroupSize))]
    labels = release.values(labels)
    for spec in asked:
        column = release.about(spec, sensitive)
        families = spec.predicates if isinstance(spec, AdversarySpec) else "values"
        most = MOST_NEGATED if families in ("negations", "subsets") else MOST_VALUES
        if len(labels[column]) > most:
            raise PolicyError(
                f"The sensitive column {column!r} is published with {len(labels[column]):,} values; at most {most:,} "
                f"can be looked at{'' if most == MOST_VALUES else ' with these predicates'}.",
                code="domain-large",
                remedy="Publish it at a coarser level (give it a hierarchy and 'level'), or declare a smaller domain.",
                details={"column": column, "values": len(labels[column]), "most": most},
            )


def _seen(
    policy: Policy,
    earlier: EarlierTable,
    labels: Sequence[str | None],
    people: Mapping[str, tuple[Hierarchy, frozenset[str]]],
) -> list[int]:
    """How many people of an earlier table have each value; of those with some values of other columns."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import compute, csv, parquet

    path = policy.resolve(earlier.file)
    columns = [earlier.column, *([] if earlier.count is None else [earlier.count]), *people]

    def wrong(what: str) -> PolicyError:
        return PolicyError(
            f"The earlier table {earlier.file}: {what}.",
            code="policy-file",
            remedy="Name its column of sensitive values, written as they are published here, and if it has one its "
            "column of counts.",
        )

    try:
        if Path(earlier.file).suffix.lower() in (".parquet", ".pq"):
            file = parquet.ParquetFile(path)
            there, table = file.schema_arrow.names, file.read(columns=columns)
        else:
            reading = csv.ReadOptions(encoding=earlier.encoding)
            parsing = csv.ParseOptions(delimiter=earlier.delimiter, newlines_in_values=True)
            with csv.open_csv(path, reading, parsing) as opened:
                there = opened.schema.names
            table = csv.read_csv(
                path,
                read_options=reading,
                parse_options=parsing,
                convert_options=csv.ConvertOptions(
                    include_columns=columns,
                    column_types=dict.fromkeys((earlier.column, *people), pa.string()),
                    strings_can_be_null=True,
                    null_values=list(policy.data.missing_values),
                ),
            )
        if any(there.count(column) > 1 for column in columns):
            raise wrong("a column named has the name of another one, too")
        if table.column_names != columns:
            raise wrong("it does not have the columns named")
        for name, (hierarchy, own) in people.items():
            shown = compute.fill_null(table[name].cast(pa.string()), MISSING)
            # As declared, or at any level above.
            at = {
                MISSING if label is None else label: _values_at(hierarchy, level, code)
                for level, recode in reversed(list(enumerate(hierarchy.levels)))
                for code, label in enumerate(recode.labels)
            }
            if not set(shown.unique().to_pylist()) <= set(at):
                raise wrong(f"column {name!r} has values that the column published here does not have")
            if any(at[label] & own and not at[label] <= own for label in shown.unique().to_pylist()):
                raise wrong(f"column {name!r} is coarser than it is published here")
            table = table.filter(compute.is_in(shown, pa.array([label for label in at if at[label] <= own])))
        if people and not table.num_rows:
            return [0] * len(labels)  # nobody like them: she knows nothing
        table = table.drop_columns(list(people))
        histogram = Histogram.from_arrow(table, count=earlier.count, labels={earlier.column: list(labels)})
    except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError, OSError, UnicodeDecodeError, LookupError):
        # Arrow's messages may quote what is in the file.
        raise wrong("it cannot be read, or does not have the columns named") from None
    except DataError as error:
        raise wrong(error.message.rstrip(".")) from None
    if not histogram.total:
        raise wrong("nobody is in it")
    counts = np.bincount(histogram[earlier.column].codes, weights=histogram.counts, minlength=len(labels))
    return [int(count) for count in counts]


def _values_at(hierarchy: Hierarchy, level: int, code: int) -> frozenset[str]:
    """The declared values behind a code at a level."""
    labels = hierarchy.levels[0].labels
    inside = [labels[i] for i, one in enumerate(hierarchy.levels[level].to.tolist()) if one == code]
    return frozenset(MISSING if label is None else label for label in inside)


def spending(settings: GeneralizationSettled) -> Uncomposable:
    """Nothing that could be added to anything."""
    return Uncomposable(notion(settings.demands))


# --- what is asked for ----------------------------------------------------------------------------------------------


def demands_of(
    release: Generalization,
    labels: Mapping[str, Sequence[str | None]],
    *,
    seen: Callable[[int], Sequence[int]],
    tree: Callable[[str], Tree],
    hierarchy: Callable[[str], Hierarchy],
    rows: int = 1,
    counted: bool = False,
) -> tuple[Demand, ...]:
    """All that a policy asks for: adversaries first, in the policy's order.

    Args:
        release: the policy's asked.
        labels: the values of each sensitive column, as they are published.
        seen: how many people of each value the earlier table of an adversary holds, by her number.
        tree: the levels of a sensitive column above the one at which it is published.
        hierarchy: that of another column, from its declared values on.
        rows: how many rows one person has at most.
        counted: whether people are counted then, where that can be told; otherwise enough rows are asked for.

    Raises:
        PolicyError: people may have several rows, and something but the size of groups is asked for.
        UnreachableError: an adversary of whom nothing is known (class IV).
    """
    sensitive, labels = list(labels), release.values(labels)
    found = []
    if rows > 1 and not all(isinstance(spec, GroupSize) for spec in (*release.adversaries, *release.require)):
        raise PolicyError(
            "Where a person may have several rows, only the size of groups (k) can be required: other requirements and "
            "beliefs count rows, of which one person can supply all with a value, or several values.",
            code="policy-invalid",
            remedy="Let one row of each person count (people: at_most: 1), or require 'k' alone.",
        )
    for number, spec in enumerate(release.adversaries):
        asked_about, column = release.about(spec, sensitive), release.column(spec, sensitive)
        values = _named(labels[column])
        adversary = _adversary(spec, values, partial(seen, number))
        predicates = _predicates(spec, values)
        together, possible = _together(spec), None
        if spec.knows_not:
            possible = tuple(map(values.index, spec.possible(values)))
            adversary, together = adversary.excluding(possible, len(values)), together or (column,)
        ratio = BeliefRatio(spec.belief_ratio, adversary, predicates, release.called(number))
        people = _people(spec, hierarchy)
        found.append(Demand(ratio, asked_about, None, together, spec.knowing, possible, people))
    for required in release.require:
        if isinstance(required, GroupSize):
            if rows > 1 and counted and not required.sets:
                found.append(Demand(KAnonymity(required.k, counted=True), of=(WHOSE,)))
                continue
            size = required.requirement(rows)
            found += [Demand(size, None, names) for names in required.sets] or [Demand(size)]
            continue
        about = release.about(required, sensitive)
        requirement = required.requirement(_named(labels[about]), partial(tree, about))
        found.append(Demand(requirement, about, None, _together(required), required.knowing))
    return tuple(found)


def _people(spec: AdversarySpec, hierarchy: Callable[[str], Hierarchy]) -> Concerned | None:
    """Whom an adversary's entry is about, by all labels that such a person may be shown with."""
    if spec.whom is None:
        return None
    found = []
    for name in sorted(spec.whom):
        levels = hierarchy(name).levels
        values = _named(levels[0].labels)
        inside = {values.index(value) for value in spec.concerned(name, values)}
        codes = [code for code, value in enumerate(levels[0].to.tolist()) if value in inside]
        found.append((name, frozenset(level.labels[int(level.to[code])] for level in levels for code in codes)))
    return Concerned(f"people with {spec.whom_in_words}", tuple(found))


def parts_of(hierarchy: Hierarchy, level: int) -> dict[str, tuple[str, ...]]:
    """By the labels of a column at a level, the declared values that each stands for."""
    recode = hierarchy.levels[level]
    parts: dict[str, tuple[str, ...]] = {}
    for value, code in zip(_named(hierarchy.levels[0].labels), recode.to.tolist(), strict=True):
        label = _named(recode.labels)[code]
        parts[label] = (*parts.get(label, ()), value)
    return parts


def _together(spec: AboutValues) -> tuple[str, ...]:
    """The sensitive columns that are looked at together, if these are several."""
    names = named(spec)
    return names if len(names) > 1 else ()


def _named(labels: Sequence[str | None]) -> list[str]:
    return [MISSING if label is None else label for label in labels]


def _adversary(spec: AdversarySpec, values: Sequence[str], seen: Callable[[], Sequence[int]]) -> Adversary:
    known = spec.knows
    if spec.anyone:
        return Adversary.anyone(known_records=known)
    prior = None
    if spec.prior is not None:
        prior = DirichletPrior(tuple(spec.prior[value] for value in values))
    elif spec.earlier_table is not None:
        prior = DirichletPrior.from_counts(seen())
    elif spec.shape is not None:
        shape = [1.0] * len(values) if spec.shape == "uniform" else [spec.shape[value] for value in values]
        if spec.stubbornness is None:
            return Adversary.with_shape(shape, known_records=known, or_less_stubborn=spec.or_less_stubborn)
        prior = DirichletPrior.from_shape(shape, spec.stubbornness)
    if prior is not None:
        return Adversary.with_prior(prior, known_records=known, or_less_stubborn=spec.or_less_stubborn)
    return Adversary.with_stubbornness(spec.stubbornness or 1.0, known_records=known)


def _predicates(spec: AdversarySpec, values: Sequence[str]) -> Predicates:
    if isinstance(spec.predicates, str):
        return spec.predicates
    possible = spec.possible(values)
    # By name, as a certificate has them: JSON knows no order of keys, and the promise must read the same from there.
    return tuple(
        Predicate(tuple(map(possible.index, spec.left(group, values))), name)
        for name, group in sorted(spec.predicates.items())
    )


def by_rows(demand: Demand, rows: int) -> Demand:
    """The same where nobody can tell whose a row is: enough rows for so many people."""
    requirement = demand.requirement
    if not demand.counts_people or not isinstance(requirement, KAnonymity):
        return demand
    return Demand(KAnonymity.of_people(requirement.k, rows))
