"""What values a column may hold, and which integer stands for each of them.

A domain is declared, never read off the data: a value that only one person has would otherwise show by its mere
presence in the list. Code i stands for ``labels[i]``; a `Coding` adds, behind the declared values, one code for
everything else (if the policy wants such a bucket) and one for missing values.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    import numpy as np


from incrowd.core.errors import PolicyError

Value = str | int | bool | Decimal | dt.date
Missing = Literal["refuse", "keep", "drop"]


@dataclass(frozen=True)
class Categories:
    """An explicit list of values, all of one type. Raw values match exactly, after a cast to that type."""

    values: tuple[Value, ...]
    kind: ClassVar[str] = "categories"

    def __post_init__(self) -> None:
        if not self.values:
            raise PolicyError("A domain needs at least one value.", code="domain-empty")
        if len(set(self.values)) != len(self.values):
            raise PolicyError(
                "A domain lists the same value twice.",
                code="domain-duplicate",
                remedy="List each value once.",
                details={"values": len(self.values), "distinct": len(set(self.values))},
            )
        if len(set(map(type, self.values))) > 1:
            raise PolicyError("The values of a domain must be of one type.", code="parameter-type")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """How each code is printed."""
        return tuple(map(label_of, self.values))


@dataclass(frozen=True)
class IntegerRange:
    """Every whole number from `low` to `high`, both included: code = value − low."""

    low: int
    high: int
    kind: ClassVar[str] = "integers"

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise PolicyError(
                f"The domain runs from {self.low} down to {self.high}.",
                code="domain-empty",
                remedy="Swap its ends.",
            )

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(str(value) for value in range(self.low, self.high + 1))


@dataclass(frozen=True)
class DateRange:
    """Every day from `first` to `last`, both included: code = days since `first`."""

    first: dt.date
    last: dt.date
    kind: ClassVar[str] = "dates"

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise PolicyError(
                f"The domain runs from {self.first} back to {self.last}.",
                code="domain-empty",
                remedy="Swap its ends.",
            )

    @cached_property
    def labels(self) -> tuple[str, ...]:
        days = (self.last - self.first).days
        return tuple((self.first + dt.timedelta(days=i)).isoformat() for i in range(days + 1))


@dataclass(frozen=True)
class Bins:
    """Real numbers cut into intervals: code i is [cuts[i], cuts[i+1]), the last one including its upper end.

    A cut of −inf or +inf at either end makes the outer interval open-ended; without it, values beyond are outside the
    domain. Not-a-number is a missing value, never a bin.
    """

    cuts: tuple[float, ...]
    kind: ClassVar[str] = "bins"

    def __post_init__(self) -> None:
        if len(self.cuts) < 2 or any(a >= b for a, b in zip(self.cuts, self.cuts[1:], strict=False)):
            raise PolicyError("Cut points must be at least two, in strictly increasing order.", code="domain-cuts")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        edges = [_print_number(cut) for cut in self.cuts]
        last = len(edges) - 2
        return tuple(
            f"{'(' if math.isinf(self.cuts[i]) else '['}{edges[i]}, {edges[i + 1]}"
            f"{']' if i == last and not math.isinf(self.cuts[-1]) else ')'}"
            for i in range(len(edges) - 1)
        )


Domain = Categories | IntegerRange | DateRange | Bins


@dataclass(frozen=True)
class DateFormat:
    """How dates are written.

    Attributes:
        pattern: a regular expression for all of the text, with a group for each of year, month and day.
        groups: which group holds the year, which the month and which the day, from 1.
    """

    pattern: str
    groups: tuple[int, int, int]


@dataclass(frozen=True)
class NumberFormat:
    """How numbers are written.

    Attributes:
        decimal: the sign before decimals; None where there are none.
        thousands: the signs that may stand between thousands.
    """

    decimal: str | None
    thousands: str

    @property
    def pattern(self) -> str:
        """A regular expression for all of the text."""
        parted = rf"\d{{1,3}}([{self.thousands}]\d{{3}})+|" if self.thousands else ""
        decimals = "" if self.decimal is None else rf"(\{self.decimal}\d*)?"
        return rf"\s*[+-]?({parted}\d+){decimals}\s*"

    @property
    def translation(self) -> tuple[str, str]:
        """Signs, and what they become in a plain number: those without a counterpart go."""
        return (self.decimal or "") + self.thousands, "." if self.decimal else ""


@dataclass(frozen=True, eq=False)
class Recode:
    """A coarsening of a coding: base code c becomes code ``to[c]``, printed as ``labels[to[c]]`` (None: missing)."""

    to: np.ndarray
    labels: tuple[str | None, ...]


@dataclass(frozen=True)
class Coding:
    """How one column of a table becomes integers.

    Codes 0 … m−1 are the domain's values in order; then come those of `codes`, the bucket for other values if `other`
    names one, and the missing value if `missing` is "keep". With "refuse" a missing value is an error, with "drop" the
    whole record is left out.

    Attributes:
        column: the column's name in the source, exactly.
        domain: its declared values.
        missing: what happens to missing values.
        other: the label of a bucket for values outside the domain; None makes them an error.
        recode: an optional coarsening applied while counting.
        names: what each declared value is published as; None for the way it prints.
        codes: what stands among numbers or dates and is none, -9 or N say, with its label; it is not in the domain,
            whatever its range.
        format: how numbers or dates are written in columns of text; None for 1234.5, or as the table's options say,
            and for 2026-01-31.
    """

    column: str
    domain: Domain
    missing: Missing = "refuse"
    other: str | None = None
    recode: Recode | None = None
    names: tuple[str, ...] | None = None
    codes: tuple[tuple[str, str], ...] = ()
    format: DateFormat | NumberFormat | None = None

    @property
    def value_labels(self) -> tuple[str, ...]:
        """What the declared values are published as."""
        return self.domain.labels if self.names is None else self.names

    @cached_property
    def base_labels(self) -> tuple[str | None, ...]:
        """Labels of all base codes, the missing value's being None."""
        labels: tuple[str | None, ...] = (*self.value_labels, *(label for _, label in self.codes))
        if self.other is not None:
            labels += (self.other,)
        return (*labels, None) if self.missing == "keep" else labels

    @property
    def labels(self) -> tuple[str | None, ...]:
        """Labels of the codes that come out of counting."""
        return self.base_labels if self.recode is None else self.recode.labels

    @property
    def other_code(self) -> int | None:
        """The base code of values outside the domain, if they have a bucket."""
        return None if self.other is None else len(self.domain.labels) + len(self.codes)

    @property
    def missing_code(self) -> int | None:
        """The base code of missing values, if they are kept."""
        return len(self.base_labels) - 1 if self.missing == "keep" else None


