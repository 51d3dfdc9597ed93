"""One column of the table: its role, its values, and how they may be made coarser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from incrowd.core.errors import PolicyError
from incrowd.domain import (
    Categories,
    DateFormat,
    Domain,
    Missing,
    NumberFormat,
    Value,
    natural_key,
    read_date_format,
    read_number_format,
)
from incrowd.policy.domains import Cuts, Digits, DomainSpec, ListFile, Span
from incrowd.policy.fields import Finding, Section, Text, listed, read_each, read_keys, refuse
from incrowd.policy.hierarchies import HierarchySpec, Intervals, Mask, Ordinal, Taxonomy, TreeFile
from incrowd.policy.labels import (
    LabelFile,
    LabelMap,
    LabelSpec,
    is_file,
    names,
    read_codes,
    read_labels,
    unfit_labels,
    values_of,
)
from incrowd.policy.values import Kind, is_whole, read_edge, read_value


class Attribute(Section):
    """One column of the table."""

    role: Literal["quasi", "sensitive", "drop"] = Field(
        default="quasi",
        description="quasi: others may know it of a person. sensitive: others want to know it. drop: never published.",
    )
    kind: Kind = Field(default="text", alias="type", description="What its values are.")
    title: Text | None = Field(
        default=None,
        description="What it is called for people: the variable's label in SPSS and Stata, its title elsewhere.",
    )
    domain: DomainSpec | None = Field(
        default=None, description="The values it may have, declared and not read off the data."
    )
    missing: Missing = Field(
        default="refuse",
        description="Missing values are an error (refuse), a value of their own (keep), or drop the record (drop).",
    )
    other: Text | None = Field(
        default=None, description="What values outside the domain are published as. Without it they are an error."
    )
    hierarchy: HierarchySpec | None = Field(
        default=None,
        description="How values are made coarser. Without it there are two levels: as they are, and all alike.",
    )
    labels: LabelSpec | None = Field(
        default=None,
        description="What values are published as: {1: male, 2: female}, or a code book's file. Without a domain, the "
        "values that have labels are the domain.",
    )
    codes: Annotated[LabelMap, BeforeValidator(read_codes)] | None = Field(
        default=None,
        description="What stands among numbers or dates and is none, with what it is published as: {-9: refused}. It "
        "is never made coarser, short of all being alike.",
    )
    format: Text | None = Field(
        default=None,
        description="How dates or numbers are written in a column of text: dd.mm.yyyy; or 1.234,5, which is the number "
        "1234.5 as it is written.",
    )
    level: int | None = Field(
        default=None, ge=0, description="The level at which it is published, 0 being its values as they are."
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, raw: Any) -> Any:
        return {"role": raw} if isinstance(raw, str) else {} if raw is None else raw

    @field_validator("domain", mode="before")
    @classmethod
    def _typed_domain(cls, raw: Any, info: ValidationInfo) -> Any:
        if "kind" not in info.data:  # it is wrong and will be complained about
            return None
        kind = info.data["kind"]
        if isinstance(raw, list | tuple):
            return read_each(kind, raw, read_value)
        readers = {"from": read_value, "to": read_value, "cuts": lambda kind, cuts: read_each(kind, cuts, read_edge)}
        return read_keys(kind, raw, readers)

    @field_validator("hierarchy", mode="before")
    @classmethod
    def _typed_hierarchy(cls, raw: Any, info: ValidationInfo) -> Any:
        if "kind" not in info.data:
            return None
        readers = {
            **dict.fromkeys(("top", "bottom", "start"), read_value),
            "cuts": lambda kind, levels: read_each(kind, levels, _cuts),
        }
        return read_keys(info.data["kind"], raw, readers)

    @field_validator("labels", mode="before")
    @classmethod
    def _typed_labels(cls, raw: Any, info: ValidationInfo) -> Any:
        if "kind" not in info.data or not isinstance(raw, Mapping) or is_file(raw):
            return raw
        domain = info.data.get("domain")
        binned = isinstance(domain, Cuts) or (isinstance(domain, Span) and domain.step is not None)
        return read_labels("text" if binned else info.data["kind"], raw)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.role != "drop":
            refuse(self._unfit_domain() or self._unfit_hierarchy() or self._unfit_labels() + self._unfit_reading())
        return self

    def declared(self) -> Domain | None:
        """The domain, if the policy itself holds it: None where a file or the hierarchy does."""
        if isinstance(self.domain, tuple):
            return Categories(self.domain)
        if isinstance(self.domain, Span | Cuts | Digits):
            return self.domain.declared()
        if self.domain is None and self.kind == "boolean":
            return Categories((False, True))
        if self.domain is None and isinstance(self.labels, Mapping) and not self._in_tree:
            return Categories(values_of(self.kind, self.labels))
        return None

    def written(self) -> DateFormat | NumberFormat | None:
        """How its values are written in a column of text, if not as usual."""
        if self.format is None:
            return None
        return read_date_format(self.format) if self.kind == "date" else read_number_format(self.format)

    def beside(self) -> tuple[tuple[str, str], ...]:
        """What stands among its numbers or dates and is none, with labels, in one order."""
        return tuple(sorted((self.codes or {}).items(), key=lambda pair: natural_key(pair[0])))

    def published_labels(self) -> list[str | None] | None:
        """What its values are published as at level 0, if the policy itself holds that."""
        domain = self.declared()
        if domain is None or isinstance(self.labels, LabelFile):
            return None
        own = domain.labels if self.labels is None else names(domain.labels, self.labels)
        return [*own, *self._beside_names, *([None] if self.missing == "keep" else [])]

    @property
    def _beside_names(self) -> list[str]:
        return [*(label for _, label in self.beside()), *([] if self.other is None else [self.other])]

    @property
    def _in_tree(self) -> bool:
        return isinstance(self.hierarchy, Taxonomy | TreeFile)

    def _unfit_domain(self) -> list[Finding]:
        if self.domain is None:
            if self._in_tree or self.kind == "boolean" or self.labels:
                return []
            return [((), "declare the values it may have: the key 'domain' is missing")]
        if self._shape not in _SHAPES[self.kind]:
            return [(("domain",), f"must be, for type '{self.kind}', {' or '.join(_SHAPES[self.kind])}")]
        if isinstance(self.domain, tuple) and (again := _repeated(self.domain)):
            return [(("domain", number), "is listed above already") for number in again]
        try:
            self.declared()
        except PolicyError as error:
            return [(("domain",), str(error).rstrip("."))]
        return []

    def _unfit_hierarchy(self) -> list[Finding]:
        spec, here = self.hierarchy, ("hierarchy",)
        if isinstance(spec, Mask) and self.kind != "text":
            return [(here, "codes are masked in an attribute of type 'text'")]
        if isinstance(spec, Ordinal) and self._shape not in (_LIST, _FILE):
            return [(here, "'ordinal' needs a domain that lists its values in order")]
        if isinstance(spec, Intervals):
            if self._shape not in (_SPAN, _BINS, _CUTS):
                return [(here, "intervals need a domain that is given by 'from' and 'to' or by 'cuts'")]
            if spec.dates and self.kind != "date":
                return [(here, "'dates' needs an attribute of type 'date'")]
            if spec.widths and self.kind == "date":
                return [(here, "dates are taken together by 'dates' or by 'cuts'")]
            if spec.widths and self._shape == _SPAN and not all(map(is_whole, spec.widths)):
                return [(here, "'widths' must be whole numbers, as the values are")]
        return []

    def _unfit_labels(self) -> list[Finding]:
        domain = self.declared()
        if domain is None or not isinstance(self.labels, Mapping):
            return []
        return [
            (("labels", *place), text) for place, text in unfit_labels(domain.labels, self.labels, self._beside_names)
        ]

    def _unfit_reading(self) -> list[Finding]:
        findings: list[Finding] = []
        if self.codes is not None and self._shape not in (_SPAN, _BINS, _CUTS):
            findings.append((("codes",), "are for numbers and dates in a range; among listed values, list them too"))
        if len(set(self._beside_names)) < len(self._beside_names):
            findings.append((("codes",), "two are published under the same name"))
        if self.format is not None and self.kind not in ("integer", "number", "date"):
            findings.append((("format",), "says how numbers and dates are written; this is neither"))
        elif self.format is not None:
            try:
                self.written()
            except ValueError as error:
                findings.append((("format",), str(error)))
        return findings

    @property
    def _shape(self) -> str:
        """How the domain is given."""
        if self.domain is None and self.labels and not self._in_tree:
            return _LIST
        if isinstance(self.domain, Span):
            return _SPAN if self.domain.step is None else _BINS
        shapes: dict[type, str] = {tuple: _LIST, Cuts: _CUTS, Digits: _DIGITS, ListFile: _FILE}
        return shapes.get(type(self.domain), "")


_LIST, _FILE, _DIGITS = "a list", "a 'file'", "'digits'"
_SPAN, _BINS, _CUTS = "'from' and 'to'", "'from', 'to' and 'step'", "'cuts'"
_SHAPES: dict[Kind, tuple[str, ...]] = {
    "text": (_LIST, _FILE, _DIGITS),
    "integer": (_LIST, _FILE, _SPAN, _BINS, _CUTS),
    "number": (_LIST, _FILE, _BINS, _CUTS),
    "date": (_LIST, _FILE, _SPAN),
    "boolean": (_LIST,),
}


def _repeated(values: Sequence[Value]) -> list[int]:
    """The positions of values that stood before."""
    seen: set[Value] = set()
    return [number for number, value in enumerate(values) if value in seen or seen.add(value)]  # type: ignore[func-returns-value]


def _cuts(kind: Kind, raw: Any) -> Any:
    """The cuts of one level."""
    cuts = read_each(kind, listed(raw), read_edge)
    if not isinstance(cuts, list):
        raise ValueError("must be a list of cut points")
    return cuts
