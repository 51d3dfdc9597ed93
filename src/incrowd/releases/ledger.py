"""The ledger: what was released from each dataset, in one SQLite file.

A release is charged before any of its files appears and settled after they have. Charging decides and records in one
transaction that holds the file's write lock, so no two processes can spend the same budget, and it returns only after
the record is on disk. A crash at any moment may therefore waste budget; it never hides a release.

- The tables only grow: triggers refuse every change and deletion. The budget in force is the last one set.
- Every call opens the file and closes it again. Nothing is held between calls, so a `Ledger` may be shared by threads
  and survive a fork, and a file that was moved away is noticed rather than written to.
- The journal is SQLite's rollback journal with ``synchronous = EXTRA``: between calls the ledger is a single file that
  can be copied. A ``-journal`` beside it after a crash belongs to it; the next call uses it to restore order.
- **Keep it on a local disk.** SQLite relies on the file system's locks, and many network shares do not keep theirs:
  there two computers could spend the same budget, or damage the file.
- It holds names, parameters, digests and times, never a value from the data. It is the publisher's own: how often and
  when something was released is not meant for the public folder.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from incrowd.errors import IncrowdError, InputError, InternalError
from incrowd.guarantees._numbers import require_between
from incrowd.guarantees.profile import Relation
from incrowd.releases.entries import Budget, Entry, as_relation, require_text
from incrowd.releases.spending import Account
from incrowd.releases.statements import BudgetChange, Recorded, Statement, make_statement

APPLICATION = 0x496E4372
"""Marks an SQLite file as a ledger: "InCr"."""

VERSION = 1

PATIENCE = 120.0
"""Seconds to wait for other processes; each holds the lock for a few disk writes, rarely for a composition."""

_TABLES = {
    "budgets": "id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, time TEXT NOT NULL, value TEXT NOT NULL",
    "entries": (
        "id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, time TEXT NOT NULL, value TEXT NOT NULL, sample_id TEXT, "
        "UNIQUE (dataset, sample_id)"
    ),
    "publications": "entry INTEGER PRIMARY KEY REFERENCES entries (id), time TEXT NOT NULL, digest TEXT NOT NULL",
}
_SCHEMA = (
    *(f"CREATE TABLE {name} ({columns})" for name, columns in _TABLES.items()),
    *(
        f"CREATE TRIGGER {name}_{event.lower()} BEFORE {event} ON {name} "
        "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
        for name in _TABLES
        for event in ("UPDATE", "DELETE")
    ),
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)

_NOT_A_LEDGER = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}
_OUT_OF_REACH = {
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "it cannot be opened",
    sqlite3.SQLITE_AUTH: "it cannot be opened",
    sqlite3.SQLITE_READONLY: "it cannot be written",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "reading or writing failed",
    sqlite3.SQLITE_BUSY: f"other processes have kept it locked for {PATIENCE:g} seconds",
    sqlite3.SQLITE_LOCKED: f"other processes have kept it locked for {PATIENCE:g} seconds",
}

Value = TypeVar("Value")


@dataclass(frozen=True)
class Receipt:
    """A release was charged; `settle` it by this id once its files have appeared."""

    entry_id: int
    dataset: str
    time: str


class Ledger:
    """A ledger in a file, which is made if there is none (unless `create` is false).

    Raises:
        InputError: the file or its folder cannot be used, or the file is not a ledger; says which and why.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path).absolute()
        _check_place(self.path, create=create)
        with self._open(create=create) as db:
            if _is_blank(db):
                db.execute("BEGIN IMMEDIATE")
                if _is_blank(db):  # nobody else was quicker
                    for statement in _SCHEMA:
                        db.execute(statement)
                db.execute("COMMIT")
            self._check_identity(db)
            if db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise _invalid(self.path, "is damaged")

    def charge(self, dataset: str, entry: Entry) -> Receipt:
        """Record a release that is about to be made, if it may be made. On return the record is on disk.

        Raises:
            BudgetError: it would overspend the budget ("budget-overspent") or use a sample a second time
                ("sample-reused"). Nothing is recorded.
            RelationError: the budget is about adding or removing a record, the promise about replacing one.
        """
        self._first_look(dataset).admit(entry)
        with self._transaction(writing=True) as db:
            _account(db, dataset, self.path).admit(entry)
            time = _now()
            row = db.execute(
                "INSERT INTO entries (dataset, time, value, sample_id) VALUES (?, ?, ?, ?)",
                (dataset, time, _to_json(entry.to_dict()), entry.sample_id),
            ).lastrowid
        return Receipt(int(row or 0), dataset, time)

    def settle(self, entry_id: int, release_digest: str) -> None:
        """Mark a charged release as published. Doing so twice is harmless.

        Raises:
            InputError: there is no such entry, or it was settled with another digest.
        """
        require_text("release_digest", release_digest)
        with self._transaction(writing=True) as db:
            if db.execute("SELECT 1 FROM entries WHERE id = ?", (entry_id,)).fetchone() is None:
                raise InputError(f"The ledger {self.path} has no entry {entry_id}.", code="ledger-unknown")
            before = db.execute("SELECT digest FROM publications WHERE entry = ?", (entry_id,)).fetchone()
            if before is None:
                db.execute(
                    "INSERT INTO publications (entry, time, digest) VALUES (?, ?, ?)",
                    (entry_id, _now(), release_digest),
                )
            elif before[0] != release_digest:
                raise InputError(
                    f"Entry {entry_id} of the ledger {self.path} was settled with another release.",
                    code="ledger-settled",
                    remedy="Charge each release for itself.",
                )

    def set_budget(self, dataset: str, epsilon: float, delta: float, relation: Relation | str) -> Budget:
        """Set, raise or lower what may be spent on a dataset. Earlier budgets stay on record.

        Raises:
            BudgetError: more than that has been spent already ("budget-below-spent").
            RelationError: an add/remove budget for a dataset with promises about replacing a record.
        """
        budget = Budget(epsilon, delta, as_relation(relation))
        self._first_look(dataset).admit_budget(budget)
        with self._transaction(writing=True) as db:
            _account(db, dataset, self.path).admit_budget(budget)
            db.execute(
                "INSERT INTO budgets (dataset, time, value) VALUES (?, ?, ?)",
                (dataset, _now(), _to_json(asdict(budget))),
            )
        return budget

    def budget(self, dataset: str) -> Budget | None:
        """The budget in force, without adding anything up; None if there is none."""
        return self._first_look(dataset).budget

    def statement(self, dataset: str, delta: float | None = None) -> Statement:
        """What was released, spent and left. Without a δ: the budget's, or else one that suits the releases.

        Raises:
            InputError: the ledger knows no such dataset.
        """
        require_text("dataset", dataset)
        if delta is not None:
            delta = require_between("delta", delta, 0.0, 1.0, open_low=False)
        with self._transaction() as db:
            records, budgets = _records(db, dataset, self.path), _budgets(db, dataset, self.path)
        if not records and not budgets:
            raise InputError(
                f"The ledger {self.path} knows no dataset {dataset!r}.",
                code="ledger-unknown",
                remedy="List the names it knows, or charge a release or set a budget first.",
            )
        return make_statement(dataset, records, budgets, delta)

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets with a release or a budget."""
        with self._transaction() as db:
            rows = db.execute("SELECT dataset FROM entries UNION SELECT dataset FROM budgets ORDER BY dataset")
            return tuple(name for (name,) in rows)

    def close(self) -> None:
        """Nothing is held open between calls, so there is nothing to do; offered for use in a `with` statement."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _first_look(self, dataset: str) -> Account:
        """The account with nothing locked: what takes long to compute is computed on it, and then remembered.

        Decisions are made again, on the account that the write lock protects.
        """
        require_text("dataset", dataset)
        with self._transaction() as db:
            return _account(db, dataset, self.path)

    @contextmanager
    def _transaction(self, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
        """All or nothing: if the body raises, closing the connection rolls everything back."""
        with self._open() as db:
            self._check_identity(db)
            db.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            yield db
            db.execute("COMMIT")

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        place = f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}"
        try:
            with closing(sqlite3.connect(place, uri=True, timeout=PATIENCE, isolation_level=None)) as db:
                for setting in ("synchronous = EXTRA", "fullfsync = ON", "foreign_keys = ON"):
                    db.execute(f"PRAGMA {setting}")
                yield db
        except sqlite3.Error as error:
            raise _explained(self.path, error) from None

    def _check_identity(self, db: sqlite3.Connection) -> None:
        application, version = _pragma(db, "application_id"), _pragma(db, "user_version")
        if application != APPLICATION:
            raise _invalid(self.path, "is an SQLite file but not a ledger")
        if version != VERSION:
            raise _invalid(self.path, f"is a ledger of version {version}, and this incrowd knows {VERSION}")


