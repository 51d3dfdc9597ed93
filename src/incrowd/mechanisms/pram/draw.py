"""Redraw every value of every record through a transition matrix (Ikarashi, Kikuchi, Chida, Takahashi).

A *block* is what is redrawn at once: one attribute, or several as one with all combinations of their values. Records
are redrawn independently of each other, and so are the blocks of a record. The result is a histogram, whose cells come
in the order of their codes: that is the shuffling, nothing of the input's order is left to carry anything.

**Exact draws.** A retention ρ is a multiple of 2⁻⁶⁴, the entries of a matrix are fractions, and both are drawn as they
are (`randomness`). Two ways lead to the same law, and the cheaper one is taken:

- *On the histogram*, block by block, on the array of all possible cells. Under retention-replacement a cell of n keeps
  Binomial(n, ρ) records. The others forget which value they had: those that agree in every other block are pooled, and
  the pool is spread evenly by one multinomial. A general matrix spreads every cell by the row of its value.
- *Record by record*, in chunks, where there are more possible cells than records, or large matrices.

**Invariant PRAM.** With P the matrix and t the true shares of the values, a second step draws a value from what the
first suggests: Q[k,j] = P[j,k]·t_j/Σ_i P[i,k]·t_i, so that t'PQ = t'. Both steps are exact. Q is computed from the
table, so no theorem promises anything about the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import DataError, InternalError
from incrowd.histogram import Column, Histogram, unfold
from incrowd.mechanisms.base import (
    Made,
)
from incrowd.mechanisms.pram.blocks import Block, Integers, Rows, fold
from incrowd.mechanisms.pram.certificate import PramStatement
from incrowd.mechanisms.pram.settle import FEWEST, PramSettled, decided, needs_records
from incrowd.mechanisms.pram.state import state
from incrowd.randomness import RandomSource
from incrowd.theory.randomisation import RetentionReplacement

MOST_CELLS = 1 << 24
"""The most possible cells of which an array is made."""

_CHUNK = 1 << 20
_RECORDS_PER_CELL = 3  # from there on, measured, an array of cells is faster (bench/pram.py)
_RECORDS_PER_ENTRY = 1_000  # so many are redrawn one by one while all cells are spread by one entry of a matrix
_DENSE_SUM = 1 << 26
_LARGEST_KEY = 1 << 62


def run(table: Histogram, blocks: Sequence[Block], source: RandomSource) -> Histogram:
    """The table with every record redrawn. The blocks name each column once."""
    if sorted(name for block in blocks for name in block.names) != sorted(table.names):
        raise InternalError("the blocks do not hold each column once")
    if any(len(table[n].labels) != size for block in blocks for n, size in zip(block.names, block.sizes, strict=True)):
        raise InternalError("the blocks do not have the sizes of the columns")
    if not table.total:
        return table
    cells = table.domain_size
    entries = sum(
        block.size**2 for block in blocks for step in block.steps if not isinstance(step, RetentionReplacement)
    )
    if cells <= MOST_CELLS and cells * _RECORDS_PER_CELL + entries * _RECORDS_PER_ENTRY <= table.total:
        return _on_cells(table, blocks, source)
    return _by_record(table, blocks, source)


# --- on the histogram -----------------------------------------------------------------------------------------------


def _on_cells(table: Histogram, blocks: Sequence[Block], source: RandomSource) -> Histogram:
    counts = np.zeros(table.domain_size, dtype=np.int64)
    counts[_keys(table, blocks)] = table.counts
    before, after = 1, len(counts)
    for block in blocks:
        after //= block.size
        for step in block.steps:
            counts = _redraw_cells(counts.reshape(before, block.size, after), step, source).ravel()
        before *= block.size
    occurring = np.flatnonzero(counts)
    return _histogram(table, blocks, occurring, counts[occurring])


def _redraw_cells(cells: Integers, step: RetentionReplacement | Rows, source: RandomSource) -> Integers:
    """The cells, an array with the block's values along its middle axis, after one step."""
    if isinstance(step, RetentionReplacement):
        kept = source.binomial(cells, Fraction(step.retention))
        pool = cells.sum(axis=1)
        pool -= kept.sum(axis=1)
        kept += np.moveaxis(source.multinomial(pool, [1] * step.size), -1, 1)
        return kept
    drawn = np.zeros_like(cells)
    for value, row in enumerate(step):
        drawn += np.moveaxis(source.multinomial(cells[:, value, :], row), -1, 1)
    return drawn


# --- record by record -----------------------------------------------------------------------------------------------


def _by_record(table: Histogram, blocks: Sequence[Block], source: RandomSource) -> Histogram:
    if table.domain_size > _LARGEST_KEY:
        return _by_record_in_parts(table, blocks, source)
    shape = [block.size for block in blocks]
    dense = table.domain_size <= min(_DENSE_SUM, 2 * table.total)
    sums = np.zeros(table.domain_size if dense else 0, dtype=np.int64)
    keys = np.empty(0 if dense else table.total, dtype=np.int64)
    filled = 0
    for codes in _redrawn(table, blocks, source):
        folded = fold(codes, shape)
        if dense:
            np.add.at(sums, folded, 1)
        else:
            keys[filled : filled + len(folded)] = folded
            filled += len(folded)
    if dense:
        keys = np.flatnonzero(sums)
        counts = sums[keys]
    else:
        keys.sort()
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        counts = np.diff(starts, append=len(keys))
        keys = keys[starts]
    return _histogram(table, blocks, keys, counts)


