"""A table that is written by the executors of a Spark cluster, in parts that they all can reach.

The cells come in canonical order, in partitions that Spark chose. The driver learns how many records each partition
has, and with that every executor knows which records, counted from the first of all, its cells stand for. So the table
can be cut at multiples of `RECORDS_PER_PART`, wherever Spark's partitions end, and each part is the same file, byte for
byte, that one machine would have written: a function of the published records alone.

**Run twice, the same.** A part is written under another name and renamed, and whoever writes it a second time writes
the same. The cells are kept on the executors' disks while they are written; if some are lost, they are drawn again,
from the same key, and are the same.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as fn

from incrowd._version import __version__
from incrowd.core.errors import DataError, IncrowdError, InputError
from incrowd.core.files import appearing
from incrowd.marginals import Marginals
from incrowd.mechanisms.pram.spark import MarginalsAsked, counting
from incrowd.mechanisms.tables import RECORDS_PER_PART, part_names, write_table
from incrowd.sources.spark import CodedRows, reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]

_TRIALS, _PARTS = 16, -1


def require_executors(session: SparkSession, folder: Path) -> None:
    """Executors that run this version of incrowd and write to this folder, or a clear error: before anything is spent.

    Raises:
        InputError: they do not.
    """
    token = secrets.token_hex(16)
    (folder / "token").write_text(token, encoding="ascii")

    def attempt(batches: Batches) -> Batches:
        from incrowd._version import __version__ as version

        for batch in batches:
            for number in batch.column("id").to_pylist():
                with contextlib.suppress(OSError):
                    if (folder / "token").read_text(encoding="ascii") == token:
                        (folder / f"{number}").touch()
            yield pa.record_batch([[version] * batch.num_rows], names=["version"])

    try:
        with reading():
            found = session.range(0, _TRIALS, 1, _TRIALS).mapInArrow(attempt, "version string").toArrow()
    except IncrowdError:
        raise _unfit("The executors cannot run incrowd.") from None
    if set(found.column("version").to_pylist()) != {__version__}:
        raise _unfit("The executors run another version of incrowd.")
    marks = [folder / f"{number}" for number in range(_TRIALS)]
    if not all(mark.is_file() for mark in marks):
        raise _unfit("The executors cannot write to the folder of the release.")
    for file in (*marks, folder / "token"):
        file.unlink()


def _unfit(what: str) -> InputError:
    return InputError(
        what,
        code="executors-unfit",
        remedy="Install the same incrowd for the Python that executors run (PYSPARK_PYTHON), and choose a folder that "
        "the driver and all executors reach under the same path and as the same user.",
    )


def write_parts(
    cells: CodedRows, folder: Path, records: int, wanted: Sequence[Sequence[str]]
) -> tuple[list[Path], Marginals]:
    """Writes the records of cells to a folder, and returns the parts in their order, and counts of what was written.

    Args:
        cells: in canonical order, in partitions that stay as they are (`kept`).
        folder: which all executors reach.
        records: how many there are.
        wanted: the sets of columns to count by.

    Raises:
        DataError: the table is not the same whenever it is computed, so that the parts do not fit together.
    """
    sizes = cells.frame.mapInArrow(_size, "partition int, n long")
    columns = ", ".join(f"{name} long" for name in (*cells.names, "n"))
    per_part = RECORDS_PER_PART
    names = [Path(name).name for name in part_names(-(-records // per_part))]
    histogram_of, asked = counting(cells), MarginalsAsked.of(cells, wanted)

    def write(number: tuple[pa.Scalar, ...], piece: pa.Table) -> pa.Table:
        table = histogram_of(piece)
        with appearing(folder / names[number[0].as_py()]) as file:
            write_table(table, "parquet", file)
        tally = asked.tally()
        tally.add([column.codes for column in table.columns], table.counts)
        told = asked.told(tally)
        # The part itself is told as if it were a cell of one more set.
        own = ([_PARTS], [number[0].as_py()], [table.total])
        counts = [np.concatenate(pair) for pair in zip(own, told, strict=True)]
        ends = [[[int(c.codes[i]) for c in table.columns], *[None] * len(told[0])] for i in (0, -1)]
        typed = [pa.array(end, pa.list_(pa.int64())) for end in ends]
        return pa.table([*counts, *typed], names=["marginal", "cell", "n", "first", "last"])

    with reading():
        partitions = sizes.toArrow().sort_by("partition")
        starts = np.cumsum([0, *partitions.column("n").to_pylist()]).tolist()
        first = dict(zip(partitions.column("partition").to_pylist(), starts[:-1], strict=True))
        pieces = cells.frame.mapInArrow(_cutting(first, per_part), f"part long, {columns}")
        dealt = pieces.repartition(len(names), "part").groupBy("part")
        told = "marginal long, cell long, n long, first array<long>, last array<long>"
        sums = [fn.sum("n").alias("n"), *(fn.max(end).alias(end) for end in ("first", "last"))]
        written = dealt.applyInArrow(write, told).groupBy("marginal", "cell").agg(*sums).toArrow()
    own = pc.equal(written.column("marginal"), _PARTS)
    parts = written.filter(own).sort_by("cell").to_pylist()
    whole = [part["cell"] for part in parts] == list(range(len(names))) and starts[-1] == records
    whole = whole and all(part["n"] == min(per_part, records - part["cell"] * per_part) for part in parts)
    require_same(whole and all(a["last"] <= b["first"] for a, b in pairwise(parts)))
    return [folder / name for name in names], asked.marginals(written.filter(pc.invert(own)))


def require_same(same: bool) -> None:
    """A table that is the same whenever Spark computes it, as far as that has been noticed.

    Raises:
        DataError: it is not.
    """
    if not same:
        raise DataError(
            "The table was not the same each time that Spark computed it.",
            code="data-unreadable",
            remedy="Store it first, and release what is stored.",
        )


@contextlib.contextmanager
def kept(cells: CodedRows) -> Iterator[CodedRows]:
    """The same cells, computed once and kept on the executors' disks, in partitions that stay as they are."""
    from pyspark import StorageLevel

    frame: DataFrame = cells.frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield replace(cells, frame=frame)
    finally:
        with contextlib.suppress(IncrowdError), reading():
            frame.unpersist()


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return int(context.partitionId()) if context is not None else 0


def _size(batches: Batches) -> Batches:
    """How many records this task's partition has."""
    records = sum(int(batch.column("n").to_numpy().sum()) for batch in batches)
    yield pa.record_batch([pa.array([_partition()], pa.int32()), [records]], names=["partition", "n"])


def _cutting(first: Mapping[int, int], per_part: int) -> Callable[[Batches], Batches]:
    """What deals out a partition's cells to parts, given the number of the first record of each partition."""

    def cut(batches: Batches) -> Batches:
        start = first[_partition()]
        for batch in batches:
            n = batch.column("n").to_numpy()
            ends = start + np.cumsum(n)
            begins = ends - n
            lowest, highest = begins // per_part, (ends - 1) // per_part
            pieces = highest - lowest + 1
            row = np.repeat(np.arange(len(n)), pieces)
            part = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + lowest[row]
            records = np.minimum(ends[row], (part + 1) * per_part) - np.maximum(begins[row], part * per_part)
            words = [batch.column(i).take(pa.array(row)) for i in range(batch.num_columns - 1)]
            yield pa.record_batch([part, *words, records], names=["part", *batch.schema.names])
            start = int(ends[-1]) if len(ends) else start

    return cut
