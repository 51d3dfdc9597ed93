"""The rows of each person that count, as DuckDB finds them: two window functions, which go to disk if need be.

The rules are those of `incrowd.sources.people`.
"""

# ruff: noqa: S608 - queries are put together here from names of our own and quoted literals

from __future__ import annotations

from collections.abc import Mapping, Sequence

from incrowd.domain import Bins, Coding, DateFormat
from incrowd.sources.duckdb_codes import Match, column_kind, day_of, is_absent, quoted, typed_value
from incrowd.sources.options import Options
from incrowd.sources.people import COUNTS, LEFT_OUT, MOMENT, NOBODYS, UNRANKED, RowBound

_ANY_NUMBER = Coding("", Bins((float("-inf"), float("inf"))))


def identity(column: str, sql_type: str, options: Options) -> tuple[str, str]:
    """The text by which identifiers in a column are equal, and whether there is none, as SQL expressions."""
    kind = column_kind(sql_type)
    printed = column if sql_type == "VARCHAR" else f"CAST({column} AS VARCHAR)"
    missing = is_absent(printed if kind == "text" else column, kind, "text", options)
    if kind == "decimal":
        printed = f"regexp_replace({printed}, '[.]0+$', '')"
    if kind == "float":
        # Tables in memory hold whole numbers so where some are missing.
        whole = f"TRY_CAST(CASE WHEN {column} = trunc({column}) THEN {column} END AS BIGINT)"
        printed = f"coalesce(CAST({whole} AS VARCHAR), {printed})"
    return printed, missing


def rank(column: str, sql_type: str, options: Options, written: DateFormat | None = None) -> tuple[str, str]:
    """The number by which rows are put in order, or null, and whether there is no value, as SQL expressions."""
    kind = column_kind(sql_type)
    if kind == "text" and sql_type != "VARCHAR":
        column = f"CAST({column} AS VARCHAR)"
    if kind in {"date", "timestamp"}:
        number = f"CAST(epoch_us({column}) AS DOUBLE)"
    elif kind == "text" and written is not None:
        number = f"CAST(epoch_us({day_of(column, 'VARCHAR', written)}) AS DOUBLE)"
    else:
        number, _ = typed_value(column, sql_type, _ANY_NUMBER, options)
        if kind == "text":
            moment = f"TRY_CAST(regexp_extract({column}, {quoted(f'^{MOMENT}$')}, 1) AS TIMESTAMP)"
            number = f"coalesce({number}, CAST(epoch_us({moment}) AS DOUBLE))"
    return f"({number}) + 0.0::DOUBLE", is_absent(column, kind, "number", options)  # without a zero below zero


def exploded(relation: str, weight: str | None, positions: Sequence[int]) -> str:
    """Rows, of a relation whose rows may be groups."""
    if weight is None:
        return relation
    columns = ", ".join(f"c{i}" for i in positions)
    return f"(SELECT {columns} FROM (SELECT {columns}, unnest(range({weight})) FROM {relation}))"


def bounding_query(
    matched: str,
    words: Sequence[str],
    dropped: str,
    bound: RowBound,
    at: Sequence[int],
    types: Mapping[int, str],
    options: Options,
    *,
    whose: bool = False,
) -> str:
    """The groups of rows: what becomes of them, how many are the first of their person, words, and how many they are.

    Before the words, on request, whose they are. Two people whose identifiers have the same hash would be one, which
    makes a crowd smaller and never larger.

    Args:
        matched: every row, with its raw columns and what is needed to work out its words.
        words: the words of codes, as expressions.
        dropped: whether a coding leaves a row out, as an expression.
        bound: how many rows of a person count, and which.
        at: where the columns of `RowBound.names` stand.
        types: the types of the columns, by their places.
        options: what is missing, and how numbers are written.
        whose: whether rows of different people are in different groups.
    """
    known = [identity(f"c{i}", types[i], options) for i in at[: len(bound.columns)]]
    ranked = None if bound.ranked_by is None else rank(f"c{at[-1]}", types[at[-1]], options, bound.format)
    unread = "false" if ranked is None else f"coalesce(r IS NULL AND NOT ({ranked[1]}), true)"
    persons = [f"p{i}" for i in range(len(known))]
    names = [f"w{i}" for i in range(len(words))]
    nobodys = " OR ".join(f"({missing})" for _, missing in known)
    coded = [
        f"{nobodys} AS nobodys",
        *(f"CASE WHEN NOT nobodys THEN {text} END AS {name}" for (text, _), name in zip(known, persons, strict=True)),
        f"{'NULL::DOUBLE' if ranked is None else ranked[0]} AS r",
        f"{unread} AS unread",
        f"{dropped} AS dropped",
        *(f"{word} AS {name}" for word, name in zip(words, names, strict=True)),
    ]
    # Rows that are nobody's are no person's, and need not all be in one place.
    apart = ", ".join([*persons, f"CASE WHEN nobodys THEN {names[0]} END"])
    text = " || '|' || ".join([quoted(bound.key), "number", *names, *persons])
    first = f"PARTITION BY {apart} ORDER BY r NULLS LAST, {', '.join(names)}"
    order = f"r {'DESC' if bound.ranked_by and bound.ranked_by[1] else 'ASC'} NULLS LAST"
    place = f"row_number() OVER (PARTITION BY {apart} ORDER BY dropped, {order}, hashed)"
    what = (
        f"CASE WHEN unread THEN {UNRANKED} WHEN nobodys THEN {COUNTS if bound.own else NOBODYS} "
        f"WHEN place <= {bound.at_most} THEN {COUNTS} ELSE {LEFT_OUT} END"
    )
    number = f"CASE WHEN nobodys THEN 0 ELSE CAST(hash({', '.join(persons)}) >> 2 AS BIGINT) + 1 END AS whose"
    linked, shown = ([number], ["whose", *names]) if whose else ([], names)
    return (
        f"WITH coded AS (SELECT {', '.join(coded)} FROM {matched}), "
        f"numbered AS (SELECT *, row_number() OVER ({first}) AS number, count(*) OVER (PARTITION BY {apart}) AS own "
        "FROM coded), "
        # Where all rows of a person count, their order is of no interest.
        f"hashed AS (SELECT *, CASE WHEN own > {bound.at_most} THEN md5({text}) END AS hashed FROM numbered), "
        f"placed AS (SELECT *, {place} AS place FROM hashed), "
        f"judged AS (SELECT {what} AS what, nobodys OR place = 1 AS first, {', '.join([*linked, *names])} "
        "FROM placed) "
        f"SELECT what, CAST(count_if(first) AS BIGINT), "
        f"{', '.join(f'CASE WHEN what = {COUNTS} THEN {name} ELSE 0 END' for name in shown)}, count(*) "
        "FROM judged GROUP BY ALL"
    )


def dropped_rows(matches: Sequence[tuple[Match, int | None]]) -> str:
    """Whether one of the columns that drop rows has no value; with each match, the code that says so, if any."""
    return " OR ".join(f"({m.key}) = {code}" for m, code in matches if code is not None) or "false"
