"""`mechanism: generalization`: the least coarse table that withstands the adversaries named."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer

from incrowd.core.errors import PolicyError
from incrowd.mechanisms.generalization.adversaries import MISSING, AdversarySpec, EarlierTable, named_values
from incrowd.mechanisms.generalization.requirements import (
    REQUIREMENTS,
    Closeness,
    FiniteNumber,
    GroupSize,
    RequirementSpec,
    Share,
    ValueRequirement,
    unknown,
)
from incrowd.policy.attributes import Attribute
from incrowd.policy.fields import Finding, Section
from incrowd.policy.release import ReleaseSection
from incrowd.policy.texts import Place
from incrowd.policy.values import FrozenMap

Labels = Sequence[str | None]
AboutValues = AdversarySpec | ValueRequirement
"""What speaks of the values of a sensitive column."""

TOGETHER = " & "
"""Between the names of columns, and the values, that are looked at together."""

MINIMISED: Mapping[str, str] = {
    "loss": "loss of information",
    "entropy": "loss of entropy",
    "discernibility": "discernibility",
    "class_size": "average group size",
    "divergence": "divergence from the table",
    "query_error": "error of counts",
}
"""By what the best table is chosen, in words; how each is computed, `recoding.measures` has by the same names."""

if TYPE_CHECKING:
    Minimise = str
else:
    Minimise = Literal[tuple(MINIMISED)]

MOST_COMBINED = 10_000
"""More combinations of sensitive values than these are refused."""

MOST_PRIORS = 200
"""More groups of people with a prior of their own are refused."""


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
    splits: Literal["hierarchy", "binary"] = Field(
        default="hierarchy",
        description="For local recoding: into the hierarchy's children, or in two, with cuts and unions beyond it.",
    )

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A policy without local recoding says nothing of splits, so that its digest is what it was before them."""
        content: dict[str, Any] = handler(self)
        return {key: item for key, item in content.items() if key != "splits" or self.recoding == "local"}

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
        return self.adversaries[number].name or f"adversary {number + 1}"

    def unfit(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
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
        if self.recoding != "local" and self.splits != "hierarchy":
            findings.append((("release", "splits"), "is for 'recoding: local'; leave it out"))
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
            if any(name not in sensitive for name in named(spec)):
                findings.append(((*place, "sensitive"), "is not a column with the role 'sensitive'"))
            elif spec.sensitive is None and not sensitive:
                findings.append((place, "is about a sensitive column, and no attribute has the role 'sensitive'"))
            elif spec.sensitive is None and len(sensitive) > 1:
                findings.append((place, "say which of the sensitive columns it is about: give 'sensitive'"))
        quasi = [name for name, attribute in attributes.items() if attribute.role == "quasi"]
        findings += [*self._unfit_sets(quasi), *self._unfit_looks(sensitive), *self._unfit_people(attributes)]
        findings += self._unfit_priors(attributes)
        if findings:
            return findings
        known = {name: declared_labels(attributes[name]) for name in sensitive}
        return self.mismatched({name: labels for name, labels in known.items() if labels is not None}, sensitive)

    def _unfit_sets(self, quasi: Sequence[str]) -> Iterator[Finding]:
        for number, spec in enumerate(self.require):
            for place, names in enumerate(spec.sets if isinstance(spec, GroupSize) else ()):
                at = ("release", "require", number, "for", place)
                if not names or any(name not in quasi for name in names):
                    yield at, "must name columns with the role 'quasi'"
                elif len(set(names)) < len(names):
                    yield at, "names a column twice"
                elif self.recoding == "local":
                    yield at, "a local recoding shows one column at many levels; leave 'for' out, or recode full_domain"

    def _unfit_people(self, attributes: Mapping[str, Attribute]) -> Iterator[Finding]:
        for number, spec in enumerate(self.adversaries):
            for name in spec.whom or ():
                at = ("release", "adversaries", number, "for", name)
                attribute = attributes.get(name)
                if attribute is None or attribute.role != "quasi":
                    yield at, "must be a column with the role 'quasi'"
                elif self.recoding == "local":
                    yield at, "a local recoding looks at all people alike; recode full_domain"

    def _unfit_priors(self, attributes: Mapping[str, Attribute]) -> Iterator[Finding]:
        """Priors of groups need groups that do not mix people with different ones."""
        for number, spec in enumerate(self.adversaries):
            names = spec.earlier_table.by if spec.earlier_table is not None else ()
            at = ("release", "adversaries", number, "earlier_table", "by")
            if len(set(names)) < len(names):
                yield at, "names a column twice"
            for name in dict.fromkeys(names):
                attribute = attributes.get(name)
                if attribute is None or attribute.role != "quasi":
                    yield at, "must name columns with the role 'quasi'"
                elif self.recoding == "local":
                    yield at, "a local recoding may show people with different priors alike; recode full_domain"
                elif attribute.level is None:
                    yield at, f"give {name!r} a 'level': a group that mixes people with different priors has no ratio"

    def by_prior(self, parts: Callable[[str], Mapping[str, tuple[str, ...]]]) -> Generalization:
        """The same with an adversary for each group of people of whom she has a prior of its own.

        Args:
            parts: by the labels of a column as it is published, the declared values that each stands for.
        """
        found: list[AdversarySpec] = []
        for number, spec in enumerate(self.adversaries):
            names = spec.earlier_table.by if spec.earlier_table is not None and spec.whom is None else ()
            if not names:
                found.append(spec)
                continue
            for labels in itertools.product(*(parts(name) for name in names)):
                whom = {name: parts(name)[label] for name, label in zip(names, labels, strict=True)}
                words = " and ".join(f"{name} {label}" for name, label in zip(names, labels, strict=True))
                called = f"{self.called(number)}, of people with {words}"
                found.append(spec.model_copy(update={"name": called, "whom": FrozenMap(whom)}))
        if len(found) - len(self.adversaries) > MOST_PRIORS:
            raise PolicyError(
                f"There are more than {MOST_PRIORS:,} groups of people with a prior of their own.",
                code="domain-large",
                remedy="Name fewer columns in 'by', or publish them at coarser levels.",
            )
        return self.model_copy(update={"adversaries": tuple(found)})

    def unknown_people(self, values: Mapping[str, Labels | None]) -> list[Finding]:
        """What is said of people that does not fit the values of their columns, as they are declared.

        Args:
            values: of the columns that are not sensitive; None where they, or their levels, are in a file.
        """
        findings: list[Finding] = []
        for number, spec in enumerate(self.adversaries):
            for name, group in (spec.whom or {}).items():
                at, labels = ("release", "adversaries", number, "for", name), values[name]
                if labels is None:
                    text = "has its values or levels in a file, so that a certificate could not show who may be where"
                    findings.append((at, text))
                    continue
                known = [MISSING if label is None else label for label in labels]
                findings += unknown(at, named_values(group, known), known)
                if not spec.concerned(name, known):
                    findings.append((at, "is nobody"))
        return findings

    def _unfit_looks(self, sensitive: Sequence[str]) -> Iterator[Finding]:
        for place, spec in self._about_values():
            names, known = named(spec), spec.knowing
            if len(set(names)) < len(names):
                yield (*place, "sensitive"), "names a column twice"
            if any(name not in sensitive for name in known):
                yield (*place, "knowing"), "is not a column with the role 'sensitive'"
            elif set(known) & set(names or sensitive[:1]):
                yield (*place, "knowing"), "is what is to be learned; it cannot be known as well"
            excludes = isinstance(spec, AdversarySpec) and spec.knows_not
            if self.recoding == "local" and (len(names) > 1 or known or excludes):
                yield place, "a local recoding looks at one sensitive column at a time; recode full_domain"
            if len(names) > 1 and isinstance(spec, AdversarySpec) and spec.earlier_table is not None:
                yield (*place, "earlier_table"), "has one column; give the 'prior' or 'shape' of the combinations"
            if len(names) > 1 and isinstance(spec, Closeness) and spec.distance == "hierarchical":
                yield (*place, "distance"), "combinations of columns have no hierarchy"

    def about(self, spec: AboutValues, sensitive: Sequence[str]) -> str:
        """The sensitive column that an adversary or a requirement is about, or combinations, by their name here."""
        excluded = spec.knows_not if isinstance(spec, AdversarySpec) else ()
        return self.column(spec, sensitive) + (f" if not {' or '.join(excluded)}" if excluded else "")

    def column(self, spec: AboutValues, sensitive: Sequence[str]) -> str:
        """The same, whatever an adversary knows a person not to have."""
        return TOGETHER.join(named(spec)) or sensitive[0]

    def values(self, labels: Mapping[str, Labels]) -> dict[str, Labels]:
        """The values of sensitive columns, and of combinations of them that something is demanded about."""
        found = dict(labels)
        for _, spec in self._about_values():
            names = named(spec)
            if len(names) > 1 and all(name in labels for name in names):
                each = [[MISSING if value is None else value for value in labels[name]] for name in names]
                found[TOGETHER.join(names)] = [TOGETHER.join(values) for values in itertools.product(*each)]
        sensitive = list(labels)
        for spec in self.adversaries:
            if spec.knows_not and sensitive and (column := self.column(spec, sensitive)) in found:
                values = [MISSING if value is None else value for value in found[column]]
                found[self.about(spec, sensitive)] = spec.possible(values)
        return found

    def mismatched(self, labels: Mapping[str, Labels], sensitive: Sequence[str]) -> list[Finding]:
        """What does not fit the values of the sensitive columns, as they are published.

        Args:
            labels: the values of those columns whose values are known.
            sensitive: all sensitive columns.
        """
        if any(self._sizes(labels, spec) > MOST_COMBINED for _, spec in self._about_values()):
            return [(("release",), f"a demand is about more than {MOST_COMBINED:,} combinations of sensitive values")]
        known = self.values(labels)
        return [
            finding
            for place, spec in self._about_values()
            if (column := self.column(spec, sensitive)) in known
            for finding in _unlike(place, spec, [MISSING if v is None else v for v in known[column]])
        ]

    def _sizes(self, labels: Mapping[str, Labels], spec: AboutValues) -> int:
        names = named(spec)
        return math.prod(len(labels.get(name, ())) for name in names) if len(names) > 1 else 0

    def _about_values(self) -> Iterator[tuple[Place, AboutValues]]:
        yield from ((("release", "adversaries", number), spec) for number, spec in enumerate(self.adversaries))
        for number, spec in enumerate(self.require):
            if not isinstance(spec, GroupSize):
                yield ("release", "require", number), spec


def named(spec: AboutValues) -> tuple[str, ...]:
    """The sensitive columns that an adversary or a requirement names."""
    return (spec.sensitive,) if isinstance(spec.sensitive, str) else spec.sensitive or ()


def declared_labels(attribute: Attribute) -> Labels | None:
    """The values of a column as they are published, if the policy itself holds them."""
    return attribute.published_labels() if attribute.level in (None, 0) else None


def _unlike(place: Place, spec: AboutValues, labels: Sequence[str]) -> Iterator[Finding]:
    """What an adversary or a requirement says that does not fit the values of its column."""
    if len(set(labels)) < len(labels):
        yield place, f"a value is called {MISSING}, which is the name of the missing value; rename it"
    if len(labels) < 2:
        yield place, "is about a column that is published with one value only: there is nothing to learn"
    if isinstance(spec, AdversarySpec):
        yield from spec.unlike(place, labels)
    elif isinstance(spec, Share):
        yield from unknown((*place, "values"), spec.values or (), labels)
