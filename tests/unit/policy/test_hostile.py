"""What a policy may hold by mistake, or to do harm: one of our errors, never a crash, and nothing is waited for."""

import os
import threading

import pytest

from incrowd import Policy
from incrowd.core.errors import IncrowdError, PolicyError
from incrowd.hierarchy import codings
from incrowd.policy import texts

LONG = "1" + "0" * 399
VERY_LONG = "1" * 5000


def policy_of(attribute: str, release: str = "{mechanism: sampled_crowd, epsilon: 1, delta: 1e-6}") -> Policy:
    return Policy.from_text(f"incrowd: 1\nattributes:\n  a: {attribute}\nrelease: {release}\n")


@pytest.mark.parametrize("name", ["[a]", "{a: b}", "[[]]", "3"])
def test_a_mechanism_is_a_name(name):
    with pytest.raises(PolicyError, match=r"release\.mechanism: must be 'sampled_crowd'"):
        policy_of("{domain: [x, y]}", f"{{mechanism: {name}}}")


@pytest.mark.parametrize(
    "attribute",
    [
        "{type: number, domain: {from: 0, to: 1, step: 1e-300}}",
        "{type: number, domain: {from: 0, to: 1, step: -0.5}}",
        "{type: number, domain: {from: 1, to: 0, step: -0.5}}",
        "{type: number, domain: {from: 0, to: 1, step: 0}}",
        "{type: number, domain: {from: 0, to: 1, step: 1e-38}}",
        f"{{type: integer, domain: {{from: 0, to: {LONG}, step: 5}}}}",
        f"{{type: integer, domain: {{from: {LONG}, to: {LONG}}}}}",
        f"{{type: integer, domain: [{VERY_LONG}]}}",
        f"{{type: number, domain: [{VERY_LONG}]}}",
        f"{{type: number, domain: {{cuts: [0, {LONG}]}}}}",
        f"{{type: integer, domain: {{from: 0, to: 100}}, hierarchy: {{widths: [{LONG}]}}, level: 0}}",
        f"{{type: integer, domain: {{from: 0, to: 100}}, hierarchy: {{widths: [1e-300, {LONG}]}}, level: 0}}",
        f"{{type: integer, domain: {{from: 0, to: 100}}, hierarchy: {{widths: [5], start: {LONG}}}, level: 0}}",
        f"{{type: integer, domain: {{from: 0, to: 100}}, hierarchy: {{cuts: [[{LONG}]]}}, level: 0}}",
        f"{{type: integer, domain: {{from: 0, to: 100}}, hierarchy: {{top: {LONG}}}, level: 0}}",
        f"{{type: integer, domain: {{from: 0, to: 100}}, hierarchy: {{mask: {VERY_LONG}}}, level: 0}}",
        f"{{domain: [x, y], hierarchy: {{ordinal: {VERY_LONG}}}, level: 0}}",
    ],
)
def test_numbers_that_no_table_holds_are_refused_in_words(attribute):
    with pytest.raises(PolicyError) as refused:
        codings(policy_of(attribute))
    assert refused.value.exit_code == 2
    assert "sys.set_int_max_str_digits" not in refused.value.message


@pytest.mark.parametrize(
    "attribute",
    [
        f"{{type: integer, domain: {{from: 0, to: 100}}, hierarchy: {{widths: [{'9' * 38}]}}, level: 1}}",
        f"{{type: integer, domain: {{from: 0, to: 100}}, hierarchy: {{widths: [5], start: -{'9' * 38}}}, level: 1}}",
        f"{{domain: [x, y], hierarchy: {{ordinal: {'9' * 100}}}, level: 1}}",
    ],
)
def test_long_numbers_that_mean_something_are_no_trouble(attribute):
    assert codings(policy_of(attribute))[0].hierarchy.recode(1).labels


def test_steps_are_counted_exactly():
    # In floats 0.3/0.1 is no whole number, and 28 digits are too few for the second.
    assert len(codings(policy_of("{type: number, domain: {from: 0, to: 0.3, step: 0.1}}"))[0].coding.labels) == 3
    with pytest.raises(PolicyError, match="whole number of steps"):
        policy_of(f"{{type: number, domain: {{from: 0, to: 1.{'0' * 36}1, step: 0.5}}}}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "policy.yaml").write_text(
        "incrowd: 1\nattributes: {a: {domain: [x], hierarchy: {file: pipe}}}\n", encoding="utf-8"
    )
    said: list[str] = []

    def read() -> None:
        for name in ("pipe", "policy.yaml"):
            try:
                Policy.from_file(tmp_path / name)
            except IncrowdError as error:
                said.append(error.code)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(timeout=60)
    assert said == ["policy-file", "policy-invalid"]


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/", "a\0b", "x" * 300])
def test_what_is_no_ordinary_file_is_refused(path):
    with pytest.raises(PolicyError) as refused:
        Policy.from_file(path)
    assert refused.value.code == "policy-file"


def test_a_policy_that_is_too_large_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "LARGEST_FILE", 100)
    large = tmp_path / "large.yaml"
    with large.open("wb") as file:
        file.truncate(1 << 40)  # of which only the first bytes are looked at
    with pytest.raises(PolicyError, match="larger than 64 MB"):
        Policy.from_file(large)
