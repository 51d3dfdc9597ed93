"""So many at once, so many waiting, and nothing of what has ended."""

import os
import socket
import threading
import time
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection

import pytest

from incrowd.core.errors import IncrowdError, InputError
from incrowd.studio import jobs as jobs_module
from incrowd.studio import work
from incrowd.studio.jobs import AT_ONCE, KEPT, REMEMBERED, WAITING, Jobs

LONG = 60.0


class Threads:
    """Processes that are threads of this one: quick to start, and ended by their pipe."""

    def __init__(self):
        self.started = []

    def Pipe(self):  # noqa: N802 - as multiprocessing calls it
        return get_context("spawn").Pipe()

    def Process(self, target, args, daemon, name):  # noqa: N802
        self.started.append(one := Thread(target, args))
        return one


class Thread:
    def __init__(self, target, args):
        self.pipe = Connection(os.dup(args[0].fileno()))  # a process has its own
        self.thread = threading.Thread(target=self.run, args=(self.pipe, *args[1:]), daemon=True)
        self.stopped = threading.Event()

    def run(self, pipe, kind, arguments, folder):
        with suppress(OSError, EOFError):
            getattr(self, kind)(pipe, arguments)
        pipe.close()

    def at_once(self, pipe, arguments):
        pipe.send(("result", arguments))

    def broken(self, pipe, arguments):
        pass

    def blocked(self, pipe, arguments):
        pipe.send(("progress", "reading", 0.5))
        self.stopped.wait(LONG)

    def kept(self, pipe, arguments):
        work._answer(pipe, {"first": 1}, self.answer)

    def answer(self, question):
        if question.get("wrong"):
            raise InputError("No such column.", code="column-unknown", remedy="Name another.")
        if question.get("bug"):
            raise RuntimeError("Ms Smith")
        if question.get("wait"):
            self.stopped.wait(LONG)
        return {"asked": question["n"]}

    def start(self):
        self.thread.start()

    def terminate(self):
        with suppress(OSError), socket.socket(fileno=os.dup(self.pipe.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)
        self.stopped.set()  # not before, or the number of its pipe could be another's already

    def join(self, timeout=None):
        self.thread.join(timeout)

    kill = terminate

    def close(self):
        pass


@pytest.fixture
def processes(monkeypatch):
    made = Threads()
    monkeypatch.setattr(jobs_module.multiprocessing, "get_context", lambda _: made)
    return made


@pytest.fixture
def jobs(tmp_path, processes):
    every = Jobs(tmp_path)
    yield every
    every.stop()


def wait_for(holds):
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def states(*of):
    return [job.state for job in of]


def test_two_at_once_the_others_wait_and_one_too_many_is_refused(jobs):
    running = [jobs.start("blocked", {}) for _ in range(AT_ONCE)]
    waiting = [jobs.start("at_once", {"n": n}) for n in range(WAITING)]
    assert states(*running, *waiting) == ["running"] * AT_ONCE + ["waiting"] * WAITING
    with pytest.raises(InputError) as refused:
        jobs.start("at_once", {})
    assert refused.value.code == "studio-busy"
    waiting[0].cancel()
    assert states(waiting[0], waiting[1]) == ["cancelled", "waiting"]
    jobs.start("at_once", {})  # there is room again
    running[0].cancel()
    wait_for(lambda: not [j for j in jobs.unfinished() if j.kind == "at_once"])
    assert states(*waiting[1:]) == ["done"] * (WAITING - 1), [job.error for job in waiting]
    assert [job.result for job in waiting[1:]] == [{"n": n} for n in range(1, WAITING)]
    assert states(*running) == ["cancelled", "running"]


def test_what_has_ended_is_forgotten_with_its_files(jobs, tmp_path):
    first = jobs.start("at_once", {"n": -1})
    wait_for(lambda: first.state == "done")
    (first.folder / "report.html").write_text("for one pair of eyes")
    kinds = ["at_once", "broken"] * REMEMBERED
    for n, kind in enumerate(kinds):
        job = jobs.start(kind, {"n": n})
        wait_for(lambda one=job: one.state in ("done", "failed"))
    wait_for(lambda: len(list(tmp_path.iterdir())) <= REMEMBERED)
    with pytest.raises(InputError) as refused:
        jobs[first.id]
    assert refused.value.code == "not-found"
    assert jobs[job.id].error["code"] == "internal"
    assert not first.folder.exists()


def test_a_kept_table_answers_until_it_is_given_up(jobs):
    table = jobs.start("kept", {})
    wait_for(lambda: table.state == "kept")
    assert table.to_dict()["result"] == {"first": 1}
    assert table.ask({"n": 7}) == {"asked": 7}
    with pytest.raises(IncrowdError) as refused:
        table.ask({"wrong": True})
    assert (refused.value.code, refused.value.remedy) == ("column-unknown", "Name another.")
    with pytest.raises(IncrowdError) as bug:
        table.ask({"bug": True})
    assert bug.value.code == "internal"
    assert "Smith" not in bug.value.message
    table.cancel()
    with pytest.raises(InputError) as gone:
        table.ask({"n": 1})
    assert gone.value.code == "not-found"
    assert table.to_dict()["result"] is None


def test_of_questions_that_wait_only_the_last_is_asked(jobs, processes):
    table = jobs.start("kept", {})
    wait_for(lambda: table.state == "kept")
    said = {}

    def ask(n, **question):
        try:
            said[n] = table.ask({"n": n, **question})
        except IncrowdError as error:
            said[n] = error.code

    threads = [threading.Thread(target=ask, args=(0,), kwargs={"wait": True})]
    threads[0].start()
    wait_for(table._turn.locked)
    for n in (1, 2):
        before = table._last
        threads.append(threading.Thread(target=ask, args=(n,)))
        threads[-1].start()
        wait_for(lambda last=before: table._last is not last)
    processes.started[0].stopped.set()
    for thread in threads:
        thread.join(LONG)
    assert said == {0: {"asked": 0}, 1: "request-refused", 2: {"asked": 2}}


def test_only_so_many_tables_are_kept_and_who_asked_last_stays(jobs):
    tables = []
    for _ in range(KEPT):
        tables.append(jobs.start("kept", {}))
        wait_for(lambda: tables[-1].state == "kept")
    assert jobs[tables[0].id].ask({"n": 1}) == {"asked": 1}
    tables.append(jobs.start("kept", {}))
    wait_for(lambda: tables[1].state == "cancelled")
    assert states(*tables) == ["kept", "cancelled", *["kept"] * (KEPT - 1)]


def test_the_end_stops_all(jobs):
    every = [jobs.start(kind, {}) for kind in ["blocked"] * AT_ONCE + ["at_once"]]
    jobs.stop()
    assert states(*every) == ["cancelled"] * (AT_ONCE + 1)
