"""Sets of one column: how they are split, and what they are called."""

import numpy as np
import pytest

from incrowd.domain import Bins, Categories, Coding, IntegerRange
from incrowd.hierarchy import CodedAttribute, build, codings
from incrowd.policy import Policy
from incrowd.recoding.boxes import Namer, Sets, in_order

TAXONOMY = """
incrowd: 1
attributes:
  job: {hierarchy: {taxonomy: {any: {office: [clerk, boss], craft: [smith, baker, mason], none: [none at all]}}}}
"""


def ages(other=None, missing="refuse", top=9):
    coding = Coding("age", IntegerRange(0, top), missing, other)
    return CodedAttribute("age", coding, build(None, coding))


def jobs():
    return codings(Policy.from_text(TAXONOMY))[0]


def shown(sets, number):
    return [sets.labels([part])[0] for part in sets.ways(number)[0]]


def test_an_interval_is_cut_at_the_noisy_median():
    sets = Sets(ages(), "binary", ordered=True, marginal=np.array([0, 0, 0, 0, 0, 0, 5, 5, 5, 5]))
    assert shown(sets, 0) == ["0 to 7", "8 to 9"]
    low, high = sets.ways(0)[0]
    assert shown(sets, low) == ["0 to 6", "7"]
    assert shown(sets, high) == ["8", "9"]
    assert sets.ways(sets.ways(high)[0][0]) == []


def test_or_at_a_quartile():
    sets = Sets(ages(), "binary", ordered=True, marginal=np.array([4, 4, 4, 4, 0, 0, 0, 4, 8, 4]))
    assert [sets.labels(parts) for parts in sets.ways(0)] == [
        ["0 to 3", "4 to 9"],
        ["0 to 1", "2 to 9"],
        ["0 to 7", "8 to 9"],
    ]
    two = Sets(ages(top=1), "binary", ordered=True, marginal=np.ones(2))
    assert [two.labels(parts) for parts in two.ways(0)] == [["0", "1"]]


def test_values_outside_and_missing_ones_are_parts_of_their_own():
    sets = Sets(ages("older", "keep"), "binary", ordered=True, marginal=np.ones(12))
    assert shown(sets, 0) == ["0 to 4", "5 to 9", "older", None]


def test_without_any_mass_the_middle_is_taken():
    sets = Sets(ages(), "binary", ordered=True, marginal=np.zeros(10))
    assert shown(sets, 0) == ["0 to 4", "5 to 9"]


def test_the_hierarchy_falls_apart_into_children():
    sets = Sets(jobs(), "hierarchy", ordered=False, marginal=np.ones(6))
    assert shown(sets, 0) == ["office", "craft", "none at all"]
    _, craft, alone = sets.ways(0)[0]
    assert shown(sets, craft) == ["smith", "baker", "mason"]
    assert sets.ways(alone) == []


def test_numbers_without_a_hierarchy_are_cut_in_two():
    sets = Sets(ages(), "hierarchy", ordered=True, marginal=np.ones(10))
    assert shown(sets, 0) == ["0 to 4", "5 to 9"]


def test_the_largest_against_the_rest_or_halves():
    sets = Sets(jobs(), "binary", ordered=False, marginal=np.array([5, 4, 9, 1, 1, 3]))
    largest, halves = sets.ways(0)
    assert sets.labels(largest) == ["craft", "any of office or none at all"]
    assert sets.labels(halves) == ["office", "any of craft or none at all"]
    rest = largest[1]
    assert [sets.labels(parts) for parts in sets.ways(rest)] == [["office", "none at all"]]


def test_parts_always_take_their_set_apart():
    for splits, ordered in (("hierarchy", False), ("binary", False), ("binary", True)):
        sets = Sets(jobs(), splits, ordered=ordered, marginal=np.arange(6))
        number = 0
        while number < len(sets.values):
            for parts in sets.ways(number):
                assert len(parts) > 1
                assert tuple(sorted(v for part in parts for v in sets.values[part])) == sets.values[number]
            number += 1


def test_long_unions_are_named_by_what_they_leave_out():
    coding = Coding("town", Categories(tuple("abcdefghij")))
    namer = Namer(coding, build(None, coding), ordered=False)
    assert namer.name((0, 1, 2)) == "any of a, b or c"
    assert namer.name(tuple(range(1, 10))) == "all except a"


def test_thousands_of_values_are_named_in_one_look(monkeypatch):
    coding = Coding("town", Categories(tuple(f"t{n}" for n in range(4000))), missing="keep")
    namer = Namer(coding, build(None, coding), ordered=False)
    looks, look = [], Namer._node
    monkeypatch.setattr(Namer, "_node", lambda self, values: looks.append(values) or look(self, values))
    name = namer.name((*range(0, 4000, 4), 4000))
    assert name.startswith("any of t0, t4, t8, ")
    assert name.endswith(", t3996 or missing")
    assert len(looks) < 10


def test_bins_keep_their_brackets():
    coding = Coding("pay", Bins((0.0, 1.0, 2.0, 5.0)))
    namer = Namer(coding, build(None, coding), ordered=True)
    assert namer.name((0, 1)) == "[0, 2)"
    assert namer.name((1, 2)) == "[1, 5]"


def test_equal_names_are_told_apart():
    coding = Coding("x", Categories(("a", "b", "any of a or b", "d")))
    sets = Sets(CodedAttribute("x", coding, build(None, coding)), "binary", ordered=False, marginal=np.ones(4))
    numbers = [sets.number((2,)), sets.number((0, 1))]
    assert sets.labels(numbers) == ["any of a or b", "any of a or b (2)"]


@pytest.mark.parametrize(("values", "ordered"), [((1, 2, 5), True), ((2, 1), False), (("1", "2"), False)])
def test_order(values, ordered):
    assert in_order(Coding("x", Categories(values))) is ordered
