"""What a certificate's policy itself holds of its columns: their values and hierarchies, unless these are in files.

Built once more from there, they show whether labels, levels and distances in the certificate are the policy's. A file
stands in a certificate by its digest only, so what it says must be taken on trust.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from incrowd.core.signing import canonical
from incrowd.hierarchy import Hierarchy, codings
from incrowd.mechanisms.base import Check, Publication, published_attributes
from incrowd.mechanisms.certificate import AnyCertificate, Together
from incrowd.mechanisms.promises import MOST_COPIES
from incrowd.policy import Attribute, LabelFile, ListFile, Policy, Taxonomy, TreeFile
from incrowd.recoding.mapping import MAPPING, read_tree

UNREADABLE = (ValueError, KeyError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)
"""What a file beside a release may raise if it is something else."""


@dataclass(frozen=True, eq=False)
class Held:
    """A column whose values the policy holds.

    Attributes:
        hierarchy: built from the policy.
        whole: whether all its levels are the policy's; if its hierarchy is in a file, only level 0 is.
        in_order: whether values are in the policy's order: a certificate does not keep the order of a taxonomy, so it
            is not known where nothing else lists the values.
    """

    hierarchy: Hierarchy
    whole: bool
    in_order: bool

    def has(self, labels: Sequence[str | None], level: int) -> bool:
        """Whether these may be the labels at a level."""
        if level and not self.whole:
            return True
        return 0 <= level <= self.hierarchy.height and self._are(labels, self.hierarchy.recode(level).labels)

    def _are(self, labels: Sequence[str | None], own: Sequence[str | None]) -> bool:
        return list(own) == list(labels) if self.in_order else len(own) == len(labels) and set(own) == set(labels)

    def has_tree(self, labels: Sequence[str | None], level: int, tree: Sequence[Sequence[int]]) -> bool:
        """Whether labels of a level are taken together above it as the codes of a tree take them together."""
        if not self.whole:
            return True
        place = {label: number for number, label in enumerate(self.hierarchy.recode(level).labels)}
        own = [[codes[place[label]] for label in labels] for codes in tree_above(self.hierarchy, level)]
        return len(own) == len(tree) and all(map(_same_groups, own, tree))


def _same_groups(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two numberings put the same things together."""
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


def tree_above(hierarchy: Hierarchy, level: int) -> list[list[int]]:
    """For each level above a level, the codes there of its labels."""
    above = range(level + 1, hierarchy.height + 1)
    return [[int(code) for code in hierarchy.coarsen(level, upper).to] for upper in above]


def policy_of(certificate: AnyCertificate) -> Policy:
    """The policy that stands in a certificate; files are called by their digests, and none is opened.

    Raises:
        IncrowdError: what stands there is no policy, or says something besides.
    """
    return Policy.from_canonical(certificate.policy)


def held_columns(certificate: AnyCertificate) -> dict[str, Held]:
    """The published columns whose values stand in the certificate; no file is opened.

    Raises:
        IncrowdError: what stands there is no policy.
    """
    policy = policy_of(certificate)
    held: dict[str, Attribute] = {}
    for name, attribute in policy.published.items():
        in_file = isinstance(attribute.hierarchy, TreeFile)
        listed = attribute.domain is not None or attribute.kind == "boolean"
        elsewhere = isinstance(attribute.domain, ListFile) or isinstance(attribute.labels, LabelFile)
        if not elsewhere and (listed or not in_file):
            # The levels of a hierarchy in a file are not known, so there is none to be looked for.
            held[name] = attribute.model_copy(update={"hierarchy": None, "level": None}) if in_file else attribute
    return {
        coded.name: Held(
            coded.hierarchy,
            whole=not isinstance(policy.attributes[coded.name].hierarchy, TreeFile),
            in_order=not _only_in_taxonomy(policy.attributes[coded.name]),
        )
        for coded in codings(policy.model_copy(update={"attributes": held}))
    }


def check_labels(certificate: AnyCertificate, held: Mapping[str, Held], apart: Collection[str] = ()) -> Check:
    """Whether the labels are those of the policy's domains and hierarchies at the stated levels, where it has them.

    Args:
        certificate: which states levels and labels. A column without a level has those of a mapping.
        held: what the certificate's policy holds.
        apart: columns whose labels are looked at elsewhere.
    """
    levels = certificate.mechanism.levels
    same = all(
        held[name].has(labels, levels[name])
        for name, labels in certificate.labels.items()
        if name in held and name in levels and name not in apart
    )
    return Check("the labels are the policy's at the stated levels, where it lists them", same, "they are others")


def check_mapping(certificate: AnyCertificate, published: Publication, names: Sequence[str]) -> Iterator[Check]:
    """Whether a tree of boxes stands beside the table, whose leaves the table shows.

    Args:
        certificate: whose policy lists the values, and which states the labels.
        published: the table and the files beside it.
        names: the columns that the mapping is about.
    """
    try:
        tree = read_tree(published.beside[MAPPING])
    except UNREADABLE:
        yield Check("the boxes are disjoint and cover the domain", holds=False, detail="the mapping cannot be read")
        return
    yield Check("the boxes are disjoint and cover the domain", holds=True)
    held = held_columns(certificate)
    same = [c.name for c in tree.columns] == list(names)
    same = same and all(held[c.name].has(c.base, 0) for c in tree.columns if c.name in held)
    yield Check("the mapping is for the policy's columns and values", same, "others")
    labels = same and all(tuple(certificate.labels[c.name]) == tree.labels(i) for i, c in enumerate(tree.columns))
    yield Check("the labels are those of the mapping", labels, "they are others")
    boxes = labels and bool((tree.places(published.table) >= 0).all())
    yield Check("every record is in a box of the mapping", boxes, "one is not")


def says_together(certificate: AnyCertificate, meaning: Callable[[int], Together | None]) -> bool:
    """Whether a certificate says of several releases what their number means, or rightly nothing.

    Args:
        certificate: any.
        meaning: what so many releases promise together.
    """
    said = certificate.promise.together
    if said is None:
        return True
    meant = meaning(said.copies) if said.copies <= MOST_COPIES else None
    return meant is not None and canonical(said.document()) == canonical(meant.document())


def unheld(certificate: AnyCertificate) -> list[str]:
    """What a verifier has to take on trust about labels, column by column."""
    held, levels = held_columns(certificate), certificate.mechanism.levels
    claimed = []
    for name in published_attributes(certificate):
        level = levels.get(name)
        at = "" if level is None else f" at level {level}"
        if name not in held:
            claimed.append(f"that the labels of {name} are those of the policy's file{at}")
            continue
        if level != 0 and not held[name].whole:
            claimed.append(f"that the labels of {name} are those of its hierarchy's file{at}")
        if not held[name].in_order:
            claimed.append(f"that the labels of {name}, whose values only a taxonomy lists, are in its order")
    return claimed


def are_levels(levels: Mapping[str, int], held: Mapping[str, Held]) -> bool:
    """Whether these are levels: whole numbers, and none above the top of a hierarchy that the policy holds."""
    return all(
        type(level) is int
        and level >= 0
        and (name not in held or not held[name].whole or level <= held[name].hierarchy.height)
        for name, level in levels.items()
    )


def _only_in_taxonomy(attribute: Attribute) -> bool:
    listed = attribute.domain is not None or attribute.kind == "boolean"
    return not listed and isinstance(attribute.hierarchy, Taxonomy)
