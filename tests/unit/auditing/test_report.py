"""The audit as a page."""

import re
import xml.etree.ElementTree as ET

import pyarrow as pa
import pytest

import incrowd
from incrowd.auditing.report import audit_report

NASTY = "<script>alert(1)</script>"


def people(**more):
    columns = {
        "age": ["17", "17", "18", "18", NASTY, NASTY] * 3 + ["99"],
        "sex": ["f", "m", "f"] * 6 + ["m"],
        "s": [f"secret-{i % 3}" for i in range(19)],
    }
    return pa.table(columns | more)


def page(audit):
    text = audit_report(audit).decode()
    ET.fromstring(text.removeprefix("<!DOCTYPE html>\n"))  # well-formed
    return text


@pytest.mark.parametrize("show", [False, True])
def test_it_is_marked_whole_and_shows_values_only_on_request(show):
    text = page(incrowd.audit(people(), "age,sex", "s", sampling_rate=0.5, show_values=show))
    assert "INTERNAL — never publish" in text
    assert "http" not in re.sub(r'(xmlns="|http-equiv=")[^"]*"?', "", text)
    assert ("secret-" in text) == show
    assert (NASTY.replace("<", "&lt;").replace(">", "&gt;") in text) == show
    assert NASTY not in text
    for part in ("prosecutor", "journalist", "marketer", "Zayatz", "III shape=table", "distinct ℓ", "worst group"):
        assert part in text


def test_names_of_columns_are_only_text():
    text = page(incrowd.audit(people(**{NASTY: ["a", "b"] * 9 + ["a"]}), [NASTY, "age"], "s"))
    assert NASTY not in text


def test_without_sensitive_columns_and_with_a_single_group():
    text = page(incrowd.audit(people(), "sex"))
    assert "The smallest groups" in text
    one = pa.table({"a": ["x"] * 20, "s": ["1", "2"] * 10})
    text = page(incrowd.audit(one, "a", "s"))
    assert "Every group has at least 20 records" in text
    assert "Belief ratio by stubbornness" in text
    assert "In no group has everybody the same value" in text


def test_a_single_value_and_no_groups_listed():
    text = page(incrowd.audit(pa.table({"a": ["x", "y"], "s": ["1", "1"]}), "a", "s", worst=0))
    assert "Against an adversary" not in text
    page(incrowd.audit(pa.table({"a": ["x", "y"]}), "a", worst=0))


def test_ratios_are_rounded_up_in_print_too():
    table = pa.table({"a": ["x"] * 3, "s": ["1", "1", "2"]})
    [belief] = incrowd.audit(table, "a", "s", "II sigma=1000").sensitive[0].beliefs
    assert belief.exact == 334  # 1002/3
    assert belief.shown == "334"
    [belief] = incrowd.audit(table, "a", "s", "III shape=3,4").sensitive[0].beliefs
    assert float(belief.exact) == pytest.approx(1.7142857)
    assert belief.shown == "1.715"
