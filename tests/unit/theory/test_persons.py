"""δ for adding or removing a person with several rows: the table, brute force over all placements, and broken twins."""

import itertools
import math
import random
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest

from incrowd.core.errors import ParameterError
from incrowd.theory import _persons, crowd, enclosures
from incrowd.theory._balls import above
from incrowd.theory._cells import group_addition, group_removal
from incrowd.theory.crowd import CrowdProfile
from incrowd.theory.filters import OrderFilter
from incrowd.theory.profile import compose

ROWS = (1, 2, 3, 5, 10)
# (ε, β) and the k that each number of rows needs at δ = 1e-6.
NEEDED = {
    (1.0, 0.1): (8, 11, 15, 23, 51),
    (1.0, 0.2): (12, 20, 30, 55, 149),
    (1.0, 0.3): (17, 33, 53, 107, 323),
    (2.0, 0.3): (13, 19, 27, 47, 119),
    (2.0, 0.5): (23, 39, 61, 121, 357),
}
PAGE = Path(__file__).parents[3] / "docs" / "planning.md"


@pytest.mark.parametrize(("epsilon", "beta"), NEEDED)
def test_the_k_that_several_rows_need(epsilon, beta):
    assert tuple(crowd.smallest_k(epsilon, 1e-6, beta, rows) for rows in ROWS) == NEEDED[epsilon, beta]


def test_the_page_on_planning_has_this_table():
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    shown = {}
    for line in lines[lines.index("| ε, β | m = 1 | 2 | 3 | 5 | 10 |") + 1 :][: len(NEEDED)]:
        first, *needed = (cell.strip() for cell in line.strip("|").split("|"))
        epsilon, beta = (float(number) for number in first.split(","))
        shown[epsilon, beta] = tuple(int(k) for k in needed)
    assert shown == NEEDED


def law(n, k, beta):
    """What a cell of n rows shows, as fractions: 0 for nothing."""
    shown = {j: comb(n, j) * beta**j * (1 - beta) ** (n - j) for j in range(k, n + 1)}
    return {0: 1 - sum(shown.values()), **shown}


