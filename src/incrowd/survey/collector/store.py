"""Where collected records are kept: nothing about senders, nothing about when, and as little order as a disk allows.

A record is a row of codes under a random 128-bit key, in a table sorted by that key. The number that each request
carries (its nonce), by which a second sending is recognised, is kept as a digest in another table, sorted by that
digest. Nothing leads from the one to the other. There are no row numbers, no counters and no times. A batch is written
in the order of its random keys, not in that of its arrival.

**What a thief of the disk can still learn.** A database that has acknowledged a record must have it on disk, so
something of the order is there for a while: the write-ahead log holds the last batches, and a page of a table shows
in which order its rows were put into it. `mix` writes the tables anew in the order of their keys and empties the log;
it runs all the time (see `Store.due`), when the service stops, and when the collection is closed. What came since the
last run the thief can take apart commit by commit: which records came in which order, and, where a commit holds a
single record, as at low traffic nearly every one does, the digest of the nonce that came with it. Both are written in
one transaction because a record that is acknowledged must be there once, even if the process is killed in the next
moment; so this cannot be mixed before it is written, only soon after. Who has two copies, or old disk blocks, or
backups, knows what came in between. Who also knows a respondent's nonce learns that they answered. In the worst case
the thief knows which record is whose, and then the respondent still has the local promise ε₀, which needs nobody's
help. Keep the store on an encrypted disk.

All this is about SQLite. The log of a PostgreSQL server is not ours to empty: it shows order and times long after
mixing (see `postgres`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from incrowd.core.errors import InputError
from incrowd.survey import Questionnaire

FORMAT = "incrowd-collection/1"
KEY_BYTES = 16
_LEAST_PAUSE = 1.0
_MOST_SHARE = 50


class StoredRecord(NamedTuple):
    """A record to be stored: the digest of its nonce, and its codes."""

    nonce: bytes
    record: bytes


class Backend(Protocol):
    """What a database has to do. All calls come from one thread at a time."""

    def open(self, questionnaire: bytes | None) -> bytes:
        """Open the store; make it for the questionnaire if it is new. Gives the questionnaire that it is for."""

    def add(self, entries: Sequence[StoredRecord], keys: Sequence[bytes]) -> set[bytes] | None:
        """Store the records whose nonces are new, durably, each under one of the keys and in the order of the keys.

        Gives the nonces that were new; None if the collection is closed.
        """

    def mix(self) -> None:
        """Write everything anew in the order of its keys."""

    def finish(self) -> None:
        """Close the collection for good and forget the nonces."""

    def cells(self) -> Mapping[bytes, int]:
        """How often each record is there."""

    def close(self) -> None:
        """Let go of the database."""


class Store:
    """The records of one questionnaire.

    Args:
        address: a file for SQLite, or a PostgreSQL address (postgresql://...).
        questionnaire: for which records are kept; not needed if the store is there already.

    Raises:
        InputError: the store is another questionnaire's, is no store, or cannot be opened.
    """

    def __init__(self, address: str, questionnaire: Questionnaire | None = None) -> None:
        self._backend = _backend(address)
        wanted = None if questionnaire is None else questionnaire.to_bytes()
        kept = Questionnaire.from_bytes(self._backend.open(wanted))
        self.questionnaire = questionnaire or kept  # they may differ in the signature
        if kept.digest != self.questionnaire.digest:
            self._backend.close()
            raise InputError(
                "The store holds records of another questionnaire.",
                code="store-other",
                remedy="Use a store of its own for each questionnaire.",
            )
        self._width = [_bytes_for(len(question.values)) for question in self.questionnaire.questions]
        self._mixed, self._took, self._changed = time.monotonic(), 0.0, True

    def entry(self, nonce: str, codes: Iterable[int]) -> StoredRecord:
        """A record as it is stored."""
        record = b"".join(code.to_bytes(width, "big") for code, width in zip(codes, self._width, strict=True))
        return StoredRecord(hashlib.sha256(nonce.encode()).digest()[:KEY_BYTES], record)

    def add(self, entries: Sequence[StoredRecord]) -> list[bool]:
        """Store records. When this returns, they are on disk. False stands for one that was there before.

        Raises:
            InputError: the collection is closed, or the database refuses.
        """
        unique: dict[bytes, StoredRecord] = {}
        first = []
        for entry in entries:
            first.append(entry.nonce not in unique)
            unique.setdefault(entry.nonce, entry)
        # Nonces in the order of their digests, records in that of their keys: neither shows the order of the other.
        fresh = self._backend.add(sorted(unique.values()), [secrets.token_bytes(KEY_BYTES) for _ in unique])
        if fresh is None:
            raise InputError(
                "The collection is closed.", code="collection-closed", remedy="Nothing can be sent any more."
            )
        self._changed = self._changed or bool(fresh)
        return [is_first and entry.nonce in fresh for entry, is_first in zip(entries, first, strict=True)]

    @property
    def due(self) -> bool:
        """Whether it is time to mix: there is something new, and mixing takes at most one part in fifty of the time."""
        return self._changed and time.monotonic() - self._mixed > max(_LEAST_PAUSE, _MOST_SHARE * self._took)

    def mix(self) -> None:
        """Take out of the files what they show of the order in which records came."""
        started = time.monotonic()
        try:
            self._backend.mix()
            self._changed = False
        finally:
            self._mixed = time.monotonic()
            self._took = self._mixed - started

    def finish(self) -> None:
        """Close the collection: no record is taken any more, and nonces are forgotten. It may be called again.

        Raises:
            InputError: the store cannot be mixed now, so nonces may still be on disk. Call it again.
        """
        self._backend.finish()
        self._changed = True
        self.mix()

    def cells(self) -> dict[tuple[int, ...], int]:
        """How often each combination of codes was sent."""
        return {self._codes(record): count for record, count in self._backend.cells().items()}

    def close(self) -> None:
        """Let go of the database."""
        self._backend.close()

    def _codes(self, record: bytes) -> tuple[int, ...]:
        codes, start = [], 0
        for width in self._width:
            codes.append(int.from_bytes(record[start : start + width], "big"))
            start += width
        return tuple(codes)


def unavailable(what: str) -> InputError:
    """The one error for a store that cannot be used."""
    return InputError(
        f"The store cannot be used: {what}.",
        code="store-unavailable",
        remedy="Try again later; a record that was not acknowledged may be sent again as it is.",
    )


def _backend(address: str) -> Backend:
    if address.startswith(("postgresql://", "postgres://")):
        from incrowd.survey.collector.postgres import Postgres

        return Postgres(address)
    if re.match("[A-Za-z][A-Za-z0-9+.-]+:/", address):
        # Not repeated: there may be a password in it.
        raise unavailable("its address is neither the name of a file nor begins with postgresql://")
    from incrowd.survey.collector.sqlite import Sqlite

    return Sqlite(address)


def _bytes_for(size: int) -> int:
    return ((size - 1).bit_length() + 7) // 8
