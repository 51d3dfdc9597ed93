"""A generalized table as a release: whom it withstands, how that is checked, and what can be counted in it.

All that is promised is a property of the published table, so whoever has the folder can find it out again: every belief
ratio and every requirement is recomputed from the table alone, with the priors that the certificate states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.errors import DataError, InternalError, PolicyError
from incrowd.guarantees.requirements import MOST_NEGATED, MOST_VALUES
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms import generalization
from incrowd.mechanisms.demands import demands_of
from incrowd.mechanisms.generalization import GeneralizationSettings, Outcome
from incrowd.policy import Attribute, Generalization, Policy
from incrowd.policy.mechanisms.adversaries import MISSING, EarlierTable
from incrowd.policy.mechanisms.requirements import GroupSize
from incrowd.policy.reading import Document, refusal
from incrowd.randomness import RandomSource
from incrowd.recoding.demands import Demand, groups_of
from incrowd.releases.declared import are_levels, check_labels, held_columns, tree_above
from incrowd.releases.entries import Uncomposable
from incrowd.releases.kinds import (
    Check,
    Estimates,
    Made,
    Tell,
    all_columns,
    fixed_levels,
    published_attributes,
    section_of,
)
from incrowd.releases.withstanding import REACHED, Said, notion, reached, state

CLAIMED = (
    "that the table published is the publisher's data, made coarser as described",
    "that adversaries know no more than the policy says",
    "that a prior taken from an earlier table is what that table holds",
    "that distances of values are those of the policy's hierarchies, where these are in files",
)
POLICY_NOTE = """\
# The policy as it was carried out, with the levels that were chosen: for review. CAUTION: they were chosen by looking
# at this very table, and what that choice tells about it is covered by no promise. On another table, such as next
# year's, they are fixed beforehand and tell nothing about it; if it does not withstand them, it is refused.
"""


@dataclass(frozen=True, eq=False)
class Settled:
    """What the table must withstand, and what of it is fixed.

    Attributes:
        release: the policy's section.
        generalization: the settings of the mechanism.
        seen: for adversaries who have seen an earlier table, by their number: the people of each value in it.
        trees: for columns whose values are as far apart as in their hierarchies, the levels of these.
        dropping: columns without a value of which a record is left out.
    """

    release: Generalization
    generalization: GeneralizationSettings
    seen: Mapping[int, Sequence[int]]
    trees: Mapping[str, Sequence[Sequence[int]]]
    dropping: Sequence[str]

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Adversaries and requirements."""
        return self.generalization.demands


