"""Older notions of privacy as belief ratios, and trees of sensitive values as nested lists: what only tests need.

Machanavajjhala, Gehrke and Götz, Section 5. `incrowd.theory.embeddings` has the two that the gallery draws.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from incrowd.theory._groups import as_written
from incrowd.theory._numbers import round_up
from incrowd.theory.adversaries import Adversary
from incrowd.theory.embeddings import Embedding


def perfect_privacy_as_beliefs(shape: Sequence[float] | None = None) -> Embedding:
    """Perfect privacy is ratio 1: the table changes no belief at all.

    With a known shape a generalization can reach it, and only by giving every group exactly the shape's proportions
    (Section 5.3): x_s ≤ p_s for all s, and both add up to 1. With an arbitrary shape (None) nothing can.
    """
    adversary = Adversary.anyone() if shape is None else Adversary.with_shape(shape)
    return Embedding("perfect privacy", adversary, Fraction(1), "subsets", True, 1.0)


def differential_privacy_as_beliefs(epsilon: float, records: int) -> Embedding:
    """Differential privacy, as an adversary who knows all records but one and may believe anything of that one.

    No generalization satisfies it for any ε (Section 5.2): what is left of the table after removing what she knows is
    the one person's record. So `holds_for` refuses every table, and says why.
    """
    ratio = round_up(math.exp(epsilon), 1e-15)
    known = Adversary.anyone(known_records=records - 1)
    return Embedding("differential privacy", known, Fraction(ratio), "subsets", True, ratio)


def breaches_as_beliefs(alpha: float | Fraction, beta: float | Fraction, shape: Sequence[float]) -> Embedding:
    """No (α,β)-breach: whatever had a probability of α at most beforehand has one of β at most given the table.

    (Evfimievski, Gehrke and Srikant 2003; mentioned in Section 5.) Of a statement with prior probability p, an
    adversary who never revises her shape comes to believe x, and the ratio ε asks x ≤ εp and x ≤ 1 − (1−p)/ε (Theorem
    3). Both bounds grow with p, so no breach follows for all p ≤ α if one of them is β at most for p = α: at
    ε = max(β/α, (1−α)/(1−β)). For two values of shares α and 1−α a larger ε allows a breach. The converse is false:
    without any breach a statement of a smaller prior may still gain more than ε.
    """
    low, high = as_written(alpha), as_written(beta)
    ratio = max(high / low, (1 - low) / (1 - high))
    return Embedding("(α,β)-breaches", Adversary.with_shape(shape), ratio, "subsets", False, None, True)


def bounded_change_as_beliefs(d: float | Fraction, gamma: float | Fraction, shape: Sequence[float]) -> Embedding:
    """(d,γ)-privacy: for tuples t with P(t) ≤ d, P(t | table) ≤ γ and P(t | table)/P(t) ≥ d/γ.

    (Rastogi, Suciu and Hong 2007; mentioned in Section 5.) The ratio ε = γ/d, for each value and its negation, gives
    both: x ≤ εp ≤ γ for p ≤ d; and p ≤ εx from the negation, whose doubt 1 − p_out is p and 1 − p_in is x. (A value
    that a group lacks altogether has x = 0; its negation is then certain, which no ratio allows.) Values that the shape
    gives more than d are outside the notion. The converse is false: the notion asks no more than γ of a statement,
    however improbable it was.
    """
    low, high = as_written(d), as_written(gamma)
    return Embedding("(d,γ)-privacy", Adversary.with_shape(shape), high / low, "subsets", False, None, True)


def tree_levels(tree: Sequence[Any]) -> list[list[int]]:
    """The levels of a nested list of column numbers: [[0, 1], [2, [3, 4]]] has a root with two branches.

    A node is as high as its highest child and one more, so that branches of different depth meet at the height of their
    common ancestor. Level h sends each column to its highest ancestor of height at most h.
    """
    paths: dict[int, list[tuple[int, int]]] = {}  # column -> (height, code) of its ancestors, from below
    nodes = 0

    def walk(node: Any) -> tuple[int, list[int]]:
        nonlocal nodes
        nodes += 1
        code = nodes
        if isinstance(node, int):
            paths[node] = [(0, code)]
            return 0, [node]
        children = [walk(child) for child in node]
        height = 1 + max(child_height for child_height, _ in children)
        below = [column for _, columns in children for column in columns]
        for column in below:
            paths[column].append((height, code))
        return height, below

    top, columns = walk(tree)
    return [
        [max((h, code) for h, code in paths[column] if h <= height)[1] for column in range(len(columns))]
        for height in range(1, top + 1)
    ]
