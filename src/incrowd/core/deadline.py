"""Work that is given up when its time is up."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_TURNS = 1000


class _TimeIsUp(BaseException):
    """Not an Exception: nothing that handles errors may take it for one."""


def within(seconds: float, work: Callable[[], T]) -> T | None:
    """What some work gives, or None if it is not done in time.

    It is stopped where it is, as by Ctrl-C, in whatever thread it runs; a call into a library returns first. So it may
    write nothing, and change nothing that is used afterwards.
    """
    thread, lock = ctypes.c_ulong(threading.get_ident()), threading.Lock()
    over, struck = threading.Event(), threading.Event()

    def stop() -> None:
        with lock:
            if not over.is_set():
                struck.set()
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_TimeIsUp))

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    try:
        try:
            timer.start()
            return work()
        finally:
            with lock:
                over.set()
            # What was said before comes now, as every turn of a loop looks for it. To take it back would leave CPython
            # looking for what is not there, for good: slower, and without end in a profiler (3.11).
            for _ in range(_TURNS if struck.is_set() else 0):
                pass
    except _TimeIsUp as up:
        if isinstance(up.__context__, KeyboardInterrupt):  # who interrupts means all of it
            raise up.__context__ from None
        return None
    finally:
        timer.cancel()
