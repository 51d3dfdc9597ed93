"""What the certificate of a plain sample says."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from incrowd.mechanisms.certificate import Certificate, StatedMechanism, StatedPromise, Statement

Found = Literal["epsilon", "delta", "rate"]


class SampleStatedPromise(StatedPromise):
    """What a plain sample promises."""

    epsilon: float = Field(description="ε: likelihoods change by a factor 1 + ε at most.")
    delta: float = Field(description="δ: the probability of a sample of which that is not true.")
    rows_unknown: int = Field(description="c, how many rows may change together.")
    found_by_looking_at_this_table: Found | None = Field(
        description="Which of ε, δ and the rate was found; nothing if all were planned."
    )
    together: None = Field(default=None, description="Nothing: there is never more than one release.")


class SampleStatedMechanism(StatedMechanism):
    """How a plain sample was made."""

    name: Literal["sample"] = Field(default="sample", description="The mechanism.")
    rate: float = Field(
        description="The probability with which each record was sampled. At most three digits if it was found."
    )
    rounded: dict[str, int] = Field(
        description="Columns that were rounded at random, each with what its numbers are multiples of."
    )
    epoch: int | None = Field(description="The number of the epoch of a stream, or nothing.")


SampleCertificate = Certificate[SampleStatedPromise, SampleStatedMechanism]
SampleStatement = Statement[SampleStatedPromise, SampleStatedMechanism]
