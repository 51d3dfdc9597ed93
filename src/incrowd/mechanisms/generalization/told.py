"""The counts that a generalized table tells: its own, spread over what its labels cover."""

from __future__ import annotations

import numpy as np

from incrowd.domain import Recode
from incrowd.hierarchy import CodedAttribute, Hierarchy
from incrowd.mechanisms.base import Made
from incrowd.mechanisms.generalization.draw import GeneralizationOutcome
from incrowd.mechanisms.generalization.settle import GeneralizationSettled
from incrowd.mechanisms.generalization.stated import GeneralizationStatement
from incrowd.recoding.fidelity import Told, spread


def told(settings: GeneralizationSettled, made: Made[GeneralizationOutcome, GeneralizationStatement]) -> Told:
    def cover(attribute: CodedAttribute) -> Recode | list[np.ndarray]:
        level = made.levels.get(attribute.name)
        if level is not None:
            return attribute.hierarchy.recode(level)
        return _nodes(attribute.hierarchy, made.published[attribute.name].labels)

    return spread(made.published, {a.name: cover(a) for a in settings.generalization.attributes})


def _nodes(hierarchy: Hierarchy, labels: tuple[str | None, ...]) -> list[np.ndarray]:
    """What each node of a hierarchy covers: one that is the same at several levels is called as at the lowest."""
    found: dict[str | None, np.ndarray] = {}
    for level in reversed(hierarchy.levels):
        found |= {label: np.flatnonzero(level.to == code) for code, label in enumerate(level.labels)}
    return [found[label] for label in labels]
