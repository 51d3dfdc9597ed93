"""People with several rows: the same rows of each count in every engine, and they are those that the rules say."""

import datetime as dt
import hashlib
import random
from collections import Counter

import pyarrow as pa
import pytest

from incrowd.core.errors import DataError
from incrowd.domain import Categories, Coding, IntegerRange, read_date_format
from incrowd.sources import open_source
from incrowd.sources.people import WHOSE, RowBound, count_people

WARD, AGE = Categories(("surgery", "medicine", "maternity", "other")), IntegerRange(0, 120)
CODINGS = (Coding("ward", WARD), Coding("age", AGE, missing="keep"))
BY_DAY = RowBound(("patient",), 2, ("day", True), key="k")


def visits(seed=7, people=60):
    """A table of visits: several rows each, some equal in all columns, some on the same day."""
    rng = random.Random(seed)
    rows = []
    for person in range(people):
        for _ in range(rng.choice((1, 1, 2, 3, 5, 9))):
            day = dt.date(2026, 1, 1) + dt.timedelta(days=rng.randrange(6))
            rows.append((f"p{person}", rng.choice(WARD.values), rng.choice((40, 41, None)), day))
    rng.shuffle(rows)
    return rows


def as_table(rows, names=("patient", "ward", "age", "day")):
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def words(ward, age):
    """The one word that two columns with 6 and 124 keys share: 3 bits, then 7."""
    code = 121 if age is None else age
    return WARD.values.index(ward) | code << 3


def expected(rows, bound, *, whose=lambda row: (row[0],), rank=lambda _: 0):
    """What the rules say, in plain Python: the rows that count, as (ward, age), and how many do not."""
    persons, kept = {}, Counter()
    for row in rows:
        persons.setdefault(whose(row), []).append(row)
    for person, own in persons.items():
        order = []
        numbered = sorted((rank(row) is None, rank(row) or 0, words(row[1], row[2]), row[1:3]) for row in own)
        for number, (missing, value, word, row) in enumerate(numbered, 1):
            text = "|".join([bound.key, str(number), str(word), *person])
            descending = bound.ranked_by is not None and bound.ranked_by[1]
            place = (missing, -value if descending else value)
            order.append((place, hashlib.md5(text.encode()).hexdigest(), row))
        kept.update(row for *_, row in sorted(order)[: bound.at_most])
    return kept, len(rows) - kept.total()


def found(source, bound, codings=CODINGS):
    result = count_people(source, codings, bound)
    table = result.table
    labels = [[column.labels[code] for code in column.codes] for column in table.columns]
    cells = zip(*labels, table.counts.tolist(), strict=True)
    kept = Counter({(ward, None if age is None else int(age)): n for ward, age, n in cells})
    return kept, result


@pytest.mark.parametrize("rule", ["latest", "earliest", "any"])
def test_every_engine_keeps_the_rows_that_the_rules_say(engine, rule):
    rows = visits()
    ranked = None if rule == "any" else ("day", rule == "latest")
    for at_most in (1, 3):
        bound = RowBound(("patient",), at_most, ranked, key="some key")
        kept, left_out = expected(rows, bound, rank=lambda row: 0 if ranked is None else row[3].toordinal())
        got, result = found(engine(as_table(rows)), bound)
        assert got == kept
        assert (result.rows, result.people, result.left_out) == (len(rows), 60, left_out)
        assert left_out > 20


@pytest.mark.parametrize("latest", [True, False])
def test_dates_rank_as_they_are_written(engine, latest):
    """The first day of a later month comes after the last of an earlier one, whatever the texts say."""
    rows = [(*row[:3], row[3] + dt.timedelta(days=28)) for row in visits()]
    rows = [(*row[:3], None if n % 17 == 0 else row[3]) for n, row in enumerate(rows)]
    bound = RowBound(("patient",), 1, ("day", latest), key="k", format=read_date_format("dd.mm.yyyy"))
    kept, left_out = expected(rows, bound, rank=lambda row: row[3] and row[3].toordinal())
    assert kept != expected(rows, bound, rank=lambda row: row[3] and -row[3].day)[0]
    written = [(*row[:3], row[3] and f"{row[3]:%d.%m.%Y}") for row in rows]
    got, result = found(engine(as_table(written)), bound)
    assert (got, result.left_out) == (kept, left_out)
    with pytest.raises(DataError) as caught:
        found(engine(as_table([*written, ("p1", "surgery", 40, "31.02.2026")])), bound)
    assert caught.value.details["columns"]["day"]["outside"] == 1


def test_the_order_of_rows_has_no_say(engine):
    rows = visits()
    once, _ = found(engine(as_table(rows)), BY_DAY)
    again, _ = found(engine(as_table(sorted(rows, key=lambda row: (row[1], str(row[2]), row[3], row[0])))), BY_DAY)
    assert once == again


def test_the_rows_of_others_have_no_say(engine):
    """Whoever is added or removed changes no row of anybody else."""
    rows = visits()
    bound = RowBound(("patient",), 2, key="k")
    everybody, _ = found(engine(as_table(rows)), bound)
    without, _ = found(engine(as_table([row for row in rows if row[0] != "p3"])), bound)
    only, _ = found(engine(as_table([row for row in rows if row[0] == "p3"])), bound)
    assert everybody == without + only


def test_two_columns_say_together_whose_a_row_is(engine):
    rows = [(*row[:3], row[3], int(row[0][1:]) % 3) for row in visits()]
    names = ("person", "ward", "age", "day", "home")
    bound = RowBound(("home", "person"), 1, key="k")
    rows = [(f"p{int(row[0][1:]) % 20}", *row[1:]) for row in rows]
    kept, left_out = expected(rows, bound, whose=lambda row: (str(row[4]), row[0]))
    got, result = found(engine(as_table(rows, names)), bound)
    assert (got, result.people, result.left_out) == (kept, 60, left_out)


