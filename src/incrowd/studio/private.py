"""The studio's own folder for uploads and results: for its owner's eyes only, and gone when the studio is."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

_PREFIX = "incrowd-studio-"


class Private:
    """A private folder. One that a studio left behind because it was killed is removed by the next one."""

    def __init__(self) -> None:
        _sweep()
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # mode 700
        self._lock = (self.folder / "lock").open("wb")
        _taken(self._lock)
        for part in ("uploads", "dropped", "jobs", "scratch"):
            (self.folder / part).mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        self._lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _sweep() -> None:
    """Remove folders of our own whose studio does not run any more: nobody holds their lock."""
    if os.name != "posix":
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / "lock").open("rb+") as lock:
                if _taken(lock):
                    shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # another one is starting or ending right now


def _taken(lock: IO[bytes]) -> bool:
    """Whether the lock is ours now; it is given back when the file is closed, or its process dies."""
    if os.name != "posix":
        return True
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
