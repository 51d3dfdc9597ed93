"""The counts that a generalized table tells: its own, spread over what its labels cover."""

from __future__ import annotations

import numpy as np

from incrowd.domain import Recode
from incrowd.mechanisms.base import Made
from incrowd.mechanisms.generalization.certificate import GeneralizationStatement
from incrowd.mechanisms.generalization.draw import GeneralizationOutcome
from incrowd.mechanisms.generalization.settle import GeneralizationSettled
from incrowd.recoding.fidelity import Told, spread


def told(settings: GeneralizationSettled, made: Made[GeneralizationOutcome, GeneralizationStatement]) -> Told:
    tree = made.outcome.tree
    local = {} if tree is None else {c.name: [np.array(values) for values in c.sets] for c in tree.columns}
    covers: dict[str, Recode | list[np.ndarray]] = {
        a.name: local[a.name] if a.name in local else a.hierarchy.recode(made.levels[a.name])
        for a in settings.generalization.attributes
    }
    return spread(made.published, covers)
