"""The tables and figures of Li, Qardaji and Su as data: the paper's bound and the exact value beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.core.errors import UnreachableError
from incrowd.core.numbers import as_given
from incrowd.theory.crowd import exact_delta, paper_applies, paper_delta, smallest_epsilon
from incrowd.theory.profile import amplify


@dataclass(frozen=True)
class Curve:
    """One line of a figure. Where Theorem 5 says nothing, `paper` is None and the exact value stands alone."""

    label: str
    x: tuple[float, ...]
    paper: tuple[float | None, ...]
    exact: tuple[float, ...]


TABLE_2_K = 20
TABLE_2_BETAS = (0.05, 0.1, 0.2)
TABLE_2_EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


def table_1() -> list[dict[str, float]]:
    """Amplification: an (ln 11, 1e-5)-DP and a (1, 0)-DP algorithm at sampling rates 1, 0.1 and 0.01."""
    rows = []
    for epsilon, delta in ((math.log(11), 1e-5), (1.0, 0.0)):
        for beta in (1.0, 0.1, 0.01):
            amplified_epsilon, amplified_delta = amplify(epsilon, delta, 1.0, beta)
            rows.append({"beta": beta, "epsilon": amplified_epsilon, "delta": amplified_delta})
    return rows


def table_2() -> list[Curve]:
    """δ at k = 20 for three sampling rates and six values of ε."""
    return [_against_epsilon(f"β = {as_given(beta)}", TABLE_2_K, beta, TABLE_2_EPSILONS) for beta in TABLE_2_BETAS]


def figure_2(points: int = 40) -> list[Curve]:
    """δ against ε at β = 0.2 for k = 5, 10, 20, 30, 50."""
    return [_against_epsilon(f"k = {k}", k, 0.2, _grid(2.0, points)) for k in (5, 10, 20, 30, 50)]


def figure_3(points: int = 40) -> list[Curve]:
    """δ against ε at k = 20 for β = 0.05 ... 0.4."""
    return [_against_epsilon(f"β = {as_given(b)}", 20, b, _grid(2.0, points)) for b in (0.05, 0.1, 0.2, 0.3, 0.4)]


def figure_4(points: int = 40) -> list[Curve]:
    """Pairs (k, β) of about equal protection: β doubles, k grows from 15 to 60."""
    pairs = ((15, 0.05), (22, 0.1), (35, 0.2), (60, 0.4))
    return [_against_epsilon(f"k = {k}, β = {as_given(b)}", k, b, _grid(2.0, points)) for k, b in pairs]


def figure_5(points: int = 40) -> list[Curve]:
    """Very small crowds, k = 1 ... 5, at β = 0.025."""
    return [_against_epsilon(f"k = {k}", k, 0.025, _grid(2.0, points)) for k in range(1, 6)]


def figure_6(ks: tuple[int, ...] = (5, 10, 15, 20, 30, 40, 50, 75, 100)) -> list[Curve]:
    """The ε that k buys at δ ≤ 1e-6, for β = 0.05 ... 0.4. Points that no ε reaches are left out."""
    curves = []
    for beta in (0.05, 0.1, 0.2, 0.3, 0.4):
        points = []
        for k in ks:
            try:
                points.append((float(k), _paper_epsilon(1e-6, k, beta), smallest_epsilon(1e-6, k, beta)))
            except UnreachableError:
                continue
        x, paper, exact = zip(*points, strict=True)
        curves.append(Curve(f"β = {as_given(beta)}", x, paper, exact))
    return curves


def _grid(top: float, points: int) -> tuple[float, ...]:
    return tuple(top * (i + 1) / points for i in range(points))


def _against_epsilon(label: str, k: int, beta: float, epsilons: tuple[float, ...]) -> Curve:
    return Curve(
        label,
        epsilons,
        tuple(paper_delta(k, beta, e) for e in epsilons),
        tuple(exact_delta(k, beta, e) for e in epsilons),
    )


def _paper_epsilon(delta: float, k: int, beta: float) -> float | None:
    """The smallest ε that Theorem 5 gives, on a grid of 1e-4; None if none below 20 will do."""
    low, high = math.ceil(-math.log1p(-beta) * 1e4), 200_000
    while low < high:
        middle = (low + high) // 2
        reached = paper_delta(k, beta, middle / 1e4)
        low, high = (low, middle) if reached is not None and reached <= delta else (middle + 1, high)
    found = low / 1e4
    reached = paper_delta(k, beta, found) if paper_applies(beta, found) else None
    return found if reached is not None and reached <= delta else None
