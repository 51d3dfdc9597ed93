"""What a questionnaire promises, by formulas that any device can compute: no library, no tables.

Each answer is kept with probability ρ = N/2⁶⁴, else replaced by one drawn uniformly from its |V| possible ones.

- *local ε₀* = Σ ln(1 + |V|·N/(2⁶⁴−N)) (Ikarashi, Kikuchi, Chida, Takahashi, Corollaries 1 and 2). It bounds what the
  record that was sent can say about its sender, whatever the collector does.
- *k* = 1 + (n−1)·e^(−2ε₀) (Corollaries 4 and 5), for n records published in no order, of which the onlooker knows none
  as it was sent: whoever has made or learned m of the others takes them out, and n−m are left. So it is for the central
  promise.
- *central (ε,δ)*, for the same table. `guarantees.shuffling` proves δ ≤ E[(L₁+…+L_M)₊]/(γn) with M ~ Bin(n, γ), for two
  decompositions (privacy blanket and clones). Since x₊ ≤ e^(λx−1)/λ for every λ > 0,

      δ ≤ φ(λ)ⁿ / (e·λ·γ·n),      φ(λ) = 1 + γ·E[e^(λL) − 1].

  Every λ gives a bound, so the search for a good one proves nothing and may stop anywhere. It costs about a tenth of ε
  against the sharp bound of `guarantees.shuffling`, with which the certificate of the collected table is made.

ε and δ are rounded up, k is rounded down. The margins are far above the rounding errors of a few thousand operations,
here and in JavaScript.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

WHOLE = 2**64
"""The denominator of every retention."""

_MARGIN = 2.0**-40
_MOST_CASES = 20_000
_LARGEST_LOCAL = 300.0
_DIGITS = 6


@dataclass(frozen=True)
class Kept:
    """An answer with `size` possible values is kept with probability `numerator`/2⁶⁴."""

    numerator: int
    size: int


@dataclass(frozen=True)
class _Case:
    """A blanket γω, and for outputs w ~ ω the likelihoods of the two records relative to it."""

    mass: float
    outputs: list[tuple[float, float, float]]


def local_epsilon(answers: Sequence[Kept]) -> float:
    """ε₀ of one record, rounded up."""
    total = math.fsum(math.log1p(a.size * a.numerator / (WHOLE - a.numerator)) for a in answers)
    return total * (1 + _MARGIN)


def linking_k(answers: Sequence[Kept], records: int) -> float:
    """Nobody is linked to a record with a probability above 1/k; rounded down."""
    return max(1.0, (1 + (records - 1) * math.exp(-2 * local_epsilon(answers))) * (1 - _MARGIN))


def central_delta(answers: Sequence[Kept], records: int, epsilon: float) -> float:
    """The δ that goes with ε when `records` records are published in no order; rounded up."""
    local = local_epsilon(answers)
    if epsilon >= local:
        return 0.0
    if local > _LARGEST_LOCAL:
        return 1.0
    return min(1.0, *(_chernoff(case, records, epsilon) for case in _cases(answers, local)))


def central_epsilon(answers: Sequence[Kept], records: int, delta: float) -> float:
    """An ε whose δ was computed to be small enough, within a thousandth of the smallest such."""
    low, high = 0.0, local_epsilon(answers)
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if central_delta(answers, records, middle) <= delta else (middle, high)
    return high


def _cases(answers: Sequence[Kept], local: float) -> list[_Case]:
    likely, unlikely = 2 / (1 + math.exp(-local)), 2 / (1 + math.exp(local))
    cases = [_Case(math.exp(-local) * (1 - _MARGIN), [(0.5, likely, unlikely), (0.5, unlikely, likely)])]  # clones
    mass, outputs = 1.0, [(1.0, 1.0, 1.0)]
    for answer in answers:
        rho, size = answer.numerator / WHOLE, answer.size
        low, high = (WHOLE - answer.numerator) / WHOLE, 1 + (size - 1) * rho
        mass *= low
        kinds = [(1 / size, high, low), (1 / size, low, high), ((size - 2) / size, low, low)][: 3 if size > 2 else 2]
        if len(outputs) * len(kinds) > _MOST_CASES:
            return cases
        outputs = [(p * q, a * b, c * d) for p, a, c in outputs for q, b, d in kinds]
    return [*cases, _Case(mass * (1 - _MARGIN), outputs)]


def _chernoff(case: _Case, records: int, epsilon: float) -> float:
    odds = math.exp(epsilon)
    values = [(p, a - odds * c + _MARGIN * (a + odds * c)) for p, a, c in case.outputs]
    highest = max(value for _, value in values)
    if highest <= 0:
        return 0.0
    scale = math.log(case.mass * records)

    def exponent(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        grown = [p * math.expm1(tilt * value) for p, value in values]
        gain = case.mass * (math.fsum(grown) + _MARGIN * math.fsum(map(abs, grown)))
        power = records * math.log1p(gain)
        return power + _MARGIN * abs(power) - 1 - log_tilt - scale

    least = _smallest(exponent, math.log(1e-12 / highest), math.log(600 / highest))
    return math.exp(max(-600.0, min(0.0, least))) * (1 + _MARGIN)  # never below what can be written


def _smallest(function: Callable[[float], float], low: float, high: float) -> float:
    """About the least value of a function that falls, then rises."""
    share = (math.sqrt(5) - 1) / 2
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(40):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = function(right)
    return min(at_left, at_right)


# --- as a questionnaire states it -----------------------------------------------------------------------------------


def state(answers: Sequence[Kept], records: int, delta: float) -> dict[str, Any]:
    """The promise as a questionnaire has it. Numbers are decimal texts, each rounded to the safe side.

    They are texts because floating-point numbers are not written alike in all languages, and the digest must be.
    """
    local = _up(local_epsilon(answers))
    k = _down(linking_k(answers, records))
    central = _up(central_epsilon(answers, records, delta))
    numbers = {
        "local": {"epsilon": local, "factor": _up(_factor(local), 3)},
        "linking": {"k": k},
        "central": {"epsilon": central, "delta": format(Decimal(repr(delta)), "f"), "factor": _up(_factor(central), 3)},
    }
    return {"relation": "replace-one", **numbers, "in_words": in_words(numbers, records)}


def in_words(numbers: dict[str, dict[str, str]], records: int) -> list[str]:
    """The promise in plain words, made of the stated numbers and nothing else."""
    local, k, central = numbers["local"], numbers["linking"]["k"], numbers["central"]
    return [
        (
            "Before anything leaves your device, chance decides for each answer whether it is kept or replaced by one "
            "drawn from all possible answers, all equally likely."
        ),
        (
            "Whoever sees what you sent can change the odds of any guess about your answers at most "
            f"{local['factor']}-fold (ε₀ = {local['epsilon']}). That holds whatever the collector does."
        ),
        (
            f"If at least {records:,} people answer and the collector publishes all records together, in no order, "
            f"then nobody can tell which record is yours with a probability above 1 in {k}."
        ),
        (
            "Whatever anyone might conclude from that table, its probability would change at most "
            f"{central['factor']}-fold (ε = {central['epsilon']}), plus δ = {central['delta']}, had you answered "
            "differently."
        ),
        (
            "These last two count only records that the onlooker neither made nor learned otherwise. The one before "
            "them, about what you sent, does not depend on other records."
        ),
        "Answer once. Whoever answers twice reveals twice as much: ε₀ doubles.",
    ]


def follows(stated: dict[str, Any], answers: Sequence[Kept], records: int) -> bool:
    """Whether a stated promise is one that these retentions keep, word for word."""
    try:
        numbers = {key: stated[key] for key in ("local", "linking", "central")}
        local, k, central = numbers["local"], numbers["linking"]["k"], numbers["central"]
        return (
            set(stated) == {"relation", "in_words", *numbers}
            and all(isinstance(part, dict) for part in numbers.values())
            and [set(part) for part in numbers.values()]
            == [{"epsilon", "factor"}, {"k"}, {"epsilon", "delta", "factor"}]
            and all(_is_decimal(text) for part in numbers.values() for text in part.values())
            and stated["relation"] == "replace-one"
            and stated["in_words"] == in_words(numbers, records)
            and local_epsilon(answers) <= float(local["epsilon"])
            and _factor(local["epsilon"]) <= float(local["factor"])
            and linking_k(answers, records) >= float(k)
            and 0 < float(central["delta"]) < 1
            and central_delta(answers, records, float(central["epsilon"])) <= float(central["delta"])
            and _factor(central["epsilon"]) <= float(central["factor"])
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return False


def _factor(epsilon: str) -> float:
    """e^ε, rounded up; an OverflowError beyond the largest floating-point number."""
    return math.exp(float(epsilon)) * (1 + _MARGIN)


def _is_decimal(text: object) -> bool:
    """Digits with at most one point, as `_up` and `_down` write them: one text for one number."""
    return (
        isinstance(text, str)
        and text.isascii()
        and 0 < len(text) <= 400
        and all(part.isdigit() for part in text.split("."))
        and text.count(".") <= 1
    )


def _up(value: float, digits: int = _DIGITS) -> str:
    return _written(value, digits, decimal.ROUND_CEILING)


def _down(value: float, digits: int = _DIGITS) -> str:
    return _written(value, digits, decimal.ROUND_FLOOR)


def _written(value: float, digits: int, rounding: str) -> str:
    with decimal.localcontext(decimal.Context(prec=digits, rounding=rounding)):
        rounded = +Decimal(value)
    text = format(rounded, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
