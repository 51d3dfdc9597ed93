"""Adversaries as they are spelled on a command line: ``II sigma=1000 b=2``.

A spelling begins with the class of Machanavajjhala, Gehrke and Götz, and goes on with settings, separated by blanks
(and quoted as in a shell where a value holds one):

- ``I prior=12000,18000``: she believed this beforehand, one parameter per value; or ``I shape=... sigma=...``; or
  ``I earlier=FILE``, she has seen a table with a column of the same name;
- ``II sigma=1000``: she may have believed anything, with at most this stubbornness;
- ``III shape=uniform``, ``shape=table`` (what the whole table shows) or ``shape=2,3``: she never revises her belief;
- with classes I and III ``or-less-stubborn``: also those who believe the same less firmly;
- with any class ``b=2``, records that she knows; ``predicates=values``, ``negations``, ``subsets`` or groups of values
  by their names, ``predicates=stomach:ulcer+gastritis,lungs:flu+asthma``, or numbers from one to another,
  ``predicates=high:50000..,low:..9999``, what must not be learned; ``not=ulcer+flu``, values that she knows a person
  does not have; ``about=disease``, the only sensitive attribute that is meant; ``knowing=job+religion``, other
  sensitive attributes that she knows of people; ``for=sex:f,age:20..29+80``, the people whom it is about, by their
  quasi-identifiers.

Numbers for values stand in the order of the domain, or with the value's name: ``prior=flu:12000,cancer:18000``
(``:500`` for a missing value).
"""

from __future__ import annotations

import csv
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from incrowd.core.errors import InternalError, ParameterError
from incrowd.theory.adversaries import Adversary, AdversaryClass, DirichletPrior
from incrowd.theory.beliefs import Predicate, Predicates, belief_ratio

_LESS = "or-less-stubborn"
_SETTINGS = {
    AdversaryClass.KNOWN_PRIOR: {"prior", "shape", "sigma", "earlier", _LESS},
    AdversaryClass.KNOWN_STUBBORNNESS: {"sigma"},
    AdversaryClass.KNOWN_SHAPE: {"shape", _LESS},
    AdversaryClass.ANYONE: set[str](),
}
_COMMON = {"b", "predicates", "about", "not", "knowing", "for"}
_FAMILIES: dict[str, Literal["values", "negations", "subsets"]] = {
    "values": "values",
    "negations": "negations",
    "subsets": "subsets",
}
_EXAMPLES = "'I prior=12000,18000', 'II sigma=1000', 'III shape=uniform', 'III shape=table b=2 predicates=subsets'"

Weights = tuple[tuple[str | None, float], ...]  # by name, or None for those that stand in order
Groups = tuple[tuple[str, tuple[str, ...]], ...]  # values by the name of what they have in common


