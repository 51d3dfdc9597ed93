"""The noise of the private choice: as much as ε asks for, and a twin with less is caught.

With two scores that differ by the sensitivity, permute-and-flip picks the lower one with probability ½·e^{−ε}. The
numbers of picks are compared with that at a false-alarm probability of 1e-9.
"""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

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
