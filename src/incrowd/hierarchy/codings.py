"""From what a policy says to codings and hierarchies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic_core import PydanticCustomError

from incrowd.core.errors import InputError, PolicyError
from incrowd.domain import Categories, Coding, Domain
from incrowd.hierarchy import runs
from incrowd.hierarchy.amnesia import Ranges, is_amnesia, read_amnesia
from incrowd.hierarchy.codebook import read_codebook
from incrowd.hierarchy.table import HierarchyTable, Origin, read_column, read_rows, read_table, require_once
from incrowd.hierarchy.tree import Hierarchy, assemble
from incrowd.policy import (
    Attribute,
    HierarchySpec,
    Intervals,
    Kind,
    LabelFile,
    ListFile,
    Mask,
    Node,
    Ordinal,
    Policy,
    Taxonomy,
    TreeFile,
)
from incrowd.policy.labels import names, read_labels, unfit_labels, values_of
from incrowd.policy.taxonomy import rows


class CodedAttribute(NamedTuple):
    """What a source and a mechanism need to know of an attribute.

    Attributes:
        name: of the attribute, which is that of its column.
        coding: its values as integers, not recoded.
        hierarchy: how they may be recoded.
    """

    name: str
    coding: Coding
    hierarchy: Hierarchy


def codings(policy: Policy, *, show_values: bool = False) -> list[CodedAttribute]:
    """The codings and hierarchies of the attributes that are not dropped, in the order of the policy.

    Args:
        policy: whose files are read.
        show_values: whether error messages may contain values out of these files.
    """
    missing = set(policy.data.missing_values)
    found = []
    for name, attribute in policy.published.items():
        try:
            found.append(_coded(name, attribute, missing, policy.base, show_values))
        except InputError as error:
            raise type(error)(
                f"Attribute {name}: {error.message}",
                code=error.code,
                remedy=error.remedy,
                details={"attribute": name, **error.details},
            ) from None
    return found


def build(
    spec: HierarchySpec | HierarchyTable | Ranges | None,
    coding: Coding,
    *,
    kind: Kind = "text",
    base: str | Path = "",
    show_values: bool = False,
) -> Hierarchy:
    """The hierarchy of a column.

    Args:
        spec: what the policy says; None for the values as they are and, above them, all alike.
        coding: the column, whose domain is declared.
        kind: the type of its values, by which values in a file or a taxonomy are read.
        base: the folder at which relative paths start.
        show_values: whether error messages may contain values out of files.
    """
    match spec:
        case None:
            return assemble(coding, ())
        case Intervals():
            return assemble(coding, runs.intervals(spec, coding.domain))
        case Ordinal():
            return assemble(coding, runs.ordinal(spec, coding.domain, coding.value_labels))
        case Mask():
            return assemble(coding, runs.mask(spec, coding.domain))
        case HierarchyTable():
            return assemble(coding, spec.groupings(coding.domain, kind), spec.root)
        case Ranges():
            return assemble(coding, spec.groupings(coding.domain))
        case _:
            return build(load(spec, base=base, show_values=show_values), coding, kind=kind)


def load(spec: Taxonomy | TreeFile, *, base: str | Path = "", show_values: bool = False) -> HierarchyTable | Ranges:
    """A hierarchy that is written out, in the policy or in a file."""
    if isinstance(spec, Taxonomy):
        return from_tree(spec.taxonomy)
    origin = Origin(spec.file, show_values)
    text = origin.read(Path(base) / spec.file, spec.encoding)
    return read_amnesia(text, origin) if is_amnesia(text) else read_table(text, origin, spec.delimiter)


def from_tree(root: Node) -> HierarchyTable:
    """A taxonomy written out."""
    columns = tuple(zip(*rows(root), strict=True))
    return HierarchyTable(columns, [None] * len(columns[0]), Origin("The taxonomy"))


def _coded(name: str, attribute: Attribute, missing: set[str], base: Path, show_values: bool) -> CodedAttribute:
    spec: HierarchySpec | HierarchyTable | Ranges | None = attribute.hierarchy
    if isinstance(spec, Taxonomy | TreeFile):
        spec = load(spec, base=base, show_values=show_values)
    labels = _labels(name, attribute, missing, base, show_values)
    domain = _domain(attribute, spec, missing, base, show_values) or Categories(values_of(attribute.kind, labels or ()))
    coding = Coding(
        name,
        domain,
        attribute.missing,
        attribute.other,
        names=None if labels is None else names(domain.labels, labels),
        codes=attribute.beside(),
        format=attribute.written(),
    )
    if labels is not None:
        _require_fitting(coding, labels, strict=not isinstance(attribute.labels, LabelFile))
    hierarchy = build(spec, coding, kind=attribute.kind)
    if attribute.level is not None:
        hierarchy.recode(attribute.level)  # an error if there is no such level
    return CodedAttribute(name, coding, hierarchy)


def _domain(
    attribute: Attribute,
    tree: HierarchySpec | HierarchyTable | Ranges | None,
    missing: set[str],
    base: Path,
    show_values: bool,
) -> Domain | None:
    """The declared values; None where a code book has them."""
    if isinstance(attribute.domain, ListFile):
        return _listed(attribute.domain, attribute.kind, missing, base, show_values)
    domain = attribute.declared()
    if domain is not None:
        return domain
    if isinstance(tree, HierarchyTable):
        return Categories(tree.values(attribute.kind, missing))
    if attribute.labels and not isinstance(tree, Ranges):
        return None
    raise PolicyError("Ranges say nothing about the values in them: declare the domain.", code="domain-empty")


def _labels(
    name: str, attribute: Attribute, missing: set[str], base: Path, show_values: bool
) -> Mapping[str, str] | None:
    """What values are published as, by the way they print."""
    if not isinstance(attribute.labels, LabelFile):
        return attribute.labels
    book = read_codebook(attribute.labels, base, show_values=show_values)
    said = {code: label for code, label in book.of(name).items() if code not in missing}
    if not said:
        raise book.origin.wrong(
            f"it says nothing about the column {name}",
            remedy="Correct the name of the variable in the code book, or leave out 'labels'.",
        )
    try:
        return read_labels(attribute.kind, said)
    except PydanticCustomError as error:
        raise book.origin.wrong(
            f"a code is not of the type '{attribute.kind}', or is there twice",
            value=str((error.context or {})["problems"][0][0][0]),
            remedy="Codes are values of the attribute's type; give it the type 'text' if they are not all numbers.",
        ) from None


def _require_fitting(coding: Coding, labels: Mapping[str, str], *, strict: bool) -> None:
    """Labels about values of the domain, no two alike; of a code book, those for other values are not needed."""
    known = set(coding.domain.labels)
    own = labels if strict else {code: label for code, label in labels.items() if code in known}
    beside = [label for label in coding.base_labels[len(coding.domain.labels) :] if label is not None]
    for place, wrong in unfit_labels(coding.domain.labels, own, beside):
        number = coding.domain.labels.index(str(place[0])) + 1 if place and place[0] in known else None
        where = "A label" if number is None else f"The label of value number {number} of the domain"
        raise PolicyError(
            f"{where} does not fit: {wrong}.",
            code="labels-unfit",
            remedy="Give each value of the domain one label, and no two the same.",
            details={"value": number},
        )


def _listed(spec: ListFile, kind: Kind, missing: set[str], base: Path, show_values: bool) -> Domain:
    origin = Origin(spec.file, show_values, PolicyError, "domain-file")
    text = origin.read(base / spec.file, spec.encoding)
    lines: Sequence[int | None]
    if spec.column is None and spec.delimiter is None:
        texts = [line.rstrip("\r") for line in text.split("\n")]
        lines = [number for number, line in enumerate(texts, 1) if line]
        texts = [line for line in texts if line]
    else:
        table, lines = read_rows(text, origin, spec.delimiter)
        place = 0
        if spec.column is not None and table:
            header, table, lines = table[0], table[1:], lines[1:]
            if header.count(spec.column) != 1:
                raise origin.wrong(
                    f"there must be exactly one column {spec.column}; there are {', '.join(header)}", line=1
                )
            place = header.index(spec.column)
        for row, line in zip(table, lines, strict=True):
            if len(row) <= place:
                raise origin.wrong(f"only {len(row)} columns", line=line)
        texts = [row[place] for row in table]
    values, lines = read_column(kind, texts, lines, origin, missing)
    return Categories(require_once(values, lines, origin, "domain-duplicate"))
