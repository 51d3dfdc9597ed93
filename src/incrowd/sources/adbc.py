"""Databases by way of ADBC, the drivers that speak Arrow: PostgreSQL and SQLite.

A database is given by its address or by an open connection or cursor. A session of ours reads only, and one state of
the database; of a connection that is handed over, the transaction is left as it is found. What a driver says may hold
values or a password, so it is never passed on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from incrowd.core.errors import DataError
from incrowd.core.machine import library
from incrowd.sources import postgresql, sqlite
from incrowd.sources.databases import Database, DatabaseSource, Run
from incrowd.sources.files import find_files
from incrowd.sources.options import Options

_EXTRAS = {"postgresql": "postgres", "sqlite": "sqlite"}
_DRIVERS = {"postgresql": "postgresql", "postgres": "postgresql", "sqlite": "sqlite"}
# PostgreSQL expects as many groups as a folded column has values, and would sort all rows where hashing is far faster.
_SESSION = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", "SET LOCAL enable_sort = off")
_NO_PERMISSION = "42501"


def is_address(thing: str) -> bool:
    """Whether a text is the address of a database that can be opened here."""
    return thing.partition("://")[0] in _DRIVERS and "://" in thing


def open_address(address: str, options: Options) -> DatabaseSource:
    """The table in the database at an address: ``postgresql://user@host/database`` or ``sqlite:///file.db``.

    As everywhere, an absolute file name makes four slashes. Where no password is given, PostgreSQL's own places are
    asked: the variable PGPASSWORD and the file .pgpass.
    """
    scheme, _, rest = address.partition("://")
    if _DRIVERS[scheme] == "sqlite":
        [path] = find_files([Path(unquote(rest.partition("?")[0].removeprefix("/")))])
        if not sqlite.is_sqlite(path):
            raise DataError(
                f"{path} is not a SQLite database." if path.exists() else f"There is no file {path}.",
                code="data-format" if path.exists() else "data-not-found",
                remedy="Check its name; after sqlite:// comes one slash more than the file name has.",
            )
        return _open("SQLite", lambda: _connect("sqlite", sqlite.uri(path)), options, str(path))
    return _open("PostgreSQL", lambda: _connect("postgresql", address), options, "The database")


def open_adbc(thing: Any, options: Mapping[str, Any]) -> DatabaseSource | None:
    """The table in the database of an open ADBC connection or cursor; None if it is neither."""
    if not any(base.__module__ == "adbc_driver_manager.dbapi" for base in type(thing).__mro__):
        return None
    connection = getattr(thing, "connection", thing)
    if not hasattr(connection, "adbc_get_info"):
        return None
    name = connection.adbc_get_info().get("vendor_name")
    if name not in {"PostgreSQL", "SQLite"}:
        raise DataError(
            f"Tables in {name} cannot be counted by way of ADBC.",
            code="data-kind",
            remedy="Give the Arrow reader of a query (cursor.fetch_record_batch()), or an Ibis table.",
        )

    @contextmanager
    def lent() -> Iterator[Any]:
        yield connection

    return _open(name, lent, Options(**options), "The database")


def open_connection(thing: Any, options: Mapping[str, Any]) -> DatabaseSource | None:
    """The table in the database of another library's connection; None if it is none.

    It is read in a session of our own, which sees what is committed: connections of sqlite3 and psycopg, engines and
    connections of SQLAlchemy for SQLite and PostgreSQL.
    """
    reading, owner = Options(**options), type(thing).__module__.partition(".")[0]
    if isinstance(thing, sqlite3.Connection):
        return DatabaseSource(sqlite.open_connection(thing, reading.table), reading)
    if owner == "psycopg" and hasattr(thing, "info"):
        info = thing.info
        user = ":".join(quote(part, safe="") for part in (info.user, info.password) if part)
        place = f"{quote(info.dbname, safe='')}?host={quote(info.host, safe='')}&port={info.port}"
        return open_address(f"postgresql://{user}@/{place}", reading)
    if owner == "sqlalchemy" and hasattr(thing, "engine"):
        url = thing.engine.url
        if url.get_backend_name() == "sqlite":
            with thing.engine.connect() as connection:
                return open_connection(connection.connection.driver_connection, options)
        if url.get_backend_name() == "postgresql":
            return open_address(url.set(drivername="postgresql").render_as_string(hide_password=False), reading)
        raise DataError(
            f"Tables in {url.get_backend_name()} cannot be counted by way of SQLAlchemy.",
            code="data-kind",
            remedy="Give an Ibis table, or save the table as Parquet.",
        )
    return None


def _open(name: str, connect: Callable[[], Any], options: Options, where: str) -> DatabaseSource:
    own = name == "PostgreSQL"

    @contextmanager
    def session() -> Iterator[Run]:
        with connect() as connection:
            yield lambda statement: _batches(connection, statement)

    with session() as run:
        relation, fields = (
            postgresql.find_table(run, options.table) if own else sqlite.find_table(run, options.table, where)
        )
    dialect = postgresql.PostgreSQL() if own else sqlite.SQLite()
    return DatabaseSource(Database(fields, dialect, relation, session), options)


@contextmanager
def _connect(driver: str, address: str) -> Iterator[Any]:
    dbapi = library(f"adbc_driver_{driver}.dbapi", _EXTRAS[driver])
    try:
        connection = dbapi.connect(address)
    except dbapi.Error:
        raise DataError(
            "The database cannot be reached, or does not let this user in.",
            code="data-connection",
            remedy="Check the address (postgresql://user@host:port/database), the password and the network.",
        ) from None
    try:
        if driver == "postgresql":
            with connection.cursor() as cursor:
                for setting in _SESSION:
                    cursor.execute(setting)
        yield connection
    finally:
        connection.close()


def _batches(connection: Any, statement: str) -> Iterator[pa.RecordBatch]:
    from adbc_driver_manager import Error

    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            yield from cursor.fetch_record_batch()
    except (Error, OSError, pa.ArrowException) as error:
        if getattr(error, "sqlstate", None) == _NO_PERMISSION:
            raise DataError(
                "The database does not let this user read the table.",
                code="data-unreadable",
                remedy="Ask for the right to read it (SELECT).",
            ) from None
        raise DataError(
            "The database could not answer to the end.",
            code="data-unreadable",
            remedy="Look into its log: a value that a view cannot compute, a lost connection or a lack of memory.",
        ) from None
