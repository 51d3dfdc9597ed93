"""What is written in a policy, made into typed values.

Every scalar of a policy file is text until the key it stands under says what it is. So ``no``, ``1e-5``, ``007`` and
``2020-01-01`` never turn into something else on the way: in a text attribute they are these very texts.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from numbers import Integral
from typing import Any, Literal, Never, TypeGuard, TypeVar

from incrowd.domain import Value

Kind = Literal["text", "integer", "number", "date", "boolean"]
T = TypeVar("T")

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_INFINITE = re.compile(r"[+-]?(\.?inf|infinity|∞)", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOST_DIGITS = 38  # as engines have them
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class FrozenMap(dict[str, T]):
    """A dictionary that cannot be changed."""

    def _refuse(self, *_: Any, **__: Any) -> Never:
        raise TypeError("a policy cannot be changed; make a new one")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[FrozenMap[T]], tuple[dict[str, T]]]:
        return type(self), (dict(self),)


def read_value(kind: Kind, raw: object) -> Value:
    """One value of an attribute. The ValueError says what is wanted and never repeats what was given."""
    match kind:
        case "text":
            return _text(raw)
        case "integer":
            return _integer(raw)
        case "number":
            return read_limited(raw)
        case "date":
            return _date(raw)
        case "boolean":
            return _boolean(raw)


def read_edge(kind: Kind, raw: object) -> Decimal | dt.date:
    """A cut point: a date for dates, otherwise a number, which may be infinite."""
    return _date(raw) if kind == "date" else read_limited(raw, infinite=True)


def read_limited(raw: object, *, infinite: bool = False) -> Decimal:
    """A number that a column may hold, or that such numbers are cut at."""
    number = read_number(raw, infinite=infinite)
    if number.is_finite():
        _require_few_digits(format(number, "f"))
    return number


def read_number(raw: object, *, infinite: bool = False) -> Decimal:
    """A decimal number in one canonical form: no exponent, no zeros at the end."""
    if isinstance(raw, bool) or not isinstance(raw, str | Integral | float | Decimal):
        raise ValueError("must be a number")
    text = str(raw).strip()
    if infinite and _INFINITE.fullmatch(text):
        return Decimal("-Infinity" if text.startswith("-") else "Infinity")
    if not _NUMBER.fullmatch(text):
        raise ValueError("must be a number")
    digits = format(Decimal(text), "f")
    number = Decimal(digits.rstrip("0").rstrip(".") if "." in digits else digits)
    return number if number else Decimal(0)  # there is no −0


def is_whole(number: Decimal) -> bool:
    """Whether it has no decimals; exact, as `number % 1` is not for long ones."""
    return number == number.to_integral_value()


def _require_few_digits(text: str) -> None:
    before, _, after = text.lstrip("+-").partition(".")
    if max(len(before), len(after)) > _MOST_DIGITS:
        raise ValueError(
            f"must have {_MOST_DIGITS} digits before the decimal point and {_MOST_DIGITS} after it at most"
        )


def _text(raw: object) -> str:
    if isinstance(raw, str):
        if any("\ud800" <= sign <= "\udfff" for sign in raw):
            raise ValueError("must be a text that can be written in UTF-8")
        return raw
    if _is_whole(raw):
        return str(raw)
    if isinstance(raw, dt.date):
        return raw.isoformat()
    raise ValueError("must be a text; put it in quotes")


def _integer(raw: object) -> int:
    if _is_whole(raw):
        return int(raw)
    if isinstance(raw, str) and _INTEGER.fullmatch(raw.strip()):
        _require_few_digits(raw.strip())
        return int(raw)
    raise ValueError("must be a whole number")


def _is_whole(raw: object) -> TypeGuard[int]:
    return isinstance(raw, Integral) and not isinstance(raw, bool)


def _date(raw: object) -> dt.date:
    if isinstance(raw, dt.date) and not isinstance(raw, dt.datetime):
        return raw
    if isinstance(raw, str) and _DATE.fullmatch(raw.strip()):
        try:
            return dt.date.fromisoformat(raw.strip())
        except ValueError:
            pass
    raise ValueError("must be a date written as year-month-day, 2026-01-31 say")


def _boolean(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in _TRUTH:
        return _TRUTH[raw.strip().lower()]
    raise ValueError("must be true or false")
