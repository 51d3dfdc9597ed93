"""Any table that Ibis can express: BigQuery, Snowflake, Trino and what else it knows (extra ``ibis``).

The grouping and counting is compiled by Ibis and runs in the warehouse; see `incrowd.sources.databases` for the rest.
Whole numbers and decimals travel in print, as some of Ibis's back ends pass results through pandas, which turns whole
numbers beside nulls into floating-point ones; and results are fetched by the thread that asks, as some clients insist
on it.

Groups are made in the warehouse only where it tells texts apart byte by byte; elsewhere rows are streamed. A column
that was given a collation of its own, one that is blind to capitals say, must be cast before it is handed over.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from incrowd.core.errors import DataError
from incrowd.domain import Coding
from incrowd.sources.databases import Answer, Ask, DatabaseSource, Elsewhere, Field
from incrowd.sources.folds import Fold, Listing, Ordered, Steps, fold
from incrowd.sources.options import Options

# Where texts are equal only if their bytes are. Not so in MySQL and SQL Server, by default.
_EXACT = {
    "athena", "bigquery", "clickhouse", "databricks", "datafusion", "duckdb", "exasol", "impala", "materialize",
    "polars", "postgres", "pyspark", "risingwave", "snowflake", "sqlite", "trino",
}  # fmt: skip
_ROWS = 100_000


def open_ibis(thing: Any, options: Mapping[str, Any]) -> DatabaseSource | None:
    """The table that an Ibis expression stands for; None if it is no such expression."""
    ibis = sys.modules.get("ibis")
    if ibis is None or not isinstance(thing, ibis.expr.types.Table):
        return None
    fields = tuple(_field(name, dtype) for name, dtype in thing.schema().items())
    return DatabaseSource(IbisTable(fields, thing), Options(**options))


@dataclass(frozen=True)
class IbisTable(Elsewhere):
    """A table that an Ibis expression stands for."""

    expression: Any

    def limited(self, rows: int) -> IbisTable:
        return replace(self, expression=self.expression.limit(rows))

    @contextmanager
    def asking(self, options: Options) -> Iterator[Ask]:
        """Every question is one statement; the warehouse decides which state of the table it sees."""
        yield lambda wanted, grouped: self._answer(wanted, grouped, options)

    def _answer(self, wanted: Mapping[int, Coding | None], grouped: bool, options: Options) -> Answer:
        import ibis

        values, schema, chosen = {}, [], []
        for i, coding in wanted.items():
            field = self.fields[i]
            value = self.expression[field.name]
            # How a warehouse turns a decimal into a floating-point number is its own affair: decimals are not folded.
            how = (
                None if coding is None or field.kind == "decimal" else fold(coding, field.kind, options.missing_values)
            )
            type_ = pa.float64() if isinstance(how, Steps) and isinstance(how.below, float) else field.type
            values[f"f{i}"] = _fetched(value if how is None else _folded(value, how), field, type_)
            schema.append((f"f{i}", type_))
            chosen.append(field.chosen(i, f"f{i}", as_it_is=type_ != field.type))
        rows = self.expression.select(**values, n=ibis.literal(1).cast("int64"))
        if grouped:
            schema.append(("n", pa.int64()))
            chosen.append("n")
            if not values:
                rows = rows.aggregate(n=rows.count())
            elif self.expression.get_backend().name in _EXACT:
                rows = rows.group_by(list(values)).aggregate(n=rows.count())
        elif values:
            rows = rows.drop("n")
        else:
            schema.append(("n", pa.int64()))
            chosen.append("n")
        return Answer(pa.schema(schema), chosen, lambda: _batches(rows), same_thread=True)


def _field(name: str, dtype: Any) -> Field:
    """A column; `value` has no meaning here."""
    if dtype.is_string() or dtype.is_uuid():
        return Field(name, "text", "", pa.string())
    if dtype.is_integer():
        return Field(name, "integer", "", pa.string(), "UBIGINT" if dtype.is_unsigned_integer() else "BIGINT")
    if dtype.is_decimal() and dtype.precision is not None and dtype.scale is not None and dtype.precision <= 38:
        return Field(name, "decimal", "", pa.string(), f"DECIMAL({dtype.precision},{dtype.scale})")
    if dtype.is_floating():
        return Field(name, "float", "", pa.float64())
    if dtype.is_boolean():
        return Field(name, "boolean", "", pa.bool_())
    if dtype.is_date():
        return Field(name, "date", "", pa.date32())
    if dtype.is_timestamp():
        return Field(name, "timestamp", "", pa.timestamp("us", "UTC" if dtype.timezone else None))
    return Field(
        name, "text" if dtype.is_decimal() else "other", "", pa.string() if dtype.is_decimal() else pa.binary()
    )


def _fetched(value: Any, field: Field, type_: pa.DataType) -> Any:
    import ibis

    if field.kind == "other":
        return ibis.null().cast("binary")
    return value.cast("string") if type_ == pa.string() and not value.type().is_string() else value


def _folded(value: Any, how: Fold) -> Any:
    import ibis

    if isinstance(how, Listing):
        cases = [(value.isin(texts), value if stand is None else stand) for texts, stand in how.lists]
        absent = value.isnull() | value.isin(how.missing) if how.missing else value.isnull()
        return ibis.cases(*cases, (absent, ibis.null("string")), else_=how.outside)
    number = value.cast("float64") if isinstance(how.below, float) else value
    absent = number.isnull()
    if value.type().is_floating() and value.get_backend().has_operation(ibis.expr.operations.IsNan):
        absent |= number.isnan()
    return absent.ifelse(ibis.null(number.type()), _decision(number, how))


def _decision(value: Any, how: Steps) -> Any:
    """A balanced decision, as `incrowd.sources.duckdb_codes.decision` makes one in SQL."""
    import ibis

    def made(result: Ordered | None) -> Any:
        return value if result is None else ibis.literal(result, type=value.type())

    if not how.starts:
        return made(how.below)
    middle = len(how.starts) // 2
    below = Steps(how.below, how.starts[:middle], how.stand_ins[:middle])
    above = Steps(how.stand_ins[middle], how.starts[middle + 1 :], how.stand_ins[middle + 1 :])
    return (value < made(how.starts[middle])).ifelse(_decision(value, below), _decision(value, above))


def _batches(expression: Any) -> Iterable[pa.RecordBatch]:
    try:
        backend = expression.get_backend()
        if backend.name == "duckdb":
            # Ibis 12 asks DuckDB 2 for a method that it has no more.
            yield from backend.con.cursor().sql(backend.compile(expression)).to_arrow_reader(_ROWS)
        else:
            yield from expression.to_pyarrow_batches(chunk_size=_ROWS)
    except Exception:  # noqa: BLE001 - every warehouse has errors of its own, which may quote data
        raise DataError(
            "The warehouse could not answer to the end.",
            code="data-unreadable",
            remedy="Read the same table without incrowd, and look into its log.",
        ) from None
