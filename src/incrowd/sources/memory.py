"""Tables that are already in memory, or stream from somewhere else, all by way of Arrow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from incrowd.core.errors import DataError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@dataclass
class ArrowTable:
    """Columns that can be had as an Arrow table or stream.

    Attributes:
        names: the columns' names, in order.
        rows: the number of rows, if it is known; of a stream, those that have been read.
        read: gives the columns at these positions, as a table or a stream.
    """

    names: tuple[str, ...]
    rows: int | None
    read: Callable[[list[int]], Any]

    @property
    def once(self) -> bool:
        """Whether it is a stream, which can be read only once."""
        return isinstance(self.read, _Once)

    def attach(self, connection: duckdb.DuckDBPyConnection, _workdir: Path, positions: Sequence[int]) -> str:
        import pyarrow as pa

        chosen = list(positions) or [0]
        try:
            data = self.read(chosen)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError):
            raise DataError(
                "A column of the table holds values of several types, or of a type that cannot be read.",
                code="column-type",
                remedy="Give every column one type: texts, numbers, dates or booleans.",
            ) from None
        data = plain(data, [f"c{position}" for position in chosen])
        if not isinstance(data, pa.Table):
            data = self._counted(data)
        elif self.rows is None:
            self.rows = data.num_rows
        connection.register("incoming", data)
        return "incoming"

    def verify(self, given_up: Event) -> None:
        """Nothing can be cut short here."""

    def _counted(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The same stream, whose rows are counted as they come by."""
        import pyarrow as pa

        def batches() -> Iterator[pa.RecordBatch]:
            self.rows = 0
            for batch in reader:
                self.rows += batch.num_rows
                yield batch

        return pa.RecordBatchReader.from_batches(reader.schema, batches())


def open_memory(thing: Any) -> ArrowTable | None:
    """Recognises pandas, Polars and Arrow tables, DuckDB relations, and whatever else streams Arrow."""
    import duckdb
    import pyarrow as pa

    pandas, polars, datasets = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow.dataset"))
    if pandas and isinstance(thing, pandas.DataFrame):
        return _named(
            [str(name) for name in thing.columns],
            len(thing),
            lambda at: pa.Table.from_pandas(_dense(thing.iloc[:, at]), preserve_index=False),
        )
    if polars and isinstance(thing, polars.LazyFrame):
        names = _collected(thing.collect_schema, polars).names()
        return _named(
            names, None, lambda at: _collected(thing.select([names[i] for i in at]).collect, polars).to_arrow()
        )
    if polars and isinstance(thing, polars.DataFrame):
        return _named(thing.columns, thing.height, lambda at: thing[:, at].to_arrow())
    if isinstance(thing, duckdb.DuckDBPyRelation):
        references = [f"#{i + 1} AS c{i}" for i in range(len(thing.columns))]
        return _named(
            thing.columns, None, lambda at: thing.project(", ".join(references[i] for i in at)).to_arrow_reader()
        )
    if isinstance(thing, pa.RecordBatch):
        thing = pa.Table.from_batches([thing])
    if isinstance(thing, pa.Table):
        return _named(thing.column_names, thing.num_rows, thing.select)
    if datasets and isinstance(thing, datasets.Dataset):
        names = thing.schema.names
        return _named(names, None, lambda at: thing.scanner(columns=[names[i] for i in at]).to_reader())
    if isinstance(thing, pa.RecordBatchReader):
        return _named(thing.schema.names, None, _Once(thing))
    if hasattr(thing, "__arrow_c_stream__"):
        try:
            return open_memory(pa.RecordBatchReader.from_stream(thing))
        except pa.ArrowInvalid:
            raise DataError(
                f"An object of type {type(thing).__qualname__} is one column, not a table.",
                code="data-kind",
                remedy="Make a table of it: to_frame() does so in pandas and Polars.",
            ) from None
    return None


def _dense(frame: Any) -> Any:
    """The same columns under names of ours; sparse ones written out, as Arrow has none."""
    import pandas as pd

    columns = {
        f"c{i}": column.sparse.to_dense() if isinstance(column.dtype, pd.SparseDtype) else column
        for i, (_, column) in enumerate(frame.items())
    }
    return pd.DataFrame(columns, index=frame.index, copy=False)


def _collected(collect: Callable[[], Any], polars: Any) -> Any:
    """What a lazy table comes to; what Polars finds wrong becomes an error of ours, without its words."""
    try:
        return collect()
    except FileNotFoundError:
        raise DataError(
            "A file that the lazy table reads does not exist.", code="data-not-found", remedy="Check its name."
        ) from None
    except (polars.exceptions.PolarsError, OSError):
        raise DataError(
            "Polars could not work out the lazy table.",
            code="data-unreadable",
            remedy="Call collect() on it without incrowd: Polars then says what is wrong.",
        ) from None


class _Once:
    """A stream, which can be read only once."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader: pa.RecordBatchReader | None = reader
        self._schema = reader.schema

    def __call__(self, positions: list[int]) -> Any:
        import pyarrow as pa

        schema = pa.schema([self._schema.field(i) for i in positions])
        if self._reader is None:
            raise DataError(
                "The stream has been read already, and can be read only once.",
                code="data-unreadable",
                remedy="Read it into a table first.",
            )

        def batches() -> Iterator[pa.RecordBatch]:
            reader, self._reader = self._reader, None
            for batch in reader or ():
                yield pa.RecordBatch.from_arrays([batch.column(i) for i in positions], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())


def _named(names: Sequence[str], rows: int | None, read: Callable[[list[int]], Any]) -> ArrowTable:
    check_names(names)
    return ArrowTable(tuple(names), rows, read)


def check_names(names: Sequence[str]) -> None:
    """Refuses two columns of the same name, by position: a name may be a value where a header is lacking."""
    if not names:
        raise DataError("The table has no columns.", code="data-empty", remedy="Check that it is the right one.")
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        # Columns without a name cannot be asked for, so any number of them may be there.
        if name and name in first:
            raise DataError(
                f"Columns {first[name]} and {position} have the same name.",
                code="data-columns",
                remedy="Rename one of them; the first line of a text file must hold the columns' names.",
            )
        first[name] = position


def plain(data: Any, names: list[str]) -> Any:
    """The same data under other names, in types that the engine takes."""
    import pyarrow as pa

    target = pa.schema(
        [pa.field(name, _plain_type(field.type)) for name, field in zip(names, data.schema, strict=True)]
    )
    if isinstance(data, pa.Table):
        return data.rename_columns(names).cast(target)
    if [field.type for field in data.schema] == [field.type for field in target] and data.schema.names == names:
        return data

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in data:
            yield pa.RecordBatch.from_arrays(
                [array.cast(field.type) for array, field in zip(batch.columns, target, strict=True)], schema=target
            )

    return pa.RecordBatchReader.from_batches(target, batches())


def _plain_type(type_: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_decimal256(type_):
        return pa.decimal128(type_.precision, type_.scale) if type_.precision <= 38 else pa.string()
    return type_
