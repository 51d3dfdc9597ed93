"""What codes are published as: written in the policy, or taken from a code book."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag

from incrowd.domain import Value, label_of, natural_key
from incrowd.policy.fields import Character, Encoding, Finding, NamedFile, Text, refuse
from incrowd.policy.values import FrozenMap, Kind, read_value


class LabelFile(NamedFile):
    """Labels in a code book."""

    file: Text = Field(
        description="A CSV file with the columns 'value' and 'label', and 'variable' if it is about several columns; "
        "or JSON: names of columns, below each its codes with their labels. Relative to the policy."
    )
    delimiter: Character | None = Field(default=None, description="Between columns; found out if not given.")
    encoding: Encoding = Field(default="utf-8", description="Of the file.")


LabelMap = Annotated[Mapping[str, Text], AfterValidator(FrozenMap)]


def _tag(raw: Any) -> str | None:
    if isinstance(raw, LabelFile) or is_file(raw):
        return "@codebook"
    return "@labels" if isinstance(raw, Mapping) else None


def is_file(raw: Any) -> bool:
    """Whether what is written names a file, and is no list of labels."""
    return isinstance(raw, Mapping) and "file" in raw and raw.keys() <= set(LabelFile.model_fields)


LabelSpec = Annotated[
    Annotated[LabelMap, Tag("@labels")] | Annotated[LabelFile, Tag("@codebook")],
    Discriminator(
        _tag,
        custom_error_type="labels",
        custom_error_message="must be codes with their labels, {1: male, 2: female} say, or have the key 'file'",
    ),
]


def read_labels(kind: Kind, raw: Mapping[Any, Any]) -> dict[str, str]:
    """Codes, as values of this type print, with their labels."""
    found: dict[str, str] = {}
    findings: list[Finding] = []
    for key, label in raw.items():
        try:
            code = label_of(read_value(kind, key))
            if code in found:
                findings.append(((str(key),), "this code has a label already"))
            found[code] = str(read_value("text", label))
        except ValueError as error:
            wrong = "has no value" if label is None else f"a code {error}" if kind != "text" else str(error)
            findings.append(((str(key),), wrong))
    refuse(findings)
    return found


def read_codes(raw: Any) -> Any:
    """What stands beside numbers or dates, each with its label; a list labels each by itself."""
    if isinstance(raw, list | tuple):
        raw = {code: code for code in raw}
    elif isinstance(raw, str | int | Decimal):
        raw = {raw: raw}
    return read_labels("text", raw) if isinstance(raw, Mapping) else raw


def values_of(kind: Kind, codes: Iterable[str]) -> tuple[Value, ...]:
    """The values that codes stand for, numbers and dates in order: a certificate does not keep that of a mapping."""
    found = [(read_value(kind, code), code) for code in codes]
    return tuple(value for value, _ in sorted(found, key=lambda pair: natural_key(pair[1])))


def names(printed: Sequence[str], labels: Mapping[str, str]) -> tuple[str, ...]:
    """What declared values are published as: their labels, and as they print where they have none."""
    return tuple(labels.get(text, text) for text in printed)


def unfit_labels(printed: Sequence[str], labels: Mapping[str, str], beside: Sequence[str]) -> list[Finding]:
    """What is wrong with labels: about no value, or the same for two.

    Args:
        printed: the declared values.
        labels: theirs.
        beside: the names of what is published beside them.
    """
    known = set(printed)
    findings: list[Finding] = [((code,), "is not a value of the domain") for code in labels if code not in known]
    seen: set[str] = set(beside)
    for code, name in zip(printed, names(printed, labels), strict=True):
        if name in seen:
            findings.append(((code,) if code in labels else (), "another value is published under the same name"))
        seen.add(name)
    return findings
