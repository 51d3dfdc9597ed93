"""DuckDB on files as publishers have them, on tables in memory, and on the benchmark tables."""

import csv
import datetime as dt
import gzip
import io
import json
import subprocess
import sys
import threading

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from incrowd import sources
from incrowd.core.errors import DataError, ParameterError
from incrowd.domain import Bins, Categories, Coding, DateRange, IntegerRange
from incrowd.histogram import Column, Histogram
from incrowd.sources import SourceColumn, open_source
from incrowd.sources.files import ParquetFiles

ROWS = [("1", "Zoë"), ("2", "Łukasz"), ("1", "Zoë"), ("3", "a;b,c|d\te")]
CODINGS = [Coding("id", IntegerRange(1, 3)), Coding("name", Categories(("Zoë", "Łukasz", "a;b,c|d\te")))]
EXPECTED = Histogram.of(
    [
        Column("id", ("1", "2", "3"), np.array([0, 1, 2])),
        Column("name", ("Zoë", "Łukasz", "a;b,c|d\te"), np.array([0, 1, 2])),
    ],
    np.array([2, 1, 1]),
)


def write(path, delimiter=",", end="\n", encoding="utf-8", quoting=csv.QUOTE_MINIMAL, header=("id", "name"), rows=ROWS):
    sink = io.StringIO(newline="")
    writer = csv.writer(sink, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(header)
    writer.writerows(rows)
    content = sink.getvalue().encode(encoding)
    compress = {".gz": gzip.compress, ".zst": zstd}.get(path.suffix, bytes)
    path.write_bytes(compress(content))
    return path


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_dialects(tmp_path, delimiter, end):
    path = write(tmp_path / "t.csv", delimiter, end)
    assert open_source(path).count_by(CODINGS) == EXPECTED


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["t.csv", "t.txt.gz", "t.tsv.zst", "t"])
def test_encodings_and_compressions_that_show(tmp_path, encoding, name):
    path = write(tmp_path / name, end="\r\n", quoting=csv.QUOTE_ALL, encoding=encoding)
    assert open_source(path).count_by(CODINGS) == EXPECTED


@pytest.mark.parametrize("encoding", ["iso-8859-2", "windows-1250", "UTF8", "utf-16-be", "utf-32", "cp852"])
def test_encodings_that_are_told(tmp_path, encoding):
    rows = [("1", "Łukasz"), ("2", "Zoë")]
    path = write(tmp_path / "t.csv", encoding=encoding, rows=rows)
    source = open_source(path, encoding=encoding)
    assert source.count_by(CODINGS).decode()["name"].to_pylist() == ["Łukasz", "Zoë"]


def test_latin_1_and_its_relative_from_windows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"price;name\r\n5\x80;Fran\xe7ois\r\n")
    codings = [Coding("price", Categories(("5€", "5\x80"))), Coding("name", Categories(("François",)))]
    assert open_source(path, encoding="windows-1252").count_by(codings)["price"].codes.tolist() == [0]
    assert open_source(path, encoding="latin-1").count_by(codings)["price"].codes.tolist() == [1]
    with pytest.raises(DataError) as caught:
        open_source(path)
    assert caught.value.code == "data-encoding"
    assert "windows-1252" in caught.value.remedy
    path.write_bytes(b"price;name\r\n" + b"5;a\r\n" * 300_000 + b"5\x81;Fran\xe7ois\r\n")
    with pytest.raises(DataError) as caught:
        open_source(path, encoding="windows-1252").count_by(codings)
    assert caught.value.code == "data-encoding"


