"""Checks on parameters, and rounding to the safe side.

A bound is only a bound if its last digit is right: δ, ε and k are rounded up, β and ρ down, each by more than
the error that the computation can have made.
"""

from __future__ import annotations

import math
import sys

from incrowd.core.errors import ParameterError
from incrowd.core.numbers import as_given

EPSILON_MACHINE = sys.float_info.epsilon
SMALLEST = math.ulp(0.0)


def round_up(value: float, relative_error: float = 0.0) -> float:
    """The value, raised by its possible relative error and at least one unit in the last place."""
    if math.isinf(value):
        return value
    return math.nextafter(value * (1.0 + relative_error), math.inf)


def round_down(value: float, relative_error: float = 0.0) -> float:
    """The non-negative value, lowered by its possible relative error and at least one unit in the last place."""
    return max(0.0, math.nextafter(value * (1.0 - relative_error), -math.inf))


def require_number(name: str, value: float) -> float:
    """A finite number, or a clear error."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(f"{name} must be a number.", code="parameter-type", details={"parameter": name})
    if not math.isfinite(value):
        raise _out_of_range(name, value, "a finite number")
    return float(value)


def require_between(
    name: str, value: float, low: float, high: float, *, open_low: bool = True, open_high: bool = True
) -> float:
    """A number in an interval whose ends are excluded unless said otherwise."""
    number = require_number(name, value)
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below):
        interval = f"{'(' if open_low else '['}{as_given(low)}, {as_given(high)}{')' if open_high else ']'}"
        raise _out_of_range(name, value, f"in {interval}")
    return number


def require_positive(name: str, value: float) -> float:
    """A finite number above zero."""
    number = require_number(name, value)
    if number <= 0:
        raise _out_of_range(name, value, "above 0")
    return number


def require_non_negative(name: str, value: float) -> float:
    """A finite number, zero or above."""
    number = require_number(name, value)
    if number < 0:
        raise _out_of_range(name, value, "0 or above")
    return number


def require_count(name: str, value: int, least: int = 1) -> int:
    """A whole number, `least` or above."""
    if isinstance(value, bool) or not math.isfinite(value) or int(value) != value:
        raise ParameterError(
            f"{name} must be a whole number, not {value!r}.",
            code="parameter-type",
            details={"parameter": name},
        )
    if value < least:
        raise _out_of_range(name, value, f"a whole number of {least} or more")
    return int(value)


def _out_of_range(name: str, value: float, wanted: str) -> ParameterError:
    return ParameterError(
        f"{name} must be {wanted}; it is {as_given(value)}.",
        code="parameter-range",
        details={"parameter": name, "value": str(value)},
    )
