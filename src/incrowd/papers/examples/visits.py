"""Example data: the visits to a hospital of an imaginary country, several of most patients, and their policy."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from incrowd.core.files import named, require_absent, write_whole
from incrowd.papers.examples.census import SEED, census_batches
from incrowd.theory._numbers import require_count

WARDS = ("emergency", "medicine", "surgery", "psychiatry", "day clinic")
_FIRST_DAY = dt.date(2026, 1, 1)
_DAYS = 365
# How many patients of a hundred have so many visits; and of ten thousand a few have more than anybody would guess.
_VISITS = ((1, 52), (2, 25), (3, 11), (4, 5), (5, 3), (6, 2), (8, 1), (12, 1))
_OFTEN, _OFTEN_VISITS = 20, 60
_HEAD = ("visit_id", "patient_id", "visit_date", "age", "sex", "region", "ward", "condition")


def write_visits(path: str | Path, patients: int, *, overwrite: bool = False) -> list[Path]:
    """Write the visits of so many patients as CSV, in the order of their days, and beside them the policy, with .yaml.

    The patients are people of the example census. The same ones have the same visits however many there are.

    Raises:
        InputError: a file is in the way, or the folder cannot be written to.
        ParameterError: `patients` is not a whole number of 1 or more.
    """
    table = named(path)
    policy = table.with_suffix(".yaml")
    patients = require_count("patients", patients)
    for target in () if overwrite else (table, policy):
        require_absent(target)
    rows = sorted(_visits(patients), key=lambda visit: (visit[1], visit[0]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEAD)
    writer.writerows([number, *visit] for number, visit in enumerate(rows, 1))
    return [
        write_whole(table, text.getvalue().encode()),
        write_whole(policy, visits_policy(table.name, patients).encode()),
    ]


def visits_policy(file: str, patients: int) -> str:
    """The policy to publish the visits of so many patients with, for a table beside it under the name `file`."""
    return _POLICY.format(
        file=json.dumps(file, ensure_ascii=False),
        delta=f"1.0e-{max(6, len(str(patients)) + 1)}",
        wards=", ".join(WARDS),
    )


def _visits(patients: int) -> Iterator[tuple[object, ...]]:
    for batch in census_batches(patients):
        people = batch.to_pylist()
        for person in people:
            yield from _of(person)


def _of(person: dict[str, object]) -> Iterator[tuple[object, ...]]:
    """The visits of one patient, by random words of their own."""
    number = person["person_id"]
    assert isinstance(number, int)  # noqa: S101 - it is their place in the census
    words = np.random.Philox(key=SEED + 1, counter=number << 64).random_raw(1 + 2 * _OFTEN_VISITS).tolist()
    condition = "check-up" if person["condition"] == "none reported" else person["condition"]
    for visit in range(_how_many(words[0])):
        day, ward = words[1 + 2 * visit] % _DAYS, words[2 + 2 * visit]
        place = "psychiatry" if condition in ("depression", "dementia") and ward % 3 else WARDS[ward % len(WARDS)]
        when = (_FIRST_DAY + dt.timedelta(days=day)).isoformat()
        yield number, when, person["age"], person["sex"], person["region"], place, condition


def _how_many(word: int) -> int:
    if word % 10_000 < _OFTEN:
        return _OFTEN_VISITS
    share = (word // 10_000) % 100
    for visits, people in _VISITS:
        if share < people:
            return visits
        share -= people
    return 1


_POLICY = """\
# How to publish visits to a hospital, most of whose patients came more than once: incrowd release THIS_FILE -o DIR
#
# The table beside this file was made by `incrowd example visits`. Nobody in it is real.
incrowd: 1
title: Visits to a hospital of an imaginary country

data:
  path: {file} # relative to this file

# A row is a visit, and what is promised is promised to a patient. So it is said whose each row is, and how many rows of
# one patient count: the latest three. The others are left out, by a rule that looks at that patient's visits alone.
people:
  column: patient_id
  at_most: 3
  keep: latest by visit_date

attributes:
  visit_id: drop
  patient_id: drop # says whose a row is; never published
  visit_date: drop # only which visits are the latest depends on it

  age:
    type: integer
    domain: {{from: 0, to: 119}}
    hierarchy: {{widths: [10, 20, 40]}}

  sex: {{domain: [female, male]}}

  region:
    hierarchy:
      taxonomy:
        north: [Northmoor, Highlands, Lakeland]
        centre: [Capital, Midlands, Riverlands]
        coast: [Harbour, Sun Coast, Southvale, Islands]

  ward:
    domain: [{wards}]

  condition: drop # to be published with those wards, it needs a table of its own

release:
  mechanism: sampled_crowd
  epsilon: 2
  delta: {delta} # well below one over the number of patients
  selection_epsilon: 0.2 # the part of epsilon that pays for choosing how coarse each column becomes
  beta: 0.3 # the share of visits that are sampled
  output: parquet
"""
