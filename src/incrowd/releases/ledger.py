"""The ledger: what was released from each dataset, in one SQLite file.

A release is charged before any of its files appears and settled after they have. Charging decides and records in one
transaction that holds the file's write lock, so no two processes can spend the same budget, and it returns only after
the record is on disk. A crash at any moment may therefore waste budget; it never hides a release.

- The tables only grow: triggers refuse every change and deletion. The budget in force is the last one set.
- Every record is linked to all before it by a digest. The last one, the head, is remembered outside the file
  (`memory.py`), so that a ledger which is missing, or older than it once was, is refused.
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
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from incrowd.core.errors import BudgetError, IncrowdError, InputError, InternalError
from incrowd.core.numbers import as_given
from incrowd.mechanisms.promises import Budget, CrowdPromise, Entry, Point, Rule, as_relation, as_rule, require_text
from incrowd.releases import chain
from incrowd.releases.accounts import Account
from incrowd.releases.memory import Memory, Seen
from incrowd.releases.rules import require_cost, settled
from incrowd.releases.statements import AccountStatement, BudgetChange, Recorded, make_statement
from incrowd.theory.profile import Relation

APPLICATION = 0x496E4372
"""Marks an SQLite file as a ledger: "InCr"."""

PATIENCE = 120.0
"""Seconds to wait for other processes; each holds the lock for a few disk writes, rarely for a composition."""

_NOT_A_LEDGER = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}
_OUT_OF_REACH = {
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "it cannot be opened",
    sqlite3.SQLITE_AUTH: "it cannot be opened",
    sqlite3.SQLITE_READONLY: "it cannot be written",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "reading or writing failed",
    sqlite3.SQLITE_BUSY: f"other processes have kept it locked for {as_given(PATIENCE)} seconds",
    sqlite3.SQLITE_LOCKED: f"other processes have kept it locked for {as_given(PATIENCE)} seconds",
}

_BRING_BACK = (
    "Bring back the latest ledger: what it counted stays spent. If it is lost for good, say so with "
    "`incrowd ledger accept-loss`, and record what was spent with `incrowd ledger add` under the rule 'sum'."
)
UNPUBLISHED = "Nothing was published; what was charged stays charged."

Value = TypeVar("Value")


@dataclass(frozen=True)
class Receipt:
    """A release was charged; `settle` it by this id once its files have appeared."""

    entry_id: int
    dataset: str
    time: str
    said: str


class Ledger:
    """A ledger in a file, which is made if there is none (unless `create` is false).

    Attributes:
        notes: what should be known about it, in one line each.

    Raises:
        InputError: the file or its folder cannot be used, or the file is not a ledger; says which and why.
        BudgetError: it is missing, or older than it was when it was last seen.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path).absolute()
        self._memory = Memory()
        _check_place(self.path)
        self._make_file(create=create)
        with self._open() as db:
            if _is_blank(db):
                db.execute("BEGIN IMMEDIATE")
                if _is_blank(db):  # nobody else was quicker
                    self._missing(self._memory.at(self.path), create=create)
                    chain.make_tables(db)
                    db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute("COMMIT")
            self._check_identity(db)
        self._upgrade()
        with self._open() as db:
            if db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise _invalid(self.path, "is damaged")
            known = self._known(db)  # before the ledger is read: others may write to it meanwhile
            db.execute("BEGIN")
            head = chain.verified_head(db)
            if head is chain.BROKEN:
                raise _invalid(self.path, "was changed by something else than incrowd")
            self._check_head(db, known)
            db.execute("COMMIT")
        if head is not None:
            self._memory.remember(head, self.path, _now())

    @classmethod
    def at(cls, path: Path) -> Self | None:
        """The ledger at a place; None if there is none, and none was ever seen."""
        if not Memory().at(path) and _is_nothing(path):
            return None
        return cls(path, create=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What should be known about it, in one line each."""
        return () if self._memory.note is None else (self._memory.note,)

    def charge(self, dataset: str, entry: Entry) -> Receipt:
        """Record a release that is about to be made, if it may be made. On return the record is on disk.

        If it is interrupted after that, the exception has a note that says so.

        Raises:
            BudgetError: it would overspend the budget ("budget-overspent") or use a sample a second time
                ("sample-reused"). Nothing is recorded.
            RelationError: the budget is about adding or removing a record, the promise about replacing one.
        """
        self.account(dataset).admit(entry)
        receipt, value = None, ""
        try:
            with self._transaction(writing=True) as db:
                admitted = self._account(db, dataset).admit(entry)
                time, mark = _now(), secrets.token_hex(8)
                value = _to_json({**admitted.to_dict(), "mark": mark})
                columns = {"dataset": dataset, "time": time, "value": value, "sample_id": entry.sample_id}
                number = chain.append(db, "entries", columns)
                receipt = Receipt(number, dataset, time, self._said(admitted))
            self._remember(dataset)
        except BaseException as error:
            if receipt is not None:
                self._explain(error, receipt, value)
            raise
        return receipt

    def _said(self, entry: Entry) -> str:
        """That an entry was charged, and for what."""
        return f"The ledger {self.path} was charged for it{_price_in_words(entry)}."

    def _explain(self, error: BaseException, receipt: Receipt, value: str) -> None:
        """A note on whether the record is on disk, if that can be found out."""
        try:
            with self._open() as db:
                row = db.execute("SELECT value FROM entries WHERE id = ?", (receipt.entry_id,)).fetchone()
        except IncrowdError:
            said = receipt.said.replace("was charged", "may have been charged")
            error.add_note(f"{said} Nothing was published. The ledger could not be looked at again.")
            return
        if row is not None and row[0] == value:
            error.add_note(f"{receipt.said} {UNPUBLISHED}")

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
                chain.append(db, "publications", {"entry": entry_id, "time": _now(), "digest": release_digest})
            elif before[0] != release_digest:
                raise InputError(
                    f"Entry {entry_id} of the ledger {self.path} was settled with another release.",
                    code="ledger-settled",
                    remedy="Charge each release for itself.",
                )
        self._remember(None)

    def set_budget(
        self,
        dataset: str,
        epsilon: float,
        delta: float,
        relation: Relation | str,
        rule: Rule | str = Rule.SUM,
        unit: CrowdPromise | Point | None = None,
    ) -> Budget:
        """Set, raise or lower what may be spent on a dataset. Earlier budgets stay on record.

        To set the one in force again changes nothing: its rule keeps the numbers it was fixed with.

        Raises:
            BudgetError: more than that has been spent already ("budget-below-spent"), or the rule would change after
                the first release ("budget-fixed").
            RelationError: an add/remove budget for a dataset with promises about replacing a record.
            UnreachableError: by this rule the budget has nothing to spend.
        """
        wanted = Budget(epsilon, delta, as_relation(relation), as_rule(rule), unit)
        account = self.account(dataset)
        if account.budget == wanted:
            return account.budget
        budget = settled(wanted)
        account.admit_budget(budget)
        with self._transaction(writing=True) as db:
            account = self._account(db, dataset)
            if account.budget == budget:  # somebody else was quicker
                return account.budget
            account.admit_budget(budget)
            columns = {"dataset": dataset, "time": _now(), "value": _to_json(budget.to_dict())}
            chain.append(db, "budgets", columns)
        self._remember(dataset)
        return budget

    def budget(self, dataset: str) -> Budget | None:
        """The budget in force, without adding anything up; None if there is none."""
        return self.account(dataset).budget

    def account(self, dataset: str) -> Account:
        """All that a decision about a dataset depends on.

        Nothing is locked: what takes long to compute is computed here, and then remembered. Decisions are made again,
        on the account that the write lock protects.
        """
        require_text("dataset", dataset)
        with self._transaction() as db:
            return self._account(db, dataset)

    def statement(self, dataset: str) -> AccountStatement:
        """What was released, spent and left.

        Raises:
            InputError: the ledger knows no such dataset.
        """
        require_text("dataset", dataset)
        with self._transaction() as db:
            records, budgets = _records(db, dataset, self.path), _budgets(db, dataset, self.path)
        if not records and not budgets:
            raise InputError(
                f"The ledger {self.path} knows no dataset {dataset!r}.",
                code="ledger-unknown",
                remedy="List the names it knows, or charge a release or set a budget first.",
            )
        return make_statement(dataset, records, budgets, self.notes)

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

    def _account(self, db: sqlite3.Connection, dataset: str) -> Account:
        budgets = _budgets(db, dataset, self.path)
        entries = tuple(record.entry for record in _records(db, dataset, self.path))
        lost = self._memory.lost(self.path, dataset)
        return Account(dataset, budgets[-1].budget if budgets else None, entries, lost)

    @contextmanager
    def _transaction(self, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
        """All or nothing: if the body raises, closing the connection rolls everything back."""
        if not self.path.exists():
            self._missing(self._memory.at(self.path))
        with self._open() as db:
            self._check_identity(db)
            db.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            if writing:
                chain.upgrade(db)
                self._check_head(db, self._known(db))
            yield db
            db.execute("COMMIT")

    def _upgrade(self) -> None:
        """Give a ledger of version 1 an id, so that it can be remembered; one that cannot be written is left alone."""
        with self._open() as db:
            version = chain.pragma(db, "user_version")
        if version < chain.VERSION:
            with suppress(InputError), self._transaction(writing=True):
                pass  # that is what a transaction begins with

    def _make_file(self, *, create: bool) -> None:
        """A file for its owner alone, where there is none."""
        known = self._memory.at(self.path)  # before the file is looked for: others may make it meanwhile
        try:
            if self.path.exists():
                return
            self._missing(known, create=create)
            with suppress(FileExistsError):  # somebody else was quicker
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise _unavailable(self.path, error.strerror or "it cannot be opened") from None

    def _missing(self, known: tuple[Seen, ...], *, create: bool = False) -> None:
        """There is no ledger. That is an error if there was one, or if none is to be made."""
        for seen in known:
            raise BudgetError(
                f"There is no ledger at {self.path}. It was last seen {seen}.",
                code="ledger-missing",
                remedy=_BRING_BACK,
                details={"records": seen.head.records, "spent": seen.spent},
            )
        if not create:
            raise _unavailable(self.path, "it is empty" if self.path.exists() else "there is no such file")

    def _known(self, db: sqlite3.Connection) -> tuple[tuple[Seen, ...], Seen | None]:
        """What is remembered of the ledgers at this place, and of the one in this file."""
        head = chain.head(db)
        return self._memory.at(self.path), None if head is None else self._memory.of(head.ledger)

    def _check_head(self, db: sqlite3.Connection, known: tuple[tuple[Seen, ...], Seen | None]) -> None:
        """Whether nothing is missing from the ledger, as far as is remembered; a file without a chain has no head."""
        (seen, before), head = known, chain.head(db)
        for here in seen:
            if head is None or here.head.ledger != head.ledger:
                raise self._older(f"is not the ledger that was last seen {here}", here)
        if before is None or head is None:
            return
        if head.records < before.head.records:
            raise self._older(f"has {head.records} record(s), and is older than when it was last seen {before}", before)
        if chain.digest_at(db, before.head.records) != before.head.digest:
            raise self._older(f"is another copy than the one last seen {before}; both have gone on", before)

    def _older(self, what: str, seen: Seen) -> BudgetError:
        return BudgetError(
            f"The file {self.path} {what}.",
            code="ledger-older",
            remedy=_BRING_BACK,
            details={"records": seen.head.records, "spent": seen.spent},
        )

    def _remember(self, dataset: str | None) -> None:
        """After a record is on disk, and never before: the memory may lag, and must not be ahead."""
        with suppress(IncrowdError):
            with self._open() as db:
                head = chain.head(db)
            total = None if dataset is None else self.statement(dataset).spent
            if head is not None:
                said = {} if dataset is None or total is None else {dataset: str(total)}
                self._memory.remember(head, self.path, _now(), said)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        place = f"{self.path.as_uri()}?mode=rw"
        try:
            with closing(sqlite3.connect(place, uri=True, timeout=PATIENCE, isolation_level=None)) as db:
                for setting in ("synchronous = EXTRA", "fullfsync = ON", "foreign_keys = ON"):
                    db.execute(f"PRAGMA {setting}")
                yield db
        except sqlite3.Error as error:
            raise _explained(self.path, error) from None

    def _check_identity(self, db: sqlite3.Connection) -> None:
        application, version = chain.pragma(db, "application_id"), chain.pragma(db, "user_version")
        if application != APPLICATION:
            raise _invalid(self.path, "is an SQLite file but not a ledger")
        if not 1 <= version <= chain.VERSION:
            raise _invalid(self.path, f"is a ledger of version {version}, and this incrowd knows {chain.VERSION}")


def accept_loss(path: str | Path) -> tuple[Seen, ...]:
    """Give up what was last seen of the ledger at a place: it is lost, or an older copy of it has to do.

    What it spent stays spent; returned is what was remembered, so that it can be recorded again.
    """
    place, memory = Path(path).absolute(), Memory()
    known: list[Seen | None] = [*memory.at(place)]
    if place.is_file():
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True)) as db:
            head = chain.head(db)
            known.append(None if head is None else memory.of(head.ledger))
    found = {seen.head.ledger: seen for seen in known if seen is not None}
    for ledger in found:
        memory.give_up(ledger, place)
    return tuple(found.values())


# --- reading ----------------------------------------------------------------------------------------------------


def _records(db: sqlite3.Connection, dataset: str, path: Path) -> tuple[Recorded, ...]:
    rows = db.execute(
        "SELECT e.id, e.time, e.value, p.time, p.digest FROM entries e LEFT JOIN publications p ON p.entry = e.id "
        "WHERE e.dataset = ? ORDER BY e.id",
        (dataset,),
    )
    return tuple(
        Recorded(entry_id, time, _from_json(path, value, _entry), published, digest)
        for entry_id, time, value, published, digest in rows
    )


def _budgets(db: sqlite3.Connection, dataset: str, path: Path) -> tuple[BudgetChange, ...]:
    rows = db.execute("SELECT time, value FROM budgets WHERE dataset = ? ORDER BY id", (dataset,))
    return tuple(BudgetChange(time, _from_json(path, value, Budget.from_dict)) for time, value in rows)


def _entry(value: dict[str, Any]) -> Entry:
    value.pop("mark", None)
    entry = Entry.from_dict(value)
    if entry.cost is not None:
        require_cost(entry.cost)
    return entry


def _price_in_words(entry: Entry) -> str:
    cost = entry.cost or {}
    many = f" ({entry.copies} copies)" if entry.copies > 1 else ""
    if "epsilon" in cost:
        return f": epsilon = {as_given(cost['epsilon'])}, delta = {as_given(cost['delta'])}{many}"
    if "units" in cost:
        return f": {cost['units']} unit(s)"
    if "removal_kappa" in cost:
        kappa = max(cost["removal_kappa"], cost["addition_kappa"])
        return (
            f": kappa = {as_given(kappa)}, delta = {as_given(max(cost['removal_delta'], cost['addition_delta']))}{many}"
        )
    return many


def _to_json(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


def _from_json(path: Path, text: str, make: Callable[[dict[str, Any]], Value]) -> Value:
    """A recorded value; one that cannot be understood must stop everything, for it could not be counted."""
    try:
        return make(json.loads(text))
    except (AttributeError, ValueError, TypeError, KeyError, IncrowdError):
        raise _invalid(path, "holds a record that cannot be understood") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- what can be wrong with a file ------------------------------------------------------------------------------


def _is_blank(db: sqlite3.Connection) -> bool:
    """A new file, or one whose maker was interrupted before anything was in it."""
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return tables == 0 and chain.pragma(db, "application_id") == 0 and chain.pragma(db, "user_version") == 0


def _is_nothing(path: Path) -> bool:
    """No file, or a blank one."""
    if not path.exists():
        return True
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=PATIENCE)) as db:
            return _is_blank(db)
    except sqlite3.Error:
        return False


def _check_place(path: Path) -> None:
    try:
        if path.is_dir():
            raise _unavailable(path, "it is a folder")
        if not path.parent.is_dir():
            raise _unavailable(path, "its folder does not exist")
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
        remedy="If this was the ledger, bring back its latest copy: what it counted stays spent, and another file "
        "would not know of it. One that a newer incrowd wrote needs that incrowd.",
    )
