"""Counting a table by the values that occur."""

import datetime as dt
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from incrowd.core.errors import DataError
from incrowd.sources import open_source
from incrowd.sources.observed import count_observed, natural_order


def counted(columns, *names, **options):
    return count_observed(open_source(pa.table(columns), **options), names or list(columns)).histogram


def test_values_count_as_they_are_written():
    columns = {
        "text": ["07", "7", " 7", "Ä"],
        "float": [0.1, 1e300, -0.0, 0.0],
        "decimal": pa.array([Decimal("1.50"), Decimal("1.50"), None, Decimal("2.00")]),
        "date": [dt.date(2024, 2, 29), dt.date(999, 1, 1), None, dt.date(2024, 2, 29)],
        "time": [dt.datetime(2024, 1, 1, 12), None, None, dt.datetime(2023, 1, 1)],  # noqa: DTZ001
        "flag": [True, False, None, True],
        "list": [[1, 2], [1, 2], [], None],
    }
    histogram = counted(columns)
    assert histogram.total == 4
    assert set(histogram["text"].labels) == {"07", "7", " 7", "Ä"}
    assert histogram["float"].labels == ("0.0", "0.1", "1e+300")
    assert histogram["decimal"].labels == ("1.50", "2.00", None)
    assert histogram["date"].labels == ("0999-01-01", "2024-02-29", None)
    assert histogram["time"].labels[-1] is None
    assert histogram["flag"].labels == ("false", "true", None)
    assert len(histogram["list"].labels) == 3


def test_missing_values_are_one_and_none_is_dropped():
    histogram = counted({"a": ["", None, "?", "x"], "b": [float("nan"), None, 1.0, 1.0]}, missing_values=("", "?"))
    assert histogram["a"].labels == ("x", None)
    assert histogram["b"].labels == ("1.0", None)
    assert histogram.counts.tolist() == [1, 1, 2]


def test_the_index_of_a_pandas_table_means_nothing():
    frame = pd.DataFrame({"a": list("xxyy"), "s": list("1122")})
    plain = count_observed(open_source(frame), ["a", "s"]).histogram
    assert count_observed(open_source(frame.set_index(pd.Index([3, 3, 0, 1]))), ["a", "s"]).histogram == plain


def test_an_unused_category_is_no_group():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "x"], categories=["x", "y"])})
    assert count_observed(open_source(frame), ["a"]).histogram.counts.tolist() == [2]


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["10", "9", "-1", "2.5"], ["-1", "2.5", "9", "10"]),
        (["2024-02-01", "2023-12-31"], ["2023-12-31", "2024-02-01"]),
        (["7", "07"], None),
        (["1", None], None),
        (["1", "x"], None),
        (["1", "2024-01-01"], None),
        (["2024-13-01"], None),
        (["٣", "2"], None),
    ],
)
def test_the_order_of_numbers_and_dates(labels, order):
    assert natural_order(labels) == order


def test_a_cut_off_file_is_noticed(tmp_path):
    path = tmp_path / "t.csv.gz"
    pd.DataFrame({"a": range(100_000)}).to_csv(path, index=False)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError) as error:
        count_observed(open_source(path), ["a"])
    assert error.value.code == "data-unreadable"