def divergence(larger, smaller, growth):
    """H(larger cells ‖ smaller cells), cells being independent."""
    total = Fraction(0)
    for outcome in itertools.product(*(sorted({*p, *q}) for p, q in zip(larger, smaller, strict=True))):
        p = math.prod((cell.get(o, Fraction(0)) for cell, o in zip(larger, outcome, strict=True)), start=Fraction(1))
        q = math.prod((cell.get(o, Fraction(0)) for cell, o in zip(smaller, outcome, strict=True)), start=Fraction(1))
        total += max(Fraction(0), p - growth * q)
    return total


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize(("k", "beta"), [(1, 0.25), (2, 0.5), (4, 0.25), (5, 0.75)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_one_cell_is_exact(k, beta, rows, epsilon):
    p, growth = Fraction(beta), Fraction(math.exp(epsilon))
    sizes = [(law(n + rows, k, p), law(n, k, p)) for n in range(40)]
    removal = max(divergence([more], [less], growth) for more, less in sizes)
    additions = [divergence([less], [more], growth) for more, less in sizes]
    addition = max(additions)
    found = max(above(ball) for ball in group_removal(k, beta, epsilon, rows))
    assert found == pytest.approx(float(removal), rel=1e-12)
    added = max((above(ball) for ball in group_addition(k, beta, epsilon, rows)), default=0.0)
    assert added >= float(addition) * (1 - 1e-12)
    if added == 0 or additions[-1] < addition:  # else the worst n lies beyond those tried
        assert added == pytest.approx(float(addition), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(("k", "beta", "rows"), [(2, 0.5, 2), (3, 0.25, 2), (2, 0.25, 3), (3, 0.5, 3)])
def test_no_placement_of_the_rows_exceeds_it(k, beta, rows, epsilon):
    """All tables of up to three cells, all ways to place the rows in them, both directions."""
    p, growth = Fraction(beta), Fraction(math.exp(epsilon))
    profile = CrowdProfile(k, beta, rows=rows)
    removal, addition = Fraction(profile.removal(epsilon)), Fraction(profile.addition(epsilon))
    alone = exceeded = Fraction(0)
    for placed in range(1, rows + 1):
        for partition in _persons.partitions(placed):
            highest = {1: 12, 2: 6, 3: 4}[len(partition)]
            for others in itertools.product(range(highest), repeat=len(partition)):
                more = [law(n + a, k, p) for n, a in zip(others, partition, strict=True)]
                less = [law(n, k, p) for n in others]
                forward = divergence(more, less, growth)
                assert forward <= removal * (1 + Fraction(1, 10**12))
                assert divergence(less, more, growth) <= addition + removal / 10**12
                exceeded = max(exceeded, forward)
                alone = max(alone, forward if len(partition) == 1 else 0)
    assert alone == exceeded  # all rows in one cell were the worst
    assert exceeded > Fraction(crowd.exact_delta(k, beta, epsilon))  # a twin that ignores the rows is caught


def test_one_row_is_as_it_was():
    g = random.Random(5)
    for _ in range(40):
        k, beta, epsilon = g.randrange(1, 80), g.uniform(0.02, 0.95), g.uniform(0, 3)
        assert crowd.exact_delta(k, beta, epsilon, rows=1) == crowd.exact_delta(k, beta, epsilon)
        cell = _persons.in_one_cell(k, beta, epsilon, 1)
        assert cell == pytest.approx(crowd.exact_delta(k, beta, epsilon), rel=1e-13)


def test_it_agrees_with_incomplete_beta_functions():
    g = random.Random(6)
    for _ in range(40):
        k, beta, rows = g.randrange(1, 120), g.uniform(0.02, 0.9), g.randrange(2, 12)
        epsilon = g.uniform(0, 3)
        enclosed = enclosures.crowd_group(k, beta, epsilon, rows)
        found = _persons.in_one_cell(k, beta, epsilon, rows)
        assert above(enclosed.lower()) <= found
        assert found == pytest.approx(float(enclosed), rel=1e-12)


@pytest.mark.parametrize("rows", [2, 3, 6, 12, 13, 40])
def test_it_lies_between_one_cell_and_the_chain(rows):
    g = random.Random(rows)
    for _ in range(6):
        k, beta, epsilon = g.randrange(2, 60), g.uniform(0.03, 0.7), g.uniform(0.05, 3)
        for direction in ("removal", "addition"):
            found = getattr(CrowdProfile(k, beta, rows=rows), direction)(epsilon)
            fewer = getattr(CrowdProfile(k, beta, rows=rows - 1), direction)(epsilon)
            one = getattr(CrowdProfile(k, beta), direction)(epsilon / rows)
            chain = sum(math.exp(i * epsilon / rows) for i in range(rows)) * one
            assert getattr(_persons.CellProfile(k, beta, rows), direction)(epsilon) <= max(found, 1e-300)
            assert found <= min(1.0, chain) * (1 + 1e-9) + 1e-300
            if rows <= 12:
                assert fewer <= found * (1 + 1e-12)


def test_far_out_the_chain_stops_rising():
    profile = CrowdProfile(20, 0.1, rows=30)
    values = [profile.delta(epsilon) for epsilon in (1.0, 10.0, 64.0, 500.0)]
    assert all(b <= a * 1.05 for a, b in itertools.pairwise(values))
    assert values[-1] < 1e-2


def test_all_partitions_are_there():
    assert [len(list(_persons.partitions(m))) for m in range(1, 13)] == [1, 2, 3, 5, 7, 11, 15, 22, 30, 42, 56, 77]
    assert set(_persons.partitions(4)) == {(4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1)}


@pytest.mark.parametrize("rows", [2, 5])
def test_every_parameter_can_be_solved_for(rows):
    k = crowd.plan(epsilon=1.0, delta=1e-6, beta=0.2, rows_per_person=rows).k
    assert crowd.exact_delta(k - 1, 0.2, 1.0, rows) > 1e-6 >= crowd.exact_delta(k, 0.2, 1.0, rows)
    beta = crowd.plan(epsilon=1.0, delta=1e-6, k=k, rows_per_person=rows).beta
    assert 0.2 <= beta < 0.22
    assert crowd.exact_delta(k, beta, 1.0, rows) <= 1e-6
    epsilon = crowd.plan(delta=1e-6, k=k, beta=0.2, rows_per_person=rows).epsilon
    assert 0.9 < epsilon <= 1.0
    assert crowd.plan(epsilon=1.0, k=k, beta=0.2, rows_per_person=rows).delta <= 1e-6
    both = crowd.plan(epsilon=1.0, delta=1e-6, rows_per_person=rows)
    assert both.k == crowd.smallest_k(1.0, 1e-6, both.beta, rows)
    assert both.paper is None


def test_where_one_cell_is_not_proved_enough_the_search_goes_on(monkeypatch):
    """If some other partition were worse, k and β must follow the bound, not the cell."""

    def worse(k, beta, epsilon, rows):
        return min(1.0, 3 * _persons.CellProfile(k, beta, rows).removal(epsilon))

    monkeypatch.setattr(_persons, "removal", worse)
    k = crowd.smallest_k(1.0, 1e-6, 0.2, 3)
    assert k > 30
    assert worse(k, 0.2, 1.0, 3) <= 1e-6 < worse(k - 1, 0.2, 1.0, 3)
    beta = crowd.largest_beta(1.0, 1e-6, k, 3)
    assert worse(k, beta, 1.0, 3) <= 1e-6 < worse(k, beta * 1.001, 1.0, 3)


def test_it_composes_and_can_be_filtered():
    profile = CrowdProfile(30, 0.2, rows=3)
    together = compose([profile, profile])
    assert profile.delta(1.0) < together.delta(1.0) <= 2 * profile.delta(0.5)
    one, several = (OrderFilter.within(3.0, 1e-5).costs(CrowdProfile(30, 0.2, rows=rows)) for rows in (1, 3))
    assert all(a.kappa < b.kappa for a, b in zip(one, several, strict=True))


@pytest.mark.parametrize("rows", [0, -1, 1.5, 1001, float("nan"), True])
def test_bad_numbers_of_rows_are_refused(rows):
    with pytest.raises(ParameterError):
        crowd.plan(epsilon=1.0, delta=1e-6, beta=0.2, rows_per_person=rows)


@pytest.mark.parametrize(
    ("k", "beta", "rows"), [(2, 0.3, 7), (1, 1e-6, 13), (20, 1e-40, 2), (3, 1 - 1e-9, 3), (1, 0.5, 2)]
)
def test_extreme_parameters_are_answered(k, beta, rows):
    """Where the last cell hardly falls, where e^ε leaves the floats, where neighbouring n differ in digit 80."""
    profile = CrowdProfile(k, beta, rows=rows)
    values = [profile.delta(epsilon) for epsilon in (0.0, 0.5, 3.0, 50.0, 1000.0)]
    assert all(0 <= b <= a * 1.05 <= 1.05 for a, b in itertools.pairwise(values))
    assert _persons.in_one_cell(k, beta, 0.0, rows) <= values[0]
