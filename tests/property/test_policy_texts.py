"""Texts of a policy are the same when it was written and read again, whatever characters they hold."""

import sys
import unicodedata

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import Policy
from incrowd.core.errors import PolicyError
from incrowd.drafting.text import scalar
from incrowd.policy import edits, formats
from incrowd.policy.texts import parse

WHOLE = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
# All that a writer could take for something special, and a few of each other kind.
SPECIAL = [sign for sign in WHOLE if unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp", "Zs")]
TEXTS = st.text(st.sampled_from([*SPECIAL, *" '\"\\#:-?{}[],&*!|>%@`~ab09.é€😀"]), min_size=1, max_size=200)


def policy_of(values: list[str]) -> Policy:
    return Policy.from_dict(
        {
            "incrowd": 1,
            "title": values[0],
            "attributes": {values[0]: {"domain": values, "other": f"other{values[0]}"}},
        }
    )


def test_every_character_of_unicode_survives_in_a_value():
    values = ["".join(WHOLE[start : start + 50]) for start in range(0, len(WHOLE), 50)]
    policy = policy_of([*values, *(f"a{sign}b" for sign in SPECIAL)])
    assert Policy.from_text(policy.to_yaml()).attributes == policy.attributes


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_what_yaml_folds_into_a_space_survives_everywhere(sign):
    for text in (sign, f"a{sign}b", f" {sign} ", f"{sign}\n{sign}"):
        policy = policy_of([text])
        assert Policy.from_text(policy.to_yaml()) == policy


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_a_text_survives_each_way_of_writing_a_policy(text):
    assert Policy.from_text(policy_of([text]).to_yaml()) == policy_of([text])
    edited = edits.edit("incrowd: 1\nattributes:\n  a: quasi\n", ("attributes", "a"), {"domain": [text, text + "x"]})
    assert edits.outline(edited)["attributes"]["a"]["domain"] == [text, text + "x"]
    assert parse(f"a: {scalar(text)}").content == {"a": text}


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_a_file_with_such_a_character_as_it_is_is_refused_and_told_how_to_write_it(sign):
    raw = f'incrowd: 1\nattributes:\n  a: {{domain: ["x{sign}y", z]}}\n'
    with pytest.raises(PolicyError) as refused:
        Policy.from_text(raw)
    assert refused.value.code == "policy-syntax"
    escaped = f"\\u{ord(sign):04x}"
    assert escaped in refused.value.message
    assert "line 3" in refused.value.message
    assert Policy.from_text(raw.replace(sign, escaped)).attributes["a"].domain == (f"x{sign}y", "z")


def test_half_a_character_is_refused():
    with pytest.raises(PolicyError):
        policy_of(["\ud800"])


def test_the_usual_dumper_of_yaml_would_lose_them():
    # What the tests above are about: without care this is what comes back.
    assert yaml.safe_load(yaml.safe_dump("a\x85b", allow_unicode=True)) != "a\x85b"
    assert yaml.load(yaml.dump("a\x85b", Dumper=formats.Dumper, allow_unicode=True), yaml.SafeLoader) == "a\x85b"
