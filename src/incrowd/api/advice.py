"""What scripts ask before they publish: what a policy gives, and what others would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.progress import Progress, drawing, teller
from incrowd.releases.pipeline import count_table

if TYPE_CHECKING:
    from incrowd.comparison import Compared
    from incrowd.comparison.advice import Advised
    from incrowd.comparison.exploration import Exploration
    from incrowd.comparison.look import Looked
    from incrowd.comparison.private_choice import PrivateChoice
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.mechanisms.sample.advice import Advice
    from incrowd.policy import Policy


def _reading(progress: Progress | bool | None) -> Callable[[float], None]:
    tell = teller(progress)
    return lambda part: tell("reading", part)


def look_at(
    thing: Any,
    *,
    data: Any = None,
    columns: Sequence[str] | None = None,
    levels: Mapping[str, int] | None = None,
    show_values: bool = False,
    progress: Progress | bool | None = None,
    **reading: Any,
) -> Looked:
    """A table as a policy would show it, or as it is: what `advise_sample` and `compare` look at.

    Args:
        thing: a policy, the name of its file (.yaml), or a table as in `release`.
        data: the table of a policy; by default what the policy names.
        columns: which columns of a table without a policy to look at; all if not given.
        levels: levels of columns, instead of those that the policy fixes.
        show_values: let error messages show values from the data.
        progress: True for a bar; or a function, called with what is being done and the part of it that is done.
        reading: how to read a table without a policy: `table`, `engine`, `delimiter` and so on, see
            `incrowd.sources.options.Options`. With a policy only `table`, `engine` and `most_cells`.
    """
    from incrowd.comparison.look import look_at

    def count(policy: Policy, attributes: Sequence[CodedAttribute]) -> Histogram:
        return count_table(data, policy, attributes, show_values=show_values, progress=_reading(progress), **reading)

    return look_at(thing, columns, levels or {}, count, reading)


def advise_sample(looked: Looked, *, epsilon: float, delta: float, rows_unknown: int = 1) -> Advice:
    """What makes the rate of a plain sample small, and what would raise it. For the publisher's eyes only."""
    from incrowd.mechanisms.sample.advice import advise

    return advise(looked.table, looked.scales, epsilon=epsilon, delta=delta, rows_unknown=rows_unknown)


@drawing
def compare(
    thing: Any,
    data: Any = None,
    *,
    epsilons: Sequence[float] = (0.5, 1.0, 2.0),
    delta: float | None = None,
    runs: int = 5,
    columns: Sequence[str] | None = None,
    levels: Mapping[str, int] | None = None,
    show_values: bool = False,
    progress: Progress | bool | None = None,
    **reading: Any,
) -> Compared:
    """The errors of five ways to publish a table, at comparable promises. For the publisher's eyes only.

    Args:
        thing: a policy, the name of its file (.yaml), a table as in `release`, or what `look_at` has seen.
        data: the table of a policy; by default what the policy names.
        epsilons: likelihoods may change by a factor of e^ε.
        delta: the probability with which promises may fail; by default the policy's, or 0.001 if there is none.
        runs: how often each is tried; errors are medians.
        columns: which columns of a table without a policy to look at; all if not given.
        levels: levels of columns, instead of those that the policy fixes.
        show_values: let error messages show values from the data.
        progress: True for a bar; or a function, called with what is being done and the part of it that is done.
        reading: how to read a table, as for `look_at`.
    """
    from incrowd import comparison as comparing
    from incrowd.comparison.look import Looked

    tell = teller(progress)
    looked = thing
    if not isinstance(looked, Looked):
        seen = {"data": data, "columns": columns, "levels": levels, "show_values": show_values}
        looked = look_at(thing, **seen, progress=tell, **reading)
    chosen = delta if delta is not None else looked.delta if looked.delta is not None else comparing.DELTA
    return comparing.compare(
        looked.of_single_rows(), epsilons=epsilons, delta=chosen, runs=runs, observed=looked.observed, progress=tell
    )


@drawing
def advise(
    policy: Policy | str | Path,
    data: Any = None,
    *,
    show_values: bool = False,
    table: str | None = None,
    engine: str | None = None,
    most_cells: int | None = None,
    time_limit: float | None = None,
    progress: Progress | bool | None = None,
) -> Advised:
    """What a policy gives, and what other columns, levels, ε or mechanisms would. For the publisher's eyes only.

    Each alternative is carried out on the true table and scored by the counts of one, two and three columns that its
    release tells. Nothing is charged and nothing is written.

    Args:
        policy: a policy, or the name of its file.
        data: the table; by default what the policy names.
        show_values: let error messages show values from the data.
        table: as for `release`.
        engine: as for `release`.
        most_cells: as for `release`.
        time_limit: for how many seconds alternatives are tried, 180 if not given.
        progress: True for a bar; or a function, called with what is being done and the part of it that is done.
    """
    from incrowd.comparison.advice import TIME_LIMIT, advise
    from incrowd.releases.pipeline import read_policy

    def count(policy: Policy, attributes: Sequence[CodedAttribute]) -> Histogram:
        reading = {"show_values": show_values, "table": table, "engine": engine, "most_cells": most_cells}
        return count_table(data, policy, attributes, progress=_reading(progress), **reading)

    seconds = TIME_LIMIT if time_limit is None else time_limit
    return advise(read_policy(policy), count, time_limit=seconds, progress=teller(progress))


def explore(policy: Policy | str | Path, data: Any = None, *, progress: Progress | bool | None = None) -> Exploration:
    """Count a policy's table once, and keep it to see what other policies would make of it. For the publisher alone.

    Nothing is charged and nothing is written; what is shown is void.

    Args:
        policy: a policy, or the name of its file.
        data: the table; by default what the policy names.
        progress: True for a bar; or a function, called with what is being done and the part of it that is done.
    """
    from incrowd.comparison.exploration import Exploration
    from incrowd.releases.pipeline import read_policy

    def count(policy: Policy, attributes: Sequence[CodedAttribute]) -> Histogram:
        return count_table(data, policy, attributes, progress=_reading(progress), show_values=False)

    return Exploration(read_policy(policy), count)


def choose_privately(
    policy: Policy | str | Path,
    data: Any = None,
    *,
    share: float,
    show_values: bool = False,
    table: str | None = None,
    engine: str | None = None,
    most_cells: int | None = None,
) -> PrivateChoice:
    """Choose among what lies around a policy (fewer columns, other levels, β or k) within its promise.

    The choice costs a share of the policy's ε, which is charged to its ledger; the rest is left for the release. What
    comes back may be published: no score is shown.

    Args:
        policy: a policy of a sampled crowd with fixed levels and a ledger, or the name of its file.
        data: the table; by default what the policy names.
        share: the part of ε that pays for the choice, between 0 and 1.
        show_values: let error messages show values from the data.
        table: as for `release`.
        engine: as for `release`.
        most_cells: as for `release`.
    """
    from incrowd.comparison.private_choice import choose_policy
    from incrowd.releases.pipeline import read_policy

    def count(policy: Policy, attributes: Sequence[CodedAttribute]) -> Histogram:
        reading = {"show_values": show_values, "table": table, "engine": engine, "most_cells": most_cells}
        return count_table(data, policy, attributes, progress=lambda _: None, **reading)

    return choose_policy(read_policy(policy), count, share)
