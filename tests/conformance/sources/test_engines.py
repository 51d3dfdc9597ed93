"""One suite for every engine: the same histograms for the same data, the same errors for the same faults."""

import datetime as dt
import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.errors import DataError, ParameterError
from incrowd.domain import (
    Bins,
    Categories,
    Coding,
    DateRange,
    IntegerRange,
    Recode,
    read_date_format,
    read_number_format,
)
from incrowd.sources import open_source
from incrowd.sources.duckdb import DuckDBSource
from incrowd.sources.observed import count_observed
from incrowd.sources.values import distinct_counts

D, T = dt.date, dt.datetime
ONE_TO_NINE = IntegerRange(1, 9)
WEEK = DateRange(D(2024, 2, 26), D(2024, 3, 3))
YES_NO = Categories((True, False))


def columns(**values):
    """An Arrow table of these columns, each a list or an array, filled up with their last value."""
    arrays = {name: v if isinstance(v, pa.Array) else pa.array(v) for name, v in values.items()}
    longest = max(map(len, arrays.values()))
    filled = {n: pa.array(a.to_pylist() + [a[-1].as_py()] * (longest - len(a)), a.type) for n, a in arrays.items()}
    return pa.table(filled)


def marginals(source, *codings):
    """Each column's labels and their counts, from one scan."""
    h = source.count_by(codings)
    found = {}
    for name in h.names:
        m = h.project([name])
        found[name] = dict(zip([m[name].labels[i] for i in m[name].codes], m.counts.tolist(), strict=True))
    return found


def one(source, domain, **how):
    return marginals(source, Coding("x", domain, **how))["x"]


def refused(source, *codings):
    with pytest.raises(DataError) as caught:
        source.count_by(codings)
    assert caught.value.remedy
    return caught.value


def faults(source, **domains):
    """How many records each column refuses: (outside, missing)."""
    error = refused(source, *(Coding(name, domain) for name, domain in domains.items()))
    assert error.code in {"values-outside-domain", "values-missing"}
    return {name: (n["outside"], n["missing"]) for name, n in error.details["columns"].items()}


def test_columns_are_counted_together_in_the_order_asked_for(engine):
    source = engine(columns(a=["p", "q", "p", "p"], unused=[1.5, 2, 3, 4], b=[1, 2, 1, 2]))
    assert open_source(source) is source
    assert [c.name for c in source.columns()] == ["a", "unused", "b"]
    assert source.columns()[0].kind == "text"
    h = source.count_by([Coding("b", IntegerRange(0, 3)), Coding("a", Categories(("q", "p", "r")))])
    assert h.names == ("b", "a")
    assert h["a"].labels == ("q", "p", "r")
    assert h["b"].codes.tolist() == [1, 2, 2]
    assert h["a"].codes.tolist() == [1, 0, 1]
    assert h.counts.tolist() == [2, 1, 1]


ODD_TEXTS = (
    "plain", " leading", "trailing ", "Plain", "comma,inside", "semi;colon", 'say "hi"', "it's", "two\nlines",
    "cr\r\nlf", "tab\tinside", "back\\slash", "percent%", "under_score", "{value}", "$1", "'; DROP TABLE x; --", "NULL",
    "NA", "nan", "0", "007", "1e3", "true", "é", "e\u0301", "ß", "ẞ", "İ", "日本語", "🧑\u200d🤝\u200d🧑", "\u200b",
    "\u00a0", "\ufeffmark", "-", "*", "_", "a" * 5000,
)  # fmt: skip


def test_odd_texts_match_exactly(engine):
    values = [text for i, text in enumerate(ODD_TEXTS) for _ in range(i + 1)]
    got = one(engine(columns(x=values)), Categories(ODD_TEXTS))
    assert got == {text: i + 1 for i, text in enumerate(ODD_TEXTS)}


def test_texts_that_only_look_alike_are_outside(engine):
    alike = ["Plain", " plain", "plain ", "pla in", "plain\u200b", "e\u0301"]
    assert faults(engine(columns(x=[*alike, "é", "plain"])), x=Categories(("plain", "é"))) == {"x": (len(alike), 0)}


def test_missing_values_are_refused_kept_or_dropped(engine):
    source = engine(columns(x=["a", None, "b", None, "a", ""]))
    domain = Categories(("a", "b"))
    error = refused(source, Coding("x", domain))
    assert error.code == "values-missing"
    assert error.details == {"columns": {"x": {"outside": 0, "missing": 3}}}
    assert one(source, domain, missing="keep") == {"a": 2, "b": 1, None: 3}
    assert one(source, domain, missing="drop") == {"a": 2, "b": 1}


