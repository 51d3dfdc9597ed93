"""People with several rows: so many of each count, nothing published tells how many there were, and rows that only
seem to be people are spoken of."""

import json

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.core.errors import DataError, ParameterError, PolicyError
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.stream import StreamSampler

POLICY = """
incrowd: 1
attributes:
  ward: {domain: [a, b, c], level: 0}
  night: {type: boolean, level: 0}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, beta: 0.4}
"""
PEOPLE = "people: {column: patient_id, at_most: 1, keep: latest by day}\n"
SEVERAL = 3


@pytest.fixture(scope="module")
def visits():
    """Of 900 patients the first has 200 rows, all others three; the latest of each is in ward a."""
    patients = np.repeat(np.arange(900), SEVERAL)
    days = np.tile(np.arange(SEVERAL), 900)
    heavy = pd.DataFrame({"patient_id": 0, "day": -1 - np.arange(200), "ward": "c", "night": True})
    frame = pd.DataFrame(
        {
            "patient_id": patients,
            "day": days,
            "ward": np.where(days == SEVERAL - 1, "a", "b"),
            "night": np.random.default_rng(1).random(len(days)) < 0.5,
        }
    )
    return pd.concat([frame, heavy], ignore_index=True).sample(frac=1, random_state=3)


def test_one_row_of_each_counts(visits, tmp_path):
    made = api.release(visits, Policy.from_text(POLICY + PEOPLE), folder=tmp_path / "out")
    assert set(made.to_pandas()["ward"]) == {"a"}
    assert made.histogram.total < 900
    found = made.people
    assert (found.rows, found.people, found.left_out) == (2900, 900, 2000)
    assert made.concerns == ()
    assert api.verify(tmp_path / "out").valid


def test_nothing_published_says_how_many_rows_were_left_out(visits, tmp_path):
    made = api.release(visits, Policy.from_text(POLICY + PEOPLE), folder=tmp_path / "out")
    for text in (json.dumps(made.certificate), made.report.decode()):
        assert not {"2900", "2,900", "2000", "2,000"} & set(text.replace('"', " ").split())


def test_the_latest_row_is_found_in_dates_as_the_policy_says_they_are_written(visits):
    written = visits.assign(day=[f"{28 - day % 3}.{9 - day:02}.2026" if day >= 0 else None for day in visits["day"]])
    text = POLICY.replace("release:", "  day: {role: drop, type: date, format: dd.mm.yyyy}\nrelease:")
    text += PEOPLE.replace("latest", "earliest")
    made = api.release(written, Policy.from_text(text), _source=RandomSource.seeded(5))
    as_numbers = api.release(visits, Policy.from_text(POLICY + PEOPLE), _source=RandomSource.seeded(5))
    assert made.histogram.counts.tolist() == as_numbers.histogram.counts.tolist()


def test_the_order_of_rows_changes_nothing(visits):
    def drawn(table):
        policy = Policy.from_text(POLICY + PEOPLE.replace("keep: latest by day", "keep: any"))
        return api.release(table, policy, _source=RandomSource.seeded(5)).histogram

    one, other = drawn(visits), drawn(visits.sort_values("ward"))
    assert one.counts.tolist() == other.counts.tolist()


def test_several_rows_need_a_mechanism_that_promises_something_for_them(visits, monkeypatch):
    from incrowd.mechanisms.registry import MECHANISMS

    monkeypatch.setattr(type(MECHANISMS["sampled_crowd"]), "several_rows", False)
    with pytest.raises(PolicyError, match="one row"):
        api.release(visits, Policy.from_text(POLICY + PEOPLE.replace("at_most: 1", "at_most: 2")))


def test_what_cannot_be_kept_by(visits):
    for old, new, code in (
        ("by day", "by month", "column-unknown"),
        ("by day", "by ward", "values-outside-domain"),
        ("column: patient_id", "column: patient", "column-unknown"),
    ):
        with pytest.raises(DataError) as caught:
            api.release(visits, Policy.from_text(POLICY + PEOPLE.replace(old, new)))
        assert caught.value.code == code


def test_a_stream_cannot_bound_rows():
    policy = (
        POLICY.replace(
            "mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, beta: 0.4", "mechanism: sample, epsilon: 2, delta: 1e-5"
        )
        + PEOPLE
    )
    with pytest.raises(PolicyError, match="forgets"):
        StreamSampler(Policy.from_text(policy))


def test_executors_cannot_bound_rows(visits, tmp_path):
    policy = Policy.from_text(POLICY.partition("release:")[0] + "release: {mechanism: pram, rho: 0.5}\n" + PEOPLE)
    with pytest.raises(ParameterError, match="people"):
        api.release(visits, policy, folder=tmp_path / "out", write_with="executors")


def test_the_people_section_lists_its_columns(visits):
    text = POLICY + PEOPLE + "unlisted: refuse\n"
    assert api.release(visits, Policy.from_text(text)).people.people == 900


# --------------------------------------------------------------------------------------- rows that are taken for people


