"""The audit of a table: what it satisfies, who can be found in it, what can be learned about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.auditing.contributions import Contribution, MinimalUniques, contributions, minimal_uniques
from incrowd.auditing.disclosure import Disclosure, alike, disclosure
from incrowd.auditing.reidentification import Population, Risks, risks
from incrowd.auditing.rules import RuleOutcome, required
from incrowd.auditing.suspects import DEFAULT, Suspect
from incrowd.core.display import INTERNAL, Showable, Shown, ShownTable
from incrowd.core.errors import DataError, ParameterError
from incrowd.core.numbers import number, percent
from incrowd.histogram import Column, Histogram
from incrowd.sources.crowds import PeopleInGroups
from incrowd.sources.observed import natural_order


@dataclass(frozen=True)
class SmallestGroup:
    """One of the smallest groups.

    Attributes:
        group: its number, from 1.
        size: its records.
        labels: what they have in common; only if values may be shown.
    """

    group: int
    size: int
    labels: dict[str, str | None] | None = None


@dataclass(frozen=True, repr=False)
class Audit(Showable):
    """What a table satisfies. Holds no value of the table unless that was asked for.

    Attributes:
        records: how many there are.
        quasi: the columns that somebody may know of a person.
        missing: for each of them, how many records have no value; that counts as a value of its own.
        groups: how many groups of records look alike in them.
        k: the size of the smallest group.
        sensitive: what is given away about each sensitive attribute.
        risks: how easily people are found.
        contributions: what each quasi-identifier does, the most contributing first.
        minimal_uniques: the smallest combinations of columns that single a record out.
        smallest: the smallest groups first.
        others_as_quasi: whether, for each sensitive attribute, the other ones counted as known.
        notes: what to keep in mind when reading the figures.
        sizes: the records of each group.
        people: how many people are in the groups, if it is known whose each record is.
    """

    records: int
    quasi: tuple[str, ...]
    missing: dict[str, int]
    groups: int
    k: int
    sensitive: tuple[Disclosure, ...]
    risks: Risks
    contributions: tuple[Contribution, ...]
    minimal_uniques: MinimalUniques
    smallest: tuple[SmallestGroup, ...]
    others_as_quasi: bool
    notes: tuple[str, ...]
    sizes: NDArray[np.int64] = field(compare=False, repr=False)
    people: PeopleInGroups | None = None

    @property
    def l_diversity(self) -> int | None:
        """Distinct ℓ, the smallest over the sensitive attributes."""
        return min((int(d.distinct_l.value) for d in self.sensitive), default=None)

    @property
    def t_closeness(self) -> float | None:
        """t with the equal distance, the largest over the sensitive attributes."""
        return max((d.t.value for d in self.sensitive), default=None)

    @property
    def belief_ratio(self) -> dict[str, float]:
        """The belief ratio against each adversary, the largest over the sensitive attributes."""
        found: dict[str, float] = {}
        for belief in (b for d in self.sensitive for b in d.beliefs):
            found[belief.adversary] = max(found.get(belief.adversary, 1.0), belief.ratio)
        return found

    @property
    def smallest_alike(self) -> list[tuple[SmallestGroup, int]]:
        """The smallest groups, those that look alike by the first of them and their number."""
        return alike(self.smallest, lambda group: (group.size, group.labels))

    def require(self, *rules: str) -> tuple[RuleOutcome, ...]:
        """What it has of what is required, as in ``require("k=5,l=2")``: each with `holds`."""
        return required(self, rules)

    def shown(self) -> Shown:
        """What it comes to, and which columns do it."""
        figures = [
            ("k, the smallest group", number(self.k)),
            ("records alone in their group", number(self.risks.sample_uniques)),
            ("records found on average, if all are matched", percent(self.risks.marketer)),
        ]
        if self.l_diversity is not None and self.t_closeness is not None:
            figures += [("distinct ℓ", number(self.l_diversity)), ("t-closeness", number(self.t_closeness, 3))]
        figures += [(f"belief ratio, {name}", number(ratio, 3)) for name, ratio in self.belief_ratio.items()]
        return Shown(
            f"{self.records:,} records in {self.groups:,} groups that look alike in {', '.join(self.quasi)}",
            tables=(ShownTable(("", ""), figures),),
            notes=self.notes,
            internal=INTERNAL,
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, by name, for JSON."""
        return {
            "records": self.records,
            "quasi": list(self.quasi),
            "missing": self.missing,
            "groups": self.groups,
            "k": self.k,
            "people": None if self.people is None else asdict(self.people),
            "l_diversity": self.l_diversity,
            "t_closeness": self.t_closeness,
            "belief_ratio": self.belief_ratio,
            "sensitive": {d.name: _without_exact(asdict(d)) for d in self.sensitive},
            "others_as_quasi": self.others_as_quasi,
            "risks": asdict(self.risks),
            "contributions": [asdict(c) for c in self.contributions],
            "minimal_uniques": asdict(self.minimal_uniques),
            "smallest_groups": [asdict(g) for g in self.smallest],
            "notes": list(self.notes),
        }