def test_a_row_that_is_nobodys_is_an_error_or_a_person(engine):
    rows = [(None if row[0] in {"p1", "p2"} else row[0], *row[1:]) for row in visits()]
    nobodys = [row for row in rows if row[0] is None]
    with pytest.raises(DataError) as caught:
        found(engine(as_table(rows)), BY_DAY)
    assert (caught.value.code, caught.value.details["columns"]["patient"]["missing"]) == (
        "values-missing",
        len(nobodys),
    )
    own = RowBound(("patient",), 1, key="k", own=True)
    kept, _ = expected([row for row in rows if row[0] is not None], own)
    got, result = found(engine(as_table(rows)), own)
    assert got == kept + Counter(row[1:3] for row in nobodys)
    assert result.people == 58 + len(nobodys)


def test_whole_numbers_identify_and_rank(engine):
    rng = random.Random(1)
    rows = [(rng.randrange(10), rng.choice(WARD.values), 40, rng.choice((-3, 0, 7, 10**12, None))) for _ in range(60)]
    table = as_table(rows, ("patient", "ward", "age", "cost"))
    for largest in (True, False):
        bound = RowBound(("patient",), 2, ("cost", largest), key="k")
        kept, _ = expected(rows, bound, whose=lambda row: (str(row[0]),), rank=lambda row: row[3])
        assert found(engine(table), bound)[0] == kept


def test_moments_rank(engine):
    base = dt.datetime(2026, 1, 1, 23, 59, 58, 500000)  # noqa: DTZ001 - without a zone
    rng = random.Random(2)
    rows = [
        (f"p{rng.randrange(8)}", rng.choice(WARD.values), 40, base + dt.timedelta(milliseconds=250 * rng.randrange(20)))
        for _ in range(60)
    ]
    bound = RowBound(("patient",), 2, ("moment", True), key="k")
    kept, _ = expected(rows, bound, rank=lambda row: row[3].timestamp())
    assert found(engine(as_table(rows, ("patient", "ward", "age", "moment"))), bound)[0] == kept


def test_texts_rank_as_what_they_say_and_nothing_else(engine):
    rows = [("p", "surgery", 40, "9"), ("p", "medicine", 40, " 10.5 "), ("p", "other", 40, "")]
    names = ("patient", "ward", "age", "rank")
    for largest, first in ((True, "medicine"), (False, "surgery")):
        assert found(engine(as_table(rows, names)), RowBound(("patient",), 1, ("rank", largest)))[0] == {(first, 40): 1}
    days = [("p", "surgery", 40, "2026-01-31"), ("p", "medicine", 40, "2026-01-31T00:00:01"), ("p", "other", 41, None)]
    latest = RowBound(("patient",), 1, ("rank", True))
    assert found(engine(as_table(days, names)), latest)[0] == {("medicine", 40): 1}
    for wrong in ("31.1.2026", "2026-02-30", "soon"):
        with pytest.raises(DataError, match="neither") as caught:
            found(engine(as_table([*days, ("q", "other", 41, wrong)], names)), latest)
        assert caught.value.details["columns"] == {"rank": {"outside": 1}}
        assert wrong not in str(caught.value)


def test_rows_that_are_dropped_take_no_place(engine):
    rows = [("p", "surgery", None, dt.date(2026, 1, 9)), ("p", "medicine", 40, dt.date(2026, 1, 1))]
    codings = (Coding("ward", WARD), Coding("age", AGE, missing="drop"))
    got, result = found(engine(as_table(rows)), RowBound(("patient",), 1, ("day", True)), codings)
    assert (got, result.left_out) == ({("medicine", 40): 1}, 1)


def test_rows_are_kept_by_a_column_that_is_published(engine):
    rows = [("p", "surgery", 3, 1), ("p", "medicine", 9, 2), ("p", "other", 5, 3)]
    assert found(engine(as_table(rows)), RowBound(("patient",), 1, ("age", True)))[0] == {("medicine", 9): 1}


def test_columns_that_are_not_there(engine):
    for bound in (RowBound(("nobody",), 1), RowBound(("patient",), 1, ("year", True))):
        with pytest.raises(DataError) as caught:
            found(engine(as_table(visits())), bound)
        assert caught.value.code == "column-unknown"


def test_a_value_outside_the_domain_is_found_as_ever(engine):
    rows = [("p", "surgery", 40, 1), ("q", "garage", 40, 1)]
    with pytest.raises(DataError) as caught:
        found(engine(as_table(rows)), RowBound(("patient",), 1))
    assert caught.value.code == "values-outside-domain"


def test_any_favours_no_value():
    """Of people with a visit to each of two wards, about half keep either: the order is another for everybody."""
    rows = [(f"p{i}", ward, 40, 1) for i in range(2000) for ward in ("surgery", "medicine")]
    kept, _ = found(open_source(as_table(rows)), RowBound(("patient",), 1, key="k"))
    assert abs(kept["surgery", 40] - 1000) < 150  # seven standard deviations


def test_engines_that_can_tell_whose_a_row_is_tell_it_alike(engine):
    """How many people are in each ward; engines that cannot tell say nothing."""
    rows = visits()
    bound = RowBound(("patient",), 50, key="k")
    result = count_people(engine(as_table(rows)), CODINGS, bound, whose=True)
    if result.linked is None:
        pytest.skip("this engine bounds rows by itself, and does not tell whose they are")
    assert result.linked.marginalise([WHOSE]) == result.table
    once = result.linked.project(["ward", WHOSE])
    wards = [WARD.values[code] for code in once["ward"].codes]
    assert Counter(wards) == Counter(ward for _, ward in {row[:2] for row in rows})
