"""No record is lost in silence: every table is counted a second time, without the engine."""

import csv
import gzip
import io
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databases import put_into_sqlite
from incrowd.auditing.tables import audit
from incrowd.core.errors import DataError
from incrowd.domain import Categories, Coding
from incrowd.drafting import draft
from incrowd.sources import databases, open_source
from incrowd.sources.delimited import DelimitedFiles
from incrowd.sources.files import ParquetFiles
from incrowd.sources.jsonlines import JsonLines
from incrowd.sources.memory import ArrowTable
from incrowd.sources.record_scan import RecordScan
from incrowd.sources.values import distinct_counts

CODINGS = [Coding("a", Categories(("x", "y")))]
ROWS = b"x,1\ny,2\n" * 65_535
MANY = pa.table({"a": ["x", "y"] * 20, "b": ["1", "2"] * 20})
READERS = {
    "release": lambda thing: open_source(thing).count_by(CODINGS).total,
    "audit": lambda thing: audit(thing, "a").records,
    "init": lambda thing: draft(thing, "-").profiles[0].records,
    "distinct": lambda thing: int(distinct_counts(open_source(thing)).sum()),
}


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


PACKED = {"": lambda data: data, ".gz": lambda data: gzip.compress(data, 1), ".zst": zstd}


def code_of(read):
    with pytest.raises(DataError) as caught:
        read()
    assert caught.value.exit_code == 2
    return caught.value.code


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("place", ["first", "middle", "last", "last, unended"])
@pytest.mark.parametrize("megabytes", [3, 20, 33, 40, 70])
def test_a_line_that_is_too_long_is_refused_wherever_it_stands(tmp_path, megabytes, place, ending):
    long = b"x," + b"z" * (megabytes * 10**6) + b"\n"
    half = len(ROWS) // 16 * 8
    body = {
        "first": long + ROWS,
        "middle": ROWS[:half] + long + ROWS[half:],
        "last": ROWS + long,
        "last, unended": ROWS + long[:-1],
    }
    path = tmp_path / f"t.csv{ending}"
    path.write_bytes(PACKED[ending](b"a,b\n" + body[place]))
    assert code_of(lambda: READERS["release"](path)) == "data-line-too-long"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl"])
def test_every_reader_refuses_it(tmp_path, reader, name):
    record = b'{"a": "x", "b": "1"}\n' if name.endswith("jsonl") else b"x,1\n"
    long = record.replace(b"1", b"z" * 40_000_000)
    data = (b"" if name.endswith("jsonl") else b"a,b\n") + record * 50_000 + long
    (tmp_path / name).write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)
    assert code_of(lambda: READERS[reader](tmp_path / name)) == "data-line-too-long"


def test_a_line_of_400_megabytes_in_a_compressed_file(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"a,b\n" + b"x,1\n" * 500 + b"x,")
        for _ in range(400):
            file.write(b"z" * 10**6)
        file.write(b"\n")
    assert code_of(lambda: READERS["release"](path)) == "data-line-too-long"


def test_the_line_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"x,1\n" * 70_000 + b"x," + b"z" * 2_500_000 + b"\nx,1\n")
    with pytest.raises(DataError, match=r"line 70002\)") as caught:
        READERS["release"](path)
    assert caught.value.details == {"line": 70_002}


def lossy(monkeypatch, kind):
    """An engine that loses the first record of such tables."""
    attach = kind.attach

    def attach_less(self, *arguments):
        return f"(SELECT * FROM {attach(self, *arguments)} OFFSET 1)"

    monkeypatch.setattr(kind, "attach", attach_less)


def write_text(path, table):
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    if path.name.endswith(".jsonl"):
        lines = [json.dumps(dict(zip(table.column_names, row, strict=True))) for row in rows]
    else:
        lines = [",".join(row) for row in [table.column_names, *rows]]
    path.write_text("\n".join(lines), encoding="utf-16" if path.name == "wide.csv" else "utf-8")
    return path


def write_parquet(path, table):
    pq.write_table(table, path)
    return path


