"""A table whose cells stay in the engine, because there are too many of them: it answers questions about counts.

The engine codes every record and counts equal ones once; what it finds stays there, as a table of codes and counts. All
that is asked of it afterwards are sums over that table, so the same question always has the same answer.

Questions come after the budget was charged, so none is refused because of what its answer is: a refusal would tell
about the table. `KeptTable.most` bounds what is fetched where a question can be put in parts. What cannot be is bounded
by the declared domains: a level of a tree has a number for each of its boxes and values at most.

An engine does four things (`Keeper`), in the few words of SQL that engines have in common.
"""

# ruff: noqa: S608 - queries are put together here from names of our own

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.domain import Coding, Recode
from incrowd.histogram import Column, Histogram, Labels
from incrowd.marginals import Crowds, Marginals
from incrowd.sources.tally import not_as_asked

Integers = NDArray[np.int64]
Where = Mapping[int, Integers]
"""Which codes some columns may have."""

CELLS, _BOXES = "incrowd_cells", "incrowd_boxes"

_TOGETHER = 200
"""Sets of columns in one aggregation: every pair of 20 columns."""


class Keeper(Protocol):
    """What an engine does for a table that stays there."""

    def keep(self, name: str, query: str) -> None:
        """Keep what a query finds, under a name; what was kept under that name before is gone."""
        ...

    def put(self, name: str, columns: Mapping[str, Integers]) -> None:
        """A small table of whole numbers, under a name; what was there before is gone."""
        ...

    def ask(self, query: str) -> pa.Table:
        """What a query finds."""
        ...

    def close(self) -> None:
        """Forget everything."""
        ...


