"""`mechanism: sample`: a plain random sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from incrowd.policy.attributes import Attribute
from incrowd.policy.domains import Span
from incrowd.policy.fields import Finding, Text
from incrowd.policy.release import ReleaseSection
from incrowd.policy.values import FrozenMap

_CROWD = "with a threshold and a secret size a sample is a crowd; use 'mechanism: sampled_crowd'"


class Sample(ReleaseSection):
    """Publish a plain random sample, at a rate at which it is private for this very table."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        **ReleaseSection.REFUSED,
        "noise": "with noise a sample has another law, for which no rate is proved; use 'mechanism: pram' with 'beta', "
        "or 'mechanism: views' with 'by: noise'",
        **dict.fromkeys(("threshold", "k"), _CROWD),
    }

    mechanism: Literal["sample"] = Field(description="The method.")
    epsilon: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Changing rows changes the likelihood of the sample by 1 + epsilon at most; found if not given.",
    )
    delta: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="The probability of a sample of which that is not true; found if not given.",
    )
    rate: float | None = Field(
        default=None, gt=0, lt=1, description="The share of records sampled; the largest that is safe if not given."
    )
    rows_unknown: int = Field(default=1, ge=1, description="How many rows may be changed at once.")
    rounding: Annotated[Mapping[Text, Annotated[int, Field(ge=2)]], AfterValidator(FrozenMap)] = Field(
        default_factory=lambda: FrozenMap({}),
        alias="round",
        description="Whole numbers that are rounded at random to a multiple of this, before sampling.",
    )
    epoch: int | None = Field(
        default=None, ge=1, description="The number of the epoch, if the table is what arrived of a stream in one."
    )

    def unfit(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        findings: list[Finding] = [
            (("attributes", name), "has a hierarchy; give its 'level'")
            for name, attribute in attributes.items()
            if attribute.hierarchy is not None and attribute.level is None
        ]
        if sum(given is None for given in (self.epsilon, self.delta, self.rate)) > 1:
            findings.append((("release",), "give two of 'epsilon', 'delta' and 'rate'; the third is found"))
        if self.rounding and self.rate is not None:
            findings.append(
                (("release", "rate"), "cannot be planned with 'round'; give 'epsilon' and 'delta', and it is found")
            )
        for name in self.rounding:
            here = ("release", "round", name)
            if name not in attributes:
                findings.append((here, "is not among the attributes that are published"))
            elif not _whole_numbers(attributes[name]):
                findings.append((here, "must be of type 'integer' with a domain 'from' and 'to', without 'step'"))
            elif attributes[name].level:
                findings.append((here, "is rounded as it is; its 'level' must be 0"))
        return findings


def _whole_numbers(attribute: Attribute) -> bool:
    spec = attribute.domain
    return attribute.kind == "integer" and isinstance(spec, Span) and spec.step is None
