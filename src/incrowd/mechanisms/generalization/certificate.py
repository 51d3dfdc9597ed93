"""What the certificate of a generalized table says."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from incrowd.mechanisms.certificate import (
    Certificate,
    Many,
    Number,
    Part,
    StatedMechanism,
    StatedPromise,
    Statement,
    unless_said,
)


class Withstood(Part):
    """An adversary, and how far the table withstands her."""

    name: str = Field(description="Whom it is to withstand.")
    sensitive: str = Field(description="The column she wants to know.")
    belief_ratio: float = Field(description="The belief ratio that is promised.")
    belief_ratio_reached: float = Field(description="The smallest that this table has, rounded up.")
    p_in: float = Field(description="Her belief in the worst case, with the person in the table …")
    p_out: float = Field(description="… and with the person left out.")


class GeneralizationStatedPromise(StatedPromise):
    """What a generalized table promises."""

    adversaries: Many[Withstood] = Field(description="Whom it withstands.")
    requirements: Many[str] = Field(description="What every group has besides.")
    together: None = Field(default=None, description="Nothing: there is never more than one release.")


class NoneOf(Part):
    """That a value is none of these."""

    values: Many[str] = Field(validation_alias="not", serialization_alias="not", description="The values.")


class StatedAdversary(Part):
    """What an adversary is taken to believe, number by number."""

    name: str = Field(description="Whom it is to withstand.")
    kind: Literal["I", "II", "III", "IV"] = Field(
        validation_alias="class", serialization_alias="class", description="I, II or III."
    )
    sensitive: str = Field(description="The column she wants to know.")
    weights: dict[str, Number] | None = Field(
        description="Her prior's parameters or her shares, by value; nothing for class II."
    )
    stubbornness: Number | None = Field(description="How firmly she believes; nothing for class III.")
    or_less_stubborn: bool = Field(description="Whether those who believe less firmly are covered too.")
    knows: int = Field(description="How many records she knows.")
    predicates: str | dict[str, Many[str] | NoneOf] = Field(description="What she must not learn.")
    seen: dict[str, int] | None = Field(
        description="If she has seen an earlier table: how many people of each value were in it."
    )


class GeneralizationStatedMechanism(StatedMechanism):
    """How a generalized table was made."""

    name: Literal["generalization"] = Field(default="generalization", description="The mechanism.")
    recoding: Literal["full_domain", "local"] = Field(description="`full_domain` or `local`.")
    suppression: float = Field(
        description="The largest share of records that might be left out. How many were is not said."
    )
    levels_chosen: Many[str] = Field(description="The columns whose levels were chosen by looking at the table.")
    adversaries: Many[StatedAdversary] = Field(description="Whom it is to withstand.")
    people: Literal["counted"] | None = unless_said(
        "`counted` if a person may have several rows and `people.json` says how many people each group has. Else left "
        "out: rows are counted."
    )
    trees: dict[str, Many[Many[int]]] = Field(
        description="For t-closeness with hierarchical distances: the levels of the sensitive column's hierarchy."
    )


GeneralizationCertificate = Certificate[GeneralizationStatedPromise, GeneralizationStatedMechanism]
GeneralizationStatement = Statement[GeneralizationStatedPromise, GeneralizationStatedMechanism]
