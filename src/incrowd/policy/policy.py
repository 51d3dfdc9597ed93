"""The policy: a frozen value, unaware of the files it names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, PrivateAttr, ValidationError, field_validator, model_validator

from incrowd.core.display import Showable, Shown, ShownTable
from incrowd.core.errors import ParameterError
from incrowd.domain import label_of
from incrowd.policy import formats, texts
from incrowd.policy.attributes import Attribute
from incrowd.policy.domains import DOMAINS
from incrowd.policy.fields import OUTPUTS, Finding, NamedFile, Section, Text, refuse
from incrowd.policy.hierarchies import HIERARCHIES
from incrowd.policy.labels import LabelFile
from incrowd.policy.release import Release, section_model
from incrowd.policy.sections import Data, LedgerSection, People
from incrowd.policy.values import FrozenMap


class Policy(Showable, Section):
    """What may be published of a table, and how."""

    incrowd: Literal[1] = Field(description="The version of this format.")
    title: str | None = Field(default=None, description="What the release is called in reports.")
    data: Data = Field(default_factory=Data, description="The table; it may also be named when the policy is used.")
    attributes: Annotated[Mapping[Text, Attribute], AfterValidator(FrozenMap)] = Field(
        description="The columns, by name. A role alone may be written without a mapping: 'name: drop'."
    )
    unlisted: Literal["drop", "refuse"] = Field(
        default="drop", description="Columns of the table that are not listed are dropped, or are an error."
    )
    people: People | None = Field(
        default=None, description="Whose the rows are, if a person may have several. Without it, each row is a person."
    )
    rows_are_people: bool = Field(
        default=False, description="Confirms that each row is a person, where a dropped column looks as if not."
    )
    release: Release | None = Field(default=None, description="How the table is published.")
    ledger: LedgerSection | None = Field(default=None, description="Where the budget is kept.")

    _base: Path | None = PrivateAttr(default=None)
    _unconfirmed: tuple[texts.Problem, ...] = PrivateAttr(default=())

    def shown(self) -> Shown:
        """What is published of which columns, and by which mechanism."""
        how = "nothing is released yet" if self.release is None else f"released by {self.release.mechanism}"
        dropped = [name for name in self.attributes if name not in self.published]
        rows = [(name, str(one.role)) for name, one in self.published.items()]
        return Shown(
            f"Policy{'' if self.title is None else f' “{self.title}”'}: {len(rows)} columns, {how}",
            (f"Dropped: {', '.join(dropped)}.",) if dropped else (),
            (ShownTable(("column", "role"), rows, words=2),),
            listing=self.to_yaml(),
        )

    @field_validator("incrowd", mode="before")
    @classmethod
    def _version(cls, raw: Any) -> Any:
        return 1 if raw == "1" else raw

    @field_validator("data", mode="before")
    @classmethod
    def _no_data(cls, raw: Any) -> Any:
        return {} if raw is None else raw

    @model_validator(mode="after")
    def _check(self) -> Self:
        findings: list[Finding] = []
        if not self.published:
            findings.append((("attributes",), "at least one must not be dropped"))
        missing = set(self.data.missing_values)
        findings += [
            (("attributes", name, "domain", number), "is among the missing_values of the data")
            for name, attribute in self.published.items()
            if isinstance(attribute.domain, tuple)
            for number, value in enumerate(attribute.domain)
            if label_of(value) in missing
        ]
        findings += [
            (("attributes", name, key, code), "is among the missing_values of the data")
            for name, attribute in self.published.items()
            for key, said in (("labels", attribute.labels), ("codes", attribute.codes))
            if isinstance(said, Mapping)
            for code in said
            if code in missing
        ]
        if self.people is not None:
            findings += self._unfit_people(self.people)
        if self.release is not None:
            findings += self.release.unfit(self.published)
        refuse(findings)
        return self

    def _unfit_people(self, people: People) -> list[Finding]:
        findings: list[Finding] = [
            (("people", "column"), f"'{name}' says whose a row is, and is never published: give it the role 'drop'")
            for name in people.column
            if name in self.published
        ]
        if self.rows_are_people:
            findings.append((("rows_are_people",), "contradicts the section 'people'"))
        return findings

    def model_post_init(self, context: Any) -> None:
        """Remember the folder of the policy, and what nobody has confirmed."""
        if isinstance(context, Mapping):
            self._base = context.get("base")
            self._unconfirmed = context.get("unconfirmed", ())

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read a policy; its relative paths start at its folder."""
        return cls._read(texts.parse(texts.read_text(path), str(path)), Path(path).parent)

    @classmethod
    def from_text(cls, text: str, base: str | Path | None = None) -> Self:
        """Read a policy from YAML. Relative paths start at `base`, or where the program runs if it is not given."""
        return cls._read(texts.parse(text), base)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], base: str | Path | None = None) -> Self:
        """Make a policy of dictionaries and lists shaped like the file."""
        return cls._read(texts.Document(content), base)

    @classmethod
    def _read(cls, document: texts.Document, base: str | Path | None) -> Self:
        folder = None if base is None else Path(base)
        if document.content is None:
            raise texts.refusal([texts.Problem(None, "", "it is empty")], document.name)
        try:
            policy = cls.model_validate(document.content, context={"base": folder, "unconfirmed": document.marks})
        except ValidationError as error:
            raise texts.refusal(texts.explain(error, document, _section), document.name) from None
        absent = [
            document.problem((*place, "file"), f"there is no file {spec.file}")
            for place, spec in policy.files().items()
            if folder is not None and not policy.resolve(spec.file).is_file()
        ]
        if absent:
            raise texts.refusal(absent, document.name)
        return policy

    @property
    def published(self) -> dict[str, Attribute]:
        """The attributes that are not dropped."""
        return {name: attribute for name, attribute in self.attributes.items() if attribute.role != "drop"}

    @property
    def rows_per_person(self) -> int:
        """How many rows of one person count at most."""
        return 1 if self.people is None else self.people.at_most

    @property
    def unconfirmed(self) -> tuple[texts.Problem, ...]:
        """What a draft has read off the data and nobody has confirmed: line, key and what is asked.

        What is said of a dropped column needs no confirmation: it is not published.
        """
        return tuple(mark for mark in self._unconfirmed if not self._is_about_dropped(mark.path))

    def _is_about_dropped(self, path: str) -> bool:
        about = [name for name in self.attributes if _is_about(path, name)]
        return bool(about) and not any(name in self.published for name in about)

    def require_confirmed(self) -> None:
        """Refuse a draft as it is: of what was read off the data no promise holds.

        Raises:
            PolicyError: something is to be confirmed.
        """
        if self.unconfirmed:
            raise texts.to_be_confirmed(self.unconfirmed)

    @property
    def base(self) -> Path:
        """The folder at which relative paths start."""
        return self._base or Path()

    def resolve(self, path: str) -> Path:
        """Where a file named by the policy is."""
        return self.base / path

    def files(self) -> dict[texts.Place, NamedFile]:
        """The files that belong to the policy, by their places: domains, hierarchies and what the release names."""
        named: dict[texts.Place, NamedFile] = {
            ("attributes", name, key): spec
            for name, attribute in self.published.items()
            for key, spec in (
                ("domain", attribute.domain),
                ("hierarchy", attribute.hierarchy),
                ("labels", attribute.labels),
            )
            if isinstance(spec, NamedFile)
        }
        further = {} if self.release is None else self.release.files()
        return named | {("release", *place): spec for place, spec in further.items()}

    def with_levels(self, levels: Mapping[str, int]) -> Self:
        """The same policy with these levels fixed and nothing left to choose."""
        content = formats.plain(self)
        for name, level in levels.items():
            content["attributes"][name]["level"] = level
        for key in self.release.CHOOSING if self.release is not None and levels else ():
            content["release"].pop(key, None)
        return self._like(content, self._base)

    def changed(self, changes: Mapping[tuple[str, ...], Any]) -> Self:
        """A policy that says something else in some places, and nothing where that is None."""
        content = formats.plain(self)
        for place, said in changes.items():
            *path, key = place
            within = content
            for step in path:
                within = within.setdefault(step, {})
            within.pop(key, None)
            if said is not None:
                within[key] = said
        return self._like(content, self._base)

    @staticmethod
    def lines(changes: Mapping[tuple[str, ...], Any]) -> str:
        """Such changes as lines of a policy file."""
        return formats.nested(changes)

    def _like(self, content: Mapping[str, Any], base: Path | None) -> Self:
        """A policy made of this one; what nobody has confirmed here is not confirmed there."""
        return self._read(texts.Document(content, marks=self._unconfirmed), base)

    def relocated(self, folder: str | Path) -> Self:
        """The same policy as it must be written in another folder: its relative paths lead to the same files."""

        def moved(path: str) -> str:
            if Path(path).is_absolute() or "://" in path:
                return path
            return os.path.relpath(self.resolve(path).absolute(), folder)

        content = formats.plain(self)
        for place in self.files():
            spec = texts.at(content, place)
            spec["file"] = moved(spec["file"])
        for section in ("data", "ledger"):
            if "path" in content.get(section, {}):
                content[section]["path"] = moved(content[section]["path"])
        return self._like(content, None)

    def to_yaml(self) -> str:
        """The policy as a file would say it, defaults left out. Relative paths stay as they are.

        What is to be confirmed is marked on top; of a dropped column of which something is, no more than that is said.
        """
        dropped = {
            name: Attribute(role="drop")
            for name in self.attributes
            if name not in self.published and any(_is_about(mark.path, name) for mark in self._unconfirmed)
        }
        said = self.model_copy(update={"attributes": {**self.attributes, **dropped}}) if dropped else self
        return texts.written_marks(self.unconfirmed) + formats.to_yaml(said)

    def with_output(self, output: str | None) -> Self:
        """The same, published in another format; as it stands if none is given."""
        if output is None:
            return self
        if output not in OUTPUTS:
            raise ParameterError(
                "The release cannot be written in that format.",
                code="output-format",
                remedy=f"One of {', '.join(OUTPUTS)}.",
            )
        changed = None if self.release is None else self.release.model_copy(update={"output": output})
        return self.model_copy(update={"release": changed})

    def canonical(self, digests: Mapping[texts.Place, str] | None = None) -> dict[str, Any]:
        """What the policy says, in one form for all ways of saying it, ready for JSON and fit to be published.

        Defaults are filled in. A file stands there by the SHA-256 of its content. Left out is what differs from
        machine to machine and decides nothing about the release: where the data and the ledger are, and how the data
        is written down; and all that is said of a column that is dropped. What is said of people is left out where
        nothing is said.

        Args:
            digests: those of the files that it names, if they are known; otherwise the files are read.
        """
        if digests is None:
            digests = {place: formats.file_digest(self.resolve(spec.file)) for place, spec in self.files().items()}
        dropped = {name: Attribute(role="drop") for name in self.attributes if name not in self.published}
        silent = {} if self.release is None else self.release.SILENT
        whole = self.model_copy(update={"attributes": {**self.attributes, **dropped}})
        return formats.canonical(whole, digests, silent)

    @classmethod
    def from_canonical(cls, content: Any) -> Self:
        """The policy that has this canonical form. The files that it names are called by their digests, and not opened.

        Raises:
            PolicyError: no policy has.
        """
        policy = cls.from_dict(formats.readable(content))
        digests = {place: spec.file for place, spec in policy.files().items()}
        named = all(map(formats.is_digest, digests.values()))
        if not named or formats.digest(policy.canonical(digests)) != formats.digest(content):
            problem = texts.Problem(None, "", "this is not the canonical form of a policy")
            raise texts.refusal([problem], "The policy")
        return policy

    def digest(self) -> str:
        """SHA-256 of `canonical`: the same for two policies that say the same."""
        return formats.digest(self.canonical())

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema (2020-12) of a policy file, for editors."""
        return formats.json_schema(cls)


def _is_about(path: str, name: str) -> bool:
    """Whether a key may stand below an attribute; names may hold points."""
    return path == f"attributes.{name}" or path.startswith(f"attributes.{name}.")


def _section(place: texts.Place) -> type[BaseModel]:
    """The model whose keys stand at a place, which still has pydantic's marks for the members of a union."""
    members: dict[str, tuple[type[Section], set[str]]] = {**DOMAINS, **HIERARCHIES, "@codebook": (LabelFile, set())}
    for part in reversed(place):
        if part in members:
            return members[str(part)][0]
    if place[:1] == ("attributes",):
        return Attribute
    if place[:1] == ("release",):
        model = section_model(str(place[1]).removeprefix("@"))
        return next((model.PARTS[str(part)] for part in reversed(place) if part in model.PARTS), model)
    sections: dict[Any, type[BaseModel]] = {"data": Data, "ledger": LedgerSection, "people": People}
    return sections.get(place[0], Policy) if place else Policy
