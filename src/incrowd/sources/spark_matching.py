"""How Spark turns a column's raw values into codes: one expression per column, and perhaps a small table to join.

The rules are those of `incrowd.sources`, whatever the session's settings: ANSI mode or not, any time zone, any
collation. Numbers are compared in the column's own type, into which the declared ones are put here on the driver,
exactly or not at all: Spark on its own casts a floating-point 2⁶³ to the whole number 2⁶³ − 1.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql import types

from incrowd.domain import Bins, Coding, DateRange, Domain, IntegerRange
from incrowd.errors import ParameterError
from incrowd.sources.matching import DATE, FALSE, INT64, INTEGER, NUMBER, TRUE, domain_kind, ends, runs, scale_of
from incrowd.sources.options import Options
from incrowd.sources.tally import missing_code, outside_code, value_codes

if TYPE_CHECKING:
    from pyspark.sql import Column

_KINDS = (
    (types.StringType, "text"),
    (types.CharType, "text"),
    (types.VarcharType, "text"),
    (types.IntegralType, "integer"),
    (types.DecimalType, "decimal"),
    (types.FractionalType, "float"),
    (types.BooleanType, "boolean"),
    (types.DateType, "date"),
    (types.TimestampType, "timestamp"),
    (types.TimestampNTZType, "timestamp"),
    (types.NullType, "null"),
)
_BINARY = "UTF8_BINARY"
_DIGITS = 38
_MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True)
class SparkMatch:
    """How one column is coded.

    Attributes:
        value: the expression of the raw column that gives a value in the type in which it is compared, or null.
        key: the expression of raw column, value and lookup that gives every row's code.
        keys: how many codes there are, those of faults included.
        lookup: the table to be joined on the value, if any: columns `value` and `code`.
    """

    value: Column
    key: Column
    keys: int
    lookup: pa.Table | None = None


def column_kind(type_: types.DataType) -> str:
    """The kind of values that a Spark type holds, in the words of `SourceColumn`."""
    return next((kind for class_, kind in _KINDS if isinstance(type_, class_)), "other")


def match(coding: Coding, type_: types.DataType, options: Options, *, column: str, value: str, code: str) -> SparkMatch:
    """How a column of this type is coded; `can_hold` must be true of it.

    Args:
        coding: what is wanted.
        type_: the column's type.
        options: what is missing, and how numbers are written.
        column: the column's name.
        value: what its value is called, once it is worked out.
        code: what the code in the joined table is called.
    """
    domain, kind = coding.domain, column_kind(type_)
    wanted = domain_kind(domain)
    raw = plain_texts(fn.col(column), type_)
    codes, named = value_codes(coding), fn.col(value)
    missing = _missing(raw, kind, wanted, options)
    otherwise = fn.when(missing, fn.lit(missing_code(coding))).otherwise(fn.lit(outside_code(coding)))
    keys = len(coding.labels) + 2
    typed = _value(raw, type_, domain, options)

    if isinstance(domain, Bins):
        inside = (named >= fn.lit(float(domain.cuts[0]))) & (named <= fn.lit(float(domain.cuts[-1])))
        return SparkMatch(typed, fn.when(inside, _tree(named, *runs(domain.cuts, codes))).otherwise(otherwise), keys)
    if wanted == "boolean":
        truths = {v: int(c) for v, c in zip(domain.values, codes, strict=True)}  # type: ignore[union-attr]
        key = otherwise
        for truth, its_code in truths.items():
            key = fn.when(named == fn.lit(bool(truth)), fn.lit(its_code)).otherwise(key)
        return SparkMatch(typed, key, keys)
    first = _first(domain, kind)
    if first is not None:
        last = domain.last if isinstance(domain, DateRange) else ends(domain)[1]
        steps = (
            fn.date_diff(named, literal(first)) if isinstance(domain, DateRange) else named - fn.lit(first).cast("long")
        )
        place = steps.cast("int") if coding.recode is None else fn.get(_array(codes), steps.cast("int"))
        inside = (named >= literal(first)) & (named <= literal(last))
        return SparkMatch(typed, fn.when(inside, place).otherwise(otherwise), keys)
    entries = _entries(domain, type_)
    possible = [i for i, entry in enumerate(entries) if entry is not None]
    lookup = pa.table(
        {
            "value": pa.array([entries[i] for i in possible], _arrow_type(domain, type_)),
            "code": pa.array(codes[possible].astype(np.int32)),
        }
    )
    return SparkMatch(typed, fn.coalesce(fn.col(code), otherwise), keys, lookup)


def literal(value: Any) -> Column:
    """A constant; dates by way of text, because Python and Java print early ones differently."""
    return fn.lit(value.isoformat()).cast("date") if isinstance(value, dt.date) else fn.lit(value)


def plain_texts(column: Column, type_: types.DataType) -> Column:
    """Texts as the bytes they are, under no collation that takes different ones for equal."""
    if isinstance(type_, types.CharType | types.VarcharType):
        return column.cast("string")
    collation = getattr(type_, "collation", _BINARY)
    return column if collation == _BINARY else fn.collate(column, _BINARY)


def _first(domain: Domain, kind: str) -> int | dt.date | None:
    """Where a range begins, if its codes are differences: of days, or of whole numbers in whole-number columns."""
    if isinstance(domain, DateRange):
        return domain.first
    if isinstance(domain, IntegerRange) and kind in {"integer", "text"} and _within_64_bits(domain):
        return domain.low
    return None


def _within_64_bits(domain: Domain) -> bool:
    low, high = ends(domain)
    return INT64[0] <= low and high <= INT64[1]


def _value(raw: Column, type_: types.DataType, domain: Domain, options: Options) -> Column:
    """The value in the type of `_arrow_type`, or null where it can be none of the domain's."""
    kind, wanted = column_kind(type_), domain_kind(domain)
    if kind == "null":
        return fn.lit(None).cast(
            "string" if wanted == "text" else "boolean" if wanted == "boolean" else _sql_type(domain)
        )
    if wanted == "text":
        # Unlike a plain cast, this prints decimals without exponents in every mode.
        return raw if kind == "text" else raw.try_cast("string")
    if wanted == "date":
        return _day(raw, type_)
    if wanted == "boolean":
        if kind == "text":
            lower = fn.lower(raw)
            return fn.when(lower.isin(*TRUE), fn.lit(True)).when(lower.isin(*FALSE), fn.lit(False))
        return raw if kind == "boolean" else fn.when(raw == 1, fn.lit(True)).when(raw == 0, fn.lit(False))
    if kind == "text":
        text = fn.translate(raw, ",.", ".,") if options.decimal == "," else raw
        return _parsed(text, domain)
    if wanted == "number":
        number = raw.cast("double")
        return fn.when(~fn.isnan(number), number) if kind == "float" else number
    return raw.cast("long") if kind == "integer" else raw


