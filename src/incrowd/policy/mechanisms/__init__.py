"""How a table is published: one module for each mechanism, and the section `release`, which is one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from incrowd.policy.fields import Section, refuse
from incrowd.policy.mechanisms.generalization import Generalization
from incrowd.policy.mechanisms.pram import Pram
from incrowd.policy.mechanisms.sample import Sample
from incrowd.policy.mechanisms.sampled_crowd import SampledCrowd
from incrowd.policy.reading import closest, several

__all__ = ["MECHANISMS", "Generalization", "Pram", "Release", "Sample", "SampledCrowd"]

MECHANISMS: dict[str, type[Section]] = {
    "sampled_crowd": SampledCrowd,
    "generalization": Generalization,
    "sample": Sample,
    "pram": Pram,
}


def _known(raw: Any) -> Any:
    """Refuse a mechanism that does not exist before anything is said about its keys."""
    if isinstance(raw, Mapping):
        name = raw.get("mechanism")
        if name is None:
            refuse([((), "the key 'mechanism' is missing")])
        if not isinstance(name, str) or name not in MECHANISMS:
            guess = closest(str(name), MECHANISMS)
            hint = f"; did you mean '{guess}'?" if guess else ""
            refuse([(("mechanism",), f"must be {several(MECHANISMS, ' or ')}{hint}")])
        if "recoding" in raw and name != "generalization":
            # Where a local recoding cuts depends on single records: no promise of these mechanisms would survive it.
            refuse([(("recoding",), f"'{name}' shows every record of a column at one level; leave it out")])
    return raw


def _mark(raw: Any) -> str:
    name = raw.get("mechanism") if isinstance(raw, Mapping) else getattr(raw, "mechanism", None)
    known = isinstance(name, str) and name in MECHANISMS
    return f"@{name if known else 'sampled_crowd'}"


Release = Annotated[
    Annotated[SampledCrowd, Tag("@sampled_crowd")]
    | Annotated[Generalization, Tag("@generalization")]
    | Annotated[Sample, Tag("@sample")]
    | Annotated[Pram, Tag("@pram")],
    Discriminator(_mark),
    BeforeValidator(_known),
]