def test_quoted_delimiters_and_line_ends(tmp_path):
    texts = ("a,b", "two\nlines", "two\r\nlines", 'a "quote"', ' "', "", ",", "\n")
    rows = [(text, str(i)) for i, text in enumerate(texts) for _ in range(500 + i)]
    path = write(tmp_path / "t.csv", header=("text", "i"), end="\r\n", rows=rows)
    h = open_source(path, missing_values=[]).count_by(
        [Coding("text", Categories(texts)), Coding("i", IntegerRange(0, 9))]
    )
    assert h["text"].codes.tolist() == h["i"].codes.tolist() == list(range(len(texts)))
    assert h.counts.tolist() == [500 + i for i in range(len(texts))]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("inner", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_headers_of_several_lines_lose_no_record(tmp_path, end, inner, encoding):
    name = f"marital{inner}status"
    path = write(
        tmp_path / "t.csv", header=(name, "b"), end=end, rows=[("x", "y")] * 3, encoding=encoding, quoting=csv.QUOTE_ALL
    )
    source = open_source(path)
    assert [column.name for column in source.columns()] == [name, "b"]
    assert source.count_by([Coding(name, Categories(("x",))), Coding("b", Categories(("y",)))]).total == 3


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blank_lines_in_a_single_column_are_missing_values(tmp_path, end):
    path = tmp_path / "t.csv"
    path.write_bytes(end.join(["x", "a", "", "a", '""', "b", ""]).encode())
    h = open_source(path).count_by([Coding("x", Categories(("a", "b")), missing="keep")])
    assert h.counts.tolist() == [2, 1, 2]


def test_a_single_column_needs_no_delimiter(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"x\na;b\nc\n")
    assert open_source(path).count_by([Coding("x", Categories(("a;b", "c")))]).total == 2


def test_decimal_commas_are_not_taken_for_delimiters(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"weight;age\r\n61,5;30\r\n70,25;31\r\n")
    assert [column.name for column in open_source(path).columns()] == ["weight", "age"]


def test_the_delimiter_and_quote_can_be_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b;c\n1,x;2\n")
    assert [c.name for c in open_source(path, delimiter=";").columns()] == ["a,b", "c"]
    path.write_bytes(b"a~b\n'1~2'~'it''s'\n")
    source = open_source(path, delimiter="~", quote="'")
    assert source.count_by([Coding("a", Categories(("1~2",))), Coding("b", Categories(("it's",)))]).total == 1


def test_columns_without_a_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b",a,\n1,x,2\n")
    assert open_source(path).count_by([Coding("a", Categories(("x",)))]).total == 1
    with pytest.raises(DataError, match="no name"):
        open_source(path).count_by([Coding("", Categories(("1",)))])
    path.write_bytes(b",a\n1,x\n2,x\n")
    assert open_source(path).count_by([Coding("", Categories(("1", "2")))]).total == 2


def test_records_beyond_the_first_mebibyte_count(tmp_path):
    rows = [(str(i % 3 + 1), ("Zoë", "Łukasz")[i % 2] if i % 7 else "a;b,c|d\te") for i in range(150_000)]
    expected = open_source(pa.table({"id": [r[0] for r in rows], "name": [r[1] for r in rows]})).count_by(CODINGS)
    assert expected.total == 150_000
    for name, encoding in [("t.csv", "utf-8"), ("t.csv.gz", "utf-8"), ("t.csv.zst", "utf-16"), ("u.csv", "utf-16")]:
        path = write(tmp_path / name, encoding=encoding, rows=rows)
        assert open_source(path).count_by(CODINGS) == expected


def test_globs_and_lists(tmp_path):
    for i, row in enumerate(ROWS):
        write(tmp_path / f"part-{i}.csv", rows=[row], end=("\n", "\r\n")[i % 2])
        pq.write_table(pa.table({"id": [row[0]], "name": [row[1]]}), tmp_path / f"part-{i}.parquet")
    assert open_source(tmp_path / "*.csv").count_by(CODINGS) == EXPECTED
    assert open_source(str(tmp_path / "part-?.parquet")).count_by(CODINGS) == EXPECTED
    assert open_source(sorted(tmp_path.glob("*.parquet"))).count_by(CODINGS) == EXPECTED
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for path in tmp_path.glob("*.parquet"):
        path.rename(tmp_path / "deep" / "er" / path.name)
    assert open_source(tmp_path / "**/*.parquet").count_by(CODINGS) == EXPECTED
    # A file named twice is still one file.
    first, *others = sorted(tmp_path.glob("*.csv"))
    assert open_source([first, tmp_path / "*.csv", *others]).count_by(CODINGS) == EXPECTED


def test_names_with_pattern_characters_mean_themselves(tmp_path):
    for name, decoy in [("t[1].csv", "t1.csv"), ("t*.csv", "tx.csv"), ("t?.csv", "ty.csv"), ("it's.csv", "its.csv")]:
        write(tmp_path / decoy, rows=[("9", "wrong")])
        assert open_source(write(tmp_path / name)).count_by(CODINGS) == EXPECTED
    pq.write_table(pa.table({"id": ["9"], "name": ["wrong"]}), tmp_path / "t1.parquet")
    table = pa.table({"id": [r[0] for r in ROWS], "name": [r[1] for r in ROWS]})
    pq.write_table(table, tmp_path / "t[1].parquet")
    assert open_source(tmp_path / "t[1].parquet").count_by(CODINGS) == EXPECTED


