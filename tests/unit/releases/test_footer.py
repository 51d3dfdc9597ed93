"""A Parquet file whose notes say what its records do not is found; one that Arrow wrote from them alone is not."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.tables import write_table
from incrowd.releases.published import read_table

LABELS = {"town": ("Aachen", "Bonn", "Celle", None), "sex": ("f", "m")}
TABLE = pa.table({"town": ["Aachen"] * 20 + ["Bonn"] * 30 + [None] * 10, "sex": ["f"] * 60})
END = 8  # the length of the notes, and PAR1


def says_nothing_else(path):
    found = read_table([path], LABELS)
    assert found.records == (found.histogram.total,)
    return found.canonical


def write(path, table=TABLE, **how):
    pq.write_table(table, path, **({"compression": "none", "store_schema": False, "write_statistics": False} | how))
    return path


def taken_apart(path):
    """The pages, and the notes behind them."""
    content = path.read_bytes()
    at = len(content) - END - int.from_bytes(content[-END:-4], "little")
    return content[:at], content[at:-END]


def put_together(path, pages, notes):
    path.write_bytes(pages + notes + len(notes).to_bytes(4, "little") + b"PAR1")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.parquet"


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"compression": "zstd"},
        {"use_dictionary": False},
        {"row_group_size": 7},
        {"row_group_size": 60},
        {"data_page_version": "2.0"},
    ],
)
def test_what_arrow_writes_says_nothing_else(path, how):
    assert says_nothing_else(write(path, **how))
    assert says_nothing_else(write(path, encoded(TABLE), **how))


def encoded(table):
    """As a release is written: from codes, and all that is declared."""
    texts = [pa.array([label for label in labels if label is not None]) for labels in LABELS.values()]
    codes = [pc.index_in(column.combine_chunks(), every) for column, every in zip(table.columns, texts, strict=True)]
    pairs = zip(codes, texts, strict=True)
    return pa.table([pa.DictionaryArray.from_arrays(code, every) for code, every in pairs], names=list(LABELS))


cells = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(1, 3000)), max_size=8)


@settings(deadline=None, max_examples=60)
@given(cells=cells)
def test_what_is_released_says_nothing_else(tmp_path_factory, cells):
    codes = [np.array(code, dtype=np.int64) for code in zip(*cells, strict=True)] or [np.zeros(0, dtype=np.int64)] * 3
    columns = [Column(name, labels, code) for (name, labels), code in zip(LABELS.items(), codes, strict=False)]
    path = tmp_path_factory.mktemp("table") / "t.parquet"
    with path.open("wb") as file:
        write_table(Histogram.of(columns, codes[2]), "parquet", file)
    assert says_nothing_else(path)


@pytest.mark.parametrize("rows", [0, 1, 55])
def test_tables_of_all_lengths_say_nothing_else(path, rows):
    assert says_nothing_else(write(path, TABLE.slice(rows, 1 if rows == 55 else rows)))


def test_a_file_without_groups_of_rows_says_nothing_else(path):
    pq.ParquetWriter(path, TABLE.schema, store_schema=False, write_statistics=False).close()
    assert says_nothing_else(path)


@pytest.mark.parametrize(
    "how",
    [
        {"store_schema": True},
        {"write_statistics": True},
        {"write_statistics": ["sex"]},
        {"write_page_index": True},
        {"sorting_columns": [pq.SortingColumn(0)]},
    ],
)
def test_notes_that_nobody_asked_for_are_found(path, how):
    assert not says_nothing_else(write(path, **how))


def test_groups_of_rows_of_any_length_are_found(path):
    for sizes, fine in (((20, 20, 20), True), ((25, 25, 10), True), ((20, 17, 23), False), ((15, 15, 30), False)):
        with pq.ParquetWriter(path, TABLE.schema, store_schema=False, write_statistics=False) as writer:
            start = 0
            for size in sizes:
                writer.write_table(TABLE.slice(start, size))
                start += size
        assert says_nothing_else(path) == fine


def test_a_name_of_the_writer_that_says_more_is_found(path):
    pages, notes = taken_apart(write(path))
    name = re.search(rb"parquet-cpp-arrow version \d+\.\d+\.\d+", notes)[0]
    for other, fine in ((b"17 records were left out", False), (name[:-1] + b"x", False), (name[:-1] + b"9", True)):
        put_together(path, pages, notes.replace(name, other.ljust(len(name))))
        assert says_nothing_else(path) == fine


def test_bytes_that_belong_to_nothing_are_found(path):
    pages, notes = taken_apart(write(path))
    put_together(path, pages, notes)
    assert says_nothing_else(path)
    put_together(path, pages + b"hidden", notes)
    assert not says_nothing_else(path)
    put_together(path, b"HIDE" + pages[4:], notes)
    assert not says_nothing_else(path)


def test_fields_that_no_parquet_file_has_are_found(path):
    pages, notes = taken_apart(write(path))
    assert notes[-1] == 0  # the end of the fields
    put_together(path, pages, notes[:-1] + b"\x58\x06hidden" + b"\x00")  # five behind the last one, a text
    assert pq.read_table(path).num_rows == 60
    assert not says_nothing_else(path)
