"""Drawing the people of the census example, person by person, in whole numbers.

Every person is drawn on their own: first age and sex, then the place given the age, the schooling given age, sex and
place, and so on down to income, health and the questions left unanswered. Person i's random numbers are those at
position i of a counter-based stream, so the same people come out whatever the number of rows, the size of the batches
or the platform.

The stream is NumPy's Philox under a published key. That is right here and nowhere else in incrowd: nobody real is in
this table, and whoever draws it twice should see the same one. Only the raw 64-bit words are used, because those are
what NumPy promises never to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from incrowd.papers.examples import _weights as weights

Draws = NDArray[np.uint32]
Codes = NDArray[np.int64]

_WORDS = 8  # 64-bit words for each person: two steps of Philox's counter, each of which gives four
_FRACTION = 24  # bits of a draw that decide between a slot's two values; the lowest of the other 8 choose the slot


class Choice:
    """Draws of one value out of several, with weights that depend on a context: Walker's alias method.

    Each context has as many slots, all equally likely, as the next power of two; a slot holds its own value up to a
    threshold and another value, its alias, above it. One draw of 32 bits settles both, to within 2⁻³² of the weights.

    Args:
        weights: for each context, the weight of each value.
    """

    def __init__(self, weights: Iterable[Sequence[int]]) -> None:
        tables = list(weights)
        self._slots = 1 << (max(map(len, tables)) - 1).bit_length()
        pairs = [_aliases(table, self._slots) for table in tables]
        self._threshold: Draws = np.array([threshold for threshold, _ in pairs], np.uint32).ravel()
        self._alias: Codes = np.array([alias for _, alias in pairs], np.int64).ravel()

    def pick(self, draws: Draws, context: Codes | int = 0) -> Codes:
        slot = (draws & np.uint32(self._slots - 1)).astype(np.int64)
        place = slot + context * self._slots
        keeps = (draws >> np.uint32(32 - _FRACTION)) < self._threshold[place]
        return np.where(keeps, slot, self._alias[place])


class Spread:
    """Quantiles of several distributions, each a chain of straight lines; in whole numbers throughout.

    Args:
        chains: for each distribution, how many in a million stay below how much.
    """

    def __init__(self, chains: Iterable[Mapping[int, int]]) -> None:
        corners: list[tuple[int, int, int, int]] = []
        for number, chain in enumerate(chains):
            points = [((number << 32) + (share << 32) // 1_000_000, value) for share, value in chain.items()]
            corners += [(start, end - start, low, high - low) for (start, low), (end, high) in pairwise(points)]
        columns: Codes = np.array(corners, np.int64).T
        self._start, self._width, self._low, self._rise = columns

    def pick(self, draws: Draws, number: Codes) -> Codes:
        place = (number << 32) + draws
        piece = np.searchsorted(self._start, place, side="right") - 1
        quantile: Codes = self._low[piece] + (place - self._start[piece]) * self._rise[piece] // self._width[piece]
        return quantile


def _aliases(weights: Sequence[int], slots: int) -> tuple[list[int], list[int]]:
    """For each slot, below which fraction it keeps its own value, and its alias."""
    full = 1 << _FRACTION
    total = sum(weights)
    mass = [weight * slots * full // total for weight in weights] + [0] * (slots - len(weights))
    mass[max(range(slots), key=mass.__getitem__)] += slots * full - sum(mass)  # what rounding down left over
    alias = list(range(slots))
    threshold = [full] * slots
    small = [slot for slot in range(slots) if mass[slot] < full]
    large = [slot for slot in range(slots) if mass[slot] > full]
    while small:
        poor, rich = small.pop(), large[-1]
        threshold[poor], alias[poor] = mass[poor], rich
        mass[rich] -= full - mass[poor]
        if mass[rich] <= full:
            large.pop()
            if mass[rich] < full:
                small.append(rich)
    return threshold, alias


class Country:
    """The tables of `incrowd.papers.examples._weights`, made ready for drawing.

    A person's age and sex are one number, ``age + AGES·sex``, and most tables are looked up by it.
    """

    AGES = weights.OLDEST + 1

    def __init__(self) -> None:
        self.person = Choice([[people for sex in weights.SEXES for people in weights.pyramid(sex)]])
        self.age = self._by_age(range(self.AGES))
        self.sex = self._by_sex()

        self.region_of_zip = _whole(place.region for place in weights.ZIPS)
        self.zip = Choice(_places())
        self.zip_context = self._by_age([first for first, _, _ in weights.PLACES])
        self.race = Choice(region.races for region in weights.REGIONS)

        self.city = _whole(region.city for region in weights.REGIONS)
        self.education = Choice(_schools())
        self.education_context = self._by_age(weights.SCHOOLING, 4) + self._by_sex(2)

        self.marital = Choice(table for tables in weights.MARRIAGES.values() for table in tables)
        self.marital_context = self._by_age(weights.MARRIAGES, 2) + self._by_sex()

        self.occupation = Choice(_work())
        self.occupation_context = self._by_age(weights.ACTIVITY, 2 * len(weights.EDUCATION)) + self._by_sex()

        self.income_by_job = np.outer(_whole(weights.INCOME_BY_EDUCATION), _whole(weights.TYPICAL_INCOME)).ravel()
        by_age = _whole(weights.INCOME_BY_AGE.values())[self._by_age(weights.INCOME_BY_AGE)]
        self.income_by_person = by_age * _whole(weights.INCOME_BY_SEX)[self._by_sex()]
        self.income_by_region = _whole(region.income for region in weights.REGIONS)
        self.spread = Spread([weights.EARNER_SPREAD, weights.DEPENDANT_SPREAD])

        self.condition = Choice(_health())
        self.condition_context = self._by_age(weights.HEALTH, 4) + self._by_sex(2)
        self.adult = self._by_age([0, weights.ADULT])

        self.income_gaps = _whole(weights.INCOME_GAPS)

    def _by_age(self, starts: Iterable[int], factor: int = 1) -> Codes:
        return np.tile(_whole(weights.band_of_age(list(starts))), 2) * factor

    def _by_sex(self, factor: int = 1) -> Codes:
        return np.repeat(_whole((0, 1)), self.AGES) * factor

    def people(self, first: int, last: int, seed: int) -> dict[str, Codes]:
        """Persons `first` to `last`, the latter excluded; codes of the values, −1 for an unanswered question."""
        age_sex_draw, zip_draw, race_draw, school_draw, marriage_draw, work_draw, income_draw, health_draw, gap_draw = (
            _draws(first, last, seed, 9)
        )
        person = self.person.pick(age_sex_draw)
        place = self.zip.pick(zip_draw, self.zip_context[person])
        region = self.region_of_zip[place]
        education = self.education.pick(school_draw, self.education_context[person] + self.city[region])
        work = self.occupation.pick(work_draw, self.occupation_context[person] + 2 * education)
        unschooled = self.adult[person] & (education < weights.BASIC)
        # Four percentages make 10⁸, of which 10⁴ are taken out early to stay within 64 bits; the spread makes 10³.
        typical = self.income_by_job[education * len(weights.OCCUPATIONS) + work] * self.income_by_person[person]
        typical = typical * self.income_by_region[region] // 10**4
        spread = self.spread.pick(income_draw, (work < weights.DEPENDANTS).astype(np.int64))
        income = typical * spread // (10**7 * weights.ROUNDED_TO) * weights.ROUNDED_TO
        return {
            "age": self.age[person],
            "sex": self.sex[person],
            "marital_status": self.marital.pick(marriage_draw, self.marital_context[person]),
            "race": self.race.pick(race_draw, region),
            "education": np.where(_slice(gap_draw, 0) < weights.EDUCATION_GAPS, -1, education),
            "occupation": np.where(_slice(gap_draw, 1) < weights.OCCUPATION_GAPS, -1, work),
            "income": np.where(_slice(gap_draw, 2) < self.income_gaps[work], -1, income),
            "region": region,
            "zip": place,
            "condition": self.condition.pick(health_draw, self.condition_context[person] + unschooled),
        }


def _whole(values: Iterable[int]) -> Codes:
    return np.array(list(values), np.int64)


def _draws(first: int, last: int, seed: int, wanted: int) -> Draws:
    """The first `wanted` of the 16 draws of each person, one line for each draw."""
    words = np.random.Philox(key=seed, counter=first * (_WORDS // 4)).random_raw((last - first) * _WORDS)
    # Little-endian everywhere, so that the halves of a word come in the same order.
    draws = words.astype("<u8", copy=False).view("<u4").reshape(last - first, 2 * _WORDS)
    return np.ascontiguousarray(draws[:, :wanted].T, np.uint32)


def _slice(draws: Draws, number: int) -> Draws:
    """Ten bits of a draw."""
    return (draws >> np.uint32(10 * number)) & np.uint32(1023)


def _places() -> Iterator[list[int]]:
    for _, city, elderly in weights.PLACES:
        pull = [(city if region.city else 100) * (region.elderly if elderly else 100) for region in weights.REGIONS]
        yield [place.people * pull[place.region] for place in weights.ZIPS]


def _schools() -> Iterator[list[int]]:
    for age, table in weights.SCHOOLING.items():
        for sex in weights.SEXES:
            for city in (False, True):
                percent = weights.WOMEN_WITH_DEGREES[age >= 45] if sex == "female" else 100
                percent *= weights.DEGREES_IN_CITIES if city else 100
                yield [weight * (percent if i >= weights.COLLEGE else 10_000) for i, weight in enumerate(table)]


def _work() -> Iterator[list[int]]:
    for both in weights.ACTIVITY.values():
        for jobs in weights.JOBS_BY_EDUCATION:
            for (*statuses, working), shares in zip(both, jobs, strict=True):
                yield [status * sum(shares) for status in statuses] + [working * share for share in shares]


def _health() -> Iterator[list[int]]:
    usual = (100,) * len(weights.CONDITIONS)
    for table in weights.HEALTH.values():
        for by_sex in (weights.HEALTH_OF_WOMEN, usual):
            for by_school in (usual, weights.HEALTH_WITHOUT_SCHOOL):
                yield [w * a * b for w, a, b in zip(table, by_sex, by_school, strict=True)]