def test_folders_that_look_like_partitions_add_no_columns(tmp_path):
    (tmp_path / "id=7").mkdir()
    pq.write_table(pa.table({"id": ["1"], "name": ["Zoë"]}), tmp_path / "id=7" / "t.parquet")
    source = open_source(tmp_path / "*" / "*.parquet")
    assert [c.name for c in source.columns()] == ["id", "name"]
    assert source.count_by(CODINGS).total == 1


def test_json_lines(tmp_path):
    path = tmp_path / "t.jsonl"
    lines = [json.dumps({"name": name, "id": int(i), "nested": {"x": [1]}}) for i, name in ROWS]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    assert open_source(path).count_by(CODINGS) == EXPECTED
    path.with_suffix(".ndjson.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert open_source(tmp_path / "t.ndjson.gz").count_by(CODINGS) == EXPECTED
    path.write_text('{"id": 1, "it\'s": true}\n{"id": null}\n{"id": 2.0, "it\'s": "t"}\n', encoding="utf-8")
    codings = [Coding("id", IntegerRange(1, 2), missing="keep"), Coding("it's", Categories((True,)), missing="keep")]
    assert open_source(path).count_by(codings).counts.tolist() == [1, 1, 1]


def test_tables_in_memory():
    table = pa.table({"id": pa.array([int(r[0]) for r in ROWS], pa.int8()), "name": [r[1] for r in ROWS]})
    encoded = table.set_column(1, "name", table["name"].dictionary_encode())
    frame = table.to_pandas()
    things = [
        table,
        encoded,
        table.to_batches()[0],
        pa.dataset.dataset(table),
        frame,
        frame.astype({"name": "category"}).set_index(pd.Index([3, 3, 1, 2])),
        frame.astype({"id": "float64", "name": "object"}),
        frame.astype({"id": "Int64", "name": "string"}),
        pl.from_arrow(table),
        pl.from_arrow(table).lazy(),
        pl.from_arrow(table).with_columns(pl.col("name").cast(pl.Categorical)),
        pl.from_arrow(table).with_columns(pl.col("name").cast(pl.Enum(["Łukasz", "Zoë", "a;b,c|d\te"]))),
        duckdb.connect().from_arrow(table),
        duckdb.connect().from_arrow(table).project("id, name::ENUM('Łukasz', 'Zoë', 'a;b,c|d\te') AS name"),
        duckdb.connect().from_arrow(table).project("id::DECIMAL(9, 3) AS id, name"),
    ]
    for thing in things:
        source = open_source(thing)
        assert source.count_by(CODINGS) == EXPECTED
        assert source.count_by(CODINGS) == EXPECTED, "a table can be counted again"


def test_streams_are_read_once():
    table = pa.table({"id": [r[0] for r in ROWS], "name": [r[1] for r in ROWS]})
    source = open_source(pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(2))))
    assert source.columns() == [SourceColumn("id", "text"), SourceColumn("name", "text")]
    assert source.count_by(CODINGS) == EXPECTED
    with pytest.raises(DataError, match="only once"):
        source.count_by(CODINGS)

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    assert open_source(Stream()).count_by(CODINGS) == EXPECTED
    wrong = open_source(table.to_reader(), show_values=True)
    with pytest.raises(DataError) as caught:
        wrong.count_by([Coding("name", Categories(("Zoë",)))])
    assert caught.value.code == "values-outside-domain"


def test_a_stream_is_counted_in_less_memory_than_it_holds():
    texts = tuple(f"{i:060}" for i in range(100))
    part = pa.record_batch([pa.array(texts * 100)] * 3, names=["a", "b", "c"])
    stream = pa.RecordBatchReader.from_batches(part.schema, (part for _ in range(100)))
    assert 100 * part.nbytes > 3 * 2**25
    codings = [Coding(name, Categories(texts)) for name in part.schema.names]
    histogram = open_source(stream, memory_limit="32MiB", threads=1).count_by(codings)
    assert (histogram.total, len(histogram.counts), set(histogram.counts.tolist())) == (1_000_000, 100, {10_000})


def test_a_stream_that_breaks_shows_nothing_of_it():
    def batches():
        yield pa.record_batch({"id": ["1"]})
        raise ValueError("Hildegard is not a number")

    source = open_source(pa.RecordBatchReader.from_batches(pa.schema([("id", pa.string())]), batches()))
    with pytest.raises(DataError) as caught:
        source.count_by(CODINGS[:1])
    assert caught.value.code == "data-unreadable"
    assert "Hildegard" not in str(caught.value)


