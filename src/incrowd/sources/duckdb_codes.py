"""How DuckDB turns a column's raw values into codes: one SQL expression per column.

The rules are those of `incrowd.sources`. Values are cast here and nowhere else, each cast guarded by a check of what
it would round, trim or guess: DuckDB on its own reads '7.5' as the whole number 8, '1_000' as 1000 and
'2024-02-29 13:00' as a date.

Lists of values become a small table that is joined. The join keeps every row, and what finds no partner is either
missing or outside. Where all values are expected to be in the list and a table can be scanned again if they are not,
a cast to an ENUM is faster: of texts that a file keeps in a dictionary, only the dictionary is cast. It gives up with
the first rows that hold a value that is not listed, each of which costs time in proportion to the list.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from incrowd.core.errors import ParameterError
from incrowd.domain import Bins, Categories, Coding, DateFormat, DateRange, Domain, IntegerRange, NumberFormat
from incrowd.histogram import smallest_type
from incrowd.sources.options import Options
from incrowd.sources.tally import beside_codes, missing_code, outside_code, value_codes

# Which kinds of column can hold values of which kinds of domain at all.
_POSSIBLE = {
    "text": {"text", "integer", "decimal", "boolean", "date", "null"},
    "integer": {"text", "integer", "decimal", "float", "null"},
    "decimal": {"text", "integer", "decimal", "float", "null"},
    "number": {"text", "integer", "decimal", "float", "null"},
    "boolean": {"text", "boolean", "integer", "float", "null"},
    "date": {"text", "date", "timestamp", "null"},
}
_WITHIN_INT32 = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT"}
# What texts are read as numbers and dates, whatever the engine.
INTEGER = r"\s*[+-]?\d+(\.0*)?\s*"
NUMBER = r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*|\s*[+-]?(inf|Inf|INF|infinity|Infinity)\s*"
DATE = r"\s*\d{4}-\d{1,2}-\d{1,2}([T ]00:00(:00(\.0*)?)?(Z|[+-]00(:?00)?)?)?\s*"
TRUE, FALSE = ("true", "t", "1"), ("false", "f", "0")
_PRINTED = {"integer": r"-?[0-9]{1,18}", "number": r"-?[0-9]{1,18}(\.[0-9]{1,18})?"}
_NARROW = (("UTINYINT", 0, 2**8 - 1), ("USMALLINT", 0, 2**16 - 1), ("SMALLINT", -(2**15), 2**15 - 1))
_INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)
_LONGEST_LIST = 2**13  # characters; with more it would take too long to find that nothing is in the list


@dataclass(frozen=True)
class Lookup:
    """A small table from values, printed as text, to codes; `type` is what the text is cast to."""

    values: Sequence[str]
    codes: np.ndarray
    type: str


@dataclass(frozen=True)
class Match:
    """How one column is coded: each row gets a key, a whole number, and each key stands for a code.

    In the expressions, the typed value and the lookup go by the names they were given.

    Attributes:
        value: the SQL expression of the raw column that gives a value of the domain's type, or null.
        quick: the SQL expression that gives the key of a declared value, and perhaps null for others.
        key: the SQL expression that gives every row's key; slower.
        keys: how many keys there are, from 0.
        lookup: the table to be joined on the value, if any.
        codes: the code of each key, where they are not the same.
        listed: the texts of the ENUM that the value is cast to, if any.
    """

    value: str
    quick: str
    key: str
    keys: int
    lookup: Lookup | None = None
    codes: np.ndarray | None = None
    listed: tuple[str, ...] | None = None


def column_kind(sql_type: str) -> str:
    """The kind of values that a DuckDB type holds, in the words of `SourceColumn`."""
    base = sql_type.upper().strip('"')
    if base.endswith("]"):
        return "other"
    base = base.split("(")[0].strip()
    if base in {"VARCHAR", "ENUM", "UUID"}:
        return "text"
    if re.fullmatch(r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)", base):
        return "integer"
    if base in {"FLOAT", "DOUBLE"}:
        return "float"
    if base in {"DECIMAL", "BOOLEAN", "DATE", "NULL"}:
        return base.lower()
    return "timestamp" if base.startswith("TIMESTAMP") else "other"


def domain_kind(domain: Domain) -> str:
    """The kind of values that a domain declares."""
    if isinstance(domain, Bins):
        return "number"
    if isinstance(domain, IntegerRange):
        return "integer"
    if isinstance(domain, DateRange):
        return "date"
    types = {type(value) for value in domain.values}
    for kind, allowed in (("text", {str}), ("boolean", {bool}), ("integer", {int}), ("decimal", {int, Decimal})):
        if types <= allowed:
            return kind
    if types == {dt.date}:
        return "date"
    raise ParameterError("The values of a domain are of several types.", code="parameter-type")


def can_hold(kind: str, domain: Domain) -> bool:
    """Whether a column of this kind can hold values of this domain at all."""
    return kind in _POSSIBLE[domain_kind(domain)]


def match(
    coding: Coding,
    column: str,
    sql_type: str,
    options: Options,
    *,
    named: str,
    lookup: str,
    exact: bool = False,
    strict: bool = False,
) -> Match:
    """How a column of this SQL name and type is coded; `can_hold` must be true of it.

    Args:
        coding: what is wanted.
        column: the column's name in the query.
        sql_type: its type.
        options: what is missing, and how numbers are written.
        named: what the typed value is called in the query.
        lookup: what the table to be joined, or the ENUM, is called there.
        exact: whether the keys must be the codes.
        strict: whether the query may fail at a value that is not declared.
    """
    domain, kind = coding.domain, column_kind(sql_type)
    wanted = domain_kind(domain)
    if kind == "text" and sql_type != "VARCHAR":
        column = f"CAST({column} AS VARCHAR)"
    codes, outside, absent = value_codes(coding), outside_code(coding), missing_code(coding)
    missing = is_absent(column, kind, wanted, options)
    otherwise = f"CASE WHEN {missing} THEN {absent} ELSE {outside} END"
    keys = len(coding.labels) + 2
    value, value_type = typed_value(column, sql_type, coding, options)
    if coding.codes:
        exact, strict = True, False
    beside = _beside(coding, column, kind, named, value_type)

    if isinstance(domain, Bins):
        low, high = _double(domain.cuts[0]), _double(domain.cuts[-1])
        cuts, run_codes = runs(domain.cuts, codes)
        tree = decision(named, list(map(_double, cuts)), list(map(str, run_codes)))
        key = f"CASE {beside}WHEN {named} BETWEEN {low} AND {high} THEN {tree} ELSE {otherwise} END"
        return Match(value, key, key, keys)
    narrow = None if exact else _narrow(coding, value, named, missing)
    if narrow is not None:
        return narrow
    listed = _listed(coding, value, sql_type, options, named, lookup) if strict else None
    if listed is not None:
        return listed
    if coding.recode is None and isinstance(domain, IntegerRange | DateRange):
        low, high = (f"CAST('{end}' AS {value_type})" for end in (domain.labels[0], domain.labels[-1]))
        inside = f"{named} BETWEEN {low} AND {high}"
        key = f"CASE {beside}WHEN {inside} THEN CAST({named} - {low} AS INTEGER) ELSE {otherwise} END"
        return Match(value, key, key, keys)
    quick, key = f"{lookup}.code", f"coalesce({lookup}.code, {otherwise})"
    if beside:
        quick, key = f"CASE {beside}ELSE {quick} END", f"CASE {beside}ELSE {key} END"
    return Match(value, quick, key, keys, Lookup(domain.labels, codes, value_type))


def _beside(coding: Coding, column: str, kind: str, named: str, value_type: str) -> str:
    """The first cases of a decision: what stands among numbers or dates and is none."""
    cases = []
    for (text, _), code in zip(coding.codes, beside_codes(coding), strict=True):
        if (number := number_among(coding, text)) is not None:
            cases.append(f"WHEN {named} = TRY_CAST({quoted(number)} AS {value_type}) THEN {code} ")
        elif kind == "text":
            cases.append(f"WHEN {column} = {quoted(text)} THEN {code} ")
    return "".join(cases)


def number_among(coding: Coding, text: str) -> str | None:
    """One of a coding's `codes` as a number in print, if it is one among numbers: it is found by its value."""
    printed = _PRINTED.get(domain_kind(coding.domain))
    return text if printed and re.fullmatch(printed, text) else None


