"""Folders in which files lie that their table no longer has, or that hold a column in their names."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

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
BOTH = [*CODINGS, Coding("country", Categories(("DE", "FR")))]
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


PATHS = pytest.mark.parametrize(
    "name", ["1.parquet", "*.parquet", "**/*.parquet", "data/*.parquet", "data/country=DE/4.parquet"]
)


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
def test_a_damaged_log_is_refused(lake, reader):
    kind, folder = lake
    with pytest.raises(DataError, match=kind) as caught:
        reader(str(folder))
    assert caught.value.code == ("data-format" if kind == "Hudi" else "data-unreadable")


@pytest.mark.parametrize("reader", READERS)
@PATHS
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


@pytest.mark.parametrize("name", ["*/*.parquet", "**/*.parquet", "country=DE/*.parquet"])
def test_partitions_are_refused_since_a_column_would_be_lost(tmp_path, name):
    ds.write_dataset(TABLE, tmp_path / "t", format="parquet", partitioning=["country"], partitioning_flavor="hive")
    with pytest.raises(DataError, match="is a table in partitions") as caught:
        open_source(str(tmp_path / "t" / name))
    assert str(tmp_path / "t") in caught.value.remedy
    for whole in (str(tmp_path / "t"), ds.dataset(tmp_path / "t", partitioning="hive")):  # as the remedy says
        assert open_source(whole).count_by(BOTH).total == 100


def test_a_folder_of_files_is_still_named_by_a_pattern(tmp_path):
    with pytest.raises(DataError, match="is a directory") as caught:
        open_source(tmp_path)
    assert "*.parquet" in caught.value.remedy


# --- the tables themselves -------------------------------------------------------------------------------------------


def counts(thing):
    """Records by value of `a`, the country left out."""
    found = open_source(thing).count_by(CODINGS)
    return {found["a"].labels[code]: int(n) for code, n in zip(found["a"].codes, found.counts, strict=True)}


def test_a_delta_table_is_read_without_what_was_deleted_at_any_version(tmp_path):
    deltalake = pytest.importorskip("deltalake", reason="the extra 'lake' is not installed")
    place = str(tmp_path / "lake")
    deltalake.write_deltalake(place, TABLE, partition_by=["country"])
    table = deltalake.DeltaTable(place)
    table.delete("country = 'FR'")
    assert counts(place) == counts(table) == {"x": 50}
    assert counts(f"{place}@0") == counts(deltalake.DeltaTable(place, version=0)) == {"x": 50, "y": 50}
    assert open_source(f"{place}@0").count_by(BOTH).total == 100
    with pytest.raises(DataError, match="there is no such version"):
        open_source(f"{place}@7")


def test_an_iceberg_table_is_read_without_what_was_deleted_at_any_snapshot(tmp_path):
    pytest.importorskip("pyiceberg", reason="the extra 'lake' is not installed")
    pytest.importorskip("sqlalchemy", reason="Iceberg's catalogue in a file needs SQLAlchemy")
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.people", schema=TABLE.schema)
    table.append(TABLE)
    first = table.current_snapshot().snapshot_id
    table.delete("country = 'FR'")
    folder = next(path.parent for path in tmp_path.rglob("metadata") if path.is_dir())
    assert counts(table) == counts(str(folder)) == {"x": 50}
    assert counts(f"{folder}@{first}") == {"x": 50, "y": 50}
    with pytest.raises(DataError, match="no such snapshot"):
        open_source(f"{folder}@12")


def test_a_draft_and_a_release_of_a_lake(tmp_path):
    deltalake = pytest.importorskip("deltalake", reason="the extra 'lake' is not installed")
    import incrowd

    deltalake.write_deltalake(str(tmp_path / "lake"), TABLE)
    drafted = draft(str(tmp_path / "lake"), "-")
    assert "country" in drafted.text
    policy = incrowd.Policy.from_text(
        f"incrowd: 1\ndata: {{path: '{tmp_path}/lake'}}\nattributes: {{a: {{domain: [x, y]}}}}\n"
        "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-3, beta: 0.5, k: 10}\n"
    )
    assert incrowd.release(None, policy).table.num_rows


@pytest.fixture(scope="module")
def bucket():
    """A bucket of an S3-compatible server on this machine."""
    program = Path(sys.prefix) / "moto" / "bin" / "moto_server"
    if not program.exists():
        pytest.skip("moto's server is not installed (make setup does)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=-3, stderr=-3)
    host = "127.0.0.1"
    given = {
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        from pyarrow import fs

        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
                break
            time.sleep(0.1)
        store = fs.S3FileSystem(allow_bucket_creation=True, scheme="http", endpoint_override=f"{host}:{port}")
        store.create_dir("office")
        yield "s3://office", store
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        server.kill()
        server.wait()


def test_parquet_in_an_object_store(bucket):
    place, store = bucket
    pq.write_table(TABLE, "office/people.parquet", filesystem=store)
    ds.write_dataset(
        TABLE, "office/parts", format="parquet", partitioning=["country"], partitioning_flavor="hive", filesystem=store
    )
    assert counts(f"{place}/people.parquet") == {"x": 50, "y": 50}
    assert open_source(f"{place}/parts").count_by(BOTH).total == 100
    with pytest.raises(DataError) as caught:
        open_source(f"{place}/absent.parquet")
    assert caught.value.code == "data-not-found"


def test_a_delta_table_in_an_object_store(bucket):
    deltalake = pytest.importorskip("deltalake", reason="the extra 'lake' is not installed")
    deltalake.write_deltalake(f"{bucket[0]}/lake", TABLE)
    deltalake.DeltaTable(f"{bucket[0]}/lake").delete("country = 'FR'")
    assert counts(f"{bucket[0]}/lake") == {"x": 50}


@pytest.mark.parametrize("address", ["abfs://c@a.dfs.core.windows.net/people", "gs://office/people"])
def test_whatever_a_store_fails_with_is_one_clear_error(address, monkeypatch):
    """Azure's library raises a RuntimeError; Google's would be asked again for a quarter of an hour."""
    from types import SimpleNamespace

    from pyarrow import fs

    def fail(asked):
        assert ("retry_limit_seconds=" in asked) == address.startswith("gs:")
        raise RuntimeError("secret")

    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=fail))
    with pytest.raises(DataError, match="cannot be reached") as caught:
        open_source(address)
    assert "secret" not in str(caught.value)