def test_nulls_are_missing_in_columns_of_every_type(engine):
    domains = {
        "text": Categories(("1",)),
        "integer": ONE_TO_NINE,
        "float": ONE_TO_NINE,
        "bins": Bins((0.0, 5.0, 10.0)),
        "decimal": Categories((Decimal("1"), Decimal("2"))),
        "boolean": YES_NO,
        "date": WEEK,
        "timestamp": WEEK,
        "nothing": Categories(("1",)),
        "no_numbers": ONE_TO_NINE,
    }
    table = columns(
        text=["1", None, None],
        integer=pa.array([1, None, None], pa.int32()),
        float=[1.0, None, math.nan],
        bins=[1.5, None, math.nan],
        decimal=pa.array([Decimal(1), None, None], pa.decimal128(10, 2)),
        boolean=[True, None, None],
        date=pa.array([D(2024, 3, 1), None, None], pa.date32()),
        timestamp=pa.array([T(2024, 3, 1), None, None], pa.timestamp("us")),
        nothing=pa.array([None] * 3, pa.string()),
        no_numbers=pa.array([None] * 3, pa.float64()),
    )
    everywhere = dict.fromkeys(domains, (0, 2)) | {"nothing": (0, 3), "no_numbers": (0, 3)}
    assert faults(engine(table), **domains) == everywhere
    kept = marginals(engine(table), *(Coding(name, domain, missing="keep") for name, domain in domains.items()))
    assert {name: (0, found[None]) for name, found in kept.items()} == everywhere


def test_not_a_number_is_missing_whatever_a_file_notes_about_its_values(engine):
    source = engine(columns(x=[1.0, math.nan, 2.0, None]))
    assert one(source, Bins((0.0, 1.5, 3.0)), missing="keep") == {"[0, 1.5)": 1, "[1.5, 3]": 1, None: 2}


def test_the_texts_for_missing_values_can_be_chosen(engine):
    table = columns(x=["a", "NA", "it's", "na", "v0", ""])
    domain = Categories(("a",))
    assert one(engine(table, missing_values=["NA", "it's", "na", "v0", ""]), domain, missing="keep") == {
        "a": 1,
        None: 5,
    }
    assert faults(engine(table, missing_values=["NA"]), x=domain) == {"x": (4, 1)}


def test_a_declared_text_is_never_missing(engine):
    countries = Categories(("NA", "DE"))
    source = engine(columns(x=["NA", "DE", ""]), missing_values=["NA", ""])
    assert one(source, countries, missing="keep") == {"NA": 1, "DE": 1, None: 1}
    assert one(engine(columns(x=["", "b"]), missing_values=[]), Categories(("", "b"))) == {"": 1, "b": 1}


def test_dropping_a_record_drops_its_other_faults_too(engine):
    source = engine(columns(x=["a", None], y=[1, 999]))
    got = marginals(source, Coding("x", Categories(("a",)), missing="drop"), Coding("y", ONE_TO_NINE))
    assert got == {"x": {"a": 1}, "y": {"1": 1}}


def test_values_outside_can_go_into_a_bucket(engine):
    source = engine(columns(x=["a", "b", "c", None, "b"], y=[1, 500, -3, 1, 1]))
    got = marginals(
        source,
        Coding("x", Categories(("a",)), other="else", missing="keep"),
        Coding("y", ONE_TO_NINE, other="else"),
    )
    assert got == {"x": {"a": 1, "else": 3, None: 1}, "y": {"1": 3, "else": 2}}


def test_all_faults_are_told_at_once_and_values_only_on_request(engine):
    table = columns(x=["SECRET", "a", None], y=[1, 777, 778], z=["fine"] * 3)
    codings = (Coding("x", Categories(("a",))), Coding("y", ONE_TO_NINE), Coding("z", Categories(("fine",))))
    error = refused(engine(table), *codings)
    assert error.code == "values-outside-domain"
    assert error.details == {"columns": {"x": {"outside": 1, "missing": 1}, "y": {"outside": 2, "missing": 0}}}
    assert "'x' has 1 record with a value outside its domain" in error.message
    assert "'y' has 2 records" in error.message
    assert "SECRET" not in str(error.to_dict())
    assert "777" not in str(error.to_dict())
    shown = refused(engine(table, show_values=True), *codings)
    assert "outside its domain ('SECRET')" in shown.message
    assert "('777', '778')" in shown.message
    assert "SECRET" not in str(shown.details)


