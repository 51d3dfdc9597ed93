"""Whatever texts a table holds, its draft is a policy, and every record fits into it."""

from math import isfinite

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.domain import Bins, Categories
from incrowd.drafting import draft
from incrowd.hierarchy import codings
from incrowd.policy import Policy
from incrowd.sources import open_source
from incrowd.sources.profile import COMMON

# Nearly numbers, dates, flags, codes and nothing.
near = st.text("0123456789", min_size=1, max_size=6) | st.text("0127+-.,:eETtf/ \t_AJ?", max_size=8)
dates = st.builds(
    "{}-{}-{}{}".format,
    st.sampled_from(["2024", "1800", "1799", "2199", "2200", "0001", "9999", "24"]),
    st.sampled_from(["1", "02", "12", "13"]),
    st.sampled_from(["1", "09", "29", "31", "32"]),
    st.sampled_from(["", " 00:00", "T00:00:00", " 00:00:00.000", "T00:00Z", " 12:00", "\n", " "]),
)
numbers = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", " ", "\t", "\u00a0"]),
    st.sampled_from(["", "+", "-", "00"]),
    st.integers(0, 10**20) | st.integers(0, 150) | st.integers(1900, 2030),
    st.sampled_from(["", ".", ".0", ".5", ",5", ".234", ",234", ".234,5", "e2", "E400", "e-400", "_0"]),
    st.sampled_from(["", " ", "\r\n", "%"]),
)
flags = st.sampled_from(
    ["true", "TRUE", "f", "T", "1", "0", " true", "yes", "NA", "nan", "NaN ", "inf", "-Infinity", "∞"]
)
texts = st.text(max_size=5).map(lambda text: text.replace("\x00", ""))


@st.composite
def column(draw):
    mostly = draw(st.sampled_from([near, dates, numbers, flags, texts]))
    values = draw(st.lists(mostly, min_size=1, max_size=15))
    times = draw(st.integers(1, 40))
    odd = draw(st.lists(near | dates | numbers | flags | texts | st.none(), max_size=4))
    return values * times + odd


@settings(max_examples=40, deadline=None)
@given(
    st.lists(column(), min_size=1, max_size=5), st.sampled_from(["x", "age", "zip", "year", "percent", "sex", "amount"])
)
def test_a_draft_fits_its_table(columns, name):
    rows = max(20, *map(len, columns))
    table = pa.table(
        {
            **{f"{name}{i}": values + [None] * (rows - len(values)) for i, values in enumerate(columns)},
            "plain": ["a", "b"] * (rows // 2) + ["a"] * (rows % 2),
        }
    )
    policy = Policy.from_text(draft(table).text)
    source = open_source(table, missing_values=policy.data.missing_values, decimal=policy.data.decimal)
    assert source.count_by([one.coding for one in codings(policy)]).total == rows


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-300, 300), st.integers(1, 200)), min_size=1, max_size=20),
    st.lists(st.integers(10**4, 10**9) | st.integers(-(10**9), -(10**4)), max_size=COMMON - 1),
    st.sampled_from(["{}", "{}.5"]),
)
def test_fewer_than_common_records_cannot_draw_the_domain_away_from_the_others(others, odd, written):
    """Far away, that is: a closed range may grow to the next ten, beyond cuts all is one."""
    values = [written.format(number) for number, records in others for _ in range(records)]
    values += [written.format(number) for number in odd]
    plain = ["a", "b"] * (len(values) // 2 + COMMON)
    made = draft(pa.table({"x": values + [None] * (len(plain) - len(values)), "plain": plain}))
    farthest = 1 + max(abs(number) for number, _ in others)
    for coded in codings(Policy.from_text(made.text)):
        if coded.name == "x":
            domain = coded.coding.domain
            told = {Bins: "cuts", Categories: "values"}.get(type(domain))
            ends = getattr(domain, told) if told else (domain.low, domain.high)
            assert all(abs(number) <= 2.5 * farthest + 10 for number in map(float, ends) if isfinite(number))
