"""What the sections of a policy are made of: kinds of fields, and how a section says what is wrong with it."""

from __future__ import annotations

import codecs
import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from incrowd.domain import Value
from incrowd.policy.texts import Place, closest
from incrowd.policy.values import Kind, read_limited

Finding = tuple[Place, str]
Members = Mapping[str, tuple[type["Section"], set[str]]]


class Section(BaseModel):
    """A part of a policy."""

    REFUSED: ClassVar[Mapping[str, str]] = {}
    """Keys that people look for and that are refused on purpose, with what to say of each."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


def refuse(findings: list[Finding]) -> None:
    """End a validation with everything that was found, each with its place below the one being validated."""
    if findings:
        raise PydanticCustomError("policy", "{text}", {"text": findings[0][1], "problems": findings})


def listed(raw: Any) -> Any:
    """One item may be written without its brackets."""
    return [raw] if isinstance(raw, str | int | float | Decimal | dt.date) else raw


def by_keys(members: Members) -> Callable[[Any], str | None]:
    """Which member of a union is meant, by its keys; a misspelt key counts as the one it is closest to."""

    def tag(raw: Any) -> str | None:
        if isinstance(raw, list | tuple):
            return "@values"
        for name, (model, keys) in members.items():
            if isinstance(raw, model) or (isinstance(raw, Mapping) and keys & set(raw)):
                return name
        for key in raw if isinstance(raw, Mapping) else ():
            for name, (_, keys) in members.items():
                if closest(str(key), keys):
                    return name
        return None

    return tag


def read_each(kind: Kind, raw: Any, read: Callable[[Kind, Any], Any]) -> Any:
    """A list with each item made into a value of an attribute's type."""
    if not isinstance(raw, list | tuple):
        return raw
    return [item for _, item in _typed(kind, list(enumerate(raw)), lambda _: read)]


def read_keys(kind: Kind, raw: Any, readers: Mapping[str, Callable[[Kind, Any], Any]]) -> Any:
    """A mapping with what stands under some of its keys made into values of an attribute's type."""
    if not isinstance(raw, Mapping):
        return raw
    return {**raw, **dict(_typed(kind, [(key, raw[key]) for key in readers if key in raw], readers.__getitem__))}


def _typed(kind: Kind, items: list[tuple[Any, Any]], reader: Callable[[Any], Callable[[Kind, Any], Any]]) -> Any:
    done: list[tuple[Any, Any]] = []
    findings: list[Finding] = []
    for key, raw in items:
        try:
            done.append((key, reader(key)(kind, raw)))
        except PydanticCustomError as error:
            findings += [((key, *at), text) for at, text in (error.context or {})["problems"]]
        except ValueError as error:
            findings.append(((key,), "has no value" if raw is None else str(error)))
    refuse(findings)
    return done


def increasing(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numbers, of which there is at least one, in strictly increasing order."""
    if not numbers or any(a >= b for a, b in pairwise(numbers)):
        raise ValueError("must be a list of increasing numbers")
    return numbers


def multiples(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    """Increasing positive numbers, each a multiple of the one before: groups of one size fit into those of the next."""
    if any(number <= 0 for number in numbers):
        raise ValueError("must be above 0")
    for fine, coarse in pairwise(increasing(numbers)):
        if Fraction(coarse) % Fraction(fine):
            raise ValueError(
                f"{coarse} is not a multiple of {fine}, so a group of {coarse} would cut one of {fine} apart"
            )
    return numbers


def _character(text: str) -> str:
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(text) != 1:
        raise ValueError("must be one character")
    return text


def _encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise ValueError("is not a known encoding; try 'utf-8' or 'latin-1'") from None


Text = Annotated[str, Field(min_length=1)]


class NamedFile(Section):
    """A file that belongs to the policy."""

    file: Text


_Format = Literal["parquet", "csv", "arrow", "sav", "dta", "xlsx"]
OUTPUTS: tuple[str, ...] = get_args(_Format)
Output = Annotated[
    _Format,
    Field(description="The format of the release; sav is SPSS, dta Stata, xlsx Excel."),
]
Character = Annotated[str, AfterValidator(_character)]
Encoding = Annotated[str, AfterValidator(_encoding)]
Number = Annotated[Decimal, PlainValidator(read_limited), WithJsonSchema({"type": "number"})]
Sizes = Annotated[tuple[int, ...], AfterValidator(multiples), BeforeValidator(listed)]
Widths = Annotated[tuple[Number, ...], AfterValidator(multiples), BeforeValidator(listed)]

# These arrive typed: the attribute, which knows the type, has seen to it.
Typed = Annotated[Value, PlainValidator(lambda v: v), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Edge = Annotated[Decimal | dt.date, PlainValidator(lambda v: v), WithJsonSchema({"type": ["string", "number"]})]
