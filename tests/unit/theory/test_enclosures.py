"""What is reported against balls that enclose it, on random parameters: never inside, and how far outside.

The counts and excesses on the page of limits were found by `python tests/unit/theory/test_enclosures.py 4000`.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from incrowd.core.errors import UnreachableError
from incrowd.mechanisms.pram.state import factor
from incrowd.theory import enclosures, filters
from incrowd.theory._balls import above, below, precision
from incrowd.theory._sampling_events import tail
from incrowd.theory.crowd import (
    DELTA_FLOOR,
    CrowdProfile,
    largest_beta,
    paper_applies,
    paper_delta,
    smallest_epsilon,
    smallest_k,
)
from incrowd.theory.profile import ApproximateDP, Relation, amplify, to_replace_one
from incrowd.theory.randomisation import (
    Attribute,
    RetentionReplacement,
    TransitionMatrix,
    local_epsilon,
    pk,
    retention_for_epsilon,
    retention_for_k,
)
from incrowd.theory.sampling import largest_rate, sample_delta
from incrowd.theory.shuffling import BLANKET, central_delta

Case = tuple[float, float]
"""What is reported, and the end of the ball that it must not be inside of."""


@dataclass(frozen=True)
class Excess:
    """How far the reported numbers lie outside, relatively."""

    cases: int
    wrong: int
    least: float
    median: float
    largest: float


def measure(cases: Iterator[Case], *, upwards: bool) -> Excess:
    """The excess of bounds that are rounded up, or down."""
    outside, wrong = [], 0
    for reported, end in cases:
        wrong += reported < end if upwards else reported > end
        gap = abs(Fraction(reported) - Fraction(end))
        outside.append(float(gap / abs(Fraction(end))) if end else float(gap))
    return Excess(len(outside), wrong, min(outside), statistics.median(outside), max(outside))


def _crowd(g: random.Random) -> tuple[int, float, float]:
    k = int(math.exp(g.uniform(0, math.log(3000))))
    beta = g.choice([g.uniform(0.001, 0.999), math.exp(g.uniform(-20, -1)), 1 - math.exp(g.uniform(-12, -1))])
    return k, beta, g.choice([0.0, g.uniform(0, 3), math.exp(g.uniform(-9, 3))])


def crowd_deltas(g: random.Random, direction: str) -> Case | None:
    """δ of a crowd in one direction, against incomplete beta functions."""
    k, beta, epsilon = _crowd(g)
    reported = getattr(CrowdProfile(k, beta), direction)(epsilon)
    if reported <= DELTA_FLOOR:
        return None
    enclose = enclosures.crowd_removal if direction == "removal" else enclosures.crowd_addition
    return reported, above(enclose(k, beta, epsilon))


def crowd_solutions(g: random.Random) -> Case | None:
    """δ at the ε, k or β that was found for a δ asked for: the enclosed one must not exceed it."""
    k, beta, epsilon = int(math.exp(g.uniform(0.7, 5))), g.uniform(0.02, 0.9), g.uniform(0.05, 3)
    delta = 10 ** g.uniform(-9, -3)
    try:
        match g.randrange(3):
            case 0:
                epsilon = smallest_epsilon(delta, k, beta)
            case 1:
                k = smallest_k(epsilon, delta, beta)
            case _:
                beta = largest_beta(epsilon, delta, k)
    except UnreachableError:
        return None
    found = [enclose(k, beta, epsilon) for enclose in (enclosures.crowd_removal, enclosures.crowd_addition)]
    return delta, max(map(above, found))


def paper_deltas(g: random.Random) -> Case | None:
    """Theorem 5's δ, against the largest of the first two hundred tails."""
    k, beta, epsilon = int(math.exp(g.uniform(0, 4))), g.uniform(0.01, 0.6), g.uniform(0.1, 2)
    if not paper_applies(beta, epsilon):
        return None
    reported = paper_delta(k, beta, epsilon)
    with precision():
        p = arb(beta)
        gamma = 1 - (1 - p) * (-arb(epsilon)).exp()
        tails = []
        for J in range(k, k + 200):
            n = (J / gamma).lower().floor().unique_fmpz()  # n < J/γ unless that is a whole number, which is no float's
            tails.append(above(enclosures.binomial_tail(int(n), J, p)))
    return None if reported is None else (reported, max(tails))


def _attributes(g: random.Random) -> list[RetentionReplacement]:
    sizes = [g.choice([2, 3, 5, 10, 100, 10_000]) for _ in range(g.randrange(1, 5))]
    return [RetentionReplacement(g.choice([g.uniform(0.01, 0.99), math.exp(g.uniform(-20, -1))]), s) for s in sizes]


