"""`mechanism: generalization`: the least coarse table that withstands the adversaries named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from incrowd.mechanisms.generalization.adversaries import MISSING, AdversarySpec, EarlierTable
from incrowd.mechanisms.generalization.measures import Minimise
from incrowd.mechanisms.generalization.requirements import (
    REQUIREMENTS,
    FiniteNumber,
    GroupSize,
    RequirementSpec,
    Share,
    unknown,
)
from incrowd.policy.attributes import Attribute
from incrowd.policy.fields import Finding, Section
from incrowd.policy.reading import Place
from incrowd.policy.release import ReleaseSection

Labels = Sequence[str | None]


def _one(raw: Any) -> Any:
    return [raw] if isinstance(raw, Mapping) else raw


class Generalization(ReleaseSection):
    """Make columns coarser until nobody feared learns too much, and no coarser than that."""

    mechanism: Literal["generalization"] = Field(description="The method.")
    adversaries: Annotated[tuple[AdversarySpec, ...], BeforeValidator(_one)] = Field(
        default=(), description="Those who will read the table, all of whom it must withstand."
    )
    require: Annotated[tuple[RequirementSpec, ...], BeforeValidator(_one)] = Field(
        default=(), description="What every group must have besides: k, l, c, alpha, t, beta, delta."
    )
    minimise: Minimise = Field(
        default="loss", description="Of the tables that keep everything, the one is taken that has least of this."
    )
    suppression: float = Field(
        default=0.0, ge=0, lt=1, description="The largest share of records that may be left out, group by group."
    )
    time_limit: Annotated[FiniteNumber, Field(gt=0)] = Field(
        default=60.0, description="Seconds after which the best table found so far is taken."
    )
    recoding: Literal["full_domain", "local"] = Field(
        default="full_domain", description="Every record of a column is made equally coarse, or each as far as needed."
    )

    PARTS: ClassVar[Mapping[str, type[Section]]] = {
        "adversaries": AdversarySpec,
        "earlier_table": EarlierTable,
        **{tag: model for tag, (model, _) in REQUIREMENTS.items()},
    }

    def files(self) -> dict[Place, EarlierTable]:
        """The earlier tables that belong to the policy."""
        return {
            ("adversaries", number, "earlier_table"): adversary.earlier_table
            for number, adversary in enumerate(self.adversaries)
            if adversary.earlier_table is not None
        }

    def called(self, number: int) -> str:
        """What an adversary is called."""
        return self.adversaries[number].name or f"adversary {number + 1}"

    def unfit(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        """What does not go together, within the release or with the attributes that it publishes."""
        findings: list[Finding] = []
        if not self.adversaries and not self.require:
            findings.append((("release",), "say what the table must withstand: give 'adversaries' or 'require'"))
        if all(attribute.role != "quasi" for attribute in attributes.values()):
            findings.append((("attributes",), "at least one must have the role 'quasi': these are made coarser"))
        names = [self.called(number) for number in range(len(self.adversaries))]
        findings += [
            (("release", "adversaries", number, "name"), "is that of another adversary, too")
            for number, name in enumerate(names)
            if name in names[:number]
        ]
        if self.recoding == "local":
            if self.suppression:
                findings.append((("release", "suppression"), "a local recoding leaves nobody out; leave it out"))
            findings += [
                (("attributes", name, "level"), "a local recoding has no levels to fix; leave it out")
                for name, attribute in attributes.items()
                if attribute.role == "quasi" and attribute.level is not None
            ]
        sensitive = [name for name, attribute in attributes.items() if attribute.role == "sensitive"]
        for place, spec in self._about_values():
            if spec.sensitive is not None and spec.sensitive not in sensitive:
                findings.append(((*place, "sensitive"), "is not a column with the role 'sensitive'"))
            elif spec.sensitive is None and not sensitive:
                findings.append((place, "is about a sensitive column, and no attribute has the role 'sensitive'"))
            elif spec.sensitive is None and len(sensitive) > 1:
                findings.append((place, "say which of the sensitive columns it is about: give 'sensitive'"))
        if findings:
            return findings
        known = {name: declared_labels(attributes[name]) for name in sensitive}
        return self.mismatched({name: labels for name, labels in known.items() if labels is not None}, sensitive)

    def about(self, spec: Any, sensitive: Sequence[str]) -> str | None:
        """The sensitive column that an adversary or a requirement is about; None for sizes of groups."""
        return None if isinstance(spec, GroupSize) else spec.sensitive or sensitive[0]

    def mismatched(self, labels: Mapping[str, Labels], sensitive: Sequence[str]) -> list[Finding]:
        """What does not fit the values of the sensitive columns, as they are published.

        Args:
            labels: the values of those columns whose values are known.
            sensitive: all sensitive columns.
        """
        return [
            finding
            for place, spec in self._about_values()
            if (column := self.about(spec, sensitive)) in labels
            for finding in _unlike(place, spec, [MISSING if v is None else v for v in labels[str(column)]])
        ]

    def _about_values(self) -> Iterator[tuple[Place, Any]]:
        yield from ((("release", "adversaries", number), spec) for number, spec in enumerate(self.adversaries))
        for number, spec in enumerate(self.require):
            if not isinstance(spec, GroupSize):
                yield ("release", "require", number), spec


def declared_labels(attribute: Attribute) -> Labels | None:
    """The values of a column as they are published, if the policy itself holds them."""
    domain = attribute.declared()
    if domain is None or attribute.level not in (None, 0):
        return None
    beyond: list[str | None] = [] if attribute.other is None else [attribute.other]
    return [*domain.labels, *beyond, *([None] if attribute.missing == "keep" else [])]


def _unlike(place: Place, spec: Any, labels: Sequence[str]) -> Iterator[Finding]:
    """What an adversary or a requirement says that does not fit the values of its column."""
    if len(set(labels)) < len(labels):
        yield place, f"a value is called {MISSING}, which is the name of the missing value; rename it"
    if len(labels) < 2:
        yield place, "is about a column that is published with one value only: there is nothing to learn"
    if isinstance(spec, AdversarySpec):
        yield from spec.unlike(place, labels)
    elif isinstance(spec, Share):
        yield from unknown((*place, "values"), spec.values or (), labels)
