"""How long it takes to randomise a table, and how much memory: `python bench/pram.py [--records N] [--wide]`."""

from __future__ import annotations

import argparse
import math
import resource
import time

import numpy as np

from incrowd.guarantees.randomisation import RetentionReplacement
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms import pram
from incrowd.randomness import RandomSource

CENSUS = (2, 18, 12, 3, 3, 18, 20)
WIDE = (100, 100, 50, 20, 20, 10, 10)


def population(records: int, sizes: tuple[int, ...]) -> Histogram:
    """So many people with skewed, dependent values, made a chunk at a time."""
    rng = np.random.default_rng(1)
    whole: Histogram | None = None
    for start in range(0, records, 1 << 22):
        size = min(1 << 22, records - start)
        latent = rng.beta(2, 4, size)
        columns = []
        for i, values in enumerate(sizes):
            codes = np.clip((latent + rng.normal(0, 0.15, size)) * values, 0, values - 1).astype(np.int64)
            columns.append(Column(f"a{i}", tuple(map(str, range(values))), codes))
        part = Histogram.of(columns)
        whole = part if whole is None else whole.merge(part)
    assert whole is not None
    return whole


def main() -> None:
    """Time one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_458_285)
    parser.add_argument("--wide", action="store_true", help="a domain of 20 thousand million cells")
    parser.add_argument("--way", choices=["auto", "cells", "records"], default="auto")
    options = parser.parse_args()
    sizes = WIDE if options.wide else CENSUS
    table = population(options.records, sizes)
    made = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rho = pram.as_drawn(0.3)
    blocks = [pram.Block((f"a{i}",), (n,), RetentionReplacement(rho, n)) for i, n in enumerate(sizes)]
    ways = {"auto": pram.run, "cells": pram._on_cells, "records": pram._by_record}  # noqa: SLF001
    begin = time.perf_counter()
    published = ways[options.way](table, blocks, RandomSource())
    taken = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{options.records:,} records, {len(table):,} cells of {math.prod(sizes):,} -> {len(published):,} cells: "
        f"{taken:.2f} s; memory {made:,.0f} MB before, {peak:,.0f} MB at most"
    )


if __name__ == "__main__":
    main()
