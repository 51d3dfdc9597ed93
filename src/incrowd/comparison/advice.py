"""What else a policy could say, and how near the counts of such a release come to the true ones.

Each alternative is a policy of its own. It is carried out on the counted table, to the end but for the ledger, and what
its release tells is scored against the truth (`recoding.fidelity`). A column that an alternative does not publish is
taken as somebody must who knows only its domain: every value as likely as another.

Every number here is read off the raw table, and so is a choice that is made because of it: the promise of the release
does not cover it. Mechanisms that choose by themselves, privately, pay for that out of their ε.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from incrowd.comparison.rehearsed import Rehearsed, rehearsed
from incrowd.core.deadline import within
from incrowd.core.display import INTERNAL, Picture, Showable, Shown, ShownTable, picture
from incrowd.core.errors import IncrowdError, PolicyError
from incrowd.core.numbers import as_given, number, per_mille
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.fidelity import TrueCounts

LOOKS = (
    "Choosing by these numbers looks at the table, and no promise covers that choice. Decide before you look where you "
    "can; else say beside the release that its policy was chosen on the data. To choose within the promise, let "
    "the mechanism choose: levels (selection_epsilon), trees and views are chosen privately, out of ε. Between sampled "
    "crowds, `incrowd advise --privately SHARE` chooses for a share of ε."
)
_NO_EPSILON = (
    "The promise of this policy has no ε to compare others by. Those with an ε are shown at ε = 1 and δ = 10⁻⁶: change "
    "these to what you can answer for."
)
_WITHOUT = (1.0, 1e-6)  # ε and δ, where the policy has none
_FACTORS = (0.5, 2.0, 5.0)  # of ε
_BEST = 3
_LEAST_GAIN = 0.002  # of the score; less is noise
TIME_LIMIT = 180.0
"""For how many seconds alternatives are tried, if nobody says."""


@dataclass(frozen=True)
class Alternative:
    """A policy that differs from the current one in one thing, and what came of it. For the publisher's eyes only.

    Attributes:
        change: what differs, in words.
        lines: what to write into the policy instead.
        mechanism: its name.
        epsilon: of differential privacy; none if it promises something else.
        promise: what it promises, in words.
        scores: of counts of one, two and three columns, from 0 to 1.
        refused: why it cannot be done, if it cannot.
        weaker: whether it promises less by what it changes.
    """

    change: str
    lines: str
    mechanism: str
    epsilon: float | None = None
    promise: str = ""
    scores: tuple[float, ...] = ()
    refused: str | None = None
    weaker: bool = False

    @property
    def score(self) -> float:
        """By which alternatives are ranked: the mean of the scores; -1 for what cannot be done."""
        return math.fsum(self.scores) / len(self.scores) if self.scores else -1.0


@dataclass(frozen=True, repr=False)
class Advised(Showable):
    """What a policy gives and what others would. For the publisher's eyes only.

    Attributes:
        current: the policy as it is.
        alternatives: others, the best first.
        best: the changes that gain most at no weaker promise, three at most.
        control: the scores of true one-way counts and independence.
        columns: those of the policy that are published.
        records: in the table.
        notes: what to keep in mind.
    """

    current: Alternative
    alternatives: tuple[Alternative, ...]
    best: tuple[Alternative, ...]
    control: tuple[float, ...]
    columns: tuple[str, ...]
    records: int
    notes: tuple[str, ...] = (LOOKS,)

    def shown(self) -> Shown:
        """The policy as it is, and what changes would give, the best first."""
        rows = [
            (one.change, one.promise or one.refused or "", *(per_mille(s) for s in one.scores or ()))
            for one in (self.current, *self.alternatives)
        ]
        width = max(map(len, rows))
        return Shown(
            f"{self.records:,} records of {', '.join(self.columns)}",
            tuple(f"{place}. {one.change}: {one.lines}" for place, one in enumerate(self.best, start=1)),
            (
                ShownTable(
                    ("change", "promise", "one column", "two", "three")[:width],
                    [(*row, *[""] * (width - len(row))) for row in rows],
                    words=2,
                ),
            ),
            self.notes,
            internal=INTERNAL,
        )

    def plot(self, path: str | Path | None = None) -> Picture:
        """Promises and errors as a picture, which a notebook shows; with a path, saved as SVG."""
        from incrowd.comparison.chart import draw_advice

        return picture(draw_advice(self), path)


Places = Mapping[tuple[str, ...], Any]
"""What a policy says instead: by its places, None for nothing."""


@dataclass(frozen=True)
class Change:
    """A change in words, what the policy says instead, and whether it promises less by that."""

    words: str
    places: Places
    weaker: bool = False


@dataclass(frozen=True)
class Tried:
    """A policy that was carried out: what came of it, the levels that it shows, and (ε, δ) to compare others at."""

    found: Alternative
    levels: Mapping[str, int]
    promise: tuple[float, float] | None


def advise(
    policy: Policy,
    count: Callable[[Policy, Sequence[CodedAttribute]], Histogram],
    *,
    time_limit: float = TIME_LIMIT,
    source: RandomSource | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Advised:
    """Carry out a policy and what lies around it, until the time is up.

    Args:
        policy: with a section `release`.
        count: counts the table that the policy is about.
        time_limit: for how many seconds alternatives are tried; those that are left are named in a note.
        source: the random bits; secret ones if not given.
        progress: called with what is being done and the part of it that is done.
    """
    if policy.release is None:
        raise PolicyError(
            "The policy does not say how to release.", code="policy-invalid", remedy="Give it a section 'release'."
        )
    begun = time.monotonic()
    attributes = codings(policy)
    table, bits = count(policy, attributes), source or RandomSource()
    truth = TrueCounts.of(table)
    tried = carried_out(policy, Change("as it is", {}), table, truth, bits)
    current = tried.found
    changes = list(changes_around(policy, attributes, tried, table))
    found: list[Alternative] = []
    left: list[str] = []
    for place, change in enumerate(changes):
        if progress is not None:
            progress(change.words, place / len(changes))
        seconds = begun + time_limit - time.monotonic()
        other = None if seconds <= 0 else within(seconds, partial(carried_out, policy, change, table, truth, bits))
        if other is None:
            left.append(change.words)
        else:
            found.append(other.found)
    found.sort(key=lambda alternative: -alternative.score)
    return Advised(
        current=current,
        alternatives=tuple(found),
        best=tuple(_best(current, found)),
        control=truth.control(),
        columns=table.names,
        records=table.total,
        notes=(LOOKS, *(() if tried.promise else (_NO_EPSILON,)), *_limits(truth, left, time_limit)),
    )


_NAMED = 8  # alternatives for which there was no time


def _limits(truth: TrueCounts, left: Sequence[str], time_limit: float) -> Iterator[str]:
    """What was not looked at."""
    looked = zip(("single columns", "pairs", "triples"), truth.counts, truth.possible, strict=False)
    fewer = [f"{len(sets):,} of {possible:,} {what}" for what, sets, possible in looked if len(sets) < possible]
    if fewer:
        yield f"Scores are of {' and '.join(fewer)} of columns, picked without looking at the values."
    if left:
        shown = left if len(left) <= _NAMED + 1 else [*left[:_NAMED], f"and {len(left) - _NAMED} more"]
        yield (
            f"The time was up after {number(time_limit, 3)} seconds. Not tried: {', '.join(shown)}. A longer "
            "time limit (--time-limit, time_limit) leaves time for them."
        )


def _best(current: Alternative, found: Sequence[Alternative]) -> Iterator[Alternative]:
    """Those that gain most at no weaker a promise, one of each mechanism and column.

    Beside a promise with an ε these have the same ε or a smaller one. Without, they are of the same mechanism, or have
    an ε, which says more than any promise without.
    """
    limit, said = current.epsilon, set[str]()
    for one in found:
        kept = not one.weaker and (one.epsilon is not None or (limit is None and one.mechanism == current.mechanism))
        kept = kept and (limit is None or one.epsilon is None or one.epsilon <= limit * (1 + 1e-9))
        kind = one.change if one.mechanism == current.mechanism else one.mechanism
        if kept and one.score > max(current.score, 0.0) + _LEAST_GAIN and kind not in said and len(said) < _BEST:
            said.add(kind)
            yield one


# --- what could be otherwise ------------------------------------------------------------------------------------------


def changes_around(
    policy: Policy, attributes: Sequence[CodedAttribute], tried: Tried, table: Histogram
) -> Iterator[Change]:
    """What could be otherwise in a policy: a level, a parameter, another mechanism, a column less.

    One of each kind comes after the other, since there may not be time for all.
    """
    kinds = (
        _other_levels(policy, attributes, tried),
        _other_settings(policy),
        _other_mechanisms(policy, attributes, tried, table),
        _fewer_columns(attributes),
    )
    return (change for change in chain.from_iterable(zip_longest(*kinds)) if change is not None)


def _fewer_columns(attributes: Sequence[CodedAttribute]) -> Iterator[Change]:
    for a in attributes if len(attributes) > 1 else ():
        yield Change(f"drop {a.name}", {("attributes", a.name, "role"): "drop"})


def _other_levels(policy: Policy, attributes: Sequence[CodedAttribute], tried: Tried) -> Iterator[Change]:
    for a in attributes:
        level = tried.levels.get(a.name, policy.attributes[a.name].level)  # as it is fixed, or was chosen
        for step, word in () if level is None else ((-1, "finer"), (1, "coarser")):
            if level is not None and 0 <= level + step <= a.hierarchy.height:
                there: tuple[str, ...] = ("attributes", a.name, "level")
                yield Change(f"{a.name} {word}, at level {level + step}", {there: level + step})


def _other_settings(policy: Policy) -> Iterator[Change]:
    section = policy.release
    assert section is not None  # noqa: S101 - asked before
    mechanism = MECHANISMS[section.mechanism]
    epsilon: float | None = section.model_dump().get("epsilon")
    for factor in () if epsilon is None else _FACTORS:
        larger = factor * (epsilon or 0.0)
        yield Change(f"{mechanism.epsilon_called} = {as_given(larger)}", {("release", "epsilon"): larger}, factor > 1)
    for weaker, others in ((False, mechanism.variations(section)), (True, mechanism.weaker(section))):
        for keys in others:
            yield Change(_in_words(keys), {("release", key): value for key, value in keys.items()}, weaker)


def _other_mechanisms(
    policy: Policy, attributes: Sequence[CodedAttribute], tried: Tried, table: Histogram, only: str | None = None
) -> Iterator[Change]:
    """All of them, or one, at a promise of the same ε and δ, each in its own notion.

    They show what the current one shows, or find by themselves how coarse columns are.
    """
    epsilon, delta = tried.promise or _WITHOUT
    shown = {a.name: tried.levels.get(a.name, policy.attributes[a.name].level or 0) for a in attributes}
    sizes = [len(a.hierarchy.recode(shown[a.name]).labels) for a in attributes]
    for name, mechanism in MECHANISMS.items() if only is None else [(only, MECHANISMS[only])]:
        with suppress(IncrowdError):  # what cannot keep such a promise is not compared
            for other in mechanism.comparable(epsilon, delta, sizes, table.total):
                content = {"mechanism": name, **other.keys}
                places: dict[tuple[str, ...], Any] = {("release",): content}
                for a, size in zip(attributes, sizes, strict=True):
                    level = None if other.chooses else shown[a.name]
                    if size == 1 and not other.chooses:  # hidden, it tells nothing
                        places["attributes", a.name, "role"] = "drop"
                    elif policy.attributes[a.name].level != level:
                        places["attributes", a.name, "level"] = level
                told = {key: value for key, value in content.items() if key not in ("epsilon", "delta")}
                yield Change(_in_words(told, between=": "), places)


def switched(
    policy: Policy, attributes: Sequence[CodedAttribute], tried: Tried, table: Histogram, mechanism: str
) -> Places:
    """What a policy says for another mechanism to promise the same as it does now, or to begin with if none can.

    Of several ways the last: it finds most by itself.
    """
    changes = list(_other_mechanisms(policy, attributes, tried, table, mechanism))
    if changes:
        return changes[-1].places
    start: dict[tuple[str, ...], Any] = {("release",): {"mechanism": mechanism, **MECHANISMS[mechanism].start}}
    fixed = [a.name for a in attributes if policy.attributes[a.name].level is not None]
    return start | {("attributes", name, "level"): None for name in fixed}


def _in_words(content: Mapping[str, Any], between: str = " = ") -> str:
    """Keys and values; keys of nothing are left out, and those within a list stand for themselves."""
    parts = []
    for key, value in content.items():
        if isinstance(value, list | Mapping):
            parts += [_in_words(one, between) for one in ([value] if isinstance(value, Mapping) else value)]
        elif value is not None:
            parts.append(f"{key}{between}{f'{number(value, 3)}' if isinstance(value, float) else value}")
    return ", ".join(parts) or ", ".join(f"no {key}" for key in content)


# --- what comes of it -------------------------------------------------------------------------------------------------


def carried_out(policy: Policy, change: Change, table: Histogram, truth: TrueCounts, source: RandomSource) -> Tried:
    """A release, its score, the levels that it shows, and its promise."""
    words, places = change.words, change.places
    name = "" if policy.release is None else policy.release.mechanism
    try:
        other = policy.changed(places)
        name = name if other.release is None else other.release.mechanism
        spared = MECHANISMS[name].scored_with if name else {}
        seen = rehearsed(other.changed({("release", key): value for key, value in spared.items()}), table, source)
        scores = truth.scores(seen.told)
    except IncrowdError as error:
        return Tried(
            Alternative(words, policy.lines(places), name, refused=error.message, weaker=change.weaker), {}, None
        )
    found = Alternative(words, policy.lines(places), name, seen.epsilon, seen.promise, scores, weaker=change.weaker)
    return as_tried(found, seen)


def as_tried(found: Alternative, seen: Rehearsed) -> Tried:
    """What came of a policy, to look for others from."""
    return Tried(found, seen.made.levels, seen.mechanism.compared_at(seen.made.statement.promise))