@dataclass(frozen=True)
class Suspect:
    """An adversary before it is known which values there are.

    Attributes:
        name: the spelling, in one form.
        kind: the class.
        about: the only sensitive attribute that is meant; None for all of them.
        weights: a prior or a shape, "uniform", or "table".
        sigma: her stubbornness, where it is bounded.
        known_records: how many records she knows.
        predicates: what must not be learned: a family of statements, or groups of values.
        or_less_stubborn: whether those are meant, too, who believe the same less firmly.
        earlier: a table that she has seen.
        seen: how many people have which value there, once it has been read.
        knows_not: values that she knows a person does not have.
        knowing: other sensitive attributes that she knows of everybody.
        whom: the people whom it is about: values, or numbers from one to another, of quasi-identifiers.
        at_least_values: raise a stubbornness that leaves less than 1 per value to that; only for the one that is
            taken when nobody is named.
    """

    name: str
    kind: AdversaryClass
    about: str | None = None
    weights: Weights | Literal["uniform", "table"] | None = None
    sigma: float | None = None
    known_records: int = 0
    predicates: Literal["values", "negations", "subsets"] | Groups = "values"
    or_less_stubborn: bool = False
    earlier: str | None = None
    seen: Mapping[str | None, int] | None = None
    knows_not: tuple[str, ...] = ()
    knowing: tuple[str, ...] = ()
    whom: Groups = ()
    at_least_values: bool = False

    def possible(self, labels: Sequence[str | None]) -> list[int]:
        """The values that she thinks possible, by their numbers."""
        names = ["" if label is None else label for label in labels]
        if unknown := len(set(self.knows_not) - set(names)):
            raise ParameterError(
                f"The adversary {self.name!r} knows that people do not have {unknown} values that the sensitive domain "
                "does not have.",
                code="parameter-combination",
                remedy="Write values as in the table; declare the domain if not all of its values occur.",
                details={"unknown": unknown},
            )
        left = [number for number, name in enumerate(names) if name not in self.knows_not]
        if len(left) < 2:
            raise ParameterError(
                f"The adversary {self.name!r} leaves fewer than two values, so that there is nothing to learn.",
                code="parameter-combination",
                remedy="Name fewer values with 'not'.",
            )
        return left

    def meant(self, column: str, labels: Sequence[str | None]) -> list[bool]:
        """Which values of a quasi-identifier the people have whom it is about."""
        wanted = [values for name, values in self.whom if name == column]
        names = ["" if label is None else label for label in labels]
        return [all(any(_within(name, value) for value in values) for values in wanted) for name in names]

    def for_values(self, size: int) -> Suspect:
        """The same, as she is for a domain of so many values."""
        if not self.at_least_values or self.sigma is None or self.sigma >= size:
            return self
        return replace(self, name=f"{self.kind.value} sigma={size}", sigma=float(size))

    def adversary(self, labels: Sequence[str | None], totals: Sequence[int]) -> Adversary:
        """The adversary, for a sensitive attribute with these values and so many records of each."""
        if self.kind is AdversaryClass.KNOWN_STUBBORNNESS:
            return Adversary.with_stubbornness(self.sigma or 0.0, known_records=self.known_records)
        if self.earlier is not None:
            return self._with_prior(DirichletPrior.from_counts(self._seen_of(labels)))
        if self.weights == "table":
            if self.kind is AdversaryClass.KNOWN_PRIOR and not all(totals):
                raise ParameterError(
                    f"{totals.count(0)} of the declared values do not occur in the table, so with its shares the "
                    f"adversary {self.name!r} would think them impossible; a prior of class I has more than 0 for "
                    "every value.",
                    code="parameter-combination",
                    remedy="Give shares yourself, as in 'I shape=98,1,1 sigma=500', or ask about 'III shape=table'.",
                )
            shape: tuple[float, ...] = tuple(map(float, totals))
        elif isinstance(self.weights, str) or self.weights is None:
            shape = (1.0,) * len(labels)
        else:
            shape = _in_order(self.weights, labels)
        if self.kind is AdversaryClass.KNOWN_SHAPE:
            return Adversary.with_shape(shape, known_records=self.known_records, or_less_stubborn=self.or_less_stubborn)
        return self._with_prior(
            DirichletPrior(shape) if self.sigma is None else DirichletPrior.from_shape(shape, self.sigma)
        )

    def _with_prior(self, prior: DirichletPrior) -> Adversary:
        return Adversary.with_prior(prior, known_records=self.known_records, or_less_stubborn=self.or_less_stubborn)

    def _seen_of(self, labels: Sequence[str | None]) -> list[int]:
        if self.seen is None:
            raise InternalError("an earlier table was not read")
        if unknown := len(self.seen.keys() - set(labels)):
            raise ParameterError(
                f"The earlier table has {unknown} values that the sensitive domain does not have.",
                code="parameter-combination",
                remedy="Declare the whole domain; values must be written in both tables alike.",
                details={"unknown": unknown},
            )
        return [self.seen.get(label, 0) for label in labels]

    def statements(self, labels: Sequence[str | None]) -> Predicates:
        """What must not be learned, for a sensitive attribute with these values."""
        if isinstance(self.predicates, str):
            return self.predicates
        place = {"" if label is None else label: number for number, label in enumerate(labels)}
        named = {value for _, values in self.predicates for value in values if not _is_interval(value)}
        if unknown := len(named - place.keys() - set(self.knows_not)):
            raise ParameterError(
                f"The predicates of an adversary name {unknown} values that the sensitive domain does not have.",
                code="parameter-combination",
                remedy="Write values as in the table; declare the domain if not all of its values occur.",
                details={"unknown": unknown},
            )
        return tuple(
            Predicate(tuple(place[label] for label in place if any(_within(label, value) for value in values)), name)
            for name, values in self.predicates
        )


DEFAULT = (
    Suspect("III shape=table", AdversaryClass.KNOWN_SHAPE, weights="table"),
    Suspect("II sigma=1000", AdversaryClass.KNOWN_STUBBORNNESS, sigma=1000.0, at_least_values=True),
)
"""Who is feared if nobody is named: one sure of the whole table's shares, and one as stubborn as after 1000 people."""


def read_adversary(text: str) -> Suspect:
    """Reads a spelling.

    Raises:
        ParameterError: it is none.
        UnreachableError: it is class IV, against which nothing can be promised (Theorem 4).
    """
    try:
        words = shlex.split(text)
    except ValueError:
        raise _wrong(text, "a quote in it is not closed") from None
    if not words:
        raise _wrong(text, "it is empty")
    kinds = {kind.value: kind for kind in AdversaryClass}
    kind = kinds.get(words[0].upper())
    if kind is None:
        raise _wrong(text, "it must begin with a class, I, II, III or IV")
    given: dict[str, str] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if word == _LESS:
            value = _LESS
        elif not equals or not value:
            raise _wrong(text, f"{word!r} is not of the form setting=value")
        if name in given:
            raise _wrong(text, f"{name} is set twice")
        if name not in _SETTINGS[kind] | _COMMON:
            raise _wrong(text, f"class {kind.value} has no setting {name!r}")
        given[name] = value
    if kind is AdversaryClass.ANYONE:
        belief_ratio([[1, 1]], Adversary.anyone())  # refused, with the reason
    return _suspect(text, kind, given)


