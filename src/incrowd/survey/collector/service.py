"""The HTTP service. It keeps nothing about a sender: no address, no header, no time, no log, no cookie."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.errors import IncrowdError, InputError
from incrowd.core.server import HEADERS, listen, run
from incrowd.survey.collector.batches import Batches
from incrowd.survey.collector.openapi import NONCE, STATUS, describe, largest_body
from incrowd.survey.collector.store import Store, unavailable
from incrowd.survey.questionnaire import read_json

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_STATIC = Path(__file__).parent / "static"
_SURVEY = Path(__file__).parent.parent
_HEADERS = {
    **HEADERS,
    # The page may load what this service serves and talk to it, and nothing else at all.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


_log = logging.getLogger(__name__)


def application(store: Store) -> Starlette:
    """The service for a store, as an ASGI application that closes the store when it ends."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    questionnaire, batches = store.questionnaire, Batches(store)
    limit = largest_body(questionnaire)

    def served(content: bytes, kind: str) -> Callable[[Request], Any]:
        async def answer(_: Request) -> Response:
            return Response(content, media_type=kind, headers=_HEADERS)

        return answer

    async def health(_: Request) -> Response:
        if not batches.mixes:
            raise unavailable("records are taken, but what shows their order cannot be removed")
        return JSONResponse({"status": "ok"}, headers=_HEADERS)

    async def records(request: Request) -> Response:
        try:
            return await stored(request)
        except IncrowdError:
            raise
        except Exception as error:  # noqa: BLE001 - the error itself might repeat what was sent, and must not be shown
            _log.error("A record met a bug: %s", type(error).__name__)
            raise IncrowdError(
                "The service has a bug, and it is not known whether the record was stored.",
                code="internal",
                remedy="Send the same record again, as it is; it is stored once only.",
            ) from None

    async def stored(request: Request) -> Response:
        envelope = _envelope(await _body(request, limit))
        if envelope["questionnaire"] != questionnaire.digest:
            raise InputError(
                "The record was made for another questionnaire.",
                code="questionnaire-other",
                remedy="Get the questionnaire at /questionnaire.",
            )
        if not isinstance(envelope["nonce"], str) or not re.fullmatch(NONCE, envelope["nonce"]):
            raise _malformed("The nonce must be 32 hexadecimal digits in lower case.")
        if not await batches.add(store.entry(envelope["nonce"], questionnaire.codes(envelope["record"]))):
            raise InputError(
                "A record with this nonce is stored already.",
                code="record-replayed",
                remedy="If this is the same record sent again, nothing is left to do.",
            )
        return JSONResponse({"stored": True}, 201, headers=_HEADERS)

    async def refused(_: Request, error: Exception) -> Response:
        headers = dict(_HEADERS)
        if isinstance(error, HTTPException):
            headers.update(error.headers or {})  # which methods are allowed
            code = "not-found" if error.status_code == 404 else "method-not-allowed"
            error = InputError(
                "There is nothing here." if code == "not-found" else "This address does not take this method.",
                code=code,
                remedy="See /openapi.json.",
            )
        if not isinstance(error, IncrowdError) or error.code not in STATUS:
            error = IncrowdError("The service has a bug.", code="internal", remedy="Try again later.")
        said = error.to_dict()
        shape = {"error": {key: said[key] for key in ("code", "message", "remedy")}}
        if error.code == "request-too-large":
            headers["Connection"] = "close"
        return JSONResponse(shape, STATUS.get(error.code, 500), headers=headers)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await batches.start()
        yield
        await batches.stop()

    style = (_SURVEY.parent / "reports" / "style.css").read_bytes() + (_STATIC / "form.css").read_bytes()
    files = {
        "/": ((_STATIC / "page.html").read_bytes(), "text/html"),
        "/page.js": ((_STATIC / "page.js").read_bytes(), "text/javascript"),
        "/randomizer.js": ((_SURVEY / "randomizer.js").read_bytes(), "text/javascript"),
        "/style.css": (style, "text/css"),
        "/questionnaire": (questionnaire.to_bytes(), "application/json"),
        "/openapi.json": (json.dumps(describe(questionnaire)).encode(), "application/json"),
    }
    routes = [Route(path, served(*file)) for path, file in files.items()]
    return Starlette(
        routes=[*routes, Route("/health", health), Route("/records", records, methods=["POST"])],
        exception_handlers={HTTPException: refused, IncrowdError: refused, Exception: refused},
        lifespan=lifespan,
    )


def serve(
    store: Store,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    certfile: str | None = None,
    keyfile: str | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until told to stop (Ctrl-C or SIGTERM); `ready` is called with the address as soon as it answers."""
    if (certfile is None) != (keyfile is None):
        raise InputError(
            "For TLS both the certificate and its secret key are needed.",
            code="collector-address",
            remedy="Give --certfile and --keyfile; if one file holds both, give it twice.",
        )
    try:
        import uvicorn  # noqa: F401 - needed in a moment

        service = application(store)
    except ImportError:
        raise InputError(
            "The packages that a collector needs are not installed.",
            code="collector-missing",
            remedy="Install them: pip install 'incrowd[collect]'.",
        ) from None
    run(service, listen(host, port), certfile=certfile, keyfile=keyfile, ready=ready)


async def _body(request: Request, limit: int) -> bytes:
    from starlette.requests import ClientDisconnect

    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise InputError("A record is sent as application/json.", code="request-type", remedy="Set Content-Type.")
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > limit:
                raise InputError(
                    f"A request may have {limit:,} bytes.", code="request-too-large", remedy="Send one record."
                )
    except ClientDisconnect:
        raise _malformed("The request was cut short.") from None
    return bytes(body)


def _envelope(body: bytes) -> dict[str, Any]:
    try:
        content = read_json(body)
    except ValueError:
        raise _malformed("The request is not JSON in UTF-8, or has a key twice.") from None
    if not isinstance(content, dict) or set(content) != {"questionnaire", "nonce", "record"}:
        raise _malformed("A request holds questionnaire, nonce and record, and nothing else.")
    return content


def _malformed(message: str) -> InputError:
    return InputError(message, code="request-malformed", remedy="See /openapi.json.")
