"""`mechanism: pram`: every value of every record is redrawn by chance, then the table is shuffled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    Tag,
    WithJsonSchema,
)

from incrowd.policy.attributes import Attribute
from incrowd.policy.fields import Finding, Section, Text, refuse
from incrowd.policy.hierarchies import TreeFile
from incrowd.policy.release import ReleaseSection
from incrowd.policy.texts import Place
from incrowd.policy.values import FrozenMap, read_number

LARGEST_MATRIX = 1_000
"""The most values that a written-out matrix may be about."""

SMALLEST_CHANCE = Fraction(1, 10**100)
"""A smaller one cannot be told from 0 in every computation that follows, so it must be 0 itself."""

_QUOTIENT = re.compile(r"\s*([0-9]{1,30})\s*/\s*([0-9]{1,30})\s*")


def read_probability(raw: object) -> Fraction:
    """A probability exactly as written: a decimal number, or a quotient of whole numbers such as 1/3."""
    if isinstance(raw, Fraction):
        value = raw
    elif isinstance(raw, str) and (found := _QUOTIENT.fullmatch(raw)) and int(found[2]):
        value = Fraction(int(found[1]), int(found[2]))
    else:
        value = Fraction(read_number(raw))
    if not 0 <= value <= 1:
        raise ValueError("must be a probability, between 0 and 1")
    return value


def write_probability(value: Fraction) -> str:
    """The shortest exact text: a decimal number if it has an end, else a quotient."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return str(value)
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return format(exact.normalize(), "f") if Fraction(exact) == value else str(value)


def _read_rows(raw: Any) -> tuple[tuple[Fraction, ...], ...]:
    if not isinstance(raw, list | tuple) or not all(isinstance(row, list | tuple) for row in raw):
        raise ValueError("must be a list of rows of probabilities, or name a 'file'")
    findings: list[Finding] = []
    rows = []
    for i, row in enumerate(raw):
        entries = []
        for j, entry in enumerate(row):
            try:
                entries.append(read_probability(entry))
            except ValueError as error:
                findings.append(((i, j), str(error)))
        rows.append(tuple(entries))
    refuse(findings)
    refuse(unfit_rows(rows))
    return tuple(rows)


def unfit_rows(rows: Any) -> list[Finding]:
    """What keeps rows from being a transition matrix: square, each row summing to exactly 1, with no tiny chances."""
    size = len(rows)
    if not 2 <= size <= LARGEST_MATRIX:
        return [((), f"must have between 2 and {LARGEST_MATRIX:,} rows")]
    uneven: list[Finding] = [
        ((i,), f"has {len(row)} entries; {size} rows need {size}") for i, row in enumerate(rows) if len(row) != size
    ]
    if uneven:
        return uneven
    tiny: list[Finding] = [
        ((i,), "has an entry between 0 and 1e-100; make it larger, or 0")
        for i, row in enumerate(rows)
        if any(0 < entry < SMALLEST_CHANCE for entry in row)
    ]
    return tiny or [
        ((i,), "does not sum to exactly 1; write thirds as 1/3") for i, row in enumerate(rows) if sum(row) != 1
    ]


def _digested(raw: Any) -> Any:
    """A certificate's policy holds the digest of a file in place of its name."""
    return f"sha256:{raw['sha256']}" if isinstance(raw, Mapping) and set(raw) == {"sha256"} else raw


class MatrixFile(TreeFile):
    """A transition matrix in a file."""

    file: Annotated[Text, BeforeValidator(_digested)] = Field(
        description="A CSV file with a row for each value; its first line and column may name the values."
    )


Rows = Annotated[
    tuple[tuple[Fraction, ...], ...],
    PlainValidator(_read_rows),
    PlainSerializer(lambda rows: [[write_probability(entry) for entry in row] for row in rows]),
    WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": ["number", "string"]}}}),
]
Matrix = Annotated[
    Annotated[Rows, Tag("@rows")] | Annotated[MatrixFile, Tag("@file")],
    Discriminator(lambda raw: "@file" if isinstance(raw, Mapping | MatrixFile) else "@rows"),
]
Retention = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]
ByAttribute = Annotated[Mapping[Text, Retention], AfterValidator(FrozenMap)]


def _several(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) < 2:
        raise ValueError("must name two attributes at least")
    return names


class Joint(Section):
    """Attributes that are redrawn together, as one with all combinations of their values."""

    of: Annotated[tuple[Text, ...], AfterValidator(_several)] = Field(description="The attributes.")
    rho: Retention | None = Field(default=None, description="The probability with which the combination is kept.")
    importance: Weight | None = Field(default=None, description="Its part of epsilon; 1 if not given.")
    matrix: Matrix | None = Field(
        default=None, description="What each combination becomes, the values of the last attribute changing fastest."
    )


