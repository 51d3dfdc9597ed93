"""The web service: pages, and what they ask for. It holds no logic of its own and writes no log."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from incrowd import api
from incrowd.core.errors import GuaranteeError, IncrowdError, InputError
from incrowd.studio import planning, publishing
from incrowd.studio.folders import Folders
from incrowd.studio.guard import REPORT_POLICY, Guard, refusal, wants_page
from incrowd.studio.jobs import Job, Jobs
from incrowd.studio.pages import PAGES, render, static_files
from incrowd.studio.private import Private
from incrowd.studio.uploads import Uploads

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LARGEST_UPLOAD = 1 << 30
_LARGEST_BODY = 32 << 20
_DEEPEST = 64
_HALF = re.compile("[\ud800-\udfff]")
_STATUS = {"path-outside": 403, "request-refused": 403, "not-found": 404, "method-not-allowed": 405,
           "request-too-large": 413, "internal": 500}  # fmt: skip


def serve(
    folders: Sequence[str | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    largest_upload: int = LARGEST_UPLOAD,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until told to stop; `ready` is called with the address, in which is the token that opens it once."""
    token = secrets.token_urlsafe(32)
    opened = Folders.of(folders)
    try:
        import jinja2  # noqa: F401 - needed in a moment
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise InputError(
            "The packages that the studio needs are not installed.",
            code="studio-missing",
            remedy="Install them: pip install 'incrowd[studio]'.",
        ) from None
    api.serve_application(
        lambda address: application(opened, address, token=token, largest_upload=largest_upload),
        host=host,
        port=port,
        ready=lambda address: ready(f"{address}enter?token={token}"),
    )


