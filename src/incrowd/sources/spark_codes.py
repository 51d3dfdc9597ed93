"""How Spark turns a column's raw values into codes: one expression per column, and perhaps a small table to join.

The rules are those of `incrowd.sources`, whatever the session's settings: ANSI mode or not, any time zone, any
collation. Numbers are compared in the column's own type, into which the declared ones are put here on the driver,
exactly or not at all: Spark on its own casts a floating-point 2⁶³ to the whole number 2⁶³ − 1.

Expressions are texts in Spark's SQL: Java takes a whole one in a single message, where it takes one or two for every
part of an expression that is built of columns.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types

from incrowd.core.errors import ParameterError
from incrowd.domain import Bins, Coding, DateFormat, DateRange, Domain, IntegerRange, NumberFormat
from incrowd.sources.duckdb_codes import (
    DATE,
    FALSE,
    INT64,
    INTEGER,
    NUMBER,
    TRUE,
    domain_kind,
    ends,
    number_among,
    runs,
    scale_of,
)
from incrowd.sources.options import Options
from incrowd.sources.tally import beside_codes, missing_code, outside_code, value_codes

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
_TEXT = f"STRING COLLATE {_BINARY}"
_DIGITS = 38
_MICROSECONDS_A_DAY = 86_400_000_000
_SQL_NAMES = {pa.int64(): "BIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.date32(): "DATE"}


@dataclass(frozen=True)
class SparkMatch:
    """How one column is coded.

    Attributes:
        value: the expression of the raw column that gives a value in the type in which it is compared, or null.
        key: the expression of raw column, value and lookup that gives every row's code.
        keys: how many codes there are, those of faults included.
        lookup: the table to be joined on the value, if any: columns `value` and `code`.
    """

    value: str
    key: str
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
    raw = plain_texts(column, type_)
    codes = value_codes(coding)
    missing = is_absent(raw, kind, wanted, options)
    otherwise = f"CASE WHEN {missing} THEN {missing_code(coding)} ELSE {outside_code(coding)} END"
    keys = len(coding.labels) + 2
    typed = typed_value(raw, type_, coding, options)
    beside = _beside(coding, raw, type_, value)

    if isinstance(domain, Bins):
        lowest, highest = (_constant(float(cut), "DOUBLE") for cut in (domain.cuts[0], domain.cuts[-1]))
        bins = _tree(value, *runs(domain.cuts, codes))
        key = f"CASE {beside}WHEN {value} >= {lowest} AND {value} <= {highest} THEN {bins} ELSE {otherwise} END"
        return SparkMatch(typed, key, keys)
    if wanted == "boolean":
        truths = zip(domain.values, codes.tolist(), strict=True)  # type: ignore[union-attr]
        cases = " ".join(f"WHEN {value} = {bool(truth)} THEN {its_code}" for truth, its_code in truths)
        return SparkMatch(typed, f"CASE {cases} ELSE {otherwise} END", keys)
    first = _first(domain, kind)
    if first is not None:
        days = isinstance(domain, DateRange)
        last = domain.last if isinstance(domain, DateRange) else ends(domain)[1]
        begin, end = (_constant(edge, "DATE" if days else "BIGINT") for edge in (first, last))
        steps = f"CAST({f'date_diff({value}, {begin})' if days else f'{value} - {begin}'} AS INT)"
        place = steps if coding.recode is None else f"get({_array(codes)}, {steps})"
        key = f"CASE {beside}WHEN {value} >= {begin} AND {value} <= {end} THEN {place} ELSE {otherwise} END"
        return SparkMatch(typed, key, keys)
    entries = _entries(domain, type_)
    possible = [i for i, entry in enumerate(entries) if entry is not None]
    lookup = pa.table(
        {
            "value": pa.array([entries[i] for i in possible], _arrow_type(domain, type_)),
            "code": pa.array(codes[possible].astype(np.int32)),
        }
    )
    key = f"coalesce({code}, {otherwise})"
    return SparkMatch(typed, f"CASE {beside}ELSE {key} END" if beside else key, keys, lookup)


def _beside(coding: Coding, raw: str, type_: types.DataType, value: str) -> str:
    """The first cases of a decision: what stands among numbers or dates and is none."""
    cases, kind = [], column_kind(type_)
    whole = f"DECIMAL({_DIGITS},0)" if isinstance(type_, types.DecimalType) else _sql_type(coding.domain)
    for (text, _), code in zip(coding.codes, beside_codes(coding), strict=True):
        if (number := number_among(coding, text)) is not None:
            compared = "DOUBLE" if kind == "float" or isinstance(coding.domain, Bins) else whole
            cases.append(f"WHEN {value} = {_constant(Decimal(number), compared)} THEN {code} ")
        elif kind == "text":
            cases.append(f"WHEN {raw} = {literal_text(text)} THEN {code} ")
    return "".join(cases)


def decision(value: str, lookup: pa.Table) -> str:
    """What a short lookup says of a value, or null."""
    type_, (entries, codes) = lookup.column(0).type, (lookup.column(i).to_pylist() for i in range(2))
    if pa.types.is_decimal(type_):
        constants = [_constant(entry, f"DECIMAL({type_.precision}, {type_.scale})") for entry in entries]
    elif pa.types.is_string(type_):
        constants = [literal_text(entry) for entry in entries]
    else:
        constants = [_constant(entry, _SQL_NAMES[type_]) for entry in entries]
    cases = (f"WHEN {value} = {constant} THEN {code}" for constant, code in zip(constants, codes, strict=True))
    return f"CASE {' '.join(cases)} END" if entries else "CAST(NULL AS INT)"


def plain_texts(column: str, type_: types.DataType) -> str:
    """Texts as the bytes they are, under no collation that takes different ones for equal."""
    bounded = isinstance(type_, types.CharType | types.VarcharType)
    return f"CAST({column} AS {_TEXT})" if bounded or getattr(type_, "collation", _BINARY) != _BINARY else column


def literal_text(text: str) -> str:
    """A constant text; as bytes, which no setting reads in another way."""
    return f"CAST(X'{text.encode().hex()}' AS {_TEXT})"


def _texts(texts: Iterable[str]) -> str:
    return f"({', '.join(map(literal_text, texts))})"


def _constant(value: float | Decimal | dt.date, sql_type: str) -> str:
    """A constant of another type, by way of text, which tells each value of it from every other."""
    return f"CAST('{value}' AS {sql_type})"


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


def typed_value(raw: str, type_: types.DataType, coding: Coding, options: Options) -> str:
    """The value in the type of `_arrow_type`, or null where it can be none of the domain's."""
    domain, kind = coding.domain, column_kind(type_)
    wanted = domain_kind(domain)
    if kind == "null":
        named = {"text": _TEXT, "boolean": "BOOLEAN"}
        return f"CAST(NULL AS {named.get(wanted) or _sql_type(domain)})"
    if wanted == "text":
        # Unlike a plain cast, this prints decimals without exponents in every mode.
        return raw if kind == "text" else f"try_cast({raw} AS {_TEXT})"
    if wanted == "date":
        return day_of(raw, type_, coding.format)
    if wanted == "boolean":
        if kind == "text":
            true, false = (f"lower({raw}) IN {_texts(words)}" for words in (TRUE, FALSE))
            return f"CASE WHEN {true} THEN true WHEN {false} THEN false END"
        return raw if kind == "boolean" else f"CASE WHEN {raw} = 1 THEN true WHEN {raw} = 0 THEN false END"
    if kind == "text":
        return _parsed(_plain_number(raw, coding.format, options), domain)
    if wanted == "number":
        number = f"CAST({raw} AS DOUBLE)"
        return f"CASE WHEN NOT isnan({number}) THEN {number} END" if kind == "float" else number
    return f"CAST({raw} AS BIGINT)" if kind == "integer" else raw


