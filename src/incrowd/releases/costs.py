"""What releases that were declared together cost, and how numbers are read.

A *plan* is a set of releases whose numbers are all fixed before the first of them is made: the copies of one release,
say. What a plan costs is computed from privacy profiles, which is sharp, and would not be proved for releases that are
chosen one after the other in view of the outputs (`docs/proofs.md` has an example). Those are counted by a rule
(`rules.py`), to which each plan is one entry. Nothing here knows about files.

**Relations.** Totals under add/remove count add/remove promises only. Totals under replace-one count all that compose:
add/remove promises are converted, which is always possible; the other way is not.

**What a number means.** Whoever writes 0.02 means two hundredths, not the binary number just above them, and expects
fifty such releases to fit a budget of 1. So a number that has at most 15 digits in its shortest decimal form is read
as that decimal: it is what was typed, and what a certificate prints. Every other number was computed, and is read as
its exact binary value. Readings are added as fractions, without rounding, and a total becomes the least number whose
reading is not below it. Readings keep the order of the numbers, hence a sum of readings is within the reading of the
budget exactly if the number made from it is at most the budget. All that is not a plain sum (a sampled crowd, the
sharper composition of points at δ > 0) comes rounded up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from incrowd.core.errors import UnreachableError
from incrowd.mechanisms.promises import LARGEST_EPSILON, Entry, Parts
from incrowd.theory.profile import ApproximateDP, PrivacyProfile, Relation, compose

# --- numbers as they are meant ----------------------------------------------------------------------------------


def meaning(number: float) -> Fraction:
    """The number as it is read: a short decimal as written, any other as the binary fraction it is."""
    written = Decimal(repr(number))
    return Fraction(written) if len(written.normalize().as_tuple().digits) <= 15 else Fraction(number)


def at_least(total: Fraction) -> float:
    """The least number whose meaning is not below `total`."""
    number = float(total)
    return number if meaning(number) >= total else math.nextafter(number, math.inf)


def at_most(total: Fraction) -> float:
    """The greatest number whose meaning is not above `total`."""
    number = float(total)
    return number if meaning(number) <= total else math.nextafter(number, -math.inf)


def remaining(budget: float, spent: float) -> float:
    """What is left, rounded down; nothing if more was spent."""
    return 0.0 if spent >= budget else at_most(meaning(budget) - meaning(spent))


def finite(number: float) -> float | None:
    """The number as JSON can hold it: there is none for infinity."""
    return number if math.isfinite(number) else None


# --- what a plan costs ------------------------------------------------------------------------------------------


def planned_parts(parts: Parts, delta: float) -> float:
    """The least ε known with which these, as one plan, are (ε,δ)-DP, rounded up; infinite if there is none."""
    return min(added_parts(parts, delta), _composed(parts, delta))


def counted(entries: Iterable[Entry], relation: Relation) -> tuple[Entry, ...]:
    """Those that a total under this relation counts: they compose, and are, under add/remove, about no replacement."""
    return tuple(e for e in entries if e.composes and relation in (e.relation, Relation.REPLACE_ONE))


def parts_of(entries: Iterable[Entry], relation: Relation) -> Parts:
    """The profiles to compose, in an order that does not depend on that of the entries."""
    found = Counter[PrivacyProfile]()
    for entry in counted(entries, relation):
        for part in entry.promise.parts(relation):
            found[part] += entry.copies
    return tuple(part for part in sorted(found, key=repr) for _ in range(found[part]))


def added_parts(parts: Parts, delta: float) -> float:
    """ε's and δ's added. Points bring their own δ, crowds share evenly what is left of it."""
    times = Counter(parts)
    points = {p: n for p, n in times.items() if isinstance(p, ApproximateDP)}
    crowds = {p: n for p, n in times.items() if p not in points}
    left = meaning(delta) - sum(n * meaning(p.at_delta) for p, n in points.items())
    if left < 0:
        return math.inf
    total = sum((n * meaning(p.at_epsilon) for p, n in points.items()), Fraction(0))
    if crowds:
        share = at_most(left / sum(crowds.values()))
        try:
            total += sum(n * meaning(_least(p, share)) for p, n in crowds.items())
        except UnreachableError:
            return math.inf
    return at_least(total)


def _least(profile: PrivacyProfile, delta: float) -> float:
    """The least ε at this δ; a short decimal, if the search ended just above one that is valid.

    So a release whose ε was written down fits a budget of just that.
    """
    found = profile.epsilon(delta)
    short = float(f"{found:.9g}")
    return short if short < found and profile.delta(short) <= delta else found


@lru_cache(maxsize=64)
def _composed(parts: Parts, delta: float) -> float:
    """The same through privacy profiles: slower, and often less. A pure function, so its values may be kept.

    It only ever improves on adding up. Where it has nothing to say, be it that its numerical library fails, the sum
    stands.
    """
    if delta == 0.0 and parts:
        return math.inf  # adding up is exact there
    try:
        return parts[0].epsilon(delta) if len(parts) == 1 else compose(parts).epsilon(delta, LARGEST_EPSILON)
    except (UnreachableError, ArithmeticError, LookupError, ValueError):
        return math.inf
