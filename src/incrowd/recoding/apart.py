"""Demands that look at a table in a way of their own, and what is left out so that they hold.

Most demands are about *groups*: records that share all quasi-identifiers. Others look at some of the quasi-identifiers
(k over chosen sets of columns), at groups that know a sensitive column besides, or at the combinations of several
sensitive columns. Their *parts* of the table are unions of groups, or pieces of them; what is left out are groups, as
always. A group that holds a record of a failing part is left out. That makes other parts smaller, so it is
done again until nothing fails; all that fail in a round go together, so the result does not depend on any order.

**Coarser tables still keep them.** With nothing left out, parts of a coarser node are unions of parts, and what is
monotone holds there. With suppression, and parts that are unions of groups: take the records K that are kept at a
node, and at a coarser one the groups that hold a record of K. Every part of these is a union of parts of K and other
records, so what survives any merge holds there, and in no round is such a group left out. So the least suppression
never rises, as for groups. Of pieces of groups that is not so; the proof is in docs/proofs.md. Nor
is anything monotone that is demanded for some people only: a group of others that fails it does no harm until it is
merged with theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.recoding.lattice import Codes, ranked
from incrowd.theory._groups import Flags
from incrowd.theory.requirements import Requirement

Labels = Sequence[str | None]
Column = tuple[Codes, Labels]
"""The code of each cell in a column, and the labels of the codes."""


@dataclass(frozen=True)
class Concerned:
    """Some of the people in a table, by what they have in some columns.

    Attributes:
        text: who they are.
        labels: for each column the labels, of any level, that such a person may be shown with.
    """

    text: str
    labels: tuple[tuple[str, frozenset[str | None]], ...]

    def among(self, shown: Mapping[str, Column], cells: int) -> Flags:
        """The cells in which one of them may be."""
        found: Flags = np.ones(cells, dtype=np.bool_)
        for name, own in self.labels:
            codes, labels = shown[name]
            found &= np.array([label in own for label in labels], dtype=np.bool_).take(codes)
        return found


@dataclass(frozen=True, eq=False)
class Look:
    """A requirement, and how it looks at the cells of a table: the part and the value of each.

    One that is about numbers and not about values counts the different values, if there are columns of such: people.
    """

    requirement: Requirement
    part: Codes
    parts: int
    value: Codes
    values: int
    distinct: bool = False

    @classmethod
    def at(
        cls,
        requirement: Requirement,
        by: Iterable[Column],
        of: Iterable[Column],
        cells: int,
        possible: Sequence[int] | None = None,
        concerned: Flags | None = None,
    ) -> Look:
        """By these columns, at the combinations of those.

        What is not looked at becomes −1: other values than those possible, and cells that are not concerned.
        """
        part, parts = np.zeros(cells, dtype=np.int64), 1
        for codes, labels in by:
            size = len(labels)
            distinct, part = ranked(part * size + codes, parts * size)
            parts = len(distinct)
        value, values = np.zeros(cells, dtype=np.int64), 1
        different = False
        for codes, labels in of:
            different = not requirement.about_values
            value, values = value * len(labels) + codes, values * len(labels)
        if possible is not None:
            place = np.full(values, -1, dtype=np.int64)
            place[list(possible)] = np.arange(len(possible))
            value, values = place.take(value), len(possible)
        if concerned is not None:
            value = np.where(concerned, value, -1)
        return cls(requirement, part, parts, value, values, different)

    def fails(self, counts: Codes, stays: Flags, tabulated: Callable[..., Codes]) -> Flags:
        """Which of the cells that stay are in a part that fails."""
        table = self.table(counts, tabulated, stays)
        if not table.any():  # nobody is looked at
            return np.zeros(int(stays.sum()), dtype=np.bool_)
        flags: Flags = self.requirement.failing(table).take(self.part[stays])
        return flags

    def table(self, counts: Codes, tabulated: Callable[..., Codes], stays: Flags | None = None) -> Codes:
        """Records by part and value, of the cells that stay and whose value is looked at."""
        seen = self.value >= 0 if stays is None else stays & (self.value >= 0)
        if self.distinct:
            pairs = np.unique(self.part[seen] * self.values + self.value[seen])
            return np.bincount(pairs // self.values, minlength=self.parts).astype(np.int64)[:, None]
        return tabulated(self.parts, self.part[seen], counts[seen], self.value[seen], self.values)


def leave_out(looks: Sequence[Look], group: Codes, counts: Codes, out: Flags, tabulated: Callable[..., Codes]) -> Flags:
    """Which groups are left out in the end, of those that are not yet.

    Args:
        looks: what must hold, plain demands about the whole table among them.
        group: of each cell.
        counts: of each cell.
        out: the groups that are left out already.
        tabulated: counts records by part and value.
    """
    out = out.copy()
    while not out.all():
        stays = ~out.take(group)
        fails = np.zeros(int(stays.sum()), dtype=np.bool_)
        for look in looks:
            fails |= look.fails(counts, stays, tabulated)
        if not fails.any():
            break
        out[group[stays][fails]] = True
    return out
