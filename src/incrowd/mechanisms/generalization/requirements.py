"""What every group of a table must have, as a policy says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from incrowd.policy.fields import Finding, Members, Section, Text, by_keys, listed, refuse
from incrowd.policy.texts import Place

if TYPE_CHECKING:
    from incrowd.theory.requirements import Requirement

Tree = Sequence[Sequence[int]]
"""The levels of a hierarchy, each as the group of every value."""

FiniteNumber = Annotated[float, Field(allow_inf_nan=False)]
About = Annotated[
    Text | tuple[Text, ...] | None,
    Field(
        default=None,
        description="The sensitive column it is about, if there is more than one; or several, to look at together.",
    ),
]
Knowing = Annotated[
    tuple[Text, ...],
    BeforeValidator(listed),
    Field(default=(), description="Other sensitive columns that are taken to be known: groups are split by them."),
]


def _sets(raw: Any) -> Any:
    """One set may be written without the outer brackets."""
    return [raw] if isinstance(raw, list | tuple) and raw and not isinstance(raw[0], list | tuple) else raw


class GroupSize(Section):
    """k-anonymity."""

    k: int = Field(ge=1, description="The least number of records in a group.")
    sets: Annotated[tuple[tuple[Text, ...], ...], BeforeValidator(_sets)] = Field(
        default=(),
        alias="for",
        description="Sets of columns, each of which makes groups by itself; all columns together if not given.",
    )

    def requirement(self, rows: int) -> Requirement:
        """What it asks of a group, where one person has so many rows at most."""
        from incrowd.theory.requirements import KAnonymity

        return KAnonymity.of_people(self.k, rows)


class Diversity(Section):
    """ℓ-diversity by counting values, or by their entropy."""

    l: Annotated[FiniteNumber, Field(ge=1)] = Field(description="The least number of different values in a group.")  # noqa: E741
    kind: Literal["distinct", "entropy"] = Field(
        default="distinct", description="Values are counted, or weighed by the entropy."
    )
    sensitive: About
    knowing: Knowing

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == "distinct" and self.l != int(self.l):
            refuse([(("l",), "must be a whole number")])
        return self

    def requirement(self, values: Sequence[str], tree: Callable[[], Tree]) -> Requirement:  # noqa: ARG002
        """What it asks of a group."""
        from incrowd.theory.requirements import DistinctDiversity, EntropyDiversity

        return DistinctDiversity(int(self.l)) if self.kind == "distinct" else EntropyDiversity(self.l)


class RecursiveDiversitySpec(Section):
    """Recursive (c, ℓ)-diversity."""

    c: Annotated[FiniteNumber, Field(gt=0)] = Field(
        description="The most frequent value of a group has fewer records than c times those from the l-th on."
    )
    l: int = Field(ge=2, description="From which value on, the most frequent one being the first.")  # noqa: E741
    sensitive: About
    knowing: Knowing

    def requirement(self, values: Sequence[str], tree: Callable[[], Tree]) -> Requirement:  # noqa: ARG002
        from incrowd.theory.requirements import RecursiveDiversity

        return RecursiveDiversity(self.c, self.l)


class Share(Section):
    """A limit to the share of a value."""

    alpha: Annotated[FiniteNumber, Field(gt=0, le=1)] = Field(
        description="The largest share that a value has of a group."
    )
    values: Annotated[tuple[str, ...], BeforeValidator(listed)] | None = Field(
        default=None, description="The values that the limit is for; all of them if not given."
    )
    sensitive: About
    knowing: Knowing

    def requirement(self, values: Sequence[str], tree: Callable[[], Tree]) -> Requirement:  # noqa: ARG002
        from incrowd.theory.requirements import LargestShare

        return LargestShare(self.alpha, None if self.values is None else tuple(map(values.index, self.values)))


class Closeness(Section):
    """t-closeness."""

    t: Annotated[FiniteNumber, Field(ge=0, le=1)] = Field(description="How far a group may be from the whole table.")
    distance: Literal["equal", "ordered", "hierarchical"] = Field(
        default="equal", description="Values are equally far apart, in the order of the domain, or as in the hierarchy."
    )
    sensitive: About
    knowing: Knowing

    def requirement(self, values: Sequence[str], tree: Callable[[], Tree]) -> Requirement:  # noqa: ARG002
        from incrowd.theory.requirements import TCloseness

        if self.distance != "hierarchical":
            return TCloseness(self.t, self.distance)
        return TCloseness(self.t, tuple(tuple(level) for level in tree()))


class Likeness(Section):
    """β-likeness."""

    beta: Annotated[FiniteNumber, Field(ge=0)] = Field(
        description="By how many times its share of the table a value's share of a group may be larger than that."
    )
    enhanced: bool = Field(
        default=False, description="And, for frequent values, by the logarithm of the share at most."
    )
    sensitive: About
    knowing: Knowing

    def requirement(self, values: Sequence[str], tree: Callable[[], Tree]) -> Requirement:  # noqa: ARG002
        from incrowd.theory.requirements import BetaLikeness

        return BetaLikeness(self.beta, self.enhanced)


class DisclosureSpec(Section):
    """δ-disclosure privacy."""

    delta: Annotated[FiniteNumber, Field(gt=0)] = Field(
        description="What the logarithm of a share in a group by the share in the table stays below."
    )
    sensitive: About
    knowing: Knowing

    def requirement(self, values: Sequence[str], tree: Callable[[], Tree]) -> Requirement:  # noqa: ARG002
        from incrowd.theory.requirements import DeltaDisclosure

        return DeltaDisclosure(self.delta)


ValueRequirement = Diversity | RecursiveDiversitySpec | Share | Closeness | Likeness | DisclosureSpec
"""Those about the values of a sensitive column."""

REQUIREMENTS: Members = {
    "@k": (GroupSize, {"k"}),
    "@c": (RecursiveDiversitySpec, {"c"}),
    "@l": (Diversity, {"l", "kind"}),
    "@alpha": (Share, {"alpha", "values"}),
    "@t": (Closeness, {"t", "distance"}),
    "@beta": (Likeness, {"beta", "enhanced"}),
    "@delta": (DisclosureSpec, {"delta"}),
}

RequirementSpec = Annotated[
    Annotated[GroupSize, Tag("@k")]
    | Annotated[RecursiveDiversitySpec, Tag("@c")]
    | Annotated[Diversity, Tag("@l")]
    | Annotated[Share, Tag("@alpha")]
    | Annotated[Closeness, Tag("@t")]
    | Annotated[Likeness, Tag("@beta")]
    | Annotated[DisclosureSpec, Tag("@delta")],
    Discriminator(
        by_keys(REQUIREMENTS),
        custom_error_type="requirement",
        custom_error_message="must have one of the keys 'k', 'l', 'c', 'alpha', 't', 'beta' and 'delta'",
    ),
]


def unknown(place: Place, values: Sequence[str], labels: Sequence[str]) -> Iterator[Finding]:
    """Values that a column does not have."""
    yield from (
        ((*place, number), "is not a value of the column") for number, value in enumerate(values) if value not in labels
    )