KINDS = {
    "CSV": (DelimitedFiles, lambda folder: write_text(folder / "t.csv", MANY)),
    "UTF-16": (DelimitedFiles, lambda folder: write_text(folder / "wide.csv", MANY)),
    "JSON lines": (JsonLines, lambda folder: write_text(folder / "t.jsonl", MANY)),
    "Parquet": (ParquetFiles, lambda folder: write_parquet(folder / "t.parquet", MANY)),
    "table in memory": (ArrowTable, lambda _: MANY),
    "stream": (ArrowTable, lambda _: MANY.to_reader(max_chunksize=7)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_record_is_noticed(tmp_path, monkeypatch, kind, reader):
    if (kind, reader) == ("stream", "init"):
        pytest.skip("a stream can be read only once")
    which, make = KINDS[kind]
    assert READERS[reader](make(tmp_path)) == 40
    lossy(monkeypatch, which)
    assert code_of(lambda: READERS[reader](make(tmp_path))) == "records-differ"


@pytest.mark.parametrize("reader", READERS)
def test_a_record_that_a_database_counts_and_does_not_send_is_noticed(tmp_path, monkeypatch, reader):
    path = put_into_sqlite(MANY, tmp_path / "t.db")
    assert READERS[reader](path) == 40
    register = databases._Scan.register
    monkeypatch.setattr(
        databases._Scan, "register", lambda *args, **how: f"(SELECT * FROM {register(*args, **how)} OFFSET 1)"
    )
    assert code_of(lambda: READERS[reader](path)) == "records-differ"


def blocks(data, size):
    return (data[i : i + size] for i in range(0, len(data), size))


@pytest.mark.parametrize("seed", range(60))
def test_the_count_agrees_with_the_engine_and_with_python_whatever_is_quoted(tmp_path, seed):
    rng = random.Random(seed)
    width, end, delimiter = rng.choice([1, 2, 3]), rng.choice(["\n", "\r\n", "\r"]), rng.choice(",;|\t")
    signs = ["a", "é", '"', delimiter, end, "", " ", "x"]
    rows = [["".join(rng.choices(signs, k=4)) for _ in range(width)] for _ in range(rng.randint(1, 40))]
    text = io.StringIO(newline="")
    writer = csv.writer(
        text, delimiter=delimiter, lineterminator=end, quoting=rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
    )
    writer.writerows([["id", "b", "c"][:width], *rows])
    data = rng.choice([b"", b"\xef\xbb\xbf"]) + text.getvalue().encode()
    if width > 1:
        data += end.encode() * rng.randint(0, 2)
    for size in (1, 2, 3, 5, 1 << 20):
        scan = RecordScan(tmp_path / "t.csv", '"', delimiter, empty_lines=width == 1)
        assert scan.count(blocks(data, size)) == len(rows) + 1
    (tmp_path / "t.csv").write_bytes(data)
    everything = Coding("id", Categories(("a",)), other="else", missing="keep")
    assert open_source(tmp_path / "t.csv", delimiter=delimiter).count_by([everything]).total == len(rows)


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    ("text", "records"),
    [
        ('a,b\n5" pipe,x\n6" pipe,y\n', 3),  # quotes that are mere characters
        ('a,b\n5" pipe,"x\ny"\n"6"" pipe\n",y\n', 3),
        ('a,b\n1, "x\ny"\n2,z', 3),  # a space before the quote
        ('a,b\n1,  "x\n2,z"\n', 3),  # two, and it is none
        ('a,b\n"",""\n"","x""\n"\n', 3),
        ("a,b\n\n\n1,2\n\n", 2),
        ("a,b\r1,2\r\r3,4", 3),
        ("a,b\r\n1,2\r\n", 2),
    ],
)
def test_lines_and_quotes_as_they_occur(tmp_path, text, records, size):
    data = text.encode()
    assert RecordScan(tmp_path, '"').count(blocks(data, size)) == records
    (tmp_path / "t.csv").write_bytes(data)
    coding = Coding("a", Categories(("1",)), other="else", missing="keep")
    assert open_source(tmp_path / "t.csv", delimiter=",").count_by([coding]).total == records - 1


@pytest.mark.parametrize(("text", "records"), [("a\n\n1\n\n", 3), ("a\r\n\r\n1", 2), ("a\r\r1\r", 2), ("a\n1\n ", 2)])
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_an_empty_line_of_a_table_of_one_column_is_a_record(tmp_path, text, records, size):
    assert RecordScan(tmp_path, '"', empty_lines=True).count(blocks(text.encode(), size)) == records + 1
    (tmp_path / "t.csv").write_bytes(text.encode())
    coding = Coding("a", Categories(("1",)), other="else", missing="keep")
    assert open_source(tmp_path / "t.csv").count_by([coding]).total == records


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_blank_lines_between_objects_are_no_records(tmp_path, size):
    data = b'{"a": "x"}\n   \n\n\t{"a": "y"}\r\n \r\n{"a": "x"}'
    assert RecordScan(tmp_path, blank_lines=False).count(blocks(data, size)) == 3
    (tmp_path / "t.jsonl").write_bytes(data)
    assert READERS["release"](tmp_path / "t.jsonl") == 3


@pytest.mark.parametrize("size", [1, 10, 64])
def test_records_may_be_as_long_as_is_allowed_and_no_longer(tmp_path, size):
    for text in (b"%b\nx\n", b"x\n%b\nx\n", b'x\n"\n%b"\n', b"x\n%b"):
        fits = text % (b"z" * (100 - (3 if b'"' in text else 0)))
        assert RecordScan(tmp_path, '"', longest=100).count(blocks(fits, size)) >= 2
        scan = RecordScan(tmp_path, '"', longest=99)
        assert code_of(lambda scan=scan, fits=fits: scan.count(blocks(fits, size))) == "data-line-too-long"


def test_several_files_are_counted_together(tmp_path, monkeypatch):
    for name in ("1.csv", "2.csv"):
        write_text(tmp_path / name, MANY)
    assert READERS["release"](tmp_path / "*.csv") == 80
    lossy(monkeypatch, DelimitedFiles)
    assert code_of(lambda: READERS["release"](tmp_path / "*.csv")) == "records-differ"
