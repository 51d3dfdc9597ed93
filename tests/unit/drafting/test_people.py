"""Whose the rows seem to be: an identifier that repeats becomes a section of the draft, one that does not a remark."""

import datetime as dt
import random

import pandas as pd
import pytest

from incrowd.drafting import draft
from incrowd.policy import Policy
from incrowd.policy.texts import MARK


def visits(rows_each=(1, 2, 3, 12), people=80, **columns):
    rng = random.Random(4)
    rows = [person for person in range(people) for _ in range(rows_each[person % len(rows_each)])]
    table = {
        "patient_id": [f"P{person:05}" for person in rows],
        "ward": [rng.choice(["surgery", "medicine"]) for _ in rows],
        "age": [rng.randrange(20, 60) for _ in rows],
    }
    return pd.DataFrame(table | {name: [make(rng, n) for n in range(len(rows))] for name, make in columns.items()})


def day(rng, _):
    return (dt.date(2026, 1, 1) + dt.timedelta(days=rng.randrange(300))).isoformat()


def test_an_identifier_that_repeats_becomes_people():
    made = draft(visits(visit_date=day))
    policy = Policy.from_text(made.text)
    assert (policy.people.column, policy.people.at_most) == (("patient_id",), 1)
    assert policy.people.ranked_by == ("visit_date", True)
    assert "360 rows of 80 values, up to 12 each" in made.text
    assert [d.column for d in made.decisions if "rows_are_people" in d.question] == ["patient_id"]
    assert {"people.column", "people.at_most"} <= {mark.path for mark in policy.unconfirmed}


@pytest.mark.parametrize("name", ["birth_date", "dob", "geburtsdatum"])
def test_a_date_of_birth_does_not_say_which_row_is_the_latest(name):
    assert Policy.from_text(draft(visits(**{name: day})).text).people.ranked_by is None
    made = draft(visits(**{name: day, "visit_date": day}))
    assert Policy.from_text(made.text).people.ranked_by == ("visit_date", True)


def test_dates_that_are_written_otherwise_say_which_row_is_the_latest_too():
    def local(rng, n):
        return f"{rng.randrange(13, 29)}.{rng.randrange(1, 13):02}.2026"

    policy = Policy.from_text(draft(visits(visit_date=local)).text)
    assert policy.people.ranked_by == ("visit_date", True)
    assert policy.attributes["visit_date"].format == "dd.mm.yyyy"


def test_a_draft_is_sized_by_people_and_not_by_rows():
    table = visits(rows_each=(12,), people=9000)
    by_people = Policy.from_text(draft(table).text)
    by_rows = Policy.from_text(draft(table.drop(columns="patient_id")).text)
    assert (by_people.release.delta, by_rows.release.delta) == (1e-6, 1e-7)


def test_one_row_each_is_a_remark_and_no_question():
    made = draft(visits(rows_each=(1,)))
    policy = Policy.from_text(made.text)
    assert policy.people is None
    assert "# patient_id has one row for each value: each row seems to be a person." in made.text
    assert not any("several rows" in d.question for d in made.decisions)


def test_households_beside_a_number_for_each_person_are_confirmed_not_to_be_whose_rows_are():
    table = visits(rows_each=(2,)).rename(columns={"patient_id": "household_id"})
    table["person_id"] = [f"p{number}" for number in range(len(table))]
    text = draft(table).text
    assert "rows_are_people: true # CONFIRM household_id repeats, but person_id has one row for each value" in text
    assert Policy.from_text(text).rows_are_people


def test_rows_without_an_identifier():
    table = visits()
    table.loc[::50, "patient_id"] = None
    made = draft(table)
    assert Policy.from_text(made.text).people.missing == "own"
    assert "8 rows lack it" in made.text


def test_the_column_that_speaks_of_people_is_taken_before_others():
    made = draft(visits(order_no=lambda rng, n: n // 2 + 10_000))
    assert Policy.from_text(made.text).people.column == ("patient_id",)


@pytest.mark.parametrize("column", ["ward_id", "temperature"])
def test_what_repeats_but_is_no_identifier(column):
    table = visits(people=400).drop(columns="patient_id")
    made = draft(table.assign(**{column: [i % 7 for i in range(len(table))]}))
    assert Policy.from_text(made.text).people is None
    assert f"{MARK} whose" not in made.text


def test_odd_names_are_written_so_that_they_are_read_alike():
    table = visits(**{"day: of # visit": day}).rename(columns={"patient_id": "patient: id #1"})
    people = Policy.from_text(draft(table).text).people
    assert (people.column, people.ranked_by) == (("patient: id #1",), ("day: of # visit", True))


def household(rng, n):
    return n // 3


def test_numbers_of_households_become_people_whatever_they_are_called():
    """By what the column does: nearly every number occurs, a few times each."""
    for name in ("hid", "hhid", "q1"):
        made = draft(visits(rows_each=(1,), people=1500, **{name: household}).drop(columns="patient_id"))
        assert Policy.from_text(made.text).people.column == (name,)
        [asked] = [d.question for d in made.decisions if d.column == name]
        assert ("seems to number households" in asked) == (name != "q1")


def test_people_with_one_row_each_are_not_left_out_for_their_household():
    made = draft(visits(rows_each=(1,), hid=household))
    assert Policy.from_text(made.text).people is None
    assert "# patient_id has one row for each value" in made.text


def panel():
    """Several months of people with long pseudonyms, who live in households of two, some with ten rows and more."""
    rng = random.Random(5)
    rows, weights = [], {}
    for person in range(400):
        home = f"{100_000 + 37 * (person // 2)}"
        weights.setdefault(home, f"{rng.lognormvariate(4, 0.6):.5f}")
        born, county = rng.randrange(1940, 2005), "abcdefg"[(person // 2) % 7]
        for wave in range(rng.choice([1, 3, 6, 8])):
            pseudonym = f"756.{1000 + person // 100}.{37 * person % 10_000:04}.{person % 97:02}"
            rows.append((pseudonym, home, weights[home], wave, born, county, rng.choice("xyz")))
    return pd.DataFrame(rows, columns=["AHVN13", "Haushalt", "faktor", "wave", "born in", "county", "mood"])


def test_in_a_panel_people_are_told_from_their_households_and_the_weight_is_found():
    made = draft(panel())
    policy = Policy.from_text(made.text)
    assert policy.people.column == ("AHVN13",)
    assert {"AHVN13", "Haushalt", "faktor"}.isdisjoint(policy.published)
    [asked] = [d.question for d in made.decisions if d.column == "AHVN13"]
    assert "Haushalt, " in asked
    assert "name it instead if the promise is to cover a household" in asked
    assert any("survey weight" in d.question for d in made.decisions if d.column == "faktor")


def test_without_the_people_their_households_are_asked_about():
    made = draft(panel().drop(columns="AHVN13"))
    assert Policy.from_text(made.text).people.column == ("Haushalt",)


def test_a_single_patient_is_people():
    made = draft(visits(rows_each=(200,), people=1))
    assert "200 rows of 1 values, up to 200 each" in made.text
    assert Policy.from_text(made.text).people.column == ("patient_id",)
