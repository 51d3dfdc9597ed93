"""What values a column may hold, and which integer stands for each of them.

A domain is declared, never read off the data: a value that only one person has would otherwise show by its mere
presence in the list. Code i stands for ``labels[i]``; a `Coding` adds, behind the declared values, one code for
everything else (if the policy wants such a bucket) and one for missing values.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

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
        """How each code is printed."""
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
        """How each code is printed."""
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
        """How each code is printed."""
        edges = [_print_number(cut) for cut in self.cuts]
        last = len(edges) - 2
        return tuple(
            f"{'(' if math.isinf(self.cuts[i]) else '['}{edges[i]}, {edges[i + 1]}"
            f"{']' if i == last and not math.isinf(self.cuts[-1]) else ')'}"
            for i in range(len(edges) - 1)
        )


Domain = Categories | IntegerRange | DateRange | Bins


@dataclass(frozen=True, eq=False)
class Recode:
    """A coarsening of a coding: base code c becomes code ``to[c]``, printed as ``labels[to[c]]`` (None: missing)."""

    to: np.ndarray
    labels: tuple[str | None, ...]


@dataclass(frozen=True)
class Coding:
    """How one column of a table becomes integers.

    Codes 0 … m−1 are the domain's values in order; code m is the bucket for other values if `other` names one; the
    next is the missing value if `missing` is "keep". With "refuse" a missing value is an error, with "drop" the
    whole record is left out.

    Attributes:
        column: the column's name in the source, exactly.
        domain: its declared values.
        missing: what happens to missing values.
        other: the label of a bucket for values outside the domain; None makes them an error.
        recode: an optional coarsening applied while counting.
    """

    column: str
    domain: Domain
    missing: Missing = "refuse"
    other: str | None = None
    recode: Recode | None = None

    @cached_property
    def base_labels(self) -> tuple[str | None, ...]:
        """Labels of all base codes, the missing value's being None."""
        labels: tuple[str | None, ...] = self.domain.labels
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
        return None if self.other is None else len(self.domain.labels)

    @property
    def missing_code(self) -> int | None:
        """The base code of missing values, if they are kept."""
        return len(self.base_labels) - 1 if self.missing == "keep" else None


def label_of(value: Value) -> str:
    """How a value is printed, which is also how it is looked up in a hierarchy."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _print_number(value: float) -> str:
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
