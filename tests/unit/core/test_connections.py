"""Slow clients: none of them stops a service, and none is cut off while the service is at work."""

import asyncio
import errno
import socket
import threading
import time
from unittest.mock import Mock

import pytest

pytest.importorskip("uvicorn", reason="the extra 'collect' is not installed")

import uvicorn

from incrowd.core import connections
from incrowd.core.connections import PATIENCE, SLOWEST, Connection, Server
from incrowd.core.server import listen

HALVES = [b"", b"GET / HTTP/1.1\r\nHost", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n{"]
WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def application(scope, receive, send):
    """Reads a request to its end, then answers; slowly, or much, if asked to."""
    while scope["type"] == "lifespan":
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
    message = await receive()
    while message["type"] == "http.request" and message["more_body"]:
        message = await receive()
    if scope["path"] == "/slow":
        await asyncio.sleep(1)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(500 if scope["path"] == "/much" else 1):
        await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
    await send({"type": "http.response.body"})


@pytest.fixture
def serve():
    """Starts servers in threads of their own."""
    running = []

    def start(listening=None, **settings):
        listening = listening or listen("127.0.0.1", 0)
        config = uvicorn.Config(application, log_level="error", lifespan="on", http="h11", ws="none")
        server = Server(config, listening)
        for name, value in settings.items():
            setattr(server, name, value)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        running.append((server, thread))
        return server, listening.getsockname()

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


CLIENTS = []


@pytest.fixture(autouse=True)
def closed_in_the_end():
    yield
    while CLIENTS:
        CLIENTS.pop().close()


def send(address, content):
    client = socket.create_connection(address, timeout=60)
    CLIENTS.append(client)
    client.sendall(content)
    return client


def is_closed(client):
    """Waits until the other side has closed it."""
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def ask(address, content=WHOLE):
    with send(address, content) as client:
        return client.recv(15)


def until(true):
    for _ in range(6000):
        if true():
            return True
        time.sleep(0.01)
    return False


def test_whoever_does_not_finish_a_request_is_cut_off(serve, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    monkeypatch.setattr(connections, "_SWEEP", 0.05)
    server, address = serve()
    for half in HALVES:
        assert is_closed(send(address, half))
    dripping = send(address, HALVES[1])

    def drip():
        try:
            dripping.sendall(b"a")
        except ConnectionError:
            return True
        return False

    assert until(drip)
    assert until(lambda: not server.open)
    assert ask(address) == b"HTTP/1.1 200 OK"


def test_whoever_does_not_read_an_answer_is_cut_off(serve, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    monkeypatch.setattr(connections, "_SWEEP", 0.05)
    server, address = serve()
    with send(address, b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n"):
        assert until(lambda: server.open)
        assert until(lambda: not server.open)


def test_work_may_take_longer_than_that(serve, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", 0.1)
    monkeypatch.setattr(connections, "_SWEEP", 0.02)
    _, address = serve()
    assert ask(address, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n") == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("half", HALVES, ids=["silent", "head", "body"])
def test_a_new_connection_finds_room(serve, half, caplog):
    server, address = serve(most=20)
    slow = [send(address, half) for _ in range(100)]
    for _ in range(3):
        assert ask(address) == b"HTTP/1.1 200 OK"
    assert len(server.open) <= 20
    assert [record.name for record in caplog.records] == ["incrowd.core.connections"]  # one quiet line
    for client in slow[:40]:
        assert is_closed(client)  # the slowest first


def test_what_is_being_worked_on_is_not_closed_for_others(serve):
    server, address = serve(most=3)
    working = [send(address, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(3)]
    assert until(lambda: sum(connection.is_ours for connection in server.open) == 3)
    assert ask(address) == b"HTTP/1.1 200 OK"  # waits for one of them
    for client in working:
        assert client.recv(15) == b"HTTP/1.1 200 OK"


def test_nothing_is_closed_while_there_is_room(serve, caplog):
    server, address = serve(most=3)
    clients = [send(address, HALVES[1]) for _ in range(3)]
    assert until(lambda: sum(connection.received for connection in server.open) == 3 * len(HALVES[1]))
    time.sleep(0.1)  # in which something could go wrong
    for client in clients:
        client.sendall(b": x\r\n\r\n")
        assert client.recv(15) == b"HTTP/1.1 200 OK"
    assert not caplog.records


def test_a_process_without_handles_goes_on_when_it_has_some_again(serve, caplog):
    class Exhausted(socket.socket):
        left = 5

        def accept(self):
            if self.left:
                self.left -= 1
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    with listen("127.0.0.1", 0) as plain:
        listening = Exhausted(fileno=plain.detach())
    _, address = serve(listening)
    assert ask(address) == b"HTTP/1.1 200 OK"
    assert listening.left == 0
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info is None


def test_half_sent_requests_do_not_delay_the_end(serve):
    server, address = serve()
    clients = [send(address, half) for half in HALVES]
    assert until(lambda: len(server.open) == len(HALVES))
    server.config.timeout_graceful_shutdown = None  # it would wait for ever
    server.should_exit = True
    assert all(map(is_closed, clients))


def test_time_is_given_for_what_is_sent(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(connections.time, "monotonic", lambda: now)

    async def look():
        nonlocal now
        with listen("127.0.0.1", 0) as listening:
            server = Server(uvicorn.Config(application, http="h11"), listening)
            server.lifespan = Mock(state={})
            connection = Connection(server)
        connection.connection_made(Mock(get_extra_info=lambda _: None))
        assert connection.deadline == 1000 + PATIENCE
        now += 10
        connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\n")  # a few bytes change little
        assert connection.deadline < 1000 + PATIENCE + 1
        connection.data_received(b"A: " + b"x" * (5 * SLOWEST))
        assert 1005 + PATIENCE < connection.deadline < 1006 + PATIENCE
        connection.data_received(b"x" * (20 * SLOWEST))  # more than its share: nobody may be silent for longer
        assert connection.deadline == now + PATIENCE
        now += 5
        connection.begin()
        assert connection.deadline == now + PATIENCE

    asyncio.run(look())


@pytest.mark.parametrize(("handles", "most"), [(256, 128), (1024, 512), (1 << 20, 1000), (-1, 1000), (1, 1)])
def test_half_of_the_handles_are_for_connections(monkeypatch, handles, most):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (handles, handles))
    assert connections.bound() == most
