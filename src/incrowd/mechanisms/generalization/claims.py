"""What a generalized table says of itself: whom it withstands and how far, and what is not covered.

It follows from the policy, the labels of the sensitive columns, and what the published table shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from incrowd.core.numbers import exactly
from incrowd.mechanisms.certificate import Statement
from incrowd.mechanisms.generalization.adversaries import MISSING, named_values, negated
from incrowd.mechanisms.generalization.certificate import (
    GeneralizationStatedMechanism,
    GeneralizationStatedPromise,
    GeneralizationStatement,
    NoneOf,
    StatedAdversary,
    Withstood,
)
from incrowd.mechanisms.generalization.section import Generalization
from incrowd.mechanisms.persons import Persons
from incrowd.recoding.demands import Demand, Groups
from incrowd.theory.beliefs import Statements
from incrowd.theory.requirements import BeliefRatio

T = TypeVar("T")
NOTION = "belief ratio (epsilon-privacy against realistic adversaries; not differential privacy)"
ONLY_GROUPS = "requirements on every group (not differential privacy)"


class Beliefs(NamedTuple):
    """The smallest belief ratio that a published table has, and where its beliefs are."""

    ratio: float
    p_in: float
    p_out: float


@dataclass(frozen=True, eq=False)
class Said:
    """All that a statement follows from, but for what the published table shows.

    Attributes:
        release: the policy's section.
        demands: what it asks for.
        labels: the values of each sensitive column, as they are published.
        levels: the level of each column that has one.
        chosen: the columns whose levels were chosen.
        seen: for adversaries who have seen an earlier table, by their number: the people of each value in it.
        trees: for columns whose values are as far apart as in their hierarchies, the levels of these.
        dropping: columns without a value of which a record is left out.
        persons: whose the rows are.
    """

    release: Generalization
    demands: Sequence[Demand]
    labels: Mapping[str, Sequence[str | None]]
    levels: Mapping[str, int]
    chosen: Sequence[str]
    seen: Mapping[int, Sequence[int]]
    trees: Mapping[str, Sequence[Sequence[int]]]
    dropping: Sequence[str]
    persons: Persons = field(default_factory=Persons)

    @property
    def values(self) -> Mapping[str, Sequence[str | None]]:
        """Those of columns, and of combinations that something is demanded about."""
        return self.release.values(self.labels)


def reached(demands: Sequence[Demand], groups: Groups) -> list[Beliefs]:
    """For each adversary the smallest belief ratio that the published table has, and where its beliefs are."""
    found = []
    for demand in demands:
        if (belief := demand.belief) is not None:
            counts = groups.of(demand)
            audit = belief.measure(counts) if counts.any() else None  # nobody whom it is about can be in the table
            found.append(Beliefs(1.0, 0.0, 0.0) if audit is None else Beliefs(audit.ratio, audit.p_in, audit.p_out))
    return found


def state(said: Said, beliefs: Sequence[Beliefs]) -> GeneralizationStatement:
    """The whole statement.

    Args:
        said: what it follows from.
        beliefs: what the published table shows; see `reached`.
    """
    feared = [(demand, belief) for demand in said.demands if (belief := demand.belief) is not None]
    others = [demand for demand in said.demands if demand.belief is None]
    promise = GeneralizationStatedPromise(
        notion=notion(said.demands),
        relation=f"{said.persons.unit} in or out of the table",
        adversaries=tuple(
            Withstood(
                name=belief.against,
                sensitive=str(demand.sensitive),
                belief_ratio=float(belief.epsilon),
                belief_ratio_reached=found.ratio,
                p_in=found.p_in,
                p_out=found.p_out,
            )
            for (demand, belief), found in zip(feared, beliefs, strict=True)
        ),
        requirements=tuple(demand.name for demand in others),
        in_words=in_words(said.demands),
        grounds=grounds(said.demands),
    )
    mechanism = GeneralizationStatedMechanism(
        recoding=said.release.recoding,
        suppression=said.release.suppression,
        levels=dict(said.levels),
        levels_chosen=tuple(said.chosen),
        adversaries=tuple(
            _described(said, number, str(demand.sensitive), belief) for number, (demand, belief) in enumerate(feared)
        ),
        people="counted" if any(demand.counts_people for demand in said.demands) else None,
        trees={name: tuple(tuple(level) for level in tree) for name, tree in said.trees.items()},
    )
    return Statement(promise, mechanism, assumptions(said))


def _described(said: Said, number: int, column: str, belief: BeliefRatio) -> StatedAdversary:
    """What an adversary is taken to believe, number by number."""
    adversary, spec = belief.adversary, said.release.adversaries[number]
    values = [MISSING if label is None else label for label in said.values[column]]

    def by_value(numbers: Sequence[T] | None) -> dict[str, T] | None:
        return None if numbers is None else dict(zip(values, numbers, strict=True))

    return StatedAdversary(
        name=belief.against,
        kind=adversary.kind.value,
        sensitive=column,
        weights=by_value(adversary.weights),
        stubbornness=adversary.stubbornness,
        or_less_stubborn=adversary.or_less_stubborn,
        knows=spec.knows,
        predicates=spec.predicates if isinstance(spec.predicates, str) else _groups(spec.predicates, values),
        seen=by_value(said.seen.get(number)),
    )


def _groups(written: Mapping[str, Any], labels: Sequence[str]) -> dict[str, tuple[str, ...] | NoneOf]:
    return {
        name: NoneOf(values=named_values(group, labels)) if negated(group) else named_values(group, labels)
        for name, group in written.items()
    }


def notion(demands: Sequence[Demand]) -> str:
    """What kind of promise it is."""
    return NOTION if any(demand.belief for demand in demands) else ONLY_GROUPS


def in_words(demands: Sequence[Demand]) -> str:
    """The promise as sentences."""
    sentences = [
        f"Against {belief.against}, who {_knowing(demand)}wants to know of a person{_among(demand)} "
        f"{_wanted(belief, str(demand.sensitive))}: her belief in it, with the person in this table, is at most "
        f"{exactly(belief.epsilon)} times what it would be had the person been left out, and her doubt "
        "shrinks by no more than that factor."
        for demand in demands
        if (belief := demand.belief) is not None
    ]
    others = [demand.name for demand in demands if demand.belief is None]
    if others:
        sentences.append(f"The table has {'; '.join(others)}.")
    return " ".join(sentences)


def _among(demand: Demand) -> str:
    return "" if demand.people is None else f", one of the {demand.people.text},"


def _knowing(demand: Demand) -> str:
    return f"knows everyone's {' and '.join(demand.knowing)} and " if demand.knowing else ""


def _wanted(belief: BeliefRatio, column: str) -> str:
    """What the promise is about, and no more than that."""
    if isinstance(belief.predicates, str):
        family = {
            "values": "which value it is",
            "negations": "which value it is not",
            "subsets": "anything about it",
        }
        return f"{family[belief.predicates]}, in column {column}"
    return f"whether this is so, in column {column}: {', '.join(predicate.name for predicate in belief.predicates)}"


def about_everything(belief: BeliefRatio, size: int) -> bool:
    """Whether a promise is about every statement on a column of so many values."""
    if belief.predicates == "subsets":
        return True
    return size == 2 and {p.values for p in Statements.of(belief.predicates, size).predicates} == {(0,), (1,)}


def grounds(demands: Sequence[Demand]) -> str:
    """What the promise rests on."""
    parts = []
    if any(demand.belief for demand in demands):
        parts.append(
            "Beliefs as in Definition 4 of Machanavajjhala, Gehrke and Götz, 'Data publishing against realistic "
            "adversaries', their ratios in closed form, decided with fractions for every group and statement (incrowd, "
            "docs/adversaries.md)."
        )
    if not all(demand.belief for demand in demands):
        parts.append("Requirements are counted on every published group; they say nothing about anyone's beliefs.")
    return " ".join(parts)


def _has_own_prior(release: Generalization, number: int) -> bool:
    """Whether an entry is about some people because she has a prior about them: others have entries of their own."""
    earlier = release.adversaries[number].earlier_table
    return earlier is not None and bool(earlier.by)


def assumptions(what: Said) -> list[str]:
    """The premises that nobody can check from outside, and what the notion does not cover."""
    release = what.release
    by = list(dict.fromkeys(n for a in release.adversaries if a.earlier_table for n in a.earlier_table.by))
    same = f" who has the same {' and '.join(by)}" if by else ""
    said = [what.persons.premise]
    if release.adversaries:
        said.append(
            "Adversaries are as described: of a person they know the columns that are not sensitive, of others' "
            "records the number stated, and about the sensitive column they believe what is stated, about everyone "
            f"alike{same}. Against anyone who knows more, nothing is "
            "promised."
        )
    said += [
        f"Nothing is promised against {belief.against} about statements other than those named, such as that somebody "
        f"{'has' if belief.predicates == 'negations' else 'does not have'} a certain value."
        for demand in what.demands
        if (belief := demand.belief) is not None
        and not about_everything(belief, len(what.values[str(demand.sensitive)]))
    ]
    said += [
        f"Against {belief.against} nothing is promised to others than {demand.people.text}."
        for number, demand in enumerate(what.demands)
        if (belief := demand.belief) is not None and demand.people is not None and not _has_own_prior(release, number)
    ]
    if what.dropping:
        said.append(
            f"Records without a value of {', '.join(what.dropping)} were left out beforehand. Of the people in them "
            "the promise says only that no record of theirs is here."
        )
    if len(what.labels) > 1:
        said.append(
            "Who wants to know one sensitive column does not know the other ones, but for those that a demand names."
            if any(demand.knowing for demand in what.demands)
            else "Who wants to know one sensitive column does not know the other ones."
        )
    asked = {name for demand in what.demands for name in demand.columns}
    unasked = [name for name in what.labels if name not in asked]
    if unasked:
        said.append(f"Nothing is promised about what can be learned of {', '.join(unasked)}.")
    said.append(
        "How coarse the table is and what was left out was chosen by looking at the data. Whoever draws conclusions "
        "from that choice (a minimality attack) may learn more than is promised; the notion does not cover it."
    )
    if release.suppression:
        said.append(
            "Groups that could not be shown were left out, each as a whole. Of the people in them the promise says "
            "only that no record of theirs is here; that their group is missing may itself tell something."
        )
    if release.recoding == "local":
        said.append(
            "Recoding is local: each record is only as coarse as those around it made necessary. That a value is shown "
            "in a wide range tells that few were near it, so extreme values are not protected."
        )
    return [
        *said,
        "Together with any other release about the same people nothing is promised: belief ratios do not add up.",
        "Domains, hierarchies, adversaries and limits were declared, not read off this table.",
        (
            "This is not differential privacy: the table shows true records, and who knows all of a group but one "
            "learns that one."
        ),
    ]
