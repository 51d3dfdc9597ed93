"""Changing one thing in the text of a policy leaves everything else as it was."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import api
from incrowd.core.errors import PolicyError

TEXT = """\
# Written by hand.
incrowd: 1

attributes:
  # years
  age: # found in the register
    type: integer # whole years
    domain: {from: 0, to: 99} # CONFIRM rounded; what can occur?
    hierarchy:
      widths: [10, 50]
  sex: {domain: [f, m]} # the register knows no others
  id: drop

release: # to be discussed
  mechanism: sampled_crowd
  epsilon: 1
  delta: 1e-6 # small
  selection_epsilon: 0.1
# The end.
"""


def changed_lines(text):
    before, after = TEXT.splitlines(), text.splitlines()
    return [line for line in before if line not in after], [line for line in after if line not in before]


def test_only_the_key_that_differs_is_written_anew():
    age = api.policy_outline(TEXT)["attributes"]["age"]
    edited = api.edit_policy(TEXT, ["attributes", "age"], age | {"hierarchy": {"widths": ["20"]}, "missing": "keep"})
    assert changed_lines(edited) == (["      widths: [10, 50]"], ["      widths: [20]", "    missing: keep"])


def test_a_key_is_added_replaced_and_removed():
    listed = api.edit_policy(TEXT, ["attributes", "id"], {"domain": ["a", "b"]})
    assert changed_lines(listed) == (["  id: drop"], ["  id:", "    domain: [a, b]"])
    assert changed_lines(api.edit_policy(TEXT, ["attributes", "id"], None)) == (["  id: drop"], [])
    titled = api.edit_policy(TEXT, ["title"], "A: title")
    assert api.policy_outline(titled) == api.policy_outline(TEXT) | {"title": "A: title"}
    assert changed_lines(titled)[0] == []
    dropped = api.edit_policy(TEXT, ["release"], None)
    assert "release" not in api.policy_outline(dropped)
    assert dropped.startswith(TEXT[: TEXT.index("release")])


TREES = [
    None,
    ["n", "s", "w"],
    {"group": ["n"], "s": None, "w": None},
    {"cold": ["n"], "s": None, "windy": ["w"]},
    {"s": None, "cold": ["n"], "windy": ["w"]},
    {"cold": ["n", "s"], "w": None},
]


@pytest.mark.parametrize("first", TREES)
@pytest.mark.parametrize("second", TREES)
def test_a_taxonomy_is_changed_into_any_other_in_its_order(first, second):
    def written(text, tree):
        content = {"domain": ["n", "s", "w"]} | ({} if tree is None else {"hierarchy": {"taxonomy": tree}})
        return api.edit_policy(text, ["attributes", "id"], content)

    edited = written(written(TEXT, first), second)
    found = api.policy_outline(edited)["attributes"]["id"].get("hierarchy", {}).get("taxonomy")
    assert json.dumps(found) == json.dumps(second)
    assert changed_lines(edited)[0] == ["  id: drop"]


def test_nothing_changes_where_nothing_differs():
    assert api.edit_policy(TEXT, ["attributes", "age"], api.policy_outline(TEXT)["attributes"]["age"]) == TEXT
    assert api.edit_policy(TEXT, ["ledger"], None) == TEXT


def test_where_there_is_no_room_for_care_the_content_is_still_right():
    flow = "{incrowd: 1, attributes: {a: {domain: [x]}}} # comment"
    edited = api.edit_policy(flow, ["attributes", "a", "role"], "sensitive")
    assert api.policy_outline(edited)["attributes"] == {"a": {"domain": ["x"], "role": "sensitive"}}


def test_confirming_removes_the_marks_and_nothing_else():
    assert api.unconfirmed(TEXT) == {"age": ["CONFIRM rounded; what can occur?"]}
    cleared = api.confirm(TEXT, "age")
    assert cleared == TEXT.replace(" # CONFIRM rounded; what can occur?", "")
    assert api.unconfirmed(cleared) == {}
    assert api.confirm(TEXT, "nobody") == TEXT
    quoted = 'attributes:\n  a:\n    domain: ["x # CONFIRM y"]\n'
    assert api.confirm(quoted, "a") == quoted
    assert api.unconfirmed(quoted) == {}


def test_what_is_about_no_attribute_is_confirmed_apart():
    text = TEXT.replace("incrowd: 1", "# CONFIRM all of it\nincrowd: 1 # CONFIRM the version", 1)
    assert api.unconfirmed(text) == {
        "": ["CONFIRM all of it", "CONFIRM incrowd: the version"],
        "age": ["CONFIRM rounded; what can occur?"],
    }
    assert api.confirm(text, "") == TEXT
    assert api.unconfirmed(api.confirm(text, "age")) == {"": api.unconfirmed(text)[""]}


def test_what_is_not_yaml_is_refused():
    with pytest.raises(PolicyError):
        api.edit_policy("a: [", ["title"], "x")


scalars = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\x85\u2028\u2029\ufeff\ufffe\uffff"),
    max_size=12,
)
keys = scalars.filter(lambda key: key not in {"<<", ""})
contents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(keys, inner, min_size=1, max_size=3),
    max_leaves=6,
)


@settings(max_examples=120, deadline=None)
@given(
    place=st.sampled_from(
        [("attributes", "age"), ("attributes", "sex"), ("attributes", "new"), ("release",), ("x", "y")]
    ),
    content=contents,
)
def test_whatever_is_written_is_read_again(place, content):
    edited = api.edit_policy(TEXT, place, content)
    found = api.policy_outline(edited)
    for part in place:
        found = found[part]
    assert found == content
    others = api.policy_outline(edited)
    for key, value in api.policy_outline(TEXT).items():
        if key != place[0]:
            assert others[key] == value
