"""A randomised table that no single machine could hold: drawn by the executors of a Spark cluster.

The records are counted by their cells, and the cells are dealt out to *parts* by a hash of their codes; a cell of very
many records is dealt out in several pieces. Each part is redrawn by `pram.run` with bits of its own, from a key that
HKDF derives from a key of the driver's and the number of the part. Records are redrawn independently of each other, so
the parts together have the law of one run on the whole table.

**Run twice, the same.** What a part holds is a function of the table, and what becomes of it is a function of that and
its key. So a task that is lost and run again, or run by two executors at once, gives the same cells; whichever copy of
a result a later task reads, no record is lost, doubled or drawn a second time. The result is counted by its codes,
which is the shuffling.

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
from incrowd.domain import Coding
from incrowd.histogram import Column, Histogram, unfold
from incrowd.marginals import Marginals, Tally
from incrowd.mechanisms.pram import draw as pram
from incrowd.mechanisms.pram.blocks import Block
from incrowd.randomness import RandomSource
from incrowd.sources.spark import CodedRows, SparkSource, reading
from incrowd.sources.tally import conclude

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

RECORDS_PER_DRAW = 1 << 20
"""About how many records are redrawn at a time; a piece of a cell has no more."""

Redraw = Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]


def count_records(source: SparkSource, codings: Sequence[Coding]) -> int:
    """How many records will be published; on them, promises depend.

    Raises:
        DataError: as `Source.count_by` does, with the same counts. Only faults are counted, so nothing large comes to
            the driver.
        InternalError: the files have another number of rows.
    """
    with reading():
        rows = source.coded(codings)
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

    def told(self, tally: Tally) -> list[np.ndarray]:
        """What was counted, in few numbers: the number of a set, of a cell in it, and how many records that has."""
        found = [np.flatnonzero(counts) for counts in tally.counts]
        numbers = [np.full(len(cells), number) for number, cells in enumerate(found)]
        counts = [counts[cells] for counts, cells in zip(tally.counts, found, strict=True)]
        return [np.concatenate(arrays) for arrays in (numbers, found, counts)]

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


def records_of(source: SparkSource, codings: Sequence[Coding]) -> CodedRows:
    """The records that are to be published, each with `n` = 1; `count_records` has found no fault with them."""
    rows = source.coded(codings)
    kept = rows.frame
    for coding, code in zip(codings, _codes(rows), strict=True):
        if coding.missing == "drop":
            kept = kept.where(code <= len(coding.labels))
    return replace(rows, frame=kept.withColumn("n", fn.lit(1).cast("long")))


def redrawn(rows: CodedRows, blocks: Sequence[Block], key: bytes, records: int) -> CodedRows:
    """The cells after all records were redrawn, in canonical order; `n` is how many records each has.

    Args:
        rows: the records.
        blocks: how the values are redrawn; they name each column once, with the sizes of the codings.
        key: 32 secret bytes.
        records: how many they are.
    """
    parts = max(1, -(-records // RECORDS_PER_DRAW))
    cells = rows.frame.groupBy(*rows.names).agg(fn.sum("n").alias("n"))
    dealt = _in_pieces(cells).withColumn("part", fn.pmod(fn.xxhash64(*rows.names, "piece"), fn.lit(parts)))
    schema = ", ".join(f"{name} long" for name in [*rows.names, "n"])
    # As many tasks as there are parts: each starts a Python of its own, and Spark would start 200 for a small table.
    dealt = dealt.select("part", *rows.names, "n").repartition(parts, "part")
    drawn = dealt.groupBy("part").applyInArrow(redrawing(rows, blocks, key), schema)
    counted = drawn.groupBy(*rows.names).agg(fn.sum("n").alias("n"))
    codes = _codes(rows)
    return replace(rows, frame=counted.repartitionByRange(parts, *codes).sortWithinPartitions(*codes))


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


def redrawing(rows: CodedRows, blocks: Sequence[Block], key: bytes) -> Redraw:
    """What an executor does to the cells of a part; a function of the part's number and its cells, in any order."""
    words, names, histogram_of = rows.words, rows.names, counting(rows)

    def redraw(number: tuple[pa.Scalar, ...], cells: pa.Table) -> pa.Table:
        table = histogram_of(cells)
        drawn = pram.run(table, blocks, RandomSource(_bits=DerivedBits(key, b"part %d" % number[0].as_py())))
        packed = []
        for word in words:
            values = np.zeros(len(drawn), dtype=np.int64)
            for place in word:
                values |= drawn.columns[place.column].codes.astype(np.int64) << place.shift
            packed.append(values)
        return pa.table([*packed, drawn.counts], names=[*names, "n"])

    return redraw


def _in_pieces(cells: DataFrame) -> DataFrame:
    """Cells of at most `RECORDS_PER_DRAW` records each, those of the same codes numbered by `piece`."""
    size = fn.lit(RECORDS_PER_DRAW)
    last = fn.floor((fn.col("n") - 1) / size)
    pieces = cells.withColumn("piece", fn.explode(fn.sequence(fn.lit(0).cast("long"), last)))
    return pieces.withColumn("n", fn.least(fn.col("n") - fn.col("piece") * size, size))


def _codes(rows: CodedRows) -> list[SparkColumn]:
    """Each column's code, out of its word."""
    return [
        fn.shiftright(fn.col(name), place.shift).bitwiseAND(fn.lit(2**place.width - 1)).cast("int")
        for name, word in zip(rows.names, rows.words, strict=True)
        for place in word
    ]
