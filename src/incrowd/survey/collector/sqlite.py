"""Records in an SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from incrowd.core.errors import InputError
from incrowd.core.files import named
from incrowd.survey.collector.store import FORMAT, StoredRecord, unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

# WITHOUT ROWID: a row number would be a counter. The tables are sorted by random keys and by digests.
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE records (key BLOB PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE nonces (nonce BLOB PRIMARY KEY) WITHOUT ROWID;
"""
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",  # a commit is on disk when it returns
    "secure_delete=ON",  # what is deleted is overwritten
    "temp_store=MEMORY",  # mixing leaves nothing in other folders
    "journal_size_limit=0",  # a log that was emptied is cut off, not left to be overwritten
    "auto_vacuum=NONE",
)
_PATIENCE = 20.0
_PATIENCE_WITH_READERS = 1.0


class Sqlite:
    """A store in one file, for its owner's eyes only."""

    def __init__(self, path: str) -> None:
        self._path = named(path)

    def open(self, questionnaire: bytes | None) -> bytes:
        """Open the file; make it if it is not there and a questionnaire is given."""
        if questionnaire is None and not self._path.is_file():
            raise InputError(f"There is no store {self._path}.", code="store-unavailable")
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise unavailable(f"{self._path}: {error.strerror or type(error).__name__}") from None
        with self._errors():
            self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._wait(_PATIENCE)
        try:
            with self._errors():
                return self._prepare(questionnaire)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, questionnaire: bytes | None) -> bytes:
        meta = self._meta()  # looked at first: a pragma would change somebody else's file already
        if meta is not None and meta.get("format") != FORMAT.encode():
            raise unavailable("it is not a store, or one of a newer version")
        for pragma in _PRAGMAS:
            self._connection.execute(f"PRAGMA {pragma}")
        with self._transaction():
            meta = self._meta()
            if meta is None:
                if questionnaire is None:
                    raise InputError(f"{self._path} is empty.", code="store-unavailable")
                for statement in _TABLES.split(";")[:-1]:
                    self._connection.execute(statement)
                meta = {"format": FORMAT.encode(), "questionnaire": questionnaire, "state": b"open"}
                self._connection.executemany("INSERT INTO meta VALUES (?, ?)", list(meta.items()))
        return meta["questionnaire"]

    def _meta(self) -> dict[str, bytes] | None:
        """What the store says of itself; None if the file is empty."""
        if not self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            return None
        return dict(self._connection.execute("SELECT key, value FROM meta"))

    def add(self, entries: Sequence[StoredRecord], keys: Sequence[bytes]) -> set[bytes] | None:
        with self._errors(), self._transaction():
            execute = self._connection.execute
            if execute("SELECT value FROM meta WHERE key = 'state'").fetchone()[0] != b"open":
                return None
            new = [e for e in entries if execute("INSERT OR IGNORE INTO nonces VALUES (?)", (e.nonce,)).rowcount]
            rows = zip(keys, [entry.record for entry in new], strict=False)  # there may be more keys than are needed
            self._connection.executemany("INSERT INTO records VALUES (?, ?)", sorted(rows))
        return {entry.nonce for entry in new}

    def mix(self) -> None:
        """Rewrite the file in the order of the keys and empty the log.

        Raises:
            InputError: another program reads the file, so the log cannot be emptied.
        """
        with self._errors():
            self._empty_log()  # if that cannot be done, rewriting would only make it longer
            self._connection.execute("VACUUM")
            self._empty_log()

    def _empty_log(self) -> None:
        self._wait(_PATIENCE_WITH_READERS)
        try:
            busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            self._wait(_PATIENCE)
        if busy:
            raise unavailable("another program reads it, so the log of the latest records cannot be emptied")

    def _wait(self, seconds: float) -> None:
        """How long to wait for another program that has the file."""
        self._connection.execute(f"PRAGMA busy_timeout={round(1000 * seconds)}")

    def finish(self) -> None:
        with self._errors(), self._transaction():
            self._connection.execute("UPDATE meta SET value = ? WHERE key = 'state'", (b"closed",))
            self._connection.execute("DELETE FROM nonces")

    def cells(self) -> Mapping[bytes, int]:
        with self._errors():
            return dict(self._connection.execute("SELECT record, count(*) FROM records GROUP BY record"))

    def close(self) -> None:
        """Let go of the file. SQLite then removes its log."""
        with self._errors():
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise unavailable(f"SQLite says {getattr(error, 'sqlite_errorname', type(error).__name__)}") from None
