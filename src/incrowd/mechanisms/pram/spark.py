"""A randomised table that no single machine could hold: drawn by the executors of a Spark cluster.

The records are dealt out to *parts* by a hash of their codes, after equal ones were counted where many are equal. Each
part is put in canonical order and redrawn by `pram.run`, in pieces if it is large, with bits of its own. Their key is
what HKDF derives from a key of the driver's and the numbers of part and piece. Records are redrawn independently of
each other, so the parts together have the law of one run on the whole table.

**Run twice, the same.** What a part holds is a function of the table, and what becomes of it is a function of that and
its key. So a task that is lost and run again, or run by two executors at once, gives the same cells; whichever copy of
a result a later task reads, no record is lost, doubled or drawn a second time. Each part tells the driver that it was
drawn: were one drawn in two halves, which would use the same bits, or not at all, nothing would be published. The
result is sorted by its codes, which is the shuffling.

Beside its cells a part tells what the driver needs to know of them: counts of few columns at a time, and every so many
records one, by which the table is cut later. So nothing is computed a second time to be looked at.

The driver's key goes to the executors inside the task: switch on Spark's authentication and encryption
(``spark.authenticate``, ``spark.network.crypto.enabled``) where others share the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as fn

from incrowd.core.bits import DerivedBits
from incrowd.core.errors import InternalError
from incrowd.histogram import Column, Histogram, unfold
from incrowd.marginals import Marginals, Tally
from incrowd.mechanisms.pram import draw as pram
from incrowd.mechanisms.pram.blocks import Block
from incrowd.randomness import RandomSource
from incrowd.sources.spark import CodedRows, SparkSource, reading, seem_equal
from incrowd.sources.tally import Place, conclude

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

RECORDS_PER_DRAW = 1 << 20
"""About how many records a part has."""

RECORDS_PER_PIECE = 1 << 22
"""How many are redrawn at a time, in a part that has more."""

RECORDS_PER_MARK = 1 << 18
"""Of so many records of a part, in canonical order, the driver gets to know one."""

MARKS, PARTS = -2, -1
"""What is told of a part beside its marginals: some of its records, and that it was drawn."""

Redraw = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def count_records(source: SparkSource, rows: CodedRows) -> int:
    """How many records will be published; on them, promises depend.

    Raises:
        DataError: as `Source.count_by` does, with the same counts. Only faults are counted, so nothing large comes to
            the driver.
        InternalError: the files have another number of rows.
    """
    codings = rows.codings
    with reading():
        # 0 for a declared value; 1 and 2 for the codes behind the last label, of values outside and missing ones.
        faults = [
            fn.greatest(code - (len(c.labels) - 1), fn.lit(0)) for c, code in zip(codings, _codes(rows), strict=True)
        ]
        named = [fault.alias(f"f{i}") for i, fault in enumerate(faults)]
        found = rows.frame.groupBy(*named).agg(fn.count(fn.lit(1)).alias("n")).toArrow()
    counts = found.column("n").to_numpy()
    source.require_whole(int(counts.sum()))
    seen = [found.column(f"f{i}").to_numpy() for i in range(len(codings))]
    codes = [np.where(s == 0, 0, s + len(c.labels) - 1) for c, s in zip(codings, seen, strict=True)]
    return conclude(codings, codes, counts).total


def count_marginals(cells: CodedRows, wanted: Sequence[Sequence[str]]) -> Marginals:
    """Counts by each of several sets of columns, in one scan; only they come to the driver.

    Args:
        cells: rows without faults, and `n`, how many records each stands for.
        wanted: the sets.
    """
    asked = MarginalsAsked.of(cells, wanted)
    codes_of = reading_words(cells)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally = asked.tally()
        for batch in batches:
            tally.add(codes_of(batch), batch.column("n").to_numpy())
        yield pa.record_batch(asked.told(tally), names=["marginal", "cell", "n"])

    with reading():
        counted = cells.frame.mapInArrow(count, "marginal long, cell long, n long").groupBy("marginal", "cell")
        found = counted.agg(fn.sum("n").alias("n")).toArrow()
    return asked.marginals(found)


@dataclass(frozen=True)
class MarginalsAsked:
    """Sets of columns that executors count by, each the records it sees, and the driver adds up.

    Attributes:
        columns: all of the table's, without codes.
        sets: the positions of each set's columns.
    """

    columns: tuple[Column, ...]
    sets: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, cells: CodedRows, wanted: Sequence[Sequence[str]]) -> Self:
        """The sets of these names."""
        columns = tuple(Column(c.column, c.labels, np.zeros(0, dtype=np.int64)) for c in cells.codings)
        at = {column.name: place for place, column in enumerate(columns)}
        return cls(columns, tuple(tuple(at[name] for name in names) for names in wanted))

    def tally(self) -> Tally:
        """To count with."""
        return Tally([len(column.labels) for column in self.columns], self.sets)

    @staticmethod
    def each(tally: Tally) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """What was counted: the number of each set, cells of it, and how many records these have."""
        for number, counts in enumerate(tally.counts):
            found = np.flatnonzero(counts)
            yield number, found, counts[found]

    def told(self, tally: Tally) -> list[np.ndarray]:
        """What was counted, in few numbers: the number of a set, of a cell in it, and how many records that has."""
        each = [(np.full(len(found), number), found, counts) for number, found, counts in self.each(tally)]
        return [np.concatenate(arrays) for arrays in zip(*each, strict=True)]

    def marginals(self, told: pa.Table) -> Marginals:
        """What was told in columns `marginal` (the set), `cell` and `n`, each cell once."""
        marginal, cell, n = (told.column(name).to_numpy() for name in ("marginal", "cell", "n"))
        parts = []
        for number, places in enumerate(self.sets):
            own, chosen = marginal == number, [self.columns[place] for place in places]
            codes = unfold(cell[own], [len(column.labels) for column in chosen])
            named = [Column(c.name, c.labels, code) for c, code in zip(chosen, codes, strict=True)]
            parts.append(Histogram.of(named, n[own]))
        return Marginals(self.columns, tuple(parts))


def records_of(rows: CodedRows) -> CodedRows:
    """The records that are to be published, each with `n` = 1; `count_records` has found no fault with them."""
    kept = rows.frame
    for coding, code in zip(rows.codings, _codes(rows), strict=True):
        if coding.missing == "drop":
            kept = kept.where(code <= len(coding.labels))
    return replace(rows, frame=kept.withColumn("n", fn.lit(1).cast("long")))


def redrawn(
    rows: CodedRows, blocks: Sequence[Block], key: bytes, records: int, wanted: Sequence[Sequence[str]]
) -> CodedRows:
    """The cells after all records were redrawn, in words that are sorted as their codes are; `n` is how many records
    each has, and the same cell may come several times. Rows whose `told` is not null are for the driver (`Told`).

    Args:
        rows: the records.
        blocks: how the values are redrawn; they name each column once, with the sizes of the codings.
        key: 32 secret bytes.
        records: how many they are.
        wanted: the sets of columns to count by.
    """
    parts = _parts(records)
    cells = rows.frame
    if seem_equal(cells.select(*rows.names)):
        cells = cells.groupBy(*rows.names).agg(fn.sum("n").alias("n"))
    part = fn.pmod(fn.xxhash64(*rows.names), fn.lit(parts)).alias("part")
    # As many tasks as there are parts: each starts a Python of its own, and Spark would start 200 for a small table.
    dealt = cells.select(part, *rows.names, "n").repartition(parts, "part")
    schema = ", ".join(f"{name} long" for name in ["told", *rows.names, "n"])
    frame = dealt.mapInArrow(redrawing(rows, blocks, key, wanted), schema)
    return replace(rows, frame=frame, words=in_order(rows.words))


def _parts(records: int) -> int:
    return max(1, -(-records // RECORDS_PER_DRAW))


def in_order(words: Sequence[Sequence[Place]]) -> list[list[Place]]:
    """The same words with the first column in the highest place, so that their order is that of the codes."""
    ends = [max(place.shift + place.width for place in word) for word in words]
    return [
        [replace(place, shift=end - place.shift - place.width) for place in word]
        for end, word in zip(ends, words, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Told:
    """What the driver knows of cells that were drawn.

    Attributes:
        published: their counts by few columns at a time.
        marks: words of some of them, one column for each word, in canonical order.
    """

    published: Marginals
    marks: np.ndarray

    @classmethod
    def of(cls, cells: CodedRows, records: int, wanted: Sequence[Sequence[str]]) -> Self:
        """What `redrawn` told.

        Raises:
            InternalError: a part was drawn twice, or not at all.
        """
        with reading():
            rows = cells.frame.where("told IS NOT NULL").groupBy("told", *cells.names)
            found = rows.agg(fn.sum("n").alias("n")).toArrow()
        kind, numbers, counts = (found.column(name).to_numpy() for name in ("told", "w0", "n"))
        drawn = kind == PARTS
        if (counts[drawn] != 1).any() or (numbers[drawn] >= _parts(records)).any():
            raise InternalError("Spark has split a part of the table, and the same bits were used twice")
        sets = kind >= 0
        told = pa.table([kind[sets], numbers[sets], counts[sets]], names=["marginal", "cell", "n"])
        marks = np.column_stack([found.column(name).to_numpy()[kind == MARKS] for name in cells.names])
        return cls(MarginalsAsked.of(cells, wanted).marginals(told), np.unique(marks, axis=0))


def counting(rows: CodedRows) -> Callable[[pa.Table], Histogram]:
    """What makes a histogram of cells: words and `n`."""
    codes_of = reading_words(rows)
    columns = [(coding.column, coding.labels) for coding in rows.codings]

    def histogram_of(cells: pa.Table) -> Histogram:
        named = [Column(*column, codes) for column, codes in zip(columns, codes_of(cells), strict=True)]
        return Histogram.of(named, cells.column("n").to_numpy())

    return histogram_of


def reading_words(rows: CodedRows) -> Callable[[pa.Table | pa.RecordBatch], list[np.ndarray]]:
    """`CodedRows.codes`, as executors can be given it: without the frame."""
    return replace(rows, frame=None).codes  # type: ignore[arg-type]


def redrawing(rows: CodedRows, blocks: Sequence[Block], key: bytes, wanted: Sequence[Sequence[str]]) -> Redraw:
    """What an executor does to cells with the numbers of their parts, each part as a whole; they come in any order."""
    names, histogram_of, asked = rows.names, counting(rows), MarginalsAsked.of(rows, wanted)
    words, per_piece, per_mark = in_order(rows.words), RECORDS_PER_PIECE, RECORDS_PER_MARK

    def batch(told: int | None, columns: Sequence[np.ndarray], counts: np.ndarray) -> pa.RecordBatch:
        kind = pa.nulls(len(counts), pa.int64()) if told is None else pa.array(np.full(len(counts), told))
        others = [np.zeros(len(counts), dtype=np.int64)] * (len(names) - len(columns))
        return pa.record_batch([kind, *columns, *others, counts], names=["told", *names, "n"])

    def redraw(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, table in _whole_parts(batches, histogram_of).items():
            tally = asked.tally()
            for place, piece in enumerate(_pieces(table, per_piece)):
                bits = DerivedBits(key, b"part %d piece %d" % (number, place))
                drawn = pram.run(piece, blocks, RandomSource(_bits=bits))
                packed = _packed(drawn, words)
                tally.add([column.codes for column in drawn.columns], drawn.counts)
                yield batch(None, packed, drawn.counts)
                ends = np.cumsum(drawn.counts)
                marked = np.searchsorted(ends, np.arange(per_mark // 2, drawn.total, per_mark), side="right")
                yield batch(MARKS, [word[marked] for word in packed], np.ones(len(marked), dtype=np.int64))
            yield batch(PARTS, [np.array([number])], np.array([1]))
            for told, found, counts in asked.each(tally):
                yield batch(told, [found], counts)

    return redraw


def _whole_parts(
    batches: Iterator[pa.RecordBatch], histogram_of: Callable[[pa.Table], Histogram]
) -> dict[int, Histogram]:
    """The parts that a task has, each counted; a part of very many equal records takes little memory."""
    parts: dict[int, Histogram] = {}

    def count(held: Sequence[pa.RecordBatch]) -> None:
        rows = pa.Table.from_batches(held)
        of = rows.column("part").to_numpy()
        for number in np.unique(of).tolist():
            own = histogram_of(rows.filter(pa.array(of == number)))
            parts[number] = parts[number].merge(own) if number in parts else own

    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= RECORDS_PER_PIECE:
            count(held)
            held = []
    if held:
        count(held)
    return parts


def _pieces(table: Histogram, size: int) -> Iterator[Histogram]:
    """The table, in its own order, cut after so many records each."""
    if table.total <= size:
        yield table
        return
    ends = np.cumsum(table.counts)
    for start in range(0, table.total, size):
        yield table.with_counts(cut(ends, table.counts, start, start + size))


def cut(ends: np.ndarray, counts: np.ndarray, start: int, stop: int) -> np.ndarray:
    """How many records of each cell lie from one place to another, given where cells end."""
    within: np.ndarray = np.maximum(np.minimum(ends, stop) - np.maximum(ends - counts, start), 0)
    return within


def _packed(table: Histogram, words: Sequence[Sequence[Place]]) -> list[np.ndarray]:
    packed = []
    for word in words:
        values = np.zeros(len(table), dtype=np.int64)
        for place in word:
            values |= table.columns[place.column].codes.astype(np.int64) << place.shift
        packed.append(values)
    return packed


def _codes(rows: CodedRows) -> list[SparkColumn]:
    """Each column's code, out of its word."""
    return [
        fn.shiftright(fn.col(name), place.shift).bitwiseAND(fn.lit(2**place.width - 1)).cast("int")
        for name, word in zip(rows.names, rows.words, strict=True)
        for place in word
    ]
