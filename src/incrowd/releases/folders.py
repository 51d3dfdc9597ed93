"""Folders of releases, which appear whole or not at all, also if the process is killed.

They are made in a hidden folder beside their place, under a lock that the system lets go when the process ends. One
release gets its two folders by two renames, the internal one first. Several appear by a single rename: links with
their names are put beside the hidden folder, which lead nowhere until it gets the name that they lead to. Then each
link is exchanged for what it leads to, where the system can exchange two names at once; elsewhere the links stay.
Whether all that can be done in a place is tried out before anything is charged.

What a killed run has left is swept by the next one in the same place. What belongs to a run that is alive is locked.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from incrowd.core.errors import InputError
from incrowd.core.files import cannot_write, require_absent, umask

_HIDDEN = re.compile(r"\..+\.[0-9a-f]{8}\.(part|copies)")
_LOCK = "lock"


def internal_folder(folder: Path) -> Path:
    """Where the publisher's own files go: beside the public folder, never inside it."""
    return folder.with_name(f"{folder.name}.internal")


def require_free(folders: Sequence[Path]) -> None:
    """Folders, all in one place, that releases can be written to, or a clear error: before any budget is spent.

    What killed runs have left there is swept first.
    """
    for parent in {folder.absolute().parent for folder in folders}:
        sweep(parent)
    for folder in folders:
        _require_free(folder.absolute())


