"""Counting with Spark: DataFrames, tables and Parquet files, in one job, of which only the cells come to the driver.

Spark codes every row, packs the codes into a word or two and counts equal ones, first within each task and then
across them. Nothing is drawn at random, and every expression is a function of the row alone, so that a task that runs
twice counts the same.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as fn

from incrowd.core.errors import DataError, IncrowdError, InternalError
from incrowd.domain import Coding
from incrowd.histogram import Histogram
from incrowd.marginals import Crowds, Marginals
from incrowd.sources import Progress, SourceColumn, Wanted, told_apart
from incrowd.sources.at_least import FIRST_ROWS, CrowdsAsked, columns_found, seem_more
from incrowd.sources.kept import CELLS, KeptTable, crowds
from incrowd.sources.memory import check_names
from incrowd.sources.options import Options
from incrowd.sources.people import COUNTS, BoundedRows, RowBound, bounded, require_identifying
from incrowd.sources.positions import positions, require_fitting
from incrowd.sources.spark_codes import SparkMatch, column_kind, decision, match, plain_texts
from incrowd.sources.tally import (
    Place,
    conclude,
    conclude_columns,
    dropped_code,
    dropping_code,
    outside_code,
    require_all,
    share_words,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from incrowd.sources.duckdb import DuckDBSource

TOO_MANY = "cells-too-many"
_SHOWN_VALUES = 5
# How many times as many different rows as are looked at there may be for grouping them first. Of ten million rows with
# eight columns, this takes 0.86 of the processor time where 20 thousand different ones are estimated, about the same
# where it is 90 thousand, and 1.8 times as much where it is 320 thousand.
_DIFFERENT = 4
# Up to how many values, in one list and in all lists together, comparing one after the other costs no more than a join.
# Processor time of driver and executors, for three million rows of texts: one column, compared and joined, 0.5 s and
# 0.7 s for 8 values, 0.5 s and 0.5 s for 16, 0.7 s and 0.5 s for 32, 1.1 s and 0.5 s for 64; four columns, 1.2 s and
# 1.5 s for 8 values each, 1.4 s and 1.3 s for 12, 1.7 s and 1.5 s for 16. From about a hundred comparisons on, Java
# leaves the method uncompiled, and 128 take ten times as long as the join, which takes a quarter more for 5000 values
# than for 64.
_SHORT, _DECISIONS = 16, 48


@dataclass(frozen=True)
class CodedRows:
    """The rows of a table as words of codes.

    Attributes:
        frame: one column for each word, called w0, w1, …; one row for each record.
        words: which column's codes stand where in each word.
        codings: how the columns were coded.
    """

    frame: DataFrame
    words: list[list[Place]]
    codings: tuple[Coding, ...]

    @property
    def names(self) -> list[str]:
        """The columns of the frame."""
        return [f"w{i}" for i in range(len(self.words))]

    @property
    def possible_cells(self) -> int:
        """How many different rows there could be."""
        return prod(len(coding.labels) + 2 for coding in self.codings)

    @property
    def keys(self) -> list[str]:
        """The code of each column, as an expression."""
        return [
            f"CAST(shiftright({name}, {place.shift}) & {2**place.width - 1}L AS INT)"
            for name, word in zip(self.names, self.words, strict=True)
            for place in word
        ]

    @property
    def dropped(self) -> str:
        """Whether a coding leaves a row out, as an expression."""
        leaving = [(key, dropping_code(coding)) for key, coding in zip(self.keys, self.codings, strict=True)]
        return " OR ".join(f"{key} = {code}" for key, code in leaving if code is not None) or "false"

    def codes(self, table: pa.Table) -> list[np.ndarray]:
        """The codes of each column, from words that Spark handed over."""
        return [
            place.keys(table.column(name).to_numpy())
            for name, word in zip(self.names, self.words, strict=True)
            for place in word
        ]


class SparkSource:
    """A table that Spark scans, on whatever cluster its session runs."""

    def __init__(self, frame: DataFrame, options: Options, *, rows: int | None = None) -> None:
        self._names = tuple(frame.columns)
        check_names(self._names)
        self._types = [field.dataType for field in frame.schema.fields]
        # By position: Spark takes Age and age for the same, and a dot for a way into a struct.
        self._frame = frame.toDF(*(f"c{i}" for i in range(len(self._names))))
        self._options = options
        self._rows = rows

    def columns(self) -> list[SourceColumn]:
        return [SourceColumn(n, column_kind(t)) for n, t in zip(self._names, self._types, strict=True)]

    def count_by(self, codings: Wanted, *, progress: Progress | None = None) -> Histogram:
        """Codes and counts in one job, as `Source.count_by` promises.

        Raises:
            DataError: there are more cells than `Options.most_cells`; no more than one in excess came to the driver.
        """
        codings, names = told_apart(codings)
        if names:
            return self.fetched().count_by(names)
        with reading():
            cells, rows = self._collect(codings)
        codes, counts = rows.codes(cells), cells.column("n").to_numpy()
        self.require_whole(int(counts.sum()))
        histogram = conclude(codings, codes, counts, self._examples(codings) if self._options.show_values else None)
        if progress is not None:
            progress(1.0)
        return histogram

    def count_crowds(
        self, codings: Sequence[Coding], asked: CrowdsAsked, *, progress: Progress | None = None
    ) -> Histogram | Crowds | KeptTable:
        """All cells or, if there are too many, those that can be published, as `incrowd.sources.at_least` says.

        Raises:
            DataError: more than `Options.most_cells` could be published at levels that are settled.
        """
        most = self._options.most_cells
        with reading():
            rows = self.coded(codings)
            large = rows.possible_cells > most and seem_more(Counter(_first(rows.frame)).values(), most)
        if not large:
            try:
                return self.count_by(codings, progress=progress)
            except DataError as error:
                if error.code != TOO_MANY:
                    raise
        whole = self._whole(rows)
        coarse = asked.coarse(codings)
        with reading():
            shown = self.coded(coarse)
            cells = shown.frame.where(f"NOT ({shown.dropped})").groupBy(*shown.names).agg(fn.expr("count(1) AS n"))
        if asked.at_least is None:
            found: Crowds | KeptTable = self._keep(shown, cells, whole)
        else:
            found = self._crowds(shown, cells, whole, asked.at_least)
        if progress is not None:
            progress(1.0)
        return found

    def _whole(self, rows: CodedRows) -> Marginals:
        """The counts of each column by itself."""
        with reading():
            columns = columns_found(_columns_of(rows).toArrow())
        examples = self._examples(rows.codings) if self._options.show_values else None
        whole, records = conclude_columns(rows.codings, columns, examples)
        self.require_whole(records)
        return whole

    def _crowds(self, shown: CodedRows, cells: DataFrame, whole: Marginals, at_least: int) -> Crowds:
        """The cells with so many records; of others, how many there are of each size."""
        with reading():
            kept = [f"CASE WHEN n >= {at_least} THEN {name} ELSE 0L END AS {name}" for name in shown.names]
            sizes = cells.selectExpr(*kept, "n").groupBy(*shown.names, "n").agg(fn.expr("count(1) AS cells"))
            found = handed_over(sizes, self._options.most_cells + at_least)
        of_size, counts = (found.column(name).to_numpy() for name in ("cells", "n"))
        shown_as = [(c.column, c.labels) for c in shown.codings]
        return crowds(shown_as, at_least, whole, of_size, shown.codes(found), counts)

    def _keep(self, shown: CodedRows, cells: DataFrame, whole: Marginals) -> KeptTable:
        """All cells, on the executors' disks."""
        from incrowd.sources.spark_kept import SparkKeeper, require_any_answer

        keeper = SparkKeeper(self._frame.sparkSession)
        try:
            pairs = zip(shown.keys, shown.codings, strict=True)
            codes = [f"CAST({key} AS {_type_for(c)}) AS k{i}" for i, (key, c) in enumerate(pairs)]
            keeper.keep_frame(CELLS, cells.selectExpr(*codes, "n"))
            table = KeptTable(keeper, shown.codings, whole, self._options.most_cells)
            require_any_answer(self._frame.sparkSession, table.cells, len(codes))
            return table
        except BaseException:
            keeper.close()
            raise

    def count_people(
        self, codings: Sequence[Coding], bound: RowBound, *, progress: Progress | None = None
    ) -> BoundedRows:
        """Codes, bounds and counts in one job, as `incrowd.sources.people` says."""
        rows, frame = self._judged(codings, bound)
        names = [f"CASE WHEN what = {COUNTS} THEN {name} ELSE 0L END AS {name}" for name in rows.names]
        groups = frame.selectExpr("what", "first", *names).groupBy("what", *rows.names)
        with reading():
            cells = handed_over(
                groups.agg(fn.expr("count_if(first) AS people"), fn.expr("count(1) AS n")), self._options.most_cells
            )
        what, people, counts = (cells.column(name).to_numpy() for name in ("what", "people", "n"))
        self.require_whole(int(counts.sum()))
        examples = self._examples(codings) if self._options.show_values else None
        found = bounded(bound, codings, what, people, rows.codes(cells), counts, examples)
        if progress is not None:
            progress(1.0)
        return found

    def _judged(self, codings: Sequence[Coding], bound: RowBound) -> tuple[CodedRows, DataFrame]:
        """The coded rows, and a frame of their words with what becomes of each row."""
        from incrowd.sources.spark_people import identified, judged

        at, places = positions(bound.names, self._names), self._places(codings)
        kinds = [self._types[i] for i in at]
        require_identifying(bound, [column_kind(kind) for kind in kinds])
        with reading():
            frame, others = identified(self._frame, bound, at, kinds, self._options)
            rows = self._coded(codings, places, frame, *others)
            return rows, judged(rows.frame, rows.words, codings, bound)

    def beginning(self, rows: int) -> SparkSource:
        """So many rows of the table."""
        return SparkSource(self._frame.limit(rows).toDF(*self._names), self._options)

    def require_whole(self, counted: int) -> None:
        """Whether so many rows are all that the files say they have, where they could be asked.

        Raises:
            DataError: they are more or fewer.
        """
        require_all(counted, self._rows)

    def fetched(self) -> DuckDBSource:
        """The table for those who take values as they are (see `incrowd.sources.values`)."""
        from incrowd.sources.databases import Field
        from incrowd.sources.spark_rows import FetchedFromSpark, SparkRows

        kinds = [column_kind(type_) for type_ in self._types]
        values = []
        for i, (kind, type_) in enumerate(zip(kinds, self._types, strict=True)):
            nothing = {"null": "CAST(NULL AS STRING)", "other": "CAST(NULL AS ARRAY<INT>)"}.get(kind)
            values.append(f"{nothing or plain_texts(f'c{i}', type_)} AS c{i}")
        fields = tuple(Field(name, kind, "", pa.null()) for name, kind in zip(self._names, kinds, strict=True))
        return FetchedFromSpark(SparkRows(fields, self._frame.selectExpr(*values)), self._options, self)

    def coded(self, codings: Sequence[Coding]) -> CodedRows:
        """The rows of the table, coded; those that a coding refuses have codes of their own (see `tally`)."""
        return self._coded(codings, self._places(codings), self._frame)

    def _places(self, codings: Sequence[Coding]) -> list[int]:
        """Where the columns of the codings are, each of which can hold what is wanted of it."""
        at = positions([coding.column for coding in codings], self._names)
        require_fitting(codings, [column_kind(self._types[i]) for i in at])
        return at

    def _coded(self, codings: Sequence[Coding], at: Sequence[int], frame: DataFrame, *others: str) -> CodedRows:
        """The rows of a frame with columns of this table, coded, and other columns as they are."""
        matches = self._matches(codings, at)
        words = share_words([m.keys for m in matches])
        packed = [
            f"{' | '.join(f'shiftleft(CAST({matches[p.column].key} AS BIGINT), {p.shift})' for p in word)} AS w{i}"
            for i, word in enumerate(words)
        ]
        return CodedRows(self._matched(frame, at, matches, *others).selectExpr(*packed, *others), words, tuple(codings))

    def _collect(self, codings: Sequence[Coding]) -> tuple[pa.Table, CodedRows]:
        """The cells with their counts `n`, and what their codes mean."""
        at = self._places(codings)
        raw = self._frame.selectExpr(*(f"{plain_texts(f'c{i}', self._types[i])} AS c{i}" for i in at))
        if not at or _repeats(raw):
            # To code each different row once costs less than to code every row; where few repeat, numbers are grouped
            # faster than what they stand for.
            alike = raw.groupBy(*(f"c{i}" for i in at)).agg(fn.expr("count(1) AS n"))
        else:
            alike = self._frame.selectExpr("*", "1L AS n")
        rows = self._coded(codings, at, alike, "n")
        cells = rows.frame.groupBy(*rows.names).agg(fn.expr("sum(n) AS n"))
        most = self._options.most_cells
        return cells.toArrow() if rows.possible_cells <= most else handed_over(cells, most), rows

    def _matches(self, codings: Sequence[Coding], at: Sequence[int]) -> list[SparkMatch]:
        return [
            match(coding, self._types[i], self._options, column=f"c{i}", value=f"v{number}", code=f"code{number}")
            for number, (coding, i) in enumerate(zip(codings, at, strict=True))
        ]

    def _matched(self, frame: DataFrame, at: Sequence[int], matches: Sequence[SparkMatch], *others: str) -> DataFrame:
        """Every row of a frame, with its typed values v0, v1, … and what the lookups say of them."""
        frame = frame.selectExpr(
            *others, *(f"c{i}" for i in at), *(f"{m.value} AS v{number}" for number, m in enumerate(matches))
        )
        lookups = {number: m.lookup for number, m in enumerate(matches) if m.lookup is not None}
        short = _short({number: lookup.num_rows for number, lookup in lookups.items()})
        frame = frame.selectExpr("*", *(f"{decision(f'v{i}', lookups[i])} AS code{i}" for i in short))
        for number, lookup in lookups.items():
            if number not in short:
                entries = lookup.rename_columns([f"key{number}", f"code{number}"])
                table = fn.broadcast(self._frame.sparkSession.createDataFrame(entries))
                frame = frame.join(table, fn.expr(f"v{number} = key{number}"), "left")
        return frame

    def _examples(self, codings: Sequence[Coding]) -> Any:
        def examples(column: str) -> list[str]:
            [(coding, i)] = [(c, self._names.index(c.column)) for c in codings if c.column == column]
            with reading():
                [how] = self._matches([coding], [i])
                outside = self._matched(self._frame, [i], [how]).where(f"{how.key} = {outside_code(coding)}")
                shown = outside.selectExpr(f"CAST(c{i} AS STRING) AS x").distinct().orderBy("x")
                return [row.x for row in shown.limit(_SHOWN_VALUES).collect()]

        return examples


