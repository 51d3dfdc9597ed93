"""Counting with DuckDB: files and in-memory tables on one machine, in one scan, in bounded memory."""

# ruff: noqa: S608 - queries are put together here from names of our own and quoted literals

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from incrowd.core.errors import DataError, IncrowdError, InternalError
from incrowd.core.machine import memory
from incrowd.domain import Coding
from incrowd.histogram import Histogram, arrow_integers, arrow_texts
from incrowd.marginals import Crowds, Marginals
from incrowd.sources import Progress, SourceColumn, Wanted, told_apart
from incrowd.sources.at_least import FIRST_ROWS, CrowdsAsked, columns_found, columns_query, crowds_query, seem_more
from incrowd.sources.duckdb_codes import Match, column_kind, match
from incrowd.sources.duckdb_people import dropped_rows
from incrowd.sources.files import FileTable, ParquetFiles
from incrowd.sources.kept import CELLS, KeptTable, crowds
from incrowd.sources.memory import ArrowTable
from incrowd.sources.options import OTHER_ENCODING, Options
from incrowd.sources.people import BoundedRows, RowBound, bounded, require_identifying
from incrowd.sources.positions import positions, require_fitting
from incrowd.sources.tally import (
    Examples,
    Place,
    conclude,
    conclude_columns,
    dropped_code,
    dropping_code,
    outside_code,
    require_all,
    share_words,
)
from incrowd.sources.workspace import workspace

Scan = Callable[[Sequence[int]], str]

# The keys that one integer holds: how they came about, and where they stand.
Word = list[tuple[Match, Place]]

_LEAST_MEMORY = 2**29
_RESULT_ROWS = 2**17
_POLL_SECONDS = 0.1
_SHOWN_VALUES = 5
_MISTAKES = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
    duckdb.InternalException,
    duckdb.NotImplementedException,
)


class _TooManyGroups(Exception):  # noqa: N818 - nobody sees it
    """There are more groups than wanted."""


