"""Records in a PostgreSQL database.

PostgreSQL stamps every row with the number of the transaction that wrote it, and appends rows in the order in which
they come. `mix` therefore copies both tables in one transaction, sorted by their keys, and drops the old ones: then
all rows have the same number and stand in the order of their keys. Until then the numbers lead from a nonce's digest to
its record, if both came alone in their transaction.

What `mix` cannot reach is the server's write-ahead log (pg_wal). It holds every record and every nonce's digest in the
order and with the times of their transactions, after mixing and closing too, until the server uses those files again,
which may take days. So do its archives and replicas. Against a thief of the disk, use SQLite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from incrowd.core.errors import InputError
from incrowd.survey.collector.store import FORMAT, StoredRecord, unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLES = """
CREATE TABLE incrowd_meta (key TEXT PRIMARY KEY, value BYTEA NOT NULL);
CREATE TABLE incrowd_records (key BYTEA PRIMARY KEY, record BYTEA NOT NULL);
CREATE TABLE incrowd_nonces (nonce BYTEA PRIMARY KEY);
"""
# Tables are locked in the order in which `add` writes to them, so that collectors which share a database only wait.
_MIX = """
LOCK TABLE incrowd_nonces, incrowd_records IN ACCESS EXCLUSIVE MODE;
CREATE TABLE incrowd_records_mixed AS SELECT key, record FROM incrowd_records ORDER BY key;
CREATE TABLE incrowd_nonces_mixed AS SELECT nonce FROM incrowd_nonces ORDER BY nonce;
DROP TABLE incrowd_records, incrowd_nonces;
ALTER TABLE incrowd_records_mixed RENAME TO incrowd_records;
ALTER TABLE incrowd_nonces_mixed RENAME TO incrowd_nonces;
ALTER TABLE incrowd_records ADD CONSTRAINT incrowd_records_pkey PRIMARY KEY (key), ALTER record SET NOT NULL;
ALTER TABLE incrowd_nonces ADD CONSTRAINT incrowd_nonces_pkey PRIMARY KEY (nonce);
"""
_LOCK = 0x696E63726F7764  # "incrowd": whoever makes the tables holds it


class Postgres:
    """A store in the tables `incrowd_...` of a database, or of a schema if the address sets its search path."""

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise InputError(
                "PostgreSQL needs a driver that is not installed.",
                code="store-unavailable",
                remedy="Install it: pip install 'incrowd[postgres]'.",
            ) from None
        self._driver = psycopg
        self._address = address
        self._current: Any = None

    def open(self, questionnaire: bytes | None) -> bytes:
        """Connect; make the tables if they are not there and a questionnaire is given."""
        try:
            return self._prepare(questionnaire)
        except BaseException:
            self.close()
            raise

    def _prepare(self, questionnaire: bytes | None) -> bytes:
        with self._transaction() as execute:
            execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            if execute("SELECT to_regclass('incrowd_meta')").fetchone()[0] is None:
                if questionnaire is None:
                    raise InputError("There is no store in this database.", code="store-unavailable")
                execute(_TABLES)
                rows = (("format", FORMAT.encode()), ("questionnaire", questionnaire), ("state", b"open"))
                for row in rows:
                    execute("INSERT INTO incrowd_meta VALUES (%s, %s)", row)
            meta = dict(execute("SELECT key, value FROM incrowd_meta").fetchall())
        if bytes(meta.get("format", b"")) != FORMAT.encode():
            raise unavailable("it is not a store, or one of a newer version")
        return bytes(meta["questionnaire"])

    def add(self, entries: Sequence[StoredRecord], keys: Sequence[bytes]) -> set[bytes] | None:
        """Store the records whose nonces are new, in one transaction."""
        with self._transaction() as execute:
            state = execute("SELECT value FROM incrowd_meta WHERE key = 'state' FOR SHARE").fetchone()[0]
            if bytes(state) != b"open":
                return None
            nonces = execute(
                "INSERT INTO incrowd_nonces SELECT unnest(%s::bytea[]) ON CONFLICT DO NOTHING RETURNING nonce",
                ([entry.nonce for entry in entries],),
            )
            fresh = {bytes(nonce) for (nonce,) in nonces.fetchall()}
            records = [entry.record for entry in entries if entry.nonce in fresh]
            rows = sorted(zip(keys, records, strict=False))  # there may be more keys than are needed
            execute(
                "INSERT INTO incrowd_records SELECT * FROM unnest(%s::bytea[], %s::bytea[])",
                ([key for key, _ in rows], [record for _, record in rows]),
            )
        return fresh

    def mix(self) -> None:
        """Copy everything in the order of its keys."""
        with self._transaction() as execute:
            execute(_MIX)

    def finish(self) -> None:
        """Take no more records, and forget the nonces."""
        with self._transaction() as execute:
            execute("UPDATE incrowd_meta SET value = %s WHERE key = 'state'", (b"closed",))
            execute("TRUNCATE incrowd_nonces")

    def cells(self) -> Mapping[bytes, int]:
        """How often each record is there."""
        with self._transaction() as execute:
            rows = execute("SELECT record, count(*) FROM incrowd_records GROUP BY record").fetchall()
        return {bytes(record): count for record, count in rows}

    def close(self) -> None:
        """Disconnect."""
        if self._current is not None:
            self._current.close()
            self._current = None

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """One transaction, on disk when the block is left; a lost connection is made anew for the next one."""
        try:
            if self._current is None or self._current.closed:
                self._current = self._driver.connect(self._address, autocommit=True, connect_timeout=10)
                self._current.execute("SET synchronous_commit = on")
            with self._current.transaction():
                yield self._current.execute
        except self._driver.Error as error:
            # Only the kind of error: its text might repeat what was sent.
            raise unavailable(f"PostgreSQL says {error.sqlstate or type(error).__name__}") from None
