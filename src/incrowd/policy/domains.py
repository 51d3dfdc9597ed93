"""Ways to declare which values an attribute may have."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from incrowd.core.errors import PolicyError
from incrowd.domain import Bins, Categories, DateRange, Domain, IntegerRange
from incrowd.policy.fields import Character, Edge, Encoding, Members, NamedFile, Number, Section, Text, Typed, by_keys

MOST_VALUES = 1_000_000


class Span(Section):
    """Everything from one value to another."""

    first: Typed = Field(alias="from", description="The lowest value.")
    last: Typed = Field(alias="to", description="The highest value.")
    step: Number | None = Field(default=None, description="Cut the numbers into bins of this width.")

    def declared(self) -> Domain:
        """The values."""
        first: Any = self.first
        last: Any = self.last
        if self.step is not None:
            return _bins(Decimal(first), Decimal(last), self.step)
        domain = DateRange(first, last) if isinstance(first, dt.date) else IntegerRange(first, last)
        if isinstance(domain, IntegerRange):
            _require_few(last - first + 1)
        return domain


class Cuts(Section):
    """Numbers cut into bins."""

    cuts: tuple[Edge, ...] = Field(description="Where the bins meet, both ends included; .inf for an open end.")

    def declared(self) -> Domain:
        """The bins."""
        return Bins(tuple(float(cut) for cut in self.cuts if isinstance(cut, Decimal)))


class Digits(Section):
    """Every code of so many digits."""

    digits: int = Field(ge=1, le=6, description="How many digits a code has; 5 gives 00000 to 99999.")

    def declared(self) -> Domain:
        """The codes."""
        return Categories(tuple(f"{code:0{self.digits}d}" for code in range(10**self.digits)))


class ListFile(NamedFile):
    """Values listed in a file."""

    file: Text = Field(description="A text or CSV file, relative to the policy.")
    column: Text | None = Field(
        default=None, description="The column with the values. Without it the file has no header."
    )
    delimiter: Character | None = Field(default=None, description="Between columns; found out if not given.")
    encoding: Encoding = Field(default="utf-8", description="Of the file.")


DOMAINS: Members = {
    "@span": (Span, {"from", "to", "step"}),
    "@cuts": (Cuts, {"cuts"}),
    "@digits": (Digits, {"digits"}),
    "@list": (ListFile, {"file", "column"}),
}

DomainSpec = Annotated[
    Annotated[tuple[Typed, ...], Tag("@values")]
    | Annotated[Span, Tag("@span")]
    | Annotated[Cuts, Tag("@cuts")]
    | Annotated[Digits, Tag("@digits")]
    | Annotated[ListFile, Tag("@list")],
    Discriminator(
        by_keys(DOMAINS),
        custom_error_type="domain",
        custom_error_message="must be a list of values, or have the keys 'from' and 'to', 'cuts', 'digits' or 'file'",
    ),
]


def _bins(first: Decimal, last: Decimal, step: Decimal) -> Bins:
    low, high, width = map(Fraction, (first, last, step))
    steps = (high - low) / width if width else Fraction(0)
    if width < 0 or steps <= 0 or steps.denominator != 1:
        raise PolicyError("'to' must be a whole number of steps above 'from'.", code="domain-cuts")
    _require_few(int(steps))
    return Bins(tuple(float(low + width * i) for i in range(int(steps) + 1)))


def _require_few(values: int) -> None:
    if values > MOST_VALUES:
        raise PolicyError(
            f"It has more than {MOST_VALUES:,} values.",
            code="domain-large",
            remedy="Cut it into bins with 'step' or 'cuts'.",
            details={"values": values, "most": MOST_VALUES},
        )
