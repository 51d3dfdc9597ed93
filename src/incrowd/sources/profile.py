"""What a table looks like: how its values are written, how many there are, which of them many records share.

A profile is made for drafting a policy, before any domain is declared. Of texts it holds only those that at least
`COMMON` records share: rarer ones are counted inside the engine and never leave it. Of numbers and dates it holds
the ends, which whoever uses it must round.
"""

# ruff: noqa: S608 - queries are put together here from names of our own and quoted literals

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from incrowd.core.errors import DataError
from incrowd.sources import Source, SourceColumn
from incrowd.sources.duckdb_codes import quoted

if TYPE_CHECKING:
    import duckdb

COMMON = 10
"""How many records must share a text for it to be told."""

MOST_VALUES = 1000  # of a column, that are told

_COUNTED = 50_000  # distinct values up to which a column's values are counted one by one
_BLANKS = " \t\r\n\f"  # what `duckdb_codes` ignores around a number
_MISSING = ("", "?", "-", "--", ".", "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null", "(null)", "\\n")
# How a value may be written, the first that fits. Numbers and dates are what `duckdb_codes` accepts as such.
_WRITINGS = {
    "digits": r"0\d+|\d{19,}",
    "natural": r"\d{1,18}",
    "integer": r"[+-]?\d{1,18}(\.0*)?",
    "number": r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?|[+-]?(inf|infinity)",
    "thousands": r"[+-]?[1-9]\d{0,2}((\.\d{3})+,\d*|(\.\d{3}){2,}|(,\d{3})+\.\d*|(,\d{3}){2,})",
    "comma": r"[+-]?\d*,\d+",
    "date": r"(18|19|20|21)\d\d-\d{1,2}-\d{1,2}([t ]00:00(:00(\.0*)?)?)?",
    "moment": r"\d{4}-\d{1,2}-\d{1,2}[t ]\d{1,2}:\d\d.*",
    "local date": r"\d{1,2}[./-]\d{1,2}[./-](\d\d|\d{4})|\d{4}[./]\d{1,2}[./]\d{1,2}",
    "mark": r"[a-z]{1,4}[.-]?\d[a-z\d.-]*",
}
# What may be a whole number with a sign between its thousands, or a number with three decimals.
_GROUPED = r"[+-]?[1-9]\d{0,2}[.,]\d{3}"


@dataclass(frozen=True)
class Writing:
    """The values of a column that are written in one way.

    Attributes:
        records: how many records hold one.
        values: how many different ones there are; in a column that is not counted, how many records again.
        common: how many different ones at least `COMMON` records share.
        common_records: how many records hold one of these.
        lengths: the lengths of the shortest and the longest.
        letters: how long all are together, record by record.
        signed: how many records hold one with a point or a comma in it.
        grouped: how many of these hold one in which it may stand between thousands: 1.234 or 1,234.
    """

    records: int
    values: int
    common: int
    common_records: int
    lengths: tuple[int, int]
    letters: int
    signed: int
    grouped: int


@dataclass(frozen=True)
class LocalDates:
    """Dates that are not written as 2026-01-31 is.

    Attributes:
        signs: the signs that stand between the parts.
        most: the greatest number that is the first part, the second and the third.
        years: the least and the greatest year, of four digits; None if no part is one.
    """

    signs: frozenset[str]
    most: tuple[int, int, int]
    years: tuple[int, int] | None


