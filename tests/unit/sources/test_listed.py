"""Texts that a Parquet file keeps in a dictionary are coded by their dictionary, with the same result as any others."""

import traceback

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import DataError
from incrowd.domain import Categories, Coding, Recode
from incrowd.sources import duckdb as engine
from incrowd.sources import open_source

texts = st.text(st.characters(codec="utf-8"), max_size=4)


@pytest.fixture
def queries(monkeypatch):
    """The queries that count."""
    seen = []
    fetch = engine._fetch

    def noted(connection, query, words, **options):
        seen.append(query)
        return fetch(connection, query, words, **options)

    monkeypatch.setattr(engine, "_fetch", noted)
    return seen


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def outcome(data, codings, **options):
    """The cells, or what the refusal says."""
    try:
        found = open_source(data, **options).count_by(codings)
    except DataError as error:
        return error.code, error.details
    return [c.codes.tolist() for c in found.columns], found.counts.tolist()


@settings(max_examples=150, deadline=None)
@given(
    declared=st.lists(texts.filter(bool), min_size=1, max_size=5, unique=True),
    others=st.lists(st.one_of(st.none(), texts), max_size=3),
    missing_values=st.lists(texts, max_size=2),
    missing=st.sampled_from(["refuse", "keep", "drop"]),
    dictionary=st.booleans(),
    data=st.data(),
)
def test_every_text_gets_the_code_that_it_has_in_a_table_in_memory(
    tmp_path_factory, declared, others, missing_values, missing, dictionary, data
):
    values = data.draw(st.lists(st.sampled_from([*declared, *others]), min_size=1, max_size=30))
    table = pa.table({"a": pa.array(values, pa.string()), "b": pa.array(values[::-1], pa.string())})
    path = tmp_path_factory.mktemp("listed") / "t.parquet"
    pq.write_table(table, path, use_dictionary=dictionary)
    codings = [Coding(name, Categories(tuple(declared)), missing=missing) for name in ("a", "b")]
    options = {"missing_values": tuple(missing_values)}
    assert outcome(path, codings, **options) == outcome(table, codings, **options)


def test_one_scan_is_enough_where_everything_is_declared(tmp_path, queries):
    path = parquet(tmp_path / "t.parquet", a=["x", "y", None, "", "n/a", "x"])
    coding = Coding("a", Categories(("x", "y")), missing="keep")
    found = open_source(path, missing_values=("", "n/a", "x")).count_by([coding])
    assert found.counts.tolist() == [2, 1, 3]  # a declared value is one, even if it stands for missing ones elsewhere
    assert len(queries) == 1
    assert "JOIN" not in queries[0]


def test_a_second_scan_tells_how_many_are_not_declared(tmp_path, queries):
    near = ["x ", "X", "x\0", "y"]
    path = parquet(tmp_path / "t.parquet", a=["x"] * 5000 + near)
    with pytest.raises(DataError) as refused:
        open_source(path).count_by([Coding("a", Categories(("x", "y")))])
    assert refused.value.details == {"columns": {"a": {"outside": 3, "missing": 0}}}
    assert len(queries) == 2
    assert "JOIN" in queries[1]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError, duckdb.IOException])
def test_whatever_stops_the_second_scan_quotes_nothing(tmp_path, monkeypatch, stop):
    fetch = engine._fetch

    def stopped(connection, query, words):
        if "JOIN" in query:
            raise stop
        return fetch(connection, query, words)

    monkeypatch.setattr(engine, "_fetch", stopped)
    path = parquet(tmp_path / "t.parquet", a=["x", "Jane Doe"])
    with pytest.raises(BaseException) as error:  # noqa: PT011 - whatever it is
        open_source(path).count_by([Coding("a", Categories(("x", "y")))])
    one, seen = error.value, []
    while one is not None:
        seen.append(str(one))
        one = one.__context__
    assert "Jane" not in " ".join(seen) + "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize(
    "coding",
    [
        Coding("a", Categories(("x",)), other="others"),
        Coding("a", Categories(("x", "y")), recode=Recode(np.array([0, 0]), ("all",))),
        Coding("a", Categories(("x", "y", *(f"a rather long text, number {i}" for i in range(300))))),
    ],
)
def test_other_texts_coarser_codes_and_long_lists_are_joined(tmp_path, queries, coding):
    path = parquet(tmp_path / "t.parquet", a=["x", "y", "x"])
    assert open_source(path).count_by([coding]).total == 3
    assert "JOIN" in queries[0]
