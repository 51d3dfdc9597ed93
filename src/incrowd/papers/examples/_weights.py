"""The imaginary country of the census example: who lives there, in whole numbers.

The country is invented; its numbers are only of the right size. Everything is an integer weight or a percentage, so
that the table drawn from them is the same on every platform. Race depends on the region and on nothing else, and
nothing but the region depends on race: an example need not repeat the injustices of real tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

SEXES = ("female", "male")
OLDEST = 105

# ---------------------------------------------------------------------------------------------- ages
# How many people there are of each age, relative to the others, at some ages; in between it is a straight line.
PYRAMID: dict[str, dict[int, int]] = {
    "female": {0: 11200, 10: 12300, 20: 12900, 30: 13500, 40: 12800, 50: 12700, 60: 12600, 70: 10200, 80: 6000}
    | {90: 2000, 95: 620, 100: 110, OLDEST: 8},
    "male": {0: 11800, 10: 12900, 20: 13500, 30: 13900, 40: 12900, 50: 12600, 60: 12100, 70: 8900, 80: 4200}
    | {90: 900, 95: 230, 100: 26, OLDEST: 2},
}


def pyramid(sex: str) -> list[int]:
    """How many people are 0, 1, 2, … years old."""
    anchors = PYRAMID[sex]
    people = [anchors[0]]
    for (young, a), (old, b) in pairwise(anchors.items()):
        people += [a + (b - a) * (age - young) // (old - young) for age in range(young + 1, old + 1)]
    return people


def band_of_age(starts: Sequence[int]) -> list[int]:
    """For every age, the number of its band, the bands being given by their first ages."""
    return [sum(start <= age for start in starts) - 1 for age in range(OLDEST + 1)]


# ---------------------------------------------------------------------------------------------- places
RACES = ("White", "Black", "Asian", "Native American", "Pacific Islander", "other", "two or more")


class Region(NamedTuple):
    """A region, whose place in `REGIONS` is the first digit of its zip codes.

    Attributes:
        name: what it is called.
        people: its size.
        districts: how many zip codes it has in each district, the second and third digits.
        income: what people earn there, in percent.
        city: whether higher education and the young gather there.
        elderly: how many of the old choose to live there, in percent.
        races: weights in the order of `RACES`.
    """

    name: str
    people: int
    districts: tuple[int, ...]
    income: int
    city: bool
    elderly: int
    races: tuple[int, ...]


REGIONS = (
    Region("Harbour", 150, (6, 6, 5, 5), 118, True, 90, (560, 190, 120, 4, 2, 70, 54)),
    Region("Lakeland", 120, (6, 5, 5, 4), 102, False, 105, (760, 120, 35, 12, 1, 35, 37)),
    Region("Midlands", 135, (6, 6, 5, 4), 97, False, 100, (720, 160, 40, 6, 1, 38, 35)),
    Region("Northmoor", 50, (4, 4, 3), 88, False, 120, (850, 20, 12, 75, 1, 15, 27)),
    Region("Riverlands", 110, (6, 5, 5, 4), 86, False, 100, (560, 340, 20, 5, 1, 42, 32)),
    Region("Highlands", 40, (4, 3, 3), 93, False, 110, (800, 12, 18, 110, 2, 25, 33)),
    Region("Capital", 160, (6, 6, 6, 4), 130, True, 75, (520, 210, 140, 4, 2, 72, 52)),
    Region("Southvale", 105, (6, 5, 4, 4), 90, False, 95, (610, 180, 40, 10, 1, 115, 44)),
    Region("Sun Coast", 115, (6, 5, 5, 4), 104, True, 190, (590, 90, 130, 8, 8, 120, 54)),
    Region("Islands", 15, (3, 2), 95, False, 110, (300, 20, 340, 4, 190, 46, 100)),
)


class Zip(NamedTuple):
    """A zip code, its region and its size."""

    code: str
    region: int
    people: int


def _zips() -> tuple[Zip, ...]:
    """The zip codes of every region, the first one being the largest: sizes fall like 1/2, 1/3, 1/4, …"""
    found = []
    for number, region in enumerate(REGIONS):
        codes = [
            f"{number}{(7 + 23 * district) % 100:02d}{(1 + 17 * office) % 100:02d}"
            for district, offices in enumerate(region.districts)
            for office in range(offices)
        ]
        shares = [10_000_000 // (rank + 2) for rank in range(len(codes))]
        found += [
            Zip(code, number, region.people * share * 1000 // sum(shares))
            for code, share in zip(codes, shares, strict=True)
        ]
    return tuple(found)


ZIPS = _zips()

# How attractive a city is, and the elderly's liking for a region, by age: (first age, city in percent, liking counts).
PLACES = ((0, 90, False), (18, 145, False), (35, 100, False), (65, 80, True))

# ---------------------------------------------------------------------------------------------- families
MARITAL = ("never married", "married", "partnership", "separated", "divorced", "widowed")

# From each age on, out of 100,000 people of each sex.
MARRIAGES: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {
    0: ((100000, 0, 0, 0, 0, 0), (100000, 0, 0, 0, 0, 0)),
    15: ((99490, 340, 100, 30, 10, 30), (99680, 200, 60, 20, 10, 30)),
    18: ((95500, 3000, 1200, 150, 100, 50), (97500, 1600, 700, 100, 70, 30)),
    20: ((79500, 14500, 4700, 700, 500, 100), (86000, 9500, 3600, 500, 360, 40)),
    25: ((52500, 35000, 8000, 1700, 2600, 200), (62000, 27000, 7500, 1400, 2000, 100)),
    30: ((33000, 51500, 7500, 2400, 5200, 400), (40500, 45000, 8000, 2100, 4200, 200)),
    35: ((20500, 59000, 6000, 3100, 10500, 900), (24500, 57500, 6500, 2800, 8300, 400)),
    45: ((14500, 60000, 4000, 3200, 16000, 2300), (16500, 61500, 4500, 2900, 13600, 1000)),
    55: ((10500, 59000, 2600, 2500, 19000, 6400), (11500, 65000, 3000, 2300, 15800, 2400)),
    65: ((7000, 53500, 1400, 1500, 17600, 19000), (7000, 70500, 1800, 1500, 13200, 6000)),
    75: ((5200, 37500, 600, 700, 12000, 44000), (4800, 69500, 900, 800, 8500, 15500)),
    85: ((4800, 16000, 200, 300, 6700, 72000), (4200, 52500, 500, 400, 4400, 38000)),
}

# ---------------------------------------------------------------------------------------------- schools
EDUCATION = (
    "no schooling",
    "primary school",
    "lower secondary",
    "upper secondary",
    "vocational training",
    "some college",
    "bachelor",
    "master",
    "professional degree",
    "doctorate",
)
BASIC = 3  # the first three are basic education …
COLLEGE = 6  # … and from here on it is a degree

# From each age on, out of 10,000 people.
SCHOOLING: dict[int, tuple[int, ...]] = {
    0: (10000, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    6: (150, 9845, 5, 0, 0, 0, 0, 0, 0, 0),
    12: (40, 1200, 8740, 20, 0, 0, 0, 0, 0, 0),
    15: (30, 150, 5600, 4190, 20, 10, 0, 0, 0, 0),
    18: (30, 80, 900, 5750, 440, 2790, 10, 0, 0, 0),
    20: (30, 80, 640, 3500, 800, 4650, 296, 4, 0, 0),
    22: (40, 80, 560, 2700, 1000, 3000, 2480, 130, 9, 1),
    25: (50, 100, 600, 2350, 1100, 1900, 2800, 900, 150, 50),
    30: (60, 140, 700, 2350, 1150, 1600, 2500, 1130, 220, 150),
    45: (80, 260, 850, 2750, 1250, 1650, 1950, 900, 180, 130),
    65: (120, 550, 1050, 3050, 1150, 1500, 1500, 800, 170, 110),
    80: (200, 1100, 1500, 3250, 900, 1250, 1050, 560, 120, 70),
}
WOMEN_WITH_DEGREES = (115, 80)  # percent of the above for women under 45, and for those of 45 and more
DEGREES_IN_CITIES = 160  # percent of the above

# ---------------------------------------------------------------------------------------------- work
STATUSES = ("under 15", "student", "homemaker", "unemployed", "retired")
JOBS = (
    "manager",
    "professional",
    "technician",
    "clerk",
    "sales and service",
    "farming",
    "craft",
    "machine operator",
    "labourer",
    "armed forces",
)
OCCUPATIONS = STATUSES + JOBS

# From each age on, out of 1000 people of each sex: each status, and all jobs together.
ACTIVITY: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {
    0: ((1000, 0, 0, 0, 0, 0), (1000, 0, 0, 0, 0, 0)),
    15: ((0, 930, 8, 12, 0, 50), (0, 930, 5, 15, 0, 50)),
    18: ((0, 530, 30, 50, 0, 390), (0, 480, 10, 70, 0, 440)),
    22: ((0, 220, 70, 60, 0, 650), (0, 200, 10, 80, 0, 710)),
    25: ((0, 18, 170, 42, 5, 765), (0, 15, 20, 45, 8, 912)),
    55: ((0, 1, 160, 35, 260, 544), (0, 1, 20, 45, 220, 714)),
    65: ((0, 0, 100, 3, 790, 107), (0, 0, 10, 5, 810, 175)),
    75: ((0, 0, 90, 0, 900, 10), (0, 0, 10, 0, 965, 25)),
}

# For each education and sex, which jobs people have, out of 1000.
_UNTRAINED = ((8, 8, 20, 70, 450, 50, 30, 93, 270, 1), (10, 5, 15, 25, 170, 90, 250, 200, 233, 2))
JOBS_BY_EDUCATION: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    _UNTRAINED,
    _UNTRAINED,
    _UNTRAINED,
    ((40, 40, 90, 240, 430, 15, 20, 45, 77, 3), (50, 25, 90, 70, 180, 40, 250, 175, 100, 20)),
    ((50, 90, 250, 230, 320, 10, 20, 15, 13, 2), (60, 40, 180, 50, 130, 30, 360, 110, 30, 10)),
    ((90, 170, 200, 240, 250, 7, 10, 12, 16, 5), (110, 120, 190, 100, 200, 15, 110, 80, 50, 25)),
    ((170, 480, 150, 120, 70, 3, 2, 1, 2, 2), (220, 400, 170, 60, 83, 8, 25, 10, 12, 12)),
    ((190, 660, 90, 40, 16, 1, 1, 0, 1, 1), (250, 590, 100, 20, 25, 3, 5, 2, 1, 4)),
    ((130, 835, 25, 5, 4, 1, 0, 0, 0, 0), (150, 820, 20, 4, 4, 1, 0, 0, 0, 1)),
    ((120, 850, 25, 2, 2, 1, 0, 0, 0, 0), (140, 830, 25, 2, 2, 1, 0, 0, 0, 0)),
)

# ---------------------------------------------------------------------------------------------- money
# A typical income per year by occupation, then in percent by education, from each age on, and by sex.
TYPICAL_INCOME = (0, 6000, 4000, 9000, 23000, 78000, 68000, 52000, 40000, 30000, 27000, 45000, 41000, 27000, 46000)
INCOME_BY_EDUCATION = (75, 80, 85, 100, 105, 105, 125, 140, 190, 160)
INCOME_BY_AGE = {0: 0, 15: 25, 18: 55, 22: 70, 25: 90, 35: 108, 45: 115, 55: 110, 65: 95, 75: 85}
INCOME_BY_SEX = (89, 106)

# The spread around it: out of 1,000,000 people, how many stay below how many thousandths of the typical income. Those
# with a job or a pension never earn nothing; among the others many do. The last line is the very rich.
EARNER_SPREAD = {0: 40, 10_000: 120, 50_000: 300, 100_000: 420, 250_000: 680, 500_000: 1000, 750_000: 1450} | {
    900_000: 2100,
    950_000: 2700,
    990_000: 4800,
    999_000: 12_000,
    999_900: 40_000,
    1_000_000: 150_000,
}
DEPENDANT_SPREAD = {0: 0, 350_000: 0, 500_000: 1000, 750_000: 1900, 900_000: 3200, 990_000: 8000, 999_000: 20_000} | {
    1_000_000: 90_000
}
DEPENDANTS = 4  # the statuses before this one: under 15, student, homemaker, unemployed
ROUNDED_TO = 100  # people round what they state

# ---------------------------------------------------------------------------------------------- health
CONDITIONS = (
    "none reported",
    "hypertension",
    "diabetes",
    "asthma",
    "heart disease",
    "cancer",
    "depression",
    "arthritis",
    "lung disease",
    "dementia",
    "epilepsy",
    "HIV",
)

# From each age on, the most serious condition of 10,000 men.
HEALTH: dict[int, tuple[int, ...]] = {
    0: (9340, 2, 10, 500, 60, 6, 4, 5, 5, 0, 66, 2),
    6: (8850, 10, 30, 850, 40, 8, 120, 15, 5, 0, 70, 2),
    15: (8160, 80, 60, 800, 50, 15, 690, 40, 10, 0, 75, 20),
    25: (7900, 320, 130, 700, 70, 30, 610, 90, 30, 0, 70, 50),
    35: (7260, 780, 310, 620, 150, 70, 550, 130, 60, 1, 70, 60),
    45: (6160, 1450, 640, 560, 350, 160, 500, 240, 130, 5, 70, 65),
    55: (4840, 2050, 1040, 500, 700, 390, 420, 460, 280, 20, 72, 50),
    65: (3860, 2300, 1280, 440, 1110, 640, 320, 620, 460, 90, 75, 30),
    75: (3030, 2260, 1300, 380, 1580, 770, 270, 760, 560, 380, 80, 12),
    85: (2400, 2050, 1100, 300, 1900, 700, 250, 800, 480, 1350, 85, 3),
}
HEALTH_OF_WOMEN = (100, 95, 85, 110, 65, 95, 170, 155, 85, 125, 95, 30)  # percent of the above
HEALTH_WITHOUT_SCHOOL = (85, 115, 150, 115, 135, 105, 135, 120, 180, 120, 110, 110)  # adults of basic education
ADULT = 25

# ---------------------------------------------------------------------------------------------- gaps
# Out of 1024 people, how many leave the question unanswered. Those who earn well are shy about their income.
EDUCATION_GAPS = 11
OCCUPATION_GAPS = 10
INCOME_GAPS = (4, 10, 10, 10, 10, 26, 20, 12, 10, 10, 16, 12, 10, 10, 10)
