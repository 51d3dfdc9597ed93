"""How many people are in each group of rows that look alike, where a person may have several rows."""

# ruff: noqa: S608 - queries are put together here from names of our own and quoted literals

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from incrowd.core.errors import ParameterError
from incrowd.sources import Source
from incrowd.sources.duckdb_people import identity
from incrowd.sources.values import fetching, require_comparable


@dataclass(frozen=True)
class OnePersonGroup:
    """A group of rows that are all one person's.

    Attributes:
        records: how many there are.
        labels: what they have in common; only if values may be shown.
    """

    records: int
    labels: dict[str, str | None] | None = None


@dataclass(frozen=True)
class PeopleInGroups:
    """How many people are in groups of rows that look alike.

    Attributes:
        by: the columns that together say whose a row is.
        people: how many there are; a row without an identifier counts as a person.
        without_identifier: how many rows have none.
        most_rows: how many rows the person with the most of them has.
        k: how many people are in the smallest group.
        one_person_groups: how many groups are of one person.
        one_person_records: how many rows are in them.
        one_person: the largest of these groups.
    """

    by: tuple[str, ...]
    people: int
    without_identifier: int
    most_rows: int
    k: int
    one_person_groups: int
    one_person_records: int
    one_person: tuple[OnePersonGroup, ...]


def people_in_groups(
    source: Source, quasi: Sequence[str], whose: Sequence[str], *, worst: int = 10, show_values: bool = False
) -> PeopleInGroups:
    """Counts the people in each group, in one scan.

    Args:
        source: the table.
        quasi: the columns by which rows look alike: values are equal if they print alike, missing ones among them.
        whose: the columns that together say whose a row is.
        worst: how many groups of one person to list.
        show_values: whether the result may hold values of the table.

    Raises:
        DataError: the table cannot be read, or lacks a column.
        ParameterError: a column is to be both.
    """
    if not whose or {*quasi} & {*whose} or len({*whose}) < len(whose):
        raise ParameterError(
            "The columns that say whose a row is must not be quasi-identifiers, and each must be named once.",
            code="parameter-combination",
        )
    table = fetching(source)
    at = table.positions([*quasi, *whose])
    require_comparable(table, at)
    with table.connect() as (connection, scan):
        relation, weight = table.gather(scan, dict.fromkeys(at))
        types = [str(t) for t in connection.sql(f"SELECT {', '.join(f'c{i}' for i in at)} FROM {relation}").types]
        told = [identity(f"c{i}", type_, table.options) for i, type_ in zip(at, types, strict=True)]
        values = [f"CASE WHEN NOT ({missing}) THEN {text} END AS v{n}" for n, (text, missing) in enumerate(told)]
        groups, persons = [f"v{n}" for n in range(len(quasi))], [f"v{n}" for n in range(len(quasi), len(at))]
        nobodys = " OR ".join(f"{person} IS NULL" for person in persons)
        connection.execute(
            f"CREATE TEMP TABLE parts AS SELECT {', '.join((*groups, *persons))}, {nobodys} AS nobodys, "
            "CAST(sum(n) AS BIGINT) AS rows "
            f"FROM (SELECT {', '.join(values)}, {weight or 1} AS n FROM {relation}) GROUP BY ALL"
        )
        connection.execute(
            f"CREATE TEMP TABLE crowds AS SELECT {', '.join(groups)}, CAST(sum(rows) AS BIGINT) AS rows, "
            "CAST(sum(CASE WHEN nobodys THEN rows ELSE 1 END) AS BIGINT) AS people FROM parts GROUP BY ALL"
        )
        [(least, ones, one_rows)] = connection.sql(
            "SELECT min(people), count(*) FILTER (people = 1), "
            "CAST(coalesce(sum(rows) FILTER (people = 1), 0) AS BIGINT) FROM crowds"
        ).fetchall()
        [(people, without, most)] = connection.sql(
            "SELECT CAST(sum(CASE WHEN nobodys THEN rows ELSE 1 END) AS BIGINT), "
            "CAST(coalesce(sum(rows) FILTER (nobodys), 0) AS BIGINT), max(CASE WHEN nobodys THEN 1 ELSE rows END) "
            f"FROM (SELECT {', '.join(persons)}, nobodys, CAST(sum(rows) AS BIGINT) AS rows FROM parts GROUP BY ALL)"
        ).fetchall()
        listed = connection.sql(
            f"SELECT rows, {', '.join(groups)} FROM crowds WHERE people = 1 ORDER BY ALL DESC LIMIT {worst}"
        ).fetchall()
    return PeopleInGroups(
        by=tuple(whose),
        people=int(people),
        without_identifier=int(without),
        most_rows=int(most),
        k=int(least),
        one_person_groups=int(ones),
        one_person_records=int(one_rows),
        one_person=tuple(
            OnePersonGroup(int(rows), dict(zip(quasi, labels, strict=True)) if show_values else None)
            for rows, *labels in listed
        ),
    )
