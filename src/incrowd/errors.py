"""Every error that incrowd raises on purpose.

::

    IncrowdError
    ├── InputError              exit 2: what was given cannot be used
    │   ├── ParameterError      a number or option outside its range
    │   ├── PolicyError         the policy file
    │   ├── HierarchyError      a hierarchy of values
    │   └── DataError           the table itself
    ├── GuaranteeError          exit 3: what was asked for cannot be promised
    │   ├── UnreachableError    no parameters within the limits reach it
    │   ├── BudgetError         it would overspend, or reuse a sample
    │   └── RelationError       promises about different neighbours would be mixed
    └── InternalError           exit 1: a bug; nothing was released

An error says what is wrong, where, and what to do, and carries a stable ``code`` that scripts may rely on and
that the documentation explains. Messages never contain values from the data: a count, a column and a line
number are enough to find them, and a log is not a place for personal data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CODES: Mapping[str, str] = {
    # parameters
    "parameter-range": "A number lies outside the range in which it has a meaning.",
    "parameter-type": "A parameter is of the wrong kind (text where a number is wanted, say).",
    "parameter-combination": "Parameters are each fine but do not go together.",
    # domains and policies
    "domain-empty": "A declared domain holds no value.",
    "domain-duplicate": "A declared domain lists a value more than once.",
    "domain-cuts": "Cut points are too few or not increasing.",
    # tables of counts
    "counts-invalid": "A table of groups and sensitive values is not made of whole numbers, or holds no record.",
    "predicate-invalid": "A sensitive predicate names no value, every value, or a value outside the domain.",
    "tree-invalid": "A tree of sensitive values does not hold each value once, or its levels are not nested.",
    # outputs
    "output-unwritable": "A result could not be written where it was asked for.",
    # guarantees
    "unreachable": "No parameters within the stated limits reach the promise asked for.",
    "relation-mismatch": "Promises about adding or removing a record and about replacing one were mixed.",
    "search-unfinished": "A numerical search ended without proof of its answer, so no answer is given.",
    "any-adversary": "No generalization protects against an adversary who may believe anything beforehand.",
    # bugs
    "internal": "incrowd contradicted itself. Nothing was released. Please report it.",
}


class IncrowdError(Exception):
    """The root of every deliberate error.

    Args:
        message: what is wrong, and where.
        code: the stable identifier, one of `CODES`.
        remedy: what the person can do about it.
        details: the numbers behind the message, for scripts (never values from the data).
    """

    exit_code = 1

    def __init__(self, message: str, *, code: str, remedy: str = "", details: Mapping[str, Any] | None = None) -> None:
        if code not in CODES:
            raise ValueError(f"unregistered error code {code!r}")
        super().__init__(message)
        self.message = message
        self.code = code
        self.remedy = remedy
        self.details = dict(details or {})

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """The one shape in which an error leaves the program, on every interface."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy, "details": self.details}


class InputError(IncrowdError):
    """What was given cannot be used."""

    exit_code = 2


class ParameterError(InputError):
    """A number or an option is outside its range."""


class PolicyError(InputError):
    """The policy file is wrong."""


class HierarchyError(InputError):
    """A hierarchy of values is wrong."""


class DataError(InputError):
    """The table cannot be read, or holds what the policy does not allow."""


class GuaranteeError(IncrowdError):
    """What was asked for cannot be promised."""

    exit_code = 3


class UnreachableError(GuaranteeError):
    """No parameters within the limits reach the promise."""


class BudgetError(GuaranteeError):
    """The release would overspend the budget, or reuse a sample."""


class RelationError(GuaranteeError):
    """Promises about different neighbour relations would be mixed."""


class InternalError(IncrowdError):
    """incrowd contradicted itself."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(
            message,
            code="internal",
            remedy="Nothing was released. Please report this as a bug.",
            details=details,
        )
