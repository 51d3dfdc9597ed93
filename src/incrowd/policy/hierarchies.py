"""Ways to say how values are made coarser, level by level."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    Tag,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from incrowd.policy.fields import (
    Character,
    Edge,
    Encoding,
    Finding,
    Members,
    NamedFile,
    Section,
    Sizes,
    Text,
    Typed,
    Widths,
    by_keys,
    increasing,
    listed,
    refuse,
)
from incrowd.policy.taxonomy import Node, read_taxonomy, write_taxonomy

Period = Literal["week", "month", "quarter", "year", "decade"]


class Intervals(Section):
    """Neighbouring values taken together, more of them at each level."""

    widths: Widths | None = Field(
        default=None, description="The width of the intervals at each level, each a multiple of the one before."
    )
    start: Typed | None = Field(default=None, description="Where an interval begins; 0 if not given.")
    cuts: tuple[tuple[Edge, ...], ...] | None = Field(
        default=None,
        description="Where intervals begin, one list for each level; a level keeps only cuts of the one before.",
    )
    dates: Annotated[tuple[Period, ...], BeforeValidator(listed)] | None = Field(
        default=None, description="Periods of dates, one for each level."
    )
    top: Typed | None = Field(default=None, description="This value and those above are one group at every level.")
    bottom: Typed | None = Field(default=None, description="This value and those below are one group at every level.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        findings: list[Finding] = []
        if sum(way is not None for way in (self.widths, self.cuts, self.dates)) > 1:
            findings.append(((), "give only one of 'widths', 'cuts' and 'dates'"))
        if self.start is not None and self.widths is None:
            findings.append((("start",), "has a meaning only together with 'widths'"))
        findings += [((name,), "must not be empty") for name in ("cuts", "dates") if getattr(self, name) == ()]
        for level, cuts in enumerate(self.cuts or ()):
            points: tuple[Any, ...] = cuts
            if not points or any(a >= b for a, b in pairwise(points)):
                findings.append((("cuts", level), "must be a list of increasing cut points"))
        refuse(findings)
        return self


class Mask(Section):
    """Codes whose last characters are hidden, more of them at each level."""

    mask: Annotated[tuple[Annotated[int, Field(ge=1)], ...], AfterValidator(increasing)] = Field(
        description="How many characters are hidden at each level, from the right; 5 is short for [1, 2, 3, 4, 5]."
    )
    character: Annotated[str, Field(min_length=1, max_length=1)] = Field(
        default="*", description="What is shown instead."
    )

    @field_validator("mask", mode="before")
    @classmethod
    def _one_by_one(cls, raw: Any) -> Any:
        short = isinstance(raw, int | str) and re.fullmatch(r"0*[0-9]{1,2}|0*100", str(raw))
        return tuple(range(1, int(raw) + 1)) if short else raw


class Ordinal(Section):
    """Runs of neighbours in the order in which the domain lists them."""

    ordinal: Sizes = Field(description="How many neighbours form a group, at each level a multiple of the one before.")


class Taxonomy(Section):
    """A tree of names, its leaves being the values."""

    taxonomy: Annotated[
        Node, PlainValidator(read_taxonomy), PlainSerializer(write_taxonomy), WithJsonSchema({"type": "object"})
    ] = Field(description="Names, and below each what it stands for: values, or more names.")


class TreeFile(NamedFile):
    """A hierarchy in a file."""

    file: Text = Field(description="A CSV file as ARX writes it, or a hierarchy of Amnesia; relative to the policy.")
    delimiter: Character | None = Field(default=None, description="Between columns; found out if not given.")
    encoding: Encoding = Field(default="utf-8", description="Of the file.")


HIERARCHIES: Members = {
    "@taxonomy": (Taxonomy, {"taxonomy"}),
    "@file": (TreeFile, {"file"}),
    "@mask": (Mask, {"mask"}),
    "@ordinal": (Ordinal, {"ordinal"}),
    "@intervals": (Intervals, {"widths", "cuts", "dates", "top", "bottom", "start"}),
}

HierarchySpec = Annotated[
    Annotated[Taxonomy, Tag("@taxonomy")]
    | Annotated[TreeFile, Tag("@file")]
    | Annotated[Mask, Tag("@mask")]
    | Annotated[Ordinal, Tag("@ordinal")]
    | Annotated[Intervals, Tag("@intervals")],
    Discriminator(
        by_keys(HIERARCHIES),
        custom_error_type="hierarchy",
        custom_error_message="must have one of the keys 'widths', 'cuts', 'dates', 'top', 'bottom', 'mask', 'ordinal', "
        "'taxonomy' and 'file'",
    ),
]
