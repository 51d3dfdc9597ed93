"""A draft may be passed around: nothing that only a few records hold is in it."""

import datetime as dt
import random
import re
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.drafting import draft
from incrowd.hierarchy import codings
from incrowd.policy import Policy
from incrowd.sources import open_source
from incrowd.sources.profile import COMMON

# Words that a draft does not use for itself.
secrets = st.text("qxzjQXZJ", min_size=6, max_size=12) | st.from_regex(r"[qxzj]{3}[0-9]{4}", fullmatch=True)
codes = st.from_regex(r"[0-9]{7}7", fullmatch=True)
numbers = st.integers(10**4, 10**7).map(lambda n: str(n * 10 + 7))
small = st.integers(1, 40).map(lambda n: str(n * 10 + 7))
decimals = st.integers(10**5, 10**7).map(lambda n: f"{n // 1000}.{n % 1000:03d}7")
dates = st.dates(dt.date(1900, 1, 2)).filter(lambda d: d.year < 2190 and 1 < d.day < 31)
days = dates.map(lambda day: day.isoformat())


@st.composite
def columns(draw):
    kind = draw(st.sampled_from([secrets, codes, numbers, small, decimals, days]))
    values = draw(st.lists(st.tuples(kind, st.integers(1, 30)), min_size=1, max_size=30))
    if draw(st.booleans()):  # some mistakes, and some very common values
        values += draw(st.lists(st.tuples(secrets, st.integers(1, 2)), max_size=3))
        values.append((draw(kind), 300))
    return [value for value, times in values for _ in range(times)]


def words(text):
    return set(re.findall(r"[\w.+-]+", text)) | set(re.findall(r"\w+", text))


@settings(max_examples=40, deadline=None)
@given(st.lists(columns(), min_size=1, max_size=4), st.sampled_from(["col", "age", "zip", "year", "income"]))
def test_nothing_rare_is_in_a_draft_and_the_draft_fits(found, name):
    rows = max(map(len, found))
    table = pa.table(
        {
            **{f"{name} {i}": values + [None] * (rows - len(values)) for i, values in enumerate(found)},
            "plain": ["a", "b"] * (rows // 2) + ["a"] * (rows % 2),
        }
    )
    if rows < 2 * COMMON:  # not even the plain column holds anything common
        return
    made = draft(table)
    rare = {value for values in found for value, times in Counter(values).items() if times < COMMON}
    rare -= {value for values in found for value, times in Counter(values).items() if times >= COMMON}
    assert not rare & words(made.text)
    assert not any(value in made.text for value in rare if re.search("[qxzj]", value))
    said = " ".join([*(column.why for column in made.columns), *(decision.question for decision in made.decisions)])
    assert not rare & words(said)
    policy = Policy.from_text(made.text)
    counted = open_source(table, missing_values=policy.data.missing_values).count_by(
        [one.coding for one in codings(policy)]
    )
    assert counted.total == rows


KINDS = {
    "whole": lambda r: str(r.randint(10**3, 10**6) * 10 + 7),
    "skewed": lambda r: str(int(r.lognormvariate(7, 2)) * 10 + 7),
    "small": lambda r: str(max(-9, min(9, round(r.gauss(0, 3)))) * 10 + r.choice([3, 7, 9])),
    "hundreds": lambda r: str(r.randint(1, 99) * 10 + 7),
    "years": lambda r: str(r.randint(1931, 2007)),
    "decimals": lambda r: f"{r.gauss(500, 300):.3f}7",
    "days": lambda r: (dt.date(1931, 5, 6) + dt.timedelta(days=r.randint(0, 20000))).replace(day=17).isoformat(),
    "recent": lambda r: (dt.date(2024, 5, 6) + dt.timedelta(days=r.randint(0, 100))).isoformat(),
    "texts": lambda r: f"qx{int(r.paretovariate(0.7)) % 500}",
    "marks": lambda r: f"qx-{int(r.paretovariate(0.7)) % 500}",
    "codes": lambda r: f"0{int(r.paretovariate(0.7)) % 500:06d}",
    "zip": lambda r: f"{r.randint(0, 999):03d}47",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_no_end_and_no_rare_value_of_any_kind_is_told(kind, seed):
    r = random.Random(seed)
    pool = [KINDS[kind](r) for _ in range(250)]
    values = [r.choice(pool) for _ in range(600)]
    made = draft(pa.table({kind: values, "plain": ["a", "b"] * 300}))
    assert {column.role for column in made.columns} == {"quasi"}
    rare = {value for value, times in Counter(values).items() if times < COMMON}
    policy = made.text[made.text.index("attributes:") : made.text.index("release:")]
    without_comments = "\n".join(line.split(" #")[0] for line in policy.splitlines())
    assert rare
    assert not {value.lstrip("-") for value in rare} & words(without_comments)
    if kind not in ("whole", "skewed", "small", "hundreds", "years"):  # whose values may be counts of something else
        assert not rare & words(made.text)