@dataclass(frozen=True)
class ColumnProfile:
    """What a column holds.

    Attributes:
        name: the column's name, exactly.
        kind: what its type can hold, in the words of `SourceColumn`.
        records: how many records the table has.
        missing: how many of them hold nothing, or a text that usually means so.
        absent: these texts, as they are written, with the number of records.
        distinct: how many different values there are, missing ones apart; nearly so if `counted` is false.
        counted: whether its values were counted one by one.
        writings: how the values are written: flag (true, f), binary (0 and 1), digits (with leading zeros, or more
            than a whole number has), natural (digits), integer (with a sign, or 7.0), number, thousands (1.234,5 and
            1,234.5, which nothing reads as numbers), comma (a decimal comma), date, moment, local date (31.1.2026),
            mark (letters, then digits: J45.0) or text.
        common: the texts that at least `COMMON` records share, with the number of these, at most `MOST_VALUES`.
        blanks: how many records hold a value with blanks around it.
        numbers: the numbers, to three digits, and how many records hold each; infinite ones left out.
        ends: the least and the greatest number.
        commas: the numbers with a decimal comma, likewise.
        comma_ends: the least and the greatest of these.
        days: the first and the last date.
        local: what local dates are like, if there are any.
    """

    name: str
    kind: str
    records: int
    missing: int
    absent: tuple[tuple[str, int], ...]
    distinct: int
    counted: bool
    writings: dict[str, Writing]
    common: tuple[tuple[str, int], ...]
    blanks: int
    numbers: tuple[tuple[float, int], ...]
    ends: tuple[float, float] | None
    days: tuple[dt.date, dt.date] | None
    local: LocalDates | None = None
    commas: tuple[tuple[float, int], ...] = ()
    comma_ends: tuple[float, float] | None = None

    @property
    def present(self) -> int:
        """How many records hold a value."""
        return self.records - self.missing

    @property
    def spellings(self) -> tuple[str, ...]:
        """The texts that usually mean that there is no value."""
        return tuple(text for text, _ in self.absent)

    def written(self, *ways: str) -> int:
        """How many records hold a value written in one of these ways."""
        return sum(self.writings[way].records for way in ways if way in self.writings)

    @property
    def common_values(self) -> int:
        """How many different values at least `COMMON` records share."""
        return sum(writing.common for writing in self.writings.values())

    @property
    def rare_records(self) -> int:
        """How many records hold a value that fewer than `COMMON` share."""
        return self.present - sum(writing.common_records for writing in self.writings.values())


@dataclass(frozen=True)
class TableProfile:
    """What a table holds.

    Attributes:
        rows: how many records were looked at.
        columns: what they hold.
        drawn_from: how many records there are, if only some of them were looked at.
    """

    rows: int
    columns: tuple[ColumnProfile, ...]
    drawn_from: int | None = None


def profile(source: Source, progress: Callable[[float], None] | None = None) -> TableProfile:
    """Looks at a table, in at most three scans of it and in bounded memory.

    The first scan estimates how many different values each column has. Where they are not too many they are counted,
    in the second, and judged once each; the values of other columns are judged record by record, in the third.

    Raises:
        DataError: the table cannot be read, holds no record, or is in an engine that cannot be asked such things.
    """
    from incrowd.sources.values import fetching

    source = fetching(source)
    tell = progress or (lambda _part: None)
    columns = source.columns()
    asked = [i for i, column in enumerate(columns) if column.kind != "other"]
    with source.connect() as (connection, scan):
        with source.recounting(scan) as require_whole:
            rows, distinct = _sketch(connection, source.held(scan, asked), asked)
            require_whole(rows)
        if not rows:
            raise DataError("The table holds no record.", code="data-empty", remedy="Check that it is the right one.")
        tell(1 / 3)
        few = [i for i in asked if distinct[i] <= _COUNTED]
        many = [i for i in asked if distinct[i] > _COUNTED]
        found: dict[int, list[dict[str, Any]]] = {i: [] for i in asked}
        declared = _declared(source.options.missing_values, columns)
        common: dict[int, list[tuple[str, int]]] = {i: [] for i in asked}
        if few:
            connection.execute(
                f"CREATE TEMP TABLE counted AS SELECT i, value, CAST(sum(n) AS BIGINT) AS n "
                f"FROM {_cells(source.held(scan, few), few, columns)} GROUP BY ALL"
            )
            _collect(connection, "counted", declared, found)
            for i, value, n in connection.sql(_COMMON_VALUES).fetchall():
                common[i].append((value, n))
        tell(2 / 3)
        if many:
            _collect(connection, _cells(source.held(scan, many), many, columns), declared, found)
        tell(1.0)
    return TableProfile(
        rows,
        tuple(
            _column(column, rows, found.get(i, []), common.get(i, []), distinct[i] if i in many else None)
            for i, column in enumerate(columns)
        ),
        source.drawn_from,
    )


def _sketch(
    connection: duckdb.DuckDBPyConnection, held: tuple[str, str | None], positions: Sequence[int]
) -> tuple[int, dict[int, int]]:
    """The number of rows, and about how many different values each column has."""
    relation, n = held
    records = "count(*)" if n is None else f"coalesce(sum({n}), 0)"
    wanted = ", ".join([records, *(f"approx_count_distinct(c{i})" for i in positions)])
    [row] = connection.sql(f"SELECT {wanted} FROM {relation}").fetchall()
    return int(row[0]), dict(zip(positions, map(int, row[1:]), strict=True))


