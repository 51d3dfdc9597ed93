"""Spark, where it is not installed."""

import subprocess
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


def test_what_to_do_without_a_client_of_spark_connect_is_said():
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    # In a process of its own: PySpark remembers that a server was to be called.
    program = """
import sys
sys.modules["grpc"] = None
from incrowd.errors import DataError
from incrowd.sources import open_source
try:
    open_source("table.parquet", engine="sc://127.0.0.1:1")
except DataError as error:
    print(error.code, error.remedy)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("engine-unavailable"), done.stderr
    assert "pyspark[connect]" in done.stdout


def test_frames_of_others_are_not_sparks():
    class DataFrame:
        pass

    DataFrame.__module__ = "pyspark.sql.connect.dataframe"
    assert is_spark_frame(DataFrame())
    assert not is_spark_frame(pd.DataFrame())
    assert not is_spark_frame("DataFrame")