def settle(policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> Settled:
    """Everything but the levels that are left open."""
    release = policy.release
    if not isinstance(release, Generalization):
        raise InternalError("a generalization was asked for by another mechanism's policy")
    if copies > 1:
        raise PolicyError(
            "A generalized table is made without any chance: a second one would be the same.",
            code="parameter-combination",
            remedy="Make one release. Promises of this kind about several releases do not add up.",
        )
    sensitive = {a.name: a for a in attributes if policy.attributes[a.name].role == "sensitive"}
    fixed = dict.fromkeys(sensitive, 0) | fixed_levels(policy, attributes)
    labels = {name: a.hierarchy.recode(fixed[name]).labels for name, a in sensitive.items()}
    unfit = release.mismatched(labels, list(labels))
    if unfit:
        raise refusal([Document(None).problem(place, text) for place, text in unfit], "The policy")
    _require_manageable(release, labels)
    seen = {
        number: _seen(policy, adversary.earlier_table, labels[str(release.about(adversary, list(labels)))])
        for number, adversary in enumerate(release.adversaries)
        if adversary.earlier_table is not None
    }
    trees: dict[str, list[list[int]]] = {}

    def tree(name: str) -> list[list[int]]:
        trees[name] = tree_above(sensitive[name].hierarchy, fixed[name])
        return trees[name]

    demands = demands_of(release, labels, seen=seen.__getitem__, tree=tree)
    quasi = tuple(a.name for a in attributes if a.name not in sensitive)
    settings = GeneralizationSettings(
        attributes=tuple(attributes),
        quasi=quasi,
        sensitive=tuple(sensitive),
        fixed=fixed,
        demands=demands,
        minimise=release.minimise,
        suppression=release.suppression,
        seconds=release.time_limit,
        local=release.recoding == "local",
    )
    dropping = sorted(a.name for a in attributes if policy.attributes[a.name].missing == "drop")
    return Settled(release, settings, seen, trees, dropping)


def _require_manageable(release: Generalization, labels: Mapping[str, Sequence[str | None]]) -> None:
    """Refuse sensitive columns with more values than can be looked at one by one."""
    asked = [*release.adversaries, *(spec for spec in release.require if not isinstance(spec, GroupSize))]
    for spec in asked:
        column = str(release.about(spec, list(labels)))
        families = getattr(spec, "predicates", "values")
        most = MOST_NEGATED if families in ("negations", "subsets") else MOST_VALUES
        if len(labels[column]) > most:
            raise PolicyError(
                f"The sensitive column {column!r} is published with {len(labels[column]):,} values; at most {most:,} "
                f"can be looked at{'' if most == MOST_VALUES else ' with these predicates'}.",
                code="domain-large",
                remedy="Publish it at a coarser level (give it a hierarchy and 'level'), or declare a smaller domain.",
                details={"column": column, "values": len(labels[column]), "most": most},
            )


def _seen(policy: Policy, earlier: EarlierTable, labels: Sequence[str | None]) -> list[int]:
    """How many people of an earlier table have each value."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    path = policy.resolve(earlier.file)
    columns = [earlier.column, *([] if earlier.count is None else [earlier.count])]

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
                    column_types={earlier.column: pa.string()},
                    strings_can_be_null=True,
                    null_values=list(policy.data.missing_values),
                ),
            )
        if any(there.count(column) > 1 for column in columns):
            raise wrong("a column named has the name of another one, too")
        if table.column_names != columns:
            raise wrong("it does not have the columns named")
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


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is promised, and the table that keeps it."""

    settings: Settled
    outcome: Outcome


def prepare(settings: Settled, table: Histogram, tell: Tell) -> Prepared:
    """Find the table; what cannot be withstood is refused."""
    return Prepared(settings, generalization.run(table, settings.generalization, tell))


def spending(settings: Settled) -> Uncomposable:
    """Nothing that could be added to anything."""
    return Uncomposable(notion(settings.demands))


def together(settings: Settled, copies: int) -> dict[str, Any] | None:  # noqa: ARG001
    """There is never more than one."""
    return None


def draw(prepared: Prepared, source: RandomSource) -> Made:  # noqa: ARG001
    """Nothing is drawn; all that is promised is looked for once more in what will be published."""
    settled, outcome = prepared.settings, prepared.outcome
    settings = settled.generalization
    groups = groups_of(outcome.published, settings.quasi, settings.sensitive)
    for demand in settled.demands:
        if not demand.requirement.holds(groups.of(demand)):
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
    )
    return Made(outcome.published, outcome.levels, state(said, reached(settled.demands, groups)), outcome)


# --- checking it ------------------------------------------------------------------------------------------------------


def check_promise(certificate: Mapping[str, Any]) -> Iterator[Check]:
    """The adversaries and requirements are the policy's, and the promise is about them."""
    mechanism, promise = certificate["mechanism"], certificate["promise"]
    said = _said(certificate)
    release, listed = said.release, published_attributes(certificate)
    attributes = {name: Attribute.model_construct(level=a["level"], role=a["role"]) for name, a in listed.items()}
    sound = not release.unfit(attributes) and not release.mismatched(said.labels, list(said.labels))
    yield Check("the policy's parameters go together", sound, "they contradict each other")
    held, levels = held_columns(certificate), mechanism["levels"]
    sound = are_levels(levels, held)
    yield Check("levels are levels", sound, "one is no whole number, or above its hierarchy's top")
    if sound:
        yield check_labels(certificate, held)
    columns = {column["name"]: column["labels"] for column in certificate["columns"]}
    same = all(
        held[name].has_tree(columns[name], levels[name], tree) for name, tree in said.trees.items() if name in held
    )
    yield Check("the distances of values are the policy's, where it states them", same, "they are others")
    seen = {n for n, adversary in enumerate(release.adversaries) if adversary.earlier_table is not None}
    yield Check("earlier tables are stated where they count", seen == set(said.seen), "others are")
    fixed = {name: 0 if a["level"] is None else a["level"] for name, a in listed.items() if name not in said.chosen}
    named = set(fixed) if release.recoding == "local" else set(listed)
    same = set(levels) == named and {name: levels[name] for name in fixed} == fixed
    yield Check("the levels are the policy's, where it fixes them", same, "a level differs from the policy's")
    beliefs = [{key: entry[key] for key in REACHED} for entry in promise["adversaries"]]
    stated = state(said, beliefs).is_in(certificate) and promise["together"] is None
    yield Check("the promise says what the parameters mean", stated, "its words or numbers are others")


