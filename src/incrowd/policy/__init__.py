"""The policy file: what may be published of a table, and how."""

from incrowd.policy.attributes import Attribute
from incrowd.policy.domains import Cuts, Digits, ListFile, Span
from incrowd.policy.formats import digest
from incrowd.policy.hierarchies import HierarchySpec, Intervals, Mask, Ordinal, Taxonomy, TreeFile
from incrowd.policy.labels import LabelFile
from incrowd.policy.policy import Policy
from incrowd.policy.release import Release, ReleaseSection
from incrowd.policy.sections import Data, LedgerSection, People, without_password
from incrowd.policy.taxonomy import Node
from incrowd.policy.values import Kind, read_value

__all__ = [
    "Attribute",
    "Cuts",
    "Data",
    "Digits",
    "HierarchySpec",
    "Intervals",
    "Kind",
    "LabelFile",
    "LedgerSection",
    "ListFile",
    "Mask",
    "Node",
    "Ordinal",
    "People",
    "Policy",
    "Release",
    "ReleaseSection",
    "Span",
    "Taxonomy",
    "TreeFile",
    "digest",
    "read_value",
    "without_password",
]
