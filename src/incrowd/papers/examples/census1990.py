"""A stand-in for the US census of 1990, with the seven columns and the number of records of Ikarashi et al.

The columns have the sizes of the paper's Table 1 and depend on each other as such columns do: income on age, sex and
schooling, work on age, travel on work. Nobody in it is real. Every person is drawn in whole numbers from a published,
counter-based stream, so the same people come out everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from incrowd.histogram import Column, Histogram
from incrowd.papers.examples._population import Choice, Codes

RECORDS = 2_458_285
SIZES = {
    "sex": 2,
    "age": 18,
    "income": 12,
    "worked_last_year": 3,
    "worked_last_week": 3,
    "education": 18,
    "travel_time": 20,
}
"""The columns in the order of the paper's Table 1, and how many values each has."""

_KEY = 1990
_WORDS = 4  # 64-bit words for each person, one step of the stream: eight draws
_BATCH = 1 << 19
_AGES = (73, 73, 70, 70, 76, 85, 88, 80, 71, 56, 46, 42, 42, 40, 33, 25, 16, 14)
"""People in a thousand of each five years of age, the last open-ended."""


def census_1990(records: int = RECORDS) -> Histogram:
    """The first so many people."""
    whole: Histogram | None = None
    for first in range(0, records, _BATCH):
        codes = _people(first, min(first + _BATCH, records))
        part = Histogram.of([Column(name, tuple(map(str, range(size))), codes[name]) for name, size in SIZES.items()])
        whole = part if whole is None else whole.merge(part)
    if whole is None:
        empty = np.zeros(0, dtype=np.int64)
        return Histogram.of([Column(name, tuple(map(str, range(size))), empty) for name, size in SIZES.items()])
    return whole


def _people(first: int, last: int) -> dict[str, Codes]:
    words = np.random.Philox(key=_KEY, counter=first).random_raw((last - first) * _WORDS)
    draws = words.view(np.uint32).reshape(last - first, 2 * _WORDS).T
    age = Choice([_AGES]).pick(draws[0])
    sex = Choice([(500 + 4 * a, 500 - 4 * a) for a in range(18)]).pick(draws[1], age)  # women grow older
    education = Choice(_schooling()).pick(draws[2], age)
    year = Choice(_work()).pick(draws[3], 2 * age + sex)
    week = Choice(_week()).pick(draws[4], year)
    income = Choice(_income()).pick(draws[5], ((education // 3) * 3 + year) * 4 + 2 * (age > 8) + sex)
    travel = Choice(_travel()).pick(draws[6], 2 * (week == 1) + (income > 6))
    values = (sex, age, income, year, week, education, travel)
    return dict(zip(SIZES, values, strict=True))


def _hill(size: int, top: int, spread: int, floor: int = 2) -> list[int]:
    """Weights that fall off on both sides of a top."""
    return [max(floor, 1000 - 1000 * abs(i - top) // spread) for i in range(size)]


def _schooling() -> Iterator[list[int]]:
    for age in range(18):
        yield _hill(18, min(11, 3 * age), 4 + age // 2)


def _work() -> Iterator[list[int]]:
    """Too young to be asked, worked, did not: by age and sex."""
    for age in range(18):
        for sex in range(2):
            young = 1000 if age < 3 else 0
            active = 0 if age < 3 else max(20, 900 - 120 * sex - 55 * abs(age - 7) - (300 if age > 12 else 0))
            yield [young, active, 1000 - active if age >= 3 else 1]


def _week() -> Iterator[list[int]]:
    yield [1000, 1, 1]
    yield [5, 850, 145]
    yield [5, 30, 965]


def _income() -> Iterator[list[int]]:
    """By schooling in six steps, work, age and sex."""
    for school in range(6):
        for work in range(3):
            for older in range(2):
                for sex in range(2):
                    top = (0, 3 + school + older - sex, 2)[work]
                    yield _hill(12, top, (1, 5, 2)[work], floor=3)


def _travel() -> Iterator[list[int]]:
    for working in range(2):
        for rich in range(2):
            yield _hill(20, 3 + 2 * rich, 6, floor=8) if working else [1000, *([1] * 19)]
