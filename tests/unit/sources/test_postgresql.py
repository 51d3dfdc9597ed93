"""PostgreSQL, on a real server: what its types hold, that it counts by itself, and what it may not do or tell."""

import datetime as dt
import math
import sys

import numpy as np
import pytest

import databases
from incrowd import api
from incrowd.core.errors import DataError
from incrowd.domain import Bins, Categories, Coding, DateRange, IntegerRange, Recode
from incrowd.policy import Policy
from incrowd.sources import adbc, open_source
from incrowd.sources.observed import count_observed

WEEK = DateRange(dt.date(2024, 2, 26), dt.date(2024, 3, 3))


@pytest.fixture
def server(postgresql_server):
    """Runs statements on the server, in a schema that is new for each test; `server.address` opens it."""
    import adbc_driver_postgresql.dbapi as postgresql

    address = f"{postgresql_server}?options=-c%20search_path%3Ds%2Cpublic"
    with postgresql.connect(address, autocommit=True) as connection:

        def run(*statements):
            for statement in statements:
                with connection.cursor() as cursor:
                    cursor.execute(statement)

        run("DROP SCHEMA IF EXISTS s CASCADE", "CREATE SCHEMA s")
        run.address = address
        run.connection = connection
        yield run
        run("DROP SCHEMA s CASCADE")


def counted(source, coding):
    histogram = source.count_by([coding])
    column = histogram[coding.column]
    return dict(zip([column.labels[i] for i in column.codes], histogram.counts.tolist(), strict=True))


def refused(call):
    with pytest.raises(DataError) as caught:
        call()
    return caught.value


@pytest.fixture
def fetched(monkeypatch):
    """How many rows each statement brings here."""
    rows = []
    original = adbc._batches

    def counting(connection, statement):
        rows.append(0)
        for batch in original(connection, statement):
            rows[-1] += batch.num_rows
            yield batch

    monkeypatch.setattr(adbc, "_batches", counting)
    return rows


