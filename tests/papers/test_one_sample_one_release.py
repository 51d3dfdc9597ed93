"""Why one sample serves one release, and what keeps a guarantee (Li, Qardaji, Su, §2.4 to §2.6)."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from incrowd.theory.crowd import exact_delta


def test_the_xor_example_with_a_private_answer_on_the_same_sample():
    """§2.6: "more men than women" XOR "t is there", beside a private share of men of the very same sample."""
    rng = np.random.default_rng(26)
    runs, people, beta = 400_000, 10_000, 0.5

    def event(t_in_table):
        men, women = (rng.binomial(people // 2, beta, runs) for _ in range(2))
        t_sampled = rng.random(runs) < beta if t_in_table else np.zeros(runs, dtype=bool)
        share = men / (men + women) + rng.laplace(scale=1 / 5000, size=runs)  # ε = 1
        first = np.where(men + women >= 1000, (men > women) ^ t_sampled, False)
        return float(np.mean((share >= 0.5) & ~first))

    without, with_t = event(t_in_table=False), event(t_in_table=True)
    assert without < 0.03  # "approximately 0"
    assert with_t == pytest.approx(0.25, abs=0.01)  # "approximately 1/4"


def printed_first_answer(men, women, epsilon, beta=0.5):
    """The δ of §2.6's first answer, at least, for this table and her: P[false] with her and without.

    (That fewer than 1,000 are sampled has a probability below 1e-300.)
    """
    assert binom.cdf(999, men + women, beta) < 1e-300
    sampled = np.arange(men + 1)
    more_men = float(binom.pmf(sampled, men, beta) @ binom.cdf(sampled - 1, women, beta))
    with_her = (1 - beta) * (1 - more_men) + beta * more_men
    return max(0.0, with_her - math.exp(epsilon) * (1 - more_men))


def test_the_printed_first_answer_is_none_for_unbalanced_tables():
    """§2.6: "A₁ satisfies (β, ε, δ)-DPS for any β that is not too close to 1". Not so: the section proves nothing."""
    assert printed_first_answer(10_000, 0, 1.0) == pytest.approx(0.5)  # β, whatever ε is
    assert printed_first_answer(10_000, 0, 20.0) == pytest.approx(0.5, abs=1e-5)
    assert printed_first_answer(5_100, 4_900, 1.0) > 0.43
    assert printed_first_answer(5_000, 5_000, 1.0) == 0.0  # the table of the section itself


def divergence_of(p, q, growth):
    return sum(max(Fraction(0), mass - growth * q.get(o, 0)) for o, mass in p.items())


def binomial_law(n, beta):
    return {j: math.comb(n, j) * beta**j * (1 - beta) ** (n - j) for j in range(n + 1)}


def two_crowds(a, b, k, beta, *, one_sample):
    """The law of a crowd in which a and b are merged, and of one in which they are not."""

    def shown(*counts):
        return tuple(count if count >= k else 0 for count in counts)

    samples = [
        (sampled_a, sampled_b, p * q)
        for (sampled_a, p), (sampled_b, q) in itertools.product(
            binomial_law(a, beta).items(), binomial_law(b, beta).items()
        )
    ]
    law = {}
    if one_sample:
        for i, j, mass in samples:
            outcome = (*shown(i + j), *shown(i, j))
            law[outcome] = law.get(outcome, 0) + mass
        return law
    for (i, j, mass), (i2, j2, mass2) in itertools.product(samples, samples):
        outcome = (*shown(i + j), *shown(i2, j2))
        law[outcome] = law.get(outcome, 0) + mass * mass2
    return law


def test_two_crowds_of_one_sample_show_who_is_there():
    n, k, beta = 12, 4, Fraction(1, 4)
    shows = sum(mass for j, mass in binomial_law(n, beta).items() if j >= k)
    with_b, without = (two_crowds(n, b, k, beta, one_sample=True) for b in (1, 0))
    for growth in (1, 8, 10**6):
        assert divergence_of(with_b, without, growth) >= beta * shows
    assert beta * shows > Fraction(8, 100)
    # Each alone keeps its promise, and fresh samples keep both.
    alone = Fraction(exact_delta(k, float(beta), math.log(8)))
    assert alone < Fraction(5, 1000)
    fresh = [two_crowds(n, b, k, beta, one_sample=False) for b in (1, 0)]
    for p, q in itertools.permutations(fresh):
        assert divergence_of(p, q, 64) <= 2 * alone
    assert divergence_of(with_b, without, 64) > 16 * 2 * alone


def test_two_crowds_of_one_sample_with_the_numbers_of_the_page():
    assert exact_delta(20, 0.1, 1.0) < 2.77e-15
    assert 0.1 * binom.sf(19, 1000, 0.1) > 0.0999


def odd_stripes(n, fewest, width):
    """P[an odd stripe] − P[an even one] from `fewest` on, of Bin(n, ½), halved."""
    signed = sum((-1) ** (j // width + 1) * math.comb(n, j) for j in range(fewest, n + 1))
    return Fraction(signed, 2 ** (n + 1))


@pytest.mark.parametrize(("fewest", "width"), [(60, 1), (60, 3), (64, 4), (128, 4), (120, 10), (100, 5)])
def test_the_striped_answer_is_private_on_every_table(fewest, width):
    """|b_n| ≤ (w/2)·C(m, ⌊m/2⌋)/2^m < (w/2)·√(2/(πm)); beyond the n enumerated here the proof's bound falls."""
    bound = Fraction(width * math.comb(fewest, fewest // 2), 2 ** (fewest + 1))
    assert float(bound) < width / 2 * math.sqrt(2 / (math.pi * fewest))
    found = [abs(odd_stripes(n, fewest, width)) for n in range(5 * fewest)]
    assert found[:fewest] == [0] * fewest
    assert 0 < max(found) <= bound
    for n in range(fewest, 5 * fewest):
        assert found[n] <= Fraction(width * math.comb(n, n // 2), 2 ** (n + 1))
    # t sampled with any probability: what the answer is, and what it can be worth.
    worst = (Fraction(1, 2) + bound) / (Fraction(1, 2) - bound)
    yes = [Fraction(1, 2) + b * (1 - 2 * share) for b in found for share in (0, Fraction(1, 2), Fraction(3, 4))]
    assert max(max(yes) / min(yes), (1 - min(yes)) / (1 - max(yes))) <= worst


def striped_and_noisy(n, fewest, width, growth, *, present):
    """The laws of A₁ and of (A₁, A₂) from one sample and from two, at β = ½, in whole numbers of 1 in `whole`.

    The noise has P[z] ∝ growth^−|z|; it is cut at ±30, and what is beyond goes to the ends.
    """
    noise = {z: (growth - 1) * growth ** (30 - abs(z)) for z in range(-29, 30)} | {-30: growth, 30: growth}
    first, sizes, together = Counter(), Counter(), Counter()
    for count, hers in itertools.product(range(n + 1), (0, 1) if present else (0,)):
        mass = math.comb(n, count) * (1 if present else 2)
        odd = (count // width + hers) % 2
        for answer in (0, 1):
            share = mass if count < fewest else 2 * mass * (answer == odd)
            first[answer] += share
            together[answer, count + hers] += share
        sizes[count + hers] += 2 * mass
    laws = []
    for both in (together, {(a, size): p * q for a, p in first.items() for size, q in sizes.items()}):
        law = Counter()
        for ((answer, size), mass), (z, p) in itertools.product(both.items(), noise.items()):
            law[answer, size + z] += mass * p
        laws.append(law)
    return first, *laws


def test_with_a_private_answer_from_the_same_sample_it_is_not():
    """m = 400, w = 8, e^ε₂ = 8 and 1,000 people, exactly."""
    n, fewest, width, growth_2 = 1000, 400, 8, 8
    bound = Fraction(width * math.comb(fewest, fewest // 2), 2 ** (fewest + 1))
    growth_1 = (Fraction(1, 2) + bound) / (Fraction(1, 2) - bound)
    assert growth_1 < 2
    there, absent = (striped_and_noisy(n, fewest, width, growth_2, present=present) for present in (True, False))
    whole = there[1].total()
    assert absent[1].total() == whole
    for p, q in itertools.permutations((there[0], absent[0])):
        assert divergence_of(p, q, growth_1) == 0  # the first answer alone
    assert divergence_of(there[1], absent[1], growth_1 * growth_2) > Fraction(3, 10) * whole
    fresh = [Counter({o: m for o, m in one[2].items() if 30 < o[1] < 970}) for one in (there, absent)]
    for p, q in itertools.permutations(fresh):  # but for the ends, where the noise was cut
        assert divergence_of(p, q, growth_1 * growth_2) == 0


def law(n, k, beta):
    out = {}
    for j in range(n + 1):
        out[j if j >= k else 0] = out.get(j if j >= k else 0, 0.0) + math.comb(n, j) * beta**j * (1 - beta) ** (n - j)
    return out


def divergence(p, q, epsilon):
    return sum(max(0.0, p.get(o, 0.0) - math.exp(epsilon) * q.get(o, 0.0)) for o in set(p) | set(q))


def test_post_processing_and_mixtures_keep_the_guarantee():
    """Theorems 2 and 3, on the mechanism itself: any function of the output, and a coin between two mechanisms."""
    epsilon = 0.4
    for n, (k, beta) in itertools.product(range(1, 25), ((3, 0.4), (5, 0.2))):
        delta = exact_delta(k, beta, epsilon)
        for function in (lambda j: j % 2, lambda j: j > 4, lambda j: j // 3):
            p, q = ({}, {})
            for target, source in ((p, law(n, k, beta)), (q, law(n - 1, k, beta))):
                for outcome, mass in source.items():
                    target[function(outcome)] = target.get(function(outcome), 0.0) + mass
            assert divergence(p, q, epsilon) <= delta * (1 + 1e-12)
        delta_of_both = max(delta, exact_delta(4, 0.3, epsilon))
        mixed = []
        for size in (n, n - 1):
            first, second = law(size, k, beta), law(size, 4, 0.3)
            mixed.append({o: 0.3 * first.get(o, 0.0) + 0.7 * second.get(o, 0.0) for o in set(first) | set(second)})
        assert divergence(mixed[0], mixed[1], epsilon) <= delta_of_both * (1 + 1e-12)


def test_duplicating_rows_satisfies_the_letter_of_k_anonymity():
    """§3.1: every record k times over is k-anonymous and hides nobody: one record more shows with probability 1."""
    from incrowd.theory.syntactic import k_anonymity

    table = np.ones((6, 1), dtype=np.int64)
    assert k_anonymity(table * 20).value == 20
    assert divergence({20: 1.0}, {0: 1.0}, 1.0) == 1.0