INT64 = (2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 2**53, 2**53 + 1, 0, -1)
UINT64 = (2**64 - 1, 2**63)


def test_64_bit_integers_are_exact(engine):
    table = columns(i=pa.array(INT64, pa.int64()), u=pa.array(UINT64, pa.uint64()))
    got = marginals(engine(table), Coding("i", Categories(INT64)), Coding("u", Categories(UINT64)))
    assert got["i"] == {str(n): 1 for n in INT64}
    assert got["u"] == {str(2**64 - 1): 1, str(2**63): 7}
    got = marginals(
        engine(table),
        Coding("i", IntegerRange(2**63 - 3, 2**63 - 1), other="less"),
        Coding("u", IntegerRange(2**64 - 3, 2**64 - 1), other="less"),
    )
    assert got == {"i": {str(2**63 - 2): 1, str(2**63 - 1): 1, "less": 6}, "u": {str(2**64 - 1): 1, "less": 7}}
    assert faults(engine(table), i=Categories((*INT64[:5], 2**53 + 2, 0, -1)), u=ONE_TO_NINE) == {
        "i": (1, 0),
        "u": (8, 0),
    }


def test_whole_numbers_match_by_value_in_every_type(engine):
    types = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.float32(), pa.float64()]
    table = columns(**{str(t): pa.array([7, 8, 7], t) for t in types})
    for domain in (ONE_TO_NINE, Categories((8, 7)), Categories((Decimal("8"), Decimal("8.50"), Decimal("7")))):
        got = marginals(engine(table), *(Coding(str(t), domain) for t in types))
        assert got == {str(t): {"7": 2, "8": 1} for t in types}


@pytest.mark.parametrize("low", [0, 1, -3, -40_000, 200, 65_000, 10**9])
def test_numbers_just_outside_are_outside_whatever_their_size(engine, low):
    high = low + 600
    inside = [low, low + 1, high, None]
    beyond = [low - 1, high + 1, -1 - high, 254, 255, 256, 257, 258, 32_766, 32_767, 32_768, -32_768, -32_769,
              65_534, 65_535, 65_536, 65_537, 2**31 - 1, 2**31, 2**63 - 1, -(2**63)]  # fmt: skip
    beyond = [n for n in beyond if not low <= n <= high]
    listed = Categories(tuple(range(high, low - 1, -1)))
    table = columns(x=inside, y=inside)
    kept = marginals(
        engine(table),
        Coding("x", IntegerRange(low, high), missing="keep"),
        Coding("y", listed, missing="keep"),
    )
    assert kept == {key: {str(low): 1, str(low + 1): 1, str(high): 1, None: 1} for key in "xy"}
    table = columns(x=beyond + inside, y=beyond + inside, z=beyond + inside)
    error = refused(
        engine(table),
        Coding("x", IntegerRange(low, high), missing="keep"),
        Coding("y", listed, missing="keep"),
        Coding("z", IntegerRange(low, high), missing="keep", other="other"),
    )
    assert error.details["columns"] == {key: {"outside": len(beyond), "missing": 0} for key in "xy"}


def test_whole_numbers_written_as_text(engine):
    good = ["7", "07", "+7", "7.0", "7.", " 7", "7 ", "007.000"]
    bad = [
        "7.5",
        "7,0",
        "1_0",
        "0x7",
        "7e0",
        "--7",
        "7 7",
        "seven",
        "٧",
        "7\u00a0",
        "6.9999999999999999999999",
        "1e400",
    ]
    table = columns(x=good, y=good)
    got = marginals(engine(table), Coding("x", ONE_TO_NINE), Coding("y", Categories((7, 10**12))))
    assert got == {"x": {"7": len(good)}, "y": {"7": len(good)}}
    table = columns(x=bad + good, y=bad + good)
    assert faults(engine(table), x=ONE_TO_NINE, y=Categories((7, 8, 10))) == {"x": (len(bad), 0), "y": (len(bad), 0)}


