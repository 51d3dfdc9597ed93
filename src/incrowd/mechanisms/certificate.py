"""The certificate as a model: what every certificate says, each field described where it is defined.

A mechanism adds its promise and its parameters in its own `certificate.py`. The JSON Schema and the page about the
certificate derive from these models. A certificate that was written elsewhere is read strictly: no other fields, no
other types, and it must be written back byte for byte.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    Strict,
    StringConstraints,
    WithJsonSchema,
    model_serializer,
)

from incrowd.core.signing import canonical

FORMAT = "incrowd-certificate/1"

T = TypeVar("T")
Many = Annotated[tuple[T, ...], Strict(False)]
"""A list in JSON, of whatever strict type."""

Number = int | float
"""A number as it was written: 5 stays 5."""


def _day(text: str) -> str:
    if dt.date.fromisoformat(text).isoformat() != text:
        raise ValueError("this is written otherwise")
    return text


Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Version = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{1,6}(\.[0-9]{1,6}){0,4}((a|b|rc|\.post|\.dev)[0-9]{1,6}){0,3}\+?$"),
]
Day = Annotated[str, AfterValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]


def _whole(schema: dict[str, Any]) -> None:
    """Every field is written, also what has a default here, but for those that say they may be left out."""
    fields = schema.get("properties", {})
    schema["required"] = [name for name, field in fields.items() if not field.pop("left_out", False)]
    for field in fields.values():
        field.pop("title", None)
        field.pop("default", None)


_UNLESS_SAID: dict[str, Any] = {"left_out": True}


def unless_said(description: str) -> Any:
    """A field that is left out where there is nothing to say, as in certificates from before there was such a thing."""
    return Field(default=None, description=description, json_schema_extra=_UNLESS_SAID)


class Part(BaseModel):
    """A part of a certificate."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        ser_json_inf_nan="constants",
        json_schema_extra=_whole,
    )

    @model_serializer(mode="wrap")
    def _as_written(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        return {
            name: item
            for name, item in written(self).items()
            if item is not None or name not in fields or fields[name].json_schema_extra != _UNLESS_SAID
        }

    def document(self) -> dict[str, Any]:
        """As it is written."""
        return self.model_dump(mode="json")


class Together(Part):
    """What several releases that were made at once promise to someone who has all of them."""

    copies: int = Field(ge=2, description="How many there are.")
    in_words: str = Field(description="What they promise together.")


class StatedPromise(Part):
    """What is promised."""

    notion: str = Field(description="Which promise it is. Read it first.")
    relation: str = Field(description="Which tables are compared.")
    in_words: str = Field(description="The promise in sentences, made from the numbers and rounded to the safe side.")
    grounds: str = Field(description="The theorems that it rests on.")
    together: Together | None = Field(
        default=None,
        description=(
            "If it is one of several releases made at once: how many, and what they promise together. Else nothing."
        ),
    )
    void: str | None = Field(
        default=None,
        description="Nothing, or why nothing is promised: a rehearsal, or drawn from predictable bits, for tests.",
    )


class StatedMechanism(Part):
    """How the release was made."""

    name: str = Field(description="The mechanism.")
    levels: dict[str, int] = Field(description="The level at which each column is shown.")


class StatedColumn(Part):
    """A column of the table."""

    name: str = Field(description="The columns, in the order of the table.")
    labels: Many[str | None] = Field(
        description="All that a column could show, whether or not it occurs; null is a missing value."
    )


class StatedFile(Part):
    """A file of the release."""

    sha256: Sha256 = Field(description="Its SHA-256.")
    bytes: int = Field(ge=0, description="Its size.")


class StatedSoftware(Part):
    """The versions that made the release."""

    incrowd: Version
    python: Version
    numpy: Version
    opendp: Version | None = unless_said(
        "In releases of 0.3 and before, whose private choices it drew; left out since."
    )
    cryptography: Version
    duckdb: Version
    pyarrow: Version


class Signature(Part):
    """A signature over format and digest."""

    algorithm: str = Field(description="Ed25519.")
    public_key: str = Field(description="The key to check it with: 32 bytes, base64.")
    value: str = Field(description="The signature: 64 bytes, base64.")


PromiseT = TypeVar("PromiseT", bound=StatedPromise)
MechanismT = TypeVar("MechanismT", bound=StatedMechanism)
PromiseT_co = TypeVar("PromiseT_co", bound=StatedPromise, covariant=True)
MechanismT_co = TypeVar("MechanismT_co", bound=StatedMechanism, covariant=True)


class Certificate(Part, Generic[PromiseT_co, MechanismT_co]):
    """What was promised, on what grounds, and for which file."""

    format: Literal["incrowd-certificate/1"] = Field(description="What kind of document it is, and its version.")
    title: str | None = Field(description="What the release is called; the policy's title, or nothing.")
    promise: PromiseT_co = Field(description="What is promised.")
    mechanism: MechanismT_co = Field(description="How the release was made.")
    assumptions: Many[str] = Field(description="Premises that nobody can check from outside, each a sentence.")
    columns: Many[StatedColumn] = Field(description="The columns of the table.")
    policy: dict[str, Any] = Field(description="The policy, complete, with every default spelled out.")
    policy_digest: Sha256 = Field(
        description="SHA-256 of the policy in canonical form. `incrowd ledger show` lists releases by it."
    )
    files: dict[str, StatedFile] = Field(
        description="All files but the certificate itself, each with its `sha256` and its size in `bytes`."
    )
    software: StatedSoftware = Field(
        description="The versions of incrowd, Python and the libraries that count, draw and write."
    )
    randomness: str = Field(description="Where the random bits came from.")
    created: Day = Field(description="The day, in UTC.")
    digest: Sha256 = Field(description="SHA-256 of all other fields in canonical form, the signature apart.")
    signature: Signature | None = unless_said("An Ed25519 signature; left out if there is none.")

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """What the schema calls it: the mechanism's certificate."""
        plain = (params[1], *get_args(params[1]))[-1]  # of several, the plainest comes last
        return f"{plain.__name__.removesuffix('Mechanism').removesuffix('Stated')}Certificate"

    @property
    def statement(self) -> Statement[PromiseT_co, MechanismT_co]:
        """What its mechanism says of the release alone: what several promise together and voidness apart."""
        alone = self.promise.model_copy(update={"together": None, "void": None})
        return Statement(alone, self.mechanism, self.assumptions)

    @property
    def labels(self) -> dict[str, tuple[str | None, ...]]:
        """All that each column could show, by its name."""
        return {column.name: column.labels for column in self.columns}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """The certificate that a document is, to the last byte.

        Raises:
            ValueError: it has other fields or types, or says something in another way.
        """
        found = cls.model_validate(document)
        if canonical(found.document()) != canonical(document):
            raise ValueError("this is not how it is written")
        return found


@dataclass(frozen=True)
class Statement(Generic[PromiseT_co, MechanismT_co]):
    """What a release says of itself. The certificate holds it, and it can be derived again from there.

    Attributes:
        promise: the notion, its numbers and its neighbour relation, the promise in words, and what it rests on.
        mechanism: how the release was made: the mechanism's name, its parameters, the level of each column.
        assumptions: the premises that nobody can check from outside.
    """

    promise: PromiseT_co
    mechanism: MechanismT_co
    assumptions: Sequence[str]

    def is_in(self, certificate: Certificate[StatedPromise, StatedMechanism]) -> bool:
        """Whether a certificate says exactly this, as it is written: Python takes True for 1."""
        return self.to_bytes() == certificate.statement.to_bytes()

    def to_bytes(self) -> bytes:
        """All of it in canonical form."""
        return canonical((self.promise.document(), self.mechanism.document(), list(self.assumptions)))


AnyCertificate = Certificate[StatedPromise, StatedMechanism]
"""A certificate of which only what all have is known."""
