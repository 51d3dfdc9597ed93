"""Every mechanism there is. Adding one is a folder, and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.core.errors import InputError, PolicyError
from incrowd.mechanisms.base import AnyMechanism
from incrowd.mechanisms.generalization import GeneralizationMechanism
from incrowd.mechanisms.pram import PramMechanism
from incrowd.mechanisms.sample import SampleMechanism
from incrowd.mechanisms.sampled_crowd import SampledCrowdMechanism
from incrowd.mechanisms.views import ViewsMechanism

if TYPE_CHECKING:
    from incrowd.policy import Policy

MECHANISMS: dict[str, AnyMechanism] = {
    "sampled_crowd": SampledCrowdMechanism(),
    "generalization": GeneralizationMechanism(),
    "sample": SampleMechanism(),
    "pram": PramMechanism(),
    "views": ViewsMechanism(),
}


def mechanism_named(name: str) -> AnyMechanism:
    """The mechanism of a release that was read from somewhere.

    Raises:
        InputError: there is none of that name.
    """
    if name not in MECHANISMS:
        raise InputError("It was made by a mechanism that this version does not know.", code="release-unreadable")
    return MECHANISMS[name]


def require_countable(policy: Policy) -> None:
    """Refuse people with several rows where only those with one are promised anything.

    Raises:
        PolicyError: the policy lets several rows of a person count, and its mechanism promises nothing for such.
    """
    if policy.release is None or policy.rows_per_person == 1:
        return
    if not mechanism_named(policy.release.mechanism).several_rows:
        raise PolicyError(
            f"The mechanism '{policy.release.mechanism}' promises something to people with one row each, and up to "
            f"{policy.rows_per_person} rows of a person are to count.",
            code="policy-invalid",
            remedy="Let one row of each person count (people: at_most: 1).",
        )


def certificate_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a certificate, whichever mechanism made the release."""
    definitions: dict[str, Any] = {}
    for mechanism in MECHANISMS.values():
        one = mechanism.certificate.model_json_schema()
        definitions |= {**one.pop("$defs"), one["title"]: one}
    members = [{"$ref": f"#/$defs/{name}"} for name in definitions if name.endswith("Certificate")]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions, "anyOf": members}