def _parsed(text: Column, domain: Domain) -> Column:
    """The number that a text spells, or null."""
    wanted = domain_kind(domain)
    if wanted == "number":
        return _extracted(text, f"({NUMBER})").try_cast("double")
    if wanted == "integer":
        return _extracted(text, INTEGER.replace(r"[+-]?\d+", r"([+-]?\d+)")).try_cast(_sql_type(domain))
    scale = scale_of(domain)
    return _extracted(text, rf"(\s*[+-]?\d*(?:\.\d{{0,{scale}}}0*)?\s*)").try_cast(_sql_type(domain))


def _day(raw: Column, type_: types.DataType) -> Column:
    kind = column_kind(type_)
    if kind == "date":
        return raw
    if kind == "text":
        day = r"\d{4}-\d{1,2}-\d{1,2}"
        return _extracted(raw, DATE.replace(day, f"({day})")).try_cast("date")
    if isinstance(type_, types.TimestampNTZType):
        day_of = raw.cast("date")
        return fn.when(day_of.cast("timestamp_ntz") == raw, day_of)
    # By way of the moment itself: a cast would look at the session's time zone.
    moment = fn.unix_micros(raw)
    midnight = moment % fn.lit(_MICROSECONDS_A_DAY) == 0
    return fn.when(midnight, fn.date_from_unix_date((moment / fn.lit(_MICROSECONDS_A_DAY)).cast("int")))


def _extracted(text: Column, pattern: str) -> Column:
    """What the first group holds if the whole text is of this form, else the empty text."""
    return fn.regexp_extract(text, rf"\A(?:{pattern})\z".replace(r"\s", r"[\t\n\f\r ]"), 1)