def _narrow(coding: Coding, value: str, named: str, missing: str) -> Match | None:
    """Whole numbers and days as they are, in the narrowest type that holds the declared ones; the fastest way.

    Any number that fits the type is a key; two more stand for those that do not and for missing ones. Numbers outside
    the domain make groups of their own, so this is not for columns that are meant to hold them; nor for coarser codes,
    which make fewer groups.
    """
    domain = coding.domain
    if coding.recode is not None or coding.other is not None:
        return None
    if isinstance(domain, DateRange):
        first, last = 0, len(domain.labels) - 1
        number = f"CASE WHEN isfinite({named}) THEN {named} - CAST('{domain.labels[0]}' AS DATE) END"
    elif domain_kind(domain) == "integer":
        (first, last), number = ends(domain), named
    else:
        return None
    for type_, low, high in _NARROW:
        if low <= first and last <= high:
            size = high - low + 1
            declared = np.arange(first, last + 1) if not isinstance(domain, Categories) else domain.values
            codes = np.full(size + 2, outside_code(coding))
            codes[np.array(declared, dtype=np.int64) - low] = value_codes(coding)
            codes[-1] = missing_code(coding)
            quick = f"TRY_CAST({number} AS {type_})" + (f" - {low}::INTEGER" if low else "")
            key = f"coalesce(CAST({quick} AS INTEGER), CASE WHEN {missing} THEN {size + 1} ELSE {size} END)"
            return Match(value, quick, key, size + 2, None, codes.astype(smallest_type(int(codes.max()) + 1)))
    return None