def _parsed(text: str, domain: Domain) -> str:
    """The number that a text spells, or null."""
    wanted = domain_kind(domain)
    if wanted == "number":
        pattern = f"({NUMBER})"
    elif wanted == "integer":
        pattern = INTEGER.replace(r"[+-]?\d+", r"([+-]?\d+)")
    else:
        pattern = rf"(\s*[+-]?\d*(?:\.\d{{0,{scale_of(domain)}}}0*)?\s*)"
    return f"try_cast({extracted(text, pattern)} AS {_sql_type(domain)})"


def _plain_number(raw: str, written: Any, options: Options) -> str:
    """The text of a number as it would be with a decimal point and nothing between thousands."""
    if not isinstance(written, NumberFormat):
        return f"translate({raw}, {literal_text(',.')}, {literal_text('.,')})" if options.decimal == "," else raw
    signs, plain = map(literal_text, written.translation)
    return f"translate({extracted(raw, f'({written.pattern})')}, {signs}, {plain})"


def day_of(raw: str, type_: types.DataType, written: Any) -> str:
    """The expression for the day that a value of such a column says, or null."""
    kind = column_kind(type_)
    if kind == "date":
        return raw
    if kind == "text" and isinstance(written, DateFormat):
        parts = (extracted(raw, written.pattern, group) for group in written.groups)
        return f"try_cast(concat_ws('-', {', '.join(parts)}) AS DATE)"
    if kind == "text":
        day = r"\d{4}-\d{1,2}-\d{1,2}"
        return f"try_cast({extracted(raw, DATE.replace(day, f'({day})'))} AS DATE)"
    if isinstance(type_, types.TimestampNTZType):
        found = f"CAST({raw} AS DATE)"
        return f"CASE WHEN CAST({found} AS TIMESTAMP_NTZ) = {raw} THEN {found} END"
    # By way of the moment itself: a cast would look at the session's time zone.
    moment, a_day = f"unix_micros({raw})", f"{_MICROSECONDS_A_DAY}L"
    return f"CASE WHEN {moment} % {a_day} = 0 THEN date_from_unix_date(CAST({moment} DIV {a_day} AS INT)) END"


