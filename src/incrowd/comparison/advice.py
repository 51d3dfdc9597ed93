"""What else a policy could say, and how near the counts of such a release come to the true ones.

Each alternative is a policy of its own. It is carried out on the counted table, to the end but for the ledger, and what
its release tells is scored against the truth (`recoding.fidelity`). A column that an alternative does not publish is
taken as somebody must who knows only its domain: every value as likely as another.

Every number here is read off the raw table, and so is a choice that is made because of it: the promise of the release
does not cover it. Mechanisms that choose by themselves, privately, pay for that out of their ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.core.errors import IncrowdError, PolicyError
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.registry import MECHANISMS, require_countable
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.fidelity import Names, Told, fidelity

LOOKS = (
    "Choosing by these numbers looks at the table, and no promise covers that choice. Decide before you look where you "
    "can; else say beside the release that its policy was chosen on the data. To choose within the promise, let "
    "the mechanism choose: levels (selection_epsilon), trees and views are chosen privately, out of ε."
)
_FACTORS = (0.5, 2.0, 5.0)  # of ε
_BEST = 3
_LEAST_GAIN = 0.002  # of the score; less is noise


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
    """

    change: str
    lines: str
    mechanism: str
    epsilon: float | None = None
    promise: str = ""
    scores: tuple[float, ...] = ()
    refused: str | None = None

    @property
    def score(self) -> float:
        """By which alternatives are ranked: the mean of the scores; -1 for what cannot be done."""
        return math.fsum(self.scores) / len(self.scores) if self.scores else -1.0


@dataclass(frozen=True)
class Advised:
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


Change = tuple[str, Mapping[tuple[str, ...], Any]]
"""In words, and what the policy says instead: by its places, None for nothing."""


