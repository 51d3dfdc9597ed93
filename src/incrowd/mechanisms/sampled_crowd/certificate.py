"""What the certificate of a sampled crowd says."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from incrowd.mechanisms.certificate import (
    Certificate,
    Many,
    Part,
    StatedMechanism,
    StatedPromise,
    Statement,
    Together,
    unless_said,
)


class CrowdTogether(Together):
    """What several sampled crowds promise together."""

    epsilon: float = Field(description="The sum of their ε.")
    delta: float = Field(description="The sum of their δ.")


class CrowdStatedPromise(StatedPromise):
    """What a sampled crowd promises."""

    epsilon: float = Field(description="ε, what choices and the one-way tables cost included.")
    delta: float = Field(description="δ as promised.")
    together: CrowdTogether | None = Field(default=None, description=StatedPromise.model_fields["together"].description)


class CrowdStatedTree(Part):
    """How a tree of boxes came about."""

    rho: float = Field(
        description="What the choice cost, in zero-concentrated differential privacy; 0 for a fixed one."
    )
    one_way_variance: int | None = Field(description="The variance of the noise in the one-way tables.")
    path_budget: int | None = Field(description="The most that a path of the tree may have cost, in units of 2**-64.")
    threshold: int = Field(description="How many people a box should hold at least.")
    splits: str = Field(description="Into the children of a hierarchy, or in two.")
    score: str = Field(description="What a split was worth.")
    cuts: int | None = unless_said(
        "Of a mapping with one set of labels per column: how many cuts were chosen and paid for. Left out for others."
    )
    noise: Literal["by budget"] | None = unless_said(
        "How wide the noise of a box's size is: as a path's budget allows. Left out for a fixed mapping, and in "
        "releases of 0.3 and before, where it was a quarter of the threshold at least."
    )


class CrowdStatedTotals(Part):
    """How noisy one-way tables came about."""

    epsilon: float = Field(description="The part of ε that was spent on them.")
    decay: float = Field(description="a of the discrete Laplace noise in each count: e^(−a·|x|).")


class CrowdStatedChoice(Part):
    """What the private choice of levels looked for."""

    minimise: str = Field(description="What it kept low.")
    tables_epsilon: float = Field(
        description="The part of selection_epsilon that paid for one-way tables, from which the weights come; 0 if "
        "they come from the policy, or there are none."
    )
    tables_scale: int | None = unless_said(
        "The scale t of the discrete Laplace noise in these tables, e^(−|x|/t); they are in `values.json`. Left out if "
        "there are none, and in releases of 0.3 and before, which did not publish them."
    )
    weights: dict[str, float] | None = Field(
        description="What each column counted, in parts of 1; none if columns counted together."
    )


class CrowdStatedMechanism(StatedMechanism):
    """How a sampled crowd was made."""

    name: Literal["sampled_crowd"] = Field(default="sampled_crowd", description="The mechanism.")
    k: int = Field(description="The least crowd that is shown.")
    beta: float = Field(description="The probability with which each record was sampled.")
    selection_epsilon: float = Field(description="The part of ε that was spent on choosing levels.")
    policy_epsilon: float | None = unless_said(
        "The part of ε that a private choice of the policy cost before; left out if there was none."
    )
    exact_delta: float = Field(description="The δ that k, β and the rest of ε really have: at most the one promised.")
    already_sampled: bool = Field(
        description="Whether the table was taken to be a sample itself, so that nothing was sampled."
    )
    levels_chosen: Many[str] = Field(description="The columns whose levels were chosen privately.")
    choice: CrowdStatedChoice | None = unless_said("If levels were chosen, what the choice looked for. Else left out.")
    tree: CrowdStatedTree | None = unless_said(
        "If the mapping is a tree of boxes, how it came about; it is in `mapping.json`. Else left out."
    )

    totals: CrowdStatedTotals | None = unless_said(
        "How the noisy one-way tables in `one-way.json` came about; left out if there are none."
    )


CrowdCertificate = Certificate[CrowdStatedPromise, CrowdStatedMechanism]
CrowdStatement = Statement[CrowdStatedPromise, CrowdStatedMechanism]
