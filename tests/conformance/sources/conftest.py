"""The engines that the suite runs against, each as a function from an Arrow table to a source.

A new engine needs one entry here: how a test table gets into it.
"""

import csv
import datetime as dt

import pyarrow.parquet as pq
import pytest

from incrowd.sources import open_source


def printed(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat(sep=" ") if isinstance(value, dt.datetime) else str(value)


def csv_file(table, folder, **options):
    path = folder / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(table.column_names)
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        writer.writerows([printed(value) for value in row] for row in rows)
    return open_source(path, **options)


def parquet_file(table, folder, **options):
    pq.write_table(table, folder / "table.parquet")
    return open_source(folder / "table.parquet", **options)


def arrow_table(table, folder, **options):
    return open_source(table, **options)


def pandas_frame(table, folder, **options):
    frame = table.to_pandas()
    frame.index = [0] * len(frame)
    return open_source(frame, **options)


def polars_frame(table, folder, **options):
    import polars as pl

    return open_source(pl.from_arrow(table), **options)


def duckdb_relation(table, folder, **options):
    import duckdb

    plain = table.rename_columns([f"c{i}" for i in range(table.num_columns)])
    quoted = [name.replace('"', '""') for name in table.column_names]
    projection = ", ".join(f'c{i} AS "{name}"' for i, name in enumerate(quoted))
    return open_source(duckdb.connect().from_arrow(plain).project(projection), **options)


ENGINES = [csv_file, parquet_file, arrow_table, pandas_frame, polars_frame, duckdb_relation]


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.__name__)
def engine(request, tmp_path):
    """Puts an Arrow table into the engine and opens it there."""

    def load(table, **options):
        return request.param(table, tmp_path, **options)

    load.name = request.param.__name__
    return load
