"""What the certificate of a set of views says."""

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
)


class ViewsTogether(Together):
    """What several sets of views promise together."""

    epsilon: float = Field(description="The sum of their ε.")
    delta: float = Field(description="The sum of their δ.")


class ViewsStatedPromise(StatedPromise):
    """What a set of views promises."""

    epsilon: float = Field(description="ε of all views and choices together.")
    delta: float = Field(description="δ as promised.")
    together: ViewsTogether | None = Field(default=None, description=StatedPromise.model_fields["together"].description)


class StatedStep(Part):
    """How views were drawn."""

    kind: Literal["crowd", "gaussian", "laplace"] = Field(
        description="Crowds of sampled people, or counts of all people with discrete Gaussian or Laplace noise."
    )
    k: int | None = Field(default=None, description="The least crowd that is shown; nothing for noise.")
    beta: float | None = Field(
        default=None, description="The probability with which each record was sampled; nothing for noise."
    )
    variance: int | None = Field(
        default=None, description="σ² of the discrete Gaussian: e^(−x²/2σ²); nothing otherwise."
    )
    decay: float | None = Field(default=None, description="a of the discrete Laplace: e^(−a·|x|); nothing otherwise.")


class StatedView(Part):
    """One of the views."""

    columns: Many[str] = Field(description="Its columns.")
    levels: Many[int] = Field(description="The level at which each of them is shown.")
    file: str = Field(description="Its file.")


class StatedLevel(Part):
    """A level at which some view shows a column, if that is coarser than the synthetic table."""

    column: str = Field(description="The column.")
    level: int = Field(description="The level.")
    labels: Many[str | None] = Field(description="All that the view could show.")
    groups: Many[int] = Field(description="For each label of the column, the place of its group in `labels`.")


class ViewsStatedMechanism(StatedMechanism):
    """How a set of views was made."""

    name: Literal["views"] = Field(default="views", description="The mechanism.")
    singles: int = Field(ge=0, description="How many of the views are one-way tables; they come first.")
    single: StatedStep = Field(description="How each one-way table was drawn.")
    views: Many[StatedView] = Field(description="All views, in the order in which they were drawn.")
    view: StatedStep = Field(description="How each of the other views was drawn.")
    choices: int = Field(ge=0, description="How many private choices were made.")
    exponent: float = Field(ge=0, description="The ε of each of these choices.")
    exact_delta: float = Field(description="The δ that all steps have together at ε: at most the one promised.")
    coarser: Many[StatedLevel] = Field(description="Levels at which views show columns coarser than they are.")
    synthetic: str | None = Field(
        description="What the synthetic table is, whose rows are nobody's records; nothing if none was made."
    )


class SampledViewsMechanism(ViewsStatedMechanism):
    """How a set of views of a sample was made."""

    beta: float = Field(description="The probability with which each person came into the table that was counted.")
    already_sampled: Literal[True] = Field(description="That the table was taken to be a sample itself.")


AnyViewsMechanism = SampledViewsMechanism | ViewsStatedMechanism
ViewsCertificate = Certificate[ViewsStatedPromise, AnyViewsMechanism]
ViewsStatement = Statement[ViewsStatedPromise, AnyViewsMechanism]