def _columns_of(rows: CodedRows) -> DataFrame:
    """How many records have each code, for each column by itself; of rows that are left out, `dropped_code`."""
    pairs = list(enumerate(zip(rows.keys, rows.codings, strict=True)))
    keys = [f"CASE WHEN {rows.dropped} THEN {dropped_code(c)} ELSE {key} END AS k{i}" for i, (key, c) in pairs]
    names = [f"k{i}" for i, _ in pairs]
    return rows.frame.selectExpr(*keys).groupingSets([[fn.col(n)] for n in names], *names).agg(fn.expr("count(1) AS n"))


def _type_for(coding: Coding) -> str:
    """The smallest type for the codes of a column."""
    labels = len(coding.labels)
    return "TINYINT" if labels <= 1 << 7 else "SMALLINT" if labels <= 1 << 15 else "INT"


def handed_over(cells: DataFrame, most: int) -> pa.Table:
    """So many cells at most, as they come to the driver.

    Raises:
        DataError: there are more; one more came.
    """
    found = cells.limit(most + 1).toArrow()
    if found.num_rows > most:
        raise DataError(
            f"The table has more than {most:,} different combinations of values: too many to be collected.",
            code=TOO_MANY,
            remedy="Publish fewer columns, or coarser ones. If the driver has the memory (some 100 bytes for each "
            "combination), raise the limit (most_cells).",
        )
    return found