def _matrix(g: random.Random) -> TransitionMatrix:
    size = g.randrange(2, 7)
    rows = [[g.randrange(1, 1000) for _ in range(size)] for _ in range(size)]
    return TransitionMatrix([[Fraction(entry, sum(row)) for entry in row] for row in rows])


def local_epsilons(g: random.Random) -> Case:
    """ε₀ of products of retention-replacements and matrices."""
    laws = [*_attributes(g), *(_matrix(g) for _ in range(g.randrange(2)))]
    return local_epsilon(laws), above(enclosures.local_epsilon(laws))


def linking(g: random.Random) -> Case:
    """Pk of the same, against fractions."""
    laws, records = [*_attributes(g), *(_matrix(g) for _ in range(g.randrange(2)))], g.randrange(2, 10**7)
    with precision():
        exact = enclosures.pk(laws, records)
        return pk(laws, records), below(arb(exact.numerator) / exact.denominator)


def retentions(g: random.Random) -> Case:
    """ε₀ at the ρ that was found for an ε asked for, or 1/k at the one for a k."""
    sizes, records = [g.choice([2, 3, 5, 10, 100]) for _ in range(g.randrange(1, 5))], g.randrange(100, 10**6)
    if g.random() < 0.5:
        epsilon = g.uniform(0.01, 10)
        rho = retention_for_epsilon(epsilon, sizes)
        return epsilon, above(enclosures.local_epsilon([RetentionReplacement(rho, size) for size in sizes]))
    k = g.uniform(1.5, records / 2)
    rho = retention_for_k(k, records, sizes)
    exact = 1 / enclosures.pk([RetentionReplacement(rho, size) for size in sizes], records)
    with precision():
        return above(1 / arb(k)), above(arb(exact.numerator) / exact.denominator)


def shuffled(g: random.Random) -> Case | None:
    """The central δ by both proofs, against Poisson's formula in balls."""
    sizes = [g.choice([2, 3, 5, 10, 100]) for _ in range(g.randrange(1, 4))]
    laws: list[Attribute] = [RetentionReplacement(g.uniform(0.02, 0.7), size) for size in sizes]
    if g.random() < 0.3:
        size = g.choice([2, 3])
        weights = [[g.randrange(1, 40) for _ in range(size)] for _ in range(size)]
        laws[0] = TransitionMatrix([[Fraction(entry, sum(row)) for entry in row] for row in weights])
    records = int(math.exp(g.uniform(1, 16)))
    epsilon = local_epsilon(laws) * math.exp(g.uniform(-5, -0.1))
    rate = g.choice([1.0, 1.0, g.uniform(0.01, 0.99)])
    found = central_delta(laws, records, epsilon, rate).by_bound
    bound = g.choice(sorted(found))
    if found[bound] <= 1e-299:
        return None
    enclosed = enclosures.central_delta(laws, records, epsilon, bound, rate)
    return None if enclosed is None else (found[bound], enclosed)


def sample_deltas(g: random.Random, end: str = "delta") -> Case | None:
    """δ of a plain sample (one unknown row), against a product of incomplete beta functions."""
    counts = [int(math.exp(g.uniform(0, 9))) for _ in range(g.randrange(1, 6))]
    epsilon = Fraction(g.randrange(1, 200), 100)
    rate = g.uniform(0.001, 0.9) * float(epsilon / (1 + epsilon))
    if g.random() < 0.3:
        rate = largest_rate(counts, float(epsilon), 10 ** g.uniform(-6, -1)).rate
    found = sample_delta(counts, rate, float(epsilon))
    if found.delta <= 1e-260:
        return None
    with precision():
        caps = [math.floor(n * epsilon / (1 + epsilon)) for n in counts]
        tails = [enclosures.binomial_tail(n, cap + 1, arb(rate)) for n, cap in zip(counts, caps, strict=True)]
        broken = -sum(((-tail).log1p() for tail in tails), start=arb(0)).expm1()
        return (found.delta, above(broken)) if end == "delta" else (found.delta_at_least, max(0.0, below(broken)))


def points(g: random.Random) -> Case:
    """The profile of an (ε,δ) point."""
    at, delta = math.exp(g.uniform(-9, 4)), g.choice([0.0, 10 ** g.uniform(-12, -1)])
    epsilon = at * g.random()
    with precision():
        share = -(arb(epsilon) - arb(at)).expm1() / (1 + (-arb(at)).exp())
        return ApproximateDP(at, delta, Relation.ADD_REMOVE).removal(epsilon), above(delta + (1 - arb(delta)) * share)


def replaced(g: random.Random) -> Case:
    """The δ of an (ε,δ) point that is converted to replace-one."""
    at, delta = math.exp(g.uniform(-9, 2)), 10 ** g.uniform(-12, -3)
    converted = to_replace_one(ApproximateDP(at, delta, Relation.ADD_REMOVE))
    with precision():
        return converted.removal(2 * at), min(1.0, above((1 + arb(at).exp()) * delta))