class KeptTable:
    """The cells of a table, in an engine: a column k0, k1, … of codes for each of its columns, and their counts n.

    Attributes:
        codings: how the columns are coded there; those whose levels are fixed, as they will be published.
        whole: the whole table by each of its columns, base codes.
        most: how many cells may be fetched at a time.
        cells: how many there are.
    """

    def __init__(self, keeper: Keeper, codings: Sequence[Coding], whole: Marginals, most: int) -> None:
        self.codings, self.whole, self.most = tuple(codings), whole, most
        self._keeper = keeper
        self._end = weakref.finalize(self, keeper.close)
        [[cells], [records]] = _numbers(keeper.ask(f"SELECT count(*) AS cells, {_SUM} AS n FROM {CELLS}"))
        self.cells = int(cells)
        if int(records) != whole.total:
            raise not_as_asked()

    def close(self) -> None:
        """Let the engine forget it."""
        self._end()

    @property
    def total(self) -> int:
        return self.whole.total

    @property
    def names(self) -> tuple[str, ...]:
        return self.whole.names

    @property
    def tallies(self) -> dict[str, np.ndarray]:
        """For each column, how many records have each of its base codes."""
        return self.whole.tallies

    def sizes(self, column: int, where: Where) -> Integers:
        """How many cells have each code of a column."""
        query = f"SELECT k{column} AS code, count(*) AS n FROM {CELLS}{self._limited(where)} GROUP BY k{column}"
        code, cells = _numbers(self._keeper.ask(query))
        found = np.zeros(len(self.codings[column].labels), dtype=np.int64)
        found[code] = cells
        return found

    def counted(self, maps: Sequence[Integers | None], where: Where) -> tuple[list[Integers], Integers]:
        """The codes and counts of cells, those that become alike brought together.

        Args:
            maps: what becomes of the codes of each column; None if they all become 0.
            where: which cells are meant.
        """
        return self._found(maps, self._keeper.ask(self._grouped(maps, where)))

    def counted_if_few(self, maps: Sequence[Integers | None], where: Where) -> tuple[list[Integers], Integers] | None:
        """As `counted`; None if there are more than `most`."""
        answer = self._keeper.ask(f"{self._grouped(maps, where)} LIMIT {self.most + 1}")
        return None if answer.num_rows > self.most else self._found(maps, answer)

    def tables(self, sets: Sequence[Sequence[int]]) -> list[Integers]:
        """The counts by each of these sets of columns, an axis for each of its columns: an aggregation for many."""
        found = []
        for first in range(0, len(sets), _TOGETHER):
            found += self._tables(sets[first : first + _TOGETHER])
        return found

    def _tables(self, sets: Sequence[Sequence[int]]) -> list[Integers]:
        used = sorted({column for columns in sets for column in columns})
        names = ", ".join(f"k{column}" for column in used)
        wanted = ", ".join(f"({', '.join(f'k{column}' for column in columns)})" for columns in sets)
        answer = self._keeper.ask(f"SELECT {names}, {_SUM} AS n FROM {CELLS} GROUP BY GROUPING SETS ({wanted})")
        there = {column: answer.column(f"k{column}").is_valid().to_numpy() for column in used}  # no code is null
        codes = {column: answer.column(f"k{column}").fill_null(0).to_numpy() for column in used}
        counts, several = answer.column("n").to_numpy(), sum(there.values())
        found = []
        for columns in sets:
            rows = (several == len(columns)) & np.logical_and.reduce([there[column] for column in columns])
            table = np.zeros([len(self.codings[column].labels) for column in columns], dtype=np.int64)
            table[tuple(codes[column][rows] for column in columns)] = counts[rows]
            if int(table.sum()) != self.total:
                raise not_as_asked()
            found.append(table)
        return found

    def _found(self, maps: Sequence[Integers | None], answer: pa.Table) -> tuple[list[Integers], Integers]:
        shown = [i for i, to in enumerate(maps) if to is not None]
        *codes, counts = _numbers(answer)
        by_column = dict(zip(shown, codes, strict=True))
        nothing = np.zeros(len(counts), dtype=np.int64)
        return [by_column.get(i, nothing) for i in range(len(maps))], counts

    def crowds(self, recodes: Mapping[str, Recode], at_least: int) -> Crowds:
        """The cells with so many records, as they are published; of others, how many there are of each size.

        They come whatever their number: it is that of a release, which fits into memory, and a refusal that depended
        on it would tell about the table after the choice was paid for.
        """
        maps = [None if len(recodes[c.column].labels) == 1 else self._map(c, recodes[c.column]) for c in self.codings]
        shown = [i for i, to in enumerate(maps) if to is not None]
        cells = self._grouped(maps, {})
        kept = ", ".join(f"CASE WHEN n >= {at_least} THEN g{i} ELSE 0 END AS g{i}" for i in shown)
        groups = ", ".join([*(f"g{i}" for i in shown), "n"])
        sizes = f"SELECT {kept + ', ' if kept else ''}n FROM ({cells}) found"
        answer = self._keeper.ask(f"SELECT {groups}, count(*) AS cells FROM ({sizes}) sizes GROUP BY {groups}")
        *codes, counts, alike = _numbers(answer)
        by_column = dict(zip(shown, codes, strict=True))
        hidden = np.zeros(len(counts), dtype=np.int64)
        return crowds(
            [(c.column, recodes[c.column].labels) for c in self.codings],
            at_least,
            self.whole,
            alike,
            [by_column.get(i, hidden) for i in range(len(maps))],
            counts,
        )

    def _map(self, coding: Coding, recode: Recode) -> Integers:
        """What becomes of the codes that are kept: those of a column whose level is fixed are what they will be."""
        return np.arange(len(coding.labels)) if coding.recode is not None else recode.to.astype(np.int64)

    def _grouped(self, maps: Sequence[Integers | None], where: Where) -> str:
        shown = {i: to for i, to in enumerate(maps) if to is not None}
        changed = {i: to for i, to in shown.items() if not _same(to)}
        for i, to in changed.items():
            self._keeper.put(f"incrowd_map{i}", {"code": np.arange(len(to)), "becomes": to})
        joins = "".join(f" JOIN incrowd_map{i} ON k{i} = incrowd_map{i}.code" for i in changed)
        names = [f"{f'incrowd_map{i}.becomes' if i in changed else f'k{i}'} AS g{i}" for i in shown]
        rows = f"SELECT {', '.join([*names, 'n'])} FROM {CELLS}{joins}{self._limited(where)}"
        if len(shown) == len(maps) and not changed:
            return rows  # these are different already
        groups = ", ".join(f"g{i}" for i in shown)
        counted = f"{groups + ', ' if groups else ''}{_SUM} AS n"
        return f"SELECT {counted} FROM ({rows}) alike" + (f" GROUP BY {groups}" if groups else " HAVING count(*) > 0")

    def _limited(self, where: Where) -> str:
        for i, codes in where.items():
            self._keeper.put(f"incrowd_only{i}", {"code": codes})
        wanted = [f"k{i} IN (SELECT code FROM incrowd_only{i})" for i in where]
        return f" WHERE {' AND '.join(wanted)}" if wanted else ""

    def boxes(self) -> KeptBoxes:
        """The cells with the box that each is in: all are in the first."""
        return KeptBoxes(self, self._keeper)