def _repeats(rows: DataFrame) -> bool:
    """Whether rows seem to repeat each other: by the first ones, since it decides nothing but how fast all goes."""
    return _few(_first(rows))


def seem_equal(rows: DataFrame) -> bool:
    """The same of rows that are at hand, so that to look at some of them costs little."""
    with reading():
        return _few(_hashes(rows))


def _few(first: Sequence[Any]) -> bool:
    return bool(first) and not seem_more(Counter(first).values(), _DIFFERENT * len(first))


def _first(rows: DataFrame) -> list[Any]:
    """What tells the first rows apart; nothing, if what comes before an exchange would have to be done twice."""
    classic = getattr(rows, "_jdf", None)
    if classic is None or "Exchange" in classic.queryExecution().executedPlan().toString():
        return []
    return _hashes(rows)


def _hashes(rows: DataFrame) -> list[Any]:
    # Not by way of Arrow, which would make Spark look at the first rows of each of its partitions.
    return rows.selectExpr("xxhash64(*) AS seen").limit(FIRST_ROWS).collect()


def _short(sizes: Mapping[int, int]) -> set[int]:
    """The lookups that are faster as decisions: not many values each, and together too few for a method to grow so
    long that Java does not compile it."""
    short, left = set(), _DECISIONS
    for number, size in sorted(sizes.items(), key=lambda item: item[1]):
        left -= size
        if size > _SHORT or left < 0:
            break
        short.add(number)
    return short


