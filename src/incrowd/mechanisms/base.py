"""What a mechanism is: one folder, one class, the same steps.

A release is made in steps. `settle` decides everything that can be decided without looking at the data. `prepare`
looks at the table and draws nothing. Whatever can be refused is refused in these two, because then the ledger is
charged. `draw` makes the release and states what it promises. Much later, and elsewhere, `check_promise` and
`check_table` derive the statement once more from the published folder alone.

This module and the `__init__` of each mechanism are light: reading a policy imports no engine and no
mechanism. Methods import what they need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from incrowd.core.errors import InputError, InternalError
from incrowd.mechanisms.certificate import (
    AnyCertificate,
    Certificate,
    MechanismT,
    PromiseT,
    StatedMechanism,
    StatedPromise,
    Statement,
    Together,
)
from incrowd.mechanisms.described import Described
from incrowd.mechanisms.estimates import NO_OPTIONS, EstimateOptions, Estimates
from incrowd.policy.release import ReleaseSection

if TYPE_CHECKING:
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.marginals import Counted, Crowds, Marginals
    from incrowd.mechanisms.promises import Promise
    from incrowd.policy import Policy
    from incrowd.randomness import RandomSource
    from incrowd.recoding.fidelity import Told
    from incrowd.sources import Source
    from incrowd.sources.at_least import CrowdsAsked
    from incrowd.sources.kept import KeptTable

Tell = Callable[[str, float], None]
"""Told what is being done, and the part of it that is done."""

SectionT = TypeVar("SectionT", bound=ReleaseSection)
SettingsT = TypeVar("SettingsT")
PreparedT = TypeVar("PreparedT")
OutcomeT = TypeVar("OutcomeT")
OutcomeT_co = TypeVar("OutcomeT_co", covariant=True)
StatementT_co = TypeVar("StatementT_co", bound=Statement[StatedPromise, StatedMechanism], covariant=True)


@dataclass(frozen=True, eq=False)
class Publication:
    """What others get: the table, and the further files beside it.

    Attributes:
        table: its cells; none, if the mechanism publishes no table of its own.
        beside: the further files by their path in the folder, such as `views/age.parquet`. All of them are public.
    """

    table: Histogram
    beside: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Made(Generic[OutcomeT_co, StatementT_co]):
    """A release that was drawn.

    Attributes:
        published: its table.
        levels: the level at which each column is shown.
        statement: what it says of itself.
        outcome: the mechanism's own result. For the publisher's eyes only.
        beside: further public files, by their path in the folder: those that `beside_names` tells from the certificate.
    """

    published: Histogram
    levels: Mapping[str, int]
    statement: StatementT_co
    outcome: OutcomeT_co
    beside: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def publication(self) -> Publication:
        """What others get."""
        return Publication(self.published, self.beside)

    def having(self, outcome: type[OutcomeT]) -> Made[OutcomeT, StatementT_co]:
        """The same, with an outcome of a known type, for mechanisms that have several."""
        if not isinstance(self.outcome, outcome):
            raise InternalError("a draw had another outcome than its settings ask for")
        return Made(self.published, self.levels, self.statement, self.outcome, self.beside)


@dataclass(frozen=True, eq=False)
class MadeInParts(Generic[StatementT_co]):
    """A release that the executors of a cluster drew and wrote.

    Attributes:
        parts: the files of its table, in their order.
        published: counts of its table by some columns, which is all that the driver has of it.
        levels: the level at which each column is shown.
        statement: what it says of itself.
    """

    parts: tuple[Path, ...]
    published: Marginals
    levels: Mapping[str, int]
    statement: StatementT_co


class ExecutorsDraw(ABC, Generic[PromiseT, MechanismT]):
    """How the executors of a cluster draw and write a table that the driver never has."""

    @abstractmethod
    def ready(self, scratch: Path, tell: Tell) -> Promise:
        """Refuse what can be refused, as `prepare` does, and say what the ledger is charged with.

        Executors will write to the folder `scratch`: whether they can is tried out here.
        """

    @abstractmethod
    def draw(self, key: bytes, scratch: Path, tell: Tell) -> MadeInParts[Statement[PromiseT, MechanismT]]:
        """Make the release, with bits that are derived from 32 secret bytes."""

    @abstractmethod
    def public_report(
        self, policy: Policy, made: MadeInParts[Statement[PromiseT, MechanismT]], *, void: str | None
    ) -> bytes:
        """As `Mechanism.public_report`."""

    @abstractmethod
    def internal_report(
        self, policy: Policy, made: MadeInParts[Statement[PromiseT, MechanismT]], *, void: str | None
    ) -> bytes:
        """The publisher's own report."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what, whether it holds, and if not, why."""

    name: str
    holds: bool
    detail: str = ""


