"""A proved upper bound on E[(L₁ + … + L_M)₊], where M ~ Bin(n, mass) and the L's are independent copies of L.

Amplification by shuffling comes down to this expectation (see `shuffling`), for n from one to many millions and
for results from about 1 down to 1e-300. Let X be the sum plus independent Gaussian noise of standard deviation b.
By Jensen's inequality the noise can only raise E[X₊]. For any λ > 0 put G(c) = e^{−λc}·E[(X+c)₊]. Its Fourier
transform at t is e^{b²z²/2}·φ(z)^n / z² with z = λ + it and φ(z) = 1 + mass·E[e^{zL} − 1], so Poisson's summation
formula with period P says

    G(0) ≤ Σ_j G(jP) = (1/P) Σ_k e^{b²z_k²/2} φ(z_k)^n / z_k²,      z_k = λ + 2πik/P,

where the inequality holds because every G(jP) is non-negative. So *every* choice of λ, b and P gives an upper
bound, and a good choice only makes it sharp: λ near the saddle point, b small and P large against the spread of
the sum. Nothing is discretised, the number of terms does not depend on n, and the tilt by λ keeps the relative
precision of tiny results. What is cut off behind the last term is bounded through |φ(z)| ≤ φ(λ), and rounding
errors are bounded term by term.

Two more steps keep it fast and sharp, and each can only raise the expectation. Values of L may be merged: replacing
one by two neighbouring grid points with the same mean makes L larger in the convex order, which sums inherit. And rare
huge values may be capped, since (ΣL)₊ ≤ (Σ min(L,c))₊ + Σ(L−c)₊ for every c, where the mean of the last sum is easy.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import InternalError
from incrowd.theory._numbers import SMALLEST, round_down, round_up

Vector: TypeAlias = NDArray[np.float64]

SLACK = 2.0**-28
"""The relative error allowed for everywhere: far above what the few hundred operations and sums behind a number lose.

For n records it costs about √n·SLACK of δ, relatively: 4e-5 at a hundred million.
"""

FLOOR = 1e-300
"""Smaller results are reported as this one, safely above underflow."""

_SHARPNESS = 64  # spread of the sum over spread of the noise: costs a share of about 1/(2·64²) in ε
CUT = 6.0  # the series ends where the noise has damped it to e^−18
_MOST_VALUES = 512
_GRID_STEP = 1.05
_BLOCK = 1 << 18
_CAPS = range(-30, 0, 3)  # powers of ten at which the loss by capping is tried


def mean_excess(n: int, mass: float, probabilities: Vector, values: Vector) -> float:
    """An upper bound on E[(L₁ + … + L_M)₊] / (n·mass) for M ~ Bin(n, mass).

    Args:
        n: the number of trials.
        mass: their success probability, taken as exact.
        probabilities: of the values of L, each right up to a relative error of `SLACK`/2.
        values: of L, already rounded up; taken as exact.
    """
    highest = float(values.max())
    if highest <= 0:
        return 0.0
    unit = 2.0 ** math.frexp(highest)[1]  # a power of two, so that nothing is rounded
    probabilities, values = merge(probabilities, values / unit)
    capped, lost = cap(n, mass, probabilities, values, unit)
    plain = round_up(float(probabilities @ np.maximum(values, 0.0)), SLACK)  # (ΣL)₊ ≤ ΣL₊, with equality for n = 1
    return max(FLOOR, min(1.0, round_up(min(plain, _smoothed(n, mass, probabilities, capped) + lost)) * unit))


def _smoothed(n: int, mass: float, probabilities: Vector, values: Vector) -> float:
    """The bound by Poisson's formula, over n·mass."""
    tilt, log_height, error = tilt_of(n, mass, probabilities, values)
    scale = math.log(n * mass)
    if log_height - math.log(tilt) - scale < -740:
        return SMALLEST  # as x₊ ≤ e^{λx−1}/λ
    if error > 0.5:
        return math.inf
    weights, noise, period = smoothing(n, mass, probabilities, values, tilt, log_height)
    total = _series(n, weights, values, tilt=tilt, noise=noise, period=period, slack=SLACK + 2 * error)
    exponent = log_height + (noise * tilt) ** 2 / 2 + math.log(total) - scale
    if exponent > 700:
        return math.inf
    # If M = 0 the sum is 0 and all that was counted is the noise, whose positive part has mean b/√(2π).
    idle = math.exp(n * math.log1p(-mass) - scale) * noise / math.sqrt(2 * math.pi) if mass < 1 else 0.0
    return round_up(math.exp(exponent), 1e-12) - round_down(idle, SLACK)


