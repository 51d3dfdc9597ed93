"""What was last seen of each ledger, kept for the user and outside the ledgers.

A ledger that is gone, or restored from an older copy, cannot tell so by itself: it would start anew, and what was
spent would be spent again. So its head (its id, the number of its records, the digest of the last) is remembered in
the user's state folder, after each record is on disk. The memory may lag behind a ledger, if a process was killed in
between. It is never ahead of one, so it never refuses a ledger that nothing is missing from.

The folder: INCROWD_STATE, if it is set; else incrowd/ in XDG_STATE_HOME or ~/.local/state, on macOS in
~/Library/Application Support, on Windows in %LOCALAPPDATA%. Where there is none that can be written to, ledgers work
all the same, and a note says that nothing is remembered.
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
    "spent": "ledger TEXT NOT NULL, dataset TEXT NOT NULL, said TEXT NOT NULL, PRIMARY KEY (ledger, dataset)",
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
        return self._find("SELECT * FROM heads WHERE ledger = ?", ledger)

    def at(self, path: Path) -> Seen | None:
        """The ledger that was last seen at a place."""
        return self._find("SELECT * FROM heads WHERE path = ? ORDER BY time DESC", _place(path))

    def remember(self, head: Head, path: Path, time: str, spent: Mapping[str, str] | None = None) -> None:
        """Keep a head, unless a later one of the same ledger is known already."""

        def keep(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            db.execute(
                "INSERT INTO heads VALUES (?, ?, ?, ?, ?) ON CONFLICT (ledger) DO UPDATE SET path = excluded.path, "
                "records = excluded.records, digest = excluded.digest, time = excluded.time "
                "WHERE excluded.records >= records",
                (head.ledger, _place(path), head.records, head.digest, time),
            )
            for dataset, said in (spent or {}).items():
                db.execute("INSERT OR REPLACE INTO spent VALUES (?, ?, ?)", (head.ledger, dataset, said))
            db.execute("COMMIT")

        self._with(keep)

    def give_up(self, ledger: str) -> None:
        """Forget a ledger, because a person said so."""

        def forget(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM heads WHERE ledger = ?", (ledger,))
            db.execute("DELETE FROM spent WHERE ledger = ?", (ledger,))

        self._with(forget)

    def _find(self, query: str, value: str) -> Seen | None:
        def find(db: sqlite3.Connection) -> Seen | None:
            row = db.execute(query, (value,)).fetchone()
            if row is None:
                return None
            ledger, path, records, digest, time = row
            spent = dict(db.execute("SELECT dataset, said FROM spent WHERE ledger = ?", (ledger,)))
            return Seen(Head(ledger, records, digest), path, time, spent)

        return self._with(find)

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


def _place(path: Path) -> str:
    return str(path.resolve())
