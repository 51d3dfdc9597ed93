"""Whom a table must withstand, as a policy says it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    Field,
    PlainValidator,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_serializer,
    model_validator,
)

from incrowd.domain import label_of
from incrowd.mechanisms.generalization.requirements import About, FiniteNumber, Knowing, unknown
from incrowd.policy.fields import Character, Encoding, Finding, NamedFile, Section, Text, listed, read_each, refuse
from incrowd.policy.texts import Place
from incrowd.policy.values import FrozenMap, read_value

MISSING = "(missing)"
"""How the missing value is called in priors, shapes and predicates."""

Family = Literal["values", "negations", "subsets"]
Group = tuple[str, ...] | Mapping[str, tuple[str, ...]] | Mapping[str, float]
"""Values as a policy lists them, all but those under 'not', or the numbers 'from' one 'to' another."""

UNKNOWN = (
    "say what is known of her: 'prior', 'earlier_table', 'shape' or 'stubbornness'. Against someone of whom nothing is "
    "known no generalization promises anything (Machanavajjhala, Gehrke, Götz, Theorem 4)"
)


def _weights(raw: Any) -> Any:
    """A number for each value, the values written as they are published."""
    if not isinstance(raw, Mapping):
        raise ValueError("must give a number for each value")
    findings: list[Finding] = []
    weights: dict[str, float] = {}
    for key, number in raw.items():
        name = label_of(key)
        try:
            weights[name] = float(number)
        except (TypeError, ValueError):
            findings.append(((name,), "must be a number"))
            continue
        if not 0 <= weights[name] < float("inf"):
            findings.append(((name,), "must be a finite number, not below 0"))
    refuse(findings)
    return FrozenMap(weights)


def _shape(raw: Any) -> Any:
    return raw if raw == "uniform" else _weights(raw)


def _predicates(raw: Any) -> Any:
    """A family of statements by its name, or statements by their names."""
    if isinstance(raw, str):
        if raw not in FAMILIES:
            raise ValueError(f"must be {', '.join(map(repr, FAMILIES))} or groups of values by their names")
        return raw
    if not isinstance(raw, Mapping) or not raw:
        raise ValueError(f"must be {', '.join(map(repr, FAMILIES))} or groups of values by their names")
    groups: dict[str, Group] = {}
    for name, values in raw.items():
        negated = isinstance(values, Mapping) and set(values) == {"not"}
        group = listed(values["not"] if negated else values)
        if isinstance(group, Mapping) and group and set(group) <= {"from", "to"}:
            groups[str(name)] = _interval(str(name), group)
            continue
        if not isinstance(group, list | tuple) or not group:
            refuse([((name,), "must be a list of values, 'not' and a list of values, or numbers 'from' and 'to'")])
        labels = tuple(read_each("text", [label_of(value) for value in group], read_value))
        groups[str(name)] = FrozenMap({"not": labels}) if negated else labels
    return FrozenMap(groups)


def _interval(name: str, raw: Mapping[str, Any]) -> Mapping[str, float]:
    """All numbers from one to another, both included; without an end, all from there on."""
    found = {}
    for key, number in raw.items():
        try:
            found[key] = float(number)
        except (TypeError, ValueError):
            refuse([((name, key), "must be a number")])
    if found.get("from", float("-inf")) > found.get("to", float("inf")) or any(map(math.isnan, found.values())):
        refuse([((name,), "must go from a lower number to a higher one")])
    return FrozenMap(found)


def named_values(group: Group, labels: Sequence[str]) -> tuple[str, ...]:
    """The values that a group of a policy has: those listed, or those between two numbers; see `negated` for others."""
    if not isinstance(group, Mapping):
        return tuple(group)
    excluded = group.get("not")
    if isinstance(excluded, tuple):
        return excluded
    low, high = _end(group, "from", float("-inf")), _end(group, "to", float("inf"))
    return tuple(label for label in labels if (number := _number(label)) is not None and low <= number <= high)


def _end(group: Mapping[str, tuple[str, ...]] | Mapping[str, float], key: str, default: float) -> float:
    end = group.get(key, default)
    return end if isinstance(end, float) else default


def negated(group: Group) -> bool:
    """Whether a group of a policy is made of all values but those named."""
    return isinstance(group, Mapping) and "not" in group


def _in_words(group: Group) -> str:
    if not isinstance(group, Mapping):
        return " or ".join(group)
    if negated(group):
        return f"other than {' or '.join(named_values(group, ()))}"
    return " ".join(f"{key} {group[key]:g}" for key in ("from", "to") if key in group)


def _number(label: str) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None


FAMILIES: tuple[str, ...] = get_args(Family)

_NUMBERS = {"type": "object", "additionalProperties": {"type": "number"}}
_VALUES = {"type": "array", "items": {"type": ["string", "number", "boolean"]}}
_BETWEEN = {"type": "object", "properties": {"from": {"type": "number"}, "to": {"type": "number"}}, "minProperties": 1}
_GROUP = {"anyOf": [_VALUES, {"type": "object", "properties": {"not": _VALUES}, "required": ["not"]}, _BETWEEN]}
Weights = Annotated[Mapping[str, float], PlainValidator(_weights), WithJsonSchema(_NUMBERS)]
Shape = Annotated[
    Literal["uniform"] | Mapping[str, float],
    PlainValidator(_shape),
    WithJsonSchema({"anyOf": [{"const": "uniform", "type": "string"}, _NUMBERS]}),
]
PredicateSpec = Annotated[
    Family | Mapping[str, Group],
    PlainValidator(_predicates),
    WithJsonSchema(
        {"anyOf": [{"enum": list(FAMILIES), "type": "string"}, {"type": "object", "additionalProperties": _GROUP}]}
    ),
]


def _texts(raw: Any) -> Any:
    group = listed(raw)
    return [label_of(value) for value in group] if isinstance(group, list | tuple) else group


def _people(raw: Any) -> Any:
    if not isinstance(raw, Mapping) or not raw:
        raise ValueError("must give values of columns: {sex: [F], age: {from: 65}}")
    return _predicates(raw)


PeopleSpec = Annotated[
    Mapping[str, Group],
    PlainValidator(_people),
    WithJsonSchema({"type": "object", "additionalProperties": _GROUP, "minProperties": 1}),
]


class EarlierTable(NamedFile):
    """A public table from which an adversary has learned what is usual."""

    file: Text = Field(description="A CSV or Parquet file, relative to the policy.")
    column: Text = Field(description="Its column with the sensitive values, written as they are published here.")
    count: Text | None = Field(default=None, description="Its column with the number of people behind each row.")
    by: Annotated[tuple[Text, ...], BeforeValidator(listed)] = Field(
        default=(),
        description="Columns, of the same names in both tables, whose values have a prior each: what she has seen of "
        "such people.",
    )
    delimiter: Character = Field(default=",", description="Between the columns of a CSV file.")
    encoding: Encoding = Field(default="utf-8", description="Of a CSV file.")

    @field_validator("file", mode="before")
    @classmethod
    def _digested(cls, raw: Any) -> Any:
        """In a certificate a file stands by its digest."""
        return f"sha256:{raw['sha256']}" if isinstance(raw, Mapping) and set(raw) == {"sha256"} else raw

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A policy with one prior for everyone says nothing of others, so that its digest is what it was."""
        content: dict[str, Any] = handler(self)
        return {key: item for key, item in content.items() if key != "by" or item}


