"""`mechanism: sampled_crowd`: sample, recode, and publish only crowds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from incrowd.policy.attributes import Attribute
from incrowd.policy.fields import Finding
from incrowd.policy.release import ReleaseSection


class SampledCrowd(ReleaseSection):
    """Sample, recode, and publish only what at least k sampled records share."""

    mechanism: Literal["sampled_crowd"] = Field(description="The method.")
    epsilon: float = Field(gt=0, allow_inf_nan=False, description="The promise, selection_epsilon included.")
    delta: float = Field(gt=0, lt=1, description="The probability with which the promise may fail.")
    selection_epsilon: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="The part of epsilon that pays for choosing levels not fixed.",
    )
    beta: float | None = Field(
        default=None, gt=0, lt=1, description="The share of records sampled; chosen if not given."
    )
    k: int | None = Field(default=None, ge=1, description="The least crowd that is published; chosen if not given.")
    crowd_of_interest: int | None = Field(
        default=None, ge=1, description="The size of crowd whose survival decides how beta and k are chosen."
    )
    already_sampled: bool = Field(
        default=False, description="The table itself is a random sample, of rate beta, of the people it speaks of."
    )

    def unfit(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        """What does not go together, within the release or with the attributes that it publishes."""
        findings: list[Finding] = []
        here = ("release", "selection_epsilon")
        if self.selection_epsilon >= self.epsilon:
            findings.append((here, "is part of epsilon and must be smaller"))
        if self.already_sampled and self.selection_epsilon:
            # Choosing g on the sample is unsound: the crowds are then no longer an independent sample.
            findings.append((here, "nothing can be promised for a choice made on the sample itself; fix every level"))
        if self.already_sampled and self.beta is None:
            findings.append((("release", "already_sampled"), "say at which rate it was sampled: give 'beta'"))
        if self.selection_epsilon and all(attribute.level is not None for attribute in attributes.values()):
            findings.append((here, "pays for a choice, but every attribute has its 'level' already"))
        if not self.selection_epsilon:
            findings += [
                (("attributes", name), "has a hierarchy; give its 'level', or a 'selection_epsilon' in the release")
                for name, attribute in attributes.items()
                if attribute.hierarchy is not None and attribute.level is None
            ]
        return findings
