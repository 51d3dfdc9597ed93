"""A generalized table as a release: whom it withstands, how that is checked, and what can be counted in it.

All that is promised is a property of the published table, so whoever has the folder can find it out again: every belief
ratio and every requirement is recomputed from the table alone, with the priors that the certificate states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from incrowd.hierarchy import Hierarchy
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import (
    Check,
    Publication,
    all_columns,
    published_attributes,
    section_of,
)
from incrowd.mechanisms.declared import are_levels, check_labels, check_mapping, held_columns
from incrowd.mechanisms.generalization.adversaries import MISSING
from incrowd.mechanisms.generalization.certificate import GeneralizationCertificate, GeneralizationStatedPromise
from incrowd.mechanisms.generalization.claims import Beliefs, Said, reached, state
from incrowd.mechanisms.generalization.people import FILE, read_people
from incrowd.mechanisms.generalization.section import Generalization
from incrowd.mechanisms.generalization.settle import (
    GeneralizationSettings,
    GeneralizationSettled,
    demands_of,
    parts_of,
)
from incrowd.mechanisms.persons import Persons
from incrowd.policy import Attribute
from incrowd.recoding.demands import groups_of
from incrowd.recoding.mapping import MAPPING

# --- checking it ------------------------------------------------------------------------------------------------------


def check_promise(certificate: GeneralizationCertificate) -> Iterator[Check]:
    """The adversaries and requirements are the policy's, and the promise is about them."""
    mechanism, promise = certificate.mechanism, certificate.promise
    said = _said(certificate)
    release, listed = said.release, published_attributes(certificate)
    attributes = {name: Attribute.model_construct(level=a["level"], role=a["role"]) for name, a in listed.items()}
    asked = section_of(certificate, Generalization)
    sound = not asked.unfit(attributes) and not release.mismatched(said.labels, list(said.labels))
    yield Check("the policy's parameters go together", sound, "they contradict each other")
    held, levels = held_columns(certificate), mechanism.levels
    sound = are_levels(levels, held)
    yield Check("every stated level exists", sound, "one is not a whole number, or its hierarchy has no such level")
    if sound:
        yield check_labels(certificate, held)
    columns = certificate.labels
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
    beliefs = _beliefs(promise)
    stated = state(said, beliefs).is_in(certificate) and promise.together is None
    yield Check("the promise says what the parameters mean", stated, "its words or numbers are others")


def settled_again(certificate: GeneralizationCertificate) -> GeneralizationSettled:
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
        splits=said.release.splits if said.release.recoding == "local" else None,
    )
    return GeneralizationSettled(said.release, settings, said.seen, said.trees, said.dropping, said.persons)


def beside_names(certificate: GeneralizationCertificate) -> tuple[str, ...]:
    """How many people the groups have, where they were counted; and the mapping, if it is local."""
    mechanism = certificate.mechanism
    return (*(() if mechanism.people is None else (FILE,)), *((MAPPING,) if mechanism.recoding == "local" else ()))


def check_table(certificate: GeneralizationCertificate, published: Publication) -> Iterator[Check]:
    """Every group withstands every adversary and keeps every requirement."""
    said, table = _said(certificate), published.table
    if certificate.mechanism.recoding == "local":
        yield from check_mapping(certificate, published, [name for name in table.names if name not in said.levels])
    quasi = [name for name in table.names if name not in said.labels]
    if not table.total:
        yield Check("the table holds records", holds=False, detail="it is empty")
        return
    people = people_beside(published, quasi)
    if people is not None:
        rows = table.project(quasi)
        same = [c.codes.tolist() for c in rows.columns] == [c.codes.tolist() for c in people.columns]
        yield Check("every group of the table says how many people it has", same, "others do")
        if not same:
            return
        most = said.persons.at_most
        possible = bool(np.all((people.counts <= rows.counts) & (rows.counts <= most * people.counts)))
        yield Check(f"no person has more than {most} rows in a group", possible, "rows and people do not fit together")
    groups = groups_of(table, quasi, list(said.labels), people)
    for demand in said.demands:
        failing = groups.failing(demand)
        yield Check(f"the table has {demand.name}", failing == 0, f"{failing} groups fail")
    stated = _beliefs(certificate.promise)
    yield Check("the belief ratios are the table's", reached(said.demands, groups) == stated, "they are others")


def people_beside(published: Publication, quasi: Sequence[str]) -> Histogram | None:
    """How many people each group has, if that is published."""
    content = published.beside.get(FILE)
    return None if content is None else read_people(content, [(name, published.table[name].labels) for name in quasi])


def _beliefs(promise: GeneralizationStatedPromise) -> list[Beliefs]:
    return [Beliefs(entry.belief_ratio_reached, entry.p_in, entry.p_out) for entry in promise.adversaries]


def _said(certificate: GeneralizationCertificate) -> Said:
    """What a certificate's statement follows from, found again from its policy and columns."""
    mechanism, release = certificate.mechanism, section_of(certificate, Generalization)
    listed = published_attributes(certificate)
    columns = certificate.labels

    def hierarchy(name: str) -> Hierarchy:
        held = held_columns(certificate)[name]
        if not held.whole:
            raise ValueError("who may be in which group does not stand in the certificate")
        return held.hierarchy

    release = release.by_prior(lambda name: parts_of(hierarchy(name), mechanism.levels[name]))
    labels = {name: columns[name] for name in columns if listed[name]["role"] == "sensitive"}
    seen = {
        number: [entry.seen[MISSING if label is None else label] for label in labels[entry.sensitive]]
        for number, entry in enumerate(mechanism.adversaries)
        if entry.seen is not None
    }
    persons = Persons.in_certificate(certificate)
    used: dict[str, Sequence[Sequence[int]]] = {}

    def tree(name: str) -> Sequence[Sequence[int]]:
        used[name] = mechanism.trees[name]
        return used[name]

    return Said(
        release=release,
        demands=demands_of(
            release,
            labels,
            seen=seen.__getitem__,
            tree=tree,
            hierarchy=hierarchy,
            rows=persons.at_most,
            counted=mechanism.people == "counted",
        ),
        labels=labels,
        levels=mechanism.levels,
        chosen=sorted(name for name, a in listed.items() if a["role"] == "quasi" and a["level"] is None),
        seen=seen,
        trees=used,
        dropping=sorted(name for name, a in listed.items() if a["missing"] == "drop"),
        persons=persons,
    )


# --- counts -----------------------------------------------------------------------------------------------------------