def _by_record_in_parts(table: Histogram, blocks: Sequence[Block], source: RandomSource) -> Histogram:
    """For domains whose combinations no 64-bit number can count."""
    parts: list[Histogram] = []
    for codes in _redrawn(table, blocks, source):
        columns: dict[str, NDArray[np.integer]] = {}
        for block, values in zip(blocks, codes, strict=True):
            columns |= dict(zip(block.names, unfold(values, list(block.sizes)), strict=True))
        parts.append(_of(table, columns, np.ones(len(codes[0]), dtype=np.int64)))
        # Equal sizes are merged with each other, so that a record is moved a logarithmic number of times.
        while len(parts) > 1 and parts[-2].total <= parts[-1].total:
            parts[-2:] = [parts[-2].merge(parts[-1])]
    while len(parts) > 1:
        parts[-2:] = [parts[-2].merge(parts[-1])]
    return parts[0]


def _redrawn(table: Histogram, blocks: Sequence[Block], source: RandomSource) -> Iterator[list[Integers]]:
    """The records as they are published, a chunk at a time: for each block their values."""
    for codes in _chunks(table, blocks):
        for block, values in zip(blocks, codes, strict=True):
            for step in block.steps:
                _redraw_records(values, step, source)
        yield codes


def _chunks(table: Histogram, blocks: Sequence[Block]) -> Iterator[list[Integers]]:
    """The records, a chunk at a time: for each block their values, in an array that may be written to."""
    ends = np.cumsum(table.counts)
    for start in range(0, table.total, _CHUNK):
        stop = min(start + _CHUNK, table.total)
        first, last = np.searchsorted(ends, [start, stop - 1], side="right")
        cells = slice(int(first), int(last) + 1)
        repeats = np.minimum(ends[cells], stop) - np.maximum(ends[cells] - table.counts[cells], start)
        yield [
            np.repeat(fold([table[name].codes[cells] for name in block.names], block.sizes), repeats)
            for block in blocks
        ]


def _redraw_records(values: Integers, step: RetentionReplacement | Rows, source: RandomSource) -> None:
    if isinstance(step, RetentionReplacement):
        moved = np.flatnonzero(~source.bernoulli(Fraction(step.retention), len(values)))
        values[moved] = source.integers(step.size, len(moved))
        return
    order = np.argsort(values, kind="stable")
    present, starts = np.unique(values[order], return_index=True)
    for value, here in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        values[here] = source.categorical(step[value], len(here))


# --- blocks and columns ---------------------------------------------------------------------------------------------


def _keys(table: Histogram, blocks: Sequence[Block]) -> Integers:
    """One number for each cell: blocks in their order, and within a block its attributes in theirs."""
    names = [name for block in blocks for name in block.names]
    return fold([table[name].codes for name in names], [len(table[name].labels) for name in names])


def _histogram(table: Histogram, blocks: Sequence[Block], keys: Integers, counts: Integers) -> Histogram:
    """The histogram with the columns of the table whose cells have these numbers."""
    names = [name for block in blocks for name in block.names]
    return _of(table, dict(zip(names, unfold(keys, [len(table[n].labels) for n in names]), strict=True)), counts)


def _of(table: Histogram, codes: Mapping[str, NDArray[np.integer]], counts: Integers) -> Histogram:
    return Histogram.of([Column(name, table[name].labels, codes[name]) for name in table.names], counts)


def draw(settings: PramSettled, table: Histogram, source: RandomSource) -> Made[Histogram | None, PramStatement]:
    """Redraw every record, or every record of a sample."""
    published = run(_sampled(settings, table, source), settings.blocks, source)
    return Made(published, settings.levels, state(settings.published(published.total), published), table)


def _sampled(settings: PramSettled, table: Histogram, source: RandomSource) -> Histogram:
    """The records that are redrawn.

    How many these are does not depend on what they hold, so that to refuse too few of them tells nothing.
    """
    if settings.section.beta is None or settings.section.already_sampled:
        return table
    counts = source.binomial(table.counts, Fraction(settings.rate))
    if counts.sum() < FEWEST:
        raise DataError(
            "The sample that was drawn has fewer than two records.",
            code="data-empty",
            remedy="Use a larger 'beta', or a larger table.",
        )
    return Histogram.of(table.columns, counts)


def collected(settings: PramSettled, published: Histogram) -> tuple[PramSettled, Made[Histogram | None, PramStatement]]:
    """A release of records that their owners have randomised, by the retentions and matrices of the policy.

    The policy gives `rho` (or matrices) outright: what was kept cannot depend on how many answered. The promise for one
    record holds whatever happens here; k and the central promise hold for the records that came.

    Args:
        settings: what `settle` found.
        published: the records as they came, columns and labels in the order of the policy.
    """
    if needs_records(settings.wishes, settings.section.k) or settings.section.invariant:
        raise InternalError("what respondents keep would depend on the table")
    found = replace(decided(settings, published.total), by="respondents")
    return found, Made(published, found.levels, state(found, published), None)