def test_kinds_of_columns():
    table = pa.table(
        {
            "text": ["a"],
            "integer": pa.array([1], pa.uint16()),
            "decimal": pa.array([1], pa.decimal128(5, 2)),
            "large decimal": pa.array([1], pa.decimal256(60, 2)),
            "medium decimal": pa.array([1], pa.decimal256(20, 2)),
            "float": [1.5],
            "half": pa.array([1.5], pa.float16()),
            "boolean": [True],
            "date": pa.array([1], pa.date64()),
            "timestamp": pa.array([1], pa.timestamp("ns", "Europe/Vienna")),
            "null": pa.nulls(1),
            "list": [[1]],
            "bytes": [b"a"],
            "time": pa.array([1], pa.time64("us")),
        }
    )
    kinds = [column.kind for column in open_source(table).columns()]
    assert kinds == ["text", "integer", "decimal", "text", "decimal", "float", "float", "boolean", "date", "timestamp",
                     "null", "other", "other", "other"]  # fmt: skip
    codings = [Coding(name, IntegerRange(1, 1)) for name in ("integer", "decimal", "large decimal", "medium decimal")]
    assert open_source(table).count_by([*codings, Coding("null", IntegerRange(1, 1), missing="keep")]).total == 1


def test_unrelated_columns_may_hold_anything():
    frame = pd.DataFrame({"id": ["1"], "mixed": [object()], 7: [2**70]})
    assert open_source(frame).count_by(CODINGS[:1]).total == 1
    with pytest.raises(DataError) as caught:
        open_source(frame).count_by([Coding("mixed", Categories(("a",)))])
    assert caught.value.code == "column-type"
    with pytest.raises(DataError, match="same name"):
        open_source(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_other_engines_are_found_by_entry_point(monkeypatch):
    class Engine:
        def columns(self):
            return []

        def count_by(self, codings, *, progress=None):
            return EXPECTED

    calls = []

    def opener(thing, **options):
        calls.append((thing, options))
        return Engine() if str(thing).startswith("spark://") else None

    class Entry:
        def load(self):
            return opener

    monkeypatch.setattr(sources, "entry_points", lambda group: [Entry()] if group == "incrowd.sources" else [])
    assert open_source("spark://host/table", missing_values=["-"]).count_by([]) == EXPECTED
    assert calls == [("spark://host/table", {"missing_values": ["-"]})]
    with pytest.raises(DataError, match="no installed engine"):
        open_source("trino://host/table")
    with pytest.raises(DataError, match="not a table"):
        open_source(7)


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ""},
        {"delimiter": ";;"},
        {"delimiter": "\n"},
        {"quote": "ab"},
        {"delimiter": '"'},
        {"decimal": "'"},
        {"encoding": "utf-9"},
        {"encoding": "rot13"},
        {"missing_values": "NA"},
        {"missing_values": [None]},
        {"memory_limit": "much"},
        {"threads": 0},
        {"temp_directory": "/no/such/directory"},
    ],
    ids=str,
)
def test_options_out_of_range(options):
    with pytest.raises(ParameterError):
        open_source(pa.table({"a": ["1"]}), **options)


def test_lost_rows_would_be_noticed(tmp_path):
    pq.write_table(pa.table({"id": ["1"] * 5}), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet")
    table = source._table
    source._table = ParquetFiles(table.paths, table.names, rows=6)
    with pytest.raises(DataError, match="5 records were read, but it holds 6") as caught:
        source.count_by(CODINGS[:1])
    assert caught.value.code == "records-differ"


def test_a_file_that_notes_wrong_statistics_is_read_all_the_same(tmp_path):
    """Written by hand: the smallest and largest value claim that every record is inside the domain."""
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"id": pa.array([1, 2, 77_777], pa.int64())}), path, use_dictionary=False, compression="none"
    )
    content = path.read_bytes()
    honest, lie = (value.to_bytes(8, "little") for value in (77_777, 3))
    data, footer = content[: content.index(b"\x15", 60)], content[content.index(b"\x15", 60) :]
    forged = data + footer.replace(honest, lie)
    path.write_bytes(forged)
    if pq.read_metadata(path).row_group(0).column(0).statistics.max != 3:
        pytest.skip("this version of Arrow lays statistics out differently")
    assert pq.read_table(path)["id"].to_pylist() == [1, 2, 77_777]
    for domain in (IntegerRange(1, 3), IntegerRange(1, 70_000), Bins((0.0, 4.0)), Categories((1, 2, 3))):
        with pytest.raises(DataError) as caught:
            open_source(path).count_by([Coding("id", domain)])
        assert caught.value.details["columns"]["id"] == {"outside": 1, "missing": 0}
        h = open_source(path).count_by([Coding("id", domain, other="other")])
        assert h.counts[-1] == 1
        assert h["id"].labels[h["id"].codes[-1]] == "other"


