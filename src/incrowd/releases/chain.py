"""The tables of a ledger, which only grow, and the chain of digests that links every record to all before it."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Mapping
from typing import Any

from incrowd.releases.memory import Head

VERSION = 2
"""Version 1 had no id and no chain; it is read as it is, and gets both when something is first written to it."""

BROKEN = Head("", -1, "")
"""Instead of a head: records and links do not fit each other."""

_TABLES = {
    "budgets": "id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, time TEXT NOT NULL, value TEXT NOT NULL",
    "entries": (
        "id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, time TEXT NOT NULL, value TEXT NOT NULL, sample_id TEXT, "
        "UNIQUE (dataset, sample_id)"
    ),
    "publications": "entry INTEGER PRIMARY KEY REFERENCES entries (id), time TEXT NOT NULL, digest TEXT NOT NULL",
}
_LINKS = {
    "identity": "id INTEGER PRIMARY KEY CHECK (id = 1), ledger TEXT NOT NULL",
    "chain": "id INTEGER PRIMARY KEY, source TEXT NOT NULL, record INTEGER NOT NULL, digest TEXT NOT NULL",
}


def make_tables(db: sqlite3.Connection) -> None:
    """All that a new ledger has, inside a transaction."""
    _make(db, _TABLES)
    db.execute("PRAGMA user_version = 1")
    upgrade(db)


def upgrade(db: sqlite3.Connection) -> None:
    """An id, and links for the records that are there already, where there are none; inside a transaction."""
    if pragma(db, "user_version") >= VERSION:
        return
    _make(db, _LINKS)
    db.execute("INSERT INTO identity (ledger) VALUES (?)", (secrets.token_hex(16),))
    db.execute(f"PRAGMA user_version = {VERSION}")
    for table in _TABLES:
        for (row,) in db.execute(f"SELECT rowid FROM {table} ORDER BY rowid").fetchall():  # noqa: S608 - one of ours
            _link(db, table, row)


def append(db: sqlite3.Connection, table: str, columns: Mapping[str, Any]) -> int:
    """Add a record, and its link to all before it; returns its number."""
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - names are ours
    row = int(db.execute(statement, tuple(columns.values())).lastrowid or 0)
    _link(db, table, row)
    return row


def head(db: sqlite3.Connection) -> Head | None:
    """How far the ledger has come; a file of version 1 has none."""
    if pragma(db, "user_version") < VERSION:
        return None
    (ledger,) = db.execute("SELECT ledger FROM identity").fetchone()
    records = db.execute("SELECT max(id) FROM chain").fetchone()[0] or 0
    return Head(ledger, records, digest_at(db, records) or "")


def digest_at(db: sqlite3.Connection, records: int) -> str | None:
    """The head's digest when the ledger had so many records: its id, when there were none."""
    wanted = "SELECT digest FROM chain WHERE id = ?" if records else "SELECT ledger FROM identity WHERE id = 1 + ?"
    row = db.execute(wanted, (records,)).fetchone()
    return None if row is None else str(row[0])


def verified_head(db: sqlite3.Connection) -> Head | None:
    """The head, after every link was made again, or `BROKEN`."""
    found = head(db)
    if found is None:
        return None
    last, links = found.ledger, db.execute("SELECT id, source, record, digest FROM chain ORDER BY id").fetchall()
    for number, (link, table, row, digest) in enumerate(links, start=1):
        last = _digest(db, last, table, row)
        if (link, digest) != (number, last):
            return BROKEN
    recorded = sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _TABLES)  # noqa: S608
    return found if recorded == len(links) else BROKEN


def pragma(db: sqlite3.Connection, name: str) -> int:
    """A number in the file's header."""
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _link(db: sqlite3.Connection, table: str, row: int) -> None:
    before = head(db)
    digest = _digest(db, "" if before is None else before.digest, table, row)
    db.execute("INSERT INTO chain (source, record, digest) VALUES (?, ?, ?)", (table, row, digest))


def _digest(db: sqlite3.Connection, before: str, table: str, row: int) -> str:
    found = None
    if table in _TABLES:
        found = db.execute(f"SELECT * FROM {table} WHERE rowid = ?", (row,)).fetchone()  # noqa: S608 - one of ours
    return hashlib.sha256(json.dumps([before, table, row, found]).encode()).hexdigest()


def _make(db: sqlite3.Connection, tables: Mapping[str, str]) -> None:
    for name, columns in tables.items():
        db.execute(f"CREATE TABLE {name} ({columns})")
        for event in ("UPDATE", "DELETE"):
            db.execute(
                f"CREATE TRIGGER {name}_{event.lower()} BEFORE {event} ON {name} "
                "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
            )
