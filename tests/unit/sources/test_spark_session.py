"""Spark, where it is not installed."""

import subprocess
import sys

import pandas as pd
import pytest

from incrowd.core.errors import DataError, ParameterError
from incrowd.sources import open_source, spark_session
from incrowd.sources.spark_session import is_spark_frame, without_token


def test_what_to_do_without_spark_is_said(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in {"pyspark", "py4j"}]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("incrowd.sources.spark", "incrowd.sources.spark_codes"):
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
from incrowd.core.errors import DataError, ParameterError
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


@pytest.mark.parametrize(
    ("engine", "shown"),
    [
        ("spark", "spark"),
        ("k8s://https://head:6443", "k8s://https://head:6443"),
        ("sc://head:15002", "sc://head:15002"),
        ("sc://head:15002/;token=S3CRET;user_id=me", "sc://head:15002/;..."),
    ],
)
def test_engines_are_shown_without_tokens(engine, shown):
    assert without_token(engine) == shown


def test_a_token_is_in_no_setting_of_a_session_and_the_session_is_known_again(monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    settings = {}

    class Settings:
        set = staticmethod(settings.__setitem__)
        get = staticmethod(settings.get)

    class Session:
        conf = Settings

    class Builder:
        def appName(self, _name):  # noqa: N802 - Spark's name
            return self

        remote = appName

        def getOrCreate(self):  # noqa: N802 - Spark's name
            FakeSpark.active = Session
            return Session

    class FakeSpark:
        active = None
        builder = Builder()

        @classmethod
        def getActiveSession(cls):  # noqa: N802 - Spark's name
            return cls.active

    monkeypatch.setattr(sql, "SparkSession", FakeSpark)
    engine = "sc://head:15002/;token=S3CRET"
    assert spark_session._session(engine) == (Session, True)
    assert not any("S3CRET" in str(value) for value in settings.values())
    assert spark_session._session(engine) == (Session, False)
    with pytest.raises(DataError, match="another cluster"):
        spark_session._session("sc://head:15002/;token=OTHER")


def test_the_small_client_of_spark_connect_has_no_py4j(monkeypatch):
    errors = pytest.importorskip("pyspark.errors", reason="pyspark is not installed")
    from incrowd.sources.spark import reading, spark_errors

    for name in [name for name in sys.modules if name.partition(".")[0] == "py4j"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "py4j", None)
    with pytest.raises(DataError) as caught, reading():
        raise errors.PySparkException("gone")
    assert caught.value.code == "data-unreadable"
    assert spark_errors(OSError) == (errors.PySparkException, OSError)
    monkeypatch.delitem(sys.modules, "py4j")
    from py4j.protocol import Py4JError

    assert Py4JError in spark_errors()


def test_settings_are_sparks_and_not_the_clusters():
    spark_session.configure({"spark.executor.memory": "4g"})
    assert spark_session._settings == {"spark.executor.memory": "4g"}
    for name, code in {"executor.memory": "parameter-range", "spark.master": "parameter-combination"}.items():
        with pytest.raises(ParameterError) as caught:
            spark_session.configure({name: "1"})
        assert caught.value.code == code
    spark_session.configure({})
    assert spark_session._settings == {}


def test_what_java_says_while_it_starts_is_not_heard(capfd):
    def say():
        subprocess.run([sys.executable, "-c", "import sys; print('WARN', file=sys.stderr)"], check=True)

    with spark_session._silence():
        say()
    assert capfd.readouterr().err == ""
    spark_session.configure({"spark.log.level": "INFO"})
    with spark_session._silence():
        say()
    spark_session.configure({})
    assert capfd.readouterr().err == "WARN\n"
