"""What was last seen of each ledger, kept for the user and outside the ledgers.

A ledger that is gone, or restored from an older copy, cannot tell so by itself: it would start anew, and what was
spent would be spent again. So its head (its id, the number of its records, the digest of the last) is remembered in
the user's state folder, after each record is on disk. The memory may lag behind a ledger, if a process was killed in
between. It is never ahead of one, so it never refuses a ledger that nothing is missing from.

The folder: INCROWD_STATE, if it is set; else incrowd/ in XDG_STATE_HOME or ~/.local/state, on macOS in
~/Library/Application Support, on Windows in %LOCALAPPDATA%. Where there is none that can be written to, ledgers work
even then, and a note says that nothing is remembered.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

STATE = "INCROWD_STATE"
_NAME = "ledgers.sqlite"
_PATIENCE = 10.0
_TABLES = {
    "heads": "ledger TEXT PRIMARY KEY, path TEXT NOT NULL, records INTEGER NOT NULL, digest TEXT NOT NULL, time TEXT",
    "places": "ledger TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (ledger, path)",
    "spent": "ledger TEXT NOT NULL, dataset TEXT NOT NULL, said TEXT NOT NULL, PRIMARY KEY (ledger, dataset)",
    "lost": "path TEXT NOT NULL, dataset TEXT NOT NULL, said TEXT NOT NULL, PRIMARY KEY (path, dataset)",
}


Value = TypeVar("Value")


@dataclass(frozen=True)
class Head:
    """How far a ledger has come."""

    ledger: str
    records: int
    digest: str


@dataclass(frozen=True)
class Seen:
    """A ledger as it was last seen: where, when, how far, and what had been spent on its datasets."""

    head: Head
    path: str
    time: str
    spent: dict[str, str]

    def __str__(self) -> str:
        spent = "".join(f"; {dataset!r}: {said} spent" for dataset, said in sorted(self.spent.items()))
        return f"on {self.time} at {self.path}, with {self.head.records} record(s){spent}"


def state_folder() -> Path | None:
    """Where the user's memory is kept; None where the system knows no home for it."""
    named = os.environ.get(STATE)
    if named:
        return Path(named).absolute()
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Application Support"
        else:
            base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError:  # no home
        return None
    return base.absolute() / "incrowd"


class Memory:
    """The user's memory of ledgers.

    Attributes:
        note: why nothing can be remembered, in one line; None while all is well.
    """

    def __init__(self) -> None:
        self.note: str | None = None

    def of(self, ledger: str) -> Seen | None:
        """A ledger by its id."""
        return next(iter(self._find("ledger = ?", (ledger,))), None)

    def at(self, path: Path) -> tuple[Seen, ...]:
        """The ledgers that were seen at a place, be it long ago; more than one only if a link was led elsewhere."""
        return self._find("ledger IN (SELECT ledger FROM places WHERE path IN (?, ?))", _names(path))

    def lost(self, path: Path, dataset: str) -> str | None:
        """What had been spent on a dataset when the ledger at a place was given up; None if none was."""
        query = "SELECT said FROM lost WHERE path IN (?, ?) AND dataset = ?"
        row = self._with(lambda db: db.execute(query, (*_names(path), dataset)).fetchone())
        return None if row is None else str(row[0])

    def remember(self, head: Head, path: Path, time: str, spent: Mapping[str, str] | None = None) -> None:
        """Keep a head, unless a later one of the same ledger is known already."""

        def keep(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            db.execute(
                "INSERT INTO heads VALUES (?, ?, ?, ?, ?) ON CONFLICT (ledger) DO UPDATE SET path = excluded.path, "
                "records = excluded.records, digest = excluded.digest, time = excluded.time "
                "WHERE excluded.records >= records",
                (head.ledger, str(path.absolute()), head.records, head.digest, time),
            )
            for name in _names(path):
                db.execute("INSERT OR IGNORE INTO places VALUES (?, ?)", (head.ledger, name))
            for dataset, said in (spent or {}).items():
                db.execute("INSERT OR REPLACE INTO spent VALUES (?, ?, ?)", (head.ledger, dataset, said))
            db.execute("COMMIT")

        self._with(keep)

    def give_up(self, ledger: str, path: Path) -> None:
        """Forget a ledger, because a person said so; what is kept is what was lost with it at this place."""

        def forget(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            for name in _names(path):
                query = "INSERT OR REPLACE INTO lost SELECT ?, dataset, said FROM spent WHERE ledger = ?"
                db.execute(query, (name, ledger))
            for table in ("heads", "places", "spent"):
                db.execute(f"DELETE FROM {table} WHERE ledger = ?", (ledger,))  # noqa: S608 - one of ours
            db.execute("COMMIT")

        self._with(forget)

    def _find(self, condition: str, values: tuple[str, ...]) -> tuple[Seen, ...]:
        def find(db: sqlite3.Connection) -> tuple[Seen, ...]:
            query = f"SELECT * FROM heads WHERE {condition} ORDER BY time DESC"  # noqa: S608 - one of ours
            return tuple(
                Seen(
                    Head(ledger, records, digest),
                    path,
                    time,
                    dict(db.execute("SELECT dataset, said FROM spent WHERE ledger = ?", (ledger,))),
                )
                for ledger, path, records, digest, time in db.execute(query, values).fetchall()
            )

        return self._with(find) or ()

    def _with(self, work: Callable[[sqlite3.Connection], Value]) -> Value | None:
        folder = state_folder()
        try:
            if folder is None:
                raise FileNotFoundError
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = folder / _NAME
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            with closing(sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)) as db:
                for name, columns in _TABLES.items():
                    db.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
                return work(db)
        except (OSError, sqlite3.Error):
            where = "there is no home folder" if folder is None else f"{folder} cannot be used"
            self.note = (
                f"What was spent is not remembered outside the ledger ({where}): if the ledger is lost or restored "
                f"from an older copy, nobody notices. {STATE} names another folder."
            )
            return None


def _names(path: Path) -> tuple[str, str]:
    """A place as it is named, and where links lead to from there."""
    return str(path.absolute()), str(path.resolve())
