"""Tables in a database, which groups and counts its rows itself.

One statement does the work: ``SELECT values, count(*) ... GROUP BY values``, in which values that are coded alike have
been folded into one (`incrowd.sources.folds`). What the values mean is decided here, by the rules and the code that
decide it for every other table, so a count does not depend on how a database compares, rounds or prints. Where nothing
can be folded the groups are as many as the distinct rows; they are streamed, never collected in memory.

An audit or a comparison, which takes values as they are, counts the groups in the same way. Only what needs the rows
themselves, drafting a policy, has the columns streamed, in the same snapshot.
"""

# ruff: noqa: S608 - statements are put together from quoted names and literals

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from incrowd.core.errors import DataError, IncrowdError, InternalError
from incrowd.domain import Coding
from incrowd.sources import SourceColumn
from incrowd.sources.duckdb import DuckDBSource, Scan
from incrowd.sources.duckdb_codes import decision
from incrowd.sources.files import FileTable
from incrowd.sources.folds import Fold, Listing, Steps
from incrowd.sources.memory import check_names
from incrowd.sources.options import Options
from incrowd.sources.positions import require_fitting
from incrowd.sources.tally import require_all

if TYPE_CHECKING:
    import duckdb

Run = Callable[[str], Iterable[pa.RecordBatch]]

_SHOWN_TABLES = 10


@dataclass(frozen=True)
class Field:
    """A column of a database.

    Attributes:
        name: its name, exactly.
        kind: what its values surely are, in the words of `SourceColumn`.
        value: the SQL expression of its value as it is to be fetched.
        type: what comes, as an Arrow type.
        restored: the type that the engine here is to make of it, if it is another.
    """

    name: str
    kind: str
    value: str
    type: pa.DataType
    restored: str | None = None

    def chosen(self, position: int, came: str, *, as_it_is: bool = False) -> str:
        """What the engine here is to make of what came."""
        return f"{came if as_it_is or self.restored is None else f'CAST({came} AS {self.restored})'} AS c{position}"


class Dialect(Protocol):
    """How a database wants to be spoken to."""

    def folded(self, field: Field, coding: Coding, options: Options) -> tuple[str, pa.DataType] | None:
        """The SQL expression of a column's value, folded, and what comes of it; None where nothing can be folded."""
        ...

    def fetched(self, name: str) -> list[str]:
        """What is fetched of the value of this name, as SQL expressions that are never null if types depend on it."""
        ...

    def keys(self, name: str, coding: Coding | None, options: Options) -> list[str]:
        """What to group by so that values of this name are equal only if they are the same, or coded alike."""
        ...

    def types(self, type_: pa.DataType) -> list[pa.DataType]:
        """The Arrow types of what is fetched."""
        ...

    def restored(self, fetched: Sequence[str], options: Options) -> str:
        """The value again, as an expression of the engine here."""
        ...


@dataclass(frozen=True)
class Answer:
    """What is fetched.

    Attributes:
        schema: what comes.
        chosen: what the engine here is to make of it: columns called ``c<position>``, and ``n`` if rows are groups.
        batches: fetches it; nothing is asked before.
        same_thread: whether it must be fetched by the thread that asks.
    """

    schema: pa.Schema
    chosen: Sequence[str]
    batches: Callable[[], Iterable[pa.RecordBatch]]
    same_thread: bool = False


# What answers for the columns at these positions, row by row or in groups; folded where there is a coding.
Ask = Callable[[Mapping[int, Coding | None], bool], Answer]


class Remote(FileTable, Protocol):
    """A table that is counted where it is."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns, in order."""
        ...

    def asking(self, options: Options) -> AbstractContextManager[Ask]:
        """Opens one consistent view of the table; what it raises are errors of ours."""
        ...

    def limited(self, rows: int) -> Remote | None:
        """A table of so many of its rows, whichever come first; None where there is none."""
        ...