def audit(
    table: Histogram,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    suspects: Sequence[Suspect] = DEFAULT,
    *,
    domains: Mapping[str, Sequence[str]] | None = None,
    ordered: Sequence[str] = (),
    others_as_quasi: bool = False,
    population: Population | None = None,
    threshold: float = 0.2,
    worst: int = 10,
    show_values: bool = False,
) -> Audit:
    """Audits a table.

    Args:
        table: counted by the quasi-identifiers and the sensitive attributes, labels being the values that occur.
        quasi: the columns that somebody may know of a person, at least one.
        sensitive: those that nobody should learn, none of them among `quasi`.
        suspects: against whom belief ratios are computed.
        domains: the values that sensitive attributes can have, in their order; otherwise those that occur.
        ordered: sensitive attributes whose domain is in order, though it is neither numbers nor dates.
        others_as_quasi: whether, for one sensitive attribute, the others count as known.
        population: what is known of the people behind the table, in the order of its groups.
        threshold: the risk above which records are counted.
        worst: how many of the worst groups to list.
        show_values: whether the result may hold values of the table.
    """
    _check(table, quasi, sensitive, suspects, {*(domains or {}), *ordered})
    groups = table.project(quasi)
    found = []
    for name in sensitive:
        declared = (domains or {}).get(name)
        own = table if declared is None else declare(table, name, declared)
        by = [*quasi, *(other for other in sensitive if other != name)] if others_as_quasi else quasi
        labels = own[name].labels
        found.append(
            disclosure(
                own,
                by,
                name,
                suspects,
                declared=declared is not None,
                ordered=None not in labels and (name in ordered or natural_order(labels) == list(labels)),
                worst=worst,
                show_values=show_values,
            )
        )
    order = np.argsort(groups.counts, kind="stable")[:worst]
    return Audit(
        records=table.total,
        quasi=tuple(quasi),
        missing={name: _missing(groups, name) for name in quasi},
        groups=len(groups),
        k=int(groups.counts.min()),
        sensitive=tuple(found),
        risks=risks(groups.counts, population, threshold),
        contributions=contributions(groups),
        minimal_uniques=minimal_uniques(groups),
        smallest=tuple(
            SmallestGroup(int(i) + 1, int(groups.counts[i]), _labels(groups, int(i)) if show_values else None)
            for i in order
        ),
        others_as_quasi=others_as_quasi and len(sensitive) > 1,
        notes=tuple(_notes(found, groups, population, suspects, others_as_quasi=others_as_quasi)),
        sizes=groups.counts,
    )


def declare(table: Histogram, name: str, values: Sequence[str]) -> Histogram:
    """The same table with a declared domain of one column; a missing value, where one occurs, is added to it."""
    column = table[name]
    labels: tuple[str | None, ...] = (*values, None) if None in column.labels else tuple(values)
    if len(set(labels)) != len(labels):
        raise ParameterError(f"The domain of {name!r} lists a value twice.", code="domain-duplicate")
    codes = {label: code for code, label in enumerate(labels)}
    there = np.array([codes.get(label, -1) for label in column.labels])[column.codes]
    if outside := int(table.counts[there < 0].sum()):
        raise DataError(
            f"{name!r} holds a value outside its declared domain in {outside} of the records.",
            code="values-outside-domain",
            remedy="Declare every value that can occur, as it is written in the table.",
            details={"columns": {name: {"outside": outside}}},
        )
    return Histogram.of(
        [Column(name, labels, there) if c.name == name else c for c in table.columns],
        table.counts,
    )


