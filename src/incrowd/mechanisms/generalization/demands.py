"""What a generalized table must withstand: a policy's adversaries and requirements, about the columns they speak of.

Everything here is found from the policy and the values of the sensitive columns as they are published. So it can be
found once more by whoever holds a certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from incrowd.core.errors import InternalError
from incrowd.mechanisms.generalization import requirements as asked
from incrowd.mechanisms.generalization.adversaries import MISSING, AdversarySpec
from incrowd.mechanisms.generalization.section import Generalization
from incrowd.recoding.demands import Demand
from incrowd.theory.adversaries import Adversary, DirichletPrior
from incrowd.theory.beliefs import Predicate
from incrowd.theory.requirements import (
    BeliefRatio,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    LargestShare,
    RecursiveDiversity,
    Requirement,
    TCloseness,
)

Tree = Sequence[Sequence[int]]


def demands_of(
    release: Generalization,
    labels: Mapping[str, Sequence[str | None]],
    *,
    seen: Callable[[int], Sequence[int]],
    tree: Callable[[str], Tree],
) -> tuple[Demand, ...]:
    """All that a policy asks for: adversaries first, in the policy's order.

    Args:
        release: the policy's asked.
        labels: the values of each sensitive column, as they are published.
        seen: how many people of each value the earlier table of an adversary holds, by her number.
        tree: the levels of a sensitive column above the one at which it is published.

    Raises:
        UnreachableError: an adversary of whom nothing is known (class IV).
    """
    sensitive = list(labels)
    found = []
    for number, spec in enumerate(release.adversaries):
        column = str(release.about(spec, sensitive))
        values = _named(labels[column])
        adversary = _adversary(spec, values, lambda number=number: seen(number))  # type: ignore[misc]
        predicates = _predicates(spec.predicates, values)
        ratio = BeliefRatio(spec.belief_ratio, adversary, predicates, release.called(number))
        found.append(Demand(ratio, column))
    for required in release.require:
        about = release.about(required, sensitive)
        values = _named(labels[about]) if about is not None else []
        found.append(Demand(_requirement(required, values, about, tree), about))
    return tuple(found)


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


def _predicates(written: Any, values: Sequence[str]) -> Any:
    if isinstance(written, str):
        return written
    found = []
    # By name, as a certificate has them: JSON knows no order of keys, and the promise must read the same from there.
    for name, group in sorted(written.items()):
        if isinstance(group, Mapping):
            chosen = Predicate(tuple(map(values.index, group["not"]))).negation(len(values))
            found.append(Predicate(chosen.values, name))
        else:
            found.append(Predicate(tuple(map(values.index, group)), name))
    return tuple(found)


def _requirement(spec: Any, values: Sequence[str], about: str | None, tree: Callable[[str], Tree]) -> Requirement:
    match spec:
        case asked.GroupSize():
            return KAnonymity(spec.k)
        case asked.Diversity():
            return DistinctDiversity(int(spec.l)) if spec.kind == "distinct" else EntropyDiversity(spec.l)
        case asked.RecursiveDiversitySpec():
            return RecursiveDiversity(spec.c, spec.l)
        case asked.Share():
            named = None if spec.values is None else tuple(map(values.index, spec.values))
            return LargestShare(spec.alpha, named)
        case asked.Closeness():
            if spec.distance != "hierarchical":
                return TCloseness(spec.t, spec.distance)
            return TCloseness(spec.t, tuple(tuple(level) for level in tree(str(about))))
        case asked.Likeness():
            return BetaLikeness(spec.beta, spec.enhanced)
        case asked.DisclosureSpec():
            return DeltaDisclosure(spec.delta)
        case _:
            raise InternalError("a policy asks for a requirement that no one knows")
