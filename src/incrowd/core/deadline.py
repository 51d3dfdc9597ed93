"""Work that is given up when its time is up."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class _TimeIsUp(BaseException):
    """Not an Exception: nothing that handles errors may take it for one."""


def within(seconds: float, work: Callable[[], T]) -> T | None:
    """What some work gives, or None if it is not done in time.

    It is stopped where it is, as by Ctrl-C, in whatever thread it runs; a call into a library returns first. So it may
    write nothing, and change nothing that is used afterwards.
    """
    thread, lock, over = ctypes.c_ulong(threading.get_ident()), threading.Lock(), threading.Event()

    def stop() -> None:
        with lock:
            if not over.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_TimeIsUp))

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    try:
        try:
            timer.start()
            return work()
        finally:
            with lock:  # from here on nothing is stopped, also not by what was said before
                over.set()
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)
    except _TimeIsUp:
        return None
    finally:
        timer.cancel()