def _listed(coding: Coding, value: str, sql_type: str, options: Options, named: str, lookup: str) -> Match | None:
    """Texts by their place in a list of what is declared or missing; not for coarser codes, which make fewer groups."""
    domain = coding.domain
    if sql_type != "VARCHAR" or domain_kind(domain) != "text" or coding.recode is not None or coding.other is not None:
        return None
    texts = (*domain.labels, *(text for text in dict.fromkeys(options.missing_values) if text not in domain.labels))
    if sum(map(len, texts)) > _LONGEST_LIST:
        return None
    codes = np.full(len(texts) + 1, missing_code(coding))  # the last is the null's
    codes[: len(domain.labels)] = value_codes(coding)
    # Only what cannot fail is worked out for a dictionary instead of row by row; the other cast fails where it must.
    quick = f"enum_code(TRY_CAST({named} AS {lookup}))"
    key = f"coalesce(CAST(enum_code(CAST({named} AS {lookup})) AS INTEGER), {len(texts)})"
    codes = codes.astype(smallest_type(int(codes.max()) + 1))
    return Match(value, quick, key, len(codes), None, codes, texts)


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def typed_value(column: str, sql_type: str, coding: Coding, options: Options) -> tuple[str, str]:
    """The SQL expression for a value of the domain's type, and that type."""
    domain, kind = coding.domain, column_kind(sql_type)
    wanted = domain_kind(domain)
    if wanted == "text":
        return (column if kind == "text" else f"CAST({column} AS VARCHAR)"), "VARCHAR"
    if wanted == "date":
        return day_of(column, sql_type, coding.format), "DATE"
    if wanted == "boolean":
        return _boolean(column, kind), "BOOLEAN"
    text = _plain_number(column, coding.format, options) if kind == "text" else column
    if wanted == "number":
        if kind == "text":
            return _guarded(text, NUMBER, "DOUBLE"), "DOUBLE"
        if kind == "float":
            # Comparisons of not-a-number cannot be trusted: where a file's statistics leave it out, so does the engine.
            return f"CASE WHEN NOT isnan({column}) THEN CAST({column} AS DOUBLE) END", "DOUBLE"
        # By way of text, a decimal becomes the floating-point number nearest to it, as it would from a text file.
        return f"CAST({f'CAST({column} AS VARCHAR)' if kind == 'decimal' else column} AS DOUBLE)", "DOUBLE"
    if wanted == "decimal":
        scale = scale_of(domain)
        printed = text if kind == "text" else f"CAST({column} AS VARCHAR)"
        pattern = rf"\s*[+-]?\d*(\.\d{{0,{scale}}}0*)?\s*"
        return _guarded(printed, pattern, f"DECIMAL(38,{scale})"), f"DECIMAL(38,{scale})"
    low, high = ends(domain)
    if kind == "integer" and _INT32[0] <= low and high <= _INT32[1] and sql_type in _WITHIN_INT32:
        return f"CAST({column} AS INTEGER)", "INTEGER"
    type_ = "BIGINT" if INT64[0] <= low and high <= INT64[1] else "HUGEINT"
    if kind == "text":
        return _guarded(text, INTEGER, type_), type_
    if kind in {"float", "decimal"}:
        return f"CASE WHEN {column} = trunc({column}) THEN TRY_CAST({column} AS {type_}) END", type_
    return f"TRY_CAST({column} AS {type_})", type_


