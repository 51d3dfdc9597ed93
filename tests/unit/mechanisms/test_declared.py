"""What a certificate's policy holds of its columns is found there again, as the release built it."""

import json

import numpy as np
import pytest

from incrowd.core.errors import PolicyError
from incrowd.core.signing import to_bytes
from incrowd.hierarchy import codings
from incrowd.mechanisms.certificate import Certificate
from incrowd.mechanisms.declared import are_levels, held_columns, tree_above
from incrowd.policy import Policy

POLICY = """
incrowd: 1
data: {missing_values: ["", NA]}
attributes:
  age: {type: integer, domain: {from: 0, to: 79}, hierarchy: {widths: [10, 20, 40], top: 70, bottom: 5}}
  cut: {type: number, domain: {cuts: [0, 0.5, .inf]}, hierarchy: {cuts: [[0.5]]}}
  step: {type: number, domain: {from: 0, to: 10, step: 0.1}, hierarchy: {widths: [0.5, 1, 5], start: 0.2}}
  day: {type: date, domain: {from: 2020-01-01, to: 2021-12-31}, hierarchy: {dates: [month, year]}}
  zip: {domain: {digits: 2}, hierarchy: {mask: 2}}
  income: {domain: [low, middle, high], hierarchy: {ordinal: 2}, other: odd}
  yes: {type: boolean, missing: keep}
  listed: {type: boolean, domain: [true, false]}
  some: {type: number, domain: [1, 2.5]}
  both: {domain: [y, x, z], hierarchy: {taxonomy: {b: [x], a: [z, y]}}}
  illness: {role: sensitive, missing: keep, hierarchy: {taxonomy: {stomach: [ulcer, acid], lungs: [flu, cold]}}}
  number: {type: integer, missing: drop, hierarchy: {taxonomy: {lo: [1, 2], hi: [3]}}}
  tree: {domain: [b, a], hierarchy: {file: tree.csv}}
  only: {hierarchy: {file: tree.csv}}
  file: {domain: {file: list.csv}}
  gone: drop
"""
IN_ORDER = {"age", "cut", "step", "day", "zip", "income", "yes", "listed", "some", "both"}


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "tree.csv").write_text("a,x,*\nb,x,*\n")
    (tmp_path / "list.csv").write_text("a\nb\n")
    return Policy.from_text(POLICY, tmp_path)


@pytest.fixture
def held(policy, tmp_path):
    content = json.loads(to_bytes({"policy": policy.canonical()}))  # keys come back sorted
    (tmp_path / "tree.csv").unlink()  # nothing is opened
    return held_columns(Certificate.model_construct(**content))


def test_every_way_of_saying_it_comes_back(policy, held, tmp_path):
    (tmp_path / "tree.csv").write_text("a,x,*\nb,x,*\n")
    assert set(held) == set(policy.published) - {"only", "file"}
    for coded in codings(policy):
        if coded.name not in held:
            continue
        found = held[coded.name]
        assert found.whole == (coded.name != "tree")
        assert found.in_order == (coded.name in IN_ORDER | {"tree"})
        for level in range(coded.hierarchy.height + 1):
            labels = list(coded.hierarchy.recode(level).labels)
            assert found.has(labels, level)
            assert found.has_tree(labels, level, tree_above(coded.hierarchy, level))
            assert found.whole == (not found.has([*labels, "more"], level)) or level == 0
            if found.in_order and found.whole and len(labels) > 1:
                assert not found.has(labels[::-1], level)


def test_values_of_a_file_hierarchy_are_known_at_level_0_only(held):
    assert held["tree"].has(["b", "a"], 0)
    assert not held["tree"].has(["a", "b"], 0)
    assert held["tree"].has(["anything"], 1)
    assert held["tree"].has_tree(["b", "a"], 0, [[9, 9]])


def test_only_what_is_taken_together_counts(held):
    illness = held["illness"]
    labels = ["ulcer", "acid", "flu", "cold", None]
    own = next(level for level in tree_above(illness.hierarchy, 0))
    assert len(np.unique(own)) > 1
    groups = [[0, 0, 1, 1, 2], [0, 0, 0, 0, 0]][: illness.hierarchy.height]
    swapped = [[1, 1, 0, 0, 2], [0, 0, 0, 0, 0]]
    assert illness.has_tree(labels, 0, groups) == illness.has_tree(labels, 0, swapped)
    assert not illness.has_tree(labels, 0, [[0, 1, 0, 1, 2], [0, 0, 0, 0, 0]])
    assert not illness.has_tree(labels, 0, groups[:1])
    assert not illness.has_tree(labels, 0, [[0, 0, 0, 0, 0]] * 50)


@pytest.mark.parametrize(
    ("levels", "sound"),
    [
        ({"age": 0}, True),
        ({"age": 4}, True),
        ({"age": 5}, False),
        ({"age": -1}, False),
        ({"age": True}, False),
        ({"age": 1.0}, False),
        ({"age": "1"}, False),
        ({"tree": 7, "only": 7}, True),  # their tops are in a file
    ],
)
def test_levels(held, levels, sound):
    assert are_levels(levels, held) == sound


def test_what_is_no_policy_is_refused():
    attribute = {"role": "quasi", "type": "text", "domain": {"from": 1}, "hierarchy": None}
    with pytest.raises(PolicyError):
        held_columns(
            Certificate.model_construct(policy={"data": {"missing_values": []}, "attributes": {"a": attribute}})
        )