@dataclass(frozen=True)
class Elsewhere:
    """What the engine here asks of every table, for one that it cannot scan by itself."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        check_names(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def rows(self) -> None:
        """To be asked for; see `DatabaseSource.recounting`."""
        return

    def attach(self, _connection: duckdb.DuckDBPyConnection, _workdir: Path, _positions: Sequence[int]) -> str:
        """Nothing is read outside a session; see `DatabaseSource.connect`."""
        raise InternalError("A database was to be read outside a session.")

    def verify(self, given_up: Event) -> None:
        """A database checks itself."""

    def limited(self, rows: int) -> Remote | None:  # noqa: ARG002 - others can
        return None


@dataclass(frozen=True)
class Database(Elsewhere):
    """A table of a database that is spoken to in SQL.

    Attributes:
        dialect: how.
        relation: the table's name in SQL.
        session: opens one consistent view of the database, in which statements are run.
    """

    dialect: Dialect
    relation: str
    session: Callable[[], AbstractContextManager[Run]]

    def limited(self, rows: int) -> Database:
        return replace(self, relation=f"(SELECT * FROM {self.relation} LIMIT {rows}) AS beginning")

    @contextmanager
    def asking(self, options: Options) -> Iterator[Ask]:
        """Opens one consistent view of the table."""
        with self.session() as run:
            yield lambda wanted, grouped: self._answer(wanted, grouped, options, run)

    def _answer(self, wanted: Mapping[int, Coding | None], grouped: bool, options: Options, run: Run) -> Answer:
        inner, outer, keys, chosen = [], [], [], []
        schema: list[tuple[str, pa.DataType]] = []
        for i, coding in wanted.items():
            field = self.fields[i]
            folded = None if coding is None else self.dialect.folded(field, coding, options)
            value, type_ = folded or (field.value, field.type)
            inner.append(f"{value} AS f{i}")
            parts = [f"f{i}_{part}" for part in range(len(self.dialect.types(type_)))]
            outer += [f"{sql} AS {part}" for sql, part in zip(self.dialect.fetched(f"f{i}"), parts, strict=True)]
            schema += list(zip(parts, self.dialect.types(type_), strict=True))
            keys += self.dialect.keys(f"f{i}", coding, options)
            restored = self.dialect.restored(parts, options)
            chosen.append(field.chosen(i, restored, as_it_is=folded is not None))
        if grouped or not wanted:
            outer.append("count(*) AS n" if grouped else "1 AS n")
            schema.append(("n", pa.int64()))
            chosen.append("n")
        source = f"(SELECT {', '.join(inner) or '1 AS f'} FROM {self.relation}) AS t"
        groups = f" GROUP BY {', '.join(keys)}" if grouped and keys else ""
        statement = f"SELECT {', '.join(outer)} FROM {source}{groups}"
        return Answer(pa.schema(schema), chosen, lambda: run(statement))


class DatabaseSource(DuckDBSource):
    """A table that is counted where it is."""

    def __init__(self, table: Remote, options: Options) -> None:
        super().__init__(table, options)
        self._remote = table

    def columns(self) -> list[SourceColumn]:
        return [SourceColumn(field.name, field.kind) for field in self._remote.fields]

    def beginning(self, rows: int) -> DatabaseSource | None:
        """So many rows of the table, as the database limits them."""
        table = self._remote.limited(rows)
        return None if table is None else DatabaseSource(table, self._options)

    @contextmanager
    def connect(self) -> Iterator[tuple[duckdb.DuckDBPyConnection, Scan]]:
        """As `DuckDBSource.connect`; all that is read meanwhile is of one moment."""
        with self._remote.asking(self._options) as ask:
            scan: _Scan | None = None
            try:
                with super().connect() as (connection, _):
                    scan = _Scan(ask, connection)
                    yield connection, scan
            except IncrowdError:
                # The database knows best what went wrong there.
                if scan is not None and scan.error is not None:
                    raise scan.error from None
                raise

    def gather(self, scan: Scan, wanted: Mapping[int, Coding | None]) -> tuple[str, str | None]:
        assert isinstance(scan, _Scan)  # noqa: S101 - made above
        coded = {i: coding for i, coding in wanted.items() if coding is not None}
        require_fitting(list(coded.values()), [self._remote.fields[i].kind for i in coded])
        return scan.register(wanted, grouped=True), "n"

    @contextmanager
    def recounting(self, scan: Scan) -> Iterator[Callable[[int], None]]:
        """As `DuckDBSource.recounting`: the database is asked for its number of records, in the same session."""
        assert isinstance(scan, _Scan)  # noqa: S101 - made above
        yield lambda counted: require_all(counted, scan.records())


class _Scan:
    """Makes columns of a table elsewhere known to the engine here, which then asks for them."""

    def __init__(self, ask: Ask, connection: duckdb.DuckDBPyConnection) -> None:
        self.error: DataError | None = None
        self._ask = ask
        self._connection = connection

    def __call__(self, positions: Sequence[int]) -> str:
        """The rows of these columns, streamed."""
        return self.register(dict.fromkeys(positions), grouped=False)

    def records(self) -> int:
        """How many records the database counts."""
        return sum(sum(batch.column("n").to_pylist()) for batch in self._ask({}, True).batches())

    def register(self, wanted: Mapping[int, Coding | None], *, grouped: bool) -> str:
        """These columns, and the number ``n`` of rows in each group."""
        answer = self._ask(wanted, grouped)

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                for batch in answer.batches():
                    arrays = [array.cast(field.type) for array, field in zip(batch.columns, answer.schema, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=answer.schema)
            except DataError as error:
                self.error = error
                raise
            except pa.ArrowException:
                self.error = DataError(
                    "The database sent values that do not fit the type of their column.",
                    code="data-unreadable",
                    remedy="Cast the column in a view or in the expression.",
                )
                raise self.error from None

        if not answer.same_thread:
            self._connection.register("incoming", pa.RecordBatchReader.from_batches(answer.schema, batches()))
            return f"(SELECT {', '.join(answer.chosen)} FROM incoming)"
        # The engine fetches streams in threads of its own, but keeps what is put into a table on disk if need be.
        self._connection.register("part", answer.schema.empty_table())
        self._connection.execute("CREATE OR REPLACE TEMP TABLE fetched AS FROM part")
        for batch in batches():
            self._connection.register("part", pa.Table.from_batches([batch]))
            self._connection.execute("INSERT INTO fetched FROM part")
        self._connection.unregister("part")
        return f"(SELECT {', '.join(answer.chosen)} FROM fetched)"


def folded_type(how: Fold, otherwise: pa.DataType) -> pa.DataType:
    """What comes of a folded column, as an Arrow type."""
    if isinstance(how, Steps) and isinstance(how.below, float):
        return pa.float64()
    return pa.int64() if isinstance(how, Steps) and isinstance(how.below, int) else otherwise


def folded_steps(value: str, how: Steps, literal: Callable[[Any], str]) -> str:
    """The SQL expression for an ordered value that is not null, folded."""
    stands = [value if stand is None else literal(stand) for stand in (how.below, *how.stand_ins)]
    return decision(value, [literal(start) for start in how.starts], stands)


def folded_listing(value: str, how: Listing, literal: Callable[[Any], str]) -> str:
    """The SQL expression for a text, folded."""

    def among(texts: Iterable[str]) -> str:
        return f"{value} IN ({', '.join(map(literal, texts))})"

    cases = [f"WHEN {among(texts)} THEN {value if stand is None else literal(stand)}" for texts, stand in how.lists]
    cases.append(f"WHEN {value} IS NULL{f' OR {among(how.missing)}' if how.missing else ''} THEN NULL")
    return f"CASE {' '.join(cases)} ELSE {literal(how.outside)} END"


def quoted_name(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def the_table(known: Sequence[str], wanted: str | None, where: str) -> str:
    """Which of the tables in a database is meant; it need not be said if there is only one."""
    if wanted is None and len(known) != 1:
        raise several_tables(known, where)
    if wanted is not None and wanted not in known:
        raise DataError(f"{where} has no table of the name given.", code="data-not-found", remedy="Check 'table'.")
    return known[0] if wanted is None else wanted


def several_tables(known: Sequence[str], where: str) -> DataError:
    """The error for a database of which nobody said which table is meant."""
    names = ", ".join(sorted(known)[:_SHOWN_TABLES]) + (", …" if len(known) > _SHOWN_TABLES else "")
    return DataError(
        f"{where} holds {len(known)} tables{f': {names}' if names else ''}.",
        code="data-format",
        remedy="Say which is meant: --table, or 'table' in the policy's section 'data'.",
    )
