"""A table to be looked at before anything is released: by its policy, or as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.core.errors import IncrowdError, ParameterError
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.mechanisms.sample import draw as sample
from incrowd.mechanisms.sample.advice import Scale, observed_scales, scales
from incrowd.mechanisms.sample.section import Sample
from incrowd.mechanisms.sample.settle import Rounding, recode
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.sources import open_source
from incrowd.sources.observed import count_observed

Count = Callable[[Policy, Sequence[CodedAttribute]], Histogram]


@dataclass(frozen=True, eq=False)
class Looked:
    """A table as it would be shown. For the publisher's eyes only.

    Attributes:
        table: its columns at their levels, numbers rounded where the policy says so.
        scales: how the columns could become coarser.
        asked: the policy's section `release`, if that asks for a plain sample.
        delta: the one that the policy's release is asked to keep, if it has one.
        observed: whether the values that there could be were read off the table, there being no policy to declare them.
        rows_per_person: how many rows of one person count.
    """

    table: Histogram
    scales: Mapping[str, Scale]
    asked: Sample | None
    delta: float | None = None
    observed: bool = False
    rows_per_person: int = 1

    def of_single_rows(self) -> Histogram:
        """The table, if each person has one row in it.

        Raises:
            ParameterError: they may have more.
        """
        if self.rows_per_person > 1:
            raise ParameterError(
                "Ways to publish are compared at promises to people with one row each.",
                code="parameter-combination",
                remedy="Set 'at_most: 1' in the policy's section 'people'; `incrowd advise` compares with several.",
            )
        return self.table


def is_policy(thing: Any) -> bool:
    """Whether something is a policy or the name of its file, rather than a table."""
    return isinstance(thing, Policy) or (isinstance(thing, str | Path) and Path(thing).suffix in (".yaml", ".yml"))


def look_at(
    thing: Any, columns: Sequence[str] | None, levels: Mapping[str, int], count: Count, reading: Mapping[str, Any]
) -> Looked:
    """A table as a policy would show it, or as it is.

    Args:
        thing: a policy, the name of its file, or a table.
        columns: which columns of a table without a policy to look at; all if not given.
        levels: the levels of columns for which the policy fixes none, or others than it fixes.
        count: counts the table that a policy is about.
        reading: how to read a table without a policy.
    """
    if not is_policy(thing):
        if levels:
            raise ParameterError(
                "Levels need a policy with hierarchies; a table alone has none.", code="parameter-combination"
            )
        source = open_source(thing, **reading)
        names = [column.name for column in source.columns()] if columns is None else list(columns)
        table = count_observed(source, names).histogram
        return Looked(table, observed_scales(table), None, observed=True)
    if columns is not None:
        raise ParameterError(
            "With a policy, the columns are those that it publishes.",
            code="parameter-combination",
            remedy="Drop the others in the policy, or name the table itself.",
        )
    if reading.keys() - {"table", "engine", "most_cells"}:
        raise ParameterError(
            "With a policy, its section 'data' says how the file is read.",
            code="parameter-combination",
            remedy="Change its section 'data', or name the table itself.",
        )
    policy = thing if isinstance(thing, Policy) else Policy.from_file(thing)
    attributes = codings(policy)
    unknown = set(levels) - {a.name for a in attributes}
    if unknown:
        raise ParameterError("A level is given for a column that is not published.", code="column-unknown")
    counted = count(policy, attributes)
    shown = _chosen(policy, attributes, counted, levels) | dict(levels)
    asked = policy.release if isinstance(policy.release, Sample) else None
    rounding: Mapping[str, Rounding] = {}
    if asked is not None:
        settled = MECHANISMS["sample"].settle(policy, attributes, 1).sample
        rounding, asked = settled.rounding, asked.model_copy(update={"rows_unknown": settled.rows_unknown})
    # One rounding out of many: what is found on it is an example of what will be found.
    table = sample.round_at_random(counted, rounding, RandomSource())
    table = recode(table, attributes, shown, rounding)
    ways = {name: scale for name, scale in scales(attributes, shown).items() if name not in rounding}
    delta = getattr(policy.release, "delta", None)
    return Looked(table, ways, asked, delta, rows_per_person=policy.rows_per_person)


def _chosen(
    policy: Policy, attributes: Sequence[CodedAttribute], table: Histogram, given: Mapping[str, int]
) -> dict[str, int]:
    """The levels that the policy's release would have: fixed ones, and those that its mechanism chooses; else 0."""
    levels = {a.name: policy.attributes[a.name].level for a in attributes}
    open_ones = [a.name for a in attributes if levels[a.name] is None and a.hierarchy.height and a.name not in given]
    if open_ones and policy.release is not None:
        mechanism = MECHANISMS[policy.release.mechanism]
        try:
            settings, prepared = mechanism.prepare(mechanism.settle(policy, attributes, 1), table, lambda *_: None)
            levels |= mechanism.draw(settings, prepared, RandomSource()).levels
        except IncrowdError:  # the policy's own release cannot be made; others may be
            pass
    return {name: level or 0 for name, level in levels.items()}