def settled_again(certificate: Mapping[str, Any]) -> Settled:
    """What the table withstands, and what of it was fixed."""
    said, listed = _said(certificate), published_attributes(certificate)
    names = all_columns(certificate)
    settings = GeneralizationSettings(
        attributes=(),
        quasi=tuple(name for name in names if name not in said.labels),
        sensitive=tuple(said.labels),
        fixed={name: listed[name]["level"] or 0 for name in names if name not in said.chosen},
        demands=tuple(said.demands),
        minimise=said.release.minimise,
        suppression=said.release.suppression,
        seconds=said.release.time_limit,
        local=said.release.recoding == "local",
    )
    return Settled(said.release, settings, said.seen, said.trees, said.dropping)


def columns_needed(certificate: Mapping[str, Any], by: Sequence[str] = (), **_: Any) -> list[str]:  # noqa: ARG001
    """Groups are made of all columns."""
    return all_columns(certificate)


def check_table(certificate: Mapping[str, Any], table: Histogram) -> Iterator[Check]:
    """Every group withstands every adversary and keeps every requirement."""
    said = _said(certificate)
    quasi = [name for name in table.names if name not in said.labels]
    if not table.total:
        yield Check("the table holds records", holds=False, detail="it is empty")
        return
    groups = groups_of(table, quasi, list(said.labels))
    for demand in said.demands:
        failing = int(demand.requirement.failing(groups.of(demand)).sum())
        yield Check(f"the table has {demand.name}", failing == 0, f"{failing} groups fail")
    stated = [{key: entry[key] for key in REACHED} for entry in certificate["promise"]["adversaries"]]
    yield Check("the belief ratios are the table's", reached(said.demands, groups) == stated, "they are others")


def _said(certificate: Mapping[str, Any]) -> Said:
    """What a certificate's statement follows from, found again from its policy and columns."""
    mechanism, release = certificate["mechanism"], section_of(certificate)
    listed = published_attributes(certificate)
    columns = {column["name"]: column["labels"] for column in certificate["columns"]}
    labels = {name: columns[name] for name in columns if listed[name]["role"] == "sensitive"}
    seen = {
        number: [entry["seen"][MISSING if label is None else label] for label in labels[entry["sensitive"]]]
        for number, entry in enumerate(mechanism["adversaries"])
        if entry["seen"] is not None
    }
    used: dict[str, list[list[int]]] = {}

    def tree(name: str) -> list[list[int]]:
        used[name] = mechanism["trees"][name]
        return used[name]

    return Said(
        release=release,
        demands=demands_of(release, labels, seen=seen.__getitem__, tree=tree),
        labels=labels,
        levels=mechanism["levels"],
        chosen=sorted(name for name, a in listed.items() if a["role"] == "quasi" and a["level"] is None),
        seen=seen,
        trees=used,
        dropping=sorted(name for name, a in listed.items() if a["missing"] == "drop"),
    )


# --- counts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """One cell of a cross-tabulation.

    Attributes:
        values: the labels of the columns asked for, None for missing.
        estimate: the people of this cell in the published table.
        standard_error: 0, since nothing was drawn at random.
    """

    values: tuple[str | None, ...]
    estimate: float
    standard_error: float = 0.0


def estimate(certificate: Mapping[str, Any], table: Histogram, by: Sequence[str]) -> Estimates:
    """A cross-tabulation by some columns: records are true, so they are counted."""
    cells = table.project(by)
    rows = tuple(
        Counted(tuple(cells[name].labels[int(cells[name].codes[i])] for name in by), float(cells.counts[i]))
        for i in range(len(cells))
    )
    notes = ["Counts of the published records. They are true, but for what a label covers nothing more is known."]
    release = section_of(certificate)
    if release.suppression:
        notes.append(f"Up to {release.suppression:.3g} of the table's records may have been left out, in whole groups.")
    if release.recoding == "local":
        notes.append("Recoding is local: a label may cover others of the same column, which are counted apart.")
    return Estimates(tuple(by), rows, tuple(notes))
