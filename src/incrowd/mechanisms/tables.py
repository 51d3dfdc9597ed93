"""The file of a published table: its name, its parts, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from incrowd.histogram import Histogram
from incrowd.policy import Attribute

_READ = {
    "csv": 'pd.read_csv("{}", dtype=str, keep_default_na=False, na_values=[""], skip_blank_lines=False)',
    "parquet": 'pd.read_parquet("{}")',
    "arrow": 'pd.read_feather("{}")',
    "sav": 'pd.read_spss("{}")',
    "dta": 'pd.read_stata("{}")',
    "xlsx": 'pd.read_excel("{}", dtype=str, keep_default_na=False, na_values=[""])',
}


def table_name(output: str, stem: str = "release") -> str:
    """What the table's file is called."""
    return f"{stem}.{output}"


def read_code(output: str) -> str:
    """How pandas reads it."""
    return _READ[output].format(table_name(output))


RECORDS_PER_PART = 1 << 22
"""In each part of a table that is written in parts, but for the last: where it is cut tells nothing."""


def part_names(parts: int) -> list[str]:
    """What the files of a table are called that is written in parts: a folder of them, under the table's own name."""
    return [f"{table_name('parquet')}/part-{number:05d}.parquet" for number in range(parts)]


def write_table(
    published: Histogram,
    output: str,
    sink: BinaryIO,
    notes: Mapping[str, str] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
) -> None:
    """The records in canonical order, whatever order the input had; where the format can, a batch at a time.

    A Parquet or Arrow file can have notes about the table; elsewhere there is no place for them. What the policy says
    of columns has a place in the files of statistics packages.
    """
    plain = output == "csv"
    if output not in ("csv", "parquet", "arrow"):
        from incrowd.mechanisms.packages import write_package

        write_package(published, output, sink, attributes or {})
        return
    if output == "arrow":
        import pyarrow as pa

        writer: Any = pa.ipc.new_file(sink, published.schema().with_metadata(dict(notes) if notes else None))
    elif plain:
        from pyarrow import csv

        writer = csv.CSVWriter(sink, published.schema(plain=True))
    else:
        import pyarrow.parquet as pq

        # Written from codes, which is faster, and read as ordinary text. What Arrow would note beside the
        # records, its own schema and the ends of columns, could say something else than they do.
        schema = published.schema()
        writer = pq.ParquetWriter(sink, schema, compression="zstd", store_schema=False, write_statistics=False)
    with writer:
        for batch in published.batches(plain=plain):
            writer.write_batch(batch)
        if notes and output == "parquet":
            writer.add_key_value_metadata(dict(notes))
