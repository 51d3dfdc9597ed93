"""People in groups: by hand, by brute force, and in every kind of table."""

import random
from collections import defaultdict

import pandas as pd
import pytest

from incrowd import api
from incrowd.auditing.report import audit_report
from incrowd.core.errors import DataError, ParameterError
from incrowd.sources import open_source
from incrowd.sources.crowds import people_in_groups

HAND = pd.DataFrame(
    {
        "who": ["a"] * 5 + ["b", "c", None, None, "b"],
        "ward": ["x"] * 5 + ["y", "y", "y", "z", "z"],
    }
)


def test_by_hand():
    found = people_in_groups(open_source(HAND), ["ward"], ["who"], show_values=True)
    assert (found.people, found.without_identifier, found.most_rows) == (5, 2, 5)
    assert (found.k, found.one_person_groups, found.one_person_records) == (1, 1, 5)
    assert [(g.records, g.labels) for g in found.one_person] == [(5, {"ward": "x"})]


def test_by_brute_force(tmp_path):
    rng = random.Random(8)
    rows = [(rng.randrange(3), rng.randrange(40), rng.choice("xyz"), rng.choice([1, 2, None])) for _ in range(300)]
    frame = pd.DataFrame(rows, columns=["home", "person", "ward", "age"])
    groups, persons = defaultdict(set), defaultdict(int)
    records = defaultdict(int)
    for home, person, ward, age in rows:
        groups[ward, age].add((home, person))
        records[ward, age] += 1
        persons[home, person] += 1
    frame.to_csv(tmp_path / "t.csv", index=False)
    for data in (frame, tmp_path / "t.csv"):
        found = people_in_groups(open_source(data), ["ward", "age"], ["home", "person"])
        assert found.k == min(map(len, groups.values()))
        assert (found.people, found.most_rows) == (len(persons), max(persons.values()))
        ones = [cell for cell, who in groups.items() if len(who) == 1]
        assert found.one_person_groups == len(ones)
        assert found.one_person_records == sum(records[cell] for cell in ones)


def test_an_audit_says_so_in_every_form():
    found = api.audit(HAND, "ward", people="who")
    assert (found.k, found.people.k) == (2, 1)
    assert found.to_dict()["people"]["one_person_groups"] == 1
    assert found.people.one_person[0].labels is None  # values are not shown unasked
    page = audit_report(found).decode()
    assert "People, not rows" in page
    assert api.audit(HAND, "ward").people is None


def test_columns_that_cannot_say_whose_a_row_is():
    with pytest.raises(ParameterError):
        api.audit(HAND, "ward", people="ward")
    with pytest.raises(DataError) as caught:
        api.audit(HAND, "ward", people="nobody")
    assert caught.value.code == "column-unknown"


def test_an_identifier_that_repeats_is_spoken_of_unless_it_is_named():
    visits = HAND.rename(columns={"who": "patient_id"})
    [said] = [note for note in api.audit(visits, "ward").notes if "--people" in note]
    assert "'patient_id' repeats" in said
    for quiet in (api.audit(visits, "ward", people="patient_id"), api.audit(HAND[["ward"]], "ward")):
        assert not any("--people" in note for note in quiet.notes)
