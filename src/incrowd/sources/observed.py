"""A table counted by the values that occur in it, for looking at a table that no policy describes.

Every value counts as it is written: ``07`` and ``7`` in a text are two values. Nulls, not-a-numbers and the texts that
stand for missing ones are one value of their own, the label None. No record is left out.

The labels tell which values occur, so nothing made from such a histogram may be published without another thought.
"""

# ruff: noqa: S608 - the query is put together from names of our own and quoted literals

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from incrowd.core.errors import DataError
from incrowd.domain import natural_key
from incrowd.histogram import Column, Histogram, smallest_type
from incrowd.sources import Source
from incrowd.sources.duckdb import DuckDBSource
from incrowd.sources.duckdb_codes import column_kind, quoted
from incrowd.sources.values import fetching, require_comparable

_RESULT_ROWS = 2**17
_POINT = str.maketrans(",.", ".,")
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Observed:
    """A table, counted.

    Attributes:
        histogram: the cells; labels in the order of the numbers or dates that they are, else of their letters.
        weights: the sum of the records' weights in each cell, where a column of weights was named.
    """

    histogram: Histogram
    weights: np.ndarray | None = None


def count_observed(source: Source, columns: Sequence[str], *, weights: str | None = None) -> Observed:
    """Counts a table by what stands in these columns, in one scan.

    Args:
        source: the table.
        columns: the histogram's columns, in this order.
        weights: a column of positive numbers, to be added up in each cell.

    Raises:
        DataError: the table cannot be read, lacks a column, holds no record, rows cannot be told apart by a column, or
            a weight is no positive number.
    """
    source = fetching(source)
    names = [*columns] if weights is None or weights in columns else [*columns, weights]
    positions = source.positions(names)
    if type(source) is not DuckDBSource:  # which prints whatever there is
        require_comparable(source, positions[: len(columns)])
    place = dict(zip(names, positions, strict=True))
    with source.connect() as (connection, scan):
        relation, n = source.gather(scan, dict.fromkeys(positions))
        fields = ", ".join(f"c{i}" for i in positions)
        types = dict(zip(positions, map(str, connection.sql(f"SELECT {fields} FROM {relation}").types), strict=True))
        raw = ", ".join(f"c{place[name]}" for name in columns)
        sums = [f"{'count(*)' if n is None else f'sum({n})'}::BIGINT AS n"]
        if weights is not None:
            weight = _number(f"c{place[weights]}", types[place[weights]], source.options.decimal)
            times = "1" if n is None else n
            sums.append(f"coalesce(fsum({weight} * {times}), 0)::DOUBLE AS w")
            sums.append(f"coalesce(sum({times}) FILTER ({_unfit(weight)}), 0)::BIGINT AS bad")
        counted = f"SELECT {raw}, {', '.join(sums)} FROM {relation} GROUP BY {raw}"
        missing = source.options.missing_values
        texts = [_printed(f"c{place[name]}", types[place[name]], missing) for name in columns]
        more = ", w, bad" if weights is not None else ""
        query = f"SELECT {', '.join(texts)}, n{more} FROM ({counted})"
        encoders = [_Encoder() for _ in columns]
        numbers: list[list[np.ndarray]] = []
        with source.recounting(scan) as require_whole:
            for batch in connection.sql(query).to_arrow_reader(_RESULT_ROWS):
                for encoder, array in zip(encoders, batch.columns, strict=False):
                    encoder.add(array)
                numbers.append([np.from_dlpack(array) for array in batch.columns[len(columns) :]])
            require_whole(sum(int(part[0].sum()) for part in numbers))
    if not numbers or not sum(int(part[0].sum()) for part in numbers):
        raise DataError("The table holds no record.", code="data-empty", remedy="Check that it is the right one.")
    coded = [encoder.column(name, source.options.decimal) for encoder, name in zip(encoders, columns, strict=True)]
    counts, *weighed = (np.concatenate(parts) for parts in zip(*numbers, strict=True))
    if not weighed:
        return Observed(Histogram.of(coded, counts))
    if unfit := int(weighed[1].sum()):
        raise DataError(
            f"The weight {weights!r} is not a number above 0 in {unfit} of the records.",
            code="weights-invalid",
            remedy="A weight says how many people of the population a record stands for.",
            details={"column": weights, "records": unfit},
        )
    return _with_weights(coded, counts, weighed[0])


