"""A table to be looked at before anything is released: by its policy, or as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.core.errors import ParameterError
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
        observed: whether the values that there could be were read off the table, there being no policy to declare them.
    """

    table: Histogram
    scales: Mapping[str, Scale]
    asked: Sample | None
    observed: bool = False


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
                "Levels are those of a policy's hierarchies, and a table has none.", code="parameter-combination"
            )
        source = open_source(thing, **reading)
        names = [column.name for column in source.columns()] if columns is None else list(columns)
        table = count_observed(source, names).histogram
        return Looked(table, observed_scales(table), None, observed=True)
    if columns is not None:
        raise ParameterError(
            "The columns are those of the policy.",
            code="parameter-combination",
            remedy="Drop the others in the policy, or name the table itself.",
        )
    if reading.keys() - {"table", "engine", "most_cells"}:
        raise ParameterError(
            "How the table's file is written stands in the policy.",
            code="parameter-combination",
            remedy="Change its section 'data', or name the table itself.",
        )
    policy = thing if isinstance(thing, Policy) else Policy.from_file(thing)
    attributes = codings(policy)
    unknown = set(levels) - {a.name for a in attributes}
    if unknown:
        raise ParameterError("A level is given for a column that is not published.", code="column-unknown")
    shown = {a.name: levels.get(a.name, policy.attributes[a.name].level or 0) for a in attributes}
    asked = policy.release if isinstance(policy.release, Sample) else None
    rounding: Mapping[str, Rounding] = {}
    if asked is not None:
        rounding = MECHANISMS["sample"].settle(policy, attributes, 1).sample.rounding
    # One rounding out of many: what is found on it is an example of what will be found.
    table = sample.round_at_random(count(policy, attributes), rounding, RandomSource())
    table = recode(table, attributes, shown, rounding)
    ways = {name: scale for name, scale in scales(attributes, shown).items() if name not in rounding}
    return Looked(table, ways, asked)
