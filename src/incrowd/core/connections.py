"""The connections of a web service, so that nobody can stop it by being slow.

uvicorn waits for a request for as long as its sender likes, and accepts connections until the process has no file
handle left. Here the number of connections is bounded well below that, and each has a deadline whenever it is the
client's turn: to send a request, or to read an answer. A new connection always finds room, because those whose
deadlines are the nearest are closed for it. No connection is closed while the service works on what has arrived.
"""

from __future__ import annotations

import asyncio
import errno
import heapq
import logging
import socket
import time
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 20.0
"""For how many seconds a client may be silent, and within how many it must send a request unless it is a long one."""
SLOWEST = 1024
"""Bytes a second that a long request must come with, on average."""
MOST_CONNECTIONS = 1000
_SWEEP, _PAUSE, _QUIET = 1.0, 0.1, 60.0
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_log = logging.getLogger(__name__)


def bound() -> int:
    """How many connections there may be: half of the process's file handles, so that the rest of it has the others."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return MOST_CONNECTIONS
    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if handles == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, handles // 2))


class Connection(H11Protocol):
    """A connection that knows whose turn it is, and until when."""

    def __init__(self, service: Server) -> None:
        super().__init__(service.config, service.server_state, service.lifespan.state)
        self.service = service
        self.greeting: asyncio.Task[None] | None = None
        self.is_made = self.is_cut = False
        self.begin()

    def begin(self) -> None:
        """From now on it is the client's turn."""
        self.began, self.received = time.monotonic(), 0
        self.deadline = self.began + PATIENCE

    @property
    def is_begun(self) -> bool:
        """Whether the head of a request has come that is not answered."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    @property
    def is_ours(self) -> bool:
        """Whether it is the service's turn: a request is there, or more of it than the service has taken so far."""
        return self.is_begun and not self.flow.write_paused and (not self.cycle.more_body or self.flow.read_paused)

    def cut(self) -> None:
        """Close it at once, whatever its client is doing."""
        self.is_cut = True
        if self.is_made:
            self.transport.abort()
        elif self.greeting is not None:  # TLS has not been agreed on
            self.greeting.cancel()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It is there, with TLS if that was agreed on."""
        super().connection_made(transport)
        self.is_made = True

    def data_received(self, data: bytes) -> None:
        """Part of a request: whoever sends enough gets more time, but never much of it for silence."""
        self.received += len(data)
        self.deadline = min(time.monotonic(), self.began + self.received / SLOWEST) + PATIENCE
        super().data_received(data)

    def resume_writing(self) -> None:
        """The client reads the answer."""
        self.begin()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """The next request may come."""
        self.begin()
        super().on_response_complete()
        self.service.changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        super().connection_lost(exc)
        self.service.forget(self)


class Server(uvicorn.Server):
    """A server that accepts connections itself."""

    def __init__(self, config: uvicorn.Config, listening: socket.socket) -> None:
        super().__init__(config)
        self.listening = listening
        self.most = bound()
        self.open: set[Connection] = set()
        self.changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._closed, self._said = 0, -_QUIET

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - it has its own
        """Begin to accept."""
        await super().startup(sockets=[])
        self.listening.setblocking(False)
        self._tasks = [asyncio.create_task(self._accept()), asyncio.create_task(self._watch())]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - it has its own
        """Answer what has arrived; do not wait for what has not."""
        for task in self._tasks:
            task.cancel()
        self.listening.close()
        for connection in list(self.open):
            if not connection.is_made or (connection.is_begun and not connection.is_ours):
                connection.cut()
        await super().shutdown(sockets=[])

    def forget(self, connection: Connection) -> None:
        self.open.discard(connection)
        self.changed.set()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self.listening)
            except OSError as error:
                if error.errno in _EXHAUSTED:  # something else in this process, or in the system, has taken it all
                    self._make_room()
                await asyncio.sleep(_PAUSE)
                continue
            try:
                await self._room()
            except BaseException:
                accepted.close()
                raise
            connection = Connection(self)
            self.open.add(connection)
            connection.greeting = asyncio.create_task(self._greet(connection, accepted))
            await asyncio.sleep(0)  # others want to be served as well

    async def _room(self) -> None:
        """Wait until there is room for one more."""
        while len(self.open) >= self.most:
            self.changed.clear()
            if not any(connection.is_cut for connection in self.open):
                self._make_room()
            await self.changed.wait()

    async def _greet(self, connection: Connection, accepted: socket.socket) -> None:
        """Hand the connection over, with TLS once both sides have agreed on it."""
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, accepted, ssl=self.config.ssl)
        except OSError:
            pass  # the client has gone, or speaks no TLS
        finally:
            if not connection.is_made:
                self.forget(connection)

    async def _watch(self) -> None:
        """Close what has passed its deadline."""
        while True:
            await asyncio.sleep(_SWEEP)
            now = time.monotonic()
            for connection in list(self.open):
                if connection.is_ours:
                    connection.begin()
                elif connection.deadline < now:
                    connection.cut()
            self.changed.set()

    def _make_room(self) -> None:
        waiting = [connection for connection in self.open if not connection.is_ours and not connection.is_cut]
        slowest = heapq.nsmallest(max(1, self.most // 16), waiting, key=lambda connection: connection.deadline)
        for connection in slowest:
            connection.cut()
        self._closed += len(slowest)
        if time.monotonic() - self._said > _QUIET:
            self._said = time.monotonic()
            _log.warning(
                "There are too many connections (%d); the slowest ones are closed for new ones (%d so far).",
                len(self.open),
                self._closed,
            )