class DuckDBSource:
    """A table that DuckDB scans."""

    def __init__(self, table: FileTable, options: Options) -> None:
        self._table = table
        self._options = options

    def columns(self) -> list[SourceColumn]:
        everything = range(len(self._table.names))
        with self.connect() as (connection, scan):
            types = _types(connection, scan(everything), everything)
        return [SourceColumn(name, column_kind(types[i])) for i, name in enumerate(self._table.names)]

    def count_by(self, codings: Wanted, *, progress: Progress | None = None) -> Histogram:
        """Codes and counts in one scan, as `Source.count_by` promises."""
        codings, names = told_apart(codings)
        if names:
            from incrowd.sources.observed import count_observed

            return count_observed(self, names).histogram
        return self._count(codings, progress)

    def _count(self, codings: Sequence[Coding], progress: Progress | None, most: int | None = None) -> Histogram:
        """The table, if it has not more cells than that; else `_TooManyGroups`."""
        positions = self.positions([coding.column for coding in codings])
        with self.connect() as (connection, scan):
            relation, weight = self.gather(scan, dict(zip(positions, codings, strict=True)))
            types = _types(connection, relation, positions)

            def count(*, strict: bool) -> tuple[list[np.ndarray], np.ndarray]:
                matches = self._matches(codings, positions, types, strict=strict)
                for i, m in enumerate(matches):
                    _create_lookup(connection, f"lookup{i}", m)
                words = _words(matches)
                return _fetch(connection, _query(relation, positions, matches, words, weight), words, most=most)

            with self.recounting(scan) as require_whole, _polling(connection, progress):
                found = None
                if isinstance(self._table, ParquetFiles):
                    # If something is not declared, another scan tells what; the engine's error quotes it.
                    with suppress(duckdb.ConversionException):
                        found = count(strict=True)
                codes, counts = found or count(strict=False)
                require_whole(int(counts.sum()))

            return conclude(codings, codes, counts, self._examples(connection, scan, codings))

    def count_crowds(
        self, codings: Sequence[Coding], asked: CrowdsAsked, *, progress: Progress | None = None
    ) -> Histogram | Crowds | KeptTable:
        """All cells or, if there are too many, those that can be published, as `incrowd.sources.at_least` says."""
        if isinstance(self._table, ArrowTable) and self._table.once:
            return self.count_by(codings, progress=progress)
        most = self._options.most_cells
        if not self._seems_large(codings, most):
            with suppress(_TooManyGroups):
                return self._count(codings, progress, most)
        coarse = asked.coarse(codings)
        if asked.at_least is None:
            return self._keep(codings, coarse, progress)
        with (
            self.connect() as (connection, scan),
            self.recounting(scan) as require_whole,
            _polling(connection, progress),
        ):
            whole = self._whole(connection, scan, codings, require_whole)
            rows = self._coded(connection, scan, coarse)
            words = _words(rows.matches)
            packed = [_word(word) for word in words]
            query = crowds_query(rows.relation, packed, _counting(rows.weight), rows.dropped, asked.at_least)
            (cells, *codes), counts = _fetch(connection, query, words, beside=1)
        return crowds([(c.column, c.labels) for c in coarse], asked.at_least, whole, cells, codes, counts)

    def _whole(
        self,
        connection: duckdb.DuckDBPyConnection,
        scan: Scan,
        codings: Sequence[Coding],
        require_whole: Callable[[int], None],
    ) -> Marginals:
        """The counts of each column by itself."""
        rows = self._coded(connection, scan, codings)
        answer = connection.sql(columns_query(rows.relation, rows.keys, rows.weight, _counting(rows.weight)))
        columns = columns_found(answer.to_arrow_table())
        whole, records = conclude_columns(codings, columns, self._examples(connection, scan, codings))
        require_whole(records)
        return whole

    def _keep(self, codings: Sequence[Coding], coarse: Sequence[Coding], progress: Progress | None) -> KeptTable:
        """All cells, in a database of this process."""
        from incrowd.sources.duckdb_kept import DuckDBKeeper

        keeper = DuckDBKeeper(self._options, _connection, _translated)
        try:
            with self.connect() as (connection, scan), self.recounting(scan) as require_whole:
                whole = self._whole(connection, scan, codings, require_whole)
            with keeper.reading() as (connection, work), _polling(connection, progress):
                rows = self._coded(connection, lambda at: self._table.attach(connection, work, at), coarse)
                words = _words(rows.matches)
                places = [(f"w{i}", at) for i, word in enumerate(words) for _, at in word]
                packed = [f"{_word(word)} AS w{i}" for i, word in enumerate(words)]
                alike = ", ".join(f"w{i}" for i in range(len(words)))
                counted = f"{alike}, {_counting(rows.weight)} AS n"
                weight = [] if rows.weight is None else [rows.weight]
                coded = f"SELECT {', '.join([*packed, *weight])} FROM {rows.relation} WHERE NOT ({rows.dropped})"
                cells = f"SELECT {counted} FROM ({coded}) GROUP BY {alike}"
                codes = ", ".join(
                    f"CAST(({w} >> {at.shift}) & {2**at.width - 1} AS INTEGER) AS k{at.column}" for w, at in places
                )
                keeper.keep(CELLS, f"SELECT {codes}, n FROM ({cells})")
            return KeptTable(keeper, coarse, whole, self._options.most_cells)
        except BaseException:
            keeper.close()
            raise

    def _seems_large(self, codings: Sequence[Coding], most: int) -> bool:
        """Whether the table seems to have more cells than that, by its first rows."""
        rows = self._table.rows
        if rows is None or rows <= most or prod(len(coding.labels) for coding in codings) <= most:
            return False
        with self.connect() as (connection, scan):
            first = self._coded(connection, scan, codings, FIRST_ROWS)
            words = _words(first.matches)
            groups = ", ".join(map(_word, words))
            query = f"SELECT {groups}, {_counting(first.weight)} FROM {first.relation} GROUP BY ALL"
            _, counts = _fetch(connection, query, words)
        return seem_more(counts.tolist(), most)

    def _coded(
        self,
        connection: duckdb.DuckDBPyConnection,
        scan: Scan,
        codings: Sequence[Coding],
        most: int | None = None,
    ) -> _CodedRows:
        """The rows of the table, or so many of them, whose keys are their codes."""
        positions = self.positions([coding.column for coding in codings])
        relation, weight = self.gather(scan, dict(zip(positions, codings, strict=True)))
        if most is not None:
            relation = f"(FROM {relation} LIMIT {most})"
        matches = self._matches(codings, positions, _types(connection, relation, positions), exact=True)
        for i, m in enumerate(matches):
            _create_lookup(connection, f"lookup{i}", m)
        return _CodedRows(_matched(relation, positions, matches, weight), tuple(codings), matches, weight)

    def count_people(
        self,
        codings: Sequence[Coding],
        bound: RowBound,
        *,
        whose: bool = False,
        progress: Progress | None = None,
    ) -> BoundedRows:
        """Codes, bounds and counts in one scan, as `incrowd.sources.people` says.

        Of a table elsewhere the rows come here: which of them count is decided in one place, whatever databases think
        of order and equality.
        """
        from incrowd.sources.duckdb_people import bounding_query, exploded

        at = self.positions(bound.names)
        positions = self.positions([coding.column for coding in codings])
        every = list(dict.fromkeys([*positions, *at]))
        with self.connect() as (connection, scan):
            relation = exploded(*self.held(scan, every), every)
            types = _types(connection, relation, every)
            require_identifying(bound, [column_kind(types[i]) for i in at])
            # Keys that are the codes: so they are the same in every engine.
            matches = self._matches(codings, positions, types, exact=True)
            for i, m in enumerate(matches):
                _create_lookup(connection, f"lookup{i}", m)
            words = _words(matches)
            query = bounding_query(
                _matched(relation, every, matches),
                [_word(word) for word in words],
                dropped_rows([(m, dropping_code(c)) for m, c in zip(matches, codings, strict=True)]),
                bound,
                at,
                types,
                self._options,
                whose=whose,
            )
            with self.recounting(scan) as require_whole, _polling(connection, progress):
                (what, people, *codes), counts = _fetch(connection, query, words, beside=3 if whose else 2)
                require_whole(int(counts.sum()))
            persons = codes.pop(0) if whose else None
            examples = self._examples(connection, scan, codings)
            return bounded(bound, codings, what, people, codes, counts, examples, persons)

    def _examples(
        self, connection: duckdb.DuckDBPyConnection, scan: Scan, codings: Sequence[Coding]
    ) -> Examples | None:
        """Finds values outside a column's domain, if they may be shown."""

        def examples(column: str) -> list[str]:
            [coding] = [c for c in codings if c.column == column]
            [position] = self.positions([column])
            again, _ = self.gather(scan, {position: None})
            [how] = self._matches([coding], [position], _types(connection, again, [position]), exact=True)
            _create_lookup(connection, "lookup0", how)
            query = _examples_query(again, position, how, outside_code(coding))
            return [value for (value,) in connection.sql(query).fetchall()]

        return examples if self._options.show_values else None

    @contextmanager
    def connect(self) -> Iterator[tuple[duckdb.DuckDBPyConnection, Scan]]:
        """A connection, and a function that opens the columns at given positions there.

        The function returns what to write after FROM; the columns are called ``c<position>``. What the engine finds
        wrong meanwhile becomes an error of ours: its own messages quote the data.
        """
        with workspace(self._options.temp_directory) as work:
            connection = _connection(self._options, work)
            try:
                yield connection, lambda positions: self._table.attach(connection, work, positions)
            except (duckdb.Error, UnicodeDecodeError) as error:
                raise _translated(error) from None
            finally:
                connection.close()

    def gather(self, scan: Scan, wanted: Mapping[int, Coding | None]) -> tuple[str, str | None]:
        """What to count: a relation with the columns at these positions, and its column of counts if rows are groups.

        Values of a column with a coding may be replaced by others that it codes alike.
        """
        return self.held(scan, list(wanted))

    def held(self, scan: Scan, positions: Sequence[int]) -> tuple[str, str | None]:
        """The rows as they are held, and their column of counts if they are groups already."""
        return scan(positions), None

    def beginning(self, rows: int) -> DuckDBSource | None:
        """So many rows of the table; None of one in memory that would have to be worked out, or can be read once."""
        if isinstance(self._table, ArrowTable) and self._table.rows is None:
            return None
        return _Beginning(self._table, self._options, rows)

    @property
    def options(self) -> Options:
        """How the table is read."""
        return self._options

    @property
    def drawn_from(self) -> int | None:
        """How many records the table has, if a scan shows only some of them; None if it shows all."""
        return None

    @contextmanager
    def recounting(self, scan: Scan) -> Iterator[Callable[[int], None]]:  # noqa: ARG002 - others ask by way of it
        """Counts the records without the engine, and checks what it does not check, beside whatever it does meanwhile.

        The function that this gives refuses any other number of records.
        """
        given_up = threading.Event()
        with ThreadPoolExecutor(max_workers=1) as beside:
            verification = beside.submit(self._table.verify, given_up)

            def require_whole(counted: int) -> None:
                verification.result()
                require_all(counted, self._table.rows)

            try:
                yield require_whole
            except Exception:
                # A damaged file is the better explanation for whatever the scan stumbled over.
                if (fault := verification.exception()) is not None:
                    raise fault from None
                raise
            finally:
                given_up.set()

    def positions(self, names: Sequence[str]) -> list[int]:
        """Where the columns of these names stand."""
        return positions(names, self._table.names)

    def _matches(
        self, codings: Sequence[Coding], positions: Sequence[int], types: Mapping[int, str], **how: bool
    ) -> list[Match]:
        require_fitting(codings, [column_kind(types[i]) for i in positions])
        return [
            match(coding, f"c{i}", types[i], self._options, named=f"v{number}", lookup=f"lookup{number}", **how)
            for number, (coding, i) in enumerate(zip(codings, positions, strict=True))
        ]


