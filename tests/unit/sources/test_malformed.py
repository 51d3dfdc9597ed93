"""A hundred inputs that are no table: each gives one error with a code, shows no value, and leaves nothing behind."""

import gzip
import io
import json
import os
import random
import sqlite3
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.core.errors import CODES, DataError, InputError
from incrowd.domain import Categories, Coding
from incrowd.sources import open_source

SECRET = "Hildegard"
GOOD = b"a,b\n1,x\n2,y\n"
CODINGS = [Coding("a", Categories(("1", "2"))), Coding("b", Categories(("x", "y")))]


def parquet(table=None):
    sink = io.BytesIO()
    if table is None:
        table = pa.table({"a": ["1", "2"] * 500, "b": ["x", SECRET] * 500})
    pq.write_table(table, sink)
    return sink.getvalue()


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def zipped(data):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("table.csv", data)
    return sink.getvalue()


def sqlite():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a, b)")
    return connection.serialize()


def arrow_file():
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, pa.schema([("a", pa.string())])) as writer:
        writer.write_table(pa.table({"a": ["1"]}))
    return sink.getvalue()


def noise(size, seed):
    return random.Random(seed).randbytes(size)


def varied(lines):
    """Rows that do not compress to nothing."""
    rng = random.Random(9)
    return b"a,b\n" + b"".join(b"%d,%d\n" % (rng.getrandbits(40), rng.getrandbits(40)) for _ in range(lines))


def damaged_in_the_middle(data):
    middle = len(data) // 2
    return data[:middle] + bytes(255 - byte for byte in data[middle : middle + 40]) + data[middle + 40 :]


s = SECRET.encode()
LINES = varied(3000)
PARQUET = parquet()