# --- reading ----------------------------------------------------------------------------------------------------


def _account(db: sqlite3.Connection, dataset: str, path: Path) -> Account:
    budgets = _budgets(db, dataset, path)
    entries = tuple(record.entry for record in _records(db, dataset, path))
    return Account(dataset, budgets[-1].budget if budgets else None, entries)


def _records(db: sqlite3.Connection, dataset: str, path: Path) -> tuple[Recorded, ...]:
    rows = db.execute(
        "SELECT e.id, e.time, e.value, p.time, p.digest FROM entries e LEFT JOIN publications p ON p.entry = e.id "
        "WHERE e.dataset = ? ORDER BY e.id",
        (dataset,),
    )
    return tuple(
        Recorded(entry_id, time, _from_json(path, value, Entry.from_dict), published, digest)
        for entry_id, time, value, published, digest in rows
    )


def _budgets(db: sqlite3.Connection, dataset: str, path: Path) -> tuple[BudgetChange, ...]:
    rows = db.execute("SELECT time, value FROM budgets WHERE dataset = ? ORDER BY id", (dataset,))
    return tuple(BudgetChange(time, _from_json(path, value, lambda v: Budget(**v))) for time, value in rows)


def _to_json(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


def _from_json(path: Path, text: str, make: Callable[[dict[str, Any]], Value]) -> Value:
    """A recorded value; one that cannot be understood must stop everything, for it could not be counted."""
    try:
        return make(json.loads(text))
    except (ValueError, TypeError, KeyError, IncrowdError):
        raise _invalid(path, "holds a record that cannot be understood") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- what can be wrong with a file ------------------------------------------------------------------------------


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _is_blank(db: sqlite3.Connection) -> bool:
    """A new file, or one whose maker was interrupted before anything was in it."""
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return tables == 0 and _pragma(db, "application_id") == 0 and _pragma(db, "user_version") == 0


def _check_place(path: Path, *, create: bool) -> None:
    try:
        if path.is_dir():
            raise _unavailable(path, "it is a folder")
        if not path.parent.is_dir():
            raise _unavailable(path, "its folder does not exist")
        if not create and not path.exists():
            raise _unavailable(path, "there is no such file")
    except OSError as error:
        raise _unavailable(path, error.strerror or "it cannot be opened") from None


def _explained(path: Path, error: sqlite3.Error) -> InputError | InternalError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF  # the rest of the code is detail
    if code in _OUT_OF_REACH:
        return _unavailable(path, _OUT_OF_REACH[code])
    if code in _NOT_A_LEDGER:
        return _invalid(path, "is not a ledger, or is damaged")
    return InternalError(
        "the ledger refused a statement", sqlite=getattr(error, "sqlite_errorname", type(error).__name__)
    )


def _unavailable(path: Path, why: str) -> InputError:
    return InputError(
        f"The ledger {path} cannot be used: {why}.",
        code="ledger-unavailable",
        remedy="Name a file on a local disk, in a folder that exists and may be written to.",
    )


def _invalid(path: Path, what: str) -> InputError:
    return InputError(
        f"The file {path} {what}.",
        code="ledger-invalid",
        remedy="Name another file, restore a copy, or update incrowd.",
    )
