"""Hierarchies: how the values of an attribute become coarser, level by level, until all are alike."""

from incrowd.hierarchy.codings import CodedAttribute, build, codings, load
from incrowd.hierarchy.table import HierarchyTable, to_csv, write_csv
from incrowd.hierarchy.tree import Hierarchy

__all__ = ["CodedAttribute", "Hierarchy", "HierarchyTable", "build", "codings", "load", "to_csv", "write_csv"]