def advise(
    policy: Policy,
    count: Callable[[Policy, Sequence[CodedAttribute]], Histogram],
    *,
    source: RandomSource | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Advised:
    """Carry out a policy and what lies around it.

    Args:
        policy: with a section `release`.
        count: counts the table that the policy is about.
        source: the random bits; secret ones if not given.
        progress: called with what is being done and the part of it that is done.
    """
    if policy.release is None:
        raise PolicyError(
            "The policy does not say how to release.", code="policy-invalid", remedy="Give it a section 'release'."
        )
    attributes = codings(policy)
    table, bits = count(policy, attributes), source or RandomSource()
    current, levels = _carried_out(policy, ("as it is", {}), table, bits)
    changes = list(_changes(policy, attributes, levels, table))
    found = []
    for number, change in enumerate(changes):
        if progress is not None:
            progress(change[0], number / len(changes))
        found.append(_carried_out(policy, change, table, bits)[0])
    found.sort(key=lambda alternative: -alternative.score)
    control = fidelity(table, _evenly(table))
    return Advised(
        current=current,
        alternatives=tuple(found),
        best=tuple(_best(current, found)),
        control=tuple(one.control for one in control),
        columns=table.names,
        records=table.total,
    )


def _best(current: Alternative, found: Sequence[Alternative]) -> Iterator[Alternative]:
    """Those that gain most, at the same ε or a smaller one, one of each mechanism and column."""
    limit, said = current.epsilon, set[str]()
    for one in found:
        kept = limit is None or (one.epsilon is not None and one.epsilon <= limit * (1 + 1e-9))
        kind = one.change if one.mechanism == current.mechanism else one.mechanism
        if kept and one.score > max(current.score, 0.0) + _LEAST_GAIN and kind not in said and len(said) < _BEST:
            said.add(kind)
            yield one


# --- what could be otherwise ------------------------------------------------------------------------------------------


def _changes(
    policy: Policy, attributes: Sequence[CodedAttribute], levels: Mapping[str, int], table: Histogram
) -> Iterator[Change]:
    section = policy.release
    assert section is not None  # noqa: S101 - asked before
    if len(attributes) > 1:
        for a in attributes:
            yield f"drop {a.name}", {("attributes", a.name): {"role": "drop"}}
    for a in attributes:
        level = policy.attributes[a.name].level
        for step, word in () if level is None else ((-1, "finer"), (1, "coarser")):
            if level is not None and 0 <= level + step <= a.hierarchy.height:
                there: tuple[str, ...] = ("attributes", a.name, "level")
                yield f"{a.name} {word}, at level {level + step}", {there: level + step}
    mechanism = MECHANISMS[section.mechanism]
    epsilon: float | None = section.model_dump().get("epsilon")
    for factor in () if epsilon is None else _FACTORS:
        larger = factor * (epsilon or 0.0)
        yield f"ε = {larger:g}", {("release", "epsilon"): larger}
    for keys in mechanism.variations(section):
        words = ", ".join(f"{key} = {value}" for key, value in keys.items() if value is not None)
        yield words, {("release", key): value for key, value in keys.items()}
    yield from _other_mechanisms(policy, attributes, levels, table)


def _other_mechanisms(
    policy: Policy, attributes: Sequence[CodedAttribute], levels: Mapping[str, int], table: Histogram
) -> Iterator[Change]:
    """All of them at a promise of the same ε and δ, each in its own notion.

    They show what the current one shows, or find by themselves how coarse columns are.
    """
    section = policy.release
    document: Mapping[str, Any] = {} if section is None else section.model_dump()
    epsilon, delta = document.get("epsilon") or 1.0, document.get("delta") or 1e-6
    shown = {a.name: levels.get(a.name, policy.attributes[a.name].level or 0) for a in attributes}
    sizes = [len(a.hierarchy.recode(shown[a.name]).labels) for a in attributes]
    for name, mechanism in MECHANISMS.items():
        with suppress(IncrowdError):  # what cannot keep such a promise is not compared
            for other in mechanism.comparable(epsilon, delta, sizes, table.total):
                content = {"mechanism": name, **other.keys}
                places: dict[tuple[str, ...], Any] = {("release",): content}
                for a in attributes:
                    level = None if other.chooses else shown[a.name]
                    if policy.attributes[a.name].level != level:
                        places["attributes", a.name, "level"] = level
                yield _in_words(content), places


def _in_words(content: Mapping[str, Any]) -> str:
    """What tells a section apart, without its ε and δ."""
    told = {key: value for key, value in content.items() if key not in ("epsilon", "delta")}
    return ", ".join(f"{key}: {f'{value:.3g}' if isinstance(value, float) else value}" for key, value in told.items())


# --- what comes of it -------------------------------------------------------------------------------------------------


def _carried_out(
    policy: Policy, change: Change, table: Histogram, source: RandomSource
) -> tuple[Alternative, Mapping[str, int]]:
    """A release, its score, and the levels that it shows."""
    words, places = change
    name = "" if policy.release is None else policy.release.mechanism
    try:
        other = policy.changed(places)
        if other.release is None:
            raise PolicyError("The policy does not say how to release.", code="policy-invalid")
        name = other.release.mechanism
        require_countable(other)
        mechanism, attributes = MECHANISMS[name], codings(other)
        settings = mechanism.settle(other, attributes, 1)
        part = table.project([a.name for a in attributes])
        settings, prepared = mechanism.prepare(settings, part, lambda _what, _part: None)
        made = mechanism.draw(settings, prepared, source)
        told = _of_all(table, mechanism.told(settings, made), part.names)
        scores = tuple(one.score for one in fidelity(table, told))
    except IncrowdError as error:
        return Alternative(words, policy.lines(places), name, refused=error.message), {}
    promise = made.statement.promise
    epsilon = promise.document().get("epsilon") if "differential" in promise.notion else None
    return Alternative(words, policy.lines(places), name, epsilon, promise.in_words, scores), made.levels


def _of_all(table: Histogram, told: Told, published: Sequence[str]) -> Told:
    """What is told of all columns, also of those that are not published: of these, that every value is as likely."""

    def all_told(names: Names) -> np.ndarray:
        known = tuple(name for name in names if name in published)
        counts = told(known) if known else np.array(float(table.total))
        for axis, name in enumerate(names):
            if name not in published:
                size = len(table[name].labels)
                counts = np.repeat(np.expand_dims(counts / size, axis), size, axis=axis)
        return counts

    return all_told


def _evenly(table: Histogram) -> Told:
    return _of_all(table, lambda _: np.array(float(table.total)), ())
