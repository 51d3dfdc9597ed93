"""`mechanism: sampled_crowd`: sample, recode, and publish only crowds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from incrowd.policy.attributes import Attribute
from incrowd.policy.fields import Finding, NamedFile, Section, Text, listed
from incrowd.policy.release import ReleaseSection
from incrowd.policy.texts import Place

_OF_TREES = ("splits", "score", "flat", "choice_rho", "mapping")
_OF_CHOICES = ("minimise", "workload", "target", "importance")

Minimised = Literal["loss", "entropy", "discernibility", "class_size", "workload", "misclassified"]


class MappingFile(NamedFile):
    """The `mapping.json` of an earlier release."""

    file: Text = Field(description="The mapping of an earlier release, relative to the policy.")

    @field_validator("file", mode="before")
    @classmethod
    def _digested(cls, raw: Any) -> Any:
        """In a certificate a file stands by its digest."""
        return f"sha256:{raw['sha256']}" if isinstance(raw, Mapping) and set(raw) == {"sha256"} else raw


def _named(raw: Any) -> Any:
    return {"file": raw} if isinstance(raw, str) else raw


class Totals(Section):
    """Noisy one-way tables beside the crowds, to which estimates are calibrated."""

    epsilon: float = Field(gt=0, allow_inf_nan=False, description="The part of epsilon that pays for them.")


class SampledCrowd(ReleaseSection):
    """Sample, recode, and publish only what at least k sampled records share."""

    PARTS: ClassVar[Mapping[str, type[BaseModel]]] = {"mapping": MappingFile, "totals": Totals}
    CHOOSING: ClassVar[tuple[str, ...]] = ("selection_epsilon", *_OF_CHOICES)

    mechanism: Literal["sampled_crowd"] = Field(description="The method.")
    epsilon: float = Field(
        gt=0, allow_inf_nan=False, description="The promise: selection_epsilon, policy_epsilon and totals included."
    )
    delta: float = Field(gt=0, lt=1, description="The probability with which the promise may fail.")
    selection_epsilon: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="The part of epsilon that pays for choosing levels not fixed.",
    )
    policy_epsilon: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="The part of epsilon that a private choice of this policy has cost (`incrowd advise --privately`).",
    )
    minimise: Minimised = Field(
        default="loss", description="What the private choice of levels keeps low; its sensitivity is proved for each."
    )
    workload: tuple[Annotated[tuple[Text, ...], BeforeValidator(listed)], ...] = Field(
        default=(), description="For `minimise: workload`: the sets of columns that will be tabulated."
    )
    target: Text | None = Field(
        default=None, description="For `minimise: misclassified`: the column that the others are to predict."
    )
    importance: dict[str, Annotated[float, Field(gt=0, le=1000)]] = Field(
        default_factory=dict, description="How much more some columns matter; 1 is usual."
    )
    beta: float | None = Field(
        default=None, gt=0, lt=1, description="The share of records sampled; chosen if not given."
    )
    k: int | None = Field(default=None, ge=1, description="The least crowd that is published; chosen if not given.")
    crowd_of_interest: int | None = Field(
        default=None, ge=1, description="Choose beta and k so that crowds of this size survive best."
    )
    already_sampled: bool = Field(
        default=False, description="The table itself is a random sample, of rate beta, of the people it speaks of."
    )

    totals: Totals | None = Field(
        default=None, description="Noisy counts of each column beside the crowds, to which estimates are calibrated."
    )
    recoding: Literal["lattice", "tree"] = Field(
        default="lattice",
        description="One level per column for all records, or a tree of boxes that refines different columns in each.",
    )
    splits: Literal["hierarchy", "binary"] = Field(
        default="hierarchy",
        description="For a tree: into the children of the hierarchy, or in two, with cut points and unions beyond it.",
    )
    score: Literal["information", "queries"] = Field(
        default="information",
        description="For a tree: what a split is worth: what it tells, or how far it is from what one-way tables tell.",
    )
    flat: bool = Field(
        default=False,
        description="For a tree: one set of labels per column, by cuts through the whole table.",
    )
    choice_rho: float | None = Field(
        default=None,
        gt=0,
        le=10,
        description="For a tree: what the choice costs a person, in zero-concentrated differential privacy; found if "
        "not given.",
    )
    mapping: Annotated[MappingFile | None, BeforeValidator(_named)] = Field(
        default=None, description="For a tree: the mapping of an earlier release, to be used as it is."
    )

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What a policy does not speak of it leaves out, so that its digest is what it was before there was that."""
        content: dict[str, Any] = handler(self)
        if self.recoding == "tree":
            silent = {key for key in _OF_CHOICES if key != "importance"}
            silent |= set() if self.flat else {"flat"}
        else:
            silent = {"recoding", *_OF_TREES} | {key for key in _OF_CHOICES if not self._says(key)}
        silent |= {key for key in ("totals", "policy_epsilon") if not self._says(key)}
        return {key: item for key, item in content.items() if key not in silent}

    def _says(self, key: str) -> bool:
        """Whether a key has another value than the one it has where it is not given."""
        usual = type(self).model_fields[key].get_default(call_default_factory=True)
        return bool(getattr(self, key) != usual)

    @property
    def beside(self) -> tuple[float, float, float]:
        """What of epsilon was or is spent beside the crowds: on the policy, its levels, and one-way tables."""
        return self.policy_epsilon, self.selection_epsilon, 0.0 if self.totals is None else self.totals.epsilon

    def files(self) -> dict[Place, MappingFile]:
        """The mapping that is used again."""
        return {} if self.mapping is None else {("mapping",): self.mapping}

    def unfit(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        if self.recoding == "tree":
            return self._unfit_tree(attributes)
        findings: list[Finding] = [
            (("release", key), "is for trees: set 'recoding: tree', or leave it out")
            for key in _OF_TREES
            if self._says(key)
        ]
        findings += self._unfit_choice(attributes)
        here = ("release", "selection_epsilon")
        if self.selection_epsilon >= self.epsilon:
            findings.append((here, "is part of epsilon and must be smaller"))
        elif self.selection_epsilon + self.policy_epsilon >= self.epsilon:
            findings.append((("release", "policy_epsilon"), "leaves nothing of epsilon to the release"))
        elif self.totals is not None and math.fsum(self.beside) >= self.epsilon:
            findings.append((("release", "totals", "epsilon"), "leaves nothing of epsilon to the crowds"))
        if self.totals is not None and self.already_sampled:
            # What is promised of a crowd does not add up with any other answer about the same sample.
            findings.append((("release", "totals"), "nothing can be promised for counts of the sample itself"))
        if self.already_sampled and self.policy_epsilon:
            # What was chosen on the sample and its crowds are answers about the same sample.
            findings.append((("release", "policy_epsilon"), "nothing can be promised for a choice made on the sample"))
        if self.already_sampled and self.selection_epsilon:
            # Choosing g on the sample is unsound: the crowds are then no longer an independent sample.
            findings.append((here, "nothing can be promised for a choice made on the sample itself; fix every level"))
        if self.already_sampled and self.beta is None:
            findings.append((("release", "already_sampled"), "say at which rate it was sampled: give 'beta'"))
        if self.selection_epsilon and all(
            attribute.level is not None or name == self.target for name, attribute in attributes.items()
        ):
            findings.append((here, "pays for a choice, but every attribute has its 'level' already"))
        if not self.selection_epsilon:
            findings += [
                (("attributes", name), "has a hierarchy; give its 'level', or a 'selection_epsilon' in the release")
                for name, attribute in attributes.items()
                if attribute.hierarchy is not None and attribute.level is None
            ]
        return findings

    def _unfit_choice(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        findings: list[Finding] = []
        if not self.selection_epsilon:
            return [
                (("release", key), "is about a choice: give a 'selection_epsilon'")
                for key in _OF_CHOICES
                if self._says(key)
            ]
        named = {"workload": [name for names in self.workload for name in names], "importance": list(self.importance)}
        named["target"] = [] if self.target is None else [self.target]
        findings += [
            (("release", key), f"there is no published column '{name}'")
            for key, names in named.items()
            for name in dict.fromkeys(names)
            if name not in attributes
        ]
        for key, goal in (("workload", "workload"), ("target", "misclassified")):
            if (self.minimise == goal) != self._says(key):
                findings.append((("release", key), f"goes with 'minimise: {goal}', and that with it"))
        if any(len(set(names)) != len(names) or not names for names in self.workload):
            findings.append((("release", "workload"), "a set has no column, or one twice"))
        if self.importance and self.minimise not in ("loss", "entropy"):
            findings.append((("release", "importance"), "goes with 'minimise: loss' or 'entropy'"))
        if self.target is not None and len(attributes) < 2:
            findings.append((("release", "target"), "there is no other column to predict it by"))
        return findings

    def _unfit_tree(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        findings: list[Finding] = []
        if self.totals is not None:
            findings.append((("release", "totals"), "a tree has one-way tables of its own; leave it out"))
        if self.policy_epsilon:
            findings.append((("release", "policy_epsilon"), "a policy with a tree is never chosen privately"))
        if self.selection_epsilon:
            findings.append((("release", "selection_epsilon"), "a tree has a share of its own: 'choice_rho'"))
        findings += [
            (("release", key), "is for one level per column; a tree has 'score' and 'importance'")
            for key in _OF_CHOICES[:3]
            if self._says(key)
        ]
        if self.crowd_of_interest is not None:
            findings.append((("release", "crowd_of_interest"), "a tree makes crowds of the size that beta and k want"))
        if self.already_sampled and self.mapping is None:
            findings.append((("release", "already_sampled"), "no tree can be chosen on the sample; name a 'mapping'"))
        if self.already_sampled and self.beta is None:
            findings.append((("release", "already_sampled"), "say at which rate it was sampled: give 'beta'"))
        if self.mapping is not None and self.choice_rho is not None:
            findings.append((("release", "choice_rho"), "pays for a choice, but the 'mapping' is given"))
        if self.flat:
            findings += self._unfit_flat()
        findings += [
            (("attributes", name), "a tree shows a column as finely as each box can bear; leave its 'level' out")
            for name, attribute in attributes.items()
            if attribute.level is not None
        ]
        findings += [
            (("release", "importance", name), "there is no such published column")
            for name in self.importance
            if name not in attributes
        ]
        return findings

    def _unfit_flat(self) -> Iterator[Finding]:
        here = ("release", "flat")
        if self.mapping is not None:
            yield here, "is about a choice, but the 'mapping' is given"
            return
        if self.score != "information":
            yield here, "has cuts chosen by information alone; leave 'score' out"
