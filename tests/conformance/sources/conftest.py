"""The engines that the suite runs against, each as a function from an Arrow table to a source.

A new engine needs one entry here: how a test table gets into it.
"""

import atexit
import csv
import datetime as dt
import functools
import itertools
import secrets

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databases import put_into_postgresql, put_into_sqlite
from incrowd.sources import count_groups, open_source, wanted_names


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


def zipped_csv_file(table, folder, **options):
    import zipfile

    csv_file(table, folder)
    with zipfile.ZipFile(folder / "table.csv.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "table.csv", "table.csv")
    return open_source(folder / "table.csv.zip", **options)


def arrow_file(table, folder, **options):
    from pyarrow import feather

    feather.write_feather(table, folder / "table.arrow")
    return open_source(folder / "table.arrow", **options)


def orc_file(table, folder, **options):
    from pyarrow import orc

    if any(pa.types.is_unsigned_integer(field.type) for field in table.schema):
        pytest.skip("ORC has no unsigned numbers")
    orc.write_table(table, folder / "table.orc")
    return open_source(folder / "table.orc", **options)


def duckdb_file(table, folder, **options):
    import duckdb

    if len({name.lower() for name in table.column_names}) < table.num_columns:
        pytest.skip("a DuckDB table does not tell names apart by capitals")
    path = folder / f"{secrets.token_hex(4)}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table.rename_columns([f"c{i}" for i in range(table.num_columns)]))
        names = [name.replace('"', '""') for name in table.column_names]
        columns = ", ".join(f'c{i} AS "{name}"' for i, name in enumerate(names))
        connection.execute(f"CREATE TABLE people AS SELECT {columns} FROM given")
    return open_source(path, **options)


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


def spark_parquet(table, folder, **options):
    # Spark reads no nanoseconds.
    pq.write_table(table, folder / "table.parquet", coerce_timestamps="us")
    return open_source(folder / "table.parquet", engine="spark", **options)


def sqlite_file(table, folder, **options):
    return open_source(put_into_sqlite(table, folder / f"{secrets.token_hex(4)}.db"), **options)


def sqlite_adbc(table, folder, **options):
    path = put_into_sqlite(table, folder / f"{secrets.token_hex(4)}.db")
    return open_source(f"sqlite:///{path}", **options)


def postgresql_adbc(table, address, **options):
    return open_source(address, table=put_into_postgresql(table, address), **options)


def ibis_on_duckdb(table, folder, **options):
    import ibis

    backend = ibis.duckdb.connect()
    backend.con.register("given", table)
    backend.con.execute("CREATE TABLE t AS FROM given")
    return open_source(backend.table("t"), **options)


def ibis_on_sqlite(table, folder, **options):
    import ibis

    def declared(type_):
        if pa.types.is_boolean(type_) or pa.types.is_date(type_) or pa.types.is_timestamp(type_):
            return "BOOLEAN" if pa.types.is_boolean(type_) else "DATE" if pa.types.is_date(type_) else "TIMESTAMP"
        if pa.types.is_integer(type_) and not pa.types.is_uint64(type_):
            return "INTEGER"
        return "REAL" if pa.types.is_floating(type_) else "TEXT"

    path = put_into_sqlite(table, folder / f"{secrets.token_hex(4)}.db", [declared(f.type) for f in table.schema])
    return open_source(ibis.sqlite.connect(path).table("t"), **options)


@functools.cache
def ibis_connection(address):
    import ibis

    backend = ibis.connect(address)
    atexit.register(backend.disconnect)
    return backend


def ibis_on_postgresql(table, address, **options):
    return open_source(ibis_connection(address).table(put_into_postgresql(table, address)), **options)


class TwoMethods:
    """An engine that has what `Source` says and nothing else. It groups rows that stand side by side."""

    def __init__(self, table, options):
        self._table = table
        self._options = options

    def columns(self):
        return open_source(self._table).columns()

    def count_by(self, codings, *, progress=None):
        table = self._table.select(wanted_names(codings, self.columns()))
        rows = [tuple(row.values()) for row in table.to_pylist()] or [()] * self._table.num_rows
        groups = [(row, len(list(equal))) for row, equal in itertools.groupby(rows, key=repr)]
        starts = list(itertools.accumulate((n for _, n in groups), initial=0))[:-1]
        found = count_groups(table.take(starts) if rows else table, [n for _, n in groups], codings, **self._options)
        if progress is not None:
            progress(1.0)
        return found


def two_methods(table, folder, **options):
    return TwoMethods(table, options)


ON_SERVER = {postgresql_adbc, ibis_on_postgresql}
NEEDS = {
    sqlite_adbc: "adbc_driver_sqlite",
    postgresql_adbc: "adbc_driver_postgresql",
    ibis_on_duckdb: "ibis",
    ibis_on_sqlite: "ibis",
    ibis_on_postgresql: "ibis.backends.postgres",
}
# Of its use of pandas and DuckDB.
ON_IBIS = pytest.mark.filterwarnings("ignore:.*is deprecated")
ON_SPARK = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"),
]
ENGINES = [
    csv_file,
    zipped_csv_file,
    parquet_file,
    arrow_file,
    orc_file,
    duckdb_file,
    arrow_table,
    pandas_frame,
    polars_frame,
    duckdb_relation,
    sqlite_file,
    sqlite_adbc,
    postgresql_adbc,
    two_methods,
    *(pytest.param(ibis, marks=ON_IBIS) for ibis in (ibis_on_duckdb, ibis_on_sqlite, ibis_on_postgresql)),
    pytest.param(spark_parquet, marks=ON_SPARK),
]


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.__name__)
def engine(request, tmp_path):
    """Puts an Arrow table into the engine and opens it there."""
    if request.param is spark_parquet:
        request.getfixturevalue("spark")
    if request.param in NEEDS:
        pytest.importorskip(NEEDS[request.param], reason=f"{NEEDS[request.param]} is not installed")
    place = request.getfixturevalue("postgresql_server") if request.param in ON_SERVER else tmp_path

    def load(table, **options):
        return request.param(table, place, **options)

    load.name = request.param.__name__
    return load