def amplified(g: random.Random) -> Case:
    """ε at a lower sampling rate."""
    epsilon, first = math.exp(g.uniform(-9, 6.8)), g.uniform(0.01, 1)
    second = first * math.exp(g.uniform(-20, 0))
    with precision():
        exact = (1 + arb(second) / arb(first) * arb(epsilon).expm1()).log()
        return amplify(epsilon, 0.0, first, second)[0], above(exact)


def tails(g: random.Random) -> Case | None:
    """A tail by SciPy with what is allowed for its error, up to 10¹² rows."""
    n, rate = int(math.exp(g.uniform(0, 27.6))), math.exp(g.uniform(-12, -0.02))
    cap = min(n - 1, max(0, int(n * rate + g.uniform(-3, 30) * math.sqrt(n * rate + 1))))
    found = float(tail(np.array([n]), np.array([cap]), rate)[0])
    if found <= 1e-270:
        return None
    allowed = found * (1 + 1e-13 * math.sqrt(n) + 2e-16 * n)
    return allowed, above(enclosures.sharp(lambda: enclosures.binomial_tail(n, cap + 1, arb(rate)))())


def kappas_of_points(g: random.Random) -> Case:
    """κ of an (ε,δ) point in an order filter."""
    order, epsilon = 2.0 ** g.uniform(-2, 12), math.exp(g.uniform(-9, 3))
    with precision(512):
        e, a = arb(epsilon), arb(order)
        exact = ((((a + 1) * e).exp() + (-a * e).exp()) / (1 + e.exp())).log()
        return filters._kappa_of_point(order, epsilon), above(exact)


def kappas_of_crowds(g: random.Random) -> Case | None:
    """κ of a crowd at any cut: the same chords, summed in balls."""
    part, order = CrowdProfile(g.randrange(2, 60), g.uniform(0.02, 0.6)), g.choice(filters._ORDERS)
    removal, addition, step = filters._sampled(part)
    forward, backward = g.choice([(removal, addition), (addition, removal)])
    eta = float(forward[g.randrange(len(forward))])
    reported = filters._kappa(order, forward, backward, eta, step)
    with precision():
        a = arb(order)
        integrals = chords(forward, eta, a, step) + chords(backward, eta, -(a + 1), step)
        exact = (1 - arb(eta) + a * (a + 1) * integrals).log()
    return (reported, max(0.0, above(exact))) if math.isfinite(reported) else None


def chords(profile: Sequence[float], eta: float, rate: arb, step: float) -> arb:
    """∫ e^{rate·ε} (H_ε − η)⁺ dε with H linear in e^ε between grid points, and constant beyond the last."""
    h = arb(step)
    whole = (rate * h).expm1() / rate
    right = (((rate + 1) * h).expm1() / (rate + 1) - whole) / h.expm1()
    total = arb(0)
    over = [max(arb(0), arb(float(delta)) - eta) for delta in profile]
    for i, (first, second) in enumerate(itertools.pairwise(over)):
        if first != 0:
            total += (rate * h * i).exp() * (first * (whole - right) + second * right)
    return total + (over[-1] * (rate * h * (len(over) - 1)).exp() / -rate if over[-1] != 0 else 0)


def filtered(g: random.Random) -> Case:
    """ε of an order filter for what was spent."""
    order, kappa, cut = g.choice(filters._ORDERS), math.exp(g.uniform(-7, 4)), 10 ** g.uniform(-12, -7)
    delta = 10 ** g.uniform(-6, -2)
    reported = filters.OrderFilter(order, kappa, cut).epsilon(kappa, cut, delta)
    with precision():
        a = arb(order)
        constant = a * a.log() - (1 + a) * (1 + a).log()
        return reported, max(0.0, above((kappa + constant - (arb(delta) - arb(cut)).log()) / a))


def growth(g: random.Random) -> Case:
    """e^ε as sentences print it."""
    epsilon = math.exp(g.uniform(-9, 5))
    with precision():
        return float(factor(epsilon)), above(arb(epsilon).exp())


