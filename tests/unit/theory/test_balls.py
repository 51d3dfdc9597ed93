"""Ends of balls as floats: never inside."""

import math
import random
import threading
from fractions import Fraction

from flint import arb, ctx

from incrowd.theory._balls import PRECISION, above, below, precision, whole_above


def test_ends_are_outside_and_next_to_the_ball():
    generator = random.Random(1)
    with precision():
        for _ in range(2000):
            exact = Fraction(generator.getrandbits(120) - 2**119, generator.getrandbits(100) + 1)
            ball = arb(exact.numerator) / exact.denominator
            high, low = above(ball), below(ball)
            assert Fraction(low) <= exact <= Fraction(high)
            assert high <= math.nextafter(low, math.inf)
            units = whole_above(ball, 7)
            assert exact * 128 <= units < exact * 128 + 1


def test_what_is_a_float_stays_one():
    with precision():
        assert above(arb(0.1)) == below(arb(0.1)) == 0.1
        assert above(arb(0)) == 0.0


def test_beyond_the_range_of_floats():
    with precision():
        assert above(arb(10) ** 400) == math.inf
        assert below(arb(10) ** 400) == math.nextafter(math.inf, 0)
        assert above(arb(10) ** -400) == math.ulp(0.0)
        assert above(arb(0, 1) / arb(0, 1)) == math.inf  # no number at all: nothing is promised


def test_precision_is_restored_and_not_shared_between_threads():
    before, seen = ctx.prec, []

    def other():
        with precision(64):
            seen.append(ctx.prec)

    with precision():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.05)
        assert ctx.prec == PRECISION
        assert not seen
    thread.join()
    assert seen == [64]
    assert ctx.prec == before
