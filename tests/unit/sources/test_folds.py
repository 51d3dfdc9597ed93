"""Folding changes no code: values that are put in each other's place are coded alike, whatever the coding."""

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import DataError
from incrowd.domain import Bins, Categories, Coding, DateRange, IntegerRange, Recode
from incrowd.sources import open_source
from incrowd.sources.folds import Listing, Steps, fold

TYPES = {"integer": pa.int64(), "float": pa.float64(), "date": pa.date32(), "text": pa.string()}
MISSING = ("", "NA", "b")


def folded(value, how):
    """What a database does."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(how, Listing):
        for texts, stand in how.lists:
            if value in texts:
                return value if stand is None else stand
        return None if value in how.missing else how.outside
    if isinstance(how.below, float):
        value = float(value)
    stands = [how.below, *how.stand_ins]
    stand = stands[sum(start <= value for start in how.starts)]
    return value if stand is None else stand


def counted(values, type_, coding):
    source = open_source(pa.table({"x": pa.array(values, type_)}), missing_values=MISSING)
    try:
        histogram = source.count_by([coding])
    except DataError as error:
        return error.code, error.details
    return histogram["x"].labels, histogram["x"].codes.tolist(), histogram.counts.tolist()


@st.composite
def tables(draw):
    """A coding, the kind of a column, and values, most of them near the ends of something declared."""
    kind = draw(st.sampled_from(sorted(TYPES)))
    if kind == "text":
        domain = Categories(tuple(draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True))))
        values = st.sampled_from([*"abcdefghxyz", "", "NA", "A", "a ", "other values"])
    elif kind == "date":
        first = draw(st.sampled_from([dt.date(2024, 2, 27), dt.date.min, dt.date(9999, 12, 20)]))
        days = [first + dt.timedelta(days=i) for i in range(draw(st.integers(1, 9)))]
        chosen = tuple(draw(st.lists(st.sampled_from(days), min_size=1, unique=True)))
        domain = draw(st.sampled_from([DateRange(days[0], days[-1]), Categories(chosen)]))
        ordinals = st.integers(-3, 12).map(lambda i: min(max(first.toordinal() + i, 1), dt.date.max.toordinal()))
        values = ordinals.map(dt.date.fromordinal)
    elif kind == "integer" and draw(st.booleans()):
        low = draw(st.sampled_from([0, -3, 10**12, -(2**63), 2**63 - 9]))
        numbers = list(range(low, low + draw(st.integers(1, 9))))
        chosen = tuple(draw(st.lists(st.sampled_from(numbers), min_size=1, unique=True)))
        domain = draw(st.sampled_from([IntegerRange(numbers[0], numbers[-1]), Categories(chosen)]))
        values = st.integers(-3, 12).map(lambda i: min(max(low + i, -(2**63)), 2**63 - 1))
    else:
        cuts = draw(st.lists(st.sampled_from([-math.inf, -1.5, 0.0, 0.1, 2.0, 3.0, math.inf]), min_size=2, unique=True))
        domain = Bins(tuple(sorted(cuts)))
        near = [n for cut in (-1.5, 0.0, 0.1, 2.0, 3.0) for n in (cut, math.nextafter(cut, -9), math.nextafter(cut, 9))]
        values = (
            st.integers(-4, 5) if kind == "integer" else st.sampled_from([*near, math.inf, -math.inf, math.nan, -0.0])
        )
    missing = draw(st.sampled_from(["refuse", "keep", "drop"]))
    other = draw(st.sampled_from([None, "else"]))
    plain = Coding("x", domain, missing=missing, other=other)
    recode = None
    if draw(st.booleans()):
        to = draw(st.lists(st.integers(0, 2), min_size=len(plain.base_labels), max_size=len(plain.base_labels)))
        recode = Recode(np.array(to), ("p", "q", "r"))
    rows = draw(st.lists(st.none() | values, min_size=1, max_size=12))
    return Coding("x", domain, missing=missing, other=other, recode=recode), kind, rows


@settings(max_examples=80, deadline=None)
@given(tables())
def test_folded_values_are_coded_as_the_values_themselves(table):
    coding, kind, values = table
    how = fold(coding, kind, MISSING)
    if how is None:
        return
    replaced = [folded(value, how) for value in values]
    type_ = pa.float64() if isinstance(how, Steps) and isinstance(how.below, float) else TYPES[kind]
    assert counted(replaced, type_, coding) == counted(values, TYPES[kind], coding)


def test_few_values_are_left():
    to = Recode(np.arange(1000) // 100, tuple("abcdefghij"))
    how = fold(Coding("x", IntegerRange(0, 999), recode=to), "integer", ())
    assert {folded(value, how) for value in range(-50, 1050)} == {-1, *range(0, 1000, 100)}
    cuts = tuple(i / 7 for i in range(8))
    how = fold(Coding("x", Bins(cuts)), "float", ())
    assert {folded(i / 1000, how) for i in range(-500, 1500)} == {*cuts[:-1], math.nextafter(0, -1)}
    how = fold(Coding("x", Categories(("a", "b")), other="else"), "text", ("",))
    assert {folded(value, how) for value in ("a", "b", "c", "d", "", None)} == {"a", "b", "other values", None}


def test_every_number_is_declared_where_both_ends_are_open():
    how = fold(Coding("x", Bins((-math.inf, math.inf))), "float", ())
    assert {folded(value, how) for value in (-math.inf, -1.0, 0.0, 1e308, math.inf)} == {math.nextafter(math.inf, 0)}


@pytest.mark.parametrize(
    ("coding", "kind"),
    [
        (Coding("x", Categories(("a", "b"))), "text"),
        (Coding("x", IntegerRange(0, 9)), "integer"),
        (Coding("x", IntegerRange(0, 9), other="else"), "text"),
        (Coding("x", IntegerRange(0, 9), other="else"), "float"),
        (Coding("x", IntegerRange(2**63 - 2, 2**63 + 5), other="else"), "integer"),
        (Coding("x", DateRange(dt.date(2024, 1, 1), dt.date(2024, 1, 9)), other="else"), "timestamp"),
        (Coding("x", Bins((0.0, 1.0))), "text"),
        (Coding("x", Categories(("a\0b",)), other="else"), "text"),
        (Coding("x", Categories(tuple(f"{i:050}" for i in range(6000))), other="else"), "text"),
    ],
)
def test_what_gains_nothing_or_cannot_be_sent_stays_as_it_is(coding, kind):
    assert fold(coding, kind, ("",)) is None


def test_what_stands_for_values_outside_is_never_declared_nor_missing():
    coding = Coding("x", Categories(("other values", "a")), other="else")
    for missing in ((), ("other values'",)):
        how = fold(coding, "text", missing)
        assert how.outside not in {"other values", "a", *missing}
    assert fold(Coding("x", Categories(("a",)), other="else"), "text", ("other values",)).outside != "other values"
    for low in (-(2**63), 0):  # below the first there is no number, or one
        how = fold(Coding("x", IntegerRange(low, low + 5), other="else"), "integer", ())
        assert not low <= how.below <= low + 5