@dataclass(frozen=True)
class _CodedRows:
    """What to count: rows, how their columns are coded, and their column of counts if they are groups."""

    relation: str
    codings: tuple[Coding, ...]
    matches: Sequence[Match]
    weight: str | None

    @property
    def dropped(self) -> str:
        """Whether a coding leaves a row out."""
        return dropped_rows([(m, dropping_code(c)) for m, c in zip(self.matches, self.codings, strict=True)])

    @property
    def keys(self) -> list[str]:
        """The code of each column; of rows that are left out, `dropped_code`."""
        pairs = zip(self.matches, self.codings, strict=True)
        return [f"CASE WHEN {self.dropped} THEN {dropped_code(c)} ELSE {m.key} END" for m, c in pairs]


class _Beginning(DuckDBSource):
    """The first rows of a table."""

    def __init__(self, table: FileTable, options: Options, rows: int) -> None:
        super().__init__(table, options)
        self._rows = rows

    def held(self, scan: Scan, positions: Sequence[int]) -> tuple[str, str | None]:
        relation, weight = super().held(scan, positions)
        return f"(FROM {relation} LIMIT {self._rows})", weight


def _connection(options: Options, work: Path) -> duckdb.DuckDBPyConnection:
    config: dict[str, Any] = {
        "memory_limit": options.memory_limit or f"{max(memory() // 2, _LEAST_MEMORY)}B",
        "temp_directory": str(work / "spill"),
        "preserve_insertion_order": "false",
        # Nothing is fetched from a network, and no variable of the caller is taken for a table.
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
        # Smallest and largest values noted in a file may be wrong or leave out not-a-numbers: values are looked at.
        # Joins stay as they are written: how long a stream is nobody knows, the engine takes it for one row, and would
        # collect the whole table in memory in order to run the few lines of a lookup past it.
        "disabled_optimizers": "statistics_propagation,join_order,build_side_probe_side",
    }
    if options.threads is not None:
        config["threads"] = options.threads
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _types(connection: duckdb.DuckDBPyConnection, relation: str, positions: Sequence[int]) -> dict[int, str]:
    if not positions:
        return {}
    columns = ", ".join(f"c{i}" for i in positions)
    types = connection.sql(f"SELECT {columns} FROM {relation}").types
    return dict(zip(positions, map(str, types), strict=True))


