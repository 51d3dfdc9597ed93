"""Long work in processes of its own: it can be watched, and stopped at any moment."""

from __future__ import annotations

import contextlib
import multiprocessing
import secrets
import shutil
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from incrowd.core.errors import InputError
from incrowd.studio import work

_PATIENCE = 3.0  # seconds that a process has to tidy up


class Job:
    """One piece of work.

    Attributes:
        state: running, done, failed or cancelled.
        what: what is being done, in a word.
        part: how much of it is done, between 0 and 1.
        result: what came out, when it is done.
        error: what went wrong, in the one shape of errors.
    """

    def __init__(self, kind: str, arguments: dict[str, Any], folder: Path, undo: Callable[[], bool]) -> None:
        self.id = secrets.token_urlsafe(16)
        self.kind, self.folder = kind, folder / self.id
        self.state, self.what, self.part = "running", "starting", 0.0
        self.result: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self._undo, self._cancelled = undo, False
        self.folder.mkdir(mode=0o700)
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        self._process = context.Process(
            target=work.main, args=(theirs, kind, arguments, str(self.folder)), daemon=True, name=f"incrowd {kind}"
        )
        self._process.start()
        theirs.close()
        self._thread = threading.Thread(target=self._watch, args=(ours,), daemon=True)
        self._thread.start()

    def to_dict(self) -> dict[str, Any]:
        """For the page that waits."""
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "what": self.what,
            "part": self.part,
            "result": self.result,
            "error": self.error,
        }

    def cancel(self) -> None:
        """Stop it. What was written in part is removed; what was complete already stays."""
        self._cancelled = True
        self._process.terminate()
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
        self._thread.join(_PATIENCE)

    def _watch(self, pipe: Connection) -> None:
        with contextlib.suppress(EOFError, OSError), pipe:
            while True:
                kind, *rest = pipe.recv()
                if kind == "progress":
                    self.what, self.part = rest
                elif kind == "result":
                    self.result = rest[0]
                else:
                    self.error = rest[0]
        self._process.join()
        shutil.rmtree(self.folder / "scratch", ignore_errors=True)
        if self.result is None and self.error is None and self._undo():
            self.result = {}  # it was complete before the end could be told
        if self.result is not None:
            self.part, self.state = 1.0, "done"
        elif self._cancelled:
            self.state = "cancelled"
        else:
            self.error = self.error or work.unexpected("end of the process")
            self.state = "failed"


class Jobs:
    """All work of a studio, by ids that nobody can guess."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: dict[str, Job] = {}

    def start(self, kind: str, arguments: dict[str, Any], undo: Callable[[], bool] = lambda: False) -> Job:
        """Begin.

        Args:
            kind: one of `work.KINDS`.
            arguments: what it needs; it is sent to another process.
            undo: called when the process ended without a word. It removes what is incomplete, and says whether the
                work was complete after all.
        """
        job = Job(kind, arguments, self._folder, undo)
        self._jobs[job.id] = job
        return job

    def __getitem__(self, identity: str) -> Job:
        if identity not in self._jobs:
            raise InputError("This work is unknown.", code="not-found", remedy="Start it again.")
        return self._jobs[identity]

    def stop(self) -> None:
        """Cancel whatever still runs."""
        for job in self._jobs.values():
            if job.state == "running":
                job.cancel()
