"""The file of a published table: its name, its parts, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from incrowd.histogram import Histogram


def table_name(output: str, stem: str = "release") -> str:
    """What the table's file is called."""
    return f"{stem}.{output}"


RECORDS_PER_PART = 1 << 22
"""In each part of a table that is written in parts, but for the last: where it is cut tells nothing."""


def part_names(parts: int) -> list[str]:
    """What the files of a table are called that is written in parts: a folder of them, under the table's own name."""
    return [f"{table_name('parquet')}/part-{number:05d}.parquet" for number in range(parts)]


def write_table(published: Histogram, output: str, sink: BinaryIO, notes: Mapping[str, str] | None = None) -> None:
    """The records in canonical order, whatever order the input had, a batch at a time.

    A Parquet file can have notes about the table; in a CSV file there is no place for them.
    """
    plain = output == "csv"
    if plain:
        from pyarrow import csv

        writer: Any = csv.CSVWriter(sink, published.schema(plain=True))
    else:
        import pyarrow.parquet as pq

        # Written from codes, which is faster, and read as ordinary text all the same. What Arrow would note beside the
        # records, its own schema and the ends of columns, could say something else than they do.
        schema = published.schema()
        writer = pq.ParquetWriter(sink, schema, compression="zstd", store_schema=False, write_statistics=False)
    with writer:
        for batch in published.batches(plain=plain):
            writer.write_batch(batch)
        if notes and not plain:
            writer.add_key_value_metadata(dict(notes))