def _require_free(folder: Path) -> None:
    remedy = "A release is never overwritten; choose another folder."
    require_absent(folder, remedy)  # first: . and /, which have no name that another could be made of, are always there
    require_absent(internal_folder(folder), remedy)
    if not folder.parent.is_dir():
        raise InputError(
            f"There is no folder {folder.parent}.", code="output-unwritable", remedy="Make it, or choose another."
        )
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        raise InputError(
            f"The folder {folder.parent} cannot be written to.",
            code="output-unwritable",
            remedy="Choose a folder that may be written to.",
        )


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the operating system has against it becomes an error of ours."""
    try:
        yield
    except OSError as error:
        raise cannot_write(folder, error) from None


@dataclass(frozen=True)
class Staged:
    """The folders of a release before they have their names.

    Attributes:
        folder: where the release will be found.
        public: what will be published.
        internal: what only the publisher may see.
    """

    folder: Path
    public: Path
    internal: Path

    @property
    def moves(self) -> tuple[tuple[Path, Path], tuple[Path, Path]]:
        """What gets which name, the internal folder first."""
        return (self.internal, internal_folder(self.folder)), (self.public, self.folder)


@dataclass
class Stage:
    """Releases that will appear together.

    Attributes:
        root: the hidden folder.
    """

    root: Path
    releases: list[Staged] = field(default_factory=list)
    _ended: bool | None = field(default=None, init=False)

    @property
    def folders(self) -> list[Path]:
        """Where the releases will be found."""
        return [one.folder for one in self.releases]

    @property
    def appeared(self) -> bool:
        """Whether all can be seen under their names: asked of the file system, for a signal may come at any moment."""
        if self._ended is not None:
            return self._ended
        return bool(self.releases) and all(r.folder.exists() and not r.public.exists() for r in self.releases)

    def appear(self) -> None:
        """All get their names, or none has one when the stage is cleared."""
        for one in self.releases:
            one.public.chmod(0o755 & ~umask())  # meant to be passed on; the internal folder stays the owner's
        moves = [move for one in self.releases for move in one.moves]
        if len(self.releases) == 1:
            for staged, target in moves:
                staged.rename(target)
            return
        complete = _complete(self.root)
        for staged, target in moves:
            target.symlink_to(Path(complete.name) / staged.name, target_is_directory=True)
        self.root.chmod(0o755 & ~umask())
        self.root.rename(complete)
        _exchange_links(complete)

    def clear(self) -> None:
        """Take back what was done for releases that have not appeared. Whoever is stopped in it can be swept."""
        self._ended = self.appeared
        if not self.root.exists():
            return  # it has the name that links lead to
        for one in self.releases if not self._ended else ():
            for staged, target in one.moves:
                if not staged.exists():
                    target.rename(staged)
        _discard(self.root)


@contextmanager
def staged(folders: Sequence[Path]) -> Iterator[Stage]:
    """New folders in a hidden one, of which nothing is left unless they appear.

    Raises:
        InputError: they could not appear here, so nothing should be charged for them.
    """
    places = [folder.absolute() for folder in folders]
    first, several = places[0], len(places) > 1
    require_free(places)
    with writing(first):
        root, lock = _make_root(first.with_name(first.name.rpartition("-")[0]) if several else first)
    stage = Stage(root)
    try:
        with writing(first):
            if several:
                _try_out(root)
            for number, place in enumerate(places, start=1):
                one = Staged(place, root / str(number), root / f"{number}.internal")
                for folder in (one.internal, one.public):
                    folder.mkdir(mode=0o700)
                stage.releases.append(one)
        yield stage
    finally:
        with suppress(OSError):
            stage.clear()
        os.close(lock)


# --- hidden folders -----------------------------------------------------------------------------------------------


def sweep(parent: Path) -> None:
    """Remove what killed runs have left in a folder, and finish what they had published; others keep theirs."""
    with suppress(OSError), os.scandir(parent) as entries:
        for root in [Path(e.path) for e in entries if _HIDDEN.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]:
            with suppress(OSError):
                _sweep(root)


def _sweep(root: Path) -> None:
    try:
        lock = os.open(root / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        root.rmdir()  # only if it is empty: killed before it had a lock
        return
    try:
        if not _locked(lock, wait=False):
            return
        if root.suffix == ".copies":
            _exchange_links(root)
            return
        _discard(root)
    finally:
        os.close(lock)


def _discard(root: Path) -> None:
    """A hidden folder whose copies have not appeared, and first the links that were to lead to them."""
    for link in _links_into(_complete(root)):
        link.unlink()
    _remove(root)


def _remove(root: Path) -> None:
    """All of a hidden folder, its lock last: who is killed in between leaves what can be swept."""
    for path in root.iterdir():
        if path.name == _LOCK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    (root / _LOCK).unlink()
    root.rmdir()


def _make_root(folder: Path) -> tuple[Path, int]:
    """A hidden folder that no other run will sweep while this one lives."""
    while True:
        root = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
        root.mkdir(mode=0o700)
        try:
            lock = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # swept before it had a lock
        _locked(lock, wait=True)
        if (root / _LOCK).exists():
            return root, lock
        os.close(lock)


def _locked(lock: int, *, wait: bool) -> bool:
    """Whether the lock is ours now. Where there are no locks nothing is, so that nothing is swept."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _try_out(root: Path) -> None:
    """What copies need to appear at once: links, and the longer name that the hidden folder gets."""
    link, complete = root / "link", _complete(root)
    try:
        link.symlink_to(complete.name, target_is_directory=True)
        link.unlink()
    except OSError as error:
        raise InputError(
            f"The folder {root.parent} has no symbolic links ({error.strerror or type(error).__name__}), by which "
            "several copies appear at once.",
            code="output-unwritable",
            remedy="Choose a folder on a file system that has them, or make a single release.",
        ) from None
    root.rename(complete)
    complete.rename(root)


def _complete(root: Path) -> Path:
    """What a hidden folder is called once its copies have appeared."""
    return root.with_suffix(".copies")


def _links_into(complete: Path) -> list[Path]:
    with os.scandir(complete.parent) as entries:
        links = [Path(e.path) for e in entries if e.is_symlink()]
    return [link for link in links if link.readlink().parts[:-1] == (complete.name,)]


def _exchange_links(complete: Path) -> None:
    """Put folders in the places of the links to them; what cannot be exchanged stays a link that works."""
    links = _links_into(complete)
    if all(_exchanged(link, complete / link.readlink().name) for link in links) and not any(
        path.is_dir() and not path.is_symlink() for path in complete.iterdir()
    ):
        _remove(complete)


def _exchanged(one: Path, other: Path) -> bool:
    """Whether two names were exchanged at once."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        names = os.fsencode(one), os.fsencode(other)
        if sys.platform == "darwin":
            return bool(libc.renamex_np(*names, 2) == 0)
        return bool(libc.renameat2(-100, names[0], -100, names[1], 2) == 0)
    except (AttributeError, OSError, TypeError):
        return False
