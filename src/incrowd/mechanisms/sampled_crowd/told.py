"""The counts that a sampled crowd tells: those of the published crowds, scaled up, spread over what they cover."""

from __future__ import annotations

from incrowd.mechanisms.base import Made
from incrowd.mechanisms.sampled_crowd.calibrated import people_by
from incrowd.mechanisms.sampled_crowd.certificate import CrowdStatement
from incrowd.mechanisms.sampled_crowd.draw import CrowdOutcome
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled
from incrowd.mechanisms.sampled_crowd.tree.draw import TreeOutcome
from incrowd.mechanisms.sampled_crowd.tree.settle import TreeSettled
from incrowd.mechanisms.sampled_crowd.tree.spread import Spreading
from incrowd.recoding.fidelity import Told, spread, spread_counts


def told(settings: CrowdSettled | TreeSettled, made: Made[CrowdOutcome | TreeOutcome, CrowdStatement]) -> Told:
    """Boxes, and labels of columns whose levels were chosen, are spread by the noisy counts beside the release.

    Where these are of boxes, or `totals`, all is raked to them.
    """
    if isinstance(settings, TreeSettled):
        crowd, grown = settings.crowd, made.having(TreeOutcome).outcome
        return Spreading.of(grown.tree, grown.one_way, made.published, crowd.k, crowd.beta).table
    covers = {a.name: a.hierarchy.recode(made.levels[a.name]) for a in settings.attributes}
    outcome, beta = made.having(CrowdOutcome).outcome, settings.crowd.beta
    one_way, values = outcome.one_way, outcome.values
    likely = {} if values is None else {name: values.likely(name) for name in covers if name not in settings.fixed}
    if one_way is not None:
        return spread_counts(lambda names: people_by(one_way, made.published, names, beta), covers, likely)
    return spread(made.published, covers, beta, likely)