def read_date_format(text: str) -> DateFormat:
    """What ``dd.mm.yyyy`` says, or ``yyyymmdd``. A day or month may have one digit if a sign sets it apart.

    Raises:
        ValueError: it says nothing of the kind.
    """
    parts = re.split("(yyyy|mm|dd)", text.lower())
    signs, names = parts[::2], parts[1::2]
    if sorted(names) != ["dd", "mm", "yyyy"] or any(sign.isalnum() for sign in "".join(signs)):
        raise ValueError("must have yyyy, mm and dd once each, and signs between them: dd.mm.yyyy, say")
    apart = all(signs[1:-1])
    digits = {"yyyy": r"(\d{4})", "mm": r"(\d{1,2})" if apart else r"(\d{2})"}
    digits["dd"] = digits["mm"]
    pattern = "".join(digits.get(part, re.escape(part)) for part in parts)
    year, month, day = (names.index(name) + 1 for name in ("yyyy", "mm", "dd"))
    return DateFormat(rf"\s*{pattern}\s*", (year, month, day))


def read_number_format(text: str) -> NumberFormat:
    """What ``1.234,5`` says: how one thousand two hundred and thirty-four and a half is written.

    Raises:
        ValueError: it says nothing of the kind.
    """
    found = re.fullmatch("1([., '’\u00a0\u202f]?)234(?:([.,])5)?", text)
    if found is None or found[1] == found[2]:
        raise ValueError("must be the number 1234.5 as it is written: '1.234,5' or '1234,5', say")
    thousands = " \u00a0\u202f" if found[1] and found[1] in " \u00a0\u202f" else found[1]
    return NumberFormat(found[2], thousands)


def label_of(value: Value) -> str:
    """How a value is printed, which is also how it is looked up in a hierarchy."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def natural_key(text: str) -> tuple[Any, ...]:
    """What to sort texts by: those that are numbers come first, as numbers."""
    try:
        number = Decimal(text)
    except ArithmeticError:
        return 1, text
    return (0, number, text) if number.is_finite() else (1, text)


def _print_number(value: float) -> str:
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
