"""Every mechanism there is. Adding one is a folder, and a line here."""

from __future__ import annotations

from typing import Any

from incrowd.core.errors import InputError
from incrowd.mechanisms.base import AnyMechanism
from incrowd.mechanisms.generalization import GeneralizationMechanism
from incrowd.mechanisms.pram import PramMechanism
from incrowd.mechanisms.sample import SampleMechanism
from incrowd.mechanisms.sampled_crowd import SampledCrowdMechanism
from incrowd.mechanisms.views import ViewsMechanism

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


def certificate_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a certificate, whichever mechanism made the release."""
    definitions: dict[str, Any] = {}
    for mechanism in MECHANISMS.values():
        one = mechanism.certificate.model_json_schema()
        definitions |= {**one.pop("$defs"), one["title"]: one}
    members = [{"$ref": f"#/$defs/{name}"} for name in definitions if name.endswith("Certificate")]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions, "anyOf": members}
