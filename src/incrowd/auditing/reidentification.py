"""How easily a person is found in a table by what others may know of them.

A group of f records that look alike in the quasi-identifiers stands for F people of the population. Three attackers
are usually told apart (El Emam and Dankar; Domingo-Ferrer et al.):

- the *prosecutor* knows that the person is in the table: a member of a group is found with probability 1/f;
- the *journalist* does not, and wants to find anybody at all: 1/F;
- the *marketer* wants to find as many as possible: of all records she gets Σ f·(1/F) right on average.

Whoever knows that a table holds everybody has F = f, and the journalist's and the marketer's risks are the
prosecutor's.

F is known if the population is at hand. If the table is a sample it is estimated by f divided by the sampling rate, or
by the sum of the members' weights. An estimate below f is raised to f: the members are there. Where F is uncertain the
mean of 1/F is more than 1/F̂ (Jensen), most of all in small groups, so beside it stands the individual risk of
Benedetti and Franconi: the mean of 1/F given f when F − f is negative binomial with the probability p = f/F̂,

    E[1/F] = Σ_{h≥f} (1/h) C(h−1, f−1) p^f (1−p)^(h−f) = p·∫ u^(f−1) / (p + (1−p)u) du, u from 0 to 1.

(1/h is the integral of x^(h−1); summing first and substituting u = px/(1 − (1−p)x) gives the last form.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError
from incrowd.histogram import Column, Histogram
from incrowd.sources.observed import run_starts
from incrowd.theory._numbers import require_between

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

SMALL = (2, 3, 5, 10)
"""Sizes below which the records in groups are counted."""

_TERMS = 64


@dataclass(frozen=True, eq=False)
class Population:
    """What is known of the people that a table stands for.

    Attributes:
        how: what is known: a table of everybody, weights, or a sampling rate.
        sizes: how many people look like each group of the table.
        total: how many people there are.
        uniques: how many of them are like nobody else; only a table of everybody tells.
        raised: groups that seemed to have fewer people than records, whose records were taken instead.
    """

    how: Literal["table", "weights", "rate"]
    sizes: Floats
    total: float
    uniques: int | None
    raised: int

    @property
    def estimator(self) -> str:
        """How the number of people of a group is found, in words."""
        return {
            "table": "people counted in the population table",
            "weights": "an estimate: the sum of the weights of the group’s records",
            "rate": "an estimate: the group’s records divided by the sampling rate",
        }[self.how]


@dataclass(frozen=True)
class Risk:
    """The probability with which records are found.

    Attributes:
        highest: of any record.
        mean: of a record.
        above: the share of records whose risk is above the threshold.
        expected: how many records would be found on average, the sum of all their risks.
        estimator: how it was found.
    """

    highest: float
    mean: float
    above: float
    expected: float
    estimator: str


@dataclass(frozen=True)
class SmallGroups:
    """Records in groups of fewer than `below`."""

    below: int
    groups: int
    records: int
    share: float


@dataclass(frozen=True)
class PopulationUniques:
    """People like nobody else.

    Attributes:
        in_table: how many records of the table are about such people.
        in_population: how many there are in the whole population, where that is told.
        estimator: how this was found; an estimate says so.
        exact: whether it was counted.
        believed: whether this is the number to believe. Of two estimates that is Zayatz's: in samples of real tables
            the truth lay between the model's and it, near it from a rate of 20% on, and below it else. So it errs on
            the safe side, and the model by a factor of up to forty on the other.
    """

    in_table: float
    in_population: float | None
    estimator: str
    exact: bool
    believed: bool


@dataclass(frozen=True)
class Risks:
    """How easily people are found in a table.

    Attributes:
        threshold: the risk above which records are counted as `above`.
        prosecutor: of one who knows that the person is in the table.
        journalist: of one who does not; None if nothing is known of the population.
        individual: the same by the model of Benedetti and Franconi; None unless the population is estimated.
        marketer: the share of all records that are found on average when all are matched.
        marketer_estimator: what that rests on.
        sample_uniques: records that are alone in their group.
        population_uniques: how many people are like nobody else, by each way to tell.
        small_groups: records in groups below certain sizes.
    """

    threshold: float
    prosecutor: Risk
    journalist: Risk | None
    individual: Risk | None
    marketer: float
    marketer_estimator: str
    sample_uniques: int
    population_uniques: tuple[PopulationUniques, ...]
    small_groups: tuple[SmallGroups, ...]


def by_rate(sizes: Integers, rate: float) -> Population:
    """A sample of that rate."""
    share = require_between("the sampling rate", rate, 0.0, 1.0, open_high=False)
    return Population("rate", sizes / share, float(sizes.sum() / share), None, 0)


def by_weights(sizes: Integers, weights: Floats) -> Population:
    """A sample with weights, given as sums over each group."""
    return _raised("weights", sizes, weights, float(np.maximum(weights, sizes).sum()), None)


def by_table(groups: Histogram, everybody: Histogram) -> Population:
    """The whole population, counted by the same columns.

    Args:
        groups: the table by its quasi-identifiers.
        everybody: the population by the same columns, labels possibly others.
    """
    known = np.ones(len(everybody), dtype=bool)
    columns = []
    for column in groups.columns:
        codes = {label: code for code, label in enumerate(column.labels)}
        there = np.array([codes.get(label, -1) for label in everybody[column.name].labels])
        found = there[everybody[column.name].codes]
        known &= found >= 0
        columns.append((column, found))
    of = np.concatenate([np.zeros(len(groups), dtype=np.int64), np.ones(int(known.sum()), dtype=np.int64)])
    both = Histogram.of(
        [
            *(Column(str(i), c.labels, np.concatenate([c.codes, code[known]])) for i, (c, code) in enumerate(columns)),
            Column("of", ("table", "population"), of),
        ],
        np.concatenate([groups.counts, everybody.counts[known]]),
    )
    *quasi, of_column = both.columns
    number = np.cumsum(run_starts([column.codes for column in quasi])) - 1
    table, people = (
        np.bincount(number, weights=both.counts * (of_column.codes == part)).astype(np.float64) for part in (0, 1)
    )
    here = table > 0
    if not np.array_equal(table[here], groups.counts):
        raise InternalError("The groups of a table were lost beside its population.")
    return _raised(
        "table", groups.counts, people[here], float(everybody.total), int(np.count_nonzero(everybody.counts == 1))
    )


def _raised(
    how: Literal["table", "weights"], sizes: Integers, people: Floats, total: float, uniques: int | None
) -> Population:
    low = people < sizes
    return Population(how, np.where(low, sizes, people), max(total, float(sizes.sum())), uniques, int(low.sum()))


def risks(sizes: Integers, population: Population | None = None, threshold: float = 0.2) -> Risks:
    """The risks of a table.

    Args:
        sizes: the records of each group.
        population: what is known of the people behind it.
        threshold: the risk above which records are counted.
    """
    limit = require_between("the threshold", threshold, 0.0, 1.0, open_high=False)
    total = int(sizes.sum())
    prosecutor = _risk(sizes, 1.0 / sizes, limit, "1/f, f the records of the group")
    journalist = individual = None
    uniques = []
    if population is not None:
        journalist = _risk(sizes, 1.0 / population.sizes, limit, f"1/F, F {population.estimator}")
        if population.how == "table":
            alone = float(np.count_nonzero((sizes == 1) & (population.sizes == 1)))
            uniques.append(
                PopulationUniques(
                    alone, float(population.uniques or 0), population.estimator, exact=True, believed=True
                )
            )
        else:
            rates = sizes / population.sizes
            model = "E[1/F] of Benedetti and Franconi’s negative binomial model, from the estimated F"
            individual = _risk(sizes, individual_risk(sizes, rates), limit, model)
            uniques += _estimated_uniques(sizes, rates, population.total)
    marketer = journalist or prosecutor
    return Risks(
        threshold=limit,
        prosecutor=prosecutor,
        journalist=journalist,
        individual=individual,
        marketer=marketer.mean,
        marketer_estimator=f"the mean of {marketer.estimator}",
        sample_uniques=int(np.count_nonzero(sizes == 1)),
        population_uniques=tuple(uniques),
        small_groups=tuple(
            SmallGroups(k, int(np.count_nonzero(sizes < k)), records := int(sizes[sizes < k].sum()), records / total)
            for k in SMALL
        ),
    )


def _risk(sizes: Integers, risk: Floats, threshold: float, estimator: str) -> Risk:
    expected, total = float((sizes * risk).sum()), int(sizes.sum())
    # A risk of exactly 1/5 is not above 0.2, whatever the last bit says.
    above = int(sizes[risk > threshold * (1 + 1e-12)].sum())
    return Risk(float(risk.max()), expected / total, above / total, expected, estimator)


def individual_risk(sizes: Integers, rates: Floats) -> Floats:
    """E[1/F] for groups of so many records, each record of a group being sampled with the group's rate.

    With z = 1 − p and r_f for the risk, the integral gives z·r_{f+1} + p·r_f = p/f and r_1 = −(p/z)·ln p. Upwards in f
    errors shrink by p/z, so this is used where p ≤ z. Expanding in z gives (p/f)·(1 + z/(f+1)·(1 + 2z/(f+2)·(…))),
    whose terms fall by half each, or are below 1/C(f+n, n), so that 64 of them suffice for z ≤ 1/2 or f ≥ 64.
    """
    pairs, where = np.unique(np.stack([sizes.astype(np.float64), rates], axis=1), axis=0, return_inverse=True)
    f, p = pairs[:, 0], pairs[:, 1]
    z = 1 - p
    term = np.ones_like(f)
    total = term.copy()
    for n in range(1, _TERMS):
        term = term * (z * n / (f + n))
        total += term
    risk: Floats = p / f * total
    upwards = np.flatnonzero((z > 0.5) & (f < _TERMS))
    if len(upwards):
        odds = p[upwards] / z[upwards]
        step = -odds * np.log(p[upwards])
        for size in range(1, _TERMS):
            here = f[upwards] == size
            risk[upwards[here]] = step[here]
            step = odds * (1 / size - step)
    return risk[where.reshape(-1)]


def _estimated_uniques(sizes: Integers, rates: Floats, people: float) -> list[PopulationUniques]:
    """Two estimates of how many people are like nobody else."""
    alone = sizes == 1
    by_model = float(rates[alone].sum())  # P(F = 1 | f = 1) of the negative binomial model is p
    share = zayatz(sizes, people)
    records = float(alone.sum())
    return [
        PopulationUniques(
            by_model,
            None,
            "an estimate by the negative binomial model: each record alone in its group is about such a person with "
            "the probability that it was sampled",
            exact=False,
            believed=False,
        ),
        PopulationUniques(
            records * share,
            records * share * people / float(sizes.sum()),
            "an estimate after Zayatz: sizes of groups in the population distributed as in the table, records drawn "
            "with equal probability",
            exact=False,
            believed=True,
        ),
    ]


def zayatz(sizes: Integers, people: float) -> float:
    """P(F = 1 | f = 1), taking the distribution of group sizes in the table for the one in the population.

    With J_i groups of i records among n records of N people, and P(f = 1 | F = i) hypergeometric,
    J_1·P(1|1) / Σ J_i·P(1|i). 0 if no record is alone.
    """
    from scipy.special import gammaln

    n = float(sizes.sum())
    i, groups = np.unique(sizes, return_counts=True)
    if i[0] != 1:
        return 0.0
    left = people - n  # people who are not in the table
    reachable = i - 1 <= left  # a group that large would have to be sampled twice at least
    size, weight = i[reachable].astype(np.float64), groups[reachable]
    log = (
        np.log(size)
        + gammaln(left + 1)
        - gammaln(left - size + 2)
        - gammaln(people)
        + gammaln(people - size + 1)
        + np.log(n / people)
    )
    likelihood = weight * np.exp(log)
    return float(likelihood[0] / likelihood.sum())
