"""Checks of a promise's numbers against balls that enclose their formulas."""

from __future__ import annotations

from incrowd.core.numbers import number, number_up
from incrowd.mechanisms.base import Check


def at_most(name: str, found: float, stated: float) -> Check:
    """That a number of the promise is no smaller than its formula."""
    return Check(_name(name), found <= stated, f"it is up to {number_up(found, 6)}")


def at_least(name: str, found: float, *, holds: bool) -> Check:
    """That a number of the promise is no larger than its formula."""
    return Check(_name(name), holds, f"it is {number(found, 6)} at most")


def _name(name: str) -> str:
    return f"{name}, enclosed by ball arithmetic"