def test_the_database_counts_and_only_groups_come(server, fetched):
    server(
        "CREATE TABLE t AS SELECT i % 3 AS a, i / 7.0::float8 AS x, 'text ' || i AS t, "
        "date '2024-01-01' + i % 300 AS d, (i % 50)::numeric(6, 2) AS m FROM generate_series(0, 9999) AS i"
    )
    source = open_source(server.address, table="t")
    halves = Recode(np.arange(366) // 183, ("first", "second"))
    codings = [
        Coding("a", IntegerRange(0, 9)),
        Coding("x", Bins((0.0, 500.0, 1000.0, 2000.0))),
        Coding("t", Categories(("text 1", "text 2")), other="else"),
        Coding("d", DateRange(dt.date(2024, 1, 1), dt.date(2024, 12, 31)), recode=halves),
        Coding("m", Bins((0.0, 25.0, 50.0))),
    ]
    fetched.clear()
    histogram = source.count_by(codings)
    assert histogram.total == 10_000
    assert fetched == [len(histogram), 1]  # and the number of rows
    server("CREATE TABLE copy AS TABLE t")
    with server.connection.cursor() as cursor:
        cursor.execute("SELECT * FROM s.copy")
        assert open_source(cursor.fetch_arrow_table()).count_by(codings[:4]) == histogram.project(["a", "x", "t", "d"])


def test_texts_are_told_apart_whatever_the_collation_or_type(server):
    server(
        "CREATE COLLATION s.blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TYPE s.listed AS ENUM ('b', 'a')",
        "CREATE DOMAIN s.word AS varchar(9)",
        "CREATE TABLE t (c text COLLATE s.blind, e s.listed, w s.word, f char(4), v varchar, u uuid)",
        "INSERT INTO t VALUES ('a', 'a', 'a ', 'a', 'a', '00000000-0000-0000-0000-00000000000A'), "
        "('A', 'b', 'a', 'a  ', 'a ', NULL)",
    )
    source = open_source(server.address, table="t")
    assert counted(source, Coding("c", Categories(("a", "A")))) == {"a": 1, "A": 1}
    assert counted(source, Coding("c", Categories(("a",)), other="else")) == {"a": 1, "else": 1}
    assert counted(source, Coding("e", Categories(("a", "b")))) == {"a": 1, "b": 1}
    assert counted(source, Coding("w", Categories(("a", "a ")))) == {"a": 1, "a ": 1}
    assert counted(source, Coding("f", Categories(("a",)))) == {"a": 2}
    assert counted(source, Coding("v", Categories(("a", "a ")))) == {"a": 1, "a ": 1}
    uuid = "00000000-0000-0000-0000-00000000000a"
    assert counted(source, Coding("u", Categories((uuid,)), missing="keep")) == {uuid: 1, None: 1}


def test_numbers_and_days_that_only_postgresql_has(server):
    server(
        "CREATE DOMAIN s.age AS int CHECK (value >= 0)",
        "CREATE TABLE t (n numeric, m numeric(9, 2), a s.age, d date, z timestamptz, f real, j jsonb, b bytea)",
        "INSERT INTO t VALUES ('NaN', 'NaN', 7, 'infinity', 'infinity', 'NaN', '{}', ''), "
        "('7', 1.5, 7, '-infinity', '2024-02-29 01:00+01', 0.1, '{}', ''), "
        "('7.000', 1.50, 8, '2024-02-29', '2024-02-29 01:00+00', 'Infinity', '{}', ''), "
        "('Infinity', 2, 8, '0044-03-15 BC', '-infinity', 1, '{}', '')",
    )
    source = open_source(server.address, table="t")
    kinds = {column.name: column.kind for column in source.columns()}
    assert kinds == {
        "n": "text", "m": "decimal", "a": "integer", "d": "date", "z": "timestamp", "f": "float", "j": "other",
        "b": "other",
    }  # fmt: skip
    keep = {"missing": "keep", "other": "else"}
    assert counted(source, Coding("n", IntegerRange(0, 9), **keep)) == {"7": 2, "else": 1, None: 1}
    assert counted(source, Coding("n", Bins((0.0, math.inf)), **keep)) == {"[0, ∞)": 3, None: 1}
    assert counted(source, Coding("m", Categories(("1.50",)), **keep)) == {"1.50": 2, "else": 1, None: 1}
    assert counted(source, Coding("a", IntegerRange(7, 8))) == {"7": 2, "8": 2}
    assert counted(source, Coding("d", WEEK, **keep)) == {"2024-02-29": 1, "else": 3}
    assert counted(source, Coding("d", Categories((dt.date(2024, 2, 29),)), other="else")) == {
        "2024-02-29": 1,
        "else": 3,
    }
    assert counted(source, Coding("z", WEEK, **keep)) == {"2024-02-29": 1, "else": 3}
    assert counted(source, Coding("f", Bins((0.0, 0.5, 2.0)), **keep)) == {
        "[0, 0.5)": 1, "[0.5, 2]": 1, "else": 1, None: 1,
    }  # fmt: skip
    assert refused(lambda: source.count_by([Coding("j", Categories(("{}",)))])).code == "column-type"


def test_the_settings_of_a_server_change_nothing(server):
    server(
        "CREATE TABLE t AS SELECT 'it''s \\ back' AS x, date '2024-02-29' AS d, timestamptz '2024-02-29 00:00+00' AS z"
    )
    odd = "-c%20standard_conforming_strings%3Doff%20-c%20DateStyle%3DSQL%2CDMY%20-c%20TimeZone%3DAsia%2FTokyo"
    source = open_source(server.address.replace("options=-c", f"options={odd}%20-c"), table="t")
    assert counted(source, Coding("x", Categories(("it's \\ back",)), other="else")) == {"it's \\ back": 1}
    assert counted(source, Coding("d", WEEK, other="else")) == {"2024-02-29": 1}
    assert counted(source, Coding("z", WEEK)) == {"2024-02-29": 1}


def test_which_table_is_meant(server):
    server("CREATE TABLE one (x int)", "INSERT INTO one VALUES (1)", "CREATE VIEW two AS SELECT 2 AS x")
    server("CREATE MATERIALIZED VIEW three AS SELECT 3 AS x", 'CREATE TABLE "s.one" AS SELECT 4 AS x')
    server("CREATE TABLE parts (x int) PARTITION BY LIST (x)", "CREATE TABLE part PARTITION OF parts FOR VALUES IN (5)")
    server("INSERT INTO parts VALUES (5)")
    coding = Coding("x", IntegerRange(0, 9))
    for name, value in (("one", "1"), ("two", "2"), ("three", "3"), ("s.two", "2"), ("s.s.one", "4"), ("parts", "5")):
        assert counted(open_source(server.address, table=name), coding) == {value: 1}
    assert refused(lambda: open_source(server.address)).code == "data-format"
    assert refused(lambda: open_source(server.address, table="four")).code == "data-not-found"
    # Both the table 's.one' on the path and the table 'one' of the schema 's'.
    assert refused(lambda: open_source(server.address, table="s.one")).code == "data-not-found"


def test_a_connection_or_a_cursor_will_do_and_is_left_open(server):
    server("CREATE TABLE t AS SELECT 7 AS x")
    coding = Coding("x", IntegerRange(0, 9))
    assert counted(open_source(server.connection, table="s.t"), coding) == {"7": 1}
    with server.connection.cursor() as cursor:
        assert counted(open_source(cursor, table="s.t"), coding) == {"7": 1}
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_connections_of_psycopg_and_sqlalchemy_will_do(server, postgresql_server):
    psycopg, sqlalchemy = pytest.importorskip("psycopg"), pytest.importorskip("sqlalchemy")
    server("CREATE TABLE connected AS SELECT 'a' AS v FROM generate_series(1, 5)")
    coding = [Coding("v", Categories(("a", "b")))]
    with psycopg.connect(postgresql_server) as connection:
        assert open_source(connection, table="s.connected").count_by(coding).total == 5
    engine = sqlalchemy.create_engine(postgresql_server.replace("postgresql://", "postgresql+psycopg://"))
    assert open_source(engine, table="s.connected").count_by(coding).total == 5
    engine.dispose()


def test_one_state_of_the_database_is_read_and_nothing_written(server):
    server("CREATE TABLE t AS SELECT 7 AS x", "CREATE SEQUENCE numbers")
    source = open_source(server.address, table="t")
    with source.connect() as (connection, scan):
        before = connection.sql(f"SELECT count(*) FROM {scan([0])}").fetchall()
        server("INSERT INTO t VALUES (8)")
        assert connection.sql(f"SELECT count(*) FROM {scan([0])}").fetchall() == before == [(1,)]
    assert source.count_by([]).total == 2
    server("CREATE VIEW writing AS SELECT nextval('s.numbers') AS x")
    error = refused(lambda: open_source(server.address, table="writing").count_by([Coding("x", IntegerRange(0, 9))]))
    assert error.code == "data-unreadable"


def test_what_the_database_says_is_not_passed_on(server, postgresql_server):
    server("CREATE TABLE t (x text)", "INSERT INTO t VALUES ('SECRET')", "CREATE VIEW v AS SELECT x::int AS x FROM t")
    error = refused(lambda: open_source(server.address, table="v").count_by([Coding("x", IntegerRange(0, 9))]))
    assert error.code == "data-unreadable"
    assert "SECRET" not in str(error.to_dict())
    assert error.__cause__ is None
    server("DROP ROLE IF EXISTS visitor", "CREATE ROLE visitor LOGIN", "GRANT USAGE ON SCHEMA s TO visitor")
    error = refused(
        lambda: open_source(server.address.replace("postgres@", "visitor@"), table="t").count_by(
            [Coding("x", Categories(("a",)))]
        )
    )
    assert (error.code, "SELECT" in error.remedy) == ("data-unreadable", True)
    host = postgresql_server.split("@")[1]
    for address in (
        "postgresql://office:SECRET@127.0.0.1:1/census",
        f"postgresql://nobody:SECRET@{host}",
        f"postgres://postgres:SECRET@{host}x",
        "postgresql://:::SECRET",
    ):
        error = refused(lambda address=address: open_source(address, table="t"))
        assert error.code == "data-connection"
        assert "SECRET" not in str(error.to_dict())
    server("DROP OWNED BY visitor", "DROP ROLE visitor")


def test_a_release_from_a_database(server, tmp_path):
    server(
        "CREATE TABLE people AS SELECT 20 + i % 60 AS age, (ARRAY['f', 'm'])[1 + i % 2] AS sex "
        "FROM generate_series(1, 4000) AS i"
    )
    text = (
        f"incrowd: 1\ndata: {{path: '{server.address}', table: people}}\n"
        "attributes: {age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1},"
        " sex: {domain: [f, m]}}\nrelease: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, beta: 0.4}\n"
    )
    made = api.release(None, Policy.from_text(text, base=tmp_path), folder=tmp_path / "out")
    assert made.histogram.total > 0
    published = [path.read_bytes() for path in (tmp_path / "out").iterdir()]
    assert published
    assert not any(b"127.0.0.1" in content or b"postgresql" in content for content in published)


def test_what_needs_the_rows_has_them_streamed(server):
    server("CREATE TABLE t AS SELECT i % 3 AS a, (i % 2)::numeric(4, 1) AS m FROM generate_series(1, 60) AS i")
    source = open_source(server.address, table="t")
    observed = count_observed(source, ["a", "m"]).histogram
    assert (observed["a"].labels, observed["m"].labels) == (("0", "1", "2"), ("0.0", "1.0"))
    assert observed.counts.tolist() == [10] * 6


def test_rows_beyond_one_batch(server, fetched):
    server("CREATE TABLE t AS SELECT i AS x FROM generate_series(0, 299999) AS i")
    histogram = open_source(server.address, table="t").count_by([Coding("x", IntegerRange(0, 299_999))])
    assert histogram.counts.tolist() == [1] * 300_000


def test_a_missing_driver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    error = refused(lambda: open_source("postgresql://host/census"))
    assert error.code == "engine-missing"
    assert "incrowd[postgres]" in error.remedy


def test_what_the_page_shows(server, tmp_path, monkeypatch):
    server(
        "CREATE TABLE people AS SELECT 20 + i % 50 AS age, (ARRAY['f', 'm'])[1 + i % 2] AS sex "
        "FROM generate_series(1, 5000) AS i"
    )
    here = {"postgresql://office@localhost/census": server.address}
    databases.run_page("postgresql", tmp_path, monkeypatch, here, table="people")  # other tests have tables there, too