class AdversarySpec(Section):
    """Someone who will read the table, and how much it may tell her."""

    name: Text | None = Field(default=None, description="What she is called in reports.")
    belief_ratio: FiniteNumber = Field(
        ge=1, description="How many times likelier than without a person's record a fact about that person may get."
    )
    prior: Weights | None = Field(
        default=None, description="What she has seen: for each value 1 and the number of people she knows to have it."
    )
    earlier_table: EarlierTable | None = Field(default=None, description="A public table that she has seen.")
    shape: Shape | None = Field(default=None, description="The shares that she believes in, by value; or uniform.")
    stubbornness: Annotated[FiniteNumber, Field(ge=1)] | None = Field(
        default=None, description="The number of people from whom she could have learned what she believes."
    )
    or_less_stubborn: bool = Field(default=False, description="Also those who believe the same, but less firmly.")
    anyone: bool = Field(default=False, description="She may believe anything. No generalization withstands that.")
    knows: int = Field(default=0, ge=0, description="How many people's records she knows already.")
    predicates: PredicateSpec = Field(
        default="values", description="What she must not learn: values, negations, subsets, or groups of values."
    )
    sensitive: About
    knowing: Knowing
    whom: PeopleSpec | None = Field(
        default=None,
        alias="for",
        description="The people whom it is about, by values of columns that are not sensitive; everyone if not given.",
    )
    knows_not: Annotated[tuple[str, ...], BeforeValidator(_texts)] = Field(
        default=(), description="Values that she knows a person does not have."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(list(self._unclear()))
        return self

    def _unclear(self) -> Iterator[Finding]:
        if self.anyone:
            given = [
                key for key in ("prior", "earlier_table", "shape", "stubbornness") if getattr(self, key) is not None
            ]
            if given:
                yield (("anyone",), f"contradicts '{given[0]}': anyone may believe anything")
            return
        sources = [key for key in ("prior", "earlier_table", "shape") if getattr(self, key) is not None]
        if len(sources) > 1:
            yield ((sources[1],), f"give only one of '{sources[0]}' and '{sources[1]}'")
        elif not sources and self.stubbornness is None:
            yield (), UNKNOWN
        elif self.stubbornness is not None and sources and sources != ["shape"]:
            yield (("stubbornness",), f"follows from '{sources[0]}'; leave it out")
        if self.earlier_table is not None and self.earlier_table.by and self.whom is not None:
            yield (("for",), "goes with one prior; with 'by' everyone is looked at, each by the prior of people alike")
        if self.or_less_stubborn and not sources:
            yield (("or_less_stubborn",), "is so anyway if only her stubbornness is known; leave it out")

    def unlike(self, place: Place, labels: Sequence[str]) -> Iterator[Finding]:
        """What she is said to believe or must not learn that does not fit the values of her column."""
        for key in ("prior", "shape"):
            weights = getattr(self, key)
            if isinstance(weights, Mapping):
                yield from _unlike((*place, key), weights, labels, every=key == "prior")
        if self.shape is None and self.stubbornness is not None and self.stubbornness < len(labels):
            yield (*place, "stubbornness"), f"must be at least {len(labels)}, which is 1 for each value"
        for name, group in self.predicates.items() if isinstance(self.predicates, Mapping) else ():
            values = named_values(group, labels)
            here = (*place, "predicates", name)
            yield from unknown(here, values, labels)
            if not values:
                yield here, "is about numbers, and none of the column's values is one of them"
            elif set(labels) <= set(values):
                yield here, "names every value, so everyone knows it anyway"
            elif self.knows_not and not 0 < len(self.left(group, labels)) < len(self.possible(labels)):
                yield here, "is known already by whom knows that it is none of 'knows_not'; leave it out"
        yield from unknown((*place, "knows_not"), self.knows_not, labels)
        if self.knows_not and len(self.possible(labels)) < 2:
            yield (*place, "knows_not"), "must leave two values at least, else there is nothing to learn"
        if self.knows_not and self.earlier_table is not None:
            yield (*place, "knows_not"), "goes with 'prior', 'shape' or 'stubbornness' only"

    def concerned(self, column: str, labels: Sequence[str]) -> list[str]:
        """The values of a column that the people have whom it is about."""
        group = (self.whom or {})[column]
        named = named_values(group, labels)
        return [label for label in labels if (label in named) != negated(group)]

    def concerned_by(self, column: str) -> frozenset[str]:
        """The values of a column that are listed for the people whom it is about."""
        return frozenset(named_values((self.whom or {})[column], ()))

    @property
    def whom_in_words(self) -> str:
        """The people whom it is about."""
        return " and ".join(f"{name} {_in_words(group)}" for name, group in sorted((self.whom or {}).items()))

    def possible(self, labels: Sequence[str]) -> list[str]:
        """The values that she thinks possible."""
        return [label for label in labels if label not in self.knows_not]

    def left(self, group: Group, labels: Sequence[str]) -> list[str]:
        """What a group of values has of those that she thinks possible."""
        named = named_values(group, labels)
        return [label for label in self.possible(labels) if (label in named) != negated(group)]


def _unlike(place: Place, weights: Mapping[str, float], labels: Sequence[str], *, every: bool) -> Iterator[Finding]:
    yield from (((*place, name), "is not a value of the column") for name in weights if name not in labels)
    left_out = [label for label in labels if label not in weights]
    if left_out:
        yield place, f"leaves out {len(left_out)} of the column's {len(labels)} values"
    elif not any(weights.values()) or (every and not all(weights.values())):
        yield place, f"must be above 0 for {'every' if every else 'some'} value"
    elif every and sum(weights.values()) < 1:
        yield place, "must add up to 1 at least; who knows nothing has 1 for each value"