def _cells(held: tuple[str, str | None], positions: Iterable[int], columns: Sequence[SourceColumn]) -> str:
    """A row (i, value, n) for each column and each record or group of n records, the value as text."""
    relation, n = held
    numbers = ", ".join(map(str, positions))
    values = ", ".join(_as_text(f"c{i}", columns[i].kind) for i in positions)
    return f"(SELECT unnest([{numbers}]) AS i, unnest([{values}]) AS value, {n or 1} AS n FROM {relation})"


def _as_text(column: str, kind: str) -> str:
    printed = f"CAST({column} AS VARCHAR)"
    if kind == "decimal":
        return f"regexp_replace({printed}, '[.]0+$', '')"
    if kind != "float":
        return printed
    # 7.0 is a whole number: tables in memory hold whole numbers so where some are missing.
    whole = f"TRY_CAST(CASE WHEN {column} = trunc({column}) THEN {column} END AS BIGINT)"
    return f"coalesce(CAST({whole} AS VARCHAR), {printed})"


def _declared(texts: Sequence[str], columns: Sequence[SourceColumn]) -> str:
    """Whether a value is one of the texts that were said to stand for missing ones, which they do in text columns."""
    at = ", ".join(str(i) for i, column in enumerate(columns) if column.kind == "text")
    return f"(i IN ({at}) AND value IN ({', '.join(map(quoted, texts))}))" if at and texts else "false"


def _writing(declared: str) -> str:
    missing = ", ".join(map(quoted, _MISSING))
    cases = " ".join(f"WHEN regexp_full_match(bare, {quoted(p)}) THEN {quoted(w)}" for w, p in _WRITINGS.items())
    return (
        f"CASE WHEN value IS NULL OR bare IN ({missing}) OR {declared} THEN 'missing' "
        "WHEN lower(value) IN ('true', 'false', 't', 'f') THEN 'flag' WHEN value IN ('0', '1') THEN 'binary' "
        f"{cases} ELSE 'text' END"
    )


def _collect(
    connection: duckdb.DuckDBPyConnection, cells: str, declared: str, found: dict[int, list[dict[str, Any]]]
) -> None:
    """Judges values and gathers those that are written alike, numbers that agree to three digits together."""
    size = "pow(10, floor(log10(abs(number))) - 2)"
    query = f"""
        WITH bare AS (SELECT *, lower(trim(value, {quoted(_BLANKS)})) AS bare FROM {cells}),
        judged AS (SELECT *, {_writing(declared)} AS writing FROM bare),
        typed AS (
            SELECT *,
                CASE WHEN writing IN ('binary', 'digits', 'natural', 'integer', 'number')
                    THEN TRY_CAST(bare AS DOUBLE)
                    WHEN writing = 'comma' THEN TRY_CAST(replace(bare, ',', '.') AS DOUBLE) END AS number,
                CASE WHEN writing = 'date' THEN TRY_CAST(regexp_extract(bare, '^[0-9-]+') AS DATE) END AS day,
                CASE WHEN writing = 'local date' THEN regexp_extract_all(bare, '[0-9]+') END AS parts
            FROM judged
        )
        SELECT i,
            CASE WHEN writing = 'date' AND day IS NULL THEN 'text' ELSE writing END AS writing,
            CASE WHEN number = 0 OR isinf(number) THEN number ELSE round(number / {size}) * {size} END AS about,
            CASE WHEN writing = 'missing' THEN value END AS spelling,
            CAST(sum(n) AS BIGINT) AS records,
            count(*) AS "values",
            count(*) FILTER (n >= {COMMON}) AS common,
            CAST(coalesce(sum(n) FILTER (n >= {COMMON}), 0) AS BIGINT) AS common_records,
            min(number) AS least, max(number) AS most, min(day) AS first, max(day) AS last,
            [max(CAST(parts[1] AS INT)), max(CAST(parts[2] AS INT)), max(CAST(parts[3] AS INT))] AS parts,
            {_SIGNS} AS signs,
            min(CAST(parts[{_YEAR_PART}] AS INT)) FILTER (length(parts[{_YEAR_PART}]) = 4) AS early,
            max(CAST(parts[{_YEAR_PART}] AS INT)) FILTER (length(parts[{_YEAR_PART}]) = 4) AS late,
            coalesce(min(length(parts[{_YEAR_PART}])), 0) AS year_digits,
            coalesce(min(length(value)), 0) AS shortest, coalesce(max(length(value)), 0) AS longest,
            CAST(coalesce(sum(length(value) * n), 0) AS BIGINT) AS letters,
            CAST(coalesce(sum(n) FILTER (length(bare) < length(value)), 0) AS BIGINT) AS blanks,
            CAST(coalesce(sum(n) FILTER (contains(bare, '.') OR contains(bare, ',')), 0) AS BIGINT) AS signed,
            CAST(coalesce(sum(n) FILTER (regexp_full_match(bare, {quoted(_GROUPED)})), 0) AS BIGINT) AS "grouped"
        FROM typed GROUP BY 1, 2, 3, 4 ORDER BY ALL
    """
    relation = connection.sql(query)
    names = relation.columns
    for row in relation.fetchall():
        found[row[0]].append(dict(zip(names, row, strict=True)))