def application(folders: Folders, address: str, *, token: str, largest_upload: int = LARGEST_UPLOAD) -> Starlette:
    """The studio as an ASGI application. Its private folder goes when it ends."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware

    private = Private()
    studio = Studio(folders, private.folder, largest_upload)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            studio.jobs.stop()
            private.remove()

    async def refused(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            code = "not-found" if error.status_code == 404 else "method-not-allowed"
            error = InputError("There is nothing here.", code=code, remedy="Go back to the studio's pages.")
        if not isinstance(error, IncrowdError):
            raise error  # to the guard, which says only its kind
        status = _STATUS.get(error.code, 409 if isinstance(error, GuaranteeError) else 400)
        answer: Response = refusal(error, status, wants_page(request.scope))
        return answer

    return Starlette(
        routes=studio.routes(),
        exception_handlers={HTTPException: refused, IncrowdError: refused},
        middleware=[Middleware(Guard, address=address, token=token, headers=api.SERVICE_HEADERS)],
        lifespan=lifespan,
    )


class Studio:
    """What the pages ask for. Nothing is remembered about a window: each sends what it works on."""

    def __init__(self, folders: Folders, private: Path, largest_upload: int) -> None:
        self.folders = folders
        self.uploads = Uploads(private / "uploads", largest_upload)
        self.jobs = Jobs(private / "jobs")
        self.scratch = private / "scratch"
        self.writing: dict[Path, Job] = {}

    def routes(self) -> list[Any]:
        """Where each answer is."""
        from starlette.responses import RedirectResponse
        from starlette.routing import Route

        def page(name: str) -> Callable[[Request], Response]:
            def answer(_: Request) -> Response:
                stories = [(story, story.replace("-", " ").capitalize()) for story in api.attacks()]
                roots, measures = list(map(str, self.folders.roots)), api.minimised_measures()
                return _html(render(name, page=name, roots=roots, stories=stories, measures=measures))

            return answer

        def fragment(make: Callable[[Mapping[str, str]], str]) -> Callable[[Request], Response]:
            return lambda request: _html(make(request.query_params))

        return [
            Route("/", lambda _: RedirectResponse("/plan", 303)),
            *(Route(f"/{name}", page(name)) for name in PAGES),
            Route("/static/{name}", _static),
            Route("/plan/crowd", fragment(planning.crowd)),
            Route("/plan/pram", fragment(planning.pram)),
            Route("/plan/pram/picture", fragment(planning.pram_picture)),
            Route("/plan/any", fragment(planning.solved)),
            Route("/plan/sample", self._posted(lambda asked: _html(planning.sample(asked))), methods=["POST"]),
            Route("/files", lambda r: _json(self.folders.listing(r.query_params.get("folder"), _kind(r)))),
            Route("/uploads", self._upload, methods=["POST"]),
            Route("/uploads/{id}", self._forget, methods=["DELETE"]),
            Route("/jobs", self._posted(self._start), methods=["POST"]),
            Route("/jobs/{id}", self._job, methods=["GET", "DELETE"]),
            Route("/jobs/{id}/report", self._job_report),
            Route("/policy/check", self._posted(self._check), methods=["POST"]),
            Route("/policy/edit", self._posted(self._edit), methods=["POST"]),
            Route("/policy/open", lambda r: _json(publishing.open_policy(self.folders, _asked(r, "path")))),
            Route("/policy/save", self._posted(self._save), methods=["POST"]),
            Route("/releases/view", lambda r: _html(publishing.view(self.folders, _asked(r, "folder")))),
            Route("/releases/report", self._report),
            Route("/releases/download", self._download),
            Route("/ledger/view", lambda r: _html(self._statement(_asked(r, "path"), r.query_params.get("dataset")))),
            Route("/ledger/change", self._posted(self._change_ledger), methods=["POST"]),
            Route("/attacks/{name}", lambda r: _html(render("attack", attack=api.attack(r.path_params["name"])))),
        ]

    def _posted(self, answer: Callable[[dict[str, Any]], Response]) -> Callable[[Request], Any]:
        """An answer to JSON that is sent; made in a thread, so that others need not wait."""

        async def respond(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool

            return await run_in_threadpool(answer, await _body(request))

        return respond

    # --- files ---

    async def _upload(self, request: Request) -> Response:
        name = unquote(request.headers.get("x-file-name", "table"))
        taken = await self.uploads.receive(name, request.stream())
        return _json({"upload": taken.id, "name": taken.name, "bytes": taken.bytes})

    def _forget(self, request: Request) -> Response:
        self.uploads.forget(request.path_params["id"])
        return _json({})

    def _table(self, data: Any, base: Path | None = None) -> list[str]:
        """The files of the table that a page means: a path inside the folders, or an upload."""
        if isinstance(data, dict) and isinstance(data.get("upload"), str):
            return [str(self.uploads[data["upload"]].path)]
        if isinstance(data, dict) and isinstance(data.get("path"), str):
            found = self.folders.table(data["path"], base=base)
            if not all(Path(name).exists() for name in found):  # or else it would be looked for as a pattern
                raise InputError("There is no such file.", code="data-not-found", remedy="Choose one that is there.")
            return found
        raise InputError("No table is chosen.", code="data-missing", remedy="Choose one under Data and policy.")

    def _base(self, asked: Mapping[str, Any]) -> Path:
        base = self.folders.inside(str(asked["base"])) if asked.get("base") else self.folders.roots[0]
        return base if base.is_dir() else base.parent

    # --- work ---

    def _start(self, asked: dict[str, Any]) -> Response:
        kind = asked.get("kind")
        starts: dict[Any, Callable[[dict[str, Any]], Job]] = {
            "draft": self._start_draft,
            "release": self._start_release,
            "audit": self._start_audit,
            "count": lambda a: self.jobs.start(
                "count",
                {"data": self._table(a.get("data")), "columns": _texts(a, "columns"), "counts": bool(a.get("counts"))},
            ),
            "figures": lambda _: self.jobs.start("figures", {"only": [f"sampling-figure-{i}" for i in range(2, 7)]}),
            "columns": lambda a: self.jobs.start("columns", {"data": self._table(a.get("data"))}),
            "verify": lambda a: self.jobs.start("verify", {"folder": str(self.folders.inside(str(a.get("folder"))))}),
        }
        if not isinstance(kind, str) or kind not in starts:
            raise _malformed("There is no such work.")
        return _json(starts[kind](asked).to_dict())

    def _start_draft(self, asked: dict[str, Any]) -> Job:
        found = self._table(asked.get("data"))
        named = str(asked["data"].get("path", ""))
        pattern = Path(named).name if len(found) > 1 else None
        return self.jobs.start("draft", {"data": found, "pattern": pattern})

    def _start_release(self, asked: dict[str, Any]) -> Job:
        base, text = self._base(asked), str(asked.get("text", ""))
        policy = self.folders.require_policy(text, base)
        data = asked.get("data") or ({"path": policy.data.path} if policy.data.path else None)
        target = publishing.require_free(self.folders, str(asked.get("folder", "")))
        other = self.writing.get(target)
        if other is not None and other.state == "running":
            raise InputError(
                "Another window is writing to this folder.", code="output-exists", remedy="Choose another folder."
            )
        job = self.jobs.start(
            "release",
            {
                "text": text,
                "base": str(base),
                "data": self._table(data, None if asked.get("data") else base),
                "folder": str(target),
            },
            publishing.undoing(target),
        )
        self.writing[target] = job
        return job

    def _start_audit(self, asked: dict[str, Any]) -> Job:
        rate = asked.get("sampling_rate")
        return self.jobs.start(
            "audit",
            {
                "data": self._table(asked.get("data")),
                "quasi": _texts(asked, "quasi"),
                "sensitive": _texts(asked, "sensitive"),
                "adversaries": _texts(asked, "adversaries"),
                "sampling_rate": float(rate) if isinstance(rate, int | float) else None,
                "show_values": bool(asked.get("show_values")),
            },
        )

    def _job(self, request: Request) -> Response:
        job = self.jobs[request.path_params["id"]]
        if request.method == "DELETE":
            job.cancel()
        return _json(job.to_dict())

    def _job_report(self, request: Request) -> Response:
        path = self.jobs[request.path_params["id"]].folder / "report.html"
        if not path.is_file():
            raise InputError("There is no report.", code="not-found", remedy="Start the work again.")
        return _framed(path.read_bytes(), "audit.html" if "save" in request.query_params else None)

    # --- policies ---

    def _check(self, asked: dict[str, Any]) -> Response:
        return _json(publishing.check(self.folders, str(asked.get("text", "")), self._base(asked)))

    def _edit(self, asked: dict[str, Any]) -> Response:
        text = str(asked.get("text", ""))
        for change in _changes(asked):
            if "confirm" in change:
                text = api.confirm(text, change["confirm"])
            else:
                text = api.edit_policy(text, change["place"], change.get("content"))
        return _json({"text": text} | publishing.check(self.folders, text, self._base(asked)))

    def _save(self, asked: dict[str, Any]) -> Response:
        text, path = str(asked.get("text", "")), str(asked.get("path", ""))
        return _json(publishing.save(self.folders, text, path, overwrite=asked.get("overwrite") is True))

    # --- releases ---

    def _report(self, request: Request) -> Response:
        which = request.query_params.get("which", "public")
        return _framed(publishing.report(self.folders, _asked(request, "folder"), which))

    def _download(self, request: Request) -> Response:
        from starlette.background import BackgroundTask
        from starlette.responses import FileResponse

        name, path = publishing.archive(self.folders, _asked(request, "folder"), self.scratch)
        return FileResponse(
            path, filename=name, media_type="application/zip", background=BackgroundTask(path.unlink, missing_ok=True)
        )

    # --- the ledger ---

    def _statement(self, name: str, dataset: str | None) -> str:
        path = str(self.folders.inside(name))
        datasets = api.ledger_datasets(path)
        chosen = dataset or (datasets[0] if datasets else None)
        statement = None if chosen is None else api.ledger_statement(path, chosen).to_dict()
        return render("statement", path=path, datasets=datasets, chosen=chosen, statement=statement)

    def _change_ledger(self, asked: dict[str, Any]) -> Response:
        path, dataset = self.folders.inside(str(asked.get("path", ""))), str(asked.get("dataset", ""))
        try:
            epsilon, delta = float(asked["epsilon"]), float(asked["delta"])
        except (KeyError, TypeError, ValueError):
            raise _malformed("ε and δ must be numbers.") from None
        relation = str(asked.get("relation") or api.Relation.ADD_REMOVE.value)
        if relation not in set(api.Relation):
            raise _malformed("There is no such relation.")
        if asked.get("what") == "budget":
            api.ledger_budget(path, dataset, epsilon=epsilon, delta=delta, relation=relation)
        else:
            said = str(asked.get("description") or "made elsewhere")
            api.ledger_add(path, dataset, epsilon=epsilon, delta=delta, relation=relation, description=said)
        return _html(self._statement(str(path), dataset))


# --- requests and answers ---------------------------------------------------------------------------------------------


async def _body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise _malformed("The studio's pages send JSON.")
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
        raise _malformed("The request is not JSON.") from None
    if not isinstance(content, dict):
        raise _malformed("The request is not an object.")
    _require_plain(content, _DEEPEST)
    return content


def _require_plain(content: Any, deepest: int) -> None:
    """Nothing that cannot be written down again: no half characters, no NaN or infinity, and no bottomless nesting."""
    if isinstance(content, dict | list):
        if not deepest:
            raise _malformed("The request is nested too deeply.")
        for part in content:
            _require_plain(part, deepest - 1)
        for part in content.values() if isinstance(content, dict) else ():
            _require_plain(part, deepest - 1)
    elif isinstance(content, float) and not math.isfinite(content):
        raise _malformed("The request holds a number that is none.")
    elif isinstance(content, str) and _HALF.search(content):
        raise _malformed("The request holds half of a character (a lone surrogate).")


def _changes(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is to be changed in a policy: an attribute to be confirmed, or a place and what shall stand there."""
    changes = asked.get("changes", [])
    for change in changes if isinstance(changes, list) else [None]:
        said = change if isinstance(change, dict) else {}
        place = said.get("place")
        named = isinstance(place, list) and 0 < len(place) <= _DEEPEST and all(isinstance(part, str) for part in place)
        if not isinstance(said.get("confirm"), str) and ("confirm" in said or not named):
            raise _malformed("A change confirms an attribute, or gives a place and its content.")
    return list(changes)


def _asked(request: Request, name: str) -> str:
    return request.query_params.get(name, "")


def _kind(request: Request) -> str:
    return request.query_params.get("kind", "table")


def _texts(asked: Mapping[str, Any], name: str) -> list[str]:
    given = asked.get(name) or []
    return [str(text) for text in given] if isinstance(given, list) else []


def _malformed(message: str) -> InputError:
    return InputError(message, code="request-malformed", remedy="Load the page again.")


def _static(request: Request) -> Response:
    from starlette.responses import Response

    name = request.path_params["name"]
    if name not in static_files():
        raise InputError("There is nothing here.", code="not-found")
    content, kind = static_files()[name]
    return Response(content, media_type=kind)


def _html(text: str) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(text)


def _json(content: Any) -> Response:
    from starlette.responses import Response

    return Response(json.dumps(content, ensure_ascii=False), media_type="application/json")


def _framed(content: bytes, save_as: str | None = None) -> Response:
    """A document of its own, for a frame or to be saved."""
    from starlette.responses import Response

    headers = {"Content-Security-Policy": REPORT_POLICY}
    if save_as is not None:
        headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(save_as)}"
    return Response(content, media_type="text/html", headers=headers)
