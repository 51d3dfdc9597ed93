"""What a table looks like: how values are written, and that rare ones stay where they are."""

import datetime as dt
import math

import pyarrow as pa
import pytest

from incrowd.core.errors import DataError
from incrowd.sources import open_source, profile
from incrowd.sources.profile import COMMON


def column(values, **options):
    table = pa.table({"x": pa.array(values, **options)})
    [found] = profile.profile(open_source(table)).columns
    return found


@pytest.mark.parametrize(
    ("text", "writing"),
    [
        ("0", "binary"),
        ("7", "natural"),
        ("-7", "integer"),
        ("+7", "integer"),
        (" 7 ", "natural"),
        ("7.0", "integer"),
        ("7.5", "number"),
        (".5", "number"),
        ("1e5", "number"),
        ("-Inf", "number"),
        ("7,5", "comma"),
        ("1,234", "comma"),
        ("1.234", "number"),
        ("1.234,56", "thousands"),
        ("1,234.56", "thousands"),
        ("1.234.567", "thousands"),
        ("-1,234,567", "thousands"),
        ("0.123,5", "text"),
        ("007", "digits"),
        ("1" * 19, "digits"),
        ("2024-02-29", "date"),
        ("2024-2-9 00:00:00", "date"),
        ("2023-02-29", "text"),
        ("9999-12-31", "text"),
        ("2024-02-29T12:30", "moment"),
        ("31.12.2024", "local date"),
        ("12/31/24", "local date"),
        ("TRUE", "flag"),
        ("f", "flag"),
        ("J45.0", "mark"),
        ("SW1A", "mark"),
        ("yes", "text"),
        ("7 apples", "text"),
        ("1_000", "text"),
    ],
)
def test_ways_of_writing(text, writing):
    assert set(column([text]).writings) == {writing}


@pytest.mark.parametrize("text", ["", "  ", "NA", "n/a", "N.A.", "NULL", "null", "?", "-", "NaN", ".", " ? ", "\\N"])
def test_spellings_of_nothing_are_missing_and_told_as_they_are(text):
    found = column([text, "a"])
    assert (found.missing, found.spellings, found.present, found.distinct) == (1, (text,), 1, 1)


@pytest.mark.parametrize("text", ["none", "no", "unknown", "0", "99", "x"])
def test_other_texts_are_values(text):
    assert column([text]).missing == 0


def test_types_of_the_table_itself():
    assert column([1, 0, None]).writings.keys() == {"binary"}
    assert column([1.0, 2.0, math.nan]).writings.keys() == {"binary", "natural"}
    assert column([1.5]).writings.keys() == {"number"}
    assert column([True, False]).writings.keys() == {"flag"}
    assert column([dt.date(2024, 1, 31)]).days == (dt.date(2024, 1, 31),) * 2
    assert column([0], type=pa.timestamp("s")).writings.keys() == {"date"}
    assert column([1], type=pa.timestamp("s")).writings.keys() == {"moment"}
    nested = column([[1, 2]])
    assert (nested.kind, nested.writings) == ("other", {})
    assert column([None], type=pa.null()).missing == 1


def test_only_common_texts_leave_the_engine():
    found = column(["often"] * COMMON + ["seldom"] * (COMMON - 1) + ["once"])
    assert found.common == (("often", COMMON),)
    assert (found.distinct, found.common_values, found.rare_records) == (3, 1, COMMON)


def test_what_may_be_thousands_is_counted_even_if_no_two_records_share_it():
    found = column(["1.000", "45.678", "7.0", "-7", "12.5", "0.123", "1,234", "999,999", "1,5", "1234,567"])
    assert [(w.signed, w.grouped) for w in map(found.writings.get, ("integer", "number", "comma"))] == [
        (2, 1),
        (3, 1),
        (4, 2),
    ]


def test_spellings_of_nothing_are_counted():
    assert column(["-", "-", "NA", "", None, "a"]).absent == (("", 1), ("-", 2), ("NA", 1))


def test_numbers_are_known_to_three_digits_and_their_ends_exactly():
    found = column([12345, 12346, 99999, -3, 0])
    assert found.ends == (-3, 99999)
    assert found.numbers == ((-3, 1), (0, 1), (12300, 2), (100000, 1))


def test_infinite_numbers_have_no_say():
    found = column(["inf", "-inf", "2"])
    assert (found.ends, found.numbers, found.written("number")) == ((2, 2), ((2, 1),), 2)


def test_columns_with_very_many_values_are_judged_alike(monkeypatch):
    values = [f"{i:04d}" for i in range(500)] + ["?", "x", " 5", "2.5", None]
    exact = column(values)
    monkeypatch.setattr(profile, "_COUNTED", 10)
    rough = column(values)
    assert exact.counted
    assert not rough.counted
    assert (rough.missing, rough.spellings, rough.blanks) == (exact.missing, exact.spellings, exact.blanks)
    assert (rough.ends, rough.numbers) == (exact.ends, exact.numbers)
    assert {way: w.records for way, w in rough.writings.items()} == {
        way: w.records for way, w in exact.writings.items()
    }
    assert rough.common == ()
    assert rough.distinct == pytest.approx(exact.distinct, rel=0.2)


def test_an_empty_table_is_refused():
    with pytest.raises(DataError) as caught:
        column([], type=pa.string())
    assert caught.value.code == "data-empty"


def test_progress_is_told():
    parts = []
    profile.profile(open_source(pa.table({"x": ["a"]})), parts.append)
    assert parts == sorted(parts)
    assert parts[-1] == 1