class KeptBoxes:
    """The cells of a table that stays in the engine, each in a box: one aggregation tells all about a level of boxes.

    The boxes are numbered from 0.
    """

    def __init__(self, table: KeptTable, keeper: Keeper) -> None:
        self._table, self._keeper = table, keeper
        self._names = [f"k{i}" for i in range(len(table.codings))]
        self._moved = False

    def part(self, place: int, parts: Sequence[Integers], cells: Integers, becomes: Sequence[Integers]) -> None:
        """Put the cells of some boxes into other boxes, for each part of a column's codes into others."""
        numbers = np.repeat(np.arange(len(parts)), [len(codes) for codes in parts])
        self._keeper.put("incrowd_parted", {"parted": np.concatenate(parts), "number": numbers})
        numbers = np.repeat(np.arange(len(parts)), len(cells))
        moves = {"at": np.tile(cells, len(parts)), "part": numbers, "becomes": np.concatenate(becomes)}
        self._keeper.put("incrowd_moves", moves)
        names = ", ".join(self._names)
        before = _BOXES if self._moved else f"(SELECT {names}, n, 0 AS box FROM {CELLS}) all_cells"
        self._keeper.keep(
            _BOXES,
            f"SELECT {names}, n, CAST(COALESCE(becomes, box) AS INTEGER) AS box "
            f"FROM (SELECT * FROM {before}) b LEFT JOIN incrowd_parted p ON b.k{place} = p.parted "
            "LEFT JOIN incrowd_moves m ON b.box = m.at AND p.number = m.part",
        )
        self._moved = True

    def by_code(self) -> list[tuple[Integers, Integers, Integers]]:
        """For each column: boxes, codes and how many records have them: one aggregation."""
        if not self._moved:
            tallies = (self._table.tallies[c.column] for c in self._table.codings)
            return [(np.zeros(len(tally), dtype=np.int64), np.arange(len(tally)), tally) for tally in tallies]
        names = ", ".join(self._names)
        sets = ", ".join(f"(box, {name})" for name in self._names)
        answer = self._keeper.ask(f"SELECT box, {names}, {_SUM} AS n FROM {_BOXES} GROUP BY GROUPING SETS ({sets})")
        box, counts = (answer.column(name).to_numpy() for name in ("box", "n"))
        found = []
        for name in self._names:
            code = answer.column(name)  # no code is null, so the one that is not is the one that was grouped by
            here = code.is_valid().to_numpy()
            found.append((box[here].astype(np.int64), code.drop_null().to_numpy().astype(np.int64), counts[here]))
        return found

    def move(self, along: Mapping[int, int], to: Mapping[int, Integers]) -> None:
        """Put each cell into another box; those of boxes that are not mentioned leave, and so do those sent to −1.

        Args:
            along: for each box, the column that decides.
            to: for each box, the new box of each of that column's codes.
        """
        boxes = np.array(list(along), dtype=np.int64)
        self._keeper.put("incrowd_along", {"box": boxes, "place": np.array(list(along.values()), dtype=np.int64)})
        sizes = [len(to[box]) for box in along]
        code = np.concatenate([np.arange(size) for size in sizes]) if sizes else boxes
        becomes = np.concatenate([to[box] for box in along]) if sizes else boxes
        stays = becomes >= 0
        self._keeper.put(
            "incrowd_moves",
            {"at": np.repeat(boxes, sizes)[stays], "code": code[stays], "becomes": becomes[stays]},
        )
        names = ", ".join(self._names)
        cases = " ".join(f"WHEN {i} THEN {name}" for i, name in enumerate(self._names))
        before = _BOXES if self._moved else f"(SELECT {names}, n, 0 AS box FROM {CELLS}) all_cells"
        decided = (
            f"SELECT {names}, n, b.box AS at_box, CASE a.place {cases} END AS decides "
            f"FROM (SELECT * FROM {before}) b JOIN incrowd_along a ON b.box = a.box"
        )
        self._keeper.keep(
            _BOXES,
            f"SELECT {names}, n, CAST(m.becomes AS INTEGER) AS box FROM ({decided}) d "
            "JOIN incrowd_moves m ON d.at_box = m.at AND d.decides = m.code",
        )
        self._moved = True


def crowds(
    shown: Sequence[tuple[str, Labels]],
    at_least: int,
    whole: Marginals,
    cells: np.ndarray,
    codes: Sequence[np.ndarray],
    counts: np.ndarray,
) -> Crowds:
    """What an engine found.

    Args:
        shown: the columns and their labels, as they are published.
        at_least: how many records a cell must have to be published.
        whole: the counts of each column, base codes.
        cells: how many cells there are with these codes and so many records; one, if they can be published.
        codes: their codes, column by column; without meaning where there are too few records.
        counts: how many records each has.

    Raises:
        DataError: the engine found something else at its second look.
    """
    large = counts >= at_least
    if int(counts @ cells) != whole.total or (cells[large] != 1).any():
        raise not_as_asked()
    smaller = np.zeros(at_least, dtype=np.int64)
    np.add.at(smaller, counts[~large], cells[~large])
    columns = [Column(name, labels, code[large]) for (name, labels), code in zip(shown, codes, strict=True)]
    return Crowds(Histogram.of(columns, counts[large]), at_least, smaller, whole)


_SUM = "CAST(coalesce(sum(n), 0) AS BIGINT)"


def _same(to: Integers) -> bool:
    return bool((to == np.arange(len(to))).all())


def _numbers(answer: pa.Table) -> list[Integers]:
    return [column.to_numpy().astype(np.int64) for column in answer.columns]