UP, DOWN = True, False
BOUNDS: dict[str, tuple[Callable[[random.Random], Case | None], bool, int]] = {
    "δ of a crowd, removal": (lambda g: crowd_deltas(g, "removal"), UP, 1),
    "δ of a crowd, addition": (lambda g: crowd_deltas(g, "addition"), UP, 1),
    "ε, k, β found for a crowd": (crowd_solutions, UP, 10),
    "Theorem 5's δ": (paper_deltas, UP, 20),
    "ε₀ of randomised records": (local_epsilons, UP, 1),
    "k of randomised records": (linking, DOWN, 1),
    "ρ found for ε or k": (retentions, UP, 4),
    "δ of a shuffled table": (shuffled, UP, 10),
    "δ of a plain sample": (sample_deltas, UP, 2),
    "δ of a plain sample, at least": (lambda g: sample_deltas(g, "delta_at_least"), DOWN, 2),
    "tails by SciPy": (tails, UP, 2),
    "δ of an (ε,δ) point": (points, UP, 1),
    "δ of a point, replace-one": (replaced, UP, 1),
    "ε at a lower rate": (amplified, UP, 1),
    "κ of a point in a filter": (kappas_of_points, UP, 1),
    "κ of a crowd in a filter": (kappas_of_crowds, UP, 40),
    "ε of a filter": (filtered, UP, 1),
    "e^ε in sentences": (growth, UP, 1),
}
"""For each kind of bound: a random case, which way it is rounded, and how many times fewer cases are enough."""


def excess(name: str, cases: int, seed: int = 0) -> Excess:
    """The excess of one kind of bound over many cases."""
    draw, upwards, cost = BOUNDS[name]
    generator = random.Random(f"{name} {seed}")

    def drawn() -> Iterator[Case]:
        left = max(1, cases // cost)
        while left:
            case = draw(generator)
            if case is not None:
                yield case
                left -= 1

    return measure(drawn(), upwards=upwards)


@pytest.mark.parametrize("name", BOUNDS)
def test_no_reported_bound_is_inside_its_enclosure(name):
    assert excess(name, 250).wrong == 0


@pytest.mark.parametrize("name", ["δ of a crowd, removal", "δ of a crowd, addition"])
def test_the_delta_of_a_crowd_is_the_least_float_not_below_it(name):
    assert excess(name, 300, seed=1).largest == 0


def test_a_twin_that_rounds_to_the_nearest_is_caught():
    """Half of the reported numbers would be inside, and the comparison would see it."""
    generator = random.Random(3)
    cases = [crowd_deltas(generator, "removal") for _ in range(100)]
    lowered = [(math.nextafter(reported, 0.0), end) for reported, end in filter(None, cases)]
    assert measure(iter(lowered), upwards=True).wrong == len(lowered)


def test_a_shuffled_table_of_few_records_is_enclosed_by_the_definition():
    """The expectation in the bound itself, summed over all outcomes: Poisson's formula is not below it."""
    for seed in range(12):
        g = random.Random(seed)
        size, rho, records = g.choice([2, 3, 5]), Fraction(g.randrange(5, 60), 100), g.randrange(2, 9)
        law = RetentionReplacement(float(rho), size)
        epsilon = local_epsilon([law]) * g.uniform(0.05, 0.8)
        with precision():
            kept = arb(law.retention)
            low, high, grown = 1 - kept, 1 + (size - 1) * kept, arb(epsilon).exp()
            values = (high - grown * low, low - grown * high, low - grown * low)
            mean = arb(0)
            for i, j, m in itertools.product(range(records + 1), repeat=3):
                if i + j + m <= records and (size > 2 or not m):
                    ways = math.factorial(records)
                    for part in (i, j, m, records - i - j - m):
                        ways //= math.factorial(part)
                    share = (
                        ways * (low / size) ** (i + j) * (low * (size - 2) / size) ** m * kept ** (records - i - j - m)
                    )
                    excess_there = i * values[0] + j * values[1] + m * values[2]
                    mean += share * (excess_there if excess_there > 0 else 0)
            truth = mean / (low * records)
        bound = enclosures.central_delta([law], records, epsilon, BLANKET)
        assert truth <= bound
        assert bound <= 1.05 * float(truth) + 1e-9


def test_a_matrix_like_retention_has_its_numbers():
    """Two ways to the same law: the formulas for retention, and all entries of its matrix."""
    law = RetentionReplacement(0.25, 4)
    other = Fraction(3, 16)
    rows = [[other + (i == j) * Fraction(1, 4) for i in range(4)] for j in range(4)]
    matrix = TransitionMatrix(rows)
    assert enclosures.pk([law], 1000) == enclosures.pk([matrix], 1000)
    assert enclosures.local_epsilon([law]).overlaps(enclosures.local_epsilon([matrix]))


def test_too_many_likelihoods_are_left_alone():
    laws = [RetentionReplacement(0.1 + i / 100, 10) for i in range(12)]
    assert enclosures.central_delta(laws, 10_000, 0.5, BLANKET) is None
    assert enclosures.central_delta(laws, 10_000, 0.5, "another proof") == 1.0


def main(cases: int) -> None:
    """Print the table."""
    print("| bound | cases | inside | least excess | median | largest |\n|---|---:|---:|---:|---:|---:|")
    for name in BOUNDS:
        found = excess(name, cases)
        ends = " | ".join(f"{value:.0e}" if value else "0" for value in (found.least, found.median, found.largest))
        print(f"| {name} | {found.cases:,} | {found.wrong} | {ends} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
