"""The web service: pages, and what they ask for. It holds no logic of its own and writes no log."""

from __future__ import annotations

import secrets
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from incrowd import api
from incrowd.core.errors import GuaranteeError, IncrowdError, InputError
from incrowd.core.server import HEADERS
from incrowd.studio import audits, browsed, explored, plans, releases, surveys, tables
from incrowd.studio.answers import (
    as_json,
    asked_for,
    body_of,
    changes_in,
    framed,
    html,
    malformed,
    posted,
    texts_in,
    whole_in,
)
from incrowd.studio.folders import Folders
from incrowd.studio.guard import Guard, refusal, wants_page
from incrowd.studio.jobs import Job, Jobs
from incrowd.studio.pages import PAGES, markup, render, static_files
from incrowd.studio.private import Private
from incrowd.studio.uploads import Dropped, Uploads

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LARGEST_UPLOAD = 1 << 30
_QUICK = tuple(f"sampling-figure-{i}" for i in range(2, 7))
_STATUS = {"path-outside": 403, "request-refused": 403, "not-found": 404, "method-not-allowed": 405,
           "request-too-large": 413, "studio-busy": 503, "internal": 500}  # fmt: skip


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
        middleware=[Middleware(Guard, address=address, token=token, headers=HEADERS)],
        lifespan=lifespan,
    )


