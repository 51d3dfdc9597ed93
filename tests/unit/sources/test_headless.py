"""Text files whose first line is a record: the columns are named by who reads them."""

import gzip

import pytest

from incrowd.core.errors import DataError, ParameterError, PolicyError
from incrowd.domain import Categories, Coding, IntegerRange
from incrowd.policy import Policy, without_password
from incrowd.sources import open_source

CODINGS = [Coding("age", IntegerRange(0, 99)), Coding("sex", Categories(("f", "m", "two\nlines")))]
NAMES = ("age", "sex")


def counted(path, names=NAMES, **options):
    histogram = open_source(path, columns=names, **options).count_by(CODINGS)
    rows = zip(histogram["age"].codes.tolist(), histogram["sex"].codes.tolist(), histogram.counts.tolist(), strict=True)
    return {(age, sex): count for age, sex, count in rows}


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("t.csv", b"7,f\n7,f\n8,m\n", {}),
        ("t.csv", b"\xef\xbb\xbf7,f\n7,f\n8,m\n", {}),
        ("t.csv", "7;f\r\n7;f\r\n8;m".encode("utf-16"), {}),
        ("t.csv", b'"7","f"\n7,f\n8,m', {}),
        ("t.tsv", b"7\tf\n7\tf\n8\tm\n", {}),
        # Without the time of day, which would be part of the test's name, and another for each process that collects.
        ("t.csv.gz", gzip.compress(b"7,f\n7,f\n8,m\n", mtime=0), {}),
        ("t.csv", b"7|f\n7|f\n8|m\n", {"delimiter": "|", "encoding": "latin-1"}),
    ],
)
def test_the_first_line_is_counted(tmp_path, name, content, options):
    (tmp_path / name).write_bytes(content)
    assert counted(tmp_path / name, **options) == {(7, 0): 2, (8, 1): 1}


def test_a_first_record_of_several_lines(tmp_path):
    (tmp_path / "t.csv").write_text('7,"two\nlines"\n8,m\n', encoding="utf-8")
    assert counted(tmp_path / "t.csv") == {(7, 2): 1, (8, 1): 1}
    (tmp_path / "latin.csv").write_text('7,"two\nlines"\n8,m\n', encoding="latin-1")
    assert counted(tmp_path / "latin.csv", encoding="latin-1") == {(7, 2): 1, (8, 1): 1}


def test_parts_of_one_table(tmp_path):
    (tmp_path / "1.csv").write_text("7,f\n", encoding="utf-8")
    (tmp_path / "2.csv").write_text("8,m\n7,f\n", encoding="utf-8")
    assert counted(str(tmp_path / "*.csv")) == {(7, 0): 2, (8, 1): 1}


def test_names_must_fit_the_file_and_each_other(tmp_path):
    (tmp_path / "t.csv").write_text("7,f\n", encoding="utf-8")
    with pytest.raises(DataError) as error:
        counted(tmp_path / "t.csv", ("age", "sex", "zip"))
    assert error.value.code == "data-malformed"
    with pytest.raises(DataError) as error:
        counted(tmp_path / "t.csv", ("age", "age"))
    assert error.value.code == "data-columns"
    with pytest.raises(ParameterError):
        counted(tmp_path / "t.csv", "ab")


def test_other_files_name_their_columns_themselves(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"age": 7, "sex": "f"}\n', encoding="utf-8")
    with pytest.raises(DataError) as error:
        counted(tmp_path / "t.jsonl")
    assert error.value.code == "data-format"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("{header: false}", "needs 'columns'"),
        ("{columns: [age]}", "header: false"),
        ("{header: false, columns: [age, age]}", "twice"),
        ("{path: 'postgresql://office:secret@host/census'}", "no password"),
        ("{path: 'postgresql://host/census?user=office&password=secret'}", "no password"),
        ("{path: 'postgresql:///census?host=/tmp&sslpassword=secret'}", "no password"),
        ("{path: 'postgresql://[host/census?PASSWORD=secret'}", "no password"),
        ("{format: csv}", "no such key"),
    ],
)
def test_a_policy_that_names_columns_or_databases_wrongly(data, said):
    with pytest.raises(PolicyError, match=said) as error:
        Policy.from_text(f"incrowd: 1\ndata: {data}\nattributes: {{age: {{domain: ['1']}}}}\n")
    assert "secret" not in str(error.value.to_dict())


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("postgresql://office:secret@host:5432/census", "postgresql://office@host:5432/census"),
        (
            "postgresql://office:s#e?c]r@et@host/census?sslmode=require",
            "postgresql://office@host/census?sslmode=require",
        ),
        ("postgresql:///db?host=/tmp&user=u&password=secret", "postgresql:///db?host=/tmp&user=u"),
        ("postgresql://host/db?PASSWORD=secret&sslPassword=secret", "postgresql://host/db"),
        ("postgresql://host/db?pass%77ord=secret&connect_timeout=9", "postgresql://host/db?connect_timeout=9"),
        ("postgresql://host?user=u@x&password=secret", "postgresql://host?user=u@x"),
        ("postgresql://host?user=a:b@x&password=secret/1", "postgresql://host?user=a@x"),
        ("postgresql://[host/db?password=secret", "postgresql://[host/db"),
        ("postgresql://office:secret@[host/db", "postgresql://office@[host/db"),
        ("postgresql://host/db?password=se&cret", "postgresql://host/db"),
        ("hdfs://head:8020/tables/a@b.parquet", "hdfs://head:8020/tables/a@b.parquet"),
        ("postgresql://office@[::1]/db?passfile=x", "postgresql://office@[::1]/db?passfile=x"),
        ("password=x/people.csv", "password=x/people.csv"),
    ],
)
def test_a_policy_holds_an_address_without_its_passwords(address, kept):
    assert without_password(address) == kept
    assert without_password(kept) == kept


def test_an_address_stays_what_it_is_when_a_policy_moves(tmp_path):
    data = "{path: 'postgresql://office@host/census', table: people}"
    policy = Policy.from_text(f"incrowd: 1\ndata: {data}\nattributes: {{age: {{domain: ['1']}}}}\n", base=tmp_path)
    assert policy.relocated(tmp_path / "elsewhere").data.path == "postgresql://office@host/census"
    assert "host" not in str(policy.canonical())
