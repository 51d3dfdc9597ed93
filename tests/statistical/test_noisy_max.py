"""The noise of the private choice: as much as ε asks for, and a twin with less is caught.

With two scores that differ by the sensitivity, permute-and-flip picks the lower one with probability ½·e^{−ε}. The
numbers of picks are compared with that at a false-alarm probability of 1e-9.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from incrowd.recoding.choice import noisy_max

pytestmark = pytest.mark.statistical
DRAWS, EPSILON, SENSITIVITY = 20_000, 1.0, 1000


def lower_picks(epsilon):
    scores = np.array([0, SENSITIVITY], dtype=np.int64)
    return sum(noisy_max(scores, SENSITIVITY, epsilon) == 0 for _ in range(DRAWS))


def test_the_lower_score_is_picked_as_often_as_it_should_be():
    assert binomtest(lower_picks(EPSILON), DRAWS, 0.5 * math.exp(-EPSILON)).pvalue > 1e-9


def test_a_twin_with_half_the_noise_is_caught():
    assert binomtest(lower_picks(2 * EPSILON), DRAWS, 0.5 * math.exp(-EPSILON)).pvalue < 1e-9


def law(scores, scale):
    """Permute-and-flip written out: every order, and in each the first whose coin succeeds."""
    orders = list(itertools.permutations(range(len(scores))))
    found = np.zeros(len(scores))
    for order in orders:
        reached = 1 / len(orders)
        for i in order:
            taken = math.exp(-(max(scores) - scores[i]) / scale)
            found[i] += reached * taken
            reached *= 1 - taken
    return found


@pytest.mark.parametrize(("scale", "alike"), [(1.0, True), (1.1, False)])
def test_each_candidate_is_picked_as_often_as_by_the_written_out_law(scale, alike):
    """Exponents below and above 1, a tie for the largest; a twin whose noise is a tenth larger is caught."""
    scores = np.array([700, 1000, -1500, 1000, 350], dtype=np.int64)
    picks = np.bincount([noisy_max(scores, 600, 1.0) for _ in range(4 * DRAWS)], minlength=5)
    expected = law(scores.tolist(), 600 * scale) * picks.sum()
    assert (chisquare(picks, expected).pvalue > 1e-9) == alike
