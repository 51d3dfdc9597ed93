"""Who reads the table: what she believed before, how firmly, and whom she already knows.

After Machanavajjhala, Gehrke and Götz, "Data Publishing against Realistic Adversaries" (VLDB 2009), Sections 2.3
and 2.5.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from incrowd.core.errors import ParameterError
from incrowd.theory._groups import as_written
from incrowd.theory._numbers import require_between, require_count

# Beyond these a product of two of our numbers could leave the range of a float.
_SMALLEST_WEIGHT, _LARGEST_WEIGHT = 1e-30, 1e30
_ALL_RECORDS = 1 << 53  # more than any table holds


@dataclass(frozen=True)
class DirichletPrior:
    """What an adversary believed before the table: one positive parameter σ(s) per sensitive value.

    Knowing nothing is one per value; every record she has seen adds one to its value. Parameters below 1 are allowed
    as long as they add up to at least 1.
    """

    parameters: tuple[float, ...]

    def __post_init__(self) -> None:
        weights = _weights("a prior parameter", self.parameters)
        object.__setattr__(self, "parameters", weights)
        if min(weights) == 0:
            raise ParameterError(
                "A prior parameter must be above 0.",
                code="parameter-range",
                remedy="A value she has never seen has parameter 1; one she thinks impossible, a small number.",
            )
        if sum(map(as_written, weights)) < 1:
            raise ParameterError(
                "The stubbornness (the sum of the prior parameters) must be at least 1.",
                code="parameter-range",
                remedy="Even an adversary who knows nothing has 1 per value.",
            )

    @classmethod
    def from_counts(cls, observed: Sequence[int]) -> DirichletPrior:
        """She has seen that many records of each value: D(observed + 1)."""
        return cls(tuple(require_count("an observed count", n, least=0) + 1.0 for n in observed))

    @classmethod
    def from_shape(cls, shape: Sequence[float], stubbornness: float) -> DirichletPrior:
        """She believes in these proportions as strongly as after `stubbornness` records."""
        strength = Fraction(require_between("stubbornness", stubbornness, 1, _LARGEST_WEIGHT, open_low=False))
        weights = [as_written(weight) for weight in _weights("a weight of the shape", shape)]
        return cls(tuple(float(strength * weight / sum(weights)) for weight in weights))

    @property
    def stubbornness(self) -> float:
        """σ, the size of the table she might have learned from."""
        return math.fsum(self.parameters)


class AdversaryClass(enum.Enum):
    """The paper's four classes, by what the publisher knows of the prior."""

    KNOWN_PRIOR = "I"
    KNOWN_STUBBORNNESS = "II"
    KNOWN_SHAPE = "III"
    ANYONE = "IV"


@dataclass(frozen=True)
class Adversary:
    """A class of adversaries, and how many records of the table each of them knows.

    Use the constructors `with_prior`, `with_stubbornness`, `with_shape` and `anyone`.

    `or_less_stubborn` adds every adversary of the same shape and less stubbornness who still has at least 1 per
    value. The paper's class I is worded so ("stubbornness at most σ"), but its Theorem 1 covers σ alone, and weaker
    is not always safer: a group of two records with different values, against the uniform shape over two values,
    has ratio 1 for σ → ∞ and 3/2 for σ = 2. For one shape p_out is monotone in σ, so checking both ends of the range is
    enough. Class II has its worst case at the largest σ.
    """

    kind: AdversaryClass
    weights: tuple[float, ...] | None = None
    stubbornness: float | None = None
    known_records: int = 0
    or_less_stubborn: bool = False

    def __post_init__(self) -> None:
        known = require_count("known_records", self.known_records, least=0)
        object.__setattr__(self, "known_records", min(known, _ALL_RECORDS))

    @classmethod
    def with_prior(cls, prior: DirichletPrior, *, known_records: int = 0, or_less_stubborn: bool = False) -> Adversary:
        """Class I: the publisher knows what she believes, and how firmly."""
        if or_less_stubborn and min(prior.parameters) < 1:
            raise ParameterError(
                "Less stubborn adversaries have at least 1 per value; this prior has less.",
                code="parameter-combination",
                remedy="Use a prior with every parameter at least 1, or leave or_less_stubborn out.",
            )
        return cls(AdversaryClass.KNOWN_PRIOR, prior.parameters, prior.stubbornness, known_records, or_less_stubborn)

    @classmethod
    def with_stubbornness(cls, stubbornness: float, *, known_records: int = 0) -> Adversary:
        """Class II: she may believe anything, with at most this stubbornness and at least 1 per value."""
        strength = require_between("stubbornness", stubbornness, 1, _LARGEST_WEIGHT, open_low=False)
        return cls(AdversaryClass.KNOWN_STUBBORNNESS, None, strength, known_records)

    @classmethod
    def with_shape(cls, shape: Sequence[float], *, known_records: int = 0, or_less_stubborn: bool = False) -> Adversary:
        """Class III: she is certain of these proportions, whatever the table says.

        Only proportions matter; give whole numbers where they must be exact (thirds, say).
        """
        weights = _weights("a weight of the shape", shape)
        return cls(AdversaryClass.KNOWN_SHAPE, weights, None, known_records, or_less_stubborn)

    @classmethod
    def anyone(cls, *, known_records: int = 0) -> Adversary:
        """Class IV: any prior at all. No generalization protects against it (Theorem 4)."""
        return cls(AdversaryClass.ANYONE, None, None, known_records)

    def excluding(self, possible: Sequence[int], size: int) -> Adversary:
        """The same of someone who knows that a person's value is one of these, of so many.

        A Dirichlet prior, given that, is the Dirichlet prior of the parameters left. Of class II, who has at least 1
        for each value, the largest stubbornness is left if the other values have just that.
        """
        known, less = self.known_records, self.or_less_stubborn
        if self.kind is AdversaryClass.KNOWN_PRIOR and self.weights is not None:
            prior = DirichletPrior(tuple(self.weights[value] for value in possible))
            return Adversary.with_prior(prior, known_records=known, or_less_stubborn=less)
        if self.kind is AdversaryClass.KNOWN_SHAPE and self.weights is not None:
            shape = [self.weights[value] for value in possible]
            return Adversary.with_shape(shape, known_records=known, or_less_stubborn=less)
        if self.kind is AdversaryClass.KNOWN_STUBBORNNESS and self.stubbornness is not None:
            left = self.stubbornness - (size - len(possible))
            return Adversary.with_stubbornness(left, known_records=known)
        return self


def _weights(name: str, values: Sequence[float]) -> tuple[float, ...]:
    checked = tuple(
        value if value == 0 else require_between(name, value, _SMALLEST_WEIGHT, _LARGEST_WEIGHT) for value in values
    )
    if len(checked) < 2 or not any(checked):
        raise ParameterError(
            "A prior or a shape needs at least two values, and one of them above 0.", code="parameter-range"
        )
    return tuple(float(value) for value in checked)
