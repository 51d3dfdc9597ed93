"""Why one sample serves one release, and what keeps a guarantee (Li, Qardaji, Su, §2.4 to §2.6)."""

import itertools
import math

import numpy as np
import pytest

from incrowd.guarantees.crowd import exact_delta


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
    from incrowd.guarantees.syntactic import k_anonymity

    table = np.ones((6, 1), dtype=np.int64)
    assert k_anonymity(table * 20).value == 20
    assert divergence({20: 1.0}, {0: 1.0}, 1.0) == 1.0
