"""How often the values of an identifier repeat: whether rows are people."""

# ruff: noqa: S608 - queries are put together here from names of our own and quoted literals

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from incrowd.sources import Source, SourceColumn
from incrowd.sources.column_names import numbers_people, says_identity, says_people, words_of
from incrowd.sources.duckdb_codes import column_kind
from incrowd.sources.duckdb_people import exploded, identity
from incrowd.sources.values import fetching

LOOKED_AT = 200_000
"""Rows of a table at which `incrowd release` looks first."""

_ONE_IN = 16  # of the identifiers, whose rows are then looked for in all of the table
_ROWS_EACH = 100  # more on average, and what repeats is a ward or a shop, unless its name says that it numbers people
_KINDS = ("text", "integer", "decimal", "float")
_MOST_COLUMNS = 5


@dataclass(frozen=True)
class Repeats:
    """How often the values of a column repeat.

    Attributes:
        column: its name.
        rows: how many rows have a value there.
        values: how many different ones there are.
        most: how many rows have the most frequent one.
        missing: how many rows have none.
    """

    column: str
    rows: int
    values: int
    most: int
    missing: int

    @property
    def of_people(self) -> bool:
        """Whether they repeat as those of people do who have several rows.

        Whoever is told so wrongly has a line to write; whoever is not told publishes people who are no crowd. So a name
        that speaks of nothing but people is believed, however many rows each would have.
        """
        return self.values < self.rows and (self.usual or numbers_people(words_of(self.column)))

    @property
    def usual(self) -> bool:
        """Whether people have so many rows, as a rule."""
        return self.rows <= _ROWS_EACH * self.values

    @property
    def in_words(self) -> str:
        """So many rows of so many values."""
        return f"{self.rows:,} rows of {self.values:,} values, up to {self.most:,} each"


@runtime_checkable
class Beginning(Protocol):
    """An engine that can show the first rows of a table without reading all of them."""

    def beginning(self, rows: int) -> Source | None:
        """So many rows of the table, whichever come first; None if even that would take all of it, or use it up."""
        ...


def identifying(columns: Sequence[SourceColumn]) -> list[str]:
    """The columns that may say whose a row is, by name and kind; those whose names speak of people come first."""
    names = [c.name for c in columns if c.kind in _KINDS and says_identity(words_of(c.name))]
    return sorted(names, key=lambda name: not says_people(words_of(name)))[:_MOST_COLUMNS]


def repeats(source: Source, names: Sequence[str], *, one_in: int = 1) -> list[Repeats]:
    """How often the values of these columns repeat, in one scan; maybe for one in so many values, with all its rows."""
    table = fetching(source)
    at = table.positions(names)
    if not at:
        return []
    with table.connect() as (connection, scan):
        relation = exploded(*table.held(scan, at), at)
        columns = ", ".join(f"c{i}" for i in at)
        among = {i: "true" if one_in == 1 else f"hash(c{i}) % {one_in} = 0" for i in at}
        anywhere = " OR ".join(among.values())
        connection.execute(f"CREATE TEMP TABLE looked_at AS SELECT {columns} FROM {relation} WHERE {anywhere}")
        types = [str(type_) for type_ in connection.sql("FROM looked_at").types]

        def found(name: str, place: int, type_: str) -> Repeats:
            text, missing = identity(f"c{place}", type_, table.options)
            query = (
                f"SELECT CAST(coalesce(sum(n) FILTER (NOT missing), 0) AS BIGINT), count(*) FILTER (NOT missing), "
                f"coalesce(max(n) FILTER (NOT missing), 0), CAST(coalesce(sum(n) FILTER (missing), 0) AS BIGINT) "
                f"FROM (SELECT {missing} AS missing, CASE WHEN NOT missing THEN {text} END AS v, count(*) AS n "
                f"FROM looked_at WHERE {among[place]} GROUP BY ALL)"
            )
            [row] = connection.sql(query).fetchall()
            return Repeats(name, *map(int, row))

        return [
            found(name, i, type_)
            for name, i, type_ in zip(names, at, types, strict=True)
            if column_kind(type_) in _KINDS
        ]


def seem_not_people(source: Any, published: Sequence[str]) -> list[Repeats]:
    """The columns that are not published and repeat as if rows were not people.

    The first rows of a table tell it nearly always. If they do not, and the table is here and longer, the rows of some
    of the identifiers are looked for in all of it: a person's months may be far apart.
    """
    from incrowd.sources.duckdb import DuckDBSource

    beginning = source.beginning(LOOKED_AT) if isinstance(source, Beginning) else None
    if beginning is None:
        return []
    names = identifying([column for column in source.columns() if column.name not in published])
    first = repeats(beginning, names)
    found = [one for one in first if one.of_people]
    if found or type(source) is not DuckDBSource or all(one.rows + one.missing < LOOKED_AT for one in first):
        return found
    return [one for one in repeats(source, [one.column for one in first], one_in=_ONE_IN) if one.of_people]
