"""SQLite files: the same histogram as from CSV, the right table, clear refusals."""

import math
import sqlite3
from contextlib import closing
from urllib.parse import quote

import pytest

from incrowd.core.errors import DataError
from incrowd.domain import Bins, Categories, Coding, IntegerRange
from incrowd.sources import open_source
from incrowd.sources.sqlite import literal

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


@pytest.mark.parametrize("pattern", ["*.sqlite", "p*", "people.sqlit[e]"])
def test_a_table_can_be_named_in_a_file_that_a_pattern_finds(database, pattern):
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE places (name)")
    assert open_source(str(database.with_name(pattern)), table="people").count_by(CODINGS).total == len(ROWS)
    with pytest.raises(DataError) as caught:
        open_source(str(database.with_name("*.db")), table="people")
    assert caught.value.code == "data-not-found"


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


def made(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


def counted(source, coding):
    histogram = source.count_by([coding])
    column = histogram[coding.column]
    return dict(zip([column.labels[i] for i in column.codes], histogram.counts.tolist(), strict=True))


@pytest.fixture(params=["file", "adbc", "connection", "cursor"])
def opened(request, tmp_path):
    """Opens a new database in each way there is."""
    if request.param != "file":
        dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi", reason="the extra 'sqlite' is not installed")

    def open_(*statements, **options):
        path = made(tmp_path / "odd name?.db", *statements)
        if request.param == "file":
            return open_source(path, **options)
        if request.param == "adbc":
            return open_source("sqlite:///" + quote(str(path)), **options)
        connection = dbapi.connect(path.as_uri())
        request.addfinalizer(connection.close)
        if request.param == "connection":
            return open_source(connection, **options)
        cursor = connection.cursor()
        request.addfinalizer(cursor.close)
        return open_source(cursor, **options)

    return open_


def test_a_database_that_ends_within_a_page_is_refused(tmp_path):
    """SQLite itself reads zeros there, and says nothing."""
    path = tmp_path / "people.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (town TEXT)")
        database.executemany("INSERT INTO people VALUES (?)", [("Ulm",)] * 5000)
    database.close()
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(DataError, match="cut short"):
        open_source(path)


def test_values_of_several_types_in_one_column(opened):
    source = opened(
        "CREATE TABLE t (x)",
        "INSERT INTO t VALUES (1), (1.0), ('1'), ('1 '), (x'31'), (NULL), (1e15), (0.1), (9223372036854775807)",
    )
    whole = Coding("x", IntegerRange(1, 9), missing="keep", other="else")
    assert counted(source, whole) == {"1": 5, "else": 3, None: 1}
    printed = Coding("x", Categories(("1", "1.0", "0.1", str(2**63 - 1))), missing="keep", other="else")
    assert counted(source, printed) == {"1": 3, "1.0": 1, "0.1": 1, str(2**63 - 1): 1, "else": 2, None: 1}
    cuts = Coding("x", Bins((0.0, 0.5, 1.0, 1e18)), missing="keep", other="else")
    assert counted(source, cuts) == {"[0, 0.5)": 1, "[1, 1e+18]": 6, "else": 1, None: 1}


def test_texts_are_told_apart_whatever_the_collation(opened):
    source = opened(
        "CREATE TABLE t (x TEXT COLLATE NOCASE, y TEXT COLLATE RTRIM)",
        "INSERT INTO t VALUES ('a', 'b'), ('A', 'b '), ('a', 'b')",
    )
    assert counted(source, Coding("x", Categories(("a", "A")))) == {"a": 2, "A": 1}
    assert counted(source, Coding("x", Categories(("a",)), other="else")) == {"a": 2, "else": 1}
    assert counted(source, Coding("y", Categories(("b", "b ")))) == {"b": 2, "b ": 1}


