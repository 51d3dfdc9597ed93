"""How PostgreSQL is spoken to, and what its columns hold.

Texts are compared byte by byte, whatever the collation of their column; `citext` and enumerations count as texts, and
so do numbers without a declared precision, as they print. The blanks that fill up a `char(n)` are no part of a value.
Times with a zone are taken in UTC.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from incrowd.core.errors import DataError
from incrowd.domain import Coding
from incrowd.sources.databases import (
    Field,
    Run,
    folded_listing,
    folded_steps,
    folded_type,
    quoted_name,
    several_tables,
)
from incrowd.sources.folds import Listing, fold
from incrowd.sources.options import Options

_TABLES = """
    SELECT c.oid::bigint AS number, n.nspname::text AS schema, c.relname::text AS name,
        pg_catalog.pg_table_is_visible(c.oid) AS near
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND NOT c.relispartition
"""
# The columns of a table, with the types that domains are made of.
_COLUMNS = """
    WITH RECURSIVE typed(place, name, type, modifier) AS (
        SELECT attnum, attname, atttypid, atttypmod FROM pg_catalog.pg_attribute
        WHERE attrelid = {table}::oid AND attnum > 0 AND NOT attisdropped
        UNION ALL
        SELECT place, name, typbasetype, typtypmod FROM typed JOIN pg_catalog.pg_type AS t ON t.oid = type
        WHERE typtype = 'd'
    )
    SELECT name::text AS name, typname::text AS type, typtype = 'e' AS listed, modifier::int AS modifier
    FROM typed JOIN pg_catalog.pg_type AS t ON t.oid = type WHERE typtype <> 'd' ORDER BY place
"""
_TEXTS = {"text", "varchar", "bpchar", "char", "name", "uuid", "citext"}
_PLAIN = {
    "int2": ("integer", pa.int16()),
    "int4": ("integer", pa.int32()),
    "int8": ("integer", pa.int64()),
    "float4": ("float", pa.float32()),
    "float8": ("float", pa.float64()),
    "bool": ("boolean", pa.bool_()),
}
_MOMENTS = {
    "date": ("date", pa.date32()),
    "timestamp": ("timestamp", pa.timestamp("us")),
    "timestamptz": ("timestamp", pa.timestamp("us", "UTC")),
}
_MOST_DIGITS = 38  # of a decimal of fixed precision, in the engine here


class PostgreSQL:
    """PostgreSQL's dialect."""

    def folded(self, field: Field, coding: Coding, options: Options) -> tuple[str, pa.DataType] | None:
        """A column's value, folded."""
        how = fold(coding, field.kind, options.missing_values)
        if how is None:
            return None
        if isinstance(how, Listing):
            return folded_listing(field.value, how, literal), field.type
        value = f"CAST({field.value} AS double precision)" if isinstance(how.below, float) else field.value
        folded = f"CASE WHEN {value} IS NOT NULL THEN {folded_steps(value, how, literal)} END"
        type_ = folded_type(how, field.type)
        return (f"CAST({folded} AS bigint)" if type_ == pa.int64() else folded), type_

    def fetched(self, name: str) -> list[str]:
        """The value as it is."""
        return [name]

    def keys(self, name: str, _coding: Coding | None, _options: Options) -> list[str]:
        """The value as it is: texts have been given a collation that tells them apart."""
        return [name]

    def types(self, type_: pa.DataType) -> list[pa.DataType]:
        """The value's own type."""
        return [type_]

    def restored(self, fetched: Sequence[str], _options: Options) -> str:
        """The value as it came."""
        return fetched[0]


def literal(value: Any) -> str:
    """A value in PostgreSQL's SQL, whatever its settings."""
    if isinstance(value, str):
        text = value.replace("'", "''")
        return "E'" + text.replace("\\", "\\\\") + "'" if "\\" in text else f"'{text}'"
    if isinstance(value, dt.date):
        return f"CAST('{value.isoformat()}' AS date)"
    return f"CAST('{value!r}' AS {'bigint' if isinstance(value, int) else 'double precision'})"


def find_table(run: Run, wanted: str | None) -> tuple[str, tuple[Field, ...]]:
    """The name of the table that is meant, in SQL, and its columns.

    ``people`` is found along the search path, ``census.people`` in its schema.
    """
    tables = [row for batch in run(_TABLES) for row in batch.to_pylist()]
    if wanted is None and len(tables) != 1:
        known = [t["name"] if t["near"] else f"{t['schema']}.{t['name']}" for t in tables]
        raise several_tables(known, "The database")
    found = [
        table
        for table in tables
        if wanted is None
        or f"{table['schema']}.{table['name']}" == wanted
        or (table["near"] and table["name"] == wanted)
    ]
    if len(found) != 1:
        raise DataError(
            "The database has no table of the name given." if not found else "Several tables could be meant.",
            code="data-not-found",
            remedy="Give the name with its schema, 'census.people' say, in capital letters only where it has them.",
        )
    columns = run(_COLUMNS.format(table=found[0]["number"]))
    fields = tuple(_field(**row) for batch in columns for row in batch.to_pylist())
    return f"{quoted_name(found[0]['schema'])}.{quoted_name(found[0]['name'])}", fields


def _field(name: str, type: str, listed: bool, modifier: int) -> Field:  # noqa: A002 - a column of the answer
    column = quoted_name(name)
    if listed or type in _TEXTS:
        return Field(name, "text", f'CAST({column} AS text) COLLATE "C"', pa.string())
    if type in _PLAIN:
        kind, arrow = _PLAIN[type]
        value = f"NULLIF({column}, 'NaN')" if kind == "float" else column
        return Field(name, kind, value, arrow)
    if type in _MOMENTS:
        kind, arrow = _MOMENTS[type]
        # Infinite dates cannot be fetched. They are outside every domain, as are those before the year 1.
        endless = f"{column} IN ('infinity', '-infinity')"
        return Field(name, kind, f"CASE WHEN {endless} THEN '0002-01-01 BC' ELSE {column} END", arrow)
    if type == "numeric":
        value = f"CAST(NULLIF({column}, 'NaN') AS text) COLLATE \"C\""
        precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
        if modifier >= 4 and scale <= precision <= _MOST_DIGITS:
            return Field(name, "decimal", value, pa.string(), f"DECIMAL({precision},{scale})")
        return Field(name, "text", value, pa.string())
    # Nothing that can be declared; it need not even be fetched.
    return Field(name, "other", "CAST(NULL AS bytea)", pa.binary())