# name of the case: (file name, content, code)
CASES = {
    # nothing there
    "empty": ("t.csv", b"", "data-empty"),
    "empty tsv": ("t.tsv", b"", "data-empty"),
    "empty parquet": ("t.parquet", b"", "data-empty"),
    "empty jsonl": ("t.jsonl", b"", "data-empty"),
    "empty gz member": ("t.csv.gz", gzip.compress(b""), "data-empty"),
    "empty zst frame": ("t.csv.zst", zstd(b""), "data-empty"),
    "only a newline": ("t.csv", b"\n", "data-empty"),
    "only newlines": ("t.csv", b"\r\n" * 50, "data-empty"),
    "only blanks": ("t.csv", b"   \t  ", "data-empty"),
    "only a mark": ("t.csv", b"\xef\xbb\xbf", "data-empty"),
    "only a wide mark": ("t.csv", b"\xff\xfe", "data-empty"),
    "header only": ("t.csv", b"a,b\n", "data-empty"),
    "header only, no line end": ("t.csv", b"a,b", "data-empty"),
    "header only, marked": ("t.csv", b"\xef\xbb\xbfa,b\r\n", "data-empty"),
    "header only, gz": ("t.csv.gz", gzip.compress(b"a,b\n"), "data-empty"),
    "header and blank lines": ("t.csv", b"a,b\n\n\n\n", "data-empty"),
    "parquet without rows": ("t.parquet", parquet(pa.table({"a": ["1"], "b": ["x"]})[:0]), "data-empty"),
    "parquet without columns": ("t.parquet", parquet(pa.table({})), "data-empty"),
    "jsonl of blank lines": ("t.jsonl", b"\n\n\n", "data-empty"),
    "jsonl of empty objects": ("t.jsonl", b"{}\n{}\n", "data-empty"),
    # lines that do not fit
    "too few fields": ("t.csv", b"a,b\n1,x\n" + s + b"\n2,y\n", "data-malformed"),
    "too many fields": ("t.csv", b"a,b\n1,x\n2,y," + s + b"\n", "data-malformed"),
    "too few at the end": ("t.csv", b"a,b\n" + b"1,x\n" * 5000 + s, "data-malformed"),
    "too many late": ("t.csv", b"a,b\n" + b"1,x\n" * 300_000 + b"1,x," + s + b"\n", "data-malformed"),
    "too few late": ("t.csv", b"a,b\n" + b"1,x\n" * 300_000 + s + b"\n" + b"1,x\n", "data-malformed"),
    "too many, semicolons": ("t.csv", b"a;b\n1;x\n2;y;" + s + b"\n", "data-malformed"),
    "header wider than rows": ("t.csv", b"a,b,c\n1,x\n2,y\n", "data-malformed"),
    "header narrower than rows": ("t.csv", b"a\n1,x\n2,y\n", "column-unknown"),
    "title above the header": ("t.csv", b"Table 1\na,b\n1,x\n2,y\n", "column-unknown"),
    "totals below the table": ("t.csv", b"a,b\n1,x\n2,y\nTotal: 2\n", "data-malformed"),
    "two tables in one file": ("t.csv", b"a,b\n1,x\n\nc,d,e\n1,2,3\n", "data-malformed"),
    "quote left open": ("t.csv", b'a,b\n1,x\n2,"' + s + b"\n1,x\n", "data-malformed"),
    "quote left open at the end": ("t.csv", b'a,b\n1,x\n2,"' + s, "data-malformed"),
    "quote left open in the header": ("t.csv", b'a,"b\n1,x\n2,' + s + b"\n", "data-malformed"),
    "quote left open at the start": ("t.csv", b'"a,b\n1,x\n2,y\n', "data-malformed"),
    "letters after a quote": ("t.csv", b'a,b\n1,"x"' + s + b"\n", "data-malformed"),
    "quotes escaped by backslashes": ("t.csv", b'a,b\n1,"x\\"' + s + b'"\n', "data-malformed"),
    "line ends mixed": ("t.csv", b"a,b\r\n1,x\r\n2,y\n1,x\r\n", "data-malformed"),
    "line ends mixed the other way": ("t.csv", b"a,b\n1,x\n2,y\r\n1,x\n", "data-malformed"),
    "line ends mixed late": ("t.csv", b"a,b\n" + b"1,x\n" * 300_000 + b"2,y\r\n" * 3 + b"1,x\n", "data-malformed"),
    "a lone carriage return": ("t.csv", b"a,b\n1\r,x\n2,y\n", "data-malformed"),
    "blank line above the header": ("t.csv", b"\na,b\n1,x\n", "data-malformed"),
    "blanks above the header": ("t.csv", b"   \na,b\n1,x\n", "data-malformed"),
    "header of delimiters": ("t.csv", b",\n1,x\n", "data-malformed"),
    "header of empty quotes": ("t.csv", b'"",""\n1,x\n', "data-malformed"),
    "two possible delimiters": ("t.csv", b"a,b;c\n1,x;2\n", "data-malformed"),
    # other separators, headers that are none
    "unknown delimiter": ("t.csv", b"a~b\n1~x\n", "column-unknown"),
    "no header": ("t.csv", b"1,x\n2,y\n", "column-unknown"),
    "header in capitals": ("t.csv", b"A,B\n1,x\n", "column-unknown"),
    "blanks in the header": ("t.csv", b"a , b\n1,x\n", "column-unknown"),
    "prose": ("t.txt", b"Dear colleagues of " + s + b",\nplease find the table attached.\n", "column-unknown"),
    "one long comment": ("t.csv", b"# " + b"word " * 1000 + b"\n", "column-unknown"),
    "duplicate columns": ("t.csv", b"a,b,a\n1,x,1\n", "data-columns"),
    "duplicate columns, quoted": ("t.csv", b'"a",b,a\n1,x,1\n', "data-columns"),
    "duplicate columns, parquet": (
        "t.parquet",
        parquet(pa.Table.from_arrays([pa.array(["1"]), pa.array(["x"])], names=["a", "a"])),
        "data-columns",
    ),
    "a header of numbers that repeat": ("t.csv", b"1,1\n2,2\n", "data-columns"),
    "keys that differ in capitals only": ("t.jsonl", b'{"a": 1, "A": 2, "b": 3}\n', "data-columns"),
    # values
    "mixed types": ("t.csv", b"a,b\n1,x\n" + s + b",y\n", "values-outside-domain"),
    "shifted columns": ("t.csv", b"a,b\nx,1\ny,2\n", "values-outside-domain"),
    "trailing blanks": ("t.csv", b"a,b\n1 ,x\n", "values-outside-domain"),
    "single quotes": ("t.csv", b"a,b\n'1','x'\n", "values-outside-domain"),
    "a zero byte late": ("t.csv", b"a,b\n" + b"1,x\n" * 300_000 + b"1,x\0\n", "values-outside-domain"),
    "a second header": ("t.csv", GOOD + GOOD, "values-outside-domain"),
    "missing values": ("t.csv", b"a,b\n1,\n,y\n", "values-missing"),
    "missing in parquet": ("t.parquet", parquet(pa.table({"a": ["1", None], "b": ["x", "y"]})), "values-missing"),
    "missing keys": ("t.jsonl", b'{"a": "1", "b": "x"}\n{"a": "2"}\n', "values-missing"),
    "nested values": ("t.parquet", parquet(pa.table({"a": [["1"]], "b": ["x"]})), "column-type"),
    "values of other types": ("t.parquet", parquet(pa.table({"a": [1.5], "b": ["x"]})), "column-type"),
    # text that is none
    "latin-1": ("t.csv", "a,b\n1,Müller\n".encode("latin-1"), "data-encoding"),
    "latin-1 in the header": ("t.csv", "ä,b\n1,x\n".encode("latin-1"), "data-encoding"),
    "latin-1 late": ("t.csv", b"a,b\n" + b"1,x\n" * 300_000 + "1,Müller\n".encode("latin-1"), "data-encoding"),
    "cut-off letter at the end": ("t.csv", b"a,b\n1,x\xc3", "data-encoding"),
    "utf-16 without mark": ("t.csv", "a,b\n1,x\n".encode("utf-16-le"), "data-format"),
    "half a wide letter": ("t.csv", "a,b\n1,x\n".encode("utf-16") + b"\x41", "data-encoding"),
    "zero bytes": ("t.csv", b"a,b\n1,x\0\n", "data-format"),
    "all zero bytes": ("t.csv", b"\0" * 4096, "data-format"),
    "noise": ("t.csv", noise(5000, 1), "data-format"),
    "noise as text": ("t.txt", noise(5000, 2), "data-format"),
    "control characters": ("t.csv", bytes(range(1, 32)) * 20, None),
    "one line without end": ("t.csv", b"a," + b"b" * (2**21), "data-line-too-long"),
    "one line without end, gz": ("t.csv.gz", gzip.compress(b"a," + b"b" * (2**21)), "data-line-too-long"),
    "an endless quoted header": ("t.csv", b'"a,b\n' + b"1,x\n" * 300_000, "data-line-too-long"),
    "a long line late": ("t.csv", b"a,b\n" + b"1,x\n" * 300_000 + b"1," + b"x" * (2**22) + b"\n", "data-line-too-long"),
    "jsonl without end": ("t.jsonl", b'{"a": "' + b"1" * (2**21) + b'"}', "data-line-too-long"),
    # not what the name says
    "parquet called csv": ("t.csv", PARQUET, "data-format"),
    "csv called parquet": ("t.parquet", GOOD, "data-format"),
    "csv called gz": ("t.csv.gz", GOOD, "data-format"),
    "csv called zst": ("t.csv.zst", GOOD, "data-format"),
    "gz called csv": ("t.csv", gzip.compress(GOOD), "data-format"),
    "gz called zst": ("t.csv.zst", gzip.compress(GOOD), "data-format"),
    "zst called csv": ("t.csv", zstd(GOOD), "data-format"),
    "parquet in gz": ("t.parquet.gz", gzip.compress(PARQUET), "data-format"),
    "parquet called csv in gz": ("t.csv.gz", gzip.compress(PARQUET), "data-format"),
    "zip called csv": ("t.csv", zipped(GOOD), "data-format"),
    "excel": ("t.xlsx", zipped(GOOD), "data-unreadable"),
    "old excel": ("t.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500, "data-unreadable"),
    "empty sqlite": ("t.db", sqlite(), "data-empty"),
    "pdf": ("t.csv", b"%PDF-1.7\n" + noise(200, 3), "data-format"),
    "image": ("t.csv", b"\x89PNG\r\n\x1a\n" + noise(200, 4), "data-format"),
    "web page": ("t.csv", b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n", "data-format"),
    "xml": ("t.txt", b'<?xml version="1.0"?>\n<table/>\n', "data-format"),
    "json": ("t.json", json.dumps([{"a": "1", "b": "x"}]).encode(), "data-format"),
    "stata": ("t.dta", b"<stata_dta><header>" + b"\0" * 100, "data-unreadable"),
    "spss": ("t.sav", b"$FL2@(#) SPSS DATA FILE" + b"\0" * 100, "data-unreadable"),
    # damaged
    "truncated parquet": ("t.parquet", PARQUET[:-30], "data-unreadable"),
    "parquet without footer": ("t.parquet", PARQUET[: len(PARQUET) // 2], "data-unreadable"),
    "parquet of four bytes": ("t.parquet", b"PAR1", "data-unreadable"),
    "parquet footer broken": ("t.parquet", PARQUET[:-60] + b"\xff" * 52 + PARQUET[-8:], "data-unreadable"),
    "parquet pages broken": ("t.parquet", b"PAR1" + b"\xff" * 200 + PARQUET[204:], "data-unreadable"),
    "truncated gz": ("t.csv.gz", gzip.compress(LINES)[:-4000], "data-unreadable"),
    "gz without trailer": ("t.csv.gz", gzip.compress(LINES)[:-8], "data-unreadable"),
    "gz with a wrong check sum": ("t.csv.gz", gzip.compress(LINES)[:-8] + b"\0" * 8, "data-unreadable"),
    "gz damaged": ("t.csv.gz", damaged_in_the_middle(gzip.compress(LINES)), "data-unreadable"),
    "gz with rubbish behind": ("t.csv.gz", gzip.compress(LINES) + b"rubbish", "data-unreadable"),
    "gz header only": ("t.csv.gz", b"\x1f\x8b\x08\x00", "data-unreadable"),
    "truncated zst": ("t.csv.zst", zstd(varied(200_000))[:-100_000], "data-unreadable"),
    # Without a check sum, damage is noticed only by what it makes of the lines.
    "zst damaged": ("t.csv.zst", damaged_in_the_middle(zstd(LINES)), None),
    "zst header only": ("t.csv.zst", b"\x28\xb5\x2f\xfd", "data-unreadable"),
    # JSON lines
    "json array of objects": ("t.jsonl", json.dumps([{"a": "1", "b": SECRET}]).encode(), "data-malformed"),
    "json array called lines": ("t.jsonl", b'[\n{"a": "1", "b": "x"}\n]\n', "data-malformed"),
    "json line cut off": ("t.jsonl", b'{"a": "1", "b": "x"}\n{"a": "2", "b": "' + s + b"\n", "data-malformed"),
    "json numbers": ("t.jsonl", b"1\n2\n", "data-malformed"),
    "json and rubbish": ("t.jsonl", b'{"a": "1", "b": "x"}\n' + s + b"\n", "data-malformed"),
    "json broken late": ("t.jsonl", b'{"a": "1", "b": "x"}\n' * 60_000 + b'{"a": ' + s + b"\n", "data-malformed"),
    "json list late": ("t.jsonl", b'{"a": "1", "b": "x"}\n' * 60_000 + b"[1, 2]\n", "data-malformed"),
    "csv called jsonl": ("t.jsonl", GOOD, "data-malformed"),
    "json not in utf-8": ("t.jsonl", '{"a": "1", "b": "ü"}\n'.encode("latin-1"), "data-encoding"),
    "json too deep": ("t.jsonl", b'{"a": ' + b"[" * 100_000 + b"\n", "data-malformed"),
}  # fmt: skip


def test_there_are_a_hundred():
    assert len(CASES) >= 100


def refused(read):
    with pytest.raises(InputError) as caught:
        read()
    error = caught.value
    assert isinstance(error, DataError)
    assert error.code in CODES
    assert error.exit_code == 2
    assert SECRET not in str(error.to_dict())
    assert "\n" not in str(error)
    assert len(str(error)) < 600
    # Nothing of the engine's own message, which quotes the data, hangs on behind.
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    return error


@pytest.mark.parametrize(("name", "content", "code"), CASES.values(), ids=CASES)
def test_malformed(tmp_path, name, content, code):
    path = tmp_path / "in" / name
    temporary = tmp_path / "temporary"
    path.parent.mkdir()
    temporary.mkdir()
    path.write_bytes(content)
    error = refused(lambda: open_source(path, temp_directory=temporary).count_by(CODINGS))
    assert code is None or error.code == code
    assert list(path.parent.iterdir()) == [path]
    assert not any(temporary.iterdir())


def test_no_such_file(tmp_path):
    for name in ("none.csv", "none.parquet", "no/such/folder/t.csv", "none-*.csv", "**/*.parquet"):
        error = refused(lambda name=name: open_source(tmp_path / name))
        assert error.code in {"data-not-found", "data-unreadable"}, name
    (tmp_path / "t.csv").write_bytes(GOOD)
    assert refused(lambda: open_source([tmp_path / "t.csv", tmp_path / "u.csv"])).code == "data-not-found"
    for name in ("", "t.csv\0", "t" * 300 + ".csv"):
        with pytest.raises(InputError) as caught:
            open_source(name)
        assert caught.value.code == "file-name"


def test_not_a_file(tmp_path):
    error = refused(lambda: open_source(tmp_path))
    assert error.code == "data-unreadable"
    assert "directory" in error.message
    os.mkfifo(tmp_path / "pipe.csv")
    assert refused(lambda: open_source(tmp_path / "pipe.csv")).code == "data-unreadable"
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    assert refused(lambda: open_source(tmp_path / "loop.csv")).code == "data-unreadable"


def test_no_permission(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    error = refused(lambda: open_source(path))
    assert error.code == "data-unreadable"
    assert "ermission" in error.message


def test_addresses_are_not_fetched():
    for address in ("https://example.org/t.csv", "ftp://example.org/t.parquet", "mysql://host/table"):
        assert refused(lambda address=address: open_source(address)).code == "data-format"


@pytest.mark.parametrize(
    "thing", [None, 7, 1.5, {"a": 1}, [], object(), [1, 2], b"t.csv"], ids=lambda t: type(t).__name__
)
def test_things_that_are_no_table(thing):
    assert refused(lambda: open_source(thing)).code == "data-kind"


PARTS = {
    "other columns": (b"a,b\n1,x\n", b"a,c\n1,x\n"),
    "other order": (b"a,b\n1,x\n", b"b,a\nx,1\n"),
    "more columns": (b"a,b\n1,x\n", b"a,b,c\n1,x,2\n"),
    "other delimiter": (b"a,b\n1,x\n", b"a;b\n1;x\n"),
    "other encoding": (b"a,b\n1,x\n", "a,b\n1,x\n".encode("utf-16")),
}


@pytest.mark.parametrize("contents", PARTS.values(), ids=PARTS)
def test_text_parts_that_differ(tmp_path, contents):
    for i, content in enumerate(contents):
        (tmp_path / f"{i}.csv").write_bytes(content)
    assert refused(lambda: open_source(tmp_path / "*.csv")).code == "data-parts-differ"


def test_parts_of_different_kinds(tmp_path):
    (tmp_path / "0.csv").write_bytes(GOOD)
    (tmp_path / "1.parquet").write_bytes(PARQUET)
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress(GOOD))
    assert refused(lambda: open_source([tmp_path / "0.csv", tmp_path / "1.parquet"])).code == "data-parts-differ"
    assert refused(lambda: open_source([tmp_path / "0.csv", tmp_path / "2.csv.gz"])).code == "data-parts-differ"


def test_parquet_parts_of_other_types_would_be_rounded(tmp_path):
    (tmp_path / "0.parquet").write_bytes(parquet(pa.table({"a": [1], "b": ["x"]})))
    (tmp_path / "1.parquet").write_bytes(parquet(pa.table({"a": [1.5], "b": ["x"]})))
    assert refused(lambda: open_source(tmp_path / "*.parquet")).code == "data-parts-differ"


def test_one_bad_part_is_enough(tmp_path):
    (tmp_path / "0.csv").write_bytes(GOOD)
    (tmp_path / "1.csv").write_bytes(GOOD + b"1\n")
    assert refused(lambda: open_source(tmp_path / "*.csv").count_by(CODINGS)).code == "data-malformed"
    (tmp_path / "1.csv").write_bytes(b"")
    assert refused(lambda: open_source(tmp_path / "*.csv")).code == "data-empty"


def test_a_huge_line_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.write(b"a,b")
        file.truncate(2**30)  # a gigabyte of zero bytes that takes no room
    assert refused(lambda: open_source(path)).code == "data-format"
    with path.open("r+b") as file:
        file.write(b"x" * (2**20 + 100))
    assert refused(lambda: open_source(path)).code == "data-line-too-long"


def test_lines_are_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 10 + b"1\n")
    error = refused(lambda: open_source(path).count_by(CODINGS))
    assert "line 12" in error.message
    assert error.details["line"] == 12