def _create_lookup(connection: duckdb.DuckDBPyConnection, name: str, how: Match) -> None:
    if how.listed is not None:
        _create_list(connection, name, how.listed)
    if how.lookup is None:
        return
    columns = [arrow_texts(how.lookup.values), arrow_integers(how.lookup.codes.astype(np.int32))]
    connection.register("entries", pa.Table.from_arrays(columns, names=["value", "code"]))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT CAST(value AS {how.lookup.type}) AS value, code FROM entries"
    )
    connection.unregister("entries")


def _create_list(connection: duckdb.DuckDBPyConnection, name: str, texts: Sequence[str]) -> None:
    columns = [arrow_texts(texts), arrow_integers(np.arange(len(texts)))]
    connection.register("entries", pa.Table.from_arrays(columns, names=["value", "place"]))
    connection.execute(f"CREATE TYPE {name} AS ENUM (SELECT value FROM entries ORDER BY place)")
    connection.unregister("entries")
    found = connection.execute(f"SELECT unnest(enum_range(NULL::{name}))").fetchall()
    if [text for (text,) in found] != list(texts):
        raise InternalError("The engine did not keep a list of values as it was given.")


def _words(matches: Sequence[Match]) -> list[Word]:
    return [[(matches[at.column], at) for at in word] for word in share_words([m.keys for m in matches])]


