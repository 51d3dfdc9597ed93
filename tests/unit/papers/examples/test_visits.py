"""The example visits: the same ones every time, several of most patients, and a policy that publishes them."""

import csv
from collections import Counter

import pytest

from incrowd import api
from incrowd.core.errors import InputError, ParameterError
from incrowd.papers.examples.visits import write_visits
from incrowd.policy import Policy


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_several_visits_of_most_patients(tmp_path):
    table, _ = write_visits(tmp_path / "visits.csv", 3000)
    visits = rows(table)
    each = Counter(visit["patient_id"] for visit in visits)
    assert len(each) == 3000
    assert 1.8 < len(visits) / 3000 < 2.5
    assert max(each.values()) >= 12
    assert [visit["visit_date"] for visit in visits] == sorted(visit["visit_date"] for visit in visits)


def test_a_patient_has_the_same_visits_however_many_others_there_are(tmp_path):
    few, many = (rows(write_visits(tmp_path / f"{n}.csv", n)[0]) for n in (40, 400))

    def of_the_first(visits):
        return sorted(tuple(v.values())[1:] for v in visits if int(v["patient_id"]) <= 40)

    assert of_the_first(few) == of_the_first(many)


def test_the_policy_publishes_them(tmp_path):
    _, policy = write_visits(tmp_path / "visits.csv", 3000)
    assert Policy.from_file(policy).people.ranked_by == ("visit_date", True)
    made = api.release(policy=policy)
    assert made.people.people == 3000
    assert [warning.code for warning in made.warnings if warning.code == "rows-not-people"] == []
    assert not made.empty


def test_files_in_the_way_and_no_patients(tmp_path):
    write_visits(tmp_path / "visits.csv", 5)
    with pytest.raises(InputError):
        write_visits(tmp_path / "visits.csv", 5)
    write_visits(tmp_path / "visits.csv", 6, overwrite=True)
    with pytest.raises(ParameterError):
        write_visits(tmp_path / "none.csv", 0)
