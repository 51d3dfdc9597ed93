"""What a certificate's policy itself holds of its columns: their values and hierarchies, unless these are in files.

Built once more from there, they show whether labels, levels and distances in the certificate are the policy's. A file
stands in a certificate by its digest only, so what it says must be taken on trust.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from incrowd.hierarchy import Hierarchy, codings
from incrowd.policy import Policy
from incrowd.releases.kinds import published_attributes


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
        own = list(self.hierarchy.recode(level).labels)
        return own == list(labels) if self.in_order else len(own) == len(labels) and set(own) == set(labels)

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


def held_columns(certificate: Mapping[str, Any]) -> dict[str, Held]:
    """The published columns whose values stand in the certificate; no file is opened.

    Raises:
        IncrowdError: what stands there is no policy.
    """
    written: dict[str, dict[str, Any]] = {}
    for name, attribute in published_attributes(certificate).items():
        domain, hierarchy = _given(attribute["domain"]), _given(attribute["hierarchy"])
        if _in_file(domain) or (domain is None and _in_file(hierarchy) and attribute["type"] != "boolean"):
            continue
        written[name] = {**attribute, "domain": domain, "hierarchy": None if _in_file(hierarchy) else hierarchy}
    if not written:
        return {}
    missing = certificate["policy"]["data"]["missing_values"]
    content = {"incrowd": 1, "data": {"missing_values": missing}, "attributes": written}
    listed = certificate["policy"]["attributes"]
    return {
        coded.name: Held(
            coded.hierarchy,
            whole=not _in_file(listed[coded.name]["hierarchy"]),
            in_order=not _only_in_taxonomy(listed[coded.name]),
        )
        for coded in codings(Policy.from_dict(content))
    }


def are_levels(levels: Mapping[str, Any], held: Mapping[str, Held]) -> bool:
    """Whether these are levels: whole numbers, and none above the top of a hierarchy that the policy holds."""
    return all(
        type(level) is int
        and level >= 0
        and (name not in held or not held[name].whole or level <= held[name].hierarchy.height)
        for name, level in levels.items()
    )


def _given(spec: Any) -> Any:
    """Without the keys that a policy leaves out."""
    return {key: value for key, value in spec.items() if value is not None} if isinstance(spec, Mapping) else spec


def _in_file(spec: Any) -> bool:
    return isinstance(spec, Mapping) and "file" in spec


def _only_in_taxonomy(attribute: Mapping[str, Any]) -> bool:
    listed = attribute["domain"] is not None or attribute["type"] == "boolean"
    return not listed and isinstance(attribute["hierarchy"], Mapping) and "taxonomy" in attribute["hierarchy"]
