"""Many requests, one commit: while a batch is being written, the next one gathers."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from incrowd.core.errors import IncrowdError
from incrowd.survey.collector.store import Store, StoredRecord

_MOST = 2_000
_PAUSE = 0.5
_MANY_FAILURES = 3

_log = logging.getLogger(__name__)


class Batches:
    """Stores entries in batches; whoever waits for one is told when it is on disk.

    The database is used from one thread of its own, so no request waits for another's commit longer than that takes.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._waiting: list[tuple[StoredRecord, asyncio.Future[bool]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._mixing: asyncio.Task[None] | None = None
        self._failures = 0

    @property
    def mixes(self) -> bool:
        """Whether mixing works; not after it has failed several times in a row."""
        return self._failures < _MANY_FAILURES

    async def start(self) -> None:
        """Begin to mix from time to time."""
        self._mixing = asyncio.create_task(self._mix())

    async def add(self, entry: StoredRecord) -> bool:
        """Store an entry durably; False if it was there before."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, future))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        return await future

    async def stop(self) -> None:
        """Write what is waiting, mix, and let go of the store."""
        if self._mixing is not None:
            self._mixing.cancel()
        if self._writing is not None:
            await self._writing
        await self._try_to_mix()  # everything acknowledged is on disk already
        if self._failures:
            _log.error("The store was left as it is, unmixed. Start the collector once more, or close the collection.")
        await asyncio.get_running_loop().run_in_executor(self._thread, self._store.close)
        self._thread.shutdown()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            futures = [future for _, future in batch]
            try:
                stored = await loop.run_in_executor(self._thread, self._store.add, [entry for entry, _ in batch])
            except Exception as error:  # noqa: BLE001 - whoever waits must be told, whatever it is
                for future in futures:
                    if not future.done():
                        future.set_exception(error)
            else:
                for future, new in zip(futures, stored, strict=True):
                    if not future.done():
                        future.set_result(new)

    async def _mix(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            if self._store.due:
                await self._try_to_mix()

    async def _try_to_mix(self) -> None:
        """Mix; if there is no room, say, or somebody reads the store, it is tried again, whatever it was."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._store.mix)
            self._failures = 0
        except Exception as error:  # noqa: BLE001 - records must be mixed as long as the service runs
            self._failures += 1
            if self._failures == _MANY_FAILURES:
                # Nothing of another error than ours: it might repeat what was sent.
                _log.error(
                    "Records are not mixed: %s", error if isinstance(error, IncrowdError) else type(error).__name__
                )
