"""Folders in which files lie that their table no longer has, or that hold a column in their names."""

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from incrowd.auditing.tables import audit
from incrowd.core.errors import DataError
from incrowd.domain import Categories, Coding
from incrowd.drafting import draft
from incrowd.sources import open_source

CODINGS = [Coding("a", Categories(("x", "y")))]
TABLE = pa.table({"a": ["x", "y"] * 50, "country": ["DE", "FR"] * 50})
READERS = [
    lambda data: open_source(data).count_by(CODINGS),
    lambda data: audit(data, "a"),
    lambda data: draft(data, "-"),
]
LOGS = {
    "Delta": "_delta_log/00000000000000000000.json",
    "Iceberg": "metadata/00000-0b1.metadata.json",
    "Hudi": ".hoodie/hoodie.properties",
}


@pytest.fixture(params=LOGS)
def lake(request, tmp_path):
    folder = tmp_path / "lake"
    log = folder / LOGS[request.param]
    data = folder / "data" / "country=DE"
    for where in (log.parent, data):
        where.mkdir(parents=True)
    log.write_text("{}", encoding="utf-8")
    for path in (folder / "1.parquet", folder / "2.parquet", folder / "data" / "3.parquet", data / "4.parquet"):
        pq.write_table(TABLE, path)
    return request.param, folder


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "name", ["", "1.parquet", "*.parquet", "**/*.parquet", "data", "data/*.parquet", "data/country=DE/4.parquet"]
)
def test_files_of_a_lake_are_refused_by_name(lake, name, reader):
    kind, folder = lake
    with pytest.raises(DataError, match=f"is a table of {kind}") as caught:
        reader(str(folder / name))
    assert caught.value.code == "data-format"
    assert "*.parquet" not in caught.value.remedy


def test_a_list_of_files_and_a_link_into_a_lake_are_refused(lake, tmp_path):
    _, folder = lake
    (tmp_path / "link.parquet").symlink_to(folder / "1.parquet")
    for given in ([folder / "1.parquet", folder / "2.parquet"], tmp_path / "link.parquet"):
        with pytest.raises(DataError, match="is a table of"):
            open_source(given)


def test_text_files_beside_a_log_are_read(lake):
    (lake[1] / "t.csv").write_text("a\nx\n", encoding="utf-8")
    assert open_source(lake[1] / "t.csv").count_by(CODINGS).total == 1


@pytest.mark.parametrize("name", ["", "*/*.parquet", "**/*.parquet", "country=DE/*.parquet"])
def test_partitions_are_refused_since_a_column_would_be_lost(tmp_path, name):
    ds.write_dataset(TABLE, tmp_path / "t", format="parquet", partitioning=["country"], partitioning_flavor="hive")
    with pytest.raises(DataError, match="is a table in partitions") as caught:
        open_source(str(tmp_path / "t" / name))
    assert str(tmp_path / "t") in caught.value.remedy
    whole = ds.dataset(tmp_path / "t", partitioning="hive")  # as the remedy says
    assert open_source(whole).count_by([*CODINGS, Coding("country", Categories(("DE", "FR")))]).total == 100


def test_a_folder_of_files_is_still_named_by_a_pattern(tmp_path):
    with pytest.raises(DataError, match="is a directory") as caught:
        open_source(tmp_path)
    assert "*.parquet" in caught.value.remedy