def test_days_beyond_the_calendar_are_outside():
    table = pa.table({"d": pa.array([0, 2**31 - 1, -(2**31) + 1, 5], pa.int32()).cast(pa.date32())})
    with pytest.raises(DataError) as caught:
        open_source(table).count_by([Coding("d", DateRange(dt.date(1970, 1, 1), dt.date(1970, 1, 31)))])
    assert caught.value.details["columns"]["d"] == {"outside": 2, "missing": 0}


def test_more_groups_than_memory_spill_to_disk_and_leave_nothing(tmp_path):
    n = 400_000
    table = pa.table({"a": pa.array(np.arange(n, dtype=np.int32)), "b": pa.array(np.arange(n, dtype=np.int32)[::-1])})
    codings = [Coding("a", IntegerRange(0, n - 1)), Coding("b", IntegerRange(0, n - 1))]
    h = open_source(table, memory_limit="12MB", threads=1, temp_directory=tmp_path).count_by(codings)
    assert len(h) == h.total == n
    assert np.array_equal(h["a"].codes, np.arange(n))
    assert np.array_equal(h["b"].codes, np.arange(n)[::-1])
    assert not any(tmp_path.iterdir())


def test_too_little_memory_is_an_error_of_ours(tmp_path):
    table = pa.table({"a": pa.array(np.arange(200_000))})
    with pytest.raises(DataError) as caught:
        open_source(table, memory_limit="1MB", temp_directory=tmp_path).count_by(
            [Coding("a", IntegerRange(0, 200_000))]
        )
    assert caught.value.code == "data-memory"
    assert not any(tmp_path.iterdir())


def test_sources_can_be_counted_from_several_threads(tmp_path):
    source = open_source(write(tmp_path / "t.csv"))
    found = []
    threads = [threading.Thread(target=lambda: found.append(source.count_by(CODINGS))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [EXPECTED] * 4


@pytest.mark.parametrize("seconds", [1e-6, 100])
def test_an_unfinished_count_leaves_nothing(tmp_path, monkeypatch, seconds):
    """Whether it is stopped meanwhile or at the end."""
    monkeypatch.setattr("incrowd.sources.duckdb._POLL_SECONDS", seconds)

    class StopError(Exception):
        pass

    def stop(_part):
        raise StopError

    path = write(tmp_path / "t.csv", encoding="utf-16")
    (tmp_path / "temporary").mkdir()
    with pytest.raises(StopError):
        open_source(path, temp_directory=tmp_path / "temporary").count_by(CODINGS, progress=stop)
    assert not any((tmp_path / "temporary").iterdir())


def test_counting_a_file_does_not_import_pandas(tmp_path):
    path = write(tmp_path / "t.csv")
    code = (
        "import sys\n"
        "from incrowd.sources import open_source\n"
        "from incrowd.domain import Categories, Coding\n"
        f"h = open_source({str(path)!r}).count_by([Coding('id', Categories(('1', '2', '3')))])\n"
        "h.decode(), h.expand()\n"
        "sys.exit(int('pandas' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


BENCHMARKS = {
    "adult": ("adult.csv", "adult", 30_162, 19_502),
    "fars10": ("fars_subset.csv", "fars", 10_093, 8_641),
    "creditcard": ("creditcard_int.csv", "creditcard_int", 30_000, 29_965),
    "ihis_syn": ("ihis_int_syn.csv.gz", "ihis_int", 1_200_000, 989_789),
}


@pytest.mark.parametrize("folder", BENCHMARKS)
def test_benchmark_tables(benchmark_data, folder):
    """Their numbers of records and of distinct records are published with them."""
    name, prefix, records, distinct = BENCHMARKS[folder]
    source = open_source(benchmark_data / folder / name)
    codings = []
    for column in source.columns():
        hierarchy = benchmark_data / folder / f"{prefix}_hierarchy_{column.name}.csv"
        values = [line.split(";")[0] for line in hierarchy.read_text(encoding="utf-8").splitlines() if line]
        numbers = all(value.lstrip("-").isdigit() for value in values)
        codings.append(Coding(column.name, Categories(tuple(map(int, values) if numbers else values))))
    h = source.count_by(codings)
    assert h.total == records
    assert len(h) == distinct
