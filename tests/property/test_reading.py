"""Reading a published table a batch at a time gives what reading it whole would give."""

from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

from incrowd.histogram import Histogram
from incrowd.releases import published

LABELS = {"a": ("x", "y, z", 'say "hi"', ""), "b": ("1", None, "2"), "c\n": (None, "only")}

records = st.lists(st.tuples(*(st.sampled_from(labels) for labels in LABELS.values())), max_size=60)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(published, "_RECORDS", 7)
    monkeypatch.setattr(published, "_MERGED", 3)


def arrow(rows):
    columns = zip(*rows, strict=True) if rows else [[] for _ in LABELS]
    return pa.table([pa.array(list(column), pa.string()) for column in columns], names=list(LABELS))


def key(row):
    return tuple(labels.index(value) for labels, value in zip(LABELS.values(), row, strict=True))


@settings(deadline=None, max_examples=60)
@given(rows=records, ordered=st.booleans(), wanted=st.sets(st.sampled_from(list(LABELS))), files=st.integers(1, 3))
def test_batches_add_up_to_the_whole_table(tmp_path_factory, rows, ordered, wanted, files):
    rows = sorted(rows, key=key) if ordered else rows
    folder = tmp_path_factory.mktemp("table")
    paths = [folder / f"{i}.parquet" for i in range(files)]
    cuts = [len(rows) * i // files for i in range(files + 1)]
    for path, start, stop in zip(paths, cuts, cuts[1:], strict=False):
        pq.write_table(arrow(rows[start:stop]), path, row_group_size=5, store_schema=False, write_statistics=False)
    found = published.read_table(paths, LABELS, wanted)
    whole = Histogram.from_arrow(arrow(rows), labels=LABELS)
    assert found.histogram == whole.project([name for name in LABELS if name in wanted])
    assert found.canonical == (list(map(key, rows)) == sorted(map(key, rows)))
    assert found.records == tuple(stop - start for start, stop in pairwise(cuts))
    assert published.read_table(paths, LABELS).histogram == whole


@settings(deadline=None, max_examples=60)
@given(rows=records, ordered=st.booleans())
def test_csv_files_too(tmp_path_factory, rows, ordered):
    rows = sorted(rows, key=key) if ordered else rows
    path = tmp_path_factory.mktemp("table") / "t.csv"
    csv.write_csv(arrow(rows), path)
    found = published.read_table([path], LABELS)
    assert found.histogram == Histogram.from_arrow(arrow(rows), labels=LABELS)
    assert found.canonical == (list(map(key, rows)) == sorted(map(key, rows)))


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_text_file_longer_than_a_block_and_many_batches(tmp_path, monkeypatch, form):
    monkeypatch.setattr(published, "_BLOCK", 1 << 10)
    rows = sorted([("x", "1", None), ("y, z", None, "only"), ("", "2", None)] * 500, key=key)
    path = tmp_path / f"t.{form}"
    if form == "csv":
        csv.write_csv(arrow(rows), path)
    else:
        pq.write_table(arrow(rows), path, store_schema=False, write_statistics=False)
    found = published.read_table([path], LABELS)
    assert found.canonical
    assert found.histogram.counts.tolist() == [500, 500, 500]
    assert found.records == (1500,)


@pytest.mark.parametrize(
    "table",
    [
        arrow([("x", "1", None), ("strange", "1", None)]),
        arrow([(None, "1", None)]),
        arrow([("x", "1", None)]).rename_columns(["a", "b", "other"]),
        arrow([("x", "1", None)]).select(["b", "a", "c\n"]),
        arrow([("x", "1", None)]).append_column("d", [["1"]]),
        pa.table({"a": [1], "b": [2], "c\n": [3]}),
    ],
)
def test_other_values_and_columns_are_refused(tmp_path, table):
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises((ValueError, TypeError, AttributeError)):
        published.read_table([tmp_path / "t.parquet"], LABELS)


def test_a_value_that_only_the_dictionary_holds_is_refused(tmp_path):
    """Nobody's row, but it would be published all the same."""
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["x", "17 were left out"]))
    table = pa.table({"a": hidden, "b": ["1", "1"], "c\n": pa.array([None, None], pa.string())})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, store_schema=False, write_statistics=False)
    assert b"17 were left out" in path.read_bytes()
    with pytest.raises(ValueError, match="outside"):
        published.read_table([path], LABELS)


@pytest.mark.parametrize("labels", [("x", "y", "z"), ("x", "y", "z", None)])
def test_an_index_without_an_entry_is_refused(tmp_path, labels):
    """Arrow reads such a file without a word if it is asked for indices."""
    indices = pa.array([0, 1, 3, 0], pa.int32())
    values = pa.DictionaryArray.from_arrays(indices, pa.array(["x", "y", "z"]), safe=False)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": values}), path, store_schema=False, write_statistics=False)
    with pytest.raises(ValueError, match="outside its labels"):
        published.read_table([path], {"a": labels})


def test_what_fits_no_memory_is_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": ["x"]}), path, store_schema=False, write_statistics=False)

    def fail(*_):
        raise pa.ArrowMemoryError("malloc of size 300000000 failed")

    monkeypatch.setattr(published, "_codes", fail)
    with pytest.raises(ValueError, match="cannot be read"):
        published.read_table([path], {"a": ["x"]})