def _check(
    table: Histogram, quasi: Sequence[str], sensitive: Sequence[str], suspects: Sequence[Suspect], named: set[str]
) -> None:
    if not quasi:
        raise ParameterError(
            "An audit needs at least one quasi-identifier: a column that others may know of a person.",
            code="parameter-combination",
        )
    for name in (*quasi, *sensitive):
        table[name]
    twice = [name for name in {*quasi, *sensitive} if [*quasi, *sensitive].count(name) > 1]
    if twice:
        raise ParameterError(
            f"Column {min(twice)!r} is named twice.",
            code="parameter-combination",
            remedy="A column is a quasi-identifier or sensitive, not both.",
        )
    strange = {*named, *(s.about for s in suspects if s.about is not None)} - set(sensitive)
    if strange:
        raise ParameterError(
            f"{min(strange)!r} is not among the sensitive attributes.",
            code="parameter-combination",
            remedy="Domains, orders and adversaries are about sensitive attributes.",
        )
    unknown = {name for s in suspects for name in s.knowing} - set(sensitive)
    unknown |= {name for s in suspects for name, _ in s.whom} - set(quasi)
    if unknown:
        raise ParameterError(
            f"An adversary names {min(unknown)!r}, which is not a column of the right kind.",
            code="parameter-combination",
            remedy="'knowing' names sensitive attributes, and 'for' names quasi-identifiers.",
        )
    if any(s.knowing and not ({s.about} if s.about else set(sensitive)) - set(s.knowing) for s in suspects):
        raise ParameterError(
            "An adversary knows every sensitive attribute that she is asked about.",
            code="parameter-combination",
            remedy="Leave out of 'knowing' what she is to learn.",
        )


def _missing(groups: Histogram, name: str) -> int:
    column = groups[name]
    return int(groups.counts[column.codes == column.labels.index(None)].sum()) if None in column.labels else 0


def _labels(groups: Histogram, cell: int) -> dict[str, str | None]:
    return {column.name: column.labels[int(column.codes[cell])] for column in groups.columns}


def _notes(
    found: Sequence[Disclosure],
    groups: Histogram,
    population: Population | None,
    suspects: Sequence[Suspect],
    *,
    others_as_quasi: bool,
) -> list[str]:
    notes = []
    for d in found:
        if not d.declared:
            notes.append(
                f"The domain of {d.name} is taken to be the {d.values:,} values that occur. If others are possible, "
                "the table also shows that nobody has them, which no figure here counts, and an adversary with a "
                "uniform shape has more to choose from. Declare the domain to have that counted."
            )
        if d.values == 1:
            notes.append(
                f"{d.name} can have a single value only, so there is nothing to learn and no belief ratio."
                if d.declared
                else f"{d.name} has the same value in every record: everybody's value is known to whoever sees the "
                "table. What that tells depends on the values that were possible: declare them (domains, or --domain) "
                "to have belief ratios."
            )
        if d.missing:
            notes.append(f"{d.name} is missing in {d.missing:,} records; that is counted as a value of its own.")
    absent = [name for name in groups.names if _missing(groups, name)]
    if absent:
        notes.append(
            f"Values are missing in {', '.join(absent)}. A missing value is a value like any other here: records with "
            "it look alike among themselves, and none is left out."
        )
    if len(found) > 1:
        notes.append(
            "For each sensitive attribute the other ones counted as known to others."
            if others_as_quasi
            else "Each sensitive attribute was looked at by itself; somebody who knows one of them of a person may "
            "learn more about another."
        )
    if population is None:
        notes.append(
            "Nothing is known of the population behind the table, so the marketer’s risk is that of a table of "
            "everybody; if it is a sample, give a sampling rate, a column of weights or the population."
        )
    elif population.raised:
        notes.append(
            f"{population.raised:,} of the groups seemed to have fewer people than the table has records of them; they "
            "were taken to have as many. Check that weights and population belong to this table."
        )
    if found and suspects:
        notes.append(
            "A belief ratio is about the table as it stands. If its groups were chosen by looking at the data, the "
            "choice itself may tell something (minimality attacks), which no figure here counts."
        )
    return notes


def _without_exact(figures: dict[str, Any]) -> dict[str, Any]:
    for belief in figures["beliefs"]:
        belief.pop("exact")
    return figures
