"""How long it takes to redraw every record of a table, and how much memory the two ways to do it take.

A census with few possible cells, redrawn on the array of cells and, for comparison, record by record; and one with 20
thousand million possible cells, redrawn record by record. Each in a process of its own, which also makes the table.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np

from bench.measuring import Row, command, main
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.pram import draw as pram
from incrowd.mechanisms.pram.blocks import Block, as_drawn
from incrowd.randomness import RandomSource
from incrowd.theory.randomisation import RetentionReplacement

SHAPES = {"census": (2, 18, 12, 3, 3, 18, 20), "wide": (100, 100, 50, 20, 20, 10, 10)}


def population(records: int, sizes: tuple[int, ...]) -> Histogram:
    """So many people with skewed, dependent values, made a chunk at a time."""
    rng = np.random.default_rng(1)
    whole: Histogram | None = None
    for start in range(0, records, 1 << 20):
        size = min(1 << 20, records - start)
        latent = rng.beta(2, 4, size)
        columns = []
        for i, values in enumerate(sizes):
            codes = np.clip((latent + rng.normal(0, 0.15, size)) * values, 0, values - 1).astype(np.int64)
            columns.append(Column(f"a{i}", tuple(map(str, range(values))), codes))
        part = Histogram.of(columns)
        whole = part if whole is None else whole.merge(part)
    assert whole is not None
    return whole


def work(shape: str, records: int, way: str) -> None:
    """Makes a population and redraws it in some way; or does not, to see what the population alone takes."""
    sizes = SHAPES[shape]
    table = population(records, sizes)
    rho = as_drawn(0.3)
    blocks = [Block((f"a{i}",), (n,), RetentionReplacement(rho, n)) for i, n in enumerate(sizes)]
    redraw = {"auto": pram.run, "record": pram._by_record}.get(way)  # noqa: SLF001
    assert redraw is None or redraw(table, blocks, RandomSource()).total == records, "no record may be lost"


def run(quick: bool = False) -> Iterator[Row]:
    """Two populations, redrawn."""
    records = 100_000 if quick else 4_500_000
    for shape, sizes in SHAPES.items():
        took = {
            way: command("python", "-m", "bench.pram", shape, str(records), way)
            for way in ("none", "auto", *(["record"] if shape == "census" else []))
        }
        name = f"redrawing {records:,} records, {math.prod(sizes):,} possible cells"
        figures = {"records": records}
        yield Row(shape, name, took["auto"], "making the table alone", took["none"], figures=figures)
        if "record" in took:
            yield Row(f"{shape}, ways", name, took["auto"], "record by record", took["record"], figures=figures)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        work(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        main(run)