def _missing(raw: Column, kind: str, wanted: str, options: Options) -> Column:
    absent = raw.isNull()
    if kind == "float":
        absent |= fn.isnan(raw)
    if kind == "text" and options.missing_values:
        absent |= raw.isin(*options.missing_values)
    if kind == "text" and wanted in {"integer", "decimal", "number"}:
        absent |= fn.lower(fn.trim(raw)) == "nan"
    return absent


def _sql_type(domain: Domain) -> str:
    """The type in which a text's value is compared."""
    wanted = domain_kind(domain)
    if wanted == "integer":
        return "long" if _within_64_bits(domain) else f"decimal({_DIGITS},0)"
    if wanted == "decimal":
        return f"decimal({_DIGITS},{scale_of(domain)})"
    return "double" if wanted == "number" else "date"


def _arrow_type(domain: Domain, type_: types.DataType) -> pa.DataType:
    """The type of the values of a lookup."""
    kind, wanted = column_kind(type_), domain_kind(domain)
    if wanted == "text":
        return pa.string()
    if wanted == "date":
        return pa.date32()
    if kind == "integer":
        return pa.int64()
    if isinstance(type_, types.DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    if kind == "float":
        return pa.float32() if isinstance(type_, types.FloatType) else pa.float64()
    if wanted == "integer" and _within_64_bits(domain):
        return pa.int64()
    return pa.decimal128(_DIGITS, scale_of(domain) if wanted == "decimal" else 0)


def _entries(domain: Domain, type_: types.DataType) -> list[Any]:
    """Each declared value in the type of `_arrow_type`; None for one that no value of that type can be equal to."""
    kind, wanted, arrow = column_kind(type_), domain_kind(domain), _arrow_type(domain, type_)
    if wanted == "text":
        return list(domain.labels)
    if wanted == "date":
        return [dt.date.fromisoformat(label) for label in domain.labels]
    numbers = [Decimal(label) for label in domain.labels]
    put: Callable[[Decimal], Any]
    if pa.types.is_integer(arrow):
        put = _whole
    elif pa.types.is_floating(arrow):
        float_type = np.float32 if pa.types.is_float32(arrow) else np.float64
        put = lambda number: _floating(number, float_type, exactly=wanted == "integer")  # noqa: E731
    else:
        put = lambda number: _decimal(number, arrow.precision, arrow.scale)  # noqa: E731
    entries = [put(number) for number in numbers]
    if kind == "text" and None in entries:
        raise ParameterError(
            f"A declared number has more than {_DIGITS} digits.",
            code="parameter-range",
            remedy="Declare such values as texts.",
        )
    return entries


def _whole(number: Decimal) -> int | None:
    return int(number) if number == number.to_integral_value() and INT64[0] <= number <= INT64[1] else None


def _floating(number: Decimal, type_: type[np.floating[Any]], *, exactly: bool) -> float | None:
    """The floating-point number that prints as this one or, if `exactly`, that is it."""
    try:
        nearest = type_(str(number))
    except OverflowError:
        return None
    if not np.isfinite(nearest):
        return None
    equal = Decimal(float(nearest)) == number if exactly else Decimal(np.format_float_positional(nearest)) == number
    return float(nearest) if equal else None


def _decimal(number: Decimal, precision: int, scale: int) -> Decimal | None:
    unscaled = Fraction(number) * 10**scale
    if unscaled.denominator != 1 or abs(unscaled) >= 10**precision:
        return None
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(int(unscaled))))), -scale))


def _array(codes: np.ndarray) -> Column:
    """The codes as a constant: one text, which the planner takes apart once, instead of one literal for each."""
    return fn.split(fn.lit(",".join(map(str, codes.tolist()))), ",").cast("array<int>")


def _tree(value: Column, cuts: Sequence[float], codes: Sequence[int]) -> Column:
    """A balanced decision: code i for values from cuts[i − 1] (included) to cuts[i] (not included)."""
    if not cuts:
        return fn.lit(codes[0])
    middle = len(cuts) // 2
    below, above = (
        _tree(value, cuts[:middle], codes[: middle + 1]),
        _tree(value, cuts[middle + 1 :], codes[middle + 1 :]),
    )
    return fn.when(value < fn.lit(float(cuts[middle])), below).otherwise(above)
