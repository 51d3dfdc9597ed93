"""A table that is counted once: what each move shows, against the same counted by hand."""

import numpy as np
import pandas as pd
import pytest

from incrowd import Policy, api
from incrowd.comparison import exploration
from incrowd.comparison.exploration import Exploration
from incrowd.core.errors import DataError, ParameterError
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import count_table

TEXT = """\
incrowd: 1
attributes:
  sex: {domain: [f, m]}
  age: {type: integer, domain: {from: 0, to: 9}, hierarchy: {widths: [5]}}
  ill: {domain: [no, flu, rare, never]}
release: {mechanism: generalization, require: [{k: 3}], suppression: 0.5}
"""


@pytest.fixture(scope="module")
def people():
    rows = [("f", i % 10, "no") for i in range(60)] + [("m", i % 10, "flu") for i in range(40)] + [("m", 9, "rare")] * 2
    return pd.DataFrame(rows, columns=["sex", "age", "ill"]).astype(str)


@pytest.fixture
def explored(people):
    counted = []

    def count(policy, attributes):
        counted.append(policy)
        return count_table(people, policy, attributes, progress=lambda _: None, show_values=False)

    found = Exploration(Policy.from_text(TEXT), count, RandomSource.seeded(5))
    found.counted = counted
    return found


def test_what_is_seen_is_what_the_table_holds(explored):
    seen = explored.look(Policy.from_text(TEXT.replace("suppression: 0.5", "suppression: 0.02")))
    assert seen.levels == {"sex": 0, "age": 0, "ill": 0}
    sizes = {(one.least, one.most): (one.groups, one.people, one.left) for one in seen.groups}
    # 10 groups of 6 women, 10 of 4 men with flu, and one of 2, which is left out
    assert sizes == {(2, 4): (11, 42, 10), (5, 9): (10, 60, 10)}
    ill = next(column for column in seen.columns if column.name == "ill")
    assert (ill.occurring, ill.left) == (3, 2)  # nobody has 'never', and of 'rare' nothing is left
    assert (ill.values[0].value, ill.values[0].after) == ("rare", 0.0)
    assert ill.values[0].before == pytest.approx(2 / 102)
    assert ill.off == pytest.approx(2 / 102)
    assert (seen.records, seen.rows) == (100, 20)
    assert not seen.by_chance
    assert {pair.columns for pair in seen.pairs} == {("sex", "age"), ("sex", "ill"), ("age", "ill")}
    assert all(pair.score == pytest.approx(100 / 102, abs=0.01) for pair in seen.pairs)
    assert seen.to_dict()["score"] == pytest.approx(np.mean(seen.point.scores))


def test_every_move_is_made_on_the_same_counts(explored):
    policy = Policy.from_text(TEXT)
    whole = explored.look(policy)
    without = explored.look(policy.changed({("attributes", "age", "role"): "drop"}))
    assert [column.published for column in without.columns] == [True, False, True]
    assert without.columns[1].values == ()
    assert without.point.scores[0] < 1.0  # of ages, every one is as likely
    for name in ("sampled_crowd", "views", "pram", "sample", "generalization"):
        places = explored.by_mechanism(policy, name)
        seen = explored.look(policy.changed(places))
        assert seen.point.mechanism == name
        assert len(seen.point.scores) == len(explored.control) == 3
    assert any(change.words == "drop age" for change in explored.around(policy))
    change = next(change for change in explored.around(policy) if change.words == "drop age")
    assert explored.try_out(policy, change).score == pytest.approx(without.point.score, abs=0.05)
    assert len(explored.counted) == 1
    assert whole.point.promise


def test_groups_are_of_those_who_look_alike_in_what_others_may_know(explored):
    policy = Policy.from_text(TEXT.replace("[no, flu, rare, never]}", "[no, flu, rare, never], role: sensitive}"))
    groups = {(one.least, one.most): (one.groups, one.people, one.left) for one in explored.look(policy).groups}
    # 9 groups of 4 men with flu, one of these and 2 who are rare, and 10 of 6 women: none has fewer than k = 3 people
    assert groups == {(2, 4): (9, 36, 9), (5, 9): (11, 66, 11)}


def test_moves_begin_at_what_was_looked_at_and_another_mechanism_is_not_held_by_its_levels(explored, monkeypatch):
    policy = Policy.from_text(TEXT)
    explored.look(policy)
    monkeypatch.setattr(exploration, "carried_out", None)  # not once more
    assert explored.around(policy)
    policy = policy.changed(explored.by_mechanism(policy, "sample"))
    assert policy.attributes["age"].level == 0
    explored.look(policy)
    back = policy.changed(explored.by_mechanism(policy, "generalization"))
    assert [attribute.level for attribute in back.attributes.values()] == [None] * 3


def test_another_table_is_not_looked_at_by_mistake(explored):
    for other in (
        TEXT.replace("[f, m]", "[f, m, x]"),
        TEXT.replace("release:", "  more: {domain: [a]}\nrelease:"),
        TEXT.replace("release:", "people: {column: id, at_most: 1}\nrelease:"),
    ):
        with pytest.raises(ParameterError) as refused:
            explored.look(Policy.from_text(other))
        assert refused.value.code == "parameter-combination"


def test_a_table_that_is_too_large_is_not_kept(people, monkeypatch):
    monkeypatch.setattr(exploration, "MOST_CELLS", 20)
    with pytest.raises(DataError) as refused:
        api.explore(Policy.from_text(TEXT), people)
    assert refused.value.code == "cells-too-many"