def test_fractions_are_not_rounded_to_whole_numbers(engine):
    table = columns(
        f=[7.5, 6.5, math.inf, -math.inf, 1e300, 7.0],
        d=pa.array([Decimal("7.50"), Decimal("8.01"), Decimal("7.00")], pa.decimal128(10, 2)),
    )
    assert faults(engine(table), f=ONE_TO_NINE, d=Categories((7, 8))) == {"f": (5, 0), "d": (2, 0)}


DECIMALS = tuple(map(Decimal, ("0.1", "1.50", "-2.25", "12345678901234567890.12", "3")))


def test_decimals_are_exact(engine):
    table = columns(x=pa.array(DECIMALS, pa.decimal128(38, 2)))
    assert one(engine(table), Categories(DECIMALS)) == {str(d): 1 for d in DECIMALS}
    almost = columns(x=pa.array([Decimal("12345678901234567890.13"), Decimal("0.1")], pa.decimal128(38, 2)))
    assert faults(engine(almost), x=Categories(DECIMALS)) == {"x": (1, 0)}


def test_decimals_written_as_text(engine):
    good = ["1.5", "1.50", "+1.500", "01.5", " 1.5 ", "1.5000000000000000000000000000000000"]
    bad = ["1.51", "1.5000000000000000000000000000000001", "1,5", "15e-1", "1.49999999999999999999999999", "."]
    domain = Categories((Decimal("1.5"), Decimal("2.5")))
    assert one(engine(columns(x=good)), domain) == {"1.5": len(good)}
    assert faults(engine(columns(x=bad + good)), x=domain) == {"x": (len(bad), 0)}


def test_decimal_commas(engine):
    table = columns(d=["1,5", "2", "1,50"], b=["1,5", "0,25"], i=["1,0", "2"])
    got = marginals(
        engine(table, decimal=","),
        Coding("d", Categories((Decimal("1.5"), Decimal("2")))),
        Coding("b", Bins((0.0, 1.0, 2.0))),
        Coding("i", ONE_TO_NINE),
    )
    assert got == {"d": {"1.5": 2, "2": 1}, "b": {"[0, 1)": 2, "[1, 2]": 1}, "i": {"1": 1, "2": 2}}
    # A point would be a separator of thousands, and is not read as one.
    assert faults(engine(columns(x=["1.500", "2"]), decimal=","), x=ONE_TO_NINE) == {"x": (1, 0)}


CUTS = (-1.0, 0.0, 0.1, 0.3, 5.0)


def bin_of(value, cuts):
    last = len(cuts) - 2
    inside = [i for i in range(len(cuts) - 1) if cuts[i] <= value < cuts[i + 1] or (i == last and value == cuts[-1])]
    return inside[0] if inside else None


def test_cut_points(engine):
    values = [
        -1.0,
        -0.0,
        0.0,
        5e-324,
        0.1,
        math.nextafter(0.1, 0),
        0.30000000000000004,
        0.3,
        0.1 + 0.2,
        5.0,
        4.999,
        1e-5,
    ]
    expected = Counter(Bins(CUTS).labels[bin_of(v, CUTS)] for v in values)
    table = columns(number=values, text=[repr(v) for v in values])
    got = marginals(engine(table), Coding("number", Bins(CUTS)), Coding("text", Bins(CUTS)))
    assert got == {"number": expected, "text": expected}
    beyond = [math.nextafter(5.0, 6), math.nextafter(-1.0, -2), math.inf, -math.inf, 1e308, *values]
    table = columns(number=beyond, text=[repr(v) for v in beyond])
    assert faults(engine(table), number=Bins(CUTS), text=Bins(CUTS)) == {"number": (5, 0), "text": (5, 0)}


def test_open_ended_cut_points(engine):
    domain = Bins((-math.inf, 0.0, math.inf))
    low, high = domain.labels
    table = columns(x=[-math.inf, -1.0, 0.0, math.inf, 1e308], y=["-inf", "-1", "0", "Infinity", "1e308"])
    got = marginals(engine(table), Coding("x", domain), Coding("y", domain))
    assert got == {"x": {low: 2, high: 3}, "y": {low: 2, high: 3}}


