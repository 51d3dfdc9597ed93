"""What the collector and the studio share: listening, and serving until told to stop, with no log of who asked."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from incrowd.core.errors import InputError

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""What every answer says besides its Content-Security-Policy."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one."""
    try:
        if not host:
            raise OSError(0, "no address is given")  # it would mean: everywhere
        listening = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2048
        )
    except (OSError, OverflowError, ValueError) as error:
        raise InputError(
            f"Cannot listen at {host}, port {port}: {getattr(error, 'strerror', None) or 'no such address'}.",
            code="collector-address",
            remedy="Choose another --host or --port.",
        ) from None
    # Connections inherit it. Without it an answer waits 40 ms for the acknowledgement of its headers.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def run(
    application: Any,
    listening: socket.socket,
    *,
    certfile: str | None = None,
    keyfile: str | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve an ASGI application until told to stop (Ctrl-C or SIGTERM).

    Args:
        application: what answers.
        listening: where, made by `listen`.
        certfile: a TLS certificate in PEM.
        keyfile: its secret key in PEM.
        ready: called with the address as soon as it answers.
    """
    import uvicorn

    from incrowd.core.connections import Server

    try:
        config = uvicorn.Config(
            application,
            ssl_certfile=certfile,
            ssl_keyfile=keyfile,
            access_log=False,
            log_level="error",
            server_header=False,
            proxy_headers=False,
            lifespan="on",
            http="h11",
            ws="none",
            timeout_graceful_shutdown=10,
        )
        config.load()
    except OSError:
        listening.close()
        raise InputError(
            "The certificate or its key cannot be read.", code="collector-address", remedy="Give PEM files."
        ) from None
    ready(address_of(listening, secure=certfile is not None))
    with suppress(KeyboardInterrupt):  # Ctrl-C is how it is meant to end
        Server(config, listening).run()


def address_of(listening: socket.socket, *, secure: bool = False) -> str:
    """The address at which a socket is reached."""
    host, port = listening.getsockname()[:2]
    return f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
