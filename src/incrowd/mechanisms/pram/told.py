"""The counts that a randomised table tells: the unbiased estimates, spread over what its labels cover."""

from __future__ import annotations

import numpy as np

from incrowd.histogram import Histogram
from incrowd.mechanisms.base import Made
from incrowd.mechanisms.pram.certificate import PramStatement
from incrowd.mechanisms.pram.estimate import tabulate
from incrowd.mechanisms.pram.inversion import Floats, invert
from incrowd.mechanisms.pram.settle import PramSettled
from incrowd.recoding.fidelity import Names, Told, spread_counts


def told(settings: PramSettled, made: Made[Histogram | None, PramStatement]) -> Told:
    covers = {a.name: a.hierarchy.recode(settings.levels[a.name]) for a in settings.attributes}

    def undone(names: Names) -> Floats:
        whole = tabulate(settings.blocks, made.published, names, invariant=settings.section.invariant)
        return np.asarray(whole.arranged(invert(whole.axes, whole.released)[0])) / settings.drawn_rate

    return spread_counts(undone, covers)
