"""The section `release`: how a table is published, in the words of one of the registered mechanisms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    TypeAdapter,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from incrowd.policy.attributes import Attribute
from incrowd.policy.fields import Finding, NamedFile, Output, Section, refuse
from incrowd.policy.texts import Place, closest, several


class ReleaseSection(Section):
    """What every mechanism's section has."""

    # Where a local recoding cuts depends on single records: no promise of other mechanisms would survive it.
    REFUSED: ClassVar[Mapping[str, str]] = {
        "recoding": "this mechanism shows every record of a column at one level; leave it out"
    }
    PARTS: ClassVar[Mapping[str, type[BaseModel]]] = {}
    """The models of what stands deeper in the section, by the keys or marks above them."""

    SILENT: ClassVar[Mapping[str, Any]] = {}
    """Keys that are left out of the canonical form if they have these values: policies that are silent about them
    have the digest that they had before the keys existed."""
    CHOOSING: ClassVar[tuple[str, ...]] = ()
    """The keys that speak of a private choice of levels; where all levels are fixed, they have no meaning."""

    mechanism: str
    output: Output = "parquet"

    @abstractmethod
    def unfit(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        """What does not go together, within the release or with the attributes that it publishes."""

    def files(self) -> Mapping[Place, NamedFile]:
        """The files that the section names, by their places in it."""
        return {}


def section_model(name: str) -> type[ReleaseSection]:
    """The model of a mechanism's section."""
    return _sections()[name]


def _sections() -> dict[str, type[ReleaseSection]]:
    # The registry is above this room. It is looked up here and nowhere else, so that adding a mechanism is one line.
    from incrowd.mechanisms.registry import MECHANISMS

    return {name: mechanism.section for name, mechanism in MECHANISMS.items()}


def _known(raw: Any) -> Any:
    """Refuse a mechanism that does not exist before anything is said about its keys."""
    if isinstance(raw, Mapping):
        name, known = raw.get("mechanism"), _sections()
        if name is None:
            refuse([((), "the key 'mechanism' is missing")])
        section = known.get(name) if isinstance(name, str) else None
        if section is None:
            guess = closest(str(name), known)
            hint = f"; did you mean '{guess}'?" if guess else ""
            refuse([(("mechanism",), f"must be {several(known, ' or ')}{hint}")])
    return raw


def _mark(raw: Any) -> str:
    name = raw.get("mechanism") if isinstance(raw, Mapping) else getattr(raw, "mechanism", None)
    known = _sections()
    return f"@{name if isinstance(name, str) and name in known else next(iter(known))}"


def _adapter() -> TypeAdapter[ReleaseSection]:
    return _adapter_for(tuple(_sections().items()))


@lru_cache(maxsize=4)
def _adapter_for(sections: tuple[tuple[str, type[ReleaseSection]], ...]) -> TypeAdapter[ReleaseSection]:
    members = tuple(Annotated[model, Tag(f"@{name}")] for name, model in sections)
    union: Any = Annotated[Union[members], Discriminator(_mark), BeforeValidator(_known)]  # noqa: UP007
    return TypeAdapter(union)


class _AnyMechanism:
    """Validates a section by the model that its mechanism has in the registry."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(lambda raw: _adapter().validate_python(raw))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(_adapter().core_schema)


Release = Annotated[ReleaseSection, _AnyMechanism]