def test_cut_points_of_other_numbers(engine):
    tenths = pa.array(list(map(Decimal, ("0.10", "0.29", "0.30"))), pa.decimal128(38, 2))
    got = marginals(
        engine(columns(i=[0, 1, 2], d=tenths)), Coding("i", Bins((0.0, 1.0, 2.0))), Coding("d", Bins((0.1, 0.3, 1.0)))
    )
    assert got == {"i": {"[0, 1)": 1, "[1, 2]": 2}, "d": {"[0.1, 0.3)": 2, "[0.3, 1]": 1}}
    bad = ["1_0.5", "1,5", "abc", "0x1", "1.5.5", "1e", "", "nan", "0.5"]
    assert faults(engine(columns(x=bad)), x=Bins((0.0, 1.0))) == {"x": (6, 2)}


def test_many_cut_points(engine):
    cuts = tuple(i / 7 for i in range(200))
    values = [*np.random.default_rng(1).uniform(0, 199 / 7, 500).tolist(), *cuts]
    expected = Counter(Bins(cuts).labels[bin_of(v, cuts)] for v in values)
    assert one(engine(columns(x=values)), Bins(cuts)) == expected


def test_dates(engine):
    days = pa.array([D(2024, 2, 29), D(2024, 3, 1), D(2024, 2, 29)], pa.date32())
    both = {"2024-02-29": 2, "2024-03-01": 1}
    got = marginals(
        engine(columns(x=days, y=days, z=days)),
        Coding("x", WEEK),
        Coding("y", Categories((D(2024, 3, 1), D(2024, 2, 29)))),
        Coding("z", Categories(("2024-02-29", "2024-03-01"))),
    )
    assert got == {"x": both, "y": both, "z": both}
    beyond = columns(x=pa.array([D(2024, 2, 25), D(2024, 3, 4), D(1, 1, 1), D(9999, 12, 31)], pa.date32()))
    assert faults(engine(beyond), x=WEEK) == {"x": (4, 0)}


