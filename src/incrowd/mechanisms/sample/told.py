"""The counts that a plain sample tells: its own, scaled up, spread over what its labels cover."""

from __future__ import annotations

from incrowd.core.errors import ParameterError
from incrowd.mechanisms.base import Made
from incrowd.mechanisms.sample.certificate import SampleStatement
from incrowd.mechanisms.sample.draw import SampleOutcome
from incrowd.mechanisms.sample.settle import SampleSettled
from incrowd.recoding.fidelity import Told, spread


def told(settings: SampleSettled, made: Made[SampleOutcome, SampleStatement]) -> Told:
    if settings.sample.rounding:
        raise ParameterError(
            "Columns that are rounded at random show values of their own, which cannot be compared with the table's.",
            code="parameter-combination",
            remedy="Leave out 'round' to compare.",
        )
    covers = {a.name: a.hierarchy.recode(settings.levels[a.name]) for a in settings.attributes}
    return spread(made.published, covers, made.outcome.terms.rate)
