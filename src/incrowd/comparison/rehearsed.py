"""A policy carried out on a table that is counted already: to the end but for the ledger, and void.

Nothing is charged and nothing is written; what comes of it is for the publisher's eyes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.core.errors import PolicyError
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.base import AnyMechanism, Made
from incrowd.mechanisms.registry import MECHANISMS, require_countable
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.fidelity import Names, Told


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """What came of a policy.

    Attributes:
        mechanism: that of the policy.
        attributes: the columns that are published.
        settings: what was settled.
        table: the true table of these columns, base codes.
        made: the release.
        told: what it tells of all columns that were counted, also of those that it does not publish.
    """

    mechanism: AnyMechanism
    attributes: Sequence[CodedAttribute]
    settings: Any
    table: Histogram
    made: Made[Any, Any]
    told: Told

    @property
    def epsilon(self) -> float | None:
        """That of differential privacy; none if something else is promised."""
        promise = self.made.statement.promise
        found: float | None = promise.document().get("epsilon") if "differential" in promise.notion else None
        return found

    @property
    def promise(self) -> str:
        """In words."""
        words: str = self.made.statement.promise.in_words
        return words


def rehearsed(policy: Policy, table: Histogram, source: RandomSource) -> Rehearsed:
    """Carry a policy out.

    Args:
        policy: whose columns are all in the table.
        table: base codes, with columns perhaps that this policy does not publish.
        source: the random bits.

    Raises:
        IncrowdError: it cannot be carried out.
    """
    if policy.release is None:
        raise PolicyError("The policy does not say how to release.", code="policy-invalid")
    require_countable(policy)
    mechanism, attributes = MECHANISMS[policy.release.mechanism], codings(policy)
    settings = mechanism.settle(policy, attributes, 1)
    part = table.project([a.name for a in attributes])
    settings, prepared = mechanism.prepare(settings, part, lambda _what, _part: None)
    made = mechanism.draw(settings, prepared, source)
    told = of_all(table, mechanism.told(settings, made), part.names)
    return Rehearsed(mechanism, attributes, settings, part, made, told)


def of_all(table: Histogram, told: Told, published: Sequence[str]) -> Told:
    """What is told of all columns, also of those that are not published: of these, that every value is as likely."""

    def all_told(names: Names) -> np.ndarray:
        known = tuple(name for name in names if name in published)
        counts = told(known) if known else np.array(float(table.total))
        for axis, name in enumerate(names):
            if name not in published:
                size = len(table[name].labels)
                counts = np.repeat(np.expand_dims(counts / size, axis), size, axis=axis)
        return counts

    return all_told
