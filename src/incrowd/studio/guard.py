"""Who may ask: whoever has opened the address with its token once, from this very page, and nobody else."""

from __future__ import annotations

import ipaddress
import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from incrowd.core.errors import IncrowdError, InputError
from incrowd.core.server import is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
"""A report is a document of its own, shown in a frame: it may use its own style and nothing else."""

_CHANGES = {"POST", "PUT", "PATCH", "DELETE"}
_ENTER = b"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"/><title>incrowd studio</title>
<link rel="icon" href="/static/icon.svg"/><meta http-equiv="refresh" content="0;url=/"/></head>
<body><p><a href="/">Open the studio</a></p></body></html>
"""


class Guard:
    """Lets requests through, or refuses them, before anything else sees them.

    A page of another site can make a browser send requests here. It cannot read the answers, so what matters is that
    it changes nothing (Origin), does not get here by another name (Host), and is not shown in a frame.
    """

    def __init__(self, app: ASGIApp, address: str, *, token: str, headers: dict[str, str]) -> None:
        self.app = app
        parts = urlsplit(address)
        self.host, self.port = parts.hostname or "", parts.port
        self.cookie = f"incrowd-studio-{self.port}"
        self.token: str | None = token
        self.key = secrets.token_urlsafe(32)
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in self._headers() if h[0] not in given)]
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if not self.is_our_name(headers.get("host", "")):
            await self._refuse(scope, receive, send_on, "The studio is not known by this name.", 400)
        elif scope["path"] == "/enter":
            await self._enter(scope, receive, send_on, headers)
        elif scope["path"].startswith("/static/") and scope["method"] == "GET":
            await self._pass_on(scope, receive, send_on)  # the same for everyone
        elif not self._knows(headers):
            await self._refuse(
                scope, receive, send_on, "This window has not been let in, or the studio was started anew.", 403
            )
        elif not self._from_here(scope["method"], headers):
            await self._refuse(scope, receive, send_on, "The request comes from another page.", 403)
        else:
            await self._pass_on(scope, receive, send_on)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have it answered. Of a bug only its kind is told, and nothing is logged: its text might quote data."""
        started = False

        async def noticed(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, noticed)
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends here
            if started:
                return
            bug = IncrowdError(
                f"An unexpected {type(error).__name__} stopped the studio. This is a bug.",
                code="internal",
                remedy="Please report it.",
            )
            await refusal(bug, 500, wants_page(scope))(scope, receive, send)

    def is_our_name(self, host: str) -> bool:
        """Whether a request was sent to this service by a name that only it can have.

        Another site can make its own name lead here (DNS rebinding). Numbers and localhost it cannot.
        """
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        name = name.strip("[]").lower()
        if name in {self.host.lower(), "localhost"}:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not is_loopback(self.host)

    def _knows(self, headers: dict[str, str]) -> bool:
        for part in headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.cookie and secrets.compare_digest(value.encode(), self.key.encode()):
                return True
        return False

    @staticmethod
    def _from_here(method: str, headers: dict[str, str]) -> bool:
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            return False
        return method not in _CHANGES or headers.get("origin") == f"http://{headers.get('host')}"

    async def _enter(self, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]) -> None:
        """The token opens once, for the first browser that brings it."""
        from starlette.responses import Response

        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        fits = self.token is not None and secrets.compare_digest(given.encode(), self.token.encode())
        if scope["method"] != "GET" or not (fits or self._knows(headers)):
            await self._refuse(scope, receive, send, "This address has been used already, or was never given out.", 403)
            return
        # A page and not a redirection: what it leads to is then asked for by this site, and the cookie goes along.
        answer = Response(_ENTER, media_type="text/html")
        if fits:
            self.token = None
            answer.set_cookie(self.cookie, self.key, httponly=True, samesite="strict", path="/")
        await answer(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, message: str, status: int) -> None:
        error = InputError(
            message,
            code="request-refused",
            remedy="Start the studio again and open the address that it prints.",
        )
        await refusal(error, status, wants_page(scope))(scope, receive, send)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        return [*self.headers, (b"content-security-policy", PAGE_POLICY.encode())]


def wants_page(scope: Scope) -> bool:
    """Whether a person looks at the answer, and not a script."""
    headers = dict(scope["headers"])
    return headers.get(b"sec-fetch-dest", b"") in {b"document", b"iframe"}


def refusal(error: Any, status: int, as_page: bool) -> Any:
    """The one shape of errors: as JSON for scripts, as a small page for people."""
    from html import escape

    from starlette.responses import HTMLResponse, JSONResponse

    if not as_page:
        return JSONResponse({"error": error.to_dict()}, status)
    return HTMLResponse(
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"/><title>incrowd studio</title>'
        '<link rel="icon" href="/static/icon.svg"/>'
        '<link rel="stylesheet" href="/static/studio.css"/></head><body class="alone"><main><h1>This did not work</h1>'
        f"<p>{escape(error.message)}</p><p>{escape(error.remedy)}</p><p><code>{escape(error.code)}</code></p>"
        "</main></body></html>",
        status,
    )
