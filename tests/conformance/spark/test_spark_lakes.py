"""Spark, too, refuses files whose table has a log of its own, and keeps the columns of partitions."""

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from incrowd.core.errors import DataError
from incrowd.domain import Categories, Coding
from incrowd.sources import open_source

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support"),
]

CODINGS = [Coding("a", Categories(("x", "y"))), Coding("country", Categories(("DE", "FR")))]
TABLE = pa.table({"a": ["x", "y"] * 50, "country": ["DE", "FR"] * 50})


@pytest.mark.parametrize(
    ("log", "kind"), [("_delta_log/0.json", "Delta"), ("metadata/0.metadata.json", "Iceberg"), (".hoodie/x", "Hudi")]
)
def test_lakes_are_refused(tmp_path, log, kind):
    (tmp_path / log).parent.mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / log).write_text("{}", encoding="utf-8")
    pq.write_table(TABLE, tmp_path / "1.parquet")
    pq.write_table(TABLE, tmp_path / "data" / "2.parquet")
    for name in ("", "*.parquet", "1.parquet", "data"):
        with pytest.raises(DataError, match=f"is a table of {kind}"):
            open_source(str(tmp_path / name), engine="spark")


def test_partitions_keep_their_columns_or_are_refused(tmp_path):
    ds.write_dataset(TABLE, tmp_path, format="parquet", partitioning=["country"], partitioning_flavor="hive")
    assert open_source(tmp_path, engine="spark").count_by(CODINGS).total == 100
    with pytest.raises(DataError, match="is a table in partitions"):
        open_source(str(tmp_path / "country=DE"), engine="spark")
