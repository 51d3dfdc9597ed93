"""Figures 2 to 4 of Ikarashi, Kikuchi, Chida, Takahashi, on a stand-in for their census."""

import math

import numpy as np
import pytest

from incrowd.mechanisms.pram import draw as pram
from incrowd.mechanisms.pram.blocks import Block
from incrowd.papers.examples.census1990 import RECORDS, SIZES, census_1990
from incrowd.papers.gallery import Material, randomised
from incrowd.randomness import RandomSource
from incrowd.theory.randomisation import RetentionReplacement

QUICK = Material(quick=True)


@pytest.fixture(scope="module")
def people():
    return census_1990(245_820)


def test_the_stand_in_has_the_columns_of_table_1_and_depends_on_nothing_but_itself(people):
    assert RECORDS == 2_458_285
    assert [len(column.labels) for column in people.columns] == [2, 18, 12, 3, 3, 18, 20] == list(SIZES.values())
    assert all(len(np.unique(column.codes)) == len(column.labels) for column in people.columns)
    first = census_1990(1000)
    assert first == census_1990(1000)
    assert first.total == 1000
    assert int(first.counts @ np.arange(len(first))) == 367_836
    # income depends on schooling: far from independent
    pairs = people.project(["income", "education"])
    table = np.zeros((12, 18))
    table[pairs["income"].codes, pairs["education"].codes] = pairs.counts
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    assert np.sum((table - expected) ** 2 / expected) > 0.1 * people.total


def test_figure_2_errors_are_large_at_245_records_and_fall(people):
    runs = randomised.figure_2(QUICK).numbers["runs"]
    assert [run["records"] for run in runs] == [245, 2458, 24_582, 245_820]
    errors = [run["em"] for run in runs]
    assert errors[0] > 1.5
    assert errors[-1] < errors[0] / 3
    inverse = [run["inverse"] for run in runs]
    assert inverse == sorted(inverse, reverse=True)
    assert inverse[0] > 1000 * inverse[-1]
    local, central = [run["epsilon"] for run in runs], [run["central"] for run in runs]
    assert local == sorted(local)
    assert central == sorted(central, reverse=True)
    for run in runs:
        assert run["epsilon"] == pytest.approx(math.log(run["records"] - 1) / 2, rel=1e-9)


def test_near_zero_at_all_records():
    """The paper's four columns and 2,458,285 records: a hundredth of the error at 245, by the expected errors alone."""
    whole = census_1990().project(list(SIZES)[:4])
    found = randomised.run(whole, list(SIZES)[:4], 2, RandomSource.seeded(1), 100)
    assert found.rho == pytest.approx(0.45092, abs=5e-6)
    assert found.epsilon == pytest.approx(7.357, abs=5e-4)
    assert found.em < 0.15
    assert found.inverse < 0.5


def test_figures_3_and_4_errors_grow_with_columns_and_with_k():
    columns = randomised.figure_3(QUICK).numbers["runs"]
    assert [run["columns"] for run in columns] == [1, 2, 3, 4, 5]
    assert [run["em"] for run in columns] == sorted(run["em"] for run in columns)
    assert len({round(run["epsilon"], 9) for run in columns}) == 1
    crowds = randomised.figure_4(QUICK).numbers["runs"]
    assert [run["em"] for run in crowds] == sorted(run["em"] for run in crowds)
    assert crowds[-1]["k"] == 100
    assert crowds[-1]["em"] < 4 * crowds[0]["em"]


def test_without_undoing_it_the_error_does_not_fall(people):
    """The twin that counts released rows: its error stays where it is, however many records there are."""
    errors = []
    for records in (2_458, 245_820):
        part = people.project(["sex", "age"])
        part = part.with_counts(RandomSource.seeded(records).sample_without_replacement(part.counts, records))
        blocks = [Block((n,), (s,), RetentionReplacement(0.25, s)) for n, s in (("sex", 2), ("age", 18))]
        out = pram.run(part, blocks, RandomSource.seeded(3))
        counts = [np.zeros((2, 18)), np.zeros((2, 18))]
        for table, cells in zip((part, out), counts, strict=True):
            cells[table["sex"].codes, table["age"].codes] = table.counts
        errors.append(np.abs(counts[0] - counts[1]).sum() / records)
    assert errors[1] > errors[0] / 2


def test_a_copy_of_the_census_of_ones_own(tmp_path):
    names = ["SEX", "AGE", "RPINCOME", "WORK89", "WORKLWK", "YEARSCH", "TRAVTIME", "CASEID"]
    rng = np.random.default_rng(0)
    limits = [2, 91, 90_000, 3, 3, 18, 100, 10**6]
    rows = np.stack([rng.integers(0, limit, 3000) for limit in limits], axis=1)
    path = tmp_path / "census.csv"
    path.write_text("\n".join([",".join(names).lower(), *(",".join(map(str, row)) for row in rows)]) + "\n")
    found = randomised._own(path)
    assert found.total == 3000
    assert [len(c.labels) for c in found.columns] == list(SIZES.values())
    age = np.bincount(found["age"].codes, weights=found.counts, minlength=18)
    assert age[17] == (rows[:, 1] >= 85).sum()
