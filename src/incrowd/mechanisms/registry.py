"""Every mechanism there is, loaded."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from incrowd.core.errors import InputError, InternalError, PolicyError
from incrowd.mechanisms import NAMES
from incrowd.mechanisms.base import AnyMechanism, Mechanism

if TYPE_CHECKING:
    from incrowd.policy import Policy


def _loaded(name: str) -> AnyMechanism:
    mechanism = importlib.import_module(f"incrowd.mechanisms.{name}.mechanism").MECHANISM
    if not isinstance(mechanism, Mechanism):
        raise InternalError(f"{name} is not a mechanism")
    return mechanism


MECHANISMS: dict[str, AnyMechanism] = {name: _loaded(name) for name in NAMES}


def mechanism_named(name: str) -> AnyMechanism:
    """The mechanism of a release that was read from somewhere.

    Raises:
        InputError: there is none of that name.
    """
    if name not in MECHANISMS:
        raise InputError("It was made by a mechanism that this version does not know.", code="release-unreadable")
    return MECHANISMS[name]


def require_countable(policy: Policy) -> None:
    """Refuse what a mechanism cannot count: people with several rows where only those with one are promised anything,
    and survey weights where crowds are published.

    Raises:
        PolicyError: the policy lets several rows of a person count, and its mechanism promises nothing for such; or it
            publishes a survey weight with crowds.
    """
    from incrowd.sources.column_names import is_weight, words_of

    if policy.release is None:
        return
    mechanism = mechanism_named(policy.release.mechanism)
    weights = [name for name in policy.published if is_weight(words_of(name))]
    if weights and not mechanism.weights:
        raise PolicyError(
            f"{weights[0]!r} seems to be a survey weight, which the mechanism '{policy.release.mechanism}' does not "
            "publish: it has nearly as many values as people, so no crowd shares one; it tells how its person was "
            "sampled; and what is estimated from crowds is not weighted by it.",
            code="policy-invalid",
            remedy="Drop the column (role: drop). If it is something else, give it another name.",
        )
    if policy.rows_per_person > 1 and not mechanism.several_rows:
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