@dataclass(frozen=True)
class Concern:
    """Something to be changed about a release, perhaps.

    Attributes:
        code: what kind of thing, for programs.
        column: the column that it is about; None for all of it.
        text: what is wrong and what to change, in words.
        internal: whether it was read off the raw table, or was before anything was published: for the publisher alone.
    """

    code: str
    column: str | None
    text: str
    internal: bool = True


@dataclass(frozen=True)
class ComparedSection:
    """A section to compare others with: its keys, and whether it finds by itself how coarse columns are shown."""

    keys: Mapping[str, Any]
    chooses: bool = False


@dataclass(frozen=True)
class ComparedAs:
    """How `compare` holds a mechanism against others.

    Attributes:
        name: what it is called there.
        promise: what it promises for an ε and a δ, in its own notion.
        differs: how that notion differs from the others.
        keys: which of its `comparable` sections is meant: the first one that has these keys.
    """

    name: str
    promise: Callable[[float, float], str]
    differs: str
    keys: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FormField:
    """A key of the section as a form shows it.

    Attributes:
        key: its name in the policy; `choose.how` for one within another.
        label: its name for people.
        lists: whether it holds lists of names: commas within one, semicolons between them.
        choices: where it has few values: these, in words; an empty one where nothing is a choice of its own.
        more: whether it is shown only when asked for.
    """

    key: str
    label: str
    lists: bool = False
    choices: Mapping[str, str] = field(default_factory=dict)
    more: bool = False

    def usual(self, section: type[ReleaseSection]) -> str:
        """What holds if the policy does not say, of a key that has choices."""
        if not self.choices or "" in self.choices:
            return ""
        default = section.model_fields[self.key].default
        return str(default).lower() if isinstance(default, bool) else str(default)


