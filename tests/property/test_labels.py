"""Labels change what is shown and nothing that is counted; codes and formats are read as a person reads them."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.errors import PolicyError
from incrowd.domain import Coding, DateRange, IntegerRange, read_date_format
from incrowd.hierarchy import codings
from incrowd.policy import Policy
from incrowd.sources import open_source

codes = st.lists(st.integers(-20, 20), min_size=2, max_size=6, unique=True)
shown = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=6)


def policy_of(**said) -> Policy:
    return Policy.from_dict({"incrowd": 1, "attributes": {"x": {"type": "integer", **said}}})


@given(codes, st.data())
@settings(max_examples=40, deadline=None)
def test_a_label_stands_wherever_its_code_would(values, data):
    labels = dict(zip(values, data.draw(st.lists(shown, min_size=len(values), max_size=len(values))), strict=True))
    if len(set(labels.values())) < len(labels):
        with pytest.raises(PolicyError, match="same name"):
            policy_of(domain=values, labels=labels)
        return
    [plain], [named] = codings(policy_of(domain=values)), codings(policy_of(domain=values, labels=labels))
    table = open_source(pa.table({"x": [value for place, value in enumerate(values) for _ in range(place + 1)]}))
    before, after = table.count_by([plain.coding]), table.count_by([named.coding])
    assert (before.counts == after.counts).all()
    assert (before["x"].codes == after["x"].codes).all()
    assert after["x"].labels == tuple(labels[int(text)] for text in before["x"].labels)
    again = policy_of(domain=values, labels=labels)
    assert Policy.from_text(again.to_yaml()) == again
    assert Policy.from_canonical(again.canonical()).digest() == again.digest()


@given(st.lists(st.integers(-12, 12), min_size=1, max_size=30), st.sets(st.integers(-12, 12), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_a_code_is_counted_by_its_name_and_every_other_number_by_itself(values, among):
    beside = tuple((str(code), f"code {code}") for code in sorted(among))
    coding = Coding("x", IntegerRange(-5, 5), other="else", codes=beside)
    for column in (pa.array(values), pa.array(list(map(str, values)))):
        found = open_source(pa.table({"x": column})).count_by([coding])
        counted = {found["x"].labels[c]: n for c, n in zip(found["x"].codes, found.counts.tolist(), strict=True)}
        names = [f"code {v}" if v in among else str(v) if -5 <= v <= 5 else "else" for v in values]
        assert counted == {name: names.count(name) for name in set(names)}


@given(
    st.dates(dt.date(1990, 1, 1), dt.date(2030, 12, 31)),
    st.permutations(["dd", "mm", "yyyy"]),
    st.sampled_from([".", "/", "-", " ", ""]),
)
@settings(max_examples=40, deadline=None)
def test_a_date_is_read_as_it_was_written(day, parts, sign):
    strftime = {"dd": "%d", "mm": "%m", "yyyy": "%Y"}
    text = day.strftime(sign.join(strftime[part] for part in parts))
    domain = DateRange(dt.date(1990, 1, 1), dt.date(2030, 12, 31))
    coding = Coding("x", domain, format=read_date_format(sign.join(parts)))
    found = open_source(pa.table({"x": [text]})).count_by([coding])
    assert found["x"].labels[found["x"].codes[0]] == day.isoformat()
