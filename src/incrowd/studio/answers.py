"""Requests and answers: what is taken from a page, and in which form it is told something."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from incrowd.core.errors import InputError
from incrowd.studio.guard import REPORT_POLICY

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_LARGEST_BODY = 32 << 20
_DEEPEST = 64
_MOST_DIGITS = 12
_LARGEST_NUMBER = 10**15 - 1  # browsers hold these exactly
_HALF = re.compile("[\ud800-\udfff]")


def posted(answer: Callable[[dict[str, Any]], Response]) -> Callable[[Request], Any]:
    """An answer to JSON that is sent; made in a thread, so that others need not wait."""

    async def respond(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(answer, await body_of(request))

    return respond


async def body_of(request: Request) -> dict[str, Any]:
    """The object that a request holds, as JSON."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise malformed("The studio's pages send JSON.")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST_BODY:
            raise InputError(
                "The request is too large.", code="request-too-large", remedy="Put long lists into files of their own."
            )
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise malformed("The request is not JSON.") from None
    if not isinstance(content, dict):
        raise malformed("The request is not an object.")
    _require_plain(content, _DEEPEST)
    return content


def _require_plain(content: Any, deepest: int) -> None:
    """Nothing that cannot be written down again: no half characters, NaN, infinity, endless numbers or nesting."""
    if isinstance(content, dict | list):
        if not deepest:
            raise malformed("The request is nested too deeply.")
        for part in content:
            _require_plain(part, deepest - 1)
        for part in content.values() if isinstance(content, dict) else ():
            _require_plain(part, deepest - 1)
    elif isinstance(content, float) and not math.isfinite(content):
        raise malformed("The request holds a number that is none.")
    elif isinstance(content, int) and abs(content) > _LARGEST_NUMBER:
        raise malformed("The request holds a whole number of more than 15 digits.")
    elif isinstance(content, str) and _HALF.search(content):
        raise malformed("The request holds half of a character (a lone surrogate).")


def changes_in(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is to be changed in a policy: an attribute to be confirmed, or a place and what shall stand there."""
    changes = asked.get("changes", [])
    for change in changes if isinstance(changes, list) else [None]:
        said = change if isinstance(change, dict) else {}
        place = said.get("place")
        named = isinstance(place, list) and 0 < len(place) <= _DEEPEST and all(isinstance(part, str) for part in place)
        if not isinstance(said.get("confirm"), str) and ("confirm" in said or not named):
            raise malformed("A change confirms an attribute, or gives a place and its content.")
    return list(changes)


def asked_for(request: Request, name: str) -> str:
    """What an address says after its question mark; nothing if it does not."""
    return request.query_params.get(name, "")


def texts_in(asked: Mapping[str, Any], name: str) -> list[str]:
    """A list of texts in an object."""
    given = asked.get(name) or []
    return [str(text) for text in given] if isinstance(given, list) else []


def whole_in(asked: Mapping[str, Any], name: str) -> int | None:
    """A whole number in an object, as a person writes it; nothing if it is not given."""
    said = str(asked.get(name) or "").replace(",", "").strip()
    if said and not (said.isdecimal() and len(said) <= _MOST_DIGITS):
        raise malformed(f"{name} is a whole number of at most {_MOST_DIGITS} digits.")
    return int(said) if said else None


def malformed(message: str) -> InputError:
    """A request that no page of the studio makes."""
    return InputError(message, code="request-malformed", remedy="Load the page again.")


def html(text: str) -> Response:
    """A page, or a part of one."""
    from starlette.responses import HTMLResponse

    return HTMLResponse(text)


def as_json(content: Any) -> Response:
    """For scripts."""
    from starlette.responses import Response

    return Response(json.dumps(content, ensure_ascii=False), media_type="application/json")


def framed(content: bytes, save_as: str | None = None) -> Response:
    """A document of its own, for a frame or to be saved."""
    from starlette.responses import Response

    headers = {"Content-Security-Policy": REPORT_POLICY}
    if save_as is not None:
        headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(save_as)}"
    return Response(content, media_type="text/html", headers=headers)