class Pram(ReleaseSection):
    """Keep each value with probability rho, else draw one of its domain; or redraw it by a matrix of your own."""

    SILENT: ClassVar[Mapping[str, Any]] = {"beta": None, "already_sampled": False}

    mechanism: Literal["pram"] = Field(description="The method.")
    k: float | None = Field(
        default=None, gt=1, allow_inf_nan=False, description="Nobody is linked to a record with more than 1/k (Pk)."
    )
    epsilon: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="The promise for one record, before it is shuffled."
    )
    rho: (
        Annotated[
            Annotated[Retention, Tag("@one")] | Annotated[ByAttribute, Tag("@each")],
            Discriminator(lambda raw: "@each" if isinstance(raw, Mapping) else "@one"),
        ]
        | None
    ) = Field(default=None, description="The probability with which a value is kept: for all attributes, or for each.")
    importance: Annotated[Mapping[Text, Weight], AfterValidator(FrozenMap)] = Field(
        default_factory=FrozenMap,
        description="Attributes with a larger part of epsilon; those not listed have 1.",
    )
    matrix: Annotated[Mapping[Text, Matrix], AfterValidator(FrozenMap)] = Field(
        default_factory=FrozenMap, description="What each value of an attribute becomes, with which chance."
    )
    joint: tuple[Joint, ...] = Field(default=(), description="Attributes that are redrawn together.")
    invariant: bool = Field(
        default=False, description="Keep the shares of values as they are, on average. It costs every promise."
    )
    delta: float = Field(default=1e-6, gt=0, lt=1, description="Of the promise for the shuffled table.")
    records: int | None = Field(
        default=None, ge=2, description="Promise it for this many records at least; by default, for those there are."
    )
    beta: float | None = Field(
        default=None, gt=0, lt=1, description="Redraw a random sample only: each record with this probability."
    )
    already_sampled: bool = Field(
        default=False,
        description="The table itself is a random sample, of rate beta, of at least as many people as 'records' says.",
    )

    def files(self) -> dict[Place, TreeFile]:
        """The matrices that stand in files."""
        named: dict[Place, Any] = {("matrix", name): spec for name, spec in self.matrix.items()}
        named |= {("joint", i, "matrix"): one.matrix for i, one in enumerate(self.joint)}
        return {place: spec for place, spec in named.items() if isinstance(spec, TreeFile)}

    def unfit(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        return [
            *self._unfit_attributes(attributes),
            *self._unfit_names(attributes),
            *self._unfit_numbers(attributes),
            *self._unfit_sample(),
        ]

    def _unfit_sample(self) -> list[Finding]:
        findings: list[Finding] = []
        if self.already_sampled and (self.beta is None or self.records is None):
            text = "say at which rate and from how many people at least it was sampled: give 'beta' and 'records'"
            findings.append((("release", "already_sampled"), text))
        if self.beta is not None and self.k is not None:
            text = "counts the records published, and how many these are is drawn; give 'rho' or 'epsilon' instead"
            findings.append((("release", "k"), text))
        if self.beta is not None and self.invariant:
            findings.append(
                (("release", "invariant"), "promises nothing that a sample could strengthen; leave one out")
            )
        return findings

    def alone(self, names: Mapping[str, Any]) -> list[str]:
        """The attributes that are redrawn one by one."""
        joined = {name for one in self.joint for name in one.of}
        return [name for name in names if name not in joined]

    def _unfit_attributes(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        findings: list[Finding] = []
        for name, attribute in attributes.items():
            if attribute.hierarchy is not None and attribute.level is None:
                findings.append((("attributes", name), "has a hierarchy; give its 'level'"))
            if attribute.missing == "drop":
                # Replacing a record by one that is dropped would change the number of records, which is public.
                text = "a dropped record would show in the number of records, which is public; use 'keep' or 'refuse'"
                findings.append((("attributes", name, "missing"), text))
        return findings

    def _unfit_names(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        findings: list[Finding] = []
        joined = [name for one in self.joint for name in one.of]
        rho = self.rho if isinstance(self.rho, Mapping) else {}
        for key, named in (("rho", rho), ("importance", self.importance), ("matrix", self.matrix)):
            for name in named:
                if name not in attributes:
                    findings.append((("release", key, name), "there is no such attribute, or it is dropped"))
                elif name in joined:
                    findings.append((("release", key, name), f"is part of a joint attribute; give its '{key}' there"))
                elif key != "matrix" and name in self.matrix:
                    findings.append((("release", key, name), "is redrawn by a matrix of its own"))
        for i, one in enumerate(self.joint):
            for j, name in enumerate(one.of):
                at = ("release", "joint", i, "of", j)
                if name not in attributes:
                    findings.append((at, "there is no such attribute, or it is dropped"))
                elif joined.count(name) > 1:
                    findings.append((at, "is named twice"))
            if one.matrix is not None and (one.rho is not None or one.importance is not None):
                findings.append((("release", "joint", i), "give either a 'matrix' or how much is kept"))
        return findings

    def _unfit_numbers(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        here = ("release",)
        solved = self.k is not None or self.epsilon is not None
        given = self.rho is not None or any(one.rho is not None for one in self.joint)
        kept = [name for name in self.alone(attributes) if name not in self.matrix]
        joint = [one for one in self.joint if one.matrix is None]
        weighted = bool(self.importance) or any(one.importance is not None for one in self.joint)
        if solved and given:
            return [((*here, "rho"), "give either rho or what it should reach ('k', 'epsilon')")]
        if weighted and not solved:
            return [((*here, "importance"), "divides what 'epsilon' or 'k' allows; give one of them")]
        if not solved and (kept or joint):
            if not given:
                return [(here, "say how much is kept: give 'k', 'epsilon', both, or 'rho'")]
            lacking = [name for name in kept if isinstance(self.rho, Mapping) and name not in self.rho]
            unsaid = [one for one in joint if one.rho is None and not isinstance(self.rho, float)]
            if lacking or unsaid or (kept and self.rho is None):
                return [((*here, "rho"), "must be one number, or be given for each attribute without a matrix")]
        return []
