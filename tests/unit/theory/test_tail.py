"""Tails of binomial laws for pictures, without SciPy."""

import subprocess
import sys
from fractions import Fraction
from math import comb

import pytest

from incrowd.theory._binomial import tail


@pytest.mark.parametrize(("trials", "p"), [(1, 0.5), (9, 0.1), (30, 0.75), (60, 2.0**-20)])
def test_tails_are_sums_of_masses(trials, p):
    exact = Fraction(p)
    masses = [comb(trials, j) * exact**j * (1 - exact) ** (trials - j) for j in range(trials + 1)]
    for at_least in range(trials + 2):
        assert tail(at_least, trials, p) == pytest.approx(float(sum(masses[at_least:], Fraction(0))), abs=1e-12)


@pytest.mark.parametrize(("at_least", "trials", "p"), [(5000, 50_300, 0.1), (10**5, 1_000_500, 0.1), (3, 10**9, 1e-9)])
def test_large_ones_against_scipy(at_least, trials, p):
    from scipy.special import betainc

    assert tail(at_least, trials, p) == pytest.approx(float(betainc(at_least, trials - at_least + 1, p)), rel=1e-9)


@pytest.mark.parametrize(("k", "p"), [(20, 0.5), (200, 0.01), (3, 0.9), (5000, 0.1)])
def test_what_is_taken_for_certain_is(k, p):
    """Where the bound begins, and just before it, against sums of everything else."""
    from scipy.special import bdtr

    first = next(n for n in range(k, 10**6) if n * p > k and (n * p - k) ** 2 > 60 * n * p)
    for trials in (first - 1, first, 10 * first):
        assert bdtr(k - 1, trials, p) < 1e-12
        assert tail(k, trials, p) == pytest.approx(1.0, abs=1e-12)


def test_what_is_always_drawn():
    assert [tail(at_least, 5, 1.0) for at_least in (0, 5, 6)] == [1.0, 1.0, 0.0]


def test_a_release_of_crowds_imports_no_scipy(tmp_path):
    """It takes a quarter of the time of a small release, and fixed levels need none of it."""
    program = f"""
import sys
import pyarrow as pa
from incrowd import api
from incrowd.policy import Policy
plan = Policy.from_text('''
incrowd: 1
rows_are_people: true
attributes: {{sex: {{domain: [f, m]}}}}
release: {{mechanism: sampled_crowd, epsilon: 1, delta: 1e-6}}
''')
api.release(pa.table({{"sex": ["f", "m"] * 500}}), plan, folder={str(tmp_path / "out")!r})
assert not [name for name in sys.modules if name.partition(".")[0] == "scipy"]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
