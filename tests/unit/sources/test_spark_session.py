"""Spark, where it is not installed."""

import sys

import pandas as pd
import pytest

from incrowd.errors import DataError
from incrowd.sources import open_source
from incrowd.sources.spark_session import is_spark_frame


def test_what_to_do_without_spark_is_said(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in {"pyspark", "py4j"}]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("incrowd.sources.spark", "incrowd.sources.spark_matching"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(DataError) as caught:
        open_source("table.parquet", engine="local[1]")
    assert caught.value.code == "engine-unavailable"
    assert "incrowd[spark]" in caught.value.remedy


def test_frames_of_others_are_not_sparks():
    class DataFrame:
        pass

    DataFrame.__module__ = "pyspark.sql.connect.dataframe"
    assert is_spark_frame(DataFrame())
    assert not is_spark_frame(pd.DataFrame())
    assert not is_spark_frame("DataFrame")
