"""Ibis expressions: any of them, counted where the table is, in every dialect that Ibis writes."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import databases
from incrowd.core.errors import DataError
from incrowd.domain import Bins, Categories, Coding, DateRange, IntegerRange, Recode
from incrowd.sources import open_source
from incrowd.sources.options import Options

ibis = pytest.importorskip("ibis", reason="the extra 'ibis' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated")

CODINGS = [
    Coding("a", IntegerRange(0, 9), recode=Recode(np.arange(10) // 5, ("low", "high"))),
    Coding("x", Bins((0.0, 50.0, 2000.0))),
    Coding("t", Categories(("text 1", "it's", "back\\slash")), other="else"),
    Coding("d", DateRange(dt.date(2024, 1, 1), dt.date(2024, 12, 31)), other="else"),
]


@pytest.fixture
def table():
    backend = ibis.duckdb.connect()
    backend.con.execute(
        "CREATE TABLE t AS SELECT i % 3 AS a, i / 7 AS x, 'text ' || i AS t, "
        "DATE '2024-01-01' + CAST(i % 9 AS INT) AS d FROM range(10000) AS r(i)"
    )
    return backend.table("t")


def answer(source, wanted, *, grouped=True):
    with source._remote.asking(Options()) as ask:
        return ask(wanted, grouped)


def test_the_warehouse_counts_and_only_groups_come(table):
    source = open_source(table)
    histogram = source.count_by(CODINGS)
    assert histogram.total == 10_000
    came = answer(source, dict(enumerate(CODINGS)))
    assert sum(batch.num_rows for batch in came.batches()) == len(histogram)


def test_any_expression(table):
    chosen = table.filter(table.a > 0).mutate(b=table.a * 10).select("b")
    histogram = open_source(chosen).count_by([Coding("b", IntegerRange(0, 20))])
    assert (histogram["b"].codes.tolist(), histogram.counts.tolist()) == ([10, 20], [3333, 3333])


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "trino", "postgres", "databricks", "clickhouse"])
def test_it_can_be_said_in_the_dialects_of_warehouses(table, dialect, monkeypatch):
    from incrowd.sources import ibis as module

    said = []
    monkeypatch.setattr(module, "_batches", lambda expression: said.append(expression) or [])
    answer(open_source(table), dict(enumerate(CODINGS))).batches()
    sql = ibis.to_sql(said[0], dialect=dialect)
    assert sql.count("GROUP BY") == 1
    assert "COUNT(*)" in sql


def test_texts_are_grouped_here_where_a_warehouse_does_not_tell_them_apart(table, monkeypatch):
    from incrowd.sources import ibis as module

    monkeypatch.setattr(module, "_EXACT", set())
    source = open_source(table)
    came = answer(source, dict(enumerate(CODINGS)))
    assert sum(batch.num_rows for batch in came.batches()) == 10_000
    assert source.count_by(CODINGS).total == 10_000


def test_what_a_warehouse_says_is_not_passed_on(table):
    wrong = table.select(x=ibis.cases((table.t == "text 7", "SECRET"), else_="1").cast("int64"))
    with pytest.raises(DataError) as error:
        open_source(wrong).count_by([Coding("x", IntegerRange(0, 9))])
    assert error.value.code == "data-unreadable"
    assert "SECRET" not in str(error.value.to_dict())


def test_columns_of_other_kinds_are_refused(table):
    source = open_source(table.mutate(n=ibis.array([1, 2])))
    assert source.columns()[-1].kind == "other"
    with pytest.raises(DataError) as error:
        source.count_by([Coding("n", Categories(("1",)))])
    assert error.value.code == "column-type"


def test_what_the_page_shows(tmp_path, monkeypatch):
    rows = {"age": [20 + i % 50 for i in range(5000)], "sex": ["fm"[i % 2] for i in range(5000)]}
    databases.put_into_sqlite(pa.table(rows), tmp_path / "people.db", ["INTEGER", "TEXT"], name="people")
    databases.run_page("ibis", tmp_path, monkeypatch)