def spark_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """What Spark raises, and others. The small client of Spark Connect has no Py4J, and none of its errors."""
    py4j = sys.modules.get("py4j.protocol")
    return (PySparkException, *others) if py4j is None else (PySparkException, py4j.Py4JError, *others)


@contextmanager
def reading() -> Iterator[None]:
    """What Spark finds wrong meanwhile becomes an error of ours: its own messages quote the data."""
    try:
        yield
    except spark_errors() as error:
        raise _translated(error) from None


def _translated(error: Exception) -> IncrowdError:
    text = str(error)
    condition = (error.getCondition() if isinstance(error, PySparkException) else None) or ""
    if "maxResultSize" in text:
        return DataError(
            "The table has more different combinations of values than Spark may hand over.",
            code=TOO_MANY,
            remedy="Publish fewer columns, or coarser ones; or raise spark.driver.maxResultSize.",
        )
    if "OutOfMemoryError" in text or "No space left" in text:
        return DataError(
            "Counting needs more memory or temporary disk space than the cluster has.",
            code="data-memory",
            remedy="Give executors and driver more memory, or Spark more partitions.",
        )
    if condition.startswith(("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")):
        return DataError("Spark finds no such file or table.", code="data-not-found", remedy="Check its name.")
    if condition.startswith("COLUMN_ALREADY_EXISTS"):
        return DataError(
            "Two columns of the table have the same name, or names that differ in capitals only.",
            code="data-columns",
            remedy="Rename one of them, or set spark.sql.caseSensitive.",
        )
    if condition.startswith(("PARQUET_TYPE_ILLEGAL", "PARQUET_TYPE_NOT")):
        return DataError(
            "A column of the Parquet files is of a type that Spark does not read.",
            code="column-type",
            remedy="Spark reads moments down to microseconds, not nanoseconds: write the files accordingly.",
        )
    if condition.startswith(("PARSE_", "UNRESOLVED_COLUMN", "DATATYPE_MISMATCH", "AMBIGUOUS_REFERENCE")):
        return InternalError(f"Spark refused a query ({condition}).")
    return DataError(
        f"Spark could not read the table to its end{f' ({condition})' if condition else ''}.",
        code="data-unreadable",
        remedy="Spark's own log says more. It may quote the data.",
    )
