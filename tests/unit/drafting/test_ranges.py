"""Ranges and cuts: they cover what is there, and hide where it ends."""

import datetime as dt
from collections import Counter
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.drafting import ranges

quick = settings(max_examples=200, deadline=None)


@quick
@given(st.integers(-1000, 1000), st.integers(0, 200))
def test_a_span_covers_and_ends_beyond_both_ends_at_tens(low, length):
    found = ranges.span(low, low + length)
    assert found.low < low or found.low == 0 == low or (found.low == 0 and low > 0)
    assert found.high > low + length
    assert found.low % 10 == found.high % 10 == 0
    assert all(b % a == 0 for a, b in pairwise(found.widths))
    assert found.high - found.low <= 2 * length + 30


@quick
@given(st.dates(dt.date(1800, 1, 1), dt.date(2199, 12, 31)), st.integers(0, 40000))
def test_a_calendar_covers_whole_years(first, days):
    last = min(first + dt.timedelta(days=days), dt.date(2199, 12, 31))
    low, high, periods = ranges.calendar(first, last)
    assert low <= first <= last <= high
    assert ((low.month, low.day), (high.month, high.day)) == ((1, 1), (12, 31))
    assert periods[:3] == ["month", "quarter", "year"]


numbers = st.lists(
    st.tuples(st.floats(-1e12, 1e12, allow_subnormal=False), st.integers(1, 1000)), min_size=1, max_size=50
).map(lambda pairs: sorted(dict(pairs).items()))


def are_round(points):
    """Whether numbers are all 1, 2 or 5 times a power of ten, or such a number apart from each other."""

    def short(point):
        return point.normalize().as_tuple().digits in {(1,), (2,), (5,)}

    return all(map(short, points)) or all(short(b - a) and a % (b - a) == 0 for a, b in pairwise(points))


@quick
@given(numbers, st.booleans())
def test_cuts_cover_everything_in_few_round_steps(found, whole):
    found = [(float(round(number)) if whole else number, records) for number, records in found]
    low = found[0][0]
    points = ranges.cuts(found, negative=low < 0, whole=whole)
    assert points[-1] == ranges.INFINITY
    assert points[0] == (-ranges.INFINITY if low < 0 else 0)
    assert all(a < b for a, b in pairwise(points))
    assert len(points) <= 25
    assert not whole or all(point % 1 == 0 for point in points[1:-1])
    assert are_round(points[1:-1]) or are_round(points[2:-1])  # without the 1 above the zeros
    finer = points
    for level in ranges.coarser(points):
        assert (level[0], level[-1]) == (points[0], points[-1])
        assert set(level) < set(finer)
        finer = level


def test_skewed_numbers_are_cut_at_1_2_and_5():
    found = [(round(1000 * 1.05**i), 1) for i in range(100)]
    assert ranges.cuts(found, negative=False, whole=True)[:6] == [0, 1000, 2000, 5000, 10000, 20000]


def test_even_numbers_are_cut_evenly():
    found = [(float(i), 1) for i in range(1, 1001)]
    assert ranges.cuts(found, negative=False, whole=True) == [*range(0, 1001, 100), ranges.INFINITY]


@pytest.mark.parametrize("rest", [1, ranges.COMMON - 1])
def test_a_few_do_not_choose_the_cuts(rest):
    hours = [(38.0, 30), (40.0, 2950), (42.0, 20)]
    alone = ranges.cuts(hours, negative=False, whole=True)
    assert ranges.cuts([*hours, (7_340_000.0, rest)], negative=False, whole=True) == alone
    assert max(alone[:-1]) <= 42
    zeros = [(0.0, 2986), *((float(10**i), 1) for i in range(1, 15))]
    assert ranges.cuts(zeros, negative=False, whole=True) == [0, 1, ranges.INFINITY]


@quick
@given(
    st.lists(st.tuples(st.integers(-1000, 1000).map(float), st.integers(1, 300)), min_size=1, max_size=30),
    st.lists(st.floats(-1e12, 1e12, allow_subnormal=False), max_size=ranges.COMMON - 1),
    st.booleans(),
    st.booleans(),
)
def test_fewer_than_common_records_cannot_draw_cuts_away_from_the_others(others, odd, non_negative, whole):
    others = [(abs(number) if non_negative else number, records) for number, records in others]
    odd = [float(round(number)) if whole else number for number in odd]
    found = Counter()
    for number, records in [*others, *((abs(number) if non_negative else number, 1) for number in odd)]:
        found[number] += records
    pairs = sorted(found.items())
    farthest = max(abs(number) for number, _ in others)
    points = ranges.cuts(pairs, negative=pairs[0][0] < 0, whole=whole)
    assert all(abs(point) <= 1 + Decimal("2.5") * Decimal(farthest) for point in points if point.is_finite())


def test_many_zeros_are_a_group_of_their_own():
    found = [(0.0, 900), *((float(i), 1) for i in range(1, 101))]
    assert ranges.cuts(found, negative=False, whole=True)[:2] == [0, 1]


@pytest.mark.parametrize("value", [0.0, -5.0, 17.0, 1e9])
def test_a_single_number_can_be_cut_too(value):
    points = ranges.cuts([(value, 50)], negative=value < 0, whole=True)
    assert len(points) >= 2
    assert points[0] <= Decimal(value) <= points[-1]


def test_decades_and_codes():
    assert (ranges.decades(1987, 2003).low, ranges.decades(1987, 2003).high) == (1980, 2009)
    assert ranges.decades(1987, 1988).widths == (5,)
    assert ranges.codes(5) == ranges.Usual(0, 99999, (10, 100, 1000, 10000))