def test_cut_points_are_exact(opened):
    numbers = [
        0.1,
        math.nextafter(0.1, 0),
        0.1 + 0.2,
        0.3,
        5e-324,
        1.7976931348623157e308,
        2.2250738585072014e-308,
        1 / 3,
    ]
    source = opened("CREATE TABLE t (x REAL)", f"INSERT INTO t VALUES {', '.join(f'({n!r})' for n in numbers)}")
    with closing(sqlite3.connect(":memory:")) as database:
        for number in [*numbers, 1e22, 123456.789, -0.7, 4503599627370497.5]:
            assert database.execute(f"SELECT {literal(number)}").fetchone() == (number,)
    # What SQLite itself made of the decimals is taken as it is.
    [values] = zip(*source_rows(source), strict=True)
    for cut in values:
        if 0 < cut < math.inf:
            below = sum(value < cut for value in values)
            got = counted(source, Coding("x", Bins((-math.inf, cut, math.inf))))
            assert sorted(got.values()) == sorted(n for n in (below, len(values) - below) if n)


def source_rows(source):
    with source.connect() as (connection, scan):
        return [(float(value),) for (value,) in connection.sql(f"SELECT c0 FROM {scan([0])}").fetchall()]


def test_numbers_that_mean_missing_and_decimal_commas(opened):
    source = opened(
        "CREATE TABLE t (x, y)",
        "INSERT INTO t VALUES (99, 1.5), (7, '1,5'), (7.0, 2), ('99', '2,0')",
        missing_values=["99", ""],
        decimal=",",
    )
    assert counted(source, Coding("x", IntegerRange(0, 9), missing="keep", other="else")) == {"7": 2, None: 2}
    assert counted(source, Coding("y", Bins((0.0, 1.75, 3.0)))) == {"[0, 1.75)": 2, "[1.75, 3]": 2}


def test_many_nulls_before_the_first_value(opened):
    source = opened(
        "CREATE TABLE t (x)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
        "INSERT INTO t SELECT NULL FROM n",
        "INSERT INTO t VALUES ('a'), (1.5)",
    )
    assert source.columns()[0].kind == "text"
    with source.connect() as (connection, scan):
        rows = connection.sql(f"SELECT c0, count(*) FROM {scan([0])} GROUP BY 1 ORDER BY 1").fetchall()
    assert rows == [("1.5", 1), ("a", 1), (None, 3000)]


def test_views_and_generated_columns(opened):
    source = opened(
        "CREATE TABLE t (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1))",
        "INSERT INTO t (a) VALUES (1)",
        "CREATE VIEW v AS SELECT b AS x FROM t",
        table="v",
    )
    assert counted(source, Coding("x", IntegerRange(0, 9))) == {"2": 1}


def test_addresses_of_no_database(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n", encoding="utf-8")
    for address, code in ((f"sqlite:///{tmp_path}/t.csv", "data-format"), ("sqlite:///absent.db", "data-not-found")):
        with pytest.raises(DataError) as error:
            open_source(address)
        assert error.value.code == code


def test_a_connection_of_the_standard_library_or_of_sqlalchemy_will_do(database):
    """Also from another thread, in memory, and with the caller's transaction left as it is."""
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    with closing(sqlite3.connect(database)) as connection, closing(sqlite3.connect(":memory:")) as copy:
        connection.backup(copy)
        copy.commit()
        engine = sqlalchemy.create_engine(f"sqlite:///{database}")
        with engine.connect() as session:
            for thing in (connection, copy, engine, session):
                assert open_source(thing, table="people").count_by(CODINGS).total == len(ROWS)
        engine.dispose()
        assert not copy.in_transaction
    with pytest.raises(DataError, match="by way of SQLAlchemy"):
        open_source(OtherEngine())


class OtherEngine:
    """An engine of a database that is not read this way."""

    __module__ = "sqlalchemy.engine"

    class engine:  # noqa: N801
        class url:  # noqa: N801
            get_backend_name = staticmethod(lambda: "mysql")
