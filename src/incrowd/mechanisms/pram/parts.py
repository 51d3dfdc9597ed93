"""A table that is written by the executors of a Spark cluster, in parts that they all can reach.

The cells come in any order. The driver divides them into *ranges* by some of them that it knows, the marks, and learns
how many records each range has. So it knows which ranges a part needs that is cut at multiples of `RECORDS_PER_PART`,
and where the first of them begins. The executor that writes a part gets these ranges (few of which go to two parts),
sorts them and cuts off what is not its own. Each part is the same file, byte for byte, that one machine would have
written, a function of the published records alone, wherever the ranges end.

**Run twice, the same.** A part is written under another name and renamed, and whoever writes it a second time writes
the same. The cells are kept on the executors' disks while they are written; if some are lost, they are drawn again,
from the same key, and are the same.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
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
from incrowd.mechanisms.pram.spark import PARTS, MarginalsAsked, counting, cut
from incrowd.mechanisms.tables import RECORDS_PER_PART, part_names, write_table
from incrowd.sources.spark import CodedRows, reading
from incrowd.sources.spark_kept import at_hand, let_go

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Batches = Iterator[pa.RecordBatch]

_TRIALS = 16


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
    cells: CodedRows, marks: np.ndarray, folder: Path, records: int, wanted: Sequence[Sequence[str]]
) -> tuple[list[Path], Marginals]:
    """Writes the records of cells to a folder, and returns the parts in their order, and counts of what was written.

    Args:
        cells: in words whose order is canonical, computed once (`kept`); rows whose `told` is not null are no cells.
        marks: words by which they are divided into ranges, in order.
        folder: which all executors reach.
        records: how many there are.
        wanted: the sets of columns to count by.

    Raises:
        DataError: the table is not the same whenever it is computed, so that the parts do not fit together.
    """
    columns = ", ".join(f"{name} long" for name in (*cells.names, "n"))
    per_part = RECORDS_PER_PART
    names = [Path(name).name for name in part_names(-(-records // per_part))]
    histogram_of, asked, range_of = counting(cells), MarginalsAsked.of(cells, wanted), _ranging(marks, cells.names)
    frame = cells.frame.where("told IS NULL").select(*cells.names, "n")
    with reading():
        sizes = frame.mapInArrow(_sizing(range_of, len(marks) + 1), "range long, n long").groupBy("range")
        found = sizes.agg(fn.sum("n").alias("n")).toArrow()
    each = np.zeros(len(marks) + 1, dtype=np.int64)
    each[found.column("range").to_numpy()] = found.column("n").to_numpy()
    ends = np.cumsum(each)
    begins = ends - each
    require_same(ends[-1] == records)

    def write(number: tuple[pa.Scalar, ...], piece: pa.Table) -> pa.Table:
        part = number[0].as_py()
        start = part * per_part
        table = histogram_of(piece)
        stops = np.cumsum(table.counts) + begins[np.searchsorted(ends, start, side="right")]
        table = table.with_counts(cut(stops, table.counts, start, start + per_part))
        with appearing(folder / names[part]) as file:
            write_table(table, "parquet", file)
        tally = asked.tally()
        tally.add([column.codes for column in table.columns], table.counts)
        told = asked.told(tally)
        # The part itself is told as if it were a cell of one more set.
        own = ([PARTS], [part], [table.total])
        counts = [np.concatenate(pair) for pair in zip(own, told, strict=True)]
        outermost = [[[int(c.codes[i]) for c in table.columns], *[None] * len(told[0])] for i in (0, -1)]
        typed = [pa.array(end, pa.list_(pa.int64())) for end in outermost]
        return pa.table([*counts, *typed], names=["marginal", "cell", "n", "first", "last"])

    with reading():
        dealing = _dealing(range_of, begins // per_part, np.maximum(ends - 1, begins) // per_part)
        dealt = frame.mapInArrow(dealing, f"part long, {columns}").repartition(len(names), "part").groupBy("part")
        told = "marginal long, cell long, n long, first array<long>, last array<long>"
        sums = [fn.sum("n").alias("n"), *(fn.max(end).alias(end) for end in ("first", "last"))]
        written = dealt.applyInArrow(write, told).groupBy("marginal", "cell").agg(*sums).toArrow()
    own = pc.equal(written.column("marginal"), PARTS)
    parts = written.filter(own).sort_by("cell").to_pylist()
    whole = [part["cell"] for part in parts] == list(range(len(names)))
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
    """The same cells, computed once and kept on the executors' disks."""
    frame = at_hand(cells.frame)
    try:
        yield replace(cells, frame=frame)
    finally:
        let_go(frame)


RangeOf = Callable[[pa.RecordBatch], np.ndarray]


def _ranging(marks: np.ndarray, names: Sequence[str]) -> RangeOf:
    """What finds the range of each cell: how many marks are not behind it."""

    def sortable(words: Sequence[np.ndarray]) -> np.ndarray:
        if len(words) == 1:
            return words[0]
        # As many bytes, the highest first, are in the same order as the numbers, none of which is negative.
        joined = np.column_stack(words).astype(">i8")
        return np.ascontiguousarray(joined).view(f"S{8 * len(words)}").ravel()

    known = sortable([marks[:, place].copy() for place in range(len(names))])

    def range_of(batch: pa.RecordBatch) -> np.ndarray:
        words = [batch.column(name).to_numpy() for name in names]
        return np.searchsorted(known, sortable(words), side="right")

    return range_of


def _sizing(range_of: RangeOf, ranges: int) -> Callable[[Batches], Batches]:
    """What counts the records of each range."""

    def size(batches: Batches) -> Batches:
        sums = np.zeros(ranges, dtype=np.int64)
        for batch in batches:
            np.add.at(sums, range_of(batch), batch.column("n").to_numpy())
        found = np.flatnonzero(sums)
        yield pa.record_batch([found, sums[found]], names=["range", "n"])

    return size


def _dealing(range_of: RangeOf, lowest: np.ndarray, highest: np.ndarray) -> Callable[[Batches], Batches]:
    """What deals out cells to the parts that need their ranges, given each range's first part and its last."""

    def deal(batches: Batches) -> Batches:
        for batch in batches:
            of = range_of(batch)
            needed = highest[of] - lowest[of] + 1
            row = np.repeat(np.arange(len(of)), needed)
            part = np.arange(len(row)) - np.repeat(np.cumsum(needed) - needed, needed) + lowest[of[row]]
            columns = batch.columns if len(row) == len(of) else [c.take(pa.array(row)) for c in batch.columns]
            yield pa.record_batch([part, *columns], names=["part", *batch.schema.names])

    return deal
