"""SQLite files: the same histogram as from CSV, the right table, clear refusals."""

import sqlite3

import pytest

from incrowd.domain import Categories, Coding, IntegerRange
from incrowd.errors import DataError
from incrowd.sources import open_source

ROWS = [(34, "f"), (7, "m"), (34, "f"), (None, "m"), (7.0, None)]
CODINGS = [
    Coding("Age", IntegerRange(0, 99), missing="keep"),
    Coding('odd "name"', Categories(("f", "m")), missing="keep"),
]


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "people.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE people (Age, "odd ""name""")')
        connection.executemany("INSERT INTO people VALUES (?, ?)", ROWS)
    connection.close()
    return path


def test_the_same_histogram_as_from_csv(database, tmp_path):
    csv = tmp_path / "people.csv"
    lines = [",".join("" if v is None else str(v) for v in row) for row in ROWS]
    csv.write_text("\n".join(['Age,"odd ""name"""', *lines]) + "\n", encoding="utf-8")
    found = open_source(database).count_by(CODINGS)
    assert found.total == len(ROWS)
    assert found == open_source(csv).count_by(CODINGS)


def test_many_rows_come_in_batches(tmp_path, monkeypatch):
    from incrowd.sources import sqlite as module

    monkeypatch.setattr(module, "_BATCH", 7)
    path = tmp_path / "many.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(i % 10,) for i in range(100)])
    connection.close()
    assert open_source(path).count_by([Coding("a", IntegerRange(0, 9))]).counts.tolist() == [10] * 10


def test_the_table_must_be_named_if_there_are_several(database):
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    with pytest.raises(DataError) as error:
        open_source(database)
    assert error.value.code == "data-format"
    assert open_source(database, table="people").count_by(CODINGS).total == len(ROWS)
    with pytest.raises(DataError):
        open_source(database, table="absent")


def test_a_damaged_database_is_refused_without_its_values(tmp_path):
    path = tmp_path / "damaged.db"
    path.write_bytes(b"SQLite format 3\x00" + b"secret" * 500)
    with pytest.raises(DataError) as error:
        open_source(path).count_by(CODINGS)
    assert error.value.code == "data-unreadable"
    assert "secret" not in str(error.value)
