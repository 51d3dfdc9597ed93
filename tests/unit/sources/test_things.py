"""Objects of other libraries: tables that are read, and what is said of those that are none."""

import datetime as dt
import sqlite3
from contextlib import closing

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from incrowd.core.errors import DataError
from incrowd.domain import Categories, Coding, DateRange
from incrowd.sources import open_source

CODINGS = [Coding("a", Categories(("x", "y")))]


def refused(thing, code):
    with pytest.raises(DataError) as caught:
        open_source(thing).count_by(CODINGS)
    assert caught.value.code == code
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value.remedy


def test_a_database_without_a_table_is_refused():
    with closing(sqlite3.connect(":memory:")) as empty:
        refused(empty, "data-format")


@pytest.mark.parametrize("column", [pd.Series(["x"], name="a"), pl.Series("a", ["x"]), pa.chunked_array([["x"]])])
def test_a_column_is_no_table(column):
    assert "to_frame()" in refused(column, "data-kind")


@pytest.mark.parametrize("scan", [pl.scan_csv, pl.scan_parquet, pl.scan_ndjson])
def test_a_lazy_table_of_a_missing_file(tmp_path, scan):
    refused(scan(tmp_path / "absent"), "data-not-found")


def test_a_lazy_table_that_cannot_be_worked_out():
    assert "collect()" in refused(pl.LazyFrame({"a": ["x"]}).select("b"), "data-unreadable")
    late = pl.LazyFrame({"a": ["x"]}).select(pl.col("a").cast(pl.Int8).cast(pl.String))
    refused(late, "data-unreadable")


def test_sparse_columns_are_read():
    frame = pd.DataFrame(
        {
            "a": pd.arrays.SparseArray(["x", "y", "x"], fill_value="x"),
            "n": pd.arrays.SparseArray([0, 0, 5]),
            "f": pd.arrays.SparseArray([float("nan"), 2.0, float("nan")]),
        }
    )
    frame.index = [7, 7, 7]
    found = open_source(frame).count_by(
        [*CODINGS, Coding("n", Categories((0, 5))), Coding("f", Categories((2,)), missing="keep")]
    )
    rows = zip(*([column.labels[code] for code in column.codes] for column in found.columns), strict=True)
    assert sorted(map(str, rows)) == sorted(map(str, [("x", "0", None), ("y", "0", "2"), ("x", "5", None)]))


def test_a_midnight_of_another_zone_is_explained():
    days = pd.to_datetime(["2024-02-29", "2024-07-01"])
    coding = Coding("d", DateRange(dt.date(2024, 1, 1), dt.date(2024, 12, 31)))
    assert open_source(pd.DataFrame({"d": days.tz_localize("UTC")})).count_by([coding]).total == 2
    with pytest.raises(DataError) as caught:
        open_source(pd.DataFrame({"d": days.tz_localize("Europe/Berlin")})).count_by([coding])
    assert "midnight in UTC" in caught.value.remedy
    with pytest.raises(DataError) as caught:
        open_source(pa.table({"a": ["z"]})).count_by(CODINGS)
    assert "midnight" not in caught.value.remedy
