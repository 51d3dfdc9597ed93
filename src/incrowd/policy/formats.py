"""A policy written down: as YAML for people, as canonical JSON for its digest, as JSON Schema for editors."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from incrowd.core.errors import PolicyError
from incrowd.policy.texts import Place, at

_MACHINE_DEPENDENT = {
    "data": {"path", "delimiter", "quote", "decimal", "header", "columns", "encoding", "table"},
    "ledger": True,
}

# Left out where they say nothing: a policy that is silent about them has the digest that it had before they existed.
_UNLESS_SAID = ("people", "rows_are_people")
_UNLESS_SAID_OF_A_COLUMN = ("title", "labels", "codes")
_UNLESS_SAID_WITHIN = ("for", "knowing", "knows_not")

_VALUE = {"type": ["string", "number", "boolean", "null"]}
_BRANCHES = [
    {"type": "object", "additionalProperties": {"$ref": "#/$defs/Branches"}},
    {"type": "array", "items": {"$ref": "#/$defs/Branches"}},
]
_LISTS = (
    ("Intervals", "widths"),
    ("Intervals", "dates"),
    ("Mask", "mask"),
    ("Ordinal", "ordinal"),
    ("Generalization", "adversaries"),
    ("Generalization", "require"),
    ("Share", "values"),
    ("People", "column"),
)


def plain(policy: BaseModel) -> dict[str, Any]:
    """Dictionaries and lists shaped like the file, defaults left out."""
    content: dict[str, Any] = _lists(policy.model_dump(exclude_defaults=True))
    return content


def to_yaml(policy: BaseModel) -> str:
    """The text of a policy file."""
    return _dumped(plain(policy))


def _dumped(content: Mapping[str, Any]) -> str:
    return yaml.dump(
        content, Dumper=_DecimalDumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )


def nested(changes: Mapping[tuple[str, ...], Any]) -> str:
    """What is said in some places, as lines of a policy file; what is left out there is said as a comment."""
    content: dict[str, Any] = {}
    gone = [".".join(place) for place, said in changes.items() if said is None]
    for place, said in changes.items():
        within = content
        for step in place[:-1] if said is not None else ():
            within = within.setdefault(step, {})
        if said is not None:
            within[place[-1]] = said
    text = yaml.dump(
        content, Dumper=_DecimalDumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
    return "".join([*(f"# without {name}\n" for name in gone), text if content else ""])


def canonical(policy: BaseModel, digests: Mapping[Place, str], silent: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that decides the release, defaults filled in, files by their digests.

    The section `release` is written without what it has in common with `silent`.
    """
    content: dict[str, Any] = _json(policy.model_dump(exclude=_MACHINE_DEPENDENT))  # type: ignore[arg-type]
    for place, found in digests.items():
        at(content, place)["file"] = {"sha256": found}
    for attribute in content["attributes"].values():
        attribute.pop("format")
        for key in _UNLESS_SAID_OF_A_COLUMN:
            if attribute[key] is None:
                attribute.pop(key)
    release = content["release"] or {}
    for key, nothing in silent.items():
        if release[key] == nothing:
            release.pop(key)
    return {key: item for key, item in content.items() if item or key not in _UNLESS_SAID}


def readable(content: Any, place: Place = ()) -> Any:
    """A canonical form as a policy is read: without the keys that have no value, files named by their digests."""
    if isinstance(content, list):
        return [readable(item, (*place, number)) for number, item in enumerate(content)]
    if not isinstance(content, Mapping) or place[3:] == ("taxonomy",):  # in which no value means: nothing below
        return content
    if place[-1:] == ("file",) and content.keys() == {"sha256"}:
        return content["sha256"]
    return {key: readable(item, (*place, key)) for key, item in content.items() if item is not None}


def is_digest(text: str) -> bool:
    """Whether a text is a SHA-256 as it is written here."""
    return re.fullmatch("[0-9a-f]{64}", text) is not None


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of canonical JSON: keys sorted, no spaces, UTF-8."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise PolicyError(
            f"Cannot read {path}: {error.strerror or type(error).__name__}.",
            code="policy-file",
            remedy="A policy needs the files that it names.",
        ) from None


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of the file, shorthands included."""
    schema = model.model_json_schema()
    definitions = schema["$defs"]
    definitions["Branches"] = {"anyOf": [_VALUE, *_BRANCHES], "description": "A value, or names and values below."}
    definitions["Taxonomy"]["properties"]["taxonomy"] |= {"anyOf": _BRANCHES}
    definitions["Taxonomy"]["properties"]["taxonomy"].pop("type")
    attribute = definitions["Attribute"]
    labels = {"type": "object", "additionalProperties": _VALUE}
    attribute["properties"]["labels"]["anyOf"] = [labels, {"$ref": "#/$defs/LabelFile"}]
    attribute["properties"]["codes"]["anyOf"] = [labels, {"type": "array", "items": _VALUE}, _VALUE]
    roles = attribute["properties"]["role"]["enum"]
    definitions["Attribute"] = {"anyOf": [attribute, {"enum": roles, "description": "A role alone."}]}
    definitions["Intervals"]["minProperties"] = 1
    for section, key in _LISTS:
        _or_one_item(definitions[section]["properties"][key])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _or_one_item(field: dict[str, Any]) -> None:
    """Let a list of one item be written without brackets."""
    kinds = field.setdefault("anyOf", [{key: field.pop(key) for key in ("type", "items") if key in field}])
    kinds.insert(0, next(kind for kind in kinds if kind.get("type") == "array")["items"])


def _lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _lists(item) for key, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, list | tuple) else value


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _json(item)
            for key, item in value.items()
            if key not in _UNLESS_SAID_WITHIN or not (item is None or item == ())
        }
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    return str(value) if isinstance(value, Decimal | dt.date) else value


class Dumper(yaml.SafeDumper):
    """Repeats what it has written before instead of referring to it, and writes texts so that they are read alike."""

    def ignore_aliases(self, _: Any) -> bool:
        return True


class _DecimalDumper(Dumper):
    """Writes decimals as numbers."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # In quotes of any other kind YAML takes some of these characters for the end of a line.
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, None if value.isprintable() else '"')


def _decimal(dumper: yaml.SafeDumper, value: Decimal) -> yaml.ScalarNode:
    if value.is_infinite():
        return dumper.represent_scalar("tag:yaml.org,2002:float", "-.inf" if value < 0 else ".inf")
    whole = value == value.to_integral_value()
    return dumper.represent_scalar(f"tag:yaml.org,2002:{'int' if whole else 'float'}", format(value, "f"))


Dumper.add_representer(str, _text)
_DecimalDumper.add_representer(Decimal, _decimal)