class Studio:
    """What the pages ask for. Nothing is remembered about a window: each sends what it works on."""

    def __init__(self, folders: Folders, private: Path, largest_upload: int) -> None:
        self.folders = folders
        self.uploads = Uploads(private / "uploads", largest_upload)
        self.dropped = Dropped(private / "dropped", largest_upload)
        self.jobs = Jobs(private / "jobs")
        self.scratch = private / "scratch"
        self._claiming = threading.Lock()

    def routes(self) -> list[Any]:
        """Where each answer is."""
        from starlette.responses import RedirectResponse
        from starlette.routing import Route

        def page(name: str) -> Callable[[Request], Response]:
            def answer(_: Request) -> Response:
                stories = [(story, story.replace("-", " ").capitalize()) for story in api.attacks()]
                roots, measures = list(map(str, self.folders.roots)), api.minimised_measures()
                figures = api.gallery_figures()
                recent = self.folders.recent() if name == "start" else {}
                given = {"roots": roots, "stories": stories, "measures": measures, "figures": figures, "recent": recent}
                return html(render(name, page=name, **given))

            return answer

        def fragment(make: Callable[[Mapping[str, str]], str]) -> Callable[[Request], Response]:
            return lambda request: html(make(request.query_params))

        return [
            Route("/", lambda _: RedirectResponse("/start", 303)),
            *(Route(f"/{name}", page(name)) for name in PAGES),
            Route("/static/{name}", _static),
            Route("/plan/crowd", fragment(plans.crowd)),
            Route("/plan/pram", fragment(plans.pram)),
            Route("/plan/pram/picture", fragment(plans.pram_picture)),
            Route("/plan/any", fragment(plans.solved)),
            Route("/plan/sample", posted(lambda asked: html(plans.sample(asked))), methods=["POST"]),
            Route("/files", lambda r: as_json(self.folders.listing(r.query_params.get("folder"), _kind(r)))),
            Route("/uploads", self._upload, methods=["POST"]),
            Route("/uploads/{id}", self._forget, methods=["DELETE"]),
            Route("/dropped", posted(lambda _: as_json({"dropped": self.dropped.open()})), methods=["POST"]),
            Route("/dropped/{id}", self._receive_dropped, methods=["POST", "DELETE"]),
            Route("/jobs", posted(self._start), methods=["POST"]),
            Route("/jobs/{id}", self._job, methods=["GET", "DELETE"]),
            Route("/jobs/{id}/report", self._job_report),
            Route("/jobs/{id}/compared", self._compared),
            Route("/jobs/{id}/file", self._job_file),
            Route("/browse/{id}/rows", self._browsing(browsed.rows), methods=["POST"]),
            Route("/browse/{id}/estimate", self._browsing(browsed.estimate), methods=["POST"]),
            Route("/whatif/{id}", self._exploring(explored.look), methods=["POST"]),
            Route("/whatif/{id}/mechanism", self._exploring(explored.by_mechanism), methods=["POST"]),
            Route("/whatif/{id}/around", self._exploring(explored.around), methods=["POST"]),
            Route("/whatif/{id}/plot", self._exploring(explored.plot), methods=["POST"]),
            Route("/table/preview", posted(self._preview), methods=["POST"]),
            Route("/questionnaire/make", posted(self._make_questionnaire), methods=["POST"]),
            Route("/questionnaire/view", lambda r: html(surveys.view(self.folders, asked_for(r, "path")))),
            Route("/collection/view", lambda r: html(surveys.collection(self.folders, asked_for(r, "path")))),
            Route("/policy/check", posted(self._check), methods=["POST"]),
            Route("/policy/edit", posted(self._edit), methods=["POST"]),
            Route("/policy/open", lambda r: as_json(releases.open_policy(self.folders, asked_for(r, "path")))),
            Route("/policy/save", posted(self._save), methods=["POST"]),
            Route("/releases/view", lambda r: html(releases.view(self.folders, asked_for(r, "folder")))),
            Route("/releases/report", self._report),
            Route("/releases/download", self._download),
            Route("/keys", posted(self._make_keys), methods=["POST"]),
            Route("/ledger/view", lambda r: html(self._statement(asked_for(r, "path"), r.query_params.get("dataset")))),
            Route("/ledger/change", posted(self._change_ledger), methods=["POST"]),
            Route("/attacks/{name}", lambda r: html(_attacked(r.path_params["name"]))),
        ]

    # --- files ---

    async def _upload(self, request: Request) -> Response:
        name = unquote(request.headers.get("x-file-name", "table"))
        taken = await self.uploads.receive(name, request.stream())
        return as_json({"upload": taken.id, "name": taken.name, "bytes": taken.bytes})

    def _forget(self, request: Request) -> Response:
        self.uploads.forget(request.path_params["id"])
        return as_json({})

    async def _receive_dropped(self, request: Request) -> Response:
        """A file of a dropped folder, or the end of it."""
        if request.method == "DELETE":
            self.dropped.forget(request.path_params["id"])
        else:
            name = unquote(request.headers.get("x-file-name", ""))
            await self.dropped.receive(request.path_params["id"], name, request.stream())
        return as_json({})

    def _table(self, data: Any, base: Path | None = None) -> list[str]:
        """The files of the table that a page means: a path inside the folders, or an upload."""
        if isinstance(data, dict) and isinstance(data.get("upload"), str):
            return [str(self.uploads[data["upload"]].path)]
        if isinstance(data, dict) and isinstance(data.get("path"), str):
            found = self.folders.table(data["path"], base=base)
            if not all(Path(name).exists() for name in found):  # or else it would be looked for as a pattern
                raise InputError("There is no such file.", code="data-not-found", remedy="Choose one that is there.")
            return found
        raise InputError("No table is chosen.", code="data-missing", remedy="Choose one under Table.")

    def _base(self, asked: Mapping[str, Any]) -> Path:
        base = self.folders.inside(str(asked["base"])) if asked.get("base") else self.folders.roots[0]
        return base if base.is_dir() else base.parent

    # --- work ---

    def _start(self, asked: dict[str, Any]) -> Response:
        kind = asked.get("kind")
        starts: dict[Any, Callable[[dict[str, Any]], Job]] = {
            "draft": self._start_draft,
            "release": self._start_release,
            "rehearse": lambda a: self.jobs.start("rehearse", self._to_release(a) | {"copies": _copies(a)}),
            "explore": lambda a: self.jobs.start("explore", self._to_release(a)),
            "browse": lambda a: self.jobs.start(
                "browse", {"folder": str(releases.folder_of(self.folders, a.get("folder")))}
            ),
            "export": self._start_export,
            "combine": self._start_combine,
            "collected": self._start_collected,
            "compare": lambda a: self.jobs.start("compare", self._to_release(a)),
            "audit": self._start_audit,
            "count": self._start_count,
            "figures": lambda a: self.jobs.start("figures", {"only": texts_in(a, "only") or list(_QUICK)}),
            "rows": self._start_rows,
            "example": self._start_example,
            "columns": self._start_columns,
            "verify": self._start_verify,
        }
        if not isinstance(kind, str) or kind not in starts:
            raise malformed("There is no such work.")
        return as_json(starts[kind](asked).to_dict())

    def _start_verify(self, asked: dict[str, Any]) -> Job:
        """A folder among the studio's own, or one that was dropped, which the work removes."""
        dropped = asked.get("dropped")
        folder = self.folders.inside(str(asked.get("folder"))) if dropped is None else self.dropped[str(dropped)]
        key = str(self.uploads[str(asked["key"])].path) if asked.get("key") else None
        rigorous = asked.get("rigorous") is True
        what = {"folder": str(folder), "key": key, "rigorous": rigorous, "remove": dropped is not None}
        return self.jobs.start("verify", what)

    def _start_draft(self, asked: dict[str, Any]) -> Job:
        found = self._table(asked.get("data"))
        named = str(asked["data"].get("path", ""))
        pattern = Path(named).name if len(found) > 1 else None
        return self.jobs.start("draft", {"data": found, "pattern": pattern, "reading": self._reading(asked, "decimal")})

    def _start_rows(self, asked: dict[str, Any]) -> Job:
        return self.jobs.start("rows", self._alone(asked) | {"columns": texts_in(asked, "columns")})

    def _start_columns(self, asked: dict[str, Any]) -> Job:
        return self.jobs.start("columns", self._alone(asked))

    def _alone(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """A table without a policy, and how it is read."""
        return {"data": self._table(asked.get("data")), "reading": self._reading(asked, "codebook")}

    def _start_example(self, asked: dict[str, Any]) -> Job:
        name = asked.get("name")
        if name not in api.EXAMPLES:
            raise malformed("There is no such example.")
        return self.jobs.start("example", {"name": name, "folder": str(self.folders.roots[0])})

    def _reading(self, asked: Mapping[str, Any], *without: str) -> dict[str, Any]:
        """How a table is read, but for what the work does not ask."""
        given = tables.reading(self.folders, asked, self._base(asked))
        return {key: value for key, value in given.items() if key not in without}

    def _preview(self, asked: dict[str, Any]) -> Response:
        return as_json(
            tables.preview(self._table(asked.get("data"))[0], asked, self._reading(asked, "codebook", "decimal"))
        )

    def _make_questionnaire(self, asked: dict[str, Any]) -> Response:
        return html(surveys.make(self.folders, asked, self._base(asked)))

    def _start_export(self, asked: dict[str, Any]) -> Job:
        folder = str(releases.folder_of(self.folders, asked.get("folder")))
        return self.jobs.start("export", {"folder": folder, "output": str(asked.get("output", ""))})

    def _start_combine(self, asked: dict[str, Any]) -> Job:
        folder = str(releases.folder_of(self.folders, asked.get("folder")))
        numbers = {name: whole_in(asked, name) for name in ("rows", "seed")}
        if (numbers["rows"] or 0) > _MOST_DRAWN:
            raise malformed(f"A synthetic table has at most {_MOST_DRAWN:,} rows here.")
        return self.jobs.start("combine", {"folder": folder, "output": str(asked.get("output", "")), **numbers})

    def _start_collected(self, asked: dict[str, Any]) -> Job:
        store = self.folders.inside(str(asked.get("store", "")))
        if not store.is_file():
            raise InputError("Nothing has been collected yet.", code="data-not-found", remedy="Start the collector.")
        what = {"store": str(store), "fewer": asked.get("fewer") is True, "sign_with": self._secret_key(asked)}
        return self._claiming_start("collected", asked, 1, what)

    def _start_count(self, asked: dict[str, Any]) -> Job:
        what = self._alone(asked) | {"columns": texts_in(asked, "columns")}
        return self.jobs.start("count", what | {"counts": bool(asked.get("counts"))})

    def _to_release(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What is to be released: the policy, where its files are, and the table."""
        base, text = self._base(asked), str(asked.get("text", ""))
        policy = self.folders.require_policy(text, base)
        data = asked.get("data") or ({"path": policy.data.path} if policy.data.path else None)
        return {"text": text, "base": str(base), "data": self._table(data, None if asked.get("data") else base)}

    def _start_release(self, asked: dict[str, Any]) -> Job:
        what = self._to_release(asked)
        output = asked.get("output") or None
        if output is not None and output not in api.output_formats():
            raise malformed("There is no such format.")
        what |= {"new_ledger": asked.get("new_ledger") is True, "output": output, "sign_with": self._secret_key(asked)}
        return self._claiming_start("release", asked, _copies(asked), what)

    def _secret_key(self, asked: Mapping[str, Any]) -> str | None:
        return str(self.folders.inside(str(asked["sign_with"]))) if asked.get("sign_with") else None

    def _claiming_start(self, kind: str, asked: Mapping[str, Any], copies: int, what: dict[str, Any]) -> Job:
        """Publish to a folder. Of two windows that want one place, the second is refused."""
        with self._claiming:
            target, undo = releases.require_free_for(self.folders, str(asked.get("folder", "")), copies)
            places = releases.places_of(target, copies)
            for job in self.jobs.unfinished():
                if job.kind in ("release", "collected") and releases.overlap(
                    places, releases.places_of(Path(job.arguments["folder"]), job.arguments["copies"])
                ):
                    raise InputError(
                        "Another window is writing there.", code="output-exists", remedy="Choose another folder."
                    )
            return self.jobs.start(kind, what | {"folder": str(target), "copies": copies}, undo)

    def _start_audit(self, asked: dict[str, Any]) -> Job:
        return self.jobs.start("audit", self._alone(asked) | audits.asked(self.folders, asked))

    def _job(self, request: Request) -> Response:
        job = self.jobs[request.path_params["id"]]
        if request.method == "DELETE":
            job.cancel()
        return as_json(job.to_dict())

    def _job_report(self, request: Request) -> Response:
        path = self.jobs[request.path_params["id"]].folder / "report.html"
        if not path.is_file():
            raise InputError("There is no report.", code="not-found", remedy="Start the work again.")
        return framed(path.read_bytes(), "report.html" if "save" in request.query_params else None)

    def _compared(self, request: Request) -> Response:
        found = self._done(request, "compare")
        return html(render("compared", found=found, chart=markup(found["chart"])))

    def _done(self, request: Request, *kinds: str) -> dict[str, Any]:
        """What work of these kinds has found."""
        job = self.jobs[request.path_params["id"]]
        if job.kind not in kinds or not job.result:
            raise InputError("There is no such result.", code="not-found", remedy="Start the work again.")
        return job.result

    def _job_file(self, request: Request) -> Response:
        from starlette.responses import FileResponse

        name = self._done(request, "export", "combine")["file"]
        return FileResponse(self.jobs[request.path_params["id"]].folder / name, filename=name)

    def _kept(self, identity: str, kind: str) -> Job:
        """The table of a kind that a page keeps."""
        job = self.jobs[identity]
        if job.kind != kind:
            raise InputError("No table is kept here.", code="not-found", remedy="Load the page again.")
        return job

    def _browsing(self, answer: Callable[[Job, dict[str, Any]], Response]) -> Callable[[Request], Any]:
        """An answer about the release that a page looks through."""

        async def respond(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool

            asked, job = await body_of(request), self._kept(request.path_params["id"], "browse")
            return await run_in_threadpool(answer, job, asked)

        return respond

    def _exploring(self, answer: Callable[[Folders, Job, dict[str, Any], Path], Response]) -> Callable[[Request], Any]:
        """An answer about the table that a page keeps."""

        async def respond(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool

            asked, job = await body_of(request), self._kept(request.path_params["id"], "explore")
            base = Path(job.arguments["base"])  # where the work looks for a policy's files, whatever is asked now
            return await run_in_threadpool(answer, self.folders, job, asked, base)

        return respond

    # --- policies ---

    def _check(self, asked: dict[str, Any]) -> Response:
        return as_json(releases.check(self.folders, str(asked.get("text", "")), self._base(asked)))

    def _edit(self, asked: dict[str, Any]) -> Response:
        text = str(asked.get("text", ""))
        for change in changes_in(asked):
            if "confirm" in change:
                text = api.confirm(text, change["confirm"])
            else:
                text = api.edit_policy(text, change["place"], change.get("content"))
        return as_json({"text": text} | releases.check(self.folders, text, self._base(asked)))

    def _save(self, asked: dict[str, Any]) -> Response:
        text, path = str(asked.get("text", "")), str(asked.get("path", ""))
        return as_json(releases.save(self.folders, text, path, overwrite=asked.get("overwrite") is True))

    # --- releases ---

    def _report(self, request: Request) -> Response:
        which = request.query_params.get("which", "public")
        return framed(releases.report(self.folders, asked_for(request, "folder"), which))

    def _download(self, request: Request) -> Response:
        from starlette.background import BackgroundTask
        from starlette.responses import FileResponse

        name, path = releases.archive(self.folders, asked_for(request, "folder"), self.scratch)
        return FileResponse(
            path, filename=name, media_type="application/zip", background=BackgroundTask(path.unlink, missing_ok=True)
        )

    def _make_keys(self, asked: dict[str, Any]) -> Response:
        secret, public = (self.folders.inside(str(asked.get(name, ""))) for name in ("secret", "public"))
        return as_json({"secret": str(secret), "public": str(public), "fingerprint": api.make_keys(secret, public)})

    # --- the ledger ---

    def _statement(self, name: str, dataset: str | None) -> str:
        path = str(self.folders.inside(name))
        datasets = api.ledger_datasets(path)
        chosen = dataset or (datasets[0] if datasets else None)
        statement = None if chosen is None else api.ledger_statement(path, chosen).to_dict()
        return render("statement", path=path, datasets=datasets, chosen=chosen, statement=statement)

    def _change_ledger(self, asked: dict[str, Any]) -> Response:
        path, dataset = self.folders.inside(str(asked.get("path", ""))), str(asked.get("dataset", ""))
        if asked.get("what") == "accept-loss":
            return html(render("given_up", path=str(path), seen=api.ledger_accept_loss(path)))
        try:
            epsilon, delta = float(asked["epsilon"]), float(asked["delta"])
        except (KeyError, TypeError, ValueError):
            raise malformed("ε and δ must be numbers.") from None
        relation = str(asked.get("relation") or api.Relation.ADD_REMOVE.value)
        if relation not in set(api.Relation):
            raise malformed("There is no such relation.")
        if asked.get("what") == "budget":
            rule, unit = str(asked.get("rule") or "sum"), str(asked.get("unit") or "") or None
            if rule not in ("sum", "order", "unit"):
                raise malformed("There is no such rule.")
            unit = unit if rule == "unit" else None
            api.ledger_budget(path, dataset, epsilon=epsilon, delta=delta, relation=relation, rule=rule, unit=unit)
        else:
            said = str(asked.get("description") or "made elsewhere")
            api.ledger_add(path, dataset, epsilon=epsilon, delta=delta, relation=relation, description=said)
        return html(self._statement(str(path), dataset))


def _attacked(name: str) -> str:
    """An attack, carried out once more, with what is seen."""
    found = api.attack(name)
    unsafe, safe = map(markup, api.draw_attack(found))
    return render("attack", attack=found, unsafe=unsafe, safe=safe)


_MOST_COPIES = 100
_MOST_DRAWN = 10_000_000


def _copies(asked: Mapping[str, Any]) -> int:
    copies = asked.get("copies", 1)
    if not isinstance(copies, int) or isinstance(copies, bool) or not 1 <= copies <= _MOST_COPIES:
        raise malformed(f"There are 1 to {_MOST_COPIES} copies of a release.")
    return copies


def _kind(request: Request) -> str:
    return request.query_params.get("kind", "table")


def _static(request: Request) -> Response:
    from starlette.responses import Response

    name = request.path_params["name"]
    if name not in static_files():
        raise InputError("There is nothing here.", code="not-found")
    content, kind = static_files()[name]
    return Response(content, media_type=kind)