_SIGNS = " || ".join(
    f"CASE WHEN bool_or(parts IS NOT NULL AND contains(bare, '{sign}')) THEN '{sign}' ELSE '' END" for sign in "./-"
)
_YEAR_PART = "CASE WHEN length(parts[1]) = 4 THEN 1 ELSE 3 END"

_COMMON_VALUES = f"""
    SELECT i, value, n FROM counted WHERE n >= {COMMON} AND value IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY i ORDER BY n DESC, value) <= {MOST_VALUES + len(_MISSING)}
    ORDER BY i, value
"""


def _column(
    column: SourceColumn,
    rows: int,
    found: Sequence[dict[str, Any]],
    common: Sequence[tuple[str, int]],
    estimate: int | None,
) -> ColumnProfile:
    missing = [part for part in found if part["writing"] == "missing"]
    there = [part for part in found if part["writing"] != "missing"]
    absent = {part["spelling"]: part["records"] for part in missing if part["spelling"] is not None}
    ways: dict[str, list[dict[str, Any]]] = {}
    for part in there:
        ways.setdefault(part["writing"], []).append(part)
    # An infinite number would make every range infinite.
    finite = [part for part in there if part["about"] is not None and abs(part["about"]) != float("inf")]
    numbers = [part for part in finite if part["writing"] != "comma"]
    commas = [part for part in finite if part["writing"] == "comma"]
    days = [part for part in there if part["first"] is not None]
    local = next((part for part in there if part["signs"]), None)
    values = sum(part["values"] for part in there)
    return ColumnProfile(
        name=column.name,
        kind=column.kind,
        records=rows,
        missing=sum(part["records"] for part in missing) if found else rows,
        absent=tuple(sorted(absent.items())),
        distinct=values if estimate is None else min(values, estimate),
        counted=estimate is None,
        writings={way: _together(parts) for way, parts in ways.items()},
        common=tuple((value, n) for value, n in common if value not in absent)[:MOST_VALUES],
        blanks=sum(part["blanks"] for part in there),
        numbers=_counted_numbers(numbers),
        ends=_ends(numbers),
        days=(min(part["first"] for part in days), max(part["last"] for part in days)) if days else None,
        local=None if local is None else _local(local),
        commas=_counted_numbers(commas),
        comma_ends=_ends(commas),
    )


def _counted_numbers(parts: Sequence[dict[str, Any]]) -> tuple[tuple[float, int], ...]:
    return tuple((part["about"], part["records"]) for part in sorted(parts, key=lambda part: part["about"]))


def _ends(parts: Sequence[dict[str, Any]]) -> tuple[float, float] | None:
    return (min(part["least"] for part in parts), max(part["most"] for part in parts)) if parts else None


def _local(part: dict[str, Any]) -> LocalDates:
    years = (part["early"], part["late"]) if part["year_digits"] == len("2026") else None
    first, second, third = part["parts"]
    return LocalDates(frozenset(part["signs"]), (first, second, third), years)


def writing_of(text: str) -> str:
    """How a text that is not missing is written."""
    bare = text.strip(_BLANKS).lower()
    if text.lower() in ("true", "false", "t", "f"):
        return "flag"
    if text in ("0", "1"):
        return "binary"
    return next((way for way, pattern in _WRITINGS.items() if re.fullmatch(pattern, bare, re.ASCII)), "text")


def _together(parts: Sequence[dict[str, Any]]) -> Writing:
    def total(key: str) -> int:
        return sum(part[key] for part in parts)

    return Writing(
        total("records"),
        total("values"),
        total("common"),
        total("common_records"),
        (min(part["shortest"] for part in parts), max(part["longest"] for part in parts)),
        total("letters"),
        total("signed"),
        total("grouped"),
    )
