"""The law that covers every pair of records, in fractions, against the pairs themselves."""

import itertools
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest

from incrowd.theory import _blanket
from incrowd.theory.randomisation import RetentionReplacement, TransitionMatrix

Shares = Iterable[tuple[Fraction, Fraction, Fraction]]


def random_matrix(size: int, seed: int) -> TransitionMatrix:
    counts = np.random.default_rng(seed).integers(1, 30, size=(size, size))
    return TransitionMatrix([[Fraction(int(c), int(row.sum())) for c in row] for row in counts])


def excess(shares: Shares, r: Fraction, t: Fraction, c: Fraction) -> Fraction:
    """E(r·first − t·second − c)₊."""
    return sum((p * max(Fraction(0), r * x - t * y - c) for p, x, y in shares), Fraction(0))


def covers(larger: Shares, smaller: Shares) -> bool:
    """Whether it is larger in the convex order, for many multiples of the two likelihoods."""
    for r, t in itertools.product([Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)], repeat=2):
        ends = [r * x - t * y for _, x, y in [*larger, *smaller]]  # between these both sides are straight
        if any(excess(larger, r, t, c) < excess(smaller, r, t, c) for c in ends):
            return False
    return True


@pytest.mark.parametrize(("size", "seed"), [(2, 0), (2, 1), (3, 2), (4, 3), (5, 4)])
@pytest.mark.parametrize("levels", [4, 200])
def test_one_law_covers_every_pair(size: int, seed: int, levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_blanket, "_MOST_LEVELS", levels)
    matrix = random_matrix(size, seed)
    covering = _blanket._covering(matrix)
    for pair in _blanket._pairs(matrix):
        assert sum(p * x for p, x, _ in pair.shares) == sum(p * y for p, _, y in pair.shares) == 1
        assert covers(covering.shares, pair.shares)
    assert sum(p for p, _, _ in covering.shares) == 1
    assert sum(p * x for p, x, _ in covering.shares) == sum(p * y for p, _, y in covering.shares) == 1


def test_coupled_in_the_same_order_it_would_not() -> None:
    matrix = random_matrix(3, 7)
    levels, chances = _blanket._envelope(matrix)
    mass = sum(chances, Fraction(0))
    together = [(p / mass, mass * Fraction(v), mass * Fraction(v)) for p, v in zip(chances, levels, strict=True)]
    assert not all(covers(together, pair.shares) for pair in _blanket._pairs(matrix))


def test_the_blanket_is_that_of_the_column_minima(monkeypatch: pytest.MonkeyPatch) -> None:
    half, quarter, eighth = Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)
    rows = [[half, quarter, quarter], [eighth, half, 3 * eighth], [quarter, quarter, half]]
    matrix = TransitionMatrix(rows)
    assert _blanket._pairs(matrix)[0].mass == Fraction(1, 8) + Fraction(1, 4) + Fraction(1, 4)
    assert _blanket._covering(matrix).mass == Fraction(5, 8)
    monkeypatch.setattr(_blanket, "_MOST_BITS", 0)
    matrix = random_matrix(4, 5)
    assert 0 < _blanket._pairs(matrix)[0].mass - _blanket._covering(matrix).mass < Fraction(1, 2**60)


def test_a_value_that_nothing_turns_into_is_left_out() -> None:
    matrix = TransitionMatrix(
        [[Fraction(2, 3), Fraction(1, 3), 0], [Fraction(1, 3), Fraction(2, 3), 0], [Fraction(1, 2)] * 2 + [0]]
    )
    assert all(len(pair.shares) == 2 for pair in _blanket._pairs(matrix))
    assert _blanket._covering(matrix).shares


def test_of_retention_replacement_nothing_is_lost() -> None:
    """Its covering law is that of two different values: (high, low) and (low, high) with probability 1/K each."""
    rho, size = 0.25, 5
    matrix = TransitionMatrix(RetentionReplacement(rho, size).matrix())
    law = {(round(float(x), 9), round(float(y), 9)): Fraction(0) for _, x, y in _blanket._covering(matrix).shares}
    for p, x, y in _blanket._covering(matrix).shares:
        law[round(float(x), 9), round(float(y), 9)] += p
    assert {key: pytest.approx(float(p), abs=1e-9) for key, p in law.items() if p > 1e-9} == {
        (2.0, 0.75): 0.2,
        (0.75, 2.0): 0.2,
        (0.75, 0.75): 0.6,
    }


def test_few_pairs_are_looked_at_one_by_one() -> None:
    small, large = random_matrix(3, 0), random_matrix(17, 1)
    assert len(_blanket.worst_of([small, small])) == 81
    assert len(_blanket.worst_of([small, large])) == 1
    assert _blanket.worst_of([]) == [()]
