"""A folder for temporary files, which is gone afterwards, even if the process is killed: then the next one removes it.

A folder belongs to the process that holds the lock on a file in it. The system gives up the lock when the process
ends, however it ends, so a folder whose lock can be had is left over, and one without such a file is let alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":  # where leftovers stay
    import fcntl

_PREFIX = "incrowd-work-"
_LOCK = "in-use"


@contextmanager
def workspace(parent: Path | str | None) -> Iterator[Path]:
    """A new folder below `parent`, or where the system keeps temporary files."""
    place = Path(tempfile.gettempdir() if parent is None else parent)
    _remove_leftovers(place)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    try:
        with (folder / "new").open("wb") as lock:
            if sys.platform != "win32":
                fcntl.flock(lock, fcntl.LOCK_EX)
                # Nobody sees it under its name before it is locked.
                (folder / "new").rename(folder / _LOCK)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_leftovers(place: Path) -> None:
    with contextlib.suppress(OSError):
        for folder in place.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                _remove_if_left(folder)


def _remove_if_left(folder: Path) -> None:
    """Removes a folder of this user's that no process uses; whatever stands against it raises an OSError."""
    if sys.platform == "win32" or folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        return
    with (folder / _LOCK).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
