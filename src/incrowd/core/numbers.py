"""Numbers for people: one way to print them, and one way to round them to the safe side."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 4) -> str:
    """A number for people: thousands apart, very small and very large ones as powers of ten."""
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        whole, _, rest = f"{value:.{digits}g}".partition("e")
        return f"{value:,.0f}" if rest or abs(value) >= 10**digits else f"{float(whole):,.{digits}g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    power = f"10{str(int(exponent)).translate(_RAISED)}"
    return power if mantissa == "1" else f"{mantissa} · {power}"


def as_given(value: float) -> str:
    """The same with the digits that a parameter is usually given with."""
    return number(value, 6)


def number_up(value: float, digits: int = 4) -> str:
    """The same, rounded up: what is said to be reached at most is."""
    return _rounded(value, digits, decimal.ROUND_CEILING)


def number_down(value: float, digits: int = 4) -> str:
    """The same, rounded down: what is said to be reached at least is."""
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def _rounded(value: float, digits: int, how: str) -> str:
    if isinstance(value, int) or not math.isfinite(value) or float(f"{value:.{digits - 1}e}") == value:
        return number(value, digits)  # 1e-5 is itself, though no floating-point number is exactly that
    return number(few_digits(value, digits, up=how == decimal.ROUND_CEILING), digits)


def few_digits(value: float | Decimal, digits: int, *, up: bool) -> float:
    """A number with so many digits, never below the value (or never above it).

    Rounding the decimal to the nearest floating-point number keeps that order.
    """
    way = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    with decimal.localcontext(decimal.Context(prec=digits, rounding=way)):
        return float(+Decimal(value))


def grown(epsilon: float, digits: int) -> Decimal:
    """e^ε with so many digits, rounded up: a sentence may not promise more than the numbers do."""
    with decimal.localcontext(decimal.Context(prec=30)):
        exact = Decimal(epsilon).exp()
        above = exact + exact * Decimal("1e-25") if epsilon else exact
    with decimal.localcontext(decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)):
        return +above


def grown_float(epsilon: float) -> float:
    """e^ε as a floating-point number, rounded up; from 700 on that of 700, since no bound says anything there."""
    return math.nextafter(float(grown(min(epsilon, 700.0), 17)), math.inf) if epsilon else 1.0


def exactly(value: float | Fraction) -> str:
    """A number with all its digits, as a limit must be written."""
    return repr(float(value)).removesuffix(".0")


def percent(share: float) -> str:
    """A share for people."""
    if 0 < share < 0.001:
        return "< 0.1%"
    if 0.999 < share < 1:
        return "> 99.9%"
    return f"{share:,.0%}" if share in (0, 1) or share >= 10 else f"{share:.1%}"


def percent_up(share: float) -> str:
    """A share for people, rounded up, but never to more than all; smaller ones with more digits."""
    unit = _unit(share)
    return f"{min(100.0, math.ceil(math.nextafter(share * (1 + 1e-12), math.inf) * 100 / unit) * unit):.4g}%"


def percent_down(share: float) -> str:
    """A share for people, rounded down. Its error is that of a number near 1."""
    unit = _unit(share)
    return f"{max(0.0, math.floor((share - 1e-12) * 100 / unit) * unit):.4g}%"


def _unit(share: float) -> float:
    return 0.1 if share >= 0.1 else 0.01 if share >= 0.001 else 0.0001


def per_mille(share: float) -> str:
    """A score, of 1000."""
    return f"{1000 * share:.0f}"


def count(size: int, one: str, many: str) -> str:
    """So many of something."""
    return f"{size:,} {one if size == 1 else many}"