def natural_order(labels: Iterable[str | None], decimal: str = ".") -> list[str] | None:
    """The labels in the order of the numbers or the dates that all of them are; None if they are not, or two agree.

    A missing value is in no order: with one among the labels there is none.
    """
    texts = list(labels)
    keys: list[tuple[Decimal | dt.datetime, str]] = []
    for text in texts:
        if text is None:
            return None
        plain = text.translate(_POINT) if decimal == "," else text
        if _NUMBER.fullmatch(plain):
            keys.append((Decimal(plain.strip()), text))
        elif _DAY.fullmatch(text):
            try:
                keys.append((dt.datetime.fromisoformat(text), text))
            except ValueError:
                return None
        else:
            return None
    if len({type(key) for key, _ in keys}) != 1 or len({key for key, _ in keys}) < len(keys):
        return None
    return [text for _, text in sorted(keys)]


class _Encoder:
    """Turns a column of texts, piece by piece, into codes."""

    def __init__(self) -> None:
        self._codes: dict[str | None, int] = {}
        self._parts: list[np.ndarray] = []

    def add(self, array: pa.Array) -> None:
        """The next piece."""
        encoded = array.dictionary_encode(null_encoding="encode")
        known = [self._codes.setdefault(text, len(self._codes)) for text in encoded.dictionary.to_pylist()]
        self._parts.append(np.array(known, dtype=np.int64)[np.from_dlpack(encoded.indices)])

    def column(self, name: str, decimal: str) -> Column:
        """All of it, with sorted labels, the missing value last."""
        texts = [text for text in self._codes if text is not None]
        labels: list[str | None] = [*(natural_order(texts, decimal) or sorted(texts, key=natural_key))]
        if None in self._codes:
            labels.append(None)
        final = np.empty(len(labels), dtype=smallest_type(len(labels)))
        for code, text in enumerate(labels):
            final[self._codes[text]] = code
        return Column(name, tuple(labels), final[np.concatenate(self._parts)])


def _with_weights(columns: Sequence[Column], counts: np.ndarray, weights: np.ndarray) -> Observed:
    """Cells that became equal by what counts as missing are merged here, so that weights stay beside their cells."""
    order = np.lexsort([column.codes for column in reversed(columns)])
    codes = [column.codes[order] for column in columns]
    starts = np.flatnonzero(run_starts(codes))
    merged = [Column(c.name, c.labels, code[starts]) for c, code in zip(columns, codes, strict=True)]
    histogram = Histogram.of(merged, np.add.reduceat(counts[order], starts))
    return Observed(histogram, np.add.reduceat(weights[order], starts))


def run_starts(codes: Sequence[np.ndarray]) -> np.ndarray:
    """Whether each of the rows, which are sorted, differs from the one before it."""
    starts = np.zeros(len(codes[0]), dtype=bool)
    starts[:1] = True
    for code in codes:
        starts[1:] |= code[1:] != code[:-1]
    return starts


def _printed(column: str, sql_type: str, missing: Sequence[str]) -> str:
    kind = column_kind(sql_type)
    if kind == "float":
        # There are two zeros, which print differently and are one number.
        return f"CASE WHEN NOT isnan({column}) THEN CAST({column} + 0 AS VARCHAR) END"
    text = column if sql_type == "VARCHAR" else f"CAST({column} AS VARCHAR)"
    if kind == "text" and missing:
        return f"CASE WHEN {text} NOT IN ({', '.join(map(quoted, missing))}) THEN {text} END"
    return text


def _number(column: str, sql_type: str, decimal: str) -> str:
    is_text = column_kind(sql_type) == "text"
    text = f"trim(CAST({column} AS VARCHAR))" if is_text else column
    if is_text and decimal == ",":
        text = f"translate({text}, ',.', '.,')"
    return f"TRY_CAST({text} AS DOUBLE)"


def _unfit(number: str) -> str:
    return f"{number} IS NULL OR NOT isfinite({number}) OR {number} <= 0 OR {number} > {math.ldexp(1, 53)!r}"
