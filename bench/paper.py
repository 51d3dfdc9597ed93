"""The cost of a table of 10¹¹ rows on a cluster, on paper: the measured rates carried on, arithmetic shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bench.main_job import NODES
from bench.measuring import Row, number, seconds
from bench.recording import Recorded
from bench.results import table
from bench.thinning import LARGE
from incrowd.core.numbers import number as print_number

ROWS, COLUMNS, CORES, CELLS = 10**11, 8, 500, 10**7
SPLIT = 128 * 2**20  # bytes that a task of Spark reads by default
SHUFFLED = 4 + 8 + 8 + 8  # of a cell: its length, its null bits, one word of codes, the count
PART = 2**20  # records that are redrawn at a time
RATE = 0.3  # of the thinning: a β with as many binary digits as are drawn, and cells of ROWS/CELLS records


@dataclass(frozen=True)
class Rates:
    """What was measured, for one core. Where a figure was not, it is None."""

    rows_few: float | None
    rows_many: float | None
    bytes_a_row: float | None
    bytes_a_cell: float | None
    thinning: float | None
    choice: float | None
    choice_bytes: float | None
    redrawing: float | None

    @classmethod
    def of(cls, record: Recorded) -> Rates:
        """The rates that the recorded figures give."""
        few, many = (record.row("spark_release", f"{shape}, release") for shape in ("few", "many"))
        scanned = [row for row in record.rows("curves") if row.key.startswith("rows, Parquet")]
        memory = record.row("cell_memory", f"{COLUMNS} columns")
        thinned = record.row("thinning", f"{LARGE}, {RATE:g}")
        private, fixed = (record.row("main_job", f"Python, many, {levels}") for levels in ("private", "fixed"))
        drawn = record.row("pram", "wide")
        return cls(
            rows_few=_a_second(few),
            rows_many=_a_second(many),
            bytes_a_row=scanned[-1].figures.get("bytes a row") if scanned else None,
            bytes_a_cell=memory.figures["at most"] if memory else None,
            thinning=thinned.ours.cpu / thinned.figures["records"] if thinned and thinned.ours else None,
            choice=_more(private, fixed, private.figures["cells"] * NODES) if private else None,
            choice_bytes=_beyond(
                *(record.row("main_job", f"command, many, {levels}") for levels in ("private", "fixed"))
            ),
            redrawing=_more(drawn, None, drawn.figures["records"]) if drawn else None,
        )


def _a_second(row: Row | None) -> float | None:
    """Rows in a second of the processor, to two digits."""
    return float(f"{row.figures['rows'] / row.ours.cpu:.2g}") if row is not None and row.ours is not None else None


def _more(row: Row | None, without: Row | None, pieces: float) -> float | None:
    """Processor seconds for each piece of work beyond what is there without it."""
    base = without.ours if without is not None else row.other if row is not None else None
    if row is None or row.ours is None or base is None:
        return None
    return max(row.ours.cpu - base.cpu, 1e-12) / pieces


def _beyond(private: Row | None, fixed: Row | None) -> float | None:
    """Bytes for each cell that a private choice takes beyond fixed levels."""
    if private is None or fixed is None or private.ours is None or fixed.ours is None:
        return None
    assert private.ours.megabytes is not None
    assert fixed.ours.megabytes is not None
    return max(0.0, private.ours.megabytes - fixed.ours.megabytes) * 2**20 / private.figures["cells"]


def worked_example(record: Recorded) -> str:
    """A table: what, by which formula, at which rate and from which benchmark, and the arithmetic for the example."""
    return table(("what", "formula", "rate, and its benchmark", "in the example"), list(_lines(Rates.of(record))))


def _lines(rates: Rates) -> Iterator[tuple[str, str, str, str]]:
    for shape, of, rate in (("few", "30 thousand", rates.rows_few), ("many", "3 million", rates.rows_many)):
        if rate is not None:
            yield (
                f"scan, recode and count, at the rate of {of} tuples",
                "rows ÷ (cores × rows a second and core)",
                f"{number(rate)} rows a second: `spark_release`, {shape}",
                f"{power(ROWS)} ÷ ({CORES} × {number(rate)}) = {_long(ROWS / (CORES * rate))}",
            )
    if rates.bytes_a_row is not None:
        read = ROWS * rates.bytes_a_row
        tasks = math.ceil(read / SPLIT)
        each = min(CELLS, ROWS / tasks)
        yield (
            "files read",
            "rows × bytes a row",
            f"{rates.bytes_a_row:.1f} bytes: `curves`, rows, Parquet",
            f"{power(ROWS)} × {rates.bytes_a_row:.1f} = {_bytes(read)}, in {tasks:,} tasks of 128 MB",
        )
        moved = tasks * each * SHUFFLED
        sizes = f"{_bytes(moved)} at most, {_bytes(moved / CORES)} a core"
        yield (
            "shuffle",
            f"tasks × min(cells, rows of a task) × {SHUFFLED} bytes",
            f"{SHUFFLED} bytes: Spark's rows, see below",
            f"{tasks:,} × {power(each)} × {SHUFFLED} = {sizes}",
        )
    if rates.bytes_a_cell is not None:
        yield (
            "driver's memory",
            "cells × bytes a cell, and 16 of Java's",
            f"{rates.bytes_a_cell:.0f} bytes: `cell_memory`, {COLUMNS} columns, at most",
            f"{power(CELLS)} × ({rates.bytes_a_cell:.0f} + 16) = {_bytes(CELLS * (rates.bytes_a_cell + 16))}",
        )
    if rates.thinning is not None:
        yield (
            "thinning, on one core",
            "records × time a record",
            f"{_nano(rates.thinning)}: `thinning`, {LARGE}, β = {RATE:g}",
            f"{power(ROWS)} × {_nano(rates.thinning)} = {_long(ROWS * rates.thinning)}",
        )
    if rates.choice is not None:
        for nodes in (NODES, 200_000):
            yield (
                "private choice of levels, processor time",
                "cells × nodes × time of a cell in a node",
                f"{_nano(rates.choice)}: `main_job`, Python, many, private less fixed",
                f"{power(CELLS)} × {nodes:,} × {_nano(rates.choice)} = {_long(CELLS * nodes * rates.choice)}",
            )
    if rates.choice_bytes is not None:
        yield (
            "memory of a private choice",
            "cells × bytes a cell",
            f"{rates.choice_bytes:.0f} bytes: `main_job`, command, many, private less fixed",
            f"{power(CELLS)} × {rates.choice_bytes:.0f} = {_bytes(CELLS * rates.choice_bytes)}",
        )
    if rates.redrawing is not None:
        parts = f"in {power(ROWS)} ÷ 2^20 = {math.ceil(ROWS / PART):,} parts"
        took = _long(ROWS * rates.redrawing / CORES)
        yield (
            "redrawing all records (PRAM)",
            "records × time a record ÷ cores",
            f"{_nano(rates.redrawing)}: `pram`, wide, less making the table",
            f"{power(ROWS)} × {_nano(rates.redrawing)} ÷ {CORES} = {took}, {parts}",
        )


def _nano(value: float) -> str:
    return f"{value * 1e9:.3g} ns"


def power(value: float) -> str:
    return print_number(float(value))  # a float, so that 10¹¹ is not written out


def _long(value: float) -> str:
    return seconds(value) if value < 600 else f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _bytes(value: float) -> str:
    unit, name = next((u, n) for u, n in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if value >= u or n == "MB")
    return f"{value / unit:.3g} {name}"
