"""The counts that a set of views tells: those of the model that the synthetic table is drawn from."""

from __future__ import annotations

import numpy as np

from incrowd.mechanisms.base import Made
from incrowd.mechanisms.views.certificate import ViewsStatement
from incrowd.mechanisms.views.draw import ViewsOutcome
from incrowd.mechanisms.views.settle import ViewsSettled
from incrowd.recoding.fidelity import Names, Told, spread_counts


def told(settings: ViewsSettled, made: Made[ViewsOutcome, ViewsStatement]) -> Told:
    covers = {a.name: a.hierarchy.recode(settings.base[a.name]) for a in settings.attributes}
    names = settings.names
    model = made.outcome.model

    def modelled(wanted: Names) -> np.ndarray:
        return np.asarray(model.marginal([names.index(name) for name in wanted]))

    return spread_counts(modelled, covers)
