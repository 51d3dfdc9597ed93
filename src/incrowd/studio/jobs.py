"""Long work in processes of its own: it can be watched, stopped at any moment, and asked again if it keeps a table.

So many run at once, so many wait, and what ends is remembered only for a while: the studio's memory does not grow with
what it has done. A table that a page keeps is in a process of its own too, and is gone with it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from incrowd.core.errors import InputError
from incrowd.studio import work

AT_ONCE = 2
WAITING = 8
REMEMBERED = 16
KEPT = 3
"""Tables that pages may keep at once; whoever wants one more takes the place of the one that was asked longest ago."""
_PATIENCE = 3.0  # seconds that a process has to tidy up
_UNFINISHED = ("waiting", "running")


class Job:
    """One piece of work.

    Attributes:
        state: waiting, running, kept (it can be asked), done, failed or cancelled.
        what: what is being done, in a word.
        part: how much of it is done, between 0 and 1.
        result: what came out, when it is done.
        error: what went wrong, in the one shape of errors.
    """

    def __init__(
        self, kind: str, arguments: dict[str, Any], folder: Path, undo: Callable[[], bool], moved: Callable[[], None]
    ) -> None:
        self.id = secrets.token_urlsafe(16)
        self.kind, self.arguments, self.folder = kind, arguments, folder / self.id
        self.state, self.what, self.part = "waiting", "waiting", 0.0
        self.result: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self._undo, self._moved, self._cancelled = undo, moved, False
        self._process: Any = None
        self._pipe: Connection | None = None
        self._answers: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._turn, self._last = threading.Lock(), object()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the process, unless somebody was quicker to stop it."""
        with self._starting:
            if not self._cancelled:
                self._begin()

    def _begin(self) -> None:
        self.state, self.what = "running", "starting"
        self.folder.mkdir(mode=0o700)
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=work.main,
            args=(theirs, self.kind, self.arguments, str(self.folder)),
            daemon=True,
            name=f"incrowd {self.kind}",
        )
        self._process.start()
        theirs.close()
        self._thread = threading.Thread(target=self._watch, args=(self._pipe,), daemon=True)
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
        with self._starting:
            self._cancelled = True
        if self._thread is None:
            self._end("cancelled")
            return
        for stop in (self._process.terminate, self._process.kill):
            with contextlib.suppress(ValueError):  # it has ended already
                stop()
            self._thread.join(_PATIENCE)  # which waits for the process: two that wait for one disturb each other
            if not self._thread.is_alive():
                return

    def ask(self, question: dict[str, Any]) -> Any:
        """What a kept table answers. Of several questions that wait for one another, only the last is asked.

        Raises:
            InputError: the table is not kept any more, or another question has come meanwhile.
        """
        self._last = mine = object()
        with self._turn:
            if self._last is not mine:
                raise InputError("Another question has come meanwhile.", code="request-refused")
            if self.state != "kept" or self._pipe is None:
                raise _gone()
            try:
                self._pipe.send(question)
            except OSError:
                raise _gone() from None
            kind, *rest = self._answers.get()
        if kind == "refused":
            raise work.refused(rest[0])
        if kind == "gone":
            raise _gone()
        return rest[0]

    def _watch(self, pipe: Connection) -> None:
        with contextlib.suppress(EOFError, OSError), pipe:
            while True:
                kind, *rest = pipe.recv()
                if kind == "progress":
                    self.what, self.part = rest
                elif kind == "result":
                    self.result = rest[0]
                elif kind == "kept":
                    self.result, self.part, self.state = rest[0], 1.0, "kept"
                    self._moved()
                elif kind == "error":
                    self.error = rest[0]
                else:
                    self._answers.put((kind, *rest))
        self._process.join()
        self._process.close()
        shutil.rmtree(self.folder / "scratch", ignore_errors=True)
        self._answers.put(("gone",))
        if self.state == "kept":
            self.result, self._cancelled = None, True
        elif self.result is None and self.error is None and self._undo():
            self.result = {}  # it was complete before the end could be told
        if self.result is not None:
            self._end("done")
        elif self._cancelled:
            self._end("cancelled")
        else:
            self.error = self.error or work.unexpected("end of the process")
            self._end("failed")

    def _end(self, state: str) -> None:
        self.part = 1.0 if state == "done" else self.part
        self.state = state
        self._moved()


def _gone() -> InputError:
    return InputError("The table is not kept any more.", code="not-found", remedy="Load the page again.")


class Jobs:
    """All work of a studio, by ids that nobody can guess."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: dict[str, Job] = {}  # those asked for last come last
        self._lock = threading.RLock()
        self._stopped = False

    def start(self, kind: str, arguments: dict[str, Any], undo: Callable[[], bool] = lambda: False) -> Job:
        """Begin, or wait until others have ended.

        Args:
            kind: one of `work.KINDS`.
            arguments: what it needs; it is sent to another process.
            undo: called when the process ended without a word. It removes what is incomplete, and says whether the
                work was complete after all.

        Raises:
            InputError: as much waits already as may.
        """
        with self._lock:
            if len(self._in("waiting")) >= WAITING:
                raise InputError(
                    f"The studio does {AT_ONCE} things at once, and {WAITING} more are waiting.",
                    code="studio-busy",
                    remedy="Wait until one of them has ended, or stop one, and try again.",
                )
            job = Job(kind, arguments, self._folder, undo, self._moved)
            self._jobs[job.id] = job
            self._moved()
        return job

    def __getitem__(self, identity: str) -> Job:
        with self._lock:
            if identity not in self._jobs:
                raise InputError("This work is unknown.", code="not-found", remedy="Start it again.")
            self._jobs[identity] = job = self._jobs.pop(identity)
            return job

    def unfinished(self) -> Iterator[Job]:
        """Those that run or wait."""
        with self._lock:
            yield from self._in(*_UNFINISHED)

    def stop(self) -> None:
        """Cancel whatever still runs."""
        with self._lock:
            self._stopped = True
            jobs = self._in(*_UNFINISHED, "kept")
        for job in jobs:
            job.cancel()

    def _in(self, *states: str) -> list[Job]:
        return [job for job in self._jobs.values() if job.state in states]

    def _moved(self) -> None:
        """Something has changed its state: begin what waits, give up tables that are too many, forget what ended."""
        with self._lock:
            if self._stopped:
                return
            for job in self._in("waiting")[: max(0, AT_ONCE - len(self._in("running")))]:
                job.begin()
            surplus = self._in("kept")[:-KEPT]
            ended = [job for job in self._jobs.values() if job.state in ("done", "failed", "cancelled")]
            for job in ended[:-REMEMBERED]:
                del self._jobs[job.id]
                shutil.rmtree(job.folder, ignore_errors=True)
        for job in surplus:
            job.cancel()