def _suspect(text: str, kind: AdversaryClass, given: dict[str, str]) -> Suspect:
    ways = [{"prior"} <= given.keys(), {"earlier"} <= given.keys(), {"shape", "sigma"} <= given.keys()]
    if kind is AdversaryClass.KNOWN_PRIOR and sum(ways) != 1:
        raise _wrong(text, "class I needs either a prior, or an earlier table, or a shape and sigma")
    if given.keys() & {"prior", "earlier"} and given.keys() & {"shape", "sigma"}:
        raise _wrong(text, "a prior has its shape and its sigma already")
    needed = {AdversaryClass.KNOWN_STUBBORNNESS: "sigma", AdversaryClass.KNOWN_SHAPE: "shape"}.get(kind)
    if needed is not None and needed not in given:
        raise _wrong(text, f"class {kind.value} needs {needed}")
    family = given.get("predicates", "values")
    known = _number(text, given.get("b", "0"))
    if known != int(known) or known < 0:
        raise _wrong(text, "b is a whole number of records")
    listed = given.get("prior", given.get("shape"))
    weights: Weights | Literal["uniform", "table"] | None = None
    if listed == "uniform" or (listed == "table" and "shape" in given):
        weights = "uniform" if listed == "uniform" else "table"
    elif listed is not None:
        weights = _weights(text, listed)
    sigma = _number(text, given["sigma"]) if "sigma" in given else None
    name = " ".join([kind.value, *(key if key == _LESS else f"{key}={value}" for key, value in given.items())])
    return Suspect(
        name,
        kind,
        given.get("about"),
        weights,
        sigma,
        int(known),
        _FAMILIES[family] if family in _FAMILIES else _groups(text, family),
        _LESS in given,
        given.get("earlier"),
        knows_not=tuple(given["not"].split("+")) if "not" in given else (),
        knowing=tuple(given["knowing"].split("+")) if "knowing" in given else (),
        whom=_groups(text, given["for"], "for") if "for" in given else (),
    )


def _groups(text: str, listed: str, setting: str = "predicates") -> Groups:
    groups = []
    for part in next(csv.reader([listed])):
        name, colon, values = part.partition(":")
        if not name or not colon:
            families = f"one of {', '.join(_FAMILIES)}, or " if setting == "predicates" else ""
            raise _wrong(text, f"{setting} is {families}such as name:value+value")
        groups.append((name, tuple(values.split("+"))))
    if len({name for name, _ in groups}) < len(groups):
        raise _wrong(text, f"{setting} names one thing twice")
    return tuple(groups)


def _is_interval(value: str) -> bool:
    low, dots, high = value.partition("..")
    return bool(dots) and bool(low or high) and all(_as_number(end) is not None for end in (low, high) if end)


def _within(label: str, value: str) -> bool:
    """Whether a label is a value of a group, or a number within one of its intervals, both ends included."""
    if not _is_interval(value):
        return label == value
    low, _, high = value.partition("..")
    number, least, most = _as_number(label), _as_number(low), _as_number(high)
    return number is not None and (least is None or least <= number) and (most is None or number <= most)


def _as_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _weights(text: str, listed: str) -> Weights:
    pairs = []
    for part in next(csv.reader([listed])):
        name, colon, weight = part.rpartition(":")
        pairs.append((name if colon else None, _number(text, weight)))
    if len({name is None for name, _ in pairs}) > 1:
        raise _wrong(text, "either every number has the name of its value, or none has")
    names = [name for name, _ in pairs if name is not None]
    if len(set(names)) < len(names):
        raise _wrong(text, "a value is named twice")
    return tuple(pairs)


def _in_order(weights: Weights, labels: Sequence[str | None]) -> tuple[float, ...]:
    if any(name is None for name, _ in weights):
        return tuple(weight for _, weight in weights)
    named = {name: weight for name, weight in weights if name is not None}
    wanted = ["" if label is None else label for label in labels]  # a missing value has no name
    unknown, lacking = len(named.keys() - set(wanted)), len(set(wanted) - named.keys())
    if unknown or lacking:
        raise ParameterError(
            f"The adversary's prior names {unknown} values that the sensitive domain does not have, and leaves out "
            f"{lacking} that it has.",
            code="parameter-combination",
            remedy="Name each value of the domain once; declare the domain if not all of its values occur.",
            details={"unknown": unknown, "lacking": lacking},
        )
    return tuple(named[label] for label in wanted)


def _number(text: str, written: str) -> float:
    try:
        number = float(written)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _wrong(text, f"{written!r} is not a finite number")
    return number


def _wrong(text: str, problem: str) -> ParameterError:
    return ParameterError(
        f"The adversary {text!r} cannot be understood: {problem}.",
        code="adversary-invalid",
        remedy=f"Write, for example, {_EXAMPLES}.",
    )