class Mechanism(ABC, Generic[SectionT, SettingsT, PreparedT, OutcomeT, PromiseT, MechanismT]):
    """All that the rest of the house knows of a mechanism.

    Its types are the policy's section, what is settled before any data is seen, what is prepared from the table, the
    internal outcome of a draw, and the two parts of the certificate that are its own: promise and parameters.
    """

    title: ClassVar[str]
    """Its name for people."""
    summary: ClassVar[str]
    """What it does and promises, in one or two sentences."""
    described: ClassVar[tuple[Described, ...]]
    """What the documentation's tables say of it and of its variants."""
    form: ClassVar[tuple[FormField, ...]]
    """The keys that a form offers."""
    start: ClassVar[Mapping[str, Any]]
    """What a new policy begins with."""
    claimed: ClassVar[tuple[str, ...]]
    """What a verifier has to take on trust."""
    policy_note: ClassVar[str]
    """What stands on top of the policy as it was carried out."""
    several_rows: ClassVar[bool] = False
    """Whether what it promises holds for people with several rows (`Policy.rows_per_person`), not only for one each."""
    editor: ClassVar[str] = ""
    """What the studio's form has besides, by its name in `publishing.js`, for a section with more than plain keys."""
    looked_at_first: ClassVar[str] = "release"
    """The part of its public report that shows the sizes of groups."""
    weights: ClassVar[bool] = True
    """Whether a survey weight may be among the columns; not where what is published are crowds or counts of them."""
    kept_as: ClassVar[str] = "as it is"
    """How a column is shown whose values are not made coarser."""
    records_called: ClassVar[tuple[str, str]] = ("record", "records")
    """What one row of its table is, and what several are."""
    scored_with: ClassVar[Mapping[str, Any]] = {}
    """Keys of its section with which it tells the same counts for less work, where nothing else is looked at."""
    leaves_out: ClassVar[bool] = True
    """Whether a group's share may become smaller because its records are left out, and not by chance alone."""
    groups_by_all: ClassVar[bool] = True
    """Whether a group is who looks alike in all columns, and not only in those that others may know."""
    epsilon_called: ClassVar[str] = "ε"
    """What the key `epsilon` of its section is called."""
    in_use: ClassVar[str] = "Count with `incrowd estimate`, which gives an interval for each number."
    """What users do with a release, in a sentence of its verdict."""
    estimate_options: ClassVar[frozenset[str]] = frozenset({"mean", "total"})
    """What `estimate` can be told: a column whose mean is wanted, an interval for the number of people in all, …"""
    table_notes: ClassVar[Mapping[str, str]] = {}
    """What the table's Parquet file says of itself, in the metadata of its schema; nothing else may stand there."""
    compared_as: ClassVar[ComparedAs | None] = None
    """How `compare` holds it against others; None if it has no promise that could be compared."""
    drawn_by_executors: ClassVar[bool] = False
    """Whether the executors of a cluster can draw and write its tables (`by_executors`)."""
    section: type[SectionT]
    """Its part of the policy."""
    certificate: type[Certificate[PromiseT, MechanismT]]
    """What the certificate of its releases says."""

    def section_in(self, policy: Policy) -> SectionT:
        """The policy's section, which is this mechanism's."""
        if not isinstance(policy.release, self.section):
            raise InternalError("a mechanism was given another mechanism's policy")
        return policy.release

    def comparable(self, epsilon: float, delta: float, sizes: Sequence[int], records: int) -> Iterator[ComparedSection]:
        """Sections of a policy that promise (ε,δ) in its own notion, for comparisons; none, if it has no such promise.

        Args:
            epsilon: likelihoods may change by a factor of e^epsilon.
            delta: the probability with which that may fail.
            sizes: how many values each column has as it is shown.
            records: how many there are.
        """
        del epsilon, delta, sizes, records
        yield from ()

    def variations(self, section: SectionT) -> Iterator[dict[str, Any]]:
        """Keys and values that could stand in its section instead: no weaker, or compared by an ε of their own."""
        del section
        yield from ()

    def weaker(self, section: SectionT) -> Iterator[dict[str, Any]]:
        """What else could stand there and would promise less: to see what that would gain."""
        del section
        yield from ()

    def compared_at(self, promise: PromiseT) -> tuple[float, float] | None:
        """The (ε, δ) at which other mechanisms are to be compared with a promise; None if it has none."""
        content = promise.document()
        epsilon, delta = content.get("epsilon"), content.get("delta")
        return (epsilon, delta) if epsilon and delta and "differential" in promise.notion else None

    @abstractmethod
    def settle(self, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> SettingsT:
        """Everything that decides what is promised, found without looking at any data."""

    def counts_people(self, settings: SettingsT) -> bool:
        """Whether `prepare` looks at whose each row is, in a column more (`sources.people.WHOSE`), if it is there."""
        del settings
        return False

    @abstractmethod
    def prepare(self, settings: SettingsT, table: Histogram, tell: Tell) -> tuple[SettingsT, PreparedT]:
        """Look at the full table (base codes, one column for each attribute); draw nothing.

        The settings come back with what only the table could decide.
        """

    def crowds_asked(self, settings: SettingsT) -> CrowdsAsked | None:
        """Which cells can be published at all, if that is settled and nothing else of the table has a say in the draw.

        Then a table with too many cells to be fetched comes as `Crowds`; if it is not settled, as a `KeptTable`, which
        answers for it. None if the mechanism needs every cell.
        """
        del settings
        return None

    def prepare_crowds(self, settings: SettingsT, crowds: Crowds | KeptTable) -> PreparedT:
        """As `prepare`, of the cells that were asked for, or of those that stay in the engine."""
        del settings, crowds
        raise InternalError("a mechanism that needs every cell was given some of them")

    @abstractmethod
    def spending(self, settings: SettingsT) -> Promise:
        """What the ledger is charged with, for one release."""

    def concerns(self, settings: SettingsT, table: Counted) -> Iterable[Concern]:
        """What the publisher had better change before anything is charged or drawn; for the publisher's eyes only.

        Of a table with too many cells to be fetched, the counts of each column alone are known.
        """
        del settings, table
        return ()

    def remarks(
        self, settings: SettingsT, table: Histogram, made: Made[OutcomeT, Statement[PromiseT, MechanismT]]
    ) -> Iterable[str]:
        """What is to be said of a release besides its verdict; for the publisher's eyes only."""
        del settings, table, made
        return ()

    def in_short(self, settings: SettingsT) -> str:
        """Its parameters, in a few words."""
        del settings
        return ""

    @abstractmethod
    def together(self, settings: SettingsT, copies: int) -> Together | None:
        """What several releases promise to someone who has all of them; None for a single one."""

    @abstractmethod
    def draw(
        self, settings: SettingsT, prepared: PreparedT, source: RandomSource
    ) -> Made[OutcomeT, Statement[PromiseT, MechanismT]]:
        """Make a release."""

    def executors_lack(self, section: SectionT) -> str | None:
        """What a section asks for that executors do not do, after the word "Executors"; None if there is nothing."""
        del section
        return None

    def by_executors(
        self, settings: SettingsT, attributes: Sequence[CodedAttribute], source: Source
    ) -> ExecutorsDraw[PromiseT, MechanismT]:
        """How executors draw and write the table of a source; `drawn_by_executors`.

        Raises:
            ParameterError: the source is on no cluster.
        """
        del settings, attributes, source
        raise InternalError("executors were asked for a table that they cannot draw")

    @abstractmethod
    def check_promise(self, certificate: Certificate[PromiseT, MechanismT]) -> Iterator[Check]:
        """Derive the promise once more from the certificate's policy and parameters."""

    def enclosed(self, certificate: Certificate[PromiseT, MechanismT]) -> Iterator[Check]:
        """Compare the numbers of the promise with balls that enclose their formulas.

        None, if it computes none that could be rounded, or if they rest on the table.
        """
        del certificate
        yield from ()

    def by_respondents(self, certificate: Certificate[PromiseT, MechanismT]) -> bool:
        """Whether the records were randomised by those whom they are about, on their own devices."""
        del certificate
        return False

    def drawn_again(
        self,
        certificate: Certificate[PromiseT, MechanismT],
        published: Publication,
        rows: int | None,
        seed: int | None,
    ) -> Histogram:
        """Another table from what is published alone: so many rows, the same for the same seed.

        Raises:
            InputError: its releases are tables of records, and no model of them.
        """
        del certificate, published, rows, seed
        raise InputError(
            f"A release by {self.title.lower()} holds records, and no model to draw others from.",
            code="parameter-combination",
            remedy="Give a folder that was published with `mechanism: views`.",
        )

    @abstractmethod
    def settled_again(self, certificate: Certificate[PromiseT, MechanismT]) -> SettingsT:
        """What `settle` and `prepare` have found, as far as a certificate has it: enough for the public report."""

    def table_stem(self, section: SectionT) -> str | None:
        """What the table's file is called, without its suffix; None if no table is published, only files beside it."""
        del section
        return "release"

    def most_rows(self, section: SectionT, records: int) -> int | None:
        """How many rows the table has at most, made of this many records; None if that cannot be told beforehand."""
        del section
        return records

    def labels_known(self, section: SectionT) -> bool:
        """Whether the table can only show labels of the hierarchies' levels."""
        del section
        return True

    def beside_names(self, certificate: Certificate[PromiseT, MechanismT]) -> Sequence[str]:
        """The further public files, by their path in the folder; a folder has these and no others."""
        del certificate
        return ()

    def tables_beside(
        self, certificate: Certificate[PromiseT, MechanismT]
    ) -> Mapping[str, Mapping[str, Sequence[str | None] | str]]:
        """The tables among these files, with their columns: all labels that one could show, or its kind of numbers."""
        del certificate
        return {}

    @abstractmethod
    def check_table(self, certificate: Certificate[PromiseT, MechanismT], published: Publication) -> Iterator[Check]:
        """Look for the promise in the published table, and in the files beside it."""

    @abstractmethod
    def columns_needed(
        self,
        certificate: Certificate[PromiseT, MechanismT],
        by: Sequence[str] = (),
        options: EstimateOptions = NO_OPTIONS,
    ) -> Iterable[str]:
        """The columns that `check_table` looks at and, if some are asked for, `estimate`: they are given no others."""

    @abstractmethod
    def estimate(
        self,
        certificate: Certificate[PromiseT, MechanismT],
        published: Publication,
        by: Sequence[str],
        options: EstimateOptions = NO_OPTIONS,
    ) -> Estimates:
        """A cross-tabulation of the population from what is published; the columns are there."""

    @abstractmethod
    def told(self, settings: SettingsT, made: Made[OutcomeT, Statement[PromiseT, MechanismT]]) -> Told:
        """The counts that a release tells, on base values, for the publisher to compare with the true ones."""

    @abstractmethod
    def public_report(
        self,
        policy: Policy,
        settings: SettingsT,
        published: Publication,
        statement: Statement[PromiseT, MechanismT],
        *,
        void: str | None,
    ) -> bytes:
        """The report that is published beside the table; it speaks of what is published alone.

        Args:
            policy: what was asked for.
            settings: what is promised.
            published: the release.
            statement: what it says of itself.
            void: why nothing is promised, if so.
        """

    @abstractmethod
    def internal_files(
        self,
        policy: Policy,
        attributes: Sequence[CodedAttribute],
        settings: SettingsT,
        table: Histogram,
        made: Made[OutcomeT, Statement[PromiseT, MechanismT]],
        *,
        void: str | None,
    ) -> dict[str, bytes]:
        """What only the publisher may see, by file name: `report.html`, and whatever else the mechanism has.

        Args:
            policy: what was asked for.
            attributes: the columns of the table, in its order.
            settings: what is promised.
            table: the full table, base codes.
            made: what came out.
            void: why nothing is promised, if so.
        """

    def internal_crowds(
        self,
        policy: Policy,
        settings: SettingsT,
        crowds: Crowds | KeptTable,
        made: Made[OutcomeT, Statement[PromiseT, MechanismT]],
        *,
        void: str | None,
    ) -> dict[str, bytes]:
        """As `internal_files`, where not all cells came here."""
        del policy, settings, crowds, made, void
        raise InternalError("a mechanism that needs every cell was given some of them")


AnyMechanism = Mechanism[Any, Any, Any, Any, Any, Any]
"""A mechanism of which only the steps are known. Functions that carry settings along are generic instead."""


def section_of(certificate: AnyCertificate, model: type[SectionT]) -> SectionT:
    """The section `release` of a certificate's policy, which is a document of its own."""
    return model.model_validate(certificate.policy["release"])


def all_columns(certificate: AnyCertificate) -> list[str]:
    """The columns of a certificate's table."""
    return [column.name for column in certificate.columns]


def published_attributes(certificate: AnyCertificate) -> dict[str, Mapping[str, Any]]:
    """The attributes of a certificate's policy that are not dropped, as they stand there: nothing is checked yet."""
    return {name: a for name, a in certificate.policy["attributes"].items() if a["role"] != "drop"}


def fixed_levels(policy: Policy, attributes: Sequence[CodedAttribute]) -> dict[str, int]:
    """The levels that the policy fixes, each of which is there."""
    levels: dict[str, int] = {}
    for attribute in attributes:
        level = policy.attributes[attribute.name].level
        if level is not None:
            attribute.hierarchy.recode(level)  # refuses a level that is not there
            levels[attribute.name] = level
    return levels
