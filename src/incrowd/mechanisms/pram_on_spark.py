"""A randomised table that no single machine could hold: drawn and written by the executors of a Spark cluster.

The records are counted by their cells, and the cells are dealt out to *parts* by a hash of their codes; a cell of very
many records is dealt out in several pieces. Each part is redrawn by `pram.run` with bits of its own, from a key that
HKDF derives from a key of the driver's and the number of the part. Records are redrawn independently of each other, so
the parts together have the law of one run on the whole table.

**Run twice, the same.** What a part holds is a function of the table, and what becomes of it is a function of that and
its key. So a task that is lost and run again, or run by two executors at once, gives the same cells; whichever copy of
a result a later task reads, no record is lost, doubled or drawn a second time. The result is counted and sorted by
its codes, which is the shuffling, written under another name, and renamed once, by the driver, when all of it is there.

The driver's key goes to the executors inside the task: switch on Spark's authentication and encryption
(``spark.authenticate``, ``spark.network.crypto.enabled``) where others share the network.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as fn

from incrowd._bits import DerivedBits
from incrowd.domain import Coding
from incrowd.errors import InputError
from incrowd.files import cannot_write
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms import pram
from incrowd.randomness import RandomSource
from incrowd.sources.spark import CodedRows, SparkSource, reading
from incrowd.sources.tally import conclude

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

RECORDS_PER_PART = 1 << 20
"""About how many records are redrawn at a time; a piece of a cell has no more."""

# A task's files become visible when the task is committed, once, and all of them when the job is.
_WRITING = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}

Labels = tuple[str | None, ...]
Redraw = Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]


def count_records(source: SparkSource, codings: Sequence[Coding]) -> int:
    """How many records will be published; on them, promises depend.

    Raises:
        DataError: as `Source.count_by` does, with the same counts. Only faults are counted, so nothing large comes to
            the driver.
    """
    with reading():
        rows = source.coded(codings)
        # 0 for a declared value; 1 and 2 for the codes behind the last label, of values outside and missing ones.
        faults = [
            fn.greatest(code - (len(c.labels) - 1), fn.lit(0)) for c, code in zip(codings, _codes(rows), strict=True)
        ]
        named = [fault.alias(f"f{i}") for i, fault in enumerate(faults)]
        found = rows.frame.groupBy(*named).agg(fn.count(fn.lit(1)).alias("n")).toArrow()
    seen = [found.column(f"f{i}").to_numpy() for i in range(len(codings))]
    codes = [np.where(s == 0, 0, s + len(c.labels) - 1) for c, s in zip(codings, seen, strict=True)]
    return conclude(codings, codes, found.column("n").to_numpy()).total


def write(
    source: SparkSource,
    codings: Sequence[Coding],
    blocks: Sequence[pram.Block],
    randomness: RandomSource,
    folder: Path,
    *,
    records: int,
) -> None:
    """Writes the table, every record redrawn, as Parquet files in a new folder that every executor can reach.

    Args:
        source: the table.
        codings: how its columns are coded, each recoded to the level at which it is published.
        blocks: how the values are redrawn; they name each column once, with the sizes of the codings.
        randomness: the driver's, from which one key is taken.
        folder: appears complete or not at all, with the records in canonical order.
        records: what `count_records` gave for the same table.
    """
    if folder.exists():
        raise InputError(f"{folder} exists already.", code="output-exists", remedy="Choose another name.")
    key = randomness.words(4).tobytes()
    parts = max(1, -(-records // RECORDS_PER_PART))
    temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.part")
    try:
        with reading():
            rows = source.coded(codings)
            drawn = _redrawn(rows, redrawing(rows, blocks, key), parts)
            _records(rows, drawn).write.mode("errorifexists").options(**_WRITING).parquet(temporary.absolute().as_uri())
        temporary.rename(folder)
    except OSError as error:
        raise cannot_write(folder, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def redrawing(rows: CodedRows, blocks: Sequence[pram.Block], key: bytes) -> Redraw:
    """What an executor does to the cells of a part; a function of the part's number and its cells, in any order."""
    words, names = rows.words, rows.names
    columns: list[tuple[str, Labels]] = [(coding.column, coding.labels) for coding in rows.codings]

    def redraw(number: tuple[pa.Scalar, ...], cells: pa.Table) -> pa.Table:
        codes = [p.keys(cells[n].to_numpy()) for n, word in zip(names, words, strict=True) for p in word]
        table = Histogram.of([Column(*c, code) for c, code in zip(columns, codes, strict=True)], cells["n"].to_numpy())
        drawn = pram.run(table, blocks, RandomSource(_bits=DerivedBits(key, b"part %d" % number[0].as_py())))
        packed = []
        for word in words:
            values = np.zeros(len(drawn), dtype=np.int64)
            for place in word:
                values |= drawn.columns[place.column].codes.astype(np.int64) << place.shift
            packed.append(values)
        return pa.table([*packed, drawn.counts], names=[*names, "n"])

    return redraw


def _redrawn(rows: CodedRows, redraw: Redraw, parts: int) -> DataFrame:
    """The cells after all records were redrawn, in no order: words and counts."""
    kept = rows.frame
    for coding, code in zip(rows.codings, _codes(rows), strict=True):
        if coding.missing == "drop":
            kept = kept.where(code <= len(coding.labels))
    cells = kept.groupBy(*rows.names).agg(fn.count(fn.lit(1)).alias("n"))
    dealt = _in_pieces(cells).withColumn("part", fn.pmod(fn.xxhash64(*rows.names, "piece"), fn.lit(parts)))
    schema = ", ".join(f"{name} long" for name in [*rows.names, "n"])
    drawn = dealt.select("part", *rows.names, "n").groupBy("part").applyInArrow(redraw, schema)
    return drawn.groupBy(*rows.names).agg(fn.sum("n").alias("n"))


def _records(rows: CodedRows, cells: DataFrame) -> DataFrame:
    """The records of cells, in canonical order, with their labels."""
    names = [f"code{i}" for i in range(len(rows.codings))]
    coded = cells.select(*(code.alias(name) for code, name in zip(_codes(rows), names, strict=True)), "n")
    single = _in_pieces(coded.orderBy(*names)).select(*names, fn.explode(fn.sequence(fn.lit(1), "n")))
    return single.select(
        *(_label(fn.col(name), c.labels).alias(c.column) for name, c in zip(names, rows.codings, strict=True))
    )


def _in_pieces(cells: DataFrame) -> DataFrame:
    """Cells of at most `RECORDS_PER_PART` records each, those of the same codes numbered by `piece`."""
    size = fn.lit(RECORDS_PER_PART)
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


def _label(code: SparkColumn, labels: Labels) -> SparkColumn:
    """The label of a code, from a constant that the planner takes apart once."""
    texts = [label or "" for label in labels]
    mark = next(chr(i) for i in range(0xE000, 0xF8FF) if not any(chr(i) in text for text in texts))
    text = fn.get(fn.split(fn.lit(mark.join(texts)), mark), code)
    return text if None not in labels else fn.when(code != labels.index(None), text)
