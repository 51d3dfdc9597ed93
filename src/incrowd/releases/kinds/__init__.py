"""What a release says of itself and how that is checked: one module for each mechanism, all of the same shape.

A release is made in steps. `settle` decides everything that can be decided without looking at the data. `prepare`
looks at the table and draws nothing. Whatever can be refused is refused in these two, because then the ledger is
charged. `draw` makes the release and states what it promises. Much later, and elsewhere, `check_promise` and
`check_table` derive the statement once more from the published folder alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from incrowd.errors import InputError
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.policy import MECHANISMS, Policy
from incrowd.randomness import RandomSource
from incrowd.releases.entries import Promise
from incrowd.signing import canonical

Tell = Callable[[str, float], None]
"""Told what is being done, and the part of it that is done."""


@dataclass(frozen=True)
class Statement:
    """What a release says of itself. The certificate holds it, and it can be derived again from there.

    Attributes:
        promise: the notion, its numbers and its neighbour relation, the promise in words, and what it rests on.
        mechanism: how the release was made: the mechanism's name, its parameters, the level of each column.
        assumptions: the premises that nobody can check from outside.
    """

    promise: Mapping[str, Any]
    mechanism: Mapping[str, Any]
    assumptions: Sequence[str]

    def is_in(self, certificate: Mapping[str, Any]) -> bool:
        """Whether a certificate says exactly this; what several releases promise together and voidness apart.

        As it is written: Python takes True for 1.
        """
        promise = {k: v for k, v in certificate["promise"].items() if k not in ("together", "void")}
        said = (promise, certificate["mechanism"], certificate["assumptions"])
        return canonical(said) == canonical((self.promise, self.mechanism, self.assumptions))


@dataclass(frozen=True, eq=False)
class Made:
    """A release that was drawn.

    Attributes:
        published: its table.
        levels: the level at which each column is shown.
        statement: what it says of itself.
        outcome: the mechanism's own result. For the publisher's eyes only.
    """

    published: Histogram
    levels: Mapping[str, int]
    statement: Statement
    outcome: Any


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what, whether it holds, and if not, why."""

    name: str
    holds: bool
    detail: str = ""


@dataclass(frozen=True)
class Estimates:
    """A cross-tabulation of the population.

    Attributes:
        by: the columns.
        rows: its cells, each with at least `values`, `estimate` and `standard_error`.
        notes: what to keep in mind when reading it.
    """

    by: tuple[str, ...]
    rows: tuple[Any, ...]
    notes: tuple[str, ...]


class Kind(Protocol):
    """The shape of the modules in this folder."""

    CLAIMED: tuple[str, ...]
    """What a verifier has to take on trust."""
    POLICY_NOTE: str
    """What stands on top of the policy as it was carried out."""

    def settle(self, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> Any:
        """Everything that decides what is promised, found without looking at any data."""

    def prepare(self, settings: Any, table: Histogram, tell: Tell) -> Any:
        """Look at the full table (base codes, one column for each attribute); draw nothing.

        What is returned has `settings`: those of `settle`, with what only the table could decide.
        """

    def spending(self, settings: Any) -> Promise:
        """What the ledger is charged with, for one release."""

    def together(self, settings: Any, copies: int) -> dict[str, Any] | None:
        """What several releases promise to someone who has all of them; None for a single one."""

    def draw(self, prepared: Any, source: RandomSource) -> Made:
        """Make a release."""

    def check_promise(self, certificate: Mapping[str, Any]) -> Iterator[Check]:
        """Derive the promise once more from the certificate's policy and parameters."""

    def settled_again(self, certificate: Mapping[str, Any]) -> Any:
        """What `settle` and `prepare` have found, as far as a certificate has it: enough for the public report."""

    def columns_needed(self, certificate: Mapping[str, Any], by: Sequence[str] = (), **options: Any) -> Iterable[str]:
        """The columns that `check_table` looks at and, if some are asked for, `estimate`: they are given no others."""

    def check_table(self, certificate: Mapping[str, Any], table: Histogram) -> Iterator[Check]:
        """Look for the promise in the published table."""

    def estimate(
        self, certificate: Mapping[str, Any], table: Histogram, by: Sequence[str], **options: Any
    ) -> Estimates:
        """A cross-tabulation of the population from the published table; the columns are there."""


def kind_of(mechanism: str) -> Kind:
    """The module of a mechanism."""
    if mechanism not in MECHANISMS:
        raise InputError("It was made by a mechanism that this version does not know.", code="release-unreadable")
    return cast("Kind", importlib.import_module(f"incrowd.releases.kinds.{mechanism}"))


def section_of(certificate: Mapping[str, Any]) -> Any:
    """The section `release` of a certificate's policy."""
    stated = certificate["policy"]["release"]
    return MECHANISMS[stated["mechanism"]].model_validate(stated)


def all_columns(certificate: Mapping[str, Any]) -> list[str]:
    """The columns of a certificate's table."""
    return [column["name"] for column in certificate["columns"]]


def published_attributes(certificate: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The attributes of a certificate's policy that are not dropped."""
    return {name: a for name, a in certificate["policy"]["attributes"].items() if a["role"] != "drop"}


def fixed_levels(policy: Policy, attributes: Sequence[CodedAttribute]) -> dict[str, int]:
    """The levels that the policy fixes, each of which is there."""
    levels: dict[str, int] = {}
    for attribute in attributes:
        level = policy.attributes[attribute.name].level
        if level is not None:
            attribute.hierarchy.recode(level)  # refuses a level that is not there
            levels[attribute.name] = level
    return levels
