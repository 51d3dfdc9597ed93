"""One column of the table: its role, its values, and how they may be made coarser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from incrowd.core.errors import PolicyError
from incrowd.domain import Categories, Domain, Missing, Value
from incrowd.policy.domains import Cuts, Digits, DomainSpec, ListFile, Span
from incrowd.policy.fields import Finding, Section, Text, listed, read_each, read_keys, refuse
from incrowd.policy.hierarchies import HierarchySpec, Intervals, Mask, Ordinal, Taxonomy, TreeFile
from incrowd.policy.values import Kind, is_whole, read_edge, read_value


class Attribute(Section):
    """One column of the table."""

    role: Literal["quasi", "sensitive", "drop"] = Field(
        default="quasi",
        description="quasi: others may know it of a person. sensitive: others want to know it. drop: never published.",
    )
    kind: Kind = Field(default="text", alias="type", description="What its values are.")
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

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.role != "drop":
            refuse(self._unfit_domain() or self._unfit_hierarchy())
        return self

    def declared(self) -> Domain | None:
        """The domain, if the policy itself holds it: None where a file or the hierarchy does."""
        if isinstance(self.domain, tuple):
            return Categories(self.domain)
        if isinstance(self.domain, Span | Cuts | Digits):
            return self.domain.declared()
        return Categories((False, True)) if self.kind == "boolean" and self.domain is None else None

    def _unfit_domain(self) -> list[Finding]:
        if self.domain is None:
            if isinstance(self.hierarchy, Taxonomy | TreeFile) or self.kind == "boolean":
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

    @property
    def _shape(self) -> str:
        """How the domain is given."""
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