def smoothing(
    n: int, mass: float, probabilities: Vector, values: Vector, tilt: float, log_height: float
) -> tuple[Vector, float, float]:
    """The probabilities tilted, and with them a noise and a period that make the bound sharp. Any would be safe."""
    weights = mass * probabilities * np.exp(tilt * values)
    weights /= 1 + mass * float(probabilities @ np.expm1(tilt * values))
    mean = float(weights @ values)
    spread = math.sqrt(n * max(0.0, float(weights @ values**2) - mean**2))
    noise = max(spread, 1 / tilt) / _SHARPNESS
    return weights, noise, 20 * spread + (40 + 2 * max(0.0, -log_height)) / tilt


def spread_out(grid: Vector, values: Vector) -> tuple[NDArray[np.intp], Vector]:
    """Each value as a mixture of two neighbouring grid points with its mean: the lower one, and the upper's share."""
    lower = np.clip(np.searchsorted(grid, values, side="right") - 1, 0, len(grid) - 2)
    share = (values - grid[lower]) / (grid[lower + 1] - grid[lower])
    return lower, np.clip(share, 0.0, 1.0)


def _series(
    n: int, weights: Vector, values: Vector, *, tilt: float, noise: float, period: float, slack: float
) -> float:
    """An upper bound on (1/P)·Σ_k e^{b²(z_k²−λ²)/2}·(φ(z_k)/φ(λ))^n / z_k², errors and what is cut off included.

    If w = φ(z)/φ(λ) is computed as v with an error of at most e, then |w^n − v^n| ≤ (a+e)^n − a^n for any a ≥ |v|,
    which is at most a^n·(exp(ne/a) − 1).
    """
    step = 2 * math.pi / period
    size = float(weights @ np.abs(values))
    count = math.ceil(CUT / (noise * step))
    total = 1 / tilt**2
    rows = max(1, _BLOCK // len(values))
    for start in range(1, count + 1, rows):
        t = step * np.arange(start, min(start + rows, count + 1))
        half = np.outer(t / 2, values)
        sine = np.sin(half)
        real = -2 * (sine**2 @ weights)  # of w − 1, without cancellation
        imaginary = 2 * ((sine * np.cos(half)) @ weights)
        error = slack * t * size + np.finfo(float).tiny
        modulus = np.hypot(1 + real, imaginary)
        small = modulus < 0.5  # there the error may exceed w, and is added to it once more
        modulus = np.where(small, modulus + error, modulus)
        growth = np.where(small, modulus**2 - 1, 2 * real + real**2 + imaginary**2)
        log_modulus = np.where(small, np.log(modulus), 0.5 * np.log1p(growth))
        z_squared = (tilt + 1j * t) ** 2
        damping = (noise * t) ** 2 / 2
        most = np.exp(-damping) / np.abs(z_squared)  # as |w| ≤ 1
        term = np.exp(n * np.minimum(0.0, log_modulus)) * most
        phase = n * np.arctan2(imaginary, 1 + real) + noise**2 * tilt * t - np.angle(z_squared)
        relative = 2 * n * error / modulus + SLACK * (n * np.abs(log_modulus) + np.abs(phase) + damping + 1)
        raised = term * (np.cos(phase) + np.expm1(np.minimum(relative, 1.0)))
        total += 2 * float(np.sum(np.where(relative < 1, np.minimum(raised, most), most)))
    last = step * count
    beyond = math.exp(-((noise * last) ** 2) / 2) / (math.pi * last)
    total = total / period + beyond
    if not total > 0:
        raise InternalError("A sum of positive terms came out negative.", total=total)
    return total


def tilt_of(n: int, mass: float, probabilities: Vector, values: Vector) -> tuple[float, float, float]:
    """About the λ at which φ(λ)^n/λ² is smallest; n·log φ(λ), rounded up; the relative error of the computed φ(λ).

    The logarithm of φ(λ)^n/λ² is convex in λ, so its derivative changes sign once.
    """
    highest = float(values.max())
    low, high = math.log(1e-16 / highest), math.log(700 / highest)
    for _ in range(40):
        middle = (low + high) / 2
        tilt = math.exp(middle)
        grown = mass * probabilities * np.exp(tilt * values)
        slope = n * float(grown @ values) / (1 - mass + float(grown.sum())) - 2 / tilt
        low, high = (middle, high) if slope < 0 else (low, middle)
    tilt = math.exp(low)
    growth = max(-1 + 2.0**-50, mass * float(probabilities @ np.expm1(tilt * values)))  # φ(λ) − 1, and φ(λ) > 0
    # Every |e^x − 1| is at most |x|·max(1, e^x).
    size = mass * float(probabilities @ (np.abs(values) * np.exp(np.maximum(0.0, tilt * values))))
    error = SLACK * tilt * size / (1 + growth)
    log_height = n * math.log1p(growth)
    return tilt, log_height + n * error + SLACK * (abs(log_height) + 64), error


def cap(n: int, mass: float, probabilities: Vector, values: Vector, unit: float) -> tuple[Vector, float]:
    """The values cut off at about the best c, and E[(L−c)₊] rounded up. Any c is safe; this one is found by trying."""
    order = np.argsort(values)[::-1]
    caps, chances = values[order], probabilities[order]
    count, amount = np.cumsum(chances), np.cumsum(chances * caps)
    losses = amount - caps * count + SLACK * (np.abs(amount) + np.abs(caps) * count)
    losses[0] = 0.0

    def rough(index: int) -> float:
        """About a third of the bound from x₊ ≤ e^{λx−1}/λ, and the loss."""
        tilt, log_height, _ = tilt_of(n, mass, probabilities, np.minimum(values, caps[index]))
        return math.exp(min(700.0, log_height - 2 - math.log(tilt * n * mass))) + float(losses[index])

    smallest = int(np.count_nonzero(values > 0)) - 1  # a cap at or below 0 would leave nothing to bound
    tried = [min(smallest, int(np.flatnonzero(losses * unit <= 10.0**power)[-1])) for power in _CAPS]
    coarse = sorted({0, *tried})
    best = min(range(len(coarse)), key=lambda position: rough(coarse[position]))
    around = coarse[max(0, best - 1)], coarse[min(len(coarse) - 1, best + 1)]
    choice = min({coarse[best], *np.linspace(*around, 8).astype(int).tolist()}, key=rough)
    return np.minimum(values, caps[choice]), float(losses[choice])


def merge(probabilities: Vector, values: Vector) -> tuple[Vector, Vector]:
    """A few hundred values instead of many, on a grid that is geometric away from zero; the bound cannot fall."""
    if len(values) <= _MOST_VALUES:
        return probabilities, values
    typical = math.sqrt(float(probabilities @ values**2))
    finest = 1e-3 * typical
    sides = []
    for side in (-float(values.min()), float(values.max())):
        points = 2 + math.ceil(math.log(max(1.0, side / finest)) / math.log(_GRID_STEP))
        sides.append(np.geomspace(finest, side, points) if side > finest else np.array([finest]))
    grid = np.concatenate((-sides[0][::-1], [0.0], sides[1]))
    lower, share = spread_out(grid, values)
    merged = np.zeros(len(grid))
    for upper, part in ((0, 1 - share), (1, share)):
        merged += np.bincount(lower + upper, probabilities * part, len(grid))
    used = merged > 0
    # The shares were rounded, and with them the mean that must not fall.
    return merged[used], (grid + SLACK * (np.abs(grid) + finest))[used]
