"""What a generalized table must withstand: a policy's adversaries and requirements, about the columns they speak of.

Everything here is found from the policy and the values of the sensitive columns as they are published. So it can be
found once more by whoever holds a certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from incrowd.core.errors import PolicyError
from incrowd.hierarchy import Hierarchy
from incrowd.mechanisms.generalization.adversaries import MISSING, AdversarySpec
from incrowd.mechanisms.generalization.requirements import GroupSize, Tree
from incrowd.mechanisms.generalization.section import AboutValues, Generalization, named
from incrowd.recoding.apart import Concerned
from incrowd.recoding.demands import Demand
from incrowd.sources.people import WHOSE
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.beliefs import Predicate, Predicates
from incrowd.theory.requirements import BeliefRatio, KAnonymity


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
