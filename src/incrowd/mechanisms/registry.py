"""Every mechanism there is. Adding one is a folder, and a line here."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from pydantic import TypeAdapter

from incrowd.core.errors import InputError
from incrowd.mechanisms.base import AnyMechanism
from incrowd.mechanisms.generalization import GeneralizationMechanism
from incrowd.mechanisms.pram import PramMechanism
from incrowd.mechanisms.sample import SampleMechanism
from incrowd.mechanisms.sampled_crowd import SampledCrowdMechanism

MECHANISMS: dict[str, AnyMechanism] = {
    "sampled_crowd": SampledCrowdMechanism(),
    "generalization": GeneralizationMechanism(),
    "sample": SampleMechanism(),
    "pram": PramMechanism(),
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
    members: Any = reduce(or_, (mechanism.certificate for mechanism in MECHANISMS.values()))
    schema = TypeAdapter(members).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
