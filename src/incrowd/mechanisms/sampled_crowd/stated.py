"""What the certificate of a sampled crowd says."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from incrowd.mechanisms.certificate import Certificate, Many, StatedMechanism, StatedPromise, Statement, Together


class CrowdTogether(Together):
    """What several sampled crowds promise together."""

    epsilon: float = Field(description="The sum of their ε.")
    delta: float = Field(description="The sum of their δ.")


class CrowdStatedPromise(StatedPromise):
    """What a sampled crowd promises."""

    epsilon: float = Field(description="ε, what the choice of levels costs included.")
    delta: float = Field(description="δ as promised.")
    together: CrowdTogether | None = Field(default=None, description=StatedPromise.model_fields["together"].description)


class CrowdStatedMechanism(StatedMechanism):
    """How a sampled crowd was made."""

    name: Literal["sampled_crowd"] = Field(default="sampled_crowd", description="The mechanism.")
    k: int = Field(description="The least crowd that is shown.")
    beta: float = Field(description="The probability with which each record was sampled.")
    selection_epsilon: float = Field(description="The part of ε that was spent on choosing levels.")
    exact_delta: float = Field(description="The δ that k, β and the rest of ε really have: at most the one promised.")
    already_sampled: bool = Field(
        description="Whether the table was taken to be a sample itself, so that nothing was sampled."
    )
    levels_chosen: Many[str] = Field(description="The columns whose levels were chosen privately.")


CrowdCertificate = Certificate[CrowdStatedPromise, CrowdStatedMechanism]
CrowdStatement = Statement[CrowdStatedPromise, CrowdStatedMechanism]
