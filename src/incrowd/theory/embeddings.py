"""Older notions of privacy as belief ratios: against which adversary, at which ratio.

Machanavajjhala, Gehrke and Götz, Section 5. All of them are about adversaries who never revise their belief.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy.typing as npt

from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.core.numbers import as_given
from incrowd.theory._groups import as_written, float_above, written_as
from incrowd.theory._numbers import require_count
from incrowd.theory.adversaries import Adversary
from incrowd.theory.beliefs import Predicates, belief_ratio


@dataclass(frozen=True)
class Embedding:
    """A notion of privacy in the language of beliefs.

    Attributes:
        notion: its usual name.
        adversary: the adversary it is about.
        exact: the belief ratio it promises, as a fraction.
        predicates: what is sensitive.
        equivalent: whether the ratio also implies the notion; otherwise the notion only implies the ratio.
        paper_ratio: the paper's value where it differs, or None where the paper's statement does not apply.
        sufficient: whether the ratio implies the notion and it is not so the other way round.
    """

    notion: str
    adversary: Adversary
    exact: Fraction
    predicates: Predicates
    equivalent: bool
    paper_ratio: float | None
    sufficient: bool = False

    @property
    def ratio(self) -> float:
        """The belief ratio, rounded up."""
        return float_above(self.exact)

    def holds_for(self, counts: npt.ArrayLike) -> bool:
        """Whether a table of groups × values keeps the ratio against the adversary."""
        return belief_ratio(counts, self.adversary, self.predicates).satisfies(self.exact)


def recursive_diversity_as_beliefs(c: float | Fraction, values: int) -> Embedding:
    """(c,2)-diversity: no value makes up more than c/(c+1) of a group.

    Equivalent to the belief ratio ε = max(K·c/(c+1), (c+1)(K−1)/K) for K values against the uniform shape with
    infinite stubbornness: Theorem 3 asks x ≤ ε/K and x ≤ 1 − (1 − 1/K)/ε of the largest share x; both bounds grow
    with ε, and the smaller of them is c/(c+1) at exactly this ε. (Equation 6 of the paper has min for max; its own
    special case (c+1)/2 at K = 2 is the same.) Needs c ≥ 1/(K−1), else no group is (c,2)-diverse.

    "At most" is the paper's reading; with the strict inequality of recursive diversity, a table exactly on the
    boundary keeps the ratio without being diverse.
    """
    size = require_count("values", values, least=2)
    exact_c = _exactly("c", c)
    if exact_c < Fraction(1, size - 1):
        raise ParameterError(
            f"No group can be (c,2)-diverse over {size} values with c below 1/{size - 1}.",
            code="parameter-range",
            remedy=f"Use c of at least 1/{size - 1}.",
        )
    ratio = max(size * exact_c / (exact_c + 1), (exact_c + 1) * Fraction(size - 1, size))
    return Embedding("(c,2)-diversity", Adversary.with_shape((1.0,) * size), ratio, "values", True, float_above(ratio))


def t_closeness_as_beliefs(t: float | Fraction, distribution: Sequence[int]) -> Embedding:
    """t-closeness under the equal distance implies a belief ratio; the converse is false for every ratio.

    Args:
        t: the closeness.
        distribution: records of the whole table by sensitive value.

    The equal distance is total variation, so no share x_s exceeds p_s + t. Against the shape p (Theorem 3) that gives
    ε = max over s of (p_s + t)/p_s and (1 − p_s)/(1 − p_s − t), as long as t < 1 − p_s for every s; values that do not
    occur in the table are not disclosed. This is attained, so no smaller ratio follows from t.

    Lemma 1 of the paper has p_s/(p_s − t) for the second term and needs t below every p_s; it is the same for two
    values and no smaller for more: 1 − p_s is at least any other p_r, and y/(y − t) falls in y. It is returned as
    `paper_ratio`. (Section 4.2 of the paper states the lemma backwards.)
    """
    exact_t = _exactly("t", t)
    records = [require_count("a count of the distribution", n, least=0) for n in distribution]
    total = sum(records)
    shares = [Fraction(n, total) for n in records if n] if total else []
    if exact_t < 0 or len(shares) < 2:
        raise ParameterError(
            "t-closeness needs t of 0 or above and a distribution in which at least two values occur.",
            code="parameter-range",
        )
    if exact_t >= 1 - max(shares):
        raise UnreachableError(
            "So large a t allows a group in which everyone has the same value, which keeps no belief ratio.",
            code="unreachable",
            remedy=f"Use t below {as_given(float(1 - max(shares)))}, one minus the largest share.",
        )
    first = max(1 + exact_t / share for share in shares)
    second = max((1 - share) / (1 - share - exact_t) for share in shares)
    lemma = None
    if exact_t < min(shares):
        lemma = float_above(max(first, *(share / (share - exact_t) for share in shares)))
    adversary = Adversary.with_shape([float(n) for n in records])
    return Embedding("t-closeness", adversary, max(first, second), "values", False, lemma)


def _exactly(name: str, number: float | Fraction) -> Fraction:
    written_as(name, number)  # refuses what is no finite number
    return as_written(number)
