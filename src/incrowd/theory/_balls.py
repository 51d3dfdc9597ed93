"""Ball arithmetic (Arb, through python-flint): a number with a proved bound on its error.

Every operation on balls returns a ball that encloses the true result, so a bound read off the upper end is a bound
whatever was rounded on the way. Precision only decides how tight it is. It is a setting of the whole process, hence
the lock: two threads that change it would not make a bound wrong, but would make it depend on chance.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from incrowd.core.errors import InternalError

if TYPE_CHECKING:
    from flint import arb

PRECISION = 256
"""Bits: 150 more than the largest cancellation that any admitted parameter causes."""

_LOCK = threading.RLock()


@contextmanager
def precision(bits: int = PRECISION) -> Iterator[None]:
    """Balls inside have at least this many bits, as long as they do not cancel."""
    from flint import ctx

    with _LOCK, ctx.workprec(bits):
        yield


def above(ball: arb) -> float:
    """The least float that is not below anything in the ball."""
    from flint import arb

    end = ball.upper()
    if not end.is_finite():
        return math.inf
    number = float(end)
    return number if arb(number) >= end else math.nextafter(number, math.inf)


def below(ball: arb) -> float:
    """The largest float that is not above anything in the ball."""
    return -above(-ball)


def whole_above(ball: arb, bits: int = 0) -> int:
    """The least whole number of 2^-bits that is not below anything in the ball."""
    from flint import arb

    found = (ball * arb(2) ** bits).upper().ceil().unique_fmpz()
    if found is None:
        raise InternalError("a ball has no upper end")
    return int(found)