def test_rows_that_are_taken_for_people_are_spoken_of_once(visits, tmp_path):
    seven = visits[visits["patient_id"] < 7 * 100]
    (said,) = api.release(seven, Policy.from_text(POLICY)).concerns
    assert (said.code, said.column) == ("rows-not-people", "patient_id")
    assert "rows_are_people" in said.text


@pytest.mark.parametrize("change", ["rows_are_people: true\n", PEOPLE])
def test_whoever_has_said_what_rows_are_is_not_asked(visits, change):
    assert api.release(visits, Policy.from_text(POLICY + change)).concerns == ()


def test_what_repeats_but_is_no_persons(visits):
    for frame in (
        visits.drop(columns="patient_id"),
        visits.assign(patient_id=np.arange(len(visits))),  # one row each
        visits.assign(ward_id=visits["patient_id"] % 5).drop(columns="patient_id"),  # hundreds of rows each
        visits.rename(columns={"patient_id": "temperature"}),
    ):
        assert api.release(frame, Policy.from_text(POLICY)).concerns == ()


@pytest.mark.parametrize("name", ["patient_id", "hid", "pid", "userid", "subjid", "caseid"])
def test_one_person_is_no_crowd_however_many_rows_she_has(visits, name):
    """200 rows of one patient make a group of 200."""
    one = visits[visits["ward"] == "c"].rename(columns={"patient_id": name})
    policy = POLICY.partition("release:")[0] + "release: {mechanism: generalization, require: {k: 50}}\n"
    said = api.release(one, Policy.from_text(policy)).concerns
    assert [(concern.code, concern.column) for concern in said if concern.code == "rows-not-people"] == [
        ("rows-not-people", name)
    ]


def test_people_whose_rows_are_far_apart_are_found(visits, tmp_path, monkeypatch):
    """Months below each other: no identifier repeats among the first rows."""
    from incrowd.sources import repeats

    monkeypatch.setattr(repeats, "LOOKED_AT", 500)
    months = [visits.drop_duplicates("patient_id").assign(day=month) for month in range(3)]
    pd.concat(months).to_csv(tmp_path / "panel.csv", index=False)
    pd.concat(months).to_parquet(tmp_path / "panel.parquet")
    policy = Policy.from_text(POLICY)
    for data in (pd.concat(months), tmp_path / "panel.csv", tmp_path / "panel.parquet"):
        assert [said.column for said in api.release(data, policy).concerns] == ["patient_id"]
    assert api.release(months[0], policy).concerns == ()


def test_the_warning_comes_from_every_kind_of_table(visits, tmp_path):
    import pyarrow as pa

    policy = Policy.from_text(POLICY)
    visits.to_csv(tmp_path / "visits.csv", index=False)
    visits.to_parquet(tmp_path / "visits.parquet")
    for data in (tmp_path / "visits.csv", tmp_path / "visits.parquet", pa.Table.from_pandas(visits)):
        assert [said.code for said in api.release(data, policy).concerns] == ["rows-not-people"]
    # A stream can be read once, and is not used up by a question.
    stream = pa.Table.from_pandas(visits).to_reader()
    assert api.release(stream, policy).concerns == ()


def test_nobody_with_several_rows_is_a_note(visits):
    one = visits.drop_duplicates("patient_id")
    several = PEOPLE.replace("at_most: 1", "at_most: 3")
    (said,) = api.release(one, Policy.from_text(POLICY + several)).concerns
    assert (said.code, said.column) == ("one-row-each", "patient_id")
    assert "at_most: 1" in said.text
    assert api.release(one, Policy.from_text(POLICY + PEOPLE)).concerns == ()
    assert api.release(visits, Policy.from_text(POLICY + several)).concerns == ()


# --------------------------------------------------------------------------------------------------- survey weights


WEIGHTED = "  {name}: {{type: integer, domain: {{from: 1, to: 9}}, level: 0}}\nrelease: {release}\n"
CROWDS = ["{mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}", "{mechanism: views, epsilon: 2, delta: 1e-5}"]


@pytest.mark.parametrize("release", CROWDS)
def test_a_survey_weight_is_not_published_with_crowds(visits, release):
    for name in ("fnlwgt", "PERWT", "survey_weight"):
        text = POLICY.partition("release:")[0] + WEIGHTED.format(name=name, release=release)
        with pytest.raises(PolicyError, match="survey weight") as caught:
            api.release(visits.assign(**{name: 3}), Policy.from_text(text))
        assert "role: drop" in caught.value.remedy
        shown = text.replace(release, "{mechanism: generalization, require: {k: 2}}")
        api.release(visits.assign(**{name: 3}), Policy.from_text(shown))


def test_what_may_be_a_weight_is_asked_about(visits):
    text = POLICY.partition("release:")[0] + WEIGHTED.format(name="weight", release=CROWDS[0])
    said = api.release(visits.assign(weight=3), Policy.from_text(text + PEOPLE)).concerns
    assert [(concern.code, concern.column) for concern in said] == [("survey-weight", "weight")]