def extracted(text: str, pattern: str, group: int = 1) -> str:
    """What a group holds if the whole text is of this form, else the empty text."""
    whole = rf"\A(?:{pattern})\z".replace(r"\s", r"[\t\n\f\r ]")
    return f"regexp_extract({text}, {literal_text(whole)}, {group})"


def is_absent(raw: str, kind: str, wanted: str, options: Options) -> str:
    """Whether a column of this kind has no value, where a domain of that kind is declared."""
    absent = [f"{raw} IS NULL"]
    if kind == "float":
        absent.append(f"isnan({raw})")
    if kind == "text" and options.missing_values:
        absent.append(f"{raw} IN {_texts(options.missing_values)}")
    if kind == "text" and wanted in {"integer", "decimal", "number"}:
        absent.append(f"lower(trim({raw})) = {literal_text('nan')}")
    return " OR ".join(absent)


def _sql_type(domain: Domain) -> str:
    """The type in which a text's value is compared."""
    wanted = domain_kind(domain)
    if wanted == "integer":
        return "BIGINT" if _within_64_bits(domain) else f"DECIMAL({_DIGITS},0)"
    if wanted == "decimal":
        return f"DECIMAL({_DIGITS},{scale_of(domain)})"
    return "DOUBLE" if wanted == "number" else "DATE"


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


def _array(codes: np.ndarray) -> str:
    """The codes as a constant: one text, which the planner takes apart once, instead of one literal for each."""
    return f"CAST(split({literal_text(','.join(map(str, codes.tolist())))}, {literal_text(',')}) AS ARRAY<INT>)"


def _tree(value: str, cuts: Sequence[float], codes: Sequence[int]) -> str:
    """A balanced decision: code i for values from cuts[i − 1] (included) to cuts[i] (not included)."""
    if not cuts:
        return str(codes[0])
    middle = len(cuts) // 2
    below, above = (
        _tree(value, cuts[:middle], codes[: middle + 1]),
        _tree(value, cuts[middle + 1 :], codes[middle + 1 :]),
    )
    return f"CASE WHEN {value} < {_constant(float(cuts[middle]), 'DOUBLE')} THEN {below} ELSE {above} END"