def test_timestamps_at_midnight_are_dates(engine):
    at = [T(2024, 2, 29), T(2024, 3, 1)]
    types = {"s": pa.timestamp("s"), "us": pa.timestamp("us"), "ns": pa.timestamp("ns")}
    table = columns(
        **{name: pa.array(at, t) for name, t in types.items()},
        zoned=pa.array([t.replace(tzinfo=dt.UTC) for t in at], pa.timestamp("us", "UTC")),
    )
    names = [*types, "zoned"]
    got = marginals(engine(table), *(Coding(name, WEEK) for name in names))
    assert got == {name: {"2024-02-29": 1, "2024-03-01": 1} for name in names}
    later = columns(
        x=pa.array([T(2024, 2, 29, 0, 0, 1), *at], pa.timestamp("us")),
        y=pa.array([T(2024, 2, 28, 23, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
    )
    assert faults(engine(later), x=WEEK, y=WEEK) == {"x": (1, 0), "y": (3, 0)}


def test_dates_written_as_text(engine):
    good = ["2024-02-29", "2024-2-29", "2024-02-29 00:00:00", "2024-02-29T00:00:00", "2024-02-29T00:00:00.000Z",
            "2024-02-29 00:00:00+00:00", "2024-02-29 00:00"]  # fmt: skip
    bad = ["2024-02-30", "29.02.2024", "02/29/2024", "2024-02-29 13:00:00", "2024-02-29 00:00:01", "20240229", "epoch",
           "2024-02-29x", "2024-02-29 (BC)", "infinity", "today", "2024-02-29 00:00:00+02:00"]  # fmt: skip
    assert one(engine(columns(x=good)), WEEK) == {"2024-02-29": len(good)}
    assert faults(engine(columns(x=bad + good)), x=WEEK) == {"x": (len(bad), 0)}


def test_booleans(engine):
    table = columns(
        b=[True, False, True],
        t=["TRUE", "true", "True", "t", "1", "F", "false", "0"],
        i=[1, 0, 1],
        printed=[True, False],
    )
    codings = [Coding(name, YES_NO) for name in ("b", "t", "i")] + [Coding("printed", Categories(("true", "false")))]
    assert marginals(engine(table), *codings) == {
        "b": {"true": 7, "false": 1},
        "t": {"true": 5, "false": 3},
        "i": {"true": 7, "false": 1},
        "printed": {"true": 1, "false": 7},
    }
    assert faults(engine(columns(x=["yes", "truee", " true", "2", "true"])), x=YES_NO) == {"x": (4, 0)}


def test_numbers_compared_as_texts(engine):
    assert one(engine(columns(x=[1, 10, 1])), Categories(("1", "10"))) == {"1": 2, "10": 1}


def test_recoding_while_counting_equals_recoding_afterwards(engine):
    table = columns(
        t=[*(str(i % 10) for i in range(100)), "else", None],
        i=[*(i % 10 for i in range(100)), 99, None],
        d=pa.array([*(D(2024, 1, 1 + i % 10) for i in range(100)), D(1999, 1, 1), None], pa.date32()),
        b=[*(i % 10 + 0.5 for i in range(100)), 99.0, None],
    )
    domains = {
        "t": Categories(tuple("0123456789")),
        "i": IntegerRange(0, 9),
        "d": DateRange(D(2024, 1, 1), D(2024, 1, 10)),
        "b": Bins(tuple(map(float, range(11)))),
    }
    to = np.array([2, 2, 0, 1, 1, 1, 0, 0, 3, 3, 4, 2])  # ten values, other, missing
    recode = Recode(to, ("p", "q", "r", "s", "t"))
    source = engine(table)
    base = source.count_by([Coding(n, domain, missing="keep", other="other") for n, domain in domains.items()])
    pushed = source.count_by([Coding(n, d, missing="keep", other="other", recode=recode) for n, d in domains.items()])
    assert pushed == base.recode(dict.fromkeys(domains, recode))
    assert pushed.total == 102


def test_other_values_in_columns_of_every_kind(engine):
    """Lists with gaps, at the ends of what a type holds, and groups that are no neighbours."""
    days = [D(2024, 2, 28), D(2024, 2, 29), D(2024, 3, 1), D(1, 1, 1), D(9999, 12, 31), None]
    least, most = -(2**63), 2**63 - 1
    table = columns(
        text=["a", "A", "other values", "NA", "", None],
        integer=pa.array([least, least + 1, most, most - 1, 7, 7], pa.int64()),
        date=pa.array(days, pa.date32()),
        decimal=pa.array([*map(Decimal, ("1.50", "1.51", "-1.5", "99999999.99", "0")), None], pa.decimal128(10, 2)),
        bins=[0.0, 0.5, 1.0, math.inf, math.nan, None],
    )
    domains = {
        "text": Categories(("a", "other values")),
        "integer": Categories((7, most, least)),
        "date": Categories((D(9999, 12, 31), D(2024, 2, 28), D(1, 1, 1))),
        "decimal": Categories((Decimal("0"), Decimal("-1.5"), Decimal("1.5"))),
        "bins": Bins((0.0, 0.5, 1.0)),
    }
    source = engine(table, missing_values=["NA", ""])
    got = marginals(source, *(Coding(n, d, missing="keep", other="else") for n, d in domains.items()))
    assert got == {
        "text": {"a": 1, "other values": 1, "else": 1, None: 3},
        "integer": {str(least): 1, str(most): 1, "7": 2, "else": 2},
        "date": {"9999-12-31": 1, "2024-02-28": 1, "0001-01-01": 1, "else": 2, None: 1},
        "decimal": {"0": 1, "-1.5": 1, "1.5": 1, "else": 2, None: 1},
        "bins": {"[0, 0.5)": 1, "[0.5, 1]": 2, "else": 1, None: 2},
    }
    codings = []
    for name, domain in domains.items():
        to = [0, 1, 0][: len(domain.labels)]
        recode = Recode(np.array([*to, 1, 2]), ("p", "q", "r"))
        codings.append(Coding(name, domain, missing="keep", other="else", recode=recode))
    assert marginals(source, *codings) == {
        "text": {"p": 1, "q": 2, "r": 3},
        "integer": {"p": 3, "q": 3},
        "date": {"p": 2, "q": 3, "r": 1},
        "decimal": {"p": 2, "q": 3, "r": 1},
        "bins": {"p": 1, "q": 3, "r": 2},
    }


def test_recoded_faults_are_still_faults(engine):
    recode = Recode(np.array([0, 0]), ("*",))
    error = refused(engine(columns(x=[0, 1, 2, None])), Coding("x", IntegerRange(0, 1), recode=recode))
    assert error.details["columns"]["x"] == {"outside": 1, "missing": 1}


ODD_NAMES = ["a b", 'say "hi"', "it's", "select", "é", "日本", " lead", "trail ", "#1", "c0", "v0", "n", "k0", "code",
             "value", "a;b", "x,y", "{value}", "count(*)", "*", "1", "lookup0", "Age", "age", "AGE",
             "two\nlines"]  # fmt: skip


def test_odd_column_names(engine):
    blind = engine.name.startswith(("sqlite", "ibis"))  # these cannot tell capital letters apart
    names = [name for name in ODD_NAMES if not blind or name not in {"Age", "AGE"}]
    source = engine(pa.table({name: [str(i)] for i, name in enumerate(names)}))
    assert [c.name for c in source.columns()] == names
    domain = Categories(tuple(map(str, range(len(names)))))
    got = marginals(source, *(Coding(name, domain) for name in reversed(names)))
    assert got == {name: {str(i): 1} for i, name in enumerate(names)}


def test_unknown_columns_are_named_with_a_suggestion(engine):
    domain = Categories(("a",))
    source = engine(pa.table({"marital-status": ["a"], "SECRET": ["b"], " age": ["c"]}))
    error = refused(source, Coding("marital_status", domain), Coding("age", domain), Coding("height", domain))
    assert error.code == "column-unknown"
    assert "did you mean 'marital-status'?" in error.message
    assert "did you mean ' age'?" in error.message
    assert "'height'" in error.message
    # A table without a header shows its first record as names.
    assert "SECRET" not in str(error.to_dict())
    assert error.details["columns"] == ["marital_status", "age", "height"]
    with pytest.raises(ParameterError, match="twice"):
        source.count_by([Coding(" age", domain), Coding(" age", domain)])


def test_tables_without_records(engine):
    error = refused(engine(pa.table({"x": pa.array([], pa.string())})), Coding("x", Categories(("a",))))
    assert error.code == "data-empty"
    assert error.exit_code == 2
    nothing_left = engine(columns(x=pa.array([None, None], pa.string())))
    error = refused(nothing_left, Coding("x", Categories(("a",)), missing="drop"))
    assert error.code == "data-empty"
    assert "missing" in error.message


def test_columns_that_can_never_hold_what_is_declared(engine):
    if engine.name.endswith("csv_file") or "sqlite" in engine.name:
        pytest.skip("everything is text there")
    text = Categories(("1",))
    misfits = {
        "float": ([1.5], text),
        "moment": ([T(2024, 1, 1)], text),
        "day": ([D(2024, 1, 1)], ONE_TO_NINE),
        "truth": ([True], ONE_TO_NINE),
        "whole": ([1], WEEK),
        "list": ([[1]], text),
        "struct": ([{"a": 1}], text),
        "bytes": ([b"1"], text),
    }
    source = engine(pa.table({name: pa.array(values) for name, (values, _) in misfits.items()}))
    error = refused(source, *(Coding(name, domain) for name, (_, domain) in misfits.items()))
    assert error.code == "column-type"
    assert all(repr(name) in error.message for name in misfits)


def test_rows_are_told_apart_by_all_their_columns_or_not_at_all(engine):
    if engine.name.endswith("csv_file") or "sqlite" in engine.name:
        pytest.skip("everything is text there")
    odd = {"list": [[1], [2]], "struct": [{"a": 1}, {"a": 2}], "bytes": [b"1", b"2"]}
    source = engine(pa.table({"x": ["a", "a"]} | {name: pa.array(values) for name, values in odd.items()}))
    here = type(source) is DuckDBSource
    if here:
        assert len(count_observed(source, ["x", *odd]).histogram) == 2
    for count in (distinct_counts, *([] if here else [lambda source: count_observed(source, ["x", *odd])])):
        with pytest.raises(DataError) as caught:
            count(source)
        assert caught.value.code == "column-type"
        assert all(repr(name) in caught.value.message for name in odd)
        assert "'x'" not in caught.value.message
        assert "--columns" in caught.value.remedy
    assert distinct_counts(source, ["x"]).tolist() == [2]
    assert count_observed(source, ["x"]).histogram.counts.tolist() == [2]


def test_no_columns_at_all_is_the_number_of_records(engine):
    assert engine(columns(x=["a", "b", None])).count_by([]).counts.tolist() == [3]


def test_progress_ends_at_one(engine):
    seen = []
    engine(columns(x=["a"])).count_by([Coding("x", Categories(("a",)))], progress=seen.append)
    assert seen[-1] == 1.0
    assert all(0 <= part <= 1 for part in seen)


# --- codes beside numbers, and formats --------------------------------------------------------------------------------

CODES = (("-9", "refused"), ("7", "a week"), ("N", "not applicable"))


def test_codes_among_numbers_come_before_the_domain(engine):
    texts = ["1", "7", "7.0", " -9", "N", "n", "8", "-9.5", None]
    source = engine(columns(x=texts, y=[1, 7, 7, -9, 2, 3, 8, 9, None]))
    how = {"codes": CODES, "other": "else", "missing": "keep"}
    wanted = {"1": 1, "8": 1, "refused": 1, "a week": 2, "not applicable": 1, "else": 2, None: 1}
    assert one(source, ONE_TO_NINE, **how) == wanted
    bins = {"[0, 5)": 1, "[5, 10]": 1, "refused": 1, "a week": 2, "not applicable": 1, "else": 2, None: 1}
    assert one(source, Bins((0.0, 5.0, 10.0)), **how) == bins
    numbers = marginals(source, Coding("y", ONE_TO_NINE, "keep", codes=CODES), Coding("x", ONE_TO_NINE, **how))
    assert numbers["y"] == {"1": 1, "2": 1, "3": 1, "8": 1, "9": 1, "refused": 1, "a week": 2, None: 1}
    halves = Recode(np.array([0] * 4 + [1] * 5 + [2, 3, 3]), ("low", "high", "refused", "odd"))
    coarse = Coding("y", ONE_TO_NINE, "drop", recode=halves, codes=CODES)
    assert marginals(source, coarse)["y"] == {"low": 3, "high": 2, "refused": 1, "odd": 2}


def test_codes_among_numbers_of_other_types(engine):
    tenths = pa.array([Decimal("1.0"), Decimal("-9.0"), Decimal("7.0"), None], pa.decimal128(9, 1))
    source = engine(columns(real=[1.0, -9.0, 7.0, math.nan], tenths=tenths))
    wanted = {"1": 1, "refused": 1, "a week": 1, None: 1}
    codings = [Coding(name, ONE_TO_NINE, "keep", codes=CODES) for name in ("real", "tenths")]
    assert marginals(source, *codings) == {"real": wanted, "tenths": wanted}


def test_codes_among_dates_are_texts(engine):
    source = engine(columns(x=["2024-02-29", "99", "2024-02-26"]))
    assert one(source, WEEK, codes=(("99", "unknown"),)) == {"2024-02-29": 1, "2024-02-26": 1, "unknown": 1}


@pytest.mark.parametrize(
    ("written", "texts", "outside"),
    [
        ("dd.mm.yyyy", ["29.02.2024", "29.2.2024", " 29.02.2024 "], ["30.02.2024", "2024-02-29", "29.2.24"]),
        ("mm/dd/yyyy", ["02/29/2024", "2/29/2024"], ["29/02/2024", "2024-02-29", "02.29.2024"]),
        ("yyyymmdd", ["20240229"], ["2024229", "20242902", "2024-02-29", "020240229"]),
    ],
)  # fmt: skip
def test_dates_are_read_as_declared(engine, written, texts, outside):
    source = engine(columns(x=[*texts, *outside]))
    how = {"format": read_date_format(written), "other": "else"}
    assert one(source, WEEK, **how) == {"2024-02-29": len(texts), "else": len(outside)}


@pytest.mark.parametrize(
    ("written", "texts", "outside"),
    [
        ("1.234,5", ["1.234,5", "1234,5", "+1.234,50", " 1.234,5"], ["1,234.5", "12.34,5", "1.2345", "1.234.5"]),
        ("1,234.5", ["1,234.5", "1234.5", "1,234.500"], ["1.234,5", "1,23.5", "1,,234.5"]),
        ("1 234,5", ["1 234,5", "1\u00a0234,5", "1\u202f234,5"], ["1.234,5", "1  234,5", "1 23,5"]),
        ("1234,5", ["1234,5", "1234,50"], ["1.234,5", "1234.5"]),
    ],
)
def test_numbers_are_read_as_declared(engine, written, texts, outside):
    source = engine(columns(x=[*texts, *outside]))
    how = {"format": read_number_format(written), "other": "else"}
    assert one(source, Bins((1234.25, 1234.75, 2000.0)), **how) == {
        "[1234.25, 1234.75)": len(texts),
        "else": len(outside),
    }


def test_whole_numbers_with_signs_between_thousands(engine):
    source = engine(columns(x=["1,234", "1234", "1,23", "1.234", "-1,234"]))
    how = {"format": read_number_format("1,234"), "other": "else"}
    assert one(source, IntegerRange(-2000, 2000), **how) == {"1234": 2, "-1234": 1, "else": 2}
