"""The exact δ of one cell of a sampled crowd that gains or loses several rows at once.

A cell holds n rows, or n + a of them: the a rows of one person. X_n ~ Bin(n, β) is published if it is k or more. With
f(j; n) the mass function, T_k(n) = P[X_n ≥ k] and

    g(n) = f(k−1; n+a)/f(k−1; n) = (1−β)^a Π_{i=1..a} (n+i)/(n+i−k+1),

which falls with n, docs/proofs.md ("A person with several rows") and `proofs/Groups.v` prove that the smallest δ is

    removal:   T_k(n+a) − e^ε T_k(n)               at the least n ≥ k−1 with g(n) ≤ e^ε,
    addition:  P[X_n < k] − e^ε P[X_{n+a} < k]     at the least n ≥ k−1 with g(n) ≤ e^{−ε}; 0 if e^ε(1−β)^a ≥ 1.

As T_k(n+a) − T_k(n) = β Σ_{i<a} f(k−1; n+i), both are f(k−1; n) times a difference of which the first term is exact and
the second, a sum, is rounded down. Since δ is the maximum over all n, an n that is not quite the least does no harm as
long as the least is tried too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.core.errors import InternalError
from incrowd.theory._balls import precision, whole_above
from incrowd.theory._binomial import mass, tail_below

if TYPE_CHECKING:
    from flint import arb


_BITS, _CANDIDATES = 640, 16  # to tell neighbouring n apart, which for a tiny β are huge


def group_removal(k: int, beta: float, epsilon: float, rows: int) -> list[arb]:
    """δ when the table with the person is the true one: balls, the largest of which is meant."""
    from flint import arb

    with precision():
        p, growth = arb(beta), arb(epsilon).exp()
        found = []
        for n in _worst(k, p, arb(epsilon), rows):
            # T_k(n) = f(k−1; n) · f(k; n)/f(k−1; n) · Σ_{j≥k} f(j; n)/f(k; n)
            shown = (n - k + 1) * p / (k * (1 - p)) * tail_below(k, n, beta, upwards=True) if n >= k else arb(0)
            found.append(mass(k - 1, n, beta) * (p * _steps(k, n, p, rows) - (growth - 1) * shown))
        return found


def group_addition(k: int, beta: float, epsilon: float, rows: int) -> list[arb]:
    """δ when the table without the person is the true one; nothing if that is 0."""
    from flint import arb

    with precision():
        p, growth = arb(beta), arb(epsilon).exp()
        most = 1 - growth * (1 - p) ** rows  # P[X_{n+a} < k] ≥ (1−β)^a P[X_n < k], so no δ exceeds this
        if most <= 0:
            return []
        if not most > 0:
            return [most]
        found = []
        for n in _worst(k, p, -arb(epsilon), rows):
            hidden = tail_below(k - 1, n, beta, upwards=False)
            found.append(mass(k - 1, n, beta) * (growth * p * _steps(k, n, p, rows) - (growth - 1) * hidden))
        return [delta.min(most) for delta in found]


def _steps(k: int, n: int, p: arb, rows: int) -> arb:
    """Σ_{i<a} f(k−1; n+i)/f(k−1; n)."""
    from flint import arb

    total = ratio = arb(1)
    for i in range(1, rows):
        ratio = ratio * (n + i) * (1 - p) / (n + i - k + 1)
        total += ratio
    return total


def _worst(k: int, p: arb, log_bound: arb, rows: int) -> list[int]:
    """The least n ≥ k−1 with g(n) ≤ e^bound; two of them if the digits do not say which it is.

    The factors of g fall with i, so with γ = 1 − (1−β)e^{−bound/a} it lies from ⌈(k−1)/γ⌉ − a to ⌈(k−1)/γ⌉ − 1.
    """
    with precision(_BITS):
        bound = log_bound.exp()
        place = (k - 1) / (1 - (1 - p) / (log_bound / rows).exp())
        low = max(k - 1, whole_above(place.lower()) - rows)
        high = max(low, whole_above(place.upper()) - 1)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if _ratio(k, middle, p, rows) > bound else (low, middle)
        found = [low]
        while not _ratio(k, found[-1], p, rows) <= bound:
            if len(found) > _CANDIDATES:
                raise InternalError("the worst table was not found with the digits there are")
            found.append(found[-1] + 1)
        return found


def _ratio(k: int, n: int, p: arb, rows: int) -> arb:
    from flint import arb

    ratio = arb(1)
    for i in range(1, rows + 1):
        ratio *= (1 - p) * (n + i) / (n + i - k + 1)
    return ratio