def _query(
    relation: str, positions: Sequence[int], matches: Sequence[Match], words: Sequence[Word], weight: str | None
) -> str:
    groups = [_word(word) for word in words]
    rows = _matched(relation, positions, matches, weight)
    return f"SELECT {', '.join([*groups, _counting(weight)])} FROM {rows} GROUP BY ALL"


def _counting(weight: str | None) -> str:
    return "count(*)" if weight is None else f"CAST(coalesce(sum({weight}), 0) AS BIGINT)"


def _word(word: Word) -> str:
    # What is null anywhere makes the whole quick word null, and only then is the slower one worked out.
    quick, slow = _packed((m.quick, at.shift) for m, at in word), _packed((m.key, at.shift) for m, at in word)
    return f"coalesce({quick}, {slow})"


def _packed(keys: Iterable[tuple[str, int]]) -> str:
    return " | ".join(f"({key}) * {2**shift}::BIGINT" for key, shift in keys)


def _matched(relation: str, positions: Sequence[int], matches: Sequence[Match], weight: str | None = None) -> str:
    """Every row of the relation, with its typed values v0, v1, … and what the lookups say of them."""
    columns = [f"c{i}" for i in positions] + ([] if weight is None else [weight])
    values = [f"{m.value} AS v{i}" for i, m in enumerate(matches)]
    joins = [f" LEFT JOIN lookup{i} ON v{i} = lookup{i}.value" for i, m in enumerate(matches) if m.lookup]
    return f"(SELECT {', '.join([*columns, *values]) or '1'} FROM {relation}){''.join(joins)}"


def _fetch(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    words: Sequence[Word],
    *,
    beside: int = 0,
    most: int | None = None,
) -> tuple[list[np.ndarray], np.ndarray]:
    """The codes of each group, column by column, and its count; before the codes, what the query says beside them.

    Raises:
        _TooManyGroups: there are more than that.
    """
    batches, fetched = [], 0
    for batch in connection.sql(query).to_arrow_reader(_RESULT_ROWS):
        fetched += batch.num_rows
        if most is not None and fetched > most:
            raise _TooManyGroups
        *found, counts = (np.from_dlpack(column) for column in batch.columns)
        packed = zip(found[beside:], words, strict=True)
        batches.append(
            [*found[:beside], *(_codes(integers, *place) for integers, word in packed for place in word), counts]
        )
    if not batches:
        width = beside + sum(map(len, words))
        return [np.zeros(0, dtype=np.uint8) for _ in range(width)], np.zeros(0, dtype=np.int64)
    *codes, counts = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return codes, counts