def _plain_number(column: str, written: Any, options: Options) -> str:
    """The text of a number as it would be with a decimal point and nothing between thousands."""
    if not isinstance(written, NumberFormat):
        return f"translate({column}, ',.', '.,')" if options.decimal == "," else column
    signs, plain = map(quoted, written.translation)
    fits = f"regexp_full_match({column}, {quoted(written.pattern)})"
    return f"CASE WHEN {fits} THEN translate({column}, {signs}, {plain}) END"


def day_of(column: str, sql_type: str, written: Any) -> str:
    """The SQL expression for the day that a value of such a column says, or null."""
    kind = column_kind(sql_type)
    if kind == "text" and isinstance(written, DateFormat):
        day = "-".join(rf"\{group}" for group in written.groups)
        pattern = quoted(written.pattern)
        read = f"regexp_replace({column}, {pattern}, {quoted(day)})"
        return f"CASE WHEN regexp_full_match({column}, {pattern}) THEN TRY_CAST({read} AS DATE) END"
    if kind == "text":
        return _guarded(column, DATE, "DATE")
    day = f"CAST({column} AS DATE)"
    return f"CASE WHEN {column} = CAST({day} AS {sql_type}) THEN {day} END" if kind == "timestamp" else day


def _boolean(column: str, kind: str) -> str:
    if kind == "text":
        true, false = (", ".join(map(quoted, words)) for words in (TRUE, FALSE))
        return f"CASE WHEN lower({column}) IN ({true}) THEN true WHEN lower({column}) IN ({false}) THEN false END"
    if kind in {"integer", "float"}:
        return f"CASE WHEN {column} = 1 THEN true WHEN {column} = 0 THEN false END"
    return f"CAST({column} AS BOOLEAN)"


def _guarded(text: str, pattern: str, type_: str) -> str:
    return f"CASE WHEN regexp_full_match({text}, {quoted(pattern)}) THEN TRY_CAST({text} AS {type_}) END"


def is_absent(column: str, kind: str, wanted: str, options: Options) -> str:
    """The SQL expression for whether a column of this kind has no value, where a domain of that kind is declared."""
    absent = f"{column} IS NULL"
    if kind == "float":
        absent += f" OR isnan({column})"
    if kind == "text" and options.missing_values:
        absent += f" OR {column} IN ({', '.join(map(quoted, options.missing_values))})"
    if kind == "text" and wanted in {"integer", "decimal", "number"}:
        absent += f" OR lower(trim({column})) = 'nan'"
    return absent


def ends(domain: Domain) -> tuple[int, int]:
    """The least and the largest of declared whole numbers."""
    if isinstance(domain, IntegerRange):
        return domain.low, domain.high
    assert isinstance(domain, Categories)  # noqa: S101 - by its kind
    values = [int(str(value)) for value in domain.values]
    return min(values), max(values)


def scale_of(domain: Domain) -> int:
    """The most decimals that a declared decimal has."""
    assert isinstance(domain, Categories)  # noqa: S101 - by its kind
    exponents = [Decimal(str(value)).normalize().as_tuple().exponent for value in domain.values]
    return max(0, *(-int(exponent) for exponent in exponents))


def runs(cuts: Sequence[float], codes: np.ndarray) -> tuple[list[float], list[int]]:
    """Neighbouring bins with the same code become one: the cuts between the runs, and each run's code."""
    inner, run_codes = [], [int(codes[0])]
    for cut, code in zip(cuts[1:-1], codes[1:], strict=True):
        if code != run_codes[-1]:
            inner.append(cut)
            run_codes.append(int(code))
    return inner, run_codes


def decision(value: str, cuts: Sequence[str], results: Sequence[str]) -> str:
    """A balanced decision in SQL: result i for values from cuts[i − 1] (included) to cuts[i] (not included)."""
    if not cuts:
        return results[0]
    middle = len(cuts) // 2
    below = decision(value, cuts[:middle], results[: middle + 1])
    above = decision(value, cuts[middle + 1 :], results[middle + 1 :])
    return f"CASE WHEN {value} < {cuts[middle]} THEN {below} ELSE {above} END"


def _double(number: float) -> str:
    return f"CAST('{float(number)!r}' AS DOUBLE)"