def _codes(integers: np.ndarray, how: Match, at: Place) -> np.ndarray:
    keys = at.keys(integers)
    return keys if how.codes is None else how.codes[keys]


def _examples_query(relation: str, position: int, how: Match, outside: int) -> str:
    return (
        f"SELECT DISTINCT CAST(c{position} AS VARCHAR) FROM {_matched(relation, [position], [how])} "
        f"WHERE {how.key} = {outside} ORDER BY 1 LIMIT {_SHOWN_VALUES}"
    )


@contextmanager
def _polling(connection: duckdb.DuckDBPyConnection, progress: Progress | None) -> Iterator[None]:
    if progress is None:
        yield
        return
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    done = threading.Event()
    stopped: list[Exception] = []  # by whoever is told

    def poll() -> None:
        try:
            while not done.wait(_POLL_SECONDS):
                percent = connection.query_progress()
                if percent >= 0:
                    progress(min(percent / 100, 1.0))
        except Exception as error:  # noqa: BLE001 - it is raised where the count was asked for
            stopped.append(error)

    poller = threading.Thread(target=poll, daemon=True)
    poller.start()
    try:
        yield
    finally:
        done.set()
        poller.join()
    if stopped:
        raise stopped[0]
    progress(1.0)


def _translated(error: Exception) -> IncrowdError:
    """What an error of the engine means to the person, in words of ours."""
    text = str(error)
    line = re.search(r"(?:on Line: |in line )(\d+)", text)
    where = f" (line {line[1]})" if line else ""
    details = {"line": int(line[1])} if line else {}

    def data_error(message: str, code: str, remedy: str) -> DataError:
        return DataError(message, code=code, remedy=remedy, details=details)

    if isinstance(error, duckdb.OutOfMemoryException) or "No space left" in text or "max_temp_directory_size" in text:
        return data_error(
            "Counting needs more memory or temporary disk space than it may use.",
            "data-memory",
            "Give this process more memory, or TMPDIR a place with more room for temporary files.",
        )
    if isinstance(error, UnicodeDecodeError) or re.search(r"[Ii]nvalid unicode|UTF-8|not utf-8", text):
        return data_error(
            f"The file is not text in UTF-8{where}.",
            "data-encoding",
            OTHER_ENCODING,
        )
    if "Expected Number of Columns" in text:
        return data_error(
            f"A line has more or fewer fields than the header{where}.",
            "data-malformed",
            "Correct the line. If many are wrong, the delimiter may be another one (delimiter).",
        )
    if "unterminated quote" in text:
        return data_error(
            f"A quoted field is not closed properly{where}.",
            "data-malformed",
            "Close it; quotes inside quoted fields are doubled.",
        )
    if "Maximum line size" in text or "maximum_object_size" in text:
        return data_error(
            f"A line is too long to be a record{where}.",
            "data-line-too-long",
            "Look for a quote that is not closed, or for line ends that are lacking.",
        )
    if "state machine reached an invalid state" in text:
        return data_error(
            "Line ends are mixed, or a field holds a line end without being quoted.",
            "data-malformed",
            "Use the same line end throughout the file.",
        )
    if "JSON" in text:
        return data_error(f"A line is not a well-formed JSON object{where}.", "data-malformed", "Correct the line.")
    if isinstance(error, _MISTAKES):
        return InternalError(f"The engine refused a query ({type(error).__name__}).")
    return data_error("The table is damaged or cannot be read to its end.", "data-unreadable", "Get a complete copy.")
